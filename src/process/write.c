/*
 * write.c - writes as arrays, verdicts back into them; see write.h.
 */
#include "process/write.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/writer.h"
#include "bus/offer.h"
#include "bus/send.h"
#include "bus/waker.h"
#include "pg/combiner_split.h"
#include "pg/migrate.h"
#include "pg/tx.h"
#include "sql.h"

#define CALL_BYTES_MAX ((size_t)16 << 20)
#define ITEM_BYTES_MAX ((size_t)6 << 20) /* state, result and error of one */
#define BYTES_FACTOR   8
#define ITEM_BYTES     1024
#define QUEUED_MS      1000
#define QUEUED_SLOTS   2
#define WAIT_BYTES     200

#define WRITTEN_COLUMNS(X, T)   \
    X(T, I32, ord)              \
    X(T, TEXT, verdict, wake)   \
    X(T, I64, version)          \
    X(T, JSONB, state, started) \
    X(T, BOOL, is_canceled)
DB_ROW(Written, WRITTEN_COLUMNS);
DB_SHAPE(written, Written, WRITTEN_COLUMNS);

/* ---- members as arrays; NULL where no item has one, so that the server has less to read ---- */

typedef enum { ARRAY_TEXT, ARRAY_JSONB, ARRAY_I64, ARRAY_PRINTED } ArrayKind;
typedef const char *Printer(Arena *arena, const ProcessWrite *write); /* JSON; NULL: none */
typedef struct {
    ArrayKind kind;
    size_t    offset;
    Printer  *print; /* PRINTED */
} ArrayMember;

static Writer object_begin(Arena *arena, Text *text)
{
    Writer writer;

    text_init(text, arena, TEXT_MAX_BODY);
    writer_open(&writer, text);
    writer_object(&writer, NULL);
    return writer;
}

const char *process_write_record(Arena *arena, const ProcessWrite *write)
{
    const StepRecord *record = &write->record;
    Writer            writer;
    Text              text;

    if (!record->id.step)
        return NULL;
    writer = object_begin(arena, &text);
    record_write(&writer, &record->id);
    writer_i64(&writer, "attempt", record->attempt);
    writer_text(&writer, "verdict",
                step_end_names[record->error && record->end == END_DONE ? END_FAILED : record->end]);
    if (record->retry_us)
        writer_i64(&writer, "retry_us", record->retry_us);
    if (record->response)
        writer_text(&writer, "response", record->response);
    if (record->taken)
        writer_text(&writer, "taken", record->taken);
    if (record->call_kind) {
        writer_i64(&writer, "call", record->call);
        writer_text(&writer, "call_kind", record->call_kind);
    }
    if (record->input_hash)
        writer_text(&writer, "input_hash", record->input_hash);
    if (write->started_us)
        writer_i64(&writer, "started_us", write->started_us);
    writer_end(&writer);
    return text_string(&text);
}

static const char *wait_step_print(Arena *arena, const ProcessWrite *write)
{
    Writer writer;
    Text   text;

    if (!write->wait || !write->wait_step.step || !write->wait_step.step[0])
        return NULL;
    writer = object_begin(arena, &text);
    record_write(&writer, &write->wait_step);
    writer_end(&writer);
    return text_string(&text);
}

static const char *waits_print(Arena *arena, const ProcessWrite *write)
{
    Writer writer;
    Text   text;

    if (write->wait_count == 0)
        return NULL;
    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_array(&writer, NULL);
    for (int i = 0; i < write->wait_count; i++) {
        const Wait *wait = &write->waits[i];

        writer_object(&writer, NULL);
        writer_text(&writer, "kind", response_kind_names[wait->of.kind]);
        writer_text(&writer, "name", wait->of.of.step);
        if (wait->of.kind == RESPONSE_REPLY)
            record_write_place(&writer, &wait->of.of);
        if (wait->to.step)
            writer_text(&writer, "to_step", wait->to.step);
        if (wait->to.depth > 0)
            record_write_items(&writer, "to_item", &wait->to);
        writer_i64(&writer, "count", wait->count);
        writer_end(&writer);
    }
    writer_end(&writer);
    return text_string(&text);
}

