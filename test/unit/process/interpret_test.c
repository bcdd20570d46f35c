/*
 * interpret_test.c - definitions at work: every kind of step, retries, waits, branches and compensation, on a real database.
 */
#include "process/interpret.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sync.h"
#include "process/process.h"
#include "test/unit/bus/fixture.h"
#include "test/unit/pg/await.h"

typedef struct {
    Bus         *bus;
    Client      *client;
    Interpreter *interpreter;
    Handler     *handler;
    Worker      *worker;
    pthread_t    thread;
} Engine;

static void *engine_body(void *context)
{
    Error error = {0};

    if (worker_run(context, &error) != OK)
        print_error("worker_run: %s\n", error.text);
    return NULL;
}

static void engine_start(Engine *engine)
{
    Error error = {0};

    engine->bus = bus_new(10);
    assert_ok(client_new(&(ClientOptions){0}, &engine->client, &error));
    engine->interpreter = interpreter_new(engine->bus->pool, engine->bus->pool, engine->client);
    engine->handler     = process_handler_new(engine->bus->pool, interpret_body, engine->interpreter);
    engine->worker      = worker_new(&(WorkerOptions){.pool        = engine->bus->pool,
                                                      .domain      = "process:shop",
                                                      .name        = "test",
                                                      .handler     = engine->handler,
                                                      .concurrency = 4});
    engine->thread      = thread_start("worker", engine_body, engine->worker);
}

static void engine_stop(Engine *engine)
{
    worker_stop(engine->worker, deadline_in_ms(5000));
    thread_join(engine->thread);
    worker_free(engine->worker);
    process_handler_free(engine->handler);
    interpreter_free(engine->interpreter);
    client_free(engine->client);
    bus_free(engine->bus);
}

static void engine_exec(Engine *engine, const char *sql)
{
    database_exec(engine->bus->db, sql);
}

/* Steps in single quotes, for tests that are easy to read. */
static void define(Engine *engine, const char *type, const char *rest)
{
    Arena            *arena = engine->bus->arena;
    char             *json  = arena_print(arena, "{'type': '%s', 'domain': 'shop', %s}", type, rest);
    const Definition *definition;
    ProcessDefined    defined;
    Error             error = {0};

    for (char *at = json; (at = strchr(at, '\'')); at++)
        *at = '"';
    if (definition_parse("test.json", json, strlen(json), arena, &definition, &error) != OK)
        fail_msg("%s", error.text);
    if (process_define(engine->bus->pool, deadline_in_ms(10000), 0, definition, "test", &defined, &error) != OK)
        fail_msg("%s", error.text);
}

static void start(Engine *engine, const char *type, const char *state)
{
    engine_exec(engine,
                arena_print(engine->bus->arena, "select pawl.start('%s', '%s', p_domain => 'shop')", type, state));
}

static const char *get(Engine *engine, const char *sql)
{
    return database_get_text(engine->bus->db, sql, engine->bus->arena);
}

static void await_ended(Engine *engine, int count)
{
    await(bus_count(engine->bus, "outcome o join pawl.process p using (id)") == count);
}

#define RESULT "select result::text from pawl.outcome"
#define STATUS "select pawl.process_status(id) from pawl.process"
#define ERROR                                                                                                         \
    "select coalesce(o.error, t.error) from pawl.process p left join pawl.outcome o using (id) left join pawl.tsq t " \
    "using (id)"
#define STEPS                                                                                                         \
    "select string_agg(pawl.record_text(step, item, undo, kind, aside), ' ' order by number) from pawl.process_step " \
    "where error is null and kind <> 'input'"

TEST(definition_sets_branches_and_returns)
{
    Engine engine;

    engine_start(&engine);
    define(&engine, "order",
           "'steps': [{'name': 'note', 'set': {'sum': '{{state.a}}', 'text': 'of {{state.who}}'}},"
           " {'name': 'check', 'when': 'state.sum > 100', 'then': 'large', 'else': 'small'},"
           " {'name': 'small', 'set': {'size': 'small'}}, {'name': 'done', 'when': 'true', 'then': 'end'},"
           " {'name': 'large', 'set': {'size': 'large'}}],"
           "'result': {'size': '{{state.size}}', 'id': '{{process.type}}', 'n': '{{state.a}}'}");
    start(&engine, "order", "{\"a\": 123456789012345678901234567890, \"who\": \"ann\"}");
    await_ended(&engine, 1);
    assert_string_equal(get(&engine, RESULT),
                        "{\"n\": 123456789012345678901234567890, \"id\": \"order\", \"size\": \"large\"}");
    assert_string_equal(get(&engine, STEPS), "note check large");
    assert_string_equal(get(&engine, STATUS), "COMPLETED");
    engine_stop(&engine);
}

