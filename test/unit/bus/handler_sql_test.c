/*
 * handler_sql_test.c - the function's effects and the settling commit together, whatever breaks in between.
 */
#include <unistd.h>

#include "base/fault.h"
#include "bus/handler.h"
#include "bus/handler_tx.h"
#include "pg/conn.h"
#include "pg/tx.h"
#include "test/unit/bus/fixture.h"
#include "test/unit/pg/await.h"

#define LEFTOVER_COLUMNS(X, T) X(T, I64, value)
DB_ROW(Leftover, LEFTOVER_COLUMNS);
DB_SHAPE(leftover, Leftover, LEFTOVER_COLUMNS);

static Bus *bus_with_functions(void)
{
    Bus *bus = bus_new(4);

    database_exec(bus->db, "create table effect (command_id uuid)");
    database_exec(bus->db,
                  "create function public.pay(payload jsonb, command_id uuid) returns jsonb language plpgsql as $$ "
                  "begin insert into effect values (command_id); "
                  "if payload ? 'code' then raise exception 'not today' using errcode = payload->>'code'; end if; "
                  "return jsonb_build_object('paid', payload -> 'n'); end $$");
    return bus;
}

static Handler *handler_open(Bus *bus, const char *function)
{
    Handler *handler = NULL;
    Error    error   = {0};

    assert_ok(handler_sql_new(bus->pool, soon(), function, /* shares= */ true, &handler, &error));
    return handler;
}

static ClaimedCommand *claimed_with(Bus *bus, const char *payload)
{
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "bank", NULL, "w1");
    SendItem                      item    = bus_item("bank", "pay", payload);
    SendItem                     *list    = &item;
    ClaimedCommand               *claimed = NULL;
    Error                         error   = {0};

    assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    assert_int_equal(bus_claim(bus, claimer, 1, 30000, &claimed), 1);
    return claimed;
}

static SettleItem handle(Bus *bus, const ClaimedCommand *command)
{
    Handler   *handler = handler_open(bus, "public.pay");
    Job        task    = {.command = command, .domain = "bank", .arena = bus->arena, .deadline = soon()};
    SettleItem item    = {0};

    handler->run(handler, &task, &item);
    handler_sql_free(handler);
    return item;
}

static int64_t effects(Bus *bus)
{
    return database_get_i64(bus->db, "select count(*) from effect");
}

TEST(sql_handler_settles_in_the_same_transaction)
{
    scoped(bus_free) Bus *bus  = bus_with_functions();
    SettleItem            item = handle(bus, claimed_with(bus, "{\"n\": 7}"));

    assert_true(item.settled);
    assert_string_equal(item.status, "COMPLETED");
    assert_int_equal(effects(bus), 1);
    assert_int_equal(bus_count(bus, "outcome where result = '{\"paid\": 7}'"), 1);
}

TEST(sql_handler_errcodes_decide)
{
    static const struct {
        const char *payload;
        Outcome     outcome;
    } rows[] = {
        {"{\"code\": \"QU065\"}", OUTCOME_REJECT},
        {"{\"code\": \"QU070\"}", OUTCOME_FAIL  },
        {"{\"code\": \"22012\"}", OUTCOME_RETRY }
    };
    scoped(bus_free) Bus *bus = bus_with_functions();

    for (size_t i = 0; i < COUNT(rows); i++) {
        SettleItem item = handle(bus, claimed_with(bus, rows[i].payload));

        assert_null(item.status); /* the worker settles it */
        assert_int_equal(item.outcome, rows[i].outcome);
        assert_contains(item.error, "not today (SQLSTATE ");
    }
    assert_int_equal(effects(bus), 0);
}

