/*
 * claim_test.c - leases from a real line: order, priorities, types; what comes late, what was given back, what is due.
 */
#include "bus/claim.h"

#include <string.h>

#include "pg/metric.h"
#include "test/unit/bus/fixture.h"
#include "test/unit/pg/await.h"

TEST(claim_takes_priorities_first_and_then_the_order_of_sending)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    SendItem                      urgent  = bus_item("mail", "urgent", NULL);
    SendItem                     *list    = &urgent;
    Error                         error   = {0};
    ClaimedCommand               *claimed = NULL;

    bus_send(bus, "mail", 3);
    urgent.priority = 9;
    assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    assert_int_equal(bus_claim(bus, claimer, 3, 30000, &claimed), 3);
    assert_string_equal(claimed[0].type, "urgent");
    assert_string_equal(claimed[0].command_id, urgent.id);
    assert_string_equal(claimed[1].payload, "{\"n\": 1}");
    assert_string_equal(claimed[2].payload, "{\"n\": 2}");
    assert_int_equal(claimed[1].attempt, 1);
    assert_int_equal(claimed[1].max_attempts, 3);
    assert_int_equal(bus_claim(bus, claimer, 3, 30000, &claimed), 1);
    assert_int_equal(bus_claim(bus, claimer, 3, 30000, &claimed), 0);
    assert_int_equal(bus_count(bus, "lease"), 4);
    assert_int_equal(bus_count(bus, "audit where event = 'RECEIVED' and actor = 'w1'"), 4);
}

TEST(claim_takes_only_the_types_asked_for)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", (const char *[]){"x", "y", NULL}, "w1");
    SendItem                      other   = bus_item("mail", "y", NULL);
    SendItem                     *list    = &other;
    Error                         error   = {0};
    ClaimedCommand               *claimed = NULL;

    bus_send(bus, "mail", 3);
    assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    assert_int_equal(bus_claim(bus, claimer, 10, 30000, &claimed), 1);
    assert_string_equal(claimed[0].type, "y");
    assert_int_equal(bus_count(bus, "ready"), 3);
}

/* Notes where each claim began, and takes longer than is cheap. */
#define CLAIM_NOTED                                                                                                    \
    "create table public.began (n serial, after bigint);"                                                              \
    "alter function pawl.claim(integer, integer, integer, bigint[], text[], text, text[], integer, integer, boolean, " \
    "integer) rename to claim_itself;"                                                                                 \
    "create function pawl.claim(integer, integer, integer, a bigint[], text[], text, text[], integer, integer, "       \
    "p_unflushed boolean, p_read integer) "                                                                            \
    "returns table (id bigint, token bigint, command_id uuid, type text, payload jsonb, attempt smallint, "            \
    "max_attempts smallint, priority smallint, pos bigint, progress jsonb, lost boolean) language plpgsql as $$ "      \
    "begin insert into public.began (after) values (a[5]); perform pg_sleep(0.02); "                                   \
    "return query select * from pawl.claim_itself($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11); end $$"

TEST(claim_of_some_types_does_not_walk_over_the_others_again)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", (const char *[]){"mine", NULL}, "w1");
    SendItem                      mine    = bus_item("mail", "mine", NULL);
    SendItem                     *list    = &mine;
    ClaimedCommand               *claimed = NULL;
    Error                         error   = {0};
    int64_t                       last;

    bus_send(bus, "mail", 50);
    last = database_get_i64(bus->db, "select max(id) from pawl.command");
    database_exec(bus->db, CLAIM_NOTED);
    assert_int_equal(bus_claim(bus, claimer, 3, 30000, &claimed), 0);
    assert_int_equal(database_get_i64(bus->db, "select after from public.began order by n desc limit 1"), 0);
    /* As soon as no older transaction runs, also in other databases of the server: other tests have theirs. */
    for (Deadline patience = deadline_in_ms(60000);
         database_get_i64(bus->db, "select after from public.began order by n desc limit 1") != last;) {
        assert_false(deadline_passed(patience));
        assert_int_equal(bus_claim(bus, claimer, 3, 30000, &claimed), 0);
    }
    assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    assert_int_equal(bus_claim(bus, claimer, 3, 30000, &claimed), 1);
    assert_string_equal(claimed[0].command_id, mine.id);
    assert_int_equal(bus_count(bus, "ready"), 50);
}

