/*
 * answers.c - see answers.h.
 */
#include "bus/answers.h"

#include "bus/batch.h"
#include "bus/bulk.h"
#include "bus/claim.h"
#include "bus/command.h"
#include "bus/dead_letter.h"
#include "bus/domain.h"
#include "bus/gate.h"
#include "bus/lease.h"
#include "bus/policy.h"
#include "bus/progress.h"
#include "bus/reply_queue.h"
#include "bus/send.h"
#include "bus/settle.h"

#include "base/answer_field.h"

/* clang-format off */
/* ---- commands ---- */

const char *const sent_states[] = {"PENDING", NULL};
#define DUPLICATE                                                                            \
    TEXT("duplicate", .optional = true, .words = duplicate_ends,                             \
         .help = "it was not sent, because another command has its unique key: what became of that one")
static const AnswerField sent_fields[] = {
    UUID("command_id", .help = "of a duplicate: of the command that has the unique key"),
    TEXT("status", .words = sent_states, .help = "as accepted; Pawl-Status is the present one"), DUPLICATE};
TABLE(sent, "Sent");
static const AnswerField sent_item_fields[] = {
    UUID("command_id", .nullable = true), TEXT("status", .optional = true, .words = sent_states), DUPLICATE,
    TEXT("error", .optional = true, .help = "why it was refused")};
static TABLE(sent_item, "SentItem");
static const AnswerField sent_batch_fields[] = {UUID("batch_id"), ROWS("items", sent_item)};
TABLE(sent_batch, "SentBatch");

static const AnswerField event_fields[] = {
    TEXT("event"), TIME("at"), I64("attempt", .nullable = true), TEXT("actor", .nullable = true),
    JSON("details", .nullable = true)};
TABLE(event, "CommandEvent");
static const AnswerField progress_fields[] = {
    TEXT("step", .nullable = true, .help = "of a process, the step that reported it"),
    I64("attempt", .help = "that reported it: of the command, also for a process"), I64("percent", .nullable = true, .help = "0 to 100"),
    TEXT("text", .nullable = true), TIME("at")};
TABLE(progress, "Progress");
static const AnswerField unique_fields[] = {
    TEXT("key"), TEXT("scope", .help = "queued, active or time"), TIME("until", .nullable = true, .help = "when that time ends")};
TABLE(unique, "UniqueKey");
static const AnswerField command_fields[] = {
    UUID("command_id"), TEXT("domain"), TEXT("type"), TEXT("status", .words = command_statuses), I64("attempts"),
    I64("max_attempts"), I64("priority"), JSON("payload", .nullable = true), JSON("result", .nullable = true),
    TEXT("error", .nullable = true), TEXT("reply_to", .nullable = true),
    TEXT("reply_step", .nullable = true, .help = "and that step"),
    UUID("reply_process_id", .nullable = true, .help = "the process whose step has sent it"), TEXT("correlation_id", .nullable = true),
    UUID("batch_id", .nullable = true), TEXT("order_key", .nullable = true),
    {"unique", ANSWER_OBJECT, .table = &answer_unique, .nullable = true, .help = "the unique key that it was the last to take"},
    UUID("waits_for", .nullable = true, .help = "the command that has the order key for which this one waits"),
    TEXT("worker_note", .nullable = true, .help = "why no worker takes it: a pause, a limit, or it has been queued for long and no worker has a command of its domain"),
    TIME("created_at"), TIME("due_at", .nullable = true),
    TIME("lease_until", .nullable = true), {"progress", ANSWER_OBJECT, .table = &answer_progress, .nullable = true, .help = "what its handler has reported last; null: nothing"},
    TIME("ended_at", .nullable = true), ROWS("audit", event)};
TABLE(command, "Command");
static const AnswerField command_line_fields[] = {
    UUID("command_id", AT(Command, command_id)), TEXT("domain", AT(Command, domain)), TEXT("type", AT(Command, type)),
    TEXT("status", AT(Command, status), .words = command_statuses), I64("attempts", AT(Command, attempts)),
    TIME("created_at", AT(Command, created_at)),
    TIME("due_at", AT(Command, due_at), .nullable = true, .help = "when a delayed command is due; null: it is not delayed"),
    TEXT("error", AT(Command, error), .nullable = true)};
TABLE(command_line, "CommandLine");
static const AnswerField commands_fields[] = {ROWS("items", command_line), NEXT_CURSOR};
TABLE(commands, "Commands");
static const AnswerField decision_fields[] = {
    UUID("command_id"), TEXT("status", .help = "CANCELING: the worker learns it at its next heartbeat"),
    TEXT("decision", .help = "retry, cancel or complete"), TEXT("operator", .help = "who decided"), TIME("decided_at")};
