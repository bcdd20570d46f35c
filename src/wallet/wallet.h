/*
 * wallet.h - wallets: names, opening, present and past states.
 *
 * Everything about money is decided in SQL (sql/wallet); this module has the arrays, the combiners and the messages.
 *
 * Invariants
 *   1. (owner, asset) is one wallet for ever. Opening it again changes nothing.
 *   2. Amounts fit into what every JSON reader can hold.
 * Threads: any. Ownership: texts given are borrowed; results live in the arena.
 */
#ifndef WALLET_WALLET_H
#define WALLET_WALLET_H

#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"
#include "pg/pool.h"
#include "pg/query.h"

#define WALLET_AMOUNT_MAX    INT64_C(9007199254740991) /* 2^53 - 1 */
#define WALLET_OWNER_MAX     255
#define WALLET_METADATA_MAX  65536
#define WALLET_ASSET_DEFAULT "CREDIT"
#define WALLET_SYSTEM        "@system"
#define WALLET_LOCK_MS       100 /* far longer than a shared batch keeps a lock */

/* What a call does about a lock that another transaction holds: waits until its deadline; waits at most WALLET_LOCK_MS, then ERR_BUSY with
 * 55P03 after a single try; or leaves out the operations on that wallet, and waits only for what is not a wallet, as BRIEFLY. */
typedef enum { WALLET_LOCK_WAIT, WALLET_LOCK_BRIEFLY, WALLET_LOCK_SKIP } WalletLock;

/* ---- names; ERR_INVALID begins with the field ---- */

/* 1 to 255 bytes of UTF-8 without control characters, not beginning with "@". */
must_check ErrorCode wallet_check_owner(const char *field, const char *owner, Error *reterr);
/* The same, or "@system": for reads. */
must_check ErrorCode wallet_check_owner_seen(const char *field, const char *owner, Error *reterr);
/* NULL is fine: the default. */
must_check ErrorCode wallet_check_asset(const char *field, const char *asset, Error *reterr);
/* NULL is fine: none. Well-formed JSON; its numbers must not be longer, written out, than what may be kept. */
must_check ErrorCode wallet_check_metadata(const char *metadata, Error *reterr);

/* ---- opening ---- */

typedef struct {
    const char *owner;
    const char *asset;    /* NULL: CREDIT */
    const char *metadata; /* JSON object; NULL: none */
    const char *txn_id;   /* NULL: the wallet is its own key */
    int64_t     floor;    /* how far below zero it may go: -WALLET_AMOUNT_MAX to 0; afterwards the present one */
    bool
        has_floor; /* a floor of 0 was given, so an existing wallet must have been opened with it; other floors imply it */

    bool    is_new;
    int64_t created_at;  /* microseconds since 1970 */
    int64_t balance_now; /* 0 when new */
} WalletNew;

/* ERR_KEY_REUSED: it was opened with another floor or metadata than given, or the key was used for something else. lock: WAIT or BRIEFLY,
 * for another transaction that opens the same wallet or asset. */
must_check ErrorCode wallet_open(Pool *pool, Deadline deadline, WalletLock lock, Arena *arena, WalletNew *wallet,
                                 Error *reterr);

/* ---- reading ---- */

/* ord is the place of what was asked for, from 1. */
#define WALLET_COLUMNS(X, T)                            \
    X(T, I32, ord)                                      \
    X(T, TEXT, owner, asset)                            \
    X(T, I64, balance, held, available, floor, version) \
    X(T, BOOL, frozen)                                  \
    X(T, JSONB, metadata)                               \
    X(T, TIME, created_at)
DB_ROW(Wallet, WALLET_COLUMNS);
/* @system goes as low as it must, and nothing is said about that. */
bool     wallet_has_floor(const char *owner);
RowWrite wallet_write;

/* In one snapshot; a row for each that exists, with its ord. assets may be NULL. */
must_check ErrorCode wallet_get(Pool *pool, Deadline deadline, Arena *arena, const char *const *owners,
                                const char *const *assets, int count, Wallet **ret_list, int *ret_count, Error *reterr);
/* All of an owner, by asset. */
must_check ErrorCode wallet_list(Pool *pool, Deadline deadline, Arena *arena, const char *owner, Wallet **ret_list,
                                 int *ret_count, Error *reterr);

/* How a wallet stood after the last entry not later than this moment (RFC 3339). ERR_NOT_FOUND: it was not there. */
typedef struct {
    const char *owner, *asset, *at; /* as asked for */
    int64_t     balance, held, available, floor, version;
} WalletPast;
RowWrite             wallet_past_write;
must_check ErrorCode wallet_get_at(Pool *pool, Deadline deadline, Arena *arena, const char *owner, const char *asset,
                                   const char *at, WalletPast *ret_past, Error *reterr);

/* ERR_NOT_FOUND: it is not there. */
must_check ErrorCode wallet_must_exist(Pool *pool, Deadline deadline, Arena *arena, const char *owner,
                                       const char *asset, Error *reterr);
/* The words for that. */
ErrorCode wallet_missing(const char *owner, const char *asset, Error *reterr);

/* RFC 3339 in UTC to the microsecond: a query for the moment of an answer finds what happened then. */
#define WALLET_TIME_SIZE WALL_TEXT_SIZE
void wallet_time_text(int64_t micros, char *ret_text);

/* ---- on the clock ---- */

/* One chunk of transactions that can no longer change; how many were sealed. */
must_check ErrorCode wallet_seal(Pool *pool, Deadline deadline, int limit, int *ret_count, Error *reterr);

/* ---- a new wallet as JSON ---- */

typedef struct {
    const char *txn_id, *owner, *asset, *metadata;
    int64_t     floor;
    bool        has_floor;
} WalletOpenRequest;
extern const FieldTable wallet_open_table;

WalletNew wallet_open_request_new(const WalletOpenRequest *request);

/* ---- assets ---- */

/* An asset is created with its first wallet. From now on each posted transaction of this asset sends a command "wallet.posted" to a domain of the bus, in the same
 * transaction. domain NULL: no longer. ERR_INVALID: a bad asset or domain. */
must_check ErrorCode asset_emit_to(Pool *pool, Deadline deadline, const char *asset, const char *domain, Error *reterr);

#endif
