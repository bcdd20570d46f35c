/*
 * hold.c - see hold.h.
 */
#include "bench/hold.h"

#include "sql.h"

#define CALL_MS 10000

static ErrorCode statement_run(Conn *conn, const char *sql, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    return conn_query(conn, sql, CONN_NO_PARAMS, deadline_in_ms(CALL_MS), &result, reterr);
}

ErrorCode hold_begin(const BenchDatabase *database, HoldKind kind, Conn **ret_conn, Error *reterr)
{
    scoped(conn_close) Conn *conn = NULL;

    if (kind != HOLD_NOTHING) {
        TRY(conn_open(database->url, "pawl bench hold", deadline_in_ms(CALL_MS), &conn, reterr));
        TRY(statement_run(conn, "begin isolation level repeatable read", reterr));
        TRY(statement_run(conn, "set local idle_in_transaction_session_timeout = 0", reterr));
        TRY(statement_run(conn, "select 1", reterr)); /* takes the snapshot */
    }
    if (kind == HOLD_XID)
        TRY(statement_run(conn, sql_bench_hold_xid, reterr));
    *ret_conn = take(conn);
    return OK;
}

ErrorCode hold_check(Conn *conn, Error *reterr)
{
    ErrorCode code = conn ? statement_run(conn, "select 1", reterr) : OK;

    if (code != OK)
        error_prefix(reterr, "the transaction was not held until the end");
    return code;
}
