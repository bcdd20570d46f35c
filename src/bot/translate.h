/*
 * translate.h - translates between the Bot API and the game: an update becomes an input of the game, its replies
 * become messages.
 *
 * Pure. Threads: any. Ownership: results borrow from the update and the replies, and live in the arena.
 */
#ifndef BOT_TRANSLATE_H
#define BOT_TRANSLATE_H

#include "rating/game.h"
#include "telegram/outgoing.h"
#include "telegram/poller.h"
#include "telegram/update.h"

#define BOT_MESSAGES_MAX 32 /* of one update; the game has at most GAME_REPLIES_MAX replies */

typedef struct {
    TelegramOutgoing list[BOT_MESSAGES_MAX];
    int              count;
} BotMessages;

/* What setMyCommands is given; ended by a NULL command. */
extern const TelegramCommand bot_commands[];

/* The caller sets bot_id, bot_name, per_user, per_group and is_late of the input; this sets the rest and parses the
 * text. false: the game does not handle this update. An edited command is one: it is no new command. */
bool bot_input_read(const TelegramUpdate *update, Arena *arena, GameInput *input);
/* Append the replies. progress_id: the command whose message shows the progress of this update; the answer replaces it.
 * NULL: no progress was shown. */
void bot_messages_add(BotMessages *messages, const GameInput *input, const GameOutput *output, const char *progress_id,
                      Arena *arena);
/* The same with what the user reads after the update has failed. */
void bot_messages_add_failure(BotMessages *messages, const GameInput *input, const Error *why, const char *progress_id,
                              Arena *arena);

#endif
