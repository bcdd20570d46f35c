#!/usr/bin/env python3
"""remote - with PAWL_URL a command asks a daemon: the same output, the same words, the same exit status as with the database."""
import json
import os
import re

from checks import dead_letters_put
from pawl_test import Database, Pawl, main, test

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?|\d\d:\d\d:\d\dZ?")
WORKER = re.compile(r"[\w.-]+:\d+:[0-9a-f]{8}\b")
ID = "00000000-0000-4000-8000-0000000000%02d"
DEFINITION = """{"type": "checkout", "domain": "shop", "steps": [
  {"name": "approval", "wait": {"response": "approval"}, "timeout": "1d"}]}"""


class Side:
    """A database of its own, spoken to directly or through its daemon."""

    def __init__(self, is_remote):
        self.db = Database().__enter__()
        self.pawl = Pawl(self.db)
        self.server = self.pawl.serve("--role", "api")
        self.url = f"http://{self.server.host}:{self.server.port}"
        # No database: what asks the daemon must not need one.
        self.env = {"PAWL_DATABASE_URL": "postgresql:///nowhere?host=/nonexistent", "PAWL_URL": self.url, "PAWL_TOKEN": Pawl.TOKEN} if is_remote else {}
        self.seen = {}

    def __enter__(self):
        return self

    def __exit__(self, *parts):
        self.pawl.__exit__(*parts)
        self.db.__exit__(*parts)

    def local(self, *arguments, **options):
        done = self.pawl.run(*arguments, **options)
        assert done.code == 0, (arguments, done)
        return done

    def run(self, *arguments, stdin=""):
        return self.pawl.run(*arguments, stdin=stdin, env=self.env)

    def plain(self, text):
        """What differs between two databases: ids by the order in which they appear, no times."""
        def number(match):
            return "#%d" % self.seen.setdefault(match.group(0), len(self.seen)) if not match.group(0).startswith("00000000-") else match.group(0)

        text = re.sub(r" +", " ", WORKER.sub("WORKER", TIME.sub("TIME", UUID.sub(number, text))))
        # Over HTTP the sender of a command is the key.
        text = re.sub(r'"actor": "(root|admin)", "event": "SENT"', '"event": "SENT"', text)
        return re.sub(r'(SENT( attempt 0)? by |"SENT", .*?"actor" : ")(root|admin)\b', r"\1SENDER", text)


def compare(sides, *arguments, stdin="", forms=((), ("--json",))):
    """Both forms of the output, from the first one's twice: a decision is repeated in the second form."""
    for form in forms:
        done = [side.run(*arguments, *form, stdin=stdin) for side in sides]
        shown = [(side.plain(one.stdout), side.plain(one.stderr), one.code) for side, one in zip(sides, done)]
        assert shown[0] == shown[1], (arguments, form, shown)
        if form and done[0].code == 0:
            json.loads(done[1].stdout)
    return done[1]


def pair():
    return Side(False), Side(True)


@test
def commands_are_sent_shown_and_decided_about_alike():
    local, remote = pair()
    with local, remote:
        sides = (local, remote)
        compare(sides, "send", "shop", "ship", '{"n": 1}', "--id", ID % 1, "--priority", "7", "--max-attempts", "1", "--correlation-id", "c")
        compare(sides, "send", "shop", "ship", '{"n": 2}', "--id", ID % 1)  # another body
        compare(sides, "send", "shop", "ship", "-", "--delay", "1h", "--order-key", "k", forms=((),), stdin='{"n": 3}')
        compare(sides, "send", "shop", "ship", "--max-attempts", "1", "--key", "order-17", forms=((),))
        compare(sides, "send", "shop", "ship", "--unique", "nightly", "--id", ID % 20, "--delay", "1h")
        compare(sides, "send", "shop", "ship", "7", "--unique", "nightly", "--unique-for", "queued", "--on-duplicate", "replace", forms=((),))
        compare(sides, "send", "shop", "ship", "--unique", "nightly", "--unique-for", "soon")
        compare(sides, "send", "no such", "ship")
        compare(sides, "send", "shop", "ship", "{")
        compare(sides, "command", "show", ID % 1)
        compare(sides, "command", "show", ID % 99)
        compare(sides, "command", "show", "seventeen")
        compare(sides, "command", "list")
        compare(sides, "command", "list", "--status", "PENDING", "--type", "ship", "--limit", "1")
        compare(sides, "command", "list", "--status", "LOST")
        compare(sides, "command", "cancel", ID % 1, "--operator", "ann", "--reason", "not wanted")
        compare(sides, "command", "cancel", ID % 99)
        compare(sides, "send", "shop", "ship", '{"n": 1}', "--id", ID % 1, "--priority", "7", "--max-attempts", "1", "--correlation-id", "c", "--wait")
        compare(sides, "send", "shop", "ship", "--id", ID % 2, "--delay", "1h", "--wait", "100ms")


