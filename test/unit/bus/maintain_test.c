/*
 * maintain_test.c - abandoned batches are sealed, and what could not be delivered is delivered later, exactly once.
 */
#include "bus/maintain.h"

#include "bus/dead_letter.h"
#include "test/unit/bus/fixture.h"

static const MaintainLimits limits = {.batch_expiry_ms   = 3600000,
                                      .keep_replies_days = 30,
                                      .keep_letters_days = 90,
                                      .reply_queues_max  = 1000};

static int retried(Bus *bus)
{
    static const DeadLetterType list[] = {
        {"reply",       reply_retry      },
        {"on_complete", on_complete_retry}
    };
    Error error = {0};
    int   tried = 0;

    database_exec(bus->db, "update pawl.failed_operations set next_retry_at = now() - interval '1 s'");
    assert_ok(
        dead_letter_step(bus->pool, soon(), (DeadLetterTypes){.list = list, .count = COUNT(list)}, &tried, &error));
    return tried;
}

TEST(maintain_seals_a_batch_that_was_abandoned)
{
    scoped(bus_free) Bus *bus      = bus_new(4);
    Maintain              maintain = {0};
    Error                 error    = {0};
    bool                  more     = true;

    database_exec(bus->db, "select * from pawl.batch_new(null, 'old', '{\"domain\": \"report\", \"type\": \"done\"}')");
    assert_ok(maintain_step(bus->pool, soon(), &maintain, &limits, &more, &error));
    assert_false(more);
    assert_int_equal(bus_count(bus, "batch where sealed_at is not null"), 0);
    database_exec(bus->db, "update pawl.batch set created_at = now() - interval '61 min'");
    assert_ok(maintain_step(bus->pool, soon(), &maintain, &limits, &more, &error));
    assert_int_equal(bus_count(bus, "batch where expired and completed_at is not null"), 1);
    assert_int_equal(bus_count(bus, "command where type = 'done'"), 1);
}

/* More queues than one step reads: the next one goes on where it stopped. */
TEST(maintain_drops_every_idle_reply_queue_in_steps)
{
    scoped(bus_free) Bus *bus      = bus_new(4);
    Maintain              maintain = {0};
    Error                 error    = {0};
    bool                  more     = true;
    int                   steps    = 0;

    database_exec(bus->db, "select count(pawl.send('mail', 't', '1'::jsonb, p_reply_to => 'q' || n)) "
                           "from generate_series(1, 45) n");
    database_exec(bus->db, "update pawl.reply_queue set used_at = now() - interval '31 days'");
    for (; more; steps++)
        assert_ok(maintain_step(bus->pool, soon(), &maintain, &limits, &more, &error));
    assert_int_equal(steps, 3);
    assert_int_equal(bus_count(bus, "reply_queue"), 0);
    assert_int_equal(database_get_i64(bus->db, "select count(*) from pgmq.meta"), 0);
}

TEST(reply_that_could_not_be_sent_is_sent_once_when_its_queue_is_back)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    ClaimedCommand               *claimed = NULL;

    database_exec(bus->db, "select pawl.send('mail', 't', '1'::jsonb, p_reply_to => 'answers')");
    assert_int_equal(bus_claim(bus, claimer, 1, 30000, &claimed), 1);
    database_exec(bus->db, "alter table pgmq.q_answers rename to q_away");
    assert_true(bus_settle(bus, claimed, OUTCOME_COMPLETE, NULL, NULL).settled);
    assert_int_equal(bus_count(bus, "failed_operations where operation_type = 'reply' and status = 'pending'"), 1);
    assert_int_equal(retried(bus), 1); /* it fails */
    assert_int_equal(bus_count(bus, "failed_operations where status = 'pending' and retry_count = 1"), 1);
    database_exec(bus->db, "alter table pgmq.q_away rename to q_answers");
    assert_int_equal(retried(bus), 1);
    assert_int_equal(retried(bus), 0);
    assert_int_equal(database_get_i64(bus->db, "select count(*) from pgmq.q_answers"), 1);
    assert_int_equal(bus_count(bus, "failed_operations where status = 'resolved'"), 1);
}

/* A last command that cannot be sent keeps the command that ends the batch from nothing. */
TEST(batch_whose_last_command_could_not_be_sent_sends_it_later)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    ClaimedCommand               *claimed = NULL;

    database_exec(bus->db,
                  "select * from pawl.batch_new('0190a000-0000-7000-8000-00000000000b', null, "
                  "'{\"domain\": \"report\", \"type\": \"done\"}');"
                  "select pawl.send('mail', 't', '1'::jsonb, p_batch => '0190a000-0000-7000-8000-00000000000b');"
                  "select pawl.batch_seal('0190a000-0000-7000-8000-00000000000b');"
                  "alter table pawl.command add constraint no check (type <> 'done')");
    assert_int_equal(bus_claim(bus, claimer, 1, 30000, &claimed), 1);
    assert_true(bus_settle(bus, claimed, OUTCOME_COMPLETE, NULL, NULL).settled);
    assert_int_equal(bus_count(bus, "batch where completed_at is not null"), 1);
    assert_int_equal(bus_count(bus, "failed_operations where operation_type = 'on_complete'"), 1);
    database_exec(bus->db, "alter table pawl.command drop constraint no");
    assert_int_equal(retried(bus), 1);
    assert_int_equal(bus_count(bus, "command where type = 'done'"), 1);
}
