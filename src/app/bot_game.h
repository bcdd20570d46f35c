/*
 * bot_game.h - connects the bot's transport with the game: one update in, changes of the database and a list of messages out.
 *
 *     bot_update.c   handles a claimed update: calls prepare, then update in a transaction, queues the messages, settles, commits
 *     bot_game.c     reads the update for the game (bot_input.c), and writes what the game says as messages (bot_output.c)
 *
 * An update's changes, its messages and that it is done commit together. bot_game_update() is run again from its beginning when it returns
 * a code whose verdict is RETRY (ERR_BUSY): after 100, 200 and 400 ms, with the list empty again. After the last of them
 * bot_game_failed() writes the message for the user, and the update is done.
 * Threads: any handler thread. Ownership: everything in a turn lives in its arena.
 */
#ifndef APP_BOT_GAME_H
#define APP_BOT_GAME_H

#include "app/bot_progress.h"
#include "base/arena.h"
#include "base/error.h"
#include "pg/pool.h"
#include "pg/query.h"
#include "telegram/bot.h"
#include "telegram/outgoing.h"
#include "telegram/poller.h"
#include "telegram/update.h"

#define BOT_OUTGOING_MAX 32 /* messages of one update */

typedef struct BotPrepared BotPrepared;

typedef struct {
    const TelegramUpdate *update;
    int64_t               bot_id;
    const char           *bot_name; /* username without "@"; NULL: not known yet */
    bool                  is_late;  /* an earlier try failed, or it could not be stored at first */
    Arena                *arena;
    Pool                 *pool; /* for prepare */
    TelegramBot          *bot;  /* for prepare: telegram_member_status() */
    Deadline              deadline;
    int                   per_second;          /* calls of the Bot API, for prepare */
    int                   per_user, per_group; /* commands a minute that are answered; 0: the game's own limits */
    const BotPrepared    *prepared;            /* by bot_game_prepare(); NULL: it was not called */
    BotProgress          *progress;            /* of changes that take long; NULL: it is not shown */
    const char           *busy;                /* said to a group that asks too much; NULL: not known */
    TelegramOutgoing      outgoing[BOT_OUTGOING_MAX];
    int                   outgoing_count;
} BotTurn;

/* Append a message; what it points to must live in the turn's arena. Beyond BOT_OUTGOING_MAX: dropped. */
static inline void bot_turn_send(BotTurn *turn, const TelegramOutgoing *item)
{
    if (turn->outgoing_count < BOT_OUTGOING_MAX)
        turn->outgoing[turn->outgoing_count++] = *item;
}

/* What setMyCommands is given; ended by a NULL command. */
extern const TelegramCommand bot_game_commands[];

/* Outside of any transaction: what needs a call of the Bot API (is this user an administrator?) or a read of its own. Not OK: the update is
 * tried again later. */
must_check ErrorCode bot_game_prepare(BotTurn *turn, Error *reterr);
/* Is it a match that may share its transaction with those of other chats? Others may take long, or wait. No database. */
bool bot_game_is_shared(BotTurn *turn);
/* In the transaction, which the turns share. OK: done, the messages in the turns are queued. */
must_check ErrorCode bot_game_update(Tx *tx, BotTurn *const *turns, int count, Error *reterr);
/* The type of its dead letter, if it changes ratings; NULL: it does not. No database. */
const char *bot_game_operation(BotTurn *turn);
/* May it take so long that its progress is shown? No database. */
bool bot_game_is_long(BotTurn *turn);
/* After the last try failed for this reason: writes the message for the user. No database. */
void bot_game_failed(BotTurn *turn, const Error *why);

#endif
