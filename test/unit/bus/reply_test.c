/*
 * reply_test.c - the reply queue and the batch of a command get its outcome exactly once.
 */
#include "test/harness/conninfo.h"
#include "test/unit/bus/fixture.h"

static ClaimedCommand *claimed_one(Bus *bus)
{
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    ClaimedCommand               *claimed = NULL;

    assert_int_equal(bus_claim(bus, claimer, 1, 30000, &claimed), 1);
    return claimed;
}

static void send_with(Bus *bus, const char *reply_to, const char *batch_id)
{
    SendItem  item  = bus_item("mail", "t", NULL);
    SendItem *list  = &item;
    Error     error = {0};

    item.reply_to       = reply_to;
    item.correlation_id = "order 7";
    item.batch_id       = batch_id;
    assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    assert_int_equal(item.code, OK);
}

static int64_t replies(Bus *bus, const char *status)
{
    return database_get_i64(bus->db,
                            arena_print(bus->arena,
                                        "select count(*) from pgmq.q_answers where message ->> 'status' = '%s' "
                                        "and message ->> 'correlation_id' = 'order 7'",
                                        status));
}

TEST(reply_is_sent_once_for_every_end)
{
    scoped(bus_free) Bus *bus = bus_new(4);

    for (int i = 0; i < 5; i++)
        send_with(bus, "answers", NULL);
    ClaimedCommand *done = claimed_one(bus), *refused = claimed_one(bus), *given_up = claimed_one(bus),
                   *running = claimed_one(bus);
    bus_settle(bus, done, OUTCOME_COMPLETE, "{\"x\": 1}", NULL);
    bus_settle(bus, done, OUTCOME_COMPLETE, "{\"x\": 1}", NULL);
    assert_int_equal(replies(bus, "COMPLETED"), 1);
    bus_settle(bus, refused, OUTCOME_REJECT, NULL, "no");
    bus_settle(bus, refused, OUTCOME_FAIL, NULL, "no");
    assert_int_equal(replies(bus, "FAILED"), 1);
    bus_settle(bus, given_up, OUTCOME_FAIL, NULL, "broken"); /* waits for an operator: not the end */
    assert_int_equal(database_get_i64(bus->db, "select count(*) from pgmq.q_answers"), 2);
    database_exec(
        bus->db,
        "select * from pawl.tsq_decide(array(select c.command_id from pawl.command c join pawl.tsq using (id)),"
        " 'complete', 'ann', 'by hand', '2')");
    assert_int_equal(replies(bus, "COMPLETED"), 2);
    /* Canceled: the queued one immediately, the running one at its next heartbeat. */
    database_exec(bus->db, "select * from pawl.cancel(array(select command_id from pawl.command), 'no', 'ann')");
    assert_int_equal(replies(bus, "CANCELED"), 1);
    LeaseVerdict verdict;
    Error        error = {0};
    assert_ok(lease_extend(bus->pool, soon(), bus->arena, &running->id, &running->token, 1, 1000, &verdict, &error));
    assert_int_equal(verdict, LEASE_CANCELED);
    assert_int_equal(replies(bus, "CANCELED"), 2);
    assert_int_equal(database_get_i64(bus->db, "select count(distinct message ->> 'command_id') from pgmq.q_answers"),
                     5);
}

