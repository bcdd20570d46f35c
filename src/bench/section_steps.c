/*
 * section_steps.c - processes of three steps: how many a second, started before or one at a time by each client, what a step weighs, claims
 * beside many that wait, and the cost of counting by domain.
 */
#include "bench/bench.h"
#include "bench/load.h"
#include "bench/measure.h"
#include "bench/size.h"
#include "bench/step_body.h"
#include "bench/worker_thread.h"
#include "bus/settle.h"
#include "bus/waker.h"
#include "pg/tx.h"
#include "sql.h"

#define CALL_MS     60000
#define WAIT_MS     30000
#define LATER_MS    (30LL * 24 * 3600 * 1000)
#define CLAIM_SIZE  20
#define LEASE_MS    60000
#define ARENA_BYTES ((size_t)256 << 20)

static ErrorCode processes_start(Bench *bench, BenchDatabase *database, int64_t count, int64_t delay_ms,
                                 int64_t *ret_us, Error *reterr)
{
    int64_t   clients = bench->options.clients;
    ErrorCode code;

    bench_print(bench, "starting processes");
    bench->options.clients = 2; /* threads that send arrays */
    code = load_send(bench, &(Load){.database = database, .domain = STEP_DOMAIN, .count = count, .delay_ms = delay_ms},
                     ret_us, reterr);
    bench->options.clients = clients;
    return code;
}

/* Run as many as were started, with one worker in this process. */
static ErrorCode processes_run(Bench *bench, const BenchDatabase *database, int64_t count, int64_t *ret_us,
                               Error *reterr)
{
    WorkerThread worker_thread;
    StepHandler  handler;
    ErrorCode    code;
    Mono         start;

    bench_print(bench, "running processes");
    step_handler_init(&handler, database->pool, /* waits= */ false, /* clients= */ 0);
    start = clock_mono();
    worker_thread_start_domain(&worker_thread, bench, database, STEP_DOMAIN, &handler.base,
                               (int)bench->options.clients);
    worker_thread_wait(&worker_thread, count);
    *ret_us = mono_us_between(start, clock_mono());
    code    = worker_thread_end(&worker_thread, OK, reterr);
    step_handler_done(&handler);
    return code;
}

/* ---- as many as possible ---- */

ErrorCode section_steps(Bench *bench, int64_t value, Error *reterr)
{
    BenchDatabase *database;
    int64_t        count = bench->options.count, us;
    Size           before, between, after;

    (void)value;
    TRY(bench_database(bench, &database, reterr));
    for (int64_t round = 0; round < bench->options.rounds; round++) {
        TRY(size_measure(bench, database, "pawl", &before, reterr));
        TRY(processes_start(bench, database, count, /* delay_ms= */ 0, &us, reterr));
        report_run(&bench->report, "start", "processes", UNIT_RATE, per_second(count, us));
        TRY(size_measure(bench, database, "pawl", &between, reterr));
        TRY(processes_run(bench, database, count, &us, reterr));
        report_run(&bench->report, "run", "processes", UNIT_RATE, per_second(count, us));
        report_run(&bench->report, "run", "steps", UNIT_RATE, per_second(count * STEPS, us));
        TRY(size_measure(bench, database, "pawl", &after, reterr));
        size_report(bench, "start, each process", &before, &between, count);
        size_report(bench, "run, each step", &between, &after, count * STEPS);
    }
    return OK;
}

/* ---- each client starts one, waits for its end, and starts the next ---- */

typedef struct {
    Sender      *sender;
    Waker       *waker;
    StepHandler *handler;
    Mutex        mutex; /* guards the histogram */
    Histogram    took;
} Loop;

static ErrorCode client_run(Bench *bench, void *context, int thread, int64_t count, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Loop                     *loop  = context;

    for (int64_t i = 0; i < count; i++) {
        SendItem item  = load_item(arena_print(arena, "{\"client\": %d}", thread));
        Mono     start = clock_mono();

        item.domain = STEP_DOMAIN;
        TRY(bench_continue(bench, reterr));
        TRY(sender_send(loop->sender, deadline_in_ms(CALL_MS), &item, reterr));
        waker_notify_sent(loop->waker, &item);
        if (!step_handler_wait(loop->handler, thread, deadline_in_ms(WAIT_MS)))
            return fail(reterr, ERR_INTERNAL, "process %s has not ended within %d ms", item.id, WAIT_MS);
        mutex_lock(&loop->mutex);
        histogram_add(&loop->took, mono_us_between(start, clock_mono()));
        mutex_unlock(&loop->mutex);
        arena_reset(arena);
    }
    return OK;
}

