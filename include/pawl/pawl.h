/*
 * pawl.h - the library: resilient PostgreSQL transactions, the command bus, processes and the wallet ledger, for C programs.
 *
 *     Pawl *pawl;
 *     PawlError error;
 *     if (pawl_open("postgresql://app@db/shop", &pawl, &error) != PAWL_OK) { puts(error.text); return 1; }
 *     pawl_transaction(pawl, &(PawlTransaction){.name = "order", .timeout_ms = 2000, .keyed = true}, body, &order, &error);
 *     pawl_close(pawl);
 *
 * It uses a connection pool with a breaker, retries only what is safe to retry, and applies one deadline to all waits of a
 * call. See docs/library.md.
 *
 * In every options struct zero means the default. The library writes nothing to standard output or error.
 * Outputs are set in any case: on failure to NULL, 0 or false. Where a NULL has no meaning it is refused in words.
 * timeout_ms, of a call or of its options, bounds all waits of the call; 0: 10 s. A negative time is refused.
 * Threads: a Pawl and a PawlWorker may be used by any number of threads at once; a PawlTx, a PawlJob and a PawlRun belong to the
 * function they were passed to.
 * fork(): open the library after it. In a child nothing of a Pawl that its parent opened can be used: calls return PAWL_FAILED, closing does
 * nothing, and a child that returns from a function that pawl called is aborted. A child that calls exec is no problem.
 * Ownership: arguments are borrowed until the call returns. pawl_close() frees a Pawl, after its workers; the contents of a
 * PawlTx, a PawlJob or a PawlRun are valid until its function returns.
 */
#ifndef PAWL_H
#define PAWL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Everything else in the library is hidden. */
#pragma GCC visibility push(default)

typedef struct Pawl       Pawl;
typedef struct PawlTx     PawlTx;
typedef struct PawlWorker PawlWorker;
typedef struct PawlRun    PawlRun;

/* For programs; PawlError.text is for people. */
typedef enum {
    PAWL_OK,
    PAWL_REFUSED, /* the request cannot succeed as it is: bad input, conflict, missing privileges */
    PAWL_NOT_FOUND,
    PAWL_TRY_AGAIN,   /* busy or out of time: nothing was done, retry later */
    PAWL_UNAVAILABLE, /* the database is unreachable: nothing was done */
    PAWL_UNKNOWN,     /* it may have been committed: only a keyed transaction, run again, can tell */
    PAWL_FAILED       /* a bug in the program or in the library */
} PawlStatus;

typedef struct {
    PawlStatus status;
    char       sqlstate[6]; /* "" if the error is not PostgreSQL's */
    char       text[512];
} PawlError;

const char *pawl_version(void);

/* ---- the database ---- */

/* A pool for one database, opened on first use. error may be NULL everywhere. */
PawlStatus pawl_open(const char *database_url, Pawl **ret_pawl, PawlError *error);
/* Waits for calls in progress on other threads, which end at their timeouts at the latest, and for workers that run. A call whose function of
 * yours has not returned 1 s after the timeout is not waited for: what it uses is freed when the function returns. NULL is allowed. In a function
 * that pawl called it does nothing. */
void pawl_close(Pawl *pawl);
/* Does the database answer within this time? */
PawlStatus pawl_ping(Pawl *pawl, int timeout_ms, PawlError *error);

/* A transaction is a function. It is run again from its beginning after a deadlock or a lost connection, so it must change
 * nothing but its context and the database. Return PAWL_OK to commit, anything else to roll back. keyed: it starts by
 * inserting an idempotency key, so it may also be run again when the answer to commit was lost. */
typedef PawlStatus PawlBody(PawlTx *tx, void *context);
typedef struct {
    const char *name;       /* for logs and messages */
    int         timeout_ms; /* for all of it: waits, retries, commit */
    bool        keyed;
} PawlTransaction;
/* options NULL: the defaults. */
PawlStatus pawl_transaction(Pawl *pawl, const PawlTransaction *options, PawlBody *body, void *context,
                            PawlError *error);

/* One statement, without a second one behind it, with up to 65,535 text parameters ($1, $2, ...; NULL is SQL null). A
 * result is rows of texts. */
