/*
 * bus_bench.c - how fast commands go in and out, and how soon.
 *
 *     bus_bench flood [COUNT [BATCH]]        send COUNT in batches from two threads, then one worker completes them all
 *     bus_bench single [COUNT]               one at a time from each of 64 callers, through a combiner
 *     bus_bench paced [RATE [SECONDS]]       RATE sends per second, a multiple of 100; from send to start of the handler
 *
 * The database is PAWL_TEST_URL; it is migrated first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sync.h"
#include "bus/handler.h"
#include "bus/send.h"
#include "bus/waker.h"
#include "sql.h"

#define DOMAIN  "bench"
#define DELAYS  1000000
#define THREADS 2
#define TICKS   100 /* a second */

static double rate(int64_t count, Mono start)
{
    return (double)count * 1e6 / (double)mono_us_between(start, clock_mono());
}

static SendItem item_of(const char *payload)
{
    return (SendItem){
        .domain = DOMAIN, .type = "noop", .payload = payload, .priority = SEND_DEFAULT, .max_attempts = SEND_DEFAULT};
}

/* ---- a worker beside us ---- */

typedef struct {
    Worker   *worker;
    pthread_t thread;
    ErrorCode code;
    Error     error;
} Running;

static void *running_body(void *context)
{
    Running *running = context;

    running->code = worker_run(running->worker, &running->error);
    return NULL;
}

static void running_start(Running *running, Pool *pool, Handler *handler)
{
    WorkerOptions options = {.pool = pool, .domain = DOMAIN, .name = "bench", .handler = handler};

    *running        = (Running){.worker = worker_new(&options)};
    running->thread = thread_start("worker", running_body, running);
}

/* Until it has completed this many. */
static ErrorCode running_wait(Running *running, int64_t count, Error *reterr)
{
    WorkerCounts counts = {0};

    while (counts.completed + counts.lost < count && running->code == OK) {
        clock_sleep_ms(5);
        worker_counts(running->worker, &counts);
    }
    worker_stop(running->worker, deadline_in_ms(5000));
    thread_join(running->thread);
    if (counts.lost)
        printf("lost:           %8" PRId64 "\n", counts.lost);
    *reterr = running->error;
    return running->code;
}

/* ---- flood ---- */

typedef struct {
    Pool     *pool;
    int       count, batch;
    ErrorCode code;
    Error     error;
} Share;

static ErrorCode batch_send(Pool *pool, Arena *arena, int count, Error *reterr)
{
    SendItem  *items = arena_array(arena, SendItem, count);
    SendItem **list  = arena_array(arena, SendItem *, count);

    for (int i = 0; i < count; i++) {
        items[i] = item_of("{\"to\": \"somebody\", \"amount\": 100}");
        list[i]  = &items[i];
    }
    return send_many(pool, deadline_in_ms(30000), arena, list, count, reterr);
}

static void *share_send(void *context)
{
    Share                    *share = context;
    scoped(arena_free) Arena *arena = arena_new((size_t)256 << 20);

    for (int sent = 0; sent < share->count && share->code == OK; sent += share->batch) {
        share->code = batch_send(share->pool, arena, share->batch, &share->error);
        arena_reset(arena);
    }
    return NULL;
}

