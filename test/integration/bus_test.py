#!/usr/bin/env python3
"""bus - commands from the command line: sent, worked on, looked at, decided about, forgotten."""
import json
import os
import pwd
import pty
import re
import subprocess
import tempfile

from bus_commands import (counts, events, new_id, replies, retry_at_once, send, show, status, wait_status, work)
from checks import is_clean, refused, refused_done
from pawl_test import TIMEOUT_S, Database, Done, Pawl, main, setting, test, wait_until
from servers import Session


class Folder(tempfile.TemporaryDirectory):
    """A folder of one's own; file(name) is a path in it."""

    def __enter__(self):
        super().__enter__()
        return self

    def file(self, name):
        return os.path.join(self.name, name)

    def read(self, name):
        with open(self.file(name), encoding="utf-8") as file:
            return file.read()


# --- send ---

@test
def send_keeps_every_flag():
    with Database() as db, Pawl(db) as pawl:
        batch = db.value("select batch_id from pawl.batch_new(null, 'b', null)")
        given = new_id()
        sent = send(pawl, "shop", "charge", {"order": 7}, "--id", given, "--delay", "2h", "--priority", "9",
                    "--max-attempts", "5", "--reply-to", "answers", "--correlation-id", "c-1", "--batch", batch)
        assert sent == given, sent
        command = show(pawl, given)
        wanted = {"command_id": given, "domain": "shop", "type": "charge", "status": "PENDING", "payload": {"order": 7},
                  "priority": 9, "max_attempts": 5, "reply_to": "answers", "correlation_id": "c-1", "batch_id": batch,
                  "attempts": 0}
        assert {key: command[key] for key in wanted} == wanted, command
        assert command["due_at"] and events(command) == ["SENT"], command
        assert command["audit"][0]["actor"] == pwd.getpwuid(os.getuid()).pw_name, "the sender is who ran the command"
        assert db.value(f"select round(extract(epoch from d.due - c.created_at)) from pawl.delayed d "
                        f"join pawl.command c using (id) where c.command_id = '{given}'") == "7200"
        plain = show(pawl, send(pawl, "shop", "charge"))
        assert (plain["payload"], plain["priority"], plain["max_attempts"]) == ({}, 4, 3), plain


@test
def command_same_id_twice_is_one_command():
    with Database() as db, Pawl(db) as pawl:
        given = new_id()
        for _ in range(2):
            assert send(pawl, "shop", "charge", {"a": 1, "b": 2}, "--id", given) == given
        assert send(pawl, "shop", "charge", {"b": 2, "a": 1}, "--id", given.upper()) == given
        again = pawl.run("send", "shop", "charge", '{"a":1,"b":2}', "--id", given, "--json").json
        assert again == {"command_id": given, "status": "PENDING", "created": False}, again
        assert work(pawl, "shop", "--noop")["completed"] == 1
        again = pawl.run("send", "shop", "charge", '{"a":1,"b":2}', "--id", given, "--json").json
        assert again == {"command_id": given, "status": "COMPLETED", "created": False}, again
        assert db.value("select count(*) from pawl.command") == "1"


@test
def send_of_another_body_under_the_same_id_names_the_difference():
    with Database() as db, Pawl(db) as pawl:
        given = send(pawl, "shop", "charge", {"n": 1})
        before = counts(db)
        refused(pawl, "send", "shop", "charge", '{"n": 2}', "--id", given, code=1, words=[given, "payload differs"])
        refused(pawl, "send", "shop", "refund", '{"n": 1}', "--id", given, code=1,
                words=[given, "type", '"refund"', '"charge"'])
        assert counts(db) == before
        assert show(pawl, given)["payload"] == {"n": 1}


