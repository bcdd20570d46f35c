/*
 * bot_update.c - see bot_update.h.
 */
#include "app/bot_update.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/bot_game.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/problem.h"
#include "base/sync.h"
#include "pg/tx.h"
#include "sql.h"
#include "telegram/metric.h"

#define UPDATE_MS    10000 /* for one try with its retries */
#define DIRECT_MS    5000
#define BACKOFF_MS   60000
#define NOTIFIED_MAX 64 /* updates whose users were notified, the last ones */

typedef struct {
    Handler          base;
    BotUpdateOptions options;
    TelegramPoller  *poller;
    Mutex            mutex; /* guards the rest */
    int64_t          notified[NOTIFIED_MAX];
    int              notified_count;
} UpdateHandler;

typedef struct {
    UpdateHandler *handler;
    Job           *job;
    SettleItem    *settle;
    BotTurn        turn;
    char           name[TELEGRAM_NAME_SIZE];
    const Error   *failure;  /* why the game was given up; NULL: it was not */
    bool           conflict; /* the game said ERR_BUSY in the last try */
    bool           lost;     /* the lease was another's */
} Update;

/* ---- in the transaction ---- */

static SettleItem settle_begin(const Job *job)
{
    return (SettleItem){.id = job->command->id, .token = job->command->token, .delay_ms = SETTLE_DELAY_DEFAULT};
}

/* Groups become supergroups: what is queued for the old id goes to the new one. */
static ErrorCode chat_follow(Tx *tx, const Update *update, Error *reterr)
{
    const TelegramMessage *message =
        update->turn.update->kind == TELEGRAM_MESSAGE ? update->turn.update->message : NULL;
    int64_t from = 0, to = 0;

    if (message && message->migrate_to) {
        from = message->chat.id;
        to   = message->migrate_to;
    } else if (message && message->migrate_from) {
        from = message->migrate_from;
        to   = message->chat.id;
    }
    if (!from || !to || from == to)
        return OK;
    return db_run(tx, sql_telegram_moved, DB_ARGS(db_i64(update->turn.bot_id), db_i64(from), db_i64(to)), NULL, reterr);
}

/* A message that no server would take is the game's mistake: what it did stays done. */
static ErrorCode messages_put(Tx *tx, Update *update, Error *reterr)
{
    char      key[64];
    Error     error = {0};
    int       refused;
    ErrorCode code;

    snprintf(key, sizeof key, "update:%" PRId64 "%s", update->turn.update->id, update->failure ? ":failed" : "");
    code = telegram_outbox_put(update->handler->options.outbox, tx, key, update->turn.outgoing,
                               update->turn.outgoing_count, &refused, &error);
    if (code != OK && !error.sqlstate[0] && (code == ERR_INVALID || code == ERR_LIMIT)) {
        log_error(LOG_ERROR, "bot", "a message cannot be sent", &error);
        return OK;
    }
    if (code != OK && reterr)
        *reterr = error;
    return code;
}

static ErrorCode game_run(Tx *tx, Update *update, Error *reterr)
{
    ErrorCode code;

    update->turn.outgoing_count = 0;
    if (update->failure) {
        bot_game_failed(&update->turn, update->failure);
        return OK;
    }
    code             = bot_game_update(tx, &update->turn, reterr);
    update->conflict = code == ERR_BUSY && (!reterr || !reterr->sqlstate[0]);
    if (update->conflict)
        metric_add(&telegram_metrics.handled_conflict, 1);
    return code;
}

static ErrorCode update_body(Tx *tx, void *context, Error *reterr)
{
    Update     *update = context;
    SettleItem *settle = update->settle;

    *settle          = settle_begin(update->job);
    update->conflict = update->lost = false;
    TRY(game_run(tx, update, reterr));
    TRY(chat_follow(tx, update, reterr));
    TRY(messages_put(tx, update, reterr));
    settle->outcome = OUTCOME_COMPLETE;
    TRY(settle_in(tx, &settle, 1, reterr));
    update->lost = !settle->settled;
    if (update->lost)
        return fail(reterr, ERR_CONFLICT, "lease was lost: command is %s", settle->status);
    return OK;
}

static ErrorCode update_try(Update *update, Error *reterr)
{
    TxOptions options = {.name     = "update",
                         .deadline = deadline_in_ms(UPDATE_MS),
                         .arena    = update->turn.arena,
                         .keyed    = true};

    return tx_run(update->handler->options.pool, &options, update_body, update, reterr);
}

/* ---- around it ---- */

static void update_done(const Update *update)
{
    char domain[TELEGRAM_DOMAIN_SIZE];

    metric_add(update->failure ? &telegram_metrics.handled_failed : &telegram_metrics.handled, 1);
    if (update->turn.outgoing_count == 0)
        return;
    telegram_domain_outbox(update->turn.bot_id, domain);
    waker_notify(update->handler->options.waker, domain);
}

static void update_release(Update *update, const Error *error)
{
    *update->settle        = settle_begin(update->job);
    update->job->not_begun = arena_text(update->job->arena, error->text);
}

