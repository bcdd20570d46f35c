/*
 * deed.c - see deed.h.
 */
#include "test/concurrency/deed.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pg/tx.h"
#include "test/harness/test.h"

static const char schema[] = "create table public.deed_kind (kind text primary key);"
                             "insert into public.deed_kind values ('good');"
                             "create table public.deed (caller int, number int,"
                             "  kind text references public.deed_kind deferrable initially deferred,"
                             "  primary key (caller, number));"
                             "create table public.deed_log (caller int, number int)";

static PGresult *query(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    return result;
}

void deed_prepare(const char *url)
{
    PGconn *conn = PQconnectdb(url);

    PQclear(query(conn, schema));
    PQfinish(conn);
}

static ErrorCode deed_body(Tx *tx, void *context, Error *reterr)
{
    const Deed *deed    = context;
    int64_t     changed = 0;

    TRY(db_run(tx, "insert into public.deed values ($1, $2, $3) on conflict do nothing",
               DB_ARGS(db_i32(deed->caller), db_i32(deed->number), db_text(deed->bad ? "bad" : "good")), &changed,
               reterr));
    if (changed == 0)
        return OK; /* the key is there: it was done before */
    return db_run(tx, "insert into public.deed_log values ($1, $2)",
                  DB_ARGS(db_i32(deed->caller), db_i32(deed->number)), NULL, reterr);
}

ErrorCode deed_do(Pool *pool, Deadline deadline, Deed deed, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "deed", .deadline = deadline, .arena = arena, .keyed = true};

    return tx_run(pool, &options, deed_body, &deed, reterr);
}

void result_record(Results *results, int number, ErrorCode code)
{
    if (number >= DEEDS_MAX)
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

/* Rows of one deed against the result that its caller got. */
static bool is_wrong(ErrorCode result, int rows)
{
    return result == OK ? rows != 1 : result == ERR_UNKNOWN ? rows > 1 : rows != 0;
}

static void results_judge(const Results *results, int caller, const uint8_t *rows, Judgement *judgement)
{
    for (int i = 0; i < DEEDS_MAX; i++) {
        ErrorCode code = i < results->count ? (ErrorCode)results->codes[i] : ERR_NOT_FOUND; /* no caller asked for it */

        judgement->done += code == OK;
        judgement->unknown += code == ERR_UNKNOWN;
        judgement->refused += i < results->count && code != OK && code != ERR_UNKNOWN;
        judgement->wrong += is_wrong(code, rows[i]);
        if (is_wrong(code, rows[i]))
            print_message("# deed %d of caller %d: result %s, %d rows\n", i, caller, error_name(code), rows[i]);
    }
}

Judgement deeds_judge(const char *url, const Results *const *lists, int callers)
{
    PGconn   *conn            = PQconnectdb(url);
    PGresult *log             = query(conn, "select caller, number from public.deed_log");
    PGresult *keys            = query(conn, "select count(*) from public.deed");
    uint8_t(*rows)[DEEDS_MAX] = calloc((size_t)callers, sizeof *rows);
    Judgement judgement       = {0};

    assert_non_null(rows);
    assert_int_equal(PQntuples(log), number_at(keys, 0, 0));
    for (int i = 0; i < PQntuples(log); i++)
        rows[number_at(log, i, 0)][number_at(log, i, 1)]++;
    for (int i = 0; i < callers; i++)
        results_judge(lists[i], i, rows[i], &judgement);
    free(rows);
    PQclear(keys);
    PQclear(log);
    PQfinish(conn);
    return judgement;
}

int test_seconds(int seconds)
{
    const char *wish = getenv("PAWL_TEST_SECONDS");

    return wish ? (int)strtol(wish, NULL, 10) : seconds;
}
