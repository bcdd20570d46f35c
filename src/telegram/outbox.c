/*
 * outbox.c - see outbox.h: queueing. Sending is in outbox_send.c.
 *
 * Capacity: the messages that wait are counted in the transaction that queues more. While much of it is left a
 * process counts once a second, and queues at most 1/CAPACITY_SHARE of what was left without counting again, so up to
 * that many processes together stay within the limit.
 */
#include "telegram/outbox.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/uuid.h"
#include "sql.h"
#include "telegram/markup.h"
#include "telegram/metric.h"
#include "telegram/outbox_internal.h"

#define CAPACITY_SHARE 16
#define CAPACITY_MS    1000
#define SHARE_LOG_MS   60000
#define PARTS_MAX      16 /* of a text; what is beyond is left out */
#define NAME_BYTES     320

void telegram_domain_updates(int64_t bot_id, char *ret_domain)
{
    snprintf(ret_domain, TELEGRAM_DOMAIN_SIZE, "telegram:%lld", (long long)bot_id);
}

void telegram_domain_outbox(int64_t bot_id, char *ret_domain)
{
    snprintf(ret_domain, TELEGRAM_DOMAIN_SIZE, "telegram:%lld:outbox", (long long)bot_id);
}

/* "telegram:123" and then the end. */
static bool domain_has_end(const char *domain, const char *end)
{
    const char *prefix = "telegram:";
    size_t      length = strlen(prefix), digits;

    if (strncmp(domain, prefix, length) != 0)
        return false;
    digits = strspn(domain + length, "0123456789");
    return digits > 0 && strcmp(domain + length + digits, end) == 0;
}

bool telegram_domain_is_updates(const char *domain)
{
    return domain_has_end(domain, "");
}

bool telegram_domain_is_outbox(const char *domain)
{
    return domain_has_end(domain, ":outbox");
}

void telegram_uuid(const char *name, char *ret_uuid)
{
    unsigned char hash[crypto_generichash_BYTES];

    crypto_generichash(hash, sizeof hash, (const unsigned char *)name, strlen(name), NULL, 0);
    uuid_from_hash(hash, ret_uuid);
}

TelegramOutbox *telegram_outbox_new(const TelegramOutboxOptions *options)
{
    TelegramOutbox *outbox = memory_new(1, sizeof *outbox);

    outbox->options = *options;
    outbox->bot_id  = telegram_bot_id(options->bot);
    outbox->handler = (Handler){.run = telegram_outbox_run};
    mutex_init(&outbox->mutex);
    return outbox;
}

void telegram_outbox_free(TelegramOutbox *outbox)
{
    mutex_done(&outbox->mutex);
    free(outbox);
}

Handler *telegram_outbox_handler(TelegramOutbox *outbox)
{
    return &outbox->handler;
}

void telegram_outbox_id(const TelegramOutbox *outbox, const char *key, int number, char *ret_id)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof name, "telegram:%lld:%.200s:%d", (long long)outbox->bot_id, key, number);
    telegram_uuid(name, ret_id);
}

int telegram_outbox_pace_ms(const TelegramOutbox *outbox)
{
    int by_group = 60000 / outbox->options.group_max;

    return by_group > outbox->options.chat_ms ? by_group : outbox->options.chat_ms;
}

int telegram_outbox_per_second(const TelegramOutbox *outbox)
{
    return outbox->options.all_max;
}

/* ---- capacity ---- */

static bool capacity_take(TelegramOutbox *outbox, int needed)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&outbox->mutex);

    if (outbox->capacity < needed || !mono_before(clock_mono(), outbox->capacity_until))
        return false;
    outbox->capacity -= needed;
    return true;
}

static void capacity_set(TelegramOutbox *outbox, int capacity)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&outbox->mutex);

    bool is_nearly_full = capacity <= outbox->options.size_max / CAPACITY_SHARE;

    outbox->capacity       = is_nearly_full ? 0 : capacity / CAPACITY_SHARE;
    outbox->capacity_until = mono_plus_ms(clock_mono(), CAPACITY_MS);
    if (!is_nearly_full)
        outbox->is_full = false;
}