typedef struct {
    int                rows, columns;
    const char *const *values;  /* rows * columns, row by row; NULL is SQL null */
    long long          changed; /* rows inserted, updated, deleted or merged; 0 after other statements */
} PawlResult;
PawlStatus pawl_query(PawlTx *tx, const char *sql, int count, const char *const *parameters, PawlResult *ret_result);
/* The error of the last pawl_query(), pawl_tx_send() or pawl_tx_post() that failed in this transaction. */
const PawlError *pawl_tx_error(const PawlTx *tx);

/* ---- sending commands ---- */

typedef struct {
    const char *domain, *type;
    const char *payload;        /* JSON; NULL: {} */
    const char *command_id;     /* UUID; the same id again is the same command. NULL: a new one */
    long long   delay_ms;       /* not before this time has passed */
    int         priority;       /* 1 to 9, the highest first, or PAWL_PRIORITY_LOWEST; 0: 4 */
    int         max_attempts;   /* 1 to 1000; 0: 3 */
    const char *reply_to;       /* target of the outcome: a queue, or "command:DOMAIN/TYPE"; NULL: none */
    const char *correlation_id; /* copied into the reply; NULL: none */
    const char *batch_id;       /* UUID of an open batch; NULL: none */
    const char *actor;          /* the sender's name in the audit; NULL: none */
    const char *
        order_key; /* commands of the domain with the same key run one at a time, in the order of sending; NULL: none */
    const char *
        key; /* any text in place of command_id, such as "order-17": it becomes the id, and counts in all domains; NULL: none */
    /* While another command of the domain and type has this key, the command is a duplicate, and is not sent; NULL: none. See docs/bus.md. */
    const char *unique_key;
    const char *
        unique_for; /* how long a command has its key: "queued" (until it begins), "active" (until it has ended), or a time such as "1h";
                               NULL: "active" */
    /* What a duplicate does, if the other command has not begun: "keep", "replace" (its payload), "move" (it is due after this delay_ms, or
     * now); NULL: "keep" */
    const char *on_duplicate;
} PawlCommand;
#define PAWL_PRIORITY_LOWEST (-1) /* priority 0; in PawlCommand and PawlStart 0 means the default */

/* The verdict on one command. */
typedef struct {
    char        id[37]; /* of a duplicate: of the command that has the unique key */
    bool        is_new; /* false: it existed before, and nothing changed */
    const char *status; /* its present status: "PENDING", "COMPLETED", ...; a constant. NULL: it was not sent */
    PawlError   error;  /* PAWL_OK: it was sent. PAWL_REFUSED: a bad field, or this id has another type or payload.
                           PAWL_NOT_FOUND: there is no such batch */
    const char *
        duplicate; /* what became of the command that has the unique key: "kept", "replaced" or "moved"; a constant. NULL: it is no
                              duplicate */
} PawlSent;

/* After PAWL_UNKNOWN send it again with the id in *ret_sent: it will still be one command. Threads that send at the same
 * time share a transaction. ret_sent may be NULL. */
PawlStatus pawl_send(Pawl *pawl, const PawlCommand *command, int timeout_ms, PawlSent *ret_sent, PawlError *error);
/* Up to 10,000 at once, each with its verdict in ret_sent[i] (which may be NULL); a refused one does not affect the
 * others. PAWL_OK: all were sent; otherwise the first failure. */
PawlStatus pawl_send_many(Pawl *pawl, const PawlCommand *commands, int count, int timeout_ms, PawlSent *ret_sent,
                          PawlError *error);
/* The same as part of a transaction: sent if and only if it commits. A refusal does not abort the transaction. */
PawlStatus pawl_tx_send(PawlTx *tx, const PawlCommand *command, PawlSent *ret_sent);
PawlStatus pawl_tx_send_many(PawlTx *tx, const PawlCommand *commands, int count, PawlSent *ret_sent);

/* ---- waiting for outcomes ---- */

/* How a command or process has ended, or as what it is now. */
typedef struct {
    bool has_ended;
    const char
        *status; /* "COMPLETED", "FAILED", "CANCELED", of a process also "COMPENSATED"; or "PENDING", "IN_TSQ", ... */
    const char *result; /* JSON; NULL: none */
    const char *error;  /* why it failed, or its last attempt; NULL: it did not */
} PawlEnded;

