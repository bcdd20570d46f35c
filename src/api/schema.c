/*
 * schema.c - see schema.h.
 */
#include "api/schema.h"

#include "base/attr.h"
#include "bus/command.h"
#include "bus/policy.h"
#include "process/process.h"

/* clang-format off */
#define TABLE(name, noun) const AnswerTable answer_##name = {noun, name##_fields, COUNT(name##_fields)}
#define I64(name, ...)  {name, ANSWER_I64, ##__VA_ARGS__}
#define BOOL(name, ...) {name, ANSWER_BOOL, ##__VA_ARGS__}
#define TEXT(name, ...) {name, ANSWER_TEXT, ##__VA_ARGS__}
#define UUID(name, ...) {name, ANSWER_UUID, ##__VA_ARGS__}
#define TIME(name, ...) {name, ANSWER_TIME, ##__VA_ARGS__}
#define JSON(name, ...) {name, ANSWER_JSON, ##__VA_ARGS__}
#define ROWS(name, rows, ...) {name, ANSWER_ROWS, .table = &answer_##rows, ##__VA_ARGS__}

/* ---- operations ---- */

static const char *const health_states[] = {"live", "ready", NULL};
static const AnswerField health_fields[] = {TEXT("status", .words = health_states)};
TABLE(health, "Health");

static const char *const update_states[] = {"received", NULL};
static const AnswerField update_fields[] = {TEXT("status", .words = update_states)};
TABLE(update, "Update");

static const AnswerField openapi_fields[] = {
    TEXT("openapi"), JSON("info"), JSON("servers"), JSON("tags"), JSON("security"), JSON("paths"), JSON("components")};
TABLE(openapi, "Description");

static const char *const alert_states[] = {"ok", "firing", "resolved", NULL};
static const AnswerField alert_fields[] = {
    TEXT("alert"), TEXT("state", .words = alert_states), TIME("since", .nullable = true), I64("value"), I64("limit"),
    TEXT("unit"), TEXT("summary")};
static TABLE(alert, "Alert");
static const AnswerField alerts_fields[] = {ROWS("items", alert)};
TABLE(alerts, "Alerts");

static const char *const letter_states[] = {"pending", "retrying", "failed", "resolved", NULL};
static const AnswerField letter_fields[] = {
    I64("id"), TEXT("operation_type"), TEXT("operation_key"), JSON("operation_data", .nullable = true),
    TEXT("error_message", .nullable = true), TEXT("error_code", .nullable = true), I64("retry_count"),
    TEXT("status", .words = letter_states), TIME("created_at"), TIME("last_retry_at", .nullable = true),
    TEXT("retried_by", .nullable = true,
         .help = "pawl, or DOMAIN/TYPE of the bus by a route; null: nothing retries it unless an application claims it")};
TABLE(letter, "DeadLetter");
static const AnswerField letters_fields[] = {ROWS("items", letter), I64("next_cursor", .nullable = true)};
TABLE(letters, "DeadLetters");

/* ---- commands ---- */

#define NEXT_NUMBER \
    I64("next_cursor", .nullable = true, .help = "null: there is no more; a page may be short, even empty, and have a next one")

static const char *const sent_states[]    = {"PENDING", NULL};
static const AnswerField sent_fields[]    = {
    UUID("command_id"), TEXT("status", .words = sent_states, .help = "as accepted; Pawl-Status is the present one")};
TABLE(sent, "Sent");
static const AnswerField sent_item_fields[] = {
    UUID("command_id", .nullable = true), TEXT("status", .optional = true, .words = sent_states),
    TEXT("error", .optional = true, .help = "why it was refused")};
static TABLE(sent_item, "SentItem");
static const AnswerField sent_batch_fields[] = {UUID("batch_id"), ROWS("items", sent_item)};
TABLE(sent_batch, "SentBatch");

static const AnswerField event_fields[] = {
    TEXT("event"), TIME("at"), I64("attempt", .nullable = true), TEXT("actor", .nullable = true),
    JSON("details", .nullable = true)};
