"""saga - random sagas, as trees that three front ends run: the generator, the definition file, and a model of the end.

A saga is {"path", "on_failure", "operator", "nodes", "result"}. It is the member "saga" of the state of its process, where
every front end and the test find it. The nodes:

    step    outcomes: ok, retry, fail (for good) or refuse, one for each attempt; the last one for all further ones, too
    wait    response, count, payloads. race: it is one of these names, the first of which ends the wait; named: the
            response names this wait; decoy: before it comes one that names this other wait. come: "early" (with the start), "asked" (when the process waits), "never" (until
            the timeout; `to` is then continue or fail; late: they come after the end), or "cancel" (when it waits, an
            operator cancels it with compensation)
    sleep   ms
    set     patch: member -> a value, {"copy": member of the state} or {"result": step}
    if      test: [member, operator, value], is_not; then, else: nodes
    loop    nodes, of which the last one is a step; until test holds after a round, at most `times` rounds; `to` is then
            continue or fail. What is inside has in_loop, and is named with its round: s3[0] in a definition, s3.0 in code
    child   saga

A step and a child may have an undo, which is a step. operator: what happens in troubleshooting, "retry" or "leave".

Only what all three can say is here: no parallel and each, no loop in a loop, no wait for a condition, no save in the record of a step, no
on_failure "fail" (definitions only), no sleep of 0 (code only). A step that fails for good is its last attempt in
Python, which has no other way.
"""
import json
import random

DELAY_S = 0.01
WAIT_MS = 60
MEMBERS = ("a", "b", "c", "d")
# Those of the audit whose number depends neither on time nor on kills.
EVENTS = ("RESPONSE", "REPLY", "OPERATOR_RETRY", "CANCEL_REQUESTED", "MOVED_TO_TSQ")


