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
#include "cli/command.h"
#include "cli/decision.h"
#include "cli/pages.h"
#include "cli/print.h"
#include "cli/source.h"
#include "cli/timeline.h"

#define LIST_MAX 1000

static ErrorCode filter_read(const Call *call, CommandFilter *ret_filter, Error *reterr)
{
    int limit;

    TRY(call_limit(call, LIST_MAX, &limit, reterr));
    *ret_filter = (CommandFilter){.domain = call_flag(call, "--domain"),
                                  .status = call_flag(call, "--status"),
                                  .type   = call_flag(call, "--type"),
                                  .limit  = limit};
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

static ErrorCode commands_print(Call *call, const CommandFilter *filter, const char *none, Error *reterr)
{
    ListShape shape = {list_columns, COUNT(list_columns), sizeof(Command), none, command_write};
    int64_t   total;

    TRY(call_open(call, APP_SCHEMA, reterr));
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

ErrorCode command_command_cancel(Call *call, Error *reterr)
{
    const char *id, *domain = call_flag(call, "--domain");
    Decision    decision;

    TRY(call_id(call, &id, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_command_cancel(call, id, domain, &decision, reterr));
    return decision_print(call, "command", id, &decision, reterr);
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
    TRY(source_tsq_decide(call, id, domain, decision, &made, reterr));
    return decision_print(call, "command", id, &made, reterr);
}

static const char *const decided_words[] = {
    [TSQ_RETRY] = "queued again", [TSQ_CANCEL] = "canceled", [TSQ_COMPLETE] = "completed"};

/* All that match, page by page. */
static ErrorCode decide_all(Call *call, const TsqDecision *decision, Error *reterr)
{
    CommandFilter filter;
    int64_t       total, done = 0, locked = 0;

    TRY(filter_read(call, &filter, reterr));
    filter.status = "IN_TSQ";
    filter.limit  = LIST_MAX;
    TRY(command_count(call->pool, deadline_in_ms(APP_COMMAND_MS), &filter, &total, reterr));
    if (total > 0 && !call_flag(call, "--yes")) {
        fprintf(stderr, "%" PRId64 " command%s: add --yes to decide about %s\n", total,
                total == 1 ? " matches" : "s match", total == 1 ? "it" : "all of them");
        return fail(reterr, ERR_USAGE, "nothing was done");
    }
    do {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        Command                  *list;
        Decision                 *made;
        const char               *ids[LIST_MAX], *domains[LIST_MAX];
        int                       count;

        TRY(command_list(call->pool, deadline_in_ms(APP_COMMAND_MS), arena, &filter, &list, &count, &filter.before,
                         reterr));
        for (int i = 0; i < count; i++) {
            ids[i]     = list[i].command_id;
            domains[i] = list[i].domain;
        }
        if (count) {
            TRY(tsq_decide(call->pool, deadline_in_ms(APP_COMMAND_MS), /* lock_ms= */ 0, arena,
                           (CommandNames){ids, domains, count}, decision, &made, reterr));
            wake_domains(call, made->wake);
        }
        for (int i = 0; i < count; i++) {
            done += made[i].is_new;
            locked += strcmp(made[i].verdict, "LOCKED") == 0;
        }
    } while (filter.before);
    if (call->json)
        printf("{\"decided\":%" PRId64 "}\n", done);
    else
        printf("%" PRId64 " %s\n", done, decided_words[decision->action]);
    if (locked)
        return fail(reterr, ERR_BUSY, "%" PRId64 " processes are locked by other transactions: try again", locked);
    return OK;
}

static ErrorCode decide(Call *call, TsqAction action, Error *reterr)
{
    TsqDecision decision = {.action = action,
                            .actor  = call_operator(call),
                            .reason = call_flag(call, "--reason"),
                            .result = call_flag(call, "--result")};
    bool        is_all;

    TRY(call_one_or_all(call, "command", &is_all, reterr));
    TRY(call_json(call, "--result", &decision.result, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    if (is_all)
        TRY(source_must_be_database(call, "--all", reterr));
    return is_all ? decide_all(call, &decision, reterr) : decide_one(call, &decision, reterr);
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
