/*
 * library_saga.c - runs sagas (saga.py) with libpawl, for process_saga_test.py.
 *
 *     library_saga URL DOMAIN
 */
#include <jansson.h>
#include <pawl/pawl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS   60 /* as in saga.py */
#define DELAY_MS  10
#define UNDOS_MAX 64
#define NAME_SIZE 80

/* A step of a compensation. */
typedef struct {
    json_t *node; /* borrowed from the saga */
    int     round;
} Undo;

/* One call of the function. */
typedef struct {
    PawlRun *run;
    json_t  *saga, *results;
    Undo     undos[UNDOS_MAX];
    int      undo_count;
    int      round; /* of the loop that it is in; -1: none */
} Saga;

static PawlWorker *worker;
static const char *domain;

static const char *text(const json_t *node, const char *member)
{
    return json_string_value(json_object_get(node, member));
}

static long long number(const json_t *node, const char *member)
{
    return json_integer_value(json_object_get(node, member));
}

static json_t *parsed(const char *json)
{
    return json_loads(json, JSON_DECODE_ANY, NULL);
}

/* The name of a call: "s3", in a loop "s3.0". */
static const char *call_name(const Saga *saga, const json_t *node, char *space)
{
    if (saga->round < 0)
        return text(node, "name");
    snprintf(space, NAME_SIZE, "%s.%d", text(node, "name"), saga->round);
    return space;
}

static void done(Saga *saga, json_t *node, const char *result)
{
    json_t *undo = json_object_get(node, "undo");

    json_object_set_new(saga->results, text(node, "name"), parsed(result));
    if (!json_is_object(undo))
        return;
    if (saga->undo_count == UNDOS_MAX)
        abort();
    saga->undos[saga->undo_count++] = (Undo){undo, saga->round};
}

/* ---- steps ---- */

typedef struct {
    Saga   *saga;
    json_t *node;
} Action;

/* demo.act says the outcome of this attempt, and writes the effect of one that succeeds. */
static PawlOutcome act(PawlJob *job, PawlTx *tx, void *context)
{
    const Action *action = context;
    PawlResult    result;
    json_t       *given = json_copy(action->node);
    char         *json, name[NAME_SIZE];
    PawlStatus    status;

    json_object_set_new(given, "step", json_string(call_name(action->saga, action->node, name)));
    json_object_set_new(given, "process", json_string(pawl_run_id(action->saga->run)));
    json   = json_dumps(given, 0);
    status = pawl_query(tx, "select demo.act($1, $2)", 2, (const char *[]){json, job->command_id}, &result);
    free(json);
    json_decref(given);
    if (status != PAWL_OK)
        return PAWL_JOB_RETRY;
    pawl_job_error(job, "%s", result.values[0]);
    if (strcmp(result.values[0], "retry") == 0)
        return PAWL_JOB_RETRY;
    if (strcmp(result.values[0], "fail") == 0)
        return PAWL_JOB_FAIL;
    if (strcmp(result.values[0], "refuse") == 0)
        return PAWL_JOB_REJECT;
    given = json_pack("{s:O}", "value", json_object_get(action->node, "value"));
    json  = json_dumps(given, 0);
    pawl_job_result(job, json);
    free(json);
    json_decref(given);
    return PAWL_JOB_COMPLETE;
}

static PawlFlow step_run(Saga *saga, json_t *node)
{
    char        name[NAME_SIZE];
    Action      action = {saga, node};
    PawlStep    step   = {.name = call_name(saga, node, name), .tx_body = act, .context = &action};
    const char *result;

    step.attempts = (int)number(node, "attempts");
    step.delay_ms = DELAY_MS;
    step.factor   = 1;
    PAWL_FLOW(pawl_run_step(saga->run, &step, &result));
    done(saga, node, result);
    return PAWL_FLOW_NEXT;
}

/* ---- conditions ---- */

static PawlOutcome ask(PawlJob *job, void *context)
{
    const Action *action = context;
    json_t       *state  = parsed(pawl_run_state(action->saga->run));
    json_t       *test   = json_object_get(action->node, "test");
    json_t       *found  = json_object_get(state, json_string_value(json_array_get(test, 0)));
    const char *operator= json_string_value(json_array_get(test, 1));
    bool holds = strcmp(operator, "==") == 0 ? found && json_equal(found, json_array_get(test, 2))
                                             : found && !json_is_null(found) && !json_is_false(found);

    pawl_job_result(job, holds != json_is_true(json_object_get(action->node, "is_not")) ? "true" : "false");
    json_decref(state);
    return PAWL_JOB_COMPLETE;
}

