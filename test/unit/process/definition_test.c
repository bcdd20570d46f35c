/*
 * definition_test.c - every rule of the check with its message, and what a good file becomes.
 */
#include "process/definition.h"

#include <stdlib.h>
#include <string.h>

#include "base/scan.h"
#include "base/text.h"
#include "test/harness/test.h"

static void assert_refused(const char *file, const char *why)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    const Definition         *definition;
    Error                     error = {0};

    if (definition_parse("order.json", file, strlen(file), arena, &definition, &error) == OK)
        fail_msg("accepted: %s", file);
    assert_string_equal(why, error.text);
}

static const Definition *assert_accepted(const char *file, Arena *arena)
{
    const Definition *definition = NULL;
    Error             error      = {0};

    assert_ok(definition_parse("order.json", file, strlen(file), arena, &definition, &error));
    return definition;
}

/* A file with these steps. The first step begins in line 2, column 1. */
#define STEPS(steps) "{\"type\":\"t\",\"domain\":\"d\",\"steps\":[\n" steps "]}"
/* A file with one step a, then this one, which begins in line 3, column 1. */
#define STEP(step) STEPS("{\"name\":\"a\",\"exec\":\"x\"},\n" step)

TEST(definition_refuses_what_is_not_json)
{
    assert_refused("", "order.json:1:1: not valid JSON: expected a value, found the end");
    assert_refused("{\n  \"type\": \"t\",\n}",
                   "order.json:3:1: not valid JSON: expected a name in double quotes, found '}'");
    assert_refused("{\"type\": \"t\",\n \"type\": 1}", "order.json:2:2: duplicate field \"type\"");
    assert_refused("[]", "order.json:1:1: must be an object, got an array");
    assert_refused("  3", "order.json:1:3: must be an object, got a number");
}

TEST(definition_refuses_wrong_top_level_fields)
{
    assert_refused("{}", "order.json:1:1: missing field \"type\"");
    assert_refused("{\"type\":\"t\"}", "order.json:1:1: missing field \"domain\"");
    assert_refused("{\"type\":\"t\",\"domain\":\"d\"}", "order.json:1:1: missing field \"steps\"");
    assert_refused("{\"type\":\"t\",\"domaim\":\"d\"}",
                   "order.json:1:13: domaim: unknown field \"domaim\", did you mean \"domain\"?");
    assert_refused("{\"type\":\"t t\"}",
                   "order.json:1:9: type: must be 1 to 100 letters, digits, \"_\", \".\", \":\" or \"-\", "
                   "beginning with a letter or digit, got \"t t\"");
    assert_refused("{\"domain\":7}",
                   "order.json:1:11: domain: must be 1 to 54 letters, digits, \"_\", \".\", \":\" or \"-\", "
                   "beginning with a letter or digit, got 7");
    assert_refused("{\"deadline\":\"2\"}",
                   "order.json:1:13: deadline: must be a duration from 1ms to 3650d such as 250ms, 10s, "
                   "5m, 1h or 2d, got \"2\"");
    assert_refused("{\"deadline\":\"0\"}",
                   "order.json:1:13: deadline: must be a duration from 1ms to 3650d such as 250ms, 10s, "
                   "5m, 1h or 2d, got \"0\"");
    assert_refused(
        "{\"on_failure\":\"retry\"}",
        "order.json:1:15: on_failure: must be one of \"troubleshoot\", \"compensate\", \"fail\", got \"retry\"");
    assert_refused(
        "{\"type\":\"t\",\"domain\":\"d\",\"on_deadline\":\"fail\",\"steps\":[{\"name\":\"a\",\"exec\":\"x\"}]}",
        "order.json:1:1: on_deadline needs a deadline");
    assert_refused("{\"type\":\"t\",\"domain\":\"d\",\"steps\":{}}",
                   "order.json:1:34: steps: must be an array of one or more steps, got an empty object");
    assert_refused("{\"type\":\"t\",\"domain\":\"d\",\"steps\":[]}",
                   "order.json:1:34: steps: must be an array of one or more steps, got an empty array");
    assert_refused("{\"type\":\"t\",\"domain\":\"d\",\"steps\":[1]}",
                   "order.json:1:35: steps[0]: must be an object, got a number");
}

