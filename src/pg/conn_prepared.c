/*
 * conn_prepared.c - statements that run often are parsed and planned once per connection; see docs/adr/0031.
 *
 * Only where the process of the server that the connection began with is the one that runs its statements. Behind a
 * pooler it is not: the process id of the handshake is the pooler's own, and the next transaction may run on another
 * connection, where nothing is prepared, or another client's statement under the same name. There statements are sent
 * as texts, and so they are elsewhere once the server has said that a prepared one cannot be used.
 *
 * The name is a hash of the text, so it means the same statement on every connection. The text casts its parameters,
 * and the server takes their types from it: one that is null, and has no type then, does not make another statement.
 * Calls with arrays that are null when no item has a value would have dozens.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "pg/conn_internal.h"

const Prepared *conn_prepared_find(Conn *conn, const char *sql, bool *ret_is_new)
{
    *ret_is_new = false;
    if (conn->prepare != PREPARE_ALLOWED)
        return NULL;
    for (int i = 0; i < conn->prepared_count; i++)
        if (conn->prepared[i].sql == sql)
            return &conn->prepared[i];
    int number = conn->prepared_count + conn->prepared_pending;

    if (number == PREPARED_MAX)
        return NULL;
    Prepared *added = &conn->prepared[number];

    conn->prepared_pending++;
    *ret_is_new = true;
    *added      = (Prepared){.sql = sql};
    snprintf(added->name, sizeof added->name, "pawl_%016" PRIx64, hash_text(sql));
    return added;
}

void conn_prepared_confirm(Conn *conn)
{
    conn->prepared_count++;
    conn->prepared_pending--;
}

void conn_prepared_forget(Conn *conn)
{
    conn->prepared_count = 0;
}

void conn_prepared_learn(Conn *conn, const PGresult *limits)
{
    if (conn->prepare == PREPARE_REFUSED || PQntuples(limits) != 1 || PQnfields(limits) != 4)
        return;
    conn->prepare =
        strtol(PQgetvalue(limits, 0, 3), NULL, 10) == PQbackendPID(conn->native) ? PREPARE_ALLOWED : PREPARE_REFUSED;
}

bool conn_prepared_failed(Conn *conn, const char *sqlstate)
{
    /* Not there, there already, and a plan whose result has other columns since a function was replaced. */
    static const char *const states[] = {"26000", "42P05", "0A000"};

    for (size_t i = 0; i < COUNT(states); i++)
        if (strcmp(sqlstate, states[i]) == 0) {
            conn->prepare        = PREPARE_REFUSED;
            conn->prepared_count = 0;
            return true;
        }
    return false;
}
