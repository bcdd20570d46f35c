/*
 * listen_test.c - notifications arrive, lost ones are reported, and stopping is quick whatever the database does.
 */
#include "pg/listen.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sync.h"
#include "pg/metric.h"
#include "test/harness/database.h"
#include "test/harness/proxy.h"
#include "test/harness/test.h"

/* What the callback saw; the mutex guards it. */
typedef struct {
    Mutex mutex;
    Cond  changed;
    int   hints;  /* with a payload */
    int   losses; /* without */
    char  payload[64];
} Heard;

static void heard_init(Heard *heard)
{
    *heard = (Heard){0};
    mutex_init(&heard->mutex);
    cond_init(&heard->changed);
}

static void heard_done(Heard *heard)
{
    cond_done(&heard->changed);
    mutex_done(&heard->mutex);
}

static void hear(void *context, const char *channel, const char *payload)
{
    Heard                      *heard = context;
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&heard->mutex);

    (void)channel;
    if (payload)
        heard->hints++;
    else
        heard->losses++;
    snprintf(heard->payload, sizeof heard->payload, "%s", payload ? payload : "");
    cond_broadcast(&heard->changed);
}

/* Wait until there were so many; false: not within ten seconds. */
static bool heard_wait(Heard *heard, int hints, int losses)
{
    scoped(mutex_unlock) Mutex *held     = mutex_hold(&heard->mutex);
    Deadline                    deadline = deadline_in_ms(60000);

    while (heard->hints < hints || heard->losses < losses)
        if (!cond_wait(&heard->changed, &heard->mutex, deadline))
            return heard->hints >= hints && heard->losses >= losses;
    return true;
}

static bool up_wait(Listen *listen, bool up)
{
    Deadline deadline = deadline_in_ms(15000);

    while (listen_is_up(listen) != up && !deadline_passed(deadline))
        clock_sleep_ms(5);
    return listen_is_up(listen) == up;
}

static Pool *pool_open(const char *url)
{
    Pool *pool  = NULL;
    Error error = {0};

    assert_ok(pool_new(&(PoolOptions){.conninfo = url, .size_min = 1, .size_max = 2}, &pool, &error));
    return pool;
}

TEST(listen_hears_what_others_notify)
{
    scoped(database_free) TestDatabase *db   = database_new();
    scoped(pool_free) Pool             *pool = pool_open(database_url(db));
    Heard                               heard, other;

    heard_init(&heard);
    heard_init(&other);
    {
        scoped(listen_free) Listen *listen = listen_new(database_url(db), pool);

        listen_add(listen, "bell", hear, &heard);
        assert_true(heard_wait(&heard, 0, 1));
        assert_true(up_wait(listen, true));
        assert_int_equal(1, metric_value(&pg_metrics.listen_up));
        listen_add(listen, "horn", hear, &other); /* while it waits */
        assert_true(heard_wait(&other, 0, 1));
        database_exec(db, "notify bell, 'ding'");
        assert_true(heard_wait(&heard, 1, 1));
        assert_string_equal("ding", heard.payload);
        database_exec(db, "notify horn");
        assert_true(heard_wait(&other, 1, 1));
        assert_int_equal(1, heard.hints);
    }
    assert_int_equal(0, metric_value(&pg_metrics.listen_up));
    heard_done(&heard);
    heard_done(&other);
}

TEST(listen_notifies_each_channel_after_a_reconnect)
{
    scoped(database_free) TestDatabase *db   = database_new();
    scoped(pool_free) Pool             *pool = pool_open(database_url(db));
    Heard                               heard;

    heard_init(&heard);
    {
        scoped(listen_free) Listen *listen = listen_new(database_url(db), pool);

        listen_add(listen, "bell", hear, &heard);
        assert_true(up_wait(listen, true));
        database_exec(db, "select pg_terminate_backend(pid) from pg_stat_activity"
                          " where application_name = 'pawl listen' and datname = current_database()");
        assert_true(heard_wait(&heard, 0, 2));
        assert_true(up_wait(listen, true));
        database_exec(db, "notify bell, 'again'");
        assert_true(heard_wait(&heard, 1, 2));
    }
    heard_done(&heard);
}

/* Read the log until it says this; false: not within ten seconds. */
static bool log_wait(int fd, const char *words)
{
    static char seen[65536];
    size_t      used     = 0;
    Deadline    deadline = deadline_in_ms(60000);

    while (!deadline_passed(deadline) && used + 1 < sizeof seen) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};

        if (poll(&polled, 1, deadline_left_ms(deadline)) > 0) {
            ssize_t got = read(fd, seen + used, sizeof seen - used - 1);

            used += got > 0 ? (size_t)got : 0;
            seen[used] = '\0';
            if (strstr(seen, words))
                return true;
        }
    }
    return false;
}

/* What a pooler in transaction mode does to it: LISTEN is accepted, and notes sent through the pool never arrive. Here
 * because the pool is connected to another database. */
TEST(listen_notices_that_notifications_do_not_arrive)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(database_free) TestDatabase *other = database_new_empty();
    scoped(pool_free) Pool             *pool  = pool_open(database_url(other));
    int                                 log[2];

    assert_int_equal(0, pipe(log));
    log_open(LOG_WARN, LOG_TEXT, log[1]);
    {
        scoped(listen_free) Listen *listen = listen_new(database_url(db), pool);

        assert_true(log_wait(log[0], "notifications do not arrive"));
        assert_false(listen_is_up(listen));
    }
    log_open(LOG_WARN, LOG_TEXT, STDERR_FILENO);
    close(log[0]);
    close(log[1]);
}

TEST(listen_stops_at_once_connected_or_not)
{
    scoped(database_free) TestDatabase *db   = database_new();
    scoped(pool_free) Pool             *pool = pool_open(database_url(db));
    int                                 log[2];
    Mono                                before;

    Listen *listen = listen_new(database_url(db), pool);
    assert_true(up_wait(listen, true));
    before = clock_mono();
    listen_free(listen);
    assert_in_range(mono_ms_between(before, clock_mono()), 0, 500 + test_stalled_ms());

    assert_int_equal(0, pipe(log));
    log_open(LOG_WARN, LOG_TEXT, log[1]);
    listen = listen_new("host=/nonexistent dbname=nothing", pool);
    assert_true(log_wait(log[0], "cannot listen"));
    before = clock_mono();
    listen_free(listen);
    assert_in_range(mono_ms_between(before, clock_mono()), 0, 500 + test_stalled_ms());
    log_open(LOG_WARN, LOG_TEXT, STDERR_FILENO);
    close(log[0]);
    close(log[1]);
}

/* Each answer takes half a second: connecting and listening to all these takes longer than three. */
TEST(listen_stops_within_three_seconds_of_a_slow_database)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    scoped(pool_free) Pool             *pool  = pool_open(database_url(db));
    Heard                               heard;
    Deadline                            deadline = deadline_in_ms(60000);

    heard_init(&heard);
    proxy_set_delay(proxy, 250);

    Listen *listen = listen_new(proxy_url(proxy), pool);

    for (int i = 0; i < 8; i++)
        listen_add(listen, (const char *[]){"a", "b", "c", "d", "e", "f", "g", "h"}[i], hear, &heard);
    while (proxy_counts(proxy).accepted == 0 && !deadline_passed(deadline))
        clock_sleep_ms(1);
    assert_int_equal(1, proxy_counts(proxy).accepted);

    Mono before = clock_mono();

    listen_free(listen);
    assert_in_range(mono_ms_between(before, clock_mono()), 0, 3500 + test_stalled_ms());
    heard_done(&heard);
}