TEST(definition_refuses_wrong_kinds_and_fields)
{
    assert_refused(
        STEP("{\"name\":\"b\"}"),
        "order.json:3:1: steps[1]: a step must have exactly one of exec, sql, http, command, wallet, wait, sleep, set, "
        "when, fail, continue, parallel, each, repeat, process; it has none");
    assert_refused(
        STEP("{\"name\":\"b\",\"exec\":\"x\",\"sql\":\"a.b\"}"),
        "order.json:3:1: steps[1]: a step must have exactly one of exec, sql, http, command, wallet, wait, sleep, set, "
        "when, fail, continue, parallel, each, repeat, process; it has exec and sql");
    assert_refused(
        STEP("{\"name\":\"b\",\"shell\":\"x\"}"),
        "order.json:3:1: steps[1]: a step must have exactly one of exec, sql, http, command, wallet, wait, sleep, set, "
        "when, fail, continue, parallel, each, repeat, process; it has shell");
    assert_refused(STEP("{\"name\":\"b\",\"exec\":\"x\",\"shell\":\"x\"}"),
                   "order.json:3:24: steps[1].shell: unknown field \"shell\"");
    assert_refused(STEP("{\"name\":\"b\",\"exce\":\"x\"}"),
                   "order.json:3:13: steps[1].exce: unknown field \"exce\", did you mean \"exec\"?");
    assert_refused(STEP("{\"name\":\"b\",\"sleep\":\"1s\",\"input\":1}"),
                   "order.json:3:26: steps[1].input: sleep takes no field \"input\"; it is for exec, sql");
    assert_refused(STEP("{\"exec\":\"x\"}"), "order.json:3:1: steps[1]: missing field \"name\"");
    assert_refused(
        STEP("{\"name\":\"a\",\"exec\":\"x\"}"),
        "order.json:3:9: steps[1].name: the name \"a\" is taken: names are unique in the file, and line 2 has it");
    assert_refused(STEP("{\"name\":\"end\",\"exec\":\"x\"}"),
                   "order.json:3:9: steps[1].name: no step can be named \"end\": jumps use it for the end of the list");
    assert_refused(
        STEP("{\"name\":\"-b\",\"exec\":\"x\"}"),
        "order.json:3:9: steps[1].name: must be 1 to 50 letters, digits, \"_\" or \"-\", beginning with a letter or "
        "digit, got \"-b\"");
    assert_refused(STEP("{\"name\":\"b\",\"exec\":\"\"}"),
                   "order.json:3:20: steps[1].exec: must be text of 1 to 4096 bytes, got \"\"");
    assert_refused(
        STEP("{\"name\":\"b\",\"exec\":\"./x {{state.a}}\"}"),
        "order.json:3:20: steps[1].exec: a command line takes no templates, because the shell would read the values: "
        "pass them in input");
    assert_refused(STEP("{\"name\":\"b\",\"sql\":\"reserve\"}"),
                   "order.json:3:19: steps[1].sql: must be the name of a function: schema.function, got \"reserve\"");
    assert_refused(STEP("{\"name\":\"b\",\"sql\":\"a.b(1)\"}"),
                   "order.json:3:19: steps[1].sql: must be the name of a function: schema.function, got \"a.b(1)\"");
    assert_refused(STEP("{\"name\":\"b\",\"set\":[]}"),
                   "order.json:3:19: steps[1].set: must be an object, got an empty array");
    assert_refused(STEP("{\"name\":\"b\",\"wait\":\"go\"}"),
                   "order.json:3:20: steps[1].wait: must be an object such as {\"response\": ...}, got \"go\"");
    assert_refused(STEP("{\"name\":\"b\",\"http\":\"http://x\"}"),
                   "order.json:3:20: steps[1].http: must be an object such as {\"method\": ...}, got \"http://x\"");
    assert_refused(STEP("{\"name\":\"b\",\"exec\":\"x\",\"save\":\"{{result}}\"}"),
                   "order.json:3:31: steps[1].save: must be an object, got \"{{result}}\"");
}

TEST(definition_refuses_wrong_http_steps)
{
#define HTTP(fields) STEP("{\"name\":\"b\",\"http\":{" fields "}}")
    assert_refused(
        HTTP("\"method\":\"get\",\"url\":\"http://h\""),
        "order.json:3:30: steps[1].http.method: must be one of \"GET\", \"POST\", \"PUT\", \"PATCH\", \"DELETE\", "
        "\"HEAD\", got \"get\"");
    assert_refused(HTTP("\"method\":\"GET\""), "order.json:3:20: steps[1].http: missing field \"url\"");
    assert_refused(HTTP("\"url\":\"http://h\""), "order.json:3:20: steps[1].http: missing field \"method\"");
    assert_refused(
        HTTP("\"url\":\"ftp://h\""),
        "order.json:3:27: steps[1].http.url: must be a URL that begins with http://, https:// or a template, got "
        "\"ftp://h\"");
    assert_refused(
        HTTP("\"url\":\"https://\""),
        "order.json:3:27: steps[1].http.url: must be a URL that begins with http://, https:// or a template, got "
        "\"https://\"");
    assert_refused(HTTP("\"method\":\"GET\",\"url\":\"http://h\",\"body\":{}"),
                   "order.json:3:20: steps[1].http: a GET request has no body");
    assert_refused(HTTP("\"headers\":{\"a b\":\"c\"}"),
                   "order.json:3:32: steps[1].http.headers[\"a b\"]: not the name of a header");
    assert_refused(HTTP("\"headers\":{\"idempotency-key\":\"c\"}"),
                   "order.json:3:32: steps[1].http.headers.idempotency-key: this header is set by the engine");
    assert_refused(HTTP("\"headers\":{\"a\":\"\",\"A\":\"\"}"),
                   "order.json:3:39: steps[1].http.headers.A: this header is there twice");
    assert_refused(HTTP("\"headers\":{\"a\":1}"), "order.json:3:36: steps[1].http.headers.a: must be text, got 1");
    assert_refused(
        HTTP("\"headers\":{\"a\":\"{{stat}}\"}"),
        "order.json:3:39: steps[1].http.headers.a: unknown path \"stat\": it must begin with state, steps, process, "
        "item, index or result");
}

