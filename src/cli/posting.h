/*
 * posting.h - the verdict on an operation, as text and as JSON.
 */
#ifndef CLI_POSTING_H
#define CLI_POSTING_H

#include "base/writer.h"
#include "wallet/post.h"

/* "posted", "already posted", "refused" or "already refused". */
const char *posting_status(const WalletItem *item);
/* Members of one object, which is open: what was posted, or why it was not. */
void posting_write(Writer *writer, const WalletItem *item);
/* One that was posted, line by line to standard output. */
void posting_print(const WalletItem *item);

#endif
