/*
 * alert_test.c - conditions over metrics that only grow, so every test starts from what stands there already.
 */
#include "app/alert_rules.h"

#include <jansson.h>

#include "bus/metric.h"
#include "client/metric.h"
#include "http/metric.h"
#include "ops/metric.h"
#include "pg/breaker.h"
#include "pg/metric.h"
#include "schedule/metric.h"
#include "test/harness/fake_clock.h"
#include "test/harness/test.h"
#include "wallet/metric.h"

#define START_US  1700000000000000
#define LOOK_MS   2000
#define MINUTE_MS 60000

/* What the listener received. */
typedef struct {
    int   fired, resolved;
    Alert last;
} Heard;

static void hear(void *context, const Alert *alert)
{
    Heard *heard = context;

    heard->fired += alert->firing;
    heard->resolved += !alert->firing;
    heard->last = *alert;
}

typedef struct {
    Alerts *alerts;
    Heard   heard;
} Watch;

static void watch_begin(Watch *watch)
{
    fake_clock_install((Wall){START_US});
    watch->heard  = (Heard){0};
    watch->alerts = alerts_new(alert_rules, ALERT_COUNT, hear, &watch->heard);
    alerts_step(watch->alerts);
    assert_int_equal(watch->heard.fired, 0);
}

static void watch_end(Watch *watch)
{
    alerts_free(watch->alerts);
    fake_clock_restore();
}

static Alert look(Watch *watch, AlertId id)
{
    Alert list[ALERTS_MAX];

    fake_clock_advance_ms(LOOK_MS);
    alerts_step(watch->alerts);
    alerts_list(watch->alerts, list);
    return list[id];
}

static int64_t firing_metric(const char *name)
{
    AlertMetrics *metrics = metric_series(&alert_metric_table, name);

    return metric_value(&metrics->firing);
}

static void look_for_minutes(Watch *watch, int minutes)
{
    for (int i = 0; i < minutes * (MINUTE_MS / LOOK_MS); i++)
        look(watch, ALERT_POOL);
}

TEST(alert_fires_above_its_limit_and_notifies_once)
{
    Watch watch;

    watch_begin(&watch);
    metric_set(&bus_metrics.dead_letters, 100);
    assert_false(look(&watch, ALERT_DEAD_LETTERS).firing);
    metric_set(&bus_metrics.dead_letters, 101);
    assert_true(look(&watch, ALERT_DEAD_LETTERS).firing);
    assert_true(look(&watch, ALERT_DEAD_LETTERS).firing);
    assert_int_equal(watch.heard.fired, 1);
    assert_int_equal(watch.heard.resolved, 0);
    assert_string_equal(watch.heard.last.rule->name, "dead-letters");
    assert_int_equal(watch.heard.last.value, 101);
    assert_int_equal(watch.heard.last.limit, 100);
    assert_int_equal(watch.heard.last.since.us, START_US + 2 * LOOK_MS * 1000);
    assert_int_equal(firing_metric("dead-letters"), 1);
    metric_set(&bus_metrics.dead_letters, 0);
    look(&watch, ALERT_DEAD_LETTERS);
    look(&watch, ALERT_DEAD_LETTERS);
    watch_end(&watch);
}

TEST(alert_is_resolved_after_two_consecutive_samples_below_its_limit)
{
    Watch watch;

    watch_begin(&watch);
    metric_set(&bus_metrics.dead_letters, 500);
    assert_true(look(&watch, ALERT_DEAD_LETTERS).firing);
    metric_set(&bus_metrics.dead_letters, 100);
    assert_true(look(&watch, ALERT_DEAD_LETTERS).firing);
    metric_set(&bus_metrics.dead_letters,
               101); /* one sample below the limit was not enough, and does not count any more */
    assert_true(look(&watch, ALERT_DEAD_LETTERS).firing);
    metric_set(&bus_metrics.dead_letters, 100);
    assert_true(look(&watch, ALERT_DEAD_LETTERS).firing);
    assert_int_equal(watch.heard.resolved, 0);
    assert_false(look(&watch, ALERT_DEAD_LETTERS).firing);
    assert_false(look(&watch, ALERT_DEAD_LETTERS).firing);
    assert_int_equal(watch.heard.fired, 1);
    assert_int_equal(watch.heard.resolved, 1);
    assert_int_equal(firing_metric("dead-letters"), 0);
    metric_set(&bus_metrics.dead_letters, 101);
    assert_true(look(&watch, ALERT_DEAD_LETTERS).firing);
    assert_int_equal(watch.heard.fired, 2);
    metric_set(&bus_metrics.dead_letters, 0);
    look(&watch, ALERT_DEAD_LETTERS);
    look(&watch, ALERT_DEAD_LETTERS);
    watch_end(&watch);
}