/* Wait until a command has ended, and return how. domain NULL: the one that has it. PAWL_TRY_AGAIN: it has not ended within timeout_ms; *ret_ended
 * says as what it is. PAWL_NOT_FOUND: there is no such command. PAWL_REFUSED: several domains have this id. All threads that wait share one statement
 * every 25 ms; what anyone settles is seen. The texts belong to *ret_ended until pawl_ended_free(). */
PawlStatus pawl_wait(Pawl *pawl, const char *command_id, const char *domain, int timeout_ms, PawlEnded *ret_ended,
                     PawlError *error);
/* The same for a process; domain: its own, such as "process". */
PawlStatus pawl_process_wait(Pawl *pawl, const char *process_id, const char *domain, int timeout_ms,
                             PawlEnded *ret_ended, PawlError *error);
/* Also of one that was not filled, or was freed before. */
void pawl_ended_free(PawlEnded *ended);

/* ---- handling commands ---- */

/* A handler's outcome. Starts at 100, so that a PawlStatus returned by mistake is noticed. */
typedef enum {
    PAWL_JOB_COMPLETE = 100,
    PAWL_JOB_RETRY,  /* a transient failure: retried; IN_TSQ when the attempts are exhausted */
    PAWL_JOB_FAIL,   /* a permanent failure: IN_TSQ, an operator decides */
    PAWL_JOB_REJECT, /* a business refusal: FAILED, final */
    PAWL_JOB_SNOOZE /* not now: due again after retry_in_ms, 1 s to 30 days, and the attempt does not count. From 10,000 times or 30 days on, and
                        in a step, it is PAWL_JOB_RETRY */
} PawlOutcome;

/* One command to be handled. */
typedef struct {
    const char *command_id, *domain, *type;
    const char *payload; /* JSON */
    int         attempt, max_attempts;
    long long
        retry_in_ms; /* set by the handler, for PAWL_JOB_RETRY; 0: the retry policy's delay. For PAWL_JOB_SNOOZE; 0: 10 s */
} PawlJob;

/* The result of a completed command, as JSON, and the reason of a failure, as text. Both are copied. A result that is not
 * JSON or larger than 4 MB fails the command; the first 8 kB of a reason are kept. */
void pawl_job_result(PawlJob *job, const char *json);
void pawl_job_error(PawlJob *job, const char *format, ...) __attribute__((__format__(printf, 2, 3)));
/* Should the handler end? Its timeout has passed, its command was canceled, its lease was lost, or the worker must stop. Its
 * outcome counts as long as it holds the lease, also when it is late: only PAWL_JOB_RETRY is changed, to pawl's delay and to pawl's reason
 * followed by the handler's. */
bool pawl_job_is_stopped(const PawlJob *job);
/* How far the handler, or the body of a step, is: percent from 0 to 100, or -1 for none; text of 1 to 200 characters, UTF-8, or NULL for none. Copied,
 * and never waits: the worker writes the newest report about once a second. Operators see it, and the next attempt is given it. Returns
 * NULL, or what is wrong with the arguments; then nothing is reported. */
const char *pawl_job_progress(PawlJob *job, int percent, const char *text);
/* What the attempts before have reported last, as JSON: {"percent": 40, "text": "...", "attempt": 1, "at": "..."}; NULL: nothing. */
const char *pawl_job_last_progress(const PawlJob *job);

/* A handler is called on threads of the worker, for one command at a time on each. It may be called again for the same
 * command, after a crash or a lost lease: make it idempotent, with the command's id as the key. */
typedef PawlOutcome PawlHandler(PawlJob *job, void *context);
/* The same inside a transaction that also ends the command: what it writes by tx happens exactly once. PAWL_JOB_COMPLETE
 * commits, anything else rolls back. Like a PawlBody it is run again from its beginning after a deadlock or a lost connection. */
typedef PawlOutcome PawlTxHandler(PawlJob *job, PawlTx *tx, void *context);

/* A process written as a function: see "processes" below. */
typedef enum {
    PAWL_FLOW_NEXT = 200, /* go on; returned by the function: the process is complete */
    PAWL_FLOW_FAILED,     /* it has failed for good: pawl_run_error() says why. The function may go on, or return it */
    PAWL_FLOW_RETURN      /* return it now */
} PawlFlow;
typedef PawlFlow PawlProcess(PawlRun *run, void *context);

