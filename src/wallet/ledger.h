/*
 * ledger.h - posting and looking through combiners: callers at the same time share transactions.
 *
 * Nobody waits when it is quiet; see pg/combiner.h for the promises.
 * Threads: any. Ownership: items are borrowed; result texts live in the arena.
 */
#ifndef WALLET_LEDGER_H
#define WALLET_LEDGER_H

#include "wallet/post.h"

typedef struct Ledger Ledger;

Ledger *ledger_new(Pool *pool);
void    ledger_free(Ledger *ledger);
SCOPED(Ledger, ledger_free)

/* Checks and posts. Returns the item's verdict. */
must_check ErrorCode ledger_post(Ledger *ledger, Deadline deadline, Arena *arena, WalletItem *item, Error *reterr);
/* The same without waiting: told(context) comes exactly once, on another thread or in here; then item->code is the verdict
 * and item->error has its words. Item and arena are borrowed until then. */
void ledger_post_begin(Ledger *ledger, Deadline deadline, Arena *arena, WalletItem *item, void (*told)(void *context),
                       void *context);
/* ERR_NOT_FOUND: there is no such wallet. asset NULL: CREDIT. */
must_check ErrorCode ledger_look(Ledger *ledger, Deadline deadline, Arena *arena, const char *owner, const char *asset,
                                 Wallet *ret_wallet, Error *reterr);

#endif
