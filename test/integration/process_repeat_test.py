#!/usr/bin/env python3
"""process_repeat - steps that run in rounds: until a condition holds, stopped between rounds, retried from a round, moved, compensated."""
import json
import os
import tempfile

from checks import measured, memory_mib
from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import cli, define, lines, run, show, start, steps, wait_status

# Answers whether this was the third call, and remembers with which key and for which round.
ASK = """
create schema demo;
create table demo.asked (number bigserial, key uuid, round text);
create function demo.ask(input jsonb, key uuid) returns jsonb language sql as $$
  insert into demo.asked (key, round) values (key, input #>> '{}');
  select jsonb_build_object('done', count(*) >= 3) from demo.asked
$$;
create function demo.fails(input jsonb, key uuid) returns jsonb language plpgsql as $$
begin if input <> '0' then raise exception 'not yet' using errcode = 'QU070'; end if; return input; end $$;
"""


def poll(*inner, until="steps.ask.done == true", **more):
    return {"name": "poll", "repeat": list(inner), "until": until, **more}


def asking(**more):
    return {"name": "ask", "sql": "demo.ask", "input": "{{index}}", **more}


def names(shown):
    return [step["name"] for step in shown["steps"]]


def asked(db):
    return db.value("select string_agg(round, ' ' order by number) from demo.asked")


@test
def a_repeat_asks_until_it_is_answered():
    with Database() as db, Pawl(db) as pawl:
        db.rows(ASK)
        pawl.serve()
        wait = {"name": "pause", "wait": {"response": "tick"}}
        process, waiting = run(pawl, {"type": "poll", "result": "{{steps.poll}}", "steps": [
            poll(asking(), wait, save={"rounds": "{{result.rounds}}"})]}, "WAITING_FOR_ASYNC")
        assert waiting["step"] == "pause[0]" and waiting["waits_for"] == {"tick": 1}, waiting
        for number in range(3):
            wait_until(lambda n=number: show(pawl, process)["step"] == f"pause[{n}]", what="it waits in the next round")
            cli(pawl, "signal", process, "tick", json.dumps({"n": number}), "--key", f"k{number}")
        ended = wait_status(pawl, process, "COMPLETED")
        assert ended["result"] == {"rounds": 3, "last": {"n": 2}} and ended["state"]["rounds"] == 3, ended
        assert names(ended) == [f"{name}[{n}]" for n in range(3) for name in ("ask", "pause", "poll")] + ["poll"], names(ended)
        assert [step["result"] for step in ended["steps"] if step["name"].startswith("poll[")] == [False, False, True]
        resumed = [event["details"] for event in ended["audit"] if event["event"] == "RESUMED"]
        assert {"step": "pause[1]", "by": "response"} in resumed, resumed
        assert db.value("select count(distinct key) from demo.asked") == "3"


@test
def a_repeat_whose_rounds_are_used_up_fails_and_gets_as_many_again():
    with Database() as db, Pawl(db) as pawl:
        db.rows(ASK)
        pawl.serve()
        process, failed = run(pawl, {"type": "few", "on_failure": "troubleshoot", "steps": [poll(asking(), times=2)]}, "WAITING_FOR_TSQ")
        assert failed["error"] == 'step poll: repeat "poll" did not end within 2 rounds' and failed["step"] == "poll", failed
        cli(pawl, "retry", process)
        ended = wait_status(pawl, process, "COMPLETED", "WAITING_FOR_TSQ")
        assert ended["status"] == "COMPLETED" and asked(db) == "0 1 2", ended


@test
def quick_rounds_take_no_more_memory_than_a_few_and_stop_with_their_worker():
    with Database() as db, Pawl(db) as pawl:
        measured(pawl)
        define(pawl, {"domain": "edge", "type": "quick", "steps": [
            {"name": "poll", "repeat": [{"name": "n", "set": {"n": "{{index}}"}}], "until": "state.n >= 999", "times": 1000}]})
        pod = pawl.serve()
        process = start(pawl, "quick", {"large": "x" * 300000})
        records = "select count(*) from pawl.process_step"
        wait_until(lambda: int(db.value(records)) > 100, what="some rounds have ended")
        pod.stop()  # ends within its time, with exit status 0
        stopped = int(db.value(records))
        assert stopped < 2000, stopped
        pod = pawl.serve()
        wait_until(lambda: db.value("select count(*) from pawl.outcome") == "1", what="it has ended")
        assert db.value("select o.status from pawl.outcome o") == "COMPLETED"
        assert db.value(records) == "2001" and db.value("select state ->> 'n' from pawl.process") == "999"
        most = memory_mib(pod.pid, "VmHWM")
        assert most < 250, most


# --- retries from a round ---

def failed_after(pawl, times):
    """A process whose third step fails, after so many rounds that wrote their keys."""
    return run(pawl, {"type": "rounds", "on_failure": "troubleshoot", "steps": [
        {"name": "first", "set": {}},
        poll(asking(compensate={"sql": "demo.ask", "input": "undo {{index}}"}), {"name": "note", "set": {"n": "{{index}}"}},
             until=f"state.n == {times - 1}"),
        {"name": "x", "sql": "demo.fails", "input": "{{state.x}}"}]}, "WAITING_FOR_TSQ", state={"x": 1})[0]


