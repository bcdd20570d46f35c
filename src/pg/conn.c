/*
 * conn.c - connect, send and receive as loops over world_socket_wait(); see conn.h.
 */
#include "pg/conn.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/sync.h"
#include "base/world.h"
#include "pg/metric.h"
#include "sql.h"

#define HOSTS_MAX   16
#define CANCELS_MAX 8
/* How much sooner than the client the server gives up: a fiftieth of the time, within these. */
#define LIMIT_MARGIN_MS_MIN 20
#define LIMIT_MARGIN_MS_MAX 200
#define CALL_ROUNDS_MAX     4 /* limits, statement, and an error of the commit; more is a broken conversation */

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

/*
 * Set before the user's own conninfo, so that it can say otherwise. A peer that vanished without a word is noticed after
 * 10 + 3 * 3 = 19 s when we wait, and after 10 s when we send: an order of magnitude sooner than the kernel's defaults.
 */
static const char *const defaults[][2] = {
    {"keepalives",          "1"    },
    {"keepalives_idle",     "10"   },
    {"keepalives_interval", "3"    },
    {"keepalives_count",    "3"    },
    {"tcp_user_timeout",    "10000"},
    {"client_encoding",     "UTF8" },
};

/* ---- opening ---- */

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

/* One notice matters: the commit is done here, and the wait for a standby was ended by a cancel, say of an administrator. Its
 * text depends on the server's language; the source file and line in PostgreSQL do not. */
static void notice_read(void *context, const PGresult *result)
{
    Conn       *conn = context;
    const char *from = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);

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
    scoped(conn_close) Conn *conn = calloc(1, sizeof *conn);

    if (!conn)
        abort();
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

/* ---- closing and canceling ---- */

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

/* Before anything is sent that may commit: from here on it is not canceled. */
static ErrorCode commit_begin(Conn *conn, PGcancel **ret_cancel, Error *reterr)
{
    PGcancel *cancel = atomic_exchange(&conn->cancel, NULL);

    if (atomic_load(&conn->interrupted)) {
        PQfreeCancel(cancel);
        conn->condemned = true;
        return fail(reterr, ERR_STOPPING, "interrupted before it was sent");
    }
    conn->may_commit   = true;
    conn->unreplicated = false;
    *ret_cancel        = cancel;
    return OK;
}

static ErrorCode commit_end(Conn *conn, PGcancel *cancel, ErrorCode code, Error *reterr)
{
    conn->may_commit = false;
    atomic_store(&conn->cancel, cancel);
    if (code == OK && conn->unreplicated)
        return fail(reterr, ERR_UNKNOWN, "committed, but no synchronous standby has confirmed it");
    return code;
}

void conn_close(Conn *conn)
{
    if (conn->abandoned)
        conn_interrupt(conn);
    if (conn->cancel)
        PQfreeCancel(conn->cancel);
    if (conn->native)
        PQfinish(conn->native);
    free(conn);
}

/* ---- one statement ---- */

static ErrorCode conn_lost(Conn *conn, Error *reterr)
{
    const char *message = PQerrorMessage(conn->native);

    if (!message[0])
        message = "no reason given";
    conn->condemned = true;
    return fail(reterr, ERR_UNAVAILABLE, "connection to database lost (%s): %.*s", conn->name,
                (int)strcspn(message, "\n"), message);
}

static ErrorCode conn_give_up(Conn *conn, Error *reterr)
{
    conn->condemned = true;
    conn->abandoned = !conn->may_commit;
    return fail(reterr, ERR_TIMEOUT, "database did not answer in time (%s)", conn->name);
}

static ErrorCode send_all(Conn *conn, Deadline deadline, Error *reterr)
{
    int left;

    while ((left = PQflush(conn->native)) == 1) {
        int ready = world_socket_wait(PQsocket(conn->native), SOCKET_READ | SOCKET_WRITE, deadline);

        if (!ready)
            return conn_give_up(conn, reterr);
        /* Both sides may be stuck with full buffers: read, so that the server can go on reading. */
        if ((ready & SOCKET_READ) && !PQconsumeInput(conn->native))
            return conn_lost(conn, reterr);
    }
    return left == 0 ? OK : conn_lost(conn, reterr);
}

/* Wait for the next result; NULL when the statement has no more. */
static ErrorCode next_result(Conn *conn, Deadline deadline, PGresult **ret_result, Error *reterr)
{
    while (PQisBusy(conn->native)) {
        if (!world_socket_wait(PQsocket(conn->native), SOCKET_READ, deadline))
            return conn_give_up(conn, reterr);
        if (!PQconsumeInput(conn->native))
            return conn_lost(conn, reterr);
    }
    *ret_result = PQgetResult(conn->native);
    return OK;
}

