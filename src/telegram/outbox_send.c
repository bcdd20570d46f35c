/*
 * outbox_send.c - one message of the outbox: its turn, and what the answer to its call means for it.
 *
 *     answer                      the message                                     attempts
 *     ok                          done, with its message_id                       -
 *     429                         later, when the server says; its chat waits     not used up
 *     not reached                 later                                           not used up
 *     no answer, 5xx              again after 1, 2, 4 ... 60 s: it may come twice used up, TELEGRAM_ATTEMPTS
 *     400 with a new chat id      now, to that chat                               -
 *     400 no such topic           now, outside of it                              -
 *     400 no message to replace,  now, as a new message                           -
 *       or to edit, if it is first
 *     401, 404 without a method   later: the token is wrong, not the message      not used up
 *     any other 4xx               given up: it would be refused again             -
 *
 * Answers to button presses have one attempt, and are dropped a minute after the press was handled.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/value.h"
#include "bus/lease.h"
#include "pg/tx.h"
#include "sql.h"
#include "telegram/metric.h"
#include "telegram/outbox_internal.h"

#define CALL_MS     30000
#define QUERY_MS    10000
#define WAIT_MS_MAX 400 /* for a reserved time */
#define AWAY_MS     5000
#define TOKEN_MS    60000
#define BACKOFF_MS  60000
#define ANSWER_MS   60000 /* then an answer to a button press is dropped, as pawl.telegram_pace_answer says */
#define CALLS_MAX   3     /* after a move, and outside of a topic */

/* ---- one message ---- */

typedef struct {
    TelegramOutbox  *outbox;
    Job             *job;
    SettleItem      *settle;
    TelegramOutgoing item;
    TelegramAnswer   answer;
    int              refusals;     /* answers 429 of the chat before this call */
    bool             is_replacing; /* an edit, which becomes a new message if there is nothing to edit */
} Sending;

/* The database could not be asked: the command is released, and the worker pauses. */
static void sending_release(Sending *sending, const Error *error)
{
    sending->job->not_begun = arena_text(sending->job->arena, error->text);
}

/* One row of the database. false: it could not be asked. */
static bool sending_ask(Sending *sending, const char *name, const char *sql, DbArgs args, const DbShape *shape,
                        void *ret_row)
{
    TxOptions options = {.name     = name,
                         .deadline = deadline_in_ms(QUERY_MS),
                         .arena    = sending->job->arena,
                         .keyed    = true};
    Error     error   = {0};

    if (db_call(sending->outbox->options.pool, &options, sql, args, shape, ret_row, &error) == OK)
        return true;
    sending_release(sending, &error);
    return false;
}

static void sending_postpone(Sending *sending, int64_t delay_ms, const char *reason)
{
    const TelegramOutbox *outbox = sending->outbox;
    SettleItem           *settle = sending->settle;
    Error                 error  = {0};

    if (lease_postpone(outbox->options.pool, deadline_in_ms(QUERY_MS), sending->job->arena, sending->job->command,
                       delay_ms, reason, &settle->settled, &error) != OK) {
        sending_release(sending, &error);
        return;
    }
    settle->postponed = true;
    settle->status    = "PENDING";
}

static void sending_give_up(Sending *sending, const char *error)
{
    metric_add(&telegram_metrics.sent_refused, 1);
    log_write(LOG_WARN, "telegram", "a message was given up", LOG_INT("chat", sending->item.chat_id),
              LOG_STR("error", error));
    sending->settle->outcome = OUTCOME_REJECT;
    sending->settle->error   = error;
}

#define TURN_COLUMNS(X, T)              \
    X(T, I64, chat_id, wait_ms)         \
    X(T, BOOL, is_reserved, is_expired) \
    X(T, I32, refusals)
DB_ROW(Turn, TURN_COLUMNS);
DB_SHAPE(turn, Turn, TURN_COLUMNS);

