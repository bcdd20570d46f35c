/*
 * bot_letter.h - dead letters of the bot: matches and undos that wait because the database failed (sql/telegram/letter.sql).
 *
 * The update stays queued at its position in its chat and is retried; the letter shows operators that it waits. It is written when
 * the database is available again, before the next attempt, and resolved in the transaction that completes the update.
 * Threads: any. Ownership: borrowed.
 */
#ifndef APP_BOT_LETTER_H
#define APP_BOT_LETTER_H

#include "app/bot_game.h"
#include "bus/claim.h"
#include "bus/dead_letter.h"

/* One operation of an update; NULL type: it changes nothing that needs a letter, and the functions do nothing. */
typedef struct {
    const char *type;
    int64_t     bot_id, update_id;
    const char *command_id;
    const char *data;
} BotLetter;

BotLetter            bot_letter_of(BotTurn *turn, const ClaimedCommand *command);
must_check ErrorCode bot_letter_keep(Pool *pool, Deadline deadline, Arena *arena, const BotLetter *letter,
                                     const Error *why, Error *reterr);
must_check ErrorCode bot_letter_keep_in(Tx *tx, const BotLetter *letter, const Error *why, Error *reterr);
/* It is done. why: it was given up. */
must_check ErrorCode bot_letter_end(Tx *tx, const BotLetter *letter, const Error *why, Error *reterr);

/* The try of a letter by the task of dead letters: OK when its update has ended. */
DeadLetterHandler bot_letter_retry;

#endif