static void others_send_at(Bus *bus, int count, int priority)
{
    database_exec(bus->db, arena_print(bus->arena,
                                       "select count(*) from pawl.send('mail', array_fill('t'::text, array[%d]), "
                                       "array_fill('1'::jsonb, array[%d]), "
                                       "p_priorities => array_fill(%d::smallint, array[%d]))",
                                       count, count, priority, count));
}

static void others_send(Bus *bus, int count)
{
    others_send_at(bus, count, 4);
}

/* Returns how many parts a claim had, with what the last one found. */
static int claim_parts(Bus *bus, Claimer *claimer, ClaimedCommand **ret_list, int *ret_count)
{
    bool  more  = true;
    int   parts = 0;
    Error error = {0};

    for (; more; parts++)
        assert_ok(claimer_claim_part(claimer, soon(), bus->arena, &(ClaimTerms){.limit = 2, .lease_ms = 30000},
                                     ret_list, ret_count, &more, &error));
    return parts;
}

TEST(claim_of_some_types_reads_the_commands_of_others_in_parts)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", (const char *[]){"mine", NULL}, "w1");
    scoped(claimer_free) Claimer *none    = claimer_new(bus->pool, "mail", (const char *[]){"none", NULL}, "w2");
    ClaimedCommand               *claimed = NULL;
    int                           count   = 0;
    bool                          more    = false;
    Error                         error   = {0};

    others_send(bus, CLAIM_READ_MAX * 5 / 2);
    database_exec(bus->db, "select pawl.send('mail', 'mine', p_priority => 0); select pawl.send('mail', 'mine')");
    assert_int_equal(claim_parts(bus, none, &claimed, &count), 3);
    assert_int_equal(count, 0);
    assert_int_equal(claim_parts(bus, claimer, &claimed, &count), 3);
    assert_int_equal(count, 2);
    assert_int_equal(claimed[0].priority, 4);
    assert_int_equal(claimed[1].priority, 0);
    /* What comes with a higher priority during a scan is found by its next part. */
    others_send(bus, CLAIM_READ_MAX * 2);
    assert_ok(claimer_claim_part(claimer, soon(), bus->arena, &(ClaimTerms){.limit = 2, .lease_ms = 30000}, &claimed,
                                 &count, &more, &error));
    assert_true(more);
    assert_int_equal(count, 0);
    database_exec(bus->db, "select pawl.send('mail', 'mine', p_priority => 9)");
    assert_int_equal(claim_parts(bus, claimer, &claimed, &count), 1);
    assert_int_equal(count, 1);
    assert_int_equal(claimed[0].priority, 9);
}

/* Nothing can be proven, because an older transaction that sends is open: so only the positions of the scan tell what has been read. */
TEST(claim_of_some_types_passes_several_priorities_that_others_fill)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", (const char *[]){"mine", NULL}, "w1");
    ClaimedCommand               *claimed = NULL;
    int                           count = 0, parts = 0;
    bool                          more  = true;
    Error                         error = {0};

    others_send_at(bus, CLAIM_READ_MAX - 1, 9);
    others_send_at(bus, CLAIM_READ_MAX - 1, 7);
    others_send_at(bus, CLAIM_READ_MAX * 2, 5);
    database_exec(bus->db, "select pawl.send('mail', 'mine', p_priority => 0)");
    database_exec(bus->db, "begin; select pawl.send('other', 't')");
    for (; more && parts < 20; parts++)
        assert_ok(claimer_claim_part(claimer, soon(), bus->arena, &(ClaimTerms){.limit = 2, .lease_ms = 30000},
                                     &claimed, &count, &more, &error));
    assert_int_equal(count, 1);
    assert_int_equal(parts, 4);
    database_exec(bus->db, "rollback");
}

TEST(claim_refuses_a_domain_that_cannot_exist)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "no good", NULL, "w1");
    Error                         error   = {0};
    ClaimedCommand               *claimed = NULL;
    int                           count;

    assert_code(ERR_INVALID, claimer_claim(claimer, soon(), bus->arena, &(ClaimTerms){.limit = 1, .lease_ms = 1000},
                                           &claimed, &count, &error));
    assert_contains(error.text, "domain must be");
}