@test
def send_refuses_bad_input_by_name_and_writes_nothing():
    with Database() as db, Pawl(db) as pawl:
        before = counts(db)
        uneven = new_id()
        for arguments, codes, word in [
                (("shop", "charge", "{"), (2,), "payload"),
                (("shop", "charge", "{'a': 1}"), (2,), "payload"),
                (("shop", "charge", "nope"), (2,), "payload"),
                (("shop", "charge", ""), (2,), "payload"),
                (("shop", "charge", '"\\u0000"'), (2,), "payload"),
                (("shop", "charge", '"\\ud800"'), (2,), "payload"),
                (("shop", "charge", b'"\xff"'), (2,), "payload"),
                (("sh op", "charge", "{}"), (2,), "domain"),
                (("-shop", "charge", "{}"), (2,), "-shop"),
                (("", "charge", "{}"), (2,), "domain"),
                (("d" * 64, "charge", "{}"), (2,), "domain"),
                (("sch\u00f6n", "charge", "{}"), (2,), "domain"),
                (("shop", "ch/arge", "{}"), (2,), "type"),
                (("shop", "t" * 101, "{}"), (2,), "type"),
                (("shop", "charge", "{}", "--id", "7"), (2,), "--id"),
                (("shop", "charge", "{}", "--batch", "7"), (2,), "--batch"),
                (("shop", "charge", "{}", "--priority", "10"), (2,), "--priority"),
                (("shop", "charge", "{}", "--priority", "x"), (2,), "--priority"),
                (("shop", "charge", "{}", "--max-attempts", "0"), (2,), "--max-attempts"),
                (("shop", "charge", "{}", "--delay", "soon"), (2,), "--delay"),
                (("shop", "charge", "{}", "--delay", "-5s"), (2,), "--delay"),
                (("shop", "charge", "{}", "--reply-to", "no spaces"), (2,), "reply_to"),
                (("shop", "charge", "{}", "--reply-to", "q" * 48), (2,), "reply_to"),
                (("shop", "charge", "{}", "--correlation-id", ""), (2,), "correlation"),
                (("shop", "charge", "{}", "--batch", uneven), (1,), uneven),
                (("shop",), (2,), "TYPE"),
                (("shop", "charge", "{}", "--idd", "7"), (2,), "--id"),
        ]:
            done = pawl.run("send", *arguments)
            assert done.code in codes, f"{arguments}: exit {done.code}: {done.stderr}"
            refused_done(done, done.code, [word])
            assert counts(db) == before, f"{arguments} wrote something"


class BytesPawl(Pawl):
    """A pawl whose standard input may be any bytes."""

    def feed(self, data, *arguments):
        done = subprocess.run(self._command(arguments), env=self.env, input=data, capture_output=True, timeout=TIMEOUT_S)
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))


@test
def send_from_standard_input_takes_a_megabyte_and_refuses_nul_and_bad_utf8():
    with Database() as db, BytesPawl(db) as pawl, Folder() as folder:
        before = counts(db)
        for data, word in [(b'{"a": "x\0y"}', "NUL"), (b"\0", "NUL"), (b'{"a": "\xc3\x28"}', "UTF-8"), (b"", "payload")]:
            refused_done(pawl.feed(data, "send", "shop", "charge", "-"), 1, ["payload", word])
        assert counts(db) == before
        large = json.dumps({"text": "x" * (1 << 20)})
        done = pawl.feed(large.encode(), "send", "shop", "charge", "-")
        assert done.code == 0, done.stderr
        assert work(pawl, "shop", "--exec", f"cat > {folder.file('got')}")["completed"] == 1
        assert json.loads(folder.read("got")) == json.loads(large)
        too_large = b'"' + b"x" * (64 << 20) + b'"'
        before = counts(db)
        refused_done(pawl.feed(too_large, "send", "shop", "charge", "-"), 1, ["payload", "bytes"])
        assert counts(db) == before


@test
def send_lines_sends_them_all_and_names_a_bad_one():
    with Database() as db, BytesPawl(db) as pawl:
        good = b"".join(b'{"n": %d}\n' % n for n in range(2500))
        done = pawl.feed(good, "send", "shop", "charge", "--lines", "--priority", "7")
        assert (done.code, done.stdout) == (0, "2500 sent\n"), done
        assert db.value("select count(distinct payload), min(priority) from pawl.command") == "2500|7"
        before = counts(db)
        for data, line in [(b'{"n": 1}\n\n{"n": \n', "line 3"), (b'{}\n"\xff"\n', "line 2"), (b'{}\n"a\0b"\n', "line 2")]:
            refused_done(pawl.feed(data, "send", "shop", "charge", "--lines"), 1, [line, "payload", "0 sent"])
        assert counts(db) == before
        refused_done(pawl.feed(b"{}\n", "send", "shop", "charge", "--lines", "--id", new_id()), 2, ["--id", "--lines"])
        refused_done(pawl.feed(b"{}\n", "send", "shop", "charge", "{}", "--lines"), 2, ["--lines"])
        late = pawl.feed(good[:good.index(b"\n", 12000) + 1] + b"{\n", "send", "shop", "charge", "--lines")
        assert late.code == 1 and "1000 sent" in late.stderr, late  # whole batches before the bad line stay, and are counted
        assert pawl.feed(b"", "send", "shop", "charge", "--lines").stdout == "0 sent\n"


