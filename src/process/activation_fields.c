/*
 * activation_fields.c - see activation_fields.h.
 */
#include "process/activation_fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/moment.h"
#include "base/problem.h"
#include "bus/answers.h"
#include "process/judge.h"
#include "process/process.h"

#define CLAIM_LIMIT_MAX 100
#define LEASE_S_MAX     86400
#define WAIT_S_MAX      60
#define RESPONSES_MAX   100
#define COUNT_MAX       1000000
#define RETRY_S_MAX     86400
#define RELEASE_S_MAX   3600
#define TAKEN_MAX       10000

/* ---- claim ---- */

static const Field claim_fields[] = {
    {"types", FIELD_TEXTS, offsetof(ClaimRequest, types), .required = true, .min = 1, .max = 100, .length_max = 100,
     .help = "the types that this worker runs; none of them has a definition"},
    {"limit", FIELD_I64, offsetof(ClaimRequest, limit), .min = 1, .max = CLAIM_LIMIT_MAX, .help = "1 when absent"},
    {"lease_s", FIELD_REAL, offsetof(ClaimRequest, lease_s), .min = 1, .max = LEASE_S_MAX, .help = "60 when absent"},
    {"wait_s", FIELD_REAL, offsetof(ClaimRequest, wait_s), .min = 0, .max = WAIT_S_MAX,
     .help = "long poll; 0 when absent"},
    {"worker", FIELD_TEXT, offsetof(ClaimRequest, worker), .length_max = 200,
     .help = "name of the worker; the audit shows it after the key's name: shop (host-7)"},
};
const FieldTable activation_claim_table = {"activation claim", claim_fields, COUNT(claim_fields), sizeof(ClaimRequest)};

/* A multirange as the positions in it. */
static void taken_write(Writer *writer, const char *ranges)
{
    int64_t first, behind;

    writer_array(writer, "taken");
    while (ranges && taken_next(&ranges, &first, &behind))
        for (; first < behind; first++)
            writer_i64(writer, NULL, first);
    writer_end(writer);
}

static ErrorCode steps_write(Writer *writer, const char *json, Arena *arena, Error *reterr)
{
    StepRecord *steps;
    int         count;

    TRY(records_read(json, arena, &steps, &count, reterr));
    writer_array(writer, "steps");
    for (int i = 0; i < count; i++) {
        writer_object(writer, NULL);
        writer_text(writer, "step", steps[i].id.step);
        writer_text(writer, "kind", record_kind_names[steps[i].id.kind]);
        writer_i64(writer, "aside", steps[i].id.aside);
        writer_i64(writer, "attempt", steps[i].attempt);
        writer_text(writer, "verdict", step_end_names[steps[i].end]);
        writer_text(writer, "response", steps[i].response);
        taken_write(writer, steps[i].taken);
        writer_raw(writer, "result", steps[i].result);
        writer_text(writer, "error", steps[i].error);
        writer_time(writer, "retry_at", steps[i].retry_us);
        if (steps[i].call >= 0)
            writer_i64(writer, "call", steps[i].call);
        else
            writer_null(writer, "call");
        writer_text(writer, "call_kind", steps[i].call_kind);
        writer_text(writer, "input_hash", steps[i].input_hash);
        writer_time(writer, "ended_at", steps[i].ended_us);
        writer_bool(writer, "reset", steps[i].is_reset);
        writer_end(writer);
    }
    writer_end(writer);
    writer_i64(writer, "records_left", count < REPORT_RECORDS_MAX ? REPORT_RECORDS_MAX - count : 0);
    return OK;
}

static void history_write(Writer *writer, const LoadedProcess *loaded)
{
    writer_i64(writer, "life", loaded->life);
    writer_text(writer, "phase", loaded->phase);
    writer_raw(writer, "state", loaded->state);
    writer_i64(writer, "version", loaded->version);
    writer_time(writer, "now", loaded->now_us);
    writer_time(writer, "deadline", loaded->deadline_us);
    writer_text(writer, "on_deadline", loaded->deadline_action);
    writer_time(writer, "retried_at", loaded->retried_us);
    writer_text(writer, "secret", loaded->secret);
    writer_raw(writer, "responses", loaded->responses ? loaded->responses : "[]");
    writer_raw(writer, "open", loaded->open);
}

