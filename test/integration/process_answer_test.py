#!/usr/bin/env python3
"""process_answer - races of responses for one wait, and responses that name the wait that they answer: in definitions, in C and over HTTP.

The process of all three: decision, the first of approved and rejected; then confirmed, one approved. Its result: [which came, its payload, the payload
of confirmed].
"""
import json
import os
import tempfile
import threading
import uuid

from pawl_test import Database, Pawl, Process, main, setting, test, wait_until
from process_cli import define, refusal, wait_status
from process_worker import module_worker
from servers import Session

PROGRAM = os.path.join(setting("PAWL_BUILD"), "test", "integration", "library_process")


TIMEOUTS_MS = {"briefly": 1, "moment": 30}


def decides(run):
    came = run.wait_any(["approved", "rejected"], timeout=TIMEOUTS_MS[run.type] / 1000 if run.type in TIMEOUTS_MS else None, step="decision") or ("", None)
    if run.type == "moment":
        return [*came, None]
    confirmed = run.wait("approved", step="confirmed")
    if run.type == "fails":
        run.step("last", fail, attempts=1)
    return [*came, confirmed]


def fail(_):
    raise RuntimeError("no")


def definition(kind):
    timeout = {"timeout": f"{TIMEOUTS_MS[kind]}ms", "on_timeout": "continue"} if kind in TIMEOUTS_MS else {}
    steps = [{"name": "decision", "wait": {"any": ["approved", "rejected"]}, **timeout}]
    if kind != "moment":
        steps.append({"name": "confirmed", "wait": {"response": "approved"}})
    if kind == "fails":
        steps.append({"name": "last", "exec": "false", "retry": {"attempts": 1}})
    return {"type": kind, "domain": "file", "steps": steps, "result": [
        "{{steps.decision.response?}}", "{{steps.decision.payload?}}", "{{steps.confirmed}}" if kind != "moment" else None]}


class Front:
    """One front end and a process of it."""

    def __init__(self, db, pawl, domain, variant, folder):
        self.db, self.pawl, self.domain, self.variant, self.folder = db, pawl, domain, variant, folder
        kind = self.kind = "c" if domain == "c" else variant  # the type of C's is its domain
        self.id, self.ended = str(uuid.uuid4()), threading.Event()
        self.python = None
        if domain == "file":
            define(pawl, definition(kind))
        db.rows(f"select pawl.start('{kind}', '{{}}', '{self.id}', '{domain}')")

    def run(self):
        """Its worker begins."""
        if self.domain == "c":
            self.start([PROGRAM, self.db.url, "run", "c", f"decides-{self.variant}"])
        elif self.domain == "python":
            worker = module_worker(self.pawl, "python", {self.kind: decides})
            worker.wait = 1.0
            self.python = threading.Thread(target=self.turns, args=(worker,))
            self.python.start()
        return self

    def end(self):
        self.ended.set()
        if self.python:
            self.python.join()

    def start(self, command):
        environment = {**os.environ, "EFFECTS": os.path.join(self.folder, "effects"), "LEASE_MS": "60000"}
        self.pawl.processes.append(Process(command, env=environment))

    def turns(self, worker):
        while not self.ended.is_set():
            worker.turn()

    def show(self):
        return self.pawl.http("GET", f"/v1/processes/{self.id}").json

    def signal(self, name, payload, key, step=None, status=201):
        answer = self.pawl.http("POST", f"/v1/processes/{self.id}/signals/{name}" + (f"?step={step}" if step else ""), body=json.dumps(payload).encode(),
                                headers={"Content-Type": "application/json", "Idempotency-Key": key})
        assert answer.status == status, (answer.status, answer.body)
        return answer.headers.get("pawl-status") if status == 201 else answer.json["detail"]

    def wait_in(self, step):
        wait_until(lambda: self.show()["step"] == step and self.show()["status"] == "WAITING_FOR_ASYNC", what=f"{self.domain} waits in {step}")

    def result(self):
        return wait_status(self.pawl, self.id, "COMPLETED")["result"]

    def taken(self):
        return self.db.rows(f"select s.step, s.verdict, s.response, s.taken from pawl.process_step s join pawl.command c on c.id = s.id "
                            f"where c.command_id = '{self.id}' and s.kind = 'step' and s.aside = 0 order by s.number")


class Fronts:
    """A pod, and a process of each front end."""

    def __init__(self, kind):
        self.kind = kind

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.db = Database().__enter__()
        self.pawl = Pawl(self.db).__enter__()
        self.pawl.serve()
        self.fronts = [Front(self.db, self.pawl, domain, self.kind, self.folder.name) for domain in ("file", "c", "python")]
        return self.fronts

    def __exit__(self, *error):
        for front in self.fronts:
            front.end()
        self.pawl.__exit__(*error)
        self.db.__exit__(*error)
        self.folder.cleanup()


