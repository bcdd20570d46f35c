/*
 * worker.h - claims commands of one domain, runs their handler, settles them, until it is stopped.
 *
 * Threads: the caller's thread claims and dispatches (worker_run); `concurrency` handler threads run handlers and hand their outcomes over; one settler
 * thread, from the first outcome on, settles these together; one heartbeat thread extends the leases of what is held, writes the progress of handlers and
 * stops what runs too long.
 *
 *     claimed -> WAITING -> RUNNING -> SETTLING -> done      WAITING -> SETTLING -> done  [released, or its lease was lost]
 *     RUNNING -> LOCKED  [job->is_locked]                    LOCKED -> WAITING  [the lease can be extended again]
 *     SETTLING -> LOCKED  [it cannot be released]            LOCKED -> done  [it is lost or canceled, or the worker stops]
 *     RUNNING -> WAITING  [it was undone in a transaction that it shared with others: it runs alone]
 *
 * Invariants
 *   1. At most `concurrency` handlers run at the same time. While handlers take less than 100 ms on average the work of some 20 ms, or of two claims if those take longer, is claimed ahead, at
 *      most 1,000 commands; what has not begun after 1 s is released, and its attempt does not count. Handlers begin commands by priority.
 *      What is in its last attempt, or was lost with its worker in the one before, is claimed only for a handler that is free.
 *   2. A command that is claimed is settled, or its lease runs out: nothing is forgotten. On stop, what was not begun is
 *      released immediately, and its attempt does not count. Nor does that of a command which its handler could not begin: the worker
 *      releases all that it has not begun, and pauses.
 *      What is LOCKED holds no handler's place: as many others are claimed.
 *   3. A handler whose lease was lost or canceled is stopped (handler->stop), and its outcome changes nothing.
 *      A handler does not wait for the commit of its outcome. At most 1,000 outcomes and one for each handler, or 16 MiB of them, are not settled; when outcomes cannot be
 *      settled, `concurrency`. A crash repeats these, and those that run.
 *   4. What is claimed and not settled, payloads and what prepare() has read, takes about WORKER_BYTES_MAX in the whole pod: claims get smaller as it
 *      is used up. A worker that holds nothing claims one command all the same.
 *   5. With shares_types, handlers of one type leave some to the other types, and commands of a type whose share is used up are not claimed.
 *   6. Handlers that report no progress cost no statement; the reports of the others are written together, at most once a second.
 *   7. Without work fewer than one query per second: polls slow down to WORKER_IDLE_MS apart. A notification, a due time
 *      or an expiring lease wakes it sooner.
 */
#ifndef BUS_WORKER_H
#define BUS_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "bus/claim.h"
#include "bus/progress.h"
#include "bus/settle.h"
#include "pg/listen.h"
#include "pg/pool.h"

#define WORKER_IDLE_MS             2500
#define WORKER_CONCURRENCY_MAX     1000
#define WORKER_CONCURRENCY_DEFAULT 8
#define WORKER_BYTES_MAX           ((size_t)64 << 20)

/* What a handler is given; borrowed while it runs. */
typedef struct Job Job;
struct Job {
    const ClaimedCommand *command;
    void                 *prepared; /* by prepare() */
    const char           *domain;
    Arena                *arena;    /* for the result and the error */
    void                 *run;      /* the handler's own, for stop(); guard it */
    Deadline              deadline; /* of the handler; never: none */
    const char
        *not_begun; /* set by run() if the command could not be begun, for a reason that is not the command's: why */
    const char *output; /* set by run() of a program that completed: what it printed, if that is not JSON */
    bool
        is_locked; /* set by run(): another transaction has the lease locked, so that it can be neither settled nor released */
    bool        timed_out; /* set by run() if it ended because the deadline was reached, before stop() was called */
    atomic_bool stopped;
    /* For job_progress() and job_progress_flush(); set by the worker or the step that runs the handler. NULL: reports go nowhere. */
    void (*report)(Job *job, const JobProgress *progress);
    void (*flush)(Job *job);
};

/* At any time, from the thread that runs it. */
static inline bool job_is_stopped(Job *job)
{
    return atomic_load(&job->stopped);
}

/* Report progress: from any thread while run() runs, as often as wanted. It is copied, and the newest one is written with those of other
 * handlers, at most once a second. ERR_INVALID names the field; nothing is reported. */
must_check ErrorCode job_progress(Job *job, const JobProgress *progress, Error *reterr);
/* Write now what was reported and is not written yet, and wait for it, at most a second: before an attempt fails, so that the next one finds it. */
void job_progress_flush(Job *job);

