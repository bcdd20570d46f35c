/*
 * update_batch.c - the transaction of updates: see update_internal.h. One update, or matches of several chats.
 */
#include "bot/update_internal.h"

#include <string.h>

#include "base/fault.h"
#include "base/log.h"
#include "pg/tx.h"
#include "rating/match.h"
#include "sql.h"
#include "telegram/member.h"
#include "telegram/metric.h"

/* Beyond SHARED_MAX a batch saves little. One that waits longer than SHARED_LOCK_MS for a lock is run apart. */
#define SHARED_MAX     128
#define SHARED_SLOW_MS 500
#define SHARED_LOCK_MS 500

typedef struct {
    UpdateHandler *handler;
    BotUpdate    **list;
    int            count;
} UpdateBatch;

/* ---- groups and members ---- */

/* A group has become a supergroup: messages queued for the old id go to the new one. */
static ErrorCode chat_follow(Tx *tx, const BotUpdate *update, Error *reterr)
{
    const TelegramMessage *message = update->parsed.kind == TELEGRAM_MESSAGE ? update->parsed.message : NULL;
    int64_t                from = 0, to = 0;

    if (message && message->migrate_to) {
        from = message->chat.id;
        to   = message->migrate_to;
    } else if (message && message->migrate_from) {
        from = message->migrate_from;
        to   = message->chat.id;
    }
    if (!from || !to || from == to)
        return OK;
    return db_run(tx, sql_telegram_moved, DB_ARGS(db_i64(update->bot_id), db_i64(from), db_i64(to)), NULL, reterr);
}

/* Forget the cached status of a user who was promoted, dismissed, came or left. */
static ErrorCode member_follow(Tx *tx, const BotUpdate *update, Error *reterr)
{
    const TelegramMember *member = update->parsed.kind == TELEGRAM_MEMBER ? update->parsed.member : NULL;

    if (!member || !member->user || !member->user->id || !member->chat.id)
        return OK;
    return telegram_member_forget(tx, update->bot_id, member->chat.id, member->user->id, reterr);
}

/* ---- the game ---- */

/* The match that an undo means by answering a message. */
static ErrorCode reference_read(Tx *tx, const BotUpdate *update, GameInput *input, Error *reterr)
{
    if (input->kind != GAME_MESSAGE || !input->is_reply || !update->operation ||
        strcmp(update->operation, GAME_UNDO) != 0)
        return OK;
    return telegram_reference_find(tx, update->bot_id, input->chat_id, update->parsed.message->reply_to->id,
                                   &input->reply_reference, reterr);
}

/* Finds the messages that the game wants to edit. */
static ErrorCode messages_find(Tx *tx, const BotUpdate *update, GameOutput *output, Error *reterr)
{
    for (int i = 0; i < output->count; i++)
        if (output->list[i].kind == GAME_EDIT_ABOUT)
            TRY(telegram_message_about(tx, update->bot_id, update->input.chat_id, output->list[i].reference,
                                       &output->list[i].message_id, reterr));
    return OK;
}

static const char *progress_id(const BotUpdate *update)
{
    return update->progress.is_shown ? update->progress.message_id : NULL;
}

static void output_take(BotUpdate *update, const GameOutput *output)
{
    update->busy = output->busy;
    bot_messages_add(&update->messages, &update->input, output, progress_id(update), update->job->arena);
}

static ErrorCode batch_play(Tx *tx, const UpdateBatch *batch, Error *reterr)
{
    GameInput  *inputs  = arena_array(tx->arena, GameInput, batch->count);
    GameOutput *outputs = arena_array(tx->arena, GameOutput, batch->count);
    BotUpdate **given   = arena_array(tx->arena, BotUpdate *, batch->count);
    int         all     = 0;

    for (int i = 0; i < batch->count; i++) {
        BotUpdate *update = batch->list[i];

        if (!update->is_game)
            continue;
        inputs[all] = update->input;
        TRY(reference_read(tx, update, &inputs[all], reterr));
        given[all++] = update;
    }
    if (all > 0)
        TRY(game_run(tx, inputs, all, outputs, reterr));
    for (int i = 0; i < all; i++) {
        TRY(messages_find(tx, given[i], &outputs[i], reterr));
        output_take(given[i], &outputs[i]);
    }
    return OK;
}

/* An update that was given up is alone. */
static ErrorCode batch_answer(Tx *tx, const UpdateBatch *batch, Error *reterr)
{
    BotUpdate *first = batch->list[0];
    ErrorCode  code;

    if (first->failure) {
        if (first->is_game)
            bot_messages_add_failure(&first->messages, &first->input, first->failure, progress_id(first),
                                     first->job->arena);
        return OK;
    }
    code            = batch_play(tx, batch, reterr);
    first->conflict = code == ERR_BUSY && (!reterr->sqlstate[0] || strcmp(reterr->sqlstate, MATCH_CONFLICT) == 0);
    if (first->conflict)
        metric_add(&telegram_metrics.handled_conflict, 1);
    return code;
}

/* ---- the end of the transaction ---- */

