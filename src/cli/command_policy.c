/*
 * command_policy.c - retry policies: how long a failed command waits for its next attempt.
 */
#include <string.h>

#include "base/setting.h"
#include "base/writer.h"
#include "bus/policy.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/source.h"

typedef struct {
    const char *type, *delays, *is_default, *order_key;
} PolicyLine;

/* "10s,1m,5m" of "10000,60000,300000". */
static const char *delays_print(Arena *arena, const char *delays_ms)
{
    Text        text;
    const char *next = delays_ms;

    text_init(&text, arena, TEXT_MAX_LINE);
    while (*next) {
        char *end;

        setting_duration_print(strtoll(next, &end, 10), &text);
        if (*end)
            text_append(&text, ",");
        next = *end ? end + 1 : end;
    }
    return text_string(&text);
}

static ErrorCode policies_print(Call *call, Error *reterr)
{
    static const ListColumn columns[] = {
        {"type",      "type",      CELL_TEXT, offsetof(PolicyLine, type)      },
        {"delays",    "delays",    CELL_TEXT, offsetof(PolicyLine, delays)    },
        {"default",   "default",   CELL_TEXT, offsetof(PolicyLine, is_default)},
        {"order key", "order_key", CELL_TEXT, offsetof(PolicyLine, order_key) },
    };
    ListShape    lines = {columns, COUNT(columns), sizeof(PolicyLine), "no policies", NULL};
    ListShape    rows  = {columns, COUNT(columns), sizeof(RetryPolicy), "no policies", retry_policy_write};
    RetryPolicy *list;
    PolicyLine  *shown;
    int          count;

    TRY(source_policy_list(call, call->arguments[0], &list, &count, reterr));
    if (call->json) {
        list_print(&rows, call->arena, true, list, count);
        return OK;
    }
    shown = arena_array(call->arena, PolicyLine, count);
    for (int i = 0; i < count; i++)
        shown[i] = (PolicyLine){list[i].type, delays_print(call->arena, list[i].delays_ms),
                                list[i].is_default ? "yes" : "no", list[i].order_key};
    list_print(&lines, call->arena, false, shown, count);
    return OK;
}

ErrorCode command_policy_show(Call *call, Error *reterr)
{
    TRY(call_open(call, APP_SCHEMA, reterr));
    return policies_print(call, reterr);
}

/* "10s,1m,5m" */
static ErrorCode delays_read(const Call *call, int64_t *ret_list, int *ret_count, Error *reterr)
{
    char *rest  = arena_text(call->arena, call->arguments[1]), *word;
    int   count = 0;
    Error why;

    while ((word = strsep(&rest, ","))) {
        if (count == POLICY_DELAYS_MAX)
            return fail(reterr, ERR_USAGE, "DELAYS must be at most %d durations, got more", POLICY_DELAYS_MAX);
        if (setting_duration(word, &ret_list[count], &why) != OK)
            return fail(reterr, ERR_USAGE, "each of DELAYS %s", why.text);
        if (ret_list[count++] > POLICY_MS_MAX)
            return fail(reterr, ERR_USAGE, "each of DELAYS must be at most %dms, got \"%.60s\"", POLICY_MS_MAX, word);
    }
    *ret_count = count;
    return OK;
}

static ErrorCode policy_change(Call *call, const int64_t *delays_ms, int count, const char *order_key, Error *reterr)
{
    TRY(call_open(call, APP_SCHEMA, reterr));
    domain_note(call, "", call->arguments[0]);
    TRY(source_policy_set(call, call->arguments[0], call_flag(call, "--type"), delays_ms, count, order_key, reterr));
    return policies_print(call, reterr);
}

ErrorCode command_policy_set(Call *call, Error *reterr)
{
    int64_t     delays_ms[POLICY_DELAYS_MAX];
    const char *order_key = call_flag(call, "--order-key");
    int         count     = 0;

    if (call->count == 1 && !order_key)
        return fail(reterr, ERR_USAGE, "DELAYS or --order-key is required");
    if (order_key && strcmp(order_key, "hold") != 0 && strcmp(order_key, "release") != 0)
        return fail(reterr, ERR_USAGE, "--order-key must be \"hold\" or \"release\", got \"%.60s\"", order_key);
    if (call->count == 2)
        TRY(delays_read(call, delays_ms, &count, reterr));
    return policy_change(call, delays_ms, count, order_key, reterr);
}

ErrorCode command_policy_reset(Call *call, Error *reterr)
{
    return policy_change(call, NULL, 0, NULL, reterr);
}