TABLE(decision, "Decision");
/* ---- domains ---- */

#define DOMAIN_FIELDS \
    TEXT("domain", AT(Domain, domain)), I64("queued", AT(Domain, queued)), \
    I64("delayed", AT(Domain, delayed), .help = "due later; of processes also those that wait"), \
    I64("parked", AT(Domain, parked), .help = "wait until the command before them with the same order key has ended"), \
    I64("running", AT(Domain, running), .help = "leased to workers"), \
    I64("in_tsq", AT(Domain, in_tsq), .help = "wait for an operator"), \
    TIME("oldest_at", AT(Domain, oldest_at), .nullable = true, .help = "since when the oldest queued command has been queued; null: none is queued"), \
    I64("oldest_s", AT(Domain, oldest_s), .help = "its age in seconds; 0: none is queued"), \
    JSON("estimated", AT(Domain, estimated), .help = "an array of the names of those numbers above that are estimates, because there are thousands"), \
    JSON("recent", AT(Domain, recent), .nullable = true, .help = "the last five minutes, as workers and senders over pods have counted them: minutes, sent_per_s, ended_per_s, wait_p50_ms, wait_p95_ms, run_p50_ms, run_p95_ms (null where nothing was measured); null: nothing was counted"), \
    JSON("pauses", AT(Domain, pauses), .nullable = true, .help = "an array of type (* is the whole domain), reason, operator and at; null: it is not paused"), \
    JSON("limits", AT(Domain, limits), .nullable = true, .help = "an array of type, per_key, running, rate_per_s, period_s and burst, as GET /v1/domains/{domain}/limits has them; null: it has none")
static const AnswerField domain_line_fields[] = {DOMAIN_FIELDS};
TABLE(domain_line, "DomainLine");
static const AnswerField domain_fields[] = {
    DOMAIN_FIELDS, {"processes", ANSWER_OBJECT, .table = &answer_domain_line, .nullable = true, .help = "of this domain: those are commands of process:DOMAIN; null: there never were any"}};
TABLE(domain, "Domain");
static const AnswerField domains_fields[] = {ROWS("items", domain_line), TEXT("next_cursor", .nullable = true, .help = "null: there is no more")};
TABLE(domains, "Domains");

static const AnswerField stat_fields[] = {
    TIME("at", .help = "when the step begins"), I64("count", .help = "how many; of wait and run, how many of the sample were measured"),
    I64("p50_ms", .nullable = true, .help = "of wait and run; else null"), I64("p95_ms", .nullable = true)};
static TABLE(stat, "StatPoint");
static const AnswerField stats_fields[] = {
    TEXT("measure"), TEXT("label", .nullable = true, .help = "the domain or route; null: all, summed"), TIME("since"), I64("step_s"),
    ROWS("items", stat, .help = "oldest first; a step in which nothing was counted is left out")};
TABLE(stats, "Stats");

static const AnswerField policy_fields[] = {
    TEXT("type", .help = "* is the domain's own"), JSON("delays_s", .help = "an array of numbers"), BOOL("is_default"),
    TEXT("order_key", .words = order_key_rules, .help = "what a command in the troubleshooting queue does with its order key")};
static TABLE(policy, "RetryPolicy");
static const AnswerField policies_fields[] = {TEXT("domain"), ROWS("items", policy)};
TABLE(policies, "RetryPolicies");

static const AnswerField pause_fields[] = {
    TEXT("domain", AT(DomainPause, domain), .help = "process:DOMAIN: its processes"), TEXT("type", AT(DomainPause, type), .help = "* is the whole domain"),
    TEXT("reason", AT(DomainPause, reason), .nullable = true), TEXT("operator", AT(DomainPause, operator), .help = "who decided"),
    TIME("at", AT(DomainPause, at))};
TABLE(pause, "DomainPause");
static const AnswerField pauses_fields[] = {TEXT("domain"), ROWS("items", pause)};
TABLE(pauses, "DomainPauses");
static const AnswerField limit_fields[] = {
    TEXT("type", .help = "* is the domain's own"), BOOL("per_key", .help = "for each key by itself"), I64("running", .nullable = true),
    JSON("rate_per_s", .nullable = true, .help = "a number"), I64("period_s", .nullable = true, .help = "1 or 60: in any such time"),
    I64("burst", .nullable = true), I64("running_now", .nullable = true, .help = "how many run that it counts; null: it does not count them")};
static TABLE(limit, "DomainLimit");
static const AnswerField limits_fields[] = {TEXT("domain"), ROWS("items", limit)};
TABLE(limits, "DomainLimits");

