/*
 * repeat_test.c - rounds of a repeat: what runs again, what is decided once, how it ends.
 */
#include <string.h>

#include "test/unit/process/engine.h"

#define assert_runs(engine, expected) assert_string_equal(engine_run(engine), (expected))

#define ASK                   "{'name': 'ask', 'exec': 'x', 'compensate': {'exec': 'x'}}"
#define REPEAT(list, members) "{'name': 'poll', 'repeat': [" list "], " members "}"

/* Its condition names a step of the round. */
TEST(repeat_ends_after_the_round_after_which_the_condition_holds)
{
    scoped(engine_free) Engine *engine = engine_new("'steps': [" //
                                                    REPEAT(ASK, "'until': 'steps.ask.of == \\\"ask[2]\\\"',"
                                                                "'save': {'rounds': '{{result.rounds}}'}") //
                                                    "], 'result': '{{steps.poll}}'");

    assert_runs(engine, "run ask[0]; ask[0] done; poll[0] done; run ask[1]; ask[1] done; poll[1] done; run ask[2]; "
                        "ask[2] done; poll[2] done; poll done {\"rounds\": 3}; "
                        "complete {\"rounds\":3,\"last\":{\"of\": \"ask[2]\"}}");
}

/* What a round has taken stays taken, and its decision stays when the state changes later. */
TEST(repeat_passes_rounds_that_are_decided)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [" REPEAT("{'name': 'w', 'wait': {'response': 'go'}}, {'name': 'nap', 'sleep': '5s'}, "
                                       "{'name': 'n', 'set': {'n': '{{index}}'}}",
                                       "'until': 'state.over'") "], 'result': '{{state.n}}'");

    engine_signal(engine, "go", "1");
    assert_runs(engine, "w[0] done takes {[0,1)}; nap[0]:begin; ASYNC nap[0] in 5 s");
    engine_advance(engine);
    assert_runs(engine, "nap[0] done; n[0] done {\"n\": 0}; poll[0] done; w[1]:begin; ASYNC w[1] for signal go*2");
    engine_patch(engine, "{\"over\": true}");
    engine_signal(engine, "go", "2");
    assert_runs(engine, "w[1] done takes {[1,2)}; nap[1]:begin; ASYNC nap[1] in 5 s");
    engine_advance(engine);
    engine_verdict(engine, WRITE_WRITTEN);
    engine_verdict(engine, WRITE_WRITTEN);
    engine_verdict(engine, WRITE_WRITTEN);
    engine_verdict(engine, WRITE_LOST); /* of the end; the decision is recorded */
    assert_runs(engine, "nap[1] done; n[1] done {\"n\": 1}; poll[1] done; not written");
    engine_patch(engine, "{\"over\": false}");
    assert_runs(engine, "poll done; complete 1");
}

TEST(repeat_jumps_to_the_end_of_the_round)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [" REPEAT("{'name': 'first', 'when': 'index == 0', 'then': 'end'}, " ASK,
                                       "'until': 'steps.ask.of != null'") "], 'result': '{{steps.poll}}'");

    assert_runs(engine, "first[0] done; poll[0] done; first[1] done; run ask[1]; ask[1] done; poll[1] done; poll done; "
                        "complete {\"rounds\":2,\"last\":{\"of\": \"ask[1]\"}}");
}

/* ---- the rounds are used up ---- */

#define ASK_0_1 "run ask[0]; ask[0] done; poll[0] done; run ask[1]; ask[1] done; poll[1] done; "

/* An operator who has it tried again gives it as many again. */
TEST(repeat_fails_when_its_rounds_are_used_up)
{
    scoped(engine_free) Engine *engine = engine_new("'on_failure': 'troubleshoot', 'steps': [" //
                                                    REPEAT(ASK, "'until': 'index == 3', 'times': 2") "]");

    engine_verdict(engine, WRITE_WRITTEN);
    assert_runs(engine, ASK_0_1 "poll final: repeat \"poll\" did not end within 2 rounds; "
                                "fail: step poll: repeat \"poll\" did not end within 2 rounds");
    assert_runs(engine, "fail: step poll: repeat \"poll\" did not end within 2 rounds"); /* by the record alone */
    engine_retry(engine);
    assert_runs(engine, "run ask[2]; ask[2] done; poll[2] done; run ask[3]; ask[3] done; poll[3] done; poll done; "
                        "complete {\"a\": 1}");
}

TEST(repeat_goes_on_when_its_rounds_are_used_up)
{
    scoped(engine_free) Engine *engine = engine_new(
        "'steps': [" REPEAT(ASK,
                            "'until': 'false', 'times': 2, 'on_exhausted': 'continue'") "],"
                                                                                        "'result': '{{steps.poll}}'");

    assert_runs(engine, ASK_0_1 "poll done; complete {\"rounds\":2,\"last\":{\"of\": \"ask[1]\"}}");
}

/* ---- how it is stopped ---- */

