/*
 * report.c - see report.h.
 */
#include "process/report.h"

#include <stdlib.h>
#include <string.h>

#include "bus/command.h"
#include "bus/lease.h"
#include "pg/combiner_split.h"
#include "pg/lock_calls.h"
#include "pg/tx.h"
#include "process/process.h"
#include "process/run.h"
#include "sql.h"

#define NAME_MAX_BYTES 200
#define HASH_MAX_BYTES 200
/* Each item with a patch returns a state of up to 1 MiB. */
#define CALL_PATCHES_MAX 32
#define LOAD_MAX         8                 /* histories that are read by one call */
#define ANSWER_BYTES_MAX ((size_t)8 << 20) /* of states and histories, of which the first one is always given */

/* ---- what can be known without the database ---- */

static ErrorCode name_check(const char *field, const char *name, Error *reterr)
{
    size_t size = name ? strlen(name) : 0;

    if (!name || (size >= 1 && size <= NAME_MAX_BYTES && !strchr("_.:-[]~", name[0]) &&
                  strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-~[]") == size))
        return OK;
    return fail(
        reterr, ERR_INVALID,
        "%s must be 1 to %d letters, digits, \"_\", \".\", \":\", \"-\", \"~\", \"[\" or \"]\", beginning with a "
        "letter or digit, got \"%.80s\"",
        field, NAME_MAX_BYTES, name);
}

static bool is_object(const char *json)
{
    return json[strspn(json, " \t\r\n")] == '{';
}

/* As many bytes as are kept of an outcome's: a history must not become too large to be claimed. */
static ErrorCode error_check(const char *field, const char *error, Error *reterr)
{
    size_t size = error ? strlen(error) : 0;

    if (size <= SETTLE_ERROR_MAX)
        return OK;
    return fail(reterr, ERR_LIMIT, "%s must have at most %d bytes, got %zu", field, SETTLE_ERROR_MAX, size);
}

static ErrorCode sizes_check(const ProcessWrite *write, Error *reterr)
{
    TRY(process_json_check("result", write->record.result, reterr));
    TRY(process_json_check("patch", write->patch, reterr));
    TRY(process_json_check("end.result", write->end_result, reterr));
    TRY(error_check("record.error", write->record.error, reterr));
    TRY(error_check("end.error", write->end_error, reterr));
    if (write->record.input_hash && strlen(write->record.input_hash) > HASH_MAX_BYTES)
        return fail(reterr, ERR_LIMIT, "input_hash must have at most %d bytes", HASH_MAX_BYTES);
    return OK;
}

ErrorCode process_report_check(const ProcessReport *report, Error *reterr)
{
    const ProcessWrite *write     = &report->write;
    bool                continues = write->end && strcmp(write->end, WRITE_CONTINUE) == 0;

    TRY(name_check("record.step", write->record.id.step, reterr));
    TRY(name_check("wait.step", write->wait_step.step, reterr));
    TRY(name_check("send.step", report->send_step, reterr));
    TRY(sizes_check(write, reterr));
    if (write->patch && !write->record.id.step)
        return fail(reterr, ERR_INVALID, "patch needs a record: a repeated report must not patch twice");
    if (write->patch && !is_object(write->patch))
        return fail(reterr, ERR_INVALID, "patch must be a JSON object, got %.60s", write->patch);
    if (write->version && !write->patch && !continues)
        return fail(reterr, ERR_INVALID, "version needs a patch: it is that of the state the patch was computed from");
    if (continues && (write->record.id.step || write->phase || report->send_type))
        return fail(reterr, ERR_INVALID,
                    "a process continues as new alone: record, send and phase are reported before");
    if (continues && write->end_result && !is_object(write->end_result))
        return fail(reterr, ERR_INVALID, "end.state must be a JSON object, got %.60s", write->end_result);
    if (write->record.result && write->record.error)
        return fail(reterr, ERR_INVALID, "record must have a result or an error, not both");
    if (report->release_ms && !report->is_release)
        return fail(reterr, ERR_INVALID, "delay_s belongs to release");
    if (report->release_reason && !report->release_ms)
        return fail(reterr, ERR_INVALID, "reason belongs to release with a delay_s");
    if ((write->wait != NULL) + (write->end != NULL) + report->is_release > 1)
        return fail(reterr, ERR_INVALID, "at most one of wait, end and release can be given");
    return OK;
}

/* ---- one call ---- */

typedef struct Reporting Reporting;
struct Reporting {
    Pool           *pool;
    int             lock_ms;
    Arena          *arena; /* of the request */
    const char     *queue;
    const Wake     *wake;
    ProcessReport **reports; /* of this call */
    int             count;
    const char     *woken;
    size_t          answer_bytes; /* of what is returned so far */
    ProcessReport **open;         /* those that can be written, and are not */
    int             open_count;
};

static bool is_written(const ProcessReport *report)
{
    return report->write.verdict == WRITE_WRITTEN || report->write.verdict == WRITE_KNOWN ||
           report->write.verdict == WRITE_MET;
}

static SendItem *report_item(Reporting *reporting, const ProcessReport *report)
{
    SendItem *item    = arena_alloc(reporting->arena, sizeof *item);
    int       attempt = report->send_attempt ? report->send_attempt : 1;
    SentBy    by      = {
        {reporting->queue, report->process_id, report->secret},
        report->write.id,
        report->life,
        record_of(report->send_step),
        attempt
    };

    sent_item(&by, report->is_child, report->send_domain, report->send_type, report->send_payload, reporting->arena,
              item);
    /* By this a worker tells the reply of this attempt from that of an earlier one: it does not know the command's id. */
    item->correlation_id = arena_print(reporting->arena, "%s#%d", report->send_step, attempt);
    return item;
}

/* Only what the lease allows is sent. Another payload under the same id: the first one counts, as in pods. */
static ErrorCode items_send(Reporting *reporting, Tx *tx, Error *reterr)
{
    SendItem **items = arena_array(tx->arena, SendItem *, reporting->count + 1);
    int        count = 0;

    for (int i = 0; i < reporting->count; i++)
        if (reporting->reports[i]->send_type && is_written(reporting->reports[i]))
            items[count++] = reporting->reports[i]->sent;
    if (count == 0)
        return OK;
    TRY(send_in(tx, items, count, reterr));
    for (int i = 0; i < count; i++)
        if (items[i]->code != OK && items[i]->code != ERR_KEY_REUSED) {
            *reterr = items[i]->error;
            return items[i]->code;
        }
    return OK;
}

static ErrorCode reporting_body(Tx *tx, void *context, Error *reterr)
{
    Reporting     *reporting = context;
    ProcessWrite **writes    = arena_array(tx->arena, ProcessWrite *, reporting->count);

    for (int i = 0; i < reporting->count; i++) {
        writes[i] = &reporting->reports[i]->write;
        if (reporting->reports[i]->send_type)
            reporting->reports[i]->sent = report_item(reporting, reporting->reports[i]);
    }
    TRY(process_writes_in(tx, writes, reporting->count, &reporting->woken, reterr));
    return items_send(reporting, tx, reterr);
}

static void sent_wake(const Reporting *reporting)
{
    for (int i = 0; i < reporting->count; i++) {
        const SendItem *sent = reporting->reports[i]->sent;

        if (sent && is_written(reporting->reports[i]) && sent->is_new)
            reporting->wake->call(reporting->wake->context, sent->domain);
    }
}

static ErrorCode reporting_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    Reporting                *reporting = context;
    scoped(arena_free) Arena *arena     = arena_new(ARENA_BYTES_DEFAULT * 4);
    TxOptions                 options   = {
                          .name = "report", .deadline = deadline, .lock_ms = reporting->lock_ms, .arena = arena, .keyed = true};

    reporting->reports = (ProcessReport **)items;
    reporting->count   = count;
    TRY(tx_run(reporting->pool, &options, reporting_body, reporting, reterr));
    wake_names(reporting->wake, reporting->woken);
    sent_wake(reporting);
    return OK;
}

static void report_done(void *item, const Error *error)
{
    ProcessReport *report = item;

    report->code = error->code;
    if (error->code != OK)
        report->error = *error;
    if (error->code != OK || !is_written(report))
        report->sent = NULL;
}

/* ---- around it ---- */

#define COUNT_COLUMNS(X, T)               \
    X(T, TIME, now_us)                    \
    X(T, UUID, secret)                    \
    X(T, I64, value)                      \
    X(T, BOOL, is_known, is_compensating) \
    X(T, I32, life)
DB_ROW(CountRow, COUNT_COLUMNS);
DB_SHAPE(count, CountRow, COUNT_COLUMNS);

/* What is done must be undone: compensations have as many records again. */
static int64_t records_max(const CountRow *row, const ProcessWrite *write)
{
    return row->is_compensating || write->phase ? REPORT_RECORDS_MAX * 2 : REPORT_RECORDS_MAX;
}

/* Limits and times come from the database, so that a pod whose clock is wrong writes the same. */
static ErrorCode records_check(Reporting *reporting, Deadline deadline, const int64_t *ids, ProcessReport **reports,
                               int count, Error *reterr)
{
    TxOptions    options = {.name = "report", .deadline = deadline, .arena = reporting->arena, .read_only = true};
    int64_t     *tokens  = arena_array(reporting->arena, int64_t, count);
    const char **records = arena_array(reporting->arena, const char *, count);
    CountRow    *rows;
    int          row_count;

    for (int i = 0; i < count; i++) {
        tokens[i]  = reports[i]->write.token;
        records[i] = process_write_record(reporting->arena, &reports[i]->write);
    }
    TRY(db_call_many(reporting->pool, &options, sql_process_record_count,
                     DB_ARGS(db_i64s(reporting->arena, ids, count), db_i64s(reporting->arena, tokens, count),
                             db_jsonbs(reporting->arena, records, count), db_i32(REPORT_RECORDS_MAX * 2)),
                     &count_shape, &rows, &row_count, reterr));
    for (int i = 0; i < row_count && i < count; i++) {
        const CountRow *row   = &rows[i];
        ProcessWrite   *write = &reports[i]->write;

        reports[i]->secret = row->secret;
        reports[i]->life   = row->life;
        if (row->value >= records_max(row, write) && write->record.id.step && !row->is_known)
            reports[i]->code =
                fail(&reports[i]->error, ERR_LIMIT, "the process has recorded %lld steps and may record no more",
                     (long long)records_max(row, write));
        if (write->record.id.step)
            write->started_us = row->now_us - reports[i]->took_us;
        if (reports[i]->retry_us)
            write->record.retry_us = row->now_us + reports[i]->retry_us;
        if (write->wait && !write->due_us)
            write->due_us = row->now_us + PROCESS_FOREVER_US;
    }
    return OK;
}

/* The activations that are given back: their leases end, if they have not. */
static ErrorCode reports_release(Reporting *reporting, Deadline deadline, ProcessReport **reports, int count,
                                 Error *reterr)
{
    ClaimedCommand *list  = arena_array(reporting->arena, ClaimedCommand, count);
    int             given = 0;
    bool            settled;

    for (int i = 0; i < count; i++) {
        if (!reports[i]->is_release || reports[i]->code != OK || !is_written(reports[i]))
            continue;
        list[given] = (ClaimedCommand){.id = reports[i]->write.id, .token = reports[i]->write.token};
        if (reports[i]->release_ms)
            TRY(lease_postpone(reporting->pool, deadline, reporting->arena, &list[given], reports[i]->release_ms,
                               reports[i]->release_reason, &settled, reterr));
        else
            given++;
    }
    if (given == 0)
        return OK;
    TRY(lease_release(reporting->pool, deadline, reporting->arena, list, given, /* ret_verdicts= */ NULL, reterr));
    reporting->wake->call(reporting->wake->context, reporting->queue);
    return OK;
}

/* ---- what is returned ---- */

static bool answer_fits(const Reporting *reporting, size_t bytes)
{
    return (reporting->answer_bytes == 0 || reporting->answer_bytes + bytes <= ANSWER_BYTES_MAX) &&
           arena_has_space(reporting->arena, bytes + 1);
}

/* States come on the heap, because the arena of a call ends before its callers. */
static void states_take(Reporting *reporting, ProcessReport **reports, int count)
{
    for (int i = 0; i < count; i++) {
        char  *state = reports[i]->write.state;
        size_t bytes = state ? strlen(state) : 0;

        reports[i]->write.state = NULL;
        if (state && reports[i]->write.verdict != WRITE_MET && answer_fits(reporting, bytes)) {
            reports[i]->state = arena_text(reporting->arena, state);
            reporting->answer_bytes += bytes;
        }
        free(state);
    }
}

static size_t loaded_bytes(const LoadedProcess *loaded)
{
    return strlen(loaded->state) + (loaded->steps ? strlen(loaded->steps) : 0) +
           (loaded->responses ? strlen(loaded->responses) : 0);
}

/* The history of each that was met. Those that do not fit are left out. */
static ErrorCode histories_load(Reporting *reporting, Deadline deadline, ProcessReport **met, int count, Error *reterr)
{
    int64_t        ids[LOAD_MAX], tokens[LOAD_MAX];
    LoadedProcess *loaded;
    int            loaded_count;

    for (int i = 0; i < count; i++) {
        ids[i]    = met[i]->write.id;
        tokens[i] = met[i]->write.token;
    }
    TRY(process_load(reporting->pool, deadline, reporting->arena, ids, tokens, count, (int64_t)ANSWER_BYTES_MAX,
                     &loaded, &loaded_count, reterr));
    for (int l = 0; l < loaded_count; l++)
        for (int i = 0; i < count; i++)
            if (loaded[l].id == met[i]->write.id && !met[i]->loaded &&
                answer_fits(reporting, loaded_bytes(&loaded[l]))) {
                met[i]->loaded = &loaded[l];
                reporting->answer_bytes += loaded_bytes(&loaded[l]);
                break;
            }
    return OK;
}

static ErrorCode met_load(Reporting *reporting, Deadline deadline, ProcessReport **reports, int count, Error *reterr)
{
    ProcessReport **met       = arena_array(reporting->arena, ProcessReport *, count + 1);
    int             met_count = 0;

    for (int i = 0; i < count; i++)
        if (reports[i]->code == OK && reports[i]->write.verdict == WRITE_MET)
            met[met_count++] = reports[i];
    for (int from = 0; from < met_count && reporting->answer_bytes < ANSWER_BYTES_MAX; from += LOAD_MAX)
        TRY(histories_load(reporting, deadline, met + from, met_count - from < LOAD_MAX ? met_count - from : LOAD_MAX,
                           reterr));
    return OK;
}

/* ---- all of it ---- */

static ErrorCode numbers_fill(Reporting *reporting, Deadline deadline, ProcessReport **reports, int count,
                              int64_t **ret_numbers, Error *reterr)
{
    const char **ids = arena_array(reporting->arena, const char *, count);

    for (int i = 0; i < count; i++)
        ids[i] = reports[i]->process_id;
    TRY(command_numbers(reporting->pool, deadline, reporting->arena, reporting->queue, ids, count, ret_numbers,
                        reterr));
    for (int i = 0; i < count; i++)
        reports[i]->write.id = (*ret_numbers)[i];
    return OK;
}

/* How many of them one call writes. */
static int call_count(void *const *items, int count)
{
    int patches = 0;

    for (int i = 0; i < count; i++) {
        patches += ((const ProcessReport *)items[i])->write.patch != NULL;
        if (patches > CALL_PATCHES_MAX)
            return i;
    }
    return count;
}

static void reports_write(Reporting *reporting, Deadline deadline, void **items, int count)
{
    for (int from = 0, size; from < count; from += size) {
        size = call_count(items + from, count - from);
        combiner_split(reporting_run, reporting, items + from, size, deadline, report_done);
        states_take(reporting, (ProcessReport **)items + from, size);
    }
}

/* Those whose locks were not granted stay open. */
static void open_keep(Reporting *reporting)
{
    int count = reporting->open_count;

    reporting->open_count = 0;
    for (int i = 0; i < count; i++)
        if (error_is_lock(&reporting->open[i]->error) && reporting->open[i]->code != OK)
            reporting->open[reporting->open_count++] = reporting->open[i];
}

static ErrorCode open_write(Reporting *reporting, Deadline deadline, Error *reterr)
{
    ProcessReport **reports = arena_array(reporting->arena, ProcessReport *, reporting->open_count + 1);
    int             count   = reporting->open_count;

    for (int i = 0; i < count; i++)
        reports[i] = reporting->open[i];
    reports_write(reporting, deadline, (void **)reports, count);
    open_keep(reporting);
    TRY(reports_release(reporting, deadline, reports, count, reterr));
    return met_load(reporting, deadline, reports, count, reterr);
}

static bool is_last_of(const ProcessReport *report)
{
    return report->write.wait || report->write.end || report->is_release;
}

/* Behind an item that suspends, ends or releases an activation nothing of it is written, also if that one is refused: its worker has said that
 * it reports no more. */
static ErrorCode behind_check(ProcessReport *const *reports, int at, Error *reterr)
{
    const ProcessWrite *write = &reports[at]->write;

    for (int i = 0; i < at; i++)
        if (is_last_of(reports[i]) && reports[i]->write.id == write->id && reports[i]->write.token == write->token)
            return fail(reterr, ERR_INVALID,
                        "items[%d] suspends, ends or releases the process: nothing can be reported behind it", i);
    return OK;
}

static ErrorCode reports_begin(Reporting *reporting, Deadline deadline, ProcessReport **reports, int count,
                               Error *reterr)
{
    int64_t *numbers;

    reporting->open = arena_array(reporting->arena, ProcessReport *, count + 1);
    TRY(numbers_fill(reporting, deadline, reports, count, &numbers, reterr));
    for (int i = 0; i < count; i++) {
        reports[i]->code = process_report_check(reports[i], &reports[i]->error);
        if (reports[i]->code == OK)
            reports[i]->code = behind_check(reports, i, &reports[i]->error);
    }
    TRY(records_check(reporting, deadline, numbers, reports, count, reterr));
    for (int i = 0; i < count; i++) {
        reports[i]->write.verdict = WRITE_LOST;
        if (reports[i]->code == OK && numbers[i])
            reporting->open[reporting->open_count++] = reports[i];
    }
    return OK;
}

ErrorCode process_report_run(ReportCall *call, Deadline deadline, Error *reterr)
{
    Reporting *reporting = call->reporting;

    if (!reporting) {
        reporting  = arena_array(call->arena, Reporting, 1);
        *reporting = (Reporting){.pool    = call->pool,
                                 .lock_ms = call->lock_ms,
                                 .arena   = call->arena,
                                 .queue   = call->queue,
                                 .wake    = call->wake};
        TRY(reports_begin(reporting, deadline, call->reports, call->count, reterr));
        call->reporting = reporting;
    }
    TRY(open_write(reporting, deadline, reterr));
    call->open_count = reporting->open_count;
    if (call->open_count == 0)
        return OK;
    if (reterr)
        *reterr = reporting->open[0]->error;
    return reporting->open[0]->code;
}
