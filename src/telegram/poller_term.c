/*
 * poller_term.c - what the holder of the lease calls: the bot's name, its commands, the webhook, polls.
 */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/value.h"
#include "base/writer.h"
#include "pg/tx.h"
#include "sql.h"
#include "telegram/metric.h"
#include "telegram/poller_internal.h"
#include "telegram/update.h"

#define CALL_MS         10000
#define QUERY_MS        10000
#define STORE_QUERY_MS  5000  /* then the users of what cannot be stored are notified */
#define POLL_MORE_MS    10000 /* beyond the time of a long poll */
#define POLL_BYTES_MAX  ((size_t)192 << 20)
#define AT_ONCE_MS      1000 /* an empty answer that came sooner is of a server without long polls */
#define AT_ONCE_WAIT_MS 500
#define STEPS_MS        60000
#define STEPS_POLL_S    2 /* a shorter poll while the start of a term is not done */
#define BACKOFF_MS      30000
#define TOKEN_MS        30000
#define STORE_MS        1000
#define PRUNE_MS        600000
#define PRUNE_DAYS      90
#define PRUNE_ROWS      1000

static ErrorCode call(TelegramPoller *poller, const char *method, const TelegramField *fields, int wait_ms,
                      Arena *arena, TelegramAnswer *ret_answer, Error *reterr)
{
    return telegram_call(poller->options.bot,
                         &(TelegramCall){.method = method, .fields = fields, .deadline = deadline_in_ms(wait_ms)},
                         arena, ret_answer, reterr);
}

/* ---- the start of a term ---- */

static ErrorCode name_learn(TelegramPoller *poller, Arena *arena, Error *reterr)
{
    TxOptions options = {.name = "telegram-name", .deadline = deadline_in_ms(QUERY_MS), .arena = arena, .keyed = true};
    TelegramAnswer answer;
    char          *none;

    TRY(call(poller, "getMe", NULL, CALL_MS, arena, &answer, reterr));
    const char *name = value_text(value_field(value_trim(answer.result, strlen(answer.result)), "username"), arena);

    if (!name || !*name || strlen(name) > 100)
        return fail(reterr, ERR_REFUSED, "getMe did not say the bot's username");
    TRY(db_call(poller->options.intake.pool, &options, sql_telegram_name,
                DB_ARGS(db_i64(poller->options.intake.bot_id), db_text(name)), &db_text_shape, &none, reterr));
    mutex_lock(&poller->mutex);
    snprintf(poller->name, sizeof poller->name, "%s", name);
    mutex_unlock(&poller->mutex);
    return OK;
}

/* The rows from *at on that have its scope and language; *at moves behind them. */
static const char *commands_write(const TelegramCommand **at, Arena *arena)
{
    const TelegramCommand *first = *at;
    Text                   text;
    Writer                 writer;

    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_array(&writer, NULL);
    for (; (*at)->command && strcmp((*at)->scope, first->scope) == 0 && strcmp((*at)->language, first->language) == 0;
         (*at)++) {
        writer_object(&writer, NULL);
        writer_text(&writer, "command", (*at)->command);
        writer_text(&writer, "description", (*at)->description);
        writer_end(&writer);
    }
    writer_end(&writer);
    return text_string(&text);
}

static ErrorCode commands_register(TelegramPoller *poller, Arena *arena, Error *reterr)
{
    for (const TelegramCommand *at = poller->options.commands; at && at->command;) {
        const TelegramCommand *first    = at;
        const char            *commands = commands_write(&at, arena);
        TelegramAnswer         answer;
        TelegramField          fields[] = {
            {"commands", commands, .is_json = true},
            {"scope", arena_print(arena, "{\"type\":\"%s\"}", first->scope), .is_json = true},
            {"language_code", *first->language ? first->language : NULL},
            {NULL}
        };

        TRY(call(poller, "setMyCommands", fields, CALL_MS, arena, &answer, reterr));
    }
    return OK;
}

