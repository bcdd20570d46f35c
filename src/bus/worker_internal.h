/*
 * worker_internal.h - what the files of the worker share: worker.c claims and dispatches, worker_execution.c runs handlers, worker_outcome.c settles
 * what they have handed over, worker_heartbeat.c extends leases and writes progress, worker_release.c releases what was not begun, worker_share.c divides
 * handlers among types, worker_gate.c releases what a pause holds back.
 */
#ifndef BUS_WORKER_INTERNAL_H
#define BUS_WORKER_INTERNAL_H

#include "base/sync.h"
#include "bus/lease.h"
#include "bus/metric.h"
#include "bus/requeuer.h"
#include "bus/waker.h"
#include "bus/worker.h"

/* Commands are claimed ahead only while handlers take less than this on average. */
#define AHEAD_US_MAX INT64_C(100000)
/* What is claimed ahead is the work of this time, or of two claims if those take longer. */
#define AHEAD_US  INT64_C(20000)
#define AHEAD_MAX 1000
/* The payloads of commands that are run together. */
#define SHARED_BYTES_MAX ((size_t)1 << 20)
/* What was claimed ahead and has not begun after this time is released: other pods may be idle. */
#define WAITING_MS_MAX 1000
/* Outcomes that are not settled yet: with so many no handler begins another command. A crash repeats at most these and those that run. */
#define OUTCOMES_MAX            1000
#define OUTCOME_BYTES_MAX       ((size_t)16 << 20)
#define CLAIMED_BATCH_BYTES_MAX ((size_t)1 << 30)
/* Of one worker at any time. What is LOCKED is WORKER_CONCURRENCY_MAX at most. */
#define SPARE_MAX 64
#define HELD_MAX  (3 * WORKER_CONCURRENCY_MAX + AHEAD_MAX + OUTCOMES_MAX)

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

/* Executions in an order. Guarded by the worker's mutex. */
typedef struct {
    struct Execution *first, *last;
} ExecutionList;

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

/* One command that is leased to this worker. Guarded by the mutex, except the job, which is the handler's, and then the outcome and the arena, which
 * are the settler's once they were handed over. */
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
    int                   beat;     /* its number in the heartbeat that is under way, from 1; 0: it is not in it */
    Mono                  began_at; /* RUNNING and SETTLING: its handler */
    Arena                *arena;    /* RUNNING and SETTLING: of the result and the error */
    SettleItem            outcome;
    size_t                outcome_bytes;
    Mono                  handed_at;
    Mono                  settle_at;    /* not before */
    bool                  is_logged;    /* why it cannot be settled */
    bool                  is_undone;    /* in a transaction that it shared with others: it runs alone */
    Execution            *settled_next; /* in the queue of outcomes */
    ExecutionList        *list;
    Execution            *next, *previous;
};

struct Worker {
    WorkerOptions  options;
    WorkerMetrics *metrics;
    DomainMetrics *domain_metrics;
    Claimer       *claimer;
    Waker         *waker;
    Requeuer      *requeuer;
    RequeuerMember member;
    WakeMember     local;
    Wake           wake; /* the next command of an order key was queued, or a reply that is a command */
    pthread_t     *threads;
    int            thread_count;
    pthread_t      heartbeat, settler;
    Arena         *arena;         /* for the dispatcher's questions, emptied each turn */
    bool           worked;        /* a turn of the dispatcher has gone well */
    bool           outage;        /* its last turn failed */
    bool           report_failed; /* the heartbeat's: the last progress could not be written */
    Cut            stopped;       /* of the dispatcher's calls */
    Worker        *offering_next; /* in the list of those that may offer handlers */
    Claimer       *others;        /* of the types whose share is not used up; the dispatcher's; NULL: none */

    Mutex         mutex;                    /* guards the rest */
    Cond          arrived;                  /* for handler threads: an execution waits, or closing */
    Cond          changed;                  /* for the dispatcher: a free slot, a notification, or stopping */
    Cond          ticked;                   /* for the heartbeat: stopping or closing */
    Cond          offer_ended;              /* for those that wait until no offer is open */
    Cond          reported;                 /* progress was written, or could not be */
    Deadline      report_at;                /* when progress is written next; never: there is none */
    Deadline      flush_at;                 /* the same for what is urgent */
    Cond          handed;                   /* for the settler: an outcome, stopping, or ended */
    Claimer      *claimer_next;             /* in the place of `claimer`, which only the dispatcher uses; NULL: none */
    ExecutionList queue;                    /* those that wait, by priority and then in the order of claims */
    ExecutionList begun;                    /* the others */
    Execution    *outcomes, **outcomes_end; /* handed over, and not taken by the settler */
    Arena        *spare[SPARE_MAX];         /* arenas of handlers */
    int           spare_count;
    int           held, waiting, running, locked, settling;
    size_t        settling_bytes;
    int           offered;                     /* handlers that are reserved by open offers (offer.h) */
    bool          is_offering;                 /* between a claim that found nothing and the next one */
    int64_t       offer_after[PRIORITY_COUNT]; /* where that claim began */
    bool is_unsettled;  /* the last settle failed: no handler begins another command, so that a crash repeats no more */
    bool has_settler;   /* its thread has been started */
    bool has_ended;     /* no handler is left that would hand an outcome over */
    int64_t handler_us; /* how long handlers take: a moving average, at most 10 * AHEAD_US_MAX */
    int64_t claim_us;   /* how long claims take: a moving average */
    int     refill_at;  /* claim again when no more than so many wait or run */
    size_t  command_bytes; /* how much a command takes: a moving average that follows larger ones at once */
    bool    woken, requeued, stopping, closing;
    bool    is_gated;      /* the domain of the last claim was paused or limited */
    bool    is_gate_noted; /* the domain may have been paused: release what waits and is held back */
    int again_ms; /* the last claim: something that is held back may be found after so many milliseconds; -1: not known */
    bool         leaves_out;   /* the last claim left out commands because of their type */
    bool         is_careful;   /* the last claim found commands that are not claimed ahead */
    bool         is_cut;       /* it found nothing, but perhaps because no handler was free: claim when one is */
    int          lost, alone;  /* held: commands whose last attempt was lost; of these, those in their last attempt */
    Mono         paused_until; /* nothing is claimed before */
    int          pause_ms;     /* the last pause; 0: the last handler began its command */
    Deadline     stop_deadline;
    WorkerCounts counts;
};