@test
def the_response_that_came_first_wins_and_the_other_one_is_left():
    with Fronts("early") as fronts:
        for front in fronts:
            front.signal("rejected", {"n": 1}, "1")
            front.signal("approved", {"n": 2}, "2")
            front.run()
            assert front.result() == ["rejected", {"n": 1}, {"n": 2}], front.domain
            assert front.taken() == ["decision|done|rejected|{[0,1)}", "confirmed|done|approved|{[0,1)}"], (front.domain, front.taken())


@test
def a_race_that_waits_is_resumed_by_either():
    with Fronts("asked") as fronts:
        for front in fronts:
            front.run().wait_in("decision")
            assert front.show()["waits_for"] == {"any of: approved, rejected": 1}, front.show()["waits_for"]
            assert front.signal("approved", 1, "1") == "RESUMED"
            front.wait_in("confirmed")
            assert front.signal("rejected", 2, "2") in ("STORED", "STORED_UNEXPECTED")
            assert front.show()["waits_for"] == {"approved": 2} and front.signal("approved", 3, "3") == "RESUMED"
            assert front.result() == ["approved", 1, 3], front.domain


@test
def a_late_answer_that_names_its_wait_is_not_taken_by_the_next_one():
    with Fronts("briefly") as fronts:
        for front in fronts:
            front.run().wait_in("confirmed")
            assert front.signal("approved", {"late": 1}, "1", "decision") == "LATE", front.domain
            assert front.signal("approved", {"late": 1}, "1", "decision") == "REPEATED"
            for step in (None, "confirmed"):
                assert "another payload or step" in front.signal("approved", {"late": 1}, "1", step, status=422)
            assert front.show()["status"] == "WAITING_FOR_ASYNC" and front.show()["state"]["late"] == 1
            assert front.signal("approved", {"on_time": 1}, "2", "confirmed") == "RESUMED", front.domain
            assert front.result() == ["", None, {"on_time": 1}] or front.domain == "file" and front.result() == [None, None, {"on_time": 1}], front.result()
            assert [row.rsplit("|", 2)[0] for row in front.taken()] == ["decision|timed_out", "confirmed|done"], front.taken()
            assert [r["step"] for r in front.show()["responses"]] == ["decision", "confirmed"]


@test
def an_early_answer_waits_for_the_wait_that_it_names():
    with Fronts("ahead") as fronts:
        for front in fronts:
            assert front.signal("approved", 1, "1", "confirmed") == "STORED"
            front.run().wait_in("decision")
            assert front.show()["waits_for"] == {"any of: approved, rejected": 1}, front.show()["waits_for"]
            assert front.signal("approved", 2, "2", "decision") == "RESUMED", front.domain
            assert front.result() == ["approved", 2, 1], front.domain
            assert front.taken() == ["decision|done|approved|{[1,2)}", "confirmed|done|approved|{[0,1)}"], (front.domain, front.taken())


@test
def an_answer_names_an_item_of_an_each_and_a_text_that_is_no_step_is_refused():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "items", "domain": "file", "result": "{{steps.all}}", "steps": [
            {"name": "all", "each": "{{state.list}}", "concurrency": 3, "steps": [{"name": "said", "wait": {"response": "said"}}]}]})
        process = str(uuid.uuid4())
        db.rows(f"""select pawl.start('items', '{{"list": [0, 1, 2]}}', '{process}', 'file')""")
        met = "select count(*) from pawl.process_step s join pawl.process p on p.id = s.id where s.step = 'said' and s.kind = 'step' and p.wait is not null"
        wait_status(pawl, process, "WAITING_FOR_ASYNC")
        for count, n in ((1, 2), (2, 0)):
            said = pawl.run("process", "signal", process, "said", str(n), "--step", f"said[{n}]")
            assert said.stdout == f"{process} RESUMED\n", said
            wait_until(lambda: db.value(met) == str(count), what=f"{count} are met, and it waits again")
        verdicts = f"""select verdict from pawl.process_signal(array_fill('{process}'::uuid, array[3]), '{{said,said,said}}', '{{7,8,1}}', '{{a,b,c}}',
                       p_steps => '{{"said[2]","said[3]","said[1]"}}')"""
        said = db.rows(verdicts)
        assert said == ["LATE", "STORED", "RESUMED"], said
        assert wait_status(pawl, process, "COMPLETED")["result"] == [0, 1, 2]
        no_steps = ("said[", "said[x]", "said[01]", "said[-1]", "said[10000]", "said[2147483648]", "said" + "[0]" * 8, "a b", "", "~said")
        for text in no_steps:
            said = refusal(db, f"perform pawl.signal('{process}', 'said', p_step => '{text}')")
            assert said.startswith("QP001: step must be the name of a step"), (text, said)
        said = db.rows(f"""select s.verdict from pawl.start('items', '{{"list": [0]}}', p_domain => 'file') id,
                           pawl.process_signal(array_fill(id, array[{len(no_steps) + 1}]), array_fill('said'::text, array[{len(no_steps) + 1}]),
                             array_fill('1'::jsonb, array[{len(no_steps) + 1}]), array_fill('k'::text, array[{len(no_steps) + 1}]),
                             p_steps => array['said[9999]', '{"', '".join(no_steps)}']) s order by s.ord""")
        assert said == ["STORED"] + ["INVALID"] * len(no_steps), said
        refused = pawl.run("process", "signal", process, "said", "1", "--step", "said[")
        assert refused.code == 2 and "step must be the name of a step such as approval" in refused.stderr, refused


