/*
 * bot_update.h - handles one update: parses it, runs the game in a transaction, queues its messages, settles.
 *
 *     the game ends with         the update                                                          the user
 *     OK                         done, in the same transaction                                       gets the messages
 *     ERR_BUSY, four times       done, in another transaction                                        is notified by bot_game_failed()
 *     another error              tried again after 1, 2, 4 ... 60 s; done after the last attempt     is notified then
 *     outage of the database     released, keeps its position in its chat                            is notified directly, once per process
 *
 * Threads: run() on handler threads. Ownership: everything in the options is borrowed.
 */
#ifndef APP_BOT_UPDATE_H
#define APP_BOT_UPDATE_H

#include "bus/waker.h"
#include "bus/worker.h"
#include "telegram/outbox.h"
#include "telegram/poller.h"

typedef struct {
    Pool           *pool;
    TelegramBot    *bot;
    TelegramOutbox *outbox;
    Waker          *waker;
    int             per_user, per_group; /* commands a minute that are answered; 0: the game's own limits */
} BotUpdateOptions;

Handler *bot_update_handler_new(const BotUpdateOptions *options);
void     bot_update_handler_free(Handler *handler);
/* The poller knows the bot's name. NULL: there is none. */
void bot_update_handler_poller(Handler *handler, TelegramPoller *poller);

#endif
