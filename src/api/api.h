/*
 * api.h - the HTTP API: its handlers, one file per noun, and what they share.
 *
 * A handler turns a request into a call of a module, and the rows into JSON. Its context is the Api, which belongs to the
 * daemon: complete before the server accepts its first request, and alive until the server is freed.
 * Threads: handlers run on the server's threads; every member is safe there.
 */
#ifndef API_API_H
#define API_API_H

#include <stdatomic.h>

#include "api/claims.h"
#include "api/hints.h"
#include "api/key.h"
#include "api/ready.h"
#include "bus/command.h"
#include "bus/leases.h"
#include "bus/outcome_wait.h"
#include "bus/send.h"
#include "bus/waker.h"
#include "bus/work_fields.h"
#include "http/asset.h"
#include "http/route.h"
#include "ops/alert.h"
#include "pg/combiner.h"
#include "pg/lock_calls.h"
#include "pg/pool.h"
#include "telegram/intake.h"
#include "wallet/ledger.h"

/* How long one try of a request waits for a row that another transaction has locked. It holds a connection meanwhile, and is tried again until
 * its deadline. */
#define API_LOCK_MS 20

typedef struct Api {
    Pool          *pool; /* the daemon's */
    KeyCache      *keys;
    Alerts        *alerts;
    Sender        *sender;
    Hints         *hints;
    Ledger        *ledger;
    Leases        *leases;
    LockCalls     *decisions, *batches; /* of apart.c; of batches of commands and processes */
    LockCalls     *reports, *answers;   /* of processes in code; under an Idempotency-Key */
    Combiner      *verifies;            /* of verify.c */
    Waker         *waker;
    Wake           wake; /* waker's */
    Claims        *claims;
    OutcomeWaits  *outcomes;
    LockCalls     *reads; /* of requests that have waited for an outcome: by their handlers, */
    Combiner      *shows; /* and of commands, together */
    Ready         *ready;
    Asset          openapi;
    TelegramIntake telegram;        /* of the bot's webhook */
    const char    *telegram_secret; /* of its updates; NULL: there is no webhook */
    int64_t        key_days;        /* for how many days after its end a command's id is known, at least */
    atomic_bool    stopping;
} Api;

RouteHandler api_live, api_ready, api_metrics, api_alerts, api_openapi, api_problem;
RouteHandler api_telegram_webhook;
RouteCheck   api_telegram_webhook_head; /* the secret, before the body */
RouteHandler api_reply_queue_list, api_reply_read, api_reply_ack;
RouteHandler api_dead_letter_list, api_dead_letter_show, api_dead_letter_retry, api_dead_letter_delete;

RouteHandler api_command_send, api_command_batch, api_command_show, api_command_list, api_command_cancel;
RouteHandler api_domain_list, api_domain_show, api_stats;
RouteHandler api_domain_pause, api_domain_resume, api_limit_show, api_limit_set, api_limit_remove;
RouteHandler api_command_bulk, api_process_bulk, api_bulk_show;
RouteHandler api_policy_show, api_policy_set, api_policy_reset;
RouteHandler api_schedule_list, api_schedule_show, api_schedule_next, api_schedule_create, api_schedule_replace,
    api_schedule_delete;
RouteHandler api_schedule_pause, api_schedule_resume, api_schedule_run;
RouteHandler api_batch_list, api_batch_show, api_batch_seal, api_claim, api_settle, api_extend, api_progress;
RouteHandler api_tsq_list, api_tsq_retry, api_tsq_cancel, api_tsq_complete;

RouteHandler api_key_list, api_key_create, api_key_revoke;

/* Runs the inner handler of its route apart from the executors: see apart.c. */
RouteHandler api_apart;

RouteHandler api_rating_board, api_rating_history, api_rating_matches;
RouteHandler api_process_define, api_process_versions, api_process_start, api_process_batch, api_process_show,
    api_process_list, api_process_signal;
RouteHandler api_process_retry, api_process_cancel, api_process_complete;
RouteHandler api_process_move;
RouteHandler api_activation_claim, api_activation_report, api_activation_extend, api_activation_progress;

