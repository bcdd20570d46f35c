#!/usr/bin/env python3
"""monitoring - the board and the rules of examples/monitoring name metrics and labels that pawl has, and /metrics is well-formed."""
import json
import os
import re
import subprocess

from bus_commands import send
from checks import stop_clean
from pawl_test import TIMEOUT_S, Database, Pawl, main, setting, test, wait_until

FOLDER = os.path.join(setting("PAWL_SOURCE"), "examples/monitoring")
SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\]|\\["\\n])*",?)*)\})? (-?[0-9.e+]+|NaN|[+-]Inf)$')
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')


def exposition(text):
    """{name: [labels]}; each line is well-formed, each name has one HELP and TYPE before its samples, no sample comes twice."""
    names, kinds, seen, last = {}, {}, set(), None
    for line in text.splitlines():
        if line.startswith("#"):
            word, name, rest = line[2:].split(" ", 2)
            assert word in ("HELP", "TYPE") and rest and (word, name) not in seen, line
            seen.add((word, name))
            if word == "TYPE":
                assert rest in ("counter", "gauge", "histogram") and ("HELP", name) in seen, line
                kinds[name] = rest
                last = name
            continue
        found = SAMPLE.match(line)
        assert found, f"not a sample: {line}"
        name, labels = found[1], dict(LABEL.findall(found[2] or ""))
        family = re.sub("_(bucket|sum|count)$", "", name) if kinds.get(last) == "histogram" else name
        assert family == last, f"{name} is not beside its TYPE {last}"
        assert kinds[last] != "counter" or name.endswith("_total"), name
        key = (name, tuple(sorted(labels.items())))
        assert key not in seen, f"twice: {line}"
        seen.add(key)
        names.setdefault(name, []).append(labels)
    for name, kind in kinds.items():
        assert kind != "histogram" or any(labels.get("le") == "+Inf" for labels in names[name + "_bucket"]), name
    return names


def expressions():
    with open(os.path.join(FOLDER, "pawl-board.json"), encoding="utf-8") as file:
        board = json.load(file)
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) > 10
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    with open(os.path.join(FOLDER, "pawl-rules.yml"), encoding="utf-8") as file:
        found = re.findall(r"^ +expr: (.*)$", file.read(), re.M)
    assert len(found) > 8, found
    yield from found


def promtool(*arguments, stdin=""):
    done = subprocess.run(["promtool", *arguments], input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout + done.stderr


@test
def promtool_accepts_metrics_rules_and_the_expressions_of_the_board():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api,monitor")
        send(pawl, "shop", "ship")
        assert promtool("check", "metrics", stdin=pawl.http("GET", "/metrics").body.decode()) == ""
        rules = promtool("check", "rules", os.path.join(FOLDER, "pawl-rules.yml"))
        assert re.search(r"SUCCESS: [1-9]\d* rules found", rules), rules
        # What Grafana fills in stands for a duration or a value.
        filled = [re.sub(r"\$__\w+|\$\{__\w+\}", "5m", one) for one in expressions()]
        records = "".join(f"  - record: r:{number}\n    expr: {json.dumps(one)}\n" for number, one in enumerate(filled))
        file = os.path.join(pawl.home, "board.yml")
        with open(file, "w", encoding="utf-8") as out:
            out.write("groups:\n- name: board\n  rules:\n" + records)
        assert f"SUCCESS: {len(filled)} rules found" in promtool("check", "rules", file)


@test
def board_and_rules_name_what_metrics_have():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api,monitor")
        for path in ("/v1/domains", "/v1/commands"):
            pawl.http("GET", path)
        send(pawl, "shop", "charge")
        pawl.http("POST", "/v1/domains/shop/claim", {})
        wait_until(lambda: b"pawl_commands{" in pawl.http("GET", "/metrics").body, what="counted")
        names = exposition(pawl.http("GET", "/metrics").body.decode())
        asked = set()
        for text in expressions():
            assert text.count("(") == text.count(")") and text.count("{") == text.count("}"), text
            for name, matchers in re.findall(r"\b(pawl_[a-z0-9_]+)(?:\{([^}]*)\})?", text):
                assert name in names, (name, text)
                asked.add(name)
                for label, value in re.findall(r'(\w+)=~?"([^"]*)"', matchers):
                    known = {labels.get(label) for labels in names[name]}
                    assert all(word in known for word in value.split("|") if "$" not in word), (label, value, known, text)
            for labels in re.findall(r"by \(([^)]*)\)", text):
                for label in labels.split(", "):
                    assert label == "instance" or any(label in one for name in asked for one in names[name]), (label, text)
        stop_clean(pawl.server)


main()