/* Those that a lost connection, a standby or a full disk has. */
TEST(sql_handler_may_raise_what_an_outage_is_called_by)
{
    static const struct {
        const char *payload, *error;
        int64_t     calls;
    } rows[] = {
        {"{\"code\": \"08006\"}", "not today (SQLSTATE 08006)", 1},
        {"{\"code\": \"57P01\"}", "not today (SQLSTATE 57P01)", 1},
        {"{\"code\": \"25006\"}", "not today (SQLSTATE 25006)", 4},
        {"{\"code\": \"53100\"}", "not today (SQLSTATE 53100)", 4},
    };
    scoped(bus_free) Bus *bus = bus_with_functions();

    database_exec(bus->db, "create sequence calls; create function public.count() returns trigger language plpgsql as "
                           "$$ begin perform nextval('public.calls'); return new; end $$; "
                           "create trigger count before insert on effect for each row execute function public.count()");
    for (size_t i = 0; i < COUNT(rows); i++) {
        database_exec(bus->db, "select setval('public.calls', 1, false)");
        SettleItem item = handle(bus, claimed_with(bus, rows[i].payload));

        assert_null(item.status);
        assert_int_equal(item.outcome, OUTCOME_RETRY);
        assert_string_equal(item.error, rows[i].error);
        assert_int_equal(database_get_i64(bus->db, "select last_value from public.calls"), rows[i].calls);
    }
    PoolStatus status;
    pool_status(bus->pool, &status);
    assert_int_equal(status.breaker, BREAKER_CLOSED);
    assert_string_equal(status.last_error, "");
}

static SettleItem handle_within(Bus *bus, const char *function, size_t arena_bytes, Deadline deadline,
                                bool *ret_timed_out)
{
    Handler   *handler = handler_open(bus, function);
    Arena     *arena   = arena_new(arena_bytes);
    Job        task    = {.command = claimed_with(bus, "{}"), .domain = "bank", .arena = arena, .deadline = deadline};
    SettleItem item    = {0};

    handler->run(handler, &task, &item);
    item.error     = item.error ? arena_text(bus->arena, item.error) : NULL;
    *ret_timed_out = task.timed_out;
    handler_sql_free(handler);
    arena_free(arena);
    return item;
}

TEST(sql_handler_with_a_result_too_large_fails_for_good)
{
    scoped(bus_free) Bus *bus = bus_with_functions();
    bool                  timed_out;
    SettleItem            item;

    database_exec(bus->db, "create function public.large(payload jsonb, command_id uuid) returns jsonb language sql as "
                           "$$ select to_jsonb(repeat('x', 4 * 1024 * 1024)) $$");
    item = handle_within(bus, "public.large", (size_t)6 << 20, soon(), &timed_out);
    assert_null(item.status);
    assert_int_equal(item.outcome, OUTCOME_FAIL);
    assert_string_equal(item.error, "outcome could not be stored: result of 4194306 bytes is too large");
    item = handle_within(bus, "public.large", (size_t)3 << 20, soon(), &timed_out);
    assert_int_equal(item.outcome, OUTCOME_FAIL);
    assert_string_equal(item.error, "result is too large to be read");
}

TEST(sql_handler_whose_time_is_up_says_so)
{
    scoped(bus_free) Bus *bus       = bus_with_functions();
    bool                  timed_out = false;
    SettleItem            item;

    database_exec(bus->db, "create function public.slow(payload jsonb, command_id uuid) returns jsonb language sql as "
                           "$$ select to_jsonb(pg_sleep(60)::text) $$");
    item = handle_within(bus, "public.slow", (size_t)6 << 20, deadline_in_ms(2000), &timed_out);
    assert_int_equal(item.outcome, OUTCOME_RETRY);
    assert_true(timed_out);
}

TEST(sql_handler_without_its_lease_leaves_no_effect)
{
    scoped(bus_free) Bus *bus     = bus_with_functions();
    ClaimedCommand       *claimed = claimed_with(bus, "{}");

    database_exec(bus->db, "update pawl.lease set token = token + 1");
    SettleItem item = handle(bus, claimed);
    assert_false(item.settled);
    assert_string_equal(item.status, "IN_PROGRESS");
    assert_int_equal(effects(bus), 0);
}