/* In the order of the parameters in sql_process_write. */
static const ArrayMember members[] = {
    {ARRAY_I64, offsetof(ProcessWrite, id), NULL},
    {ARRAY_I64, offsetof(ProcessWrite, token), NULL},
    {ARRAY_PRINTED, 0, process_write_record},
    {ARRAY_JSONB, offsetof(ProcessWrite, record.result), NULL},
    {ARRAY_TEXT, offsetof(ProcessWrite, record.error), NULL},
    {ARRAY_JSONB, offsetof(ProcessWrite, patch), NULL},
    {ARRAY_I64, offsetof(ProcessWrite, version), NULL},
    {ARRAY_TEXT, offsetof(ProcessWrite, phase), NULL},
    {ARRAY_TEXT, offsetof(ProcessWrite, failed), NULL},
    {ARRAY_TEXT, offsetof(ProcessWrite, wait), NULL},
    {ARRAY_PRINTED, 0, wait_step_print},
    {ARRAY_PRINTED, 0, waits_print},
    {ARRAY_I64, offsetof(ProcessWrite, due_us), NULL},
    {ARRAY_TEXT, offsetof(ProcessWrite, end), NULL},
    {ARRAY_JSONB, offsetof(ProcessWrite, end_result), NULL},
    {ARRAY_TEXT, offsetof(ProcessWrite, end_error), NULL},
};

#define WRITE_ARGS ((int)COUNT(members) + 1) /* the last ones are the offers */

static const void *member_of(const ProcessWrite *write, const ArrayMember *member)
{
    return (const char *)write + member->offset;
}

static DbArg texts_arg(Arena *arena, const ArrayMember *member, ProcessWrite *const *writes, int count)
{
    const char **texts = arena_array(arena, const char *, count);
    bool         any   = false;

    for (int i = 0; i < count; i++) {
        texts[i] = member->print ? member->print(arena, writes[i]) : *(const char *const *)member_of(writes[i], member);
        any |= texts[i] != NULL;
    }
    if (!any)
        return db_null();
    return member->kind == ARRAY_TEXT ? db_texts(arena, texts, count) : db_jsonbs(arena, texts, count);
}

static DbArg i64s_arg(Arena *arena, const ArrayMember *member, ProcessWrite *const *writes, int count)
{
    int64_t *values = arena_array(arena, int64_t, count);
    bool     any    = false;

    for (int i = 0; i < count; i++) {
        values[i] = *(const int64_t *)member_of(writes[i], member);
        any |= values[i] != 0;
    }
    return any ? db_i64s(arena, values, count) : db_null();
}

/* offers NULL: none. */
static DbArgs write_args(Arena *arena, ProcessWrite *const *writes, int count, const ResumeOffers *offers,
                         DbArg *ret_list)
{
    for (size_t i = 0; i < COUNT(members); i++)
        switch (members[i].kind) {
        case ARRAY_TEXT:
        case ARRAY_JSONB:
        case ARRAY_PRINTED:
            ret_list[i] = texts_arg(arena, &members[i], writes, count);
            break;
        case ARRAY_I64:
            ret_list[i] = i64s_arg(arena, &members[i], writes, count);
            break;
        }
    ret_list[COUNT(members)] = offers ? resume_offers_arg(arena, offers) : db_null();
    return (DbArgs){ret_list, WRITE_ARGS};
}

/* ---- verdicts ---- */

static ErrorCode verdict_read(const char *word, WriteVerdict *ret_verdict, Error *reterr)
{
#define X(verdict, name) [verdict]   = name,
    static const char *const names[] = { WRITE_VERDICTS(X) };
#undef X

    for (int i = 0; i < WRITE_VERDICT_COUNT; i++)
        if (word && strcmp(word, names[i]) == 0) {
            *ret_verdict = (WriteVerdict)i;
            return OK;
        }
    return fail(reterr, ERR_INTERNAL, "pawl.process_write returned the verdict \"%s\"", word ? word : "null");
}