/* A sender draws its number first and commits after others were claimed. */
TEST(claim_finds_a_smaller_number_that_commits_late)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    PGconn                       *late    = database_connect(bus->db);
    ClaimedCommand               *claimed = NULL;

    bus_send(bus, "mail", 1);
    PQclear(PQexec(late, "begin; select pawl.send('mail', 'late')"));
    bus_send(bus, "mail", 1);
    assert_int_equal(bus_claim(bus, claimer, 10, 30000, &claimed), 2);
    /* Time enough for floors to move, if they would. */
    Deadline while_open = deadline_in_ms(3 * CLAIM_LOW_MS);
    while (!deadline_passed(while_open))
        assert_int_equal(bus_claim(bus, claimer, 10, 30000, &claimed), 0);
    PQclear(PQexec(late, "commit"));
    await(bus_claim(bus, claimer, 10, 30000, &claimed) == 1);
    assert_string_equal(claimed[0].type, "late");
    PQfinish(late);
}

/* Another claimer locks rows, is passed by, and dies. */
TEST(claim_finds_what_a_rolled_back_claim_gave_back)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    PGconn                       *dying   = database_connect(bus->db);
    ClaimedCommand               *claimed = NULL;

    bus_send(bus, "mail", 3);
    PQclear(PQexec(dying,
                   "begin; select * from pawl.claim(pawl.domain_id('mail'), 1, 1000, array_fill(0::bigint, '{10}'), "
                   "null, 'w2')"));
    assert_int_equal(bus_claim(bus, claimer, 10, 30000, &claimed), 2);
    bus_send(bus, "mail", 1);
    assert_int_equal(bus_claim(bus, claimer, 10, 30000, &claimed), 1);
    Deadline while_open = deadline_in_ms(3 * CLAIM_LOW_MS);
    while (!deadline_passed(while_open))
        assert_int_equal(bus_claim(bus, claimer, 10, 30000, &claimed), 0);
    PQfinish(dying); /* rolls back */
    await(bus_claim(bus, claimer, 10, 30000, &claimed) == 1);
    assert_string_equal(claimed[0].payload, "{\"n\": 1}");
    assert_int_equal(claimed[0].attempt, 1); /* it was never received by anybody else */
}

/* An idle claimer sends one statement per claim: there is nothing left to prove. */
TEST(claim_of_an_idle_claimer_is_one_statement)
{
    scoped(bus_free) Bus         *bus     = bus_new(1);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    ClaimedCommand               *claimed = NULL;

    bus_send(bus, "mail", 1);
    assert_int_equal(bus_claim(bus, claimer, 10, 30000, &claimed), 1);
    /* The proof waits for every transaction of the server that was running, also those of other databases. */
    Deadline patience = deadline_in_ms(60000);
    int64_t  asked    = 0;
    while (asked != 1 && !deadline_passed(patience)) {
        int64_t before = metric_value(&pg_metrics.tx_ok);

        assert_int_equal(bus_claim(bus, claimer, 10, 30000, &claimed), 0);
        asked = metric_value(&pg_metrics.tx_ok) - before;
    }
    assert_int_equal(asked, 1);
}

#define LOOK_MS 10000 /* when to poll again if nothing is due before */

static void requeue(Bus *bus, int *ret_moved, int *ret_next_ms)
{
    Requeue state = {0};
    Error   error = {0};

    assert_ok(requeue_step(bus->pool, soon(), &state, LOOK_MS, ret_moved, ret_next_ms, &error));
}

TEST(delayed_commands_come_when_they_are_due)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    SendItem                      item    = bus_item("mail", "t", NULL);
    SendItem                     *list    = &item;
    Error                         error   = {0};
    ClaimedCommand               *claimed = NULL;
    int                           moved, next_ms;

    item.delay_ms = 9000;
    assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    assert_int_equal(bus_claim(bus, claimer, 10, 30000, &claimed), 0);
    requeue(bus, &moved, &next_ms);
    assert_int_equal(moved, 0);
    assert_in_range(next_ms, 1, 9000);
    await(({
              requeue(bus, &moved, &next_ms);
              moved;
          }) == 1);
    assert_int_equal(next_ms, LOOK_MS);
    assert_int_equal(bus_claim(bus, claimer, 10, 30000, &claimed), 1);
}

