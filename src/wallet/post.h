/*
 * post.h - money moves: one operation with its key, and the verdict on it.
 *
 * Invariants
 *   1. Every operation has its key (txn_id) before it is posted, so posting is keyed: after a lost answer it is posted
 *      again and still happened once.
 *   2. A refusal is the verdict of its item and no one else's.
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
    const char *owner;        /* whose; who pays. NULL where ref or legs say it */
    const char *other;        /* who gets it: transfer, capture */
    const char *asset;        /* NULL: CREDIT, or that of ref */
    const char *ref;          /* the hold or the transaction, by its txn_id */
    int64_t     amount;       /* 0: none, or all that is left (capture, refund) */
    int64_t     expires_in_s; /* hold; 0: never */
    int64_t     floor;        /* WALLET_FLOOR */
    WalletLegs  legs;         /* multi */
    const char *metadata;     /* JSON object; NULL: none */

    /* The verdict. The error says why not, and its type is that of the refusal: insufficient-funds, hold-ended, ...
     * OK; ERR_CONFLICT: refused; ERR_NOT_FOUND: unknown wallet or ref; ERR_KEY_REUSED; ERR_INVALID. */
    ErrorCode   code;
    Error       error;
    bool        replayed; /* the key was used before: this is what was said then */
    const char *posted_owner, *posted_other, *posted_asset;
    int64_t     posted_amount;
    int64_t     balance_before, balance, held, available, version; /* of the owner, when it was posted */
    int64_t     balance_now;                                       /* and now */
    int64_t     decided_at; /* microseconds since 1970; 0: nothing is kept under the key */
} WalletItem;

/* What can be known without the database: key, arguments of the kind, names, ranges, legs. ERR_INVALID begins with the field as the interface
 * calls it. */
must_check ErrorCode wallet_check(const WalletItem *item, Error *reterr);
/* About how many bytes it takes on its way. */
size_t wallet_weigh(const WalletItem *item);

/* All in one transaction, in order; a verdict for each. The return value is about the transaction. Every item was
 * checked before. SQL decides about a key that comes twice, one after the other: for few items. */
must_check ErrorCode wallet_post(Pool *pool, Deadline deadline, Arena *arena, WalletItem **items, int count,
                                 Error *reterr);
/* The same, but it waits for no lock longer than others take to post: ERR_BUSY with 55P03, after a single try. */
must_check ErrorCode wallet_post_nowait(Pool *pool, Deadline deadline, Arena *arena, WalletItem **items, int count,
                                        Error *reterr);
/* The same, but operations on wallets that another transaction has locked are left out, and nothing is kept of them:
 * wallet_is_locked(), and posted_owner is whose wallet it is. */
must_check ErrorCode wallet_post_unlocked(Pool *pool, Deadline deadline, Arena *arena, WalletItem **items, int count,
                                          Error *reterr);
bool                 wallet_is_locked(const WalletItem *item);
/* The same in a transaction of the caller, who commits it or not; result texts live in its arena. */
must_check ErrorCode wallet_post_in(Tx *tx, WalletItem **items, int count, Error *reterr);
/* The same for up to WALLET_BATCH_MAX. A key that comes twice is judged here: the second one is told what the first one
 * was told. atomic: all or none. When one is not posted, none is and nothing is kept: *ret_refused tells which was the
 * first, the refused ones say why, and the others say that it is because of that one. -1: all went well. */
must_check ErrorCode wallet_post_many(Pool *pool, Deadline deadline, Arena *arena, WalletItem **items, int count,
                                      bool atomic, int *ret_refused, Error *reterr);

#endif
