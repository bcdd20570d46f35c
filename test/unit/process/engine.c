/*
 * engine.c - see engine.h.
 */
#include "test/unit/process/engine.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sync.h"
#include "bus/claim.h"
#include "bus/lease.h"
#include "bus/send.h"
#include "pg/migrate.h"
#include "process/interpret_internal.h"
#include "test/harness/fake_clock.h"

#define RECORDS_MAX 10000
#define SCRIPTS_MAX 20
#define QUEUE_MAX   20
#define START_US    ((int64_t)1700000000000000)

typedef struct {
    const char *record;
    const char *outcomes;
} Script;

struct Engine {
    Arena       *arena;
    Interpreter *interpreter;
    Handler     *handler;
    /* The process, as the database has it. */
    StepRecord  records[RECORDS_MAX];
    int         record_count;
    json_t     *state;
    int64_t     version;
    const char *phase, *reason;
    json_t     *responses, *sent, *open;
    int64_t     due_us, deadline_us, retried_us;
    const char *deadline_action;
    /* What the test says. */
    Script       scripts[SCRIPTS_MAX];
    int          script_count;
    WriteVerdict verdicts[QUEUE_MAX];
    int          verdict_count, verdict_next;
    const char  *beside; /* the record in whose action the thread runs */
    ThreadBody  *thread; /* NULL: none was started, or it has ended */
    void        *thread_context;
    Text         log;
};

/* One at a time: what the linker puts here has no context. */
static Engine *current;

__attribute__((format(printf, 2, 3))) static void note(Engine *engine, const char *format, ...)
{
    va_list list;
    char    line[2000];

    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    text_print(&engine->log, "%s%s", engine->log.length ? "; " : "", line);
}

static const char *dumped(Engine *engine, const json_t *json)
{
    char       *text = json_dumps(json, JSON_SORT_KEYS | JSON_ENCODE_ANY);
    const char *copy = arena_text(engine->arena, text);

    free(text);
    return copy;
}

static json_t *parsed(const char *text)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(json);
    return json;
}

/* ---- reading ---- */

static const char *steps_write(Engine *engine, Arena *arena)
{
    Writer writer;
    Text   text;

    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_array(&writer, NULL);
    for (int i = 0; i < engine->record_count; i++) {
        const StepRecord *record = &engine->records[i];

        writer_object(&writer, NULL);
        record_write(&writer, &record->id);
        writer_i64(&writer, "attempt", record->attempt);
        writer_text(&writer, "verdict", step_end_names[record->end]);
        writer_i64(&writer, "retry_us", record->retry_us);
        writer_text(&writer, "response", record->response);
        writer_text(&writer, "taken", record->taken);
        writer_raw(&writer, "result", record->result);
        writer_text(&writer, "error", record->error);
        writer_i64(&writer, "ended_us", record->ended_us);
        writer_bool(&writer, "is_reset", record->is_reset);
        writer_end(&writer);
    }
    writer_end(&writer);
    return text_string(&text);
}

ErrorCode __wrap_process_load(Pool *pool, Deadline deadline, Arena *arena, const int64_t *ids, const int64_t *tokens,
                              int count, int64_t bytes_max, LoadedProcess **ret_list, int *ret_count, Error *reterr);
ErrorCode __wrap_process_load(Pool *pool, Deadline deadline, Arena *arena, const int64_t *ids, const int64_t *tokens,
                              int count, int64_t bytes_max, LoadedProcess **ret_list, int *ret_count, Error *reterr)
{
    LoadedProcess *loaded = arena_alloc(arena, sizeof *loaded);

    (void)pool, (void)deadline, (void)tokens, (void)count, (void)bytes_max, (void)reterr;
    *loaded    = (LoadedProcess){.id              = ids[0],
                                 .now_us          = clock_wall().us,
                                 .definition_id   = 1,
                                 .phase           = current->phase,
                                 .state           = dumped(current, current->state),
                                 .version         = current->version,
                                 .deadline_us     = current->deadline_us,
                                 .deadline_action = current->deadline_action,
                                 .retried_us      = current->retried_us,
                                 .secret          = "00000000-0000-4000-8000-000000000002",
                                 .response_total  = (int64_t)json_array_size(current->responses),
                                 .steps           = steps_write(current, arena),
                                 .responses       = dumped(current, current->responses),
                                 .open            = dumped(current, current->open),
                                 .sent            = dumped(current, current->sent),
                                 .reason          = current->reason};
    *ret_list  = loaded;
    *ret_count = 1;
    return OK;
}