/* An answer to a button press has no place in a chat, but waits for the bot's own rate and after a 429. */
static bool turn_ask(Sending *sending, Turn *ret_turn)
{
    const TelegramOutboxOptions *options = &sending->outbox->options;
    int64_t                      bot     = sending->outbox->bot_id;

    if (sending->item.method == TELEGRAM_ANSWER)
        return sending_ask(sending, "pace", sql_telegram_pace_answer,
                           DB_ARGS(db_i64(bot), db_i64(sending->job->command->id), db_i32(options->all_max),
                                   db_i32(WAIT_MS_MAX)),
                           &turn_shape, ret_turn);
    return sending_ask(sending, "pace", sql_telegram_pace,
                       DB_ARGS(db_i64(bot), db_i64(sending->item.chat_id), db_bool(sending->item.is_first),
                               db_i32(options->chat_ms), db_i32(options->group_max), db_i32(options->all_max),
                               db_i32(WAIT_MS_MAX)),
                       &turn_shape, ret_turn);
}

static void answer_drop(Sending *sending)
{
    metric_add(&telegram_metrics.sent_dropped, 1);
    log_write(LOG_DEBUG, "telegram", "an answer to a button press was dropped: it would come too late");
    sending->settle->outcome = OUTCOME_REJECT;
    sending->settle->error   = "the answer would come more than a minute after the press";
}

/* Numbers of messages begin anew in the chat that a group becomes: there is nothing to edit and nothing to reply to. */
static void chat_follow(Sending *sending, int64_t chat_id)
{
    TelegramOutgoing *item = &sending->item;

    if (chat_id == item->chat_id)
        return;
    item->chat_id         = chat_id;
    item->reply_to        = 0;
    item->message_id      = 0;
    sending->is_replacing = false;
    if (item->method == TELEGRAM_EDIT)
        item->method = TELEGRAM_SEND;
}

/* Wait for its time. false: it has been postponed, released or dropped. */
static bool turn_take(Sending *sending)
{
    Turn turn;

    if (!turn_ask(sending, &turn))
        return false;
    if (turn.is_expired) {
        answer_drop(sending);
        return false;
    }
    chat_follow(sending, turn.chat_id);
    sending->refusals = turn.refusals;
    if (!turn.is_reserved) {
        sending_postpone(sending, turn.wait_ms, "paced");
        return false;
    }
    if (turn.wait_ms > 0)
        clock_sleep_ms((int)turn.wait_ms);
    return true;
}

/* The bot's own messages have their files in a table of its own. false: it has been released. */
static bool file_find(Sending *sending, const char **ret_file)
{
    const char *type = sending->job->command->type;

    *ret_file = NULL;
    if (strcmp(type, telegram_method_types[TELEGRAM_PHOTO]) != 0 &&
        strcmp(type, telegram_method_types[TELEGRAM_DOCUMENT]) != 0)
        return true;
    return sending_ask(sending, "file", sql_telegram_file,
                       DB_ARGS(db_i64(sending->outbox->bot_id), db_uuid(sending->job->command->command_id)),
                       &db_text_shape, ret_file);
}

/* Find the message whose place this one takes. false: it has been released, or is done. */
static bool replaced_find(Sending *sending)
{
    TelegramOutgoing *item = &sending->item;
    int64_t           id;

    if (!item->replaces || item->message_id)
        return true;
    if (!sending_ask(sending, "replaced", sql_telegram_message,
                     DB_ARGS(db_i64(sending->outbox->bot_id), db_uuid(item->replaces)), &db_i64_shape, &id))
        return false;
    if (!id && item->method == TELEGRAM_EDIT) {
        sending->settle->outcome = OUTCOME_COMPLETE;
        return false;
    }
    if (id) {
        sending->is_replacing = item->method == TELEGRAM_SEND;
        item->method          = TELEGRAM_EDIT;
        item->message_id      = id;
    }
    return true;
}