static ErrorCode result_failed(Conn *conn, const PGresult *result, Error *reterr)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message  = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    ErrorCode   code     = error_from_sqlstate(sqlstate);

    if (!sqlstate)
        return conn_lost(conn, reterr);
    (void)fail(reterr, code, "%s", message ? message : "PostgreSQL gave no message");
    error_set_sqlstate(reterr, sqlstate);
    if (error_verdict(code) == VERDICT_EVICT)
        conn->condemned = true;
    return code;
}

static bool result_is_copy(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

/* COPY would wait for rows that are never sent, and return the same result for ever. */
static ErrorCode copy_refused(Conn *conn, Error *reterr)
{
    conn->condemned = true;
    (void)fail(reterr, ERR_INVALID, "copy from or to the client is not supported: use insert or select");
    error_set_sqlstate(reterr, "0A000");
    return ERR_INVALID;
}

static bool result_is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
}

/* Always drain: a connection with unread results cannot be used again. The first failure is reported. */
static ErrorCode receive_all(Conn *conn, Deadline deadline, PGresult **ret_result, Error *reterr)
{
    scoped(PQclear) PGresult *last = NULL;
    ErrorCode                 code = OK;

    for (;;) {
        scoped(PQclear) PGresult *result = NULL;
        ErrorCode                 waited = next_result(conn, deadline, &result, code == OK ? reterr : NULL);

        if (waited != OK)
            return code == OK ? waited : code;
        if (!result)
            break;
        if (result_is_copy(result))
            return copy_refused(conn, reterr);
        if (code == OK && !result_is_good(result))
            code = result_failed(conn, result, reterr);
        PQclear(last);
        last = take(result);
        if (PQstatus(conn->native) == CONNECTION_BAD)
            conn->condemned = true;
    }
    if (code == OK && !last)
        return conn_lost(conn, reterr);
    if (code == OK)
        *ret_result = take(last);
    return code;
}

static ErrorCode query_run(Conn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                           Deadline deadline, PGresult **ret_result, Error *reterr)
{
    int sent = count == 0
                   ? PQsendQuery(conn->native, sql)
                   : PQsendQueryParams(conn->native, sql, count, types, values, NULL, NULL, /* resultFormat= */ 0);

    if (!sent)
        return conn_lost(conn, reterr);
    TRY(send_all(conn, deadline, reterr));
    return receive_all(conn, deadline, ret_result, reterr);
}

/* The first statement decides. A session that may not have been reset is not used again. */
static ErrorCode reset_run(Conn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                           Deadline deadline, PGresult **ret_result, Error *reterr)
{
    scoped(PQclear) PGresult *first = NULL;
    ErrorCode                 code;

    (void)count, (void)types, (void)values;
    if (!PQsendQuery(conn->native, sql))
        return conn_lost(conn, reterr);
    TRY(send_all(conn, deadline, reterr));
    TRY(next_result(conn, deadline, &first, reterr));
    if (!first)
        return conn_lost(conn, reterr);
    code = result_is_good(first) ? OK : result_failed(conn, first, reterr);
    conn->condemned |= code != OK;
    for (;;) {
        scoped(PQclear) PGresult *result = NULL;

        if (next_result(conn, deadline, &result, NULL) != OK || !result)
            break;
        conn->condemned |= !result_is_good(result);
    }
    conn->condemned |= PQstatus(conn->native) == CONNECTION_BAD;
    if (code == OK)
        *ret_result = take(first);
    return code;
}

/* ---- one statement with limits, in a pipeline ---- */

bool conn_has_time(Deadline deadline)
{
    return deadline_left_ms(deadline) > LIMIT_MARGIN_MS_MIN;
}

int conn_limit_ms(Deadline deadline)
{
    int left   = deadline_left_ms(deadline);
    int margin = left / 50;

    margin = margin < LIMIT_MARGIN_MS_MIN   ? LIMIT_MARGIN_MS_MIN
             : margin > LIMIT_MARGIN_MS_MAX ? LIMIT_MARGIN_MS_MAX
                                            : margin;
    return left > margin ? left - margin : 1;
}

static bool call_send(Conn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                      Deadline deadline)
{
    char              digits[16];
    const char *const limit = digits;

    snprintf(digits, sizeof digits, "%d", conn_limit_ms(deadline));
    return PQenterPipelineMode(conn->native) &&
           PQsendQueryParams(conn->native, sql_pg_limits, 1, NULL, &limit, NULL, NULL, 0) &&
           PQsendQueryParams(conn->native, sql, count, types, values, NULL, NULL, /* resultFormat= */ 0) &&
           PQpipelineSync(conn->native);
}

