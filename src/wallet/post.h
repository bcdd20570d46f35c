/*
 * post.h - operations of the ledger, each with its key, and their verdicts.
 *
 * Invariants
 *   1. Every operation has its key (txn_id) before it is posted: after a lost reply it is posted again, and happens once.
 *   2. A refusal is the verdict of its own item only.
 * Threads: any. Ownership: items are borrowed; result texts live in the arena.
 */
#ifndef WALLET_POST_H
#define WALLET_POST_H

#include "wallet/kind.h"
#include "wallet/leg.h"
#include "wallet/wallet.h"

#define WALLET_BATCH_MAX        8000
#define WALLET_EXPIRES_IN_S_MAX 315360000 /* ten years */

/* One operation; kind.h says which kind takes which fields, sql/wallet/post.sql what they mean. */
typedef struct {
    WalletKind  kind;
    const char *txn_id;       /* the key: a UUID in lower case; always given */
    const char *owner;        /* the wallet's owner; the payer. NULL where ref or legs name the wallets */
    const char *other;        /* the payee: transfer, capture */
    const char *asset;        /* NULL: CREDIT, or that of ref */
    const char *ref;          /* the hold or the transaction, by its txn_id */
    int64_t     amount;       /* 0: none, or all that is left (capture, refund) */
    int64_t     expires_in_s; /* hold; 0: never */
    int64_t     floor;        /* WALLET_FLOOR */
    WalletLegs  legs;         /* multi */
    const char *metadata;     /* JSON object; NULL: none */

    /* The verdict. The error has the reason of a refusal, and its type: insufficient-funds, hold-ended, ...
     * OK; ERR_CONFLICT: refused; ERR_NOT_FOUND: unknown wallet or ref; ERR_KEY_REUSED; ERR_INVALID. */
    ErrorCode   code;
    Error       error;
    bool        replayed; /* the key was used before: this is the first verdict */
    const char *posted_owner, *posted_other, *posted_asset;
    int64_t     posted_amount;
    int64_t     balance_before, balance, held, available, version; /* of the owner, when it was posted */
    int64_t     balance_now;                                       /* and now */
    int64_t     decided_at; /* microseconds since 1970; 0: nothing is kept under the key */
} WalletItem;

/* Checks what needs no database: key, arguments of the kind, names, ranges, legs. The text of ERR_INVALID begins with the field's name in
 * the interface. */
must_check ErrorCode wallet_check(const WalletItem *item, Error *reterr);
/* About how many bytes it takes in a call. */
size_t wallet_weigh(const WalletItem *item);

/* Posts all items in one transaction, in order; each gets a verdict. The return value is about the transaction. Every item must have been
 * checked. A repeated key splits the call into parts in SQL: only for few items. */
must_check ErrorCode wallet_post(Pool *pool, Deadline deadline, WalletLock lock, Arena *arena, WalletItem **items,
                                 int count, Error *reterr);
/* WALLET_LOCK_SKIP left it out: nothing was written, and posted_owner is the owner of the locked wallet. */
bool wallet_is_locked(const WalletItem *item);
/* As wallet_post() with WALLET_LOCK_WAIT, in the caller's transaction; result texts live in its arena. */
must_check ErrorCode wallet_post_in(Tx *tx, WalletItem **items, int count, Error *reterr);
/* As wallet_post() with WALLET_LOCK_WAIT, for up to WALLET_BATCH_MAX items. A repeated key is compared here: its later items get the verdict of the first.
 * atomic: all or none. If one is refused, none is posted and no refusal is kept: *ret_refused is the position of the first, refused items
 * have their own error, and the others one that names that item. -1: all were posted. lock_ms: how long a locked wallet is waited for, then
 * ERR_BUSY with 55P03; 0: until the deadline. */
must_check ErrorCode wallet_post_many(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, WalletItem **items,
                                      int count, bool atomic, int *ret_refused, Error *reterr);
/* Of the wallets that the items name, the owners of those that another transaction has locked now. */
must_check ErrorCode wallet_locked(Pool *pool, Deadline deadline, Arena *arena, WalletItem *const *items, int count,
                                   const char ***ret_owners, int *ret_count, Error *reterr);

#endif
