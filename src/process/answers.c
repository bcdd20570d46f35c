/*
 * answers.c - see answers.h.
 */
#include "process/answers.h"

#include "bus/answers.h"
#include "bus/progress.h"
#include "process/process.h"
#include "process/record.h"

#include "base/answer_field.h"

static const char *const response_kinds[]     = {"signal", "reply", "cancel", "deadline", "move", NULL};
static const char *const process_sent_kinds[] = {"command", "process", NULL};

/* clang-format off */
static const AnswerField process_started_fields[] = {
    UUID("process_id"), TEXT("status", .words = sent_states, .help = "as accepted")};
TABLE(process_started, "ProcessStarted");
static const AnswerField process_started_item_fields[] = {
    UUID("process_id"), TEXT("status", .optional = true, .words = sent_states, .help = "as accepted"),
    TEXT("error", .optional = true, .help = "why it was refused")};
static TABLE(process_started_item, "ProcessStartedItem");
static const AnswerField process_started_batch_fields[] = {ROWS("items", process_started_item)};
TABLE(process_started_batch, "ProcessStartedBatch");
static const AnswerField process_defined_fields[] = {
    TEXT("domain"), TEXT("type"), I64("version"), I64("steps"), I64("compensations")};
TABLE(process_defined, "ProcessDefined");
static const AnswerField process_version_fields[] = {
    TEXT("domain"), TEXT("type"), I64("version"), TIME("created_at"), TEXT("author", .nullable = true, .help = "who stored it")};
static TABLE(process_version, "ProcessVersion");
static const AnswerField process_versions_fields[] = {ROWS("items", process_version), NEXT_CURSOR};
TABLE(process_versions, "ProcessVersions");
static const AnswerField process_sent_fields[] = {
    UUID("id"), TEXT("kind", .words = process_sent_kinds), TEXT("domain"), TEXT("type"), TEXT("status"), TEXT("step", .help = "that has sent it")};
static TABLE(process_sent, "ProcessSent");
static const AnswerField process_step_fields[] = {
    TEXT("name", .help = "the step, with its items in each; ~: its compensation"), I64("attempt"),
    I64("aside", .help = "set aside by the nth retry from a step; 0: it counts"), TEXT("verdict", .words = step_end_names),
    TEXT("response", .nullable = true, .help = "of a wait: the name of what it has taken"),
    JSON("result", .nullable = true), TEXT("error", .nullable = true, .help = "null: it succeeded"),
    TIME("started_at"), TIME("ended_at"), I64("took_ms")};
static TABLE(process_step, "ProcessStep");
static const AnswerField process_response_fields[] = {
    TEXT("kind", .words = response_kinds), TEXT("name", .help = "of a signal, or of the step that has sent what it replies to"), TEXT("key"), JSON("payload", .nullable = true), TIME("at"), TEXT("actor", .nullable = true),
    TEXT("met", .nullable = true, .help = "the step that waited for it when it arrived"),
    TEXT("step", .nullable = true, .help = "the wait that it answers; null: any of its name")};
static TABLE(process_response, "ProcessResponse");
static const AnswerField process_fields[] = {
    UUID("process_id"), TEXT("domain"), TEXT("type"), I64("version", .nullable = true, .help = "of its definition; null: its steps are code"),
    TEXT("status", .words = process_statuses), I64("life", .help = "how often it has begun, from 1: it continues as new"),
    JSON("state"), I64("state_version"), TEXT("step", .nullable = true), TIME("created_at"),
    TIME("ended_at", .nullable = true), JSON("result", .nullable = true), TEXT("error", .nullable = true),
    TIME("deadline", .nullable = true), TEXT("on_deadline", .nullable = true, .words = failure_actions, .help = "what happens when the deadline passes"),
    JSON("waits_for", .nullable = true, .help = "the responses that resume it, with their counts; \"*\": any, \"any of: a, b\": one wait for the first of several, \"reply of STEP\": the outcome of what it has sent"),
    TEXT("condition", .nullable = true, .help = "that it waits for"),
    TEXT("attempt", .nullable = true, .help = "of a step, that it waits for"),
    TEXT("lock_note", .nullable = true, .help = "why it was put off, while that is so: another transaction has the process locked; it is tried again at continues_at"),
    TIME("continues_at", .nullable = true, .help = "null: it is queued, runs or has ended, or no time within five years resumes it"), TEXT("worker", .nullable = true),
    TIME("lease_until", .nullable = true, .help = "its worker extends it while it runs"),
    TEXT("worker_note", .nullable = true, .help = "why no worker takes it: its type has no definition, and no program has run one; or it has been queued for long, and no worker has a process of its domain"),
    {"progress", ANSWER_OBJECT, .table = &answer_progress, .nullable = true, .help = "what a step has reported last; null: nothing"},
    ROWS("sent", process_sent, .help = "commands and children that it has sent and that have not ended; 100 at most"),
    ROWS("steps", process_step), ROWS("responses", process_response), ROWS("audit", event)};
