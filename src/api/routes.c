/*
 * routes.c - see routes.h.
 */
#include "api/routes.h"

#include "api/api.h"
#include "api/bound.h"
#include "api/example.h"
#include "api/schema.h"
#include "bus/bulk.h"
#include "bus/command.h"
#include "bus/gate.h"
#include "bus/policy.h"
#include "bus/reply_queue.h"
#include "bus/send_fields.h"
#include "bus/work_fields.h"
#include "process/activation_fields.h"
#include "process/process_fields.h"
#include "schedule/answers.h"
#include "schedule/schedule.h"
#include "wallet/operation.h"
#include "wallet/wallet.h"

static const char *const        balance_header[] = {"Pawl-Balance", NULL},
                         *const status_header[]  = {"Pawl-Status", "Pawl-Key-Days", "Pawl-Note", NULL},
                         *const note_header[] = {"Pawl-Note", NULL}, *const signal_header[] = {"Pawl-Status", NULL},
                         *const cursor_header[]   = {"Pawl-Next-Cursor", NULL};
static const RouteParameter     letter_captures[] = {
    {"id", "number of the dead letter", PARAMETER_I64, .min = 1},
    {NULL, NULL},
};

static const RouteParameter schedule_captures[] = {
    {"name", "name of the schedule"},
    {NULL, NULL},
};
static const RouteParameter key_captures[] = {
    {"name", "name of the API key"},
    {NULL, NULL},
};
static const RouteParameter bulk_captures[] = {
    {"id", "id of the operation", PARAMETER_UUID},
    {NULL, NULL},
};

/* A key reads what it may change. Decisions about processes need the scope process, too. An operator (operate, admin) reads commands and the state of the service, not the wallets of
 * customers; read reads everything. */
#define OPERATES        (SCOPE_OPERATE | SCOPE_ADMIN)
#define READS           (SCOPE_READ | OPERATES)
#define READS_COMMANDS  (READS | SCOPE_SEND | SCOPE_WORK)
#define READS_PROCESSES (SCOPE_READ | SCOPE_PROCESS | SCOPE_ADMIN)
#define READS_RATINGS   (SCOPE_READ | SCOPE_RATING | SCOPE_ADMIN)
#define READS_MONEY     (SCOPE_READ | SCOPE_POST | SCOPE_MINT | SCOPE_WALLETS)

/* What a request touches, for keys that are bound: see bound.h. */
#define OF_SERVICE     .touches = TOUCHES_SERVICE
#define OF_NOTHING     .touches = TOUCHES_NOTHING
#define OF_NAMED       .touches = TOUCHES_NAMED
#define OF_SENDING     .touches = TOUCHES_NAMED, .touch_waits = true /* a batch */
#define OF_DOMAINS     .touches = TOUCHES_DOMAINS
#define OF_OWNERS      .touches = TOUCHES_OWNERS
#define OF_COMMAND     .touches = TOUCHES_COMMAND, .touch_waits = true
#define OF_PROCESS     .touches = TOUCHES_PROCESS, .touch_waits = true
#define OF_BATCH       .touches = TOUCHES_BATCH, .touch_waits = true
#define OF_TRANSACTION .touches = TOUCHES_TRANSACTION, .touch_waits = true

#define UPDATE_BYTES_MAX (1 << 20) /* of the bot; the Bot API sends some kilobytes */
/* The largest valid requests, with each character of a text escaped, and spaces. That of /v1/domains/{domain}/progress is larger than the default
 * limit of the server. */
#define CLAIM_BYTES_MAX               (64 << 10)  /* 100 types of 100 bytes */
#define EXTEND_BYTES_MAX              (2 << 20)   /* 8000 leases */
#define ACTIVATION_EXTEND_BYTES_MAX   (256 << 10) /* 1000 leases */
#define ACTIVATION_PROGRESS_BYTES_MAX (4 << 20)   /* 1000 steps with 200 characters */