TEST(repeat_compensates_all_rounds_in_reverse_order)
{
    scoped(engine_free) Engine *engine = engine_new("'steps': [" //
                                                    REPEAT(ASK ", {'name': 'n', 'set': {'n': 1}}",
                                                           "'until': 'index == 1'") //
                                                    ", {'name': 'z', 'exec': 'x'}]");

    engine_acts(engine, "z", "refused");
    assert_runs(engine,
                "run ask[0]; ask[0] done; n[0] done {\"n\": 1}; poll[0] done; run ask[1]; ask[1] done; n[1] done "
                "{\"n\": 1}; poll[1] done; poll done; run z; z refused: no; compensating: step z: no; "
                "run ~ask[1]; ~ask[1] done; run ~ask[0]; ~ask[0] done; compensated; reject: step z: no");
}

TEST(repeat_fails_with_a_step_of_a_round)
{
    scoped(engine_free) Engine *engine = engine_new("'steps': [" REPEAT(ASK, "'until': 'index == 1'") "]");

    engine_acts(engine, "ask[1]", "final");
    assert_runs(engine,
                "run ask[0]; ask[0] done; poll[0] done; run ask[1]; ask[1] final: no; compensating: step ask[1]: no; "
                "run ~ask[0]; ~ask[0] done; compensated; reject: step ask[1]: no");
}

TEST(repeat_begins_no_round_without_its_lease_or_after_a_cancellation)
{
    scoped(engine_free) Engine *engine = engine_new("'steps': [" REPEAT(ASK, "'until': 'index == 5'") "]");

    engine_verdict(engine, WRITE_WRITTEN);
    engine_verdict(engine, WRITE_LOST);
    assert_runs(engine, "run ask[0]; ask[0] done; not written");
    engine_cancel(engine);
    assert_runs(engine, "compensating: canceled by an operator; run ~ask[0]; ~ask[0] done; compensated; "
                        "reject: canceled by an operator");
}

/* ---- nesting ---- */

TEST(repeat_runs_inside_an_each_and_around_one)
{
    scoped(engine_free) Engine *engine =
        engine_new("'steps': [{'name': 'e', 'each': '{{state.list}}', 'concurrency': 2, 'steps': [" REPEAT(
            "{'name': 'p', 'parallel': {'x': [{'name': 'deep', 'repeat': [{'name': 'n', 'set': {'n': "
            "'{{item}}.{{index}}'}}], 'until': 'index == 0'}], 'y': [" ASK "]}}",
            "'until': 'index == 1 or item == 6'") "]}], 'result': '{{steps.e}}'");

    engine_patch(engine, "{\"list\": [5, 6]}");
    assert_runs(
        engine,
        "e:begin; n[0][0][0] done {\"n\": \"5.0\"}; deep[0][0][0] done; deep[0][0] done; run ask[0][0]; ask[0][0] "
        "done; p[0][0] done; poll[0][0] done; n[0][1][0] done {\"n\": \"5.0\"}; deep[0][1][0] done; deep[0][1] done; "
        "run ask[0][1]; ask[0][1] done; p[0][1] done; poll[0][1] done; poll[0] done; n[1][0][0] done {\"n\": "
        "\"6.0\"}; deep[1][0][0] done; deep[1][0] done; run ask[1][0]; ask[1][0] done; p[1][0] done; poll[1][0] done; "
        "poll[1] done; e done; "
        "complete [{\"rounds\":2,\"last\":{\"x\":{\"rounds\":1,\"last\":null},\"y\":{\"of\": \"ask[0][1]\"}}},"
        "{\"rounds\":1,\"last\":{\"x\":{\"rounds\":1,\"last\":null},\"y\":{\"of\": \"ask[1][0]\"}}}]");
}

/* ---- the limit of records ---- */

/* A round leaves a record for each step of its list and one for its decision, and the repeat one for its end: the last round that begins can be
 * recorded to its end. */
TEST(repeat_begins_no_round_that_cannot_be_recorded)
{
    static const struct {
        const char *steps, *last, *error;
    } rows[] = {
        {"'steps': [{'name': 'poll', 'repeat': [{'name': 'n', 'set': {'n': '{{index}}'}}, {'name': 'w', 'wait': "
         "{'until': 'true'}}], 'until': 'state.over', 'times': 10000}]", "; poll[3332] done; ", "cannot go on after 3333 rounds"},
        {"'steps': [{'name': 'poll', 'repeat': [{'name': 'n', 'set': {'n': '{{index}}'}}], 'until': 'state.over', "
         "'times': 10000}]",                                             "; poll[4998] done; ", "cannot go on after 4999 rounds"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped(arena_free) Arena   *arena  = arena_new(ARENA_BYTES_DEFAULT);
        scoped(engine_free) Engine *engine = engine_new(arena_print(arena, "'on_failure': 'fail', %s", rows[i].steps));
        const char                 *done = engine_run(engine), *end = strrchr(done, ';');

        assert_contains(done, rows[i].last);
        assert_string_equal(arena_print(arena,
                                        "; reject: step poll: repeat \"poll\" %s: the process could not record "
                                        "another one, and may record 10000 steps in all",
                                        rows[i].error),
                            end);
    }
}