TEST(sql_handler_effects_are_exactly_once_whatever_breaks)
{
    static const char *const points[] = {"bus.sql.settle", "pg.commit.before", "pg.commit.after"};

    for (size_t i = 0; i < COUNT(points); i++) {
        scoped(bus_free) Bus *bus     = bus_with_functions();
        ClaimedCommand       *claimed = claimed_with(bus, "{}");

        fault_arm(points[i], 1);
        SettleItem item = handle(bus, claimed);
        assert_true(fault_was_hit());
        fault_arm_nth(0);
        assert_true(item.settled); /* after a lost commit too: it is known to have been its own */
        assert_string_equal(item.status, "COMPLETED");
        assert_int_equal(effects(bus), 1);
        assert_int_equal(bus_count(bus, "outcome where status = 'COMPLETED'"), 1);
    }
}

/* ---- several commands in one transaction ---- */

#define SHARED 4
#define TRIES  1000

typedef struct {
    Job        jobs[SHARED], *job_list[SHARED];
    SettleItem items[SHARED], *item_list[SHARED];
} Shared;

static Shared *shared_new(Bus *bus, const char *const *payloads)
{
    Shared *shared = arena_alloc(bus->arena, sizeof *shared);

    for (int i = 0; i < SHARED; i++) {
        const ClaimedCommand *command = claimed_with(bus, payloads ? payloads[i] : "{}");

        shared->jobs[i]  = (Job){.command = command, .domain = "bank", .arena = bus->arena, .deadline = soon()};
        shared->items[i] = (SettleItem){.id = command->id, .token = command->token, .delay_ms = SETTLE_DELAY_DEFAULT};
        shared->job_list[i]  = &shared->jobs[i];
        shared->item_list[i] = &shared->items[i];
    }
    return shared;
}

/* How many are to be run alone. */
static int handle_shared(Bus *bus, Shared *shared, const char *function)
{
    Handler *handler = handler_open(bus, function);
    int      undone  = 0;

    handler->run_shared(handler, shared->job_list, shared->item_list, SHARED);
    handler_sql_free(handler);
    for (int i = 0; i < SHARED; i++) {
        assert_true(shared->items[i].settled == (shared->items[i].status != NULL));
        undone += !shared->items[i].status;
    }
    return undone;
}

TEST(sql_handlers_share_a_transaction_and_one_that_fails_is_undone_alone)
{
    static const char *const payloads[SHARED] = {"{\"n\": 1}", "{\"code\": \"08006\"}", "{}", "{\"code\": \"QU065\"}"};
    scoped(bus_free) Bus    *bus              = bus_with_functions();
    Shared                  *shared           = shared_new(bus, payloads);
    int                      undone           = SHARED;

    /* On a busy machine the time of the statement may be over, which undoes all of them: then they are tried again. */
    for (int tries = 0; undone == SHARED && tries < TRIES; tries++)
        undone = handle_shared(bus, shared, "public.pay");
    assert_int_equal(undone, 2);
    assert_string_equal(shared->items[0].status, "COMPLETED");
    assert_string_equal(shared->items[2].status, "COMPLETED");
    assert_int_equal(effects(bus), 2);
    assert_int_equal(bus_count(bus, "outcome where status = 'COMPLETED'"), 2);
    assert_int_equal(bus_count(bus, "outcome where result = '{\"paid\": 1}'"), 1);
    assert_int_equal(bus_count(bus, "lease where attempt = 1"), 2); /* to be run alone: it was no attempt */
}

/* What was undone with a transaction has no effect; what a lost response was about is known when it is run alone. */
TEST(sql_handlers_that_share_have_effects_exactly_once_whatever_breaks)
{
    static const char *const points[] = {"pg.commit.before", "pg.commit.after"};

    for (size_t i = 0; i < COUNT(points); i++) {
        scoped(bus_free) Bus *bus    = bus_with_functions();
        Shared               *shared = shared_new(bus, NULL);

        fault_arm(points[i], 1);
        for (int tries = 0; !fault_was_hit() && tries < TRIES; tries++) /* until the statement ends in time */
            assert_int_equal(handle_shared(bus, shared, "public.pay"), SHARED);
        assert_true(fault_was_hit());
        fault_arm_nth(0);
        for (int n = 0; n < SHARED; n++) {
            SettleItem item = handle(bus, shared->jobs[n].command);

            assert_true(item.settled);
            assert_string_equal(item.status, "COMPLETED");
        }
        assert_int_equal(effects(bus), SHARED);
        assert_int_equal(database_get_i64(bus->db, "select count(distinct command_id) from effect"), SHARED);
    }
}

