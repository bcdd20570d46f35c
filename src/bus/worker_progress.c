/*
 * worker_progress.c - the newest reports of a worker's handlers, and the one statement that writes them.
 *
 * A report waits for REPORT_MS, so that all that come within that time share a statement, and a handler that reports all the time is written once in
 * that time. The heartbeat writes them. What is reported under a lease that was lost is dropped: the heartbeat finds out by itself.
 */
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "bus/worker_internal.h"

#define REPORT_MS       1000
#define FLUSH_MS        1000 /* how long a handler that fails waits for its last report to be written */
#define REPORTS_MAX     (2 * WORKER_CONCURRENCY_MAX)
#define REPORTS_BYTES   ((size_t)16 << 20)
#define EXECUTION_OF(j) ((Execution *)((char *)(j)-offsetof(Execution, job)))

ErrorCode job_progress(Job *job, const JobProgress *progress, Error *reterr)
{
    TRY(progress_check(progress, reterr));
    if (job->report)
        job->report(job, progress);
    return OK;
}

void job_progress_flush(Job *job)
{
    if (job->flush)
        job->flush(job);
}

/* ---- by handlers ---- */

/* Under the mutex. */
static void report_expect(Worker *worker)
{
    worker->report_at = deadline_sooner(worker->report_at, deadline_in_ms(REPORT_MS));
    cond_signal(&worker->ticked);
}

static void text_keep(char *kept, size_t space, const char *text)
{
    size_t size = text ? text_cut(text, strlen(text), space - 1) : 0;

    memcpy(kept, text ? text : "", size);
    kept[size] = '\0';
}

void execution_report(Job *job, const JobProgress *progress)
{
    Execution                  *execution = EXECUTION_OF(job);
    Worker                     *worker    = execution->worker;
    scoped(mutex_unlock) Mutex *held      = mutex_hold(&worker->mutex);

    if (!execution->progress)
        execution->progress = memory_new(1, sizeof *execution->progress);
    execution->progress->percent = progress->percent;
    text_keep(execution->progress->text, sizeof execution->progress->text, progress->text);
    text_keep(execution->progress->step, sizeof execution->progress->step, progress->step);
    if (!execution->progress->is_unwritten)
        report_expect(worker);
    execution->progress->is_unwritten = true;
}

void execution_flush(Job *job)
{
    Execution                  *execution = EXECUTION_OF(job);
    Worker                     *worker    = execution->worker;
    Deadline                    until     = deadline_in_ms(FLUSH_MS);
    scoped(mutex_unlock) Mutex *held      = mutex_hold(&worker->mutex);
    ReportedProgress           *progress  = execution->progress;

    if (!progress || (!progress->is_unwritten && !progress->number))
        return;
    progress->is_urgent = true;
    worker->flush_at    = deadline_in_ms(0);
    cond_signal(&worker->ticked);
    while ((progress->is_unwritten || progress->number) && !deadline_passed(until))
        cond_wait(&worker->reported, &worker->mutex, until);
    progress->is_urgent = false;
}

/* ---- by the heartbeat ---- */

/* Copies what is due: until report_at has come, only what is urgent. */
static int reports_collect(Worker *worker, Arena *arena, ProgressItem *items)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&worker->mutex);
    bool                        all   = deadline_passed(worker->report_at);
    int                         count = 0;

    worker->flush_at = deadline_never();
    if (all)
        worker->report_at = deadline_never();
    for (Execution *execution = execution_first(worker); execution && count < REPORTS_MAX;
         execution            = execution_after(worker, execution)) {
        ReportedProgress *progress = execution->progress;

        if (!progress || !progress->is_unwritten || (!all && !progress->is_urgent))
            continue;
        progress->is_unwritten = false;
        items[count]           = (ProgressItem){
                      .id       = execution->command->id,
                      .token    = execution->command->token,
                      .progress = {.percent = progress->percent,
                                   .text    = progress->text[0] ? arena_text(arena, progress->text) : NULL,
                                   .step    = progress->step[0] ? arena_text(arena, progress->step) : NULL}
        };
        progress->number = ++count;
    }
    return count;
}

/* Under the mutex: what was not written is tried again, unless its handler has reported since. items NULL: none was. */
static void reports_end(Worker *worker, const ProgressItem *items)
{
    for (Execution *execution = execution_first(worker); execution; execution = execution_after(worker, execution)) {
        ReportedProgress *progress = execution->progress;

        if (!progress || !progress->number)
            continue;
        if (!items || items[progress->number - 1].verdict == PROGRESS_BUSY) {
            progress->is_unwritten = true;
            report_expect(worker);
        }
        progress->number = 0;
    }
    cond_broadcast(&worker->reported);
}

void progress_write(Worker *worker, int most_ms)
{
    scoped(arena_free) Arena *arena = arena_new(REPORTS_BYTES);
    ProgressItem             *items = arena_array(arena, ProgressItem, REPORTS_MAX);
    Error                     error = {0};
    int                       count = reports_collect(worker, arena, items);
    ErrorCode                 code;

    if (count == 0)
        return;
    code = progress_report(worker->options.pool, deadline_in_ms(most_ms < REPORT_MS ? most_ms : REPORT_MS), arena,
                           items, count, &error);
    if (code != OK && !worker->report_failed)
        log_error(LOG_WARN, "worker", "cannot write progress, will retry", &error);
    worker->report_failed            = code != OK;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);
    reports_end(worker, code == OK ? items : NULL);
}
