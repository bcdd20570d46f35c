#!/usr/bin/env python3
"""schedule - schedules from outside: the command line, HTTP, monitors that are killed, what an idle database does."""
import json
import random
import signal
import threading
from pathlib import Path

from checks import alert, problem
from pawl_test import Database, Pawl, main, test, wait_until

FAKE_CLOCK = Path(__file__).resolve().parent.parent / "regress/fake_clock.sql"
SENT = "select count(*), count(distinct correlation_id) from pawl.command"

# One minute after the other: the clock is set, monitors are notified, and the command of the minute is waited for. Python's part is to kill.
DRIVE = """
create procedure drive (p_first integer, p_last integer) language plpgsql as $$
declare
  v_until timestamptz;
begin
  for v_minute in p_first .. p_last loop
    update pawl.fake_clock set at = timestamptz '2026-03-29 00:00 UTC' + v_minute * interval '1 min';
    notify pawl_schedule;
    commit;
    v_until := clock_timestamp() + interval '60 s';
    loop
      exit when (select count(*) from pawl.command) >= v_minute;
      if clock_timestamp() > v_until then
        raise exception 'minute % has not fired', v_minute;
      end if;
      perform pg_sleep(0.01);
      commit;
    end loop;
  end loop;
end
$$;
"""


def clock_set(db, at):
    db.rows(f"insert into pawl.fake_clock (at) values ('{at}') on conflict (single) do update set at = excluded.at; notify pawl_schedule")


def clock_fake(db, at):
    db.rows(FAKE_CLOCK.read_text(encoding="utf-8"))
    clock_set(db, at)


def sent(db):
    return int(db.value("select count(*) from pawl.command"))


@test
def the_command_line_creates_shows_and_decides():
    with Database() as db, Pawl(db) as pawl:
        made = pawl.run("schedule", "create", "nightly", "shop", "report", '{"of": "all"}', "--cron", "30 2 * * mon-fri", "--timezone", "europe/berlin",
                        "--missed", "all", "--overlap", "queue", "--jitter", "5m", "--reason", "monthly close", "--json")
        assert made.code == 0, made
        assert {key: made.json[key] for key in ("name", "cron", "timezone", "every_s", "jitter_s", "missed", "overlap", "status", "payload")} == {
            "name": "nightly", "cron": "30 2 * * mon-fri", "timezone": "Europe/Berlin", "every_s": None, "jitter_s": 300, "missed": "all",
            "overlap": "queue", "status": "active", "payload": {"of": "all"}}
        assert pawl.run("schedule", "create", "tick", "shop", "tick", "--every", "10m", "--process").code == 0
        other = pawl.run("schedule", "create", "tick", "shop", "tick", "--every", "20m", "--process")
        assert other.code != 0 and "its every differs" in other.stderr, other
        assert pawl.run("schedule", "create", "tick", "shop", "tick", "--every", "20m", "--process", "--replace").code == 0
        listed = pawl.run("schedule", "list")
        assert [line.split()[0] for line in listed.stdout.splitlines()] == ["name", "tick", "nightly"], listed
        assert "every 20m" in listed.stdout and "process shop/tick" in listed.stdout
        assert len(pawl.run("schedule", "next", "nightly", "--json").json["items"]) == 10
        assert pawl.run("schedule", "next", "nightly", "--count", "3").stdout.count("T02:30:00") == 3
        assert pawl.run("schedule", "pause", "nightly", "--operator", "ann", "--json").json["status"] == "paused"
        command_id = pawl.run("schedule", "run", "nightly").stdout.strip()
        again = pawl.run("schedule", "run", "nightly", "--id", command_id)
        assert again.stdout.strip() == command_id and sent(db) == 1, again
        assert pawl.run("schedule", "show", "nightly", "--json").json["last_id"] == command_id
        assert pawl.run("schedule", "resume", "nightly", "--json").json["status"] == "active"
        assert [item["name"] for item in map(dict, pawl.run("schedule", "list", "--status", "active", "--limit", "1", "--json").json)] == ["tick"]
        assert pawl.run("schedule", "delete", "nightly").code == 0
        assert pawl.run("schedule", "delete", "nightly").code == pawl.run("schedule", "show", "nightly").code != 0
        assert db.rows("select action, operator = 'ann', reason from pawl.control_event where name = 'nightly' order by id") == [
            "create|f|monthly close", "pause|t|", "run|f|", "resume|f|", "delete|f|"]