TABLE(process, "Process");
static const AnswerField process_line_fields[] = {
    UUID("process_id", AT(Process, process_id)), TEXT("domain", AT(Process, domain)), TEXT("type", AT(Process, type)),
    TEXT("status", AT(Process, status), .words = process_statuses), TEXT("step", AT(Process, step), .nullable = true),
    TIME("created_at", AT(Process, created_at)), TEXT("error", AT(Process, error), .nullable = true)};
TABLE(process_line, "ProcessLine");
static const AnswerField processes_fields[] = {ROWS("items", process_line), NEXT_CURSOR};
TABLE(processes, "Processes");
static const char *const signal_verdicts[] = {"RESUMED", "STORED", "STORED_UNEXPECTED", "LATE", NULL};
static const AnswerField process_signaled_fields[] = {
    UUID("process_id"), TEXT("name"), TEXT("key"), TEXT("step", .optional = true, .help = "the wait that it answers"),
    TEXT("status", .optional = true, .words = signal_verdicts, .help = "of the first request under this key; missing if an earlier version answered it"),
    TEXT("did_you_mean", .optional = true, .help = "of STORED_UNEXPECTED: a name that a wait of the definition takes")};
TABLE(process_signaled, "ProcessSignaled");
static const AnswerField process_decision_fields[] = {
    UUID("process_id"), TEXT("status", .help = "CANCELING: it is canceled, or compensated, at its next step"),
    TEXT("decision", .help = "retry, cancel, compensate or complete"), TEXT("operator", .help = "who decided"), TIME("decided_at")};
TABLE(process_decision, "ProcessDecision");

static const AnswerField process_moved_fields[] = {
    UUID("process_id"), I64("version"), I64("from_version"), TEXT("operator", .nullable = true, .help = "who moved it; null: it was started with this version"),
    TIME("moved_at", .nullable = true)};
TABLE(process_moved, "ProcessMoved");
static const char *const process_phases[] = {"forward", "compensating", "compensated", NULL};
static const AnswerField history_response_fields[] = {
    TEXT("kind", .words = response_kinds), TEXT("name", .help = "of a signal, or of the step that has sent what it replies to"), TEXT("key"),
    JSON("payload", .nullable = true), JSON("item", .optional = true), BOOL("undo", .optional = true), I64("aside", .optional = true),
    TEXT("to_step", .optional = true, .help = "of a signal: only this wait may take it"), JSON("to_item", .optional = true),
    BOOL("is_aside", .optional = true, .help = "a reply that a retry has set aside, without its payload: what is sent next has the next number")};
static TABLE(history_response, "HistoryResponse");
static const AnswerField history_step_fields[] = {
    TEXT("step"), TEXT("kind", .words = record_kind_names), I64("aside", .help = "set aside by the nth retry from a step; 0: it counts"), I64("attempt"),
    TEXT("verdict", .words = step_end_names), TEXT("response", .nullable = true, .help = "of a wait: the name of the responses that it has taken"),
    JSON("taken", .help = "and which of this name: their positions in the order of arrival, from 0"),
    JSON("result", .nullable = true), TEXT("error", .nullable = true, .help = "null: it succeeded"),
    TIME("retry_at", .nullable = true), I64("call", .nullable = true, .help = "the number of the call"), TEXT("call_kind", .nullable = true), TEXT("input_hash", .nullable = true), TIME("ended_at"),
    BOOL("reset", .help = "a failure that does not count any more: an operator had this call tried again")};
