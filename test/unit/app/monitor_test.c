/*
 * monitor_test.c - alerts on their way out, and what the periodic tasks of many pods cost the database.
 */
#include "app/monitor.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/alert_rules.h"
#include "app/alert_webhook.h"
#include "bus/dead_letter.h"
#include "ops/webhook.h"
#include "pg/metric.h"
#include "test/harness/database.h"
#include "test/harness/test.h"

/* The machine may be busy: what is waited for has plenty of time, and asks seldom. */
#define AWAIT(fact)                                     \
    do {                                                \
        Deadline await_ = deadline_in_ms(60000);        \
        while (!(fact)) {                               \
            if (deadline_passed(await_))                \
                fail_msg("never came true: %s", #fact); \
            clock_sleep_ms(100);                        \
        }                                               \
    } while (0)

/* ---- alerts ---- */

/* The default: no webhook. The listener returns before it has written anything, and frees nothing it did not make. */
TEST(alert_changes_state_without_a_webhook)
{
    Daemon daemon = {0};
    Alert  alert  = {.rule = &alert_rules[ALERT_BREAKER], .firing = true};

    mutex_init(&daemon.mutex);
    alert_webhook_put(&daemon, &alert);
    alert.firing = false;
    alert_webhook_put(&daemon, &alert);
    mutex_done(&daemon.mutex);
}

/* ---- many pods ---- */

#define PODS      100
#define WINDOW_MS 15000

typedef struct {
    App    app;
    Daemon daemon;
} Pod;

static void pod_start(Pod *pod, const char *url)
{
    PoolOptions options = {.conninfo = url, .size_min = 1, .size_max = 1};
    Error       error   = {0};

    assert_ok(pool_new(&options, &pod->app.pool, &error));
    pod->app.settings = (Settings){.role                   = ROLE_MONITOR,
                                   .dlq_every              = 300000,
                                   .dlq_tries              = 3,
                                   .keep_commands_days     = 30,
                                   .keep_audit_days        = 90,
                                   .keep_replies_days      = 30,
                                   .keep_dead_letters_days = 90,
                                   .batch_expiry           = 604800000};
    pod->daemon.app   = &pod->app;
    mutex_init(&pod->daemon.mutex);
    pod->daemon.api.alerts = alerts_new(alert_rules, ALERT_COUNT, alert_webhook_put, &pod->daemon);
    assert_ok(client_new(&webhook_client, &pod->daemon.client, &error));
    pod->daemon.webhooks = alert_webhooks_new(&pod->daemon);
    pod->daemon.tasks    = monitor_start(&pod->daemon);
}

static void pod_stop(Pod *pod)
{
    tasks_stop(pod->daemon.tasks);
    monitor_release(&pod->daemon);
    tasks_free(pod->daemon.tasks);
    webhook_queue_free(pod->daemon.webhooks);
    client_free(pod->daemon.client);
    alerts_free(pod->daemon.api.alerts);
    pool_free(pod->app.pool);
    mutex_done(&pod->daemon.mutex);
}

/* Statements that pods of this process sent; the test's own connection is not among them. */
static int64_t statements(void)
{
    MetricHistogram histogram;

    metric_histogram(&pg_metrics.query_seconds, &histogram);
    return histogram.count;
}

/* Per minute, over a window that begins when every task has its pod. */
static int64_t statements_per_minute(int window_ms)
{
    Mono    start  = clock_mono();
    int64_t before = statements();

    AWAIT(mono_ms_between(start, clock_mono()) >= window_ms);
    return (statements() - before) * 60000 / mono_ms_between(start, clock_mono());
}

static int pods_that_hold(Pod *pods, const char *task)
{
    int count = 0;

    for (int i = 0; i < PODS; i++)
        count += tasks_holds(pods[i].daemon.tasks, task);
    return count;
}

TEST(monitor_a_hundred_idle_pods_cost_less_than_a_statement_per_second_each)
{
    static const char *const            single[] = {"dead-letters", "requeue", "prune",         "maintain",
                                                    "expire-holds", "seal",    "stat-maintain", "bulk"};
    scoped(database_free) TestDatabase *db       = database_new();
    static Pod                          pods[PODS];
    int64_t                             rate;

    for (int i = 0; i < PODS; i++)
        pod_start(&pods[i], database_url(db));
    for (size_t i = 0; i < COUNT(single); i++)
        AWAIT(pods_that_hold(pods, single[i]) == 1);
    rate = statements_per_minute(WINDOW_MS);
    for (size_t i = 0; i < COUNT(single); i++)
        assert_int_equal(1, pods_that_hold(pods, single[i]));
    assert_int_equal(COUNT(single), database_get_i64(db, "select count(*) from pawl.task where until > pawl.now()"));
    assert_in_range(rate, 1, 60 * PODS);
    for (int i = 0; i < PODS; i++)
        pod_stop(&pods[i]);
    assert_int_equal(0, database_get_i64(db, "select count(*) from pawl.task"));
}

TEST(monitor_one_idle_pod_sends_less_than_a_statement_per_second)
{
    scoped(database_free) TestDatabase *db = database_new();
    static Pod                          pod;

    pod_start(&pod, database_url(db));
    AWAIT(tasks_holds(pod.daemon.tasks, "seal"));
    assert_in_range(statements_per_minute(2 * WINDOW_MS), 1, 60);
    pod_stop(&pod);
}

TEST(monitor_prunes_the_audit_although_commands_cannot_be_pruned)
{
    scoped(database_free) TestDatabase *db  = database_new();
    Pod                                 pod = {0};

    database_exec(
        db, "create or replace function pawl.prune_commands (p_limit integer, p_older interval, inout after bigint, "
            "out gone bigint) language plpgsql as $$ begin raise exception 'broken'; end $$");
    pod_start(&pod, database_url(db));
    AWAIT(database_get_i64(db, "select count(*) from pawl.audit_start where at > '-infinity'") == 1);
    pod_stop(&pod);
}

TEST(monitor_a_pod_that_stops_is_followed_by_another)
{
    scoped(database_free) TestDatabase *db = database_new();
    static Pod                          pods[2];

    pod_start(&pods[0], database_url(db));
    AWAIT(tasks_holds(pods[0].daemon.tasks, "seal"));
    pod_start(&pods[1], database_url(db));
    assert_false(tasks_holds(pods[1].daemon.tasks, "seal"));
    pod_stop(&pods[0]);
    AWAIT(tasks_holds(pods[1].daemon.tasks, "seal"));
    pod_stop(&pods[1]);
}

/* ---- webhooks ---- */

/* Accepts connections and never answers. */
typedef struct {
    int  fd;
    char url[64];
} Silent;

static Silent silent_new(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          size    = sizeof address;
    Silent             silent  = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

    assert_int_equal(0, bind(silent.fd, (struct sockaddr *)&address, size));
    assert_int_equal(0, listen(silent.fd, 100));
    assert_int_equal(0, getsockname(silent.fd, (struct sockaddr *)&address, &size));
    snprintf(silent.url, sizeof silent.url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    return silent;
}

/* A receiver that does not answer: alerts come in at once all the same, and none is lost. */
TEST(monitor_webhooks_that_hang_delay_no_task_and_hold_no_transaction)
{
    scoped(database_free) TestDatabase *db     = database_new();
    scoped(arena_free) Arena           *arena  = arena_new(ARENA_BYTES_DEFAULT);
    Silent                              silent = silent_new();
    static Pod                          pod;
    Alert                               alert = {.rule = &alert_rules[ALERT_BREAKER], .firing = true};
    Error                               why = {.text = "down"}, error = {0};
    DeadLetter                         *letters;
    int64_t                             id;
    int                                 count, total = WEBHOOK_QUEUE_MAX + 2;

    pod_start(&pod, database_url(db));
    AWAIT(tasks_holds(pod.daemon.tasks, "dead-letters"));
    assert_ok(dead_letter_put(pod.app.pool, deadline_in_ms(20000),
                              &(DeadLetterNew){"alert_webhook", "old", "{}", &why, 1}, &id, &error));
    snprintf(pod.daemon.webhook, sizeof pod.daemon.webhook, "%s", silent.url);
    for (int i = 0; i < total; i++) {
        alert.since.us = i + 1;
        alert_webhook_put(&pod.daemon,
                          &alert); /* one is under way, the queue fills up, the rest is kept by the caller */
    }
    /* The old letter is being called: claimed, with no transaction open for it. */
    AWAIT(database_get_i64(db, "select count(*) from pawl.failed_operations where operation_key = 'old' and status = "
                               "'retrying'") == 1);
    /* The pool has one connection: it would be taken until the call has timed out, 5 s later. */
    assert_ok(dead_letter_list(pod.app.pool, deadline_in_ms(3000), arena, &(DeadLetterFilter){.limit = 2}, &letters,
                               &count, &error));
    assert_int_equal(2, count);
    close(silent.fd);
    assert_true(webhook_queue_drain(pod.daemon.webhooks, deadline_in_ms(60000)));
    assert_int_equal(total, database_get_i64(db, "select count(*) from pawl.failed_operations where operation_key ~ "
                                                 "'^breaker-open-[0-9]+$'"));
    pod_stop(&pod);
}
