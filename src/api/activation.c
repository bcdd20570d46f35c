/*
 * activation.c - processes run by workers in any language: claim activations with their history, report what became of them, extend leases.
 */
#include <string.h>

#include "api/api.h"
#include "base/writer.h"
#include "bus/release.h"
#include "bus/settle.h"
#include "process/activation_fields.h"
#include "process/process.h"

#define HISTORY_BYTES_MAX ((size_t)8 << 20) /* of what one claim returns: it fits into a response */
#define CALL_MS           10000

static ErrorCode queue_read(Request *request, const char **ret_queue, Error *reterr)
{
    SendItem item;

    /* The check of a start is that of a domain, too. */
    TRY(process_start_item(request_arena(request), "x", NULL, NULL, request_capture(request, "domain"), &item, reterr));
    *ret_queue = item.domain;
    return OK;
}

/* ---- claim ---- */

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) : 0;
}

static const LoadedProcess *loaded_find(const LoadedProcess *list, int count, int64_t id)
{
    for (int i = 0; i < count; i++)
        if (list[i].id == id)
            return &list[i];
    return NULL;
}

/* No worker can be given it: an operator decides. */
static void activation_fail(Api *api, const ClaimedCommand *claimed, const char *error)
{
    SettleItem  item = {.id = claimed->id, .token = claimed->token, .outcome = OUTCOME_FAIL, .error = error};
    SettleItem *list = &item;

    settle_each(api->pool, deadline_in_ms(CALL_MS), NULL, &list, 1);
}

/* What fits into one response; the rest is released. */
static ErrorCode found_fit(Api *api, Arena *arena, ClaimedCommand *list, const LoadedProcess *const *found, int *count,
                           Error *reterr)
{
    size_t bytes = 0;
    int    kept  = 0;

    while (kept < *count) {
        bytes += text_bytes(found[kept]->steps) + text_bytes(found[kept]->responses) + text_bytes(found[kept]->state);
        if (bytes > HISTORY_BYTES_MAX)
            break;
        kept++;
    }
    if (kept == 0) {
        activation_fail(api, list,
                        arena_print(arena,
                                    "state, records and responses have %zu bytes: a worker over HTTP can be "
                                    "given at most %zu",
                                    bytes, HISTORY_BYTES_MAX));
        kept     = 1;
        list->id = 0;
    }
    if (kept < *count)
        TRY(lease_release(api->pool, deadline_in_ms(CALL_MS), arena, list + kept, *count - kept, reterr));
    *count = list->id ? kept : 0;
    return OK;
}

/* Those that pods run, because a file defines their type, are released: the others move up in both lists. */
static ErrorCode defined_release(Api *api, Arena *arena, ClaimedCommand *list, const LoadedProcess **found, int *count,
                                 Error *reterr)
{
    ClaimedCommand *defined = arena_array(arena, ClaimedCommand, *count);
    int             kept = 0, defined_count = 0;

    for (int i = 0; i < *count; i++) {
        if (found[i]->definition_id) {
            defined[defined_count++] = list[i];
            continue;
        }
        list[kept]    = list[i];
        found[kept++] = found[i];
    }
    memcpy(list + kept, defined, (size_t)defined_count * sizeof *list); /* a failure releases them all */
    if (defined_count == 0)
        return OK;
    if (kept == 0)
        return fail(reterr, ERR_CONFLICT, "type \"%s\" has a definition, so pods run it: claim types that have none",
                    list->type);
    TRY(lease_release(api->pool, deadline_in_ms(CALL_MS), arena, list + kept, defined_count, reterr));
    *count = kept;
    return OK;
}

/* Runs on a thread that claims: one round trip more, for all that was claimed. */
static ErrorCode activations_load(ClaimWait *wait, Arena *arena, ClaimedCommand *list, int *count, Error *reterr)
{
    Api                  *api   = wait->owner;
    int64_t              *ids   = arena_array(arena, int64_t, *count);
    const LoadedProcess **found = arena_array(arena, const LoadedProcess *, *count);
    LoadedProcess        *loaded;
    int                   loaded_count;

    for (int i = 0; i < *count; i++)
        ids[i] = list[i].id;
    TRY(process_load(api->pool, deadline_in_ms(CALL_MS), arena, ids, *count, /* bytes_max= */ 0, &loaded, &loaded_count,
                     reterr));
    for (int i = 0; i < *count; i++) {
        found[i] = loaded_find(loaded, loaded_count, list[i].id);
        if (!found[i])
            return fail(reterr, ERR_INTERNAL, "process %s has no state", list[i].command_id);
    }
    TRY(defined_release(api, arena, list, found, count, reterr));
    wait->found = found;
    return found_fit(api, arena, list, found, count, reterr);
}

static ErrorCode claim_write(const ClaimWait *wait, Writer *writer, Arena *arena, Error *reterr)
{
    return activations_write(writer, wait->list, wait->found, wait->count, arena, reterr);
}

ErrorCode api_activation_claim(void *context, Request *request, Response *response, Error *reterr)
{
    Api         *api = context;
    ClaimRequest given;
    const char  *queue;
    ClaimWait   *wait;

    (void)response;
    TRY(api_key_refuse(request,
                       "each claim leases other activations, and those of a lost response are queued again when "
                       "their leases expire",
                       reterr));
    TRY(queue_read(request, &queue, reterr));
    TRY(api_body_read(request, &activation_claim_table, &given, reterr));
    wait           = api_claim_wait(request, queue, &given, ACTIVATION_LEASE_S_DEFAULT);
    wait->on_found = activations_load;
    wait->owner    = api;
    wait->write    = claim_write;
    claims_suspend(api->claims, request, wait);
    return OK;
}

/* ---- report ---- */

ErrorCode api_activation_report(void *context, Request *request, Response *response, Error *reterr)
{
    Api                    *api   = context;
    Arena                  *arena = request_arena(request);
    ActivationReportRequest given;
    const char             *queue;
    ProcessReport         **reports;
    Wake                    wake = waker_wake(api->waker);
    Writer                  writer;

    TRY(queue_read(request, &queue, reterr));
    TRY(api_body_read(request, &activation_report_table, &given, reterr));
    TRY(activation_reports_read(&given, arena, &reports, reterr));
    TRY(process_report_each(api->pool, request_deadline(request), arena, request_capture(request, "domain"), &wake,
                            reports, given.items.count, reterr));
    writer_open(&writer, &response->body);
    return activation_reports_write(&writer, reports, given.items.count, arena, reterr);
}

/* ---- extend ---- */

ErrorCode api_activation_extend(void *context, Request *request, Response *response, Error *reterr)
{
    ExtendRequest given;
    const char   *queue;
    LeaseVerdict *verdicts;
    Writer        writer;

    TRY(queue_read(request, &queue, reterr));
    TRY(api_body_read(request, &activation_extend_table, &given, reterr));
    TRY(api_leases_extend(context, request, queue, &given,
                          given.lease_s > 0 ? given.lease_s : ACTIVATION_LEASE_S_DEFAULT, &verdicts, reterr));
    writer_open(&writer, &response->body);
    activation_leases_write(&writer, given.items.items, verdicts, given.items.count);
    return OK;
}
