/*
 * bot_game_internal.h - what bot_game.c, bot_input.c, bot_prepare.c and bot_output.c share; see bot_game.h.
 */
#ifndef APP_BOT_GAME_INTERNAL_H
#define APP_BOT_GAME_INTERNAL_H

#include "app/bot_game.h"
#include "rating/game.h"

/* What bot_game_prepare() found out. */
struct BotPrepared {
    Admin admin;
    bool *strangers; /* by link; NULL: none is known to be one */
};

/* false: nothing for the game. Edits are not: an edit of a command is no new command. */
bool bot_input_read(const BotTurn *turn, GameInput *ret_input);
/* The game's replies, as messages of the turn. */
void bot_output_send(BotTurn *turn, const GameInput *input, const GameOutput *output);

#endif
