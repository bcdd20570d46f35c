/*
 * bot_progress.c - see bot_progress.h.
 */
#include "app/bot_progress.h"

#include <stdio.h>

#include "base/log.h"
#include "pg/tx.h"

#define KEY_BYTES 128

typedef struct {
    TelegramOutbox         *outbox;
    const char             *key;
    const TelegramOutgoing *message;
} Queueing;

static void key_of_message(const BotProgress *progress, char *ret_key)
{
    snprintf(ret_key, KEY_BYTES, "update:%s:progress", progress->command_id);
}

void bot_progress_init(BotProgress *progress, bool is_again)
{
    char key[KEY_BYTES];

    key_of_message(progress, key);
    telegram_outbox_id(progress->outbox, key, 0, progress->message_id);
    progress->is_shown = is_again;
    progress->count    = 0;
    progress->next     = clock_mono();
}

static ErrorCode queue_body(Tx *tx, void *context, Error *reterr)
{
    const Queueing *queueing = context;
    TelegramPut     put      = {.key = queueing->key, .items = queueing->message, .count = 1};
    int             refused;

    TRY(telegram_outbox_put(queueing->outbox, tx, &put, 1, &refused, reterr));
    if (put.error.code != OK)
        *reterr = put.error;
    return put.error.code;
}

static ErrorCode message_queue(const BotProgress *progress, const char *key, const TelegramOutgoing *message)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    Queueing                  queueing = {progress->outbox, key, message};
    TxOptions                 options  = {.name     = "progress",
                                          .deadline = deadline_in_ms(PROGRESS_QUEUE_MS),
                                          .arena    = arena,
                                          .keyed    = true};
    Error                     error    = {0};
    ErrorCode                 code     = tx_run(progress->pool, &options, queue_body, &queueing, &error);

    if (code != OK)
        log_error(LOG_INFO, "bot", "progress is not shown", &error);
    return code;
}

void bot_progress_show(BotProgress *progress, const TelegramOutgoing *message)
{
    TelegramOutgoing edit = *message;
    char             key[KEY_BYTES], domain[TELEGRAM_DOMAIN_SIZE];
    Mono             now = clock_mono();

    if (mono_before(now, progress->next))
        return;
    progress->next = mono_plus_ms(now, telegram_outbox_pace_ms(progress->outbox));
    key_of_message(progress, key);
    /* Queued again by another attempt it is the same command: it is sent once. */
    if (progress->count == 0 && message_queue(progress, key, message) != OK)
        return;
    if (progress->count++ > 0 || progress->is_shown) {
        edit.method   = TELEGRAM_EDIT;
        edit.reply_to = 0;
        edit.replaces = progress->message_id;
        snprintf(key, sizeof key, "update:%s:progress:%d:%d", progress->command_id, progress->attempt, progress->count);
        (void)message_queue(progress, key, &edit);
    }
    progress->is_shown = true;
    telegram_domain_outbox(progress->bot_id, domain);
    waker_notify(progress->waker, domain);
}
