/*
 * worker_thread.c - see worker_thread.h.
 */
#include "bench/worker_thread.h"

#include "base/sync.h"

#define LOOK_MS   2
#define LISTEN_MS 5000
#define STOP_MS   5000

static void *worker_thread_run(void *context)
{
    WorkerThread *worker_thread = context;

    worker_thread->code = worker_run(worker_thread->worker, &worker_thread->error);
    atomic_store(&worker_thread->ended, true);
    return NULL;
}

void worker_thread_start(WorkerThread *worker_thread, Bench *bench, const BenchDatabase *database, Handler *handler,
                         int threads)
{
    worker_thread_start_domain(worker_thread, bench, database, BENCH_DOMAIN, handler, threads);
}

void worker_thread_start_domain(WorkerThread *worker_thread, Bench *bench, const BenchDatabase *database,
                                const char *domain, Handler *handler, int threads)
{
    WorkerOptions options = {
        .pool = database->pool, .domain = domain, .name = "bench", .handler = handler, .concurrency = threads};

    *worker_thread        = (WorkerThread){.bench = bench, .worker = worker_new(&options)};
    worker_thread->thread = thread_start("worker", worker_thread_run, worker_thread);
}

ErrorCode worker_thread_listen(WorkerThread *worker_thread, const BenchDatabase *database, Error *reterr)
{
    Deadline patience = deadline_in_ms(LISTEN_MS);

    worker_thread->listen = listen_new(database->listen_url, database->pool);
    worker_listen(worker_thread->worker, worker_thread->listen);
    while (!listen_is_up(worker_thread->listen) && !deadline_passed(patience)) {
        TRY(bench_continue(worker_thread->bench, reterr));
        clock_sleep_ms(LOOK_MS);
    }
    return OK;
}

void worker_thread_wait(WorkerThread *worker_thread, int64_t count)
{
    WorkerCounts counts  = {0};
    int64_t      counted = 0, handled;

    for (;;) {
        worker_counts(worker_thread->worker, &counts);
        handled = counts.completed + counts.lost;
        atomic_fetch_add(&worker_thread->bench->done, handled - counted);
        counted = handled;
        if (handled >= count || atomic_load(&worker_thread->ended) || atomic_load(&worker_thread->bench->stopping))
            return;
        clock_sleep_ms(LOOK_MS);
    }
}

ErrorCode worker_thread_end(WorkerThread *worker_thread, ErrorCode code, Error *reterr)
{
    worker_stop(worker_thread->worker, deadline_in_ms(STOP_MS));
    thread_join(worker_thread->thread);
    if (worker_thread->listen)
        listen_free(worker_thread->listen);
    worker_free(worker_thread->worker);
    TRY(code);
    TRY(error_pass(worker_thread->code, &worker_thread->error, reterr));
    return bench_continue(worker_thread->bench, reterr);
}
