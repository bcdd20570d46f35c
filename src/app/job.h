/*
 * job.h - what the monitor role does on a clock: a table of jobs, one thread, one step at a time.
 *
 * Any number of pods may run the same job at once: each step claims its rows, so none is special.
 * A job that fails says so once, and once more when it works again.
 * Threads: jobs_new() starts one. Ownership: jobs_free() waits for the step under way and joins.
 */
#ifndef APP_JOB_H
#define APP_JOB_H

#include "base/attr.h"
#include "base/clock.h"
#include "base/error.h"

typedef ErrorCode JobStep(void *context, Deadline deadline, Error *reterr);
typedef struct {
    const char *name;
    int         every_ms;
    JobStep    *step;
} Job;

typedef struct Jobs Jobs;

/* The table is borrowed for as long as the jobs run. */
Jobs *jobs_new(const Job *table, int count, void *context);
/* No further step begins; does not wait for the one under way. */
void jobs_stop(Jobs *jobs);
void jobs_free(Jobs *jobs);
SCOPED(Jobs, jobs_free)

#endif