TEST(definition_runs_programs_and_functions_with_retries)
{
    Engine engine;

    engine_start(&engine);
    engine_exec(&engine, "create table public.effect (key uuid primary key, input jsonb); "
                         "create function public.act(input jsonb, key uuid) returns jsonb language sql as "
                         "'insert into public.effect values ($2, $1) returning jsonb_build_object(''n'', 7)'");
    define(
        &engine, "order",
        "'steps': [{'name': 'first', 'exec': 'test $PAWL_ATTEMPT = 3 || { echo not yet >&2; exit 75; }; cat',"
        "  'input': {'a': '{{state.a}}'}, 'retry': {'attempts': 5, 'delay': '10ms'}, 'save': {'got': '{{result.a}}'}},"
        " {'name': 'second', 'sql': 'public.act', 'input': {'x': '{{steps.first.a}}'}, 'save': {'n': '{{result.n}}'}}],"
        "'result': {'got': '{{state.got}}', 'n': '{{state.n}}'}");
    start(&engine, "order", "{\"a\": [1, 2]}");
    await_ended(&engine, 1);
    assert_string_equal(get(&engine, RESULT), "{\"n\": 7, \"got\": [1, 2]}");
    assert_string_equal(get(&engine, "select string_agg(coalesce(error, 'ok'), ',' order by attempt) from "
                                     "pawl.process_step where step = 'first' and kind = 'step'"),
                        "not yet,not yet,ok");
    assert_string_equal(get(&engine, "select input::text from public.effect"), "{\"x\": [1, 2]}");
    engine_stop(&engine);
}

/* As when signals change it without end: the activation ends and is tried again later, with the memory that it had. */
TEST(definition_gives_up_a_patch_of_a_state_that_changes_each_time)
{
    Engine engine;

    engine_start(&engine);
    engine_exec(
        &engine,
        "create or replace function pawl.write_patches_check (p_ids bigint[], p_records jsonb[], p_patches jsonb[], "
        "p_versions bigint[], p_verdicts text[]) returns text[] language sql as "
        "$$ select array_fill('STALE'::text, array[cardinality(p_ids)]) $$");
    define(&engine, "order", "'steps': [{'name': 'note', 'set': {'a': 1}}]");
    define(&engine, "vote", "'steps': [{'name': 'w', 'wait': {'response': 'go'}, 'save': {'a': '{{result}}'}}]");
    start(&engine, "order", "{}");
    start(&engine, "vote", "{}");
    await(bus_count(engine.bus, "process where wait is not null") == 1);
    engine_exec(&engine, "select pawl.signal(c.command_id, 'go') from pawl.command c where c.type = 'vote'");
    await(bus_count(engine.bus, "event e join pawl.command c using (id) where e.event = 'RETRY_SCHEDULED' and c.type = "
                                "'order'") > 0);
    await(bus_count(engine.bus, "event e join pawl.command c using (id) where e.event = 'RETRY_SCHEDULED' and c.type = "
                                "'vote'") > 0);
    engine_stop(&engine);
}

TEST(definition_compensates_in_reverse_order)
{
    Engine engine;

    engine_start(&engine);
    engine_exec(&engine, "create table public.log (n serial, what text); "
                         "create function public.note(input jsonb, key uuid) returns jsonb language sql as "
                         "'insert into public.log (what) values ($1 #>> ''{}'') returning to_jsonb(n)'");
    define(&engine, "order",
           "'steps': [{'name': 'one', 'sql': 'public.note', 'input': 'one', 'compensate': {'sql': 'public.note', "
           "'input': 'undo one {{result}}'}},"
           " {'name': 'many', 'each': '{{state.list}}', 'steps': [{'name': 'item', 'sql': 'public.note', 'input': "
           "'item {{item}}',"
           "   'compensate': {'sql': 'public.note', 'input': 'undo item {{item}} at {{index}}'}}]},"
           " {'name': 'last', 'exec': 'echo out of stock >&2; exit 65'}]");
    start(&engine, "order", "{\"list\": [\"a\", \"b\"]}");
    await_ended(&engine, 1);
    assert_string_equal(get(&engine, STATUS), "COMPENSATED");
    assert_string_equal(get(&engine, ERROR), "step last: out of stock");
    assert_string_equal(get(&engine,
                            "select string_agg(what, ', ' order by n) from public.log where what like 'undo%'"),
                        "undo item b at 1, undo item a at 0, undo one 1");
    engine_stop(&engine);
}