ErrorCode activation_write(Writer *writer, const ClaimedCommand *command, const LoadedProcess *found, Arena *arena,
                           Error *reterr)
{
    writer_object(writer, NULL);
    writer_text(writer, "process_id", command->command_id);
    writer_text(writer, "type", command->type);
    writer_i64(writer, "lease", command->token);
    writer_raw(writer, "input", found->input ? found->input : command->payload);
    writer_i64(writer, "attempt", command->attempt);
    writer_raw(writer, "progress", command->progress);
    history_write(writer, found);
    TRY(steps_write(writer, found->steps, arena, reterr));
    writer_end(writer);
    return OK;
}

/* ---- report ---- */

typedef struct {
    const char *step, *kind, *verdict, *result, *error, *call_kind, *input_hash, *response, *taken;
    int64_t     attempt, call;
    double      took_s, retry_s;
} RecordPart;
static const Field record_fields[] = {
    {"step", FIELD_TEXT, offsetof(RecordPart, step), .required = true, .length_max = 200, .help = "its name"},
    {"kind", FIELD_TEXT, offsetof(RecordPart, kind), .words = record_kind_names,
     .help = "step when absent: an attempt has ended. begin: it began to wait. done: it has run, and its result cannot "
             "be recorded. input: what it is given"},
    {"attempt", FIELD_I64, offsetof(RecordPart, attempt), .min = 1, .max = 10000,
     .help = "1 when absent; the same step, kind and attempt again changes nothing"},
    {"verdict", FIELD_TEXT, offsetof(RecordPart, verdict), .words = step_end_names,
     .help = "done when absent, or failed with an error: that counts as an attempt. final: not tried again. refused: "
             "the same, for a business reason. "
             "timed_out: of a wait"},
    {"result", FIELD_JSON, offsetof(RecordPart, result), .help = "null when absent"},
    {"error", FIELD_TEXT, offsetof(RecordPart, error), .min = 1,
     .help = "why this attempt failed, at most 8192 bytes; absent: it succeeded"},
    {"retry_s", FIELD_REAL, offsetof(RecordPart, retry_s), .min = 0, .max = RETRY_S_MAX,
     .help = "of a failure: not tried again sooner; 0 when absent"},
    {"call", FIELD_I64, offsetof(RecordPart, call), .min = 0, .max = 1000000,
     .help = "the number of the call, from 0, if there is a call_kind. A retry resets only failures behind which no "
             "call is recorded"},
    {"call_kind", FIELD_TEXT, offsetof(RecordPart, call_kind), .length_max = 40,
     .help = "step, wait, ...; absent: the record is of no call"},
    {"input_hash", FIELD_TEXT, offsetof(RecordPart, input_hash), .length_max = 200,
     .help = "the worker's own hash of what the call is given; it is returned with the history"},
    {"took_s", FIELD_REAL, offsetof(RecordPart, took_s), .min = 0, .max = LEASE_S_MAX},
    {"response", FIELD_TEXT, offsetof(RecordPart, response), .length_max = 100,
     .help = "of a wait: the name of the responses that it has taken"},
    {"taken", FIELD_JSON, offsetof(RecordPart, taken),
     .help = "and which of this name, an array of their positions in the order of arrival, from 0; no other wait takes "
             "them"},
};
static const FieldTable record_table = {"step record", record_fields, COUNT(record_fields), sizeof(RecordPart)};

typedef struct {
    const char *step, *domain, *type, *payload;
    int64_t     attempt;
    bool        process;
} SendPart;
static const Field send_fields[] = {
    {"step", FIELD_TEXT, offsetof(SendPart, step), .required = true, .length_max = 200,
     .help = "the outcome comes as a response of the kind reply, with this name"},
    {"attempt", FIELD_I64, offsetof(SendPart, attempt), .min = 1, .max = 10000,
     .help = "1 when absent; the same step and attempt sends once"},
    {"domain", FIELD_TEXT, offsetof(SendPart, domain), .required = true, .length_max = 63, .names = NAMES_DOMAIN},
    {"type", FIELD_TEXT, offsetof(SendPart, type), .required = true, .length_max = 100},
    {"payload", FIELD_JSON, offsetof(SendPart, payload),
     .help = "of a command; the state of a process; {} when absent"},
    {"process", FIELD_BOOL, offsetof(SendPart, process), .help = "start a child process instead of sending a command"},
};
static const FieldTable send_table = {"step command", send_fields, COUNT(send_fields), sizeof(SendPart)};