/* Under the mutex: how many more can begin at once. Lost commands count until they are settled: one of them may be the cause, and costs those beside
 * it an attempt. */
static inline int worker_begins(const Worker *worker)
{
    int used = worker->waiting + worker->running + worker->offered;

    return worker->options.concurrency - (used < worker->lost ? worker->lost : used);
}
/* Under the mutex: how many commands fit into what is left of WORKER_BYTES_MAX. */
int worker_fits(const Worker *worker);
/* The memory of a batch counts against WORKER_BYTES_MAX from here on. prepared: how many of its commands have theirs in it. */
void claimed_batch_measure(Worker *worker, ClaimedBatch *claimed_batch, int prepared);
/* Counting an outcome; under the mutex. */
void worker_count(Worker *worker, const SettleItem *item);
void claimed_batch_free(ClaimedBatch *claimed_batch);
SCOPED(ClaimedBatch, claimed_batch_free)

/* worker_execution.c */
/* ERR_INTERNAL: a thread cannot be started, and none runs. */
must_check ErrorCode executions_start(Worker *worker, Error *reterr);
/* No more will come: wait for what is held, then for the threads. */
void executions_end(Worker *worker);
/* Under the mutex, before handlers end. Takes the claimed_batch over. */
void executions_add(Worker *worker, ClaimedBatch *claimed_batch);

/* Under the mutex: all that are held, those that wait first. */
Execution *execution_first(const Worker *worker);
Execution *execution_after(const Worker *worker, const Execution *execution);
/* Under the mutex: when the first one that waits has waited for too long. */
Mono executions_stale_at(const Worker *worker);
/* Under the mutex: it does not wait any more. */
void execution_move(Worker *worker, Execution *execution);
/* Under the mutex. Another transaction has locked the lease: keep the command, as LOCKED, until the heartbeat resumes it. false: the worker stops, or
 * has many of them, so that the lease expires. */
bool execution_lock(Worker *worker, Execution *execution);
/* Under the mutex: one that is LOCKED can go on. */
void execution_resume(Worker *worker, Execution *execution);
/* Under the mutex: it is not held any more. */
void execution_drop(Worker *worker, Execution *execution);
/* Under the mutex. An arena that the next handler uses again. */
Arena *arena_borrow(Worker *worker);
void   arena_return(Worker *worker, Arena *arena);
/* Is a settle that failed tried again? A worker that ends does not wait for the end of an outage, nor for a schema to be mended. */
bool settle_goes_on(Worker *worker, ErrorCode code);

/* worker_outcome.c */
/* The handler has ended: its outcome is settled by the settler, unless it has a status already. Takes the execution over, with its arena. */
void outcome_hand_over(Worker *worker, Execution *execution);
/* Under the mutex: is there space for the outcome of one handler more? */
bool outcomes_have_space(const Worker *worker);
/* Under the mutex: unless it runs, or nothing is handed over. */
void settler_start(Worker *worker);
/* No handler is left: wait until all is settled. */
void settler_end(Worker *worker);

/* Why the worker stopped it. */
StopReason execution_reason(Worker *worker, const Execution *execution);
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
/* Under the mutex: how many more of a type can begin. */
int share_space(const Worker *worker, const char *type);
/* Under the mutex: those of these types of which one more can begin, ended by NULL. */
const char *const *share_types(const Worker *worker, const char *const *types, Arena *arena);
/* By the dispatcher: the claimer for what may be claimed now, and how much of it. NULL: nothing. */
Claimer *share_claimer(Worker *worker, int *space);
/* The types have changed, or the worker ends. */
void share_forget(Worker *worker);

/* worker_release.c */
/* A handler could not begin its command, for a reason that is not the command's: claim nothing for 1 s, doubling up to 30 s. */
void pause_begin(Worker *worker, const char *why);
void pause_end(Worker *worker);
/* Release and drop all executions that wait, and the one given (or NULL), without using up their attempts. */
void executions_release(Worker *worker, Execution *execution);
/* Those that wait and have one of these types. */
void executions_release_types(Worker *worker, const char *const *types, int count);

/* worker_gate.c */
/* Domains were paused or resumed: a notification about this domain, or (NULL) about any. */
void gate_notified(void *worker, const char *channel, const char *payload);
/* By the dispatcher: if the domain may have been paused, release what waits and is of a paused type. */
must_check ErrorCode gate_check(Worker *worker, Deadline deadline, Error *reterr);
/* By the dispatcher: a claim of this claimer has ended. */
void gate_note(Worker *worker, const Claimer *claimer, int count);

#endif
