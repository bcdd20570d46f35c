/*
 * update_letter.c - dead letters of the bot: see update_internal.h.
 */
#include "bot/update_internal.h"

#include "base/problem.h"
#include "base/text.h"
#include "base/writer.h"
#include "bot/bot.h"
#include "pg/tx.h"
#include "sql.h"
#include "telegram/markup.h"

#define TEXT_SHOWN_MAX 200

/* What an operator wants to see; the task of dead letters reads bot_id and command_id. */
static const char *data_write(const BotUpdate *update)
{
    const TelegramUpdate *parsed = &update->parsed;
    const char           *words  = parsed->kind == TELEGRAM_CALLBACK ? parsed->callback->data : parsed->message->text;
    Arena                *arena  = update->job->arena;
    Text                  text;
    Writer                writer;

    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    writer_i64(&writer, "bot_id", update->bot_id);
    writer_i64(&writer, "update_id", parsed->id);
    writer_i64(&writer, "chat_id", telegram_update_chat(parsed));
    writer_text(&writer, "command_id", update->job->command->command_id);
    writer_text(&writer, "text", words ? telegram_shorten(words, TEXT_SHOWN_MAX, arena) : NULL);
    writer_end(&writer);
    return text_string(&text);
}

#define KEEP_ARGS(update, why)                                                                                  \
    DB_ARGS(db_i64((update)->bot_id), db_i64((update)->parsed.id), db_uuid((update)->job->command->command_id), \
            db_text((update)->operation), db_jsonb(data_write(update)), db_text(problem_stored(why)),           \
            db_text((why)->sqlstate[0] ? (why)->sqlstate : error_type(why)))

ErrorCode update_letter_keep(const BotUpdate *update, Deadline deadline, const Error *why, Error *reterr)
{
    TxOptions options = {.name = "letter", .deadline = deadline, .arena = update->job->arena, .keyed = true};
    int64_t   kept;

    if (!update->operation)
        return OK;
    return db_call(update->handler->options.pool, &options, sql_bot_letter_keep, KEEP_ARGS(update, why), &db_i64_shape,
                   &kept, reterr);
}

ErrorCode update_letter_keep_in(Tx *tx, const BotUpdate *update, const Error *why, Error *reterr)
{
    int64_t kept;

    return update->operation ? db_get_i64(tx, sql_bot_letter_keep, KEEP_ARGS(update, why), &kept, reterr) : OK;
}

ErrorCode update_letter_end(Tx *tx, const BotUpdate *update, Error *reterr)
{
    const Error *why = update->failure;

    if (!update->operation)
        return OK;
    return db_run(tx, sql_bot_letter_end,
                  DB_ARGS(db_i64(update->bot_id), db_i64(update->parsed.id), db_text(why ? problem_stored(why) : NULL)),
                  NULL, reterr);
}

ErrorCode bot_letter_retry(Tx *tx, const char *key, const char *data, void *context, Error *reterr)
{
    int64_t done;

    (void)key;
    (void)context;
    TRY(db_get_i64(tx, sql_bot_letter_done, DB_ARGS(db_jsonb(data)), &done, reterr));
    return done ? OK : fail(reterr, ERR_CONFLICT, "its update waits in its chat: see pawl command show");
}
