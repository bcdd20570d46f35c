/*
 * walk_test.c - what an activation runs, records and waits for, given the records that are there: steps, retries, waits, branches.
 */
#include "process/definition.h"
#include "test/unit/process/engine.h"

#define RETRY "'retry': {'attempts': 3, 'delay': '1s', 'factor': 2, 'delay_max': '1500ms'}"

#define assert_runs(engine, expected) assert_string_equal(engine_run(engine), (expected))

/* ---- steps ---- */

TEST(walk_passes_recorded_steps)
{
    scoped(engine_free) Engine *engine = engine_new(
        "'steps': [{'name': 'a', 'exec': 'x'}, {'name': 'b', 'wait': {'response': 'go'}}, {'name': 'c', 'exec': 'x'}]");

    assert_runs(engine, "run a; a done; b:begin; ASYNC b for signal go*1");
    engine_signal(engine, "go", "{\"n\": 7}");
    assert_runs(engine, "b done takes {[0,1)}; run c; c done; complete {\"a\": 1}");
}

TEST(walk_saves_results_and_patches_the_state)
{
    scoped(engine_free) Engine *engine = engine_new("'steps': [{'name': 'a', 'exec': 'x', 'save': {'from': "
                                                    "'{{result.of}}'}}, {'name': 'b', 'set': {'c': '{{state.from}}'}}],"
                                                    "'result': {'c': '{{state.c}}'}");

    assert_runs(engine, "run a; a done {\"from\": \"a\"}; b done {\"c\": \"a\"}; complete {\"c\": \"a\"}");
    assert_string_equal(engine_state(engine), "{\"a\": 1, \"c\": \"a\", \"from\": \"a\"}");
}

/* What a kind that has a result is given; a new one has its row here. */
static const char *const kinds_with_result[STEP_KIND_COUNT] = {
    [STEP_EXEC]     = "'exec': 'x'",
    [STEP_SQL]      = "'sql': 'public.act'",
    [STEP_HTTP]     = "'http': {'method': 'GET', 'url': 'https://example.com/'}",
    [STEP_COMMAND]  = "'command': {'type': 'pack'}",
    [STEP_WALLET]   = "'wallet': {'kind': 'topup', 'owner': 'ann', 'amount': 1}",
    [STEP_WAIT]     = "'wait': {'response': 'go'}",
    [STEP_PARALLEL] = "'parallel': {'x': [{'name': 'a', 'exec': 'x'}]}",
    [STEP_EACH]     = "'each': '{{state.list}}', 'steps': [{'name': 'a', 'exec': 'x'}]",
    [STEP_REPEAT]   = "'repeat': [{'name': 'a', 'exec': 'x'}], 'until': 'true'",
    [STEP_PROCESS]  = "'process': {'type': 'pack'}",
};

TEST(walk_saves_the_result_of_every_kind_that_has_one)
{
    for (StepKind kind = 0; kind < STEP_KIND_COUNT; kind++) {
        scoped(arena_free) Arena   *arena  = arena_new(ARENA_BYTES_DEFAULT);
        scoped(engine_free) Engine *engine = NULL;

        assert_int_equal(kinds_with_result[kind] != NULL, step_kinds[kind].has_result);
        if (!step_kinds[kind].has_result)
            continue;
        engine = engine_new(
            arena_print(arena,
                        "'steps': [{'name': 's', %s, 'save': {'kept': '{{result}}'}}, {'name': 'last', 'exec': 'x'}]",
                        kinds_with_result[kind]));
        engine_patch(engine, "{\"list\": [5]}");
        engine_signal(engine, "go", "7");
        engine_acts(engine, "s", "done");
        (void)engine_run(engine);
        if (step_kinds[kind].acts == ACTS_SENDS) {
            engine_reply(engine, "s", "COMPLETED", "{\"n\": 7}");
            (void)engine_run(engine);
        }
        assert_contains(engine_state(engine), "\"kept\": ");
    }
}

