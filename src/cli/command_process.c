/*
 * command_process.c - start, signal, show and list processes.
 */
#include <stdio.h>
#include <string.h>

#include "base/uuid.h"
#include "base/writer.h"
#include "cli/command.h"
#include "cli/decision.h"
#include "cli/outcome.h"
#include "cli/print.h"
#include "cli/process_bulk.h"
#include "cli/source.h"
#include "cli/timeline.h"
#include "process/process_fields.h"

#define PAGE_ROWS 100

/* ---- start and signal ---- */

/* A process of a type that no file defines is not refused: a program may run it. But a misspelled type should not wait unnoticed. */
static void type_warn(Call *call)
{
    const char *domain = call_flag(call, "--domain");
    const char *note;

    if (!call->is_remote &&
        process_type_note(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena,
                          domain ? domain : PROCESS_DOMAIN_DEFAULT, call->arguments[0], &note, NULL) == OK &&
        note)
        fprintf(stderr, "note: %s%s\n", note, domain ? "" : " (is --domain missing?)");
}

static ErrorCode start_one(Call *call, SendItem *item, Error *reterr)
{
    int64_t wait_ms;

    TRY(wait_take(call, &wait_ms, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(key_take(call, "--id", &item->command_id, reterr));
    TRY(source_process_start(call, item, reterr));
    if (!call->json)
        printf("%s\n", item->id);
    else if (!wait_ms)
        printf("{\"process_id\":\"%s\",\"created\":%s}\n", item->id, item->is_new ? "true" : "false");
    type_warn(call);
    return wait_ms ? wait_print(call, "process", PROCESS_DOMAIN_PREFIX, item, wait_ms, reterr) : OK;
}

static ErrorCode start_each_line(Call *call, const SendItem *model, Error *reterr)
{
    TRY(send_lines_check(call, /* count= */ 1, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_must_be_database(call, "--lines", reterr));
    TRY(send_lines(call, &(SendLines){.model = model, .word = "started", .check = process_state_check}, reterr));
    type_warn(call);
    return OK;
}

ErrorCode command_process_start(Call *call, Error *reterr)
{
    SendItem    item;
    const char *id, *state;

    TRY(call_uuid(call, "--id", &id, reterr));
    TRY(call_payload(call, 1, &state, reterr));
    TRY(process_start_item(call->arena, call->arguments[0], state, id, call_flag(call, "--domain"), &item, reterr));
    TRY(process_start_deadline(call->arena, call_flag(call, "--deadline"), call_flag(call, "--on-deadline"), &item,
                               reterr));
    TRY(send_turn_take(call, &item, reterr));
    item.actor    = call_operator(call);
    item.is_keyed = call_flag(call, "--key") != NULL;
    return call_flag(call, "--lines") ? start_each_line(call, &item, reterr) : start_one(call, &item, reterr);
}

ErrorCode process_name_read(const Call *call, ProcessName *ret_name, Error *reterr)
{
    ret_name->domain = call_flag(call, "--domain");
    return call_id(call, &ret_name->id, reterr);
}

/* It is stored anyway: operators correct the state with names of their own. But a misspelled one should not leave the process waiting unnoticed. */
static void signal_warn(Call *call, const ProcessSignal *signal, const ProcessSignaled *signaled)
{
    const char *nearest = process_signal_nearest(call->arena, signal->name, signaled);

    if (signaled->expected)
        fprintf(stderr, "note: no wait of its definition%s%s takes \"%s\"%s%s%s%s\n", signal->step ? " in step " : "",
                signal->step ? signal->step : "", signal->name,
                nearest               ? ", did you mean \""
                : *signaled->expected ? "; they take: "
                                      : ": it has none",
                nearest ? nearest : signaled->expected, nearest ? "\"?" : "",
                signal->payload && signal->payload[0] == '{' ? "; the state has its payload now" : "");
}

static void signaled_print(Call *call, const ProcessName *name, const ProcessSignal *signal,
                           const ProcessSignaled *signaled)
{
    if (!call->json) {
        printf("%s %s\n", name->id, signaled->verdict);
        return;
    }
    Writer *writer = print_writer(call->arena);

    process_signaled_write(writer, call->arena, name->id, signal, signaled, /* with_verdict= */ true);
    print_json(writer);
}

ErrorCode command_process_signal(Call *call, Error *reterr)
{
    char            key[UUID_TEXT_SIZE];
    ProcessName     name;
    ProcessSignal   signal = {.name  = call->arguments[1],
                              .key   = call_flag(call, "--key"),
                              .step  = call_flag(call, "--step"),
                              .actor = call_operator(call)};
    ProcessSignaled signaled;

    TRY(process_name_read(call, &name, reterr));
    TRY(call_payload(call, 2, &signal.payload, reterr));
    uuid_new(key);
    signal.key = signal.key ? signal.key : key;
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_process_signal(call, name, &signal, &signaled, reterr));
    signaled_print(call, &name, &signal, &signaled);
    signal_warn(call, &signal, &signaled);
    return OK;
}

/* ---- show and list ---- */

ErrorCode command_process_show(Call *call, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT * 8); /* a long process has a long history */
    ProcessName               name;
    const char               *json;

    TRY(process_name_read(call, &name, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_process_show(call, arena, name, &json, reterr));
    if (call->json)
        printf("%s\n", json);
    else
        TRY(process_timeline_print(json, arena, reterr));
    return OK;
}

static const ListColumn list_columns[] = {
    {"id",      NULL, CELL_TEXT, offsetof(Process, process_id)},
    {"domain",  NULL, CELL_TEXT, offsetof(Process, domain)    },
    {"type",    NULL, CELL_TEXT, offsetof(Process, type)      },
    {"status",  NULL, CELL_TEXT, offsetof(Process, status)    },
    {"step",    NULL, CELL_TEXT, offsetof(Process, step)      },
    {"started", NULL, CELL_TIME, offsetof(Process, created_at)},
    {"error",   NULL, CELL_TEXT, offsetof(Process, error)     },
};
static const ListShape list_shape = {list_columns, COUNT(list_columns), sizeof(Process), "no processes",
                                     process_row_write};

ErrorCode process_filter_read(const Call *call, ProcessFilter *ret_filter, Error *reterr)
{
    *ret_filter = (ProcessFilter){.domain = call_flag(call, "--domain"),
                                  .type   = call_flag(call, "--type"),
                                  .status = call_flag(call, "--status"),
                                  .step   = call_flag(call, "--step"),
                                  .text   = call_flag(call, "--text")};
    TRY(call_duration(call, "--older", 0, &ret_filter->older_ms, reterr));
    return process_status_check(ret_filter->status, reterr) == OK ? OK : ERR_USAGE;
}

ErrorCode command_process_list(Call *call, Error *reterr)
{
    ProcessFilter filter;
    int           left;
    List          list;

    TRY(call_limit(call, PROCESS_LIST_MAX, &left, reterr));
    TRY(process_filter_read(call, &filter, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    domain_note(call, PROCESS_DOMAIN_PREFIX, filter.domain);
    list_begin(&list, &list_shape, call->arena, call->json);
    do {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        Process                  *rows;
        int                       count;

        filter.limit = left < PAGE_ROWS ? left : PAGE_ROWS;
        TRY(source_process_list(call, arena, &filter, &rows, &count, &filter.before, reterr));
        list_rows(&list, rows, count);
        left -= count;
    } while (left > 0 && filter.before);
    list_end(&list);
    return OK;
}
