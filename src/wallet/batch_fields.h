/*
 * batch_fields.h - many transfers as JSON: the fields of the request, and their verdicts.
 *
 * Threads: any; the table is constant. Ownership: texts of a request live in the reader's arena.
 */
#ifndef WALLET_BATCH_FIELDS_H
#define WALLET_BATCH_FIELDS_H

#include "wallet/operation.h"

typedef struct {
    bool        atomic;
    ReaderArray items; /* of WalletRequest */
} WalletBatchRequest;
extern const FieldTable wallet_batch_table;

/* Members of an object that is open: "posted" and "refused" are counts, "items" has a verdict for each. None says whether it is new, so that
 * a repeat has the bytes of the first response. */
void wallet_verdicts_write(Writer *writer, WalletItem *const *items, int count);

#endif
