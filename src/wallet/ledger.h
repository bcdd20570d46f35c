/*
 * ledger.h - posting and reading through combiners: callers at the same time share transactions; see pg/combiner.h.
 *
 * Invariant: a wallet that another transaction keeps locked delays only the operations on it. A shared transaction waits for a lock
 * for 100 ms; operations that did not get theirs are put off: they are tried again, apart from the others, until their
 * deadline. No try holds a connection for longer than that, and no more than a share of the pool (combiner_share).
 * Threads: any. Ownership: items are borrowed; result texts live in the arena.
 */
#ifndef WALLET_LEDGER_H
#define WALLET_LEDGER_H

#include "wallet/post.h"

typedef struct Ledger Ledger;

Ledger *ledger_new(Pool *pool);
void    ledger_free(Ledger *ledger);
SCOPED(Ledger, ledger_free)

/* One operation on its way. */
typedef struct {
    WalletItem *item;
    Arena      *arena;
    Deadline    deadline;
    void (*on_done)(void *context);
    void *context;
    /* The ledger's own. */
    Ledger *ledger;
    Mono    submitted;
    bool    skipped; /* not sent, because its wallet turned out to be locked meanwhile */
} LedgerPost;

/* Checks and posts: on_done(context) is called exactly once, on another thread or in here; then item->code is the verdict and
 * item->error has its words. The post, its item and its arena are borrowed until then. */
void ledger_submit(Ledger *ledger, LedgerPost *post);
/* Submit and wait. Returns the item's verdict. */
must_check ErrorCode ledger_post(Ledger *ledger, Deadline deadline, Arena *arena, WalletItem *item, Error *reterr);
/* ERR_NOT_FOUND: there is no such wallet. asset NULL: CREDIT. */
must_check ErrorCode ledger_get(Ledger *ledger, Deadline deadline, Arena *arena, const char *owner, const char *asset,
                                Wallet *ret_wallet, Error *reterr);

#endif
