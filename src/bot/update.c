/*
 * update.c - see update.h.
 */
#include "bot/update_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/problem.h"
#include "bus/lease.h"
#include "telegram/metric.h"

#define UPDATE_MS  10000 /* for one try with its retries */
#define LATE_MS    60000 /* after one that ran out of time; an undo may compute 50,000 matches again */
#define SLOW_TRIES 4     /* that may run out of time */
#define LETTER_MS  5000
#define AGAIN_MS   500
#define BACKOFF_MS 60000

static ErrorCode update_try(BotUpdate *update, Error *reterr)
{
    Deadline  deadline = deadline_in_ms(update->job->command->attempt > 1 ? LATE_MS : UPDATE_MS);
    ErrorCode code;

    if (FAULT("bot.update.before"))
        return fail(reterr, ERR_TIMEOUT, "fault at bot.update.before");
    code = update_run_tx(update, deadline, reterr);
    if (FAULT("bot.update.after"))
        return fail(reterr, ERR_UNKNOWN, "fault at bot.update.after");
    return code;
}

/* ---- how it ends ---- */

static void update_done(const BotUpdate *update)
{
    char domain[TELEGRAM_DOMAIN_SIZE];

    metric_add(update->failure ? &telegram_metrics.handled_failed : &telegram_metrics.handled, 1);
    if (update->messages.count == 0)
        return;
    telegram_domain_outbox(update->bot_id, domain);
    waker_notify(update->handler->options.waker, domain);
}

static void update_release(BotUpdate *update, const Error *error)
{
    *update->settle        = update_settle_begin(update);
    update->job->not_begun = arena_text(update->job->arena, error->text);
}

/* An earlier try, whose answer was lost, settled it, or another worker has the lease. */
static void update_lost(const BotUpdate *update)
{
    update->settle->settled = update->settle->again;
}

/* The outbox has no place for the answer to a match or an undo. Nothing was done; the chat's updates wait. */
static bool update_is_full(const Error *error)
{
    return strcmp(error->sqlstate, TELEGRAM_OUTBOX_FULL) == 0;
}

static void update_wait(BotUpdate *update, const Error *why)
{
    const BotUpdateOptions *options = &update->handler->options;
    SettleItem             *settle  = update->settle;
    Error                   error   = {0};

    log_error(LOG_DEBUG, "bot", "an update waits until its answer can be queued", why);
    *settle = update_settle_begin(update);
    if (lease_postpone(options->pool, deadline_in_ms(LETTER_MS), update->job->arena, update->job->command,
                       telegram_outbox_pace_ms(options->outbox), "outbox is full", &settle->settled, &error) != OK) {
        update_release(update, &error);
        return;
    }
    settle->postponed = true;
    settle->status    = "PENDING";
}

/* Notifies the user that it failed, and completes it. */
static void update_fail(BotUpdate *update, const Error *why)
{
    Error error = {0}, final = *why;

    if (!update->conflict) /* it will not run later, so the user must not read that it will */
        final.code = ERR_INTERNAL;
    update->is_late = true; /* there may be a letter */

    log_error(LOG_ERROR, "bot", "an update failed; its user is notified", why);
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

static void update_later(BotUpdate *update, const Error *why)
{
    log_error(LOG_WARN, "bot", "an update failed, will retry", why);
    *update->settle          = update_settle_begin(update);
    update->settle->outcome  = OUTCOME_RETRY;
    update->settle->error    = arena_text(update->job->arena, problem_stored(why));
    update->settle->delay_ms = clock_backoff_ms(update->job->command->attempt - 1, BACKOFF_MS);
}

/* The database: not reached, not in time, or in the way of itself (deadlocks, locks) after all retries. */
static bool is_database(ErrorCode code, const Error *error)
{
    return code == ERR_UNAVAILABLE || code == ERR_UNKNOWN || code == ERR_TIMEOUT || code == ERR_REFUSED ||
           (code == ERR_BUSY && error->sqlstate[0]);
}

/* Would the next try end the same way? Either a slow database or an update that takes too long exceeds a time limit. */
static bool is_final(const BotUpdate *update, ErrorCode code, const Error *error)
{
    const ClaimedCommand *command = update->job->command;

    return update->conflict || !is_database(code, error) || command->attempt >= command->max_attempts ||
           (code == ERR_TIMEOUT && command->attempt >= SLOW_TRIES);
}

/* Waits until the database is back. Meanwhile it keeps the command, so later updates of the chat wait. */
static void letter_keep(BotUpdate *update, const Error *why)
{
    Job      *job  = update->job;
    ArenaMark mark = arena_mark(job->arena);
    Error     error;

    for (;;) {
        bool      is_last = job_is_stopped(job); /* the lease was lost, so the database is back; or the process stops */
        ErrorCode code;

        error = (Error){0};
        code  = update_letter_keep(update, deadline_in_ms(LETTER_MS), why, &error);
        if (code == OK)
            return;
        if (!is_database(code, &error)) {
            log_error(LOG_ERROR, "bot", "cannot keep a dead letter; its update still waits", &error);
            return;
        }
        if (is_last)
            return;
        arena_rewind(job->arena, mark);
        clock_sleep_ms(AGAIN_MS);
    }
}

static void update_judge(BotUpdate *update, ErrorCode code, const Error *error)
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

        /* Notify once per update, by the pod of its first attempt, unless the intake did so already. A change that has
         * shown progress exceeded its time limit; that is no outage. */
        if (update->job->command->attempt == 1 && !update->is_unstored &&
            (code != ERR_TIMEOUT || update->progress.count == 0))
            bot_notices_add(update->handler->options.notices, payload, strlen(payload), error);
        letter_keep(update, error);
        update_later(update, error);
    }
}

