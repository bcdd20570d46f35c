/*
 * send_check.c - what can be known about a command without the database; see send.h.
 */
#include <ctype.h>
#include <string.h>

#include "base/reader.h"
#include "base/setting.h"
#include "base/text.h"
#include "bus/reserved_domain.h"
#include "bus/send.h"

#define QUEUE_LENGTH_MAX 47
#define COMMAND_PREFIX   "command:"
#define ACTOR_LENGTH_MAX 200
#define UNIQUE_MS_MIN    1000
#define UNIQUE_MS_MAX    (365 * 86400000LL)
#define EXPONENT_MAX     1000000 /* larger ones are refused in any case */

/* Of a value in a message: at most so many bytes, and whole characters. */
#define EXCERPT_MAX 80
#define CUT(text)   ((int)((text) ? text_cut(text, strlen(text), EXCERPT_MAX) : 0))

static bool name_is_good(const char *name, size_t length_max, const char *marks)
{
    size_t length = strnlen(name, length_max + 1);

    if (length == 0 || length > length_max || !isalnum((unsigned char)name[0]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isascii((unsigned char)name[i]) || (!isalnum((unsigned char)name[i]) && !strchr(marks, name[i])))
            return false;
    return true;
}

static ErrorCode check_text(const char *field, const char *text, size_t length_max, Error *reterr)
{
    size_t length = text ? strlen(text) : 1;

    if (length == 0 || length > length_max)
        return fail(reterr, ERR_INVALID, "%s must be 1 to %zu bytes, got %zu", field, length_max, length);
    if (text && !text_is_utf8(text, length))
        return fail(reterr, ERR_INVALID, "%s must be UTF-8", field);
    return OK;
}

static ErrorCode check_id(const char *field, const char *text, Error *reterr)
{
    char id[UUID_TEXT_SIZE];

    if (text && !uuid_parse(text, id))
        return fail(reterr, ERR_INVALID, "%s must be a UUID, got \"%.*s\"", field, CUT(text), text);
    return OK;
}

static ErrorCode check_name(const char *field, const char *name, int size_max, Error *reterr)
{
    if (!name || !name_is_good(name, size_max, "_.:-"))
        return fail(
            reterr, ERR_INVALID,
            "%s must be 1 to %d letters, digits, \"_\", \".\", \":\" or \"-\", beginning with a letter or digit, "
            "got \"%.*s\"",
            field, size_max, CUT(name), name ? name : "");
    return OK;
}

ErrorCode send_check_domain(const char *field, const char *domain, Error *reterr)
{
    return check_name(field, domain, SEND_DOMAIN_MAX, reterr);
}

ErrorCode send_check_type(const char *field, const char *type, Error *reterr)
{
    return check_name(field, type, SEND_TYPE_MAX, reterr);
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The domain of "command:DOMAIN/TYPE", and its type; false: it has other parts. */
static bool command_split(const char *target, char *ret_domain, const char **ret_type)
{
    const char *domain = target + strlen(COMMAND_PREFIX), *slash;

    if (!starts_with(target, COMMAND_PREFIX) || !(slash = strchr(domain, '/')) || slash - domain > SEND_DOMAIN_MAX)
        return false;
    memcpy(ret_domain, domain, (size_t)(slash - domain));
    ret_domain[slash - domain] = '\0';
    *ret_type                  = slash + 1;
    return true;
}

/* As pawl.reply_to_check(). */
static ErrorCode check_reply_to(const SendItem *item, Error *reterr)
{
    const char           *target = item->reply_to, *type;
    char                  domain[SEND_DOMAIN_MAX + 1];
    const ReservedDomain *reserved;

    if (!target || item->replies_to_module)
        return OK;
    if (command_split(target, domain, &type)) {
        reserved = reserved_domain_find(domain);
        if (reserved && reserved->refuses_replies)
            return fail(reterr, ERR_INVALID, "reply_to must not name a domain of %s, got \"%.*s\"", reserved->commands,
                        CUT(target), target);
        if (name_is_good(domain, SEND_DOMAIN_MAX, "_.:-") && name_is_good(type, SEND_TYPE_MAX, "_.:-"))
            return OK;
    }
    /* PGMQ takes "--" for a comment and refuses it. */
    if (name_is_good(target, QUEUE_LENGTH_MAX, "_.-") && !strstr(target, "--"))
        return OK;
    return fail(reterr, ERR_INVALID,
                "reply_to must be a queue (1 to %d letters, digits, \"_\", \".\" or single \"-\") or "
                "command:DOMAIN/TYPE, got \"%.*s\"",
                QUEUE_LENGTH_MAX, CUT(target), target);
}

static ErrorCode check_names(const SendItem *item, Error *reterr)
{
    TRY(send_check_domain("domain", item->domain, reterr));
    TRY(send_check_type("type", item->type, reterr));
    TRY(check_reply_to(item, reterr));
    TRY(check_id("command_id", item->command_id, reterr));
    TRY(check_id("batch_id", item->batch_id, reterr));
    TRY(check_text("correlation_id", item->correlation_id, SEND_CORRELATION_MAX, reterr));
    TRY(check_text("order_key", item->order_key, SEND_ORDER_KEY_MAX, reterr));
    return check_text("actor", item->actor, ACTOR_LENGTH_MAX, reterr);
}

/* As pawl.payload_bytes() has it: what a worker gets. */
size_t send_exponents_sum(const char *json)
{
    size_t sum       = 0;
    bool   in_string = false;

    for (; *json; json++) {
        if (in_string && *json == '\\' && json[1])
            json++;
        else if (*json == '"')
            in_string = !in_string;
        else if (!in_string && (*json == 'e' || *json == 'E') && strchr("+-0123456789", json[1])) {
            size_t exponent = 0;

            json += json[1] == '+' || json[1] == '-';
            for (; isdigit((unsigned char)json[1]); json++)
                if (exponent < EXPONENT_MAX)
                    exponent = exponent * 10 + (size_t)(json[1] - '0');
            sum += exponent;
        }
    }
    return sum;
}

static ErrorCode check_payload(const char *payload, Error *reterr)
{
    size_t    size = payload ? strlen(payload) : 0;
    ErrorCode code;

    if (!payload)
        return OK;
    if (size > SEND_PAYLOAD_MAX)
        return fail(reterr, ERR_LIMIT, "payload has %zu bytes: at most %zu are allowed", size, SEND_PAYLOAD_MAX);
    code = reader_check(payload, size, reterr);
    if (code != OK) {
        error_prefix(reterr, "payload");
        return code;
    }
    if (send_exponents_sum(payload) > SEND_EXPANDED_MAX - size)
        return fail(reterr, ERR_LIMIT, "payload must have at most %zu bytes when its numbers are written out, got more",
                    SEND_EXPANDED_MAX);
    return OK;
}

const char *const duplicate_actions[] = {"keep", "replace", "move", NULL};
const char *const duplicate_ends[]    = {"kept", "replaced", "moved", NULL};

static bool word_is_of(const char *word, const char *const *words)
{
    while (*words && strcmp(*words, word) != 0)
        words++;
    return *words != NULL;
}

ErrorCode send_check_unique_for(const char *field, const char *scope, Error *reterr)
{
    static const char *const words[] = {"queued", "active", NULL};
    int64_t                  ms      = 0;

    if (!scope || word_is_of(scope, words) ||
        (setting_duration(scope, &ms, NULL) == OK && ms >= UNIQUE_MS_MIN && ms <= UNIQUE_MS_MAX))
        return OK;
    return fail(reterr, ERR_INVALID, "%s must be \"queued\", \"active\" or a duration from 1s to 365d, got \"%.*s\"",
                field, CUT(scope), scope);
}

/* As pawl.unique_check(). */
static ErrorCode check_unique(const SendItem *item, Error *reterr)
{
    if (!item->unique_key && (item->unique_for || item->on_duplicate))
        return fail(reterr, ERR_INVALID, "unique_for and on_duplicate need a unique_key");
    if (!item->unique_key)
        return OK;
    TRY(check_text("unique_key", item->unique_key, SEND_UNIQUE_KEY_MAX, reterr));
    TRY(send_check_unique_for("unique_for", item->unique_for, reterr));
    if (item->on_duplicate && !word_is_of(item->on_duplicate, duplicate_actions))
        return fail(reterr, ERR_INVALID, "on_duplicate must be keep, replace or move, got \"%.*s\"",
                    CUT(item->on_duplicate), item->on_duplicate);
    if (reserved_domain_find(item->domain))
        return fail(reterr, ERR_INVALID,
                    "unique_key must not be given for a command of domain \"%s\", which is reserved", item->domain);
    return OK;
}

ErrorCode send_check(const SendItem *item, Error *reterr)
{
    TRY(check_names(item, reterr));
    TRY(check_unique(item, reterr));
    if (item->delay_ms < 0 || item->delay_ms > (SEND_DELAY_S_MAX * 1000LL))
        return fail(reterr, ERR_INVALID, "delay must be from 0 to %lld ms, got %lld", (SEND_DELAY_S_MAX * 1000LL),
                    (long long)item->delay_ms);
    if (item->priority != SEND_DEFAULT && (item->priority < 0 || item->priority > SEND_PRIORITY_MAX))
        return fail(reterr, ERR_INVALID, "priority must be an integer from 0 to %d, got %d", SEND_PRIORITY_MAX,
                    item->priority);
    if (item->max_attempts != SEND_DEFAULT && (item->max_attempts < 1 || item->max_attempts > SEND_ATTEMPTS_MAX))
        return fail(reterr, ERR_INVALID, "max_attempts must be an integer from 1 to %d, got %d", SEND_ATTEMPTS_MAX,
                    item->max_attempts);
    return check_payload(item->payload, reterr);
}
