/*
 * ledger.h - posting and reading through combiners: concurrent callers share transactions; see pg/combiner.h.
 *
 * Invariant: a wallet that another transaction keeps locked delays only the operations on it. A shared transaction waits for a lock
 * for at most 100 ms. Operations on a locked wallet are deferred: they are retried apart from the others until their deadline. No try
 * waits longer than that, and together they use at most a share of the pool's connections (combiner_share). The same holds for batches,
 * apart from single operations (pg/lock_calls.h).
 * Threads: any. Ownership: items are borrowed; result texts live in the arena.
 */
#ifndef WALLET_LEDGER_H
#define WALLET_LEDGER_H

#include "pg/lock_calls.h"
#include "wallet/post.h"

typedef struct Ledger Ledger;

Ledger *ledger_new(Pool *pool);
void    ledger_free(Ledger *ledger);
SCOPED(Ledger, ledger_free)

/* One submitted operation. */
typedef struct {
    WalletItem *item;
    Arena      *arena;
    Deadline    deadline;
    void (*on_done)(void *context);
    void *context;
    /* The ledger's own. */
    Ledger *ledger;
    Mono    submitted;
    bool    skipped; /* left out of its batch, because its wallet was found locked after it was submitted */
} LedgerPost;

/* Checks and posts: on_done(context) is called exactly once, on another thread or in here; then item->code is the verdict and
 * item->error has its words. The post, its item and its arena are borrowed until then. */
void ledger_submit(Ledger *ledger, LedgerPost *post);
/* Submit and wait. Returns the item's verdict. */
must_check ErrorCode ledger_post(Ledger *ledger, Deadline deadline, Arena *arena, WalletItem *item, Error *reterr);

/* Many operations in one transaction, as wallet_post_many() posts them. */
typedef struct {
    WalletItem **items; /* checked */
    int          count;
    bool         atomic;
    Arena       *arena;
    void (*on_done)(void *context);
    void *context;
    /* The ledger's own; call.code and call.error are the verdict about the transaction, refused is that of wallet_post_many(). */
    LockCall call;
    int      refused;
    Ledger  *ledger;
} LedgerMany;

/* on_done(context) is called exactly once, on another thread or in here. The batch, its items and its arena are borrowed until then. */
void ledger_submit_many(Ledger *ledger, Deadline deadline, LedgerMany *batch);

/* ERR_NOT_FOUND: there is no such wallet. asset NULL: CREDIT. */
must_check ErrorCode ledger_get(Ledger *ledger, Deadline deadline, Arena *arena, const char *owner, const char *asset,
                                Wallet *ret_wallet, Error *reterr);

#endif