TEST(definition_refuses_wrong_wallet_steps)
{
#define WALLET(fields) STEP("{\"name\":\"b\",\"wallet\":{" fields "}}")
    assert_refused(WALLET("\"owner\":\"x\""), "order.json:3:22: steps[1].wallet: missing field \"kind\"");
    assert_refused(WALLET("\"kind\":\"hodl\""),
                   "order.json:3:30: steps[1].wallet.kind: kind \"hodl\" is unknown, did you mean \"hold\"? It must be "
                   "topup, spend, "
                   "transfer, multi, hold, capture, void, refund, freeze, unfreeze or floor");
    assert_refused(WALLET("\"kind\":\"hold\",\"amount\":1"),
                   "order.json:3:22: steps[1].wallet: hold is missing field \"owner\"");
    assert_refused(WALLET("\"kind\":\"hold\",\"to\":\"x\""),
                   "order.json:3:37: steps[1].wallet.to: hold has no field \"to\"");
    assert_refused(
        WALLET("\"kind\":\"hold\",\"owner\":\"x\",\"amount\":\"5\""),
        "order.json:3:58: steps[1].wallet.amount: amount must be a positive integer or a template, got a string");
    assert_refused(
        WALLET("\"kind\":\"hold\",\"owner\":\"x\",\"amount\":1.5"),
        "order.json:3:58: steps[1].wallet.amount: amount must be a positive integer or a template, got a number");
    assert_refused(
        WALLET("\"kind\":\"hold\",\"owner\":\"x\",\"amount\":-1"),
        "order.json:3:58: steps[1].wallet.amount: amount must be a positive integer or a template, got a number");
    assert_refused(WALLET("\"kind\":\"spend\",\"txn_id\":\"x\""),
                   "order.json:3:38: steps[1].wallet.txn_id: spend has no field \"txn_id\"");
}

TEST(definition_refuses_wrong_waits_and_sleeps)
{
    assert_refused(STEP("{\"name\":\"b\",\"wait\":{}}"),
                   "order.json:3:20: steps[1].wait: must have exactly one of response, any and until");
    assert_refused(STEP("{\"name\":\"b\",\"wait\":{\"response\":\"r\",\"until\":\"state.a\"}}"),
                   "order.json:3:20: steps[1].wait: must have exactly one of response, any and until");
    assert_refused(STEP("{\"name\":\"b\",\"wait\":{\"until\":\"state.a\",\"count\":2}}"),
                   "order.json:3:20: steps[1].wait: count is for response, not for until");
    assert_refused(STEP("{\"name\":\"b\",\"wait\":{\"any\":[\"r\",\"s\"],\"count\":2}}"),
                   "order.json:3:20: steps[1].wait: count is for response, not for any");
    assert_refused(STEP("{\"name\":\"b\",\"wait\":{\"any\":[\"r\",\"s\"],\"response\":\"r\"}}"),
                   "order.json:3:20: steps[1].wait: must have exactly one of response, any and until");
    assert_refused(STEP("{\"name\":\"b\",\"wait\":{\"any\":[\"r\"]}}"),
                   "order.json:3:27: steps[1].wait.any: must be an array of 2 to 20 different names, got an array");
    assert_refused(STEP("{\"name\":\"b\",\"wait\":{\"any\":[\"r\",\"s\",\"r\"]}}"),
                   "order.json:3:36: steps[1].wait.any[2]: \"r\" is there twice");
    assert_refused(STEP("{\"name\":\"b\",\"wait\":{\"any\":[\"r\",7]}}"),
                   "order.json:3:32: steps[1].wait.any[1]: must be a name, got 7");
    assert_refused(STEP("{\"name\":\"b\",\"wait\":{\"response\":\"r\",\"count\":0}}"),
                   "order.json:3:44: steps[1].wait.count: must be an integer from 1 to 10000, got 0");
    assert_refused(STEP("{\"name\":\"b\",\"wait\":{\"response\":\"r\"},\"on_timeout\":\"fail\"}"),
                   "order.json:3:1: steps[1]: on_timeout needs a timeout");
    assert_refused(STEP("{\"name\":\"b\",\"wait\":{\"response\":\"r\"},\"timeout\":\"1s\",\"on_timeout\":\"retry\"}"),
                   "order.json:3:65: steps[1].on_timeout: must be one of \"fail\", \"continue\", got \"retry\"");
    assert_refused(STEP("{\"name\":\"b\",\"wait\":{\"until\":\"state.a >\"}}"),
                   "order.json:3:39: steps[1].wait.until: expected a path or a value, found the end");
    assert_refused(
        STEP("{\"name\":\"b\",\"sleep\":10}"),
        "order.json:3:21: steps[1].sleep: must be a duration from 1ms to 3650d such as 250ms, 10s, 5m, 1h or 2d, "
        "{\"for\": DURATION} or {\"until\": TIME}, got 10");
    assert_refused(STEP("{\"name\":\"b\",\"sleep\":{\"for\":\"1s\",\"until\":\"x\"}}"),
                   "order.json:3:21: steps[1].sleep: must have exactly one of for and until");
    assert_refused(STEP("{\"name\":\"b\",\"sleep\":{\"untiil\":\"x\"}}"),
                   "order.json:3:22: steps[1].sleep.untiil: unknown field \"untiil\", did you mean \"until\"?");
}

