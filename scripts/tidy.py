#!/usr/bin/env python3
"""Reads the source as a colleague would.

Stops on what is wrong whatever the circumstances; lists what is long, longest first, and leaves the judgement to people.
Prints file:line: message, one finding per line. A check is a function that takes the tree and yields findings.
"""
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from embed_sql import queries_split

ROOT = Path(__file__).resolve().parent.parent

# A module sees itself and these.
MODULES = {
    "base": "",
    "pg": "base",
    "cluster": "base pg",
    "bus": "base pg",
    "schedule": "base pg bus process",
    "process": "base pg bus wallet client",
    "wallet": "base pg",
    "rating": "base pg bus",
    "client": "base",
    "telegram": "base pg bus client",
    "bot": "base pg bus rating telegram",
    "http": "base",
    "ops": "base pg client",
    "bench": "base pg bus process wallet rating client telegram bot",
    "api": "base pg bus schedule process wallet rating client telegram http ops",
    "app": "base pg cluster bus schedule process wallet rating client telegram bot http ops api",
    "lib": "base pg bus process wallet",
    "cli": "base pg cluster bus schedule process wallet rating client telegram bot http ops bench api app",
}

# What the tables and functions of a module are called.
SQL_NAMES = {"process": r"\bpawl\.process", "telegram": r"\bpawl\.telegram", "bot": r"\bpawl\.bot_", "wallet": r"\bwallet\.", "rating": r"\brating\."}

# Static functions that are called like public ones, and types that are defined twice. The list only shrinks.
NAMES_TWICE = """
    Batch BatchSending Call ClaimedCommand command_write Cut Entry Group
    Kept Key key_hash lease_release leases_extend List list_print locked_add Loop name_is_valid Opening Page Parser
    Part Position progress_end Report report_run Run run_end run_is_over Scope Sending
    Setting Settled slot_take Statement Turn undo_run Watch worker_run
""".split()

# Written apart, so that this file does not find itself.
LEFTOVERS = re.compile(r"\b(" + "|".join(["FIX" + "ME", "TO" + "DO", "X" * 3, "HA" + "CK"]) + r")\b")
CONFLICT = re.compile(r"(<{7}|>{7}) ")
FOREIGN_PATHS = re.compile(r"/(work|home|Users)/")
# base/banned.h stops most of the old sins at compile time; it cannot poison these, because system headers name them.
BANNED_CALLS = re.compile(r"(?<![\w.>])(system|popen|alloca|rand|srand|usleep|setlocale|vfork)\s*\(")
SQL_ALLOWED = re.compile(
    r"(begin|commit|rollback|set local|set_config|listen|unlisten|notify|select 1|select pg_notify)\b", re.IGNORECASE)
SQL_TEXT = re.compile(
    r"(select|insert\s+into|update|delete\s+from|create|alter|drop|grant|truncate|with|call|lock)\s+[\w.*(\"$%]",
    re.IGNORECASE)

FUNCTION_LINES = 70
FILE_LINES = 500
LINE_COLUMNS = 120
LIST_MAX = 5

# Folders whose SQL and comments in C may still be wider than LINE_COLUMNS. The list only shrinks.
WIDE = ("src/api src/app src/bench src/bus src/cli src/lib src/process src/wallet include examples "
        "sql/api sql/app sql/bot sql/bus sql/pgmq sql/process sql/rating sql/telegram sql/wallet "
        "test/concurrency test/fault test/isolation test/regress test/sim test/unit test/bench test/integration").split()


class File:
    """A text file of the project: path relative to the root, lines, and for C the code without comments."""

    def __init__(self, path):
        self.path = path.relative_to(ROOT)
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.split("\n")
        self.is_c = path.suffix in (".c", ".h")
        self.code = c_strip(self.text).split("\n") if self.is_c else []
        self.module = self.path.parts[1] if self.path.parts[0] == "src" and len(self.path.parts) > 2 else None

    def at(self, line, message):
        return f"{self.path}:{line}: {message}"


def c_strip(text):
    """C without its comments, line numbers kept; string literals stay."""
    def blank(match):
        token = match[0]
        return token if token[0] in "\"'" else "\n" * token.count("\n") or " "
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', blank, text, flags=re.DOTALL)


def string_hide(line):
    """The line with its string literals emptied."""
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', line)


