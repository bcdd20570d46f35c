/*
 * query.c - bound parameters and the calls that run a statement; rows become structs in row.c.
 */
#include "pg/query.h"

#include <assert.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "pg/oid.h"

#define ARRAY_TEXT_MAX ((size_t)256 << 20)

/* ---- parameters ---- */

DbArg db_i32(int32_t value)
{
    DbArg arg = {.type = OID_INT4};

    snprintf(arg.digits, sizeof arg.digits, "%" PRId32, value);
    return arg;
}

DbArg db_i64(int64_t value)
{
    DbArg arg = {.type = OID_INT8};

    snprintf(arg.digits, sizeof arg.digits, "%" PRId64, value);
    return arg;
}

DbArg db_real(double value)
{
    DbArg arg = {.type = OID_FLOAT8};

    snprintf(arg.digits, sizeof arg.digits, "%.17g", value);
    return arg;
}

DbArg db_bool(bool value)
{
    return (DbArg){.type = OID_BOOL, .text = value ? "t" : "f"};
}

static DbArg text_arg(Oid type, const char *value)
{
    return (DbArg){.type = type, .text = value, .null = value == NULL};
}

DbArg db_text(const char *value)
{
    return text_arg(OID_TEXT, value);
}

DbArg db_uuid(const char *value)
{
    return text_arg(OID_UUID, value);
}

DbArg db_jsonb(const char *value)
{
    return text_arg(OID_JSONB, value);
}

DbArg db_null(void)
{
    return (DbArg){.null = true};
}

DbArg db_bytea(Arena *arena, const void *bytes, size_t size)
{
    char *text;

    if (!arena_has_space(arena, size * 2 + 3))
        return (DbArg){.type = OID_BYTEA, .too_large = true};
    text    = arena_alloc(arena, size * 2 + 3);
    text[0] = '\\';
    text[1] = 'x';
    sodium_bin2hex(text + 2, size * 2 + 1, bytes, size);
    return text_arg(OID_BYTEA, text);
}

/* ---- arrays, as PostgreSQL writes them: {1,2} and {"a \"b\"",NULL} ---- */

static DbArg array_arg(Oid type, const Text *text)
{
    if (text_is_full(text))
        return (DbArg){.type = type, .too_large = true};
    return text_arg(type, text_string(text));
}

DbArg db_i32s(Arena *arena, const int32_t *values, int count)
{
    Text text;

    text_init(&text, arena, ARRAY_TEXT_MAX);
    text_append_char(&text, '{');
    for (int i = 0; i < count; i++)
        text_print(&text, "%s%" PRId32, i ? "," : "", values[i]);
    text_append_char(&text, '}');
    return array_arg(OID_INT4_ARRAY, &text);
}

DbArg db_i64s(Arena *arena, const int64_t *values, int count)
{
    Text text;

    text_init(&text, arena, ARRAY_TEXT_MAX);
    text_append_char(&text, '{');
    for (int i = 0; i < count; i++)
        text_print(&text, "%s%" PRId64, i ? "," : "", values[i]);
    text_append_char(&text, '}');
    return array_arg(OID_INT8_ARRAY, &text);
}

static void append_quoted(Text *text, const char *value)
{
    text_append_char(text, '"');
    while (*value) {
        size_t plain = strcspn(value, "\"\\");

        text_append_bytes(text, value, plain);
        value += plain;
        if (*value) {
            text_append_char(text, '\\');
            text_append_char(text, *value++);
        }
    }
    text_append_char(text, '"');
}

static DbArg texts_arg(Oid type, Arena *arena, const char *const *values, int count)
{
    Text text;

    text_init(&text, arena, ARRAY_TEXT_MAX);
    text_append_char(&text, '{');
    for (int i = 0; i < count; i++) {
        if (i)
            text_append_char(&text, ',');
        if (values[i])
            append_quoted(&text, values[i]);
        else
            text_append(&text, "NULL");
    }
    text_append_char(&text, '}');
    return array_arg(type, &text);
}

DbArg db_texts(Arena *arena, const char *const *values, int count)
{
    return texts_arg(OID_TEXT_ARRAY, arena, values, count);
}

DbArg db_uuids(Arena *arena, const char *const *values, int count)
{
    return texts_arg(OID_UUID_ARRAY, arena, values, count);
}

DbArg db_jsonbs(Arena *arena, const char *const *values, int count)
{
    return texts_arg(OID_JSONB_ARRAY, arena, values, count);
}

const char *const *db_texts_of(Arena *arena, const void *items, int count, DbTextOf *text_of)
{
    const void *const *list  = items;
    const char       **texts = arena_array(arena, const char *, count);
    bool               any   = false;

    for (int i = 0; i < count; i++) {
        texts[i] = text_of(list[i]);
        any |= texts[i] != NULL;
    }
    return any ? texts : NULL;
}

DbArg db_texts_by(Arena *arena, const void *items, int count, DbTextOf *text_of)
{
    const char *const *texts = db_texts_of(arena, items, count, text_of);

    return texts ? db_texts(arena, texts, count) : db_null();
}

/* ---- running ---- */

static ErrorCode db_query(Tx *tx, const char *sql, DbArgs args, PGresult **ret_result, Error *reterr)
{
    Oid         types[DB_ARGS_MAX];
    const char *values[DB_ARGS_MAX];

    assert(args.count <= DB_ARGS_MAX);
    for (int i = 0; i < args.count; i++) {
        const DbArg *arg = &args.list[i];

        if (arg->too_large)
            return fail(reterr, ERR_LIMIT, "parameters are larger than the request's memory");
        types[i]  = arg->type;
        values[i] = arg->null ? NULL : arg->text ? arg->text : arg->digits;
    }
    return (!tx->autocommit ? conn_query
            : tx->read_only ? conn_read
                            : conn_call)(tx->conn, sql, args.count, types, values, tx->deadline, ret_result, reterr);
}

ErrorCode db_many(Tx *tx, const char *sql, DbArgs args, const DbShape *shape, void **ret_rows, int *ret_count,
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