TEST(walk_takes_the_way_that_was_recorded)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [{'name': 'is', 'when': 'state.a == 1', 'then': 'wait', 'else': 'end'},"
                   " {'name': 'wait', 'wait': {'response': 'go'}}, {'name': 'b', 'exec': 'x'}]");

    assert_runs(engine, "is done; wait:begin; ASYNC wait for signal go*1");
    engine_signal(engine, "go", "null");
    engine_patch(engine, "{\"a\": 2}");
    assert_runs(engine, "wait done takes {[0,1)}; run b; b done; complete {\"a\": 2}");
}

TEST(walk_refuses_with_the_reason_that_was_recorded)
{
    scoped(engine_free) Engine *engine =
        engine_new("'on_failure': 'troubleshoot', 'steps': [{'name': 'no', 'fail': 'a is {{state.a}}'}]");

    engine_verdict(engine, WRITE_WRITTEN);
    engine_verdict(engine, WRITE_LOST);
    assert_runs(engine, "no refused: a is 1; not written");
    engine_patch(engine, "{\"a\": 2}");
    assert_runs(engine, "reject: step no: a is 1");
}

/* ---- attempts ---- */

TEST(walk_retries_by_the_policy)
{
    scoped(engine_free) Engine *engine = engine_new("'steps': [{'name': 'a', 'exec': 'x', " RETRY "}]");

    engine_acts(engine, "a", "failed, failed, done");
    assert_runs(engine, "run a; a failed: no; RETRY a in 1 s");
    engine_advance_ms(engine, 999);
    assert_runs(engine, "RETRY a in 0.001 s");
    engine_advance(engine);
    assert_runs(engine, "run a; a failed: no; RETRY a in 1.5 s");
    engine_advance(engine);
    assert_runs(engine, "run a; a done; complete {\"a\": 1}");
}

TEST(walk_fails_when_the_attempts_are_used_up)
{
    scoped(engine_free) Engine *engine =
        engine_new("'on_failure': 'troubleshoot', 'steps': [{'name': 'a', 'exec': 'x', " RETRY "}]");

    engine_acts(engine, "a", "failed");
    assert_runs(engine, "run a; a failed: no; RETRY a in 1 s");
    engine_advance(engine);
    assert_runs(engine, "run a; a failed: no; RETRY a in 1.5 s");
    engine_advance(engine);
    engine_verdict(engine, WRITE_WRITTEN);
    engine_verdict(engine, WRITE_LOST);
    assert_runs(engine, "run a; a failed: no; not written");
    assert_runs(engine, "fail: step a: no"); /* by the record alone */
    engine_retry(engine);
    assert_runs(engine, "run a; a failed: no; RETRY a in 1 s"); /* as many attempts again */
}

TEST(walk_makes_no_attempt_after_a_final_failure_or_a_refusal)
{
    static const char *const ends[][2] = {
        {"final",   "fail: step a: no"  },
        {"refused", "reject: step a: no"}
    };

    for (size_t i = 0; i < COUNT(ends); i++) {
        scoped(engine_free) Engine *engine =
            engine_new("'on_failure': 'troubleshoot', 'steps': [{'name': 'a', 'exec': 'x', " RETRY "}]");
        const char *expected;

        engine_acts(engine, "a", ends[i][0]);
        engine_verdict(engine, WRITE_WRITTEN);
        engine_verdict(engine, WRITE_LOST);
        expected = i ? "run a; a refused: no; not written" : "run a; a final: no; not written";
        assert_runs(engine, expected);
        assert_runs(engine, ends[i][1]);
    }
}