TEST(command_crash_then_recovery)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *dead    = claimer_new(bus->pool, "mail", NULL, "dead");
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w2");
    ClaimedCommand               *first = NULL, *second = NULL;
    int                           moved, next_ms;

    bus_send(bus, "mail", 1);
    assert_int_equal(bus_claim(bus, dead, 10, 9000, &first), 1);
    requeue(bus, &moved, &next_ms);
    assert_int_equal(moved, 0);
    assert_in_range(next_ms, 1, 9000);
    await(({
              requeue(bus, &moved, &next_ms);
              moved;
          }) == 1);
    assert_int_equal(bus_claim(bus, claimer, 10, 30000, &second), 1);
    assert_int_equal(second->attempt, 2); /* the crash counts */
    assert_true(second->token != first->token);
    /* The first worker settles late: nothing changes, and it gets the present status. */
    SettleItem late = bus_settle(bus, first, OUTCOME_COMPLETE, "\"late\"", NULL);
    assert_false(late.settled);
    assert_string_equal(late.status, "IN_PROGRESS");
    assert_int_equal(bus_count(bus, "outcome"), 0);
    assert_true(bus_settle(bus, second, OUTCOME_COMPLETE, "\"done\"", NULL).settled);
    assert_string_equal(bus_settle(bus, first, OUTCOME_RETRY, NULL, "late").status, "COMPLETED");
    assert_int_equal(bus_count(bus, "outcome where result = '\"done\"' and attempts = 2"), 1);
    assert_int_equal(bus_count(bus, "audit where event = 'RECEIVED'"), 2);
}

TEST(a_command_that_kills_its_workers_ends_in_the_troubleshooting_queue)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    ClaimedCommand               *claimed = NULL;
    int                           moved, next_ms;

    bus_send(bus, "mail", 1);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(bus_claim(bus, claimer, 10, 100, &claimed), 1);
        assert_int_equal(claimed->attempt, i);
        await(({
                  requeue(bus, &moved, &next_ms);
                  moved;
              }) == 1);
    }
    assert_int_equal(bus_claim(bus, claimer, 10, 100, &claimed), 0);
    assert_int_equal(bus_count(bus, "tsq where attempt = 3 and error like 'its worker was lost%'"), 1);
    assert_int_equal(bus_count(bus, "audit where event = 'MOVED_TO_TSQ'"), 1);
}

/* Numbers of domains are few and never freed: a claim must not use one up. */
TEST(claim_creates_no_domain)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    ClaimedCommand               *list    = NULL;
    bool                          has     = true;
    Error                         error;

    assert_int_equal(bus_claim(bus, claimer, 1, 30000, &list), 0);
    assert_ok(claimer_has_work(claimer, soon(), bus->arena, &has, &error));
    assert_false(has);
    assert_int_equal(bus_count(bus, "domain"), 0);
    bus_send(bus, "mail", 1);
    assert_int_equal(bus_claim(bus, claimer, 1, 30000, &list), 1);
}

/* What is leased must reach its worker: a response that is too large would cost each command an attempt. */
TEST(claim_takes_fewer_when_payloads_are_large)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    ClaimedCommand               *list    = NULL;

    /* Two of 5 MB and one of 9 MB, which compress well, among small ones; some of lower priority behind them. */
    database_exec(bus->db,
                  "select pawl.send('mail', 't', to_jsonb(repeat('x', case n when 3 then 5000000 when 5 then 5000000 "
                  "when 7 then 9000000 else n end)), p_priority => case when n < 9 then 5 else 1 end) "
                  "from generate_series(1, 10) n");
    static const int wanted[] = {4, 2, 1, 3, 0};
    for (size_t i = 0; i < COUNT(wanted); i++)
        assert_int_equal(bus_claim(bus, claimer, 100, 30000, &list), wanted[i]);
    assert_int_equal(bus_count(bus, "lease where attempt = 1"), 10);
}

/* On a filled table a claim walks the primary key and touches little more than what it takes. */
TEST(claim_plan_begins_where_work_begins)
{
    scoped(bus_free) Bus *bus = bus_new(4);

    database_exec(
        bus->db,
        "insert into pawl.command (id, domain_id, command_id, type, payload, priority, max_attempts, created_at) "
        "select nextval('pawl.command_seq'), 1 + n % 3, gen_random_uuid(), 't', '{}', 4, 3, now() "
        "from generate_series(1, 60000) n");
    database_exec(bus->db, "insert into pawl.ready select domain_id, priority, id, id, 0, max_attempts, false "
                           "from pawl.command");
    database_exec(bus->db, "analyze pawl.command; analyze pawl.ready; select pg_stat_force_next_flush()");
    database_exec(bus->db, "select pg_stat_reset()");
    database_exec(bus->db, "select * from pawl.claim(1, 100, 30000, array_fill(0::bigint, '{10}'), null, 'w')");
    await(database_get_i64(bus->db, "select coalesce(sum(n_tup_del), 0)::bigint from pg_stat_user_tables "
                                    "where relname = 'ready'") == 100);
    assert_int_equal(database_get_i64(bus->db, "select sum(seq_scan)::bigint from pg_stat_user_tables "
                                               "where relname in ('ready', 'command', 'lease')"),
                     0);
    assert_in_range(database_get_i64(bus->db, "select sum(idx_tup_read)::bigint from pg_stat_user_indexes "
                                              "where relname in ('ready', 'command', 'lease')"),
                    100, 500);
    /* Each command once: their payloads are small. */
    assert_int_equal(database_get_i64(bus->db,
                                      "select idx_scan from pg_stat_user_indexes where indexrelname = 'command_pkey'"),
                     100);
}

