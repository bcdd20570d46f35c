/*
 * handler_tx.h - the part shared by handlers that settle their command in their own transaction: what they wrote and that
 * it is done commit together or not at all, so their effects in this database happen exactly once.
 *
 * Invariants
 *   1. Only OUTCOME_COMPLETE commits. Any other outcome, and any failure, rolls back what the body wrote; the worker then
 *      settles by itself.
 *   2. The lease's token is the key: run again after a lost commit, the settle finds no lease, and all is rolled back.
 *   3. What a body leaves in its session (settings, advisory locks, temporary tables) ends with its transaction.
 *   4. stop() cancels the statement that runs; a body that is run again after it is not begun.
 *   5. Several commands that share a transaction: those of ret_settle that have a status were settled by it. Each other one has no effect and
 *      is to be run alone: nothing that happens in a shared transaction is an attempt of a command.
 *   6. How many share one follows the time of their calls: one at first, twice as many while that takes less than half of SHARED_US, and one
 *      again, for a while, after a transaction that was undone. Its statement takes at most SHARED_LIMIT_MS.
 * Threads: any handler thread. Ownership: embedded as the first member of the real handler.
 */
#ifndef BUS_HANDLER_TX_H
#define BUS_HANDLER_TX_H

#include "base/sync.h"
#include "bus/worker.h"
#include "pg/query.h"

/* Runs inside the transaction; run again from its beginning when PostgreSQL asks for it. OK: outcome, result, error and
 * delay of *ret_settle are filled. A failure that is final decides by its SQLSTATE: QU065 is a business refusal, QU070 a
 * permanent failure, any other one is tried again. */
typedef ErrorCode TxHandlerBody(Tx *tx, Job *job, void *context, SettleItem *ret_settle, Error *reterr);

/* The same for several jobs, once. OK: the items that it settled have their status. */
typedef ErrorCode TxSharedBody(Tx *tx, Job *const *jobs, SettleItem *const *items, int count, void *context,
                               Error *reterr);

#define SHARED_US           10000 /* what the calls of a shared transaction should take together */
#define SHARED_LIMIT_MS     100L  /* what they may: then each command is run alone */
#define SHARED_PAUSE_MS     100   /* after one that was undone commands are run alone for this time, which doubles */
#define SHARED_PAUSE_MS_MAX 10000

typedef struct {
    Handler base;
    Pool   *pool;
    Mutex   mutex; /* guards job->run, which is the connection that a body uses, and the rest */
    int     shared_most;
    int     shared_pause_ms; /* the last pause */
    Mono    shared_at;       /* the pause ends */
} TxHandler;

/* run: calls tx_handler_run() with the handler's own body. */
void tx_handler_init(TxHandler *handler, Pool *pool, void (*run)(Handler *handler, Job *job, SettleItem *ret_settle));
void tx_handler_done(TxHandler *handler);
void tx_handler_run(TxHandler *handler, Job *job, TxHandlerBody *body, void *context, SettleItem *ret_settle);
/* Under stop(): the body of this job uses this connection from now on; NULL: none. */
void tx_handler_publish(TxHandler *handler, Job *job, Conn *conn);

/* handler_shared.c: for Handler.run_shared and Handler.shared_most. */
void tx_handler_run_shared(TxHandler *handler, Job *const *jobs, SettleItem *const *items, int count,
                           TxSharedBody *body, void *context);
int  tx_handler_shared_most(Handler *handler);
/* One command was run alone, and its calls took this time. */
void tx_handler_took(TxHandler *handler, int count, int64_t us);

#endif