/* What says nothing about the step costs no attempt; what is wrong with the step fails it for good. */
TEST(walk_judges_the_error_of_an_action)
{
    static const char *const ends[][2] = {
        {"ERR_UNAVAILABLE", "run a; released"                                           },
        {"ERR_TIMEOUT",     "run a; released"                                           },
        {"ERR_UNKNOWN",     "run a; released"                                           },
        {"ERR_STOPPING",    "run a; released"                                           },
        {"ERR_BUSY",        "run a; postponed: ERR_BUSY"                                },
        {"ERR_INVALID",     "run a; a final: ERR_INVALID; fail: step a: ERR_INVALID"    },
        {"ERR_LIMIT",       "run a; a final: ERR_LIMIT; fail: step a: ERR_LIMIT"        },
        {"ERR_NOT_FOUND",   "run a; a final: ERR_NOT_FOUND; fail: step a: ERR_NOT_FOUND"},
        {"ERR_DENIED",      "run a; a final: ERR_DENIED; fail: step a: ERR_DENIED"      },
        {"ERR_INTERNAL",    "run a; settled fail: ERR_INTERNAL"                         },
    };

    for (size_t i = 0; i < COUNT(ends); i++) {
        scoped(engine_free) Engine *engine =
            engine_new("'on_failure': 'troubleshoot', 'steps': [{'name': 'a', 'exec': 'x', " RETRY "}]");

        engine_acts(engine, "a", ends[i][0]);
        assert_runs(engine, ends[i][1]);
    }
}

/* ---- writes ---- */

TEST(walk_does_nothing_more_without_its_lease)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [{'name': 'a', 'exec': 'x'}, {'name': 'b', 'exec': 'x'}]");

    engine_verdict(engine, WRITE_LOST);
    assert_runs(engine, "run a; not written");
}

TEST(walk_computes_a_stale_patch_again)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [{'name': 'b', 'set': {'c': '{{state.a}}'}}, {'name': 'c', 'wait': {'response': 'go'}}]");

    engine_verdict(engine, WRITE_STALE);
    assert_runs(engine, "not written; b done {\"c\": 1}; c:begin; ASYNC c for signal go*1");
}

TEST(walk_fails_a_step_whose_patch_makes_the_state_too_large)
{
    scoped(engine_free) Engine *engine = engine_new(
        "'on_failure': 'fail', 'steps': [{'name': 'a', 'exec': 'x', 'save': {'b': 1}}, {'name': 'b', 'exec': 'x'}]");

    engine_verdict(engine, WRITE_TOO_LARGE);
    assert_runs(engine, "run a; not written; a:done done; "
                        "reject: step a: the state of the process would have more than 1048576 bytes");
}

/* What has happened is kept, because only its patch needs the row that another transaction has locked. */
TEST(walk_keeps_the_result_of_a_step_while_the_process_is_locked)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [{'name': 'a', 'exec': 'x', 'save': {'b': '{{result.of}}'}}, {'name': 'b', 'exec': 'x'}]");

    for (int i = 0; i < 6; i++) /* at once, and after 5, 10, 20, 40 and 80 ms */
        engine_verdict(engine, WRITE_BUSY);
    assert_runs(engine, "run a; not written; not written; not written; not written; not written; not written; "
                        "a:done done; postponed: another transaction has the process locked");
    assert_runs(engine, "a done {\"b\": \"a\"}; run b; b done; complete {\"a\": 1, \"b\": \"a\"}");
}

/* ---- waits ---- */

TEST(walk_waits_for_as_many_responses_as_it_needs)
{
    scoped(engine_free) Engine *engine = engine_new("'steps': [{'name': 'two', 'wait': {'response': 'go', 'count': "
                                                    "2}}, {'name': 'one', 'wait': {'response': 'go'}}],"
                                                    "'result': ['{{steps.two}}', '{{steps.one}}']");

    engine_signal(engine, "go", "1");
    engine_signal(engine, "other", "0");
    assert_runs(engine, "two:begin; ASYNC two for signal go*2");
    engine_signal(engine, "go", "2");
    assert_runs(engine, "two done takes {[0,1),[1,2)}; one:begin; ASYNC one for signal go*3");
    engine_signal(engine, "go", "3");
    assert_runs(engine, "one done takes {[2,3)}; complete [[1,2], 3]");
}

TEST(walk_begins_again_when_a_response_comes_while_it_suspends)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [{'name': 'w', 'wait': {'response': 'go'}}], 'result': '{{steps.w}}'");

    engine_verdict(engine, WRITE_WRITTEN);
    engine_verdict(engine, WRITE_MET);
    assert_runs(engine, "w:begin; not written; ASYNC w for signal go*1");
}