/* ---- writing: what pawl.process_write() promises, for one process ---- */

static void record_note(Engine *engine, const ProcessWrite *write)
{
    const StepRecord *record = &write->record;
    const char       *name   = record_text(engine->arena, &record->id);
    const char       *patch  = write->patch ? arena_print(engine->arena, " %s", write->patch) : "";
    const char       *taken  = record->taken ? arena_print(engine->arena, " takes %s", record->taken) : "";

    if (record->error)
        note(engine, "%s %s: %s%s", name, step_end_names[record->end], record->error, patch);
    else if (record->id.kind == RECORD_STEP || record->id.kind == RECORD_DONE)
        note(engine, "%s %s%s%s", name, step_end_names[record->end], patch, taken);
    else
        note(engine, "%s", name);
}

static bool record_store(Engine *engine, const ProcessWrite *write)
{
    const StepRecord *given = &write->record;

    for (int i = 0; i < engine->record_count; i++)
        if (record_compare(&engine->records[i].id, &given->id) == 0 && engine->records[i].attempt == given->attempt)
            return false;
    assert_true(engine->record_count < RECORDS_MAX);
    StepRecord *record = &engine->records[engine->record_count++];

    *record          = *given;
    record->id.step  = arena_text(engine->arena, given->id.step);
    record->response = arena_text(engine->arena, given->response);
    record->taken    = arena_text(engine->arena, given->taken);
    record->result   = arena_text(engine->arena, given->result);
    record->error    = arena_text(engine->arena, given->error);
    record->ended_us = clock_wall().us;
    return true;
}

static int64_t responses_count(Engine *engine, const Wait *wait)
{
    int64_t count = 0;
    size_t  at;
    json_t *response;

    json_array_foreach(engine->responses, at, response)
    {
        const char *kind = json_string_value(json_object_get(response, "kind"));
        const char *name = json_string_value(json_object_get(response, "name"));

        const char *to = json_string_value(json_object_get(response, "to_step"));

        count += wait->of.kind == RESPONSE_ANY ||
                 (strcmp(kind, response_kind_names[wait->of.kind]) == 0 && strcmp(name, wait->of.of.step) == 0 &&
                  (!to || strcmp(to, wait->to.step) == 0));
    }
    return count;
}

/* false: one of the waits is complete. */
static bool suspend(Engine *engine, const ProcessWrite *write)
{
    Text text;

    text_init(&text, engine->arena, TEXT_MAX_BODY);
    for (int i = 0; i < write->wait_count; i++) {
        const Wait *wait = &write->waits[i];

        if (responses_count(engine, wait) >= wait->count)
            return false;
        text_print(&text, "%s%s %s*%lld", i ? ", " : " for ", response_kind_names[wait->of.kind],
                   record_text(engine->arena, &wait->of.of), (long long)wait->count);
    }
    engine->due_us = write->due_us;
    if (write->due_us < clock_wall().us + PROCESS_FOREVER_US)
        text_print(&text, " in %.9g s", (double)(write->due_us - clock_wall().us) / 1e6);
    note(engine, "%s %s%s", write->wait + strlen("WAITING_FOR_"), record_text(engine->arena, &write->wait_step),
         text_string(&text));
    return true;
}

static WriteVerdict write_apply(Engine *engine, const ProcessWrite *write)
{
    WriteVerdict verdict = WRITE_WRITTEN;

    if (write->patch && write->version && write->version != engine->version)
        return WRITE_STALE;
    if (write->record.id.step) {
        if (!record_store(engine, write))
            verdict = WRITE_KNOWN;
        record_note(engine, write);
    }
    if (write->patch && verdict == WRITE_WRITTEN)
        engine_patch(engine, write->patch);
    if (write->phase) {
        engine->phase = write->phase;
        if (write->end_error)
            engine->reason = arena_text(engine->arena, write->end_error);
        note(engine, "%s%s%s", write->phase, write->end_error ? ": " : "", write->end_error ? write->end_error : "");
    }
    if (write->wait && !suspend(engine, write))
        return WRITE_MET;
    if (write->end)
        note(engine, "%s%s%s", write->end, write->end_error ? ": " : " ",
             write->end_error ? write->end_error : write->end_result);
    return verdict;
}