static ErrorCode verdicts_take(const Written *rows, int row_count, ProcessWrite **writes, int count, Error *reterr)
{
    if (row_count != count)
        return fail(reterr, ERR_INTERNAL, "%d writes have %d verdicts", count, row_count);
    for (int i = 0; i < count; i++) {
        TRY(verdict_read(rows[i].verdict, &writes[i]->verdict, reterr));
        writes[i]->state_version = rows[i].version;
        writes[i]->is_canceled   = rows[i].is_canceled;
        free(writes[i]->state); /* of an earlier try */
        writes[i]->state = rows[i].state ? memory_text(rows[i].state) : NULL;
    }
    return OK;
}

/* ---- calls ---- */

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) : 0;
}

static size_t write_bytes(const void *context)
{
    const ProcessWrite *write = context;

    return ITEM_BYTES + text_bytes(write->record.result) + text_bytes(write->record.error) + text_bytes(write->patch) +
           text_bytes(write->record.taken) + text_bytes(write->end_result) + text_bytes(write->end_error) +
           (size_t)write->wait_count * WAIT_BYTES;
}

ErrorCode process_json_check(const char *name, const char *json, Error *reterr)
{
    size_t size = text_bytes(json);

    if (size > SETTLE_RESULT_MAX)
        return fail(reterr, ERR_LIMIT, "%s must have at most %zu bytes, got %zu", name, SETTLE_RESULT_MAX, size);
    if (json && send_exponents_sum(json) > SEND_EXPANDED_MAX - size)
        return fail(reterr, ERR_LIMIT, "%s must have at most %zu bytes when its numbers are written out", name,
                    SEND_EXPANDED_MAX);
    return OK;
}

/* What the end of a child resumes starts on a free handler. Several ends can resume several processes, of which a claim finds the first one. */
static ErrorCode writes_call(Pool *pool, const TxOptions *options, ProcessWrite **writes, int count, Written **ret_rows,
                             int *ret_count, Error *reterr)
{
    DbArg        list[WRITE_ARGS];
    ResumeOffers offers = {.count = 0};
    int          ends   = 0;
    ErrorCode    code;

    for (int i = 0; i < count; i++)
        ends += writes[i]->end != NULL;
    if (ends == 1)
        resume_offers_take(pool, /* domain= */ NULL, /* kept= */ 1, options->arena, &offers);
    code = db_call_many(pool, options, sql_process_write, write_args(options->arena, writes, count, &offers, list),
                        &written_shape, ret_rows, ret_count, reterr);
    resume_offers_end(&offers, code == OK && *ret_count > 0 ? (*ret_rows)->started : NULL);
    return code;
}

static ErrorCode writes_do(Tx *tx, const char *sql, ProcessWrite **writes, int count, const char **ret_wake,
                           Error *reterr)
{
    DbArg    list[WRITE_ARGS];
    Written *rows;
    int      row_count;

    TRY(db_many(tx, sql, write_args(tx->arena, writes, count, /* offers= */ NULL, list), &written_shape, &rows,
                &row_count, reterr));
    TRY(verdicts_take(rows, row_count, writes, count, reterr));
    *ret_wake = rows->wake;
    return OK;
}

ErrorCode process_writes_in(Tx *tx, ProcessWrite **writes, int count, const char **ret_wake, Error *reterr)
{
    return writes_do(tx, sql_process_report, writes, count, ret_wake, reterr);
}

ErrorCode process_write_in(Tx *tx, ProcessWrite *write, Error *reterr)
{
    const char *wake;

    return writes_do(tx, sql_process_write, &write, 1, &wake, reterr);
}

struct ProcessWriter {
    Pool     *pool;
    Combiner *combiner;
    Combiner *queued; /* those that wait for a row */
    Waker    *waker;
};