TEST(alert_failing_needs_twenty_requests)
{
    Watch watch;

    watch_begin(&watch);
    metric_add(&http_metrics.status_5xx, 19);
    assert_int_equal(look(&watch, ALERT_FAILING).value, 0);
    metric_add(&http_metrics.status_2xx, 1);
    assert_int_equal(look(&watch, ALERT_FAILING).value, 95);
    assert_int_equal(watch.heard.fired, 1);
    watch_end(&watch);
}

TEST(alert_failing_is_a_rate_over_five_minutes)
{
    Watch watch;

    watch_begin(&watch);
    metric_add(&http_metrics.status_2xx, 90);
    metric_add(&http_metrics.status_5xx, 10);
    assert_int_equal(look(&watch, ALERT_FAILING).value, 10);
    assert_int_equal(watch.heard.fired, 0);  /* exactly 10 % is not above it */
    metric_add(&http_metrics.status_5xx, 1); /* 10.9 % is */
    assert_int_equal(look(&watch, ALERT_FAILING).value, 11);
    assert_int_equal(watch.heard.fired, 1);
    metric_add(&http_metrics.status_4xx, 1000); /* the client's fault: dilutes, does not fail */
    assert_int_equal(look(&watch, ALERT_FAILING).value, 1);
    look(&watch, ALERT_FAILING);
    assert_int_equal(watch.heard.resolved, 1);
    look_for_minutes(&watch, 4);
    metric_add(&http_metrics.status_5xx, 500);
    assert_true(look(&watch, ALERT_FAILING).firing);
    look_for_minutes(&watch, 4);
    assert_int_equal(watch.heard.resolved, 1); /* still inside the window */
    look_for_minutes(&watch, 3);
    assert_int_equal(watch.heard.resolved, 2); /* out of it, though nothing was asked since */
    watch_end(&watch);
}

TEST(alert_tells_of_what_monitors_read_in_the_database)
{
    static const struct {
        AlertId id;
        Metric *source;
        int64_t limit;
    } rows[] = {
        {ALERT_TROUBLESHOOTING, &bus_metrics.troubleshooting,           0    },
        {ALERT_WAITING,         &bus_metrics.oldest_ready_s,            300  },
        {ALERT_BATCH,           &bus_metrics.batch_idle_s,              86400},
        {ALERT_REPLY_QUEUES,    &bus_metrics.reply_queues_percent,      80   },
        {ALERT_RETENTION,       &bus_metrics.retention_jump_s,          0    },
        {ALERT_SCHEDULES,       &schedule_metrics.failing,              0    },
        {ALERT_LEDGER,          &wallet_metrics.clock_ahead_s,          5    },
        {ALERT_HANDLERS,        &bus_metrics.handlers_failing_percent,  10   },
        {ALERT_RATE_LIMITED,    &client_metrics.rate_limited_last_hour, 10   },
    };
    Watch watch;

    watch_begin(&watch);
    for (size_t i = 0; i < COUNT(rows); i++) {
        metric_set(rows[i].source, rows[i].limit);
        assert_false(look(&watch, rows[i].id).firing);
        metric_set(rows[i].source, rows[i].limit + 1);
        assert_int_equal(look(&watch, rows[i].id).value, rows[i].limit + 1);
        assert_int_equal(firing_metric(alert_rules[rows[i].id].name), 1);
        metric_set(rows[i].source, 0);
        look(&watch, rows[i].id);
        assert_false(look(&watch, rows[i].id).firing);
    }
    assert_int_equal(watch.heard.fired, (int)COUNT(rows));
    assert_int_equal(watch.heard.resolved, (int)COUNT(rows));
    watch_end(&watch);
}