@test
def what_cannot_be_a_schedule_is_refused_in_words():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for words, part in (
                (["--cron", "30 2 30 2 *"], "never fires"), (["--cron", "* * * *"], "five fields"), (["--cron", "@daily", "--every", "1h"], "not both"),
                ([], "--cron EXPR or --every TIME"), (["--every", "10ms"], "at least 1s"), (["--every", "soon"], "--every"),
                (["--cron", "@daily", "--timezone", "EST"], "no daylight saving time"), (["--cron", "@daily", "--timezone", "Berlin/Europe"], "Europe/Berlin"),
                (["--every", "1h", "--timezone", "UTC"], "timezone"), (["--every", "1h", "--missed", "x"], "missed"),
                (["--every", "1h", "--overlap", "x"], "overlap"), (["--every", "1h", "--jitter", "2d"], "jitter")):
            done = pawl.run("schedule", "create", "bad", "shop", "charge", *words)
            assert done.code == 2 and part in done.stderr, (words, done)
        good = {"name": "bad", "domain": "shop", "type": "charge", "cron": "@daily"}
        for change, part in (
                ({"cron": "61 * * * *"}, "minute of cron"), ({"cron": None}, "cron or every"), ({"every_s": 60}, "not both"), ({"cron": "x" * 201}, "cron"),
                ({"timezone": "EST"}, "no daylight saving time"), ({"timezone": "x"}, "timezone"), ({"name": "a b"}, "name"), ({"name": ""}, "name"), ({"name": "x" * 101}, "name"),
                ({"domain": "process:x"}, "domain"), ({"type": "x y"}, "type"), ({"missed": "x"}, "missed"),
                ({"overlap": 1}, "overlap"), ({"jitter_s": -1}, "jitter_s"), ({"jitter_s": 86401}, "jitter_s"), ({"cron": None, "every_s": 0.5}, "every_s"),
                ({"process": True, "payload": []}, "state"), ({"process": True, "overlap": "queue"}, "overlap"),
                ({"unknown": 1}, "unknown")):
            problem(pawl.http("POST", "/v1/schedules", {**good, **change}), 400, part=part)
        for method, path in (("GET", ""), ("GET", "/next"), ("POST", "/run"), ("POST", "/pause"), ("POST", "/resume"), ("DELETE", "")):
            problem(pawl.http(method, f"/v1/schedules/none{path}"), 404)
        problem(pawl.http("GET", "/v1/schedules/x/next?count=0"), 400, part="count")
        problem(pawl.http("GET", "/v1/schedules?status=broken"), 400, part="status")
        problem(pawl.http("GET", "/v1/schedules?limit=0"), 400, part="limit")
        assert db.value("select count(*) from pawl.schedule") == db.value("select count(*) from pawl.control_event") == "0"


@test
def http_creates_replaces_pages_and_decides():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = {"name": "nightly", "domain": "shop", "type": "report", "cron": "0 3 * * *", "timezone": "America/New_York", "payload": {"n": 1}}
        made = pawl.http("POST", "/v1/schedules", body)
        assert made.status == 201 and made.json["payload"] == {"n": 1} and made.json["next_at"], made
        assert pawl.http("POST", "/v1/schedules", body).status == 201
        problem(pawl.http("POST", "/v1/schedules", {**body, "payload": {"n": 2}}), 409, part="payload differs")
        fields = {key: value for key, value in body.items() if key != "name"}
        path = "/v1/schedules/nightly"
        assert pawl.http("PUT", path, {**fields, "payload": {"n": 2}}).json["next_at"] == made.json["next_at"]
        assert pawl.http("GET", path).json["payload"] == {"n": 2}
        for n in range(5):
            assert pawl.http("PUT", f"/v1/schedules/s{n}", {"domain": "shop", "type": "tick", "every_s": 90.5}).json["every_s"] == 90.5
        names, cursor = [], ""
        while cursor is not None:
            page = pawl.http("GET", f"/v1/schedules?type=tick&limit=2{cursor and f'&cursor={cursor}'}").json
            names += [item["name"] for item in page["items"]]
            cursor = page["next_cursor"]
        assert names == ["s4", "s3", "s2", "s1", "s0"]
        assert pawl.http("POST", path + "/pause", {"by": "ann", "reason": "stock count"}).json["next_at"] is None
        assert [item["name"] for item in pawl.http("GET", "/v1/schedules?status=paused").json["items"]] == ["nightly"]
        assert len(pawl.http("GET", path + "/next?count=25").json["items"]) == 25
        key = {"Idempotency-Key": "run-17"}
        first = pawl.http("POST", path + "/run", headers=key)
        assert first.status == 200 and pawl.http("POST", path + "/run", headers=key).json == first.json and sent(db) == 1
        assert pawl.http("POST", path + "/resume").json["status"] == "active"
        assert pawl.http("DELETE", path).status == 204
        assert db.rows("select action, operator, reason from pawl.control_event where name = 'nightly' and action = 'pause'") == ["pause|ann|stock count"]


@test
def a_schedule_fires_soon_after_its_time():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "monitor,api")
        assert pawl.run("schedule", "create", "tick", "shop", "tick", "--every", "2s").code == 0
        wait_until(lambda: sent(db) >= 3, what="three times")
        late = "select min(c.created_at - substring(c.correlation_id from '@(.*)$')::timestamptz) < interval '1 s' from pawl.command c"
        assert db.value(late) == "t", db.rows("select created_at, correlation_id from pawl.command")