/* A message that no server would take is a mistake of the game; the update's changes stay. */
static ErrorCode messages_put(Tx *tx, const UpdateBatch *batch, Error *reterr)
{
    TelegramPut *puts = arena_array(tx->arena, TelegramPut, batch->count);
    int          refused;

    for (int i = 0; i < batch->count; i++) {
        const BotUpdate *update = batch->list[i];

        /* By the command, not by update_id: another update may have the same (intake.c). */
        puts[i] = (TelegramPut){.key   = arena_print(tx->arena, "update:%s%s", update->job->command->command_id,
                                                   update->failure ? ":failed" : ""),
                                .items = update->messages.list,
                                .count = update->messages.count,
                                .busy  = update->busy};
    }
    TRY(telegram_outbox_put(batch->handler->options.outbox, tx, puts, batch->count, &refused, reterr));
    for (int i = 0; i < batch->count; i++)
        if (puts[i].error.code != OK)
            log_error(LOG_ERROR, "bot", "a message cannot be sent", &puts[i].error);
    return OK;
}

/* The dead letter of a late update ends with this transaction. */
static ErrorCode letter_settle(Tx *tx, const BotUpdate *update, Error *reterr)
{
    Error why = {0};

    if (!update->is_late)
        return OK;
    if (update->is_unstored) {
        (void)fail(&why, ERR_UNAVAILABLE, "the database was unavailable when the update came");
        TRY(update_letter_keep_in(tx, update, &why, reterr));
    }
    return update_letter_end(tx, update, reterr);
}

static ErrorCode batch_settle(Tx *tx, const UpdateBatch *batch, Error *reterr)
{
    SettleItem **items = arena_array(tx->arena, SettleItem *, batch->count);

    for (int i = 0; i < batch->count; i++) {
        items[i]          = batch->list[i]->settle;
        items[i]->outcome = OUTCOME_COMPLETE;
    }
    TRY(settle_in(tx, items, batch->count, reterr));
    for (int i = 0; i < batch->count; i++) {
        BotUpdate *update = batch->list[i];

        /* The transaction's arena ends before the update does; one notification wakes the workers for all. */
        items[i]->wake = i == 0 ? arena_text(update->job->arena, items[i]->wake) : NULL;
        update->lost   = !items[i]->settled;
        if (update->lost)
            return fail(reterr, ERR_CONFLICT, "lease was lost: command is %s", items[i]->status);
    }
    return OK;
}

static ErrorCode batch_body(Tx *tx, void *context, Error *reterr)
{
    const UpdateBatch *batch = context;

    for (int i = 0; i < batch->count; i++) {
        BotUpdate *update = batch->list[i];

        *update->settle        = update_settle_begin(update);
        update->messages.count = 0;
        update->conflict = update->lost = false;
    }
    TRY(batch_answer(tx, batch, reterr));
    if (FAULT("bot.update.game"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at bot.update.game");
    for (int i = 0; i < batch->count; i++) {
        TRY(chat_follow(tx, batch->list[i], reterr));
        TRY(member_follow(tx, batch->list[i], reterr));
    }
    TRY(messages_put(tx, batch, reterr));
    for (int i = 0; i < batch->count; i++)
        TRY(letter_settle(tx, batch->list[i], reterr));
    return batch_settle(tx, batch, reterr);
}

static ErrorCode batch_run(UpdateBatch *batch, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "update", .deadline = deadline, .arena = arena, .keyed = true};

    if (batch->count > 1) { /* on failure each update runs alone, so that none holds up the others */
        options.name      = "updates";
        options.tries_max = 1;
        options.lock_ms   = SHARED_LOCK_MS;
    }
    return tx_run(batch->handler->options.pool, &options, batch_body, batch, reterr);
}

/* For the combiner. After a failure each update runs again on its own thread. The batch has changed nothing; if
 * only the answer to its commit was lost, the settle of each update finds that out. */
static ErrorCode shared_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    UpdateBatch batch = {.handler = context, .list = (BotUpdate **)items, .count = count};
    ErrorCode   code  = batch_run(&batch, deadline, reterr);

    if (code == OK || count == 1)
        return code;
    for (int i = 0; i < count; i++)
        batch.list[i]->apart = true;
    return OK;
}

Combiner *update_combiner_new(UpdateHandler *handler)
{
    PoolStatus status;

    pool_status(handler->options.pool, &status);
    return combiner_new(&(CombinerOptions){.run       = shared_run,
                                           .context   = handler,
                                           .slots_max = combiner_share(status.size_max, 4),
                                           .slow_ms   = SHARED_SLOW_MS,
                                           .batch_max = SHARED_MAX});
}

/* Matches may share a transaction with those of other chats. Other updates may take long, or wait. */
static bool update_is_shared(const BotUpdate *update)
{
    return !update->is_late && update->parsed.kind == TELEGRAM_MESSAGE && update->operation &&
           strcmp(update->operation, GAME_MATCH) == 0;
}

ErrorCode update_run_tx(BotUpdate *update, Deadline deadline, Error *reterr)
{
    UpdateBatch alone = {.handler = update->handler, .list = &update, .count = 1};
    ErrorCode   code  = OK;

    update->apart = !update_is_shared(update);
    if (!update->apart)
        code = combiner_run(update->handler->combiner, update, deadline, reterr);
    if (code == ERR_BUSY && !reterr->sqlstate[0] && !update->conflict)
        update->apart = true; /* the combiner has no thread for it */
    return update->apart ? batch_run(&alone, deadline, reterr) : code;
}
