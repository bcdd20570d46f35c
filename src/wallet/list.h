/*
 * list.h - lists of wallets, holds and transactions, newest first.
 *
 * A page reads a bounded number of rows, whether they match or not, so it may be short, even empty, and have a next one.
 * Threads: any. Ownership: results live in the arena.
 */
#ifndef WALLET_LIST_H
#define WALLET_LIST_H

#include "wallet/wallet.h"

/* What is in all lists; what a list does not take is NULL. */
typedef struct {
    const char *owner;         /* or the beginning of one and "*"; NULL: all */
    const char *asset;         /* NULL: all */
    const char *status, *kind; /* of holds, of transactions */
    const char *since, *until; /* RFC 3339, both included; NULL: no limit */
    int64_t     before;        /* cursor: ids below this; 0: from the newest */
    int         limit;         /* 1 to 1000 */
} LedgerFilter;

/* id and searched_to come first: see db_page_next(). */
#define WALLET_LINE_COLUMNS(X, T)                       \
    X(T, I64, id, searched_to)                          \
    X(T, TEXT, owner, asset)                            \
    X(T, I64, balance, held, available, floor, version) \
    X(T, BOOL, frozen)                                  \
    X(T, TIME, created_at)
DB_ROW(WalletLine, WALLET_LINE_COLUMNS);

#define HOLD_LINE_COLUMNS(X, T)            \
    X(T, I64, id, searched_to)             \
    X(T, UUID, txn_id)                     \
    X(T, TEXT, owner, asset, status)       \
    X(T, I64, amount, captured, remaining) \
    X(T, TIME, expires_at, at)
DB_ROW(HoldLine, HOLD_LINE_COLUMNS);

/* refusal: its problem type; reason: in words. */
#define TRANSACTION_LINE_COLUMNS(X, T)                             \
    X(T, I64, id, searched_to)                                     \
    X(T, UUID, txn_id, ref)                                        \
    X(T, TEXT, kind, status, owner, other, asset, refusal, reason) \
    X(T, I64, amount)                                              \
    X(T, TIME, at)
DB_ROW(TransactionLine, TRANSACTION_LINE_COLUMNS);

extern const char *const hold_statuses[], *const transaction_statuses[]; /* ended by NULL */

/* *ret_next: where the next page begins; 0: there is none. ERR_INVALID names the member of the filter. */
must_check ErrorCode ledger_wallets(Pool *pool, Deadline deadline, Arena *arena, const LedgerFilter *filter,
                                    WalletLine **ret_list, int *ret_count, int64_t *ret_next, Error *reterr);
must_check ErrorCode ledger_holds(Pool *pool, Deadline deadline, Arena *arena, const LedgerFilter *filter,
                                  HoldLine **ret_list, int *ret_count, int64_t *ret_next, Error *reterr);
must_check ErrorCode ledger_transactions(Pool *pool, Deadline deadline, Arena *arena, const LedgerFilter *filter,
                                         TransactionLine **ret_list, int *ret_count, int64_t *ret_next, Error *reterr);

/* As JSON, the same for HTTP and the command line. */
RowWrite wallet_line_write, hold_line_write, transaction_line_write;

#endif
