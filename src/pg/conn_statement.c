/*
 * conn_statement.c - send a statement and receive its results, as loops over world_socket_wait(); see conn.h.
 */
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/world.h"
#include "pg/conn_internal.h"
#include "pg/metric.h"
#include "sql.h"

/* How much sooner than the client the server gives up: a fiftieth of the time, within these. */
#define LIMIT_MARGIN_MS_MIN 20
#define LIMIT_MARGIN_MS_MAX 200
#define CALL_ROUNDS_MAX \
    6 /* limits and statement, each with its preparation, and an error of the commit; more is a broken conversation */

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

/* A function that says too much, or never stops: what still runs is canceled. */
static ErrorCode conn_flooded(Conn *conn, Error *reterr)
{
    (void)conn_give_up(conn, NULL);
    (void)fail(reterr, ERR_LIMIT, "the statement sent more than %zu MiB before its result", RECEIVED_BYTES_MAX >> 20);
    error_set_sqlstate(reterr, "54000");
    return ERR_LIMIT;
}

static ErrorCode send_all(Conn *conn, Deadline deadline, Error *reterr)
{
    int left;

    while ((left = conn_put_output(conn)) == 1) {
        int ready = conn_wait(conn, SOCKET_READ | SOCKET_WRITE, deadline);

        if (!ready)
            return conn_give_up(conn, reterr);
        /* Both sides may be stuck with full buffers: read, so that the server can go on reading. */
        if ((ready & SOCKET_READ) && !conn_take_input(conn))
            return conn_lost(conn, reterr);
    }
    return left == 0 ? OK : conn_lost(conn, reterr);
}

