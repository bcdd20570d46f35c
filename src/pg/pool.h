/*
 * pool.h - a bounded set of PostgreSQL connections, acquired one at a time.
 *
 *     FREE     -> OPENING   [pool_acquire: none is idle, below size_max; janitor: probe, or replacing a broken one]
 *     OPENING  -> ACQUIRED  [it connected]                OPENING  -> FREE     [it did not]
 *     IDLE     -> ACQUIRED  [pool_acquire, newest first]  IDLE     -> CHECKED  [janitor: every 30 s `select 1`]
 *     CHECKED  -> IDLE      [it answered]                 CHECKED  -> FREE     [it did not: closed]
 *     ACQUIRED -> IDLE      [pool_release]                ACQUIRED -> ACQUIRED [pool_release: handed to the first
 * waiter] ACQUIRED -> FREE      [pool_release: bad, old, of a former generation, or inside a transaction: closed] IDLE
 * -> FREE      [janitor: idle too long, too old; or the breaker opened: closed]
 *     ACQUIRED -> ENDING   [pool_release: closed, and code that is not pawl's may still run in its server process]
 *     ENDING   -> FREE     [janitor: that transaction is over]
 *
 * Invariants
 *   1. acquired + idle + checked + opening + ending <= size_max, always.
 *   2. An idle connection is outside any transaction.
 *   3. A checkout ends exactly once: by pool_release(), or by scoped(pool_release).
 *   4. Waiters are served in the order they came, urgent ones first, then those that wish to be served soon. A slot
 *      that becomes free goes to the first of them: no waiter sleeps while a slot it could use lies idle. Callers that
 *      are not urgent leave size_reserved connections to urgent ones.
 *   5. While the breaker is not closed only the janitor connects, to probe, with a deadline of its own: an impatient
 * caller cannot fail the probe, and recovery needs no traffic. Callers whose deadline comes after the next probe wait
 * for it, a bounded number of them; the others are refused immediately with the last error and the time of the next
 * probe.
 *   6. The breaker counts callers that could not connect, each once, however often it tried; statements that got no
 * answer; and a server out of resources. Silence alone never opens it: before that the janitor asks the server itself,
 * because a statement may wait for a lock or a standby. A lost connection alone is not counted: the next connect shows
 * whether the server is gone. Nor is the silence met by a caller with less than a second left, nor a server that has no
 *      connection to spare: then the caller waits for one of ours. Only an answered statement sets the count back.
 *   7. Code that is not pawl's cannot outlive its transaction's deadline: it can catch a cancel and the server's time
 *      limits, and tell the server not to look for a closed socket. It cannot catch the end of its process. So a pool
 *      that has run such code keeps one connection more, over size_max, which the janitor uses for that. It has another
 *      login, because such code may end every session of its own one; the same login does it only if the other one has
 *      no right to. A commit is never ended: the process is spared while it has no snapshot.
 * Threads: every function may be called from any thread. The mutex guards all fields but the open connection of an
 * acquired slot, and is never held across a round trip.
 * Ownership: the pool owns connections; a Checkout borrows one.
 */
#ifndef PG_POOL_H
#define PG_POOL_H

#include "base/clock.h"
#include "base/error.h"
#include "pg/breaker.h"
#include "pg/conn.h"
#include "pg/retry.h"

#define POOL_SIZE_MAX 1000

typedef struct Pool     Pool;
typedef struct Checkout Checkout;

/* Zero means the default in the comment. */
typedef struct {
    const char   *conninfo;         /* borrowed until pool_new() returns */
    const char   *end_conninfo;     /* conninfo; borrowed too; of the login that ends processes: invariant 7 */
    const char   *application_name; /* "pawl" */
    int           size_min;         /* 2; kept open once opened */
    int           size_max;         /* 10; 1..POOL_SIZE_MAX */
    int           size_reserved;    /* 0; of size_max, for urgent callers only; less than size_max */
    int           idle_ms_max;      /* 5 min, then closed */
    int           lifetime_ms_max;  /* 1 h, less up to a tenth at random, then recycled */
    int           connect_ms_max;   /* 5 s for one try */
    int           check_ms;         /* 30 s between health checks */
    int           check_ms_max;     /* 2 s for one check */
    int           breaker_failures; /* 5 */
    int           breaker_first_ms; /* 1 s before the first probe, doubling */
    int           breaker_open_ms;  /* 30 s between probes at most */
    BackoffPolicy connect_retry;    /* retry_connect */
    BackoffPolicy operation_retry;  /* retry_operation: for tx_run() and db_call() */
    bool          is_relayed;       /* its connections run code that is not pawl's: see conn_relay() */
    bool          no_janitor;       /* a test calls pool_tend() itself */
} PoolOptions;

typedef struct {
    int          size, idle, acquired, opening, waiting, size_min, size_max;
    BreakerState breaker;
    int          next_probe_ms; /* while open */
    char         last_error[512];
} PoolStatus;

/* ERR_USAGE: bad conninfo or sizes. ERR_INTERNAL: no thread can be started. Opens nothing yet. */
must_check ErrorCode pool_new(const PoolOptions *options, Pool **ret_pool, Error *reterr);
/* No more checkouts: waiters get ERR_STOPPING. Waits for checkouts until the deadline, then cancels what runs and waits
 * no longer. false: checkouts were still out. */
bool pool_drain(Pool *pool, Deadline deadline);
/* Every checkout has ended. */
void pool_free(Pool *pool);
SCOPED(Pool, pool_free)

typedef enum {
    POOL_FRESH =
        1, /* on a connection made just now: after one broke, another idle one may be as dead and prove nothing */
    POOL_URGENT = 2, /* may use the reserved connections, and goes before those that may not: heartbeats */
    POOL_PROMPT = 4, /* waits for no probe: it can do without the database */
    POOL_SOON   = 8, /* goes before all but urgent ones: settles */
} PoolWish;

/* Wait until the deadline for a connection. ERR_BUSY: none became free. ERR_UNAVAILABLE: the breaker is open, or
 * connecting failed. ERR_REFUSED: the server said no. ERR_STOPPING: the pool is closing. */
must_check ErrorCode pool_acquire(Pool *pool, Deadline deadline, Checkout **ret_checkout, Error *reterr);
/* The same with wishes, PoolWish bits. */
must_check ErrorCode pool_acquire_as(Pool *pool, int wishes, Deadline deadline, Checkout **ret_checkout, Error *reterr);
void                 pool_release(Checkout *checkout);
SCOPED(Checkout, pool_release)
Conn *checkout_conn(Checkout *checkout);
/* A transaction has begun on this checkout that runs code which is not pawl's, in this process of the server. */
void checkout_runs_foreign(Checkout *checkout, int process);
/* Report how a statement on this checkout ended: feeds the breaker and decides whether the connection is kept. */
void checkout_report(Checkout *checkout, ErrorCode code, const Error *error);

/* Is the schema newer than this program? migrate_watch() finds out; then nothing is claimed, by workers or over HTTP.
 * Returns what was set before. */
bool pool_outdated_set(Pool *pool, bool is_outdated);
bool pool_is_outdated(const Pool *pool);

const BackoffPolicy *pool_operation_retry(const Pool *pool);
/* Do they connect to the same database, by the same conninfo? */
bool pool_is_alike(const Pool *pool, const Pool *other);

/* One turn of the janitor: close, recycle, check, replace, probe. Returns when it should run next. */
Mono pool_tend(Pool *pool);
void pool_status(Pool *pool, PoolStatus *ret_status);

#endif