static const AnswerField batch_fields[] = {
    UUID("batch_id", AT(Batch, batch_id)), TEXT("name", AT(Batch, name), .nullable = true),
    TEXT("status", AT(Batch, status)), I64("total", AT(Batch, total)), I64("pending", AT(Batch, pending)),
    I64("in_progress", AT(Batch, in_progress)), I64("completed", AT(Batch, completed)), I64("failed", AT(Batch, failed)),
    I64("canceled", AT(Batch, canceled)), I64("in_tsq", AT(Batch, in_tsq)), TIME("created_at", AT(Batch, created_at)),
    TIME("completed_at", AT(Batch, completed_at), .nullable = true)};
TABLE(batch, "Batch");
static const AnswerField batch_line_fields[] = {
    UUID("batch_id", AT(BatchLine, batch_id)), TEXT("name", AT(BatchLine, name), .nullable = true),
    TEXT("status", AT(BatchLine, status), .words = batch_statuses),
    TEXT("domain", AT(BatchLine, domain), .nullable = true, .help = "of its first command; null: it has none"),
    TIME("created_at", AT(BatchLine, created_at)), TIME("sealed_at", AT(BatchLine, sealed_at), .nullable = true),
    TIME("completed_at", AT(BatchLine, completed_at), .nullable = true)};
TABLE(batch_line, "BatchLine");
static const AnswerField batches_fields[] = {ROWS("items", batch_line), NEXT_CURSOR};
TABLE(batches, "Batches");

static const char *const bulk_nouns[] = {"command", "process", NULL}, *const bulk_states[] = {"running", "ended", "failed", NULL};
static const AnswerField bulk_fields[] = {
    UUID("operation_id", AT(Bulk, operation_id)), TEXT("noun", AT(Bulk, noun), .words = bulk_nouns), TEXT("action", AT(Bulk, action)),
    JSON("filter", AT(Bulk, filter)), TEXT("operator", AT(Bulk, operator)), TEXT("reason", AT(Bulk, reason), .nullable = true),
    TEXT("state", AT(Bulk, state), .words = bulk_states), I64("matched", AT(Bulk, matched), .help = "so far"),
    I64("decided", AT(Bulk, decided)), I64("known", AT(Bulk, known), .help = "decided before in the same way, or ended meanwhile"),
    I64("refused", AT(Bulk, refused)),
    I64("locked", AT(Bulk, locked), .help = "by other transactions; tried again for 5 s after all others"),
    JSON("refusals", AT(Bulk, refusals), .help = "at most ten of them: id, domain, why"), TEXT("error", AT(Bulk, error), .nullable = true, .help = "why it failed"),
    TIME("created_at", AT(Bulk, created_at)), TIME("ended_at", AT(Bulk, ended_at), .nullable = true)};
TABLE(bulk, "Bulk");
static const AnswerField bulk_begun_fields[] = {
    UUID("operation_id", .nullable = true, .help = "null: a dry run"), I64("count", .help = "how many match now"),
    BOOL("is_exact", .help = "false: at least so many match")};
TABLE(bulk_begun, "BulkBegun");

static const AnswerField claimed_item_fields[] = {
    UUID("command_id", AT(ClaimedCommand, command_id)), TEXT("type", AT(ClaimedCommand, type)),
    JSON("payload", AT(ClaimedCommand, payload), .nullable = true), I64("attempt", AT(ClaimedCommand, attempt)),
    I64("max_attempts", AT(ClaimedCommand, max_attempts)),
    JSON("progress", AT(ClaimedCommand, progress), .nullable = true, .help = "what the attempts before reported last, as GET /v1/commands/{id} shows it; null: nothing"),
    I64("lease", AT(ClaimedCommand, token), .help = "the fencing token, a random integer below 2^53: settle and extend need it")};
TABLE(claimed_item, "ClaimedCommand");
static const AnswerField claimed_fields[] = {ROWS("items", claimed_item)};
TABLE(claimed, "Claimed");

static const char *const settle_verdicts[] = {"settled", "lost", "busy", "refused", NULL};
static const AnswerField settled_item_fields[] = {
    UUID("command_id"), BOOL("settled", .help = "false: nothing changed, see verdict"),
    TEXT("verdict", .words = settle_verdicts, .help = "lost: the lease has ended; busy: settle it again; refused: the same would be refused again, for the reason in error"),
    TEXT("status", .nullable = true, .help = "of the command, after this; null: there is no such command, or the verdict is busy or refused"),
    TEXT("error", .optional = true)};