typedef struct {
    const char        *domain;
    const char *const *types;      /* only these, 1 to 100, ended by NULL; NULL: all */
    PawlHandler       *handler;    /* this one, */
    PawlTxHandler     *tx_handler; /* or this one, */
    PawlProcess       *process;    /* or this one: then domain is that of the processes, and types must be given */
    void              *context;
    int                concurrency; /* handlers at once, 1 to 1000; 0: 8 */
    int                batch;       /* most commands in one claim, 1 to 10,000; 0: as many as can start at once */
    int                lease_ms;    /* 100 ms to 1 day, extended while the handler runs; 0: 30 s, of a process 60 s */
    int                timeout_ms;  /* a handler that runs longer is asked to stop; 0: none */
    int                stop_ms;     /* how long handlers may continue after pawl_worker_stop(); 0: 30 s */
    bool               drain;       /* end when nothing is queued, delayed or in progress */
    const char        *listen_url;  /* a direct URL, if that of pawl_open() is a pooler's; NULL: the same */
} PawlWork;

/* Counted since the start. */
typedef struct {
    long long claimed, completed;
    long long retried; /* another attempt follows */
    long long failed;  /* in troubleshooting: a permanent failure, or the last attempt */
    long long rejected;
    long long canceled;         /* while the worker held it */
    long long lost;             /* the lease was lost: the outcome changed nothing */
    long long released;         /* not started: queued again without counting an attempt */
    int       running, waiting; /* right now */
} PawlCounts;

/* A worker has its own connections, so leases are extended whatever its handlers do. PAWL_REFUSED: options out of range. */
PawlStatus pawl_worker_open(Pawl *pawl, const PawlWork *options, PawlWorker **ret_worker, PawlError *error);
/* Call it once. Runs until it is stopped or drained; waits out outages: pawl_ping() on another thread says whether there is one, and why.
 * PAWL_REFUSED and others: it cannot run, for example because the schema is missing, or, at its start, because there is no such database
 * or the server refuses the user or the password. */
PawlStatus pawl_worker_run(PawlWorker *worker, PawlError *error);
/* From any thread, and from a signal handler. No more commands are claimed; those not started are released. When the worker holds no
 * command, pawl_worker_run() returns within about a second, also if the database is silent. NULL is allowed. */
void pawl_worker_stop(PawlWorker *worker);
void pawl_worker_counts(PawlWorker *worker, PawlCounts *ret_counts);
/* After pawl_worker_run() returned, or before it was called. NULL is allowed. */
void pawl_worker_close(PawlWorker *worker);

/* ---- processes ---- */

/* A process is multi-step work that survives crashes; see docs/process.md. It has an id, unique in its domain, and a state. */
typedef struct {
    const char *type;
    const char *domain;     /* NULL: "process", here and below */
    const char *state;      /* JSON object; NULL: {} */
    const char *process_id; /* UUID; started twice with the same id it is one process. NULL: a new one */
    const char *actor;      /* the caller's name in the audit; NULL: none */
    /* How long from when it is due, such as "2h", or a time such as "2026-11-16T20:00:00Z"; NULL: that of its
     * definition */
    const char *deadline;
    /* "troubleshoot", "compensate" or "fail", when the deadline passes; NULL: that of its definition, without one "troubleshoot" */
    const char *on_deadline;
    long long   delay_ms; /* it is due after this time; 0: now */
    int         priority; /* 1 to 9, the highest first, or PAWL_PRIORITY_LOWEST; 0: 4 */
    const char *key; /* any text in place of process_id: it becomes the id, and counts in all domains; NULL: none */
} PawlStart;
/* As pawl_send(): the id is in *ret_sent, and after PAWL_UNKNOWN the same start with this id is still one process. */
PawlStatus pawl_process_start(Pawl *pawl, const PawlStart *start, int timeout_ms, PawlSent *ret_sent, PawlError *error);
/* The same as part of a transaction: started if and only if it commits. */
PawlStatus pawl_tx_process_start(PawlTx *tx, const PawlStart *start, PawlSent *ret_sent);
/* Up to 10,000 at once, as pawl_send_many() and pawl_tx_send_many(). */
PawlStatus pawl_process_start_many(Pawl *pawl, const PawlStart *starts, int count, int timeout_ms, PawlSent *ret_sent,
                                   PawlError *error);