TEST(sql_handlers_that_share_a_connection_are_stopped_by_one_cancel)
{
    scoped(bus_free) Bus    *bus     = bus_with_functions();
    scoped(conn_close) Conn *conn    = NULL;
    Handler                 *handler = handler_open(bus, "public.pay");
    Job                      first = {0}, second = {0};
    PGresult                *result;
    Error                    error;

    assert_ok(conn_open(database_url(bus->db), "stopped", soon(), &conn, &error));
    first.run = second.run = conn;
    assert_int_equal(PQsendQuery(conn_native(conn), "select pg_sleep(600) /* shared */"), 1);
    await(PQflush(conn_native(conn)) == 0);
    await(database_get_i64(bus->db, "select count(*) from pg_stat_activity where state = 'active' and query like "
                                    "'%/* shared */' and pid <> pg_backend_pid()") == 1);
    handler->stop(handler, &first);
    handler->stop(handler, &second);
    result = PQgetResult(conn_native(conn));
    assert_string_equal(PQresultErrorField(result, PG_DIAG_SQLSTATE), "57014");
    PQclear(result);
    assert_null(PQgetResult(conn_native(conn)));
    handler_sql_free(handler);
}

/* The neighbours of one that is slow wait SHARED_LIMIT_MS, not until a deadline. */
TEST(sql_handlers_that_share_end_soon_when_one_is_slow)
{
    static const char *const payloads[SHARED] = {"{}", "{}", "{\"wait\": 60}", "{}"};
    scoped(bus_free) Bus    *bus              = bus_with_functions();
    Mono                     began;

    database_exec(bus->db,
                  "create function public.waits(payload jsonb, command_id uuid) returns jsonb language plpgsql as "
                  "$$ begin insert into effect values (command_id); "
                  "perform pg_sleep((payload ->> 'wait')::real); return payload; end $$");
    Shared *shared = shared_new(bus, payloads);
    began          = clock_mono();
    assert_int_equal(handle_shared(bus, shared, "public.waits"), SHARED);
    assert_true(mono_ms_between(began, clock_mono()) < 5000);
    assert_int_equal(effects(bus), 0);
}

/* Alone it would have had more time: what it has decided then must not be its outcome. */
TEST(sql_handlers_that_share_settle_nothing_when_one_has_caught_the_end_of_its_time)
{
    static const char *const payloads[SHARED] = {"{}", "{}", "{\"wait\": 60}", "{}"};
    scoped(bus_free) Bus    *bus              = bus_with_functions();

    database_exec(bus->db,
                  "create function public.skips(payload jsonb, command_id uuid) returns jsonb language plpgsql as "
                  "$$ begin insert into effect values (command_id); perform pg_sleep((payload ->> 'wait')::real); "
                  "return payload; "
                  "exception when query_canceled then return '{\"skipped\": true}'; end $$");
    assert_int_equal(handle_shared(bus, shared_new(bus, payloads), "public.skips"), SHARED);
    assert_int_equal(effects(bus), 0);
}

TEST(sql_handlers_that_share_are_stopped_together)
{
    scoped(bus_free) Bus *bus    = bus_with_functions();
    Shared               *shared = shared_new(bus, NULL);

    atomic_store(&shared->jobs[2].stopped, true);
    assert_int_equal(handle_shared(bus, shared, "public.pay"), SHARED);
    assert_int_equal(effects(bus), 0);
}

/* Twice as many while they are short, as many as fit when they are not, and one for a while after a transaction that was undone. */
TEST(sql_handlers_share_as_many_as_are_short)
{
    scoped(bus_free) Bus *bus     = bus_with_functions();
    TxHandler             handler = {0};

    tx_handler_init(&handler, bus->pool, NULL);
    for (int count = 1; count < HANDLER_SHARED_MAX; count = tx_handler_shared_most(&handler.base)) {
        assert_int_equal(tx_handler_shared_most(&handler.base), count);
        tx_handler_took(&handler, count, 1000);
        assert_true(tx_handler_shared_most(&handler.base) > count);
    }
    tx_handler_took(&handler, HANDLER_SHARED_MAX, 3 * SHARED_US);
    assert_int_equal(tx_handler_shared_most(&handler.base), HANDLER_SHARED_MAX / 3);
    tx_handler_took(&handler, 1, SHARED_US - 1);
    assert_int_equal(tx_handler_shared_most(&handler.base), HANDLER_SHARED_MAX / 3);
    tx_handler_took(&handler, 1, 2 * SHARED_US);
    assert_int_equal(tx_handler_shared_most(&handler.base), 1);
    tx_handler_took(&handler, 1, SHARED_US - 1);
    assert_int_equal(tx_handler_shared_most(&handler.base), 1);
    tx_handler_done(&handler);
}