/* Keyed by leases and records: done again after a lost answer it changes nothing more. */
static ErrorCode writer_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    ProcessWriter            *writer = context;
    scoped(arena_free) Arena *arena  = arena_new((CALL_BYTES_MAX + ITEM_BYTES_MAX) * BYTES_FACTOR);
    TxOptions options = {.name = "process", .deadline = deadline, .arena = arena, .keyed = true, .prepare = true};
    Written  *rows;
    int       row_count;

    TRY(writes_call(writer->pool, &options, (ProcessWrite **)items, count, &rows, &row_count, reterr));
    TRY(verdicts_take(rows, row_count, (ProcessWrite **)items, count, reterr));
    waker_notify_names(writer->waker, rows->wake);
    return OK;
}

static ErrorCode queued_body(Tx *tx, void *context, Error *reterr)
{
    ProcessWrite *write = context;
    int64_t       id;
    const char   *wake;

    TRY(db_get_i64(tx, sql_process_hold, DB_ARGS(db_i64(write->id)), &id, reterr));
    TRY(writes_do(tx, sql_process_write, &write, 1, &wake, reterr));
    if (write->verdict == WRITE_STALE && write->refresh) {
        TRY(write->refresh(write->context, write, reterr));
        TRY(writes_do(tx, sql_process_write, &write, 1, &wake, reterr));
    }
    write->wake = arena_text(tx->arena, wake);
    return OK;
}

static ErrorCode queued_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    ProcessWriter            *writer  = context;
    ProcessWrite             *write   = items[0]; /* a batch is one write */
    scoped(arena_free) Arena *arena   = arena_new((CALL_BYTES_MAX + ITEM_BYTES_MAX) * BYTES_FACTOR);
    TxOptions                 options = {
                        .name = "process queued", .deadline = deadline, .arena = arena, .keyed = true, .lock_ms = QUEUED_MS};
    Error     error = {0};
    ErrorCode code  = tx_run(writer->pool, &options, queued_body, write, &error);

    (void)count;
    if (code == OK)
        waker_notify_names(writer->waker, write->wake);
    write->wake = NULL;
    if (code == ERR_BUSY && strcmp(error.sqlstate, "55P03") == 0) {
        write->verdict = WRITE_BUSY;
        return OK;
    }
    if (code != OK && reterr)
        *reterr = error;
    return code;
}

ErrorCode process_write_queued(ProcessWriter *writer, Deadline deadline, ProcessWrite *write, Error *reterr)
{
    return combiner_run(writer->queued, write, deadline, reterr);
}

ProcessWriter *process_writer_new(Pool *pool)
{
    ProcessWriter *writer = memory_new(1, sizeof *writer);
    PoolStatus     status;

    pool_status(pool, &status);
    writer->pool     = pool;
    writer->waker    = waker_new(pool);
    writer->combiner = combiner_new(&(CombinerOptions){.run        = writer_run,
                                                       .context    = writer,
                                                       .slots_max  = combiner_share(status.size_max, 2),
                                                       .weigh      = write_bytes,
                                                       .weight_max = CALL_BYTES_MAX});
    writer->queued   = combiner_new(
        &(CombinerOptions){.run = queued_run, .context = writer, .slots_max = QUEUED_SLOTS, .batch_max = 1});
    return writer;
}

void process_writer_free(ProcessWriter *writer)
{
    combiner_free(writer->queued);
    combiner_free(writer->combiner);
    waker_free(writer->waker);
    free(writer);
}

bool process_writer_is_outdated(const ProcessWriter *writer, const Error *error)
{
    return migrate_explains(writer->pool, &schema_embedded, error, NULL);
}

void process_writer_wake(ProcessWriter *writer, const char *domain)
{
    waker_notify(writer->waker, domain);
}

ErrorCode process_write(ProcessWriter *writer, Deadline deadline, ProcessWrite *write, Error *reterr)
{
    Error     error = {0};
    ErrorCode code;

    if (write_bytes(write) > ITEM_BYTES_MAX)
        return fail(reterr, ERR_LIMIT, "result, error and patch of a step must have at most %zu bytes together",
                    ITEM_BYTES_MAX);
    code = combiner_run(writer->combiner, write, deadline, &error);
    if (failure_is_about_schema(code, &error)) /* perhaps because of one beside it */
        code = writer_run(writer, &(void *){write}, 1, deadline, &error);
    if (code != OK && reterr)
        *reterr = error;
    return code;
}
