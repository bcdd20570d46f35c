/*
 * bot.h - the Telegram bot of a pod: gets updates, lets the game of module rating handle them, sends the replies.
 *
 *     poller, or POST /telegram/webhook -> commands of domain telegram:BOT -> update handlers -> game
 *       -> commands of domain telegram:BOT:outbox -> outbox handlers -> Bot API
 *
 * Every pod with the role bot handles updates and sends; one of them polls.
 *
 * Threads: started and freed by the main thread. Ownership: everything in the options is borrowed.
 */
#ifndef BOT_BOT_H
#define BOT_BOT_H

#include "bot/notice.h"
#include "bus/dead_letter.h"
#include "bus/waker.h"
#include "pg/listen.h"
#include "pg/pool.h"
#include "telegram/intake.h"

typedef struct {
    const char *token, *api_root;
    bool        is_webhook; /* updates come to POST /telegram/webhook, not by polls */
    const char *webhook_url, *webhook_secret;
    int         concurrency;                                /* update handlers */
    int         outbox_max, chat_ms, group_max, per_second; /* as in TelegramOutboxOptions */
    int         per_user, per_group;                        /* commands a minute that are answered */
    Pool       *pool;
    Waker      *waker;
    Listen     *listen; /* wakes the workers; must be freed before the bot */
    BotNotices *notices;
} BotOptions;

typedef struct Bot Bot;
/* Starts. ERR_INTERNAL: no threads. */
must_check ErrorCode bot_new(const BotOptions *options, Bot **ret_bot, Error *reterr);
/* No more polls and claims; what runs gets until the deadline. */
void bot_stop(Bot *bot, Deadline deadline);
/* false: some still run. */
bool bot_wait(Bot *bot, Deadline deadline);
/* Calls under way end within about a second: what they sent may be sent again. */
void bot_cut_off(Bot *bot);
/* After bot_wait() returned true. */
void bot_free(Bot *bot);

/* Makes the intake report authors of messages, whom the game stores in its own transaction, and updates that the
 * database did not take, whose users are notified. */
void bot_intake_watch(BotNotices *notices, TelegramIntake *intake);

/* The try of a dead letter of an update: OK when the update has ended. */
DeadLetterHandler bot_letter_retry;

#endif