/* It was settled by an earlier try whose answer was lost, or the lease is another's. */
static void update_lost(const Update *update)
{
    update->settle->settled = update->settle->again;
}

/* The user is notified that it failed, and it is done. */
static void update_fail(Update *update, const Error *why)
{
    Error error = {0};

    log_error(LOG_ERROR, "bot", "an update failed, its user is notified", why);
    update->failure = why;
    if (update_try(update, &error) == OK)
        update_done(update);
    else if (update->lost)
        update_lost(update);
    else
        update_release(update, &error);
}

static bool notified_add(UpdateHandler *handler, int64_t id)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&handler->mutex);
    int                         count = handler->notified_count < NOTIFIED_MAX ? handler->notified_count : NOTIFIED_MAX;

    for (int i = 0; i < count; i++)
        if (handler->notified[i] == id)
            return false;
    handler->notified[handler->notified_count++ % NOTIFIED_MAX] = id;
    return true;
}

/* The outbox is away with the database. */
static void update_notify(Update *update, const Error *why)
{
    BotTurn *turn  = &update->turn;
    Error    error = {0};

    turn->outgoing_count = 0;
    if (!notified_add(update->handler, turn->update->id))
        return;
    bot_game_failed(turn, why);
    for (int i = 0; i < turn->outgoing_count; i++)
        if (telegram_send_directly(turn->bot, &turn->outgoing[i], deadline_in_ms(DIRECT_MS), turn->arena, &error) != OK)
            log_error(LOG_WARN, "bot", "a user was not notified that the database is away", &error);
}

static void update_later(Update *update, const Error *why)
{
    const ClaimedCommand *command = update->job->command;
    int                   doubled = command->attempt < 7 ? command->attempt - 1 : 6;
    int64_t               wait_ms = INT64_C(1000) << (doubled > 0 ? doubled : 0);

    if (command->attempt >= command->max_attempts) {
        update_fail(update, why);
        return;
    }
    log_error(LOG_WARN, "bot", "an update is tried again", why);
    *update->settle          = settle_begin(update->job);
    update->settle->outcome  = OUTCOME_RETRY;
    update->settle->error    = arena_text(update->job->arena, problem_stored(why));
    update->settle->delay_ms = wait_ms < BACKOFF_MS ? wait_ms : BACKOFF_MS;
}

static bool is_away(ErrorCode code)
{
    return code == ERR_UNAVAILABLE || code == ERR_UNKNOWN || code == ERR_TIMEOUT;
}

static void update_judge(Update *update, ErrorCode code, const Error *error)
{
    if (code == OK) {
        update_done(update);
    } else if (update->lost) {
        update_lost(update);
    } else if (update->conflict) {
        update_fail(update, error);
    } else if (is_away(code)) {
        log_error(LOG_WARN, "bot", "the database is away, an update waits", error);
        update_notify(update, error);
        update_release(update, error);
    } else {
        update_later(update, error);
    }
}

static void update_run(Handler *base, Job *job, SettleItem *ret_settle)
{
    UpdateHandler *handler = (UpdateHandler *)base;
    const char    *payload = job->command->payload;
    TelegramUpdate parsed;
    Error          error  = {0};
    Update        *update = arena_array(job->arena, Update, 1);

    if (telegram_update_parse(payload, strlen(payload), job->arena, &parsed, &error) != OK) {
        metric_add(&telegram_metrics.updates_malformed, 1);
        ret_settle->outcome = OUTCOME_REJECT;
        ret_settle->error   = arena_text(job->arena, error.text);
        return;
    }
    if (handler->poller)
        telegram_poller_name(handler->poller, update->name);
    update->handler = handler;
    update->job     = job;
    update->settle  = ret_settle;
    update->turn    = (BotTurn){.update    = &parsed,
                                .bot_id    = telegram_bot_id(handler->options.bot),
                                .bot_name  = update->name[0] ? update->name : NULL,
                                .attempt   = job->command->attempt,
                                .arena     = job->arena,
                                .pool      = handler->options.pool,
                                .bot       = handler->options.bot,
                                .deadline  = deadline_in_ms(UPDATE_MS),
                                .per_user  = handler->options.per_user,
                                .per_group = handler->options.per_group};
    ErrorCode code  = bot_game_prepare(&update->turn, &error);

    if (code == OK)
        code = update_try(update, &error);
    update_judge(update, code, &error);
}

Handler *bot_update_handler_new(const BotUpdateOptions *options)
{
    UpdateHandler *handler = memory_new(1, sizeof *handler);

    handler->base    = (Handler){.run = update_run};
    handler->options = *options;
    mutex_init(&handler->mutex);
    return &handler->base;
}

void bot_update_handler_free(Handler *base)
{
    UpdateHandler *handler = (UpdateHandler *)base;

    mutex_done(&handler->mutex);
    free(handler);
}

void bot_update_handler_poller(Handler *base, TelegramPoller *poller)
{
    ((UpdateHandler *)base)->poller = poller;
}
