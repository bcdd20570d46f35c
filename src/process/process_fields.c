/*
 * process_fields.c - see process_fields.h.
 */
#include "process/process_fields.h"

#include "bus/command.h"

#define STEP_NAME_MAX 400

/* ---- start ---- */

static const Field start_fields[] = {
    {"type", FIELD_TEXT, offsetof(ProcessStartRequest, type), .required = true, .length_max = SEND_TYPE_MAX,
     .help = "of its definition, or of the program that runs it"},
    {"state", FIELD_JSON, offsetof(ProcessStartRequest, state), .help = "an object; {} when absent"},
    {"process_id", FIELD_UUID, offsetof(ProcessStartRequest, process_id), .help = "started twice it is one process"},
    {"domain", FIELD_TEXT, offsetof(ProcessStartRequest, domain), .length_max = PROCESS_DOMAIN_MAX,
     .names = NAMES_PROCESSES, .help = "of its definition; process when absent"},
    {"deadline", FIELD_TEXT, offsetof(ProcessStartRequest, deadline), .length_max = 60,
     .help = "how long from when it is due, such as 2h, or a time; that of its definition when absent"},
    {"on_deadline", FIELD_TEXT, offsetof(ProcessStartRequest, on_deadline), .words = failure_actions,
     .help = "what happens when the deadline passes; that of its definition when absent, without a definition "
             "troubleshoot"},
    {"delay_s", FIELD_REAL, offsetof(ProcessStartRequest, delay_s), .min = 0, .max = SEND_DELAY_S_MAX,
     .help = "it begins after this time"},
    {"priority", FIELD_I64, offsetof(ProcessStartRequest, priority), .min = 0, .max = SEND_PRIORITY_MAX,
     .is_set = offsetof(ProcessStartRequest, priority_given),
     .help   = "9 is first, in each of its activations; 4 when absent"},
    {"key", FIELD_TEXT, offsetof(ProcessStartRequest, key), .min = 1, .length_max = SEND_KEY_MAX,
     .help = "the same as process_id, with any text, such as order-17: it becomes the id, and counts in all domains"},
};
const FieldTable process_start_table = {"process", start_fields, COUNT(start_fields), sizeof(ProcessStartRequest)};

static const Field batch_fields[] = {
    {"items", FIELD_ROWS, offsetof(ProcessBatchRequest, items), .min = 1, .max = PROCESS_ITEMS_MAX,
     .rows = &process_start_table, .required = true},
};
const FieldTable process_batch_table = {"process batch", batch_fields, COUNT(batch_fields),
                                        sizeof(ProcessBatchRequest)};

ErrorCode process_start_request_item(Arena *arena, const ProcessStartRequest *request, const char *actor,
                                     SendItem *ret_item, Error *reterr)
{
    SendItem item;

    TRY(process_start_item(arena, request->type, request->state, request->process_id, request->domain, &item, reterr));
    TRY(process_start_deadline(arena, request->deadline, request->on_deadline, &item, reterr));
    item.delay_ms = (int64_t)(request->delay_s * 1000);
    item.priority = request->priority_given ? (int)request->priority : SEND_DEFAULT;
    item.actor    = actor;
    *ret_item     = item;
    return OK;
}

/* ---- signal ---- */

void process_signaled_write(Writer *writer, Arena *arena, const char *process_id, const ProcessSignal *signal,
                            const ProcessSignaled *signaled, bool with_verdict)
{
    const char *nearest = process_signal_nearest(arena, signal->name, signaled);

    writer_object(writer, NULL);
    writer_text(writer, "process_id", process_id);
    writer_text(writer, "name", signal->name);
    writer_text(writer, "key", signal->key);
    if (signal->step)
        writer_text(writer, "step", signal->step);
    if (with_verdict)
        writer_text(writer, "verdict", signaled->verdict);
    if (signaled->first)
        writer_text(writer, "status", signaled->first);
    if (nearest)
        writer_text(writer, "did_you_mean", nearest);
    writer_end(writer);
}

/* ---- move ---- */

static const Field move_fields[] = {
    {"version", FIELD_I64, offsetof(ProcessMoveRequest, version), .required = true, .min = 1,
     .max = PROCESS_VERSION_MAX, .help = "of its definition, newer than the one it has"},
    DECISION_FIELDS(ProcessMoveRequest),
};
const FieldTable process_move_table = {"process move", move_fields, COUNT(move_fields), sizeof(ProcessMoveRequest)};

/* ---- decide ---- */

static const Field retry_fields[] = {
    DECISION_FIELDS(ProcessDecisionRequest),
    {"from", FIELD_TEXT, offsetof(ProcessDecisionRequest, from), .length_max = STEP_NAME_MAX,
                              .help = "run this step and what came after it again; from the one that failed when absent"},
};
static const Field cancel_fields[] = {
    DECISION_FIELDS(ProcessDecisionRequest),
    {"compensate", FIELD_BOOL, offsetof(ProcessDecisionRequest, compensate),
                              .help = "run the compensations of the steps that have ended first"},
};
static const Field complete_fields[] = {
    DECISION_FIELDS(ProcessDecisionRequest),
    {"result", FIELD_JSON, offsetof(ProcessDecisionRequest, result), .help = "what the process would have returned"},
};
const FieldTable process_retry_table    = {"process retry", retry_fields, COUNT(retry_fields),
                                           sizeof(ProcessDecisionRequest)};
const FieldTable process_cancel_table   = {"process cancellation", cancel_fields, COUNT(cancel_fields),
                                           sizeof(ProcessDecisionRequest)};
const FieldTable process_complete_table = {"process completion", complete_fields, COUNT(complete_fields),
                                           sizeof(ProcessDecisionRequest)};

ProcessDecision process_request_decision(ProcessVerb verb, const ProcessDecisionRequest *request, const char *actor)
{
    return (ProcessDecision){.action = verb == PROCESS_CANCEL && request->compensate ? PROCESS_COMPENSATE : verb,
                             .actor  = actor,
                             .reason = request->reason,
                             .from   = request->from,
                             .result = request->result};
}
