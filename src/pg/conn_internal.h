/*
 * conn_internal.h - a connection from inside: conn_open.c makes it, conn_statement.c runs statements on it,
 * conn_relay.c bounds what it holds, conn.c ends it.
 */
#ifndef PG_CONN_INTERNAL_H
#define PG_CONN_INTERNAL_H

#include <stdatomic.h>
#include <stdint.h>

#include "pg/conn.h"

#define LARGE_BYTES   ((size_t)4 << 20) /* see conn_is_large() */
#define PREPARED_MAX  32
#define PREPARED_NAME 24 /* "pawl_" and a hash in hexadecimal digits, with the NUL */

/* A statement that the server has prepared on this connection. */
typedef struct {
    const char *sql; /* a constant of the program */
    char        name[PREPARED_NAME];
} Prepared;

/* May statements be prepared on this connection? */
typedef enum {
    PREPARE_UNKNOWN, /* until the server has said which process runs its statements */
    PREPARE_ALLOWED,
    PREPARE_REFUSED,
} PrepareRight;

struct Conn {
    PGconn *native;
    /* The right to cancel, made once, because asking for it later from another thread would race with libpq. Taken by
     * the thread that cancels, or by the one that sends what may commit, for as long as that is under way: never by
     * both. */
    _Atomic(PGcancel *) cancel;
    atomic_bool         interrupted;
    int                 socket; /* the server's: libpq's own, or behind the relay */
    int                 relay;  /* the other end of what libpq has for its socket */
    bool                is_relayed;
    bool                condemned;
    bool                abandoned;      /* a statement inside a transaction may still run on the server */
    bool                may_commit;     /* what is under way may be committing */
    bool                unreplicated;   /* it has committed without its standby */
    bool                is_large;       /* see conn_is_large() */
    size_t              received_bytes; /* since the last result: see invariant 6 of conn.h */
    PrepareRight        prepare;
    Prepared            prepared[PREPARED_MAX];
    int                 prepared_count;   /* those that the server has confirmed */
    int                 prepared_pending; /* behind them: those whose preparation was sent */
    char                name[CONNINFO_TEXT_SIZE];
};

/* ---- conn_relay.c: world_socket_wait(), PQconsumeInput() and PQflush() for any connection ---- */

int  conn_wait(Conn *conn, int events, Deadline deadline);
bool conn_take_input(Conn *conn);
int  conn_put_output(Conn *conn);
void conn_relay_end(Conn *conn); /* after PQfinish() */

/* ---- conn_prepared.c ---- */

/* The statement under its name, or NULL: it is to be sent as a text. *ret_is_new: the caller prepares it, and calls
 * conn_prepared_confirm() when the server has done so; for several in the order in which they were found. */
const Prepared *conn_prepared_find(Conn *conn, const char *sql, bool *ret_is_new);
void            conn_prepared_confirm(Conn *conn);
void            conn_prepared_forget(Conn *conn); /* the session was reset */
/* The row of sql_pg_limits, from the first call on. */
void conn_prepared_learn(Conn *conn, const PGresult *limits);
/* Does the error say that a prepared statement cannot be used? Then none is prepared on this connection any more. */
bool conn_prepared_failed(Conn *conn, const char *sqlstate);

#endif
