/*
 * load.c - see load.h.
 */
#include "process/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "base/scan.h"
#include "base/value.h"
#include "pg/tx.h"
#include "sql.h"

DB_SHAPE(loaded, LoadedProcess, LOADED_COLUMNS);

/* Of all that a claim reads together, as the server stores it: what does not fit is loaded by process_load(). A claim that the program cannot read would
 * cost each of its processes an attempt. So many bytes have at most 340 numbers, which with their 147,456 digits and the payloads of a claim are less than
 * RECEIVED_BYTES_MAX. */
#define CLAIMED_BYTES_MAX 4096

#define COMMAND_COLUMN(Type, type, name) {#name, DB_##type, offsetof(ClaimedProcess, command.name)},
#define COMMAND_COLUMNS(...)             DB_EACH(COMMAND_COLUMN, __VA_ARGS__)
#define PROCESS_COLUMN(Type, type, name) {#name, DB_##type, offsetof(ClaimedProcess, loaded.name)},
#define PROCESS_COLUMNS(...)             DB_EACH(PROCESS_COLUMN, __VA_ARGS__)

static const DbColumn claimed_columns[] = {CLAIMED_COLUMNS(COMMAND_COLUMNS, ClaimedProcess)
                                               LOADED_COLUMNS(PROCESS_COLUMNS, ClaimedProcess)};
static const DbShape  claimed_shape     = {"process", claimed_columns, COUNT(claimed_columns), sizeof(ClaimedProcess)};
const ClaimSource     process_claims    = {sql_process_claim, &claimed_shape, CLAIMED_BYTES_MAX};

ErrorCode process_load(Pool *pool, Deadline deadline, Arena *arena, const int64_t *ids, const int64_t *tokens,
                       int count, int64_t bytes_max, LoadedProcess **ret_list, int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "process", .deadline = deadline, .arena = arena, .read_only = true, .prepare = true};

    return db_call_many(pool, &options, sql_process_load,
                        DB_ARGS(db_i64s(arena, ids, count), db_i64s(arena, tokens, count), db_i64(bytes_max)),
                        &loaded_shape, ret_list, ret_count, reterr);
}

/*
 * ---- of a process that was started without a claim ----
 */

static void column_read(Value value, DbType type, Arena *arena, char *field)
{
    switch (type) {
    case DB_I32:
        *(int32_t *)(void *)field = (int32_t)value_i64(value);
        break;
    case DB_I64:
    case DB_TIME:
        *(int64_t *)(void *)field = value_i64(value);
        break;
    case DB_BOOL:
        *(bool *)(void *)field = value_true(value);
        break;
    case DB_TEXT:
    case DB_UUID:
        *(const char **)(void *)field = value_text(value, arena);
        break;
    case DB_JSON:
    case DB_JSONB:
        *(const char **)(void *)field = value_raw(value, arena);
        break;
    case DB_REAL: /* no column has it */
        break;
    }
}

LoadedProcess *loaded_read(const char *json, Arena *arena)
{
    LoadedProcess *loaded = arena_alloc(arena, sizeof *loaded);
    Value          object = value_trim(json, strlen(json));

    *loaded = (LoadedProcess){0};
    for (int i = 0; i < loaded_shape.count; i++) {
        const DbColumn *column = &loaded_shape.columns[i];
        Value           value  = value_field(object, column->name);

        if (value_kind(value) > VALUE_NULL)
            column_read(value, column->type, arena, (char *)loaded + column->offset);
    }
    return loaded;
}

/*
 * ---- the arrays ----
 *
 * PostgreSQL has printed them from jsonb, so they are walked without a check. A check would refuse what clients may not send and functions may
 * return (values nested deeper than READER_DEPTH_MAX, long texts), and then the process could not even be compensated.
 */

#define LIST_BYTES_FACTOR 4 /* the values, each with what the arena adds to it, and the array of rows */

/* Members of all three. */
typedef struct {
    const char *step, *item, *kind, *verdict, *response, *taken, *call_kind, *input_hash, *result, *error, *key,
        *payload, *to_step, *to_item;
    int64_t aside, attempt, retry_us, call, ended_us;
    bool    undo, is_reset, is_aside;
} Row;

