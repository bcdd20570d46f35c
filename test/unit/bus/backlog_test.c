/*
 * backlog_test.c - how much waits and since when, without counting much.
 */
#include "bus/backlog.h"

#include "bus/metric.h"
#include "test/unit/bus/fixture.h"

#define MINUTE_MS 60000

static Mono minute(int64_t m)
{
    return (Mono){m * 60 * NS_PER_S};
}

TEST(backlog_age_is_that_of_the_first_mark_at_or_behind_the_number)
{
    Backlog backlog = {0};

    assert_int_equal(backlog_age_ms(&backlog, 1, minute(9)), 0);
    backlog_mark(&backlog, 10, minute(1));
    backlog_mark(&backlog, 15, mono_plus_ms(minute(2), -1)); /* too early */
    backlog_mark(&backlog, 20, minute(2));
    backlog_mark(&backlog, 20, minute(3));
    assert_int_equal(backlog_age_ms(&backlog, 10, minute(9)), 8 * MINUTE_MS);
    assert_int_equal(backlog_age_ms(&backlog, 11, minute(9)), 7 * MINUTE_MS);
    assert_int_equal(backlog_age_ms(&backlog, 20, minute(9)), 7 * MINUTE_MS);
    assert_int_equal(backlog_age_ms(&backlog, 21, minute(9)), 0);
}

TEST(backlog_remembers_a_day)
{
    Backlog backlog = {0};
    int64_t end     = 3 * BACKLOG_MARKS;

    for (int64_t m = 1; m <= end; m++)
        backlog_mark(&backlog, m, minute(m)); /* number m is allocated in minute m */
    assert_int_equal(backlog.count, BACKLOG_MARKS);
    assert_int_equal(backlog_age_ms(&backlog, 1, minute(end)), (BACKLOG_MARKS - 1) * MINUTE_MS);
    assert_int_equal(backlog_age_ms(&backlog, end - 7, minute(end)), 7 * MINUTE_MS);
}

/* Estimates come from statistics, which a session reports now and then, or when asked. */
static void bus_tell_statistics(Bus *bus)
{
    database_exec(bus->db, "select pg_stat_force_next_flush()");
}

/* On a busy machine a call may have taken long: here the next one is made all the same. */
static ErrorCode look(Bus *bus, Backlog *backlog, Error *reterr)
{
    backlog->pause_until = (Mono){0};
    return backlog_step(bus->pool, soon(), backlog, reterr);
}

TEST(backlog_puts_the_counts_per_state_into_the_metrics)
{
    scoped(bus_free) Bus *bus     = bus_new(2);
    Backlog               backlog = {0};
    Error                 error   = {0};

    assert_ok(look(bus, &backlog, &error));
    assert_int_equal(metric_value(&bus_metrics.ready), 0);
    assert_int_equal(metric_value(&bus_metrics.troubleshooting), 0);
    assert_int_equal(metric_value(&bus_metrics.oldest_ready_s), 0);
    database_exec(
        bus->db,
        "select pawl.send('shop', 'a', p_delay => '1 hour') from generate_series(1, 3);"
        "select pawl.send('shop', 'b', p_priority => n % 10) from generate_series(1, 25) n;"
        "select pawl.send('mail', 'b') from generate_series(1, 7) n;"
        "select count(*) from pawl.claim(pawl.domain_id('shop'), 5, 60000, array_fill(0::bigint, array[10]), null, "
        "'w');"
        "select count(*) from pawl.settle((select array_agg(id) from (select id from pawl.lease limit 2) l),"
        "  (select array_agg(token) from (select token from pawl.lease limit 2) l), '{fail,fail}', null, null, null)");
    bus_tell_statistics(bus);
    assert_ok(look(bus, &backlog, &error));
    assert_int_equal(metric_value(&bus_metrics.ready), 27);
    assert_int_equal(metric_value(&bus_metrics.delayed), 3);
    assert_int_equal(metric_value(&bus_metrics.leased), 3);
    assert_int_equal(metric_value(&bus_metrics.troubleshooting), 2);
}

TEST(backlog_age_is_the_oldest_of_all_domains_and_priorities)
{
    scoped(bus_free) Bus *bus     = bus_new(2);
    Backlog               backlog = {0};
    Error                 error   = {0};

    database_exec(bus->db,
                  "select pawl.send('b', 'old', p_priority => 1); select pawl.send('a', 't', p_priority => 9);"
                  "select pawl.send('b', 't', p_priority => 9); select pawl.send('c', 't');"
                  "update pawl.command set created_at = pawl.now() - interval '20 minutes' where type = 'old'");
    assert_ok(look(bus, &backlog, &error));
    assert_in_range(metric_value(&bus_metrics.oldest_ready_s), 1200, 1260);
    /* One that was delayed for long has not been queued for long: its age begins when it is queued. */
    database_exec(bus->db, "delete from pawl.ready where id in (select id from pawl.command where type <> 'old');"
                           "update pawl.ready set pos = nextval('pawl.command_seq')");
    assert_ok(look(bus, &backlog, &error));
    assert_int_equal(metric_value(&bus_metrics.oldest_ready_s), 0);
    backlog.count = 0;
    backlog_mark(&backlog, database_get_i64(bus->db, "select last_value from pawl.command_seq"),
                 mono_plus_ms(clock_mono(), -400000));
    assert_ok(look(bus, &backlog, &error));
    assert_in_range(metric_value(&bus_metrics.oldest_ready_s), 400, 460);
}

TEST(backlog_waits_longer_after_an_expensive_count)
{
    scoped(bus_free) Bus *bus     = bus_new(2);
    Backlog               backlog = {.pause_until = mono_plus_ms(clock_mono(), 60000)};
    Error                 error   = {0};

    metric_set(&bus_metrics.ready, 77);
    assert_ok(backlog_step(bus->pool, soon(), &backlog, &error));
    assert_int_equal(metric_value(&bus_metrics.ready), 77);
    assert_int_equal(backlog.count, 0);
    backlog.pause_until = clock_mono();
    assert_ok(backlog_step(bus->pool, soon(), &backlog, &error));
    assert_int_equal(metric_value(&bus_metrics.ready), 0);
}
