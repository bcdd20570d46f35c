#!/usr/bin/env python3
"""process_version - processes in Python whose function is changed while they wait: run.version(), old and new programs, kills."""
import os
import sys

from pawl_test import Database, Pawl, Process, main, test, wait_until
from process_worker import claim, module_worker, post, process_module, report, show

OLD, NEW = ["pack", "go", "end", "ship", "received"], ["pack", "go", "label", "print", "end", "ship", "received"]


def program(newest):
    """The function, of which 0 is the one before the change, and None the one from which its code was deleted."""
    def order(run):
        run.step("pack", lambda key: key)
        run.wait("go")
        version = run.version("label", newest) if newest else int(newest is None)
        assert not newest or run.version("label", newest) == version
        if version:
            run.step("print", lambda key: version)
        run.wait("end")
        run.step("ship", lambda key: key)
        run.wait("received")
        return version

    return {"py-order": order}


def start(pawl):
    return post(pawl, "/v1/processes", {"type": "py-order", "domain": "shop", "state": {}}, 201)["process_id"]


def signal(pawl, process_id, *names):
    for name in names:
        answer = pawl.http("POST", f"/v1/processes/{process_id}/signals/{name}", body={}, headers={"Idempotency-Key": f"{process_id}-{name}"})
        assert answer.status < 300, answer.body


def names_of(shown):
    return [step["name"] for step in shown["steps"]]


def turns(worker, pawl, process_id, fact):
    """Until the process is as it should be: each claim gives one activation."""
    while not fact(show(pawl, process_id)):
        assert worker.turn() == 1, show(pawl, process_id)
    return show(pawl, process_id)


def waiting(pawl, newest, *names):
    process_id, following = start(pawl), {(): "go", ("go",): "end", ("go", "end"): "received"}[names]
    worker = module_worker(pawl, "shop", program(newest))
    signal(pawl, process_id, *names)
    turns(worker, pawl, process_id, lambda shown: shown["waits_for"] == {following: 1})
    return process_id


def ended(shown):
    return shown["ended_at"] or shown["status"] == "WAITING_FOR_TSQ"


@test
def a_change_with_a_version_sends_no_process_to_troubleshooting():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        before, at, after = waiting(pawl, 0), waiting(pawl, 0, "go"), waiting(pawl, 0, "go", "end")
        for process_id, names, expected, version in ((before, ("go", "end", "received"), NEW, 1), (at, ("end", "received"), OLD, 0),
                                                     (after, ("received",), OLD, 0)):
            signal(pawl, process_id, *names)
            shown = turns(module_worker(pawl, "shop", program(1)), pawl, process_id, ended)
            assert (shown["status"], names_of(shown), shown["result"]) == ("COMPLETED", expected, version), shown
        assert db.rows("select call, call_kind, result from pawl.process_step where step = 'label'") == ["2|version|1"]


@test
def a_process_keeps_its_version_when_a_newer_one_is_deployed():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for recorded, newest in ((1, 2), (1, None)):  # its code was deleted: the record is passed over
            process_id = waiting(pawl, recorded, "go")
            signal(pawl, process_id, "end", "received")
            shown = turns(module_worker(pawl, "shop", program(newest)), pawl, process_id, ended)
            assert (shown["status"], names_of(shown), shown["result"]) == ("COMPLETED", NEW, 1), shown


@test
def a_version_that_is_the_last_record_is_passed_over_when_its_code_is_deleted():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)
        item, = claim(pawl)
        assert report(pawl, item, record={"step": "label", "result": 1, "call": 0, "call_kind": "version"})["verdict"] == "written"
        assert report(pawl, item, release=True)["verdict"] == "written"
        assert module_worker(pawl, "shop", {"py-order": lambda run: None}).turn() == 1
        assert show(pawl, process_id)["status"] == "COMPLETED", show(pawl, process_id)