PawlStatus pawl_tx_process_start_many(PawlTx *tx, const PawlStart *starts, int count, PawlSent *ret_sent);

typedef struct {
    const char *process_id, *domain; /* domain NULL: the one that has it */
    const char *name;
    const char *payload; /* JSON; NULL: {}. An object is merged into the state, anything else as {name: payload} */
    const char *key;     /* applied once per process, name and key; NULL: a new one */
    const char *actor;
    const char *
        step; /* the wait that it answers, as it is shown: "approval", "approval[2]". No other wait takes it. NULL: any of this name */
} PawlSignal;
/* *ret_verdict (may be NULL), a constant: "RESUMED", "STORED" (the process does not wait for it, or for more),
 * "STORED_UNEXPECTED" (no wait of its definition takes this name), "REPEATED" (the key is known), "LATE" (the process has ended, or the wait
 * that it names; its state was patched). */
PawlStatus pawl_process_signal(Pawl *pawl, const PawlSignal *signal, int timeout_ms, const char **ret_verdict,
                               PawlError *error);

/* A process of a type that has no definition is run by a worker with a PawlProcess. The function is called from its beginning in every
 * activation: after a restart, a response, a time. Its calls below are matched with what is recorded: one that has a record returns what it
 * returned then, the first one without a record does its work, and its record is committed before it returns.
 *
 *     static PawlFlow order(PawlRun *run, void *context)
 *     {
 *         const char *stock, *approval;
 *         PAWL_FLOW(pawl_run_step(run, &(PawlStep){.name = "reserve", .input = pawl_run_input(run), .body = reserve}, &stock));
 *         PAWL_FLOW(pawl_run_wait(run, &(PawlWait){.name = "approval", .timeout_ms = 3600000}, &approval));
 *         return PAWL_FLOW_NEXT;
 *     }
 *
 * A call that must wait returns PAWL_FLOW_RETURN, and so does every call after it: return it too. So the function must make the same calls, in
 * the same order, with the same inputs each time. It branches on pawl_run_input() and on results of calls, and takes everything else from
 * outside (time, random numbers, files) in a call. If it was changed, the process goes to troubleshooting with the first step that
 * differs, and nothing is run. When the lease is lost, no call writes or sends any more.
 * Names of calls: 1 to 100 letters, digits, "_", "." or "-", beginning with a letter or digit; each once per process:
 * a second call of a name does nothing, and the process goes to troubleshooting. */
#define PAWL_FLOW(call)              \
    do {                             \
        PawlFlow flow_ = (call);     \
        if (flow_ != PAWL_FLOW_NEXT) \
            return flow_;            \
    } while (0)

const char *pawl_run_id(const PawlRun *run);
const char *pawl_run_type(const PawlRun *run);
const char *pawl_run_input(const PawlRun *run); /* JSON: the state that it was started with, or has continued with */
int         pawl_run_life(const PawlRun *run);  /* how often it has begun, from 1: see pawl_run_continue() */
/* JSON: the state as it is now. Do not branch on it: it may be another one in the next replay. */
const char *pawl_run_state(PawlRun *run);
/* Why the last call returned PAWL_FLOW_FAILED; "": none did. */
const char *pawl_run_error(PawlRun *run);

/* A step runs a handler: job->command_id is the step's key, a UUID that is the same in every attempt, job->type its name, job->payload its
 * input, pawl_job_result() and pawl_job_error() what is recorded. PAWL_JOB_RETRY is tried again by the policy below; PAWL_JOB_FAIL,
 * PAWL_JOB_REJECT and the last attempt are PAWL_FLOW_FAILED. A body may run again after a crash; what a tx_body writes by its tx is
 * committed with the record, exactly once. */
typedef struct {
    const char    *name;
    const char    *input;   /* JSON; NULL: null. Its hash is recorded */
    PawlHandler   *body;    /* this one, */
    PawlTxHandler *tx_body; /* or this one */
    void          *context;
    int            attempts;     /* 1 to 1000; 0: 5 */
    long long      delay_ms;     /* after the first failure; 0: 1 s */
    long long      delay_ms_max; /* 0: 60 s */
    double         factor;       /* from one delay to the next; 0: 2 */
    int            timeout_ms;   /* of a tx_body; 0: 10 s */
} PawlStep;
/* *ret_result (may be NULL): JSON. */
PawlFlow pawl_run_step(PawlRun *run, const PawlStep *step, const char **ret_result);

