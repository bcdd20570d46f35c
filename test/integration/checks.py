"""checks - what a program must answer, print and count: problems, refusals, metrics, alerts, a clean end."""
import json
import re

from pawl_test import TIMEOUT_S

SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|ThreadSanitizer")
DATA = '{"n": 1}'  # of every dead letter made here


def is_clean(process):
    """No sanitizer spoke."""
    return not any(SANITIZER.search(line) for line in process.stderr)


def measured(pawl):
    """For a test that measures memory: AddressSanitizer would keep 256 MiB of what was freed, and 1 MiB for each thread. Meson has
    the C library fill what was allocated and not yet used."""
    pawl.env["MALLOC_PERTURB_"] = "0"
    options = "quarantine_size_mb=4:thread_local_quarantine_size_kb=64:allocator_release_to_os_interval_ms=100"
    pawl.env["ASAN_OPTIONS"] = ":".join(filter(None, (pawl.env.get("ASAN_OPTIONS"), options)))


def memory_mib(pid, name="VmRSS"):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith(name))


def stop_clean(server, timeout=TIMEOUT_S):
    """SIGTERM, exit 0, and nothing that a sanitizer would say."""
    code = server.stop(timeout=timeout)
    assert code == 0, f"serve ended with {code}: " + " / ".join(server.stderr[-5:])
    assert is_clean(server), "\n".join(server.stderr)


def problem(answer, status, kind=None, part=""):
    """An RFC 9457 problem with this status, of this kind, whose words contain this part."""
    assert answer.status == status, f"{answer.status}, not {status}: {answer.body!r}"
    assert answer.headers["content-type"] == "application/problem+json", answer.headers
    body = answer.json
    assert body["status"] == status and body["title"], body
    assert kind is None or body["type"] == kind or body["type"].endswith("/" + kind), body
    assert part in body.get("detail", ""), body
    return body


def refused(pawl, *arguments, code, words, secrets=(), env=None, timeout=TIMEOUT_S):
    """The command fails with this code and says why in one sentence: these words are in it, no secret is."""
    done = pawl.run(*arguments, env=env, timeout=timeout)
    return refused_done(done, code, words, secrets)


def refused_done(done, code, words, secrets=(), is_json=False):
    """is_json: the command had --json, and the sentence is the detail of a document."""
    assert done.code == code, f"exit {done.code}, not {code}: {done.stderr}"
    lines = done.stderr.splitlines()
    assert len(lines) == 1, f"not one sentence: {done.stderr}"
    if is_json:
        lines = ["pawl: " + json.loads(lines[0])["detail"]]
    assert lines[0].startswith("pawl: "), lines[0]
    for word in words:
        assert word in lines[0], f"{word!r} is missing: {lines[0]}"
    for secret in secrets:
        assert secret not in done.stderr + done.stdout, f"{secret!r} was printed: {done.stderr}"
    assert done.stdout == "", done.stdout
    return lines[0]


def metric(pawl, name, label=""):
    """One value of /metrics; label as Prometheus writes it."""
    text = pawl.http("GET", "/metrics").body.decode()
    line = name + ("{" + label + "}" if label else "")
    for row in text.splitlines():
        if row.startswith(line + " "):
            return float(row.split()[-1])
    raise AssertionError(f"no metric {line}")


def alert(pawl, name):
    return next(item for item in pawl.http("GET", "/v1/alerts").json["items"] if item["alert"] == name)


def dead_letters_put(db, keys, kind="sample", delay_ms=3600000):
    """Dead letters as a failing operation leaves them; their ids."""
    def same(value, cast):
        return f"array_fill('{value}'::{cast}, array[{len(keys)}])"

    names = ", ".join(f"'{key}'" for key in keys)
    return [int(row) for row in db.rows(
        f"select id from pawl.dead_letter_keep({same(kind, 'text')}, array[{names}], {same(DATA, 'jsonb')}, "
        f"{same('it broke', 'text')}, {same('internal-error', 'text')}, {delay_ms}) order by item")]