/* How to handle one command. run() fills outcome, result, error and delay of *ret_settle; it must poll job_is_stopped()
 * if it can take long. It may settle by itself in a transaction of its own (--sql): then it fills the verdict too, and a
 * status says so. If it could not begin (no memory, no file descriptors) it sets job->not_begun instead, and the
 * command is released. Called from any handler thread. */
typedef struct Handler Handler;
struct Handler {
    void (*run)(Handler *handler, Job *job, SettleItem *ret_settle);
    /* The job's lease is lost or canceled, or time is up: end it. Called once, from another thread while run() runs; must
     * not wait. NULL: run() polls job_is_stopped(). */
    void (*stop)(Handler *handler, Job *job);
    const ClaimSource *source; /* what claims for it; NULL: a claim reads no more than commands */
    /* Called once per claim, before its commands are run, on the thread that claims: read what they need in one round trip. ret_list has a
     * slot for each command, NULL at first; what is put there lives in the arena of the claim. Returns for how many commands something was read.
     * NULL: nothing to prepare. */
    int (*prepare)(Handler *handler, const ClaimedCommand *list, int count, Arena *arena, void **ret_list);
    /* The same for a command that was started without a claim (offer.h), of what the database has read with it; NULL: run() reads it. Workers whose handler
     * has this offer handlers to what resumes their commands. */
    void *(*unpack)(const char *loaded, Arena *arena);
    /* Several commands at a time, at most HANDLER_SHARED_MAX, whose effects commit together. An item with a status is settled; every other one is to be run
     * alone, for any reason: it has no effect. All jobs have one arena. NULL: there is only run(). */
    void (*run_shared)(Handler *handler, Job *const *jobs, SettleItem *const *items, int count);
    /* How many run_shared() should get now, from 1 on. Called under the worker's mutex. */
    int (*shared_most)(Handler *handler);
};
#define HANDLER_SHARED_MAX 30

typedef struct {
    Pool              *pool;
    const char        *domain;
    const char *const *types;       /* NULL: all */
    const char        *name;        /* of this worker, unique per process start */
    int                concurrency; /* 0: WORKER_CONCURRENCY_DEFAULT */
    int                batch;       /* most commands in one claim; 0: what invariant 1 allows */
    int                ahead_max;   /* most commands that are claimed ahead of the handlers; 0: 1,000 */
    int                lease_ms;    /* 0: 30 s */
    int  timeout_ms; /* a handler that runs longer is stopped; tried again unless it has decided; 0: none */
    bool drain;      /* end when nothing is left: nothing queued, delayed or leased */
    bool is_lazy;    /* start handler threads, except the first one, when there is work for them */
    bool is_flushed; /* claims wait for the flush: the number of an attempt counts, also after a crash of the server */
    bool shares_types; /* a type whose handlers are slow gets its share of them (base/share.h); needs `types` */
    Handler *handler;
} WorkerOptions;

/* Counted since the start; any thread may read. */
typedef struct {
    int64_t claimed, completed;
    int64_t retried; /* another attempt follows */
    int64_t failed;  /* in troubleshooting: a permanent failure, or the last attempt */
    int64_t rejected;
    int64_t canceled; /* while the worker held it */
    int64_t lost;     /* the lease expired, or the outcome could not be stored in time */
    int64_t released; /* not begun, given back to the queue without using up an attempt */
    int     running, waiting;
} WorkerCounts;

typedef struct Worker Worker;
/* Everything in the options is borrowed for as long as it lives. */
Worker *worker_new(const WorkerOptions *options);
void    worker_free(Worker *worker);
SCOPED(Worker, worker_free)
/* Be woken by notifications; the Listen must be freed before the worker, or worker_unlisten() called. */
void worker_listen(Worker *worker, Listen *listen);
void worker_unlisten(Worker *worker, Listen *listen);
/* Claim these types from the next claim on; what is held goes on. From any thread. NULL: all. */
void worker_types_set(Worker *worker, const char *const *types);
/* Runs until worker_stop() or drained. Database outages are waited out. ERR_INVALID and other final failures end it; it may be
 * run again. ERR_INTERNAL: its threads cannot be started. */
must_check ErrorCode worker_run(Worker *worker, Error *reterr);
/* From any thread: no more claims; handlers get until the deadline, then are stopped. */
void worker_stop(Worker *worker, Deadline deadline);
/* There may be work: claim now. From any thread. */
void worker_wake(Worker *worker);
void worker_counts(Worker *worker, WorkerCounts *ret_counts);

#endif