static PawlFlow nodes_run(Saga *saga, json_t *nodes);

static PawlFlow holds(Saga *saga, json_t *node, bool *ret_holds)
{
    char        name[NAME_SIZE];
    Action      action = {saga, node};
    PawlStep    step   = {.name = call_name(saga, node, name), .body = ask, .context = &action};
    const char *result;

    PAWL_FLOW(pawl_run_step(saga->run, &step, &result));
    *ret_holds = strcmp(result, "true") == 0;
    return PAWL_FLOW_NEXT;
}

static PawlFlow if_run(Saga *saga, json_t *node)
{
    bool is_then;

    PAWL_FLOW(holds(saga, node, &is_then));
    return nodes_run(saga, json_object_get(node, is_then ? "then" : "else"));
}

/* ---- loops ---- */

typedef struct {
    Saga   *saga;
    json_t *node;
    int     rounds;
    bool    is_failure;
} Loop;

static PawlOutcome loop_end(PawlJob *job, void *context)
{
    const Loop   *loop  = context;
    const json_t *nodes = json_object_get(loop->node, "nodes");
    const json_t *last  = json_array_get(nodes, json_array_size(nodes) - 1);
    json_t       *result;
    char         *json;

    if (loop->is_failure) {
        pawl_job_error(job, "did not end");
        return PAWL_JOB_FAIL;
    }
    result = json_pack("{s:i, s:O}", "rounds", loop->rounds, "last",
                       json_object_get(loop->saga->results, text(last, "name")));
    json   = json_dumps(result, 0);
    pawl_job_result(job, json);
    free(json);
    json_decref(result);
    return PAWL_JOB_COMPLETE;
}

static PawlFlow loop_run(Saga *saga, json_t *node)
{
    Loop        loop    = {.saga = saga, .node = node};
    PawlStep    step    = {.name = text(node, "name"), .body = loop_end, .context = &loop, .attempts = 1};
    bool        is_over = false;
    const char *result;

    for (; !is_over && loop.rounds < number(node, "times"); loop.rounds++) {
        saga->round = loop.rounds;
        PAWL_FLOW(nodes_run(saga, json_object_get(node, "nodes")));
        PAWL_FLOW(holds(saga, node, &is_over));
    }
    saga->round     = -1;
    loop.is_failure = !is_over && strcmp(text(node, "to"), "fail") == 0;
    PAWL_FLOW(pawl_run_step(saga->run, &step, &result));
    done(saga, node, result);
    return PAWL_FLOW_NEXT;
}

/* ---- the others ---- */

/* As definitions have the result of a race. */
static void race_done(Saga *saga, json_t *node, const char *response, const char *payload)
{
    json_t *result = json_pack("{s:s, s:o}", "response", response, "payload", parsed(payload));
    char   *json   = json_dumps(result, 0);

    done(saga, node, json);
    free(json);
    json_decref(result);
}

static PawlFlow wait_run(Saga *saga, json_t *node)
{
    char        name[NAME_SIZE];
    bool        is_never = strcmp(text(node, "come"), "never") == 0;
    json_t     *race     = json_object_get(node, "race");
    const char *any[] = {json_string_value(json_array_get(race, 0)), json_string_value(json_array_get(race, 1)), NULL};
    const char *came, *result;
    PawlWait    wait = {.name         = call_name(saga, node, name),
                        .response     = any[0] ? NULL : text(node, "response"),
                        .any          = any[0] ? any : NULL,
                        .ret_response = &came,
                        .timeout_ms   = is_never ? WAIT_MS : 0};

    wait.count = (int)number(node, "count");
    PAWL_FLOW(pawl_run_wait(saga->run, &wait, &result));
    if (result && any[0])
        race_done(saga, node, came, result);
    else if (result)
        done(saga, node, result);
    if (result || strcmp(text(node, "to"), "fail") != 0)
        return PAWL_FLOW_NEXT;
    pawl_run_reason(saga->run, "no response came");
    return PAWL_FLOW_FAILED;
}

static PawlFlow set_run(Saga *saga, json_t *node)
{
    json_t     *state = parsed(pawl_run_state(saga->run)), *patch = json_object(), *value;
    const char *member;
    char       *merged, name[NAME_SIZE];
    bool        uses_state = false;
    PawlFlow    flow;

    json_object_foreach(json_object_get(node, "patch"), member, value)
    {
        if (text(value, "copy")) {
            uses_state = true;
            value      = json_object_get(state, text(value, "copy"));
        } else if (text(value, "result")) {
            value = json_object_get(saga->results, text(value, "result"));
        }
        json_object_set(patch, member, value);
    }
    merged = json_dumps(patch, JSON_SORT_KEYS); /* a recorded result has its members in another order */
    flow   = pawl_run_patch(saga->run, call_name(saga, node, name), merged, uses_state);
    free(merged);
    json_decref(patch);
    json_decref(state);
    return flow;
}

