/*
 * statement.h - the entries of a wallet, oldest first, page by page.
 *
 * Threads: any. Ownership: results live in the arena.
 */
#ifndef WALLET_STATEMENT_H
#define WALLET_STATEMENT_H

#include "base/text.h"
#include "wallet/entry.h"

/* Up to filter->limit entries after the last one seen. kind plays no part. Balance and version run along: also those of
 * @system, whose entries lie in stripes. ERR_NOT_FOUND: there is no such wallet. */
must_check ErrorCode statement_page(Pool *pool, Deadline deadline, Arena *arena, const EntryFilter *filter,
                                    Entry **ret_list, int *ret_count, Error *reterr);

/* As a line of CSV, quoted where it must be; the line end is the caller's. */
#define ENTRY_CSV_HEAD "at,txn_id,kind,amount,balance,held,version,other,metadata"
void entry_csv_write(Text *text, const Entry *entry);

#endif