@test
def every_minute_fires_once_over_three_monitors_that_are_killed():
    chance = random.Random()
    with Database() as db, Pawl(db) as pawl:
        clock_fake(db, "2026-03-29 00:00 UTC")  # over the change of the clocks in Berlin, and four that are killed on the way
        db.rows(DRIVE)
        assert pawl.run("schedule", "create", "minute", "shop", "tick", "--cron", "* * * * *", "--timezone", "Europe/Berlin", "--missed", "all").code == 0
        monitors = [pawl.start("serve", "--role", "monitor", "--listen", "127.0.0.1:0") for _ in range(3)]
        failed = []

        def drive():
            try:
                db.rows("call drive(1, 120)")
            except AssertionError as error:
                failed.append(error)

        driver = threading.Thread(target=drive)
        driver.start()
        kills = 0
        while driver.is_alive():
            before = sent(db)
            wait_until(lambda: sent(db) >= min(before + chance.randint(3, 12), 120) or not driver.is_alive(), timeout=90, what="more minutes")
            place = chance.randrange(3)
            monitors[place].send(signal.SIGKILL)
            monitors[place].wait()
            monitors[place] = pawl.start("serve", "--role", "monitor", "--listen", "127.0.0.1:0")
            kills += 1
        driver.join()
        assert not failed, failed
        assert kills >= 3 and db.rows(SENT) == ["120|120"], (kills, db.rows(SENT))
        assert db.value("select next_at = '2026-03-29 02:01 UTC' and failing_since is null from pawl.schedule_state") == "t"


@test
def one_that_fails_is_shown_and_the_others_go_on():
    with Database() as db, Pawl(db) as pawl:
        clock_fake(db, "2026-01-01 00:30 UTC")
        pawl.serve("--role", "monitor,api")
        for name in ("good", "bad"):
            assert pawl.run("schedule", "create", name, "shop", name, "--cron", "0 * * * *", "--timezone", "Europe/Berlin").code == 0
        db.rows("update pawl.schedule set timezone = 'Europe/Gone' where name = 'bad'")  # as after an upgrade of the server's time zones
        clock_set(db, "2026-01-01 01:00 UTC")
        wait_until(lambda: sent(db) == 1, what="the good one")
        wait_until(lambda: alert(pawl, "schedules-failing")["state"] == "firing", what="the alert")
        shown = pawl.http("GET", "/v1/schedules?status=failing").json["items"]
        assert [(item["name"], item["error"]) for item in shown] == [("bad", 'time zone "Europe/Gone" not recognized')], shown
        # The doctor may have something to say about this machine, too, behind the list.
        checks, _ = json.JSONDecoder().raw_decode(pawl.run("doctor", "--json").stdout)
        found = next(check for check in checks if check["check"] == "schedules")
        assert found["state"] == "warn" and "Europe/Gone" in found["found"], found
        db.rows("update pawl.schedule set timezone = 'Europe/Berlin' where name = 'bad'")
        clock_set(db, "2026-01-01 01:10 UTC")
        wait_until(lambda: sent(db) == 2, what="the bad one")
        wait_until(lambda: alert(pawl, "schedules-failing")["state"] == "resolved", what="resolved")


@test
def five_thousand_that_are_not_due_cost_no_statement():
    with Database() as db, Pawl(db) as pawl:
        db.rows(f"alter database {db.name} set track_functions = 'pl'")
        db.rows("insert into pawl.schedule (name, domain, type, payload, is_process, every_ms, jitter_ms, missed, overlap, created_at, changed_at) "
                "select 's' || n, 'shop', 't', '{}', false, 86400000, 0, 'once', 'allow', now(), now() from generate_series(1, 5000) n; "
                "insert into pawl.schedule_state (id, next_at, due_at, computed_at) select id, now() + interval '1 day', now() + interval '1 day', now() from pawl.schedule")

        def calls(name):
            return int(db.value(f"select coalesce(sum(calls), 0) from pg_stat_user_functions where schemaname = 'pawl' and funcname = '{name}'"))

        servers = [pawl.start("serve", "--role", "monitor") for _ in range(2)]
        wait_until(lambda: calls("schedules_fire") >= 2, what="each monitor has asked")
        claims, fires = calls("task_claim"), calls("schedules_fire")
        wait_until(lambda: calls("task_claim") >= claims + 2, what="another round of claims")
        assert calls("schedules_fire") == fires
        read = "select idx_tup_read from pg_stat_user_indexes where indexrelname = 'schedule_state_due'"
        assert int(db.value(read)) < 100, db.value(read)
        for server in servers:
            assert server.stop() == 0


main()