TEST(definition_refuses_wrong_retries_and_compensations)
{
#define EXEC(fields) STEP("{\"name\":\"b\",\"exec\":\"x\"," fields "}")
    assert_refused(EXEC("\"retry\":{\"attempts\":0}"),
                   "order.json:3:44: steps[1].retry.attempts: must be an integer from 1 to 1000, got 0");
    assert_refused(EXEC("\"retry\":{\"attempts\":1.0}"),
                   "order.json:3:44: steps[1].retry.attempts: must be an integer from 1 to 1000, got 1.0");
    assert_refused(EXEC("\"retry\":{\"attempts\":99999999999999999999999999999999999999}"),
                   "order.json:3:44: steps[1].retry.attempts: must be an integer from 1 to 1000, got "
                   "99999999999999999999999999999999999999");
    assert_refused(EXEC("\"retry\":{\"factor\":0.5}"),
                   "order.json:3:42: steps[1].retry.factor: must be a number from 1 to 10, got 0.5");
    assert_refused(EXEC("\"retry\":{\"delay\":\"1m\",\"delay_max\":\"1s\"}"),
                   "order.json:3:58: steps[1].retry.delay_max: must not be shorter than delay");
    assert_refused(
        EXEC("\"compensate\":\"y\""),
        "order.json:3:37: steps[1].compensate: must be an object with one of exec, sql, http, command and wallet, got "
        "\"y\"");
    assert_refused(
        EXEC("\"compensate\":{}"),
        "order.json:3:37: steps[1].compensate: a compensation must have exactly one of exec, sql, http, command, "
        "wallet; it has none");
    assert_refused(
        EXEC("\"compensate\":{\"sleep\":\"1s\"}"),
        "order.json:3:37: steps[1].compensate: a compensation must have exactly one of exec, sql, http, command, "
        "wallet; it has sleep");
    assert_refused(EXEC("\"compensate\":{\"exec\":\"y\",\"name\":\"c\"}"),
                   "order.json:3:49: steps[1].compensate.name: a compensation takes no field \"name\"");
    assert_refused(EXEC("\"compensate\":{\"wallet\":{\"kind\":\"void\",\"hold\":\"x\"},\"input\":1}"),
                   "order.json:3:74: steps[1].compensate.input: wallet takes no field \"input\"; it is for exec, sql");
    assert_refused(
        EXEC("\"timeout\":\"9999d\""),
        "order.json:3:34: steps[1].timeout: must be a duration from 1ms to 3650d such as 250ms, 10s, 5m, 1h or 2d, "
        "got \"9999d\"");
}

TEST(definition_refuses_wrong_jumps)
{
#define WHEN(rest) STEP("{\"name\":\"w\",\"when\":\"state.a\"," rest)
    assert_refused(WHEN("\"else\":\"end\"}"), "order.json:3:1: steps[1]: missing field \"then\"");
    assert_refused(WHEN("\"then\":\"a\"}"),
                   "order.json:3:37: steps[1].then: step \"a\" comes before: a jump leads forward");
    assert_refused(WHEN("\"then\":\"w\"}"),
                   "order.json:3:37: steps[1].then: step \"w\" is this one: a jump leads forward");
    assert_refused(WHEN("\"then\":\"ship\"},{\"name\":\"shop\",\"exec\":\"x\"}"),
                   "order.json:3:37: steps[1].then: no step is named \"ship\", did you mean \"shop\"?");
    /* Neither the step itself nor one before it: a jump cannot lead there. */
    assert_refused(WHEN("\"then\":\"ww\"}"), "order.json:3:37: steps[1].then: no step is named \"ww\"");
    assert_refused(WHEN("\"then\":\"b\"}"), "order.json:3:37: steps[1].then: no step is named \"b\"");
    assert_refused(
        WHEN("\"then\":\"in\"},{\"name\":\"p\",\"parallel\":{\"x\":[{\"name\":\"in\",\"exec\":\"x\"}]}}"),
        "order.json:3:37: steps[1].then: step \"in\" is in another list: a jump leads neither into nor out of one");
    assert_refused(STEPS("{\"name\":\"p\",\"parallel\":{\"x\":[{\"name\":\"w\",\"when\":\"state.a\",\"then\":\"out\"}]}"
                         "},{\"name\":\"out\",\"exec\":\"x\"}"),
                   "order.json:2:66: steps[0].parallel.x[0].then: step \"out\" is in another list: a jump leads "
                   "neither into nor out of one");
    assert_refused(WHEN("\"then\":\"end\",\"else\":\"end\"},\n{\"name\":\"b\",\"exec\":\"x\"}"),
                   "order.json:4:1: steps[2]: step \"b\" cannot be reached: no step leads to it");
    assert_refused(
        WHEN("\"then\":\"c\",\"else\":\"end\"},\n{\"name\":\"b\",\"exec\":\"x\"},\n{\"name\":\"c\",\"exec\":\"x\"}"),
        "order.json:4:1: steps[2]: step \"b\" cannot be reached: no step leads to it");
    assert_refused(WHEN("\"then\":7}"),
                   "order.json:3:37: steps[1].then: must be the name of a later step of the same list, or "
                   "\"end\", got 7");
}