/* As a migration leaves a command that was sent when nothing was measured: 1.3 GB as text. */
#define POISON                                                                                             \
    "with c as (insert into pawl.command (id, domain_id, command_id, type, payload, payload_bytes, "       \
    "priority, max_attempts, created_at) select nextval('pawl.command_seq'), pawl.domain_id('mail'), "     \
    "gen_random_uuid(), 't', ('[' || repeat('1e131071,', 10000) || '1]')::jsonb, 2147483647, 4, 3, now() " \
    "returning *) insert into pawl.ready select domain_id, priority, id, id, 0, max_attempts, true from c"

TEST(claim_moves_a_command_that_cannot_be_delivered_out_of_the_way)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    ClaimedCommand               *claimed = NULL;

    database_exec(bus->db, POISON);
    bus_send(bus, "mail", 3);
    assert_int_equal(bus_claim(bus, claimer, 10, 30000, &claimed), 3);
    assert_int_equal(bus_count(bus, "tsq where error like 'its payload cannot be delivered: %at most 16777216 bytes%'"),
                     1);
    assert_int_equal(bus_count(bus, "audit where event = 'MOVED_TO_TSQ'"), 1);
    assert_int_equal(bus_count(bus, "ready"), 0);
    assert_int_equal(bus_count(bus, "lease"), 3);
    /* Large numbers that can be delivered are, as many at a time as fit. */
    database_exec(bus->db, "select pawl.send('mail', 't', '[1e131071]') from generate_series(1, 100)");
    assert_int_equal(bus_claim(bus, claimer, 1000, 30000, &claimed), 63);
    assert_int_equal(strlen(claimed[0].payload), 131074);
    assert_int_equal(bus_claim(bus, claimer, 1000, 30000, &claimed), 37);
}

/* A backup of the database is restored while the worker runs: the sequence is behind the worker's cursor. */
TEST(claim_goes_on_at_full_speed_after_a_restore)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    ClaimedCommand               *claimed = NULL;

    bus_send(bus, "mail", 500);
    assert_int_equal(bus_claim(bus, claimer, 500, 30000, &claimed), 500);
    assert_int_equal(bus_claim(bus, claimer, 500, 30000, &claimed), 0);
    database_exec(bus->db, "truncate pawl.command, pawl.ready, pawl.lease, pawl.event;"
                           "select setval('pawl.command_seq', 10)");
    bus_send(bus, "mail", 200);
    for (int i = 0; i < 20; i++)
        assert_int_equal(bus_claim(bus, claimer, 10, 30000, &claimed), 10);
    assert_int_equal(bus_claim(bus, claimer, 10, 30000, &claimed), 0);
    assert_int_equal(bus_count(bus, "lease"), 200);
}

/* How many entries of the index on `due` a scan reads that starts at `since`. */
static int64_t entries_read(Bus *bus, int64_t since_us)
{
    static const char read[] =
        "select coalesce(idx_tup_read, 0) from pg_stat_user_indexes where indexrelname = 'delayed_due'";
    int64_t before;

    database_exec(bus->db, "select pg_stat_force_next_flush()");
    before = database_get_i64(bus->db, read);
    database_exec(bus->db, arena_print(bus->arena,
                                       "select * from pawl.requeue_due(5000, now(), 1000, "
                                       "timestamptz 'epoch' + %lld * interval '1 us')",
                                       (long long)since_us));
    database_exec(bus->db, "select pg_stat_force_next_flush()");
    return database_get_i64(bus->db, read) - before;
}