TEST(walk_times_a_wait_out_from_its_beginning)
{
    scoped(engine_free) Engine *engine =
        engine_new("'on_failure': 'troubleshoot', 'steps': ["
                   "{'name': 'w', 'wait': {'response': 'go'}, 'timeout': '10s', 'on_timeout': 'continue'},"
                   "{'name': 'v', 'wait': {'response': 'go'}, 'timeout': '5s', 'on_timeout': 'fail'}]");

    assert_runs(engine, "w:begin; ASYNC w for signal go*1 in 10 s");
    engine_advance_ms(engine, 4000);
    assert_runs(engine, "ASYNC w for signal go*1 in 6 s");
    engine_advance(engine);
    assert_runs(engine, "w timed_out {}; v:begin; ASYNC v for signal go*1 in 5 s");
    engine_advance(engine);
    assert_runs(engine, "v timed_out: timed out {}; fail: step v: timed out");
    engine_advance_ms(engine, 60000);
    engine_retry(engine);
    assert_runs(engine, "ASYNC v for signal go*1 in 5 s"); /* anew */
}

/* A response that came before the timeout is recorded meets the wait, however late it is. */
TEST(walk_prefers_a_response_to_a_timeout)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [{'name': 'w', 'wait': {'response': 'go'}, 'timeout': '10s', 'on_timeout': 'continue'}]");

    assert_runs(engine, "w:begin; ASYNC w for signal go*1 in 10 s");
    engine_advance_ms(engine, 20000);
    engine_signal(engine, "go", "1");
    assert_runs(engine, "w done takes {[0,1)}; complete {\"a\": 1}");
}

#define RACE "{'name': 'w', 'wait': {'any': ['yes', 'no']}"

TEST(walk_takes_the_first_response_of_a_race)
{
    scoped(engine_free) Engine *engine = engine_new(
        "'steps': [" RACE "}, {'name': 'is', 'when': 'steps.w.response == \\\"no\\\"', 'then': 'v', 'else': 'end'},"
        " {'name': 'v', 'wait': {'any': ['yes', 'no']}}], 'result': ['{{steps.w}}', '{{steps.v}}']");

    assert_runs(engine, "w:begin; ASYNC w for signal yes*1, signal no*1");
    engine_signal(engine, "other", "0");
    engine_signal(engine, "no", "{\"n\": 1}");
    engine_signal(engine, "yes", "2");
    assert_runs(engine,
                "w done takes {[0,1)}; is done; v done takes {[0,1)}; complete [{\"response\": \"no\", \"payload\": "
                "{\"n\": 1}}, {\"response\": \"yes\", \"payload\": 2}]");
}

TEST(walk_counts_what_a_race_has_not_taken)
{
    scoped(engine_free) Engine *engine = engine_new("'steps': [" RACE "}, {'name': 'v', 'wait': {'response': 'no'}}]");

    engine_signal(engine, "yes", "1");
    assert_runs(engine, "w done takes {[0,1)}; v:begin; ASYNC v for signal no*1");
}

TEST(walk_times_a_race_out)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [" RACE ", 'timeout': '10s', 'on_timeout': 'continue'}], 'result': '{{steps.w}}'");

    assert_runs(engine, "w:begin; ASYNC w for signal yes*1, signal no*1 in 10 s");
    engine_advance(engine);
    engine_verdict(engine, WRITE_STALE); /* the state has changed at the same moment */
    assert_runs(engine, "not written; w timed_out {}; complete null");
}