static TABLE(settled_item, "SettledCommand");
static const AnswerField settled_fields[] = {ROWS("items", settled_item)};
TABLE(settled, "Settled");

const char *const lease_verdicts[] = {
    [LEASE_EXTENDED] = "extended", [LEASE_CANCELED] = "canceled", [LEASE_LOST] = "lost", [LEASE_BUSY] = "busy", NULL};
static const AnswerField extended_item_fields[] = {
    UUID("command_id"), BOOL("extended"),
    TEXT("verdict", .words = lease_verdicts, .help = "canceled: an operator canceled it; lost: the lease has ended. Stop working on it in either case")};
static TABLE(extended_item, "ExtendedLease");
static const AnswerField extended_fields[] = {ROWS("items", extended_item)};
TABLE(extended, "Extended");

static const AnswerField progress_written_item_fields[] = {
    UUID("command_id"), BOOL("reported"),
    TEXT("verdict", .words = progress_verdicts, .help = "lost: the lease has ended, stop working on it; busy: report it again")};
static TABLE(progress_written_item, "ReportedProgress");
static const AnswerField progress_written_fields[] = {ROWS("items", progress_written_item)};
TABLE(progress_written, "ProgressReported");

/* ---- dead letters ---- */

static const char *const letter_states[] = {"pending", "retrying", "failed", "resolved", NULL};
static const AnswerField letter_fields[] = {
    I64("id", AT(DeadLetter, id)), TEXT("operation_type", AT(DeadLetter, operation_type)),
    TEXT("operation_key", AT(DeadLetter, operation_key)),
    JSON("operation_data", AT(DeadLetter, operation_data), .nullable = true),
    TEXT("error_message", AT(DeadLetter, error_message), .nullable = true),
    TEXT("error_code", AT(DeadLetter, error_code), .nullable = true), I64("retry_count", AT(DeadLetter, retry_count)),
    TEXT("status", AT(DeadLetter, status), .words = letter_states), TIME("created_at", AT(DeadLetter, created_at)),
    TIME("last_retry_at", AT(DeadLetter, last_retry_at), .nullable = true),
    TEXT("retried_by", AT(DeadLetter, retried_by), .nullable = true,
         .help = "pawl, or DOMAIN/TYPE of the bus by a route; null: nothing retries it unless an application claims it")};
TABLE(letter, "DeadLetter");
static const AnswerField letters_fields[] = {ROWS("items", letter), I64("next_cursor", .nullable = true)};
TABLE(letters, "DeadLetters");

/* ---- reply queues ---- */

static const AnswerField reply_queue_fields[] = {
    TEXT("queue", AT(ReplyQueue, queue)),
    TEXT("creator", AT(ReplyQueue, creator), .nullable = true, .help = "the key or login whose send has created it; null: made again for a reply"),
    I64("messages", AT(ReplyQueue, messages), .help = "replies in it, counted up to 10000"),
    TIME("oldest_at", AT(ReplyQueue, oldest_at), .nullable = true, .help = "when the oldest of them came; null: there is none"),
    TIME("created_at", AT(ReplyQueue, created_at))};
TABLE(reply_queue, "ReplyQueue");
static const AnswerField reply_queues_fields[] = {
    ROWS("items", reply_queue), TEXT("next_cursor", .nullable = true, .help = "null: there is no more")};
TABLE(reply_queues, "ReplyQueues");
static const AnswerField reply_message_fields[] = {
    I64("msg_id", AT(ReplyMessage, msg_id)),
    I64("read_count", AT(ReplyMessage, read_count), .help = "which read of this reply it is: the acknowledgement must give it"),
    TIME("enqueued_at", AT(ReplyMessage, enqueued_at)),
    TIME("visible_at", AT(ReplyMessage, visible_at), .help = "when it is read again, unless it is acknowledged before"),
    JSON("message", AT(ReplyMessage, message), .nullable = true, .help = "command_id, domain, type, status, result, error and correlation_id of the command")};
TABLE(reply_message, "Reply");
static const AnswerField replies_fields[] = {ROWS("items", reply_message)};
TABLE(replies, "Replies");
static const AnswerField acknowledged_item_fields[] = {
    I64("msg_id"), BOOL("acknowledged"), TEXT("verdict", .words = reply_verdicts,
    .help = "lost: it was visible again, and read again; gone: it was acknowledged before, or retention has deleted it; busy: another transaction has it locked")};
static TABLE(acknowledged_item, "AcknowledgedReply");
static const AnswerField acknowledged_fields[] = {ROWS("items", acknowledged_item)};
TABLE(acknowledged, "AcknowledgedReplies");
/* clang-format on */
