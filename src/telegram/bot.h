/*
 * bot.h - calls of the Bot API of one bot, over the HTTP client.
 *
 * Invariants
 *   1. The token is part of each URL and appears nowhere else: no error and no log contains more of a URL than its
 *      host.
 *   2. Answers are judged by status and body together. A body that is not a response of the Bot API (plain text,
 *      other JSON) is judged by its status; 200 with ok:false by its error_code. A result that is null or lacks
 *      fields is not a failure.
 * Threads: any. Ownership: answers live in the arena given.
 */
#ifndef TELEGRAM_BOT_H
#define TELEGRAM_BOT_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "client/client.h"

#define TELEGRAM_API_ROOT "https://api.telegram.org"

#define TELEGRAM_RETRY_MS_MAX INT64_C(315360000000) /* ten years: a longer retry_after is cut to it */

typedef struct TelegramBot TelegramBot;

/* ERR_USAGE: empty, or with characters that no token has. */
must_check ErrorCode telegram_token_check(const char *token, Error *reterr);
/* ERR_USAGE: no URL. */
must_check ErrorCode telegram_root_check(const char *root, Error *reterr);
/* "NUMBER:SECRET", as Telegram's own server has it. */
bool telegram_token_is_botfathers(const char *token);
/* The number in front of a token's colon; of a token without one, a number made from it. */
int64_t telegram_token_id(const char *token);

/* root NULL: TELEGRAM_API_ROOT. ERR_USAGE: a root that is no URL, or an empty or malformed token. */
must_check ErrorCode telegram_bot_new(const char *token, const char *root, TelegramBot **ret_bot, Error *reterr);
void                 telegram_bot_free(TelegramBot *bot);
SCOPED(TelegramBot, telegram_bot_free)
/* Calls under way, and later ones, end with ERR_STOPPING within about a second. */
void    telegram_bot_stop(TelegramBot *bot);
int64_t telegram_bot_id(const TelegramBot *bot);

typedef struct {
    const char *name, *value; /* value NULL: left out */
    bool        is_json;      /* value is JSON, not text */
} TelegramField;
typedef struct {
    const char *field, *name, *type; /* "photo", "chart.png", "image/png" */
    const void *bytes;
    size_t      size;
} TelegramFile;

typedef struct {
    const char          *method;
    const TelegramField *fields; /* ended by a NULL name */
    const TelegramFile  *file;   /* NULL: none, and the body is JSON */
    Deadline             deadline;
} TelegramCall;

typedef struct {
    int         status;     /* HTTP's, or error_code */
    const char *result;     /* JSON; "null" if there is none */
    int64_t     retry_ms;   /* of a 429, as the body says, else the header; 0: neither does */
    int64_t     migrate_to; /* the chat has this id now; 0: it has not moved */
    const char *description;
    const char *body; /* of a 2xx that is no answer of the Bot API; NULL: it is one */
    size_t      body_size;
} TelegramAnswer;

/*
 * OK: the server did it. ERR_RATE: 429. ERR_REFUSED: any other 4xx, it would be refused again. ERR_UNAVAILABLE: 5xx,
 * a 2xx that is no answer of the Bot API, or not reached: nothing was done. ERR_UNKNOWN, ERR_TIMEOUT, ERR_LIMIT,
 * ERR_STOPPING as client_send(). *ret_answer is filled, zeros if none came.
 */
must_check ErrorCode telegram_call(TelegramBot *bot, const TelegramCall *call, Arena *arena, TelegramAnswer *ret_answer,
                                   Error *reterr);

/* getChatMember: "creator", "administrator", "member", "restricted", "left", "kicked"; "": unknown. */
must_check ErrorCode telegram_get_member(TelegramBot *bot, int64_t chat_id, int64_t user_id, Deadline deadline,
                                         Arena *arena, const char **ret_status, Error *reterr);

#endif
