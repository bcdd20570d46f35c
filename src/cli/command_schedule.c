/*
 * command_schedule.c - schedules: commands and processes that are sent at given times.
 */
#include <inttypes.h>
#include <string.h>

#include "base/setting.h"
#include "base/uuid.h"
#include "base/writer.h"
#include "cli/command.h"
#include "cli/decision.h"
#include "cli/print.h"
#include "schedule/schedule.h"

#define PAGE_SCHEDULES 100

static ScheduleDecision decision_of(const Call *call)
{
    return (ScheduleDecision){call->arguments[0], call_operator(call), call_flag(call, "--reason")};
}

/* ---- show ---- */

/* "0 2 * * * Europe/Berlin", "every 10m" */
static const char *times_print(Arena *arena, const Schedule *schedule)
{
    Text text;

    if (schedule->cron)
        return arena_print(arena, "%s %s", schedule->cron, schedule->timezone);
    text_init(&text, arena, TEXT_MAX_LINE);
    text_append(&text, "every ");
    setting_duration_print(schedule->every_ms, &text);
    return text_string(&text);
}

typedef struct {
    const char *name, *times, *what, *status, *error;
    int64_t     next_at, last_at;
} ScheduleLine;

static ErrorCode pages_print(Call *call, ScheduleFilter *filter, int left, Error *reterr)
{
    static const ListColumn columns[] = {
        {"name",   NULL, CELL_TEXT, offsetof(ScheduleLine, name)   },
        {"times",  NULL, CELL_TEXT, offsetof(ScheduleLine, times)  },
        {"sends",  NULL, CELL_TEXT, offsetof(ScheduleLine, what)   },
        {"status", NULL, CELL_TEXT, offsetof(ScheduleLine, status) },
        {"next",   NULL, CELL_TIME, offsetof(ScheduleLine, next_at)},
        {"last",   NULL, CELL_TIME, offsetof(ScheduleLine, last_at)},
        {"error",  NULL, CELL_TEXT, offsetof(ScheduleLine, error)  },
    };
    ListShape lines = {columns, COUNT(columns), sizeof(ScheduleLine), "no schedules", NULL};
    ListShape rows  = {columns, COUNT(columns), sizeof(Schedule), "no schedules", schedule_write};
    List      list;

    list_begin(&list, call->json ? &rows : &lines, call->arena, call->json);
    for (int count = PAGE_SCHEDULES; left > 0 && count == PAGE_SCHEDULES; left -= count) {
        Schedule     *page;
        ScheduleLine *shown;

        filter->limit = left < PAGE_SCHEDULES ? left : PAGE_SCHEDULES;
        TRY(schedule_list(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, filter, &page, &count, reterr));
        shown = arena_array(call->arena, ScheduleLine, count);
        for (int i = 0; i < count; i++)
            shown[i] = (ScheduleLine){page[i].name,
                                      times_print(call->arena, &page[i]),
                                      arena_print(call->arena, "%s%s/%s", page[i].is_process ? "process " : "",
                                                  page[i].domain, page[i].type),
                                      page[i].status,
                                      page[i].error,
                                      page[i].next_at,
                                      page[i].last_at};
        list_rows(&list, call->json ? (const void *)page : shown, count);
        if (count > 0)
            filter->before = page[count - 1].id;
    }
    list_end(&list);
    return OK;
}