/* "/match@name" names a bot. Whether it is this one is unknown until the server has answered getMe. */
static bool names_a_bot(const TelegramUpdate *update)
{
    const char *text = update->kind == TELEGRAM_MESSAGE && update->message ? update->message->text : NULL;

    return text && *text == '/' && text[strcspn(text, "@ \t\r\n")] == '@';
}

static BotUpdate *update_new(UpdateHandler *handler, Job *job, SettleItem *settle)
{
    const BotUpdateOptions *options = &handler->options;
    BotUpdate              *update  = arena_array(job->arena, BotUpdate, 1);

    if (handler->poller)
        telegram_poller_name(handler->poller, update->bot_name);
    update->handler     = handler;
    update->job         = job;
    update->settle      = settle;
    update->bot_id      = telegram_bot_id(options->bot);
    update->is_unstored = strcmp(job->command->type, TELEGRAM_TYPE_LATE) == 0;
    update->is_late     = job->command->attempt > 1 || update->is_unstored;
    update->input       = (GameInput){.bot_id    = update->bot_id,
                                      .bot_name  = update->bot_name[0] ? update->bot_name : NULL,
                                      .per_user  = options->per_user,
                                      .per_group = options->per_group,
                                      .is_late   = update->is_late};
    return update;
}

/* The only place that parses the update; everything after it reads the input. */
static ErrorCode update_parse(BotUpdate *update, Error *reterr)
{
    Job        *job     = update->job;
    const char *payload = job->command->payload;

    TRY(telegram_update_parse(payload, strlen(payload), job->arena, &update->parsed, reterr));
    update->is_game   = bot_input_read(&update->parsed, job->arena, &update->input);
    update->operation = update->is_game ? game_operation(&update->input) : NULL;
    if (update->operation && strcmp(update->operation, GAME_UNDO) == 0)
        update_progress_init(update);
    return OK;
}

static ErrorCode update_handle(BotUpdate *update, Error *reterr)
{
    TRY(update_prepare(update, reterr));
    return update_try(update, reterr);
}

static void update_run(Handler *base, Job *job, SettleItem *ret_settle)
{
    UpdateHandler *handler = (UpdateHandler *)base;
    BotUpdate     *update  = update_new(handler, job, ret_settle);
    Error          error   = {0};
    ErrorCode      code;

    if (update_parse(update, &error) != OK) {
        metric_add(&telegram_metrics.updates_malformed, 1);
        ret_settle->outcome = OUTCOME_REJECT;
        ret_settle->error   = arena_text(job->arena, error.text);
        return;
    }
    if (update->bot_name[0])
        bot_notices_name(handler->options.notices, update->bot_name);
    if (handler->poller && !update->bot_name[0] && names_a_bot(&update->parsed) &&
        job->command->attempt < job->command->max_attempts) {
        (void)fail(&error, ERR_UNAVAILABLE, "the bot's name is not known yet: getMe has not been answered");
        update_later(update, &error);
        return;
    }
    code = update_handle(update, &error);
    update_judge(update, code, &error);
}

Handler *bot_update_handler_new(const BotUpdateOptions *options)
{
    UpdateHandler *handler = memory_new(1, sizeof *handler);

    handler->base     = (Handler){.run = update_run};
    handler->options  = *options;
    handler->combiner = update_combiner_new(handler);
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
