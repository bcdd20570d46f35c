#!/usr/bin/env python3
"""completion - bash, zsh and fish complete what the table of commands has."""
import json
import os
import pty
import select
import subprocess
import time

from pawl_test import TIMEOUT_S, Pawl, main, test

CASES = {
    "pawl compl": {"completion"},
    "pawl tsq re": {"retry"},
    "pawl tsq retry --op": {"--operator"},
    "pawl process --json sig": {"signal"},
    "pawl completion z": {"zsh"},
    "pawl wallet ca": {"capture"},
}


def script(pawl, shell):
    done = pawl.run("completion", shell)
    assert done.code == 0 and done.stderr == "", done
    assert pawl.run("completion", shell, "--json").json == {"script": done.stdout}
    return done.stdout


def bash_completes(file, line):
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    done = subprocess.run(["bash", "-c", f'source "$0"; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _pawl; printf "%s\\n" "${{COMPREPLY[@]}}"',
                           file], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert done.stderr == "", done
    return set(done.stdout.split())


def fish_completes(file, line):
    done = subprocess.run(["fish", "--no-config", "-c", f"source {file}; complete -C '{line}'"], capture_output=True, text=True, timeout=TIMEOUT_S,
                          check=True, env={**os.environ, "HOME": os.path.dirname(file)})
    return {row.split("\t")[0] for row in done.stdout.splitlines()}


class Zsh:
    """A terminal: only the line editor completes."""

    def __init__(self, file):
        self.text = ""
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.chdir(os.path.dirname(file))
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "HOME": os.path.dirname(file), "COLUMNS": "400", "LINES": "200"})
        self.type(f"autoload -Uz compinit; compinit -u -D; source {file}; PS1=; print rea''dy\n")
        self.read_until("ready")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, wanted):
        end = time.monotonic() + TIMEOUT_S
        while wanted not in self.text:
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {wanted!r} in {self.text!r}"
            self.text += os.read(self.terminal, 65536).decode(errors="replace")

    def completes(self, line, wanted):
        """Ctrl-U empties the line; the rest of the word appears behind what was typed."""
        self.text = ""
        self.type(f"\x15{line}\t")
        self.read_until(line.rpartition(" ")[0] + " " + wanted)

    def end(self):
        self.type("\x15exit\n")
        os.close(self.terminal)
        os.waitpid(self.child, 0)


def written(pawl, shell):
    file = os.path.join(str(pawl.home), f"pawl.{shell}")
    with open(file, "w", encoding="utf-8") as out:
        out.write(script(pawl, shell))
    return file


@test
def bash_completes_commands_verbs_flags_and_words():
    with Pawl() as pawl:
        file = written(pawl, "bash")
        for line, wanted in CASES.items():
            assert bash_completes(file, line) == wanted, line
        groups = {row["group"] for row in pawl.run("help", "--json").json}
        assert bash_completes(file, "pawl ") == groups
        assert bash_completes(file, "pawl send shop --") >= {"--id", "--json"}


@test
def fish_completes_commands_verbs_flags_and_words():
    with Pawl() as pawl:
        file = written(pawl, "fish")
        for line, wanted in CASES.items():
            assert fish_completes(file, line) == wanted, line


@test
def zsh_completes_commands_verbs_flags_and_words():
    with Pawl() as pawl:
        zsh = Zsh(written(pawl, "zsh"))
        for line, wanted in CASES.items():
            zsh.completes(line, *wanted)
        zsh.end()


@test
def another_shell_is_refused():
    with Pawl() as pawl:
        done = pawl.run("completion", "tcsh")
        assert done.code == 2 and done.stdout == "", done
        assert 'the shell must be bash, zsh or fish, got "tcsh"' in done.stderr, done
        assert json.loads(pawl.run("completion", "tcsh", "--json").stderr)["exit"] == 2


if __name__ == "__main__":
    main()