/* So many fail. Returns how long the handler shares nothing then. On a busy machine the time of the statement may be over, which undoes all of them:
 * then it is done again. */
static int pause_after(Bus *bus, Handler *handler, int before_ms, int failing)
{
    const char *payloads[SHARED];
    Shared     *shared;
    int         undone;

    for (int i = 0; i < SHARED; i++)
        payloads[i] = i < failing ? "{\"code\": \"QU065\"}" : "{}";
    do {
        ((TxHandler *)handler)->shared_pause_ms = before_ms;
        shared                                  = shared_new(bus, payloads);
        handler->run_shared(handler, shared->job_list, shared->item_list, SHARED);
        undone = 0;
        for (int i = 0; i < SHARED; i++)
            undone += !shared->items[i].status;
    } while (undone != failing);
    return ((TxHandler *)handler)->shared_pause_ms;
}

TEST(sql_handlers_share_nothing_for_a_while_when_more_than_a_quarter_is_undone)
{
    scoped(bus_free) Bus *bus     = bus_with_functions();
    Handler              *handler = handler_open(bus, "public.pay");

    assert_int_equal(pause_after(bus, handler, 0, SHARED / 4), 0);
    assert_int_equal(pause_after(bus, handler, 0, SHARED / 4 + 1), SHARED_PAUSE_MS);
    assert_int_equal(handler->shared_most(handler), 1);
    assert_int_equal(pause_after(bus, handler, SHARED_PAUSE_MS, SHARED), 2 * SHARED_PAUSE_MS);
    assert_int_equal(pause_after(bus, handler, SHARED_PAUSE_MS_MAX, SHARED), SHARED_PAUSE_MS_MAX);
    assert_int_equal(handler->shared_most(handler), 1);
    handler_sql_free(handler);
}

/* What outlives a transaction: settings, advisory locks, temporary tables, channels. Asked on a connection of the pool. */
static int64_t session_leftovers(Bus *bus)
{
    TxOptions options = {.name = "leftovers", .deadline = soon(), .arena = bus->arena, .read_only = true};
    Leftover  left    = {-1};
    Error     error   = {0};

    assert_ok(
        db_call(bus->pool, &options,
                "select (select count(*) from pg_settings where source = 'session' and name in "
                "('synchronous_commit', 'search_path') and setting <> 'pg_catalog, pg_temp') + (select count(*) from "
                "pg_locks where locktype = 'advisory' "
                "and pid = pg_backend_pid()) + (select count(*) from pg_class where oid = to_regclass('pg_temp.mine')) "
                "+ (select count(*) from pg_listening_channels()) as value",
                DB_NONE, &leftover_shape, &left, &error));
    return left.value;
}

TEST(sql_handler_leaves_nothing_in_its_session)
{
    static const char *const payloads[] = {"{\"n\": 1}", "{\"code\": \"22012\"}", "{\"code\": \"QU065\"}"};
    scoped(bus_free) Bus    *bus        = bus_new(1); /* the next statement has the same connection */

    database_exec(
        bus->db,
        "create function public.pay(payload jsonb, command_id uuid) returns jsonb language plpgsql as $$ "
        "begin perform set_config('synchronous_commit', 'off', false), set_config('search_path', 'pg_temp', false), "
        "pg_advisory_lock(7); create temp table mine (n integer); listen gossip; "
        "if payload ? 'code' then raise exception 'not today' using errcode = payload->>'code'; end if; "
        "return null; end $$");
    for (size_t i = 0; i < COUNT(payloads); i++) {
        SettleItem item = handle(bus, claimed_with(bus, payloads[i]));

        assert_true(item.outcome == OUTCOME_COMPLETE ? item.settled : item.error != NULL);
        assert_int_equal(session_leftovers(bus), 0);
    }
}