class Maker:
    """Makes one saga. Names are unique in it; its children have names of their own."""

    def __init__(self, rng, path, depth=0):
        self.rng, self.path, self.depth, self.count, self.in_loop = rng, path, depth, 0, False
        self.more = random.Random(path)  # what is added to waits, so that it changes no other node
        self.on_failure = rng.choice(["compensate", "compensate", "compensate", "troubleshoot"])
        self.operator = "retry" if depth or rng.random() < 0.7 else "leave"  # a parent waits for the end of its child

    def chance(self, share):
        return self.rng.random() < share

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def value(self):
        return self.rng.choice([self.rng.randrange(10), self.rng.choice("xyz"), True, None, [1, {"deep": 'ä "q"'}]])

    def saga(self):
        nodes = self.nodes(self.rng.randint(2, 6), 0, [], set(MEMBERS))
        result = [node["name"] for node in walk(nodes)
                  if node["do"] in ("step", "wait", "child", "loop") and not node.get("in_loop")]
        return {"path": self.path, "on_failure": self.on_failure, "operator": self.operator, "nodes": nodes,
                "result": result}

    def nodes(self, count, level, done, members):
        """done: the steps that have a result here; members: those of the state that no response changes any more."""
        nodes, done, members = [], list(done), set(members)
        weights = {"step": 10, "wait": 4, "sleep": 2, "set": 4, "if": 4 * (level < 2), "loop": 3 * (level == 0),
                   "child": 2 * (self.depth < 2 and not self.in_loop)}
        for kind in self.rng.choices(list(weights), list(weights.values()), k=count):
            nodes += getattr(self, "make_" + kind)(level, done, members)
        return nodes

    def undo(self, name):
        if self.chance(0.3):
            return None
        tries = self.rng.choice([0, 0, 0, 1, 2])
        if self.operator == "retry" and self.chance(0.1):
            tries = 3  # all of them, so it needs the operator
        return self.step("undo-" + name, ["retry"] * tries + ["ok"])

    def outcomes(self):
        tries = ["retry"] * self.rng.choice([0, 0, 0, 0, 1, 2])
        ends = [tries + ["ok"], tries + ["refuse"], tries + ["fail", "ok"], ["retry"] * 3 + ["ok"]]
        return self.rng.choices(ends, [80, 6, 4, 4])[0]

    def step(self, name, outcomes):
        return {"do": "step", "name": name, "value": self.value(), "attempts": 3, "outcomes": outcomes}

    def make_step(self, _, done, __):
        name = self.name("s")
        done.append(name)
        return [{**self.step(name, self.outcomes()), "undo": self.undo(name)}]

    def make_wait(self, _, __, members):
        name, count = self.name("w"), self.rng.choice([1, 1, 1, 2])
        response = "r" + name
        payloads = [self.payload(response, number) for number in range(count)]
        shares = {"asked": 6, "early": 0 if self.depth or self.in_loop else 3, "never": 3, "cancel": self.on_failure == "compensate"}
        come, = self.rng.choices(list(shares), list(shares.values()))
        wait = {"do": "wait", "name": name, "response": response, "count": count, "payloads": payloads, "come": come,
                "to": "continue"}
        self.vary(wait, "elsewhere")
        if come != "never":
            members.add(response)
            return [wait]
        if self.on_failure == "compensate" and self.chance(0.3):
            wait["to"] = "fail"
        if self.chance(0.5):  # too late for this wait, in time for the next one
            return [wait, self.vary({**wait, "name": self.name("w"), "come": "asked", "to": "continue"}, name)]
        return [{**wait, "late": self.chance(0.5)}]

    def vary(self, wait, other):
        response = wait["response"]
        wait["race"] = self.more.sample([response, response + "o"], 2) if wait["count"] == 1 and self.more.random() < 0.4 else []
        wait["named"] = self.more.random() < 0.3
        wait["decoy"] = other if self.more.random() < 0.3 else None
        return wait

    def payload(self, response, number):
        if number or self.chance(0.3):  # no object: merged under the name of the response
            return self.rng.choice([number, "text", [number], None])
        return {response: self.value(), response + "x": {"of": self.path}}

    def make_sleep(self, *_):
        return [{"do": "sleep", "name": self.name("z"), "ms": self.rng.choice([1, 1, 20, 40])}]

    def make_set(self, _, done, __):
        sources = [self.value, lambda: {"copy": self.rng.choice(MEMBERS)}]
        if done:
            sources.append(lambda: {"result": self.rng.choice(done)})
        members = self.rng.sample(MEMBERS, self.rng.randint(1, 2))
        patch = {member: self.rng.choice(sources)() for member in members}
        return [{"do": "set", "name": self.name("p"), "patch": patch}]

    def test(self, members):
        values = [self.rng.randrange(3), "x", True, None]
        return [self.rng.choice(sorted(members)), self.rng.choice(["==", "is"]), self.rng.choice(values)]

    def make_if(self, level, done, members):
        test = self.test(members)
        then, other = (self.nodes(self.rng.randint(least, 3), level + 1, done, members) for least in (1, 0))
        is_not = self.chance(0.3)
        return [{"do": "if", "name": self.name("i"), "test": test, "is_not": is_not, "then": then, "else": other}]

    def make_loop(self, level, done, members):
        self.in_loop, name = True, self.name("l")
        nodes = self.nodes(self.rng.randint(0, 2), level + 1, done, members) + self.make_step(level, [], members)
        self.in_loop = False
        for node in walk(nodes):
            node["in_loop"] = True
            if node.get("undo"):
                node["undo"]["in_loop"] = True
        to = "fail" if self.on_failure == "compensate" and self.chance(0.3) else "continue"
        done.append(name)
        return [{"do": "loop", "name": name, "nodes": nodes, "test": self.test(members), "is_not": self.chance(0.3),
                 "times": self.rng.randint(1, 3), "to": to}]

    def make_child(self, *_):
        name = self.name("c")
        child = Maker(self.rng, f"{self.path}.{name}", self.depth + 1).saga()
        return [{"do": "child", "name": name, "saga": child, "undo": self.undo(name)}]


def walk(nodes):
    """All nodes, also those of branches and loops; not those of children."""
    for node in nodes:
        yield node
        if node["do"] == "if":
            yield from walk(node["then"] + node["else"])
        if node["do"] == "loop":
            yield from walk(node["nodes"])


def make(seed, number):
    return Maker(random.Random(f"{seed}/{number}"), str(number)).saga()


def state_of(saga):
    return {"saga": saga, "a": 1, "b": "x", "c": None, "d": True}


# --- the definition file ---

def definitions(saga, domain):
    """Of this saga and of its children."""
    for node in walk(saga["nodes"]):
        if node["do"] == "child":
            yield from definitions(node["saga"], domain)
    yield {"type": type_of(saga), "domain": domain, "on_failure": saga["on_failure"],
           "steps": list(steps(saga["nodes"], "end", domain)),
           "result": {name: f"{{{{steps.{name}?}}}}" for name in saga["result"]}}