TEST(definition_refuses_wrong_references)
{
#define SET(path) "{\"name\":\"s\",\"set\":{\"v\":\"{{" path "}}\"}}"
    assert_refused(STEP(SET("steps.b.id")),
                   "order.json:3:27: steps[1].set.v: no step is named \"b\", did you mean \"a\"?");
    assert_refused(STEP(SET("steps.s")),
                   "order.json:3:27: steps[1].set.v: step \"s\" is this one: its own result is called "
                   "result, in save and compensate");
    assert_refused(STEPS(SET("steps.later") ",{\"name\":\"later\",\"exec\":\"x\"}"),
                   "order.json:2:27: steps[0].set.v: step \"later\" comes later in the file");
    assert_refused(STEPS("{\"name\":\"n\",\"sleep\":\"1s\"},\n" SET("steps.n")),
                   "order.json:3:27: steps[1].set.v: step \"n\" has no result, because it is of the kind sleep");
    assert_refused(STEP(SET("item.a")), "order.json:3:27: steps[1].set.v: item exists only inside an each");
    assert_refused(STEP(SET("index")), "order.json:3:27: steps[1].set.v: index exists only inside an each or a repeat");
    assert_refused(STEP(SET("result.a")),
                   "order.json:3:27: steps[1].set.v: result exists only in save and compensate of a step");
    assert_refused(
        STEPS("{\"name\":\"p\",\"parallel\":{\"x\":[{\"name\":\"b\",\"exec\":\"x\"}],\n\"y\":[" SET("steps.b") "]}}"),
        "order.json:3:32: steps[0].parallel.y[0].set.v: step \"b\" is in another branch and may not have run");
    assert_refused(STEPS("{\"name\":\"e\",\"each\":\"{{state.l}}\",\"steps\":[{\"name\":\"b\",\"exec\":\"x\"}]},\n" SET(
                       "steps.b")),
                   "order.json:3:27: steps[1].set.v: step \"b\" is inside an each: from outside, name the each");
    assert_refused(STEPS("{\"name\":\"e\",\"each\":\"{{state.l}}\",\"steps\":[\n" SET("steps.e") "]}"),
                   "order.json:3:27: steps[0].steps[0].set.v: step \"e\" is around this one and has not ended");
    /* b and s lie on two ways that never meet. */
    assert_refused(
        STEPS("{\"name\":\"w\",\"when\":\"state.a\",\"then\":\"s\"},{\"name\":\"b\",\"exec\":\"x\"},"
              "{\"name\":\"v\",\"when\":\"true\",\"then\":\"end\",\"else\":\"end\"},\n" SET("steps.b")),
        "order.json:3:27: steps[3].set.v: step \"b\" cannot have run before: every run skips one of the two");
    assert_refused("{\"type\":\"t\",\"domain\":\"d\",\"steps\":[{\"name\":\"e\",\"each\":\"{{state.l}}\",\"steps\":[{"
                   "\"name\":\"b\",\"exec\":"
                   "\"x\"}]}],\n\"result\":\"{{steps.b}}\"}",
                   "order.json:2:13: result: step \"b\" is inside an each: from outside, name the each");
    assert_refused(STEPS("{\"name\":\"e\",\"each\":\"{{item}}\",\"steps\":[{\"name\":\"b\",\"exec\":\"x\"}]}"),
                   "order.json:2:23: steps[0].each: item exists only inside an each");
}

TEST(definition_refuses_wrong_branches_and_eaches)
{
    assert_refused(
        STEP("{\"name\":\"p\",\"parallel\":{}}"),
        "order.json:3:24: steps[1].parallel: must be an object of 1 to 64 arrays of steps, got an empty object");
    assert_refused(STEP("{\"name\":\"p\",\"parallel\":{\"x\":[]}}"),
                   "order.json:3:29: steps[1].parallel.x: must be an array of one or more steps, got an empty array");
    assert_refused(
        STEP("{\"name\":\"p\",\"parallel\":{\"x y\":[]}}"),
        "order.json:3:25: steps[1].parallel[\"x y\"]: the name of a branch must be 1 to 50 letters, digits, \"_\" or "
        "\"-\", beginning with a letter or digit");
    assert_refused(STEP("{\"name\":\"e\",\"each\":\"state.l\",\"steps\":[{\"name\":\"b\",\"exec\":\"x\"}]}"),
                   "order.json:3:20: steps[1].each: must be one template in a string, such as \"{{state.list}}\", got "
                   "\"state.l\"");
    assert_refused(STEP("{\"name\":\"e\",\"each\":\"{{state.l}}\"}"),
                   "order.json:3:1: steps[1]: missing field \"steps\"");
    assert_refused(STEP("{\"name\":\"e\",\"each\":\"{{state.l}}\",\"concurrency\":65,\"steps\":[]}"),
                   "order.json:3:48: steps[1].concurrency: must be an integer from 1 to 64, got 65");
    assert_refused(STEP("{\"name\":\"e\",\"each\":\"{{state.l}}\",\"steps\":[{\"name\":\"a\",\"exec\":\"x\"}]}"),
                   "order.json:3:51: steps[1].steps[0].name: the name \"a\" is taken: names are unique in the file, "
                   "and line 2 has it");
}