/* What the handler sets for its transaction is not for the statement that settles its command. */
TEST(sql_handler_settings_do_not_hold_for_the_settle)
{
    static const char *const payloads[] = {"{\"role\": \"pg_monitor\"}", "{\"session_authorization\": \"pg_monitor\"}",
                                           "{\"search_path\": \"nowhere\"}", "{\"statement_timeout\": \"1\"}",
                                           "{\"client_encoding\": \"LATIN1\"}"};
    scoped(bus_free) Bus    *bus        = bus_new(1);

    database_exec(bus->db,
                  "create function public.pay(payload jsonb, command_id uuid) returns jsonb language plpgsql as $$ "
                  "begin perform set_config(e.key, e.value, true) from jsonb_each_text(payload) e; "
                  "return '\"\u0416\"'; end $$");
    for (size_t i = 0; i < COUNT(payloads); i++) {
        SettleItem item = handle(bus, claimed_with(bus, payloads[i]));

        assert_true(item.settled);
        assert_null(item.error);
    }
}

TEST(sql_handler_that_makes_its_transaction_read_only_fails_its_attempt)
{
    scoped(bus_free) Bus *bus = bus_new(1);

    database_exec(bus->db,
                  "create function public.pay(payload jsonb, command_id uuid) returns jsonb language plpgsql as $$ "
                  "begin perform set_config('transaction_read_only', 'on', true); return null; end $$");
    SettleItem item = handle(bus, claimed_with(bus, "{}"));
    assert_int_equal(item.outcome, OUTCOME_RETRY);
    assert_false(item.settled);
    assert_contains(item.error, "public.pay made its transaction read only");
}

static ErrorCode body_breaks(Tx *tx, Job *task, void *context, SettleItem *ret_settle, Error *reterr)
{
    (void)task;
    (void)ret_settle;
    ++*(int *)context;
    conn_condemn(tx->conn);
    return fail(reterr, ERR_UNAVAILABLE, "connection lost");
}

static SettleItem handle_in_outage(Pool *pool, Arena *arena, int *calls, const char **ret_not_begun)
{
    ClaimedCommand command = {.id = 7, .token = 1};
    Job            task    = {.command = &command, .arena = arena, .deadline = deadline_in_ms(3000)};
    TxHandler      handler = {0};
    SettleItem     item    = {0};

    tx_handler_init(&handler, pool, NULL);
    tx_handler_run(&handler, &task, body_breaks, calls, &item);
    tx_handler_done(&handler);
    *ret_not_begun = task.not_begun;
    return item;
}

TEST(sql_handler_in_an_outage_uses_up_no_attempt_unless_it_was_begun)
{
    const char             *not_begun;
    scoped(bus_free) Bus   *bus   = bus_new(4);
    scoped(pool_free) Pool *none  = NULL;
    Error                   error = {0};
    int                     calls = 0;
    SettleItem              item;

    assert_ok(pool_new(&(PoolOptions){.conninfo = "host=/nonexistent"}, &none, &error));
    item = handle_in_outage(none, bus->arena, &calls, &not_begun);
    assert_int_equal(calls, 0);
    assert_non_null(not_begun);
    /* What clients can read names no host; the worker's log does. */
    assert_contains(not_begun, "/nonexistent");
    assert_non_null(item.error);
    assert_null(strstr(item.error, "/nonexistent"));
    /* It may be what breaks the connection. */
    item = handle_in_outage(bus->pool, bus->arena, &calls, &not_begun);
    assert_true(calls > 0);
    assert_null(not_begun);
    assert_int_equal(item.outcome, OUTCOME_RETRY);
    assert_int_equal(item.delay_ms, SETTLE_DELAY_DEFAULT);
}

