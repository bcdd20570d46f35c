"""process.py - processes written in Python: step(), wait(), sleep(), command(), child(), version(), replayed after a crash.

A process is a function. It is called from its beginning in every activation, and its calls are matched with what is recorded: a step that has
a record returns its result without running, the first one without a record runs, and its record is written before the next begins. A call
that must wait raises Suspended, and the function is called again when what it waits for has come.

    def order(run):
        stock = run.step("reserve", lambda key: reserve(key, run.input["items"]))
        answer = run.wait("approval", timeout=3600)
        ...
        return {"shipped": True}

So a function must make the same calls in the same order every time: what it branches on comes from its input and from results of steps, and
time, random numbers and everything else from outside is a step. A recorded call that is made in another order, or with another input, is
reported with its name, and the process goes to troubleshooting; nothing is run. Each call needs a name of its own, because its record has that
name: in a loop, put the item into it, as in run.step(f"pay-{number}", ...).

Only Python's standard library is used. The API key needs the scope "process".
"""
import hashlib
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone


ERROR_BYTES_MAX = 8192
POSTPONED_S = 5.0  # a process whose change this program does not know yet
CANCELED = "canceled by an operator"
DEADLINE = "the deadline of the process has passed"


class Failed(Exception):
    """A step, command or child has failed for good. A function may catch it and undo what it has done."""


class Refused(Failed):
    """A business refusal, raised by a step: no other attempt. Uncaught it ends the process as FAILED."""


class Suspended(BaseException):
    """The activation ends here. Do not catch it."""


class Continued(BaseException):
    """This life of the process ends here. Do not catch it."""


class Defect(BaseException):
    """The function is wrong: nothing more is run, and the process goes to troubleshooting. Do not catch it."""


class HistoryDiffers(Defect):
    """The function does not make the calls that are recorded."""

    def __init__(self, text):
        super().__init__(f"the history differs: {text}")


class Api:
    def __init__(self, url, token):
        if not token:
            raise SystemExit("PAWL_TOKEN is not set: pawl key create NAME --scopes process prints one")
        self.url, self.token = url, token

    def post(self, path, body, timeout=30):
        """One request. Retries while the server is unavailable: everything here may be repeated."""
        request = urllib.request.Request(self.url + path, json.dumps(body, allow_nan=False).encode(), {
            "Authorization": "Bearer " + self.token, "Content-Type": "application/json"})
        while True:
            try:
                with urllib.request.urlopen(request, timeout=timeout) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code in (401, 403):
                    raise SystemExit(f"PAWL_TOKEN is refused: {json.load(error)['detail']}") from error
                if error.code < 500 and error.code != 429:
                    raise RuntimeError(error.read().decode()) from error
                time.sleep(float(error.headers.get("Retry-After", 1)))
            except OSError:
                time.sleep(0.2)


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def shortened(error):
    """An error as the server takes it."""
    return error.encode(errors="replace")[:ERROR_BYTES_MAX].decode(errors="ignore")


def point(name):
    """Where the tests kill this process: CRASH_AT names a point and which pass of it, "after the step 2". Means nothing to an application."""
    point.passes[name] = point.passes.get(name, 0) + 1
    if os.environ.get("CRASH_AT") == f"{name} {point.passes[name]}":
        os.kill(os.getpid(), signal.SIGKILL)


point.passes = {}


