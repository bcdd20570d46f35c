/*
 * weight.c - see weight.h.
 */
#include "bench/weight.h"

#include <assert.h>
#include <stdlib.h>

#include "pg/query.h"
#include "sql.h"

#define CALL_MS 30000

#define TABLE_COLUMNS(X, T)           \
    X(T, const char *, DB_TEXT, name) \
    X(T, int64_t, DB_I64, bytes)
DB_SHAPE(table, TableWeight, TABLE_COLUMNS);

ErrorCode weight_take(Bench *bench, const Place *place, const char *schema, Weight *ret_weight, Error *reterr)
{
    scoped(lease_end) Lease *lease = NULL;
    void                    *tables;
    int                      count;
    int64_t                  wal;

    TRY(pool_lease(place->pool, deadline_in_ms(CALL_MS), &lease, reterr));
    Tx tx = {.conn = lease_conn(lease), .arena = bench->arena, .deadline = deadline_in_ms(CALL_MS)};
    TRY(db_get_i64(&tx, sql_bench_wal, DB_NONE, &wal, reterr));
    TRY(db_many(&tx, sql_bench_tables, DB_ARGS(db_text(schema)), &table_shape, &tables, &count, reterr));
    *ret_weight = (Weight){.wal = wal, .tables = tables, .count = count};
    return OK;
}

void weight_report(Bench *bench, const char *section, const Weight *before, const Weight *after, int64_t count)
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