static ErrorCode flood_send(Pool *pool, int count, int batch, Error *reterr)
{
    Share     shares[THREADS];
    pthread_t threads[THREADS];
    ErrorCode code = OK;

    for (int i = 0; i < THREADS; i++) {
        shares[i]  = (Share){.pool = pool, .count = count / THREADS, .batch = batch};
        threads[i] = thread_start("sender", share_send, &shares[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        thread_join(threads[i]);
        if (shares[i].code != OK) {
            code    = shares[i].code;
            *reterr = shares[i].error;
        }
    }
    return code;
}

static ErrorCode flood(Pool *pool, int count, int batch, Error *reterr)
{
    Running running;
    Mono    start = clock_mono();

    count -= count % (batch * THREADS);
    TRY(flood_send(pool, count, batch, reterr));
    printf("send:           %8.0f/s\n", rate(count, start));
    fflush(stdout);
    start = clock_mono();
    running_start(&running, pool, &handler_noop);
    TRY(running_wait(&running, count, reterr));
    printf("claim, settle:  %8.0f/s\n", rate(count, start));
    worker_free(running.worker);
    return OK;
}

/* ---- single ---- */

#define CALLERS 64

typedef struct {
    Sender   *sender;
    int       count;
    ErrorCode code;
    Error     error;
} Caller;

static void *caller_send(void *context)
{
    Caller *caller = context;

    for (int i = 0; i < caller->count && caller->code == OK; i++) {
        SendItem item = item_of("{\"to\": \"somebody\"}");

        caller->code = sender_send(caller->sender, deadline_in_ms(30000), &item, &caller->error);
    }
    return NULL;
}

static ErrorCode single(Pool *pool, int count, Error *reterr)
{
    scoped(sender_free) Sender *sender = sender_new(pool);
    Caller                      callers[CALLERS];
    pthread_t                   threads[CALLERS];
    ErrorCode                   code  = OK;
    Mono                        start = clock_mono();

    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (Caller){.sender = sender, .count = count / CALLERS};
        threads[i] = thread_start("caller", caller_send, &callers[i]);
    }
    for (int i = 0; i < CALLERS; i++) {
        thread_join(threads[i]);
        if (callers[i].code != OK) {
            code    = callers[i].code;
            *reterr = callers[i].error;
        }
    }
    printf("single sends:   %8.0f/s\n", rate(count, start));
    return code;
}

/* ---- paced ---- */

typedef struct {
    Handler     base;
    _Atomic int count;
    int64_t     us[DELAYS];
} Clockwork;

static void clockwork_run(Handler *base, Task *task, SettleItem *ret_settle)
{
    Clockwork *clockwork = (Clockwork *)base;
    Mono       sent      = {strtoll(task->command->payload, NULL, 10)};
    int        number    = atomic_fetch_add(&clockwork->count, 1);

    clockwork->us[number % DELAYS] = mono_us_between(sent, clock_mono());
    ret_settle->outcome            = OUTCOME_COMPLETE;
}

static int us_order(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

static void delays_print(const char *name, int64_t *us, int count)
{
    qsort(us, (size_t)count, sizeof *us, us_order);
    printf("%-15s p50 %.1f ms  p99 %.1f ms  max %.1f ms  (%d)\n", name, (double)us[count / 2] / 1000,
           (double)us[count * 99LL / 100] / 1000, (double)us[count - 1] / 1000, count);
    fflush(stdout);
}

/* A hundred times a second, as many as the rate asks for; each knows when it was sent. */
static ErrorCode tick_send(Pool *pool, Arena *arena, int count, Error *reterr)
{
    SendItem  *items   = arena_array(arena, SendItem, count);
    SendItem **list    = arena_array(arena, SendItem *, count);
    char      *payload = arena_print(arena, "%" PRId64, clock_mono().ns);

    for (int i = 0; i < count; i++) {
        items[i] = item_of(payload);
        list[i]  = &items[i];
    }
    return send_many(pool, deadline_in_ms(30000), arena, list, count, reterr);
}

static ErrorCode paced_send(Pool *pool, Waker *waker, int per_tick, int seconds, Clockwork *clockwork, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Mono                      start = clock_mono();
    int                       shown = 0;

    for (int tick = 1; tick <= TICKS * seconds; tick++) {
        clock_sleep_until((Deadline){{start.ns + tick * (NS_PER_S / TICKS)}});
        arena_reset(arena);
        TRY(tick_send(pool, arena, per_tick, reterr));
        waker_poke(waker, DOMAIN);
        if (tick % (TICKS * 10) == 0) { /* every ten seconds: does it get slower? */
            int count = atomic_load(&clockwork->count);

            printf("%4" PRId64 " s, %6d open  ", mono_ms_between(start, clock_mono()) / 1000, tick * per_tick - count);
            delays_print("", clockwork->us + shown, count - shown);
            shown = count;
        }
    }
    return OK;
}

static ErrorCode paced(Pool *pool, const char *url, int per_second, int seconds, Error *reterr)
{
    scoped(waker_free) Waker *waker     = waker_new(pool);
    Listen                   *listen    = listen_new(url, pool);
    Clockwork                *clockwork = calloc(1, sizeof *clockwork);
    Running                   running;
    ErrorCode                 code;

    if (!clockwork || per_second % TICKS || per_second * seconds > DELAYS)
        return fail(reterr, ERR_USAGE, "the rate must be a multiple of %d, and there may be %d commands", TICKS,
                    DELAYS);
    clockwork->base.run = clockwork_run;
    running_start(&running, pool, &clockwork->base);
    worker_listen(running.worker, listen);
    clock_sleep_ms(1000);
    code = paced_send(pool, waker, per_second / TICKS, seconds, clockwork, reterr);
    if (code == OK)
        code = running_wait(&running, per_second * seconds, reterr);
    if (code == OK)
        delays_print("send to start:", clockwork->us, per_second * seconds);
    listen_free(listen);
    worker_free(running.worker);
    free(clockwork);
    return code;
}

static int number(int argc, char **argv, int at, int otherwise)
{
    return argc > at ? (int)strtol(argv[at], NULL, 10) : otherwise;
}

static ErrorCode bench_run(Pool *pool, const char *url, int argc, char **argv, Error *reterr)
{
    int applied;

    TRY(migrate_run(pool, &schema_embedded, deadline_in_ms(60000), &applied, reterr));
    if (argc > 1 && strcmp(argv[1], "paced") == 0)
        return paced(pool, url, number(argc, argv, 2, 100), number(argc, argv, 3, 20), reterr);
    if (argc > 1 && strcmp(argv[1], "single") == 0)
        return single(pool, number(argc, argv, 2, 64000), reterr);
    return flood(pool, number(argc, argv, 2, 200000), number(argc, argv, 3, 1000), reterr);
}

int main(int argc, char **argv)
{
    const char             *url   = getenv("PAWL_TEST_URL");
    scoped(pool_free) Pool *pool  = NULL;
    Error                   error = {0};
    ErrorCode               code;

    if (!url) {
        fprintf(stderr,
                "usage: PAWL_TEST_URL=URL bus_bench flood [COUNT [BATCH]] | single [COUNT] | paced [RATE [SECONDS]]\n");
        return 2;
    }
    code = pool_new(&(PoolOptions){.conninfo = url}, &pool, &error);
    if (code == OK)
        code = bench_run(pool, url, argc, argv, &error);
    if (code != OK)
        fprintf(stderr, "bus_bench: %s\n", error.text);
    return code == OK ? 0 : 1;
}