@test
def delay_is_honoured_and_priority_decides_the_order():
    with Database() as db, Pawl(db) as pawl, Folder() as folder:
        for name, priority in [("low", 0), ("normal-1", 4), ("high", 9), ("normal-2", 4)]:
            send(pawl, "shop", "charge", name, "--priority", str(priority))
        delayed = send(pawl, "shop", "charge", "delayed", "--priority", "9", "--delay", "1h")
        worker = pawl.start("work", "shop", "-j", "1", "--batch", "1", "--drain", "--exec", f"(cat; echo) >> {folder.file('order')}")
        wait_until(lambda: db.value("select count(*) from pawl.outcome") == "4", what="all but the delayed one are done")
        assert status(pawl, delayed) == "PENDING" and show(pawl, delayed)["attempts"] == 0
        db.rows("update pawl.delayed set due = due - interval '1 h'")
        assert worker.wait() == 0, worker.stderr
        assert [json.loads(line) for line in folder.read("order").split()] == [
            "high", "normal-1", "normal-2", "low", "delayed"]
        short = send(pawl, "shop", "charge", "short", "--delay", "2s")
        assert work(pawl, "shop", "--noop")["completed"] == 1
        waited = db.value("select extract(epoch from r.at - s.at) from pawl.audit s join pawl.audit r using (id) "
                          f"where s.command_id = '{short}' and s.event = 'SENT' and r.event = 'RECEIVED'")
        assert float(waited) >= 2, waited


# --- work ---

@test
def exec_handler_outcome_of_every_exit_status():
    with Database() as db, Pawl(db) as pawl:
        retry_at_once(db, "shop")
        script = ('case $PAWL_TYPE in json) echo "{\\"paid\\": 7}";; words) echo paid;; none) ;; '
                  'business) echo no money >&2; exit 65;; permanent) echo no such card >&2; exit 70;; '
                  'again) echo busy >&2; exit 75;; one) exit 1;; signal) kill -9 $$;; esac')
        sent = {kind: send(pawl, "shop", kind, None, "--max-attempts", "2")
                for kind in ("json", "words", "none", "business", "permanent", "again", "one", "signal")}
        done = work(pawl, "shop", "--exec", script)
        assert done == {"claimed": 11, "completed": 3, "retried": 3, "failed": 4, "rejected": 1, "lost": 0, "released": 0, "canceled": 0}, done
        retried = ["SENT", "RECEIVED", "RETRY_SCHEDULED", "RECEIVED", "MOVED_TO_TSQ"]
        for kind, wanted, result, error, trail in [
                ("json", "COMPLETED", {"paid": 7}, None, ["SENT", "RECEIVED", "COMPLETED"]),
                ("words", "COMPLETED", None, None, ["SENT", "RECEIVED", "COMPLETED"]),
                ("none", "COMPLETED", None, None, ["SENT", "RECEIVED", "COMPLETED"]),
                ("business", "FAILED", None, "no money", ["SENT", "RECEIVED", "FAILED"]),
                ("permanent", "IN_TSQ", None, "no such card", ["SENT", "RECEIVED", "MOVED_TO_TSQ"]),
                ("again", "IN_TSQ", None, "busy", retried),
                ("one", "IN_TSQ", None, "exited with status 1", retried),
                ("signal", "IN_TSQ", None, "ended by signal 9 (Killed)", retried)]:
            command = show(pawl, sent[kind])
            found = (command["status"], command["result"], command["error"], events(command))
            assert found == (wanted, result, error, trail), f"{kind}: {found}"


@test
def transient_failures_follow_the_default_schedule():
    with Database() as db, Pawl(db) as pawl:
        sent = send(pawl, "shop", "charge")
        worker = pawl.start("work", "shop", "--exec", "exit 75")
        command = wait_until(lambda: (c := show(pawl, sent))["due_at"] and c, what="it is scheduled again")
        delay = command["audit"][-1]["details"]["delay_ms"]
        assert command["status"] == "PENDING" and 8000 <= delay <= 10000, command
        assert worker.stop() == 0 and is_clean(worker), worker.stderr
        for attempt, most in [(1, 10000), (2, 60000), (3, 300000), (9, 300000)]:
            low, high = map(int, db.value("select min(d), max(d) from (select pawl.retry_delay_ms((select id from pawl.domain), 'x', "
                                          f"{attempt}) d from generate_series(1, 200)) s").split("|"))
            assert most * 0.8 <= low < high <= most, (attempt, low, high)


@test
def exec_handler_that_says_too_much_or_cannot_be_started():
    with Database() as db, Pawl(db) as pawl:
        retry_at_once(db, "shop")
        loud = send(pawl, "shop", "loud")
        work(pawl, "shop", "--exec", "head -c 3000000 /dev/zero | tr '\\0' x; sleep 60")
        command = show(pawl, loud)
        assert command["status"] == "IN_TSQ" and "output larger than 1048576 bytes" in command["error"], command
        missing = send(pawl, "shop", "missing", None, "--max-attempts", "2")
        work(pawl, "shop", "--exec", "true && /does/not/exist")
        command = show(pawl, missing)
        assert command["status"] == "IN_TSQ" and command["attempts"] == 2 and "not found" in command["error"], command
        grumble = send(pawl, "shop", "grumble")
        work(pawl, "shop", "--exec", "head -c 200000 /dev/zero | tr '\\0' y >&2; printf '\\377 end' >&2; exit 70")
        command = show(pawl, grumble)
        assert command["status"] == "IN_TSQ" and command["error"].endswith("y? end"), command["error"][-20:]


