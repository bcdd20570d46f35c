/*
 * job.c - see job.h.
 */
#include "app/job.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/sync.h"

#define JOB_MS_MAX 10000 /* for one step: jobs work in bites */

typedef struct {
    const Job *job;
    Mono       due;
    bool       failing;
} Turn;

struct Jobs {
    void     *context;
    int       count;
    Turn     *turns; /* the thread's own */
    Mutex     mutex; /* guards stop */
    Cond      wake;
    bool      stop;
    pthread_t thread;
};

static Turn *turn_next(Jobs *jobs)
{
    Turn *next = &jobs->turns[0];

    for (int i = 1; i < jobs->count; i++)
        if (mono_before(jobs->turns[i].due, next->due))
            next = &jobs->turns[i];
    return next;
}

static void turn_run(Jobs *jobs, Turn *turn)
{
    Error     error = {0};
    ErrorCode code;

    log_set_request(turn->job->name);
    code = turn->job->step(jobs->context, deadline_in_ms(JOB_MS_MAX), &error);
    if (code != OK && !turn->failing)
        log_error(LOG_WARN, "job", "a job failed and will be tried again", &error);
    if (code == OK && turn->failing)
        log_write(LOG_INFO, "job", "a job works again");
    turn->failing = code != OK;
    turn->due     = mono_plus_ms(clock_mono(), turn->job->every_ms);
    log_set_request(NULL);
}

/* false: stop. */
static bool wait_until(Jobs *jobs, Mono due)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&jobs->mutex);

    while (!jobs->stop && cond_wait(&jobs->wake, held, (Deadline){due}))
        ;
    return !jobs->stop;
}

static void *jobs_run(void *context)
{
    Jobs *jobs = context;

    for (;;) {
        Turn *turn = turn_next(jobs);

        if (!wait_until(jobs, turn->due))
            return NULL;
        turn_run(jobs, turn);
    }
}

Jobs *jobs_new(const Job *table, int count, void *context)
{
    Jobs *jobs = calloc(1, sizeof *jobs);

    if (!jobs || !(jobs->turns = calloc((size_t)count, sizeof *jobs->turns)))
        abort();
    jobs->context = context;
    jobs->count   = count;
    for (int i = 0; i < count; i++)
        jobs->turns[i] = (Turn){.job = &table[i], .due = mono_plus_ms(clock_mono(), table[i].every_ms)};
    mutex_init(&jobs->mutex);
    cond_init(&jobs->wake);
    jobs->thread = thread_start("monitor", jobs_run, jobs);
    return jobs;
}

void jobs_stop(Jobs *jobs)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&jobs->mutex);

    jobs->stop = true;
    cond_signal(&jobs->wake);
}

void jobs_free(Jobs *jobs)
{
    jobs_stop(jobs);
    thread_join(jobs->thread);
    mutex_done(&jobs->mutex);
    cond_done(&jobs->wake);
    free(jobs->turns);
    free(jobs);
}