TEST(definition_without_compensation_goes_to_troubleshooting_and_is_retried)
{
    Engine engine;

    engine_start(&engine);
    engine_exec(&engine, "create function public.act(input jsonb, key uuid) returns jsonb language plpgsql as "
                         "$$begin raise exception 'broken'; end$$");
    define(&engine, "order",
           "'steps': [{'name': 'only', 'sql': 'public.act', 'retry': {'attempts': 2, 'delay': '1ms'}}]");
    start(&engine, "order", "{}");
    await(bus_count(engine.bus, "tsq") == 1);
    assert_string_equal(get(&engine, STATUS), "WAITING_FOR_TSQ");
    assert_contains(get(&engine, ERROR), "step only: ");
    assert_contains(get(&engine, ERROR), "broken");
    engine_exec(&engine, "create or replace function public.act(input jsonb, key uuid) returns jsonb language sql as "
                         "$$select jsonb '1'$$");
    engine_exec(&engine,
                "select * from pawl.process_retry(array(select command_id from pawl.command), p_operator => 'ann')");
    await_ended(&engine, 1);
    assert_string_equal(get(&engine, STATUS), "COMPLETED");
    engine_stop(&engine);
}

TEST(definition_waits_for_responses_conditions_and_time)
{
    Engine engine;

    engine_start(&engine);
    define(&engine, "order",
           "'steps': [{'name': 'one', 'wait': {'response': 'vote'}}, {'name': 'two', 'wait': {'response': 'vote', "
           "'count': 2}},"
           " {'name': 'rest', 'sleep': '50ms'}, {'name': 'rich', 'wait': {'until': 'state.money >= 10'}},"
           " {'name': 'late', 'wait': {'response': 'never'}, 'timeout': '30ms', 'on_timeout': 'continue'}],"
           "'result': {'one': '{{steps.one}}', 'two': '{{steps.two}}'}");
    start(&engine, "order", "{}");
    await(bus_count(engine.bus, "process where wait = 'WAITING_FOR_ASYNC' and step = 'one'") == 1);
    engine_exec(
        &engine,
        "select pawl.signal(command_id, 'vote', to_jsonb(n), 'k' || n) from pawl.command, generate_series(1, 3) n");
    await(bus_count(engine.bus, "process where wait = 'WAITING_FOR_ASYNC' and step = 'rich'") == 1);
    engine_exec(&engine, "select pawl.signal(command_id, 'pay', '{\"money\": 5}', 'a') from pawl.command");
    await(bus_count(engine.bus, "process where wait = 'WAITING_FOR_ASYNC' and step = 'rich' and version > 4") == 1);
    engine_exec(&engine, "select pawl.signal(command_id, 'pay', '{\"money\": 50}', 'b') from pawl.command");
    await_ended(&engine, 1);
    assert_string_equal(get(&engine, RESULT), "{\"one\": 1, \"two\": [2, 3]}");
    engine_stop(&engine);
}

TEST(definition_runs_branches_side_by_side_and_awaits_commands_and_children)
{
    Engine engine;

    engine_start(&engine);
    define(&engine, "child",
           "'steps': [{'name': 'x', 'set': {'y': '{{state.n}}'}}], 'result': {'child': '{{state.y}}'}");
    define(&engine, "order",
           "'steps': [{'name': 'both', 'parallel': {'left': [{'name': 'c', 'process': {'type': 'child', 'state': {'n': "
           "5}}}],"
           "  'right': [{'name': 'm', 'command': {'domain': 'mail', 'type': 'send', 'payload': {'to': "
           "'{{state.who}}'}}}]}},"
           " {'name': 'all', 'each': '{{state.list}}', 'concurrency': 2, 'steps': [{'name': 'e', 'exec': 'cat', "
           "'input': '{{item}}'}]}],"
           "'result': {'both': '{{steps.both}}', 'all': '{{steps.all}}'}");
    start(&engine, "order", "{\"who\": \"ann\", \"list\": [1, 2, 3]}");
    await(bus_count(engine.bus, "ready r join pawl.command c using (id) where c.type = 'send'") == 1);
    engine_exec(
        &engine,
        "select count(*) from (select pawl.settle(array[c.id], array[c.token], '{complete}', array[c.payload]) from "
        "pawl.claim(pawl.domain_find('mail'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w') c) s");
    await_ended(&engine, 2);
    assert_string_equal(
        get(&engine, "select o.result::text from pawl.outcome o join pawl.command c using (id) where c.type = 'order'"),
        "{\"all\": [1, 2, 3], \"both\": {\"left\": {\"child\": 5}, \"right\": {\"to\": \"ann\"}}}");
    engine_stop(&engine);
}