static TABLE(event, "CommandEvent");
static const AnswerField command_fields[] = {
    UUID("command_id"), TEXT("domain"), TEXT("type"), TEXT("status", .words = command_statuses), I64("attempts"),
    I64("max_attempts"), I64("priority"), JSON("payload", .nullable = true), JSON("result", .nullable = true),
    TEXT("error", .nullable = true), TEXT("reply_to", .nullable = true), TEXT("correlation_id", .nullable = true),
    UUID("batch_id", .nullable = true), TEXT("order_key", .nullable = true),
    UUID("waits_for", .nullable = true, .help = "the command that has the order key for which this one waits"),
    TIME("created_at"), TIME("due_at", .nullable = true),
    TIME("lease_until", .nullable = true), TIME("ended_at", .nullable = true), ROWS("audit", event)};
TABLE(command, "Command");
static const AnswerField command_line_fields[] = {
    UUID("command_id"), TEXT("domain"), TEXT("type"), TEXT("status", .words = command_statuses), I64("attempts"),
    TIME("created_at"), TIME("due_at", .nullable = true, .help = "when a delayed command is due; null: it is not delayed"),
    TEXT("error", .nullable = true)};
static TABLE(command_line, "CommandLine");
static const AnswerField commands_fields[] = {ROWS("items", command_line), NEXT_NUMBER};
TABLE(commands, "Commands");
static const AnswerField decision_fields[] = {
    UUID("command_id"), TEXT("status", .help = "CANCELING: the worker learns it at its next heartbeat"),
    TEXT("decision", .help = "retry, cancel or complete"), TEXT("operator", .help = "who decided"), TIME("decided_at")};
TABLE(decision, "Decision");
static const AnswerField policy_fields[] = {
    TEXT("type", .help = "* is the domain's own"), JSON("delays_s", .help = "an array of numbers"), BOOL("is_default"),
    TEXT("order_key", .words = order_key_rules, .help = "what a command in the troubleshooting queue does with its order key")};
static TABLE(policy, "RetryPolicy");
static const AnswerField policies_fields[] = {TEXT("domain"), ROWS("items", policy)};
TABLE(policies, "RetryPolicies");

static const AnswerField batch_fields[] = {
    UUID("batch_id"), TEXT("name", .nullable = true), TEXT("status"), I64("total"), I64("pending"), I64("in_progress"),
    I64("completed"), I64("failed"), I64("canceled"), I64("in_tsq"), TIME("created_at"),
    TIME("completed_at", .nullable = true)};
TABLE(batch, "Batch");

static const AnswerField claimed_item_fields[] = {
    UUID("command_id"), TEXT("type"), JSON("payload", .nullable = true), I64("attempt"), I64("max_attempts"),
    I64("lease", .help = "the fencing token, an integer below 2^53: settle and extend need it")};
static TABLE(claimed_item, "ClaimedCommand");
static const AnswerField claimed_fields[] = {ROWS("items", claimed_item)};
TABLE(claimed, "Claimed");

static const AnswerField settled_item_fields[] = {
    UUID("command_id"), BOOL("settled", .help = "false: the lease was lost, and nothing changed"),
    TEXT("status", .nullable = true, .help = "of the command, after this; null: there is no such command"),
    TEXT("error", .optional = true)};
static TABLE(settled_item, "SettledCommand");
static const AnswerField settled_fields[] = {ROWS("items", settled_item)};
TABLE(settled, "Settled");

static const char *const lease_verdicts[] = {"extended", "canceled", "lost", "busy", NULL};
static const AnswerField extended_item_fields[] = {
    UUID("command_id"), BOOL("extended"),
    TEXT("verdict", .words = lease_verdicts, .help = "canceled: an operator canceled it; lost: the lease has ended. Stop working on it in either case")};
static TABLE(extended_item, "ExtendedLease");
static const AnswerField extended_fields[] = {ROWS("items", extended_item)};
TABLE(extended, "Extended");

/* ---- processes ---- */

static const AnswerField process_started_fields[] = {
    UUID("process_id"), TEXT("status", .words = sent_states, .help = "as accepted")};
TABLE(process_started, "ProcessStarted");
static const AnswerField process_defined_fields[] = {
    TEXT("domain"), TEXT("type"), I64("version"), I64("steps"), I64("compensations")};
TABLE(process_defined, "ProcessDefined");
static const AnswerField process_step_fields[] = {
    TEXT("name"), I64("attempt"), JSON("result", .nullable = true), TEXT("error", .nullable = true, .help = "null: it succeeded"),
    TIME("started_at"), TIME("ended_at"), I64("took_ms")};
