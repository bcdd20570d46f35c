/*
 * load.c - see load.h.
 */
#include "process/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "base/scan.h"
#include "pg/tx.h"
#include "process/value.h"
#include "sql.h"

DB_SHAPE(loaded, LoadedProcess, LOADED_COLUMNS);

ErrorCode process_load(Pool *pool, Deadline deadline, Arena *arena, const int64_t *ids, const int64_t *tokens,
                       int count, int64_t bytes_max, LoadedProcess **ret_list, int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "process", .deadline = deadline, .arena = arena, .read_only = true, .prepare = true};
    void     *rows;

    TRY(db_call_many(pool, &options, sql_process_load,
                     DB_ARGS(db_i64s(arena, ids, count), db_i64s(arena, tokens, count), db_i64(bytes_max)),
                     &loaded_shape, &rows, ret_count, reterr));
    *ret_list = rows;
    return OK;
}

/*
 * ---- the arrays ----
 *
 * PostgreSQL has printed them from jsonb, so they are walked without a check. A check would refuse what clients may not send and functions may
 * return (values nested deeper than READER_DEPTH_MAX, long texts), and then the process could not even be compensated.
 */

#define LIST_BYTES_FACTOR 4 /* the values, each with what the arena adds to it, and the array of rows */

static const Field step_fields[] = {
    {"name",       FIELD_TEXT, offsetof(StepRecord, name)      },
    {"attempt",    FIELD_I64,  offsetof(StepRecord, attempt)   },
    {"result",     FIELD_JSON, offsetof(StepRecord, result)    },
    {"error",      FIELD_TEXT, offsetof(StepRecord, error)     },
    {"input_hash", FIELD_TEXT, offsetof(StepRecord, input_hash)},
    {"ended_us",   FIELD_I64,  offsetof(StepRecord, ended_us)  },
    {"is_reset",   FIELD_BOOL, offsetof(StepRecord, is_reset)  },
};
static const FieldTable step_table = {"step", step_fields, COUNT(step_fields), sizeof(StepRecord)};

static const Field response_fields[] = {
    {"name",    FIELD_TEXT, offsetof(ProcessResponse, name)   },
    {"key",     FIELD_TEXT, offsetof(ProcessResponse, key)    },
    {"payload", FIELD_JSON, offsetof(ProcessResponse, payload)},
};
static const FieldTable response_table = {"response", response_fields, COUNT(response_fields), sizeof(ProcessResponse)};

static const char *text_copy(Value value, Arena *arena)
{
    value = value_decode(value, arena);
    return arena_bytes(arena, value.bytes, value.size);
}

/* Of a slice, which has no NUL behind it. */
static int64_t integer_read(Value value)
{
    char   digits[32] = "";
    size_t size       = value.size < sizeof digits - 1 ? value.size : sizeof digits - 1;

    memcpy(digits, value.bytes, size);
    return strtoll(digits, NULL, 10);
}

static void member_read(Value value, const Field *field, Arena *arena, char *row)
{
    if (value_kind(value) <= VALUE_NULL)
        return;
    if (field->type == FIELD_I64)
        *(int64_t *)(void *)(row + field->offset) = integer_read(value);
    else if (field->type == FIELD_BOOL)
        *(bool *)(void *)(row + field->offset) = value.bytes[0] == 't';
    else if (field->type == FIELD_TEXT)
        *(const char **)(void *)(row + field->offset) = text_copy(value, arena);
    else
        *(const char **)(void *)(row + field->offset) = arena_bytes(arena, value.bytes, value.size);
}

static const Field *field_find(const FieldTable *table, const char *key, size_t size)
{
    for (size_t i = 0; i < table->count; i++)
        if (strlen(table->fields[i].name) == size && memcmp(table->fields[i].name, key, size) == 0)
            return &table->fields[i];
    return NULL;
}

static void row_read(Value object, const FieldTable *table, Arena *arena, char *row)
{
    const char *at = object.bytes + 1;

    while (scan_next(&at)) {
        const Field *field = field_find(table, at + 1, (size_t)(scan_value_end(at) - at) - 2);
        const char  *value = scan_member_value(at);

        at = scan_value_end(value);
        if (field)
            member_read((Value){value, (size_t)(at - value)}, field, arena, row);
    }
}

static ErrorCode list_read(const char *json, const FieldTable *table, Arena *arena, void **ret_list, int *ret_count,
                           Error *reterr)
{
    Value       items = json ? value_trim(json, strlen(json)) : (Value){0}, item;
    const char *at    = NULL;
    char       *row;

    if (!arena_has_space(arena, items.size * LIST_BYTES_FACTOR))
        return fail(reterr, ERR_LIMIT, "what is recorded of the process has %zu bytes, too many to load", items.size);
    *ret_count = (int)value_item_count(items);
    *ret_list = row = arena_alloc(arena, ((size_t)*ret_count + 1) * table->size);
    for (; value_item_next(items, &at, &item); row += table->size)
        row_read(item, table, arena, row);
    return OK;
}

ErrorCode records_read(const char *json, Arena *arena, StepRecord **ret_list, int *ret_count, Error *reterr)
{
    void *rows;

    TRY(list_read(json, &step_table, arena, &rows, ret_count, reterr));
    *ret_list = rows;
    return OK;
}

ErrorCode responses_read(const char *json, Arena *arena, ProcessResponse **ret_list, int *ret_count, Error *reterr)
{
    void *rows;

    TRY(list_read(json, &response_table, arena, &rows, ret_count, reterr));
    *ret_list = rows;
    return OK;
}
