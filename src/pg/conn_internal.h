/*
 * conn_internal.h - a connection from inside: conn_open.c makes it, conn_statement.c runs statements on it, conn.c ends it.
 */
#ifndef PG_CONN_INTERNAL_H
#define PG_CONN_INTERNAL_H

#include <stdatomic.h>

#include "pg/conn.h"

struct Conn {
    PGconn *native;
    /* The right to cancel, made once, because asking for it later from another thread would race with libpq. Taken by the
     * thread that cancels, or by the one that sends what may commit, for as long as that is under way: never by both. */
    _Atomic(PGcancel *) cancel;
    atomic_bool         interrupted;
    int                 socket;
    bool                condemned;
    bool                abandoned;    /* a statement inside a transaction may still run on the server */
    bool                may_commit;   /* what is under way may be committing */
    bool                unreplicated; /* it has committed without its standby */
    char                name[CONNINFO_TEXT_SIZE];
};

#endif
