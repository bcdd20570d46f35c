/*
 * entry.h - reads the entries of a wallet, one transaction, or one hold.
 *
 * Threads: any. Ownership: results live in the arena.
 */
#ifndef WALLET_ENTRY_H
#define WALLET_ENTRY_H

#include "base/text.h"
#include "base/writer.h"
#include "wallet/wallet.h"

#define ENTRIES_MAX 10000

#define ENTRY_COLUMNS(X, T)                           \
    X(T, I64, number, version, amount, balance, held) \
    X(T, UUID, txn_id)                                \
    X(T, TEXT, kind, other)                           \
    X(T, JSONB, metadata)                             \
    X(T, TIME, at)
DB_ROW(Entry, ENTRY_COLUMNS);

typedef struct {
    const char *owner, *asset, *kind; /* asset NULL: CREDIT; kind NULL: all */
    const char *since, *until;        /* RFC 3339, both included; NULL: no limit */
    int64_t     seen;                 /* number of the last one seen; 0: none */
    int         limit;                /* 1 to ENTRIES_MAX */
} EntryFilter;

/* A kind that entries can have, or NULL: all. ERR_INVALID names the field and the nearest kind. */
must_check ErrorCode entry_check_kind(const char *field, const char *kind, Error *reterr);
/* Newest first. ERR_NOT_FOUND: there is no such wallet; an empty list says that nothing matches. */
must_check ErrorCode entry_list(Pool *pool, Deadline deadline, Arena *arena, const EntryFilter *filter,
                                Entry **ret_list, int *ret_count, Error *reterr);
RowWrite             entry_write; /* of an Entry */

/* As JSON. ERR_NOT_FOUND: no such thing. */
must_check ErrorCode transaction_show(Pool *pool, Deadline deadline, Arena *arena, const char *txn_id,
                                      const Bound *owners, const char **ret_json, Error *reterr);
must_check ErrorCode hold_show(Pool *pool, Deadline deadline, Arena *arena, const char *txn_id, const char **ret_json,
                               Error *reterr);
/* Only its entries, which never change. */
must_check ErrorCode transaction_entries(Pool *pool, Deadline deadline, Arena *arena, const char *txn_id,
                                         const char **ret_json, Error *reterr);

/* ---- cursors ---- */

/* The position at which a list of entries continues, as one word that a client sends back. It carries its filter, so that the next page
 * is one of the same list whatever else is given or left out. It is bound to the owner and to the list that it came from. It is neither
 * secret nor an authorization: a caller that may read may read from any position. */
/* list: "entries", "statement". number: of the last entry returned. */
const char *cursor_text(Arena *arena, const char *list, const EntryFilter *filter, int64_t number);
/* Into the filter, which has what was given beside the cursor. cursor NULL: nothing happens. ERR_INVALID begins with the
 * parameter: "cursor" when it is not one of this list and owner, else the one that differs from what it carries. */
must_check ErrorCode cursor_take(Arena *arena, const char *list, const char *cursor, EntryFilter *filter,
                                 Error *reterr);

/* ---- statements: oldest first, page by page ---- */

/* Up to filter->limit entries after the last one seen. kind plays no part. Balance and version are running ones, also for
 * @system, whose entries lie in stripes. ERR_NOT_FOUND: there is no such wallet. */
must_check ErrorCode statement_page(Pool *pool, Deadline deadline, Arena *arena, const EntryFilter *filter,
                                    Entry **ret_list, int *ret_count, Error *reterr);

/* As a line of CSV, quoted where it must be; the line end is the caller's. */
#define ENTRY_CSV_HEAD "at,txn_id,kind,amount,balance,held,version,other,metadata"
void entry_csv_write(Text *text, const Entry *entry);

#endif
