/*
 * handler_sql_test.c - the function's effects and the settling commit together, whatever breaks in between.
 */
#include "base/fault.h"
#include "bus/handler.h"
#include "bus/handler_tx.h"
#include "test/unit/bus/fixture.h"

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

    assert_ok(handler_sql_new(bus->pool, soon(), function, &handler, &error));
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

    assert_code(ERR_INVALID, handler_sql_new(bus->pool, soon(), "pay", &handler, &error));
    assert_contains(error.text, "schema.function");
    assert_code(ERR_NOT_FOUND, handler_sql_new(bus->pool, soon(), "public.pay(); drop table effect", &handler, &error));
    assert_code(ERR_NOT_FOUND, handler_sql_new(bus->pool, soon(), "public.nothing", &handler, &error));
    assert_contains(error.text, "public.nothing(payload jsonb, command_id uuid) returns jsonb does not exist");
}