TEST(definition_refuses_wrong_repeats)
{
#define REPEAT(more) "{\"name\":\"r\",\"repeat\":[{\"name\":\"b\",\"exec\":\"x\"}],\n" more "}"
    assert_refused(STEP("{\"name\":\"r\",\"repeat\":[{\"name\":\"b\",\"exec\":\"x\"}]}"),
                   "order.json:3:1: steps[1]: missing field \"until\"");
    assert_refused(STEP("{\"name\":\"r\",\"until\":\"true\",\"repeat\":[]}"),
                   "order.json:3:37: steps[1].repeat: must be an array of one or more steps, got an empty array");
    assert_refused(STEP(REPEAT("\"until\":true")),
                   "order.json:4:9: steps[1].until: must be a condition in a string, got true");
    assert_refused(STEP(REPEAT("\"until\":\"true\",\"times\":0")),
                   "order.json:4:24: steps[1].times: must be an integer from 1 to 10000, got 0");
    assert_refused(STEP(REPEAT("\"until\":\"true\",\"times\":10001")),
                   "order.json:4:24: steps[1].times: must be an integer from 1 to 10000, got 10001");
    assert_refused(STEP(REPEAT("\"until\":\"true\",\"on_exhausted\":\"stop\"")),
                   "order.json:4:31: steps[1].on_exhausted: must be one of \"fail\", \"continue\", got \"stop\"");
    assert_refused(STEP("{\"name\":\"b\",\"exec\":\"x\",\n\"until\":\"true\"}"),
                   "order.json:4:1: steps[1].until: exec takes no field \"until\"; it is for repeat");
    /* What its condition may not name, and what may not name its steps. */
    assert_refused(
        STEP(REPEAT("\"until\":\"steps.r.last\"")),
        "order.json:4:10: steps[1].until: step \"r\" is this one and has not ended: name a step of its rounds");
    assert_refused(STEP(REPEAT("\"until\":\"steps.c.x\"") ",{\"name\":\"c\",\"exec\":\"x\"}"),
                   "order.json:4:10: steps[1].until: step \"c\" comes later in the file");
    assert_refused(STEP(REPEAT("\"until\":\"item\"")),
                   "order.json:4:10: steps[1].until: item exists only inside an each");
    assert_refused(STEP(REPEAT("\"until\":\"result\"")),
                   "order.json:4:10: steps[1].until: result exists only in save and compensate of a step");
    assert_refused(
        STEP("{\"name\":\"r\",\"repeat\":[{\"name\":\"e\",\"each\":\"{{state.l}}\",\"steps\":[{\"name\":\"b\","
             "\"exec\":\"x\"}]}],\n\"until\":\"steps.b\"}"),
        "order.json:4:10: steps[1].until: step \"b\" is inside an each: from outside, name the each");
    assert_refused(STEP(REPEAT("\"until\":\"true\"") ",\n" SET("steps.b")),
                   "order.json:5:27: steps[2].set.v: step \"b\" is inside a repeat: from outside, name the repeat");
}

TEST(definition_takes_a_repeat)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    /* Its condition names steps before it, of a round, in a branch of a round, and a round's number. */
    const Definition *definition = assert_accepted(
        STEP("{\"name\":\"r\",\"until\":\"steps.b == steps.a and steps.c.x and steps.p.l or index > 3\",\"repeat\":["
             "{\"name\":\"b\",\"exec\":\"x\",\"input\":\"{{index}}{{steps.a}}\"},{\"name\":\"p\",\"parallel\":{\"l\":["
             "{\"name\":\"c\",\"exec\":\"x\",\"input\":\"{{steps.b}}\"}]}}],\"save\":{\"n\":\"{{result.rounds}}\"}},"
             "{\"name\":\"f\",\"repeat\":[{\"name\":\"g\",\"exec\":\"x\"}],\"until\":\"steps.r.last\",\"times\":7,"
             "\"on_exhausted\":\"continue\"}"),
        arena);
    const RepeatAction *r = &definition->steps[1]->action.repeat, *f = &definition_find(definition, "f")->action.repeat;

    assert_int_equal(2, r->list.count);
    assert_ptr_equal(definition->steps[1], r->list.above);
    assert_int_equal(100, r->times);
    assert_false(r->continues);
    assert_int_equal(7, f->times);
    assert_true(f->continues);
}

/* ---- limits ---- */

/* Loops of both kinds. */
static void nested(int depth, Text *text)
{
    text_append(text, "{\"type\":\"t\",\"domain\":\"d\",\"steps\":");
    for (int i = 1; i < depth; i++)
        text_print(text,
                   i % 2 ? "[{\"name\":\"e%d\",\"each\":\"{{state.l}}\",\"steps\":"
                         : "[{\"name\":\"e%d\",\"until\":\"state.l\",\"repeat\":",
                   i);
    text_append(text, "[{\"name\":\"x\",\"exec\":\"x\"}]");
    for (int i = 1; i < depth; i++)
        text_append(text, "}]");
    text_append(text, "}");
}

TEST(definition_nests_so_deep_and_no_deeper)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Text                      text;

    text_init(&text, arena, TEXT_MAX_BODY);
    nested(DEFINITION_DEPTH_MAX, &text);
    assert_int_equal(8, definition_find(assert_accepted(text_string(&text), arena), "x")->list->depth);
    text_clear(&text);
    nested(DEFINITION_DEPTH_MAX + 1, &text);
    assert_refused(text_string(&text),
                   "order.json:1:370: "
                   "steps[0].steps[0].repeat[0].steps[0].repeat[0].steps[0].repeat[0].steps[0].repeat: "
                   "steps are nested deeper than 8 levels");
}

static void many(int count, const char *step, Text *text)
{
    text_append(text, "{\"type\":\"t\",\"domain\":\"d\",\"steps\":[");
    for (int i = 0; i < count; i++)
        text_print(text, "%s{\"name\":\"s%d\",%s}", i ? "," : "", i, step);
    text_append(text, "]}");
}

TEST(definition_has_so_many_steps_and_no_more)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Text                      text;

    text_init(&text, arena, TEXT_MAX_BODY);
    many(DEFINITION_STEPS_MAX, "\"sleep\":\"1s\"", &text);
    assert_int_equal(DEFINITION_STEPS_MAX, assert_accepted(text_string(&text), arena)->count);
    text_clear(&text);
    many(DEFINITION_STEPS_MAX + 1, "\"sleep\":\"1s\"", &text);
    assert_refused(text_string(&text), "order.json:1:34: steps: a definition may have at most 1000 steps");
}