static const char *const awaited_kinds[] = {"signal", "reply", NULL};
typedef struct {
    const char *name, *kind;
    int64_t     count;
} AwaitedRow;
static const Field awaited_fields[] = {
    {"name", FIELD_TEXT, offsetof(AwaitedRow, name), .required = true, .length_max = 200,
     .help = "of a signal, or of the step that has sent"},
    {"kind", FIELD_TEXT, offsetof(AwaitedRow, kind), .words = awaited_kinds, .help = "signal when absent"},
    {"count", FIELD_I64, offsetof(AwaitedRow, count), .required = true, .min = 1, .max = COUNT_MAX,
     .help = "of all responses of this name since the start"},
};
static const FieldTable awaited_table = {"awaited response", awaited_fields, COUNT(awaited_fields), sizeof(AwaitedRow)};

static const char *const wait_statuses[] = {"WAITING_FOR_ASYNC", "WAITING_FOR_REPLY", "WAITING_FOR_RETRY", NULL};
typedef struct {
    const char *step, *status, *until;
    ReaderArray responses;
} WaitPart;
static const Field wait_fields[] = {
    {"step", FIELD_TEXT, offsetof(WaitPart, step), .required = true, .length_max = 200, .help = "in which it waits"},
    {"status", FIELD_TEXT, offsetof(WaitPart, status), .words = wait_statuses,
     .help = "what it shows as; WAITING_FOR_ASYNC when absent"},
    {"responses", FIELD_ROWS, offsetof(WaitPart, responses), .max = RESPONSES_MAX, .rows = &awaited_table,
     .help = "any of them resumes it; absent: only the time does"},
    {"until", FIELD_TEXT, offsetof(WaitPart, until), .length_max = 60,
     .help = "it is resumed at this time in any case, RFC 3339; absent: only a response resumes it"},
};
static const FieldTable wait_table = {"suspension", wait_fields, COUNT(wait_fields), sizeof(WaitPart)};

static const char *const end_outcomes[] = {"complete", "fail", "reject", WRITE_CONTINUE, NULL};
typedef struct {
    const char *outcome, *result, *error, *state;
} EndPart;
static const Field end_fields[] = {
    {"outcome", FIELD_TEXT, offsetof(EndPart, outcome), .required = true, .words = end_outcomes,
     .help =
         "complete: COMPLETED. fail: WAITING_FOR_TSQ, an operator decides. reject: FAILED, or COMPENSATED after the "
         "phase compensated. continue: it begins again with a fresh history"},
    {"result", FIELD_JSON, offsetof(EndPart, result), .help = "complete: what the process returns"},
    {"error", FIELD_TEXT, offsetof(EndPart, error), .help = "fail, reject: why; at most 8192 bytes"},
    {"state", FIELD_JSON, offsetof(EndPart, state),
     .help = "continue: the state, an object, that the process begins its next life with; the present one when absent"},
};
static const FieldTable end_table = {"process end", end_fields, COUNT(end_fields), sizeof(EndPart)};

static const char *const phases[] = {"compensating", "compensated", NULL};
typedef struct {
    const char *process_id, *record, *patch, *phase, *send, *wait, *end, *reason;
    int64_t     lease, version;
    double      delay_s;
    bool        release;
} ActivationReport;
static const Field report_row_fields[] = {
    {"process_id", FIELD_UUID, offsetof(ActivationReport, process_id), .required = true},
    {"lease", FIELD_I64, offsetof(ActivationReport, lease), .required = true, .min = 1, .max = INT64_MAX,
     .help = "the token that the claim gave"},
    {"record", FIELD_OBJECT, offsetof(ActivationReport, record), .rows = &record_table, .help = "a step has ended"},
    {"patch", FIELD_JSON, offsetof(ActivationReport, patch),
     .help = "an object, merged into the state with the record"},
    {"version", FIELD_I64, offsetof(ActivationReport, version), .min = 1, .max = INT64_MAX,
     .help =
         "of the state that the patch, or the state of the next life, was computed from; absent: it depends on none"},
    {"phase", FIELD_TEXT, offsetof(ActivationReport, phase), .words = phases, .help = "from now on; absent: as before"},
    {"send", FIELD_OBJECT, offsetof(ActivationReport, send), .rows = &send_table,
     .help = "send a command or start a child"},
    {"wait", FIELD_OBJECT, offsetof(ActivationReport, wait), .rows = &wait_table, .help = "suspend the process"},
    {"end", FIELD_OBJECT, offsetof(ActivationReport, end), .rows = &end_table, .help = "end the process"},
    {"release", FIELD_BOOL, offsetof(ActivationReport, release),
     .help = "give the activation back, to be claimed again; no attempt counts"},
    {"delay_s", FIELD_REAL, offsetof(ActivationReport, delay_s), .min = 0, .max = RELEASE_S_MAX,
     .help = "with release: not to be claimed sooner; 0 when absent"},
    {"reason", FIELD_TEXT, offsetof(ActivationReport, reason), .min = 1, .length_max = 200,
     .help = "with release and delay_s: why, for the audit"},
};
static const FieldTable report_row_table = {"report", report_row_fields, COUNT(report_row_fields),
                                            sizeof(ActivationReport)};

