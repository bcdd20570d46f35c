#!/usr/bin/env python3
"""report - every measurement of docs/benchmarks.md still runs, and its results become that page, the README's tables and charts."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.dom.minidom

from pawl_test import main, setting, test

SOURCE = setting("PAWL_SOURCE")
BENCH = os.path.join(SOURCE, "test/bench")
sys.path.insert(0, BENCH)
# pylint: disable=wrong-import-position
import chart  # noqa: E402
import document  # noqa: E402
from paths import GROUPS  # noqa: E402
from rows import README_ROWS, ROWS, measured  # noqa: E402

NPM_PEERS = ("graphile", "dbos")
# All but what needs valgrind, which takes longer than all others.
NAMES = [name for name in GROUPS if name != "instructions"]


def bench(*arguments):
    return subprocess.run([os.path.join(BENCH, "report.py"), *arguments, "--build", setting("PAWL_BUILD")], capture_output=True, text=True,
                          check=False, env=os.environ)


def rendered(report):
    """{path: text} of the documents and charts with these results."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "docs"))
        for path in ("docs/benchmarks.md", "README.md"):
            shutil.copy(os.path.join(SOURCE, path), os.path.join(folder, path))
        document.write(report, folder)
        paths = [os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder) for name in names]
        return {path: open(os.path.join(folder, path), encoding="utf-8").read() for path in paths}


@test
def every_measurement_runs_and_is_shown():
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, "report.json")
        done = bench("report", "--smoke", "--no-peers", "--json", results, *NAMES)
        assert done.returncode == 0, done.stderr + done.stdout
        with open(results, encoding="utf-8") as file:
            report = json.load(file)
    assert report["machine"]["flush_ms"][0] > 0 and report["machine"]["cpus"] >= 1, report["machine"]
    found = rendered(report)
    for row in ROWS:
        if row.peer and row.peer.split(" ")[0] in NPM_PEERS:
            assert measured(row, report["groups"]) is None, row.key  # its peer is not there, so the ratio is not
            assert measured(row._replace(peer=None), report["groups"]).median > 0, row.key
        else:
            assert measured(row, report["groups"]).median > 0, row.key
            assert f"{row.text} | {document.target_text(row)} | {document.measured_text(row, measured(row, report['groups']))}" \
                in found["docs/benchmarks.md"], row.key
            assert row.command in done.stdout, row.key
    for name in ("throughput", "latency", "growth"):
        picture = found[f"docs/pictures/{name}.svg"]
        xml.dom.minidom.parseString(picture)
        assert "prefers-color-scheme: dark" in picture and f"pictures/{name}.svg" in found["docs/benchmarks.md"], name
    assert "| figure | target | measured | beside |\n" in found["README.md"], "the README has no tables"
    assert rendered(report) == found, "the same results give another text"


@test
def without_results_nothing_is_claimed():
    found = rendered(None)
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        assert found["README.md"] == file.read()
    assert not any(path.endswith(".svg") for path in found), list(found)
    page = found["docs/benchmarks.md"]
    for row in ROWS:
        assert f"| {row.text} | {document.target_text(row)} | {document.NOT_MEASURED} |" in page, row.key


@test
def the_page_has_a_place_for_each_table_and_the_rows_of_the_list():
    with open(os.path.join(SOURCE, "docs/benchmarks.md"), encoding="utf-8") as file:
        page = file.read()
    blocks = [match[2] for match in document.MARKED.finditer(page)]
    assert sorted(blocks) == sorted(document.blocks(None)), blocks
    missing = [row.key for row in ROWS if f"| {row.text} | {document.target_text(row)} |" not in page]
    assert missing == [], f"not on the page; ./dev bench report writes it, or enter them as not measured: {missing}"
    keys = [row.key for row in ROWS]
    assert len(set(keys)) == len(keys) and {row.group for row in ROWS} <= set(GROUPS), keys
    known = {(row.group, row.variant, row.field, row.peer) for row in ROWS}
    assert all(key in known for keys in README_ROWS.values() for key in keys), README_ROWS


@test
def a_miss_is_bold_and_has_its_reason():
    row = next(row for row in ROWS if row.group == "handlers")
    groups = {"handlers": {row.variant: [{"per_s": v} for v in (10, 30, 20)], row.peer: [{"per_s": 10}] * 3}}
    assert document.measured_text(row, measured(row, groups)) == "2.00 times (1.00 to 3.00): 20/s and 10/s"
    assert document.missed(groups) == "None."
    groups["handlers"][row.peer] = [{"per_s": 40}] * 3
    assert document.measured_text(row, measured(row, groups)).startswith("**0.50 times** (0.25 to 0.75)")
    assert row.why in document.missed(groups)


@test
def axes_begin_at_zero_and_labels_do_not_overlap():
    for most in (0.7, 3, 9.1, 99, 100, 101, 43210):
        marks = chart.ticks(most)
        assert marks[0] == 0 and marks[-1] >= most and 3 <= len(marks) <= 6, (most, marks)
    places = sorted(chart.labels_apart([50, 51, 52, 200, 199], 0, 200))
    assert all(b - a >= chart.LABEL_HEIGHT for a, b in zip(places, places[1:])) and 0 <= places[0] and places[-1] <= 200, places


@test
def unknown_groups_are_refused():
    done = bench("report", "handlrs")
    assert done.returncode == 2 and 'there is no group handlrs' in done.stderr, done.stderr


main()
