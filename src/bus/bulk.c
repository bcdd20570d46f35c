/*
 * bulk.c - see bulk.h.
 */
#include "bus/bulk.h"

#include <stddef.h>
#include <string.h>

#include "base/moment.h"
#include "base/word.h"
#include "bus/answers.h"
#include "bus/command.h"
#include "bus/send.h"
#include "pg/tx.h"
#include "sql.h"

#define LOCK_MS 5000 /* of a chunk, in all */

DB_SHAPE(count, BulkCount, BULK_COUNT_COLUMNS);
DB_SHAPE(step, BulkStep, BULK_STEP_COLUMNS);
DB_SHAPE(bulk, Bulk, BULK_COLUMNS);

ErrorCode bulk_estimate(Pool *pool, Deadline deadline, Arena *arena, const BulkNew *bulk, BulkCount *ret_count,
                        Error *reterr)
{
    TxOptions options = {.name = "bulk_count", .deadline = deadline, .arena = arena, .read_only = true};

    return db_call(pool, &options, sql_bus_bulk_count,
                   DB_ARGS(db_text(bulk->noun), db_text(bulk->action), db_jsonb(bulk->filter)), &count_shape, ret_count,
                   reterr);
}

#define STARTED_COLUMNS(X, T) \
    X(T, UUID, operation_id)  \
    X(T, BOOL, is_new)        \
    X(T, TEXT, differs)
DB_ROW(Started, STARTED_COLUMNS);
DB_SHAPE(started, Started, STARTED_COLUMNS);

ErrorCode bulk_start(Pool *pool, Deadline deadline, Arena *arena, const BulkNew *bulk, const char **ret_operation_id,
                     bool *ret_is_new, Error *reterr)
{
    TxOptions options = {.name     = "bulk_start",
                         .deadline = deadline,
                         .arena    = arena,
                         .keyed    = bulk->operation_id != NULL};
    Started   started;

    TRY(db_call(pool, &options, sql_bus_bulk_start,
                DB_ARGS(db_uuid(bulk->operation_id), db_text(bulk->noun), db_text(bulk->action), db_jsonb(bulk->filter),
                        db_jsonb(bulk->argument), db_text(bulk->actor), db_text(bulk->reason)),
                &started_shape, &started, reterr));
    if (started.differs)
        return fail(reterr, ERR_KEY_REUSED, "operation %s was begun before with another %s", started.operation_id,
                    started.differs);
    *ret_operation_id = started.operation_id;
    *ret_is_new       = started.is_new;
    return OK;
}

ErrorCode bulk_step(Pool *pool, Deadline deadline, Arena *arena, const char *operation_id, bool *ret_ran,
                    BulkStep *ret_step, Error *reterr)
{
    TxOptions options = {.name = "bulk_step", .deadline = deadline, .arena = arena, .keyed = true, .lock_ms = LOCK_MS};
    BulkStep *rows;
    int       count;

    /* A chunk whose commit was lost is either recorded, so that the next one is run, or not. */
    TRY(db_call_many(pool, &options, sql_bus_bulk_step, DB_ARGS(db_uuid(operation_id)), &step_shape, &rows, &count,
                     reterr));
    *ret_ran = count > 0;
    if (count > 0)
        *ret_step = rows[0];
    return OK;
}

static ErrorCode skip_body(Tx *tx, void *context, Error *reterr)
{
    (void)context;
    return db_run(tx, sql_bus_bulk_skip, DB_NONE, NULL, reterr);
}

ErrorCode bulk_skip(Pool *pool, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "bulk_skip", .deadline = deadline, .arena = arena};

    return tx_run(pool, &options, skip_body, NULL, reterr);
}

ErrorCode bulk_show(Pool *pool, Deadline deadline, Arena *arena, const char *operation_id, Bulk *ret_bulk,
                    Error *reterr)
{
    TxOptions options = {.name = "bulk_show", .deadline = deadline, .arena = arena, .read_only = true};
    ErrorCode code =
        db_call(pool, &options, sql_bus_bulk_show, DB_ARGS(db_uuid(operation_id)), &bulk_shape, ret_bulk, reterr);

    if (code == ERR_NOT_FOUND)
        return fail(reterr, code, "bulk operation %s not found", operation_id);
    return code;
}

void bulk_write(Writer *writer, const void *bulk)
{
    writer_row(writer, &answer_bulk, bulk);
}

/* ---- an operation as JSON ---- */

typedef struct {
    const char *domain, *type, *status, *since, *until, *batch_id, *command_id, *correlation_id, *order_key, *step,
        *text;
} BulkFilter;

#define AT(member) offsetof(BulkFilter, member)
#define FILTER_FIELDS                                                                              \
    {"domain", FIELD_TEXT, AT(domain), .min = 1, .length_max = SEND_DOMAIN_MAX},                   \
        {"type", FIELD_TEXT, AT(type), .min = 1, .length_max = SEND_TYPE_MAX},                     \
        {"status", FIELD_TEXT, AT(status), .length_max = 40, .help = "as lists have it"},          \
        {"since", FIELD_TEXT, AT(since), .length_max = 40, .help = "not sent before this moment"}, \
    {                                                                                              \
        "until", FIELD_TEXT, AT(until), .length_max = 40, .help = "not sent after this moment"     \
    }
