/*
 * notice.c - see notice.h.
 */
#include "bot/notice.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/sync.h"
#include "bot/translate.h"
#include "telegram/outbox.h"

#define SEND_MS    5000
#define TRIES_MAX  3
#define LIMITED_MS 60000 /* a longer 429 is not waited for: the database may be back before */
#define IDLE_MS    3600000

typedef struct {
    char *json;
    Error why;
} Notice;

struct BotNotices {
    TelegramBot *bot;
    Mutex        mutex; /* guards all below */
    Cond         changed;
    Notice       ring[NOTICE_QUEUE_MAX];
    int          first, count;
    int64_t      known[NOTICE_KNOWN_MAX]; /* the last ones */
    int64_t      known_count;
    char         name[TELEGRAM_NAME_SIZE];
    bool         stopping;
    pthread_t    thread;
};

/* ---- the thread ---- */

static bool notice_take(BotNotices *notices, Notice *ret_notice, char *ret_name)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&notices->mutex);

    while (notices->count == 0 && !notices->stopping)
        (void)cond_wait(&notices->changed, held, deadline_in_ms(IDLE_MS));
    if (notices->stopping)
        return false;
    *ret_notice    = notices->ring[notices->first];
    notices->first = (notices->first + 1) % NOTICE_QUEUE_MAX;
    notices->count--;
    snprintf(ret_name, TELEGRAM_NAME_SIZE, "%s", notices->name);
    return true;
}

/* false: stopped. */
static bool pause_ms(BotNotices *notices, int64_t ms)
{
    scoped(mutex_unlock) Mutex *held     = mutex_hold(&notices->mutex);
    Deadline                    deadline = deadline_in_ms(ms);

    while (!notices->stopping && !deadline_passed(deadline))
        (void)cond_wait(&notices->changed, held, deadline);
    return !notices->stopping;
}

static void message_send(BotNotices *notices, const TelegramOutgoing *item, Arena *arena)
{
    Error     error = {0};
    ErrorCode code  = OK;

    for (int i = 0; i < TRIES_MAX; i++) {
        code = telegram_send_directly(notices->bot, item, deadline_in_ms(SEND_MS), arena, &error);
        if (code != ERR_RATE || error.retry_ms > LIMITED_MS ||
            !pause_ms(notices, error.retry_ms ? error.retry_ms : 1000))
            break;
    }
    if (code != OK && code != ERR_STOPPING)
        log_error(LOG_WARN, "bot", "cannot notify a user that the database is unavailable", &error);
}

static void notice_send(BotNotices *notices, const Notice *notice, const char *name, Arena *arena)
{
    TelegramUpdate update;
    Error          error = {0};

    if (telegram_update_parse(notice->json, strlen(notice->json), arena, &update, &error) != OK)
        return;
    BotMessages *messages = arena_array(arena, BotMessages, 1);
    /* Name "": not known yet, so a command that names a bot may be for another. */
    GameInput input = {.bot_id = telegram_bot_id(notices->bot), .bot_name = name};

    if (bot_input_read(&update, arena, &input))
        bot_messages_add_failure(messages, &input, &notice->why, NULL, arena);
    for (int i = 0; i < messages->count; i++)
        message_send(notices, &messages->list[i], arena);
}

static void *notices_run(void *context)
{
    BotNotices               *notices = context;
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    char                      name[TELEGRAM_NAME_SIZE];
    Notice                    notice;

    while (notice_take(notices, &notice, name)) {
        notice_send(notices, &notice, name, arena);
        free(notice.json);
        arena_reset(arena);
    }
    return NULL;
}

/* ---- life ---- */

static void notices_drop(BotNotices *notices)
{
    for (int i = 0; i < notices->count; i++)
        free(notices->ring[(notices->first + i) % NOTICE_QUEUE_MAX].json);
    cond_done(&notices->changed);
    mutex_done(&notices->mutex);
    telegram_bot_free(notices->bot);
    free(notices);
}

ErrorCode bot_notices_new(const char *token, const char *api_root, BotNotices **ret_notices, Error *reterr)
{
    TelegramBot *bot;

    TRY(telegram_bot_new(token, api_root, &bot, reterr));
    BotNotices *notices = memory_new(1, sizeof *notices);

    notices->bot = bot;
    mutex_init(&notices->mutex);
    cond_init(&notices->changed);
    if (!thread_try_start("bot-notice", notices_run, notices, &notices->thread)) {
        notices_drop(notices);
        return fail(reterr, ERR_INTERNAL, "cannot start a thread for the bot");
    }
    *ret_notices = notices;
    return OK;
}

void bot_notices_stop(BotNotices *notices)
{
    mutex_lock(&notices->mutex);
    notices->stopping = true;
    cond_broadcast(&notices->changed);
    mutex_unlock(&notices->mutex);
    telegram_bot_stop(notices->bot);
}

void bot_notices_free(BotNotices *notices)
{
    thread_join(notices->thread);
    notices_drop(notices);
}

/* ---- adding ---- */

/* Under the mutex. */
static bool is_known(const BotNotices *notices, int64_t update_id)
{
    int count = notices->known_count < NOTICE_KNOWN_MAX ? (int)notices->known_count : NOTICE_KNOWN_MAX;

    for (int i = 0; i < count; i++)
        if (notices->known[i] == update_id)
            return true;
    return false;
}

bool bot_notices_has(BotNotices *notices, int64_t update_id)
{
    if (!notices)
        return false;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&notices->mutex);

    return is_known(notices, update_id);
}

void bot_notices_name(BotNotices *notices, const char *name)
{
    if (!notices)
        return;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&notices->mutex);

    snprintf(notices->name, sizeof notices->name, "%s", name);
}

static int64_t update_id_of(const char *json, size_t size)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TelegramUpdate            update;

    return telegram_update_parse(json, size, arena, &update, NULL) == OK ? update.id : 0;
}

void bot_notices_add(BotNotices *notices, const char *json, size_t size, const Error *why)
{
    if (!notices)
        return;
    int64_t                     id   = update_id_of(json, size);
    scoped(mutex_unlock) Mutex *held = mutex_hold(&notices->mutex);

    if (id == 0 || notices->stopping || is_known(notices, id))
        return;
    notices->known[notices->known_count++ % NOTICE_KNOWN_MAX] = id;
    if (notices->count == NOTICE_QUEUE_MAX) {
        log_write(LOG_WARN, "bot", "a user is not notified that the database is unavailable: too many notices wait",
                  LOG_INT("update", id));
        return;
    }
    Notice *notice = &notices->ring[(notices->first + notices->count++) % NOTICE_QUEUE_MAX];

    notice->json = memory_new(1, size + 1);
    memcpy(notice->json, json, size);
    notice->why = *why;
    cond_signal(&notices->changed);
}
