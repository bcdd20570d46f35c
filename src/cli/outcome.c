/*
 * outcome.c - see outcome.h.
 */
#include "cli/outcome.h"

#include <string.h>

#include "cli/print.h"
#include "cli/source.h"

#define WAIT_MS_DEFAULT 30000
#define WAIT_MS_MAX     ((int64_t)365 * 24 * 3600 * 1000)

ErrorCode wait_take(const Call *call, int64_t *ret_wait_ms, Error *reterr)
{
    const char *text = call_flag(call, "--wait");

    *ret_wait_ms = text ? WAIT_MS_DEFAULT : 0;
    if (!text)
        return OK;
    if (*text)
        TRY(call_duration(call, "--wait", 0, ret_wait_ms, reterr));
    if (*ret_wait_ms < 1 || *ret_wait_ms > WAIT_MS_MAX)
        return fail(reterr, ERR_USAGE, "--wait must be from 1ms to 365d, got \"%.60s\"", text);
    return OK;
}

static void outcome_print_json(Call *call, const char *noun, const SendItem *item, const CommandOutcome *outcome)
{
    Writer *writer = print_writer(call->arena);

    writer_object(writer, NULL);
    writer_text(writer, arena_print(call->arena, "%s_id", noun), item->first_id);
    if (item->duplicate)
        writer_text(writer, "duplicate", item->duplicate);
    writer_text(writer, "status", outcome->status);
    writer_bool(writer, "created", item->is_new);
    if (outcome->result)
        writer_raw(writer, "result", outcome->result);
    else
        writer_null(writer, "result");
    writer_text(writer, "error", outcome->error);
    writer_end(writer);
    print_json(writer);
}

/* "COMPLETED {...}", "FAILED: no stock" */
static void outcome_print(const CommandOutcome *outcome)
{
    printf("%s%s%s%s%s\n", outcome->status, outcome->error ? ": " : "", outcome->error ? outcome->error : "",
           outcome->result ? " " : "", outcome->result ? outcome->result : "");
}

ErrorCode wait_print(Call *call, const char *noun, const char *prefix, const SendItem *item, int64_t wait_ms,
                     Error *reterr)
{
    CommandOutcome outcome;

    fflush(stdout);
    TRY(source_wait(call, noun, prefix, item, wait_ms, &outcome, reterr));
    if (call->json)
        outcome_print_json(call, noun, item, &outcome);
    if (!outcome.ended)
        return fail(reterr, ERR_TIMEOUT, "%s %s has not ended in time: it is %s", noun, item->first_id, outcome.status);
    if (!call->json)
        outcome_print(&outcome);
    if (strcmp(outcome.status, "COMPLETED") != 0)
        return fail(reterr, ERR_CONFLICT, "%s %s has ended as %s%s%.300s", noun, item->first_id, outcome.status,
                    outcome.error ? ": " : "", outcome.error ? outcome.error : "");
    return OK;
}
