/*
 * update.h - handles one update: parses it, runs the game in a transaction, queues its messages, settles.
 *
 * Matches of several chats that arrive at the same time share a transaction, which takes as many statements as one
 * match alone. If it fails, each of them runs again in its own transaction, on its own thread. Other updates, and
 * those that were tried before, always run so. The table is about one update in its own transaction.
 *
 *     the game ends with         the update                                          the user
 *     OK                         done, in the same transaction                       gets the messages
 *     no place in the outbox     postponed; the chat's updates wait                  gets the messages later
 *       for a confirmation
 *     a version conflict,        done, in another transaction                        reads what game_failed() says
 *       four times
 *     another error              the same: the next try would fail too               the same
 *     a failure of the database  retried after 1, 2, 4 ... 60 s, at its position in  is notified directly, once;
 *                                its chat, with a dead letter until it is done;      gets the messages when it is
 *                                given up after the last attempt, or after four      done or was given up
 *                                that exceeded their time limit
 *
 * Threads: run() on handler threads. Ownership: everything in the options is borrowed.
 */
#ifndef BOT_UPDATE_H
#define BOT_UPDATE_H

#include "bot/notice.h"
#include "bus/waker.h"
#include "bus/worker.h"
#include "telegram/outbox.h"
#include "telegram/poller.h"

typedef struct {
    Pool           *pool;
    TelegramBot    *bot;
    TelegramOutbox *outbox;
    Waker          *waker;
    BotNotices     *notices;             /* NULL: users are not notified of outages */
    int             per_user, per_group; /* commands a minute that are answered; 0: the game's own limits */
} BotUpdateOptions;

Handler *bot_update_handler_new(const BotUpdateOptions *options);
void     bot_update_handler_free(Handler *handler);
/* The poller knows the bot's name. NULL: there is none. */
void bot_update_handler_poller(Handler *handler, TelegramPoller *poller);

#endif