/* An edit need not be sent if a later one of the same message waits. true: this one has been released, or is done. */
static bool edit_is_over(Sending *sending)
{
    int64_t is_over;

    if (sending->item.method != TELEGRAM_EDIT || sending->item.replaces)
        return false;
    if (!sending_ask(sending, "superseded", sql_telegram_superseded,
                     DB_ARGS(db_i64(sending->outbox->bot_id), db_i64(sending->job->command->id),
                             db_i64(sending->item.message_id)),
                     &db_i64_shape, &is_over))
        return true;
    if (is_over)
        sending->settle->outcome = OUTCOME_COMPLETE;
    /* What an edit confirms must be said, if not there then in a message of its own. */
    sending->is_replacing = sending->item.is_first;
    return is_over != 0;
}

/* ---- what an answer means ---- */

static void on_sent(Sending *sending)
{
    Arena  *arena = sending->job->arena;
    int64_t id =
        value_i64(value_field(value_trim(sending->answer.result, strlen(sending->answer.result)), "message_id"));
    TxOptions options = {.name = "delivered", .deadline = deadline_in_ms(QUERY_MS), .arena = arena, .keyed = true};
    Error     error   = {0};
    char     *none;

    metric_add(&telegram_metrics.sent, 1);
    sending->settle->outcome = OUTCOME_COMPLETE;
    sending->settle->result  = id ? arena_print(arena, "{\"message_id\": %" PRId64 "}", id) : NULL;
    if (!sending->item.reference && !sending->refusals)
        return;
    if (db_call(sending->outbox->options.pool, &options, sql_telegram_delivered,
                DB_ARGS(db_i64(sending->outbox->bot_id), db_i64(sending->item.chat_id), db_i64(id),
                        db_text(sending->item.reference)),
                &db_text_shape, &none, &error) != OK)
        log_error(LOG_WARN, "telegram", "cannot store what a message is about", &error);
}

static void on_limited(Sending *sending)
{
    int64_t wait_ms;

    metric_add(&telegram_metrics.sent_limited, 1);
    if (!sending_ask(sending, "limited", sql_telegram_limited,
                     DB_ARGS(db_i64(sending->outbox->bot_id), db_i64(sending->item.chat_id),
                             db_i64(sending->answer.retry_ms)),
                     &db_i64_shape, &wait_ms))
        return;
    if (sending->item.method == TELEGRAM_ANSWER) {
        log_write(LOG_WARN, "telegram", "the server asks for fewer answers to button presses",
                  LOG_INT("wait_ms", wait_ms));
        sending_postpone(sending, wait_ms < ANSWER_MS ? wait_ms : ANSWER_MS, "429");
        return;
    }
    log_write(LOG_WARN, "telegram", "the server asks for fewer messages to a chat",
              LOG_INT("chat", sending->item.chat_id), LOG_INT("wait_ms", wait_ms));
    sending_postpone(sending, wait_ms, "429");
}

/* The group has become a supergroup. */
static bool on_moved(Sending *sending)
{
    int64_t to = sending->answer.migrate_to;
    char   *none;

    if (!sending_ask(sending, "moved", sql_telegram_moved,
                     DB_ARGS(db_i64(sending->outbox->bot_id), db_i64(sending->item.chat_id), db_i64(to)),
                     &db_text_shape, &none))
        return false;
    log_write(LOG_INFO, "telegram", "a group has become a supergroup", LOG_INT("from", sending->item.chat_id),
              LOG_INT("to", to));
    chat_follow(sending, to);
    return true;
}

static void on_doubt(Sending *sending, const Error *error)
{
    const ClaimedCommand *command = sending->job->command;

    if (command->attempt >= command->max_attempts) {
        sending_give_up(sending, arena_print(sending->job->arena, "given up after %d attempts: %s", command->attempt,
                                             error->text));
        return;
    }
    log_error(LOG_WARN, "telegram", "cannot send a message, will retry", error);
    metric_add(&telegram_metrics.sent_retried, 1);
    sending->settle->outcome  = OUTCOME_RETRY;
    sending->settle->error    = arena_text(sending->job->arena, error->text);
    sending->settle->delay_ms = clock_backoff_ms(command->attempt - 1, BACKOFF_MS);
}