static const Field command_filter_fields[] = {
    FILTER_FIELDS,
    {"batch_id", FIELD_UUID, AT(batch_id)},
    {"command_id", FIELD_UUID, AT(command_id)},
    {"correlation_id", FIELD_TEXT, AT(correlation_id), .length_max = SEND_CORRELATION_MAX},
    {"order_key", FIELD_TEXT, AT(order_key), .length_max = SEND_ORDER_KEY_MAX},
};
static const Field process_filter_fields[] = {
    FILTER_FIELDS,
    {"step", FIELD_TEXT, AT(step), .length_max = 200,  .help = "the last step, or the one that it waits in"},
    {"text", FIELD_TEXT, AT(text), .length_max = 1000, .help = "in its state"                              },
};
static const FieldTable command_filter_table = {"command filter", command_filter_fields, COUNT(command_filter_fields),
                                                sizeof(BulkFilter)};
static const FieldTable process_filter_table = {"process filter", process_filter_fields, COUNT(process_filter_fields),
                                                sizeof(BulkFilter)};

static const char *const command_actions[] = {"retry", "cancel", "complete", "delete", NULL};
static const char *const process_actions[] = {"retry", "cancel", "compensate", "complete", "delete", NULL};

#undef AT
#define AT(member) offsetof(BulkRequest, member)
#define BULK_FIELDS(words_, filter_)                                                                  \
    {"action", FIELD_TEXT, AT(action), .required = true, .words = words_},                            \
        {"filter", FIELD_OBJECT, AT(filter), .required = true, .rows = filter_, .help = "{} is all"}, \
        {"dry_run", FIELD_BOOL, AT(dry_run), .help = "only count"},                                   \
        {"operation_id", FIELD_UUID, AT(operation_id),                                                \
         .help = "idempotency key: the same again is the same operation"},                            \
        {"result", FIELD_JSON, AT(result), .help = "complete: what the handler would have returned"}, \
        DECISION_FIELDS(BulkRequest)
static const Field bulk_command_fields[] = {BULK_FIELDS(command_actions, &command_filter_table)};
static const Field bulk_process_fields[] = {
    BULK_FIELDS(process_actions, &process_filter_table),
    {"from", FIELD_TEXT, AT(from), .min = 1, .length_max = 200, .help = "retry: run again from this step"},
};
const FieldTable bulk_command_table = {"bulk of commands", bulk_command_fields, COUNT(bulk_command_fields),
                                       sizeof(BulkRequest)};
const FieldTable bulk_process_table = {"bulk of processes", bulk_process_fields, COUNT(bulk_process_fields),
                                       sizeof(BulkRequest)};

static ErrorCode moment_check(const char *name, const char *moment, Error *reterr)
{
    int64_t micros;

    if (!moment || moment_parse(moment, MOMENT_RFC3339, &micros))
        return OK;
    return fail(reterr, ERR_INVALID, "filter.%s must be a moment such as 2026-01-31T12:00:00Z, got \"%.60s\"", name,
                moment);
}

static ErrorCode filter_check(Arena *arena, const char *noun, const char *json, const char **ret_domain, Error *reterr)
{
    bool       is_command = strcmp(noun, "command") == 0;
    BulkFilter filter;

    TRY(reader_object(json, strlen(json), is_command ? &command_filter_table : &process_filter_table, arena, &filter,
                      reterr));
    TRY(moment_check("since", filter.since, reterr));
    TRY(moment_check("until", filter.until, reterr));
    if (is_command)
        TRY(word_check("filter.status", filter.status, command_statuses, reterr));
    *ret_domain = filter.domain;
    return OK;
}

ErrorCode bulk_request_new(Arena *arena, const char *noun, const BulkRequest *request, BulkNew *ret_bulk,
                           const char **ret_domain, Error *reterr)
{
    const char *argument = NULL;

    TRY(filter_check(arena, noun, request->filter, ret_domain, reterr));
    if (request->result && strcmp(request->action, "complete") != 0)
        return fail(reterr, ERR_INVALID, "result is for complete, not for %s", request->action);
    if (request->from && strcmp(request->action, "retry") != 0)
        return fail(reterr, ERR_INVALID, "from is for retry, not for %s", request->action);
    if (request->result)
        argument = arena_print(arena, "{\"result\":%s}", request->result);
    if (request->from) {
        Text   text;
        Writer writer;

        text_init(&text, arena, TEXT_MAX_LINE);
        writer_open(&writer, &text);
        writer_object(&writer, NULL);
        writer_text(&writer, "from", request->from);
        writer_end(&writer);
        argument = text_string(&text);
    }
    *ret_bulk = (BulkNew){.operation_id = request->operation_id,
                          .noun         = noun,
                          .action       = request->action,
                          .filter       = request->filter,
                          .argument     = argument,
                          .actor        = request->by,
                          .reason       = request->reason};
    return OK;
}