@test
def a_handler_that_ignores_sigterm_is_killed_with_its_whole_group():
    with Database() as db, Pawl(db) as pawl, Folder() as folder:
        sent = send(pawl, "shop", "charge", None, "--max-attempts", "1")
        work(pawl, "shop", "--timeout", "2s", "--exec",
             f"trap '' TERM; echo $$ > {folder.file('pid')}; sleep 600 & echo $! >> {folder.file('pid')}; wait; sleep 600")
        command = show(pawl, sent)
        assert command["status"] == "IN_TSQ" and "longer than 2000 ms" in command["error"], command
        for pid in folder.read("pid").split():
            wait_until(lambda pid=pid: not os.path.exists(f"/proc/{pid}") or
                       open(f"/proc/{pid}/stat", encoding="utf-8").read().split()[2] == "Z", what=f"{pid} is gone")


@test
def an_exit_code_after_the_timeout_is_kept_unless_it_is_a_retry():
    with Database() as db, Pawl(db) as pawl:
        for code, status in ((65, "FAILED"), (70, "IN_TSQ")):
            command = send(pawl, "shop", "charge", None, "--max-attempts", "5")
            work(pawl, "shop", "--timeout", "500ms", "--exec", f"trap 'echo too late >&2; exit {code}' TERM; sleep 600 & wait")
            shown = show(pawl, command)
            assert (shown["status"], shown["attempts"]) == (status, 1) and "too late" in shown["error"], shown


@test
def exec_handler_finds_its_command_in_the_environment():
    with Database() as db, Pawl(db, env={"PAWL_ATTEMPT": "77"}) as pawl:
        retry_at_once(db, "shop")
        sent = send(pawl, "shop", "charge", {"n": 1}, "--max-attempts", "7")
        program = ('test $PAWL_ATTEMPT = 2 || exit 75; printf \'["%s","%s","%s","%s","%s",%s]\' $PAWL_COMMAND_ID '
                   '$PAWL_DOMAIN $PAWL_TYPE $PAWL_ATTEMPT $PAWL_MAX_ATTEMPTS "$(cat)"')
        work(pawl, "shop", "--exec", program)
        assert show(pawl, sent)["result"] == [sent, "shop", "charge", "2", "7", {"n": 1}]


@test
def sql_handler_has_its_effect_exactly_once():
    with Database() as db, Pawl(db) as pawl:
        db.rows("""
            create schema app;
            create table app.done (command_id uuid, n integer);
            create sequence app.calls;
            create function app.handle(payload jsonb, command_id uuid) returns jsonb language plpgsql as $$
            begin
              insert into app.done values (command_id, (payload ->> 'n')::integer);
              if payload ->> 'how' = 'refuse' then raise exception 'no money' using errcode = 'QU065'; end if;
              if payload ->> 'how' = 'break' then raise exception 'no such card' using errcode = 'QU070'; end if;
              if payload ->> 'how' = 'once' and nextval('app.calls') = 1 then raise exception 'not yet'; end if;
              return jsonb_build_object('n', payload -> 'n');
            end $$""")
        retry_at_once(db, "shop")
        sent = {how: send(pawl, "shop", "charge", {"how": how, "n": n})
                for n, how in enumerate(("well", "refuse", "break", "once"))}
        done = work(pawl, "shop", "--sql", "app.handle")
        assert done == {"claimed": 5, "completed": 2, "retried": 1, "failed": 1, "rejected": 1, "lost": 0, "released": 0, "canceled": 0}, done
        rows = db.rows("select command_id from app.done order by n")
        assert rows == [sent["well"], sent["once"]], rows  # what failed left nothing behind
        found = {how: (c := show(pawl, sent[how]))["status"] + " " + str(c["error"]) for how in sent}
        assert found == {"well": "COMPLETED None", "refuse": "FAILED no money (SQLSTATE QU065)",
                         "break": "IN_TSQ no such card (SQLSTATE QU070)", "once": "COMPLETED None"}, found
        assert show(pawl, sent["once"])["result"] == {"n": 3}
        for name, word in [("app.nothing", "does not exist"), ("handle", "schema.function"), ("a.b.c", "schema.function"),
                           ("app.handle; drop table app.done", "schema.function")]:
            refused(pawl, "work", "shop", "--sql", name, "--drain", code=1 if name == "app.nothing" else 2, words=[word])