@test
def a_retry_from_a_round_runs_it_and_those_after_it_again():
    rounds = ["ask[0]", "note[0]", "poll[0]", "ask[1]", "note[1]", "poll[1]", "ask[2]", "note[2]", "poll[2]", "poll", "x"]
    with Database() as db, Pawl(db) as pawl:
        db.rows(ASK)
        pawl.serve()
        for from_, kept, again in (("ask[1]", 1, "1 2"), ("note[1]", 2, "2"), ("poll[1]", 1, "1 2"), ("ask[0]", 0, "0 1 2"), ("poll", 0, "0 1 2"),
                                   ("first", 0, "0 1 2")):
            db.rows("truncate demo.asked restart identity")
            process = failed_after(pawl, 3)
            assert asked(db) == "0 1 2"
            cli(pawl, "retry", process, "--from", from_)
            wait_until(lambda p=process, a=again: asked(db) == f"0 1 2 {a}", what=f"it has run again from {from_}")
            shown = wait_status(pawl, process, "WAITING_FOR_TSQ")
            assert sorted(name for name in names(shown) if ":gone" not in name) == sorted(["first", *rounds]), (from_, names(shown))
            gone = sorted(name for name in names(shown) if name.startswith("ask") and ":gone" in name)
            assert gone == [f"ask[{n}]:gone1" for n in range(kept, 3)], (from_, gone)
            cli(pawl, "cancel", process, "--compensate")
            wait_status(pawl, process, "COMPENSATED")
            ran = ["0", "1", "2", *again.split()]  # what was set aside is undone in its place in the order
            assert asked(db).endswith(" ".join(f"undo {n}" for n in reversed(ran))), (from_, asked(db))


@test
def rounds_are_moved_with_their_records():
    with Database() as db, Pawl(db) as pawl:
        db.rows(ASK)
        pawl.serve()
        pause = {"name": "pause", "wait": {"response": "tick"}}
        old = {"type": "moves", "steps": [{"name": "first", "set": {}}, poll(asking(), pause, until="state.over")]}
        process, _ = run(pawl, old, "WAITING_FOR_ASYNC")
        cli(pawl, "signal", process, "tick", "{}", "--key", "k0")
        wait_until(lambda: show(pawl, process)["step"] == "pause[1]", what="it waits in the second round")

        def moved(*changed, code=0):
            version = define(pawl, {"domain": "edge", **old, "steps": changed})["version"]
            return cli(pawl, "move", process, "--to", str(version), code=code)

        first = old["steps"][0]
        more = {"name": "more", "set": {"more": "{{index}}"}}
        each = {"name": "poll", "each": "{{state.list}}", "steps": [asking(), pause]}
        for changed, words in (([first, each], 'step "poll" was a repeat and is a each'),
                               ([first, {"name": "poll", "repeat": [more], "until": "true"}, {"name": "ask", "sql": "demo.ask"}, pause], 'step "ask" was inside of 1 loops and is inside of 0'),
                               ([first, poll(more, asking(), pause, until="state.over")], 'step "ask" comes after "more", which has not run'),
                               ([first, poll(pause, asking(), until="state.over")], 'comes before'),
                               ([first, {"name": "other", "set": {}}, poll(asking(), pause, until="state.over")], 'comes after "other"')):
            refused = moved(*changed, code=1)
            assert words in json.dumps(refused).replace('\\"', '"'), (words, refused)
        # Fewer rounds than have begun: the round goes on to its end, and no other one begins.
        moved(first, poll(asking(), pause, until="state.over", times=1, on_exhausted="continue"), {"name": "last", "set": {"last": True}})
        wait_until(lambda: show(pawl, process)["step"] == "pause[1]", what="it waits as before")
        cli(pawl, "signal", process, "tick", "{}", "--key", "k1")
        ended = wait_status(pawl, process, "COMPLETED")
        assert names(ended) == ["first", "ask[0]", "pause[0]", "poll[0]", "ask[1]", "pause[1]", "poll[1]", "poll", "last"], names(ended)
        assert steps(pawl, process, "poll")[0]["result"]["rounds"] == 2


@test
def programs_of_all_rounds_are_undone_last_one_first():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        step = {"name": "put", "exec": f"read n; echo do $n >> {seen}; echo $n", "input": "{{item}}{{index}}",
                "compensate": {"exec": f"read n; echo undo $n >> {seen}; echo 1", "input": "{{result}} {{item}} {{index}} {{steps.mark}}"}}
        mark = {"name": "mark", "exec": "read n; echo $n", "input": "{{index}}"}
        _, ended = run(pawl, {"type": "all", "on_failure": "compensate", "steps": [
            {"name": "e", "each": "{{state.l}}", "steps": [poll(mark, step, until="index == 1")]}, {"name": "no", "fail": "no"}]},
            "COMPENSATED", state={"l": ["a", "b"]})
        assert lines(seen) == [f'do "{name}{n}"' for name in "ab" for n in range(2)] + [
            f'undo "{name}{n} {name} {n} {n}"' for name in "ba" for n in (1, 0)], (lines(seen), ended)


main()
