/*
 * settle_test.c - how commands end: once, under their token, each for itself.
 */
#include "bus/settle.h"

#include <string.h>

#include "base/sync.h"
#include "test/unit/bus/fixture.h"
#include "test/unit/pg/await.h"

static ClaimedCommand *claimed_again(Bus *bus)
{
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    ClaimedCommand               *claimed = NULL;

    assert_int_equal(bus_claim(bus, claimer, 1, 30000, &claimed), 1);
    return claimed;
}

static ClaimedCommand *one_claimed(Bus *bus)
{
    bus_send(bus, "mail", 1);
    return claimed_again(bus);
}

TEST(settle_outcomes_lead_where_they_should)
{
    static const struct {
        Outcome     outcome;
        const char *status, *table, *event;
    } rows[] = {
        {OUTCOME_COMPLETE, "COMPLETED", "outcome where status = 'COMPLETED' and result = '[1]'",      "COMPLETED"      },
        {OUTCOME_REJECT,   "FAILED",    "outcome where status = 'FAILED' and error = 'why'",          "FAILED"         },
        {OUTCOME_FAIL,     "IN_TSQ",    "tsq where error = 'why'",                                    "MOVED_TO_TSQ"   },
        {OUTCOME_RETRY,    "PENDING",   "delayed where due between now() + '7 s' and now() + '10 s'", "RETRY_SCHEDULED"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped(bus_free) Bus *bus  = bus_new(4);
        SettleItem            item = bus_settle(bus, one_claimed(bus), rows[i].outcome, "[1]", "why");

        assert_true(item.settled);
        assert_string_equal(item.status, rows[i].status);
        assert_int_equal(bus_count(bus, rows[i].table), 1);
        assert_int_equal(bus_count(bus, "lease"), 0);
        assert_int_equal(bus_count(bus, arena_print(bus->arena, "audit where event = '%s'", rows[i].event)), 1);
    }
}

/* One that waits for the only connection. */
typedef struct {
    Bus        *bus;
    SettleItem *item; /* NULL: an ordinary caller */
    Checkout   *checkout;
    ErrorCode   code;
} Caller;

static void *caller_run(void *context)
{
    Caller *caller = context;
    Error   error  = {0};

    caller->code = caller->item ? settle_many(caller->bus->pool, soon(), caller->bus->arena, &caller->item, 1, &error)
                                : pool_acquire(caller->bus->pool, soon(), &caller->checkout, &error);
    return NULL;
}

static int waiting_of(Pool *pool)
{
    PoolStatus status;

    pool_status(pool, &status);
    return status.waiting;
}

TEST(settle_goes_before_ordinary_callers_that_came_first)
{
    scoped(bus_free) Bus *bus        = bus_new(1);
    ClaimedCommand       *claimed    = one_claimed(bus);
    SettleItem            item       = {.id = claimed->id, .token = claimed->token, .outcome = OUTCOME_COMPLETE};
    Caller                callers[2] = {
        {.bus = bus},
        {.bus = bus, .item = &item}
    };
    Checkout *held = NULL;
    pthread_t threads[2];
    Error     error;

    assert_ok(pool_acquire(bus->pool, soon(), &held, &error));
    for (int i = 0; i < 2; i++) {
        threads[i] = thread_start("caller", caller_run, &callers[i]);
        await(waiting_of(bus->pool) == i + 1);
    }
    pool_release(held);
    thread_join(threads[0]);
    assert_int_equal(callers[0].code, OK);
    assert_int_equal(bus_count(bus, "outcome"), 1);
    pool_release(callers[0].checkout);
    thread_join(threads[1]);
    assert_int_equal(callers[1].code, OK);
    assert_true(item.settled);
}

TEST(retry_follows_the_schedule_of_the_type_then_of_the_domain)
{
    scoped(bus_free) Bus *bus     = bus_new(4);
    ClaimedCommand       *claimed = one_claimed(bus);

    database_exec(bus->db, "insert into pawl.retry_policy select id, '*', '{1000}' from pawl.domain");
    assert_in_range(database_get_i64(bus->db, "select pawl.retry_delay_ms((select id from pawl.domain), 't', 1)"), 800,
                    1000);
    database_exec(bus->db, "insert into pawl.retry_policy select id, 't', '{2000,4000}' from pawl.domain");
    assert_in_range(database_get_i64(bus->db, "select pawl.retry_delay_ms((select id from pawl.domain), 't', 1)"), 1600,
                    2000);
    assert_in_range(database_get_i64(bus->db, "select pawl.retry_delay_ms((select id from pawl.domain), 't', 9)"), 3200,
                    4000);
    assert_string_equal(bus_settle(bus, claimed, OUTCOME_RETRY, NULL, NULL).status, "PENDING");
    assert_int_equal(bus_count(bus, "delayed where due < now() + '2 s'"), 1);
}

TEST(retry_without_delay_is_queued_immediately)
{
    scoped(bus_free) Bus *bus     = bus_new(4);
    ClaimedCommand       *claimed = one_claimed(bus);
    SettleItem            item  = {.id = claimed->id, .token = claimed->token, .outcome = OUTCOME_RETRY, .delay_ms = 0};
    SettleItem           *list  = &item;
    Error                 error = {0};

    assert_ok(settle_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    assert_true(item.settled);
    assert_int_equal(bus_count(bus, "ready where attempt = 1 and pos <> id"), 1);
}

TEST(settle_twice_changes_nothing)
{
    scoped(bus_free) Bus *bus     = bus_new(4);
    ClaimedCommand       *claimed = one_claimed(bus);

    assert_true(bus_settle(bus, claimed, OUTCOME_COMPLETE, NULL, NULL).settled);
    /* Its response was lost: the repeated settle gets the same. */
    SettleItem same = bus_settle(bus, claimed, OUTCOME_COMPLETE, "[2]", NULL);
    assert_true(same.settled);
    assert_string_equal(same.status, "COMPLETED");
    SettleItem other = bus_settle(bus, claimed, OUTCOME_REJECT, NULL, "no");
    assert_false(other.settled);
    assert_string_equal(other.status, "COMPLETED");
    assert_int_equal(bus_count(bus, "outcome where status = 'COMPLETED' and result is null"), 1);
    assert_int_equal(bus_count(bus, "audit where event not in ('SENT', 'RECEIVED')"), 1);
}

TEST(settle_keeps_an_error_text_that_is_not_utf8)
{
    scoped(bus_free) Bus *bus = bus_new(4);

    assert_true(bus_settle(bus, one_claimed(bus), OUTCOME_FAIL, NULL, "caf\xe9 \xf0\x9f\x98 au lait").settled);
    assert_int_equal(bus_count(bus, "tsq where error = 'caf? ??? au lait'"), 1);
}

/* A worker whose lease expired may have claimed the same command again, and settles both in one call. */
TEST(settle_under_an_old_and_the_present_token_counts_the_present_one)
{
    scoped(bus_free) Bus *bus    = bus_new(4);
    ClaimedCommand       *before = one_claimed(bus);

    database_exec(bus->db, "update pawl.lease set until = now() - interval '1 s'");
    database_exec(bus->db, "select pawl.requeue_due(10, 'epoch', 1000)");
    ClaimedCommand *now      = claimed_again(bus);
    SettleItem      items[2] = {
        {.id = before->id, .token = before->token},
        {.id = now->id,    .token = now->token   }
    };
    SettleItem *list[2] = {&items[0], &items[1]};
    Error       error   = {0};

    assert_int_equal(now->id, before->id);
    assert_ok(settle_many(bus->pool, soon(), bus->arena, list, 2, &error));
    assert_false(items[0].settled);
    assert_true(items[1].settled);
    assert_int_equal(bus_count(bus, "outcome where status = 'COMPLETED' and attempts = 2"), 1);
}

TEST(settle_of_an_unknown_command_says_so_and_leaves_a_trace)
{
    scoped(bus_free) Bus *bus = bus_new(4);

    database_exec(bus->db, "select setval('pawl.command_seq', 4711)");
    SettleItem item = bus_settle(bus, &(ClaimedCommand){.id = 4711, .token = 1}, OUTCOME_COMPLETE, NULL, NULL);
    assert_false(item.settled);
    assert_string_equal(item.status, "UNKNOWN");
    assert_int_equal(bus_count(bus, "audit where id = 4711 and event = 'COMPLETED' and details ? 'orphan'"), 1);
}

TEST(settle_keeps_a_poisoned_item_apart_from_499_others)
{
    enum { COUNT_ = 500, BAD = 123 };
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    ClaimedCommand               *claimed = NULL;
    SettleItem                   *items   = arena_array(bus->arena, SettleItem, COUNT_);
    SettleItem                  **list    = arena_array(bus->arena, SettleItem *, COUNT_);
    int                           settled = 0;

    bus_send(bus, "mail", COUNT_);
    assert_int_equal(bus_claim(bus, claimer, COUNT_, 30000, &claimed), COUNT_);
    for (int i = 0; i < COUNT_; i++) {
        items[i] = (SettleItem){.id = claimed[i].id, .token = claimed[i].token, .result = i == BAD ? "1e500000" : "1"};
        list[i]  = &items[i];
    }
    settle_each(bus->pool, soon(), NULL, list, COUNT_);
    for (int i = 0; i < COUNT_; i++)
        settled += items[i].code == OK && items[i].settled;
    assert_int_equal(settled, COUNT_ - 1);
    assert_int_equal(items[BAD].code, ERR_INVALID);
    assert_string_equal(items[BAD].error_text.sqlstate, "22003");
    assert_int_equal(bus_count(bus, "outcome"), COUNT_ - 1);
    assert_int_equal(bus_count(bus, "lease"), 1);
}

TEST(extend_reports_kept_canceled_and_lost)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    ClaimedCommand               *claimed = NULL;
    LeaseVerdict                  verdicts[3];
    Error                         error = {0};

    bus_send(bus, "mail", 3);
    assert_int_equal(bus_claim(bus, claimer, 3, 1000, &claimed), 3);
    assert_string_equal(database_get_text(bus->db,
                                          arena_print(bus->arena,
                                                      "select verdict from pawl.cancel('{%s}', 'no', 'ann')",
                                                      claimed[1].command_id),
                                          bus->arena),
                        "CANCELING");
    int64_t ids[]    = {claimed[0].id, claimed[1].id, claimed[2].id};
    int64_t tokens[] = {claimed[0].token, claimed[1].token, claimed[2].token - 1};
    assert_ok(lease_extend(bus->pool, soon(), bus->arena, ids, tokens, 3, 60000, verdicts, &error));
    assert_int_equal(verdicts[0], LEASE_EXTENDED);
    assert_int_equal(verdicts[1], LEASE_CANCELED);
    assert_int_equal(verdicts[2], LEASE_LOST);
    assert_int_equal(bus_count(bus, "lease where until > now() + '50 s'"), 1);
    assert_int_equal(bus_count(bus, "outcome where status = 'CANCELED'"), 1);
    assert_false(bus_settle(bus, &claimed[1], OUTCOME_COMPLETE, NULL, NULL).settled);
}

TEST(cancel_of_a_waiting_command_is_immediate_and_final)
{
    scoped(bus_free) Bus *bus = bus_new(4);

    bus_send(bus, "mail", 1);
    const char *id  = database_get_text(bus->db, "select command_id::text from pawl.command", bus->arena);
    const char *sql = arena_print(bus->arena, "select verdict from pawl.cancel('{%s}', 'no', 'ann')", id);
    assert_string_equal(database_get_text(bus->db, sql, bus->arena), "CANCELED");
    assert_string_equal(database_get_text(bus->db, sql, bus->arena), "CANCELED"); /* the same decision again */
    sql = arena_print(bus->arena, "select verdict from pawl.cancel('{%s}', 'no', 'bob')", id);
    assert_string_equal(database_get_text(bus->db, sql, bus->arena), "DECIDED");
    assert_int_equal(bus_count(bus, "ready"), 0);
    assert_int_equal(bus_count(bus, "audit where event = 'CANCELED' and actor = 'ann'"), 1);
}

/* An open transaction that sends into a batch holds that batch's row: neither the batch's own commands nor others wait for it. */
TEST(settle_does_not_wait_for_an_open_sender_into_the_same_batch)
{
    enum { COUNT_ = 20000, STEP = 1000 };
    static const char *const      id      = "0190a000-0000-7000-8000-00000000000b";
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    ClaimedCommand               *list    = NULL;
    int                           settled = 0;
    Error                         error   = {0};

    database_exec(bus->db, arena_print(bus->arena, "select * from pawl.batch_new('%s', null, null)", id));
    database_exec(bus->db, arena_print(bus->arena,
                                       "select pawl.send('mail', 't', '1'::jsonb, p_batch => '%s') from "
                                       "generate_series(1, 2000)",
                                       id));
    bus_send(bus, "mail", (COUNT_ - 2000) / 2);
    bus_send(bus, "mail", (COUNT_ - 2000) / 2);
    PGconn *sender = database_connect(bus->db);
    PQclear(PQexec(sender, "begin"));
    PGresult *sent =
        PQexec(sender, arena_print(bus->arena, "select pawl.send('mail', 't', '1'::jsonb, p_batch => '%s')", id));
    assert_int_equal(PQresultStatus(sent), PGRES_TUPLES_OK);
    PQclear(sent);
    for (int claimed = 0; claimed < COUNT_; claimed += STEP) {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        SettleItem               *items = arena_array(arena, SettleItem, STEP);
        SettleItem              **refs  = arena_array(arena, SettleItem *, STEP);

        assert_int_equal(bus_claim(bus, claimer, STEP, 600000, &list), STEP);
        for (int i = 0; i < STEP; i++) {
            items[i] = (SettleItem){.id = list[i].id, .token = list[i].token};
            refs[i]  = &items[i];
        }
        assert_ok(settle_many(bus->pool, soon(), arena, refs, STEP, &error));
        for (int i = 0; i < STEP; i++)
            settled += items[i].settled;
    }
    assert_int_equal(settled, COUNT_);
    assert_int_equal(PQtransactionStatus(sender), PQTRANS_INTRANS); /* it has been open all the time */
    PQfinish(sender);
}

/* An application cancels a command that runs, in a transaction that stays open: only that command waits for it. */
TEST(settle_and_extend_do_not_wait_for_a_cancel_that_is_not_committed)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    PGconn                       *holder  = database_connect(bus->db);
    ClaimedCommand               *list    = NULL;
    SettleItem                    items[4];
    SettleItem                   *refs[4];
    int64_t                       ids[4], tokens[4];
    LeaseVerdict                  verdicts[4];
    Error                         error = {0};

    bus_send(bus, "mail", 4);
    assert_int_equal(bus_claim(bus, claimer, 4, 60000, &list), 4);
    for (int i = 0; i < 4; i++) {
        items[i]  = (SettleItem){.id       = list[i].id,
                                 .token    = list[i].token,
                                 .outcome  = i < 2 ? OUTCOME_COMPLETE : OUTCOME_RETRY,
                                 .delay_ms = SETTLE_DELAY_DEFAULT};
        refs[i]   = &items[i];
        ids[i]    = list[i].id;
        tokens[i] = list[i].token;
    }
    PQclear(PQexec(holder, "begin; select pawl.cancel(array_agg(command_id)) from pawl.command "
                           "where payload in ('{\"n\": 2}', '{\"n\": 4}')"));
    assert_ok(lease_extend(bus->pool, soon(), bus->arena, ids, tokens, 4, 60000, verdicts, &error));
    for (int i = 0; i < 4; i++)
        assert_int_equal(verdicts[i], i % 2 == 0 ? LEASE_EXTENDED : LEASE_BUSY);
    settle_each(bus->pool, soon(), NULL, refs, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(items[i].code, i % 2 == 0 ? OK : ERR_BUSY);
        assert_true(items[i].settled == (i % 2 == 0));
        assert_ptr_equal(refs[i], &items[i]);
    }
    assert_contains(items[1].error_text.text, "another transaction that has not ended");
    assert_string_equal(database_get_text(bus->db,
                                          arena_print(bus->arena,
                                                      "select verdict from pawl.release('{%lld}', '{%lld}')",
                                                      (long long)ids[1], (long long)tokens[1]),
                                          bus->arena),
                        "BUSY");
    assert_int_equal(PQtransactionStatus(holder), PQTRANS_INTRANS); /* it has been open all the time */
    PQclear(PQexec(holder, "commit"));
    settle_each(bus->pool, soon(), NULL, refs, 4);
    assert_true(items[1].settled && items[3].settled);
    assert_string_equal(items[1].status, "COMPLETED");
    assert_string_equal(items[3].status, "CANCELED");
    assert_int_equal(bus_count(bus, "lease"), 0);
    PQfinish(holder);
}

/* Reading it would write out its numbers: more than PostgreSQL can. */
TEST(settle_refuses_a_result_that_is_too_large_when_written_out)
{
    enum { NUMBERS = 200 };
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    const char                   *result  = "1e131071";
    ClaimedCommand               *list    = NULL;
    SettleItem                    items[2];
    SettleItem                   *refs[2] = {&items[0], &items[1]};

    for (int i = 1; i < NUMBERS; i++)
        result = arena_print(bus->arena, "%s,1e131071", result);
    result = arena_print(bus->arena, "[%s]", result);
    bus_send(bus, "mail", 2);
    assert_int_equal(bus_claim(bus, claimer, 2, 60000, &list), 2);
    for (int i = 0; i < 2; i++)
        items[i] = (SettleItem){.id = list[i].id, .token = list[i].token, .result = i ? "1" : result};
    settle_each(bus->pool, soon(), NULL, refs, 2);
    assert_int_equal(items[0].code, ERR_LIMIT);
    assert_contains(items[0].error_text.text, "written out");
    assert_int_equal(items[1].code, OK);
    assert_true(items[1].settled && !items[0].settled);
}