static PawlFlow child_run(Saga *saga, json_t *node)
{
    json_t *state =
        json_pack("{s:O, s:i, s:s, s:n, s:b}", "saga", json_object_get(node, "saga"), "a", 1, "b", "x", "c", "d", 1);
    char       *payload = json_dumps(state, JSON_SORT_KEYS);
    PawlCall    call    = {.name = text(node, "name"), .domain = domain, .type = "saga", .payload = payload};
    const char *result;
    PawlFlow    flow = pawl_run_child(saga->run, &call, &result);

    free(payload);
    json_decref(state);
    PAWL_FLOW(flow);
    done(saga, node, result);
    return PAWL_FLOW_NEXT;
}

static PawlFlow node_run(Saga *saga, json_t *node)
{
    const char *kind = text(node, "do");
    char        name[NAME_SIZE];

    if (strcmp(kind, "step") == 0)
        return step_run(saga, node);
    if (strcmp(kind, "if") == 0)
        return if_run(saga, node);
    if (strcmp(kind, "wait") == 0)
        return wait_run(saga, node);
    if (strcmp(kind, "set") == 0)
        return set_run(saga, node);
    if (strcmp(kind, "child") == 0)
        return child_run(saga, node);
    if (strcmp(kind, "loop") == 0)
        return loop_run(saga, node);
    return pawl_run_sleep(saga->run, call_name(saga, node, name), number(node, "ms"));
}

static PawlFlow nodes_run(Saga *saga, json_t *nodes)
{
    json_t *node;
    size_t  at;

    json_array_foreach(nodes, at, node) PAWL_FLOW(node_run(saga, node));
    return PAWL_FLOW_NEXT;
}

static void result_set(Saga *saga)
{
    json_t *result = json_object(), *name, *value;
    size_t  at;
    char   *json;

    json_array_foreach(json_object_get(saga->saga, "result"), at, name)
    {
        value = json_object_get(saga->results, json_string_value(name));
        json_object_set(result, json_string_value(name), value ? value : json_null());
    }
    json = json_dumps(result, 0);
    pawl_run_result(saga->run, json);
    free(json);
    json_decref(result);
}

static PawlFlow saga_run(Saga *saga)
{
    PawlFlow flow = nodes_run(saga, json_object_get(saga->saga, "nodes"));

    if (flow == PAWL_FLOW_NEXT)
        result_set(saga);
    if (flow != PAWL_FLOW_FAILED || strcmp(text(saga->saga, "on_failure"), "compensate") != 0)
        return flow;
    PAWL_FLOW(pawl_run_compensating(saga->run));
    while (saga->undo_count > 0) {
        const Undo *undo = &saga->undos[--saga->undo_count];

        saga->round = undo->round;
        PAWL_FLOW(step_run(saga, undo->node));
    }
    return PAWL_FLOW_NEXT;
}

static PawlFlow function(PawlRun *run, void *context)
{
    json_t  *input = parsed(pawl_run_input(run));
    Saga     saga  = {.run = run, .saga = json_object_get(input, "saga"), .results = json_object(), .round = -1};
    PawlFlow flow  = saga_run(&saga);

    (void)context;
    json_decref(saga.results);
    json_decref(input);
    return flow;
}

static void stop(int signal)
{
    (void)signal;
    pawl_worker_stop(worker);
}

int main(int argc, char **argv)
{
    const char *types[] = {"saga", NULL};
    PawlWork    options = {.types = types, .process = function, .concurrency = 4};
    Pawl       *pawl    = NULL;
    PawlError   error;
    PawlStatus  status = argc == 3 ? pawl_open(argv[1], &pawl, &error) : PAWL_REFUSED;

    if (argc != 3)
        return 2;
    options.domain = domain = argv[2];
    if (status == PAWL_OK)
        status = pawl_worker_open(pawl, &options, &worker, &error);
    if (status == PAWL_OK) {
        signal(SIGTERM, stop);
        status = pawl_worker_run(worker, &error);
        signal(SIGTERM, SIG_DFL);
        pawl_worker_close(worker);
    }
    if (status != PAWL_OK)
        fprintf(stderr, "%d %s\n", (int)status, error.text);
    pawl_close(pawl);
    return status == PAWL_OK ? 0 : 1;
}
