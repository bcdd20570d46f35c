/*
 * worker_inner.h - what the files of the worker share: worker.c claims and dispatches, worker_job.c runs, settles and keeps
 * leases, worker_release.c gives back what was not begun, worker_batch.c runs and settles for handlers that take whole batches.
 */
#ifndef BUS_WORKER_INNER_H
#define BUS_WORKER_INNER_H

#include "base/sync.h"
#include "bus/worker.h"
#include "bus/worker_metric.h"

/* The commands of one claim and their memory, freed with the last one. */
typedef struct {
    Arena   *arena;
    Claimed *list;
    int      count;
    int      left; /* not dropped yet; guarded by the worker's mutex */
    Mono     claimed_at;
} Crate;

typedef enum { JOB_WAITING, JOB_RUNNING, JOB_SETTLING } JobState;
typedef enum { STOP_NONE, STOP_LOST, STOP_CANCELED, STOP_TIMEOUT, STOP_SHUTDOWN } StopReason;

/* One command that we hold. Guarded by the mutex, but for the task, which is the handler's. */
typedef struct Job Job;
struct Job {
    const Claimed *command;
    Crate         *crate;
    Task           task;
    JobState       state;
    StopReason     why;
    Mono           kept_at; /* when its lease was extended last */
    Job           *next, *previous;
};

struct Worker {
    WorkerOptions options;
    MetricSeries *metrics;
    Lane         *lane;
    Settler      *settler;
    pthread_t    *threads;
    int           thread_count;
    pthread_t     keeper;
    Arena        *arena; /* for the dispatcher's questions, emptied each turn */

    Mutex        mutex;   /* guards the rest */
    Cond         arrived; /* for handler threads: a job waits, or closing */
    Cond         changed; /* for the dispatcher: room, a note, or stopping */
    Cond         ticked;  /* for the keeper: stopping or closing */
    Job         *first, *last;
    int          held, waiting, running;
    Crate       *crate; /* at_once: the batch to be settled next */
    bool         poked, stopping, closing;
    Mono         paused_until; /* nothing is claimed before */
    int          pause_ms;     /* the last pause; 0: the last handler began its command */
    Deadline     stop_deadline;
    WorkerCounts counts;
};

/* Counting an outcome; under the mutex. */
void worker_count(Worker *worker, const SettleItem *item);
void crate_free(Crate *crate);
SCOPED(Crate, crate_free)

/* worker_job.c */
/* ERR_INTERNAL: a thread cannot be started, and none runs. */
must_check ErrorCode jobs_start(Worker *worker, Error *reterr);
/* No more will come: wait for what is held, then for the threads. */
void jobs_end(Worker *worker);
/* Takes the crate over. */
void jobs_add(Worker *worker, Crate *crate);

/* Under the mutex: it is not held any more. */
void job_drop(Worker *worker, Job *job);
/* Is a settle that failed tried again? A worker that ends does not wait for the end of an outage, nor for a schema to be mended. */
bool settle_goes_on(Worker *worker, ErrorCode code);

/* worker_release.c */
/* A handler could not begin its command, for a reason that is not the command's: claim nothing for 1 s, doubling up to 30 s. */
void pause_begin(Worker *worker, const char *why);
void pause_end(Worker *worker);
/* Release all jobs that wait, and the one given (NULL: none), without using up their attempts; they are dropped. */
void jobs_release(Worker *worker, Arena *arena, Job *job);

/* worker_batch.c: the same three */
must_check ErrorCode batches_start(Worker *worker, Error *reterr);
void                 batches_end(Worker *worker);
void                 batches_add(Worker *worker, Crate *crate);

#endif
