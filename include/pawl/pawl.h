/*
 * pawl.h - the library: a PostgreSQL to lean on, the command bus and the wallet ledger, from C.
 *
 *     Pawl *pawl;
 *     PawlError error;
 *     if (pawl_open("postgresql://app@db/shop", &pawl, &error) != PAWL_OK) { puts(error.text); return 1; }
 *     pawl_transaction(pawl, &(PawlTransaction){.name = "order", .timeout_ms = 2000, .keyed = true}, body, &order, &error);
 *     pawl_close(pawl);
 *
 * Behind it: a pool that survives outages, a breaker, retries that know what may be retried, and one deadline for all of
 * a call's waits. See docs/library.md.
 *
 * In every struct of options zero means the default. The library writes nothing to standard output or error.
 * Threads: a Pawl and a PawlWorker may be used by any number of threads at once; a PawlTx and a PawlJob belong to the
 * function they were given to.
 * Ownership: what is passed in is borrowed until the call returns. pawl_close() frees a Pawl, after its workers; what a
 * PawlTx or a PawlJob holds lives until its function returns.
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

/* What a caller does next: a program looks at this, a person at PawlError.text. */
typedef enum {
    PAWL_OK,
    PAWL_REFUSED, /* it will not work like this: bad input, conflict, missing rights */
    PAWL_NOT_FOUND,
    PAWL_TRY_AGAIN,   /* busy or out of time: nothing was done, the same call may work later */
    PAWL_UNAVAILABLE, /* no database: nothing was done */
    PAWL_UNKNOWN,     /* it may have been done: only a keyed transaction, run again, can tell */
    PAWL_FAILED       /* a bug, here or there */
} PawlStatus;

typedef struct {
    PawlStatus status;
    char       sqlstate[6]; /* "" when PostgreSQL did not speak */
    char       text[512];
} PawlError;

const char *pawl_version(void);

/* ---- the database ---- */

/* A pool for one database, opened on first use. error may be NULL everywhere. */
PawlStatus pawl_open(const char *database_url, Pawl **ret_pawl, PawlError *error);
/* Waits for calls that other threads are still inside of. NULL is allowed. */
void pawl_close(Pawl *pawl);
/* Does the database answer within this time? */
PawlStatus pawl_ping(Pawl *pawl, int timeout_ms, PawlError *error);

/* A transaction is a function. It is run again from its beginning when PostgreSQL asks for it (deadlock, lost
 * connection), so it touches nothing but its context and the database. Return PAWL_OK to commit, anything else to roll
 * back. keyed: it begins by inserting an idempotency key, so it may also be run again when the answer to commit was
 * lost. */
typedef PawlStatus PawlBody(PawlTx *tx, void *context);
typedef struct {
    const char *name;       /* for logs and messages */
    int         timeout_ms; /* for everything: waiting, retries, commit; 0: 10 s */
    bool        keyed;
} PawlTransaction;
PawlStatus pawl_transaction(Pawl *pawl, const PawlTransaction *options, PawlBody *body, void *context,
                            PawlError *error);

/* One statement with text parameters ($1, $2, ...; NULL is SQL null). A result is rows of texts. */
typedef struct {
    int                rows, columns;
    const char *const *values;  /* rows * columns, row by row; NULL is SQL null */
    long long          changed; /* rows inserted, updated or deleted */
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
    const char *reply_to;       /* the queue that is told how it ended; NULL: none */
    const char *correlation_id; /* goes with the reply; NULL: none */
    const char *batch_id;       /* UUID of an open batch; NULL: none */
    const char *actor;          /* who sends, for the audit; NULL: nobody in particular */
} PawlCommand;
#define PAWL_PRIORITY_LOWEST (-1) /* what is 0 elsewhere: here 0 is the default */

/* What came of one command. */
typedef struct {
    char        id[37];
    bool        is_new; /* false: it had been sent before, and nothing changed */
    const char *status; /* how it stands: "PENDING", "COMPLETED", ...; a constant. NULL: it was not sent */
    PawlError   error;  /* PAWL_OK: it is there. PAWL_REFUSED: a bad field, or this id has another type or payload.
                           PAWL_NOT_FOUND: there is no such batch */
} PawlSent;

/* timeout_ms 0: 10 s. After PAWL_UNKNOWN send it again with the id in *ret_sent: it will still be one command. Threads
 * that send at the same time share a transaction. ret_sent may be NULL. */
PawlStatus pawl_send(Pawl *pawl, const PawlCommand *command, int timeout_ms, PawlSent *ret_sent, PawlError *error);
/* Up to 10,000 at once, each with its verdict in ret_sent[i] (NULL: no matter): a bad one does not keep the others from
 * being sent. PAWL_OK: all are there; otherwise the first failure. */