static TABLE(process_step, "ProcessStep");
static const AnswerField process_response_fields[] = {
    TEXT("name"), TEXT("key"), JSON("payload", .nullable = true), TIME("at"), TEXT("actor", .nullable = true),
    TEXT("met", .nullable = true, .help = "the step that waited for it when it arrived")};
static TABLE(process_response, "ProcessResponse");
static const AnswerField process_fields[] = {
    UUID("process_id"), TEXT("domain"), TEXT("type"), I64("version", .nullable = true, .help = "of its definition; null: its steps are code"),
    TEXT("status", .words = process_statuses), JSON("state"), I64("state_version"), TEXT("step", .nullable = true), TIME("created_at"),
    TIME("ended_at", .nullable = true), JSON("result", .nullable = true), TEXT("error", .nullable = true),
    TIME("deadline", .nullable = true), JSON("waits_for", .nullable = true, .help = "the responses that resume it, with their counts"),
    TIME("continues_at", .nullable = true, .help = "null: only a response resumes it"), TEXT("worker", .nullable = true),
    ROWS("steps", process_step), ROWS("responses", process_response), ROWS("audit", event)};
TABLE(process, "Process");
static const AnswerField process_line_fields[] = {
    UUID("process_id"), TEXT("domain"), TEXT("type"), TEXT("status", .words = process_statuses), TEXT("step", .nullable = true),
    TIME("created_at"), TEXT("error", .nullable = true)};
static TABLE(process_line, "ProcessLine");
static const AnswerField processes_fields[] = {ROWS("items", process_line), NEXT_NUMBER};
TABLE(processes, "Processes");
static const AnswerField process_signaled_fields[] = {UUID("process_id"), TEXT("name"), TEXT("key")};
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
static const AnswerField history_response_fields[] = {TEXT("name"), TEXT("key"), JSON("payload", .nullable = true)};
static TABLE(history_response, "HistoryResponse");
static const AnswerField history_step_fields[] = {
    TEXT("step"), I64("attempt"), JSON("result", .nullable = true), TEXT("error", .nullable = true, .help = "null: it succeeded"),
    TEXT("input_hash", .nullable = true), TIME("ended_at")};
static TABLE(history_step, "HistoryStep");
#define HISTORY(optional_) \
    TEXT("phase", .optional = optional_, .words = process_phases), JSON("state", .optional = optional_), \
    I64("version", .optional = optional_, .help = "of the state"), TIME("now", .optional = optional_, .help = "the database's time"), \
    TIME("deadline", .optional = optional_, .nullable = true), \
    TIME("retried_at", .optional = optional_, .nullable = true, .help = "failures before this do not count: an operator had it tried again"), \
    UUID("secret", .optional = optional_, .nullable = true, .help = "random, the same in every activation: derive keys of steps from it, so that no one else can compute them"), \
    ROWS("responses", history_response, .optional = optional_, .help = "in the order of arrival"), \
    ROWS("steps", history_step, .optional = optional_, .help = "in the order in which they ended")
static const AnswerField activation_fields[] = {
    UUID("process_id"), TEXT("type"), I64("lease", .help = "the fencing token, an integer below 2^53: report and extend need it"),
    JSON("input", .help = "the state that the process was started with"),
    I64("attempt", .help = "workers that had this activation and died, plus one"), HISTORY(false)};
static TABLE(activation, "Activation");
static const AnswerField activations_fields[] = {ROWS("items", activation)};
TABLE(activations, "Activations");
static const char *const report_verdicts[] = {"written", "lost", "stale", "met", "busy", "too_large", "refused", NULL};
static const AnswerField report_fields[] = {
    UUID("process_id"),
    TEXT("verdict", .words = report_verdicts, .help = "lost: the lease has ended, stop; busy: another transaction has the process locked, send it again; stale: the state has changed since, compute the patch again; "
         "met: written, but not suspended, because a wait is complete: begin again with this history; too_large: the state would exceed 1 MiB"),
    BOOL("canceled", .help = "an operator wants it canceled and compensated"), TEXT("error", .optional = true),
    UUID("command_id", .optional = true, .help = "of the command or child that was sent"), HISTORY(true)};
