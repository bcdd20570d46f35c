/*
 * conn.h - one PostgreSQL connection where every wait has a deadline.
 *
 * The only files that use a PGconn's socket. libpq runs in non-blocking mode: connect, send and receive are
 * loops over world_socket_wait(), so no call outlasts its deadline and a simulation can script the other side.
 *
 * Invariants
 *   1. After any failure that leaves the protocol in doubt (deadline passed, socket died) conn_is_good() is false
 *      and stays false: the connection is closed, never reused.
 *   2. A statement that may be committing is never canceled: a cancel ends the wait for synchronous standbys, and the
 * commit becomes visible although no standby has it. That is every statement outside a transaction, and commit. When
 * such a one is given up the socket is closed without a cancel. Outside a transaction conn_call() sets
 * statement_timeout and lock_timeout, which end a statement before its commit begins. A statement inside a transaction
 * that is given up is canceled, best effort, when the connection is closed.
 *   3. Session state is never set: what a transaction needs is `set local`. So PgBouncer in transaction mode works.
 * What handlers and the bodies of a library's users set ends with their transaction (conn_commit_reset).
 *   4. Several hosts are tried one after the other, each with an equal share of the time; the writable one wins unless
 *      the url asks for something else.
 *   5. No message contains the password or a parameter's value.
 *   6. A statement that sends more than RECEIVED_BYTES_MAX before its result is given up: 54000. Behind a relay
 *      everything counts that the server sends, also of a message that is not yet complete; otherwise complete notices.
 * Names are looked up by the C library, which knows no deadline: use addresses or a local resolver where that matters.
 * Threads: one at a time; a Checkout guarantees it. Ownership: conn_close() frees.
 */
#ifndef PG_CONN_H
#define PG_CONN_H

#include <libpq-fe.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/error.h"
#include "pg/conninfo.h"

#define RECEIVED_BYTES_MAX ((size_t)64 << 20)

typedef struct Conn Conn;

SCOPED(PGresult, PQclear)

/* ERR_USAGE: conninfo is malformed. ERR_REFUSED: the server answered and said no (password, database, rights).
 * ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_BUSY: worth another try. */
must_check ErrorCode conn_open(const char *conninfo, const char *application_name, Deadline deadline, Conn **ret_conn,
                               Error *reterr);
/* Just opened: hold at most RECEIVED_BYTES_MAX of what the server sends, because it runs code that is not pawl's, which
 * decides how long an INFO or an error is. Costs two descriptors, and a copy of each byte. ERR_UNAVAILABLE: there are
 * no more descriptors. */
must_check ErrorCode conn_relay(Conn *conn, Error *reterr);
void                 conn_close(Conn *conn);
SCOPED(Conn, conn_close)

/* Bound parameters, all borrowed. */
typedef struct {
    int                count;
    const Oid         *types; /* NULL: the server infers them */
    const char *const *values;
    const int         *lengths, *formats; /* of binary values, whose format is 1; NULL: all are texts */
    bool               alone;             /* the server refuses several statements, also when count is 0 */
    bool               prepare; /* conn_call() and conn_read() prepare the statement, which is a constant of the
                                             program and casts its parameters to the types that they have here, once
                                             per connection, where the server is reached directly */
    int                lock_ms; /* how long conn_call() and conn_read() wait for a lock; 0: until the deadline */
} ConnParams;
#define CONN_NO_PARAMS ((ConnParams){0})

/* One statement with bound parameters (count 0: may be several statements, as psql would send them). *ret_result
 * holds the last one's result. A failed statement leaves the connection usable unless the SQLSTATE says otherwise.
 * It knows no limit but the deadline of this side. */
must_check ErrorCode conn_query(Conn *conn, const char *sql, ConnParams params, Deadline deadline,
                                PGresult **ret_result, Error *reterr);

/* One statement as a transaction of its own, in one round trip: the server ends it with 57014 or 55P03 a little before
 * the deadline. ERR_UNKNOWN: it has committed, but not on a synchronous standby. */
must_check ErrorCode conn_call(Conn *conn, const char *sql, ConnParams params, Deadline deadline, PGresult **ret_result,
                               Error *reterr);
/* The same for a statement that writes nothing: it may be canceled. */
must_check ErrorCode conn_read(Conn *conn, const char *sql, ConnParams params, Deadline deadline, PGresult **ret_result,
                               Error *reterr);
/* Commit the open transaction. ERR_STOPPING: it was interrupted before, and nothing was sent. ERR_UNKNOWN: as above. */
must_check ErrorCode conn_commit(Conn *conn, Deadline deadline, Error *reterr);
/* The same after code that is not pawl's: settings, advisory locks, temporary tables and all else that outlives a
 * transaction are removed from the session in the same round trip. Where that fails the connection is closed. */
must_check ErrorCode conn_commit_reset(Conn *conn, Deadline deadline, Error *reterr);
must_check ErrorCode conn_rollback_reset(Conn *conn, Deadline deadline, Error *reterr);
/* The time limit for a statement that the client waits for until the deadline: a little less, so that the server's own
 * answer comes first and the connection lives. */
int conn_limit_ms(Deadline deadline);
/* false: so little is left that no limit of the server could come before the deadline. */
bool conn_has_time(Deadline deadline);

/* End whatever runs on it, best effort, without waiting; from any thread while the connection is open. Inside a
 * transaction by a cancel; what may be committing by closing the way to it. The server may hear of a cancel late, so no
 * commit is sent on a connection that was interrupted, and it is not used again. */
void conn_interrupt(Conn *conn);
bool conn_was_interrupted(const Conn *conn);

bool conn_is_good(const Conn *conn);
/* Has it had a result, an error or a notice of several megabytes? libpq keeps the buffer that it was received in for as
 * long as the connection lives. */
bool                    conn_is_large(const Conn *conn);
PGTransactionStatusType conn_transaction(const Conn *conn);
void                    conn_condemn(Conn *conn);              /* it will be closed, whatever it says */
int                     conn_server_version(const Conn *conn); /* 150018 */
PGconn                 *conn_native(Conn *conn);               /* for listen.c: PQnotifies, PQsocket */
/* Host, port, user and database without secrets, for messages and logs; borrowed from the connection. */
const char *conn_name(const Conn *conn);

#endif
