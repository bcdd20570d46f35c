/*
 * intake.h - updates into the bus, from a poll or a webhook: each is stored once, however often it is delivered.
 *
 * The id of an update's command is derived from the bot's id and update_id; its order key is its chat. What no worker
 * could parse (not JSON, no update_id, too large) is counted, logged and acknowledged: a failure would make the
 * server deliver it forever. Only the parts that are needed are stored (telegram_update_reduce()). A message that is
 * no command becomes none: of all that members write to each other only the authors are noted, those of a poll
 * together, and before its commands are stored, which may name them.
 * Threads: any. Ownership: everything in the options is borrowed.
 */
#ifndef TELEGRAM_INTAKE_H
#define TELEGRAM_INTAKE_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "bus/send.h"
#include "pg/pool.h"
#include "telegram/update.h"

#define TELEGRAM_UPDATE_ATTEMPTS 20

/* Commands of updates. A late one could not be stored when it first came, and its user was notified. */
#define TELEGRAM_TYPE_UPDATE "update"
#define TELEGRAM_TYPE_LATE   "late_update"

typedef struct {
    Pool   *pool;
    Sender *sender; /* for telegram_intake_one() */
    int64_t bot_id;
    /* Both or neither. */
    void (*on_away)(void *context, const char *json, size_t size, const Error *why); /* the database did not take it */
    bool (*is_late)(void *context, int64_t update_id); /* was on_away() called for it, by this process? */
    void *context;
    /* Stores who wrote these messages, which are no commands (TELEGRAM_USE_AUTHOR). NULL, or not OK: they become
     * commands. It must not wait long. */
    ErrorCode (*on_seen)(Pool *pool, const TelegramUpdate *const *updates, int count, Deadline deadline, Arena *arena,
                         Error *reterr);
} TelegramIntake;

/* From a webhook, through the sender. OK: stored now or before, or no worker could parse it. *ret_new: a worker may
 * claim it. */
must_check ErrorCode telegram_intake_one(const TelegramIntake *intake, const char *json, size_t size, Deadline deadline,
                                         Arena *arena, bool *ret_new, Error *reterr);
/* Of a poll: a JSON array of updates, all in one transaction. *ret_last: the greatest update_id, 0: none.
 * *ret_count: of the array. */
must_check ErrorCode telegram_intake_many(const TelegramIntake *intake, const char *json, Deadline deadline,
                                          Arena *arena, int *ret_count, int64_t *ret_last, Error *reterr);

/* The body of getUpdates that is no JSON as a whole: an array of those updates that are, in the arena. The others
 * are counted and logged. *ret_last: the greatest update_id of those; 0: none. NULL: it has no list of updates. */
const char *telegram_intake_salvage(const char *body, size_t size, Arena *arena, int64_t *ret_last);

#endif