@test
def a_step_that_does_not_wait_for_it_is_unexpected():
    with Fronts("typo") as fronts:
        file = fronts[0].run()
        file.wait_in("decision")
        assert file.signal("approved", 1, "1", "confimed") == "STORED_UNEXPECTED"
        noted = file.pawl.run("process", "signal", file.id, "rejected", "2", "--step", "confirmed")
        assert "for confirmed" in file.pawl.run("process", "show", file.id).stdout
        assert noted.code == 0 and 'in step confirmed takes "rejected"' in noted.stderr and "approved" in noted.stderr, noted
        assert file.show()["status"] == "WAITING_FOR_ASYNC"


@test
def of_a_response_and_a_timeout_at_the_same_moment_one_is_recorded():
    with Fronts("moment") as fronts:
        for front in fronts:
            front.run()
            with Session(front.db.url) as session:
                ids = [str(uuid.uuid4()) for _ in range(20)]
                for n, process in enumerate(ids):
                    session.do(f"select pawl.start('{front.kind}', '{{}}', '{process}', '{front.domain}')")
                    session.do(f"select pawl.signal('{ids[n // 2]}', '{['approved', 'rejected'][n % 2]}', '{n}', '{n}')")
                for process in ids:
                    wait_status(front.pawl, process, "COMPLETED")
            rows = front.db.rows(
                "select count(*), count(*) filter (where s.verdict = 'timed_out') = count(*) filter (where o.result -> 1 = 'null'), "
                "count(*) filter (where (s.verdict = 'timed_out') <> (s.response is null) or (s.response is null) <> (s.taken is null)) "
                "from pawl.process_step s join pawl.outcome o on o.id = s.id join pawl.command c on c.id = s.id "
                f"where s.step = 'decision' and s.kind = 'step' and c.command_id = any ('{{{','.join(ids)}}}')")
            assert rows == ["20|t|0"], (front.domain, rows)


@test
def a_retry_from_a_race_takes_what_it_had_taken():
    with Fronts("fails") as fronts:
        for front in fronts:
            for n, name in enumerate(("approved", "rejected", "approved")):
                front.signal(name, n, str(n))
            front.run()
            for step in (None, "decision", "decision"):
                assert not step or front.pawl.run("process", "retry", front.id, "--from", step).code == 0
                wait_until(lambda: len([row for row in front.taken() if row.startswith("last|")]) == 1 and front.show()["status"] == "WAITING_FOR_TSQ",
                           what=f"{front.domain} has failed again")
                assert front.taken()[:2] == ["decision|done|approved|{[0,1)}", "confirmed|done|approved|{[1,2)}"], (front.domain, front.taken())


@test
def a_race_is_run_again_by_a_retry_and_moved_with_its_names():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        steps = [{"name": "w", "wait": {"any": ["a", "b"]}}, {"name": "v", "wait": {"response": "a"}}, {"name": "last", "exec": "false", "retry": {"attempts": 1}}]
        file = {"type": "again", "domain": "file", "on_failure": "troubleshoot", "steps": steps}
        define(pawl, file)
        process = str(uuid.uuid4())
        db.rows(f"select pawl.start('again', '{{}}', '{process}', 'file')")
        for n, name in enumerate("aba"):
            db.rows(f"select pawl.signal('{process}', '{name}', '{n}', '{n}')")
        taken = "select s.step || s.response || s.taken from pawl.process_step s where s.kind = 'step' and s.response is not null and s.aside = 0 order by 1"
        for retry in ((), ("v",), ("w",)):
            for step in retry:
                assert pawl.run("process", "retry", process, "--from", step).code == 0
            wait_until(lambda: db.value("select count(*) from pawl.process_step where step = 'last' and aside = 0 and kind = 'step'") == "1", what="it has ended")
            wait_status(pawl, process, "WAITING_FOR_TSQ")
            assert db.rows(taken) == ["va{[1,2)}", "wa{[0,1)}"], (retry, db.rows(taken))
        other = {**file, "steps": [{"name": "w", "wait": {"any": ["a", "c"]}}, *steps[1:]]}
        define(pawl, other)
        refused = pawl.run("process", "move", process, "--to", "2")
        assert refused.code != 0 and 'has used up responses "a" or "b", and would have used "a" or "c"' in refused.stderr, refused
        define(pawl, {**file, "steps": [{"name": "w", "wait": {"any": ["b", "a"]}}, *steps[1:]]})
        assert pawl.run("process", "move", process, "--to", "3").code == 0


main()