class Run:
    """One activation. `input`: the state that the process was started with, or has continued with. `id`: of the process. `life`: how often it has
    begun, from 1."""

    def __init__(self, api, domain, item):
        self.api, self.path = api, f"/v1/process-domains/{domain}"
        self.id, self.lease, self.type, self.input = item["process_id"], item["lease"], item["type"], item["input"]
        self.stop = threading.Event()  # begin nothing more
        self.running = None  # the name of the step that runs
        self.reported, self.reported_lock = None, threading.Lock()  # the newest progress, if it is not sent yet
        self.progress_sent = None  # the last one that was
        self.progress_before, self.attempt = item["progress"], item["attempt"]
        self.load(item)

    def load(self, item):
        """What is known: by the claim, or because something came while the activation was about to be suspended."""
        self.state, self.state_version = item["state"], item["version"]
        self.secret, self.life = item["secret"] or "", item["life"]
        self.now_at, self.now_mono = moment(item["now"]), time.monotonic()
        self.records_left = item["records_left"]
        self.taken, self.done, self.begun, self.unkept, self.failures, self.aside, self.order = {}, {}, {}, {}, {}, {}, {}
        for step in item["steps"]:
            name = step["step"]
            if step["aside"]:  # by an operator's retry from this step or an earlier one
                self.aside[name] = max(step["aside"], self.aside.get(name, 0))
                continue
            if step["kind"] == "begin":
                self.begun[name, step["attempt"]] = step
            elif step["kind"] == "done":
                self.unkept[name] = step["result"]
            elif step["error"] is None:
                self.done[name] = step
                self.taken.setdefault(step["response"], set()).update(step["taken"])  # of a wait
            else:
                self.failures.setdefault(name, []).append(step)
            if step["call"] is not None:
                self.order.setdefault(step["call"], step)
        self.signals, self.replies, self.replaced, requests = {}, {}, {}, []
        for arrived, response in enumerate(item["responses"]):
            if response["kind"] == "cancel":
                requests.append(response["payload"])
            elif response["kind"] == "reply" and response.get("is_aside"):
                self.replaced[response["name"]] = self.replaced.get(response["name"], 0) + 1
            elif response["kind"] in ("signal", "reply"):
                if response["kind"] == "signal":
                    self.signals.setdefault(response["name"], []).append({**response, "arrived": arrived})
                else:
                    self.replies.setdefault(response["name"], []).append(response["payload"])
        # What cancels it: an operator, or its deadline. The first request counts, so that every replay gives the same reason.
        self.canceled = (DEADLINE if "deadline" in requests[0] else CANCELED) if requests else None
        self.deadline = moment(item["deadline"]) if item.get("deadline") else None
        # Steps whose command or child has not ended, while it is being compensated; and those of them whose calls have failed.
        self.open, self.awaited = {step["step"] for step in item["open"] or []}, []
        self.number, self.is_compensating = 0, False
        self.calls = {}  # the number of each call so far, by its name
        self.versions = {}  # what version() has returned in this activation
        # A process that was canceled, or whose deadline passed, fails at the call at which it learned of it, also when it is replayed.
        self.phase = item["phase"]

    def now(self):
        """The database's time. It is no step: use it in a step."""
        return self.now_at + timedelta(seconds=time.monotonic() - self.now_mono)

    # ---- the calls ----

    def version(self, change, newest):
        """Which way this process goes where the function was changed: the version that is recorded; `newest`, an integer from 1, which is recorded, if no
        later call is; else 0, the way before the change. The same change has the same answer. A process of a newer program is given back."""
        if not isinstance(newest, int) or newest < 1:
            raise Defect(f"version \"{change}\": newest must be an integer from 1, got {newest!r}")
        if change not in self.versions:
            self.versions[change] = self._version(change, newest)
        return self.versions[change]

    def step(self, name, body, input=None, attempts=5, delay=1.0, factor=2.0, patch=None):
        """body(key) is called, with the same key in every attempt, and another one after `retry --from`. patch(result): an object that is merged into the state."""
        mark = self._call(name, "step", input)
        if name in self.done:
            return self.done[name]["result"]
        self._done_unkept(name)
        while True:
            failures = self._failures(name)
            if failures and failures[-1]["verdict"] == "refused":
                raise Refused(failures[-1]["error"])
            if len(failures) >= attempts:
                raise Failed(f"step {name}: {failures[-1]['error']}")
            if failures:
                due = moment(failures[-1]["ended_at"]) + timedelta(seconds=delay * factor ** (len(failures) - 1))
                if self.now() < due:
                    self._suspend(name, until=due, status="WAITING_FOR_RETRY")
            self._go_on()
            if self.records_left <= 0 and not self.is_compensating:  # before it does something that cannot be recorded
                raise Failed(f"step {name}: the process may record no more steps")
            record = self._try(name, body, mark)
            point("after the step")
            try:
                self._report({"record": record, **({"patch": patch(record["result"])} if patch and "result" in record else {})})
            except Exception as error:  # a result or patch that is too large, or no JSON
                if "result" not in record:
                    raise
                self.unkept[name] = f"{type(error).__name__}: {error}"[:1000]
                self._report({"record": {"step": name, "kind": "done", "result": self.unkept[name], **mark}})
                self._done_unkept(name)
            point("after the record")
            if "result" in record:
                return record["result"]
            self.failures.setdefault(name, []).append(
                {"error": record["error"], "verdict": record["verdict"], "ended_at": self.now().isoformat(), "reset": False})

    def progress(self, percent=None, text=None):
        """How far the step is that runs: a percentage from 0 to 100, a text of 1 to 200 characters, or both. It does not wait: the newest report
        is sent about once a second. Operators see it, and the next attempt is given it by last_progress()."""
        if percent is not None and (type(percent) is not int or not 0 <= percent <= 100):
            raise ValueError(f"percent must be an integer from 0 to 100, got {percent!r}")
        if text is not None and not (isinstance(text, str) and 1 <= len(text) <= 200):
            raise ValueError("text must have 1 to 200 characters")
        if percent is None and text is None:
            raise ValueError("percent or text must be given")
        if self.running is None:
            raise ValueError("progress is of a step: call it in the body of one")
        given = {"percent": percent, "text": text}
        with self.reported_lock:
            self.reported = {"step": self.running, **{name: value for name, value in given.items() if value is not None}}

    def last_progress(self):
        """What the attempts before of this step have reported last: a dict with percent, text, attempt and at. None: nothing."""
        before = self.progress_before
        return before if before and before["step"] == self.running else None

    def progress_send(self):
        with self.reported_lock:
            report, self.reported = self.reported, None
        if not report:
            return
        verdict = self.api.post(self.path + "/progress", {"items": [{"process_id": self.id, "lease": self.lease, **report}]})["items"][0]["verdict"]
        with self.reported_lock:
            if verdict == "busy" and not self.reported:
                self.reported = report
            elif verdict == "reported":
                self.progress_sent = {"percent": None, "text": None, "attempt": self.attempt, "at": self.now().isoformat(), **report}

    def patch(self, name, body):
        """Merge body(state) into the state, once. If the state has changed since it was read, body is called again with the new one."""
        mark = self._call(name, "patch", None)
        if name in self.done:
            return
        self._go_on()
        while self._report({"record": {"step": name, **mark}, "patch": body(self.state),
                            "version": self.state_version})["verdict"] == "stale":
            pass

    def wait(self, name, count=1, timeout=None, step=None):
        """`count` responses of this name: one payload, or a list of several. None: none came in time."""
        step = step or name
        return self._wait(step, [name], count, timeout, self._call(step, "wait", [name, count]), lambda _, come: come[0] if count == 1 else come)

    def wait_any(self, names, timeout=None, step=None):
        """The first response of one of these names: its name and its payload. None: none came in time."""
        step = step or "-or-".join(names)
        mark = self._call(step, "wait", ["any", *names])
        came = self._wait(step, names, 1, timeout, mark, lambda name, come: {"response": name, "payload": come[0]})
        return (came["response"], came["payload"]) if came else None

    def sleep(self, name, seconds):
        mark = self._call(name, "sleep", seconds)
        if name in self.done:
            return
        self._go_on()
        due = self._begin(name, seconds, mark)
        if self.now() < due:
            self._suspend(name, until=due)
        self._report({"record": {"step": name, **mark}})

    def command(self, name, domain, type, payload=None):
        """Send a command and wait for its outcome: its result."""
        return self._send(name, domain, type, payload, False)

    def child(self, name, domain, type, state=None):
        """Start a process and wait for its end: its result."""
        return self._send(name, domain, type, state, True)

    def continue_as_new(self, state=None):
        """End this life of the process: it goes on under its id with a fresh history, and its function is called with `state`, an object, as its input; None: the
        present state. Responses that no wait has taken stay for it. Keys of steps are others in each life."""
        if self.is_compensating:
            raise Defect("a process that is being compensated cannot continue as new")
        if self._is_canceled():
            raise Refused(self.canceled or CANCELED)
        self._history_end("continued as new")
        raise Continued(state)

    def compensating(self):
        """What follows undoes what was done: it runs even if an operator or the deadline has canceled the process, which ends as COMPENSATED. Before it, what
        was sent must have ended; what completed all the same is recorded when the function is called again."""
        if self.phase == "forward":
            self._suspend("compensating", until=self.now(), phase="compensating")  # begin again with what has come meanwhile
        if self.awaited:
            self._suspend(self.awaited[0], status="WAITING_FOR_REPLY", responses=[self._next_reply(name) for name in self.awaited])
        self.is_compensating = True

    def release(self):
        """Give the activation back: another worker may have it at once. Nothing happens if the lease is lost."""
        try:
            self._report({"release": True})
        except Suspended:
            pass

    # ---- how they work ----

    def _version(self, change, newest):
        known = next((step for step in self.order.values() if step["step"] == change), None)
        if known and known["call_kind"] != "version":
            raise HistoryDiffers(f"step \"{change}\" was a {known['call_kind']} when it was recorded, and is a version now")
        if known and known["result"] > newest:
            self._postpone(f"change \"{change}\" of the process is version {known['result']}, and this worker knows versions up to {newest}")
        if known:
            return known["result"]
        self._versions_pass()
        if any(number >= self.number for number in self.order) or self._is_canceled():
            return 0
        mark = self._call(change, "version", None)
        self._go_on()
        self._report({"record": {"step": change, "result": newest, **mark}})
        point("after a version")
        return newest

    def _versions_pass(self):
        """A recorded version takes a number, and is found by its name: the other calls pass it over, also if the function does not ask for it any more."""
        while self.order.get(self.number, {}).get("call_kind") == "version":
            self.number += 1

    def _wait(self, step, names, count, timeout, mark, result):
        """result(name, payloads): what is recorded. A response is used by one wait: records have those that are taken."""
        if step in self.done:
            return None if self.done[step]["verdict"] == "timed_out" else self.done[step]["result"]
        self._go_on()
        mine = {name: [at for at, response in enumerate(self.signals.get(name, [])) if response.get("to_step") in (None, step)] for name in names}
        left = {name: [at for at in mine[name] if at not in self.taken.get(name, ())] for name in names}
        come = [name for name in names if len(left[name]) >= count]
        if come:
            first = min(come, key=lambda name: self.signals[name][left[name][0]]["arrived"])
            taken = left[first][:count]
            self.taken.setdefault(first, set()).update(taken)
            value = result(first, [self.signals[first][at]["payload"] for at in taken])
            self._report({"record": {"step": step, "result": value, "response": first, "taken": taken, **mark}})
            return value
        due = self._begin(step, timeout, mark)
        if due and self.now() >= due:
            # Written only if no response has come meanwhile: each changes the version of the state.
            verdict = self._report({"record": {"step": step, "verdict": "timed_out", **mark}, "patch": {}, "version": self.state_version})
            if verdict["verdict"] == "stale":
                self._suspend(step, until=self.now())  # a response: begin again with it
            return None
        counts = [{"name": name, "count": len(mine[name]) - len(left[name]) + count} for name in names]
        return self._suspend(step, responses=counts, until=due)
    def _history_end(self, what):
        left = [number for number, step in self.order.items() if number >= self.number and step["call_kind"] != "version"]
        if left:
            raise HistoryDiffers(f"the function {what} before step \"{self.order[min(left)]['step']}\", which is recorded")

    def _call(self, name, kind, input):
        """Match this call with what is recorded at its place. Returns what its records have of it."""
        self._versions_pass()
        if name in self.calls:  # the record of that call would be taken for this one's
            raise Defect(f"step \"{name}\" is call {self.calls[name] + 1} and call {self.number + 1}: each call of a process must have a name of its own")
        self.calls[name] = self.number
        hashed = hashlib.sha256(json.dumps([kind, input], sort_keys=True).encode()).hexdigest()[:16]
        mark = {"call": self.number, "call_kind": kind, "input_hash": hashed}
        known = self.order.get(self.number)
        self.number += 1
        if known:
            if known["step"] != name:
                raise HistoryDiffers(f"call {self.number} was step \"{known['step']}\" when it was recorded, and is \"{name}\" now")
            if known["call_kind"] != kind or known["input_hash"] != hashed:
                raise HistoryDiffers(f"step \"{name}\" was recorded with another kind or input")
        return mark

    def _go_on(self):
        """Before something that is not recorded yet: is there a reason to do no more?"""
        if self.stop.is_set():
            raise Suspended
        if self._is_canceled():
            raise Refused(self.canceled or CANCELED)

    def _is_canceled(self):
        return not self.is_compensating and (self.canceled or self.phase != "forward")

    def _failures(self, name):
        """Those that count: an operator's retry resets the failures of the call that the process failed at, and no others."""
        return [failure for failure in self.failures.get(name, []) if not failure["reset"]]

    def _try(self, name, body, mark):
        """One attempt: its record."""
        record = {"step": name, "attempt": len(self.failures.get(name, [])) + 1, **mark}
        began = time.monotonic()
        self.running = name
        point("before the step")
        try:
            record["result"] = body(hashlib.sha256(f"{self.secret}{self.id}/{name}{self._aside(name)}".encode()).hexdigest())
        except Refused as refusal:
            record["verdict"], record["error"] = "refused", shortened(f"refused: {refusal}")
        except Exception as error:  # the step's own failure: it is recorded, and tried again
            record["verdict"], record["error"] = "failed", shortened(f"{type(error).__name__}: {error}")
        self.running = None
        if "error" in record:
            self.progress_send()  # before the lease ends, for the next attempt
            self.progress_before = self.progress_sent or self.progress_before
        return {**record, "took_s": time.monotonic() - began}

    def _done_unkept(self, name):
        """A step that has run, and whose result could not be recorded, is not run again."""
        if name in self.unkept:
            raise Failed(f"step {name} has run, and its result cannot be recorded: {self.unkept[name]}")

    def _aside(self, name):
        """For its key: which of an operator's retries has set this step aside last."""
        return f"#{self.aside[name]}" if name in self.aside else ""

    def _begin(self, name, seconds, mark):
        """When a wait or a sleep ends; recorded when it begins."""
        if (name, 1) not in self.begun:
            until = (self.now() + timedelta(seconds=seconds)).isoformat() if seconds is not None else None
            self._report({"record": {"step": name, "kind": "begin", "result": until, **mark}})
            self.begun[name, 1] = {"result": until}
            point("after a wait began")
        until = self.begun[name, 1]["result"]
        return moment(until) if until else None

    def _send(self, name, domain, type, payload, is_process):
        mark = self._call(name, "process" if is_process else "command", [domain, type, payload])
        if name in self.done:
            return self.done[name]["result"]
        failures = self._failures(name)
        if failures:
            self._failed_while_open(name)
            raise self._failure(name, failures[-1])
        # After what an operator's retry has set aside, the next one has the next number, and its reply names it.
        replies, number = self.replies.get(name, []), 1 + self.replaced.get(name, 0)
        come = [reply for reply in replies if reply.get("correlation_id") in (f"{name}#{number}", None)]
        if not come:
            try:
                self._go_on()
            except Refused:
                self._failed_while_open(name)
                raise
            # Its record says that the function has come to this call: a failure before it is handled, and no retry resets that.
            self._suspend(name, responses=[self._next_reply(name)], status="WAITING_FOR_REPLY", send={
                "step": name, "attempt": number, "domain": domain, "type": type, "payload": payload or {}, "process": is_process},
                          record={"step": name, "kind": "begin", "attempt": number, **mark})
        outcome = come[0]
        record = {"step": name, "attempt": len(self.failures.get(name, [])) + 1, **mark}
        if outcome["status"] == "COMPLETED":
            record["result"] = outcome["result"]
        else:  # one that was canceled has decided nothing
            record["verdict"] = "final" if outcome["status"] == "CANCELED" else "refused"
            record["error"] = shortened(f"{outcome['status']}: {outcome.get('error')}")
        self._report({"record": record})
        if "error" in record:
            raise self._failure(name, record)
        return record["result"]

    def _failure(self, name, failure):
        """A refusal is recorded as such, for the next replay."""
        return (Refused if failure["verdict"] == "refused" else Failed)(f"step {name}: {failure['error']}")

    def _next_reply(self, name):
        return {"kind": "reply", "name": name, "count": len(self.replies.get(name, [])) + 1}

    def _failed_while_open(self, name):
        if name in self.open and not self.is_compensating:
            self.awaited.append(name)

    def _report(self, part):
        """Write it. Nothing is done after a report that was not written."""
        body, pause = {"items": [{"process_id": self.id, "lease": self.lease, **part}]}, 0.01
        while (verdict := self.api.post(self.path + "/report", body)["items"][0])["verdict"] == "busy":
            time.sleep(pause)  # the database is locked, slow or away: the same report is written later
            pause = min(2 * pause, 1)
        if verdict["canceled"] and not self.canceled:  # the next activation reads by whom
            self.canceled = DEADLINE if self.deadline and self.now() >= self.deadline else CANCELED
        if verdict["verdict"] in ("lost", "ended"):
            raise Suspended
        if verdict["verdict"] in ("refused", "too_large"):
            raise RuntimeError(verdict.get("error", verdict["verdict"]))
        self.state, self.state_version = verdict.get("state", self.state), verdict.get("version", self.state_version)
        self.records_left -= "record" in part
        return verdict

    def _postpone(self, reason):
        """Give the activation back, for another worker."""
        self._report({"release": True, "delay_s": POSTPONED_S, "reason": reason[:200]})
        raise Suspended

    def _suspend(self, step, responses=None, until=None, status="WAITING_FOR_ASYNC", **parts):
        wait = {"step": step, "status": status}
        if responses:
            wait["responses"] = responses
        if until:
            wait["until"] = until.isoformat()
        point("before it is suspended")
        verdict = self._report({"wait": wait, **parts})
        point("after it was suspended")
        raise Suspended(verdict if verdict["verdict"] == "met" else None)


