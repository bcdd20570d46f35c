/*
 * command_bus.c - pawl command, pawl tsq and pawl batch: list, show, decide.
 */
#include <inttypes.h>
#include <string.h>

#include "base/word.h"
#include "base/writer.h"
#include "bus/batch.h"
#include "bus/command.h"
#include "bus/send_fields.h"
#include "cli/bulk.h"
#include "cli/command.h"
#include "cli/decision.h"
#include "cli/pages.h"
#include "cli/print.h"
#include "cli/source.h"
#include "cli/timeline.h"

#define LIST_MAX 1000

/* Of the filter, as its JSON names them. */
static const struct {
    const char *name;
    size_t      offset;
} filter_members[] = {
    {"domain",         offsetof(CommandFilter, domain)        },
    {"status",         offsetof(CommandFilter, status)        },
    {"type",           offsetof(CommandFilter, type)          },
    {"since",          offsetof(CommandFilter, since)         },
    {"until",          offsetof(CommandFilter, until)         },
    {"batch_id",       offsetof(CommandFilter, batch_id)      },
    {"command_id",     offsetof(CommandFilter, command_id)    },
    {"correlation_id", offsetof(CommandFilter, correlation_id)},
    {"order_key",      offsetof(CommandFilter, order_key)     },
};

static ErrorCode filter_read(const Call *call, CommandFilter *ret_filter, Error *reterr)
{
    int64_t since, until;
    int     limit;

    TRY(call_limit(call, LIST_MAX, &limit, reterr));
    *ret_filter = (CommandFilter){.domain         = call_flag(call, "--domain"),
                                  .status         = call_flag(call, "--status"),
                                  .type           = call_flag(call, "--type"),
                                  .limit          = limit,
                                  .correlation_id = call_flag(call, "--correlation-id"),
                                  .order_key      = call_flag(call, "--order-key")};
    TRY(call_moment(call, "--since", &since, reterr));
    TRY(call_moment(call, "--until", &until, reterr));
    ret_filter->since = moment_text(call->arena, since);
    ret_filter->until = moment_text(call->arena, until);
    TRY(call_uuid(call, "--batch", &ret_filter->batch_id, reterr));
    if (call->count > 0)
        TRY(call_id(call, &ret_filter->command_id, reterr));
    return command_status_check(ret_filter->status, reterr) == OK ? OK : ERR_USAGE;
}

/* ---- command ---- */

