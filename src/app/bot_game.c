/*
 * bot_game.c - see bot_game.h. No game is joined yet: updates are stored, ordered and done, groups that move are followed, and messages that
 * applications queue in the outbox are sent.
 */
#include "app/bot_game.h"

const TelegramCommand bot_game_commands[] = {{0}};

ErrorCode bot_game_prepare(BotTurn *turn, Error *reterr)
{
    (void)turn;
    (void)reterr;
    return OK;
}

ErrorCode bot_game_update(Tx *tx, BotTurn *turn, Error *reterr)
{
    (void)tx;
    (void)turn;
    (void)reterr;
    return OK;
}

void bot_game_failed(BotTurn *turn, const Error *why)
{
    (void)turn;
    (void)why;
}
