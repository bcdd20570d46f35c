/*
 * keyed_insert.c - see keyed_insert.h.
 */
#include "test/concurrency/keyed_insert.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pg/tx.h"
#include "test/harness/test.h"

static const char schema[] = "create table public.inserted_kind (kind text primary key);"
                             "insert into public.inserted_kind values ('good');"
                             "create table public.inserted (caller int, number int,"
                             "  kind text references public.inserted_kind deferrable initially deferred,"
                             "  primary key (caller, number));"
                             "create table public.inserted_log (caller int, number int)";

static PGresult *query(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    return result;
}

void keyed_insert_prepare(const char *url)
{
    PGconn *conn = PQconnectdb(url);

    PQclear(query(conn, schema));
    PQfinish(conn);
}

static ErrorCode insert_body(Tx *tx, void *context, Error *reterr)
{
    const KeyedInsert *insert  = context;
    int64_t            changed = 0;

    TRY(db_run(tx, "insert into public.inserted values ($1, $2, $3) on conflict do nothing",
               DB_ARGS(db_i32(insert->caller), db_i32(insert->number), db_text(insert->bad ? "bad" : "good")), &changed,
               reterr));
    if (changed == 0)
        return OK; /* the key is there: it was done before */
    return db_run(tx, "insert into public.inserted_log values ($1, $2)",
                  DB_ARGS(db_i32(insert->caller), db_i32(insert->number)), NULL, reterr);
}

ErrorCode keyed_insert_run(Pool *pool, Deadline deadline, KeyedInsert insert, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "insert", .deadline = deadline, .arena = arena, .keyed = true};

    return tx_run(pool, &options, insert_body, &insert, reterr);
}

void result_record(Results *results, int number, ErrorCode code)
{
    if (number >= INSERTS_MAX)
        abort();
    if (number < results->count && results->codes[number] == ERR_UNKNOWN && code != OK)
        return;
    results->codes[number] = (uint8_t)code;
    results->count         = number < results->count ? results->count : number + 1;
}

static int number_at(const PGresult *result, int row, int column)
{
    return (int)strtol(PQgetvalue(result, row, column), NULL, 10);
}

/* Rows of one insert against the result that its caller got. */
static bool is_wrong(ErrorCode result, int rows)
{
    return result == OK ? rows != 1 : result == ERR_UNKNOWN ? rows > 1 : rows != 0;
}

static void results_compare(const Results *results, int caller, const uint8_t *rows, Comparison *comparison)
{
    for (int i = 0; i < INSERTS_MAX; i++) {
        ErrorCode code = i < results->count ? (ErrorCode)results->codes[i] : ERR_NOT_FOUND; /* no caller asked for it */

        comparison->done += code == OK;
        comparison->unknown += code == ERR_UNKNOWN;
        comparison->refused += i < results->count && code != OK && code != ERR_UNKNOWN;
        comparison->wrong += is_wrong(code, rows[i]);
        if (is_wrong(code, rows[i]))
            print_message("# insert %d of caller %d: result %s, %d rows\n", i, caller, error_name(code), rows[i]);
    }
}

Comparison keyed_inserts_compare(const char *url, const Results *const *lists, int callers)
{
    PGconn   *conn              = PQconnectdb(url);
    PGresult *log               = query(conn, "select caller, number from public.inserted_log");
    PGresult *keys              = query(conn, "select count(*) from public.inserted");
    uint8_t(*rows)[INSERTS_MAX] = calloc((size_t)callers, sizeof *rows);
    Comparison comparison       = {0};

    assert_non_null(rows);
    assert_int_equal(PQntuples(log), number_at(keys, 0, 0));
    for (int i = 0; i < PQntuples(log); i++)
        rows[number_at(log, i, 0)][number_at(log, i, 1)]++;
    for (int i = 0; i < callers; i++)
        results_compare(lists[i], i, rows[i], &comparison);
    free(rows);
    PQclear(keys);
    PQclear(log);
    PQfinish(conn);
    return comparison;
}

int test_seconds(int seconds)
{
    const char *wish = getenv("PAWL_TEST_SECONDS");

    return wish ? (int)strtol(wish, NULL, 10) : seconds;
}
