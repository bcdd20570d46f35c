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

typedef struct {
    Handler base;
    Pool   *pool;
    Mutex   mutex; /* guards job->run: the connection that a body uses */
} TxHandler;

/* run: calls tx_handler_run() with the handler's own body. */
void tx_handler_init(TxHandler *handler, Pool *pool, void (*run)(Handler *handler, Job *job, SettleItem *ret_settle));
void tx_handler_done(TxHandler *handler);
void tx_handler_run(TxHandler *handler, Job *job, TxHandlerBody *body, void *context, SettleItem *ret_settle);

#endif