/* Wait for the next result; NULL when the statement has no more. */
static ErrorCode next_result(Conn *conn, Deadline deadline, PGresult **ret_result, Error *reterr)
{
    while (PQisBusy(conn->native)) {
        if (conn->received_bytes > RECEIVED_BYTES_MAX)
            return conn_flooded(conn, reterr);
        if (!conn_wait(conn, SOCKET_READ, deadline))
            return conn_give_up(conn, reterr);
        if (!conn_take_input(conn))
            return conn_lost(conn, reterr);
    }
    *ret_result = PQgetResult(conn->native);
    conn->is_large |= *ret_result && PQresultMemorySize(*ret_result) > LARGE_BYTES;
    conn->received_bytes = 0;
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

static int params_send(Conn *conn, const char *sql, ConnParams params)
{
    return PQsendQueryParams(conn->native, sql, params.count, params.types, params.values, params.lengths,
                             params.formats,
                             /* resultFormat= */ 0);
}

static ErrorCode query_run(Conn *conn, const char *sql, ConnParams params, Deadline deadline, PGresult **ret_result,
                           Error *reterr)
{
    int sent = params.count || params.alone ? params_send(conn, sql, params) : PQsendQuery(conn->native, sql);

    if (!sent)
        return conn_lost(conn, reterr);
    TRY(send_all(conn, deadline, reterr));
    return receive_all(conn, deadline, ret_result, reterr);
}

/* The first statement decides. A session that may not have been reset is not used again. */
static ErrorCode reset_run(Conn *conn, const char *sql, ConnParams params, Deadline deadline, PGresult **ret_result,
                           Error *reterr)
{
    scoped(PQclear) PGresult *first = NULL;
    ErrorCode                 code;

    (void)params;
    conn_prepared_forget(conn);
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

/* What is under way: how many rounds of results come, and what they are. */
typedef struct {
    int  rounds;
    int  limits, rows;                    /* the numbers of their rounds */
    bool is_preparation[CALL_ROUNDS_MAX]; /* by the number of the round */
    bool is_prepared;                     /* a prepared statement is used */
} StatementCall;

/* One statement of the pipeline, prepared before if that is wanted and possible. Returns the number of its round; -1:
 * not sent. */
static int call_add(Conn *conn, StatementCall *call, const char *sql, ConnParams params)
{
    bool            is_new   = false;
    const Prepared *prepared = params.prepare ? conn_prepared_find(conn, sql, &is_new) : NULL;

    if (is_new) {
        if (!PQsendPrepare(conn->native, prepared->name, sql, /* nParams= */ 0, /* paramTypes= */ NULL))
            return -1;
        call->is_preparation[call->rounds++] = true;
    }
    call->is_prepared |= prepared != NULL;
    if (!(prepared ? PQsendQueryPrepared(conn->native, prepared->name, params.count, params.values, params.lengths,
                                         params.formats, /* resultFormat= */ 0)
                   : params_send(conn, sql, params)))
        return -1;
    return call->rounds++;
}

static bool call_send(Conn *conn, const char *sql, ConnParams params, Deadline deadline, StatementCall *call)
{
    int               limit = conn_limit_ms(deadline);
    int               lock  = params.lock_ms > 0 && params.lock_ms < limit ? params.lock_ms : limit;
    char              limit_digits[16], lock_digits[16];
    const char *const limits[] = {limit_digits, lock_digits};

    snprintf(limit_digits, sizeof limit_digits, "%d", limit);
    snprintf(lock_digits, sizeof lock_digits, "%d", lock);
    return PQenterPipelineMode(conn->native) &&
           (call->limits =
                call_add(conn, call, sql_pg_limits,
                         (ConnParams){.count = COUNT(limits), .values = limits, .prepare = params.prepare})) >= 0 &&
           (call->rows = call_add(conn, call, sql, params)) >= 0 && PQpipelineSync(conn->native);
}

/* Results of a pipeline come in rounds, one per statement, each ended by a NULL; the sync comes last. An error after
 * the rows is the commit's own. */
static ErrorCode call_receive(Conn *conn, const StatementCall *call, Deadline deadline, PGresult **ret_result,
                              Error *reterr)
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
        if (ended < call->rounds && call->is_preparation[ended] && result_is_good(result))
            conn_prepared_confirm(conn);
        if (ended == call->limits && conn->prepare == PREPARE_UNKNOWN)
            conn_prepared_learn(conn, result);
        if (ended == call->rows && !rows)
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

static ErrorCode call_once(Conn *conn, const char *sql, ConnParams params, Deadline deadline, StatementCall *call,
                           PGresult **ret_result, Error *reterr)
{
    conn->prepared_pending = 0;
    if (!call_send(conn, sql, params, deadline, call))
        return conn_lost(conn, reterr);
    TRY(send_all(conn, deadline, reterr));
    return call_receive(conn, call, deadline, ret_result, reterr);
}

/* The error of a prepared statement has ended its transaction, so the statement can be sent as a text. */
static ErrorCode call_run(Conn *conn, const char *sql, ConnParams params, Deadline deadline, PGresult **ret_result,
                          Error *reterr)
{
    StatementCall call  = {0};
    Error         error = {0};
    ErrorCode     code  = call_once(conn, sql, params, deadline, &call, ret_result, &error);

    if (code != OK && call.is_prepared && conn_is_good(conn) && conn_transaction(conn) == PQTRANS_IDLE &&
        conn_prepared_failed(conn, error.sqlstate))
        return call_once(conn, sql, params, deadline, &(StatementCall){0}, ret_result, reterr);
    return error_pass(code, &error, reterr);
}

/* ---- what may commit ---- */

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

/* What every statement has in common. */
typedef ErrorCode StatementRun(Conn *conn, const char *sql, ConnParams params, Deadline deadline, PGresult **ret_result,
                               Error *reterr);

static ErrorCode statement_run(StatementRun *run, Conn *conn, const char *sql, ConnParams params, Deadline deadline,
                               PGresult **ret_result, Error *reterr)
{
    Mono      start = clock_mono();
    ErrorCode code;

    if (FAULT("pg.query")) {
        conn->condemned = true;
        return fail(reterr, ERR_UNAVAILABLE, "fault at pg.query");
    }
    code = run(conn, sql, params, deadline, ret_result, reterr);
    metric_observe_us(&pg_metrics.query_seconds, mono_us_between(start, clock_mono()));
    return code;
}

/* The same for what may commit. */
static ErrorCode commit_run(StatementRun *run, Conn *conn, const char *sql, ConnParams params, Deadline deadline,
                            PGresult **ret_result, Error *reterr)
{
    PGcancel                 *cancel = NULL;
    scoped(PQclear) PGresult *result = NULL;
    ErrorCode                 code;

    TRY(commit_begin(conn, &cancel, reterr));
    code = statement_run(run, conn, sql, params, deadline, &result, reterr);
    TRY(commit_end(conn, cancel, code, reterr));
    *ret_result = take(result);
    return OK;
}

ErrorCode conn_query(Conn *conn, const char *sql, ConnParams params, Deadline deadline, PGresult **ret_result,
                     Error *reterr)
{
    if (conn_transaction(conn) == PQTRANS_IDLE)
        return commit_run(query_run, conn, sql, params, deadline, ret_result, reterr);
    return statement_run(query_run, conn, sql, params, deadline, ret_result, reterr);
}

ErrorCode conn_call(Conn *conn, const char *sql, ConnParams params, Deadline deadline, PGresult **ret_result,
                    Error *reterr)
{
    return commit_run(call_run, conn, sql, params, deadline, ret_result, reterr);
}

ErrorCode conn_read(Conn *conn, const char *sql, ConnParams params, Deadline deadline, PGresult **ret_result,
                    Error *reterr)
{
    return statement_run(call_run, conn, sql, params, deadline, ret_result, reterr);
}

ErrorCode conn_commit(Conn *conn, Deadline deadline, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    return commit_run(query_run, conn, "commit", CONN_NO_PARAMS, deadline, &result, reterr);
}

ErrorCode conn_commit_reset(Conn *conn, Deadline deadline, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    return commit_run(reset_run, conn, sql_pg_commit_reset, CONN_NO_PARAMS, deadline, &result, reterr);
}

ErrorCode conn_rollback_reset(Conn *conn, Deadline deadline, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    return statement_run(reset_run, conn, sql_pg_rollback_reset, CONN_NO_PARAMS, deadline, &result, reterr);
}
