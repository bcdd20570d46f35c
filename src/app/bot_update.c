/*
 * bot_update.c - see bot_update.h.
 */
#include "app/bot_update.h"

#include <stdlib.h>
#include <string.h>

#include "app/bot_game.h"
#include "app/bot_letter.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/problem.h"
#include "bus/release.h"
#include "pg/combiner.h"
#include "pg/tx.h"
#include "rating/match.h"
#include "sql.h"
#include "telegram/member.h"
#include "telegram/metric.h"

#define UPDATE_MS  10000 /* for one try with its retries */
#define LATE_MS    60000 /* after one that ran out of time; an undo may compute 50,000 matches again */
#define SLOW_TRIES 4     /* that may run out of time */
#define LETTER_MS  5000
#define AGAIN_MS   500
#define BACKOFF_MS 60000

/* Matches that share a transaction. Beyond SHARED_MAX a batch saves little. One that waits longer than SHARED_LOCK_MS for a lock is run apart. */
#define SHARED_MAX     128
#define SHARED_SLOW_MS 500
#define SHARED_LOCK_MS 500

typedef struct {
    Handler          base;
    BotUpdateOptions options;
    TelegramPoller  *poller;
    Combiner        *combiner; /* of matches */
} UpdateHandler;

typedef struct {
    UpdateHandler *handler;
    Job           *job;
    SettleItem    *settle;
    BotTurn        turn;
    BotLetter      letter;
    BotProgress    progress;
    bool           is_unstored; /* it could not be stored when it first came */
    char           name[TELEGRAM_NAME_SIZE];
    const Error   *failure;  /* why the game was given up; NULL: it was not */
    bool           conflict; /* the game said ERR_BUSY in the last try */
    bool           lost;     /* the lease was another's */
    bool           apart;    /* the batch that it was in has failed: it is run in a transaction of its own */
} Update;

/* Updates that share a transaction: one, or matches of several chats. */
typedef struct {
    UpdateHandler *handler;
    Update       **list;
    int            count;
} UpdateBatch;

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

/* Who was promoted, dismissed, or has come or gone is asked about again. */
static ErrorCode member_follow(Tx *tx, const Update *update, Error *reterr)
{
    const TelegramMember *member = update->turn.update->kind == TELEGRAM_MEMBER ? update->turn.update->member : NULL;

    if (!member || !member->user || !member->user->id || !member->chat.id)
        return OK;
    return telegram_member_forget(tx, update->turn.bot_id, member->chat.id, member->user->id, reterr);
}

/* A message that no server would take is the game's mistake: what it did stays done. */
static ErrorCode messages_put(Tx *tx, const UpdateBatch *batch, Error *reterr)
{
    TelegramPut *puts = arena_array(tx->arena, TelegramPut, batch->count);
    int          refused;

    for (int i = 0; i < batch->count; i++) {
        const Update *update = batch->list[i];

        /* By the command, not by update_id: another update may have the same (intake.c). */
        puts[i] = (TelegramPut){.key   = arena_print(tx->arena, "update:%s%s", update->job->command->command_id,
                                                   update->failure ? ":failed" : ""),
                                .items = update->turn.outgoing,
                                .count = update->turn.outgoing_count,
                                .busy  = update->turn.busy};
    }
    TRY(telegram_outbox_put(batch->handler->options.outbox, tx, puts, batch->count, &refused, reterr));
    for (int i = 0; i < batch->count; i++)
        if (puts[i].error.code != OK)
            log_error(LOG_ERROR, "bot", "a message cannot be sent", &puts[i].error);
    return OK;
}

static ErrorCode game_run(Tx *tx, const UpdateBatch *batch, Error *reterr)
{
    BotTurn **turns = arena_array(tx->arena, BotTurn *, batch->count);
    Update   *first = batch->list[0];
    ErrorCode code;

    for (int i = 0; i < batch->count; i++) {
        turns[i]                 = &batch->list[i]->turn;
        turns[i]->outgoing_count = 0;
    }
    if (first->failure) { /* then it is alone */
        bot_game_failed(&first->turn, first->failure);
        return OK;
    }
    code            = bot_game_update(tx, turns, batch->count, reterr);
    first->conflict = code == ERR_BUSY && (!reterr->sqlstate[0] || strcmp(reterr->sqlstate, MATCH_CONFLICT) == 0);
    if (first->conflict)
        metric_add(&telegram_metrics.handled_conflict, 1);
    return code;
}

