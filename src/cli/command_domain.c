/*
 * command_domain.c - pawl domain: list, show.
 */
#include "bus/domain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/value.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/source.h"

/* A domain as a line of a table: "~158000" is an estimate. */
typedef struct {
    const char *domain, *queued, *delayed, *parked, *running, *in_tsq, *oldest, *in, *out, *wait, *held;
} DomainLine;

static const char *number_text(Arena *arena, const Domain *domain, const char *name, int64_t number)
{
    bool is_estimate = strstr(domain->estimated, arena_print(arena, "\"%s\"", name)) != NULL;

    return arena_print(arena, "%s%" PRId64, is_estimate ? "~" : "", number);
}

/* "3h20m", "45s". */
static const char *age_text(Arena *arena, const Domain *domain)
{
    int64_t s = domain->oldest_s;

    if (!domain->oldest_at)
        return "-";
    if (s < 60)
        return arena_print(arena, "%" PRId64 "s", s);
    if (s < 3600)
        return arena_print(arena, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
    if (s < 86400)
        return arena_print(arena, "%" PRId64 "h%02" PRId64 "m", s / 3600, s % 3600 / 60);
    return arena_print(arena, "%" PRId64 "d%02" PRId64 "h", s / 86400, s % 86400 / 3600);
}

/* "250ms", "3.2s", "2h05m". */
static const char *time_text(Arena *arena, int64_t ms)
{
    if (ms < 0)
        return "-";
    if (ms < 1000)
        return arena_print(arena, "%" PRId64 "ms", ms);
    if (ms < 60000)
        return arena_print(arena, "%.1fs", (double)ms / 1000);
    return arena_print(arena, "%" PRId64 "m%02" PRId64 "s", ms / 60000, ms / 1000 % 60);
}

static DomainLine line_of(Arena *arena, const Domain *domain)
{
    return (DomainLine){domain->domain,
                        number_text(arena, domain, "queued", domain->queued),
                        number_text(arena, domain, "delayed", domain->delayed),
                        number_text(arena, domain, "parked", domain->parked),
                        number_text(arena, domain, "running", domain->running),
                        number_text(arena, domain, "in_tsq", domain->in_tsq),
                        age_text(arena, domain),
                        domain->sent_per_s,
                        domain->ended_per_s,
                        time_text(arena, domain->wait_p95_ms),
                        domain->pauses   ? domain->limits ? "paused, limited" : "paused"
                        : domain->limits ? "limited"
                                         : NULL};
}

static const ListColumn line_columns[] = {
    {"domain",    NULL, CELL_TEXT, offsetof(DomainLine, domain) },
    {">queued",   NULL, CELL_TEXT, offsetof(DomainLine, queued) },
    {">oldest",   NULL, CELL_TEXT, offsetof(DomainLine, oldest) },
    {">running",  NULL, CELL_TEXT, offsetof(DomainLine, running)},
    {">delayed",  NULL, CELL_TEXT, offsetof(DomainLine, delayed)},
    {">parked",   NULL, CELL_TEXT, offsetof(DomainLine, parked) },
    {">in tsq",   NULL, CELL_TEXT, offsetof(DomainLine, in_tsq) },
    {">in/s",     NULL, CELL_TEXT, offsetof(DomainLine, in)     },
    {">out/s",    NULL, CELL_TEXT, offsetof(DomainLine, out)    },
    {">wait p95", NULL, CELL_TEXT, offsetof(DomainLine, wait)   },
    {"held",      NULL, CELL_TEXT, offsetof(DomainLine, held)   },
};
static const ListShape line_shape = {line_columns, COUNT(line_columns), sizeof(DomainLine), "no domains", NULL};
static const ListShape json_shape = {line_columns, COUNT(line_columns), sizeof(Domain), "no domains", domain_write};

static void rows_add(Call *call, List *list, const Domain *rows, int count)
{
    DomainLine *lines;

    if (call->json) {
        list_rows(list, rows, count);
        return;
    }
    lines = arena_array(call->arena, DomainLine, count);
    for (int i = 0; i < count; i++)
        lines[i] = line_of(call->arena, &rows[i]);
    list_rows(list, lines, count);
}

ErrorCode command_domain_list(Call *call, Error *reterr)
{
    DomainFilter filter  = {.order = call_flag(call, "--order")};
    bool         by_name = !filter.order || strcmp(filter.order, domain_orders[0]) == 0;
    List         list;
    Domain      *rows;
    int          left, count;

    TRY(call_limit(call, by_name ? 10000 : DOMAIN_LIST_MAX, &left, reterr));
    if (!by_name && strcmp(filter.order, domain_orders[1]) != 0)
        return fail(reterr, ERR_USAGE, "--order must be \"name\" or \"depth\", got \"%.40s\"", filter.order);
    TRY(call_open(call, APP_SCHEMA, reterr));
    list_begin(&list, call->json ? &json_shape : &line_shape, call->arena, call->json);
    do {
        filter.limit = left < DOMAIN_LIST_MAX ? left : DOMAIN_LIST_MAX;
        TRY(source_domain_list(call, &filter, &rows, &count, reterr));
        rows_add(call, &list, rows, count);
        left -= count;
        if (count > 0)
            filter.after = rows[count - 1].domain;
    } while (by_name && left > 0 && count == filter.limit);
    list_end(&list);
    return OK;
}

static Value array_of(const char *json)
{
    return json ? value_trim(json, strlen(json)) : (Value){0};
}

/* "everything", "type ship" */
static const char *what_text(Call *call, Value held)
{
    const char *type = value_text(value_field(held, "type"), call->arena);

    return type && strcmp(type, "*") != 0 ? arena_print(call->arena, "type %s", type) : "everything";
}

static void pauses_print(Call *call, const char *json)
{
    const char *at = NULL;
    Value       pause;

    while (value_item_next(array_of(json), &at, &pause)) {
        const char *reason = value_text(value_field(pause, "reason"), call->arena);

        print_line("paused", arena_print(call->arena, "%s, since %s by %s%s%s", what_text(call, pause),
                                         moment_short(call->arena, value_text(value_field(pause, "at"), call->arena)),
                                         value_text(value_field(pause, "operator"), call->arena), reason ? ": " : "",
                                         reason ? reason : ""));
    }
}

/* "100/s", "30/m" */
static void rate_print(Call *call, Value limit, Text *text)
{
    const char *per_s    = value_raw(value_field(limit, "rate_per_s"), call->arena);
    int64_t     period_s = value_i64(value_field(limit, "period_s"));

    if (per_s)
        text_print(text, ", %.0f/%s", strtod(per_s, NULL) * (double)period_s, period_s == 60 ? "m" : "s");
}

static void limits_print(Call *call, const char *json)
{
    const char *at = NULL;
    Value       limit;

    while (value_item_next(array_of(json), &at, &limit)) {
        int64_t running = value_i64(value_field(limit, "running")), burst = value_i64(value_field(limit, "burst"));
        Text    text;

        text_init(&text, call->arena, TEXT_MAX_LINE);
        text_print(&text, "%s%s", what_text(call, limit),
                   value_true(value_field(limit, "per_key")) ? ", each key" : "");
        if (running)
            text_print(&text, ", %" PRId64 " running", running);
        rate_print(call, limit, &text);
        if (burst)
            text_print(&text, ", %" PRId64 " at once", burst);
        print_line("limited", text_string(&text));
    }
}

static void domain_print(Call *call, const Domain *domain)
{
    DomainLine  line   = line_of(call->arena, domain);
    const char *oldest = domain->oldest_at
                             ? arena_print(call->arena, ", the oldest for %s, since %s", line.oldest,
                                           moment_short(call->arena, moment_text(call->arena, domain->oldest_at)))
                             : "";

    print_line("domain", line.domain);
    print_line("queued", arena_print(call->arena, "%s%s", line.queued, oldest));
    print_line("running", line.running);
    print_line("delayed", line.delayed);
    print_line("parked", line.parked);
    print_line("in tsq", line.in_tsq);
    pauses_print(call, domain->pauses);
    limits_print(call, domain->limits);
    if (domain->recent)
        print_line("5 minutes",
                   arena_print(call->arena, "%s sent and %s ended per second; wait p50 %s, p95 %s; run p50 %s, p95 %s",
                               line.in, line.out, time_text(call->arena, domain->wait_p50_ms), line.wait,
                               time_text(call->arena, domain->run_p50_ms), time_text(call->arena, domain->run_p95_ms)));
}

ErrorCode command_domain_show(Call *call, Error *reterr)
{
    Domain  domain, processes;
    Writer *writer;

    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_domain_show(call, call->arguments[0], &domain, &processes, reterr));
    if (call->json) {
        writer = print_writer(call->arena);
        domain_show_write(writer, &domain, &processes);
        print_json(writer);
        return OK;
    }
    domain_print(call, &domain);
    if (processes.domain[0]) {
        printf("\n");
        domain_print(call, &processes);
    }
    return OK;
}