@test
def an_older_program_gives_a_process_of_a_newer_one_back():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = waiting(pawl, 2, "go")
        signal(pawl, process_id, "end", "received")
        assert module_worker(pawl, "shop", program(1)).turn() == 1
        shown = show(pawl, process_id)
        given = [event["details"] for event in shown["audit"] if event["event"] == "RETRY_SCHEDULED"]
        assert given == [{"reason": 'change "label" of the process is version 2, and this worker knows versions up to 1', "delay_ms": 5000}], shown
        assert shown["status"] == "PENDING" and shown["continues_at"], shown
        shown = turns(module_worker(pawl, "shop", program(2)), pawl, process_id, ended)
        assert (shown["status"], shown["result"]) == ("COMPLETED", 2), shown


@test
def a_canceled_process_records_no_version():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = waiting(pawl, 0)
        assert pawl.run("process", "cancel", process_id, "--compensate").code == 0
        signal(pawl, process_id, "go")
        asked = []

        def order(run):
            run.step("pack", lambda key: key)
            asked.append(run.version("label", 1))
            return run.wait("go")

        shown = turns(module_worker(pawl, "shop", {"py-order": order}), pawl, process_id, ended)
        assert (shown["status"], names_of(shown), set(asked)) == ("COMPENSATED", ["pack"], {0}), (shown, asked)


@test
def versions_that_make_no_sense_are_named():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()

        def twice(run):
            run.version("label", 1)
            run.step("label", lambda key: key)

        words = {0: 'version "label": newest must be an integer from 1, got 0', "2": "newest must be an integer from 1, got '2'"}
        for newest, expected in words.items():
            process_id = start(pawl)
            shown = turns(module_worker(pawl, "shop", {"py-order": lambda run, n=newest: run.version("label", n)}), pawl, process_id, ended)
            assert expected in shown["error"], shown
        process_id = start(pawl)
        shown = turns(module_worker(pawl, "shop", {"py-order": twice}), pawl, process_id, ended)
        assert shown["error"] == 'step "label" is call 1 and call 2: each call of a process must have a name of its own', shown
        # A worker that gives an activation back says for how long, and why.
        start(pawl)
        item, = claim(pawl)
        for parts, expected in (({"delay_s": 5}, "delay_s belongs to release"), ({"release": True, "reason": "x"}, "reason belongs to release with a delay_s"),
                                ({"release": True, "delay_s": 3601}, "delay_s must be")):
            assert expected in report(pawl, item, status=400, **parts)["detail"], parts


PROGRAM = """
import sys
from process import Worker
sys.path.insert(0, sys.argv[2])
from process_version_test import program
Worker("shop", program(1), lease=1.0, wait=5.0).run()
"""


@test
def a_version_is_the_same_after_a_kill_at_each_point():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for crash_at in ("after a version 1", "before the step 1", "after the step 1", "after the record 1", "before it is suspended 1", "after it was suspended 1"):
            process_id = waiting(pawl, 0)
            environment = {**os.environ, "PAWL_URL": f"http://{pawl.server.host}:{pawl.server.port}", "PAWL_TOKEN": pawl.TOKEN, "CRASH_AT": crash_at,
                           "PYTHONPATH": os.pathsep.join([os.path.dirname(process_module.__file__), os.environ["PYTHONPATH"]])}
            folder = os.path.dirname(os.path.abspath(__file__))
            signal(pawl, process_id, "go")
            worker = Process([sys.executable, "-c", PROGRAM, "worker", folder], env=environment)
            pawl.processes.append(worker)
            wait_until(lambda: not worker.is_running(), what=f"it is killed {crash_at}")
            environment.pop("CRASH_AT")
            signal(pawl, process_id, "end", "received")
            worker = Process([sys.executable, "-c", PROGRAM, "worker", folder], env=environment)
            pawl.processes.append(worker)
            shown = wait_until(lambda: (lambda s: s if ended(s) else None)(show(pawl, process_id)), what="it has ended")
            assert (shown["status"], names_of(shown), shown["result"]) == ("COMPLETED", NEW, 1), (crash_at, shown)
            worker.kill()


if __name__ == "__main__":
    main()