static ErrorCode webhook_register(TelegramPoller *poller, Arena *arena, Error *reterr)
{
    TelegramAnswer answer;
    TelegramField  fields[] = {
        {"url", poller->options.webhook_url},
        {"secret_token", poller->options.webhook_secret},
        {"allowed_updates", telegram_allowed_updates, .is_json = true},
        {NULL}
    };

    if (!poller->options.is_webhook || !poller->options.webhook_url)
        return OK;
    return call(poller, "setWebhook", fields, CALL_MS, arena, &answer, reterr);
}

void poller_term_start(TelegramPoller *poller)
{
    static const struct {
        ErrorCode (*run)(TelegramPoller *poller, Arena *arena, Error *reterr);
        const char *failed;
    } steps[] = {
        {name_learn,        "cannot get the bot's name, will retry"         },
        {webhook_register,  "cannot register the webhook, will retry"       },
        {commands_register, "cannot register the bot's commands, will retry"},
    };
    unsigned all = (1U << COUNT(steps)) - 1;

    if (poller->steps_done == all || mono_before(clock_mono(), poller->steps_at))
        return;
    for (size_t i = 0; i < COUNT(steps); i++) {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        Error                     error = {0};

        if (poller->steps_done & 1U << i || poller_is_stopped(poller))
            continue;
        if (steps[i].run(poller, arena, &error) == OK)
            poller->steps_done |= 1U << i;
        else if (error.code != ERR_STOPPING)
            log_error(LOG_WARN, "telegram", steps[i].failed, &error);
    }
    poller->steps_at   = mono_plus_ms(clock_mono(), clock_backoff_ms(poller->steps_tries++, STEPS_MS));
    poller->is_started = poller->steps_done == all;
}

/* ---- polls ---- */

static int64_t backoff_ms(TelegramPoller *poller)
{
    return clock_backoff_ms(poller->failures++, BACKOFF_MS);
}

static void on_conflict(TelegramPoller *poller, const TelegramAnswer *answer, const Error *error, Arena *arena)
{
    TelegramField fields[] = {
        {"drop_pending_updates", "false", .is_json = true},
        {NULL}
    };
    TelegramAnswer deleted;
    Error          why = {0};

    if (!poller_is_held(poller) && !strstr(answer->description, "webhook"))
        return; /* another process of ours has the lease, and polls */
    poller_conflict(poller);
    if (!strstr(answer->description, "webhook")) {
        log_error(LOG_WARN, "telegram", "another program polls with the same token: stepping back", error);
        poller_step_back(poller);
        return;
    }
    log_write(LOG_WARN, "telegram", "PAWL_TELEGRAM_MODE is poll, but a webhook is set: removing it");
    if (call(poller, "deleteWebhook", fields, CALL_MS, arena, &deleted, &why) != OK) {
        log_error(LOG_WARN, "telegram", "cannot remove the webhook", &why);
        poller_pause(poller, deadline_in_ms(backoff_ms(poller)));
    }
}

static void on_failure(TelegramPoller *poller, ErrorCode code, const TelegramAnswer *answer, const Error *error,
                       Arena *arena)
{
    int64_t wait_ms;

    if (code == ERR_STOPPING)
        return;
    if (code == ERR_REFUSED && answer->status == 409) {
        on_conflict(poller, answer, error, arena);
        return;
    }
    if (code == ERR_LIMIT && poller->limit > 1)
        poller->limit /= 2;
    log_error(poller->failures == 0 ? LOG_WARN : LOG_DEBUG, "telegram", "cannot get updates, will retry", error);
    wait_ms = backoff_ms(poller);
    if (code == ERR_RATE && answer->retry_ms)
        wait_ms = answer->retry_ms;
    else if (answer->status == 401 || answer->status == 404)
        wait_ms = TOKEN_MS;
    poller_pause(poller, deadline_in_ms(wait_ms));
}