@test
def a_function_that_ends_its_connection_runs_once_per_attempt():
    with Database() as db, Pawl(db) as pawl:
        db.rows("""create sequence public.calls;
                   create function public.die (payload jsonb, command_id uuid) returns jsonb language plpgsql as $$
                   begin perform nextval('public.calls'), pg_terminate_backend(pg_backend_pid()); perform pg_sleep(10); return '1'; end $$""")
        retry_at_once(db, "dying")
        sent = send(pawl, "dying", "t", {})
        work(pawl, "dying", "--sql", "public.die")
        shown = show(pawl, sent)
        assert shown["status"] == "IN_TSQ" and "was lost while the handler ran" in shown["error"], shown
        assert db.value("select last_value from public.calls") == "3"


@test
def work_refuses_wrong_usage():
    with Database() as db, Pawl(db) as pawl:
        for arguments, word in [((), "--exec"), (("--noop", "--exec", "true"), "--exec"), (("--noop", "-j", "0"), "-j"),
                                (("--noop", "--lease", "1ms"), "--lease"), (("--noop", "--batch", "0"), "--batch"),
                                (("--noop", "--lease", "0s"), "--lease"), (("--noop", "--timeout", "0s"), "--timeout"),
                                (("--noop", "--lease", "2d"), "--lease"), (("--noop", "--timeout", "x"), "--timeout")]:
            refused(pawl, "work", "shop", *arguments, code=2, words=[word])
        refused(pawl, "work", "no spaces", "--noop", "--drain", code=2, words=["domain", '"no spaces"'])


@test
def a_worker_for_one_type_leaves_the_others_and_drains_all_the_same():
    with Database() as db, Pawl(db) as pawl:
        mine, other = send(pawl, "shop", "mine"), send(pawl, "shop", "other")
        assert work(pawl, "shop", "--noop", "--type", "mine")["completed"] == 1
        assert (status(pawl, mine), status(pawl, other)) == ("COMPLETED", "PENDING")


@test
def a_worker_for_several_types_claims_all_of_them():
    with Database() as db, Pawl(db) as pawl:
        for kind in ("a", "b", "c"):
            send(pawl, "shop", kind)
        assert work(pawl, "shop", "--noop", "--type", "a, b")["completed"] == 2
        for bad in ("", ",", "a b/c", "a;b"):
            refused(pawl, "work", "shop", "--noop", "--drain", "--type", bad, code=2, words=["--type"])
        assert work(pawl, "shop", "--noop", "--type", "c")["completed"] == 1


@test
def drain_says_what_it_waits_for():
    with Database() as db, Pawl(db) as pawl:
        send(pawl, "shop", "charge", None, "--delay", "1h")
        send(pawl, "shop", "charge", None, "--delay", "2h")
        send(pawl, "zoo", "charge", None, "--delay", "1h")
        send(pawl, "shop", "charge")
        assert waits_for(pawl, "0 queued, 2 delayed, 0 behind others with their order key, 0 held by other workers").said("1 claimed: 1 completed")


@test
def drain_tells_what_is_queued_from_what_is_delayed():
    with Database() as db, Pawl(db) as pawl, Session(db.url) as other:
        send(pawl, "shop", "charge", None, "--order-key", "a")
        send(pawl, "shop", "charge", None, "--order-key", "a")
        db.rows("select from pawl.claim(pawl.domain_find('shop'), 2, 3600000, array_fill(0::bigint, array[10]), null, 'other')")
        send(pawl, "shop", "charge")
        send(pawl, "shop", "refund")
        other.do("begin; select from pawl.ready for update")  # no worker can claim them now
        waits_for(pawl, "2 queued, 0 delayed, 1 behind others with their order key, 1 held by other workers")
        waits_for(pawl, "1 queued, 0 delayed, 1 behind others with their order key, 1 held by other workers", "--type", "charge")


def waits_for(pawl, what, *options):
    """A worker that drains the domain says that it waits for this. Returns it, stopped."""
    worker = pawl.start("work", "shop", "--noop", "--drain", *options)
    said = wait_until(lambda: worker.said("waiting for .*"), what="it says what it waits for").group(0)
    assert said == f"waiting for commands: {what}; see pawl command list --domain shop", said
    assert worker.stop() == 0
    return worker


@test
def work_shows_a_live_line_on_a_terminal():
    with Database() as db, Pawl(db) as pawl:
        db.rows("select count(*) from pawl.send('shop', array_fill('charge'::text, array[20]), array_fill('1'::jsonb, array[20]))")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(setting("PAWL_BIN"), ["pawl", "work", "shop", "-j", "1", "--drain", "--exec", "sleep 0.2"], pawl.env)
        seen = b""
        try:
            while True:
                seen += os.read(terminal, 4096)
        except OSError:  # the other side has closed it
            pass
        assert os.waitpid(pid, 0)[1] == 0, seen
        os.close(terminal)
        lines = re.findall(rb"\r(\d+) done, (\d+)/s, (\d+) failed, (\d+) retried, (\d+) in flight", seen)
        assert lines, seen
        assert any(int(line[4]) > 0 for line in lines) and len({line[0] for line in lines}) > 2, lines
        assert any(int(line[1]) > 0 for line in lines), lines
        assert b"20 claimed: 20 completed" in seen, seen
        quiet = pawl.run("work", "shop", "--noop", "--drain")
        assert "in flight" not in quiet.stderr, quiet.stderr


