/*
 * command_domain_control.c - pawl domain: pause, resume, limit.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/source.h"

static void pauses_print(Call *call, const DomainPause *list, int count)
{
    static const ListColumn columns[] = {
        {"domain",   NULL, CELL_TEXT, offsetof(DomainPause, domain)  },
        {"type",     NULL, CELL_TEXT, offsetof(DomainPause, type)    },
        {"since",    NULL, CELL_TIME, offsetof(DomainPause, at)      },
        {"operator", NULL, CELL_TEXT, offsetof(DomainPause, operator)},
        {"reason",   NULL, CELL_TEXT, offsetof(DomainPause, reason)  },
    };
    static const ListShape shape = {columns, COUNT(columns), sizeof(DomainPause), "nothing is paused",
                                    domain_pause_write};

    list_print(&shape, call->arena, call->json, list, count);
}

/* pause: else resume. */
static ErrorCode pause_set(Call *call, bool pause, Error *reterr)
{
    DomainPause *list;
    int          count;

    TRY(call_open(call, APP_SCHEMA, reterr));
    domain_note(call, "", call->arguments[0]);
    TRY(source_domain_pause(call, call->arguments[0], pause, call_flag(call, "--type"), &list, &count, reterr));
    pauses_print(call, list, count);
    return OK;
}

ErrorCode command_domain_pause(Call *call, Error *reterr)
{
    return pause_set(call, /* pause= */ true, reterr);
}

ErrorCode command_domain_resume(Call *call, Error *reterr)
{
    return pause_set(call, /* pause= */ false, reterr);
}

/* A limit as a line of a table. */
typedef struct {
    const char *type, *per_key, *running, *now, *rate, *burst;
} LimitLine;

static const char *number_text(Arena *arena, int64_t number, bool is_set)
{
    return is_set ? arena_print(arena, "%" PRId64, number) : NULL;
}

static void limits_print(Call *call, const DomainLimit *list, int count)
{
    static const ListColumn columns[] = {
        {"type",     NULL, CELL_TEXT, offsetof(LimitLine, type)   },
        {"per key",  NULL, CELL_TEXT, offsetof(LimitLine, per_key)},
        {">running", NULL, CELL_TEXT, offsetof(LimitLine, running)},
        {">now",     NULL, CELL_TEXT, offsetof(LimitLine, now)    },
        {">rate",    NULL, CELL_TEXT, offsetof(LimitLine, rate)   },
        {">burst",   NULL, CELL_TEXT, offsetof(LimitLine, burst)  },
    };
    static const ListShape lines = {columns, COUNT(columns), sizeof(LimitLine), "no limits", NULL};
    static const ListShape rows  = {columns, COUNT(columns), sizeof(DomainLimit), "no limits", domain_limit_write};
    LimitLine             *shown;

    if (call->json) {
        list_print(&rows, call->arena, true, list, count);
        return;
    }
    shown = arena_array(call->arena, LimitLine, count);
    for (int i = 0; i < count; i++)
        shown[i] = (LimitLine){.type    = list[i].type,
                               .per_key = list[i].per_key ? "yes" : "no",
                               .running = number_text(call->arena, list[i].running, list[i].running > 0),
                               .now     = number_text(call->arena, list[i].running_now, list[i].running_now >= 0),
                               .rate    = limit_rate_print(&list[i], call->arena),
                               .burst   = number_text(call->arena, list[i].burst, list[i].burst > 0)};
    list_print(&lines, call->arena, false, shown, count);
}

static ErrorCode limit_read(const Call *call, DomainLimit *ret_limit, Error *reterr)
{
    const char *rate = call_flag(call, "--rate");
    Error       why;

    *ret_limit = (DomainLimit){.type     = call_flag(call, "--type"),
                               .per_key  = call_flag(call, "--per-key") != NULL,
                               .period_s = 1};
    TRY(call_number("--running", call_flag(call, "--running"), 1, LIMIT_RUNNING_MAX, 0, &ret_limit->running, reterr));
    TRY(call_number("--burst", call_flag(call, "--burst"), 1, LIMIT_RATE_MAX, 0, &ret_limit->burst, reterr));
    if (rate && limit_rate_read(rate, ret_limit, &why) != OK)
        return fail(reterr, ERR_USAGE, "--rate %s", why.text);
    if (ret_limit->burst && !rate)
        return fail(reterr, ERR_USAGE, "--burst needs --rate");
    if (!ret_limit->running && !rate && !ret_limit->per_key)
        return fail(reterr, ERR_USAGE, "--running, --rate, --per-key or --none is required with --type");
    return OK;
}

static bool limit_is_given(const Call *call)
{
    return call_flag(call, "--running") || call_flag(call, "--rate") || call_flag(call, "--burst") ||
           call_flag(call, "--per-key");
}

ErrorCode command_domain_limit(Call *call, Error *reterr)
{
    const char *domain = call->arguments[0], *type = call_flag(call, "--type");
    bool        is_none = call_flag(call, "--none") != NULL, is_given = limit_is_given(call);
    DomainLimit limit, *list;
    int         count;

    if (is_none && is_given)
        return fail(reterr, ERR_USAGE,
                    "--none removes limits: it takes no flag beside --type, --operator and --reason");
    if (!is_none && (is_given || type))
        TRY(limit_read(call, &limit, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    domain_note(call, "", domain);
    if (is_none)
        TRY(source_domain_limit_remove(call, domain, type, &list, &count, reterr));
    else if (is_given)
        TRY(source_domain_limit_set(call, domain, &limit, &list, &count, reterr));
    else
        TRY(source_domain_limits(call, domain, &list, &count, reterr));
    limits_print(call, list, count);
    return OK;
}
