/*
 * conn_open.c - connect to the hosts of a conninfo, one after the other; see conn.h.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"
#include "base/world.h"
#include "pg/conn_internal.h"
#include "pg/metric.h"

#define HOSTS_MAX 16

/*
 * Set before the user's own conninfo, so that it can say otherwise. A peer that vanished without a word is noticed
 * after 10 + 3 * 3 = 19 s when we wait, and after 10 s when we send: an order of magnitude sooner than the kernel's
 * defaults.
 */
static const char *const defaults[][2] = {
    {"keepalives",          "1"    },
    {"keepalives_idle",     "10"   },
    {"keepalives_interval", "3"    },
    {"keepalives_count",    "3"    },
    {"tcp_user_timeout",    "10000"},
    {"client_encoding",     "UTF8" },
};

/* The SQLSTATE inside libpq's verbose message ("FATAL:  28P01: password ..."): libpq keeps no field for it here. */
static const char *message_sqlstate(const char *message, char *ret_sqlstate)
{
    for (const char *p = message; (p = strchr(p, ':')); p++) {
        const char *word = p + 1 + strspn(p + 1, " ");
        size_t      size = strspn(word, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");

        /* Five long, and with a digit in it: so are all SQLSTATEs, and FATAL, ERROR and PANIC are not. */
        if (word > p + 1 && size == 5 && word[5] == ':' && strcspn(word, "0123456789") < 5) {
            memcpy(ret_sqlstate, word, 5);
            ret_sqlstate[5] = '\0';
            return word + 6 + strspn(word + 6, " ");
        }
    }
    ret_sqlstate[0] = '\0';
    return message;
}

static ErrorCode connect_failed(const Conn *conn, Error *reterr)
{
    char        sqlstate[6];
    const char *message = message_sqlstate(PQerrorMessage(conn->native), sqlstate);
    int         length  = (int)strcspn(message, "\n");
    ErrorCode   code    = error_from_sqlstate(sqlstate);

    if (sqlstate[0]) /* the message is the server's; otherwise libpq has named host and port already */
        (void)fail(reterr, code, "cannot connect to database (%s): %.*s", conn->name, length, message);
    else
        (void)fail(reterr, code, "cannot connect to database: %.*s", length, message);
    error_set_sqlstate(reterr, sqlstate);
    return code;
}

static ErrorCode connect_finish(Conn *conn, Deadline deadline, Error *reterr)
{
    PostgresPollingStatusType want = PGRES_POLLING_WRITING;

    while (want == PGRES_POLLING_READING || want == PGRES_POLLING_WRITING) {
        int event = want == PGRES_POLLING_READING ? SOCKET_READ : SOCKET_WRITE;

        if (PQstatus(conn->native) == CONNECTION_BAD)
            break;
        if (!world_socket_wait(PQsocket(conn->native), event, deadline))
            return fail(reterr, ERR_TIMEOUT, "cannot connect to database (%s): no answer in time", conn->name);
        want = PQconnectPoll(conn->native);
    }
    return want == PGRES_POLLING_OK ? OK : connect_failed(conn, reterr);
}

/* What code of others raises takes memory. One notice matters: the commit is done here, and the wait for a standby was
 * ended by a cancel, say of an administrator. Its text depends on the server's language; the source file and line in
 * PostgreSQL do not. */
static void notice_read(void *context, const PGresult *result)
{
    Conn       *conn = context;
    const char *from = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
    size_t      size = PQresultMemorySize(result);

    if (!conn->is_relayed)
        conn->received_bytes += size;
    conn->is_large |= size > LARGE_BYTES;
    if (from && strcmp(from, "SyncRepWaitForLSN") == 0)
        conn->unreplicated = true;
}

/* One host. Several are tried by conn_open(): libpq would give all the time to the first one that hangs. */
static ErrorCode conn_open_host(const char *conninfo, const PQconninfoOption *options, int number, int hosts,
                                const char *application_name, Deadline deadline, Conn **ret_conn, Error *reterr)
{
    const char *keys[COUNT(defaults) + 8] = {0}, *values[COUNT(defaults) + 8] = {0};
    const char *lists[][2] = {
        {"host",     conninfo_value(options, "host")    },
        {"hostaddr", conninfo_value(options, "hostaddr")},
        {"port",     conninfo_value(options, "port")    }
    };
    char                     items[COUNT(lists)][256];
    size_t                   n    = 0;
    scoped(conn_close) Conn *conn = memory_new(1, sizeof *conn);

    for (size_t i = 0; i < COUNT(defaults); i++, n++)
        keys[n] = defaults[i][0], values[n] = defaults[i][1];
    keys[n] = "fallback_application_name", values[n++] = application_name;
    if (hosts > 1) /* the user may say otherwise, for a reader */
        keys[n] = "target_session_attrs", values[n++] = "read-write";
    keys[n] = "dbname", values[n++] = conninfo;
    for (size_t i = 0; i < COUNT(lists) && hosts > 1; i++)
        if (lists[i][1]) {
            conninfo_item(lists[i][1], number, items[i], sizeof items[i]);
            keys[n] = lists[i][0], values[n++] = items[i];
        }
    assert(n < COUNT(keys));

    TRY(conninfo_describe(conninfo, conn->name, reterr));
    conn->native = PQconnectStartParams(keys, values, /* expand_dbname= */ 1);
    if (!conn->native)
        abort();
    PQsetErrorVerbosity(conn->native, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(conn->native, notice_read, conn);
    TRY(connect_finish(conn, deadline, reterr));
    PQsetErrorVerbosity(conn->native, PQERRORS_DEFAULT);
    PQsetnonblocking(conn->native, 1);
    conn->cancel = PQgetCancel(conn->native);
    conn->socket = PQsocket(conn->native);
    *ret_conn    = take(conn);
    return OK;
}

ErrorCode conn_open(const char *conninfo, const char *application_name, Deadline deadline, Conn **ret_conn,
                    Error *reterr)
{
    scoped(PQconninfoFree) PQconninfoOption *options = NULL;
    ErrorCode                                code    = OK;
    int                                      hosts, by_address;

    if (FAULT("pg.connect"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at pg.connect");
    TRY(conninfo_parse(conninfo, &options, reterr));
    hosts      = conninfo_count(conninfo_value(options, "host"));
    by_address = conninfo_count(conninfo_value(options, "hostaddr"));
    hosts      = by_address > hosts ? by_address : hosts;
    if (hosts > HOSTS_MAX)
        return fail(reterr, ERR_USAGE, "database url names %d hosts: at most %d are tried", hosts, HOSTS_MAX);
    for (int i = 0; i < hosts; i++) {
        /* An equal share of the time that is left, so that one dead host does not eat the others' chance. */
        Deadline share =
            hosts == 1 ? deadline : deadline_sooner(deadline, deadline_in_ms(deadline_left_ms(deadline) / (hosts - i)));

        code = conn_open_host(conninfo, options, i, hosts, application_name, share, ret_conn, reterr);
        if (code == OK)
            break;
    }
    metric_add(code == OK ? &pg_metrics.connect_ok : &pg_metrics.connect_failed, 1);
    return code;
}
