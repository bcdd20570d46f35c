/*
 * worker_internal.h - what the files of the worker share: worker.c claims and dispatches, worker_execution.c runs and settles,
 * worker_heartbeat.c extends leases and writes progress, worker_release.c releases what was not begun,
 * worker_share.c divides handlers among types.
 */
#ifndef BUS_WORKER_INTERNAL_H
#define BUS_WORKER_INTERNAL_H

#include "base/sync.h"
#include "bus/metric.h"
#include "bus/requeuer.h"
#include "bus/waker.h"
#include "bus/worker.h"

/* Commands are claimed ahead, as many again as there are threads, only while handlers take less than this on average. */
#define AHEAD_US_MAX INT64_C(100000)
/* What was claimed ahead and has not begun after this time is released: other pods may be idle. */
#define WAITING_MS_MAX 1000

/* The commands of one claim and their memory, freed with the last one. */
typedef struct {
    Arena          *arena;
    ClaimedCommand *list;
    void          **prepared; /* NULL: the handler prepares nothing */
    int             count;
    int             left;  /* not dropped yet; guarded by the worker's mutex */
    size_t          bytes; /* of the arena, when it was claimed: counted against WORKER_BYTES_MAX */
    Mono            claimed_at;
} ClaimedBatch;

typedef enum { EXECUTION_WAITING, EXECUTION_RUNNING, EXECUTION_SETTLING, EXECUTION_LOCKED } ExecutionState;
/* The newest report of a handler. */
typedef struct {
    int  percent;
    char text[PROGRESS_TEXT_SIZE];           /* empty: none */
    char step[PROGRESS_STEP_CHARACTERS + 1]; /* empty: none */
    bool is_unwritten;
    bool is_urgent; /* its attempt fails: write it now */
    int  number;    /* of the item that is being written, from 1; 0: none is */
} ReportedProgress;

typedef enum { STOP_NONE, STOP_LOST, STOP_CANCELED, STOP_TIMEOUT, STOP_SHUTDOWN } StopReason;

/* One command that is leased to this worker. Guarded by the mutex, except the job, which is the handler's. */
typedef struct Execution Execution;
struct Execution {
    const ClaimedCommand *command;
    void                 *prepared;
    ClaimedBatch         *claimed_batch;
    Worker               *worker;
    ReportedProgress     *progress; /* NULL: its handler has reported none */
    Job                   job;
    ExecutionState        state;
    StopReason            why;
    Mono                  kept_at;  /* when its lease was extended last */
    Mono                  began_at; /* RUNNING and SETTLING: its handler */
    Execution            *next, *previous;
};

struct Worker {
    WorkerOptions  options;
    WorkerMetrics *metrics;
    Claimer       *claimer;
    Settler       *settler;
    Waker         *waker;
    Requeuer      *requeuer;
    RequeuerMember member;
    WakeMember     local;
    Wake           wake; /* the next command of an order key was queued, or a reply that is a command */
    pthread_t     *threads;
    int            thread_count;
    pthread_t      heartbeat;
    Arena         *arena;         /* for the dispatcher's questions, emptied each turn */
    bool           worked;        /* a turn of the dispatcher has gone well */
    bool           outage;        /* its last turn failed */
    Cut            stopped;       /* of the dispatcher's calls */
    bool           report_failed; /* the heartbeat's: the last progress could not be written */
    Claimer       *others;        /* of the types whose share is not used up; the dispatcher's; NULL: none */

    Mutex        mutex;        /* guards the rest */
    Cond         arrived;      /* for handler threads: an execution waits, or closing */
    Cond         changed;      /* for the dispatcher: a free slot, a notification, or stopping */
    Cond         ticked;       /* for the heartbeat: stopping or closing, or progress */
    Cond         reported;     /* progress was written, or could not be */
    Deadline     report_at;    /* when progress is written next; never: there is none */
    Deadline     flush_at;     /* the same for what is urgent */
    Claimer     *claimer_next; /* in the place of `claimer`, which only the dispatcher uses; NULL: none */
    Execution   *first, *last;
    int          held, waiting, running, locked;
    int64_t      handler_us;    /* how long handlers take: a moving average, at most 10 * AHEAD_US_MAX */
    size_t       command_bytes; /* how much a command takes: a moving average that follows larger ones at once */
    bool         woken, requeued, stopping, closing;
    bool         leaves_out;   /* the last claim left out commands because of their type */
    Mono         paused_until; /* nothing is claimed before */
    int          pause_ms;     /* the last pause; 0: the last handler began its command */
    Deadline     stop_deadline;
    WorkerCounts counts;
};

/* Counting an outcome; under the mutex. */
void worker_count(Worker *worker, const SettleItem *item);
void claimed_batch_free(ClaimedBatch *claimed_batch);
SCOPED(ClaimedBatch, claimed_batch_free)

/* worker_execution.c */
/* ERR_INTERNAL: a thread cannot be started, and none runs. */
must_check ErrorCode executions_start(Worker *worker, Error *reterr);
/* No more will come: wait for what is held, then for the threads. */
void executions_end(Worker *worker);
/* Takes the claimed_batch over. */
void executions_add(Worker *worker, ClaimedBatch *claimed_batch);

/* Under the mutex: when the first one that waits has waited for too long. */
Mono executions_stale_at(const Worker *worker);
/* Under the mutex: one that is LOCKED can go on. */
void execution_resume(Worker *worker, Execution *execution);
/* Under the mutex: it is not held any more. */
void execution_drop(Worker *worker, Execution *execution);
/* Is a settle that failed tried again? A worker that ends does not wait for the end of an outage, nor for a schema to be mended. */
bool settle_goes_on(Worker *worker, ErrorCode code);

/* Has another worker the command, or will it have it? Then its outcome is not reported. */
bool stop_is_loss(StopReason why);

/* worker_heartbeat.c: the body of the thread, which ends when the worker holds nothing any more */
void *heartbeat_run(void *worker);

/* worker_progress.c */
void execution_report(Job *job, const JobProgress *progress);
void execution_flush(Job *job);
/* By the heartbeat, without the mutex: write what is due, within this time. */
void progress_write(Worker *worker, int most_ms);

/* worker_share.c */
/* Under the mutex: does the share of its type allow to begin it? */
bool execution_is_allowed(const Worker *worker, const Execution *execution);
/* By the dispatcher: the claimer for what may be claimed now, and how much of it. NULL: nothing. */
Claimer *share_claimer(Worker *worker, int *space);
/* The types have changed, or the worker ends. */
void share_forget(Worker *worker);

/* worker_release.c */
/* A handler could not begin its command, for a reason that is not the command's: claim nothing for 1 s, doubling up to 30 s. */
void pause_begin(Worker *worker, const char *why);
void pause_end(Worker *worker);
/* Release and drop all executions that wait, and the one given (or NULL), without using up their attempts. */
void executions_release(Worker *worker, Arena *arena, Execution *execution);

#endif