TEST(alert_limits_can_be_set)
{
    Watch watch;

    watch_begin(&watch);
    alerts_limit(watch.alerts, ALERT_DEAD_LETTERS, 7);
    metric_set(&bus_metrics.dead_letters, 7);
    assert_false(look(&watch, ALERT_DEAD_LETTERS).firing);
    metric_set(&bus_metrics.dead_letters, 8);
    assert_true(look(&watch, ALERT_DEAD_LETTERS).firing);
    assert_int_equal(7, look(&watch, ALERT_DEAD_LETTERS).limit);
    metric_set(&bus_metrics.dead_letters, 0);
    watch_end(&watch);
}

TEST(alert_pool_fires_above_ninety_percent)
{
    Watch watch;

    watch_begin(&watch);
    metric_set(&pg_metrics.pool_max, 0);
    metric_set(&pg_metrics.pool_in_use, 1);
    assert_int_equal(look(&watch, ALERT_POOL).value, 0);
    metric_set(&pg_metrics.pool_max, 10);
    metric_set(&pg_metrics.pool_in_use, 9);
    assert_false(look(&watch, ALERT_POOL).firing);
    metric_set(&pg_metrics.pool_in_use, 10);
    assert_true(look(&watch, ALERT_POOL).firing);
    metric_set(&pg_metrics.pool_in_use, 0);
    look(&watch, ALERT_POOL);
    assert_false(look(&watch, ALERT_POOL).firing);
    watch_end(&watch);
}

TEST(alert_breaker_fires_until_it_is_closed)
{
    Watch watch;

    watch_begin(&watch);
    metric_set(&pg_metrics.breaker_state, BREAKER_OPEN);
    assert_true(look(&watch, ALERT_BREAKER).firing);
    metric_set(&pg_metrics.breaker_state, BREAKER_HALF_OPEN);
    look(&watch, ALERT_BREAKER);
    assert_true(look(&watch, ALERT_BREAKER).firing);
    metric_set(&pg_metrics.breaker_state, BREAKER_CLOSED);
    look(&watch, ALERT_BREAKER);
    assert_false(look(&watch, ALERT_BREAKER).firing);
    watch_end(&watch);
}

/* The state that a reader of the JSON sees. */
static void assert_written(const Alert *alert, const char *state, bool has_since)
{
    scoped_text Text text = {0};
    json_t          *value;

    text_init(&text, NULL, TEXT_MAX_LINE);
    alert_write(alert, &text);
    value = json_loads(text_string(&text), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(value);
    assert_string_equal(json_string_value(json_object_get(value, "alert")), alert->rule->name);
    assert_string_equal(json_string_value(json_object_get(value, "state")), state);
    assert_int_equal(json_integer_value(json_object_get(value, "value")), alert->value);
    assert_int_equal(json_is_string(json_object_get(value, "since")), has_since);
    json_decref(value);
}

TEST(alert_is_written_with_its_state)
{
    Watch watch;
    Alert alert;

    watch_begin(&watch);
    alert = look(&watch, ALERT_DEAD_LETTERS);
    assert_written(&alert, "ok", /* has_since= */ false);
    metric_set(&bus_metrics.dead_letters, 101);
    alert = look(&watch, ALERT_DEAD_LETTERS);
    assert_written(&alert, "firing", /* has_since= */ true);
    metric_set(&bus_metrics.dead_letters, 0);
    look(&watch, ALERT_DEAD_LETTERS);
    alert = look(&watch, ALERT_DEAD_LETTERS);
    assert_written(&alert, "resolved", /* has_since= */ true);
    watch_end(&watch);
}