PawlStatus pawl_send_many(Pawl *pawl, const PawlCommand *commands, int count, int timeout_ms, PawlSent *ret_sent,
                          PawlError *error);
/* The same as part of a transaction: sent if it commits. A refusal leaves the transaction well; the body decides. */
PawlStatus pawl_tx_send(PawlTx *tx, const PawlCommand *command, PawlSent *ret_sent);
PawlStatus pawl_tx_send_many(PawlTx *tx, const PawlCommand *commands, int count, PawlSent *ret_sent);

/* ---- handling commands ---- */

/* How a command ended. Begins at 100, so that a PawlStatus returned by mistake is noticed. */
typedef enum {
    PAWL_JOB_COMPLETE = 100,
    PAWL_JOB_RETRY, /* a passing trouble: again, while attempts are left; then to the troubleshooting queue */
    PAWL_JOB_FAIL,  /* trying again would not help: to the troubleshooting queue */
    PAWL_JOB_REJECT /* a business refusal: FAILED, and that is the answer */
} PawlOutcome;

/* One command to be handled. */
typedef struct {
    const char *command_id, *domain, *type;
    const char *payload; /* JSON */
    int         attempt, max_attempts;
    long long   retry_in_ms; /* the handler may set it, for PAWL_JOB_RETRY; 0: by the domain's schedule */
} PawlJob;

/* The result of what was completed, as JSON, and the reason why it was not, as text. Both are copied. A result that is no
 * JSON or larger than 4 MB fails the command; of a reason the first 8 kB are kept. */
void pawl_job_result(PawlJob *job, const char *json);
void pawl_job_error(PawlJob *job, const char *format, ...) __attribute__((__format__(printf, 2, 3)));
/* Should the handler end? Its time is up, its command was canceled or given to another worker, or the worker must stop.
 * Its outcome counts only if the command is still its own. */
bool pawl_job_is_stopped(const PawlJob *job);

/* A handler is called on threads of the worker, for one command at a time on each. It may be called again for the same
 * command, after a crash or a lost lease: make what it does harmless when done twice, by the command's id. */
typedef PawlOutcome PawlHandler(PawlJob *job, void *context);
/* The same inside a transaction that also ends the command: what it writes by tx happens exactly once. PAWL_JOB_COMPLETE
 * commits, anything else rolls back. Like a PawlBody it is run again from its beginning when PostgreSQL asks for it. */
typedef PawlOutcome PawlTxHandler(PawlJob *job, PawlTx *tx, void *context);

typedef struct {
    const char        *domain;
    const char *const *types;      /* only these, ended by NULL; NULL: all */
    PawlHandler       *handler;    /* this one, */
    PawlTxHandler     *tx_handler; /* or this one */
    void              *context;
    int                concurrency; /* handlers at once, 1 to 1000; 0: 8 */
    int                batch;       /* most commands in one claim, 1 to 10,000; 0: as many as there is room for */
    int                lease_ms;    /* 100 ms to 1 day, kept while the handler runs; 0: 30 s */
    int                timeout_ms;  /* a handler that runs longer is told to stop, and tried again; 0: none */
    int                stop_ms;     /* how long handlers may go on after pawl_worker_stop(); 0: 30 s */
    bool               drain;       /* end when nothing is left in line, delayed, or with any worker */
    const char        *listen_url;  /* direct, where pawl_open() was given a pooler's; NULL: the same */
} PawlWork;

/* Counted since the start. */
typedef struct {
    long long claimed, completed;
    long long retried; /* another attempt follows */
    long long failed;  /* in troubleshooting: a permanent failure, or the last attempt */
    long long rejected;
    long long lost;             /* the lease was gone: the outcome changed nothing */
    long long released;         /* not begun, given back to the queue without using up an attempt */
    int       running, waiting; /* right now */
} PawlCounts;

/* A worker has connections of its own, so whatever its handlers do, leases are kept. PAWL_REFUSED: options out of range. */
PawlStatus pawl_worker_open(Pawl *pawl, const PawlWork *options, PawlWorker **ret_worker, PawlError *error);
/* Works, once, until told to stop or drained; waits out outages. PAWL_REFUSED and the like: it cannot work like this, e.g.
 * the schema is missing. */
PawlStatus pawl_worker_run(PawlWorker *worker, PawlError *error);
/* From any thread, and from a signal handler. No more commands are claimed; those not begun are given back. */
void pawl_worker_stop(PawlWorker *worker);
void pawl_worker_counts(PawlWorker *worker, PawlCounts *ret_counts);
/* After pawl_worker_run() returned, or before it was called. NULL is allowed. */
void pawl_worker_close(PawlWorker *worker);