@test
def the_troubleshooting_queue_and_batches_are_alike():
    local, remote = pair()
    with local, remote:
        sides = (local, remote)
        for side in sides:
            for number in (1, 2, 3):
                side.local("send", "shop", "ship", "--id", ID % number)
            side.local("work", "shop", "--exec", "echo broken >&2; exit 70", "--drain")
        compare(sides, "tsq", "list")
        compare(sides, "tsq", "list", "--domain", "shop", "--limit", "2")
        compare(sides, "tsq", "cancel", ID % 1, "--reason", "no", "--operator", "ann")
        compare(sides, "tsq", "complete", ID % 1)  # decided otherwise
        compare(sides, "tsq", "complete", ID % 2, "--result", '{"by": "hand"}', "--operator", "ann")
        compare(sides, "tsq", "retry", ID % 3, "--domain", "shop", "--operator", "ann")
        compare(sides, "tsq", "retry", ID % 99)
        compare(sides, "command", "show", ID % 2)
        compare(sides, "send", "shop", "ship", "--id", ID % 2, "--wait", "10s")
        compare(sides, "batch", "create", "--id", ID % 10, "--name", "ten", "--on-complete", '{"domain": "shop", "type": "done"}')
        compare(sides, "send", "shop", "ship", "--batch", ID % 10, "--id", ID % 11)
        compare(sides, "batch", "show", ID % 10)
        compare(sides, "batch", "seal", ID % 10)
        compare(sides, "batch", "show", ID % 99)
        compare(sides, "batch", "list", "--status", "SEALED")
        compare(sides, "batch", "list", "--status", "LOST")
        compare(sides, "domain", "list")
        compare(sides, "domain", "list", "--order", "depth", "--limit", "1")
        compare(sides, "domain", "show", "shop")
        compare(sides, "domain", "show", "none")
        compare(sides, "domain", "limit", "shop", "--running", "5", "--rate", "100/s", "--operator", "ann")
        compare(sides, "domain", "limit", "shop", "--type", "ship", "--rate", "30/m", "--burst", "3", "--per-key")
        compare(sides, "domain", "limit", "shop", "--rate", "5/h")
        compare(sides, "domain", "limit", "shop")
        compare(sides, "domain", "pause", "shop", "--type", "ship", "--reason", "broken", "--operator", "ann")
        compare(sides, "domain", "show", "shop")
        compare(sides, "domain", "resume", "shop", "--type", "ship", "--operator", "ann")
        compare(sides, "domain", "limit", "shop", "--none", "--operator", "ann")
        compare(sides, "policy", "set", "shop", "10s,1500ms,2h", "--type", "ship")
        compare(sides, "policy", "set", "shop", "--order-key", "release")
        compare(sides, "policy", "show", "shop")
        compare(sides, "policy", "reset", "shop", "--type", "ship")
        for side in sides:
            dead_letters_put(side.db, ["a", "b"])
        compare(sides, "dlq", "list")
        compare(sides, "dlq", "list", "--type", "none")
        compare(sides, "dlq", "show", "1")
        compare(sides, "dlq", "show", "99")
        compare(sides, "dlq", "retry", "1")
        compare(sides, "dlq", "delete", "2")


@test
def processes_are_alike():
    local, remote = pair()
    with local, remote:
        sides = (local, remote)
        for side in sides:
            side.local("process", "define", "-", stdin=DEFINITION)
        compare(sides, "process", "start", "checkout", '{"total": 5}', "--domain", "shop", "--id", ID % 1, "--priority", "6")
        compare(sides, "process", "start", "checkout", "--domain", "shop", "--id", ID % 2, "--deadline", "2h", "--on-deadline", "fail")
        compare(sides, "process", "start", "checkout", "[]", "--domain", "shop")
        compare(sides, "process", "list")
        compare(sides, "process", "list", "--domain", "shop", "--status", "PENDING", "--limit", "1")
        compare(sides, "process", "signal", ID % 1, "approval", '{"by": "ann"}', "--key", "k1")
        compare(sides, "process", "signal", ID % 1, "aproval", "--key", "k2", forms=((),))
        compare(sides, "process", "signal", ID % 99, "approval")
        compare(sides, "process", "show", ID % 2)
        compare(sides, "process", "show", ID % 99)
        compare(sides, "process", "cancel", ID % 1, "--reason", "no", "--operator", "ann")
        compare(sides, "process", "retry", ID % 2, "--operator", "ann")
        compare(sides, "process", "start", "checkout", '{"total": 5}', "--domain", "shop", "--id", ID % 1, "--priority", "6", "--wait", "5s")
        compare(sides, "process", "complete", ID % 2, "--operator", "ann")