/* What was late is not, once this transaction commits. */
static ErrorCode letter_settle(Tx *tx, const Update *update, Error *reterr)
{
    Error why = {0};

    if (!update->turn.is_late)
        return OK;
    if (update->is_unstored) {
        (void)fail(&why, ERR_UNAVAILABLE, "the database was away when it came");
        TRY(bot_letter_keep_in(tx, &update->letter, &why, reterr));
    }
    return bot_letter_end(tx, &update->letter, update->failure, reterr);
}

static ErrorCode batch_settle(Tx *tx, const UpdateBatch *batch, Error *reterr)
{
    SettleItem **items = arena_array(tx->arena, SettleItem *, batch->count);

    for (int i = 0; i < batch->count; i++) {
        items[i]          = batch->list[i]->settle;
        items[i]->outcome = OUTCOME_COMPLETE;
    }
    TRY(settle_in(tx, items, batch->count, reterr));
    for (int i = 0; i < batch->count; i++) {
        Update *update = batch->list[i];

        /* The transaction's arena ends before the update; one notification is enough for all of them. */
        items[i]->wake = i == 0 ? arena_text(update->job->arena, items[i]->wake) : NULL;
        update->lost   = !items[i]->settled;
        if (update->lost)
            return fail(reterr, ERR_CONFLICT, "lease was lost: command is %s", items[i]->status);
    }
    return OK;
}

static ErrorCode batch_body(Tx *tx, void *context, Error *reterr)
{
    const UpdateBatch *batch = context;

    for (int i = 0; i < batch->count; i++) {
        Update *update = batch->list[i];

        *update->settle  = settle_begin(update->job);
        update->conflict = update->lost = false;
    }
    TRY(game_run(tx, batch, reterr));
    if (FAULT("bot.update.game"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at bot.update.game");
    for (int i = 0; i < batch->count; i++) {
        TRY(chat_follow(tx, batch->list[i], reterr));
        TRY(member_follow(tx, batch->list[i], reterr));
    }
    TRY(messages_put(tx, batch, reterr));
    for (int i = 0; i < batch->count; i++)
        TRY(letter_settle(tx, batch->list[i], reterr));
    return batch_settle(tx, batch, reterr);
}

static ErrorCode batch_run(UpdateBatch *batch, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "update", .deadline = deadline, .arena = arena, .keyed = true};

    if (batch->count > 1) { /* what fails is tried again apart, so that it does not hold up the others */
        options.name      = "updates";
        options.tries_max = 1;
        options.lock_ms   = SHARED_LOCK_MS;
    }
    return tx_run(batch->handler->options.pool, &options, batch_body, batch, reterr);
}

/* For the combiner. A batch that fails has changed nothing, or, if the answer to its commit was lost, the settle of each update says so: each
 * is run again by its own thread. */
static ErrorCode shared_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    UpdateBatch batch = {.handler = context, .list = (Update **)items, .count = count};
    ErrorCode   code  = batch_run(&batch, deadline, reterr);

    if (code == OK || count == 1)
        return code;
    for (int i = 0; i < count; i++)
        batch.list[i]->apart = true;
    return OK;
}

