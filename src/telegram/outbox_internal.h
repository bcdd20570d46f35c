/*
 * outbox_internal.h - the outbox, shared by the file that queues (outbox.c) and the one that sends (outbox_send.c).
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

#endif
