/*
 * row.c - the mapper: finds every column once, insists on its type, copies row by row into the arena.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pg/oid.h"
#include "pg/query.h"

#define COLUMNS_MAX 64

static const Oid oids[] = {
    [DB_I32] = OID_INT4,  [DB_I64] = OID_INT8,    [DB_REAL] = OID_FLOAT8, [DB_BOOL] = OID_BOOL, [DB_TEXT] = OID_TEXT,
    [DB_UUID] = OID_UUID, [DB_JSONB] = OID_JSONB, [DB_JSON] = OID_JSON,   [DB_TIME] = OID_INT8,
};

static const DbColumn i64_column = {NULL, DB_I64, 0}, text_column = {NULL, DB_TEXT, 0},
                      bool_column = {NULL, DB_BOOL, 0};
const DbShape db_i64_shape        = {"value", &i64_column, 1, sizeof(int64_t)};
const DbShape db_text_shape       = {"value", &text_column, 1, sizeof(const char *)};
const DbShape db_bool_shape       = {"value", &bool_column, 1, sizeof(bool)};

static ErrorCode find_columns(const PGresult *result, const DbShape *shape, int *ret_numbers, Error *reterr)
{
    for (int i = 0; i < shape->count; i++) {
        const DbColumn *column = &shape->columns[i];
        int             number = column->name ? PQfnumber(result, column->name) : PQnfields(result) - 1;

        if (!column->name && number != 0)
            return fail(reterr, ERR_INTERNAL, "%s has %d columns, not one", shape->noun, number + 1);
        if (number < 0)
            return fail(reterr, ERR_INTERNAL, "%s has no column \"%s\"", shape->noun, column->name);
        if (PQftype(result, number) != oids[column->type])
            return fail(reterr, ERR_INTERNAL, "%s column \"%s\" has type %u", shape->noun, PQfname(result, number),
                        PQftype(result, number));
        ret_numbers[i] = number;
    }
    return OK;
}

static ErrorCode read_i64(const char *text, int64_t min, int64_t max, int64_t *ret_value, Error *reterr)
{
    char     *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < min || value > max)
        return fail(reterr, ERR_INTERNAL, "\"%.40s\" is not a %d-bit integer", text, max == INT32_MAX ? 32 : 64);
    *ret_value = value;
    return OK;
}

static ErrorCode read_value(const DbColumn *column, const char *text, size_t size, Arena *arena, void *ret_field,
                            Error *reterr)
{
    int64_t number = 0;

    switch (column->type) {
    case DB_I32:
        TRY(read_i64(text, INT32_MIN, INT32_MAX, &number, reterr));
        *(int32_t *)ret_field = (int32_t)number;
        break;
    case DB_I64:
    case DB_TIME:
        TRY(read_i64(text, INT64_MIN, INT64_MAX, &number, reterr));
        *(int64_t *)ret_field = number;
        break;
    case DB_REAL:
        *(double *)ret_field = strtod(text, NULL);
        break;
    case DB_BOOL:
        *(bool *)ret_field = text[0] == 't';
        break;
    case DB_TEXT:
    case DB_UUID:
    case DB_JSONB:
    case DB_JSON:
        if (!arena_has_space(arena, size + 1))
            return fail(reterr, ERR_LIMIT, "rows are larger than the request's memory");
        *(const char **)ret_field = arena_bytes(arena, text, size);
        break;
    }
    return OK;
}

ErrorCode db_rows(const PGresult *result, const DbShape *shape, Arena *arena, void *ret_rows, Error *reterr)
{
    int    numbers[COLUMNS_MAX];
    int    count = PQntuples(result);
    size_t bytes = shape->size * (size_t)count;
    char  *rows;

    assert(shape->count <= COLUMNS_MAX);
    TRY(find_columns(result, shape, numbers, reterr));
    if (!arena_has_space(arena, bytes))
        return fail(reterr, ERR_LIMIT, "rows are larger than the request's memory");
    rows = arena_alloc(arena, bytes);
    for (int row = 0; row < count; row++)
        for (int i = 0; i < shape->count; i++) {
            const DbColumn *column = &shape->columns[i];
            char           *field  = rows + shape->size * (size_t)row + column->offset;

            if (PQgetisnull(result, row, numbers[i])) /* the arena's zeroes are its 0, false or NULL */
                continue;
            TRY(read_value(column, PQgetvalue(result, row, numbers[i]), (size_t)PQgetlength(result, row, numbers[i]),
                           arena, field, reterr));
        }
    memcpy(ret_rows, &rows, sizeof rows);
    return OK;
}

/* PostgreSQL counts the rows that a select returns as well. */
static int64_t rows_changed(PGresult *result)
{
    static const char *const changing[] = {"INSERT ", "UPDATE ", "DELETE ", "MERGE "};
    const char              *command    = PQcmdStatus(result);

    for (size_t i = 0; i < COUNT(changing); i++)
        if (strncmp(command, changing[i], strlen(changing[i])) == 0)
            return strtoll(PQcmdTuples(result), NULL, 10);
    return 0;
}

static ErrorCode table_copy(PGresult *result, Arena *arena, DbTable *ret_table, Error *reterr)
{
    int          rows = PQntuples(result), columns = PQnfields(result);
    const char **values;

    if (!arena_has_space(arena, sizeof *values * (size_t)rows * (size_t)columns))
        return fail(reterr, ERR_LIMIT, "rows are larger than the request's memory");
    values = arena_array(arena, const char *, rows *columns);
    for (int i = 0; i < rows * columns; i++) {
        int row = i / columns, column = i % columns;

        if (PQgetisnull(result, row, column))
            continue;
        if (!arena_has_space(arena, (size_t)PQgetlength(result, row, column) + 1))
            return fail(reterr, ERR_LIMIT, "rows are larger than the request's memory");
        values[i] = arena_bytes(arena, PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column));
    }
    *ret_table = (DbTable){rows, columns, values, rows_changed(result)};
    return OK;
}

ErrorCode db_table(Tx *tx, const char *sql, int count, const char *const *parameters, DbTable *ret_table, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    TRY(db_check_time(tx, reterr));
    TRY(conn_query(tx->conn, sql, (ConnParams){.count = count, .values = parameters, .alone = true}, tx->deadline,
                   &result, reterr));
    return table_copy(result, tx->arena, ret_table, reterr);
}

int64_t db_page_next(const void *rows, size_t row_size, int limit, int *count)
{
    struct {
        int64_t id, searched_to;
    } last;

    if (*count == 0)
        return 0;
    memcpy(&last, (const char *)rows + row_size * (size_t)(*count - 1), sizeof last);
    if (last.id == 0)
        --*count;
    else if (*count < limit)
        return 0;
    return last.searched_to;
}