# --- look ---

@test
def command_show_is_a_readable_timeline():
    with Database() as db, Pawl(db) as pawl:
        retry_at_once(db, "shop")
        sent = send(pawl, "shop", "charge", {"n": 1}, "--correlation-id", "c-9")
        work(pawl, "shop", "--exec", "test $PAWL_ATTEMPT = 2 || { echo busy >&2; exit 75; }; echo 5")
        text = pawl.run("command", "show", sent).stdout
        for part in (sent, "shop / charge", "COMPLETED, attempt 2 of 3, priority 4", '{"n": 1}', "c-9", "result       5"):
            assert part in text, text
        lines = [re.match(r"  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z  ([A-Z_]+) +attempt (\d)(.*)", line)
                 for line in text.split("\n\n", 1)[1].splitlines()]
        assert all(lines), text
        assert [line[1] + line[2] for line in lines] == ["SENT0", "RECEIVED1", "RETRY_SCHEDULED1", "RECEIVED2",
                                                         "COMPLETED2"], text
        assert "busy" in lines[2][3] and re.search(r"by \S+:\d+:", lines[1][3]), text
        refused(pawl, "command", "show", new_id(), code=1, words=["not found"])
        refused(pawl, "command", "show", "7", code=2, words=["UUID"])


@test
def command_list_filters_and_counts():
    with Database() as db, Pawl(db) as pawl:
        ids = [send(pawl, domain, kind) for domain, kind in [("a", "x"), ("a", "x"), ("a", "y"), ("b", "x")]]
        work(pawl, "b", "--noop")

        def listed(*flags):
            return [item["command_id"] for item in pawl.run("command", "list", "--json", *flags).json]

        assert listed() == ids[::-1]
        assert listed("--domain", "a") == ids[2::-1]
        assert listed("--type", "x") == [ids[3], ids[1], ids[0]]
        assert listed("--status", "COMPLETED") == [ids[3]]
        assert listed("--status", "PENDING", "--type", "x", "--domain", "a") == [ids[1], ids[0]]
        assert listed("--limit", "2") == [ids[3], ids[2]]
        assert listed("--domain", "none") == listed("--status", "CANCELED") == []
        for flags, wanted in [((), "4"), (("--domain", "a"), "3"), (("--status", "PENDING", "--type", "y"), "1"),
                              (("--domain", "none"), "0")]:
            assert pawl.run("command", "list", "--count", *flags).stdout == wanted + "\n", flags
        table = pawl.run("command", "list", "--domain", "b").stdout
        assert ids[3] in table and "COMPLETED" in table and ids[0] not in table, table
        late = pawl.run("send", "later", "x", "--delay", "1h").stdout.strip()
        soon = pawl.run("send", "later", "x").stdout.strip()
        items = {item["command_id"]: item for item in pawl.run("command", "list", "--domain", "later", "--json").json}
        assert items[late]["status"] == items[soon]["status"] == "PENDING", items
        assert items[soon]["due_at"] is None and items[late]["due_at"] > items[late]["created_at"], items
        refused(pawl, "command", "list", "--status", "DONE", code=2, words=["DONE", "PENDING"])
        refused(pawl, "command", "list", "--limit", "0", code=2, words=["--limit"])


@test
def command_list_finds_a_quiet_domain_behind_many_rows():
    """One request reads at most 20,000 rows and says where to continue; the command line continues by itself."""
    with Database() as db, Pawl(db) as pawl:
        ids = [send(pawl, "quiet", "rare"), send(pawl, "quiet", "rare")]
        db.rows("insert into pawl.command (id, domain_id, command_id, type, payload, priority, max_attempts, created_at) "
                   "select nextval('pawl.command_seq'), 1, gen_random_uuid(), 'x', '1', 0, 1, pawl.now() from generate_series(1, 30000)")
        pawl.serve()
        first = pawl.http("GET", "/v1/commands?domain=quiet").json
        assert first["items"] == [] and first["next_cursor"] == 10003, first
        second = pawl.http("GET", f"/v1/commands?domain=quiet&cursor={first['next_cursor']}").json
        assert [item["command_id"] for item in second["items"]] == ids[::-1] and second["next_cursor"] is None, second
        for flags in (("--domain", "quiet"), ("--type", "rare"), ("--domain", "quiet", "--limit", "2")):
            listed = pawl.run("command", "list", "--json", *flags).json
            assert [item["command_id"] for item in listed] == ids[::-1], (flags, listed)
        assert pawl.stop() == 0


# --- decide ---

