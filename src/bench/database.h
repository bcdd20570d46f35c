/*
 * database.h - a temporary database beside the configured one: measurements run there and touch nothing else.
 *
 * Invariants
 *   1. What is measured is measured in the database that was just created: after connecting, its name is queried, so that
 *      a pooler that leads every name to one database is found out before anything is written.
 *   2. The name is remembered before the database is created, so database_close() drops it however far database_open() came.
 * Threads: one opens and closes; the pool may be used by any.
 */
#ifndef BENCH_DATABASE_H
#define BENCH_DATABASE_H

#include "base/arena.h"
#include "base/error.h"
#include "pg/conn.h"
#include "pg/pool.h"

#define DATABASE_NAME_SIZE 64

typedef struct {
    char        name[DATABASE_NAME_SIZE]; /* "" until it may exist */
    const char *home;                     /* url of the configured database; borrowed */
    const char *url, *listen_url;         /* the same servers, this database */
    const char *version, *synchronous_commit, *fsync;
    Pool       *pool;
} BenchDatabase;

typedef struct {
    const char *url, *listen_url; /* borrowed until database_close() */
    int         connections;
} BenchDatabaseOptions;

/* Create, reach, migrate. ERR_DENIED: the role may not create databases. ERR_USAGE: this address leads to one database only.
 * Call database_close() in any case. */
must_check ErrorCode database_open(const BenchDatabaseOptions *options, Arena *arena, BenchDatabase *ret_database,
                                   Error *reterr);
/* Drop it, if there is anything to drop. An error names the database that is left behind. */
must_check ErrorCode database_close(BenchDatabase *database, Error *reterr);
/* Vacuum and, where the role may, checkpoint: so that the preparation does not disturb the measurement. */
must_check ErrorCode database_settle(BenchDatabase *database, Error *reterr);

/* ---- another connection that holds a transaction open, so that vacuum cannot remove rows that were deleted since ---- */

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
