/*
 * batch.c - see batch.h; sql/bus/batch.sql decides.
 */
#include "bus/batch.h"

#include <stdint.h>

#include "base/word.h"
#include "bus/answers.h"
#include "pg/tx.h"
#include "sql.h"

DB_SHAPE(batch, Batch, BATCH_COLUMNS);

typedef struct {
    const char *batch_id, *wake;
} Sealing;

static ErrorCode seal(Tx *tx, void *context, Error *reterr)
{
    Sealing *sealing = context;

    return db_one(tx, sql_bus_batch_seal, DB_ARGS(db_uuid(sealing->batch_id)), &db_text_shape, &sealing->wake, reterr);
}

typedef struct {
    const BatchNew *batch;
    char           *batch_id;
    SendItem      **items;
    int             count;
} BatchSending;

/* Commands that all exist, and one of them differs: the request is a repeat with another body, and nothing of it is kept. Where some of
 * the commands are new, each has a verdict of its own. */
static ErrorCode repeat_check(SendItem *const *items, int count, Error *reterr)
{
    int differs = -1;

    for (int i = 0; i < count; i++) {
        if (items[i]->is_new)
            return OK;
        if (differs < 0 && items[i]->code == ERR_KEY_REUSED)
            differs = i;
    }
    return differs < 0 ? OK : fail(reterr, ERR_KEY_REUSED, "items[%d]: %s", differs, items[differs]->error.text);
}

static ErrorCode sending_body(Tx *tx, void *context, Error *reterr)
{
    const BatchSending *sending = context;
    const BatchNew     *batch   = sending->batch;

    TRY(db_run(tx, sql_bus_batch_new,
               DB_ARGS(db_uuid(sending->batch_id), db_text(batch->name), db_jsonb(batch->on_complete)), NULL, reterr));
    if (sending->count > 0)
        TRY(send_in(tx, sending->items, sending->count, reterr));
    TRY(repeat_check(sending->items, sending->count, reterr));
    return batch->open ? OK : seal(tx, &(Sealing){.batch_id = sending->batch_id}, reterr);
}

static char *id_new(Arena *arena)
{
    char id[UUID_TEXT_SIZE];

    uuid_new(id);
    return arena_text(arena, id);
}

/* Keyed by the ids, which are made before the first try. */
ErrorCode batch_send(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, const BatchNew *batch, SendItem **items,
                     int count, const char **ret_batch_id, Error *reterr)
{
    TxOptions options = {.name = "batch_send", .deadline = deadline, .lock_ms = lock_ms, .arena = arena, .keyed = true};
    BatchSending sending = {batch, batch->batch_id ? arena_text(arena, batch->batch_id) : id_new(arena), items, count};

    for (int i = 0; i < count; i++) {
        items[i]->batch_id = sending.batch_id;
        if (!items[i]->command_id)
            items[i]->command_id = id_new(arena);
    }
    TRY(tx_run(pool, &options, sending_body, &sending, reterr));
    if (count > 0)
        send_count(items, count);
    *ret_batch_id = sending.batch_id;
    return OK;
}

ErrorCode batch_seal(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, const char *batch_id,
                     const char **ret_wake, Error *reterr)
{
    Sealing   sealing = {.batch_id = batch_id};
    TxOptions options = {.name = "batch_seal", .deadline = deadline, .lock_ms = lock_ms, .arena = arena, .keyed = true};

    TRY(tx_run(pool, &options, seal, &sealing, reterr));
    *ret_wake = sealing.wake;
    return OK;
}

ErrorCode batch_progress(Pool *pool, Deadline deadline, Arena *arena, const char *batch_id, Batch *ret_batch,
                         Error *reterr)
{
    TxOptions options = {.name = "batch_progress", .deadline = deadline, .arena = arena, .read_only = true};
    ErrorCode code =
        db_call(pool, &options, sql_bus_batch_progress, DB_ARGS(db_uuid(batch_id)), &batch_shape, ret_batch, reterr);

    if (code == ERR_NOT_FOUND)
        return fail(reterr, code, "batch %s not found", batch_id);
    return code;
}

void batch_write(Writer *writer, const void *batch)
{
    writer_row(writer, &answer_batch, batch);
}

/* ---- lists ---- */

DB_SHAPE(batch_line, BatchLine, BATCH_LINE_COLUMNS);

const char *const batch_statuses[] = {"OPEN", "SEALED", "COMPLETED", NULL};

ErrorCode batch_list(Pool *pool, Deadline deadline, Arena *arena, const BatchFilter *filter, BatchLine **ret_list,
                     int *ret_count, int64_t *ret_next, Error *reterr)
{
    TxOptions options = {.name = "batch_list", .deadline = deadline, .arena = arena, .read_only = true};

    TRY(word_check("status", filter->status, batch_statuses, reterr));
    TRY(db_call_many(pool, &options, sql_bus_batch_list,
                     DB_ARGS(db_text(filter->status), db_text(filter->name), db_text(filter->since),
                             db_text(filter->until), filter->before ? db_i64(filter->before) : db_null(),
                             db_i32(filter->limit)),
                     &batch_line_shape, ret_list, ret_count, reterr));
    *ret_next = db_page_next(*ret_list, sizeof(BatchLine), filter->limit, ret_count);
    return OK;
}

void batch_line_write(Writer *writer, const void *line)
{
    writer_row(writer, &answer_batch_line, line);
}
