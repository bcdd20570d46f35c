/*
 * intake.c - see intake.h.
 */
#include "telegram/intake.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/scan.h"
#include "base/text.h"
#include "base/value.h"
#include "telegram/metric.h"
#include "telegram/outbox.h"
#include "telegram/update.h"

#define UPDATES_MAX 1000        /* of one poll; the Bot API gives 100 */
#define BETWEEN     " \t\r\n,:" /* what is between JSON values */

static void malformed_log(const Error *error)
{
    metric_add(&telegram_metrics.updates_malformed, 1);
    log_error(LOG_WARN, "telegram", "skipping an update that cannot be read", error);
}

/* An update that came. */
typedef struct {
    TelegramUpdate update;
    const char    *json;
    int            place; /* in the list that it came in */
} Arrival;

/* json lives in the arena, with a NUL behind. false: it cannot be read. */
static bool arrival_read(const char *json, size_t size, Arena *arena, Arrival *ret_arrival)
{
    Error error = {0};

    ret_arrival->json = json;
    if (telegram_update_parse(json, size, arena, &ret_arrival->update, &error) == OK)
        return true;
    malformed_log(&error);
    return false;
}

/* Those that remain are to become commands. */
static int arrivals_note(const TelegramIntake *intake, Arrival *list, int count, Deadline deadline, Arena *arena)
{
    const TelegramUpdate **seen  = arena_array(arena, const TelegramUpdate *, count + 1);
    Error                  error = {0};
    int                    all = 0, kept = 0;

    if (!intake->on_seen)
        return count;
    for (int i = 0; i < count; i++)
        if (telegram_update_use(&list[i].update) == TELEGRAM_USE_AUTHOR)
            seen[all++] = &list[i].update;
    bool is_noted = all == 0 || intake->on_seen(intake->pool, seen, all, deadline, arena, &error) == OK;

    if (!is_noted)
        log_error(LOG_DEBUG, "telegram", "cannot store the authors of messages now; they become commands", &error);
    for (int i = 0; i < count; i++) {
        TelegramUse use = telegram_update_use(&list[i].update);

        if (use == TELEGRAM_USE_WHOLE || (use == TELEGRAM_USE_AUTHOR && !is_noted))
            list[kept++] = list[i];
    }
    metric_add(&telegram_metrics.updates_noted, count - kept);
    return kept;
}

/* false: it is not to be sent. */
static bool item_make(const TelegramIntake *intake, const Arrival *arrival, Arena *arena, SendItem *ret_item)
{
    int64_t update_id = arrival->update.id, chat = telegram_update_chat(&arrival->update);
    bool    is_late = intake->is_late && intake->is_late(intake->context, update_id);
    Error   error   = {0};
    char    domain[TELEGRAM_DOMAIN_SIZE];
    char   *id = arena_alloc(arena, UUID_TEXT_SIZE);

    telegram_uuid(arena_print(arena, "telegram:%" PRId64 ":update:%" PRId64, intake->bot_id, update_id), id);
    telegram_domain_updates(intake->bot_id, domain);
    *ret_item = (SendItem){.domain       = arena_text(arena, domain),
                           .type         = is_late ? TELEGRAM_TYPE_LATE : TELEGRAM_TYPE_UPDATE,
                           .payload      = telegram_update_reduce(&arrival->update, arrival->json, arena),
                           .command_id   = id,
                           .priority     = SEND_DEFAULT,
                           .max_attempts = TELEGRAM_UPDATE_ATTEMPTS,
                           .order_key    = chat ? arena_print(arena, "%" PRId64, chat) : NULL};
    if (send_check(ret_item, &error) == OK)
        return true;
    malformed_log(&error);
    return false;
}

/* Was its id used by another update? Servers may begin anew with their numbers. */
static bool is_other(const SendItem *item)
{
    return item->code == ERR_KEY_REUSED && strstr(item->error.text, "payload");
}

