/*
 * update.h - handles one update: parses it, runs the game in a transaction, queues its messages, settles.
 *
 * Matches of several chats that are at hand at the same time share a transaction, which takes as many statements as one of them alone. If it
 * fails, for whatever reason, each of them is run in a transaction of its own, by its own thread: what follows is about such a one. An update
 * that is no match, or has been tried before, is run so from the beginning.
 *
 *     the game ends with         the update                                                          the user
 *     OK                         done, in the same transaction                                       gets the messages
 *     no place in the outbox     postponed; the chat's updates wait                                  gets the messages later
 *       for what must be said
 *     a version conflict,        done, in another transaction                                        is notified by game_failed()
 *       four times
 *     another error              the same: it would come again                                       is notified
 *     a failure of the database  tried again after 1, 2, 4 ... 60 s, with a dead letter until it is  is notified directly, once,
 *                                done (update_internal.h); it keeps its place in its chat; given up       and by the messages when it was done,
 *                                after the last attempt, or after four that ran out of time          or when it was given up
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
