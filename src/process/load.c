/*
 * load.c - see load.h.
 */
#include "process/load.h"

#include <string.h>

#include "base/reader.h"
#include "pg/tx.h"
#include "sql.h"

DB_SHAPE(loaded, LoadedProcess, LOADED_COLUMNS);

ErrorCode process_load(Pool *pool, Deadline deadline, Arena *arena, const int64_t *ids, int count,
                       LoadedProcess **ret_list, int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "process", .deadline = deadline, .arena = arena, .read_only = true};
    void     *rows;

    TRY(db_call_many(pool, &options, sql_process_load, DB_ARGS(db_i64s(arena, ids, count)), &loaded_shape, &rows,
                     ret_count, reterr));
    *ret_list = rows;
    return OK;
}

/* ---- the arrays ---- */

#define LIST_BYTES_FACTOR 4 /* a copy as an object, the values read from it, and the array of rows */

typedef struct {
    ReaderArray items;
} List;

static const Field step_fields[] = {
    {"name", FIELD_TEXT, offsetof(StepRecord, name), .required = true},
    {"attempt", FIELD_I64, offsetof(StepRecord, attempt)},
    {"result", FIELD_JSON, offsetof(StepRecord, result)},
    {"error", FIELD_TEXT, offsetof(StepRecord, error)},
    {"input_hash", FIELD_TEXT, offsetof(StepRecord, input_hash)},
    {"ended_us", FIELD_I64, offsetof(StepRecord, ended_us)},
};
static const FieldTable step_table     = {"step", step_fields, COUNT(step_fields), sizeof(StepRecord)};
static const Field      steps_fields[] = {
    {"items", FIELD_ROWS, offsetof(List, items), .rows = &step_table}
};
static const FieldTable steps_table = {"steps", steps_fields, COUNT(steps_fields), sizeof(List)};

static const Field response_fields[] = {
    {"name", FIELD_TEXT, offsetof(ProcessResponse, name), .required = true},
    {"key", FIELD_TEXT, offsetof(ProcessResponse, key), .required = true},
    {"payload", FIELD_JSON, offsetof(ProcessResponse, payload)},
};
static const FieldTable response_table = {"response", response_fields, COUNT(response_fields), sizeof(ProcessResponse)};
static const Field      responses_fields[] = {
    {"items", FIELD_ROWS, offsetof(List, items), .rows = &response_table}
};
static const FieldTable responses_table = {"responses", responses_fields, COUNT(responses_fields), sizeof(List)};

/* The reader wants an object. */
static ErrorCode list_read(const char *json, const FieldTable *table, Arena *arena, ReaderArray *ret_items,
                           Error *reterr)
{
    List list = {0};

    if (json) {
        if (!arena_has_space(arena, strlen(json) * LIST_BYTES_FACTOR))
            return fail(reterr, ERR_LIMIT, "what is recorded of the process has %zu bytes, too many to load",
                        strlen(json));
        const char *object = arena_print(arena, "{\"items\":%s}", json);

        TRY(reader_object(object, strlen(object), table, arena, &list, reterr));
    }
    *ret_items = list.items;
    return OK;
}

ErrorCode records_read(const char *json, Arena *arena, StepRecord **ret_list, int *ret_count, Error *reterr)
{
    ReaderArray items;

    TRY(list_read(json, &steps_table, arena, &items, reterr));
    *ret_list  = (StepRecord *)(uintptr_t)items.items;
    *ret_count = items.count;
    return OK;
}

ErrorCode responses_read(const char *json, Arena *arena, ProcessResponse **ret_list, int *ret_count, Error *reterr)
{
    ReaderArray items;

    TRY(list_read(json, &responses_table, arena, &items, reterr));
    *ret_list  = (ProcessResponse *)(uintptr_t)items.items;
    *ret_count = items.count;
    return OK;
}