class Worker:
    """Runs processes: functions by type. After stop() what runs is given back before its next step."""

    def __init__(self, domain, functions, url=None, token=None, lease=60.0, wait=20.0, name=None):
        self.api = Api(url or os.environ.get("PAWL_URL", "http://127.0.0.1:8080"), token or os.environ.get("PAWL_TOKEN"))
        self.domain, self.functions, self.lease, self.wait = domain, functions, lease, wait
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"  # in the audit, after the name of the API key
        self.stopping, self.active = threading.Event(), None

    def run(self):
        while not self.stopping.is_set():
            self.turn()

    def stop(self):
        self.stopping.set()
        if self.active:
            self.active.stop.set()

    def turn(self):
        """One claim and what came of it. Returns the number of activations."""
        items = self.api.post(f"/v1/process-domains/{self.domain}/claim", {
            "types": list(self.functions), "lease_s": self.lease, "wait_s": self.wait, "worker": self.name}, self.wait + 30)["items"]
        for item in items:
            run = self.active = Run(self.api, self.domain, item)
            if self.stopping.is_set():
                run.stop.set()
            ended = threading.Event()
            beats = threading.Thread(target=self._heartbeat, args=(run, ended), daemon=True)
            beats.start()
            try:
                self._activate(run)
            finally:
                ended.set()
                beats.join()
                self.active = None
        return len(items)

    def _activate(self, run):
        while True:
            try:
                end = self._call(run)
            except Suspended as suspended:
                if run.stop.is_set():
                    run.release()
                if not suspended.args or not suspended.args[0]:
                    return
                run.load(suspended.args[0])  # something came meanwhile: begin again with it
                continue
            point("before the end")
            try:
                verdict = self._end(run, end)
            except Suspended:
                return
            point("after the end")
            if verdict["verdict"] != "met":
                return
            run.load(verdict)  # it is to be compensated, and does not continue as new

    def _end(self, run, end):
        """An end that the server refuses, because its result is too large or no JSON, is a failure of this process and of no other."""
        if "error" in end["end"]:
            end["end"]["error"] = shortened(end["end"]["error"])
        try:
            return run._report(end)
        except Exception as error:
            return run._report({"end": {"outcome": "fail", "error": f"its end cannot be recorded: {type(error).__name__}: {error}"[:1000]}})

    def _call(self, run):
        """How the process ends."""
        try:
            result = self.functions[run.type](run)
            run._history_end("ended")
            if run.is_compensating:
                return {"phase": "compensated", "end": {"outcome": "reject", "error": str(result or "compensated")}}
            return {"end": {"outcome": "complete", "result": result}}
        except Continued as continued:
            state, = continued.args
            return {"end": {"outcome": "continue", **({"state": state} if state is not None else {})}}
        except Defect as defect:
            return {"end": {"outcome": "fail", "error": str(defect)}}
        except Failed as failure:
            if run.is_compensating or run.phase == "compensating" or not isinstance(failure, Refused):  # what is not undone needs an operator
                return {"end": {"outcome": "fail", "error": str(failure)}}
            if run.canceled:  # and the function has nothing to undo
                return {"phase": "compensated", "end": {"outcome": "reject", "error": str(failure)}}
            return {"end": {"outcome": "reject", "error": str(failure)}}
        except Exception as error:
            print(f"process {run.id} ({run.type}) goes to troubleshooting:", file=sys.stderr)
            traceback.print_exc()  # the process keeps the error without it
            return {"end": {"outcome": "fail", "error": f"{type(error).__name__}: {error}"}}

    def _heartbeat(self, run, ended):
        body = {"items": [{"process_id": run.id, "lease": run.lease}], "lease_s": self.lease}
        due = time.monotonic() + self.lease / 3
        while not ended.wait(min(1, self.lease / 3)):
            run.progress_send()
            if time.monotonic() < due:
                continue
            due = time.monotonic() + self.lease / 3
            if self.api.post(run.path + "/extend", body)["items"][0]["verdict"] in ("lost", "canceled"):
                run.stop.set()
                return
            if self.stopping.is_set():
                run.stop.set()
