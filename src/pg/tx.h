/*
 * tx.h - a transaction is a function, run again from its very beginning when PostgreSQL asks for it.
 *
 * tx_run() acquires a connection, begins, calls the body, commits, and obeys the verdict, always within the deadline:
 *   FINAL    roll back, return
 *   RETRY    roll back, wait 100, 200, 400 ms, run again; not after a time limit that used up the request's own time
 *   EVICT    close the connection, run again on another: commit was never sent, so nothing happened
 *   RESOLVE  the answer to commit was lost. A keyed body runs again on another connection, where inserting its key
 *            waits for a commit still under way and then finds the first reply. Without a key: ERR_UNKNOWN
 *
 * The body touches nothing but the arena, *context and the database, and sets all of *context that it sets anew in each
 * try; that is the whole contract. What a try put into the arena is given back before the next one begins.
 * A doubt is settled by success, or by a refusal of the database itself (SQLSTATE) in a later try; by nothing else.
 *
 * READ COMMITTED. Statement and lock timeouts are the time left, set locally; an abandoned transaction is ended by the
 * server (idle_in_transaction_session_timeout), so a stopped pod does not keep its locks.
 * Threads: any; a transaction runs on the thread of its caller. Ownership: rows live in the arena of the options.
 */
#ifndef PG_TX_H
#define PG_TX_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "pg/pool.h"
#include "pg/query.h"

typedef ErrorCode TxBody(Tx *tx, void *context, Error *reterr);

typedef struct {
    const char *name;         /* the operation, for logs and metrics */
    Deadline    deadline;     /* the request's own; every wait fits inside it */
    Arena      *arena;        /* where rows live; rewound between tries, freed by the caller */
    int         tries_max;    /* with the first one; 0: the pool's operation_retry */
    bool        keyed;        /* the body begins with the key check: it may be run again after a lost commit */
    int         lock_ms;      /* how long it waits for a lock, and then lock_once; 0: until the deadline */
    int         statement_ms; /* how long one of its statements may take; 0: until the deadline */
    bool        lock_once;    /* a lock that is not granted (55P03) is not tried again: the caller does that */
    bool        read_only;    /* nothing to commit: a lost commit is simply run again */
    bool        prepare;      /* db_call(): the statement is a constant of the program and runs often: see ConnParams */
    bool is_foreign; /* the body runs code that is not pawl's: what it leaves in the session is removed at the end */
    /* Set by the body when the connection was lost while code of others ran on it: it may be the cause, and is not run
     * again. NULL: never. */
    const bool *is_suspect;
    bool        urgent; /* may use the pool's reserved connections: heartbeats */
    bool        soon;   /* goes before what is not urgent: settles */
    bool        prompt; /* refused immediately while the breaker is open: the caller can do without the database */
} TxOptions;

must_check ErrorCode tx_run(Pool *pool, const TxOptions *options, TxBody *body, void *context, Error *reterr);

/* The work is one statement: one round trip, autocommit. So any lost answer is RESOLVE: run again if keyed or
 * read_only, else ERR_UNKNOWN. The first form maps all rows, the second wants exactly one. */
must_check ErrorCode db_call_many(Pool *pool, const TxOptions *options, const char *sql, DbArgs args,
                                  const DbShape *shape, void *ret_rows, int *ret_count, Error *reterr);
must_check ErrorCode db_call(Pool *pool, const TxOptions *options, const char *sql, DbArgs args, const DbShape *shape,
                             void *ret_row, Error *reterr);

#endif
