/*
 * library_internal.h - what the files of the library share: library.c has the pool and transactions, send.c sends commands, work.c
 * handles them, process.c runs processes, wallet.c posts to the ledger.
 */
#ifndef LIB_LIBRARY_INTERNAL_H
#define LIB_LIBRARY_INTERNAL_H

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/sync.h"
#include "bus/handler_tx.h"
#include "bus/outcome_wait.h"
#include "bus/send.h"
#include "bus/waker.h"
#include "bus/worker_set.h"
#include "pawl/pawl.h"
#include "pg/pool.h"
#include "pg/query.h"
#include "process/code.h"
#include "wallet/ledger.h"

#define LIBRARY_NAME        "libpawl"
#define LIBRARY_TIMEOUT_MS  10000
#define LIBRARY_ARENA_BYTES ((size_t)256 << 20)

struct Pawl {
    pid_t         opener; /* the process that may use it */
    char         *url;
    Pool         *pool;
    Sender       *sender;
    Waker        *waker;
    Ledger       *ledger;
    OutcomeWaits *outcomes;

    Mutex mutex; /* guards the rest */
    Cond  left;
    int   calls;      /* under way */
    int   runs;       /* of workers, which are calls without a timeout */
    Mono  ends_at;    /* the latest timeout of a call */
    bool  is_closing; /* pawl_close() has returned: the last call frees it */
};

struct PawlTx {
    Pawl      *pawl;
    Tx        *tx;
    ErrorCode  code; /* of the last call that failed */
    Error     *why;
    PawlError *error;
    WakeList   wakes; /* what the transaction has sent so far */
};

/* A child of fork() has the parent's sockets, a copy of its locks as they were, and none of its threads. So it may use nothing of a Pawl:
 * these say so. */
ErrorCode library_check(const Pawl *pawl, Error *reterr);

/* A function of the caller that this thread runs, and the one that called pawl to run it. */
typedef struct Outside Outside;
struct Outside {
    const Pawl *pawl;
    Outside    *outer;
};
/* Around a function of the caller. A child that came back from it would go on with the parent's transaction, and is ended. */
void library_go_out(const Pawl *pawl, Outside *ret_outside);
void library_came_back(const Outside *outside);

/* scoped(library_leave) Pawl *inside = library_enter(pawl, timeout_ms, &why);  the Pawl exists until the end of the block, for which pawl_close()
 * waits as long as a call with this timeout may take. NULL: see library_check(), or the time is negative. */
Pawl *library_enter(Pawl *pawl, int timeout_ms, Error *reterr);
void  library_leave(Pawl *pawl);
/* A worker begins to run (1) or has ended (-1), in a call. */
void library_runs_add(Pawl *pawl, int count);
SCOPED(Pawl, library_leave)

/* ---- sending ---- */

PawlStatus library_send(Pawl *pawl, SendItem item, int timeout_ms, PawlSent *ret_sent, PawlError *error);
/* Items that have a code were refused before, and are not sent. */
PawlStatus library_send_many(Pawl *pawl, SendItem *items, int count, Deadline deadline, PawlSent *ret_sent,
                             PawlError *error);
PawlStatus library_tx_send(PawlTx *tx, SendItem *items, int count, PawlSent *ret_sent);
/* Before many are sent: list is no NULL, and count in range. noun: what messages call them. */
must_check ErrorCode library_list_check(const char *noun, const void *list, int count, Error *reterr);
PawlStatus library_list_refuse(ErrorCode code, const Error *why, int count, PawlSent *ret_sent, PawlError *error);
/* From that of PawlCommand and PawlStart to that of SendItem. */
int library_priority(int priority);

/* ---- workers ---- */

struct PawlWorker {
    TxHandler   handler; /* first; without transactions only its base is used */
    Pawl       *pawl;
    PawlWork    options;
    Pool       *pool;
    WorkerSet  *workers; /* one */
    Arena      *arena;   /* for the texts of the options */
    sem_t       stop;
    atomic_bool begun;
    /* Of a process. */
    CodeProgram program;
    Handler    *process; /* NULL: it handles commands */
};

/* A PawlJob with what its functions need. */
typedef struct {
    PawlJob     job; /* first */
    Job        *bus_job;
    PawlWorker *worker;
    const char *result, *error; /* in the bus_job's arena */
    const char *defect;         /* of a result that cannot be kept */
    const char *step;           /* of a process; NULL: it is a command */
    WakeList    wakes;
} Given;
Given given_new(PawlWorker *worker, Job *bus_job);
/* What its outcome means. */
void given_end(const Given *given, PawlOutcome said, SettleItem *ret_settle);

/* The CodeFunction of a worker with a PawlProcess; context: the worker. */
CodeFunction process_function;

Deadline library_deadline(int timeout_ms);
/* The status and error of the public header; error may be NULL. */
PawlStatus library_answer(ErrorCode code, const Error *why, PawlError *error);

#endif
