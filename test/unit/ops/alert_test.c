/*
 * alert_test.c - conditions over metrics that only grow, so every test starts from what stands there already.
 */
#include "test/harness/test.h"

#include <jansson.h>

#include "base/metric.h"
#include "ops/alert.h"
#include "pg/breaker.h"
#include "test/harness/fake_clock.h"

#define START_US  1700000000000000
#define LOOK_MS   2000
#define MINUTE_MS 60000

/* What the listener was told. */
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
    watch->alerts = alerts_new(hear, &watch->heard);
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
    Alert list[ALERT_COUNT];

    fake_clock_advance_ms(LOOK_MS);
    alerts_step(watch->alerts);
    alerts_list(watch->alerts, list);
    return list[id];
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
    metric_set(METRIC_DLQ_SIZE, 100);
    assert_false(look(&watch, ALERT_DLQ).firing);
    metric_set(METRIC_DLQ_SIZE, 101);
    assert_true(look(&watch, ALERT_DLQ).firing);
    assert_true(look(&watch, ALERT_DLQ).firing);
    assert_int_equal(watch.heard.fired, 1);
    assert_int_equal(watch.heard.resolved, 0);
    assert_string_equal(watch.heard.last.name, "dead-letters");
    assert_int_equal(watch.heard.last.value, 101);
    assert_int_equal(watch.heard.last.limit, 100);
    assert_int_equal(watch.heard.last.since.us, START_US + 2 * LOOK_MS * 1000);
    assert_int_equal(metric_value(METRIC_ALERT_DLQ), 1);
    metric_set(METRIC_DLQ_SIZE, 0);
    look(&watch, ALERT_DLQ);
    look(&watch, ALERT_DLQ);
    watch_end(&watch);
}

TEST(alert_is_resolved_after_two_consecutive_samples_below_its_limit)
{
    Watch watch;

    watch_begin(&watch);
    metric_set(METRIC_DLQ_SIZE, 500);
    assert_true(look(&watch, ALERT_DLQ).firing);
    metric_set(METRIC_DLQ_SIZE, 100);
    assert_true(look(&watch, ALERT_DLQ).firing);
    metric_set(METRIC_DLQ_SIZE, 101); /* one sample below the limit was not enough, and does not count any more */
    assert_true(look(&watch, ALERT_DLQ).firing);
    metric_set(METRIC_DLQ_SIZE, 100);
    assert_true(look(&watch, ALERT_DLQ).firing);
    assert_int_equal(watch.heard.resolved, 0);
    assert_false(look(&watch, ALERT_DLQ).firing);
    assert_false(look(&watch, ALERT_DLQ).firing);
    assert_int_equal(watch.heard.fired, 1);
    assert_int_equal(watch.heard.resolved, 1);
    assert_int_equal(metric_value(METRIC_ALERT_DLQ), 0);
    metric_set(METRIC_DLQ_SIZE, 101);
    assert_true(look(&watch, ALERT_DLQ).firing);
    assert_int_equal(watch.heard.fired, 2);
    metric_set(METRIC_DLQ_SIZE, 0);
    look(&watch, ALERT_DLQ);
    look(&watch, ALERT_DLQ);
    watch_end(&watch);
}

TEST(alert_failing_needs_twenty_requests)
{
    Watch watch;

    watch_begin(&watch);
    metric_add(METRIC_HTTP_5XX, 19);
    assert_int_equal(look(&watch, ALERT_FAILING).value, 0);
    metric_add(METRIC_HTTP_2XX, 1);
    assert_int_equal(look(&watch, ALERT_FAILING).value, 95);
    assert_int_equal(watch.heard.fired, 1);
    watch_end(&watch);
}

