/*
 * timeline.c - see timeline.h.
 */
#include "cli/timeline.h"

#include <inttypes.h>
#include <string.h>

#include "cli/print.h"
#include "cli/shown.h"

#define EVENT_INDENT 28 /* behind the time */

SHOWN(event, Event, EVENT_FIELDS);

#define COMMAND_FIELDS(X, R, T)                                                                           \
    X(T, TEXT, command_id, domain, type, status, error, reply_to, reply_process_id, reply_step)           \
    X(T, TEXT, correlation_id, batch_id, order_key, waits_for, created_at, due_at, lease_until, ended_at) \
    X(T, TEXT, worker_note)                                                                               \
    X(T, JSON, payload, result, progress, unique)                                                         \
    X(T, I64, attempts, max_attempts, priority)                                                           \
    R(T, audit, event)
SHOWN(command, CommandDetail, COMMAND_FIELDS);

static void event_line(const Event *event, Arena *arena)
{
    scoped_text Text line = {0};

    text_init(&line, NULL, TEXT_MAX_BODY);
    text_print(&line, "  %s  %-17s attempt %" PRId64, moment_short(arena, event->at), event->event, event->attempt);
    if (event->actor)
        text_print(&line, "  by %s", event->actor);
    if (event->details)
        text_print(&line, "  %s", event->details);
    print_wrapped(text_string(&line), EVENT_INDENT);
}

static void reply_line(const CommandDetail *detail, Arena *arena)
{
    if (detail->reply_process_id && detail->reply_step)
        print_line("reply to", arena_print(arena, "process %s, step %s", detail->reply_process_id, detail->reply_step));
    else
        print_line("reply to", detail->reply_to);
}

/* ---- progress ---- */

typedef struct {
    const char *step, *text, *at;
    int64_t     attempt, percent;
    bool        has_percent;
} ProgressLine;

static const Field progress_fields[] = {
    {"step", FIELD_TEXT, offsetof(ProgressLine, step)},
    {"attempt", FIELD_I64, offsetof(ProgressLine, attempt)},
    {"percent", FIELD_I64, offsetof(ProgressLine, percent), .is_set = offsetof(ProgressLine, has_percent)},
    {"text", FIELD_TEXT, offsetof(ProgressLine, text)},
    {"at", FIELD_TEXT, offsetof(ProgressLine, at)},
};
static const FieldTable progress_table = {"progress", progress_fields, COUNT(progress_fields), sizeof(ProgressLine)};

ErrorCode progress_print(const char *json, Arena *arena, Error *reterr)
{
    scoped_text Text line = {0};
    ProgressLine     progress;

    if (!json)
        return OK;
    TRY(reader_object(json, strlen(json), &progress_table, arena, &progress, reterr));
    text_init(&line, NULL, TEXT_MAX_BODY);
    if (progress.step)
        text_print(&line, "%s: ", progress.step);
    if (progress.has_percent)
        text_print(&line, "%" PRId64 " %%%s", progress.percent, progress.text ? ", " : "");
    text_print(&line, "%s (attempt %" PRId64 ", %s)", progress.text ? progress.text : "", progress.attempt,
               moment_short(arena, progress.at));
    print_line("progress", text_string(&line));
    return OK;
}

/* ---- the whole ---- */

ErrorCode timeline_print(const char *json, Arena *arena, Error *reterr)
{
    CommandDetail detail;
    const Event  *events;

    TRY(reader_object(json, strlen(json), &command_table, arena, &detail, reterr));
    print_line("command", detail.command_id);
    print_line("what", arena_print(arena, "%s / %s", detail.domain, detail.type));
    print_line("status", arena_print(arena, "%s, attempt %" PRId64 " of %" PRId64 ", priority %" PRId64, detail.status,
                                     detail.attempts, detail.max_attempts, detail.priority));
    print_line("due", moment_short(arena, detail.due_at));
    print_line("leased until", moment_short(arena, detail.lease_until));
    TRY(progress_print(detail.progress, arena, reterr));
    print_line("payload", detail.payload);
    print_line("result", detail.result);
    print_line("error", detail.error);
    reply_line(&detail, arena);
    print_line("correlation", detail.correlation_id);
    print_line("batch", detail.batch_id);
    print_line("order key", detail.order_key);
    print_line("unique key", detail.unique);
    print_line("waits for", detail.waits_for);
    if (detail.worker_note)
        print_line("waits for", arena_print(arena, "a worker: %s", detail.worker_note));
    printf("\n");
    events = detail.audit.items;
    for (int i = 0; i < detail.audit.count; i++)
        event_line(&events[i], arena);
    return OK;
}
