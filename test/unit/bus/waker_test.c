/*
 * waker_test.c - members of this process are called directly, and notifications wait for no flush.
 */
#include "bus/waker.h"

#include <stdatomic.h>

#include "bus/handler.h"
#include "bus/worker_internal.h"
#include "pg/tx.h"
#include "sql.h"
#include "test/unit/bus/fixture.h"
#include "test/unit/pg/await.h"

/* No server listens there: whatever is called was not called by a notification. */
#define NO_SERVER "postgresql://pawl@127.0.0.1:1/none"

static void count(void *context, const char *domain)
{
    if (strcmp(domain, "mail") == 0)
        atomic_fetch_add((atomic_int *)context, 1);
}

static Pool *pool_of(const char *conninfo)
{
    Pool *pool  = NULL;
    Error error = {0};

    assert_ok(pool_new(&(PoolOptions){.conninfo = conninfo, .size_max = 1}, &pool, &error));
    return pool;
}

TEST(waker_calls_members_of_its_process_without_the_server)
{
    scoped(pool_free) Pool *pool = pool_of(NO_SERVER), *same = pool_of(NO_SERVER),
                           *other = pool_of(NO_SERVER "?application_name=other");
    Waker     *waker              = waker_new(pool);
    atomic_int called = 0, alike = 0, elsewhere = 0;
    WakeMember member   = {.pool = pool, .call = count, .context = &called},
               second   = {.pool = same, .call = count, .context = &alike},
               stranger = {.pool = other, .call = count, .context = &elsewhere};

    wake_join(&member);
    wake_join(&second);
    wake_join(&stranger);
    waker_notify(waker, "mail");
    assert_int_equal(called, 1);
    assert_int_equal(alike, 1);
    /* The statement is under way, or has failed and the waker waits before the next: members are called with the next one. */
    waker_notify(waker, "mail");
    await(called >= 2);
    wake_leave(&second);
    wake_leave(&member);
    int last = called;
    waker_notify(waker, "mail");
    waker_free(waker); /* sends what is marked */
    assert_int_equal(called, last);
    assert_int_equal(elsewhere, 0);
    wake_leave(&stranger);
}

TEST(worker_is_woken_by_senders_of_its_process)
{
    scoped(pool_free) Pool *pool  = pool_of(NO_SERVER);
    Waker                  *waker = waker_new(pool);
    Handler                 none  = {0};
    Worker *worker = worker_new(&(WorkerOptions){.pool = pool, .domain = "mail", .name = "worker", .handler = &none});

    waker_notify(waker, "other");
    assert_false(worker->woken);
    waker_notify(waker, "mail");
    mutex_lock(&worker->mutex); /* unless the first one was just sent */
    while (!worker->woken)
        cond_wait(&worker->changed, &worker->mutex, deadline_never());
    mutex_unlock(&worker->mutex);
    waker_free(waker);
    worker_free(worker);
}

static ErrorCode wake_body(Tx *tx, void *context, Error *reterr)
{
    const char *names[] = {"mail", "other"};
    void       *rows;
    int         rows_count;

    TRY(db_run(tx, "set local synchronous_commit = on", DB_NONE, NULL, reterr));
    TRY(db_many(tx, sql_bus_wake, DB_ARGS(db_texts(tx->arena, names, 2)), &db_text_shape, &rows, &rows_count, reterr));
    assert_int_equal(rows_count, 2);
    return db_get_text(tx, "select current_setting('synchronous_commit')", DB_NONE, context, reterr);
}

TEST(notifications_wait_for_no_flush)
{
    scoped(bus_free) Bus *bus     = bus_new(1);
    const char           *commits = NULL;
    TxOptions             options = {.name = "wake", .deadline = soon(), .arena = bus->arena};
    Error                 error   = {0};

    assert_ok(tx_run(bus->pool, &options, wake_body, &commits, &error));
    assert_string_equal(commits, "off");
}