typedef struct {
    const char *name;
    const char *response;   /* of this name; NULL: that of the call */
    int         count;      /* so many of them; 0: 1 */
    long long   timeout_ms; /* 0: none */
    /* Instead of response: up to 20 names, ended by NULL. The first response of one of them ends the wait, and *ret_response (may be NULL) is its name. */
    const char *const *any;
    const char       **ret_response;
} PawlWait;
/* *ret_result: the payload as JSON, or an array of several; NULL: they did not come in time. */
PawlFlow pawl_run_wait(PawlRun *run, const PawlWait *wait, const char **ret_result);
/* 0 or more. */
PawlFlow pawl_run_sleep(PawlRun *run, const char *name, long long ms);

typedef struct {
    const char *name;
    const char *domain, *type;
    const char *payload;    /* JSON; the state of a child. NULL: {} */
    long long   timeout_ms; /* then the call fails; 0: none */
} PawlCall;
/* Send a command, or start a process, and wait for its outcome: its result as JSON. */
PawlFlow pawl_run_command(PawlRun *run, const PawlCall *call, const char **ret_result);
PawlFlow pawl_run_child(PawlRun *run, const PawlCall *call, const char **ret_result);

/* Recorded when it is called first: the database's time in milliseconds since 1970, a random number. */
PawlFlow pawl_run_time(PawlRun *run, const char *name, long long *ret_ms);
PawlFlow pawl_run_random(PawlRun *run, const char *name, unsigned long long *ret_number);
/* Which way a process goes where its function was changed, so that processes that wait meanwhile go on: the version that is recorded; newest, an integer
 * from 1, which is recorded, if the process has no record of a later call; else 0, the way before the change. The same change again has the same
 * answer. If a newer program has recorded a greater version, this worker gives the process back, for one that knows it. */
PawlFlow pawl_run_version(PawlRun *run, const char *change, int newest, int *ret_version);
/* Merge a JSON object into the state, once. uses_state: it was computed from pawl_run_state(); if that has changed since, nothing is
 * written and the function is called again. */
PawlFlow pawl_run_patch(PawlRun *run, const char *name, const char *patch, bool uses_state);
/* Continue as new: return what this returns. The process goes on under its id with a fresh history, and its function is called with this state, a JSON object, as
 * its input; NULL: the present state. Responses that no call has waited for stay for it; what it has sent and has not ended is canceled; what its steps
 * have done is not compensated any more. Keys of steps are others in each life. PAWL_FLOW_FAILED: the process is canceled. */
PawlFlow pawl_run_continue(PawlRun *run, const char *state);
/* What follows undoes what was done; when the function returns PAWL_FLOW_NEXT the process ends as COMPENSATED. A process that an operator cancels,
 * or whose deadline passes with the action compensate, fails at its first call that has no record; after this one its calls work again. */
PawlFlow pawl_run_compensating(PawlRun *run);
/* What a complete process returns, as JSON; why it was compensated, or failed although no call did, as text. Both are copied. */
void pawl_run_result(PawlRun *run, const char *json);
void pawl_run_reason(PawlRun *run, const char *format, ...) __attribute__((__format__(printf, 2, 3)));

/* ---- the wallet ledger ---- */

typedef struct {
    const char *owner;    /* 1 to 255 bytes */
    const char *asset;    /* NULL: CREDIT, here and below */
    long long   floor;    /* how far below zero the balance may go; 0 or less */
    const char *metadata; /* JSON object; NULL: none */
    const char *txn_id;   /* UUID; NULL: owner and asset are the key */
} PawlWallet;

/* An owner has one wallet in each asset. *ret_is_new (may be NULL) is false if it existed already. PAWL_REFUSED: it
 * exists with another floor or metadata. */
PawlStatus pawl_wallet_open(Pawl *pawl, const PawlWallet *wallet, int timeout_ms, bool *ret_is_new, PawlError *error);

