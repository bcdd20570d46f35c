/*
 * ledger_internal.h - what the files of the ledger share.
 *
 *   ledger.c         single operations and reads, through combiners
 *   ledger_batch.c   batches, each in a transaction of its own
 *   locked.c         wallets that were found locked
 */
#ifndef WALLET_LEDGER_INTERNAL_H
#define WALLET_LEDGER_INTERNAL_H

#include <stdint.h>

#include "base/clock.h"
#include "base/sync.h"
#include "pg/combiner.h"
#include "pg/lock_calls.h"
#include "wallet/ledger.h"
#include "wallet/post.h"

#define LOCKED_MAX 64  /* wallets remembered */
#define LOCKED_MS  300 /* for how long: somewhat longer than a round of retries takes to find it locked again */

/* Wallets that were found locked by another transaction: for a moment no other batch waits for them. A wallet is remembered
 * by the hash of its owner; a collision only defers an operation that could have run. Threads: any. */
typedef struct {
    Mutex mutex; /* guards the rest */
    struct {
        uint64_t owner;
        Mono     at; /* .ns 0: none */
    } list[LOCKED_MAX];
} LockedWallets;

void locked_init(LockedWallets *locked);
void locked_done(LockedWallets *locked);
/* owner NULL: nothing is added. */
void locked_add(LockedWallets *locked, const char *owner);
/* Was one of the item's wallets found locked at or after `since`? */
bool locked_has(LockedWallets *locked, const WalletItem *item, Mono since);

struct Ledger {
    Pool         *pool;
    Combiner     *posts, *retries, *reads;
    LockCalls    *batches;
    LockedWallets locked;
};

#endif