/* What takes the most memory for its bytes stays within what the header says. */
TEST(definition_of_any_kind_fits_its_arena)
{
    static const char *const dense[] = {"{{item}}",     "{{item}}x",      "\",\"{{index}}", "{{state.a.b.c.d.e.f.g}}",
                                        "\\n{{item?}}", "{{\\\"{{\\\"}}", "\\u007b{item}}"};

    for (size_t i = 0; i < COUNT(dense); i++) {
        size_t                    bound = DEFINITION_ARENA_BYTES(DEFINITION_BYTES_MAX);
        scoped(arena_free) Arena *arena = arena_new(bound);
        scoped_text Text          text  = {0};
        const Definition         *definition;
        Error                     error = {0};

        text_init(&text, NULL, DEFINITION_BYTES_MAX);
        text_append(&text, "{\"type\":\"t\",\"domain\":\"d\",\"steps\":[{\"name\":\"e\",\"each\":\"{{state.l}}\","
                           "\"steps\":[{\"name\":\"s\","
                           "\"set\":{\"a\":[\"");
        while (text.length < DEFINITION_BYTES_MAX - 100)
            text_append(&text, dense[i]);
        text_append(&text, "\"]}}]}]}");
        assert_ok(definition_parse("dense.json", text_string(&text), text.length, arena, &definition, &error));
        assert_true(arena_used(arena) < bound / 2);
    }
}

TEST(definition_that_is_too_large_is_refused)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT), *small = arena_new(1 << 20);
    const Definition         *definition;
    Error                     error = {0};

    assert_code(ERR_LIMIT, definition_parse("order.json", "", DEFINITION_BYTES_MAX + 1, arena, &definition, &error));
    assert_string_equal("order.json:1:1: the file has 1048577 bytes, at most 1048576 are allowed", error.text);
    assert_code(ERR_LIMIT, definition_parse("order.json", "{}", 2, small, &definition, &error));
    assert_string_equal("order.json:1:1: too large for the memory that is left", error.text);
}

TEST(definition_long_names_leave_room_for_the_reason)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    const Definition         *definition;
    char                      name[1001], file[2000];
    Error                     error = {0};

    memset(name, 'n', 1000);
    name[1000] = '\0';
    snprintf(file, sizeof file,
             "{\"type\":\"t\",\"domain\":\"d\",\"steps\":[{\"name\":\"a\",\"exec\":\"x\",\"input\":{\"%s\":{\"%s\":[\"{"
             "{nope}}\"]}}}]}",
             name, name + 200);
    assert_code(ERR_INVALID, definition_parse(name, file, strlen(file), arena, &definition, &error));
    assert_contains(error.text, "unknown path \"nope\"");
    assert_contains(error.text, "[0]: ");
}

/* ---- what a good file becomes ---- */

TEST(definition_has_everything_the_file_says)
{
    scoped(arena_free) Arena *arena      = arena_new(ARENA_BYTES_DEFAULT);
    const Definition         *definition = assert_accepted(
        "{\"steps\":[{\"exec\":\"./"
                "x\",\"name\":\"x\",\"input\":{\"a\":1},\"retry\":{\"attempts\":7,\"delay\":\"2m\"},\"timeout\":"
                "\"3s\",\"compensate\":{\"command\":{\"type\":\"undo\"},\"retry\":{\"factor\":1.5}}},"
                "{\"name\":\"w\",\"wait\":{\"response\":\"r\",\"count\":3},\"timeout\":\"1h\",\"on_timeout\":\"continue\"},"
                "{\"name\":\"c\",\"process\":{\"type\":\"child\",\"domain\":\"other\"}},"
                "{\"name\":\"h\",\"http\":{\"method\":\"PUT\",\"url\":\"{{state.url}}\",\"headers\":{\"a\":\"b{{state.c}}\","
                "\"d\":\"\"},"
                "\"body\":null}}],"
                "\"deadline\":\"1h\",\"domain\":\"d:x.y\",\"type\":\"t\"}",
        arena);
    const Step *x = definition->steps[0], *w = definition->steps[1], *c = definition->steps[2],
               *h = definition->steps[3];

    assert_int_equal(3600000, definition->deadline_ms);
    assert_int_equal(ACTION_COMPENSATE, definition->on_failure); /* because there is a compensation */
    assert_int_equal(ACTION_COMPENSATE, definition->on_deadline);
    assert_int_equal(1, definition->compensation_count);
    assert_null(definition->result);
    assert_int_equal(STEP_EXEC, x->action.kind);
    assert_string_equal("./x", x->action.exec);
    assert_int_equal(7, x->action.retry.attempts);
    assert_int_equal(120000, x->action.retry.delay_ms);
    assert_int_equal(120000, x->action.retry.delay_ms_max); /* the default is shorter than the delay */
    assert_true(x->action.retry.factor == 2);
    assert_int_equal(3000, x->action.timeout_ms);
    assert_string_equal("d:x.y", x->compensate->send.domain);
    assert_true(x->compensate->retry.factor == 1.5);
    assert_int_equal(5, x->compensate->retry.attempts);
    assert_int_equal(3, w->action.wait.count);
    assert_true(w->continues_on_timeout);
    assert_string_equal("other", c->action.send.domain);
    assert_string_equal("PUT", h->action.http.method);
    assert_int_equal(2, h->action.http.header_count);
    assert_string_equal("d", h->action.http.headers[1].name);
    assert_non_null(h->action.http.body);
    assert_ptr_equal(w, step_next(x));
    assert_null(step_next(h));
    assert_ptr_equal(c, definition_find(definition, "c"));
    assert_null(definition_find(definition, "nope"));
    assert_int_equal(ACTION_TROUBLESHOOT,
                     assert_accepted(STEP("{\"name\":\"b\",\"sleep\":\"1s\"}"), arena)->on_failure);
}

