/*
 * library_internal.h - what the files of the library share: library.c has the pool and transactions, send.c sends commands, work.c
 * handles them, wallet.c posts to the ledger.
 */
#ifndef LIB_LIBRARY_INTERNAL_H
#define LIB_LIBRARY_INTERNAL_H

#include "base/error.h"
#include "base/sync.h"
#include "bus/send.h"
#include "bus/waker.h"
#include "pawl/pawl.h"
#include "pg/pool.h"
#include "pg/query.h"
#include "wallet/ledger.h"

#define LIBRARY_NAME        "libpawl"
#define LIBRARY_TIMEOUT_MS  10000
#define LIBRARY_ARENA_BYTES ((size_t)256 << 20)

struct Pawl {
    char   *url;
    Pool   *pool;
    Sender *sender;
    Waker  *waker;
    Ledger *ledger;

    Mutex mutex; /* guards calls */
    Cond  left;
    int   calls; /* under way */
};

struct PawlTx {
    Tx        *tx;
    ErrorCode  code; /* of the last call that failed */
    Error     *why;
    PawlError *error;
    WakeList   wakes; /* what the transaction has sent so far */
};

/* scoped(library_leave) Pawl *inside = library_enter(pawl);  pawl_close() waits for the end of the block. */
Pawl *library_enter(Pawl *pawl);
void  library_leave(Pawl *pawl);
SCOPED(Pawl, library_leave)

Deadline library_deadline(int timeout_ms);
/* The status and error of the public header; error may be NULL. */
PawlStatus library_answer(ErrorCode code, const Error *why, PawlError *error);

#endif