@test
def cancel_ends_a_waiting_command_at_once():
    with Database() as db, Pawl(db) as pawl:
        for flags in ((), ("--delay", "1h")):
            sent = send(pawl, "shop", "charge", None, "--reply-to", "answers", *flags)
            done = pawl.run("command", "cancel", sent, "--operator", "ann", "--reason", "wrong order")
            assert (done.code, done.stdout) == (0, f"{sent} CANCELED\n"), done
            command = show(pawl, sent)
            assert command["status"] == "CANCELED" and command["error"] == "wrong order", command
            assert command["audit"][-1]["actor"] == "ann", command
            again = pawl.run("command", "cancel", sent, "--operator", "ann", "--reason", "wrong order")
            assert (again.code, again.stdout) == (0, f"{sent} CANCELED\n") and "by ann at 20" in again.stderr, again
            refused(pawl, "command", "cancel", sent, code=1, words=["cancel by ann at 20"])
        assert [reply["status"] for reply in replies(db, "answers")] == ["CANCELED"] * 2
        assert work(pawl, "shop", "--noop")["claimed"] == 0
        refused(pawl, "command", "cancel", new_id(), code=1, words=["not found"])


@test
def cancel_reaches_a_running_command_at_its_next_heartbeat():
    with Database() as db, Pawl(db) as pawl, Folder() as folder:
        sent = send(pawl, "shop", "charge", None, "--reply-to", "answers")
        worker = pawl.start("work", "shop", "--lease", "9s", "--exec",
                            f"echo $$ > {folder.file('pid')}; exec sleep 600")
        wait_until(lambda: os.path.exists(folder.file("pid")) and folder.read("pid").strip(), what="the handler runs")
        done = pawl.run("command", "cancel", sent, "--operator", "ann", "--reason", "wrong order")
        assert (done.code, done.stdout) == (0, f"{sent} CANCELING\n"), done
        command = wait_status(pawl, sent, "CANCELED")
        pid = int(folder.read("pid"))
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), what="the program is gone")
        assert [reply["status"] for reply in replies(db, "answers")] == ["CANCELED"]
        assert worker.stop() == 0 and is_clean(worker), worker.stderr
        assert worker.said("^1 claimed: 0 completed, 0 retried, 0 in troubleshooting, 0 rejected, 0 lost, 1 canceled$"), worker.stdout
        asked = [event for event in command["audit"] if event["actor"] == "ann"]
        assert asked, f"the audit does not say who asked for it: {command['audit']}"


def failed(pawl, count, domain="shop", kind="charge", *flags):
    """Commands in the troubleshooting queue."""
    ids = [send(pawl, domain, kind, n, *flags) for n in range(count)]
    work(pawl, domain, "--exec", "echo no such card >&2; exit 70")
    return ids


@test
def tsq_is_decided_one_by_one():
    with Database() as db, Pawl(db) as pawl:
        again, given_up, done = failed(pawl, 3)
        listed = pawl.run("tsq", "list", "--json").json
        assert [item["command_id"] for item in listed] == [done, given_up, again], listed
        assert listed[0]["status"] == "IN_TSQ" and listed[0]["error"] == "no such card", listed
        assert pawl.run("tsq", "list", "--count").stdout == "3\n"
        for verb, command_id, flags, verdict in [("retry", again, (), "PENDING"), ("cancel", given_up, (), "CANCELED"),
                                                 ("complete", done, ("--result", '{"by": "hand"}'), "COMPLETED")]:
            answer = pawl.run("tsq", verb, command_id, "--operator", "ann", "--reason", f"{verb} it", *flags)
            assert (answer.code, answer.stdout) == (0, f"{command_id} {verdict}\n"), answer
            last = show(pawl, command_id)["audit"][-1]
            assert last["event"] == "OPERATOR_" + verb.upper() and last["actor"] == "ann", last
            assert last["details"] == {"login": "postgres", "reason": f"{verb} it"}, last
            repeat = pawl.run("tsq", verb, command_id, "--operator", "ann", "--reason", f"{verb} it", *flags)
            assert (repeat.code, repeat.stdout) == (0, f"{command_id} {verdict}\n") and "ann" in repeat.stderr, repeat
            refused(pawl, "tsq", verb, command_id, code=1, words=[f"{verb} by ann at 20"])
        assert show(pawl, done)["result"] == {"by": "hand"}
        assert work(pawl, "shop", "--noop")["completed"] == 1
        assert show(pawl, again)["attempts"] == 1  # they began anew
        refused(pawl, "tsq", "retry", new_id(), code=1, words=["not found"])
        refused(pawl, "tsq", "retry", code=2, words=["--all"])
        refused(pawl, "tsq", "complete", done, "--result", "{", code=2, words=["--result"])