RouteHandler api_wallet_list, api_hold_list, api_transaction_list;
RouteHandler api_wallet_open, api_wallet_show, api_owner_wallets, api_entry_list, api_statement;
RouteHandler api_topup, api_spend, api_transfer, api_transfer_batch, api_transaction_post, api_refund;
RouteHandler api_hold_place, api_hold_capture, api_hold_void, api_freeze, api_unfreeze, api_floor;
RouteHandler api_transaction_show, api_hold_show, api_verify;

extern const FieldTable     api_empty_body, key_create_table;
extern const RouteParameter api_reply_queue_parameters[], api_reply_captures[];
extern const RouteParameter api_key_parameters[], api_dead_letter_parameters[], api_command_parameters[],
    api_tsq_parameters[], api_command_domain_parameters[], api_command_show_parameters[], api_policy_parameters[], api_limit_parameters[],
    api_domain_parameters[], api_stats_parameters[];
extern const RouteParameter api_schedule_parameters[], api_schedule_next_parameters[];
extern const RouteParameter api_rating_board_parameters[], api_rating_page_parameters[], api_rating_captures[];
extern const RouteParameter api_process_parameters[], api_process_domain_parameters[], api_process_show_parameters[],
    api_process_signal_parameters[], api_process_version_parameters[];
extern const RouteParameter api_wallet_parameters[], api_entry_parameters[], api_statement_parameters[],
    api_verify_parameters[], api_wallet_list_parameters[], api_hold_list_parameters[],
    api_transaction_list_parameters[], api_batch_parameters[];

/* ---- body.c, parameter.c: what a request gives ---- */

/* The body as an object, into a struct as the table describes it. ERR_INVALID names the field. */
must_check ErrorCode api_body_read(Request *request, const FieldTable *table, void *ret_struct, Error *reterr);
/* The same, but no body is {}: for routes without a field that is required in every case. */
must_check ErrorCode api_body_read_if_any(Request *request, const FieldTable *table, void *ret_struct, Error *reterr);
/* A route without fields: no body, or {}. */
must_check ErrorCode api_nothing_take(Request *request, Error *reterr);
/* The {id} of the path, a UUID. ret_id has UUID_TEXT_SIZE bytes. */
must_check ErrorCode api_id_take(Request *request, char *ret_id, Error *reterr);
/* The {txn_id} of the path. */
must_check ErrorCode api_ref_take(Request *request, const char **ret_id, Error *reterr);
/* A moment of the query, RFC 3339. NULL: absent. */
must_check ErrorCode api_moment_take(Request *request, const char *name, const char **ret_moment, Error *reterr);

/* ---- key_header.c: Idempotency-Key ---- */

/* The key of a request, into *id if the header has it: a UUID as it is, any other text by its hash with the API key's name.
 * ERR_INVALID: more than 200 bytes or none, or not the key that the field has. */
must_check ErrorCode api_key_take(Request *request, const char *field, const char **id, Error *reterr);
/* The same with the text of a body's field "key"; NULL: it has none. field: the id's. ERR_INVALID: they differ. */
must_check ErrorCode api_key_field_take(Request *request, const char *text, const char *field, const char **id,
                                        Error *reterr);
/* The text of the header, without its quotes; NULL: there is none. ERR_INVALID: more than 200 bytes or none. */
must_check ErrorCode api_key_text(Request *request, const char **ret_text, Error *reterr);
/* Is there such a header? */
bool api_key_is_given(Request *request);
/* The key under which this API key's response is stored, whatever the header's text is; NULL: there is no header. */
must_check ErrorCode api_key_own(Request *request, const char **ret_key, Error *reterr);
/* ERR_INVALID: there is a header. why: a clause. */
must_check ErrorCode api_key_refuse(Request *request, const char *why, Error *reterr);
/* The id of an item without one, in a request with a key: the same request again names the same items. */
const char *api_key_derive(Arena *arena, const char *key, int number);
/* The response is that of an earlier request: the header Idempotency-Replayed. */
void api_replayed_set(Response *response);