ErrorCode command_schedule_list(Call *call, Error *reterr)
{
    ScheduleFilter filter = {.domain = call_flag(call, "--domain"),
                             .type   = call_flag(call, "--type"),
                             .status = call_flag(call, "--status")};
    int            limit;

    TRY(call_limit(call, 1000, &limit, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    return pages_print(call, &filter, limit, reterr);
}

static void time_line(const char *name, int64_t at)
{
    char text[WALL_TEXT_SIZE];

    if (!at)
        return;
    wall_text((Wall){at}, text);
    print_line(name, text);
}

static ErrorCode schedule_print(Call *call, const char *name, Error *reterr)
{
    Schedule schedule;

    TRY(schedule_find(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, name, &schedule, reterr));
    if (call->json) {
        object_print(schedule_whole_write, call->arena, &schedule);
        return OK;
    }
    print_line("name", schedule.name);
    print_line("status", schedule.status);
    print_line("times", times_print(call->arena, &schedule));
    if (schedule.jitter_ms)
        print_line("jitter", arena_print(call->arena, "%" PRId64 " ms", schedule.jitter_ms));
    print_line("missed", schedule.missed);
    print_line("overlap", schedule.overlap);
    print_line(schedule.is_process ? "process" : "command",
               arena_print(call->arena, "%s/%s", schedule.domain, schedule.type));
    print_line(schedule.is_process ? "state" : "payload", schedule.payload);
    time_line("next", schedule.next_at);
    time_line("last", schedule.last_at);
    print_line("last id", schedule.last_id);
    time_line("skipped", schedule.skipped_at);
    time_line("failing since", schedule.failing_since);
    print_line("error", schedule.error);
    time_line("created", schedule.created_at);
    time_line("changed", schedule.changed_at);
    return OK;
}

ErrorCode command_schedule_show(Call *call, Error *reterr)
{
    TRY(call_open(call, APP_SCHEMA, reterr));
    return schedule_print(call, call->arguments[0], reterr);
}

typedef struct {
    const ScheduleTime *list;
    int                 count;
} NextTimes;

static void times_write(Writer *writer, const void *row)
{
    const NextTimes *times = row;

    schedule_times_write(writer, times->list, times->count);
}

ErrorCode command_schedule_next(Call *call, Error *reterr)
{
    static const ListColumn columns[] = {
        {"time",  NULL, CELL_TIME, offsetof(ScheduleTime, at)    },
        {"local", NULL, CELL_TEXT, offsetof(ScheduleTime, local) },
        {"due",   NULL, CELL_TIME, offsetof(ScheduleTime, due_at)},
    };
    static const ListShape shape = {columns, COUNT(columns), sizeof(ScheduleTime), "no time within 50 years", NULL};
    ScheduleTime          *list;
    int64_t                wanted;
    int                    count;

    TRY(call_number("--count", call_flag(call, "--count"), 1, SCHEDULE_NEXT_MAX, SCHEDULE_NEXT_DEFAULT, &wanted,
                    reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(schedule_next(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, call->arguments[0], (int)wanted, &list,
                      &count, reterr));
    if (call->json)
        object_print(times_write, call->arena, &(NextTimes){list, count});
    else
        list_print(&shape, call->arena, false, list, count);
    return OK;
}

/* ---- decide ---- */

/* The times, and how long: flags whose form SQL does not see. */
static ErrorCode request_read(Call *call, ScheduleRequest *ret_request, Error *reterr)
{
    int64_t every_ms, jitter_ms;

    *ret_request = (ScheduleRequest){.name     = call->arguments[0],
                                     .domain   = call->arguments[1],
                                     .type     = call->arguments[2],
                                     .cron     = call_flag(call, "--cron"),
                                     .timezone = call_flag(call, "--timezone"),
                                     .missed   = call_flag(call, "--missed"),
                                     .overlap  = call_flag(call, "--overlap"),
                                     .process  = call_flag(call, "--process") != NULL};
    if (!ret_request->cron == !call_flag(call, "--every"))
        return fail(reterr, ERR_USAGE, "give --cron EXPR or --every TIME, and not both");
    TRY(call_duration(call, "--every", 0, &every_ms, reterr));
    TRY(call_duration(call, "--jitter", 0, &jitter_ms, reterr));
    if (call_flag(call, "--every") && every_ms < 1000)
        return fail(reterr, ERR_USAGE, "--every must be at least 1s, got \"%.60s\"", call_flag(call, "--every"));
    ret_request->every_s  = (double)every_ms / 1000;
    ret_request->jitter_s = (double)jitter_ms / 1000;
    return call_payload(call, 3, &ret_request->payload, reterr);
}

ErrorCode command_schedule_create(Call *call, Error *reterr)
{
    ScheduleRequest  request;
    ScheduleDecision decision = decision_of(call);
    const char      *done;

    TRY(request_read(call, &request, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(schedule_create(call->pool, deadline_in_ms(APP_COMMAND_MS), /* lock_ms= */ 0, call->arena, &request,
                        call_flag(call, "--replace") != NULL, &decision, &done, reterr));
    return schedule_print(call, request.name, reterr);
}

typedef ErrorCode Decide(Pool *pool, Deadline deadline, int lock_ms, const ScheduleDecision *decision,
                         bool *ret_changed, Error *reterr);

static ErrorCode decide(Call *call, Decide *function, bool *ret_changed, Error *reterr)
{
    ScheduleDecision decision = decision_of(call);

    TRY(call_open(call, APP_SCHEMA, reterr));
    return function(call->pool, deadline_in_ms(APP_COMMAND_MS), /* lock_ms= */ 0, &decision, ret_changed, reterr);
}

ErrorCode command_schedule_pause(Call *call, Error *reterr)
{
    bool changed;

    TRY(decide(call, schedule_pause, &changed, reterr));
    return schedule_print(call, call->arguments[0], reterr);
}

ErrorCode command_schedule_resume(Call *call, Error *reterr)
{
    bool changed;

    TRY(decide(call, schedule_resume, &changed, reterr));
    return schedule_print(call, call->arguments[0], reterr);
}

ErrorCode command_schedule_delete(Call *call, Error *reterr)
{
    bool changed;

    TRY(decide(call, schedule_delete, &changed, reterr));
    if (!changed)
        return fail(reterr, ERR_NOT_FOUND, "schedule \"%.100s\" not found", call->arguments[0]);
    if (call->json)
        printf("{\"name\":\"%s\",\"deleted\":true}\n", call->arguments[0]); /* a name needs no escapes */
    else
        printf("deleted %s\n", call->arguments[0]);
    return OK;
}

ErrorCode command_schedule_run(Call *call, Error *reterr)
{
    ScheduleDecision decision = decision_of(call);
    char             id[UUID_TEXT_SIZE];
    const char      *given, *wake;

    TRY(call_uuid(call, "--id", &given, reterr));
    if (!given) {
        uuid_new(id);
        given = id;
    }
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(schedule_run(call->pool, deadline_in_ms(APP_COMMAND_MS), /* lock_ms= */ 0, call->arena, given, &decision, &wake,
                     reterr));
    wake_domains(call, wake);
    if (call->json)
        printf("{\"command_id\":\"%s\"}\n", given);
    else
        printf("%s\n", given);
    return OK;
}