def type_of(saga):
    return "saga-" + saga["path"]


def steps(nodes, after, domain):
    """after: the name of the step that follows the last one."""
    for at, node in enumerate(nodes):
        following = first_of(nodes[at + 1:], after)
        if node["do"] != "if":
            yield {"name": node["name"], **step_of(node, domain)}
            continue
        yield {"name": node["name"], "when": condition(node), "then": first_of(node["then"], following),
               "else": first_of(node["else"], following)}
        yield from steps(node["then"], following, domain)
        if node["else"]:
            yield {"name": node["name"] + "-join", "when": "true", "then": following}  # jumps over the other branch
        yield from steps(node["else"], following, domain)


def first_of(nodes, after):
    return nodes[0]["name"] if nodes else after


def step_of(node, domain):
    undo = {"compensate": action(node["undo"])} if node.get("undo") else {}
    if node["do"] == "step":
        return {**action(node), **undo}
    if node["do"] == "child":
        child = node["saga"]
        return {"process": {"type": type_of(child), "domain": domain, "state": state_of(child)}, **undo}
    if node["do"] == "loop":
        return {"repeat": list(steps(node["nodes"], "end", domain)), "until": condition(node), "times": node["times"],
                "on_exhausted": node["to"]}
    if node["do"] == "sleep":
        return {"sleep": f"{node['ms']}ms"}
    if node["do"] == "set":
        return {"set": {member: source(value) for member, value in node["patch"].items()}}
    timeout = {"timeout": f"{WAIT_MS}ms", "on_timeout": node["to"]} if node["come"] == "never" else {}
    wait = {"any": node["race"]} if node["race"] else {"response": node["response"], "count": node["count"]}
    return {"wait": wait, **timeout}


def responses(node, step):
    """What is sent to a wait: key, payload, and the wait that it names. step: its name, with its round."""
    if node["decoy"]:
        round_ = step.removeprefix(node["name"]) if node["decoy"] != "elsewhere" else ""
        yield f"{step}-decoy", {node["response"]: "decoy"}, node["decoy"] + round_
    for number, payload in enumerate(node["payloads"]):
        yield f"{step}-{number}", payload, step if node["named"] else None


def result_of(node):
    if node["race"]:
        return {"response": node["response"], "payload": node["payloads"][0]}
    return node["payloads"] if node["count"] > 1 else node["payloads"][0]


def action(step):
    round_ = "[{{index}}]" if step.get("in_loop") else ""
    return {"sql": "demo.step", "input": {**given(step, round_), "process": "{{process.id}}"},
            "retry": {"attempts": step["attempts"], "delay": f"{DELAY_S * 1000:.0f}ms", "factor": 1}}


def given(step, round_):
    """To demo.act, with the process's id. round_: "[2]", ".2"; "": in no loop."""
    return {"step": step["name"] + round_, "value": step["value"], "outcomes": step["outcomes"]}


def source(value):
    if isinstance(value, dict):
        return f"{{{{state.{value['copy']}}}}}" if "copy" in value else f"{{{{steps.{value['result']}}}}}"
    return value


def condition(node):
    member, operator, value = node["test"]
    text = f"state.{member}" + (f" == {json.dumps(value)}" if operator == "==" else "")
    return f"not ({text})" if node["is_not"] else text


# --- how it must end ---

class Stop(Exception):
    """The saga goes no further. The text is its status, unless it is compensated."""