TEST(batch_sends_its_last_command_once_when_all_have_ended)
{
    static const char *const id  = "0190a000-0000-7000-8000-00000000000b";
    scoped(bus_free) Bus    *bus = bus_new(4);

    database_exec(bus->db, arena_print(bus->arena,
                                       "select * from pawl.batch_new('%s', 'night', "
                                       "'{\"domain\": \"report\", \"type\": \"done\", \"payload\": {\"a\": 1}}')",
                                       id));
    send_with(bus, NULL, id);
    send_with(bus, NULL, id);
    ClaimedCommand *first = claimed_one(bus), *second = claimed_one(bus);
    bus_settle(bus, first, OUTCOME_COMPLETE, NULL, NULL);
    database_exec(bus->db, arena_print(bus->arena, "select pawl.batch_seal('%s')", id));
    assert_int_equal(bus_count(bus, "command where type = 'done'"), 0);
    bus_settle(bus, second, OUTCOME_REJECT, NULL, "no");
    bus_settle(bus, second, OUTCOME_REJECT, NULL, "no");
    database_exec(bus->db, arena_print(bus->arena, "select pawl.batch_seal('%s')", id));
    assert_int_equal(bus_count(bus, "command where type = 'done' and payload = '{\"a\": 1}'"), 1);
    assert_int_equal(database_get_i64(bus->db, arena_print(bus->arena,
                                                           "select completed * 10 + failed from "
                                                           "pawl.batch_progress('%s')",
                                                           id)),
                     11);
    /* Closed for good, and the refusal is the sender's. */
    SendItem  late  = bus_item("mail", "t", NULL);
    SendItem *list  = &late;
    Error     error = {0};
    late.batch_id   = id;
    assert_code(ERR_CONFLICT, send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    assert_contains(error.text, "is sealed and takes no more commands");
}

/* A reader drops a reply queue while its commands run: they end all the same, and the rescue of others does not wait for them. */
TEST(reply_queue_that_was_dropped_keeps_nothing_from_ending)
{
    scoped(bus_free) Bus *bus = bus_new(4);

    send_with(bus, "answers", NULL);
    send_with(bus, "answers", NULL);
    ClaimedCommand *done = claimed_one(bus);
    (void)claimed_one(bus); /* will be canceled, and its worker lost */
    database_exec(bus->db, "update pawl.lease set cancel = true, until = now() - interval '1 s' "
                           "where id = (select max(id) from pawl.lease)");
    database_exec(bus->db, "select pgmq.drop_queue('answers')");
    database_exec(bus->db, "select pawl.requeue_due(10, 'epoch', 1000)");
    assert_int_equal(replies(bus, "CANCELED"), 1);
    database_exec(bus->db, "select pgmq.drop_queue('answers')");
    assert_true(bus_settle(bus, done, OUTCOME_COMPLETE, NULL, NULL).settled);
    assert_int_equal(replies(bus, "COMPLETED"), 1);
}

/* The limit is far from what is needed, and far from a second for each queue. */
TEST(settle_does_not_wait_for_each_reply_queue_that_is_locked)
{
    scoped(bus_free) Bus *bus    = bus_new(4);
    PGconn               *holder = database_connect(bus->db);
    PGconn               *worker = database_connect(bus->db);
    PGresult             *result;

    database_exec(bus->db, "select count(pawl.send('till', 't', '1'::jsonb, p_reply_to => 'r' || n)) "
                           "from generate_series(1, 31) n");
    PQclear(PQexec(holder, "begin; do $$ begin for n in 1 .. 30 loop "
                           "execute format('lock table pgmq.q_r%s in access exclusive mode', n); end loop; end $$"));
    PQclear(PQexec(worker, "set statement_timeout = '20s'"));
    result =
        PQexec(worker, "select count(*) from (select array_agg(id) ids, array_agg(token) tokens from "
                       "pawl.claim(pawl.domain_find('till'), 100, 60000, array_fill(0::bigint, '{10}'), null, 'w')) c, "
                       "pawl.settle(c.ids, c.tokens, array_fill('complete'::text, '{31}')) s where s.settled");
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    assert_string_equal(PQgetvalue(result, 0, 0), "31");
    PQclear(result);
    PQclear(PQexec(holder, "rollback"));
    assert_int_equal(bus_count(bus, "outcome"), 31);
    assert_int_equal(database_get_i64(bus->db, "select count(*) from pgmq.q_r31"), 1);
    assert_int_equal(database_get_i64(bus->db,
                                      "select count(*) from pawl.failed_operations where operation_type = 'reply'"),
                     30);
    PQfinish(worker);
    PQfinish(holder);
}

TEST(prune_takes_what_is_old_enough_and_nothing_else)
{
    scoped(bus_free) Bus *bus = bus_new(4);

    bus_send(bus, "mail", 3);
    bus_settle(bus, claimed_one(bus), OUTCOME_COMPLETE, NULL, NULL);
    bus_settle(bus, claimed_one(bus), OUTCOME_COMPLETE, NULL, NULL);
    database_exec(bus->db, "update pawl.outcome set ended_at = now() - interval '31 days' "
                           "where id = (select min(id) from pawl.outcome)");
    assert_int_equal(database_get_i64(bus->db, "select pawl.prune(100, '30 days', '90 days')"), 1);
    assert_int_equal(bus_count(bus, "command"), 2);
    assert_int_equal(bus_count(bus, "outcome"), 1);
    assert_int_equal(bus_count(bus, "audit"), 7);
    database_exec(bus->db, "update pawl.command set created_at = now() - interval '91 days'");
    assert_int_equal(database_get_i64(bus->db, "select pawl.prune(100, '30 days', '90 days')"), 0);
    assert_int_equal(bus_count(bus, "audit"), 5);
}

/* Retention deletes the payload; the id is known for longer. */
TEST(command_whose_payload_was_deleted_is_not_run_again)
{
    scoped(bus_free) Bus *bus      = bus_new(4);
    SendItem              items[4] = {bus_item("mail", "t", "{\"n\": 1}"), bus_item("mail", "t", "{\"n\": 2}"),
                                      bus_item("mail", "u", "{\"n\": 1}"), bus_item("mail", "t", NULL)};
    SendItem             *list[]   = {&items[0], &items[1], &items[2], &items[3]};
    Error                 error    = {0};

    for (int i = 0; i < 3; i++)
        items[i].command_id = "0190a000-0000-7000-8000-00000000000a";
    assert_ok(send_many(bus->pool, soon(), bus->arena, list, 1, &error));
    bus_settle(bus, claimed_one(bus), OUTCOME_REJECT, NULL, "no");
    database_exec(bus->db, "update pawl.outcome set ended_at = now() - interval '31 days'");
    assert_int_equal(database_get_i64(bus->db, "select pawl.prune(100, '30 days', '90 days')"), 1);
    assert_int_equal(bus_count(bus, "command"), 0);
    assert_int_equal(bus_count(bus, "kept_key"), 1);
    items[0].delay_ms = 1000;
    assert_ok(send_many(bus->pool, soon(), bus->arena, list, 4, &error));
    assert_ok(items[0].code);
    assert_false(items[0].is_new);
    assert_string_equal(items[0].status, "FAILED");
    assert_int_equal(items[1].code, ERR_KEY_REUSED);
    assert_contains(items[1].error.text, "payload differs");
    assert_int_equal(items[2].code, ERR_KEY_REUSED);
    assert_contains(items[2].error.text, "it was sent as \"t\"");
    assert_true(items[3].is_new);
    assert_int_equal(bus_count(bus, "command"), 1);
    assert_int_equal(bus_count(bus, "ready") + bus_count(bus, "delayed"), 1);
    assert_int_equal(bus_count(bus, "audit where event = 'SENT'"), 2);
    /* Then the key goes too, and the id is new. */
    assert_int_equal(database_get_i64(bus->db, "select pawl.prune_keys(100, '32 days')"), 0);
    assert_int_equal(database_get_i64(bus->db, "select pawl.prune_keys(100, '30 days')"), 1);
    assert_ok(send_many(bus->pool, soon(), bus->arena, list, 1, &error));
    assert_true(items[0].is_new);
}

TEST(prune_works_with_a_publication_for_all_tables)
{
    scoped(bus_free) Bus *bus = bus_new(4);

    bus_send(bus, "mail", 1);
    bus_settle(bus, claimed_one(bus), OUTCOME_COMPLETE, NULL, NULL);
    bus_send(bus, "mail", 1);
    bus_settle(bus, claimed_one(bus), OUTCOME_RETRY, NULL, "busy");
    /* As after weeks without a monitor: events of no week's partition, which are deleted row by row. */
    database_exec(bus->db, "alter table pawl.event detach partition pawl.event_before;"
                           "insert into pawl.event select * from pawl.event_before; drop table pawl.event_before;"
                           "update pawl.outcome set ended_at = now() - interval '31 days';"
                           "update pawl.event set at = now() - interval '91 days'");
    database_exec(bus->db, "set client_min_messages = error; create publication everything for all tables");
    assert_int_equal(database_get_i64(bus->db, "select pawl.prune(100, '30 days', '90 days')"), 2);
    assert_int_equal(bus_count(bus, "audit"), 3 + 1); /* the events of the first command; the second was sent */
    assert_int_equal(bus_count(bus, "kept_audit"), 1);
    assert_int_equal(database_get_i64(bus->db, "select pawl.prune_audit(100, '20 days')"), 0);
    assert_int_equal(bus_count(bus, "kept_audit"), 0);
    assert_int_equal(database_get_i64(bus->db, "select pawl.prune_keys(100, '30 days')"), 1);
}

/* What was sent early and ended late, and traces of commands that never were, stand before what is old enough to go. */
TEST(prune_skips_retained_rows)
{
    scoped(bus_free) Bus *bus = bus_new(4);

    database_exec(bus->db, "select pawl.settle(array_fill(0::bigint, array[8]), array_fill(1::bigint, array[8]), "
                           "array_fill('complete'::text, array[8]))"); /* eight traces, of today */
    bus_send(bus, "mail", 10);
    for (int i = 0; i < 10; i++)
        bus_settle(bus, claimed_one(bus), OUTCOME_COMPLETE, NULL, NULL);
    database_exec(bus->db, "update pawl.command set created_at = now() - interval '200 days'");
    database_exec(bus->db, "update pawl.outcome set ended_at = now() - interval '200 days' "
                           "where id in (select id from pawl.outcome order by id desc limit 2)");
    assert_int_equal(database_get_i64(bus->db, "select pawl.prune(2, '30 days', '90 days')"), 2);
    assert_int_equal(bus_count(bus, "outcome"), 8);
    while (database_get_i64(bus->db, "select pawl.prune(2, '30 days', '90 days')") > 0)
        ;
    assert_int_equal(bus_count(bus, "audit where at < now() - interval '90 days'"), 0);
    assert_int_equal(bus_count(bus, "audit"), 8 + 2 * 8);
    assert_int_equal(bus_count(bus, "command"), 8);
}

/* What a pod does, the role for pods may do; nothing here runs as the owner. */
TEST(bus_works_for_the_role_of_an_application)
{
    scoped(bus_free) Bus   *bus = bus_new(4);
    scoped(pool_free) Pool *own = bus->pool;
    char                    conninfo[CONNINFO_SIZE];
    Error                   error = {0};
    int                     moved, next_ms;

    bus->pool = NULL;
    conninfo_change(database_url(bus->db), conninfo, "options", "-c role=pawl_app", NULL);
    assert_ok(pool_new(&(PoolOptions){.conninfo = conninfo}, &bus->pool, &error));
    send_with(bus, "answers", NULL);
    ClaimedCommand *claimed = claimed_one(bus);
    LeaseVerdict    verdict;
    assert_ok(lease_extend(bus->pool, soon(), bus->arena, &claimed->id, &claimed->token, 1, 1000, &verdict, &error));
    assert_int_equal(verdict, LEASE_EXTENDED);
    assert_true(bus_settle(bus, claimed, OUTCOME_COMPLETE, NULL, NULL).settled);
    assert_ok(requeue_step(bus->pool, soon(), &(Requeue){0}, 1000, &moved, &next_ms, &error));
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "fresh", NULL, "w");
    bool                          has     = true;
    assert_ok(claimer_has_work(claimer, soon(), bus->arena, &has, &error));
    assert_false(has);
}