ErrorCode __wrap_process_write(ProcessWriter *writer, Deadline deadline, ProcessWrite *write, Error *reterr);
ErrorCode __wrap_process_write(ProcessWriter *writer, Deadline deadline, ProcessWrite *write, Error *reterr)
{
    Engine *engine = current;

    (void)writer, (void)deadline, (void)reterr;
    write->verdict = WRITE_WRITTEN;
    if (engine->verdict_next < engine->verdict_count)
        write->verdict = engine->verdicts[engine->verdict_next++];
    if (write->verdict == WRITE_WRITTEN)
        write->verdict = write_apply(engine, write);
    else
        note(engine, "not written");
    free(write->state);
    write->state         = write->patch || write->verdict == WRITE_STALE || write->verdict == WRITE_MET
                               ? memory_text(dumped(engine, engine->state))
                               : NULL;
    write->state_version = engine->version;
    write->is_canceled   = false;
    return OK;
}

/* ---- what else needs a server ---- */

void           __wrap_pool_status(Pool *pool, PoolStatus *ret_status);
ProcessWriter *__wrap_process_writer_new(Pool *pool);
void           __wrap_process_writer_free(ProcessWriter *writer);
bool           __wrap_process_writer_is_outdated(const ProcessWriter *writer, const Error *error);
void           __wrap_process_writer_wake(ProcessWriter *writer, const char *domain);
bool           __wrap_migrate_explains(Pool *pool, const Schema *schema, const Error *error, Error *ret_why);
bool           __wrap_thread_try_start(const char *name, ThreadBody *body, void *context, pthread_t *ret_thread);
void           __wrap_thread_join(pthread_t thread);
ErrorCode      __wrap_lease_release(Pool *pool, Deadline deadline, Arena *arena, const ClaimedCommand *list, int count,
                                    LeaseVerdict *ret_verdicts, Error *reterr);
ErrorCode      __wrap_lease_postpone(Pool *pool, Deadline deadline, Arena *arena, const ClaimedCommand *command,
                                     int64_t delay_ms, const char *reason, bool *ret_settled, Error *reterr);
ErrorCode      __wrap_sent_send(Pool *pool, Run *run, SendItem *item, bool *ret_is_over, Error *reterr);
AttemptRun     __wrap_attempt_exec, __wrap_attempt_http, __wrap_attempt_sql, __wrap_attempt_wallet, __real_attempt_http;

void __wrap_pool_status(Pool *pool, PoolStatus *ret_status)
{
    (void)pool;
    *ret_status = (PoolStatus){.size_max = 4};
}

ProcessWriter *__wrap_process_writer_new(Pool *pool)
{
    (void)pool;
    return NULL;
}

void __wrap_process_writer_free(ProcessWriter *writer)
{
    (void)writer;
}

bool __wrap_process_writer_is_outdated(const ProcessWriter *writer, const Error *error)
{
    (void)writer, (void)error;
    return false;
}

void __wrap_process_writer_wake(ProcessWriter *writer, const char *domain)
{
    (void)writer, (void)domain;
}

bool __wrap_migrate_explains(Pool *pool, const Schema *schema, const Error *error, Error *ret_why)
{
    (void)pool, (void)schema, (void)error, (void)ret_why;
    return false;
}

bool __wrap_thread_try_start(const char *name, ThreadBody *body, void *context, pthread_t *ret_thread)
{
    (void)name, (void)ret_thread;
    if (!current->beside || current->thread)
        return false;
    current->thread         = body;
    current->thread_context = context;
    return true;
}

static void thread_end(void)
{
    ThreadBody *body = current->thread;

    current->thread = NULL;
    if (body)
        body(current->thread_context);
}

void __wrap_thread_join(pthread_t thread)
{
    (void)thread;
    thread_end();
}

ErrorCode __wrap_lease_release(Pool *pool, Deadline deadline, Arena *arena, const ClaimedCommand *list, int count,
                               LeaseVerdict *ret_verdicts, Error *reterr)
{
    (void)pool, (void)deadline, (void)arena, (void)list, (void)count, (void)reterr;
    for (int i = 0; i < count && ret_verdicts; i++)
        ret_verdicts[i] = LEASE_RELEASED;
    note(current, "released");
    return OK;
}