static ErrorCode update_try(Update *update, Error *reterr)
{
    UpdateBatch alone    = {.handler = update->handler, .list = &update, .count = 1};
    Deadline    deadline = deadline_in_ms(update->job->command->attempt > 1 ? LATE_MS : UPDATE_MS);
    ErrorCode   code;

    if (FAULT("bot.update.before"))
        return fail(reterr, ERR_TIMEOUT, "fault at bot.update.before");
    update->apart = update->turn.is_late || !bot_game_is_shared(&update->turn);
    code          = update->apart ? OK : combiner_run(update->handler->combiner, update, deadline, reterr);
    if (code == ERR_BUSY && !reterr->sqlstate[0] && !update->conflict)
        update->apart = true; /* the combiner has no thread for it */
    if (update->apart)
        code = batch_run(&alone, deadline, reterr);
    if (FAULT("bot.update.after"))
        return fail(reterr, ERR_UNKNOWN, "fault at bot.update.after");
    return code;
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

/* The answer to a match or an undo has no place in the outbox: nothing was done, and the updates of the chat wait until there is one. */
static bool update_is_full(const Error *error)
{
    return strcmp(error->sqlstate, TELEGRAM_OUTBOX_FULL) == 0;
}

static void update_wait(Update *update, const Error *why)
{
    const BotUpdateOptions *options = &update->handler->options;
    SettleItem             *settle  = update->settle;
    Error                   error   = {0};

    log_error(LOG_DEBUG, "bot", "an update waits until its answer can be queued", why);
    *settle = settle_begin(update->job);
    if (lease_postpone(options->pool, deadline_in_ms(LETTER_MS), update->job->arena, update->job->command,
                       telegram_outbox_pace_ms(options->outbox), "outbox is full", &settle->settled, &error) != OK) {
        update_release(update, &error);
        return;
    }
    settle->postponed = true;
    settle->status    = "PENDING";
}

/* The user is notified that it failed, and it is done. */
static void update_fail(Update *update, const Error *why)
{
    Error error = {0}, final = *why;

    if (!update->conflict) /* nothing will be done later: not what is said about an outage */
        final.code = ERR_INTERNAL;
    update->turn.is_late = true; /* there may be a letter */

    log_error(LOG_ERROR, "bot", "an update failed, its user is notified", why);
    update->failure = &final;
    if (update_try(update, &error) == OK)
        update_done(update);
    else if (update->lost)
        update_lost(update);
    else if (update_is_full(&error))
        update_wait(update, &error);
    else
        update_release(update, &error);
}

static void update_later(Update *update, const Error *why)
{
    const ClaimedCommand *command = update->job->command;
    int                   doubled = command->attempt < 7 ? command->attempt - 1 : 6;
    int64_t               wait_ms = INT64_C(1000) << (doubled > 0 ? doubled : 0);

    log_error(LOG_WARN, "bot", "an update is tried again", why);
    *update->settle          = settle_begin(update->job);
    update->settle->outcome  = OUTCOME_RETRY;
    update->settle->error    = arena_text(update->job->arena, problem_stored(why));
    update->settle->delay_ms = wait_ms < BACKOFF_MS ? wait_ms : BACKOFF_MS;
}

/* The database: not reached, not in time, or in the way of itself (deadlocks, locks) after all retries. */
static bool is_database(ErrorCode code, const Error *error)
{
    return code == ERR_UNAVAILABLE || code == ERR_UNKNOWN || code == ERR_TIMEOUT || code == ERR_REFUSED ||
           (code == ERR_BUSY && error->sqlstate[0]);
}

/* Would the next try end the same way? A time limit is met by a database that is slow, and by an update that takes too long. */
static bool is_final(const Update *update, ErrorCode code, const Error *error)
{
    const ClaimedCommand *command = update->job->command;

    return update->conflict || !is_database(code, error) || command->attempt >= command->max_attempts ||
           (code == ERR_TIMEOUT && command->attempt >= SLOW_TRIES);
}

/* Waits until the database is back. The command is held meanwhile: what follows in its chat waits behind it. */
static void letter_keep(Update *update, const Error *why)
{
    Job      *job  = update->job;
    ArenaMark mark = arena_mark(job->arena);
    Error     error;

    for (;;) {
        bool      is_last = job_is_stopped(job); /* the lease is lost: the database is back; or the process stops */
        ErrorCode code;

        error = (Error){0};
        code  = bot_letter_keep(update->handler->options.pool, deadline_in_ms(LETTER_MS), job->arena, &update->letter,
                                why, &error);
        if (code == OK)
            return;
        if (!is_database(code, &error)) {
            log_error(LOG_ERROR, "bot", "a dead letter cannot be kept, its update waits all the same", &error);
            return;
        }
        if (is_last)
            return;
        arena_rewind(job->arena, mark);
        clock_sleep_ms(AGAIN_MS);
    }
}

static void update_judge(Update *update, ErrorCode code, const Error *error)
{
    if (code == OK) {
        update_done(update);
    } else if (update->lost) {
        update_lost(update);
    } else if (code == ERR_STOPPING) {
        update_release(update, error);
    } else if (update_is_full(error)) {
        update_wait(update, error);
    } else if (is_final(update, code, error)) {
        update_fail(update, error);
    } else {
        const char *payload = update->job->command->payload;

        /* Once per update, whichever pods try it: what was tried before was notified, and so was what could not be stored. A change that
         * has shown progress has met its time limit, not an outage. */
        if (update->job->command->attempt == 1 && !update->is_unstored &&
            (code != ERR_TIMEOUT || update->progress.count == 0))
            bot_notices_add(update->handler->options.notices, payload, strlen(payload), error);
        letter_keep(update, error);
        update_later(update, error);
    }
}

/* A command for a bot that it names, "/match@name": which one is not known before getMe has been answered. */
static bool names_a_bot(const TelegramUpdate *update)
{
    const char *text = update->kind == TELEGRAM_MESSAGE && update->message ? update->message->text : NULL;

    return text && *text == '/' && text[strcspn(text, "@ \t\r\n")] == '@';
}

/* An update that was tried before may have shown some. */
static void progress_make(Update *update)
{
    const BotUpdateOptions *options = &update->handler->options;
    const ClaimedCommand   *command = update->job->command;

    update->progress = (BotProgress){.pool       = options->pool,
                                     .outbox     = options->outbox,
                                     .waker      = options->waker,
                                     .bot_id     = update->turn.bot_id,
                                     .command_id = command->command_id,
                                     .attempt    = command->attempt};
    if (!bot_game_is_long(&update->turn))
        return;
    bot_progress_init(&update->progress, command->attempt > 1);
    update->turn.progress = &update->progress;
}

static Update *update_make(UpdateHandler *handler, Job *job, const TelegramUpdate *parsed, SettleItem *settle)
{
    Update *update = arena_array(job->arena, Update, 1);

    if (handler->poller)
        telegram_poller_name(handler->poller, update->name);
    update->handler     = handler;
    update->job         = job;
    update->settle      = settle;
    update->is_unstored = strcmp(job->command->type, TELEGRAM_TYPE_LATE) == 0;
    update->turn        = (BotTurn){.update     = parsed,
                                    .bot_id     = telegram_bot_id(handler->options.bot),
                                    .bot_name   = update->name[0] ? update->name : NULL,
                                    .is_late    = job->command->attempt > 1 || update->is_unstored,
                                    .arena      = job->arena,
                                    .pool       = handler->options.pool,
                                    .bot        = handler->options.bot,
                                    .deadline   = deadline_in_ms(UPDATE_MS),
                                    .per_second = telegram_outbox_per_second(handler->options.outbox),
                                    .per_user   = handler->options.per_user,
                                    .per_group  = handler->options.per_group};
    update->letter      = bot_letter_of(&update->turn, job->command);
    progress_make(update);
    return update;
}

static ErrorCode update_handle(Update *update, Error *reterr)
{
    TRY(bot_game_prepare(&update->turn, reterr));
    return update_try(update, reterr);
}

static void update_run(Handler *base, Job *job, SettleItem *ret_settle)
{
    UpdateHandler *handler = (UpdateHandler *)base;
    const char    *payload = job->command->payload;
    TelegramUpdate parsed;
    Error          error = {0};
    Update        *update;

    if (telegram_update_parse(payload, strlen(payload), job->arena, &parsed, &error) != OK) {
        metric_add(&telegram_metrics.updates_malformed, 1);
        ret_settle->outcome = OUTCOME_REJECT;
        ret_settle->error   = arena_text(job->arena, error.text);
        return;
    }
    update = update_make(handler, job, &parsed, ret_settle);
    if (update->name[0])
        bot_notices_name(handler->options.notices, update->name);
    if (handler->poller && !update->name[0] && names_a_bot(&parsed) &&
        job->command->attempt < job->command->max_attempts) {
        (void)fail(&error, ERR_UNAVAILABLE, "the bot's name is not known yet: getMe has not been answered");
        update_later(update, &error);
        return;
    }
    ErrorCode code = update_handle(update, &error);

    update_judge(update, code, &error);
}

Handler *bot_update_handler_new(const BotUpdateOptions *options)
{
    UpdateHandler *handler = memory_new(1, sizeof *handler);
    PoolStatus     status;

    handler->base    = (Handler){.run = update_run};
    handler->options = *options;
    pool_status(options->pool, &status);
    handler->combiner = combiner_new(&(CombinerOptions){.run       = shared_run,
                                                        .context   = handler,
                                                        .slots_max = combiner_share(status.size_max, 4),
                                                        .slow_ms   = SHARED_SLOW_MS,
                                                        .batch_max = SHARED_MAX});
    return &handler->base;
}

void bot_update_handler_free(Handler *base)
{
    UpdateHandler *handler = (UpdateHandler *)base;

    combiner_free(handler->combiner);
    free(handler);
}

void bot_update_handler_poller(Handler *base, TelegramPoller *poller)
{
    ((UpdateHandler *)base)->poller = poller;
}