TEST(definition_resolves_jumps)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    const Definition         *definition =
        assert_accepted(STEPS("{\"name\":\"w\",\"when\":\"state.a\",\"then\":\"c\"},{\"name\":\"b\",\"exec\":\"x\"},"
                              "{\"name\":\"c\",\"when\":\"state.b\",\"then\":\"end\",\"else\":\"d\"},{\"name\":\"d\","
                              "\"when\":\"true\",\"then\":\"end\"}"),
                        arena);
    const WhenAction *w = &definition->steps[0]->action.when, *c = &definition->steps[2]->action.when,
                     *d = &definition->steps[3]->action.when;

    assert_ptr_equal(definition->steps[2], w->then_step);
    assert_ptr_equal(definition->steps[1], w->else_step); /* the next one */
    assert_null(c->then_step);
    assert_ptr_equal(definition->steps[3], c->else_step);
    assert_null(d->else_step); /* it is the last one */
}

TEST(definition_allows_references_that_can_be_there)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    /* From inside a branch to before it, between iterations' own steps, and from behind a join into its branches. */
    (void)assert_accepted(
        STEPS("{\"name\":\"a\",\"exec\":\"x\"},{\"name\":\"p\",\"parallel\":{\"l\":[{\"name\":\"b\",\"exec\":\"x\","
              "\"input\":\"{{steps.a}}\"}],"
              "\"r\":[{\"name\":\"e\",\"each\":\"{{state.l}}\",\"steps\":[{\"name\":\"f\",\"exec\":\"x\",\"input\":\"{{"
              "steps.a}}{{item}}{{index}}\","
              "\"save\":{\"r\":\"{{result}}\"}},{\"name\":\"g\",\"set\":{\"v\":\"{{steps.f}}\"}}]}]}},"
              "{\"name\":\"z\",\"set\":{\"b\":\"{{steps.b}}\",\"p\":\"{{steps.p.l}}\",\"e\":\"{{steps.e.0}}\"}}"),
        arena);
    /* A step that a jump may skip can be named: then it is missing at run time, or optional. */
    (void)assert_accepted(
        STEPS(
            "{\"name\":\"w\",\"when\":\"state.a\",\"then\":\"s\"},{\"name\":\"b\",\"exec\":\"x\"}," SET("steps.b.id?")),
        arena);
}

/* The members of every object in reverse: tools that write JSON have orders of their own. */
static void reverse(const char *value, Text *text)
{
    const char *starts[100], *at = value + 1;
    int         count = 0;

    if (*value != '{' && *value != '[') {
        text_append_bytes(text, value, (size_t)(scan_value_end(value) - value));
        return;
    }
    for (; scan_next(&at); at = scan_value_end(*value == '{' ? scan_member_value(at) : at))
        starts[count++] = at;
    text_append_char(text, *value);
    for (int i = 0; i < count; i++) {
        const char *part = starts[*value == '{' ? count - 1 - i : i];

        text_append(text, i ? "," : "");
        if (*value == '{') {
            text_append_bytes(text, part, (size_t)(scan_value_end(part) - part));
            text_append(text, ":");
            part = scan_member_value(part);
        }
        reverse(part, text);
    }
    text_append_char(text, *value == '{' ? '}' : ']');
}

static char *file_read(const char *path, size_t *ret_size)
{
    FILE *file  = fopen(path, "re");
    char *bytes = malloc(DEFINITION_BYTES_MAX);

    if (!file || !bytes)
        fail_msg("cannot read %s", path);
    *ret_size = fread(bytes, 1, DEFINITION_BYTES_MAX, file);
    (void)fclose(file);
    return bytes;
}

TEST(definition_accepts_the_example)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    const Definition         *definition;
    Error                     error = {0};
    size_t                    size;
    char                     *bytes = file_read(PAWL_EXAMPLES "/order-saga/order.json", &size);

    assert_ok(definition_parse("order.json", bytes, size, arena, &definition, &error));
    memset(bytes, '?', size); /* it has its own copy */
    free(bytes);
    assert_string_equal("order", definition->type);
    assert_int_equal(14, definition->count);
    assert_int_equal(5, definition->compensation_count);
    assert_int_equal(2, definition_find(definition, "print")->list->depth);
    assert_int_equal(3, definition_find(definition, "pick")->list->depth);
    assert_int_equal(STEP_WALLET, definition_find(definition, "hold")->compensate->kind);
    assert_int_equal(8, definition->steps[0]->line);
    assert_int_equal(5, definition->steps[0]->column);
}

TEST(definition_does_not_depend_on_the_order_of_members)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    const Definition         *definition, *reversed;
    Error                     error = {0};
    size_t                    size;
    char                     *bytes = file_read(PAWL_EXAMPLES "/order-saga/order.json", &size);
    Text                      text;

    text_init(&text, arena, TEXT_MAX_BODY);
    reverse(bytes, &text);
    assert_ok(definition_parse("order.json", bytes, size, arena, &definition, &error));
    free(bytes);
    assert_ok(definition_parse("order.json", text_string(&text), text.length, arena, &reversed, &error));
    assert_int_equal(definition->count, reversed->count);
    for (int i = 0; i < definition->count; i++) {
        const Step *step = definition->steps[i], *other = definition_find(reversed, step->name);

        assert_non_null(other);
        assert_int_equal(step->action.kind, other->action.kind);
        assert_int_equal(step->position, other->position);
        assert_int_equal(step->compensate != NULL, other->compensate != NULL);
    }
}
