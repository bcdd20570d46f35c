/*
 * crew.c - see crew.h.
 */
#include "bench/crew.h"

#include "base/sync.h"

#define LOOK_MS   2
#define LISTEN_MS 5000
#define STOP_MS   5000

static void *crew_run(void *context)
{
    Crew *crew = context;

    crew->code = worker_run(crew->worker, &crew->error);
    atomic_store(&crew->ended, true);
    return NULL;
}

void crew_start(Crew *crew, Bench *bench, const Place *place, Handler *handler, int threads)
{
    WorkerOptions options = {
        .pool = place->pool, .domain = BENCH_DOMAIN, .name = "bench", .handler = handler, .concurrency = threads};

    *crew        = (Crew){.bench = bench, .worker = worker_new(&options)};
    crew->thread = thread_start("worker", crew_run, crew);
}

ErrorCode crew_listen(Crew *crew, const Place *place, Error *reterr)
{
    Deadline patience = deadline_in_ms(LISTEN_MS);

    crew->listen = listen_new(place->listen_url, place->pool);
    worker_listen(crew->worker, crew->listen);
    while (!listen_is_up(crew->listen) && !deadline_passed(patience)) {
        TRY(bench_continue(crew->bench, reterr));
        clock_sleep_ms(LOOK_MS);
    }
    return OK;
}

void crew_wait(Crew *crew, int64_t count)
{
    WorkerCounts counts = {0};
    int64_t      told   = 0, handled;

    for (;;) {
        worker_counts(crew->worker, &counts);
        handled = counts.completed + counts.lost;
        atomic_fetch_add(&crew->bench->done, handled - told);
        told = handled;
        if (handled >= count || atomic_load(&crew->ended) || atomic_load(&crew->bench->stopping))
            return;
        clock_sleep_ms(LOOK_MS);
    }
}

ErrorCode crew_end(Crew *crew, Error *reterr)
{
    ErrorCode code;

    worker_stop(crew->worker, deadline_in_ms(STOP_MS));
    thread_join(crew->thread);
    if (crew->listen)
        listen_free(crew->listen);
    worker_free(crew->worker);
    code = crew->code;
    if (code == OK)
        return bench_continue(crew->bench, reterr);
    *reterr = crew->error;
    return code;
}