/* The time is recorded when the sleep begins, so that a state that changes later does not move it. */
TEST(definition_sleeps_until_the_time_that_was_recorded)
{
    Engine engine;

    engine_start(&engine);
    define(&engine, "order", "'steps': [{'name': 'rest', 'sleep': {'until': '{{state.at}}'}}]");
    start(&engine, "order", "{\"at\": \"2020-11-16T09:00:00.5+01:00\"}");
    start(&engine, "order", "{\"at\": \"tomorrow\"}");
    start(&engine, "order", "{\"at\": \"2020-11-16T10:-1:00Z\"}");
    await_ended(&engine, 1);
    await(bus_count(engine.bus, "tsq") == 2);
    assert_string_equal(
        get(&engine,
            "select result #>> '{}' from pawl.process_step where step = 'rest' and kind = 'begin' order by id limit 1"),
        "2020-11-16T09:00:00.5+01:00");
    assert_contains(get(&engine, "select string_agg(error, ' ' order by error) from pawl.tsq"),
                    "\"2020-11-16T10:-1:00Z\" is not a time");
    assert_contains(get(&engine, "select string_agg(error, ' ' order by error) from pawl.tsq"),
                    "\"tomorrow\" is not a time");
    engine_stop(&engine);
}

TEST(definition_cancels_with_compensation)
{
    Engine engine;

    engine_start(&engine);
    define(&engine, "order",
           "'steps': [{'name': 'one', 'exec': 'cat', 'input': 1, 'compensate': {'exec': 'cat', 'input': '{{result}}'}},"
           " {'name': 'w', 'wait': {'response': 'never'}}]");
    start(&engine, "order", "{}");
    await(bus_count(engine.bus, "process where wait is not null") == 1);
    engine_exec(
        &engine,
        "select * from pawl.process_compensate(array(select command_id from pawl.command), null, 'ann', 'no stock')");
    await_ended(&engine, 1);
    assert_string_equal(get(&engine, STATUS), "COMPENSATED");
    assert_string_equal(get(&engine, STEPS), "one w:begin ~one");
    engine_stop(&engine);
}

/* As a worker of the domain "bank" would: the status that the command ends with. */
#define CLAIM                                                                                                       \
    "select count(*) from pawl.claim(pawl.domain_find('bank'), 10, 60000, array_fill(0::bigint, array[10]), null, " \
    "'w')"
#define COMPLETE                                                                                                      \
    "select s.* from (select array_agg(l.id) as ids, array_agg(l.token) as tokens, array_agg('complete'::text) as o," \
    " array_agg('{\"id\": 7}'::jsonb) as results from pawl.lease l where l.domain_id = pawl.domain_find('bank')) l,"  \
    " pawl.settle(l.ids, l.tokens, l.o, l.results) s"
#define BILL                                                                                               \
    "{'name': 'bill', 'command': {'domain': 'bank', 'type': 'charge'}, 'save': {'bill': '{{result.id}}'}," \
    " 'compensate': {'exec': 'cat', 'input': '{{result.id}}/{{state.bill}}'}}"
#define COMPENSATE \
    "select * from pawl.process_compensate(array(select command_id from pawl.process join pawl.command using (id)))"