def tree_read():
    """Every text file that is ours, .git and build folders apart."""
    files = []
    for folder, folders, names in os.walk(ROOT):
        skipped = (".git", "build", "__pycache__") if Path(folder) == ROOT else ("__pycache__",)
        folders[:] = sorted(name for name in folders if not name.startswith(skipped))
        for name in sorted(names):
            path = Path(folder, name)
            if name == ".git":  # of a worktree
                continue
            try:
                files.append(File(path))
            except UnicodeDecodeError:
                continue
    return files


def check_includes(files):
    """Modules include downwards only, and a .c file proves that its own header stands alone."""
    for file in files:
        if not file.module:
            continue
        if file.module not in MODULES:
            yield file.at(1, f"module {file.module} is not in the table of scripts/tidy.py")
            continue
        allowed = [file.module] + MODULES[file.module].split()
        includes = [(number, match[1]) for number, line in enumerate(file.code, 1)
                    if (match := re.match(r'\s*#\s*include\s+"([^"]+)"', line))]
        for number, name in includes:
            module = name.split("/")[0]
            if module in MODULES and module not in allowed:
                yield file.at(number, f"{file.module} may not include {module}")
            elif "/" not in name and name != "sql.h":
                yield file.at(number, f'includes are written "module/file.h", not "{name}"')
        own = f"{file.module}/{file.path.stem}"
        first = next(re.finditer(r'#\s*include\s+[<"]([^>"]+)', "\n".join(file.code)), None)
        if file.path.suffix == ".c" and (ROOT / "src" / f"{own}.h").exists() and first:
            if first[1] not in (f"{own}.h", f"{own}_inner.h", f"{own}_internal.h"):
                yield file.at(1, f'the first include should be "{own}.h"')


def check_sql_modules(files):
    """SQL of a module calls what its C may include; grants are of all. "attached" and "reserved" join the rest."""
    for file in files:
        parts = file.path.parts
        if parts[0] != "sql" or file.path.suffix != ".sql" or parts[1] in ("migrations", "base") or parts[1] not in MODULES:
            continue
        hidden = {module: name for module, name in SQL_NAMES.items() if module not in [parts[1]] + MODULES[parts[1]].split()}
        for number, line in enumerate(file.lines, 1):
            for module, name in hidden.items():
                if re.search(name, line.split("--")[0]):
                    yield file.at(number, f"{parts[1]} may not call {module}")


def check_words(files):
    """Leftovers, marks of a merge, paths of one machine, tabs, trailing blanks."""
    for file in files:
        tabs_allowed = file.path.suffix in (".out", ".spec", ".sh") or file.path.name == "LICENSE"
        for number, line in enumerate(file.lines, 1):
            if match := LEFTOVERS.search(line):
                yield file.at(number, f'leftover "{match[0]}"')
            if CONFLICT.match(line):
                yield file.at(number, "mark of an unresolved merge")
            if FOREIGN_PATHS.search(line) and file.path.name != Path(__file__).name:
                yield file.at(number, "names a path of one machine")
            if "\t" in line and not tabs_allowed:
                yield file.at(number, "tab")
            if line != line.rstrip() and file.path.suffix != ".out":
                yield file.at(number, "trailing blank")
        if file.text and not file.text.endswith("\n"):
            yield file.at(len(file.lines), "no newline at the end")


