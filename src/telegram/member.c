/*
 * member.c - see member.h.
 */
#include "telegram/member.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "pg/tx.h"
#include "sql.h"
#include "telegram/metric.h"

#define QUERY_MS    2000
#define WAIT_MS_MAX 400 /* for a reserved time */

#define KEPT_COLUMNS(X, T) \
    X(T, TEXT, status)     \
    X(T, BOOL, may_ask)
DB_ROW(Kept, KEPT_COLUMNS);
DB_SHAPE(kept, Kept, KEPT_COLUMNS);

#define PLACE_COLUMNS(X, T) \
    X(T, I64, wait_ms)      \
    X(T, BOOL, is_reserved)
DB_ROW(Place, PLACE_COLUMNS);
DB_SHAPE(place, Place, PLACE_COLUMNS);

static TxOptions options_of(const char *name, Arena *arena)
{
    return (TxOptions){.name = name, .deadline = deadline_in_ms(QUERY_MS), .arena = arena, .keyed = true};
}

static void status_keep(const TelegramMemberAsk *ask, const char *status, Arena *arena)
{
    TxOptions options = options_of("member-put", arena);
    Error     error   = {0};
    char     *none;

    if (db_call(ask->pool, &options, sql_telegram_member_put,
                DB_ARGS(db_i64(telegram_bot_id(ask->bot)), db_i64(ask->chat_id), db_i64(ask->user_id), db_text(status)),
                &db_text_shape, &none, &error) != OK)
        log_error(LOG_WARN, "telegram", "cannot store the status of a member", &error);
}

static void on_limited(const TelegramMemberAsk *ask, const Error *limited, Arena *arena)
{
    TxOptions options = options_of("ask-limited", arena);
    Error     error   = {0};
    int64_t   wait_ms = limited->retry_ms;

    metric_add(&telegram_metrics.sent_limited, 1);
    if (db_call(ask->pool, &options, sql_telegram_ask_limited,
                DB_ARGS(db_i64(telegram_bot_id(ask->bot)), db_i64(limited->retry_ms)), &db_i64_shape, &wait_ms,
                &error) != OK)
        log_error(LOG_WARN, "telegram", "cannot store that the server asks for fewer questions about members", &error);
    log_write(LOG_WARN, "telegram", "the server asks for fewer questions about members", LOG_INT("wait_ms", wait_ms));
}

/* Is "id": NUMBER somewhere in the list of administrators? Users are the only objects with an id there. */
static bool list_has(const char *json, int64_t user_id)
{
    while ((json = strstr(json, "\"id\""))) {
        json += strlen("\"id\"");
        json += strspn(json, " \t\r\n:");
        if (strtoll(json, NULL, 10) == user_id)
            return true;
    }
    return false;
}

static ErrorCode status_by_list(const TelegramMemberAsk *ask, Arena *arena, const char **ret_status, Error *reterr)
{
    TelegramField fields[] = {
        {"chat_id", arena_print(arena, "%lld", (long long)ask->chat_id), .is_json = true},
        {NULL}
    };
    TelegramCall   call   = {.method = "getChatAdministrators", .fields = fields, .deadline = ask->deadline};
    TelegramAnswer answer = {0};

    TRY(telegram_call(ask->bot, &call, arena, &answer, reterr));
    if (answer.result && answer.result[0] == '[')
        *ret_status = list_has(answer.result, ask->user_id) ? "administrator" : "member";
    return OK;
}

/* getChatMember is certain only where the bot is an administrator; the list of administrators can always be read. */
static ErrorCode status_ask(const TelegramMemberAsk *ask, Arena *arena, const char **ret_status, Error *reterr)
{
    ErrorCode code =
        telegram_get_member(ask->bot, ask->chat_id, ask->user_id, ask->deadline, arena, ret_status, reterr);

    if (code == ERR_RATE || (code == OK && (*ret_status)[0]))
        return code;
    *ret_status = "";
    *reterr     = (Error){0};
    return status_by_list(ask, arena, ret_status, reterr);
}

/* Questions count against the bot's rate, so that they cause no 429 for its messages. false: not now. */
static bool place_take(const TelegramMemberAsk *ask, Arena *arena)
{
    TxOptions options = options_of("pace-ask", arena);
    Error     error   = {0};
    Place     place;

    if (db_call(ask->pool, &options, sql_telegram_pace_ask,
                DB_ARGS(db_i64(telegram_bot_id(ask->bot)), db_i32(ask->per_second), db_i32(WAIT_MS_MAX)), &place_shape,
                &place, &error) != OK ||
        !place.is_reserved)
        return false;
    if (place.wait_ms > 0)
        clock_sleep_ms((int)place.wait_ms);
    return true;
}

const char *telegram_member_status(const TelegramMemberAsk *ask, Arena *arena)
{
    TxOptions   options = options_of("member-get", arena);
    const char *status  = "";
    Error       error   = {0};
    Kept        kept;

    if (db_call(ask->pool, &options, sql_telegram_member_get,
                DB_ARGS(db_i64(telegram_bot_id(ask->bot)), db_i64(ask->chat_id), db_i64(ask->user_id)), &kept_shape,
                &kept, &error) != OK)
        return ""; /* the update fails for the same reason, and is handled again */
    if (kept.status || !kept.may_ask)
        return kept.status ? kept.status : "";
    if (!place_take(ask, arena))
        return "";
    if (status_ask(ask, arena, &status, &error) == ERR_RATE) {
        on_limited(ask, &error, arena);
        return "";
    }
    status_keep(ask, status, arena);
    return status;
}

ErrorCode telegram_member_forget(Tx *tx, int64_t bot_id, int64_t chat_id, int64_t user_id, Error *reterr)
{
    return db_run(tx, sql_telegram_member_forget, DB_ARGS(db_i64(bot_id), db_i64(chat_id), db_i64(user_id)), NULL,
                  reterr);
}