static const Field report_fields[] = {
    {"items", FIELD_ROWS, offsetof(ActivationReportRequest, items), .required = true, .min = 1,
     .max = ACTIVATION_ITEMS_MAX, .rows = &report_row_table},
};
const FieldTable activation_report_table = {"reports", report_fields, COUNT(report_fields),
                                            sizeof(ActivationReportRequest)};

static int word_or_first(const char *const *words, const char *word)
{
    return word ? record_word(words, word, strlen(word)) : 0;
}

static ErrorCode taken_read(const char *json, Arena *arena, const char **ret_ranges, Error *reterr)
{
    Value       list  = value_trim(json, strlen(json)), item;
    const char *at    = NULL;
    int64_t     count = 0;
    Text        ranges;

    text_init(&ranges, arena, TEXT_MAX_BODY);
    if (value_kind(list) != VALUE_ARRAY)
        return fail(reterr, ERR_INVALID, "record.taken must be an array of positions from 0, got %.60s", json);
    while (value_item_next(list, &at, &item)) {
        char    digits[8] = "", *end;
        int64_t position;

        if (item.size >= sizeof digits || count++ > TAKEN_MAX)
            return fail(reterr, ERR_INVALID, "record.taken must have at most %d positions below 10000000", TAKEN_MAX);
        memcpy(digits, item.bytes, item.size);
        position = strtoll(digits, &end, 10);
        if (position < 0 || *end || end == digits)
            return fail(reterr, ERR_INVALID, "record.taken must be an array of positions from 0, got \"%s\" in it",
                        digits);
        taken_add(&ranges, position);
    }
    *ret_ranges = taken_end(&ranges);
    return OK;
}

static ErrorCode record_read(const ActivationReport *row, Arena *arena, ProcessReport *report, Error *reterr)
{
    ProcessWrite *write = &report->write;
    RecordPart    part;

    if (!row->record)
        return OK;
    TRY(reader_object(row->record, strlen(row->record), &record_table, arena, &part, reterr));
    write->record          = (StepRecord){.id         = record_of(part.step),
                                          .attempt    = part.attempt ? part.attempt : 1,
                                          .end        = (StepEnd)word_or_first(step_end_names, part.verdict),
                                          .call       = part.call,
                                          .call_kind  = part.call_kind,
                                          .input_hash = part.input_hash,
                                          .result     = part.result,
                                          .error      = part.error};
    write->record.id.kind  = (RecordKind)word_or_first(record_kind_names, part.kind);
    write->record.response = part.response;
    if (part.taken)
        TRY(taken_read(part.taken, arena, &write->record.taken, reterr));
    report->retry_us = (int64_t)(part.retry_s * 1e6);
    report->took_us  = (int64_t)(part.took_s * 1e6);
    return OK;
}

static ErrorCode send_read(const ActivationReport *row, Arena *arena, ProcessReport *report, Error *reterr)
{
    SendPart part;
    SendItem item;

    if (!row->send)
        return OK;
    TRY(reader_object(row->send, strlen(row->send), &send_table, arena, &part, reterr));
    if (part.process)
        TRY(process_start_item(arena, part.type, part.payload, NULL, part.domain, &item, reterr));
    else
        TRY(send_check(&(SendItem){.domain       = part.domain,
                                   .type         = part.type,
                                   .payload      = part.payload,
                                   .priority     = SEND_DEFAULT,
                                   .max_attempts = SEND_DEFAULT},
                       reterr));
    report->send_step    = part.step;
    report->send_domain  = part.domain;
    report->send_type    = part.type;
    report->send_payload = part.payload;
    report->send_attempt = (int)part.attempt;
    report->is_child     = part.process;
    return OK;
}

