/*
 * ledger_internal.h - what the files of the ledger share.
 *
 *   ledger.c         single operations and reads, through combiners
 *   ledger_batch.c   batches, each in a transaction of its own
 *   locked.c         wallets that were found locked
 */
#ifndef WALLET_LEDGER_INTERNAL_H
#define WALLET_LEDGER_INTERNAL_H

#include "pg/combiner.h"
#include "pg/lock_calls.h"
#include "wallet/ledger.h"
#include "wallet/locked.h"

struct Ledger {
    Pool         *pool;
    Combiner     *posts, *retries, *reads;
    LockCalls    *batches;
    LockedWallets locked;
};

#endif