/* clang-format off */
static const Route rows[] = {
    {HTTP_GET, "/health/live", api_live, SCOPE_NONE, OF_NOTHING, .is_inline = true,
     .summary = "Liveness: 200 while the pod runs; does not use the database",
     .answer = &answer_health},
    {HTTP_GET, "/health/ready", api_ready, SCOPE_NONE, OF_NOTHING, .is_inline = true, .deadline_ms = 2000,
     .summary = "Readiness: 200 if requests can be served, 503 with the reason",
     .answer = &answer_health},
    {HTTP_GET, "/metrics", api_metrics, READS, OF_SERVICE, .is_inline = true, .summary = "Metrics in Prometheus' text format",
     .answer_type = "text/plain"},
    {HTTP_GET, "/openapi.json", api_openapi, SCOPE_ALL, OF_NOTHING, .is_inline = true, .summary = "This description",
     .answer = &answer_openapi, .conditional = true},
    {HTTP_GET, "/problems/{type}", api_problem, SCOPE_NONE, OF_NOTHING, .is_inline = true,
     .summary = "The meaning of a problem type and what to do about it", .answer_type = "text/plain"},
    {HTTP_POST, "/telegram/webhook", api_telegram_webhook, SCOPE_NONE, OF_SERVICE, .on_head = api_telegram_webhook_head,
     .body_any = true, .body_bytes_max = UPDATE_BYTES_MAX, .key_refused = true,
     .summary = "An update for the bot, from the Bot API server; authenticated by X-Telegram-Bot-Api-Secret-Token",
     .answer = &answer_update},
    {HTTP_GET, "/v1/alerts", api_alerts, READS, OF_SERVICE, .is_inline = true, .summary = "Every alert and its state",
     .answer = &answer_alerts},
    {HTTP_GET, "/v1/dead-letters", api_dead_letter_list, READS, OF_SERVICE, .parameters = api_dead_letter_parameters,
     .summary = "Dead letters, newest first",
     .answer = &answer_letters},
    {HTTP_GET, "/v1/dead-letters/{id}", api_dead_letter_show, READS, OF_SERVICE, .summary = "One dead letter", .captures = letter_captures,
     .answer = &answer_letter},
    {HTTP_POST, "/v1/dead-letters/{id}/retry", api_apart, OPERATES, OF_SERVICE, .is_inline = true, .inner = api_dead_letter_retry, .is_kept = true, .body = &api_empty_body,
     .summary = "Retry a dead letter now, with its tries reset",
     .captures = letter_captures, .answer = &answer_letter},
    {HTTP_GET, "/v1/keys", api_key_list, SCOPE_ADMIN, OF_SERVICE, .parameters = api_key_parameters, .summary = "API keys, newest first, revoked ones too",
     .answer = &answer_keys},
    {HTTP_POST, "/v1/keys", api_apart, SCOPE_ADMIN, OF_SERVICE, .is_inline = true, .inner = api_key_create, .body = &key_create_table, .key_refused = true,
     .summary = "Create an API key, which may be bound to domains and owners; its token is shown once",
     .status = 201, .answer = &answer_key_created},
    {HTTP_DELETE, "/v1/keys/{name}", api_apart, SCOPE_ADMIN, OF_SERVICE, .captures = key_captures, .is_inline = true, .inner = api_key_revoke, .summary = "Revoke an API key; it works for 5 s more at most", .status = 204},
    {HTTP_POST, "/v1/commands", api_command_send, SCOPE_SEND, OF_SENDING, .is_inline = true, .body = &send_table,
     .summary = "Send a command; sending twice with the same id sends one command",
     .status = 201, .answer = &answer_sent, .headers = status_header},
    {HTTP_GET, "/v1/commands", api_command_list, READS_COMMANDS, OF_DOMAINS, .touch_waits = true, .parameters = api_command_parameters,
     .summary = "Commands, newest first",
     .answer = &answer_commands},
    {HTTP_POST, "/v1/commands/batch", api_command_batch, SCOPE_SEND, OF_SENDING, .is_inline = true, .body = &batch_table, .body_required = true,
     .summary = "Send many commands as one batch",
     .status = 201, .answer = &answer_sent_batch, .headers = note_header},
    {HTTP_POST, "/v1/commands/bulk", api_apart, OPERATES, OF_SERVICE, .is_inline = true, .inner = api_command_bulk, .body = &bulk_command_table, .body_required = true,
     .summary = "Decide about all commands that match a filter, in the background; with dry_run only count them", .answer = &answer_bulk_begun},
    {HTTP_POST, "/v1/processes/bulk", api_apart, OPERATES, OF_SERVICE, .is_inline = true, .inner = api_process_bulk, .body = &bulk_process_table, .body_required = true,
     .summary = "Decide about all processes that match a filter, in the background; with dry_run only count them", .answer = &answer_bulk_begun},
    {HTTP_GET, "/v1/bulk/{id}", api_bulk_show, READS, OF_SERVICE, .captures = bulk_captures, .summary = "An operation over many commands or processes, and what came of it so far",
     .answer = &answer_bulk},
    {HTTP_GET, "/v1/commands/{id}", api_command_show, READS_COMMANDS, OF_COMMAND, .inline_with = "wait_s", .deadline_ms = 70000, .parameters = api_command_show_parameters,
     .summary = "One command with its attempts and audit; with wait_s, wait for its end",
     .answer = &answer_command},
    {HTTP_POST, "/v1/commands/{id}/cancel", api_apart, SCOPE_SEND | OPERATES, OF_COMMAND, .is_inline = true, .inner = api_command_cancel, .is_kept = true, .body = &decision_table, .parameters = api_command_domain_parameters,
     .summary = "Cancel a command: immediately while it is queued, at the next heartbeat while it runs",
     .answer = &answer_decision},
    {HTTP_GET, "/v1/batches", api_batch_list, READS_COMMANDS, OF_SERVICE, .parameters = api_batch_parameters,
     .summary = "Batches, newest first", .answer = &answer_batches},
    {HTTP_GET, "/v1/batches/{id}", api_batch_show, READS_COMMANDS, OF_BATCH, .summary = "A batch and its progress",
     .answer = &answer_batch},
    {HTTP_POST, "/v1/batches/{id}/seal", api_apart, SCOPE_SEND | OPERATES, OF_BATCH, .is_inline = true, .inner = api_batch_seal, .is_kept = true, .body = &api_empty_body, .summary = "Seal a batch: no more commands can be added",
     .answer = &answer_batch},
    {HTTP_GET, "/v1/stats", api_stats, READS, OF_NAMED, .parameters = api_stats_parameters,
     .summary = "A measure over time, by minutes for 14 days and by hours for a year", .answer = &answer_stats},
    {HTTP_GET, "/v1/domains", api_domain_list, READS_COMMANDS, OF_DOMAINS, .parameters = api_domain_parameters,
     .summary = "Domains, by name or by depth: how many commands each has where, and how long the oldest has been queued",
     .answer = &answer_domains},
    {HTTP_GET, "/v1/domains/{domain}", api_domain_show, READS_COMMANDS, OF_NAMED, .summary = "One domain, and its processes",
     .answer = &answer_domain},
    {HTTP_POST, "/v1/domains/{domain}/pause", api_apart, OPERATES, OF_NAMED, .is_inline = true, .inner = api_domain_pause, .is_kept = true, .body = &pause_table,
     .summary = "Pause a domain or types of its commands: what runs goes on, nothing else begins", .answer = &answer_pauses},
    {HTTP_POST, "/v1/domains/{domain}/resume", api_apart, OPERATES, OF_NAMED, .is_inline = true, .inner = api_domain_resume, .is_kept = true, .body = &pause_table,
     .summary = "End a pause; the answer has what is still paused", .answer = &answer_pauses},
    {HTTP_GET, "/v1/domains/{domain}/limits", api_limit_show, READS_COMMANDS, OF_NAMED, .summary = "The limits of a domain",
     .answer = &answer_limits},
    {HTTP_PUT, "/v1/domains/{domain}/limits", api_apart, OPERATES, OF_NAMED, .is_inline = true, .inner = api_limit_set, .body = &limit_table, .body_required = true,
     .summary = "Set a limit of a domain or of a type, in the place of the one that it had", .answer = &answer_limits},
    {HTTP_DELETE, "/v1/domains/{domain}/limits", api_apart, OPERATES, OF_NAMED, .is_inline = true, .inner = api_limit_remove, .parameters = api_limit_parameters,
     .summary = "Remove limits", .answer = &answer_limits},
    {HTTP_POST, "/v1/domains/{domain}/claim", api_claim, SCOPE_WORK, OF_NAMED, .is_inline = true, .deadline_ms = 70000, .body = &claim_table, .body_bytes_max = CLAIM_BYTES_MAX,
     .summary = "Lease commands to a worker; with wait_s, wait for commands",
     .key_refused = true, .answer = &answer_claimed},
    {HTTP_POST, "/v1/domains/{domain}/settle", api_settle, SCOPE_WORK, OF_NAMED, .is_inline = true, .body = &settle_table,
     .summary = "Settle leased commands; a verdict for each",
     .answer = &answer_settled},
    {HTTP_POST, "/v1/domains/{domain}/extend", api_extend, SCOPE_WORK, OF_NAMED, .is_inline = true, .body = &extend_table, .body_bytes_max = EXTEND_BYTES_MAX,
     .summary = "Extend leases",
     .answer = &answer_extended},
    {HTTP_POST, "/v1/domains/{domain}/progress", api_progress, SCOPE_WORK, OF_NAMED, .is_inline = true, .body = &progress_table,
     .summary = "Report the progress of leased commands, once a second at most; a verdict for each",
     .answer = &answer_progress_written},
    {HTTP_GET, "/v1/domains/{domain}/retry-policy", api_policy_show, READS_COMMANDS, OF_NAMED,
     .summary = "The delays before retries in a domain", .answer = &answer_policies},
    {HTTP_PUT, "/v1/domains/{domain}/retry-policy", api_apart, OPERATES, OF_NAMED, .is_inline = true, .inner = api_policy_set, .body = &policy_table, .body_required = true,
     .summary = "Set the delays before retries, for the domain or for one type", .answer = &answer_policies},
    {HTTP_DELETE, "/v1/domains/{domain}/retry-policy", api_apart, OPERATES, OF_NAMED, .is_inline = true, .inner = api_policy_reset, .parameters = api_policy_parameters,
     .summary = "Restore the default delays", .answer = &answer_policies},
    {HTTP_GET, "/v1/reply-queues", api_reply_queue_list, READS_COMMANDS, OF_SERVICE, .parameters = api_reply_queue_parameters,
     .summary = "Queues that pawl has created because a reply_to names them, by name",
     .answer = &answer_reply_queues},
    {HTTP_POST, "/v1/reply-queues/{queue}/read", api_apart, SCOPE_SEND, OF_NAMED, .is_inline = true, .inner = api_reply_read, .body = &reply_read_table, .captures = api_reply_captures,
     .summary = "Read replies, and hide them from other readers for a time",
     .key_refused = true, .answer = &answer_replies},
    {HTTP_POST, "/v1/reply-queues/{queue}/ack", api_apart, SCOPE_SEND, OF_NAMED, .is_inline = true, .inner = api_reply_ack, .is_kept = true, .body = &reply_ack_table, .captures = api_reply_captures,
     .summary = "Acknowledge replies: they are deleted; a verdict for each",
     .answer = &answer_acknowledged},
    {HTTP_GET, "/v1/tsq", api_tsq_list, READS_COMMANDS, OF_DOMAINS, .touch_waits = true, .parameters = api_tsq_parameters,
     .summary = "Commands in the troubleshooting queue",
     .answer = &answer_commands},
    {HTTP_POST, "/v1/tsq/{id}/retry", api_apart, OPERATES, OF_COMMAND, .is_inline = true, .inner = api_tsq_retry, .is_kept = true, .body = &decision_table, .parameters = api_command_domain_parameters,
     .summary = "Queue a command in troubleshooting again, with its attempts reset",
     .answer = &answer_decision},
    {HTTP_POST, "/v1/tsq/{id}/cancel", api_apart, OPERATES, OF_COMMAND, .is_inline = true, .inner = api_tsq_cancel, .is_kept = true, .body = &decision_table, .parameters = api_command_domain_parameters, .summary = "End a command in troubleshooting as CANCELED",
     .answer = &answer_decision},
    {HTTP_POST, "/v1/tsq/{id}/complete", api_apart, OPERATES, OF_COMMAND, .is_inline = true, .inner = api_tsq_complete, .is_kept = true, .body = &decision_table, .parameters = api_command_domain_parameters,
     .summary = "End a command in troubleshooting as COMPLETED, with a result if given",
     .answer = &answer_decision},
    {HTTP_POST, "/v1/schedules", api_apart, SCOPE_ADMIN, OF_SERVICE, .is_inline = true, .inner = api_schedule_create, .is_kept = true, .body = &schedule_table, .body_required = true,
     .summary = "Create a schedule, which sends a command or starts a process at given times; creating it twice creates one",
     .status = 201, .answer = &answer_schedule},
    {HTTP_GET, "/v1/schedules", api_schedule_list, READS, OF_SERVICE, .parameters = api_schedule_parameters,
     .summary = "Schedules, newest first", .answer = &answer_schedules},
    {HTTP_GET, "/v1/schedules/{name}", api_schedule_show, READS, OF_SERVICE, .captures = schedule_captures, .summary = "One schedule with its payload",
     .answer = &answer_schedule},
    {HTTP_PUT, "/v1/schedules/{name}", api_apart, SCOPE_ADMIN, OF_SERVICE, .captures = schedule_captures, .is_inline = true, .inner = api_schedule_replace, .body = &schedule_replace_table, .body_required = true,
     .summary = "Replace a schedule, or create it; one that is paused stays so", .answer = &answer_schedule},
    {HTTP_DELETE, "/v1/schedules/{name}", api_apart, OPERATES, OF_SERVICE, .captures = schedule_captures, .is_inline = true, .inner = api_schedule_delete,
     .summary = "Delete a schedule; what it has sent stays", .status = 204},
    {HTTP_GET, "/v1/schedules/{name}/next", api_schedule_next, READS, OF_SERVICE, .captures = schedule_captures, .parameters = api_schedule_next_parameters,
     .summary = "The next times of a schedule, also of one that is paused", .answer = &answer_schedule_times},
    {HTTP_POST, "/v1/schedules/{name}/run", api_apart, OPERATES, OF_SERVICE, .captures = schedule_captures, .is_inline = true, .inner = api_schedule_run, .is_kept = true, .body = &schedule_run_table,
     .summary = "Send the command of a schedule now; its times stay as they are", .answer = &answer_schedule_run},
    {HTTP_POST, "/v1/schedules/{name}/pause", api_apart, OPERATES, OF_SERVICE, .captures = schedule_captures, .is_inline = true, .inner = api_schedule_pause, .is_kept = true, .body = &schedule_decision_table,
     .summary = "Pause a schedule: it does not fire", .answer = &answer_schedule},
    {HTTP_POST, "/v1/schedules/{name}/resume", api_apart, OPERATES, OF_SERVICE, .captures = schedule_captures, .is_inline = true, .inner = api_schedule_resume, .is_kept = true, .body = &schedule_decision_table,
     .summary = "Resume a schedule; times that passed while it was paused are not made up for", .answer = &answer_schedule},
    {HTTP_PUT, "/v1/process-definitions", api_apart, SCOPE_ADMIN, OF_SERVICE, .is_inline = true, .inner = api_process_define, .body_any = true, .body_required = true,
     .summary = "Store a definition as the next version of its type; storing the newest one again changes nothing",
     .answer = &answer_process_defined},
    {HTTP_GET, "/v1/process-definitions", api_process_versions, READS_PROCESSES, OF_DOMAINS, .parameters = api_process_version_parameters,
     .summary = "Versions of definitions, newest first",
     .answer = &answer_process_versions},
    {HTTP_POST, "/v1/processes", api_process_start, SCOPE_PROCESS, OF_NAMED, .is_inline = true, .body = &process_start_table,
     .summary = "Start a process; starting twice with the same id starts one process",
     .status = 201, .answer = &answer_process_started, .headers = note_header},
    {HTTP_POST, "/v1/processes/batch", api_process_batch, SCOPE_PROCESS, OF_NAMED, .is_inline = true, .body = &process_batch_table, .body_required = true,
     .summary = "Start up to 1000 processes, with a verdict for each",
     .status = 201, .answer = &answer_process_started_batch, .headers = note_header},
    {HTTP_GET, "/v1/processes", api_process_list, READS_PROCESSES, OF_DOMAINS, .parameters = api_process_parameters,
     .summary = "Processes, newest first; a page may be shorter than its limit and still have a next one",
     .answer = &answer_processes},
    {HTTP_GET, "/v1/processes/{id}", api_process_show, READS_PROCESSES, OF_PROCESS, .inline_with = "wait_s", .deadline_ms = 70000, .parameters = api_process_show_parameters,
     .summary = "One process with its steps, responses and audit; with wait_s, wait for its end",
     .answer = &answer_process},
    {HTTP_POST, "/v1/processes/{id}/signals/{name}", api_apart, SCOPE_PROCESS, OF_PROCESS, .is_inline = true, .inner = api_process_signal, .body_any = true,
     .parameters = api_process_signal_parameters,
     .summary = "Send a response to a process, applied once per Idempotency-Key; Pawl-Status is RESUMED, STORED, STORED_UNEXPECTED (no wait takes this name), REPEATED or LATE",
     .status = 201, .answer = &answer_process_signaled, .headers = signal_header},
    {HTTP_POST, "/v1/processes/{id}/retry", api_apart, OPERATES, OF_PROCESS, .is_inline = true, .inner = api_process_retry, .is_kept = true, .body = &process_retry_table,
     .parameters = api_process_domain_parameters, .summary = "Queue a process in troubleshooting again",
     .answer = &answer_process_decision},
    {HTTP_POST, "/v1/processes/{id}/cancel", api_apart, SCOPE_PROCESS | SCOPE_ADMIN, OF_PROCESS, .is_inline = true, .inner = api_process_cancel, .is_kept = true, .body = &process_cancel_table,
     .parameters = api_process_domain_parameters, .summary = "Cancel a process, with compensation if requested",
     .answer = &answer_process_decision},
    {HTTP_POST, "/v1/processes/{id}/complete", api_apart, OPERATES, OF_PROCESS, .is_inline = true, .inner = api_process_complete, .is_kept = true, .body = &process_complete_table,
     .parameters = api_process_domain_parameters, .summary = "End a process in troubleshooting as COMPLETED",
     .answer = &answer_process_decision},
    {HTTP_POST, "/v1/processes/{id}/move", api_apart, OPERATES, OF_PROCESS, .is_inline = true, .inner = api_process_move, .is_kept = true, .body = &process_move_table, .body_required = true,
     .parameters = api_process_domain_parameters,
     .summary = "Move a process to a newer version of its definition, if its records mean the same there", .answer = &answer_process_moved},
    {HTTP_POST, "/v1/process-domains/{domain}/claim", api_activation_claim, SCOPE_PROCESS, OF_NAMED, .is_inline = true, .deadline_ms = 70000,
     .body = &activation_claim_table, .body_bytes_max = CLAIM_BYTES_MAX, .body_required = true,
     .summary = "Lease activations of processes without a definition to a worker, with their history; with wait_s, wait for them",
     .key_refused = true, .answer = &answer_activations},
    {HTTP_POST, "/v1/process-domains/{domain}/report", api_activation_report, SCOPE_PROCESS, OF_NAMED, .is_inline = true, .body = &activation_report_table,
     .body_required = true,
     .summary = "Report the progress of leased activations: records of steps, patches, commands, suspension, end; a verdict for each",
     .answer = &answer_reports},
    {HTTP_POST, "/v1/process-domains/{domain}/extend", api_activation_extend, SCOPE_PROCESS, OF_NAMED, .is_inline = true, .body = &activation_extend_table,
     .body_required = true, .body_bytes_max = ACTIVATION_EXTEND_BYTES_MAX, .summary = "Extend leases of activations", .answer = &answer_activations_extended},
    {HTTP_POST, "/v1/process-domains/{domain}/progress", api_activation_progress, SCOPE_PROCESS, OF_NAMED, .is_inline = true, .body = &activation_progress_table,
     .body_required = true, .body_bytes_max = ACTIVATION_PROGRESS_BYTES_MAX, .summary = "Report how far steps of leased activations are, once a second at most; a verdict for each",
     .answer = &answer_activations_progress},
    {HTTP_POST, "/v1/wallets", api_apart, SCOPE_WALLETS, OF_NAMED, .is_inline = true, .inner = api_wallet_open, .body = &wallet_open_table,
     .summary = "Open a wallet; opening twice opens one wallet", .example = EXAMPLE_WALLET,
     .status = 201, .answer = &answer_wallet, .headers = balance_header},
    {HTTP_GET, "/v1/wallets", api_wallet_list, READS_MONEY, OF_NAMED, .parameters = api_wallet_list_parameters,
     .summary = "Wallets, newest first; a page may be shorter than its limit and still have a next one", .answer = &answer_wallet_lines},
    {HTTP_GET, "/v1/wallets/{owner}", api_wallet_show, READS_MONEY, OF_NAMED, .parameters = api_wallet_parameters,
     .summary = "A wallet's state now, or at a past moment", .example = EXAMPLE_WALLET,
     .answer = &answer_wallet, .answer_or = &answer_wallet_past},
    {HTTP_GET, "/v1/owners/{owner}/wallets", api_owner_wallets, READS_MONEY, OF_NAMED,
     .summary = "All wallets of an owner, by asset", .example = "{\"items\":[" EXAMPLE_WALLET "]}",
     .answer = &answer_wallets},
    {HTTP_POST, "/v1/wallets/{owner}/topup", api_topup, SCOPE_MINT, OF_NAMED, .is_inline = true, .body = &wallet_operation_bodies[WALLET_TOPUP],
     .summary = "Credit a wallet from @system", .example = EXAMPLE_MOVED("\"owner\":\"ann\","),
     .status = 201, .answer = &answer_moved, .headers = balance_header},
    {HTTP_POST, "/v1/wallets/{owner}/spend", api_spend, SCOPE_POST, OF_NAMED, .is_inline = true, .body = &wallet_operation_bodies[WALLET_SPEND],
     .summary = "Debit a wallet to @system", .example = EXAMPLE_MOVED("\"owner\":\"ann\","),
     .status = 201, .answer = &answer_moved, .headers = balance_header},
    {HTTP_POST, "/v1/wallets/{owner}/freeze", api_freeze, SCOPE_WALLETS, OF_NAMED, .is_inline = true, .body = &wallet_operation_bodies[WALLET_FREEZE],
     .summary = "Block all movements of a wallet; holds can still be voided and still expire", .example = EXAMPLE_SET("\"frozen\":true"),
     .status = 201, .answer = &answer_frozen, .headers = balance_header},
    {HTTP_POST, "/v1/wallets/{owner}/unfreeze", api_unfreeze, SCOPE_WALLETS, OF_NAMED, .is_inline = true, .body = &wallet_operation_bodies[WALLET_UNFREEZE],
     .summary = "Allow movements of a wallet again", .example = EXAMPLE_SET("\"frozen\":false"),
     .status = 201, .answer = &answer_frozen, .headers = balance_header},
    {HTTP_POST, "/v1/wallets/{owner}/floor", api_floor, SCOPE_MINT, OF_NAMED, .is_inline = true, .body = &wallet_operation_bodies[WALLET_FLOOR],
     .summary = "Set how far below zero the balance of a wallet may go", .example = EXAMPLE_SET("\"floor\":-100"),
     .status = 201, .answer = &answer_floor, .headers = balance_header},
    {HTTP_GET, "/v1/wallets/{owner}/entries", api_entry_list, READS_MONEY, OF_NAMED,
     .parameters = api_entry_parameters, .summary = "Entries of a wallet, newest first",
     .example = EXAMPLE_ENTRIES,
     .answer = &answer_entries, .headers = cursor_header},
    {HTTP_GET, "/v1/wallets/{owner}/statement", api_statement, READS_MONEY, OF_NAMED,
     .parameters = api_statement_parameters,
     .summary = "Entries as a document, oldest first; if there are more, the header Pawl-Next-Cursor has the cursor",
     .example = EXAMPLE_ENTRIES,
     .answer = &answer_entries, .answer_type = "text/csv", .headers = cursor_header},
    {HTTP_POST, "/v1/transfers", api_transfer, SCOPE_POST, OF_NAMED, .is_inline = true, .body = &wallet_operation_bodies[WALLET_TRANSFER],
     .summary = "Transfer from one wallet to another", .example = EXAMPLE_MOVED("\"from\":\"ann\",\"to\":\"bob\","),
     .status = 201, .answer = &answer_transfer, .headers = balance_header},
    {HTTP_POST, "/v1/transfers/batch", api_transfer_batch, SCOPE_POST, OF_NAMED, .is_inline = true, .body = &wallet_batch_table,
     .summary = "Many transfers in one transaction, a verdict for each", .example = EXAMPLE_VERDICTS,
     .answer = &answer_verdicts},
    {HTTP_POST, "/v1/transactions", api_transaction_post, SCOPE_POST, OF_NAMED, .is_inline = true, .body = &wallet_operation_bodies[WALLET_MULTI],
     .summary = "Post a transaction over many wallets: legs that sum to zero in each asset",
     .example = EXAMPLE_MULTI,
     .status = 201, .answer = &answer_multi, .headers = balance_header},
    {HTTP_GET, "/v1/transactions", api_transaction_list, READS_MONEY, OF_SERVICE, .parameters = api_transaction_list_parameters,
     .summary = "Operations that were decided, newest first", .answer = &answer_transaction_lines},
    {HTTP_GET, "/v1/transactions/{txn_id}", api_transaction_show, READS_MONEY, OF_TRANSACTION,
     .summary = "The request with this key, its verdict and its entries",
     .example = EXAMPLE_TRANSACTION,
     .answer = &answer_transaction},
    {HTTP_POST, "/v1/transactions/{txn_id}/refund", api_refund, SCOPE_POST, OF_TRANSACTION, .is_inline = true, .body = &wallet_operation_bodies[WALLET_REFUND],
     .summary = "Refund a transaction, whole or in part, never more than was taken", .example = EXAMPLE_MOVED("\"refund_of\":" EXAMPLE_REF "," "\"owner\":\"ann\","),
     .status = 201, .answer = &answer_refunded, .headers = balance_header},
    {HTTP_POST, "/v1/holds", api_hold_place, SCOPE_POST, OF_NAMED, .is_inline = true, .body = &wallet_operation_bodies[WALLET_HOLD],
     .summary = "Reserve money", .example = EXAMPLE_HOLD,
     .status = 201, .answer = &answer_hold_placed, .headers = balance_header},
    {HTTP_GET, "/v1/holds", api_hold_list, READS_MONEY, OF_NAMED, .parameters = api_hold_list_parameters,
     .summary = "Holds, newest first", .answer = &answer_hold_lines},
    {HTTP_GET, "/v1/holds/{txn_id}", api_hold_show, READS_MONEY, OF_TRANSACTION, .summary = "A hold and the amount that is left",
     .example = EXAMPLE_HOLD_NOW,
     .answer = &answer_hold},
    {HTTP_POST, "/v1/holds/{txn_id}/capture", api_hold_capture, SCOPE_POST, OF_TRANSACTION, .is_inline = true, .body = &wallet_operation_bodies[WALLET_CAPTURE],
     .summary = "Capture a hold, whole or in parts", .example = EXAMPLE_MOVED("\"hold\":" EXAMPLE_REF "," "\"owner\":\"ann\"," "\"to\":\"bob\","),
     .status = 201, .answer = &answer_captured, .headers = balance_header},
    {HTTP_POST, "/v1/holds/{txn_id}/void", api_hold_void, SCOPE_POST, OF_TRANSACTION, .is_inline = true, .body = &wallet_operation_bodies[WALLET_VOID],
     .summary = "Release the rest of a hold", .example = EXAMPLE_MOVED("\"hold\":" EXAMPLE_REF "," "\"owner\":\"ann\","),
     .status = 201, .answer = &answer_voided, .headers = balance_header},
    {HTTP_GET, "/v1/groups/{chat}/leaderboard", api_rating_board, READS_RATINGS, OF_SERVICE, .parameters = api_rating_board_parameters,
     .captures = api_rating_captures, .summary = "The leaderboard of a group. The scope rating reads published groups only",
     .answer = &answer_leaderboard},
    {HTTP_GET, "/v1/groups/{chat}/players/{user}/history", api_rating_history, READS_RATINGS, OF_SERVICE, .parameters = api_rating_page_parameters,
     .captures = api_rating_captures, .summary = "Matches of a player, newest first, with the rating after each",
     .answer = &answer_player_history},
    {HTTP_GET, "/v1/groups/{chat}/matches", api_rating_matches, READS_RATINGS, OF_SERVICE, .parameters = api_rating_page_parameters,
     .captures = api_rating_captures, .summary = "Matches of a group, newest first, including those that were undone",
     .answer = &answer_matches},
    {HTTP_GET, "/v1/ledger/verify", api_verify, READS_MONEY | SCOPE_ADMIN, OF_SERVICE, .is_inline = true, .deadline_ms = 600000,
     .parameters = api_verify_parameters, .summary = "Verify the ledger and name every inconsistent row",
     .example = "{\"ok\":true,\"rows\":0,\"seals\":0,\"unsealed\":0,\"took_ms\":0,\"findings\":[],\"more\":false}",
     .answer = &answer_verify},
    {HTTP_DELETE, "/v1/dead-letters/{id}", api_apart, OPERATES, OF_SERVICE, .is_inline = true, .inner = api_dead_letter_delete, .summary = "Delete a dead letter",
     .captures = letter_captures, .status = 204},
};
/* clang-format on */

const RouteTable routes_table = {rows, COUNT(rows), scope_names};