TEST(delayed_commands_that_are_gone_cost_nothing_behind_an_old_snapshot)
{
    scoped(bus_free) Bus *bus   = bus_new(4);
    PGconn               *old   = database_connect(bus->db);
    Requeue               back  = {0};
    Error                 error = {0};
    int                   moved, next_ms;
    int64_t               total = 0;

    PQclear(PQexec(old, "begin isolation level repeatable read; select count(*) from pawl.delayed"));
    database_exec(bus->db,
                  "insert into pawl.delayed select n, now() - interval '1 h' + n * interval '1 ms', 1, 4, 0, 3, false "
                  "from generate_series(1, 12000) n");
    /* The watermark passes them by proof, in a few scans. */
    await(({
        assert_ok(requeue_step(bus->pool, soon(), &back, LOOK_MS, &moved, &next_ms, &error));
        total += moved;
        back.due_us > database_get_i64(bus->db, "select pawl.micros(now() - interval '30 min')");
    }));
    assert_int_equal(total, 12000);
    assert_int_equal(bus_count(bus, "ready"), 12000);
    assert_true(entries_read(bus, 0) >= 12000); /* they are all still in the index */
    assert_in_range(entries_read(bus, back.due_us), 0, 10);
    PQfinish(old);
}

TEST(delayed_command_of_a_transaction_that_commits_late_is_found)
{
    scoped(bus_free) Bus *bus   = bus_new(4);
    PGconn               *late  = database_connect(bus->db);
    Requeue               back  = {0};
    Error                 error = {0};
    int                   moved = 0, next_ms;

    PQclear(PQexec(late, "begin; select pawl.send('mail', 't', '{}', p_delay => '1 ms')"));
    assert_ok(requeue_step(bus->pool, soon(), &back, LOOK_MS, &moved, &next_ms, &error));
    /* Time enough for the watermark to pass it, if it would. */
    for (Deadline while_open = deadline_in_ms(2500); !deadline_passed(while_open);) {
        assert_ok(requeue_step(bus->pool, soon(), &back, LOOK_MS, &moved, &next_ms, &error));
        assert_int_equal(moved, 0);
    }
    PQclear(PQexec(late, "commit"));
    await(({
              back.pause_until = (Mono){0}; /* this machine may be slow */
              assert_ok(requeue_step(bus->pool, soon(), &back, LOOK_MS, &moved, &next_ms, &error));
              moved;
          }) == 1);
    assert_true(mono_before(clock_mono(), back.full_at)); /* not by the full scan */
    PQfinish(late);
}

TEST(due_watermark_moves_by_proof_and_goes_back_with_the_server)
{
    Requeue back = {0};

    requeue_prove(&back, &(Requeued){.looked_us = 10000000, .due_left_us = 10000001, .running = 100, .oldest = 90});
    assert_int_equal(back.due_us, 0);
    /* 90 is still open; then it has ended. */
    requeue_prove(&back, &(Requeued){.looked_us = 11000000, .due_left_us = 11000001, .running = 110, .oldest = 90});
    assert_int_equal(back.due_us, 0);
    requeue_prove(&back, &(Requeued){.looked_us = 12000000, .due_left_us = 12000001, .running = 120, .oldest = 100});
    assert_int_equal(back.due_us, 8000000);
    /* A row that another process holds is not passed. */
    requeue_prove(&back, &(Requeued){.looked_us = 20000000, .due_left_us = 9000000, .running = 130, .oldest = 130});
    assert_int_equal(back.due_us, 9000000);
    /* Transaction ids, or the clock, go back. */
    requeue_prove(&back, &(Requeued){.looked_us = 21000000, .due_left_us = 21000001, .running = 50, .oldest = 50});
    assert_int_equal(back.due_us, 0);
    requeue_prove(&back, &(Requeued){.looked_us = 30000000, .due_left_us = 30000001, .running = 60, .oldest = 60});
    assert_true(back.due_us > 8000000);
    requeue_prove(&back, &(Requeued){.looked_us = 5000000, .due_left_us = 5000001, .running = 70, .oldest = 70});
    assert_int_equal(back.due_us, 0);
}

