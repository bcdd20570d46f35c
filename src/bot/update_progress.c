/*
 * update_progress.c - the message that shows the progress of a long change: see update_internal.h.
 */
#include "bot/update_internal.h"

#include <stdio.h>

#include "base/log.h"
#include "pg/tx.h"

#define KEY_BYTES 128
#define QUEUE_MS  2000

typedef struct {
    TelegramOutbox         *outbox;
    const char             *key;
    const TelegramOutgoing *message;
} Queueing;

static void key_of_message(const BotUpdate *update, char *ret_key)
{
    snprintf(ret_key, KEY_BYTES, "update:%s:progress", update->job->command->command_id);
}

static ErrorCode queue_body(Tx *tx, void *context, Error *reterr)
{
    const Queueing *queueing = context;
    TelegramPut     put      = {.key = queueing->key, .items = queueing->message, .count = 1};
    int             refused;

    TRY(telegram_outbox_put(queueing->outbox, tx, &put, 1, &refused, reterr));
    return error_pass(put.error.code, &put.error, reterr);
}

static ErrorCode message_queue(const BotUpdate *update, const char *key, const TelegramOutgoing *message)
{
    const BotUpdateOptions   *options  = &update->handler->options;
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    Queueing                  queueing = {options->outbox, key, message};
    TxOptions queueing_tx = {.name = "progress", .deadline = deadline_in_ms(QUEUE_MS), .arena = arena, .keyed = true};
    Error     error       = {0};
    ErrorCode code        = tx_run(options->pool, &queueing_tx, queue_body, &queueing, &error);

    if (code != OK)
        log_error(LOG_INFO, "bot", "cannot show the progress of an undo", &error);
    return code;
}

/* A GameProgress; context: the BotUpdate. Later calls edit the message. */
static void message_show(void *context, const char *html)
{
    BotUpdate            *update   = context;
    UpdateProgress       *progress = &update->progress;
    const GameInput      *input    = &update->input;
    const ClaimedCommand *command  = update->job->command;
    TelegramOutbox       *outbox   = update->handler->options.outbox;
    TelegramOutgoing      message  = {.method    = TELEGRAM_SEND,
                                      .chat_id   = input->chat_id,
                                      .thread_id = input->topic,
                                      .reply_to  = input->message_id,
                                      .html      = html,
                                      .is_first  = true};
    char                  key[KEY_BYTES], domain[TELEGRAM_DOMAIN_SIZE];
    Mono                  now = clock_mono();

    if (!input->chat_id || mono_before(now, progress->next))
        return;
    progress->next = mono_plus_ms(now, telegram_outbox_pace_ms(outbox));
    key_of_message(update, key);
    /* Queued again by another attempt it is the same command: it is sent once. */
    if (progress->count == 0 && message_queue(update, key, &message) != OK)
        return;
    if (progress->count++ > 0 || progress->is_shown) {
        message.method   = TELEGRAM_EDIT;
        message.reply_to = 0;
        message.replaces = progress->message_id;
        snprintf(key, sizeof key, "update:%s:progress:%d:%d", command->command_id, command->attempt, progress->count);
        (void)message_queue(update, key, &message);
    }
    progress->is_shown = true;
    telegram_domain_outbox(update->bot_id, domain);
    waker_notify(update->handler->options.waker, domain);
}

void update_progress_init(BotUpdate *update)
{
    UpdateProgress *progress = &update->progress;
    char            key[KEY_BYTES];

    key_of_message(update, key);
    telegram_outbox_id(update->handler->options.outbox, key, 0, progress->message_id);
    progress->is_shown             = update->job->command->attempt > 1; /* an earlier attempt may have shown some */
    progress->next                 = clock_mono();
    update->input.progress         = message_show;
    update->input.progress_context = update;
}