static const Field row_fields[] = {
    {"step",       FIELD_TEXT, offsetof(Row, step)      },
    {"name",       FIELD_TEXT, offsetof(Row, step)      },
    {"item",       FIELD_JSON, offsetof(Row, item)      },
    {"undo",       FIELD_BOOL, offsetof(Row, undo)      },
    {"kind",       FIELD_TEXT, offsetof(Row, kind)      },
    {"aside",      FIELD_I64,  offsetof(Row, aside)     },
    {"attempt",    FIELD_I64,  offsetof(Row, attempt)   },
    {"verdict",    FIELD_TEXT, offsetof(Row, verdict)   },
    {"retry_us",   FIELD_I64,  offsetof(Row, retry_us)  },
    {"response",   FIELD_TEXT, offsetof(Row, response)  },
    {"taken",      FIELD_TEXT, offsetof(Row, taken)     },
    {"call",       FIELD_I64,  offsetof(Row, call)      },
    {"call_kind",  FIELD_TEXT, offsetof(Row, call_kind) },
    {"input_hash", FIELD_TEXT, offsetof(Row, input_hash)},
    {"result",     FIELD_JSON, offsetof(Row, result)    },
    {"error",      FIELD_TEXT, offsetof(Row, error)     },
    {"ended_us",   FIELD_I64,  offsetof(Row, ended_us)  },
    {"is_reset",   FIELD_BOOL, offsetof(Row, is_reset)  },
    {"key",        FIELD_TEXT, offsetof(Row, key)       },
    {"payload",    FIELD_JSON, offsetof(Row, payload)   },
    {"to_step",    FIELD_TEXT, offsetof(Row, to_step)   },
    {"to_item",    FIELD_JSON, offsetof(Row, to_item)   },
    {"is_aside",   FIELD_BOOL, offsetof(Row, is_aside)  },
};
static const FieldTable row_table = {"row", row_fields, COUNT(row_fields), sizeof(Row)};

static void member_read(Value value, const Field *field, Arena *arena, char *row)
{
    if (value_kind(value) <= VALUE_NULL)
        return;
    if (field->type == FIELD_I64)
        *(int64_t *)(void *)(row + field->offset) = value_i64(value);
    else if (field->type == FIELD_BOOL)
        *(bool *)(void *)(row + field->offset) = value_true(value);
    else if (field->type == FIELD_TEXT)
        *(const char **)(void *)(row + field->offset) = value_text(value, arena);
    else
        *(const char **)(void *)(row + field->offset) = value_raw(value, arena);
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

static RecordId row_id(const Row *row)
{
    RecordId id = {.step = row->step ? row->step : "", .undo = row->undo, .aside = (int)row->aside};

    if (row->item)
        record_item_read((Value){row->item, strlen(row->item)}, &id);
    return id;
}

/* The database allows no other word. */
static int word_index(const char *const *words, const char *word)
{
    int index = word ? record_word(words, word, strlen(word)) : 0;

    return index < 0 ? 0 : index;
}

static void record_take(const Row *row, void *item)
{
    StepRecord *record = item;

    *record         = (StepRecord){.id         = row_id(row),
                                   .attempt    = row->attempt,
                                   .end        = (StepEnd)word_index(step_end_names, row->verdict),
                                   .retry_us   = row->retry_us,
                                   .response   = row->response,
                                   .taken      = row->taken,
                                   .call       = row->call,
                                   .call_kind  = row->call_kind,
                                   .input_hash = row->input_hash,
                                   .result     = row->result,
                                   .error      = row->error,
                                   .ended_us   = row->ended_us,
                                   .is_reset   = row->is_reset};
    record->id.kind = (RecordKind)word_index(record_kind_names, row->kind);
}

static void response_take(const Row *row, void *item)
{
    ProcessResponse *response = item;

    *response = (ProcessResponse){
        .of       = {(ResponseKind)word_index(response_kind_names, row->kind), row_id(row)},
        .key      = row->key,
        .payload  = row->payload,
        .to       = {.step = row->to_step},
        .is_aside = row->is_aside
    };
    if (row->to_item)
        record_item_read((Value){row->to_item, strlen(row->to_item)}, &response->to);
}

static void open_take(const Row *row, void *item)
{
    *(RecordId *)item = row_id(row);
}

static ErrorCode list_read(const char *json, size_t size, void (*fill)(const Row *row, void *item), Arena *arena,
                           void *ret_list, int *ret_count, Error *reterr)
{
    Value       items = json ? value_trim(json, strlen(json)) : (Value){0}, item;
    const char *at    = NULL;
    char       *list;

    *ret_count = (int)value_item_count(items);
    if (!arena_has_space(arena, items.size * LIST_BYTES_FACTOR + (size_t)*ret_count * size))
        return fail(reterr, ERR_LIMIT, "what is recorded of the process has %zu bytes, too many to load", items.size);
    list = arena_alloc(arena, ((size_t)*ret_count + 1) * size);
    memcpy(ret_list, &list, sizeof list);
    for (; value_item_next(items, &at, &item); list += size) {
        Row row = {.call = -1};

        row_read(item, &row_table, arena, (char *)&row);
        fill(&row, list);
    }
    return OK;
}

ErrorCode records_read(const char *json, Arena *arena, StepRecord **ret_list, int *ret_count, Error *reterr)
{
    return list_read(json, sizeof **ret_list, record_take, arena, ret_list, ret_count, reterr);
}

ErrorCode responses_read(const char *json, Arena *arena, ProcessResponse **ret_list, int *ret_count, Error *reterr)
{
    return list_read(json, sizeof **ret_list, response_take, arena, ret_list, ret_count, reterr);
}

ErrorCode open_read(const char *json, Arena *arena, RecordId **ret_list, int *ret_count, Error *reterr)
{
    return list_read(json, sizeof **ret_list, open_take, arena, ret_list, ret_count, reterr);
}
