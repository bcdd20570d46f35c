/*
 * size.c - see size.h.
 */
#include "bench/size.h"

#include <assert.h>
#include <stdlib.h>

#include "pg/query.h"
#include "sql.h"

#define CALL_MS 30000

#define TABLE_COLUMNS(X, T) \
    X(T, TEXT, name)        \
    X(T, I64, bytes)
DB_SHAPE(table, TableWeight, TABLE_COLUMNS);

ErrorCode size_measure(Bench *bench, const BenchDatabase *database, const char *schema, Size *ret_size, Error *reterr)
{
    scoped(pool_release) Checkout *checkout = NULL;
    void                          *tables;
    int                            count;
    int64_t                        wal;

    TRY(pool_acquire(database->pool, deadline_in_ms(CALL_MS), &checkout, reterr));
    Tx tx = {.conn = checkout_conn(checkout), .arena = bench->arena, .deadline = deadline_in_ms(CALL_MS)};
    TRY(db_get_i64(&tx, sql_bench_wal, DB_NONE, &wal, reterr));
    TRY(db_many(&tx, sql_bench_tables, DB_ARGS(db_text(schema)), &table_shape, &tables, &count, reterr));
    *ret_size = (Size){.wal = wal, .tables = tables, .count = count};
    return OK;
}

void size_report(Bench *bench, const char *section, const Size *before, const Size *after, int64_t count)
{
    Report *report = &bench->report;
    double  sum    = 0;

    assert(before->count == after->count);
    report_run(report, section, "WAL", UNIT_BYTES, (double)(after->wal - before->wal) / (double)count);
    for (int i = 0; i < after->count; i++)
        sum += (double)(after->tables[i].bytes - before->tables[i].bytes);
    report_run(report, section, "tables and indexes", UNIT_BYTES, sum / (double)count);
    for (int i = 0; i < after->count; i++) {
        int64_t     bytes = after->tables[i].bytes - before->tables[i].bytes;
        const char *name  = arena_print(bench->arena, "table %s", after->tables[i].name);

        if (llabs(bytes) >= count || report_has(report, section, name))
            report_run(report, section, name, UNIT_BYTES, (double)bytes / (double)count);
    }
}
