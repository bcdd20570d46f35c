/*
 * bot.h - the Telegram bot of a pod: gets updates, lets the game handle them (bot_game.h), sends the replies.
 *
 *     poller, or POST /telegram/webhook -> commands of domain telegram:BOT -> update handlers -> game
 *       -> commands of domain telegram:BOT:outbox -> outbox handlers -> Bot API
 *
 * Every pod with the role bot handles updates and sends; one of them polls.
 *
 * Threads: started and freed by the main thread. Ownership: everything in the options is borrowed.
 */
#ifndef APP_BOT_H
#define APP_BOT_H

#include "app/bot_notice.h"
#include "app/settings.h"
#include "bus/send.h"
#include "bus/waker.h"
#include "pg/listen.h"
#include "pg/pool.h"

typedef struct {
    const Settings *settings; /* with a token */
    Pool           *pool;
    Sender         *sender;
    Waker          *waker;
    Listen         *listen; /* wakes the workers; must be freed before the bot */
    BotNotices     *notices;
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

#endif
