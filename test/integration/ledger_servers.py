"""ledger_servers - what the tests of the ledger share: wallets with money, servers that restart, ledger that are checked."""
import os
import signal
import subprocess
import uuid

from checks import is_clean
from ledger_checker import ledger_read, check
from pawl_test import TIMEOUT_S, setting


def new_key(chance=None):
    return str(uuid.UUID(int=chance.getrandbits(128), version=4) if chance else uuid.uuid4())


def wallets_open(rows, owners, balance=0):
    """Wallets with this much in them; the keys of what put it there."""
    names = ", ".join(f"'{owner}'" for owner in owners)
    rows(f"select count(*) from wallet.open(array[{names}])")
    if not balance:
        return []
    keys = [new_key() for _ in owners]
    posted = rows("select count(*) from wallet.post("
                  f"array_fill('topup'::text, array[{len(keys)}]), array{keys}::uuid[], array[{names}], "
                  f"array_fill({balance}::bigint, array[{len(keys)}])) p where p.refusal is null")
    assert posted == [str(len(keys))], posted
    return keys


def servers_start(pawl, count, env=None):
    """Several at once: each takes a while under sanitizers."""
    servers = [pawl.serve(env=env, wait=False) for _ in range(count)]
    for server in servers:
        server.wait_ready(TIMEOUT_S * 2)
    return servers


def servers_stop(servers):
    for server in servers:
        server.send(signal.SIGTERM)
    for server in servers:
        code = server.wait(TIMEOUT_S * 2)
        assert code == 0, f"serve ended with {code}: " + " / ".join(server.stderr[-5:])
        assert is_clean(server), "\n".join(server.stderr)


def ports_of(servers):
    return [server.port for server in servers]


def rows_of(url):
    """A function that runs SQL there. A large ledger takes longer to read than psql() of the harness allows."""
    def rows(sql):
        done = subprocess.run([os.path.join(setting("PAWL_TEST_BIN"), "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-f", "-", url],
                              input=sql, text=True, capture_output=True, timeout=TIMEOUT_S * 4)
        assert done.returncode == 0, f"{sql[:200]}: {done.stderr}"
        return done.stdout.splitlines()

    return rows


def ledger_agrees(rows, history, keys):
    """The checker finds nothing, and neither does the ledger itself."""
    ledger = ledger_read(rows)
    findings = check(history, ledger, keys)
    assert not findings, f"{len(findings)} findings: " + "\n".join(findings[:10])
    wrong = rows("select what, which, sentence from wallet.verify()")
    assert not wrong, wrong[:10]
    return ledger