/* ---- the wallet ledger ---- */

typedef struct {
    const char *owner;    /* 1 to 255 bytes */
    const char *asset;    /* NULL: CREDIT, here and below */
    long long   floor;    /* how far below zero it may go; 0 or less */
    const char *metadata; /* JSON object; NULL: none */
    const char *txn_id;   /* UUID; NULL: the wallet is its own key */
} PawlWallet;

/* An owner has one wallet in each asset. *ret_is_new (may be NULL) is false when it was there already. PAWL_REFUSED: with
 * another floor or metadata. */
PawlStatus pawl_wallet_open(Pawl *pawl, const PawlWallet *wallet, int timeout_ms, bool *ret_is_new, PawlError *error);

typedef struct {
    long long balance, held, floor;
    long long available; /* balance - held - floor */
    long long version;   /* how many entries it has */
    bool      frozen;
} PawlBalance;

/* How it stands. "@system" is the world outside. PAWL_NOT_FOUND: there is no such wallet. */
PawlStatus pawl_wallet_look(Pawl *pawl, const char *owner, const char *asset, int timeout_ms, PawlBalance *ret_balance,
                            PawlError *error);

/* Begins at 1, so that a forgotten one is noticed. Behind each: what it takes, beside txn_id and metadata. */
typedef enum {
    PAWL_TOPUP = 1, /* owner, amount, asset: from @system */
    PAWL_SPEND,     /* owner, amount, asset: to @system */
    PAWL_TRANSFER,  /* from, to, amount, asset */
    PAWL_MULTI,     /* legs: all or nothing */
    PAWL_HOLD,      /* owner, amount, asset, expires_in_s: set aside, still the owner's */
    PAWL_CAPTURE,   /* hold, to, amount, asset: taken, whole or in parts; to NULL: @system */
    PAWL_VOID,      /* hold, asset: what is left of it is given back */
    PAWL_REFUND,    /* transaction, amount, asset: back the way it came, whole or in parts */
    PAWL_FREEZE,    /* owner, asset: nothing moves in or out */
    PAWL_UNFREEZE,  /* owner, asset */
    PAWL_FLOOR      /* owner, floor, asset: how far below zero it may go from now on */
} PawlKind;

/* One of the wallets that a PAWL_MULTI changes. Amounts sum to zero in each asset. */
typedef struct {
    const char *owner;
    long long   amount; /* negative: pays */
    const char *asset;
} PawlLeg;

typedef struct {
    PawlKind    kind;
    const char *txn_id; /* UUID, the key: the same operation under it happens once, however often it is posted */
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
    long long      expires_in_s; /* then the hold is given back by itself; 0: never */
    long long      floor;        /* 0 or less */
    const char    *metadata;     /* JSON object; NULL: none */
} PawlOperation;

/* What came of one operation. The numbers are the owner's when it was posted; 0 if it was not. */
typedef struct {
    bool        replayed; /* the key was used before: this is what was said then */
    long long   amount;   /* what was moved */
    long long   balance_before, balance, held, available, version;
    const char *type;  /* why not, for programs: "insufficient-funds", "key-reused", ...; a constant. NULL: posted */
    PawlError   error; /* PAWL_OK: posted. PAWL_REFUSED, PAWL_NOT_FOUND: not, and why */
} PawlPosted;

/* timeout_ms 0: 10 s. Threads that post at the same time share a transaction. A refusal that lies in the books is kept
 * under its key and told again; PAWL_TRY_AGAIN and the like are not. After PAWL_UNKNOWN post it again: it will still
 * happen once. ret_posted may be NULL. */
PawlStatus pawl_post(Pawl *pawl, const PawlOperation *operation, int timeout_ms, PawlPosted *ret_posted,
                     PawlError *error);
/* Up to 8,000 in order, each with its verdict in ret_posted[i] (NULL: no matter): one that is refused does not keep the
 * others from being posted. PAWL_OK: all are posted; otherwise the first failure. */
PawlStatus pawl_post_many(Pawl *pawl, const PawlOperation *operations, int count, int timeout_ms,
                          PawlPosted *ret_posted, PawlError *error);
/* The same as part of a transaction: posted if it commits, and a refusal is kept if it commits. A refusal leaves the
 * transaction well; a body that returns it makes them all or none. The wallets are locked from here to the end. */
PawlStatus pawl_tx_post(PawlTx *tx, const PawlOperation *operation, PawlPosted *ret_posted);
PawlStatus pawl_tx_post_many(PawlTx *tx, const PawlOperation *operations, int count, PawlPosted *ret_posted);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