/* What a transaction that leases or ends something does at its commit: wait for the flush (on), or not (off). */
#define COMMITS_NOTED                                                                                                \
    "create table public.noted (n serial, setting text);"                                                            \
    "create function public.note() returns trigger language plpgsql as "                                             \
    "'begin insert into public.noted (setting) values (current_setting(''synchronous_commit'')); return null; end';" \
    "create constraint trigger leased after insert or update on pawl.lease "                                         \
    "deferrable initially deferred for each row execute function public.note();"                                     \
    "create constraint trigger released after insert on pawl.ready "                                                 \
    "deferrable initially deferred for each row execute function public.note();"                                     \
    "create constraint trigger ended after insert on pawl.outcome "                                                  \
    "deferrable initially deferred for each row execute function public.note();"                                     \
    "do 'begin execute format(''alter database %I set synchronous_commit = on'', current_database()); end'"

static const char *commits(Bus *bus)
{
    return database_get_text(bus->db, "select string_agg(setting, ' ' order by n) from public.noted", bus->arena);
}

/* What a crash may undo without harm is not waited for: see bus_crash_test.py. */
TEST(claims_heartbeats_and_releases_do_not_wait_for_a_flush)
{
    scoped(bus_free) Bus *bus     = bus_new(4);
    SendItem              last    = bus_item("mail", "t", NULL);
    SendItem             *list    = &last;
    ClaimedCommand       *claimed = NULL;
    SettleItem            item    = {.outcome = OUTCOME_COMPLETE};
    SettleItem           *items   = &item;
    LeaseVerdict          verdict;
    Error                 error = {0};

    database_exec(bus->db, COMMITS_NOTED);
    pool_free(bus->pool);
    assert_ok(pool_new(&(PoolOptions){.conninfo = database_url(bus->db), .size_max = 4}, &bus->pool, &error));
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    bus_send(bus, "mail", 1);
    assert_int_equal(bus_claim(bus, claimer, 1, 30000, &claimed), 1);
    assert_ok(lease_extend(bus->pool, soon(), bus->arena, &claimed->id, &claimed->token, 1, 30000, &verdict, &error));
    assert_ok(lease_release(bus->pool, soon(), bus->arena, claimed, 1, &verdict, &error));
    assert_int_equal(bus_claim(bus, claimer, 1, 30000, &claimed), 1);
    item.id    = claimed->id;
    item.token = claimed->token;
    settle_each(bus->pool, soon(), NULL, &items, 1);
    assert_true(item.settled);
    last.max_attempts = 1;
    assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    assert_int_equal(bus_claim(bus, claimer, 1, 30000, &claimed), 1);
    assert_string_equal(commits(bus), "on off off off off on on on");
}

/* Of a last attempt nothing may be undone: a lost release costs the command its last attempt, which nobody began. Nor may the end of a command. */
TEST(what_concerns_a_last_attempt_or_ends_a_command_waits_for_a_flush)
{
    scoped(bus_free) Bus *bus     = bus_new(4);
    SendItem              last    = bus_item("mail", "t", NULL);
    SendItem             *list    = &last;
    ClaimedCommand       *claimed = NULL;
    LeaseVerdict          verdicts[2];
    Error                 error = {0};

    database_exec(bus->db, COMMITS_NOTED);
    pool_free(bus->pool);
    assert_ok(pool_new(&(PoolOptions){.conninfo = database_url(bus->db), .size_max = 4}, &bus->pool, &error));
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    last.max_attempts                     = 1;
    assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    assert_int_equal(bus_claim(bus, claimer, 1, 30000, &claimed), 1);
    assert_ok(lease_extend(bus->pool, soon(), bus->arena, &claimed->id, &claimed->token, 1, 30000, verdicts, &error));
    assert_ok(lease_release(bus->pool, soon(), bus->arena, claimed, 1, verdicts, &error));
    assert_int_equal(bus_claim(bus, claimer, 1, 30000, &claimed), 1);
    assert_string_equal(commits(bus), "on on on on on"); /* the first is that of the send */
    bus_send(bus, "mail", 4);
    assert_int_equal(bus_claim(bus, claimer, 4, 30000, &claimed), 4);
    database_exec(bus->db, "update pawl.lease set cancel = true where id % 2 = 0");
    database_exec(bus->db, "truncate public.noted");
    assert_ok(lease_extend(bus->pool, soon(), bus->arena, (int64_t[]){claimed[0].id, claimed[1].id},
                           (int64_t[]){claimed->token, claimed->token}, 2, 30000, verdicts, &error));
    assert_ok(lease_release(bus->pool, soon(), bus->arena, claimed + 2, 2, verdicts, &error));
    assert_int_equal(bus_count(bus, "outcome where status = 'CANCELED'"), 2);
    assert_null(strstr(commits(bus), "off"));
}