TEST(sql_handler_must_exist)
{
    scoped(bus_free) Bus *bus     = bus_with_functions();
    Handler              *handler = NULL;
    Error                 error   = {0};

    assert_code(ERR_INVALID, handler_sql_new(bus->pool, soon(), "pay", /* shares= */ true, &handler, &error));
    assert_contains(error.text, "schema.function");
    assert_code(ERR_NOT_FOUND, handler_sql_new(bus->pool, soon(), "public.pay(); drop table effect", /* shares= */ true,
                                               &handler, &error));
    assert_code(ERR_NOT_FOUND,
                handler_sql_new(bus->pool, soon(), "public.nothing", /* shares= */ true, &handler, &error));
    assert_contains(error.text, "public.nothing(payload jsonb, command_id uuid) returns jsonb does not exist");
}

/* A function that writes down as whom it runs; it belongs to a role without rights over the connection's. */
static void function_of_another_role(Bus *bus, const char *role)
{
    char text[512];

    snprintf(text, sizeof text,
             "create role %s; create role %s_login login in role pawl_handler; create table who (name text); grant "
             "insert on who to %s; grant create on schema public to %s; "
             "create function public.own(payload jsonb, command_id uuid) returns jsonb language sql as "
             "$$ insert into public.who values (current_user) returning '{}'::jsonb $$; "
             "alter function public.own owner to %s",
             role, role, role, role, role);
    database_exec(bus->db, text);
}

/* Connections of a login that may only call functions and settle. */
static Pool *pool_of_login(Bus *bus, const char *role)
{
    Pool *pool  = NULL;
    Error error = {0};
    char  url[512];

    snprintf(url, sizeof url, "%s user=%s_login", database_url(bus->db), role);
    assert_ok(pool_new(&(PoolOptions){.conninfo = url, .size_max = 1}, &pool, &error));
    return pool;
}

TEST(sql_handler_of_another_role_runs_with_that_role_s_rights_only)
{
    scoped(bus_free) Bus *bus     = bus_with_functions();
    Handler              *handler = NULL;
    Error                 error   = {0};
    char                  role[32], text[128];

    snprintf(role, sizeof role, "pawl_test_own_%d", (int)getpid());
    function_of_another_role(bus, role);
    assert_code(ERR_DENIED, handler_sql_new(bus->pool, soon(), "public.own", /* shares= */ true, &handler, &error));
    assert_contains(error.text, role);
    assert_contains(error.text, "security definer");

    /* What it leaves behind would have the rights of the connection. */
    database_exec(bus->db, "alter function public.own security definer");
    assert_code(ERR_DENIED, handler_sql_new(bus->pool, soon(), "public.own", /* shares= */ true, &handler, &error));
    assert_contains(error.text, "PAWL_HANDLER_DATABASE_URL");
    scoped(pool_free) Pool *pool = pool_of_login(bus, role);
    database_exec(bus->db, "revoke execute on function public.own from public");
    assert_code(ERR_DENIED, handler_sql_new(pool, soon(), "public.own", /* shares= */ true, &handler, &error));
    assert_contains(error.text, "EXECUTE");
    database_exec(bus->db, "grant execute on function public.own to public");

    /* One that was replaced while the worker runs is not called either. */
    assert_ok(handler_sql_new(pool, soon(), "public.own", /* shares= */ true, &handler, &error));
    Job        task = {.command = claimed_with(bus, "{}"), .domain = "bank", .arena = bus->arena, .deadline = soon()};
    SettleItem settled = {0}, refused = {0};
    handler->run(handler, &task, &settled);
    database_exec(bus->db, "alter function public.own security invoker immutable");
    task.command = claimed_with(bus, "{}");
    handler->run(handler, &task, &refused);
    handler_sql_free(handler);

    assert_string_equal(settled.status, "COMPLETED");
    assert_int_equal(refused.outcome, OUTCOME_RETRY);
    assert_contains(refused.error, "security definer");
    assert_contains(task.not_begun, "security definer");
    snprintf(text, sizeof text, "select count(*) filter (where name = '%s') * 10 + count(*) from who", role);
    assert_int_equal(database_get_i64(bus->db, text), 11);
    snprintf(text, sizeof text, "drop owned by %s; drop role %s, %s_login", role, role, role);
    database_exec(bus->db, text);
}