/* Under an id of its content. */
static void item_rename(const TelegramIntake *intake, Arena *arena, SendItem *item)
{
    char *id = arena_alloc(arena, UUID_TEXT_SIZE);

    log_error(LOG_WARN, "telegram", "an update has the id of another one, and is stored under one of its own",
              &item->error);
    telegram_uuid(arena_print(arena, "telegram:%" PRId64 ":content:%s", intake->bot_id, item->payload), id);
    item->command_id = id;
    item->code       = OK;
    item->error      = (Error){0};
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
    return error_pass(item->code, &item->error, reterr);
}

static bool is_away(ErrorCode code)
{
    return code == ERR_UNAVAILABLE || code == ERR_UNKNOWN || code == ERR_TIMEOUT || code == ERR_BUSY;
}

static ErrorCode item_away(const TelegramIntake *intake, const SendItem *item, ErrorCode code, const Error *why)
{
    if (is_away(code) && intake->on_away)
        intake->on_away(intake->context, item->payload, strlen(item->payload), why);
    return code;
}

ErrorCode telegram_intake_one(const TelegramIntake *intake, const char *json, size_t size, Deadline deadline,
                              Arena *arena, bool *ret_new, Error *reterr)
{
    SendItem item;
    Arrival  arrival = {0};
    Error    error   = {0};

    *ret_new = false;
    if (!arena_has_space(arena, size + 1))
        return fail(reterr, ERR_LIMIT, "the update is too large");
    if (!arrival_read(arena_bytes(arena, json, size), size, arena, &arrival) ||
        arrivals_note(intake, &arrival, 1, deadline, arena) == 0 || !item_make(intake, &arrival, arena, &item))
        return OK;
    ErrorCode code = sender_send(intake->sender, deadline, &item, &error);

    if (is_other(&item)) {
        item_rename(intake, arena, &item);
        error = (Error){0};
        code  = sender_send(intake->sender, deadline, &item, &error);
    }
    if (code != OK && reterr)
        *reterr = error;
    if (code != OK && item.code == OK) /* not a verdict of the item's own */
        return item_away(intake, &item, code, &error);
    item.code = code;
    if (code != OK)
        item.error = error;
    return item_away(intake, &item, item_judge(&item, ret_new, reterr), &item.error);
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

static ErrorCode items_store(const TelegramIntake *intake, SendItem **items, int count, Deadline deadline, Arena *arena,
                             Error *reterr)
{
    SendItem **others  = arena_array(arena, SendItem *, count);
    int        renamed = 0;

    TRY(items_send(intake, items, count, deadline, arena, reterr));
    for (int i = 0; i < count; i++)
        if (is_other(items[i])) {
            item_rename(intake, arena, items[i]);
            others[renamed++] = items[i];
        }
    return renamed ? items_send(intake, others, renamed, deadline, arena, reterr) : OK;
}

/* By their ids, which follow the order in the chats. Servers other than Telegram's may send them in another order. */
static int arrival_compare(const void *a, const void *b)
{
    const Arrival *left = a, *right = b;

    if (left->update.id != right->update.id)
        return left->update.id < right->update.id ? -1 : 1;
    return left->place - right->place;
}

/* *ret_seen: how many the array has; *ret_last: the greatest id of them. */
static int arrivals_read(const char *json, Arrival *list, Arena *arena, int *ret_seen, int64_t *ret_last)
{
    Value updates = value_trim(json, strlen(json)), item;
    int   count = 0, seen = 0;

    *ret_last = 0;
    for (const char *at = NULL; seen < UPDATES_MAX && value_item_next(updates, &at, &item); seen++) {
        const char *raw = value_raw(item, arena);
        int64_t     id  = value_i64(value_field(item, "update_id"));

        *ret_last   = id > *ret_last ? id : *ret_last;
        list[count] = (Arrival){.place = seen};
        count += arrival_read(raw, item.size, arena, &list[count]);
    }
    qsort(list, (size_t)count, sizeof *list, arrival_compare);
    *ret_seen = seen;
    return count;
}

ErrorCode telegram_intake_many(const TelegramIntake *intake, const char *json, Deadline deadline, Arena *arena,
                               int *ret_count, int64_t *ret_last, Error *reterr)
{
    Arrival   *arrivals = arena_array(arena, Arrival, UPDATES_MAX);
    SendItem  *list     = arena_array(arena, SendItem, UPDATES_MAX);
    SendItem **items    = arena_array(arena, SendItem *, UPDATES_MAX);
    int        count    = 0, seen;
    int64_t    last;
    bool       is_new;
    Error      error = {0};
    int all = arrivals_note(intake, arrivals, arrivals_read(json, arrivals, arena, &seen, &last), deadline, arena);

    for (int i = 0; i < all; i++)
        if (item_make(intake, &arrivals[i], arena, &list[count])) {
            items[count] = &list[count];
            count++;
        }
    ErrorCode code = count ? items_store(intake, items, count, deadline, arena, &error) : OK;

    for (int i = 0; i < count && code == OK; i++)
        code = item_judge(items[i], &is_new, &error);
    for (int i = 0; i < count && code != OK; i++)
        (void)item_away(intake, items[i], code, &error);
    TRY(error_pass(code, &error, reterr));
    *ret_count = seen;
    *ret_last  = last;
    return OK;
}

/* ---- polls with an update that cannot be read ---- */

/* Cut the next key, value or closing bracket off the rest. Brackets and strings are enough to find where a value ends;
 * what is in them is not checked. A size of 0: nothing is left. */
static Value loose_next(Value *rest)
{
    const char *at = rest->bytes, *end = at + rest->size, *begin;
    bool        in_string = false, is_over = false;
    long        depth = 0;

    while (at < end && *at && strchr(BETWEEN, *at))
        at++;
    for (begin = at; at < end && !is_over; at++) {
        char byte = *at;

        if (depth == 0 && !in_string && at > begin && byte && strchr("]}" BETWEEN, byte))
            break;
        if (in_string && byte == '\\')
            at += end - at > 1;
        else if (byte == '"')
            in_string = !in_string;
        else if (!in_string)
            depth += (byte == '{' || byte == '[') - (byte == '}' || byte == ']');
        is_over = depth <= 0 && !in_string && (byte == '"' || byte == '}' || byte == ']');
    }
    *rest = (Value){at, (size_t)(end - at)};
    return (Value){begin, (size_t)(at - begin)};
}

static Value loose_inside(Value value)
{
    return value.size ? (Value){value.bytes + 1, value.size - 1} : value;
}

/* key: with its quotes. */
static Value loose_member(Value object, const char *key)
{
    Value rest = value_kind(object) == VALUE_OBJECT ? loose_inside(object) : (Value){0}, name;

    while (value_kind(name = loose_next(&rest)) == VALUE_STRING) {
        Value value = loose_next(&rest);

        if (name.size == strlen(key) && memcmp(name.bytes, key, name.size) == 0)
            return value;
    }
    return (Value){0};
}

const char *telegram_intake_salvage(const char *body, size_t size, Arena *arena, int64_t *ret_last)
{
    Value result = loose_member(value_trim(body, size), "\"result\""), rest = loose_inside(result), update;
    Text  list;

    if (value_kind(result) != VALUE_ARRAY)
        return NULL;
    *ret_last = 0;
    text_init(&list, arena, TEXT_MAX_BODY);
    text_append_char(&list, '[');
    while ((update = loose_next(&rest)).size > 0 && *update.bytes != ']') {
        Error error = {0};

        if (scan_check(update.bytes, update.size, "update", &error) == OK) {
            text_append(&list, list.length > 1 ? "," : "");
            text_append_bytes(&list, update.bytes, update.size);
            continue;
        }
        int64_t id = value_i64(loose_member(update, "\"update_id\""));

        *ret_last = id > *ret_last ? id : *ret_last;
        malformed_log(&error);
    }
    text_append_char(&list, ']');
    return text_is_full(&list) ? NULL : text_string(&list);
}
