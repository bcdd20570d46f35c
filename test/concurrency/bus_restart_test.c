/*
 * bus_restart_test.c - PostgreSQL is stopped without a word and started again while commands are sent and handled.
 *
 *   every id that was sent is one command      every command is COMPLETED once      attempts add up in the audit
 */
#include <libpq-fe.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/sync.h"
#include "bus/handler.h"
#include "bus/send.h"
#include "pg/migrate.h"
#include "sql.h"
#include "test/harness/server.h"
#include "test/harness/test.h"
#include "test/unit/pg/await.h"

#define SENDERS  4
#define WORKERS  2
#define COMMANDS 400 /* of each sender */
#define RESTARTS 2

typedef struct {
    Pool      *pool;
    Sender    *sender;
    atomic_int sent, handled;
} Load;

static void *sender_body(void *context)
{
    Load *load = context;

    for (int i = 0; i < COMMANDS; i++) {
        SendItem item = {.domain = "mail", .type = "t", .priority = SEND_DEFAULT, .max_attempts = 1000};
        char     id[UUID_TEXT_SIZE];

        uuid_new(id);
        item.command_id = id; /* the same until it is known to be sent */
        while (sender_send(load->sender, deadline_in_ms(3000), &item, NULL) != OK)
            clock_sleep_ms(20);
        atomic_fetch_add(&load->sent, 1);
    }
    return NULL;
}

typedef struct {
    Handler base;
    Load   *load;
} Counting;

static void counting_run(Handler *base, Job *task, SettleItem *ret_settle)
{
    (void)task;
    atomic_fetch_add(&((Counting *)base)->load->handled, 1);
    ret_settle->outcome = OUTCOME_COMPLETE;
}

static void *worker_body(void *context)
{
    Error error = {0};

    return (void *)(intptr_t)worker_run(context, &error);
}

static int64_t count_of(const char *url, const char *sql)
{
    PGconn   *conn   = PQconnectdb(url);
    PGresult *result = PQexec(conn, sql);
    int64_t   count  = PQntuples(result) == 1 ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : -1;

    PQclear(result);
    PQfinish(conn);
    return count;
}

static void restart_under_load(TestServer *server, Load *load)
{
    for (int i = 1; i <= RESTARTS; i++) {
        await(atomic_load(&load->handled) > i * SENDERS * COMMANDS / (RESTARTS + 2));
        test_server_stop(server, "immediate");
        test_server_start(server);
    }
}

TEST(senders_and_workers_carry_on_after_a_restart)
{
    scoped(test_server_free) TestServer *server   = test_server_new((TestServerOptions){0});
    const char                          *url      = test_server_url(server, "postgres");
    Load                                 load     = {0};
    Counting                             counting = {.base = {.run = counting_run}, .load = &load};
    pthread_t                            senders[SENDERS], threads[WORKERS];
    Worker                              *workers[WORKERS];
    Error                                error = {0};
    int                                  applied;

    assert_ok(pool_new(&(PoolOptions){.conninfo = url, .size_max = 16, .breaker_open_ms = 500}, &load.pool, &error));
    assert_ok(migrate_run(load.pool, &schema_embedded, deadline_in_ms(30000), &applied, &error));
    load.sender = sender_new(load.pool);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = worker_new(&(WorkerOptions){
            .pool = load.pool, .domain = "mail", .name = "w", .lease_ms = 2000, .handler = &counting.base});
        threads[i] = thread_start("worker", worker_body, workers[i]);
    }
    for (int i = 0; i < SENDERS; i++)
        senders[i] = thread_start("sender", sender_body, &load);
    restart_under_load(server, &load);
    for (int i = 0; i < SENDERS; i++)
        thread_join(senders[i]);
    /* A position that is allocated again after the crash may be below a watermark: the claim from the first row finds it (bus/claim.h). */
    for (Deadline full = deadline_in_ms(CLAIM_FULL_MS + WORKER_IDLE_MS); !deadline_passed(full);) {
        if (count_of(url, "select count(*) from pawl.outcome") == SENDERS * COMMANDS)
            break;
        clock_sleep_ms(20);
    }
    await(count_of(url, "select count(*) from pawl.outcome") == SENDERS * COMMANDS);
    for (int i = 0; i < WORKERS; i++) {
        worker_stop(workers[i], deadline_in_ms(5000));
        thread_join(threads[i]);
        worker_free(workers[i]);
    }
    sender_free(load.sender);
    pool_free(load.pool);
    assert_int_equal(count_of(url, "select count(*) from pawl.command"), SENDERS * COMMANDS);
    assert_int_equal(count_of(url, "select count(*) from pawl.outcome where status = 'COMPLETED'"), SENDERS * COMMANDS);
    /* A command that was claimed ahead and not begun within a second is released: received, but no attempt. */
    assert_int_equal(
        count_of(url, "select sum(attempts) from pawl.outcome"),
        count_of(url, "select count(*) filter (where event = 'RECEIVED') - count(*) filter (where "
                      "details->>'reason' = 'released by its worker: the attempt does not count') from pawl.audit"));
    assert_int_equal(count_of(url, "select count(*) from pawl.audit where event = 'COMPLETED'"), SENDERS * COMMANDS);
}