/* Results of a pipeline come in rounds, one per statement, each ended by a NULL; the sync comes last. An error after the rows is
 * the commit's own. */
static ErrorCode call_receive(Conn *conn, Deadline deadline, PGresult **ret_result, Error *reterr)
{
    scoped(PQclear) PGresult *rows  = NULL;
    ErrorCode                 code  = OK;
    int                       ended = 0;

    for (;;) {
        scoped(PQclear) PGresult *result = NULL;
        ErrorCode                 waited = next_result(conn, deadline, &result, code == OK ? reterr : NULL);

        if (waited != OK)
            return code == OK ? waited : code;
        if (!result) {
            if (PQstatus(conn->native) == CONNECTION_BAD || ++ended > CALL_ROUNDS_MAX)
                return code == OK ? conn_lost(conn, reterr) : code;
            continue;
        }
        if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
            break;
        if (result_is_copy(result))
            return copy_refused(conn, reterr);
        if (code == OK && !result_is_good(result))
            code = result_failed(conn, result, reterr);
        if (ended == 1 && !rows)
            rows = take(result);
        if (PQstatus(conn->native) == CONNECTION_BAD)
            conn->condemned = true;
    }
    if (!PQexitPipelineMode(conn->native))
        conn->condemned = true;
    if (code == OK && !rows)
        return conn_lost(conn, reterr);
    if (code == OK)
        *ret_result = take(rows);
    return code;
}

static ErrorCode call_run(Conn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                          Deadline deadline, PGresult **ret_result, Error *reterr)
{
    if (!call_send(conn, sql, count, types, values, deadline))
        return conn_lost(conn, reterr);
    TRY(send_all(conn, deadline, reterr));
    return call_receive(conn, deadline, ret_result, reterr);
}

/* What every statement has in common. */
typedef ErrorCode StatementRun(Conn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                               Deadline deadline, PGresult **ret_result, Error *reterr);

static ErrorCode statement_run(StatementRun *run, Conn *conn, const char *sql, int count, const Oid *types,
                               const char *const *values, Deadline deadline, PGresult **ret_result, Error *reterr)
{
    Mono      start = clock_mono();
    ErrorCode code;

    if (FAULT("pg.query")) {
        conn->condemned = true;
        return fail(reterr, ERR_UNAVAILABLE, "fault at pg.query");
    }
    code = run(conn, sql, count, types, values, deadline, ret_result, reterr);
    metric_observe_us(&pg_metrics.query_seconds, mono_us_between(start, clock_mono()));
    return code;
}

/* The same for what may commit. */
static ErrorCode commit_run(StatementRun *run, Conn *conn, const char *sql, int count, const Oid *types,
                            const char *const *values, Deadline deadline, PGresult **ret_result, Error *reterr)
{
    PGcancel                 *cancel = NULL;
    scoped(PQclear) PGresult *result = NULL;
    ErrorCode                 code;

    TRY(commit_begin(conn, &cancel, reterr));
    code = statement_run(run, conn, sql, count, types, values, deadline, &result, reterr);
    TRY(commit_end(conn, cancel, code, reterr));
    *ret_result = take(result);
    return OK;
}

ErrorCode conn_query(Conn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                     Deadline deadline, PGresult **ret_result, Error *reterr)
{
    if (conn_transaction(conn) == PQTRANS_IDLE)
        return commit_run(query_run, conn, sql, count, types, values, deadline, ret_result, reterr);
    return statement_run(query_run, conn, sql, count, types, values, deadline, ret_result, reterr);
}

ErrorCode conn_call(Conn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                    Deadline deadline, PGresult **ret_result, Error *reterr)
{
    return commit_run(call_run, conn, sql, count, types, values, deadline, ret_result, reterr);
}

ErrorCode conn_read(Conn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                    Deadline deadline, PGresult **ret_result, Error *reterr)
{
    return statement_run(call_run, conn, sql, count, types, values, deadline, ret_result, reterr);
}

ErrorCode conn_commit(Conn *conn, Deadline deadline, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    return commit_run(query_run, conn, "commit", 0, NULL, NULL, deadline, &result, reterr);
}

ErrorCode conn_commit_reset(Conn *conn, Deadline deadline, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    return commit_run(reset_run, conn, sql_pg_commit_reset, 0, NULL, NULL, deadline, &result, reterr);
}

ErrorCode conn_rollback_reset(Conn *conn, Deadline deadline, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    return statement_run(reset_run, conn, sql_pg_rollback_reset, 0, NULL, NULL, deadline, &result, reterr);
}

/* ---- questions ---- */

bool conn_is_good(const Conn *conn)
{
    return !conn->condemned && PQstatus(conn->native) == CONNECTION_OK;
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