ErrorCode command_command_show(Call *call, Error *reterr)
{
    const char *id, *json;

    TRY(call_id(call, &id, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_command_show(call, call->arena, id, call_flag(call, "--domain"), &json, reterr));
    if (call->json)
        printf("%s\n", json);
    else
        TRY(timeline_print(json, call->arena, reterr));
    return OK;
}

static const ListColumn list_columns[] = {
    {"id",        NULL, CELL_TEXT, offsetof(Command, command_id)},
    {"domain",    NULL, CELL_TEXT, offsetof(Command, domain)    },
    {"type",      NULL, CELL_TEXT, offsetof(Command, type)      },
    {"status",    NULL, CELL_TEXT, offsetof(Command, status)    },
    {">attempts", NULL, CELL_I32,  offsetof(Command, attempts)  },
    {"created",   NULL, CELL_TIME, offsetof(Command, created_at)},
    {"due",       NULL, CELL_TIME, offsetof(Command, due_at)    },
    {"error",     NULL, CELL_TEXT, offsetof(Command, error)     },
};

static ErrorCode commands_read(Call *call, Arena *arena, const void *filter, int limit, int64_t before, void *ret_rows,
                               int *ret_count, int64_t *ret_next, Error *reterr)
{
    CommandFilter page = *(const CommandFilter *)filter;

    page.limit  = limit;
    page.before = before;
    return source_command_list(call, arena, &page, ret_rows, ret_count, ret_next, reterr);
}

static ErrorCode count_check(const Call *call, Error *reterr)
{
    static const char *const filters[] = {"--since", "--until", "--batch", "--correlation-id", "--key", "--order-key"};

    for (size_t i = 0; call_flag(call, "--count") && i < COUNT(filters); i++)
        if (call_flag(call, filters[i]))
            return fail(reterr, ERR_USAGE, "--count takes --domain, --status and --type, not %s", filters[i]);
    return OK;
}

static ErrorCode commands_print(Call *call, CommandFilter *filter, const char *none, Error *reterr)
{
    ListShape shape = {list_columns, COUNT(list_columns), sizeof(Command), none, command_write};
    int64_t   total;

    TRY(count_check(call, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(key_take(call, "--id", &filter->command_id, reterr));
    domain_note(call, "", filter->domain);
    if (call_flag(call, "--count")) {
        TRY(source_must_be_database(call, "--count", reterr));
        TRY(command_count(call->pool, deadline_in_ms(APP_COMMAND_MS), filter, &total, reterr));
        printf(call->json ? "{\"count\":%" PRId64 "}\n" : "%" PRId64 "\n", total);
        return OK;
    }
    return list_pages(call, &(Pages){commands_read, filter, &shape, filter->limit, COMMAND_PAGE_ROWS}, reterr);
}

ErrorCode command_command_list(Call *call, Error *reterr)
{
    CommandFilter filter;

    TRY(filter_read(call, &filter, reterr));
    return commands_print(call, &filter, "no commands", reterr);
}

/* ---- all that match ---- */

static const char *filter_json(Call *call, const CommandFilter *filter)
{
    Text   text;
    Writer writer;

    text_init(&text, call->arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    for (size_t i = 0; i < COUNT(filter_members); i++) {
        const char *value = *(const char *const *)((const char *)filter + filter_members[i].offset);

        if (value)
            writer_text(&writer, filter_members[i].name, value);
    }
    writer_end(&writer);
    return text_string(&text);
}

/* status: the only one that the decision is about; NULL: that of the flag, or any. */
static ErrorCode all_decide(Call *call, const char *action, const char *status, const char *result, const char *decided,
                            Error *reterr)
{
    CommandFilter filter;

    TRY(filter_read(call, &filter, reterr));
    filter.status = status ? status : filter.status;
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(key_take(call, "--id", &filter.command_id, reterr));
    BulkNew bulk = {.noun     = "command",
                    .action   = action,
                    .filter   = filter_json(call, &filter),
                    .argument = result ? arena_print(call->arena, "{\"result\":%s}", result) : NULL,
                    .actor    = call_operator(call),
                    .reason   = call_flag(call, "--reason")};
    return bulk_run(call, &bulk, "commands", decided, reterr);
}

static ErrorCode cancel_one(Call *call, Error *reterr)
{
    const char *id, *domain = call_flag(call, "--domain");
    Decision    decision;

    TRY(call_id(call, &id, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_command_cancel(call, id, domain, &decision, reterr));
    return decision_print(call, "command", id, &decision, reterr);
}

ErrorCode command_command_cancel(Call *call, Error *reterr)
{
    bool is_all;

    TRY(call_one_or_all(call, "command", &is_all, reterr));
    return is_all ? all_decide(call, "cancel", /* status= */ NULL, /* result= */ NULL, "canceled", reterr)
                  : cancel_one(call, reterr);
}

ErrorCode command_command_delete(Call *call, Error *reterr)
{
    bool is_all;

    TRY(call_one_or_all(call, "command", &is_all, reterr));
    return all_decide(call, "delete", /* status= */ NULL, /* result= */ NULL, "deleted", reterr);
}

/* ---- tsq ---- */

ErrorCode command_tsq_list(Call *call, Error *reterr)
{
    CommandFilter filter;

    TRY(filter_read(call, &filter, reterr));
    filter.status = "IN_TSQ";
    return commands_print(call, &filter, "nothing in the troubleshooting queue", reterr);
}

static ErrorCode decide_one(Call *call, const TsqDecision *decision, Error *reterr)
{
    const char *id, *domain = call_flag(call, "--domain");
    Decision    made;

    TRY(call_id(call, &id, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_tsq_decide(call, id, domain, decision, &made, reterr));
    return decision_print(call, "command", id, &made, reterr);
}

static const char *const actions[] = {[TSQ_RETRY] = "retry", [TSQ_CANCEL] = "cancel", [TSQ_COMPLETE] = "complete"};
static const char *const decided_words[] = {
    [TSQ_RETRY] = "queued again", [TSQ_CANCEL] = "canceled", [TSQ_COMPLETE] = "completed"};

static ErrorCode decide(Call *call, TsqAction action, Error *reterr)
{
    TsqDecision decision = {.action = action,
                            .actor  = call_operator(call),
                            .reason = call_flag(call, "--reason"),
                            .result = call_flag(call, "--result")};
    bool        is_all;

    TRY(call_one_or_all(call, "command", &is_all, reterr));
    TRY(call_json(call, "--result", &decision.result, reterr));
    if (!is_all)
        return decide_one(call, &decision, reterr);
    return all_decide(call, actions[action], "IN_TSQ", decision.result, decided_words[action], reterr);
}

ErrorCode command_tsq_retry(Call *call, Error *reterr)
{
    return decide(call, TSQ_RETRY, reterr);
}

ErrorCode command_tsq_cancel(Call *call, Error *reterr)
{
    return decide(call, TSQ_CANCEL, reterr);
}

ErrorCode command_tsq_complete(Call *call, Error *reterr)
{
    return decide(call, TSQ_COMPLETE, reterr);
}

/* ---- batch ---- */

static void batch_print(Call *call, const Batch *batch)
{
    if (call->json) {
        object_print(batch_write, call->arena, batch);
        return;
    }
    printf("batch        %s  %s\nstatus       %s\ntotal        %" PRId64 "\npending      %" PRId64
           "\nin progress  %" PRId64 "\ncompleted    %" PRId64 "\nfailed       %" PRId64 "\ncanceled     %" PRId64
           "\nin tsq       %" PRId64 "\n",
           batch->batch_id, batch->name ? batch->name : "", batch->status, batch->total, batch->pending,
           batch->in_progress, batch->completed, batch->failed, batch->canceled, batch->in_tsq);
}

ErrorCode command_batch_show(Call *call, Error *reterr)
{
    const char *id;
    Batch       batch;

    TRY(call_id(call, &id, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_batch_progress(call, id, &batch, reterr));
    batch_print(call, &batch);
    return OK;
}

static const ListColumn batch_columns[] = {
    {"id",        NULL, CELL_TEXT, offsetof(BatchLine, batch_id)    },
    {"name",      NULL, CELL_TEXT, offsetof(BatchLine, name)        },
    {"status",    NULL, CELL_TEXT, offsetof(BatchLine, status)      },
    {"domain",    NULL, CELL_TEXT, offsetof(BatchLine, domain)      },
    {"created",   NULL, CELL_TIME, offsetof(BatchLine, created_at)  },
    {"completed", NULL, CELL_TIME, offsetof(BatchLine, completed_at)},
};

static ErrorCode batches_read(Call *call, Arena *arena, const void *filter, int limit, int64_t before, void *ret_rows,
                              int *ret_count, int64_t *ret_next, Error *reterr)
{
    BatchFilter page = *(const BatchFilter *)filter;

    page.limit  = limit;
    page.before = before;
    return source_batch_list(call, arena, &page, ret_rows, ret_count, ret_next, reterr);
}

ErrorCode command_batch_list(Call *call, Error *reterr)
{
    static const ListShape shape = {batch_columns, COUNT(batch_columns), sizeof(BatchLine), "no batches",
                                    batch_line_write};

    BatchFilter filter = {.status = call_flag(call, "--status"), .name = call_flag(call, "--name")};
    int64_t     since, until;

    TRY(call_limit(call, PAGES_LIMIT_MAX, &filter.limit, reterr));
    TRY(call_moment(call, "--since", &since, reterr));
    TRY(call_moment(call, "--until", &until, reterr));
    filter.since = moment_text(call->arena, since);
    filter.until = moment_text(call->arena, until);
    TRY(word_check("--status", filter.status, batch_statuses, reterr) == OK ? OK : ERR_USAGE);
    TRY(call_open(call, APP_SCHEMA, reterr));
    return list_pages(call, &(Pages){batches_read, &filter, &shape, filter.limit, BATCH_PAGE_ROWS}, reterr);
}

/* Open and empty: commands are added by send --batch, from any process. */
ErrorCode command_batch_create(Call *call, Error *reterr)
{
    BatchNew batch = {.name = call_flag(call, "--name"), .on_complete = call_flag(call, "--on-complete"), .open = true};
    SendRequest last;
    const char *id;

    TRY(call_uuid(call, "--id", &batch.batch_id, reterr));
    if (batch.on_complete)
        TRY(on_complete_read("--on-complete", batch.on_complete, call->arena, &last, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_batch_create(call, &batch, &id, reterr));
    printf(call->json ? "{\"batch_id\":\"%s\"}\n" : "%s\n", id);
    return OK;
}

ErrorCode command_batch_seal(Call *call, Error *reterr)
{
    const char *id;
    Batch       batch;

    TRY(call_id(call, &id, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_batch_seal(call, id, &batch, reterr));
    batch_print(call, &batch);
    return OK;
}
