/*
 * outbox_internal.h - the outbox, shared by the files that queue (outbox.c), send (outbox_send.c) and call the Bot
 * API (outbox_call.c).
 */
#ifndef TELEGRAM_OUTBOX_INTERNAL_H
#define TELEGRAM_OUTBOX_INTERNAL_H

#include "base/sync.h"
#include "telegram/outbox.h"

struct TelegramOutbox {
    Handler               handler; /* first: run() gets its address */
    TelegramOutboxOptions options;
    int64_t               bot_id;
    Mutex                 mutex;    /* guards the rest */
    int                   capacity; /* messages that may be queued before they are counted again */
    Mono                  capacity_until;
    bool                  is_full;    /* and the log says so */
    Mono                  share_next; /* no warning about the share of a chat before */
};

void telegram_outbox_run(Handler *handler, Job *job, SettleItem *ret_settle);
/* Errors as of telegram_call(). */
must_check ErrorCode outbox_call(TelegramBot *bot, const TelegramOutgoing *item, Deadline deadline, Arena *arena,
                                 TelegramAnswer *ret_answer, Error *reterr);

#endif
