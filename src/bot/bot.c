/*
 * bot.c - see bot.h.
 */
#include "bot/bot.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "bot/translate.h"
#include "bot/update.h"
#include "bus/worker_set.h"
#include "pg/tx.h"
#include "sql.h"
#include "telegram/outbox.h"
#include "telegram/poller.h"

#define RESTART_MS 10000
#define OUTBOX_CONCURRENCY \
    16 /* calls at the same time: 30 messages a second, and a server that takes half of one for each */
#define START_MS 30000
#define PRUNE_MS 2000

struct Bot {
    BotOptions      options;
    TelegramBot    *poll, *send; /* poll is stopped at once, send when what it does has ended */
    TelegramOutbox *outbox;
    Handler        *updates;
    WorkerSet      *workers;
    TelegramPoller *poller;
    bool            is_started; /* the workers */
    char            domain_updates[TELEGRAM_DOMAIN_SIZE], domain_outbox[TELEGRAM_DOMAIN_SIZE];
};

static void on_stored(void *context)
{
    const Bot *bot = context;

    waker_notify(bot->options.waker, bot->domain_updates);
}

static int64_t on_prune(void *context, int rows)
{
    const Bot                *bot   = context;
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions options = {.name = "rating-prune", .deadline = deadline_in_ms(PRUNE_MS), .arena = arena, .keyed = true};
    Error     error   = {0};
    int64_t   deleted = 0;

    if (db_call(bot->options.pool, &options, sql_rating_prune, DB_ARGS(db_i32(rows)), &db_i64_shape, &deleted,
                &error) != OK)
        log_error(LOG_WARN, "bot", "cannot delete old rows of groups", &error);
    return deleted;
}

static ErrorCode workers_make(Bot *bot, Error *reterr)
{
    WorkerRow updates = {.domain      = bot->domain_updates,
                         .concurrency = bot->options.concurrency,
                         .is_flushed  = true, /* a second attempt has a letter to end */
                         .handler     = bot->updates};
    WorkerRow outbox  = {.domain      = bot->domain_outbox,
                         .concurrency = OUTBOX_CONCURRENCY,
                         .ahead_max   = OUTBOX_CONCURRENCY, /* what is claimed is not counted as waiting */
                         .handler     = telegram_outbox_handler(bot->outbox)};

    bot->workers = worker_set_new(bot->options.pool, /* handler_pool= */ NULL);
    TRY(worker_set_add(bot->workers, &updates, deadline_in_ms(START_MS), reterr));
    TRY(worker_set_add(bot->workers, &outbox, deadline_in_ms(START_MS), reterr));
    TRY(worker_set_start(bot->workers, &(WorkerSetStart){.listen = bot->options.listen, .restart_ms = RESTART_MS},
                         reterr));
    bot->is_started = true;
    return OK;
}

static ErrorCode poller_make(Bot *bot, Error *reterr)
{
    const BotOptions     *options = &bot->options;
    TelegramPollerOptions polling = {
        .intake         = {.pool = options->pool, .bot_id = telegram_bot_id(bot->poll)},
        .bot            = bot->poll,
        .is_webhook     = options->is_webhook,
        .webhook_url    = options->webhook_url,
        .webhook_secret = options->webhook_secret,
        .commands       = bot_commands,
        .outbox_max     = options->outbox_max,
        .on_stored      = on_stored,
        .on_prune       = on_prune,
        .context        = bot,
    };

    bot_intake_watch(options->notices, &polling.intake);
    return telegram_poller_new(&polling, &bot->poller, reterr);
}

static ErrorCode bot_start(Bot *bot, Error *reterr)
{
    const BotOptions *options = &bot->options;

    TRY(telegram_bot_new(options->token, options->api_root, &bot->poll, reterr));
    TRY(telegram_bot_new(options->token, options->api_root, &bot->send, reterr));
    telegram_domain_updates(telegram_bot_id(bot->poll), bot->domain_updates);
    telegram_domain_outbox(telegram_bot_id(bot->poll), bot->domain_outbox);
    bot->outbox  = telegram_outbox_new(&(TelegramOutboxOptions){.pool      = options->pool,
                                                                .bot       = bot->send,
                                                                .size_max  = options->outbox_max,
                                                                .chat_ms   = options->chat_ms,
                                                                .group_max = options->group_max,
                                                                .all_max   = options->per_second});
    bot->updates = bot_update_handler_new(&(BotUpdateOptions){.pool      = options->pool,
                                                              .bot       = bot->send,
                                                              .outbox    = bot->outbox,
                                                              .waker     = options->waker,
                                                              .notices   = options->notices,
                                                              .per_user  = options->per_user,
                                                              .per_group = options->per_group});
    TRY(poller_make(bot, reterr));
    bot_update_handler_poller(bot->updates, bot->poller);
    return workers_make(bot, reterr);
}

ErrorCode bot_new(const BotOptions *options, Bot **ret_bot, Error *reterr)
{
    Bot *bot = memory_new(1, sizeof *bot);

    bot->options   = *options;
    ErrorCode code = bot_start(bot, reterr);

    if (code == OK) {
        *ret_bot = bot;
        return OK;
    }
    bot_stop(bot, deadline_in_ms(0));
    (void)bot_wait(bot, deadline_never());
    bot_free(bot);
    return code;
}

void bot_stop(Bot *bot, Deadline deadline)
{
    if (bot->poller)
        telegram_poller_stop(bot->poller);
    if (bot->is_started)
        worker_set_stop(bot->workers, deadline);
}

bool bot_wait(Bot *bot, Deadline deadline)
{
    return (!bot->poller || telegram_poller_wait(bot->poller, deadline)) &&
           (!bot->is_started || worker_set_wait(bot->workers, deadline));
}

void bot_cut_off(Bot *bot)
{
    telegram_bot_stop(bot->send);
}

void bot_free(Bot *bot)
{
    if (bot->workers)
        worker_set_free(bot->workers);
    if (bot->poller)
        telegram_poller_free(bot->poller);
    if (bot->updates)
        bot_update_handler_free(bot->updates);
    if (bot->outbox)
        telegram_outbox_free(bot->outbox);
    if (bot->send)
        telegram_bot_free(bot->send);
    if (bot->poll)
        telegram_bot_free(bot->poll);
    free(bot);
}