TEST(alert_failing_is_a_rate_over_five_minutes)
{
    Watch watch;

    watch_begin(&watch);
    metric_add(METRIC_HTTP_2XX, 90);
    metric_add(METRIC_HTTP_5XX, 10);
    assert_int_equal(look(&watch, ALERT_FAILING).value, 10);
    assert_int_equal(watch.heard.fired, 0); /* exactly 10 % is not above it */
    metric_add(METRIC_HTTP_5XX, 1);         /* 10.9 % is */
    assert_int_equal(look(&watch, ALERT_FAILING).value, 11);
    assert_int_equal(watch.heard.fired, 1);
    metric_add(METRIC_HTTP_4XX, 1000); /* the client's fault: dilutes, does not fail */
    assert_int_equal(look(&watch, ALERT_FAILING).value, 1);
    look(&watch, ALERT_FAILING);
    assert_int_equal(watch.heard.resolved, 1);
    look_for_minutes(&watch, 4);
    metric_add(METRIC_HTTP_5XX, 500);
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
        Metric  source, firing;
        int64_t limit;
    } rows[] = {
        {ALERT_TROUBLE,  METRIC_TROUBLE,           METRIC_ALERT_TROUBLE,  0    },
        {ALERT_WAITING,  METRIC_READY_AGE,         METRIC_ALERT_WAITING,  300  },
        {ALERT_BATCH,    METRIC_BATCH_IDLE,        METRIC_ALERT_BATCH,    86400},
        {ALERT_LEDGER,   METRIC_LEDGER_AHEAD,      METRIC_ALERT_LEDGER,   5    },
        {ALERT_HANDLERS, METRIC_HANDLERS_FAILING,  METRIC_ALERT_HANDLERS, 10   },
        {ALERT_RATE,     METRIC_RATE_LIMITED_HOUR, METRIC_ALERT_RATE,     10   },
    };
    Watch watch;

    watch_begin(&watch);
    for (size_t i = 0; i < COUNT(rows); i++) {
        metric_set(rows[i].source, rows[i].limit);
        assert_false(look(&watch, rows[i].id).firing);
        metric_set(rows[i].source, rows[i].limit + 1);
        assert_int_equal(look(&watch, rows[i].id).value, rows[i].limit + 1);
        assert_int_equal(metric_value(rows[i].firing), 1);
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
    alerts_limit(watch.alerts, ALERT_DLQ, 7);
    metric_set(METRIC_DLQ_SIZE, 7);
    assert_false(look(&watch, ALERT_DLQ).firing);
    metric_set(METRIC_DLQ_SIZE, 8);
    assert_true(look(&watch, ALERT_DLQ).firing);
    assert_int_equal(7, look(&watch, ALERT_DLQ).limit);
    metric_set(METRIC_DLQ_SIZE, 0);
    watch_end(&watch);
}

TEST(alert_pool_fires_above_ninety_percent)
{
    Watch watch;

    watch_begin(&watch);
    metric_set(METRIC_POOL_MAX, 0);
    metric_set(METRIC_POOL_IN_USE, 1);
    assert_int_equal(look(&watch, ALERT_POOL).value, 0);
    metric_set(METRIC_POOL_MAX, 10);
    metric_set(METRIC_POOL_IN_USE, 9);
    assert_false(look(&watch, ALERT_POOL).firing);
    metric_set(METRIC_POOL_IN_USE, 10);
    assert_true(look(&watch, ALERT_POOL).firing);
    metric_set(METRIC_POOL_IN_USE, 0);
    look(&watch, ALERT_POOL);
    assert_false(look(&watch, ALERT_POOL).firing);
    watch_end(&watch);
}

TEST(alert_breaker_fires_until_it_is_closed)
{
    Watch watch;

    watch_begin(&watch);
    metric_set(METRIC_BREAKER_STATE, BREAKER_OPEN);
    assert_true(look(&watch, ALERT_BREAKER).firing);
    metric_set(METRIC_BREAKER_STATE, BREAKER_HALF_OPEN);
    look(&watch, ALERT_BREAKER);
    assert_true(look(&watch, ALERT_BREAKER).firing);
    metric_set(METRIC_BREAKER_STATE, BREAKER_CLOSED);
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
    assert_string_equal(json_string_value(json_object_get(value, "alert")), alert->name);
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
    alert = look(&watch, ALERT_DLQ);
    assert_written(&alert, "ok", /* has_since= */ false);
    metric_set(METRIC_DLQ_SIZE, 101);
    alert = look(&watch, ALERT_DLQ);
    assert_written(&alert, "firing", /* has_since= */ true);
    metric_set(METRIC_DLQ_SIZE, 0);
    look(&watch, ALERT_DLQ);
    alert = look(&watch, ALERT_DLQ);
    assert_written(&alert, "resolved", /* has_since= */ true);
    watch_end(&watch);
}
