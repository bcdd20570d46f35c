/*
 * intake.c - see intake.h.
 */
#include "telegram/intake.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "telegram/metric.h"
#include "telegram/outbox.h"
#include "telegram/update.h"
#include "telegram/wire.h"

#define UPDATES_MAX 1000 /* of one poll; the Bot API gives 100 */

static void malformed_log(const Error *error)
{
    metric_add(&telegram_metrics.updates_malformed, 1);
    log_error(LOG_WARN, "telegram", "an update cannot be read and is left out", error);
}

/* json lives in the arena, with a NUL behind. false: it is not to be sent. */
static bool item_make(const TelegramIntake *intake, const char *json, size_t size, Arena *arena, SendItem *ret_item,
                      int64_t *ret_id)
{
    TelegramUpdate update;
    Error          error = {0};
    char           domain[TELEGRAM_DOMAIN_SIZE];
    char          *id = arena_alloc(arena, UUID_TEXT_SIZE);

    if (telegram_update_parse(json, size, arena, &update, &error) != OK) {
        malformed_log(&error);
        return false;
    }
    *ret_id      = update.id;
    int64_t chat = telegram_update_chat(&update);

    telegram_uuid(arena_print(arena, "telegram:%" PRId64 ":update:%" PRId64, intake->bot_id, update.id), id);
    telegram_domain_updates(intake->bot_id, domain);
    *ret_item = (SendItem){.domain       = arena_text(arena, domain),
                           .type         = "update",
                           .payload      = json,
                           .command_id   = id,
                           .priority     = SEND_DEFAULT,
                           .max_attempts = TELEGRAM_UPDATE_ATTEMPTS,
                           .order_key    = chat ? arena_print(arena, "%" PRId64, chat) : NULL};
    if (send_check(ret_item, &error) == OK)
        return true;
    malformed_log(&error);
    return false;
}

/* The verdict of an item; OK: it need not be sent again. */
static ErrorCode item_judge(const SendItem *item, bool *ret_new, Error *reterr)
{
    *ret_new = item->code == OK && item->is_new;
    if (item->code == OK || item->code == ERR_KEY_REUSED) {
        metric_add(*ret_new ? &telegram_metrics.updates_new : &telegram_metrics.updates_known, 1);
        return OK;
    }
    if (item->code == ERR_INVALID || item->code == ERR_LIMIT) {
        malformed_log(&item->error);
        return OK;
    }
    if (reterr)
        *reterr = item->error;
    return item->code;
}

ErrorCode telegram_intake_one(const TelegramIntake *intake, const char *json, size_t size, Deadline deadline,
                              Arena *arena, bool *ret_new, Error *reterr)
{
    SendItem item;
    int64_t  id;

    *ret_new = false;
    if (!arena_has_space(arena, size + 1))
        return fail(reterr, ERR_LIMIT, "the update is too large");
    if (!item_make(intake, arena_bytes(arena, json, size), size, arena, &item, &id))
        return OK;
    ErrorCode code = sender_send(intake->sender, deadline, &item, reterr);

    if (code != OK && item.code == OK) /* not a verdict of the item's own */
        return code;
    item.code = code;
    if (code != OK && reterr)
        item.error = *reterr;
    return item_judge(&item, ret_new, reterr);
}

/* ---- polls ---- */

/* One that PostgreSQL cannot read fails all that are sent with it: then each is sent alone. */
static ErrorCode items_send(const TelegramIntake *intake, SendItem **items, int count, Deadline deadline, Arena *arena,
                            Error *reterr)
{
    ErrorCode code = send_many(intake->pool, deadline, arena, items, count, reterr);

    if (code != ERR_INVALID && code != ERR_LIMIT)
        return code;
    if (count == 1) {
        items[0]->code  = code;
        items[0]->error = reterr ? *reterr : (Error){0};
        return OK;
    }
    for (int i = 0; i < count; i++)
        TRY(items_send(intake, &items[i], 1, deadline, arena, reterr));
    return OK;
}

ErrorCode telegram_intake_many(const TelegramIntake *intake, const char *json, Deadline deadline, Arena *arena,
                               int *ret_count, int64_t *ret_last, Error *reterr)
{
    SendItem  *list  = arena_array(arena, SendItem, UPDATES_MAX);
    SendItem **items = arena_array(arena, SendItem *, UPDATES_MAX);
    int        count = 0, seen = 0;
    int64_t    last = 0;
    bool       is_new;

    for (const char *item = NULL; seen < UPDATES_MAX && wire_next(wire_open(json), &item); seen++) {
        const char *raw = wire_raw(item, arena);
        int64_t     id  = wire_i64(wire_member(item, "update_id"));

        last = id > last ? id : last;
        if (item_make(intake, raw, strlen(raw), arena, &list[count], &id)) {
            items[count] = &list[count];
            count++;
        }
    }
    if (count)
        TRY(items_send(intake, items, count, deadline, arena, reterr));
    for (int i = 0; i < count; i++)
        TRY(item_judge(items[i], &is_new, reterr));
    *ret_count = seen;
    *ret_last  = last;
    return OK;
}
