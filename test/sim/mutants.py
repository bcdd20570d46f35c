#!/usr/bin/env python3
"""Planted mistakes in the combiner and in suspended requests, to show that the simulation finds them.

    mutants.py --list                  the names
    mutants.py --sources               the files, below src
    mutants.py NAME SOURCE_DIR OUTPUT  writes the sources one after the other, with the mistake NAME; "none": as they are

A mistake replaces text that must stand exactly once in its file, so one that no longer fits the code fails the build.
"""
import sys
from pathlib import Path

COMBINER, QUEUE, SPLIT, SUSPEND = SOURCES = ("pg/combiner.c", "pg/combiner_queue.c", "pg/combiner_split.c", "http/suspend.c")
MUTANTS = {
    # Wrong resolves: the result that a caller gets for a commit.
    "doubt-as-timeout": (SPLIT, "    error.code = code;\n", "    error.code = code == ERR_UNKNOWN ? ERR_TIMEOUT : code;\n"),
    "doubt-as-done": (COMBINER, "    if (error->code == OK)\n        return;",
                      "    if (error->code == OK || error->code == ERR_UNKNOWN)\n        return;"),
    "doubt-run-again": (SPLIT, "return error_verdict(code) == VERDICT_FINAL &&",
                        "return (error_verdict(code) == VERDICT_FINAL || code == ERR_UNKNOWN) &&"),
    "error-of-neighbour": (COMBINER, "    for (int i = first; i < first + count; i++)\n        slot->entries",
                           "    for (int i = 0; i < first + count; i++)\n        slot->entries"),
    "failure-not-reported": (COMBINER, "    if (error->code != OK)\n        waiter->error", "    if (false)\n        waiter->error"),
    "half-forgotten": (SPLIT, "        range_run(split, first + half, count - half, sink);\n", ""),
    # One bad item fails its neighbours.
    "no-halves": (SPLIT, "count > 1 && failure_is_about_items(code, &error)", "count > 1 && false"),
    "lock-not-isolated": (SPLIT, 'strcmp(error->sqlstate, "55P03") == 0', "false"),
    # Nobody watches.
    "deadline-of-first": (COMBINER, "if (mono_before(slot->deadline.at, entry->deadline.at))", "if (false)"),
    "expiry-of-first": (QUEUE, "queue->count++ ? deadline_sooner(queue->expire_at, entry->deadline) : entry->deadline;",
                        "queue->count++ ? queue->expire_at : entry->deadline;"),
    "slow-unnoticed": (COMBINER, "        quick.again = deadline_sooner(quick.again, slot_is_slow_at(combiner, slot));\n", ""),
    "no-watcher": (COMBINER, "    if (combiner->queue.count > 0)\n        threads_wake(combiner);\n    mutex_unlock(&combiner->mutex);\n"
                   "    combiner_split_ranges", "    mutex_unlock(&combiner->mutex);\n    combiner_split_ranges"),
    "end-unnoticed": (COMBINER, "    combiner->is_parted = false;\n    if (combiner->queue.count > 0)\n        threads_wake(combiner);\n    return batch;",
                      "    combiner->is_parted = false;\n    return batch;"),
    "sooner-deadline-unnoticed": (COMBINER, "    if (batch_is_due(combiner, &beside, &again) ||\n        mono_before("
                                  "deadline_sooner(again, entry->deadline).at, combiner->watch_until.at))\n",
                                  "    if (batch_is_due(combiner, &beside, &again))\n"),
    # Limits.
    "weight-ignored": (QUEUE, "if (count > 0 && weight > options->weight_max)", "if (false)"),
    "slots-ignored": (COMBINER, "    if (quick.count >= options->slots)\n        return false;\n", ""),
    # Suspended requests.
    "resumed-too-early": (SUSPEND, "    if (request_let_go(request))\n        loop_post(",
                          "    (void)request_let_go(request);\n        loop_post("),
    "not-held": (SUSPEND, "    atomic_fetch_add(&request->holders, 1);\n", ""),
    "closed-twice": (SUSPEND, "!atomic_exchange(&request->watched, false)", "!atomic_load(&request->watched)"),
    "closed-unnoticed": (SUSPEND, "atomic_store(&request->watched, suspend->on_closed != NULL)", "atomic_store(&request->watched, false)"),
}


def main():
    if sys.argv[1] in ("--list", "--sources"):
        print("\n".join(MUTANTS if sys.argv[1] == "--list" else SOURCES))
        return
    name, source, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    file, old, new = MUTANTS[name] if name != "none" else (None, None, None)
    parts = []
    for path in SOURCES:
        text = (source / path).read_text(encoding="utf-8")
        if path == file:
            if text.count(old) != 1:
                sys.exit(f"mutants.py: {name}: its text stands {text.count(old)} times in {path}, not once")
            text = text.replace(old, new)
        parts.append(f'#line 1 "{source / path}"\n{text}')
    output.write_text("".join(parts), encoding="utf-8")


main()
