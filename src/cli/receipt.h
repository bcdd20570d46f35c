/*
 * receipt.h - one transaction of the ledger with everything it changed, as text.
 */
#ifndef CLI_RECEIPT_H
#define CLI_RECEIPT_H

#include "base/arena.h"
#include "base/error.h"

/* json: as wallet.transaction() writes it. */
must_check ErrorCode receipt_print(const char *json, Arena *arena, Error *reterr);

#endif
