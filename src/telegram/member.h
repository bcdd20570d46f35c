/*
 * member.h - the status of a user in a chat: what the server says, kept in the database for two minutes.
 *
 * Invariants: a user who repeats a command causes one request to the server. A 429 delays the requests of all pods
 * for as long as the server says; meanwhile a status that is not cached is unknown.
 * Threads: any. Ownership: the pool and the bot are borrowed; texts are in the arena.
 */
#ifndef TELEGRAM_MEMBER_H
#define TELEGRAM_MEMBER_H

#include "pg/pool.h"
#include "pg/query.h"
#include "telegram/bot.h"

typedef struct {
    Pool        *pool;
    TelegramBot *bot;
    int64_t      chat_id, user_id;
    int          per_second; /* calls of all pods, see pawl.telegram_pace */
    Deadline     deadline;   /* of the questions */
} TelegramMemberAsk;

/* "creator", "administrator", "member", "restricted", "left", "kicked", or "": not known. */
const char *telegram_member_status(const TelegramMemberAsk *ask, Arena *arena);
/* The status has changed: it is asked for again. */
must_check ErrorCode telegram_member_forget(Tx *tx, int64_t bot_id, int64_t chat_id, int64_t user_id, Error *reterr);

#endif