/* ---- caller.c: the client of a request ---- */

/* For the audit: "shop (ann)", the name of the key first, then what the client says about itself. The admin token belongs to no key, so
 * with it the name is what the client says. said NULL or empty: the principal. */
const char *api_actor(Request *request, const char *said);
/* ERR_DENIED without the scope mint: for bodies that create money or set a floor. */
must_check ErrorCode api_mint_check(const Request *request, Error *reterr);

/* ---- submit.c, decision.c, work.c: what commands and processes share ---- */

/* Submit a command to the sender, and suspend its request until it is sent; then on_resume. */
void api_item_submit(Api *api, Request *request, const SendItem *item, RouteHandler *on_resume);
/* For on_resume: 201 for a command that was sent now or before, with the hint about its name, after its workers were notified; else its error. */
must_check ErrorCode api_item_sent(Request *request, Response *response, const SendItem **ret_item, Error *reterr);
/* The header with the hint; NULL or "": none. */
void api_hint_set(Response *response, const char *hint);
/* The response to an operator's decision that was committed, after workers were notified. noun: "command" or "process". ERR_CONFLICT,
 * ERR_NOT_FOUND: it was refused. */
must_check ErrorCode api_decision_answer(Api *api, const char *noun, const char *id, const Decision *decision,
                                         Response *response, Error *reterr);
/* A claim as the body asks for it; the caller adds the callbacks. In the request's arena. */
ClaimWait *api_claim_wait(Request *request, const char *domain, const ClaimRequest *given, double lease_s_default);
/* Suspend a request that extends leases of commands of the domain, up to now and lease_s. */
must_check ErrorCode api_extend_submit(Api *api, Request *request, Response *response, const char *domain,
                                       const ExtendRequest *given, double lease_s, const VerdictShape *shape,
                                       Error *reterr);
/* Suspend a request that reports progress of commands of the domain. */
must_check ErrorCode api_progress_submit(Api *api, Request *request, Response *response, const char *domain,
                                         const ProgressRequest *given, const VerdictShape *shape, Error *reterr);

/* ---- wait.c: requests that wait for the end of a command or process ---- */

#define API_WAIT_PARAMETER                                                                          \
    {                                                                                               \
        "wait_s", "answer when it has ended, or as it is after so many seconds", PARAMETER_SECONDS, \
            .max = OUTCOME_WAIT_S_MAX                                                               \
    }
/* Is the request to wait, and has not waited yet? */
bool api_waits(const Request *request);
/* Suspend it until the end, or for as long as it says; then its handler is run again, and api_waits() is false. wait: which command, and whose
 * request may wait; it is copied with its command_id. */
must_check ErrorCode api_wait(Api *api, Request *request, Response *response, const OutcomeWait *wait, Error *reterr);
/* Api.shows */
Combiner *api_shows_new(Api *api, int slots);
/* For OutcomeWait.may_wait. */
const Request *api_waiting_request(const OutcomeWait *wait);

/* ---- answer.c: an operation that no thread waits for, and the header Idempotency-Key ---- */

/* Run the handler, or send the response that is stored under the request's key. */
must_check ErrorCode api_answer_once(Api *api, Request *request, RouteHandler *handler, Response *response,
                                     Error *reterr);

typedef struct Once      Once;
typedef struct OnceState OnceState;
struct Once {
    /* Submits the operation, whose end calls api_once_done(once). It must not wait. */
    void (*begin)(Once *once);
    /* After its end, on the thread that ended it: its response, or its error. */
    ErrorCode (*write)(Once *once, Response *response, Error *reterr);
    OnceState *state; /* set by api_once_submit() */
};
/* The end of a handler: suspend the request, and begin the operation unless a response is stored under the request's key. `once` is in the
 * request's arena. */
must_check ErrorCode api_once_submit(Api *api, Request *request, Response *response, Once *once, Error *reterr);
void                 api_once_done(void *once);

/* ---- verify.c ---- */

/* Api.verifies: requests for verifications of the ledger. */
Combiner *api_verifies_new(Api *api);

#endif