static TABLE(history_step, "HistoryStep");
#define HISTORY(optional_) \
    I64("life", .optional = optional_, .help = "how often the process has begun, from 1: it continues as new"), \
    TEXT("phase", .optional = optional_, .words = process_phases), JSON("state", .optional = optional_), \
    I64("version", .optional = optional_, .help = "of the state"), TIME("now", .optional = optional_, .help = "the database's time"), \
    TIME("deadline", .optional = optional_, .nullable = true), \
    TEXT("on_deadline", .optional = optional_, .nullable = true, .words = failure_actions, .help = "what happens when the deadline passes"), \
    TIME("retried_at", .optional = optional_, .nullable = true, .help = "when an operator had it tried again; the failures that this has reset are marked in steps"), \
    UUID("secret", .optional = optional_, .nullable = true, .help = "random, the same in every activation: derive keys of steps from it, so that no one else can compute them"), \
    ROWS("responses", history_response, .optional = optional_, .help = "in the order of arrival"), \
    JSON("open", .optional = optional_, .nullable = true, .help = "while it is being compensated: the steps whose command or child has not ended; wait for the replies to those sent before, because they may complete"), \
    ROWS("steps", history_step, .optional = optional_, .help = "in the order in which they ended"), \
    I64("records_left", .optional = optional_, .help = "how many more records it may have")
static const AnswerField activation_fields[] = {
    UUID("process_id"), TEXT("type"), I64("lease", .help = "the fencing token, a random integer below 2^53: report and extend need it"),
    JSON("input", .help = "the state that the process was started with, or has continued with"),
    I64("attempt", .help = "workers that had this activation and died, plus one"),
    JSON("progress", .nullable = true, .help = "what a step has reported last, as GET /v1/processes/{id} shows it; null: nothing"), HISTORY(false)};
static TABLE(activation, "Activation");
static const AnswerField activations_fields[] = {ROWS("items", activation)};
TABLE(activations, "Activations");
static const char *const report_verdicts[] = {"written", "lost", "stale", "met", "busy", "too_large", "refused", "ended", NULL};
static const AnswerField report_fields[] = {
    UUID("process_id"),
    TEXT("verdict", .words = report_verdicts, .help = "lost: the lease has ended, also because a deadline has ended the process, stop; ended: written, and the process has ended because it was canceled, or because it should complete after its deadline, stop; busy: the failure passes (a lock, a slow database), send it again; refused: the item is wrong and would be again; stale: the state has changed since, compute the patch again; "
         "met: written, but not suspended, because a wait is complete: begin again with this history; too_large: the state would exceed 1 MiB"),
    BOOL("canceled", .help = "an operator wants it canceled and compensated, or its deadline has passed with that action"), TEXT("error", .optional = true),
    UUID("command_id", .optional = true, .help = "of the command or child that was sent"), HISTORY(true)};
static TABLE(report, "Report");
static const AnswerField reports_fields[] = {ROWS("items", report)};
TABLE(reports, "Reports");
static const AnswerField activation_extended_fields[] = {UUID("process_id"), TEXT("verdict", .words = lease_verdicts)};
static TABLE(activation_extended, "ExtendedActivation");
static const AnswerField activations_extended_fields[] = {ROWS("items", activation_extended)};
TABLE(activations_extended, "ExtendedActivations");
static const AnswerField activation_progress_fields[] = {
    UUID("process_id"), TEXT("verdict", .words = progress_verdicts, .help = "lost: the lease has ended; busy: report it again")};
static TABLE(activation_progress, "ActivationProgress");
static const AnswerField activations_progress_fields[] = {ROWS("items", activation_progress)};
TABLE(activations_progress, "ActivationsProgress");
/* clang-format on */