@test
def tsq_is_decided_all_at_once_after_the_count_was_shown():
    with Database() as db, Pawl(db) as pawl:
        shop, other = failed(pawl, 3), failed(pawl, 2, "other", "ship")
        asked = pawl.run("tsq", "cancel", "--all", "--domain", "shop")
        assert asked.code != 0 and "3 commands match" in asked.stderr and "--yes" in asked.stderr, asked
        assert pawl.run("tsq", "list", "--count").stdout == "5\n"
        done = pawl.run("tsq", "cancel", "--all", "--domain", "shop", "--yes", "--operator", "ann")
        assert (done.code, done.stdout) == (0, "3 canceled\n"), done
        assert {status(pawl, command_id) for command_id in shop} == {"CANCELED"}
        assert {status(pawl, command_id) for command_id in other} == {"IN_TSQ"}
        assert db.value("select count(*) from pawl.audit where event = 'OPERATOR_CANCEL' and actor = 'ann'") == "3"
        assert pawl.run("tsq", "retry", "--all", "--type", "none", "--yes").stdout == "0 queued again\n"
        done = pawl.run("tsq", "retry", "--all", "--type", "none")  # there is nothing to confirm
        assert (done.code, done.stdout, done.stderr) == (0, "0 queued again\n", ""), done
        assert pawl.run("tsq", "retry", "--all", "--type", "ship", "--yes", "--json").json["decided"] == 2
        assert {status(pawl, command_id) for command_id in other} == {"PENDING"}


# --- ends ---

@test
def every_end_is_replied_to_exactly_once():
    with Database() as db, Pawl(db) as pawl:
        retry_at_once(db, "shop")
        sent = {kind: send(pawl, "shop", kind, None, "--reply-to", "answers", "--correlation-id", kind)
                for kind in ("done", "refused", "canceled", "by_hand", "given_up", "second_time")}
        pawl.run("command", "cancel", sent["canceled"])
        work(pawl, "shop", "--exec", 'case $PAWL_TYPE in done) echo 7;; refused) echo no >&2; exit 65;; '
             'by_hand|given_up) exit 70;; *) test $PAWL_ATTEMPT = 2;; esac')
        assert len(replies(db, "answers")) == 4
        pawl.run("tsq", "complete", sent["by_hand"], "--result", "8")
        pawl.run("tsq", "cancel", sent["given_up"])
        found = replies(db, "answers")
        assert len(found) == 6, found
        assert {reply["correlation_id"]: (reply["command_id"], reply["status"], reply["result"]) for reply in found} == {
            "done": (sent["done"], "COMPLETED", 7), "refused": (sent["refused"], "FAILED", None),
            "canceled": (sent["canceled"], "CANCELED", None), "by_hand": (sent["by_hand"], "COMPLETED", 8),
            "given_up": (sent["given_up"], "CANCELED", None), "second_time": (sent["second_time"], "COMPLETED", None)}
        assert next(r for r in found if r["correlation_id"] == "refused")["error"] == "no"


@test
def retention_takes_what_ended_long_ago_and_nothing_else():
    with Database() as db, Pawl(db) as pawl:
        old = [send(pawl, "shop", "charge", n) for n in range(3)]
        work(pawl, "shop", "--noop")
        waiting = send(pawl, "shop", "charge", None, "--delay", "1h")
        in_tsq, = failed(pawl, 1, "other")
        db.rows("update pawl.outcome set ended_at = ended_at - interval '31 days', started_at = started_at - interval '31 days'; "
                "update pawl.command set created_at = created_at - interval '31 days'; "
                "update pawl.event set at = at - interval '31 days'")
        young = send(pawl, "young", "charge")
        work(pawl, "young", "--noop")

        def prune(limit):
            return int(db.value(f"select pawl.prune({limit}, interval '30 days', interval '90 days')"))

        assert [prune(2), prune(2), prune(2)] == [2, 1, 0]
        for command_id in old:
            refused(pawl, "command", "show", command_id, code=1, words=["not found"])
        assert [status(pawl, c) for c in (waiting, in_tsq, young)] == ["PENDING", "IN_TSQ", "COMPLETED"]
        kept = f"select count(*) from pawl.audit where id in (select id from pawl.audit where command_id = '{old[0]}')"
        assert db.value(kept) == "3"
        assert db.value("select count(*) from pawl.kept_audit") == "3"
        db.rows("update pawl.event set at = at - interval '60 days' where at < now() - interval '30 days'")
        while int(db.value("select pawl.prune(2, interval '30 days', interval '24 days')")):
            pass
        assert db.value(kept) == "0"
        assert db.value("select count(*) from pawl.kept_audit") == "0", "its weeks were not dropped"
        assert db.value("select count(*) from pawl.audit where at < now() - interval '90 days'") == "0"
        assert db.value("select count(*) from pawl.audit where command_id = '" + young + "'") == "3"
        assert db.value("select count(*) from pawl.command") == "3"


main()