static TABLE(report, "Report");
static const AnswerField reports_fields[] = {ROWS("items", report)};
TABLE(reports, "Reports");
static const AnswerField activation_extended_fields[] = {UUID("process_id"), TEXT("verdict", .words = lease_verdicts)};
static TABLE(activation_extended, "ExtendedActivation");
static const AnswerField activations_extended_fields[] = {ROWS("items", activation_extended)};
TABLE(activations_extended, "ExtendedActivations");

/* ---- ratings ---- */

static const AnswerField board_row_fields[] = {
    I64("place"), I64("user"), TEXT("name"), TEXT("username", .nullable = true), I64("rating"), I64("deviation", .help = "of Glicko-2"),
    I64("games"), I64("change_week", .help = "compared with the rating before the last 7 days")};
static TABLE(board_row, "Place");
static const AnswerField leaderboard_fields[] = {
    I64("chat"), ROWS("items", board_row), I64("total", .help = "players who have a place")};
TABLE(leaderboard, "Leaderboard");
static const char *const match_outcomes[] = {"won", "drawn", "lost", NULL};
static const AnswerField player_match_fields[] = {
    I64("match"), TIME("played_at"), I64("opponent"), TEXT("opponent_name"), I64("score"), I64("opponent_score"),
    TEXT("outcome", .words = match_outcomes), I64("rating_before"), I64("rating")};
static TABLE(player_match, "PlayerMatch");
static const AnswerField player_history_fields[] = {ROWS("items", player_match), NEXT_NUMBER};
TABLE(player_history, "PlayerHistory");
static const AnswerField side_fields[] = {I64("user"), TEXT("name"), I64("score"), I64("rating_before"), I64("rating")};
static TABLE(side, "MatchSide");
static const AnswerField match_fields[] = {
    I64("id"), TIME("played_at"), {"a", ANSWER_OBJECT, .table = &answer_side}, {"b", ANSWER_OBJECT, .table = &answer_side},
    BOOL("undone")};
static TABLE(match, "Match");
static const AnswerField matches_fields[] = {ROWS("items", match), NEXT_NUMBER};
TABLE(matches, "Matches");

/* ---- wallets ---- */

#define FLOOR    I64("floor", .optional = true, .help = "how far below zero it may go; @system has none")
#define METADATA JSON("metadata", .nullable = true)

static const AnswerField wallet_fields[] = {
    TEXT("owner"), TEXT("asset"), I64("balance"), I64("held"), I64("available"), FLOOR, I64("version"), BOOL("frozen"),
    METADATA, TIME("created_at")};
TABLE(wallet, "Wallet");
static const AnswerField wallet_past_fields[] = {
    TEXT("owner"), TEXT("asset"), TIME("at"), I64("balance"), I64("held"), I64("available"), FLOOR, I64("version")};
TABLE(wallet_past, "WalletPast");
static const AnswerField wallets_fields[] = {ROWS("items", wallet)};
TABLE(wallets, "Wallets");

static const AnswerField entry_fields[] = {
    UUID("txn_id"), TEXT("kind"), I64("amount"), I64("balance"), I64("held"), I64("version"),
    TEXT("other", .nullable = true), METADATA, TIME("at")};
static TABLE(entry, "Entry");
static const AnswerField entries_fields[] = {
    TEXT("owner"), TEXT("asset"), ROWS("items", entry),
    TEXT("next_cursor", .nullable = true, .help = "null: there is no more")};
TABLE(entries, "Entries");

/* ---- postings ---- */

#define STATE I64("balance_before"), I64("balance"), I64("held"), I64("available"), I64("version")

static const AnswerField moved_fields[] = {
    UUID("txn_id"), TEXT("owner"), TEXT("asset"), I64("amount"), STATE, TIME("at")};
TABLE(moved, "Moved");
static const AnswerField transfer_fields[] = {
    UUID("txn_id"), TEXT("from"), TEXT("to"), TEXT("asset"), I64("amount"), STATE, TIME("at")};
TABLE(transfer, "Transfer");
static const AnswerField frozen_fields[] = {
    UUID("txn_id"), TEXT("owner"), TEXT("asset"), STATE, BOOL("frozen"), TIME("at")};
