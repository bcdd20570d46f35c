/*
 * conn.c - interrupt, close and ask a connection; see conn.h.
 */
#include "pg/conn.h"

#include <stdlib.h>

#include "base/sync.h"
#include "base/world.h"
#include "pg/conn_internal.h"

#define CANCELS_MAX 8

/* ---- canceling and closing ---- */

static atomic_int cancels_running;

static void *cancel_run(void *context)
{
    PGcancel *cancel = context;
    char      message[256];

    /* Best effort: inside a transaction the server's own timeouts end the statement if this does not. */
    (void)PQcancel(cancel, message, sizeof message);
    PQfreeCancel(cancel);
    atomic_fetch_sub(&cancels_running, 1);
    return NULL;
}

/* PQcancel() connects without a deadline, so it gets a thread of its own, and there are never more than a few. */
static void cancel_send(PGcancel *cancel)
{
    pthread_t thread;

    if (!cancel)
        return;
    if (atomic_fetch_add(&cancels_running, 1) < CANCELS_MAX &&
        thread_try_start("cancel", cancel_run, cancel, &thread)) {
        pthread_detach(thread);
        return;
    }
    atomic_fetch_sub(&cancels_running, 1);
    PQfreeCancel(cancel);
}

void conn_interrupt(Conn *conn)
{
    PGcancel *cancel;

    /* First the flag, then the right: a commit that finds the right taken finds the flag too. */
    atomic_store(&conn->interrupted, true);
    cancel = atomic_exchange(&conn->cancel, NULL);
    if (cancel)
        cancel_send(cancel);
    else
        world_socket_shut(conn->socket);
}

bool conn_was_interrupted(const Conn *conn)
{
    return atomic_load(&conn->interrupted);
}

void conn_close(Conn *conn)
{
    if (conn->abandoned)
        conn_interrupt(conn);
    if (conn->cancel)
        PQfreeCancel(conn->cancel);
    if (conn->native)
        PQfinish(conn->native);
    conn_relay_end(conn);
    free(conn);
}

/* ---- questions ---- */

bool conn_is_good(const Conn *conn)
{
    return !conn->condemned && PQstatus(conn->native) == CONNECTION_OK;
}

bool conn_is_large(const Conn *conn)
{
    return conn->is_large;
}

PGTransactionStatusType conn_transaction(const Conn *conn)
{
    return PQtransactionStatus(conn->native);
}

void conn_condemn(Conn *conn)
{
    conn->condemned = true;
}

int conn_server_version(const Conn *conn)
{
    return PQserverVersion(conn->native);
}

PGconn *conn_native(Conn *conn)
{
    return conn->native;
}

const char *conn_name(const Conn *conn)
{
    return conn->name;
}
