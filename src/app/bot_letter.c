/*
 * bot_letter.c - see bot_letter.h.
 */
#include "app/bot_letter.h"

#include "base/problem.h"
#include "base/text.h"
#include "base/writer.h"
#include "pg/tx.h"
#include "sql.h"
#include "telegram/markup.h"

#define TEXT_SHOWN_MAX 200

/* What an operator wants to see; the task reads bot_id and command_id. */
static const char *data_write(const BotTurn *turn, const ClaimedCommand *command)
{
    const TelegramUpdate *update = turn->update;
    const char           *words  = update->kind == TELEGRAM_CALLBACK ? update->callback->data : update->message->text;
    Text                  text;
    Writer                writer;

    text_init(&text, turn->arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    writer_i64(&writer, "bot_id", turn->bot_id);
    writer_i64(&writer, "update_id", update->id);
    writer_i64(&writer, "chat_id", telegram_update_chat(update));
    writer_text(&writer, "command_id", command->command_id);
    writer_text(&writer, "text", words ? telegram_shorten(words, TEXT_SHOWN_MAX, turn->arena) : NULL);
    writer_end(&writer);
    return text_string(&text);
}

BotLetter bot_letter_of(BotTurn *turn, const ClaimedCommand *command)
{
    const char *type = bot_game_operation(turn);

    return (BotLetter){.type       = type,
                       .bot_id     = turn->bot_id,
                       .update_id  = turn->update->id,
                       .command_id = command->command_id,
                       .data       = type ? data_write(turn, command) : NULL};
}

#define KEEP_ARGS(letter, why)                                                                    \
    DB_ARGS(db_i64((letter)->bot_id), db_i64((letter)->update_id), db_uuid((letter)->command_id), \
            db_text((letter)->type), db_jsonb((letter)->data), db_text(problem_stored(why)),      \
            db_text((why)->sqlstate[0] ? (why)->sqlstate : error_type(why)))

ErrorCode bot_letter_keep(Pool *pool, Deadline deadline, Arena *arena, const BotLetter *letter, const Error *why,
                          Error *reterr)
{
    TxOptions options = {.name = "letter", .deadline = deadline, .arena = arena, .keyed = true};
    int64_t   kept;

    if (!letter->type)
        return OK;
    return db_call(pool, &options, sql_telegram_letter_keep, KEEP_ARGS(letter, why), &db_i64_shape, &kept, reterr);
}

ErrorCode bot_letter_keep_in(Tx *tx, const BotLetter *letter, const Error *why, Error *reterr)
{
    int64_t kept;

    return letter->type ? db_get_i64(tx, sql_telegram_letter_keep, KEEP_ARGS(letter, why), &kept, reterr) : OK;
}

ErrorCode bot_letter_end(Tx *tx, const BotLetter *letter, const Error *why, Error *reterr)
{
    if (!letter->type)
        return OK;
    return db_run(tx, sql_telegram_letter_end,
                  DB_ARGS(db_i64(letter->bot_id), db_i64(letter->update_id), db_text(why ? problem_stored(why) : NULL)),
                  NULL, reterr);
}

ErrorCode bot_letter_retry(Tx *tx, const char *key, const char *data, void *context, Error *reterr)
{
    int64_t done;

    (void)key;
    (void)context;
    TRY(db_get_i64(tx, sql_telegram_letter_done, DB_ARGS(db_jsonb(data)), &done, reterr));
    return done ? OK : fail(reterr, ERR_CONFLICT, "its update waits in its chat: see pawl command show");
}