TEST(walk_gives_each_response_to_one_of_two_races)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [{'name': 'p', 'parallel': {'x': [{'name': 'w', 'wait': {'any': ['a', 'b']}}],"
                   " 'y': [{'name': 'v', 'wait': {'any': ['b', 'c']}}]}}], 'result': '{{steps.p}}'");

    engine_signal(engine, "b", "1");
    assert_runs(engine, "w done takes {[0,1)}; v:begin; ASYNC v for signal b*2, signal c*1");
    engine_signal(engine, "a", "2");
    assert_runs(engine, "ASYNC v for signal b*2, signal c*1");
    engine_signal(engine, "b", "3");
    assert_runs(
        engine,
        "v done takes {[1,2)}; p done; complete {\"x\":{\"response\": \"b\", \"payload\": 1},\"y\":{\"response\": "
        "\"b\", \"payload\": 3}}");
}

TEST(walk_leaves_a_response_to_the_wait_that_it_names)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [{'name': 'w', 'wait': {'response': 'go'}, 'timeout': '10s', 'on_timeout': 'continue'},"
                   " {'name': 'v', 'wait': {'response': 'go', 'count': 2}}], 'result': ['{{steps.w}}', '{{steps.v}}']");

    engine_signal_to(engine, "v", "go", "1");
    assert_runs(engine, "w:begin; ASYNC w for signal go*1 in 10 s");
    engine_advance(engine);
    assert_runs(engine, "w timed_out {}; v:begin; ASYNC v for signal go*2");
    engine_signal_to(engine, "w", "go", "2"); /* too late */
    assert_runs(engine, "ASYNC v for signal go*2");
    engine_signal(engine, "go", "3");
    assert_runs(engine, "v done takes {[0,1),[2,3)}; complete [null, [1,3]]");
}

TEST(walk_waits_for_a_condition_on_the_state)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [{'name': 'w', 'wait': {'until': 'state.a > 2'}}, {'name': 'b', 'exec': 'x'}]");

    assert_runs(engine, "w:begin; ASYNC w for any *1");
    engine_signal(engine, "add", "null");
    assert_runs(engine, "ASYNC w for any *2");
    engine_patch(engine, "{\"a\": 3}");
    assert_runs(engine, "w done; run b; b done; complete {\"a\": 3}");
}

TEST(walk_sleeps_from_the_recorded_time)
{
    scoped(engine_free) Engine *engine = engine_new("'steps': [{'name': 'z', 'sleep': '30s'}]");

    assert_runs(engine, "z:begin; ASYNC z in 30 s");
    engine_advance_ms(engine, 29000);
    assert_runs(engine, "ASYNC z in 1 s");
    engine_advance(engine);
    assert_runs(engine, "z done; complete {\"a\": 1}");
}

/* ---- commands and children ---- */

TEST(walk_sends_a_command_once_and_awaits_its_reply)
{
    scoped(engine_free) Engine *engine = engine_new("'steps': [{'name': 'c', 'command': {'type': 'pack'}, 'save': "
                                                    "{'n': '{{result.n}}'}}, {'name': 'b', 'exec': 'x'}]");

    assert_runs(engine, "send shop/pack; REPLY c for reply c*1");
    assert_runs(engine, "REPLY c for reply c*1");
    engine_reply(engine, "c", "COMPLETED", "{\"n\": 7}");
    assert_runs(engine, "c done {\"n\": 7}; run b; b done; complete {\"a\": 1, \"n\": 7}");
}

TEST(walk_takes_the_failure_of_a_child_as_a_refusal)
{
    static const char *const ends[][2] = {
        {"FAILED",      "c refused: FAILED: no reason was given; reject: step c: FAILED: no reason was given"},
        {"COMPENSATED",
         "c refused: COMPENSATED: no reason was given; reject: step c: COMPENSATED: no reason was given"     },
        {"CANCELED",    "c final: CANCELED: no reason was given; fail: step c: CANCELED: no reason was given"},
    };

    for (size_t i = 0; i < COUNT(ends); i++) {
        scoped(engine_free) Engine *engine = engine_new(
            "'on_failure': 'troubleshoot', 'steps': [{'name': 'c', 'process': {'type': 'part'}, " RETRY "}]");

        assert_runs(engine, "send process:shop/part; REPLY c for reply c*1");
        engine_reply(engine, "c", ends[i][0], /* result= */ NULL);
        assert_runs(engine, ends[i][1]);
    }
}

