/*
 * locked.h - wallets that were found locked by another transaction: for a moment no other batch waits for them.
 *
 * A wallet is remembered by the hash of its owner; a collision only defers an operation that could have run. Threads: any.
 */
#ifndef WALLET_LOCKED_H
#define WALLET_LOCKED_H

#include <stdint.h>

#include "base/clock.h"
#include "base/sync.h"
#include "wallet/post.h"

#define LOCKED_MAX 64  /* wallets remembered */
#define LOCKED_MS  300 /* for how long: somewhat longer than a round of retries takes to find it locked again */

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

#endif