/* Nothing is confirmed that is not stored: the next poll gets it again, with what has come meanwhile. */
static bool updates_store(TelegramPoller *poller, const char *json, Arena *arena, int *ret_count, int64_t *ret_last)
{
    Error error = {0};

    if (telegram_intake_many(&poller->options.intake, json, deadline_in_ms(STORE_QUERY_MS), arena, ret_count, ret_last,
                             &error) == OK) {
        poller->is_failing = false;
        return true;
    }
    log_error(poller->is_failing ? LOG_DEBUG : LOG_WARN, "telegram", "cannot store updates, will retry", &error);
    poller->is_failing = true;
    poller_pause(poller, deadline_in_ms(STORE_MS));
    return false;
}

/* unreadable: the greatest id of updates that cannot be read; 0: none. Unconfirmed they would come for ever. */
static void on_updates(TelegramPoller *poller, const char *json, int64_t unreadable, Mono began, Arena *arena)
{
    int     count = 0;
    int64_t last  = 0;

    poller->failures = 0;
    if (!updates_store(poller, json, arena, &count, &last))
        return;
    last = unreadable > last ? unreadable : last;
    /* What is confirmed need not be again: after an empty answer the server begins with what it has, whatever its
     * numbers. */
    poller->offset = last ? last + 1 : 0;
    if (last)
        poller->options.on_stored(poller->options.context);
    else if (mono_ms_between(began, clock_mono()) < AT_ONCE_MS)
        poller_pause(poller, deadline_in_ms(AT_ONCE_WAIT_MS));
}

void poller_poll(TelegramPoller *poller)
{
    scoped(arena_free) Arena *arena = arena_new(POLL_BYTES_MAX);
    TelegramAnswer            answer;
    Error                     error      = {0};
    Mono                      began      = clock_mono();
    const char               *json       = NULL;
    int64_t                   unreadable = 0;
    TelegramField             fields[]   = {
        {"offset", poller->offset ? arena_print(arena, "%" PRId64, poller->offset) : NULL, .is_json = true},
        {"limit", arena_print(arena, "%d", poller->limit), .is_json = true},
        {"timeout", arena_print(arena, "%d", poller->is_started ? TELEGRAM_POLL_S : STEPS_POLL_S), .is_json = true},
        {"allowed_updates", telegram_allowed_updates, .is_json = true},
        {NULL}
    };
    ErrorCode code = call(poller, "getUpdates", fields, TELEGRAM_POLL_S * 1000 + POLL_MORE_MS, arena, &answer, &error);

    if (code == OK)
        on_updates(poller, answer.result, /* unreadable= */ 0, began, arena);
    else if (answer.body && (json = telegram_intake_salvage(answer.body, answer.body_size, arena, &unreadable)) &&
             (unreadable || json[1] != ']'))
        on_updates(poller, json, unreadable, began, arena);
    else
        on_failure(poller, code, &answer, &error, arena);
}

void poller_prune(TelegramPoller *poller)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions options = {.name = "telegram-prune", .deadline = deadline_in_ms(QUERY_MS), .arena = arena, .keyed = true};
    Error     error   = {0};
    int64_t   deleted = 0;

    if (mono_before(clock_mono(), poller->prune_at))
        return;
    if (db_call(poller->options.intake.pool, &options, sql_telegram_prune,
                DB_ARGS(db_i32(PRUNE_DAYS), db_i32(PRUNE_ROWS)), &db_i64_shape, &deleted, &error) != OK)
        log_error(LOG_WARN, "telegram", "cannot delete old rows of the bot", &error);
    if (poller->options.on_prune) {
        int64_t more = poller->options.on_prune(poller->options.context, PRUNE_ROWS);

        deleted = more > deleted ? more : deleted;
    }
    poller->prune_at = mono_plus_ms(clock_mono(), deleted < PRUNE_ROWS ? PRUNE_MS : 0);
}
