/*
 * intake.h - updates into the bus, from a poll or a webhook: each once, whatever delivers it and however often.
 *
 * The id of an update's command follows from the bot's id and update_id; its order key is its chat. What no worker could read (not JSON, no
 * update_id, too large) is counted, logged and acknowledged: a failure would make the server deliver it for ever.
 * Threads: any. Ownership: everything in the options is borrowed.
 */
#ifndef TELEGRAM_INTAKE_H
#define TELEGRAM_INTAKE_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "bus/send.h"
#include "pg/pool.h"

#define TELEGRAM_UPDATE_ATTEMPTS 20

typedef struct {
    Pool   *pool;
    Sender *sender; /* for telegram_intake_one() */
    int64_t bot_id;
} TelegramIntake;

/* Of a webhook, through the sender. OK: it is stored, was stored before, or cannot be. *ret_new: a worker may claim it. */
must_check ErrorCode telegram_intake_one(const TelegramIntake *intake, const char *json, size_t size, Deadline deadline,
                                         Arena *arena, bool *ret_new, Error *reterr);
/* Of a poll: a JSON array of updates, all in one transaction. *ret_last: the greatest update_id, 0: none. *ret_count: of the array. */
must_check ErrorCode telegram_intake_many(const TelegramIntake *intake, const char *json, Deadline deadline,
                                          Arena *arena, int *ret_count, int64_t *ret_last, Error *reterr);

#endif
