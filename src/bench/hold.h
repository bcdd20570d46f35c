/*
 * hold.h - another connection that holds a transaction open, so that vacuum cannot remove rows that were deleted since.
 */
#ifndef BENCH_HOLD_H
#define BENCH_HOLD_H

#include "bench/database.h"
#include "pg/conn.h"

typedef enum {
    HOLD_NOTHING,
    HOLD_SNAPSHOT, /* repeatable read: an old snapshot */
    HOLD_XID,      /* the same with a transaction id, as one that has written */
} HoldKind;

/* *ret_conn is NULL for HOLD_NOTHING. conn_close() ends it. */
must_check ErrorCode hold_begin(const BenchDatabase *database, HoldKind kind, Conn **ret_conn, Error *reterr);
/* Is it still open? The server may have ended it; the measurement is void then. */
must_check ErrorCode hold_check(Conn *conn, Error *reterr);

#endif