/* Each time the arena of the attempt would be full at another place, if templates could fill it: there is always space for the error. */
TEST(walk_fails_a_step_whose_templates_fill_the_memory_of_an_attempt)
{
    enum { MANY = 16, FEW = 3, SMALL = 43, X_SIZE = 1000000 };
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    char                     *x     = memset(arena_alloc(arena, X_SIZE + 1), 'x', X_SIZE);
    Text                      steps;

    text_init(&steps, arena, TEXT_MAX_BODY);
    text_append(&steps, "'on_failure': 'fail', 'steps': [{'name': 'h', 'http': {'method': 'GET', 'url': "
                        "'http://127.0.0.1/', 'headers': {");
    for (int i = 0; i < MANY; i++)
        text_print(&steps, "'M%d': '{{state.x}}{{state.x}}{{state.x}}{{state.x}}', ", i);
    for (int i = 0; i < FEW; i++)
        text_print(&steps, "'F%d': '{{state.x}}', ", i);
    text_append(&steps, "'R': '{{state.rest}}', ");
    for (int i = 0; i < SMALL; i++)
        text_print(&steps, "'S%d': '{{state.a}}', ", i);
    text_append(&steps, "'N': '{{state.none}}'}}}]");
    for (int rest = 92000; rest < 105000; rest += 1040) {
        scoped(engine_free) Engine *engine = engine_new(text_string(&steps));

        engine_patch(engine, arena_print(arena, "{\"x\": \"%s\", \"rest\": \"%.*s\"}", x, rest, x));
        assert_runs(engine, "h final: the rendered values are larger than 50331648 bytes together; "
                            "reject: step h: the rendered values are larger than 50331648 bytes together");
    }
}

/* ---- branches ---- */

#define PARALLEL                                                                                                     \
    "'steps': [{'name': 'p', 'parallel': {'x': [{'name': 'a', 'exec': 'x', " RETRY "}, {'name': 'b', 'exec': 'x'}]," \
    " 'y': [{'name': 'w', 'wait': {'response': 'go'}}]}}, {'name': 'z', 'exec': 'x'}]"

TEST(walk_goes_on_beside_a_branch_that_waits)
{
    scoped(engine_free) Engine *engine = engine_new(PARALLEL ", 'result': '{{steps.p}}'");

    engine_acts(engine, "a", "failed, done");
    assert_runs(engine, "run a; a failed: no; w:begin; ASYNC w for signal go*1 in 1 s");
    engine_advance(engine);
    assert_runs(engine, "run a; a done; run b; b done; ASYNC w for signal go*1");
    engine_signal(engine, "go", "1");
    assert_runs(engine, "w done takes {[0,1)}; p done; run z; z done; complete {\"x\":{\"of\": \"b\"},\"y\":1}");
}

TEST(walk_begins_no_branch_after_one_has_failed)
{
    scoped(engine_free) Engine *engine =
        engine_new("'on_failure': 'fail', 'steps': [{'name': 'p', 'parallel': {'x': [{'name': 'a', 'exec': 'x'}],"
                   " 'y': [{'name': 'b', 'exec': 'x'}]}}]");

    engine_acts(engine, "a", "final");
    assert_runs(engine, "run a; a final: no; reject: step a: no");
}

static void assert_runs_beside(const char *list, const char *record, const char *failed, const char *expected)
{
    scoped(arena_free) Arena   *arena = arena_new(ARENA_BYTES_DEFAULT);
    scoped(engine_free) Engine *engine =
        engine_new(arena_print(arena, "'on_failure': 'fail', 'steps': [{'name': 'p', %s}]", list));

    engine_patch(engine, "{\"list\": [1, 2]}");
    engine_beside(engine, record);
    engine_acts(engine, failed, "final");
    assert_runs(engine, expected);
}

#define TWO "[{'name': 'a', 'exec': 'x'}, {'name': 'c', 'exec': 'x'}]"