TABLE(frozen, "Frozen");
static const AnswerField floor_fields[] = {
    UUID("txn_id"), TEXT("owner"), TEXT("asset"), STATE, I64("floor"), TIME("at")};
TABLE(floor, "Floor");
static const AnswerField hold_placed_fields[] = {
    UUID("txn_id"), TEXT("owner"), TEXT("asset"), I64("amount"), STATE, TIME("expires_at", .nullable = true), TIME("at")};
TABLE(hold_placed, "HoldPlaced");
static const AnswerField captured_fields[] = {
    UUID("txn_id"), UUID("hold"), TEXT("owner"), TEXT("to"), TEXT("asset"), I64("amount"), STATE, TIME("at")};
TABLE(captured, "Captured");
static const AnswerField voided_fields[] = {
    UUID("txn_id"), UUID("hold"), TEXT("owner"), TEXT("asset"), I64("amount"), STATE, TIME("at")};
TABLE(voided, "Voided");
static const AnswerField refunded_fields[] = {
    UUID("txn_id"), UUID("refund_of"), TEXT("owner"), TEXT("asset"), I64("amount"), STATE, TIME("at")};
TABLE(refunded, "Refunded");

static const AnswerField leg_fields[] = {
    TEXT("owner"), TEXT("asset"), I64("amount"), I64("balance"), I64("held"), I64("version")};
static TABLE(leg, "Leg");
static const AnswerField multi_fields[] = {UUID("txn_id"), I64("amount"), ROWS("entries", leg), TIME("at")};
TABLE(multi, "Posted");

#define MAYBE(name) I64(name, .optional = true)
static const AnswerField verdict_fields[] = {
    BOOL("posted"), UUID("txn_id"), TEXT("from", .optional = true), TEXT("to", .optional = true),
    TEXT("asset", .optional = true), MAYBE("amount"), MAYBE("balance_before"), MAYBE("balance"), MAYBE("held"),
    MAYBE("available"), MAYBE("version"), TIME("at", .optional = true), TEXT("type", .optional = true, .help = "of the problem"),
    I64("status", .optional = true), TEXT("detail", .optional = true)};
static TABLE(verdict, "Verdict");
static const AnswerField verdicts_fields[] = {I64("posted"), I64("refused"), ROWS("items", verdict)};
TABLE(verdicts, "Verdicts");

/* ---- transactions, holds, proof ---- */

static const char *const hold_states[] = {"OPEN", "CAPTURED", "VOIDED", "EXPIRED", NULL};
static const AnswerField hold_part_fields[] = {
    I64("amount"), I64("captured"), TEXT("status", .words = hold_states), TIME("expires_at", .optional = true)};
static TABLE(hold_part, "HoldState");
static const char *const posting_states[] = {"posted", "refused", NULL};
static const AnswerField transaction_fields[] = {
    UUID("txn_id"), TEXT("kind"), TEXT("status", .words = posting_states), TEXT("owner", .optional = true),
    TEXT("other", .optional = true), TEXT("asset", .optional = true), I64("amount", .optional = true),
    UUID("ref", .optional = true), JSON("metadata", .optional = true), TEXT("refusal", .optional = true, .help = "its SQLSTATE"),
    TEXT("reason", .optional = true), I64("refunded", .optional = true),
    {"hold", ANSWER_OBJECT, .optional = true, .table = &answer_hold_part}, TIME("at"), ROWS("entries", leg)};
TABLE(transaction, "Transaction");
static const AnswerField hold_fields[] = {
    UUID("txn_id"), TEXT("owner"), TEXT("asset"), I64("amount"), I64("captured"), I64("remaining"),
    TEXT("status", .words = hold_states), JSON("metadata", .optional = true), I64("refunded", .optional = true),
    TIME("expires_at", .optional = true), TIME("at")};
TABLE(hold, "Hold");

static const AnswerField finding_fields[] = {TEXT("what"), TEXT("which"), TEXT("sentence")};
static TABLE(finding, "Finding");
static const AnswerField verify_fields[] = {
    BOOL("ok"), I64("rows"), I64("seals"), I64("unsealed"), I64("took_ms"), ROWS("findings", finding),
    BOOL("more", .help = "there are more findings than are shown")};
TABLE(verify, "Verification");
/* clang-format on */