static void token_wrong(Sending *sending, const Error *error)
{
    log_error(LOG_ERROR, "telegram", "the server does not know the token, messages wait", error);
    sending_postpone(sending, TOKEN_MS, "the server does not know the token");
}

/* true: call again, with what was changed. */
static bool on_refused(Sending *sending, const Error *error)
{
    const TelegramAnswer *answer = &sending->answer;

    if (answer->migrate_to && answer->migrate_to != sending->item.chat_id)
        return on_moved(sending);
    if (sending->item.thread_id && strstr(answer->description, "thread not found")) {
        log_write(LOG_INFO, "telegram", "a topic is gone: the message is sent outside of it",
                  LOG_INT("chat", sending->item.chat_id), LOG_INT("topic", sending->item.thread_id));
        sending->item.thread_id = 0;
        return true;
    }
    if (sending->is_replacing && answer->status == 400 && !strstr(answer->description, "message is not modified")) {
        sending->item.method     = TELEGRAM_SEND;
        sending->item.message_id = 0;
        sending->is_replacing    = false;
        return true;
    }
    if (strstr(answer->description, "message is not modified"))
        on_sent(sending);
    else if (answer->status == 401 || (answer->status == 404 && !strstr(answer->description, "method")))
        token_wrong(sending, error);
    else
        sending_give_up(sending, arena_text(sending->job->arena, error->text));
    return false;
}

/* true: call again. */
static bool sending_judge(Sending *sending, ErrorCode code, const Error *error)
{
    switch ((int)code) {
    case OK:
        on_sent(sending);
        return false;
    case ERR_RATE:
        on_limited(sending);
        return false;
    case ERR_REFUSED:
        if (sending->answer.status)
            return on_refused(sending, error);
        break; /* the certificate is not trusted: not reached */
    case ERR_UNAVAILABLE:
    case ERR_TIMEOUT:
        if (!sending->answer.status)
            break;
        on_doubt(sending, error);
        return false;
    case ERR_STOPPING:
    case ERR_DENIED:
        break;
    default:
        on_doubt(sending, error);
        return false;
    }
    metric_add(&telegram_metrics.sent_retried, 1);
    log_error(LOG_WARN, "telegram", "cannot reach the server, messages wait", error);
    sending_postpone(sending, AWAY_MS, "not reached");
    return false;
}

void telegram_outbox_run(Handler *handler, Job *job, SettleItem *ret_settle)
{
    Sending     sending = {.outbox = (TelegramOutbox *)handler, .job = job, .settle = ret_settle};
    Error       error   = {0};
    bool        again   = true;
    bool        taken   = false; /* the turn of chat */
    int64_t     chat    = 0;
    const char *file;

    if (!file_find(&sending, &file))
        return;
    if (telegram_outgoing_read(job->command->type, job->command->payload, file, job->arena, &sending.item, &error) !=
        OK) {
        sending_give_up(&sending, arena_text(job->arena, error.text));
        return;
    }
    if (!replaced_find(&sending) || edit_is_over(&sending))
        return;
    for (int i = 0; again && i < CALLS_MAX; i++) {
        /* A message that was refused has used up no turn of its chat. */
        if ((!taken || sending.item.chat_id != chat) && !turn_take(&sending))
            return;
        taken          = true;
        chat           = sending.item.chat_id;
        ErrorCode code = outbox_call(sending.outbox->options.bot, &sending.item, deadline_in_ms(CALL_MS), job->arena,
                                     &sending.answer, &error);

        again = sending_judge(&sending, code, &error);
    }
    if (again)
        sending_give_up(&sending, "the chat has moved too often");
}
