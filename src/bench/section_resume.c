/*
 * section_resume.c - from a response until its process runs, at an offered rate.
 *
 * All processes are started and suspended first. Then responses are sent at the rate, by as many threads as keep it.
 */
#include <inttypes.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/load.h"
#include "bench/measure.h"
#include "bench/step_body.h"
#include "bench/worker_thread.h"
#include "bus/waker.h"
#include "process/process.h"

#define CALL_MS    30000
#define THREADS    8 /* of handlers: the default of a pod */
#define TICK_MS    1
#define SUSPEND_MS 60000
#define BATCH      500

typedef struct {
    Bench         *bench;
    BenchDatabase *database;
    StepHandler    handler;
    WorkerThread   worker_thread;
    Waker         *waker;
    char (*ids)[UUID_TEXT_SIZE];
    int64_t count;
} Resume;

static ErrorCode waiting_start(Resume *resume, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new((size_t)64 << 20);
    SendItem                  model = load_item(STEP_STATE);

    model.domain = STEP_DOMAIN;
    for (int64_t at = 0; at < resume->count; at += BATCH) {
        int       size = (int)(resume->count - at < BATCH ? resume->count - at : BATCH);
        SendItem *items;

        TRY(load_items_send(resume->database, arena, &model, size, &items, reterr));
        for (int i = 0; i < size; i++)
            memcpy(resume->ids[at + i], items[i].id, UUID_TEXT_SIZE);
        arena_reset(arena);
    }
    waker_notify(resume->waker, STEP_DOMAIN);
    return OK;
}

static ErrorCode suspended_await(Resume *resume, Error *reterr)
{
    Deadline deadline  = deadline_in_ms(SUSPEND_MS);
    int64_t  suspended = 0;

    while (suspended < resume->count) {
        TRY(bench_continue(resume->bench, reterr));
        if (deadline_passed(deadline))
            return fail(reterr, ERR_INTERNAL, "%" PRId64 " of %" PRId64 " processes wait after %d ms", suspended,
                        resume->count, SUSPEND_MS);
        clock_sleep_ms(TICK_MS);
        mutex_lock(&resume->handler.mutex);
        suspended = resume->handler.ended; /* activations */
        mutex_unlock(&resume->handler.mutex);
    }
    return OK;
}

static ErrorCode response_send(Resume *resume, int64_t at, Arena *arena, Error *reterr)
{
    ProcessName     name   = {resume->ids[at], NULL};
    ProcessSignal   signal = {.name    = RESUME_RESPONSE,
                              .payload = arena_print(arena, "%" PRId64, clock_mono().ns),
                              .key     = "1",
                              .actor   = "bench"};
    ProcessSignaled signaled;

    TRY(process_signal(resume->database->pool, deadline_in_ms(CALL_MS), /* lock_ms= */ 0, arena, name, &signal,
                       &signaled, reterr));
    waker_notify_names(resume->waker, signaled.wake);
    return OK;
}

static ErrorCode responses_send(Resume *resume, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Mono                      start = clock_mono();

    for (int64_t sent = 0; sent < resume->count;) {
        TRY(bench_continue(resume->bench, reterr));
        if (mono_us_between(start, clock_mono()) * resume->bench->options.rate / 1000000 < sent) {
            clock_sleep_ms(TICK_MS);
            continue;
        }
        TRY(response_send(resume, sent++, arena, reterr));
        arena_reset(arena);
        atomic_fetch_add(&resume->bench->done, 1);
    }
    return OK;
}

static ErrorCode resume_measure(Resume *resume, Error *reterr)
{
    TRY(worker_thread_listen(&resume->worker_thread, resume->database, reterr));
    bench_print(resume->bench, "starting processes that wait");
    TRY(waiting_start(resume, reterr));
    TRY(suspended_await(resume, reterr));
    bench_print(resume->bench, "sending responses");
    TRY(responses_send(resume, reterr));
    worker_thread_wait(&resume->worker_thread, 2 * resume->count); /* activations */
    return OK;
}

ErrorCode section_resume(Bench *bench, int64_t value, Error *reterr)
{
    Resume    resume = {.bench = bench, .count = bench->options.rate * bench->options.seconds};
    ErrorCode code;

    (void)value;
    TRY(bench_database(bench, &resume.database, reterr));
    scoped(waker_free) Waker *waker = waker_new(resume.database->pool);
    resume.waker                    = waker;
    resume.ids                      = arena_alloc(bench->arena, (size_t)resume.count * sizeof *resume.ids);
    step_handler_init(&resume.handler, resume.database->pool, /* waits= */ true, /* clients= */ 0);
    worker_thread_start_domain(&resume.worker_thread, bench, resume.database, STEP_DOMAIN, &resume.handler.base,
                               THREADS);
    code = resume_measure(&resume, reterr);
    code = worker_thread_end(&resume.worker_thread, code, reterr);
    if (code == OK)
        report_times(&bench->report, "resume", "response to running process", &resume.handler.resumed);
    step_handler_done(&resume.handler);
    return code;
}