def words_read():
    """(pattern, what to write, where) of each row of scripts/words.txt."""
    rows, clean = [], []
    for line in (ROOT / "scripts" / "words.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("clean:"):
            clean += line.split()[1:]
        elif line and not line.startswith("#"):
            *pattern, use, where = (column.strip() for column in line.split("|"))
            where = [place for word in where.split() for place in (clean if word == "clean" else [word])]
            rows.append((re.compile(rf"(?<![a-z])(?:{'|'.join(pattern)})(?![a-z])", re.IGNORECASE), use, where))
    return rows


def check_vocabulary(files):
    """A word that was replaced stays replaced."""
    texts = {file.path.as_posix(): "\n".join(file.lines) for file in files}
    for pattern, use, where in words_read():
        for file in files:
            path = file.path.as_posix()
            if path in ("scripts/words.txt", "LICENSE") or not any(
                    place == "." or path == place or path.startswith(place + "/") for place in where):
                continue
            if not pattern.search(texts[path]):  # most files: much quicker than line by line
                continue
            for number, line in enumerate(file.lines, 1):
                if match := pattern.search(line):
                    yield file.at(number, f'"{match[0]}" was replaced: write {use}')


def check_calls(files):
    for file in files:
        if file.is_c and file.path.parts[0] in ("src", "include"):
            for number, line in enumerate(file.code, 1):
                if match := BANNED_CALLS.search(string_hide(line)):
                    yield file.at(number, f"{match[1]}() is not used here")


def check_sql_in_c(files):
    """Statements live in sql/, where they have a name, a comment and a test."""
    for file in files:
        if file.is_c and file.path.parts[0] == "src":
            for number, line in enumerate(file.code, 1):
                for literal in re.findall(r'"((?:\\.|[^"\\])*)"', line):
                    if SQL_TEXT.match(literal) and not SQL_ALLOWED.match(literal) and sql_like(literal):
                        yield file.at(number, "SQL text belongs into sql/MODULE/queries.sql")


def sql_like(literal):
    """Prose may begin with "create" or "with" as well; a statement has a second keyword or a bracket."""
    return re.search(r"\b(from|set|into|values|where|table|schema|database|role|extension|function|select|or replace)\b|\(",
                     literal.split(None, 1)[1], re.IGNORECASE) is not None


def check_sql_used(files):
    """A query that no C code sends is dead code."""
    words = set()
    for file in files:
        if file.path.parts[0] in ("src", "test") and file.is_c:
            words.update(re.findall(r"\bsql_\w+", "\n".join(file.code)))
    for file, name, _, line in list_queries(files):
        if f"sql_{file.path.parts[1]}_{name}" not in words:
            yield file.at(line, f"sql_{file.path.parts[1]}_{name} is never used")


def list_queries(files):
    """(file, name, statement, line) of each statement that C sends."""
    for file in files:
        if file.path.match("sql/*/queries.sql"):
            for name, text, line in queries_split(file.path, file.text):
                yield file, name, text, line


def check_heads(files):
    """A file says what it is before it begins."""
    heads = {".c": "/*", ".h": "/*", ".sql": "--", ".spec": "#", ".py": ("#!", '"""'), ".sh": "#!"}
    for file in files:
        if file.path.parts[0] in ("test", "src", "include", "sql", "scripts"):
            head = heads.get(file.path.suffix)
            if head and not file.text.startswith(head):
                yield file.at(1, "does not begin with a comment that says what it is")


def check_built(files):
    """A .c file that its folder's meson.build does not name is not compiled."""
    builds = {file.path.parent: file.text for file in files if file.path.name == "meson.build"}
    for file in files:
        if file.path.suffix == ".c" and f"{file.path.name}'" not in builds.get(file.path.parent, ""):
            yield file.at(1, f"is not in {file.path.parent}/meson.build")


def check_fields(files):
    """The fields of a request belong to the module whose operation it is; api and lib read its table. Keys are api's own."""
    for file in files:
        if file.module in ("api", "lib") and file.path.name != "keys.c":
            for number, line in enumerate(file.code, 1):
                if re.match(r"(static )?const Field \w+\[", line):
                    yield file.at(number, f"a table of fields belongs to the module of its operation, not to {file.module}")


def check_scoped(files):
    """A scoped variable has a value from its declaration on: an early return would otherwise free stack garbage."""
    for file in files:
        if not file.is_c:
            continue
        lines = ["" if re.match(r"\s*#", line) else string_hide(line) for line in file.code]
        text = "\n".join(lines)
        for match in re.finditer(r"\bscoped(?:_\w+\b|\s*\(\s*\w+\s*\))|\bcleanup\s*\(", text):
            start = max(text.rfind(c, 0, match.start()) for c in ";{}") + 1
            end = declaration_end(text, match.end())
            if any("=" not in name for name in declarators(text[start:end])):
                yield file.at(text.count("\n", 0, match.start()) + 1, "a scoped variable is declared without a value")


def declaration_end(text, position):
    """Where the declaration that goes on at position ends: its ";" outside of all brackets."""
    depth = 0
    for index in range(position, len(text)):
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(text[index], 0)
        if text[index] == ";" and depth <= 0:
            return index
    return len(text)


def declarators(declaration):
    """The declaration split at its commas outside of all brackets."""
    names, depth = [""], 0
    for char in declaration:
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(char, 0)
        if char == "," and depth == 0:
            names.append("")
        else:
            names[-1] += char
    return names


def check_headers(files):
    """Each header compiles alone: no other include has to come first."""
    headers = [file for file in files if file.path.suffix == ".h" and file.path.name != "banned.h"]
    libraries = ["libpq", "libsodium", "libcurl", "cairo"]
    flags = subprocess.run(["pkg-config", "--cflags", *libraries], capture_output=True, text=True).stdout.split()
    command = ["cc", "-std=gnu17", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Werror",
               *(f"-I{ROOT / folder}" for folder in ("src", "include", ".")), *flags, "-x", "c"]

    def compile_one(file):
        source = f'#include "{ROOT / file.path}"\n'
        return file, subprocess.run([*command, "-"], input=source, capture_output=True, text=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, result in pool.map(compile_one, headers):
            if result.returncode != 0:
                reason = next((line for line in result.stderr.splitlines() if "error:" in line), result.stderr.strip())
                yield file.at(1, f"does not compile alone: {reason.split('error: ')[-1]}")


def check_proofs(files):
    """A test that docs/guarantees-tests.md names exists: `breaker_*` stands for any of them."""
    proofs = [file for file in files if file.path.as_posix().endswith("docs/guarantees-tests.md")]
    tests = "\n".join([file.path.as_posix() for file in files if "/test/" in f"/{file.path.as_posix()}"]
                      + [line for file in files if "/test/" in f"/{file.path.as_posix()}" for line in file.lines])
    for file in proofs:
        for number, line in enumerate(file.lines, 1):
            for name in re.findall(r"`([a-z0-9]+(?:_[a-z0-9]+){2,}\*?)`", line):
                if name.rstrip("*") not in tests:
                    yield file.at(number, f"no test is called {name}")
        yield from rows_twice(file)


def rows_twice(file):
    """Two rows with the same tests are one promise in two wordings, as a merge leaves them."""
    rows = {}
    for number, line in enumerate(file.lines, 1):
        names = frozenset(re.findall(r"`(\w+)`", line.split("|")[-2])) if line.startswith("|") and line.count("|") > 3 else ()
        if len(names) > 1:
            if names in rows:
                yield file.at(number, f"the same tests as in line {rows[names]}: one promise, one row")
            rows[names] = number


# Statements that may queue commands and return no column `wake`. What they queue is found by the next poll of a worker, unless the reason says who
# notifies.
WAKES_LATER = {
    "api/key_create": "queues nothing: its audit asks for the right to decide by the name of a function that does",
    "api/key_revoke": "the same",
    "app/expire": "events of holds that end",
    "bus/bulk_start": "queues nothing itself: chunks do, and have the column",
    "bus/claim": "what follows a command whose payload cannot be read",
    "bus/claim_isolate": "the same",
    "bus/dead_letter_forward": "letters of applications, every minute",
    "bus/extend": "what follows a command that was canceled",
    "bus/maintain": "ends of batches that were abandoned",
    "bus/on_complete_retry": "a batch's last command, after its first try has failed",
    "bus/postpone": "queues nothing that is due",
    "bus/release": "a pod that cannot begin a command must not wake the next one that cannot",
    "bus/reply_retry": "a reply, after its first try has failed",
    "bus/send": "the sender knows its domains: waker_notify_sent()",
    "process/claim": "as bus/claim",
    "process/move": "has the column `domains`",
    "process/orphans": "cancels what a step sent that is not wanted",
    "schedule/create": "sends nothing: it checks the domain as a start does",
    "schedule/pause": "sends nothing",
    "schedule/resume": "sends nothing",
    "schedule/delete": "sends nothing",
    "telegram/put": "the bot knows the domain: bot/update.c",
    "wallet/post": "events of postings",
    "wallet/post_transfer": "the same",
}


def functions_that_queue(files):
    """The SQL functions that insert into pawl.ready, and those that call them."""
    bodies = {}
    for file in files:
        if file.path.match("sql/*/*.sql") and file.path.parts[1] != "migrations":
            for match in re.finditer(r"create (?:or replace )?function ([\w.]+) ?\(.*?\bas (\$\w*\$)(.*?)\2", file.text, re.DOTALL):
                bodies[match[1]] = bodies.get(match[1], "") + re.sub(r"--.*", "", match[3])
    called = {name: set(re.findall(r"\b(\w+\.\w+)\s*\(", body)) for name, body in bodies.items()}
    found = {name for name, body in bodies.items() if re.search(r"insert into pawl\.ready\b", body)}
    while more := {name for name in bodies if name not in found and called[name] & found}:
        found |= more
    return found


def check_wakes(files):
    """A statement that queues commands returns their domains, which C notifies after the commit, or is listed with a reason."""
    queueing, listed = functions_that_queue(files), dict(WAKES_LATER)
    for file, query, text, line in list_queries(files):
        name = f"{file.path.parts[1]}/{query}"
        text = re.sub(r"--.*", "", text)
        queues = queueing & set(re.findall(r"\b(\w+\.\w+)\s*\(", text))
        if queues and " as wake" not in text:
            if not listed.pop(name, None):
                yield file.at(line, f"{min(queues)} may queue commands: return a column `wake`, or give the reason in WAKES_LATER")
        elif listed.pop(name, None):
            yield file.at(line, "notifies, or queues nothing: remove it from WAKES_LATER")
    for name in listed:
        yield f"scripts/tidy.py:1: WAKES_LATER has {name}, which does not exist"


def check_links(files):
    """A link of a document leads to a file that exists, and a link called `ADR 7` to decision 7."""
    for file in files:
        if file.path.suffix != ".md":
            continue
        for number, line in enumerate(file.lines, 1):
            for text, target in re.findall(r"\[([^\[\]]*)\]\(([^()\s#]+)(?:#[^()\s]*)?\)", line):
                if ":" in target:
                    continue
                if not (ROOT / file.path.parent / target).exists():
                    yield file.at(number, f"the link leads to {target}, which does not exist")
                elif (decision := re.fullmatch(r"ADR (\d+)", text)) and not Path(target).name.startswith(f"{int(decision[1]):04}-"):
                    yield file.at(number, f"{text} leads to {target}")


def check_decisions(files):
    """Each decision has a number of its own, in its name and in its title."""
    numbers = {}
    for file in files:
        if file.path.match("docs/adr/*.md"):
            number = file.path.name[:4]
            other = numbers.setdefault(number, file.path.name)
            if other != file.path.name:
                yield file.at(1, f"{other} has the same number")
            if not file.lines[0].startswith(f"# {int(number)}. "):
                yield file.at(1, f'the title must begin with "# {int(number)}. "')


def check_architecture(files):
    """ARCHITECTURE.md names files and functions that exist, and the modules with what they may include."""
    file = next(file for file in files if file.path.as_posix() == "ARCHITECTURE.md")
    paths = {path for other in files for path in (other.path.as_posix(), other.path.with_suffix("").as_posix())}
    made = {match[1] for other in files if other.path.suffix == ".sql" and other.path.parts[0] == "sql"
            for match in re.finditer(r"create (?:or replace |unlogged )?(?:function|view|table) ([\w.]+)", other.text)}
    for number, line in enumerate(file.lines, 1):
        for name in re.findall(r"`([^` ]+)`", line):
            if re.fullmatch(rf"(?:{'|'.join(MODULES)})/\w+(?:\.h)?|(?:sql|docs|scripts|test)/[\w./]*\w", name):
                if f"src/{name}" not in paths and name not in paths and not (ROOT / name).is_dir():
                    yield file.at(number, f"there is no {name}")
            elif re.fullmatch(r"(?:pawl|wallet|rating)\.\w+", name) and name not in made:
                yield file.at(number, f"no function, view or table is called {name}")
        if row := re.fullmatch(r"\| `(\w+)` \| .* \| (.*) \|", line):
            yield from module_row(file, number, row[1], row[2])


def module_row(file, number, name, includes):
    """A row of the table of modules: what it may include, as the table here has it."""
    if name not in MODULES:
        yield file.at(number, f"there is no module {name}")
        return
    above = re.findall(r"^\| `(\w+)` \|", "\n".join(file.lines[:number - 1]), re.MULTILINE)
    if match := re.fullmatch(r"all above(?: but (\w+))?", includes):
        allowed = set(above) - {match[1]}
    else:
        allowed = set(re.findall(r"\w+", includes)) - {"nothing"}
    if allowed != set(MODULES[name].split()):
        yield file.at(number, f"{name} may include {MODULES[name] or 'nothing'}")


def list_functions(files):
    """Functions begin with a brace in column 0 and end with one."""
    for file in files:
        start = None
        for number, line in enumerate(file.code, 1):
            if line == "{":
                start = number
            elif line == "}" and start:
                if number - start - 1 > FUNCTION_LINES:
                    yield number - start - 1, file.at(start, f"function of {number - start - 1} lines")
                start = None


def list_sql_functions(files):
    """The same for functions in SQL, but for those that are a table of values. Migrations are left alone."""
    for file in files:
        if file.path.suffix != ".sql" or file.path.parts[0] != "sql" or file.path.parts[1] == "migrations":
            continue
        for match in re.finditer(r"^as \$\$\n(?!  values\n)(.*?)^\$\$;$", file.text, re.DOTALL | re.MULTILINE):
            if (count := match[1].count("\n")) > FUNCTION_LINES:
                yield count, file.at(file.text.count("\n", 0, match.start()) + 1, f"function of {count} lines")


def list_files(files):
    for file in files:
        if (file.is_c or file.path.suffix in (".sql", ".py", ".sh")) and len(file.lines) > FILE_LINES:
            yield len(file.lines), file.at(1, f"file of {len(file.lines)} lines")


def list_columns(files):
    for file in files:
        if file.path.suffix in (".c", ".h", ".sql", ".py", ".sh", ".build"):
            for number, line in enumerate(file.lines, 1):
                if len(line) > LINE_COLUMNS:
                    yield len(line), file.at(number, f"line of {len(line)} columns")


def check_columns(files):
    """SQL, and comments in C: clang-format breaks the code and leaves rows of tables whole."""
    for file in files:
        if file.path.suffix not in (".c", ".h", ".sql") or file.path.as_posix().startswith(tuple(f"{folder}/" for folder in WIDE)):
            continue
        code = file.code or [""] * len(file.lines)
        for number, line in enumerate(file.lines, 1):
            if len(line) > LINE_COLUMNS and len(code[number - 1].rstrip()) < len(line):
                yield file.at(number, f"line of {len(line)} columns: {LINE_COLUMNS} at most")


FUNCTION = re.compile(r"(static\s+)?(?!typedef|return|else)\w[\w\s*]*?[\s*](\w+)\s*\((?!.*;$)")
TYPE = re.compile(r"^(?:typedef\b[^{;]*?\b(\w+)\s*;|typedef\b[^;]*\(\*(\w+)\)\s*\(.*|typedef\b[^;]*\{(?:.*?\n)*?\}\s*(\w+)\s*;|DB_ROW\((\w+),)", re.MULTILINE)


def check_names(files):
    """A static function is not called like a public one of another file, and a type is defined once."""
    public, static, types = {}, [], {}
    for file in files:
        if file.module and file.path.suffix == ".c":
            for number, line in enumerate(file.code, 1):
                if match := FUNCTION.match(line):
                    static += [(match[2], file, number)] if match[1] else []
                    if not match[1]:
                        public[match[2]] = file.path
        if file.module:
            text = "\n".join(file.code)
            for match in TYPE.finditer(text):
                name = next(filter(None, match.groups()))
                types.setdefault(name, {})[file.path] = file.at(text.count("\n", 0, match.end()) + 1, "")
    known = set(NAMES_TWICE)
    for name, file, number in static:
        if public.get(name, file.path) != file.path:
            known.discard(name)
            if name not in NAMES_TWICE:
                yield file.at(number, f"{name}() is also a public function, of {public[name]}")
    for name, places in types.items():
        if len(places) > 1:
            known.discard(name)
            if name not in NAMES_TWICE:
                yield f"{list(places.values())[-1]}type {name} is also defined in {next(iter(places))}"
    for name in known:
        yield f"scripts/tidy.py:1: NAMES_TWICE has {name}, which is unique by now"


CHECKS = [check_includes, check_sql_modules, check_words, check_vocabulary, check_calls, check_sql_in_c, check_sql_used, check_heads,
          check_built, check_fields, check_scoped, check_headers, check_proofs, check_wakes, check_links, check_decisions, check_architecture,
          check_columns, check_names]
LISTS = [list_functions, list_sql_functions, list_files, list_columns]


def main():
    files = tree_read()
    for lister in LISTS:
        found = sorted(lister(files), key=lambda row: (-row[0], row[1]))
        for _, message in found[:LIST_MAX]:
            print(f"{message} (for your judgement)")
    findings = [finding for check in CHECKS for finding in check(files)]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