ErrorCode __wrap_lease_postpone(Pool *pool, Deadline deadline, Arena *arena, const ClaimedCommand *command,
                                int64_t delay_ms, const char *reason, bool *ret_settled, Error *reterr)
{
    (void)pool, (void)deadline, (void)arena, (void)command, (void)delay_ms, (void)reterr;
    note(current, "postponed: %s", reason);
    *ret_settled = true;
    return OK;
}

ErrorCode __wrap_sent_send(Pool *pool, Run *run, SendItem *item, bool *ret_is_over, Error *reterr)
{
    (void)pool, (void)run, (void)reterr;
    note(current, "send %s/%s", item->domain, item->type);
    json_array_append_new(current->sent, json_string(item->command_id));
    item->is_new = true;
    item->code   = OK;
    *ret_is_over = false;
    return OK;
}

/* ---- what steps do ---- */

static const char *outcome_find(const Engine *engine, const char *record, int attempt)
{
    const char *outcomes = "done";

    for (int i = 0; i < engine->script_count; i++)
        if (strcmp(engine->scripts[i].record, record) == 0)
            outcomes = engine->scripts[i].outcomes;
    for (const char *next; attempt > 1 && (next = strstr(outcomes, ", ")); attempt--)
        outcomes = next + 2;
    return outcomes;
}

static ErrorCode code_find(const char *name, size_t size)
{
#define X(code, ...) {#code, code},
    static const struct {
        const char *name;
        ErrorCode   code;
    } codes[] = { ERROR_CODES(X) };
#undef X

    for (size_t i = 0; i < COUNT(codes); i++)
        if (strlen(codes[i].name) == size && memcmp(codes[i].name, name, size) == 0)
            return codes[i].code;
    fail_msg("\"%s\" is no outcome", name);
}

static ErrorCode act(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    const char *record  = record_text(attempt->arena, &attempt->id);
    const char *outcome = outcome_find(current, record, run_attempts(attempt->walk->run, attempt->id) + 1);
    size_t      size    = strcspn(outcome, ",");
    int         end;

    note(current, "run %s", record);
    if (current->beside && strcmp(current->beside, record) == 0)
        thread_end();
    end = record_word(step_end_names, outcome, size);
    if (end < 0)
        return fail(reterr, code_find(outcome, size), "%.*s", (int)size, outcome);
    *ret_result = (AttemptResult){.end    = (StepEnd)end,
                                  .error  = end == END_DONE ? NULL : "no",
                                  .result = arena_print(attempt->arena, "{\"of\": \"%s\"}", record)};
    return OK;
}

ErrorCode __wrap_attempt_exec(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    return act(attempt, ret_result, reterr);
}

/* The real one, which renders its templates, unless the test says what it does. */
ErrorCode __wrap_attempt_http(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    const char *record = record_text(attempt->arena, &attempt->id);

    for (int i = 0; i < current->script_count; i++)
        if (strcmp(current->scripts[i].record, record) == 0)
            return act(attempt, ret_result, reterr);
    return __real_attempt_http(attempt, ret_result, reterr);
}

ErrorCode __wrap_attempt_wallet(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    return act(attempt, ret_result, reterr);
}

ErrorCode __wrap_attempt_sql(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    return act(attempt, ret_result, reterr);
}

/* ---- the engine ---- */

static void definition_add(Engine *engine, const char *members)
{
    Arena            *arena = arena_new(ARENA_BYTES_DEFAULT * 2);
    char             *json  = arena_print(arena, "{'type': 'order', 'domain': 'shop', %s}", members);
    const Definition *definition;
    Error             error = {0};

    for (char *at = json; (at = strchr(at, '\'')); at++)
        *at = '"';
    assert_ok(definition_parse("test.json", json, strlen(json), arena, &definition, &error));
    definition_cache_add(engine->interpreter->definitions, 1, arena, definition);
    definition_cache_release(engine->interpreter->definitions, 1);
}