static ErrorCode capacity_find(TelegramOutbox *outbox, Tx *tx, int needed, int *ret_capacity, Error *reterr)
{
    int64_t waiting;

    *ret_capacity = needed;
    if (needed == 0 || capacity_take(outbox, needed))
        return OK;
    TRY(db_get_i64(tx, sql_telegram_waiting, DB_ARGS(db_i64(outbox->bot_id), db_i32(outbox->options.size_max)),
                   &waiting, reterr));
    *ret_capacity = outbox->options.size_max - (int)waiting;
    capacity_set(outbox, *ret_capacity);
    return OK;
}

/* Once per time that it is full, not once per message. */
static void refused_log(TelegramOutbox *outbox, int refused)
{
    bool is_news;

    mutex_lock(&outbox->mutex);
    is_news         = !outbox->is_full;
    outbox->is_full = true;
    mutex_unlock(&outbox->mutex);
    log_write(is_news ? LOG_ERROR : LOG_DEBUG, "telegram", "outbox is full: messages were refused",
              LOG_INT("refused", refused), LOG_INT("waiting", outbox->options.size_max));
}

/* At most every SHARE_LOG_MS: one chat, or one user who presses buttons, can cause many. */
static void share_log(TelegramOutbox *outbox, int refused)
{
    Mono now = clock_mono();
    bool is_news;

    mutex_lock(&outbox->mutex);
    is_news = !mono_before(now, outbox->share_next);
    if (is_news)
        outbox->share_next = mono_plus_ms(now, SHARE_LOG_MS);
    mutex_unlock(&outbox->mutex);
    log_write(is_news ? LOG_WARN : LOG_DEBUG, "telegram",
              "a chat or answers to button presses have used up their share of the outbox: messages were refused",
              LOG_INT("refused", refused));
}

/* ---- queueing ---- */

/* Parallel arrays of commands. */
typedef struct {
    const char **ids, **types, **payloads;
    int64_t     *chats;
    int          count;
    int          first;    /* of the put that is being added */
    int          messages; /* that count in the outbox */
} Putting;

static Putting putting_new(Arena *arena, int items, int puts)
{
    int size = items * PARTS_MAX + puts; /* and a notice of each */

    return (Putting){.ids      = arena_array(arena, const char *, size),
                     .types    = arena_array(arena, const char *, size),
                     .payloads = arena_array(arena, const char *, size),
                     .chats    = arena_array(arena, int64_t, size)};
}

static ErrorCode putting_add(Putting *putting, const TelegramOutbox *outbox, const char *key,
                             const TelegramOutgoing *item, Arena *arena, Error *reterr)
{
    int   at = putting->count;
    char *id = arena_alloc(arena, UUID_TEXT_SIZE);

    TRY(telegram_outgoing_write(item, arena, &putting->payloads[at], reterr));
    telegram_outbox_id(outbox, key, at - putting->first, id);
    putting->ids[at]   = id;
    putting->types[at] = telegram_method_types[item->method];
    putting->chats[at] = item->method == TELEGRAM_ANSWER ? 0 : item->chat_id;
    putting->messages += item->method != TELEGRAM_ANSWER;
    putting->count++;
    return OK;
}

/* A text that is too long becomes several commands, so that none of its parts is sent twice when a later one fails.
 * The first part is the reply, the last one has the buttons. */
static ErrorCode putting_split(Putting *putting, const TelegramOutbox *outbox, const char *key,
                               const TelegramOutgoing *item, Arena *arena, Error *reterr)
{
    const char *const *parts = telegram_html_split(item->html, TELEGRAM_TEXT_MAX, arena);

    for (int i = 0; i < PARTS_MAX && parts[i]; i++) {
        TelegramOutgoing part    = *item;
        bool             is_last = i + 1 == PARTS_MAX || !parts[i + 1];

        part.html          = parts[i];
        part.reply_to      = i == 0 ? item->reply_to : 0;
        part.replaces      = i == 0 ? item->replaces : NULL;
        part.buttons_count = is_last ? item->buttons_count : 0;
        TRY(putting_add(putting, outbox, key, &part, arena, reterr));
    }
    return OK;
}

