/*
 * query.c - the calls that run a statement in a transaction; parameters are made in arg.c, rows become structs in
 * row.c.
 */
#include "pg/query.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

ErrorCode db_check_time(const Tx *tx, Error *reterr)
{
    if (!tx->autocommit && deadline_passed(tx->deadline))
        return fail(reterr, ERR_TIMEOUT, "the time of the transaction is over");
    return OK;
}

static ErrorCode db_query(Tx *tx, const char *sql, DbArgs args, PGresult **ret_result, Error *reterr)
{
    Oid         types[DB_ARGS_MAX];
    const char *values[DB_ARGS_MAX];
    int         lengths[DB_ARGS_MAX], formats[DB_ARGS_MAX];

    assert(args.count <= DB_ARGS_MAX);
    for (int i = 0; i < args.count; i++) {
        const DbArg *arg = &args.list[i];

        if (arg->too_large)
            return fail(reterr, ERR_LIMIT, "parameters are larger than the request's memory");
        if (arg->bad_uuid)
            return fail(reterr, ERR_INVALID, "invalid UUID \"%.100s\"", arg->bad_uuid);
        types[i]   = arg->type;
        values[i]  = arg->null ? NULL : arg->text ? arg->text : arg->digits;
        lengths[i] = arg->length;
        formats[i] = arg->is_binary;
    }
    TRY(db_check_time(tx, reterr));
    return (!tx->autocommit ? conn_query
            : tx->read_only ? conn_read
                            : conn_call)(tx->conn, sql,
                                         (ConnParams){.count   = args.count,
                                                      .types   = types,
                                                      .values  = values,
                                                      .lengths = lengths,
                                                      .formats = formats,
                                                      .prepare = tx->prepare,
                                                      .lock_ms = tx->lock_ms},
                                         tx->deadline, ret_result, reterr);
}

ErrorCode db_many(Tx *tx, const char *sql, DbArgs args, const DbShape *shape, void *ret_rows, int *ret_count,
                  Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    TRY(db_query(tx, sql, args, &result, reterr));
    TRY(db_rows(result, shape, tx->arena, ret_rows, reterr));
    *ret_count = PQntuples(result);
    return OK;
}

ErrorCode db_one(Tx *tx, const char *sql, DbArgs args, const DbShape *shape, void *ret_row, Error *reterr)
{
    void *rows;
    int   count;

    TRY(db_many(tx, sql, args, shape, &rows, &count, reterr));
    return db_only(shape, rows, count, ret_row, reterr);
}

ErrorCode db_only(const DbShape *shape, const void *rows, int count, void *ret_row, Error *reterr)
{
    if (count == 0)
        return fail(reterr, ERR_NOT_FOUND, "%s not found", shape->noun);
    if (count > 1)
        return fail(reterr, ERR_INTERNAL, "more than one %s", shape->noun);
    memcpy(ret_row, rows, shape->size);
    return OK;
}

ErrorCode db_run(Tx *tx, const char *sql, DbArgs args, int64_t *ret_changed, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    TRY(db_query(tx, sql, args, &result, reterr));
    if (ret_changed)
        *ret_changed = strtoll(PQcmdTuples(result), NULL, 10);
    return OK;
}

ErrorCode db_get_i64(Tx *tx, const char *sql, DbArgs args, int64_t *ret_value, Error *reterr)
{
    return db_one(tx, sql, args, &db_i64_shape, ret_value, reterr);
}

ErrorCode db_get_text(Tx *tx, const char *sql, DbArgs args, const char **ret_value, Error *reterr)
{
    return db_one(tx, sql, args, &db_text_shape, ret_value, reterr);
}