/* The step that runs meanwhile ends, and is recorded. */
TEST(walk_begins_no_step_after_another_branch_has_failed)
{
    assert_runs_beside("'parallel': {'x': " TWO ", 'y': [{'name': 'b', 'exec': 'x'}]}", "a", "b",
                       "run a; run b; b final: no; a done; reject: step b: no");
    assert_runs_beside("'each': '{{state.list}}', 'concurrency': 2, 'steps': " TWO, "a[0]", "a[1]",
                       "p:begin; run a[0]; run a[1]; a[1] final: no; a[0] done; reject: step a[1]: no");
}

TEST(walk_begins_no_branch_after_one_was_interrupted)
{
    scoped(engine_free) Engine *engine = engine_new(
        "'steps': [{'name': 'p', 'parallel': {'x': [{'name': 'a', 'exec': 'x'}], 'y': [{'name': 'b', 'exec': 'x'}]}}]");

    engine_acts(engine, "a", "ERR_UNAVAILABLE");
    assert_runs(engine, "run a; released");
}

/* What waits in one branch does not keep the failure of another one from ending the process. */
TEST(walk_fails_beside_a_branch_that_waits)
{
    scoped(engine_free) Engine *engine = engine_new(
        "'on_failure': 'fail', 'steps': [{'name': 'p', 'parallel': {'x': [{'name': 'w', 'wait': {'response': 'go'}}],"
        " 'y': [{'name': 'b', 'exec': 'x'}]}}]");

    engine_acts(engine, "b", "final");
    assert_runs(engine, "w:begin; run b; b final: no; reject: step b: no");
}

#define EACH                                                                         \
    "'steps': [{'name': 'e', 'each': '{{state.list}}', 'concurrency': 2, 'steps': [" \
    "{'name': 'a', 'exec': 'x', " RETRY ", 'compensate': {'exec': 'x'}}]}, {'name': 'z', 'exec': 'x'}]"

TEST(walk_runs_each_item_at_most_so_many_at_once)
{
    scoped(engine_free) Engine *engine = engine_new(EACH ", 'result': '{{steps.e}}'");

    engine_patch(engine, "{\"list\": [5, 6, 7, 8]}");
    engine_acts(engine, "a[0]", "failed, done");
    engine_acts(engine, "a[2]", "failed, done");
    assert_runs(
        engine,
        "e:begin; run a[0]; a[0] failed: no; run a[1]; a[1] done; run a[2]; a[2] failed: no; RETRY a[0] in 1 s");
    engine_patch(engine, "{\"list\": []}"); /* it runs over the items that it began with */
    engine_advance(engine);
    assert_runs(engine, "run a[0]; a[0] done; run a[2]; a[2] done; run a[3]; a[3] done; e done; run z; z done; "
                        "complete [{\"of\": \"a[0]\"},{\"of\": \"a[1]\"},{\"of\": \"a[2]\"},{\"of\": \"a[3]\"}]");
}

TEST(walk_saves_the_results_of_a_parallel_and_an_each)
{
    scoped(engine_free) Engine *engine = engine_new(
        "'steps': [{'name': 'p', 'parallel': {'x': [{'name': 'a', 'exec': 'x'}]}, 'save': {'p': '{{result.x.of}}'}}, "
        "{'name': 'e', 'each': '{{state.list}}', 'steps': [{'name': 'b', 'exec': 'x'}], 'save': {'e': "
        "'{{result.0.of}}'}}]");

    engine_patch(engine, "{\"list\": [5]}");
    assert_runs(engine, "run a; a done; p done {\"p\": \"a\"}; e:begin; run b[0]; b[0] done; e done {\"e\": \"b[0]\"}; "
                        "complete {\"a\": 1, \"e\": \"b[0]\", \"list\": [5], \"p\": \"a\"}");
}

/* ---- compensation ---- */

#define THREE                                                                                                      \
    "'steps': [{'name': 'a', 'exec': 'x', 'compensate': {'exec': 'x', " RETRY "}},"                                \
    " {'name': 'b', 'exec': 'x'}, {'name': 'c', 'exec': 'x', 'compensate': {'exec': 'x'}}, {'name': 'd', 'exec': " \
    "'x'}]"