typedef struct {
    long long balance, held, floor;
    long long available; /* balance - held - floor */
    long long version;   /* the number of its entries */
    bool      frozen;
} PawlBalance;

/* Its present state. "@system" is the world outside. PAWL_NOT_FOUND: there is no such wallet. */
PawlStatus pawl_wallet_get(Pawl *pawl, const char *owner, const char *asset, int timeout_ms, PawlBalance *ret_balance,
                           PawlError *error);

/* Starts at 1, so that a forgotten one is noticed. The comments list the fields besides txn_id and metadata. */
typedef enum {
    PAWL_TOPUP = 1, /* owner, amount, asset: from @system */
    PAWL_SPEND,     /* owner, amount, asset: to @system */
    PAWL_TRANSFER,  /* from, to, amount, asset */
    PAWL_MULTI,     /* legs: all or nothing */
    PAWL_HOLD,      /* owner, amount, asset, expires_in_s: reserves it */
    PAWL_CAPTURE,   /* hold, to, amount, asset: takes it, whole or in parts; to NULL: @system */
    PAWL_VOID,      /* hold, asset: releases what is left */
    PAWL_REFUND,    /* transaction, amount, asset: returns it, whole or in parts */
    PAWL_FREEZE,    /* owner, asset: blocks all movements */
    PAWL_UNFREEZE,  /* owner, asset */
    PAWL_FLOOR      /* owner, floor, asset: changes how far below zero the balance may go */
} PawlKind;

/* One of the wallets that a PAWL_MULTI changes. Amounts sum to zero in each asset. */
typedef struct {
    const char *owner;
    long long   amount; /* negative: pays */
    const char *asset;
} PawlLeg;

typedef struct {
    PawlKind    kind;
    const char *txn_id; /* UUID, the idempotency key: posted any number of times, it takes effect once */
    union {
        const char *owner; /* whose */
        const char *from;  /* of a transfer: the same field */
    };
    const char *to;
    long long   amount; /* 1 to 2^53 - 1; 0, for capture and refund: all that is left */
    const char *asset;  /* with hold or transaction NULL is that one's */
    union {
        const char *hold;        /* by its txn_id */
        const char *transaction; /* of a refund: the same field */
    };
    const PawlLeg *legs;
    int            leg_count;    /* 2 to 100 */
    long long      expires_in_s; /* then the hold is released; 0: never */
    long long      floor;        /* 0 or less */
    const char    *metadata;     /* JSON object; NULL: none */
} PawlOperation;

/* The verdict on one operation. The numbers are the wallet's after it was posted; 0 if it was not. */
typedef struct {
    bool      replayed; /* the key was used before: this is the first verdict */
    long long amount;   /* what was moved */
    long long balance_before, balance, held, available, version;
    const char
             *type;  /* of a refusal, for programs: "insufficient-funds", "key-reused", ...; a constant. NULL: posted */
    PawlError error; /* PAWL_OK: posted. PAWL_REFUSED, PAWL_NOT_FOUND: the reason */
} PawlPosted;

/* Threads that post at the same time share a transaction. A refusal that depends on the ledger is
 * kept under its key; PAWL_TRY_AGAIN and the like are not. After PAWL_UNKNOWN post it again: it still takes effect once.
 * ret_posted may be NULL. */
PawlStatus pawl_post(Pawl *pawl, const PawlOperation *operation, int timeout_ms, PawlPosted *ret_posted,
                     PawlError *error);
/* Up to 8,000 in order, each with its verdict in ret_posted[i] (which may be NULL); a refused one does not affect the
 * others. PAWL_OK: all were posted; otherwise the first failure. */
PawlStatus pawl_post_many(Pawl *pawl, const PawlOperation *operations, int count, int timeout_ms,
                          PawlPosted *ret_posted, PawlError *error);
/* The same as part of a transaction: posted if and only if it commits, and so are refusals kept. A refusal does not abort the
 * transaction; a body that returns it makes them all or none. The wallets stay locked until the transaction ends. */
PawlStatus pawl_tx_post(PawlTx *tx, const PawlOperation *operation, PawlPosted *ret_posted);
PawlStatus pawl_tx_post_many(PawlTx *tx, const PawlOperation *operations, int count, PawlPosted *ret_posted);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
