/*
 * bot_progress.h - the progress of a long change: one message, which is edited while the change runs and finally replaced by the answer.
 *
 * The change is one transaction, so its progress is queued in others: the message and its edits are commands of the outbox, with the rate and
 * order of all messages of the chat. The id of the message is derived from the update, so an update that is started again, even
 * by another pod, edits the same message.
 *
 * Invariants
 *   1. A change that shows no progress sends nothing more than its answer.
 *   2. Progress that cannot be queued within PROGRESS_QUEUE_MS is skipped; the change is not affected.
 *   3. Edits are no closer than the pace of a group allows (telegram_outbox_pace_ms()).
 * Threads: the handler's. Ownership: the outbox and the pool are borrowed; the bytes of the id are its own.
 */
#ifndef APP_BOT_PROGRESS_H
#define APP_BOT_PROGRESS_H

#include "base/clock.h"
#include "base/uuid.h"
#include "bus/waker.h"
#include "telegram/outbox.h"

#define PROGRESS_QUEUE_MS 2000

typedef struct {
    Pool           *pool;
    TelegramOutbox *outbox;
    Waker          *waker;
    int64_t         bot_id;
    const char     *command_id;                 /* of the update */
    int             attempt;                    /* of the update */
    char            message_id[UUID_TEXT_SIZE]; /* command that sends the message */
    bool            is_shown;                   /* it may be there: the answer takes its place */
    int             count;                      /* queued by this attempt */
    Mono            next;                       /* no edit before */
} BotProgress;

/* is_again: an earlier attempt may have shown some. */
void bot_progress_init(BotProgress *progress, bool is_again);
/* The message, as it would be sent. Later calls edit it. */
void bot_progress_show(BotProgress *progress, const TelegramOutgoing *message);

#endif