@test
def wallets_are_alike():
    local, remote = pair()
    with local, remote:
        sides = (local, remote)
        compare(sides, "wallet", "create", "ann", "--floor", "-50")
        compare(sides, "wallet", "create", "ann", "--floor", "-60")
        compare(sides, "wallet", "create", "bob", "--metadata", '{"n": 1}')
        compare(sides, "wallet", "topup", "ann", "500", "--txn-id", ID % 1, "--metadata", '{"from": "card"}')
        compare(sides, "wallet", "topup", "ann", "501", "--txn-id", ID % 1)
        compare(sides, "wallet", "spend", "ann", "40", "--txn-id", ID % 2)
        compare(sides, "wallet", "spend", "ann", "4000", "--txn-id", ID % 3)  # refused, and refused again
        compare(sides, "wallet", "spend", "ann", "1", "--key", "order-17", forms=((),))
        compare(sides, "wallet", "transfer", "ann", "bob", "30", "--txn-id", ID % 4)
        compare(sides, "wallet", "transfer", "ann", "nobody", "30", "--txn-id", ID % 5)
        compare(sides, "wallet", "hold", "ann", "20", "--txn-id", ID % 6, "--expires-in", "1h")
        compare(sides, "wallet", "capture", ID % 6, "--amount", "5", "--to", "bob", "--txn-id", ID % 7)
        compare(sides, "wallet", "void", ID % 6, "--txn-id", ID % 8)
        compare(sides, "wallet", "refund", ID % 2, "--amount", "10", "--txn-id", ID % 9)
        compare(sides, "wallet", "floor", "ann", "0", "--txn-id", ID % 10)
        compare(sides, "wallet", "freeze", "bob", "--txn-id", ID % 11)
        compare(sides, "wallet", "topup", "bob", "1", "--txn-id", ID % 12)
        compare(sides, "wallet", "unfreeze", "bob", "--txn-id", ID % 13)
        compare(sides, "wallet", "topup", "ann", "0")
        compare(sides, "wallet", "topup", "@ann", "5")
        compare(sides, "wallet", "balance", "ann")
        compare(sides, "wallet", "balance", "ann", "--all")
        compare(sides, "wallet", "balance", "@system")
        compare(sides, "wallet", "balance", "nobody")
        compare(sides, "wallet", "balance", "ann", "--at", "2001-01-01")
        compare(sides, "wallet", "entries", "ann")
        compare(sides, "wallet", "entries", "ann", "--kind", "spend", "--limit", "1")
        compare(sides, "wallet", "entries", "nobody")
        compare(sides, "wallet", "list")
        compare(sides, "wallet", "list", "--owner", "a*", "--limit", "1")
        compare(sides, "wallet", "holds")
        compare(sides, "wallet", "transactions", "--status", "refused")
        compare(sides, "wallet", "transactions", "--kind", "spend", "--owner", "ann")
        for number in (1, 3, 6, 99):
            compare(sides, "wallet", "show", ID % number)


@test
def a_daemon_that_is_away_or_refuses_is_an_error_in_words():
    with Side(True) as side:
        done = side.pawl.run("command", "list", env={**side.env, "PAWL_TOKEN": "wrong"})
        assert done.code == 1 and "token" in done.stderr, done
        done = side.pawl.run("command", "list", "--url", side.url, "--token", Pawl.TOKEN)
        assert done.code == 0, done
        done = side.pawl.run("command", "list", "--url", "http://127.0.0.1:1")
        assert done.code == 69 and done.stderr.startswith("pawl: cannot reach the daemon at http://127.0.0.1:1: "), done
        done = side.pawl.run("command", "list", "--url", "ftp://host")
        assert done.code == 2, done
        side.pawl.stop()
        assert side.run("command", "list").code == 69


@test
def what_does_not_speak_http_is_refused_and_uses_no_other_database():
    with Side(True) as side:
        done = side.run("rating", "verify")
        assert done.code == 2 and "pawl rating verify does not speak HTTP: it needs the database, so set PAWL_DATABASE_URL and unset PAWL_URL" in done.stderr, done
        done = side.run("send", "shop", "ship", "--lines", stdin="1\n")
        assert done.code == 2 and "--lines does not work over HTTP" in done.stderr, done
        assert not os.path.exists(os.path.join(side.pawl.home, "nowhere"))


if __name__ == "__main__":
    main()
