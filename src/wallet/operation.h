/*
 * operation.h - operations as JSON: the fields of each kind, and the verdict.
 *
 * The tables are made from the arguments in kind.h; HTTP bodies, OpenAPI, the lines of pawl wallet batch and the wallet steps of definitions
 * are read by them.
 * Threads: any; the tables are constant. Ownership: texts of a request live in the reader's arena.
 */
#ifndef WALLET_OPERATION_H
#define WALLET_OPERATION_H

#include "base/reader.h"
#include "base/writer.h"
#include "wallet/post.h"

typedef struct {
    const char *kind; /* only in a line: as it was found by the name */
    const char *txn_id, *owner, *other, *asset, *ref, *metadata;
    int64_t     amount, expires_in_s, floor;
    ReaderArray legs; /* of WalletLeg */
} WalletRequest;

/* Every field of the kind, into a WalletRequest. */
extern const FieldTable wallet_operation_tables[WALLET_KIND_COUNT];
/* The same and "kind", which names it. */
extern const FieldTable wallet_operation_lines[WALLET_KIND_COUNT];
/* The same without the subject: an HTTP body whose path names the owner, the hold or the transaction. */
extern const FieldTable wallet_operation_bodies[WALLET_KIND_COUNT];

WalletItem wallet_request_item(WalletKind kind, const WalletRequest *request);

/* Members of an object that is open: what was posted and the wallet's state after it. */
void wallet_posted_write(Writer *writer, const WalletItem *item);
/* The same for one that was not posted: txn_id, the type of the problem, and the reason. */
void wallet_refusal_write(Writer *writer, const WalletItem *item);

/* ---- many transfers as JSON ---- */

typedef struct {
    bool        atomic;
    ReaderArray items; /* of WalletRequest */
} WalletBatchRequest;
extern const FieldTable wallet_batch_table;

/* Members of an object that is open: "posted" and "refused" are counts, "items" has a verdict for each. None says whether it is new, so that
 * a repeat has the bytes of the first response. */
void wallet_verdicts_write(Writer *writer, WalletItem *const *items, int count);

#endif