Engine *engine_new(const char *members)
{
    Engine *engine = memory_new(1, sizeof *engine);

    fake_clock_install((Wall){START_US});
    current             = engine;
    engine->arena       = arena_new((size_t)64 << 20);
    engine->interpreter = interpreter_new(/* pool= */ NULL, /* handler_pool= */ NULL, /* client= */ NULL);
    engine->handler     = process_handler_new(/* pool= */ NULL, interpret_body, engine->interpreter);
    engine->state       = parsed("{\"a\": 1}");
    engine->version     = 1;
    engine->phase       = "forward";
    engine->responses   = json_array();
    engine->sent        = json_array();
    engine->open        = json_array();
    definition_add(engine, members);
    return engine;
}

void engine_free(Engine *engine)
{
    process_handler_free(engine->handler);
    interpreter_free(engine->interpreter);
    json_decref(engine->state);
    json_decref(engine->responses);
    json_decref(engine->sent);
    json_decref(engine->open);
    arena_free(engine->arena);
    free(engine);
    current = NULL;
    fake_clock_restore();
}

void engine_acts(Engine *engine, const char *record, const char *outcomes)
{
    assert_true(engine->script_count < SCRIPTS_MAX);
    engine->scripts[engine->script_count++] = (Script){record, outcomes};
}

void engine_beside(Engine *engine, const char *record)
{
    engine->beside = record;
}

void engine_verdict(Engine *engine, WriteVerdict verdict)
{
    assert_true(engine->verdict_count < QUEUE_MAX);
    engine->verdicts[engine->verdict_count++] = verdict;
}

/* Each response changes the version of the state. */
static void respond(Engine *engine, const char *kind, const char *name, json_t *payload)
{
    json_array_append_new(engine->responses,
                          json_pack("{s:s, s:s, s:o}", "kind", kind, "name", name, "payload", payload));
    engine->version++;
}

void engine_signal(Engine *engine, const char *name, const char *payload)
{
    respond(engine, "signal", name, parsed(payload));
}

void engine_signal_to(Engine *engine, const char *step, const char *name, const char *payload)
{
    engine_signal(engine, name, payload);
    json_object_set_new(json_array_get(engine->responses, json_array_size(engine->responses) - 1), "to_step",
                        json_string(step));
}

void engine_cancel(Engine *engine)
{
    respond(engine, "cancel", "", parsed("{\"operator\": \"ann\"}"));
}

/* One command at a time: its id is the last one that was sent. */
void engine_reply(Engine *engine, const char *step, const char *status, const char *result)
{
    size_t  last    = json_array_size(engine->sent) - 1;
    json_t *payload = json_pack("{s:O, s:s}", "command_id", json_array_get(engine->sent, last), "status", status);

    if (result)
        json_object_set_new(payload, "result", parsed(result));
    json_array_remove(engine->sent, last);
    respond(engine, "reply", step, payload);
}

void engine_deadline(Engine *engine, int64_t ms, const char *action)
{
    engine->deadline_us     = clock_wall().us + ms * 1000;
    engine->deadline_action = action;
}

void engine_patch(Engine *engine, const char *patch)
{
    json_t *members = parsed(patch);

    json_object_update(engine->state, members);
    json_decref(members);
    engine->version++;
}

void engine_advance_ms(Engine *engine, int64_t ms)
{
    (void)engine;
    fake_clock_advance_ms(ms);
}

void engine_advance(Engine *engine)
{
    fake_clock_advance_ms((engine->due_us - clock_wall().us) / 1000);
}

void engine_retry(Engine *engine)
{
    for (int i = 0; i < engine->record_count; i++)
        engine->records[i].is_reset |= engine->records[i].error != NULL;
    engine->retried_us = clock_wall().us;
}

const char *engine_run(Engine *engine)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    ClaimedCommand            command = {.id         = 1,
                                         .token      = 1,
                                         .command_id = "00000000-0000-4000-8000-000000000001",
                                         .type       = "order",
                                         .payload    = "{}",
                                         .attempt    = 1};
    Job                       job     = {.command = &command, .domain = "process:shop", .arena = arena};
    SettleItem                settle  = {0};

    text_init(&engine->log, engine->arena, TEXT_MAX_BODY);
    job.deadline = deadline_never();
    engine->handler->run(engine->handler, &job, &settle);
    if (!settle.settled)
        note(engine, "settled %s: %s", outcome_names[settle.outcome], settle.error);
    return text_string(&engine->log);
}

const char *engine_state(Engine *engine)
{
    return dumped(engine, engine->state);
}
