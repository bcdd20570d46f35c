/*
 * open_fields.h - a new wallet as JSON: the fields of the request. wallet_write() of wallet/wallet.h writes the wallet.
 *
 * Threads: any; the table is constant. Ownership: texts of a request live in the reader's arena.
 */
#ifndef WALLET_OPEN_FIELDS_H
#define WALLET_OPEN_FIELDS_H

#include "base/reader.h"
#include "wallet/wallet.h"

typedef struct {
    const char *txn_id, *owner, *asset, *metadata;
    int64_t     floor;
    bool        has_floor;
} WalletOpenRequest;
extern const FieldTable wallet_open_table;

WalletNew wallet_open_request_new(const WalletOpenRequest *request);

#endif