TEST(walk_compensates_in_reverse_order)
{
    scoped(engine_free) Engine *engine = engine_new(THREE);

    engine_acts(engine, "d", "refused");
    assert_runs(engine, "run a; a done; run b; b done; run c; c done; run d; d refused: no; compensating: step d: no; "
                        "run ~c; ~c done; run ~a; ~a done; compensated; reject: step d: no");
}

TEST(walk_retries_a_compensation_before_the_next_one)
{
    scoped(engine_free) Engine *engine = engine_new(THREE);

    engine_acts(engine, "d", "final");
    engine_acts(engine, "~a", "failed, failed, failed, done");
    assert_runs(engine, "run a; a done; run b; b done; run c; c done; run d; d final: no; compensating: step d: no; "
                        "run ~c; ~c done; run ~a; ~a failed: no; RETRY ~a in 1 s");
    engine_advance(engine);
    assert_runs(engine, "run ~a; ~a failed: no; RETRY ~a in 1.5 s");
    engine_advance(engine);
    assert_runs(engine, "run ~a; ~a failed: no; fail: step ~a: no"); /* the operator's */
    engine_retry(engine);
    assert_runs(engine, "run ~a; ~a done; compensated; reject: step d: no");
}

TEST(walk_compensates_the_items_of_an_each_in_reverse_order)
{
    scoped(engine_free) Engine *engine = engine_new(EACH);

    engine_patch(engine, "{\"list\": [5, 6]}");
    engine_acts(engine, "z", "refused");
    assert_runs(engine, "e:begin; run a[0]; a[0] done; run a[1]; a[1] done; e done; run z; z refused: no; "
                        "compensating: step z: no; run ~a[1]; ~a[1] done; run ~a[0]; ~a[0] done; compensated; "
                        "reject: step z: no");
}

/* Its result could not be saved, but it has happened. */
TEST(walk_compensates_a_step_that_could_not_be_recorded)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [{'name': 'a', 'exec': 'x', 'save': {'b': '{{result.missing}}'},"
                   " 'compensate': {'exec': 'x'}}, {'name': 'b', 'exec': 'x'}]");
    const char *done = engine_run(engine);

    assert_contains(done, "run a; a:done done; compensating: step a: ");
    assert_contains(done, "; run ~a; ~a done; compensated; reject: step a: ");
}

TEST(walk_is_canceled_before_the_next_step)
{
    scoped(engine_free) Engine *engine =
        engine_new("'on_failure': 'fail', 'steps': [{'name': 'a', 'exec': 'x', 'compensate': {'exec': 'x'}}, {'name': "
                   "'w', 'wait': {'response': 'go'}}]");

    assert_runs(engine, "run a; a done; w:begin; ASYNC w for signal go*1");
    engine_cancel(engine);
    assert_runs(engine,
                "compensating: canceled by an operator; run ~a; ~a done; compensated; reject: canceled by an operator");
}

TEST(walk_obeys_the_deadline)
{
    static const char *const ends[][2] = {
        {"compensate",   "compensating: the deadline of the process has passed; run ~a; ~a done; compensated; "
                       "reject: the deadline of the process has passed"},
        {"troubleshoot", "fail: the deadline of the process has passed"                      },
        {"fail",         "reject: the deadline of the process has passed"                    },
    };

    for (size_t i = 0; i < COUNT(ends); i++) {
        scoped(engine_free) Engine *engine =
            engine_new("'steps': [{'name': 'a', 'exec': 'x', 'compensate': {'exec': 'x'}},"
                       " {'name': 'w', 'wait': {'response': 'go'}}]");

        engine_deadline(engine, 5000, ends[i][0]);
        assert_runs(engine, "run a; a done; w:begin; ASYNC w for signal go*1 in 5 s");
        engine_advance(engine);
        assert_runs(engine, ends[i][1]);
    }
}