static ErrorCode awaited_read(const ReaderArray *responses, Arena *arena, ProcessWrite *write, Error *reterr)
{
    const AwaitedRow *rows  = responses->items;
    Wait             *waits = arena_array(arena, Wait, responses->count + 1);

    for (int i = 0; i < responses->count; i++) {
        bool is_reply = rows[i].kind && strcmp(rows[i].kind, "reply") == 0;

        waits[i] = (Wait){.of    = is_reply ? response_reply(record_of(rows[i].name)) : response_signal(rows[i].name),
                          .count = rows[i].count};
        if (!is_reply)
            waits[i].to = write->wait_step;
        for (int j = 0; j < i; j++)
            if (response_compare(&waits[i].of, &waits[j].of) == 0)
                return fail(reterr, ERR_INVALID, "wait.responses names \"%.100s\" twice", rows[i].name);
    }
    write->waits      = waits;
    write->wait_count = responses->count;
    return OK;
}

static ErrorCode wait_read(const ActivationReport *row, Arena *arena, ProcessWrite *write, Error *reterr)
{
    WaitPart part;

    if (!row->wait)
        return OK;
    TRY(reader_object(row->wait, strlen(row->wait), &wait_table, arena, &part, reterr));
    write->wait      = part.status ? part.status : wait_statuses[0];
    write->wait_step = record_of(part.step);
    if (part.until && !moment_parse(part.until, MOMENT_RFC3339, &write->due_us))
        return fail(reterr, ERR_INVALID, "wait.until must be a time such as 2026-11-16T08:00:00Z, got \"%.60s\"",
                    part.until);
    if (!part.until && part.responses.count == 0)
        return fail(reterr, ERR_INVALID, "wait needs responses, until, or both: nothing would resume the process");
    return awaited_read(&part.responses, arena, write, reterr);
}

static ErrorCode end_read(const ActivationReport *row, Arena *arena, ProcessWrite *write, Error *reterr)
{
    EndPart part;

    if (!row->end)
        return OK;
    TRY(reader_object(row->end, strlen(row->end), &end_table, arena, &part, reterr));
    if (part.error && strcmp(part.outcome, "complete") == 0)
        return fail(reterr, ERR_INVALID, "end.error belongs to fail and reject, not to complete");
    if (part.result && strcmp(part.outcome, "complete") != 0)
        return fail(reterr, ERR_INVALID, "end.result belongs to complete, not to %s", part.outcome);
    if (part.state && strcmp(part.outcome, WRITE_CONTINUE) != 0)
        return fail(reterr, ERR_INVALID, "end.state belongs to continue, not to %s", part.outcome);
    if (part.error && strcmp(part.outcome, WRITE_CONTINUE) == 0)
        return fail(reterr, ERR_INVALID, "end.error belongs to fail and reject, not to continue");
    write->end        = part.outcome;
    write->end_result = part.state ? part.state : part.result;
    if (strcmp(part.outcome, "fail") == 0 || strcmp(part.outcome, "reject") == 0)
        write->end_error = part.error ? part.error : "no reason was given";
    return OK;
}

static ErrorCode report_read(const ActivationReport *row, Arena *arena, ProcessReport *report, Error *reterr)
{
    *report = (ProcessReport){
        .process_id     = row->process_id,
        .write          = {.token = row->lease, .patch = row->patch, .version = row->version, .phase = row->phase},
        .is_release     = row->release,
        .release_ms     = (int64_t)(row->delay_s * 1000),
        .release_reason = row->reason
    };
    TRY(record_read(row, arena, report, reterr));
    TRY(send_read(row, arena, report, reterr));
    TRY(wait_read(row, arena, &report->write, reterr));
    TRY(end_read(row, arena, &report->write, reterr));
    return process_report_check(report, reterr);
}

ErrorCode activation_reports_read(const ActivationReportRequest *request, Arena *arena, ProcessReport ***ret_list,
                                  Error *reterr)
{
    const ActivationReport *rows = request->items.items;
    ProcessReport         **list = arena_array(arena, ProcessReport *, request->items.count);

    for (int i = 0; i < request->items.count; i++) {
        list[i] = arena_array(arena, ProcessReport, 1);
        if (report_read(&rows[i], arena, list[i], reterr) != OK) {
            error_prefix(reterr, "items[%d]", i);
            return reterr->code;
        }
    }
    *ret_list = list;
    return OK;
}