static ErrorCode putting_fill(Putting *putting, const TelegramOutbox *outbox, const TelegramPut *put, Arena *arena,
                              Error *reterr)
{
    for (int i = 0; i < put->count; i++) {
        TelegramOutgoing item    = put->items[i];
        size_t           most    = telegram_outgoing_units_max(item.method);
        bool             is_long = item.html && item.method != TELEGRAM_ANSWER && telegram_html_units(item.html) > most;

        if (is_long && item.method != TELEGRAM_SEND)
            item.html = telegram_html_shorten(item.html, most, arena);
        TRY((is_long && item.method == TELEGRAM_SEND ? putting_split : putting_add)(putting, outbox, put->key, &item,
                                                                                    arena, reterr));
    }
    return OK;
}

/* The same for all messages of a chat in a minute: the server is sent the first one. */
static ErrorCode putting_busy(Putting *putting, const TelegramOutbox *outbox, const TelegramPut *put, Arena *arena,
                              Error *reterr)
{
    const TelegramOutgoing *read = NULL;

    for (int i = 0; i < put->count && !read; i++)
        if (put->items[i].method != TELEGRAM_ANSWER && !put->items[i].is_first && put->items[i].chat_id < 0)
            read = &put->items[i];
    if (!put->busy || !read)
        return OK;
    TelegramOutgoing notice = {.method    = TELEGRAM_SEND,
                               .chat_id   = read->chat_id,
                               .thread_id = read->thread_id,
                               .html      = put->busy,
                               .is_silent = true,
                               .is_busy   = true};
    char            *id     = arena_alloc(arena, UUID_TEXT_SIZE);
    int              at     = putting->count;

    TRY(putting_add(putting, outbox, put->key, &notice, arena, reterr));
    telegram_outbox_id(outbox, arena_print(arena, "busy:%" PRId64, read->chat_id), (int)(clock_wall().us / 60000000),
                       id);
    putting->ids[at] = id;
    putting->messages--; /* mostly it is not queued */
    return OK;
}

/* All of them, or none and its error. */
static void putting_try(Putting *putting, const TelegramOutbox *outbox, TelegramPut *put, Arena *arena)
{
    int messages = putting->messages;

    put->error     = (Error){0};
    putting->first = putting->count;
    if (putting_fill(putting, outbox, put, arena, &put->error) == OK &&
        putting_busy(putting, outbox, put, arena, &put->error) == OK)
        return;
    putting->count    = putting->first;
    putting->messages = messages;
}

ErrorCode telegram_outbox_put(TelegramOutbox *outbox, Tx *tx, TelegramPut *puts, int count, int *ret_refused,
                              Error *reterr)
{
    Arena  *arena   = tx->arena;
    int     items   = 0;
    int64_t refused = 0;
    int     capacity;
    Putting putting;

    *ret_refused = 0;
    for (int i = 0; i < count; i++)
        items += puts[i].count;
    putting = putting_new(arena, items, count);
    for (int i = 0; i < count; i++)
        putting_try(&putting, outbox, &puts[i], arena);
    if (putting.count == 0)
        return OK;
    TRY(capacity_find(outbox, tx, putting.messages, &capacity, reterr));
    TRY(db_get_i64(tx, sql_telegram_put,
                   DB_ARGS(db_i64(outbox->bot_id), db_uuids(arena, putting.ids, putting.count),
                           db_i64s(arena, putting.chats, putting.count), db_texts(arena, putting.types, putting.count),
                           db_jsonbs(arena, putting.payloads, putting.count), db_i32(capacity)),
                   &refused, reterr));
    if (refused) {
        metric_add(&telegram_metrics.sent_dropped, refused);
        (putting.messages > capacity ? refused_log : share_log)(outbox, (int)refused);
    }
    *ret_refused = (int)refused;
    return OK;
}

ErrorCode telegram_reference_find(Tx *tx, int64_t bot_id, int64_t chat_id, int64_t message_id,
                                  const char **ret_reference, Error *reterr)
{
    return db_get_text(tx, sql_telegram_reference, DB_ARGS(db_i64(bot_id), db_i64(chat_id), db_i64(message_id)),
                       ret_reference, reterr);
}

ErrorCode telegram_message_about(Tx *tx, int64_t bot_id, int64_t chat_id, const char *reference,
                                 int64_t *ret_message_id, Error *reterr)
{
    return db_get_i64(tx, sql_telegram_about, DB_ARGS(db_i64(bot_id), db_i64(chat_id), db_text(reference)),
                      ret_message_id, reterr);
}