static ErrorCode loop_run(Bench *bench, const BenchDatabase *database, Loop *loop, Error *reterr)
{
    int clients = (int)bench->options.clients;
    int threads = clients > WORKER_CONCURRENCY_DEFAULT ? clients : WORKER_CONCURRENCY_DEFAULT; /* as in a pod */
    WorkerThread worker_thread;
    ErrorCode    code;
    int64_t      us = 0;

    worker_thread_start_domain(&worker_thread, bench, database, STEP_DOMAIN, &loop->handler->base, threads);
    code = worker_thread_listen(&worker_thread, database, reterr);
    bench_print(bench, "starting processes one by one");
    if (code == OK)
        code = threads_run(bench, client_run, loop, bench->options.count, &us, reterr);
    code = worker_thread_end(&worker_thread, code, reterr);
    if (code == OK)
        report_run(&bench->report, "closed", "processes, from start to end", UNIT_RATE,
                   per_second(bench->options.count, us));
    return code;
}

ErrorCode section_closed(Bench *bench, int64_t value, Error *reterr)
{
    BenchDatabase *database;

    (void)value;
    TRY(bench_database(bench, &database, reterr));
    for (int64_t round = 0; round < bench->options.rounds; round++) {
        scoped(sender_free) Sender *sender = sender_new(database->pool);
        scoped(waker_free) Waker   *waker  = waker_new(database->pool);
        StepHandler                 handler;
        Loop                        loop = {.sender = sender, .waker = waker, .handler = &handler};
        ErrorCode                   code;

        step_handler_init(&handler, database->pool, /* waits= */ false, (int)bench->options.clients);
        mutex_init(&loop.mutex);
        code = loop_run(bench, database, &loop, reterr);
        report_run(&bench->report, "closed", "from start to end, p50", UNIT_MS, histogram_ms(&loop.took, 50));
        report_run(&bench->report, "closed", "from start to end, p99", UNIT_MS, histogram_ms(&loop.took, 99));
        mutex_done(&loop.mutex);
        step_handler_done(&handler);
        TRY(code);
    }
    return OK;
}

/* ---- claims beside many processes that wait or sleep ---- */

/* Claim what was started and end it; *ret_rate: processes a second, claims alone. */
static ErrorCode waiting_measure(Bench *bench, int which, int64_t value, double *ret_rate, Error *reterr)
{
    scoped(arena_free) Arena     *arena    = arena_new(ARENA_BYTES);
    BenchDatabase                *database = &bench->databases[which];
    scoped(claimer_free) Claimer *claimer  = claimer_new(database->pool, STEP_DOMAIN, /* types= */ NULL, "bench");
    int64_t                       claimed = 0, us = 0, started_us;

    (void)value;
    TRY(processes_start(bench, database, bench->options.count, /* delay_ms= */ 0, &started_us, reterr));
    bench_print(bench, "claiming");
    while (claimed < bench->options.count) {
        Mono            start = clock_mono();
        ClaimedCommand *list;
        int             count;
        SettleItem     *items, *refs[CLAIM_SIZE];

        TRY(bench_continue(bench, reterr));
        TRY(claimer_claim(claimer, deadline_in_ms(CALL_MS), arena,
                          &(ClaimTerms){.limit = CLAIM_SIZE, .lease_ms = LEASE_MS}, &list, &count, reterr));
        us += mono_us_between(start, clock_mono());
        items = arena_array(arena, SettleItem, CLAIM_SIZE);
        for (int i = 0; i < count; i++) {
            items[i] = (SettleItem){.id = list[i].id, .token = list[i].token, .outcome = OUTCOME_COMPLETE};
            refs[i]  = &items[i];
        }
        if (count > 0)
            TRY(settle_many(database->pool, deadline_in_ms(CALL_MS), arena, refs, count, reterr));
        claimed += count;
        atomic_fetch_add(&bench->done, count);
        arena_reset(arena);
    }
    *ret_rate = per_second(claimed, us);
    return OK;
}

ErrorCode section_waiting(Bench *bench, int64_t value, Error *reterr)
{
    Alternation alternation = {
        "waiting", {"claim, none waiting", "claim, many waiting"},
         waiting_measure, value
    };
    BenchDatabase *databases[2];
    TxOptions      options = {.name     = "bench waits",
                              .deadline = deadline_in_ms(INT64_C(10) * CALL_MS),
                              .arena    = bench->arena};
    int64_t        us, waiting;

    for (int i = 0; i < 2; i++)
        TRY(bench_database(bench, &databases[i], reterr));
    TRY(processes_start(bench, databases[1], value, LATER_MS, &us, reterr));
    bench_print(bench, "half of them wait for a response, the others sleep");
    TRY(db_call(databases[1]->pool, &options, sql_bench_waits, DB_NONE, &db_i64_shape, &waiting, reterr));
    bench_print(bench, "vacuum and checkpoint");
    for (int i = 0; i < 2; i++)
        TRY(database_settle(databases[i], reterr));
    return alternate_run(bench, &alternation, reterr);
}