class Model:
    """What every front end must show. timeline: (step, attempt, outcome, result)."""

    def __init__(self, saga):
        self.saga, self.state, self.result, self.status = saga, state_of(saga), None, "COMPLETED"
        self.effects, self.timeline, self.events = [], [], dict.fromkeys(EVENTS, 0)
        self.results, self.undos, self.children, self.round = {}, [], [], ""
        self.respond_all(lambda node: node["come"] == "early")
        try:
            self.run(saga["nodes"])
            self.result = {name: self.results.get(name) for name in saga["result"]}
        except Stop as stop:
            self.status = str(stop)
            self.compensate()
        self.respond_all(lambda node: node.get("late"))

    def compensate(self):
        if self.saga["on_failure"] == "compensate":
            self.status = "COMPENSATED"
            for undo, self.round in reversed(self.undos):
                self.step(undo, is_undo=True)
        self.events["MOVED_TO_TSQ"] += self.status == "WAITING_FOR_TSQ"

    def respond_all(self, is_now):
        for node in walk(self.saga["nodes"]):
            if node["do"] == "wait" and is_now(node):
                self.respond(node)

    def respond(self, node):
        for _, payload, _ in responses(node, node["name"]):
            self.events["RESPONSE"] += 1
            self.state.update(payload if isinstance(payload, dict) else {node["response"]: payload})

    def run(self, nodes):
        for node in nodes:
            getattr(self, "run_" + node["do"])(node)

    def note(self, node, attempt=1, outcome="ok", result=None):
        self.timeline.append((node["name"] + self.round, attempt, outcome, result))

    def done(self, node, result):
        self.results[node["name"]] = result
        if node.get("undo"):
            self.undos.append((node["undo"], self.round))

    def step(self, node, is_undo=False):
        """Its attempts, until one succeeds. An operator gives it as many again."""
        needs_operator = is_undo or self.saga["on_failure"] == "troubleshoot"
        left = node["attempts"]
        for attempt in range(1, 100):
            outcome = node["outcomes"][min(attempt, len(node["outcomes"])) - 1]
            self.note(node, attempt, outcome, {"value": node["value"]} if outcome == "ok" else None)
            if outcome == "ok":
                self.effects.append(node["name"] + self.round)
                return
            left -= 1
            if outcome == "refuse" or outcome == "fail" or not left:
                if outcome == "refuse" or not needs_operator or self.saga["operator"] == "leave":
                    raise Stop("FAILED" if outcome == "refuse" else "WAITING_FOR_TSQ")
                self.events["MOVED_TO_TSQ"] += 1
                self.events["OPERATOR_RETRY"] += 1
                left = node["attempts"]

    def run_step(self, node):
        self.step(node)
        self.done(node, {"value": node["value"]})

    def run_wait(self, node):
        if node["come"] == "cancel":
            self.events["CANCEL_REQUESTED"] += 1
            raise Stop("CANCELED")
        if node["come"] == "never":
            self.note(node)
            if node["to"] == "fail":
                raise Stop("WAITING_FOR_TSQ")
            return
        if node["come"] == "asked":
            self.respond(node)
        result = result_of(node)
        self.note(node, result=result)
        self.done(node, result)

    def run_sleep(self, node):
        self.note(node)

    def run_set(self, node):
        self.note(node)
        self.state.update(patch_of(node, self.state, self.results))

    def run_if(self, node):
        is_then = holds(node, self.state)
        self.note(node, result=is_then)
        self.run(node["then" if is_then else "else"])

    def run_loop(self, node):
        is_over, rounds = False, 0
        while not is_over and rounds < node["times"]:
            self.round, rounds = f"[{rounds}]", rounds + 1
            self.run(node["nodes"])
            is_over = holds(node, self.state)
            self.note(node, result=is_over)
        self.round = ""
        if not is_over and node["to"] == "fail":
            self.note(node, outcome="fail")
            raise Stop("WAITING_FOR_TSQ")
        result = loop_result(node, rounds, self.results)
        self.note(node, result=result)
        self.done(node, result)

    def run_child(self, node):
        child = Model(node["saga"])
        self.children.append(child)
        self.events["REPLY"] += 1
        if child.status != "COMPLETED":
            self.note(node, outcome="refuse")
            raise Stop("FAILED")
        self.note(node, result=child.result)
        self.done(node, child.result)

    def all(self):
        """This saga and its children, by path."""
        found = {self.saga["path"]: self}
        for child in self.children:
            found.update(child.all())
        return found


def patch_of(node, state, results):
    def value(of):
        if isinstance(of, dict):
            return state[of["copy"]] if "copy" in of else results[of["result"]]
        return of

    return {member: value(of) for member, of in node["patch"].items()}


def loop_result(node, rounds, results):
    return {"rounds": rounds, "last": results[node["nodes"][-1]["name"]]}


def holds(node, state):
    member, operator, value = node["test"]
    found = state.get(member)
    is_true = same(found, value) if operator == "==" else found is not None and found is not False
    return is_true != node["is_not"]


def same(left, right):
    """JSON's: true is not 1."""
    return type(left) is type(right) and left == right