static ErrorCode report_write(Writer *writer, const ProcessReport *report, Arena *arena, Error *reterr)
{
    static const char *const verdicts[] = {
        [WRITE_WRITTEN] = "written",     [WRITE_LOST] = "lost", [WRITE_STALE] = "stale",   [WRITE_MET] = "met",
        [WRITE_TOO_LARGE] = "too_large", [WRITE_BUSY] = "busy", [WRITE_KNOWN] = "written", [WRITE_ENDED] = "ended"};

    writer_object(writer, NULL);
    writer_text(writer, "process_id", report->process_id);
    if (report->code == OK)
        writer_text(writer, "verdict", verdicts[report->write.verdict]);
    else
        writer_text(writer, "verdict", judge(report->code, JUDGE_OURS) == ABOUT_WORLD ? "busy" : "refused");
    writer_bool(writer, "canceled", report->write.is_canceled);
    if (report->code != OK)
        writer_text(writer, "error", problem_detail(&report->error));
    if (report->sent)
        writer_text(writer, "command_id", report->sent->command_id);
    if (report->loaded) {
        history_write(writer, report->loaded);
        TRY(steps_write(writer, report->loaded->steps, arena, reterr));
    } else if (report->state) {
        writer_raw(writer, "state", report->state);
        writer_i64(writer, "version", report->write.state_version);
    }
    writer_end(writer);
    return OK;
}

ErrorCode activation_reports_write(Writer *writer, ProcessReport *const *list, int count, Arena *arena, Error *reterr)
{
    writer_object(writer, NULL);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++)
        TRY(report_write(writer, list[i], arena, reterr));
    writer_end(writer);
    writer_end(writer);
    return OK;
}

/* ---- extend ---- */

static const Field extend_row_fields[] = {
    {"process_id", FIELD_UUID, offsetof(ExtendRow, command_id), .required = true},
    {"lease", FIELD_I64, offsetof(ExtendRow, lease), .required = true, .min = 1, .max = INT64_MAX,
     .help = "the token that the claim gave"},
};
static const FieldTable extend_row_table = {"activation lease", extend_row_fields, COUNT(extend_row_fields),
                                            sizeof(ExtendRow)};
static const Field      extend_fields[]  = {
    {"items", FIELD_ROWS, offsetof(ExtendRequest, items), .required = true, .min = 1, .max = ACTIVATION_ITEMS_MAX,
     .rows = &extend_row_table},
    {"lease_s", FIELD_REAL, offsetof(ExtendRequest, lease_s), .min = 1, .max = LEASE_S_MAX,
     .help = "from now on; 60 when absent"},
};
const FieldTable activation_extend_table = {"activation extend", extend_fields, COUNT(extend_fields),
                                            sizeof(ExtendRequest)};

const VerdictShape activation_extended_shape = {"process_id", .names = lease_verdicts};

/* ---- progress ---- */

static const Field progress_row_fields[] = {
    {"process_id", FIELD_UUID, offsetof(ProgressRow, command_id), .required = true},
    {"lease", FIELD_I64, offsetof(ProgressRow, lease), .required = true, .min = 1, .max = INT64_MAX,
     .help = "the token that the claim gave"},
    {"step", FIELD_TEXT, offsetof(ProgressRow, step), .required = true, .min = 1, .length_max = 200,
     .help = "that reports it"},
    {"percent", FIELD_I64, offsetof(ProgressRow, percent), .max = 100, .is_set = offsetof(ProgressRow, has_percent),
     .help = "0 to 100; absent: not given"},
    {"text", FIELD_TEXT, offsetof(ProgressRow, text), .help = "1 to 200 characters; absent: not given"},
};
static const FieldTable progress_row_table = {"step progress", progress_row_fields, COUNT(progress_row_fields),
                                              sizeof(ProgressRow)};
static const Field      progress_fields[]  = {
    {"items", FIELD_ROWS, offsetof(ProgressRequest, items), .required = true, .min = 1, .max = ACTIVATION_ITEMS_MAX,
     .rows = &progress_row_table},
};
const FieldTable activation_progress_table = {"activation progress", progress_fields, COUNT(progress_fields),
                                              sizeof(ProgressRequest)};

const VerdictShape activation_reported_shape = {"process_id", .names = progress_verdicts};