TEST(definition_compensates_a_command_that_completed_before_it_was_recorded)
{
    Engine engine;

    engine_start(&engine);
    engine_exec(&engine, "create schema demo; create table demo.go (n integer); insert into demo.go values (1);"
                         "create function demo.fails (input jsonb, key uuid) returns jsonb language plpgsql as $$ begin"
                         " while exists (select from demo.go) loop perform pg_sleep(0.01); end loop;"
                         " raise exception 'no' using errcode = 'QU070'; end $$");
    define(&engine, "order",
           "'on_failure': 'compensate', 'steps': [{'name': 'both', 'parallel': {'a': [" BILL
           "], 'b': [{'name': 'fails', 'sql': 'demo.fails'}]}}]");
    start(&engine, "order", "{}");
    await(bus_count(engine.bus, "ready where domain_id = pawl.domain_find('bank')") == 1);
    engine_exec(&engine, CLAIM);
    engine_exec(&engine, COMPLETE);
    engine_exec(&engine, "delete from demo.go"); /* now the other branch fails: it has not seen the reply */
    await_ended(&engine, 1);
    assert_string_equal(get(&engine, STATUS), "COMPENSATED");
    assert_string_equal(get(&engine, STEPS), "bill ~bill");
    assert_string_equal(
        get(&engine, "select result::text from pawl.process_step where step = 'bill' and undo and kind = 'step'"),
        "\"7/7\"");
    assert_contains(get(&engine, ERROR), "step fails: no");
    engine_stop(&engine);
}

TEST(definition_waits_for_what_it_has_sent_before_it_compensates)
{
    Engine engine;

    engine_start(&engine);
    define(&engine, "order",
           "'steps': [{'name': 'one', 'exec': 'cat', 'input': 1, 'compensate': {'exec': 'cat'}}, " BILL "]");
    /* A worker has it, and it cannot be canceled any more. */
    start(&engine, "order", "{}");
    await(bus_count(engine.bus, "process where wait is not null") == 1);
    engine_exec(&engine, CLAIM);
    engine_exec(&engine, COMPENSATE);
    await(bus_count(engine.bus, "process where wait is not null and phase = 'compensating'") == 1);
    assert_string_equal(get(&engine, STEPS), "one");
    assert_string_equal(get(&engine, "select waits::text from pawl.process"),
                        "[{\"kind\": \"reply\", \"name\": \"bill\", \"count\": 1}]");
    assert_string_equal(get(&engine, STATUS), "COMPENSATING");
    engine_exec(&engine, "select pawl.process_orphans_cancel()");
    engine_exec(&engine, COMPLETE);
    await_ended(&engine, 1);
    assert_string_equal(get(&engine, STATUS), "COMPENSATED");
    assert_string_equal(get(&engine, STEPS), "one bill ~bill ~one");
    /* It waits in its queue: canceled, so there is nothing to compensate. */
    engine_exec(&engine, "truncate pawl.process, pawl.process_step, pawl.process_sent");
    start(&engine, "order", "{}");
    await(bus_count(engine.bus, "process where wait is not null") == 1);
    engine_exec(&engine, COMPENSATE);
    await(bus_count(engine.bus, "process where wait is not null and phase = 'compensating'") == 1);
    engine_exec(&engine, "select pawl.process_orphans_cancel()");
    await_ended(&engine, 1);
    assert_string_equal(get(&engine, STATUS), "COMPENSATED");
    assert_string_equal(get(&engine, STEPS), "one ~one");
    engine_stop(&engine);
}

TEST(definition_compensates_a_child_whose_reply_meets_a_cancellation)
{
    Engine engine;

    engine_start(&engine);
    define(&engine, "kid", "'steps': [{'name': 'w', 'wait': {'response': 'go'}}]");
    define(&engine, "order",
           "'steps': [{'name': 'kid', 'process': {'type': 'kid', 'domain': 'shop'},"
           " 'compensate': {'exec': 'cat', 'input': 1}}]");
    start(&engine, "order", "{}");
    await(bus_count(engine.bus, "process where wait is not null") == 2);
    /* The child ends by an operator's decision, and its parent is canceled, before it is activated: one transaction. */
    engine_exec(
        &engine,
        "begin; select pawl.finish(array(select p.id from pawl.process p where p.depth = 1), 'COMPLETED',"
        " 'OPERATOR_COMPLETE', '{}', null, 'ann');"
        "select * from pawl.process_compensate(array(select c.command_id from pawl.process p join pawl.command c"
        " using (id) where p.depth = 0)); commit");
    await_ended(&engine, 2);
    assert_string_equal(get(&engine, STATUS " where depth = 0"), "COMPENSATED");
    assert_string_equal(get(&engine, "select string_agg(pawl.record_text(s.step, s.item, s.undo), ' ' order by "
                                     "s.number) from pawl.process_step s"
                                     " join pawl.process p using (id) where p.depth = 0"),
                        "kid ~kid");
    engine_stop(&engine);
}
