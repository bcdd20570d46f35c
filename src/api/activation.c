/*
 * activation.c - processes run by workers in any language: claim activations with their history, report what became of them, extend leases, report how far
 * steps are.
 */
#include <string.h>

#include "api/api.h"
#include "api/domain.h"
#include "base/writer.h"
#include "bus/claim.h"
#include "bus/lease.h"
#include "bus/settle.h"
#include "process/activation_fields.h"
#include "process/process.h"

#define HISTORY_BYTES_MAX ((size_t)8 << 20) /* of what one claim reads; claims.h has what fits into a response */
#define LARGE_TEXT        "state, records and responses are larger than a worker over HTTP can be given"
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

/* No worker can be given the first one: an operator decides. The others are released, because this claim has no memory left for them. */
static ErrorCode first_fail(Api *api, Arena *arena, const ClaimedCommand *list, const char *error, int *count,
                            Error *reterr)
{
    SettleItem  item  = {.id = list->id, .token = list->token, .outcome = OUTCOME_FAIL, .error = error};
    SettleItem *items = &item;

    settle_each(api->pool, deadline_in_ms(CALL_MS), NULL, &items, 1);
    if (*count > 1)
        TRY(lease_release(api->pool, deadline_in_ms(CALL_MS), arena, list + 1, *count - 1, /* ret_verdicts= */ NULL,
                          reterr));
    *count = 0;
    return OK;
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
    if (kept == 0)
        return first_fail(api, arena, list,
                          arena_print(arena,
                                      "state, records and responses have %zu bytes: a worker over HTTP can be "
                                      "given at most %zu",
                                      bytes, HISTORY_BYTES_MAX),
                          count, reterr);
    if (kept < *count)
        TRY(lease_release(api->pool, deadline_in_ms(CALL_MS), arena, list + kept, *count - kept,
                          /* ret_verdicts= */ NULL, reterr));
    *count = kept;
    return OK;
}

/* Those that are not kept are released: the others move up in both lists. *count becomes 0 if none is kept; then nothing is released. */
static ErrorCode others_release(Api *api, Arena *arena, ClaimedCommand *list, const LoadedProcess **found,
                                bool (*is_kept)(const LoadedProcess *), int *count, Error *reterr)
{
    ClaimedCommand *others = arena_array(arena, ClaimedCommand, *count);
    int             kept = 0, other_count = 0;

    for (int i = 0; i < *count; i++) {
        if (!is_kept(found[i])) {
            others[other_count++] = list[i];
            continue;
        }
        list[kept]    = list[i];
        found[kept++] = found[i];
    }
    memcpy(list + kept, others, (size_t)other_count * sizeof *list); /* a failure releases them all */
    if (kept > 0 && other_count > 0)
        TRY(lease_release(api->pool, deadline_in_ms(CALL_MS), arena, list + kept, other_count, /* ret_verdicts= */ NULL,
                          reterr));
    *count = kept;
    return OK;
}

static bool is_loaded(const LoadedProcess *found)
{
    return found;
}

/* Pods run the others, because a file defines their type. */
static bool is_code(const LoadedProcess *found)
{
    return !found->definition_id;
}

/* As many as a response may have, and the one that is too many. If that one does not fit into the arena, the first one is loaded by itself: a claim
 * must not fail each time because of one process. ERR_LIMIT: the first one does not fit. */
static ErrorCode some_load(Api *api, Arena *arena, const ClaimedCommand *list, int count, LoadedProcess **ret_loaded,
                           int *ret_count, Error *reterr)
{
    int64_t  *ids = arena_array(arena, int64_t, count), *tokens = arena_array(arena, int64_t, count);
    ArenaMark mark = arena_mark(arena);
    ErrorCode code;

    for (int i = 0; i < count; i++) {
        ids[i]    = list[i].id;
        tokens[i] = list[i].token;
    }
    code = process_load(api->pool, deadline_in_ms(CALL_MS), arena, ids, tokens, count, HISTORY_BYTES_MAX, ret_loaded,
                        ret_count, reterr);
    if (code == ERR_LIMIT) {
        arena_rewind(arena, mark);
        code = process_load(api->pool, deadline_in_ms(CALL_MS), arena, ids, tokens, 1, /* bytes_max= */ 1, ret_loaded,
                            ret_count, reterr);
    }
    if (code == ERR_LIMIT)
        arena_rewind(arena, mark); /* what releases them needs memory, too */
    return code;
}

/* What was loaded of each. Those whose lease has ended meanwhile are dropped: another worker may have them. Returns how many are left. */
static int found_match(ClaimedCommand *list, int count, const LoadedProcess *loaded, int loaded_count,
                       const LoadedProcess **found)
{
    bool is_cut = loaded_count > 0 && loaded[loaded_count - 1].is_last;
    int  kept   = 0;

    for (int i = 0; i < count; i++) {
        found[kept] = loaded_find(loaded, loaded_count, list[i].id);
        if (found[kept] || is_cut)
            list[kept++] = list[i];
    }
    return kept;
}

/* Runs on a thread that claims: one round trip more, for all that was claimed. */
static ErrorCode activations_load(ClaimWait *wait, Arena *arena, ClaimedCommand *list, int *count, Error *reterr)
{
    Api                  *api   = wait->owner;
    const LoadedProcess **found = arena_array(arena, const LoadedProcess *, *count);
    LoadedProcess        *loaded;
    int                   loaded_count, readable_count;
    ErrorCode             code = some_load(api, arena, list, *count, &loaded, &loaded_count, reterr);

    if (code == ERR_LIMIT)
        return first_fail(api, arena, list, LARGE_TEXT, count, reterr);
    TRY(code);
    *count = found_match(list, *count, loaded, loaded_count, found);
    if (*count == 0)
        return OK;
    TRY(others_release(api, arena, list, found, is_loaded, count, reterr));
    readable_count = *count;
    TRY(others_release(api, arena, list, found, is_code, count, reterr));
    if (*count == 0) {
        *count = readable_count; /* the caller releases them */
        return fail(reterr, ERR_CONFLICT, "type \"%s\" has a definition, so pods run it: claim types that have none",
                    list->type);
    }
    wait->found = found;
    return found_fit(api, arena, list, found, count, reterr);
}

static ErrorCode claim_write(const ClaimWait *wait, Writer *writer, const ClaimedCommand *list, int n, Arena *arena,
                             Error *reterr)
{
    const LoadedProcess *const *found = wait->found;

    return activation_write(writer, &list[n], found[n], arena, reterr);
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

typedef struct {
    Once       once; /* first: begin and write get its address */
    Api       *api;
    ReportCall reports;
    LockCall   call;
} Reported;

static ErrorCode report_run(LockCall *call, Error *reterr)
{
    Reported *reported = call->context;

    return process_report_run(&reported->reports, call->deadline, reterr);
}

static void report_begin(Once *once)
{
    Reported *reported = (Reported *)once;

    reported->call = (LockCall){.run      = report_run,
                                .deadline = reported->call.deadline,
                                .on_done  = api_once_done,
                                .context  = reported};
    lock_calls_submit(reported->api->reports, &reported->call);
}

/* Reports whose locks were not granted until the deadline say so; the others have been written. */
static ErrorCode report_write(Once *once, Response *response, Error *reterr)
{
    Reported *reported = (Reported *)once;
    Writer    writer;

    if (reported->call.code != OK && reported->reports.open_count == 0) {
        *reterr = reported->call.error;
        return reported->call.code;
    }
    writer_open(&writer, &response->body);
    return activation_reports_write(&writer, reported->reports.reports, reported->reports.count,
                                    reported->reports.arena, reterr);
}

/* A process sends commands to any domain, as a definition does, but to those that modules reserve only what its key may
 * send there itself. A child is a start, which the route's scope is for. */
static ErrorCode sends_check(const Request *request, ProcessReport *const *reports, int count, Error *reterr)
{
    for (int i = 0; i < count; i++)
        if (reports[i]->send_domain && !reports[i]->is_child &&
            domain_check(request, reports[i]->send_domain, DOMAIN_SEND, reterr) != OK) {
            error_prefix(reterr, "items[%d].send", i);
            return ERR_DENIED;
        }
    return OK;
}

ErrorCode api_activation_report(void *context, Request *request, Response *response, Error *reterr)
{
    Api                    *api      = context;
    Arena                  *arena    = request_arena(request);
    Reported               *reported = arena_array(arena, Reported, 1);
    ActivationReportRequest given;
    const char             *queue;
    ProcessReport         **reports;

    TRY(queue_read(request, &queue, reterr));
    TRY(api_body_read(request, &activation_report_table, &given, reterr));
    TRY(activation_reports_read(&given, arena, &reports, reterr));
    TRY(sends_check(request, reports, given.items.count, reterr));
    *reported = (Reported){
        .once    = {.begin = report_begin, .write = report_write},
        .api     = api,
        .reports = {.pool    = api->pool,
                    .lock_ms = API_LOCK_MS,
                    .arena   = arena,
                    .queue   = queue,
                    .wake    = &api->wake,
                    .reports = reports,
                    .count   = given.items.count},
        .call    = {.deadline = request_deadline(request)}
    };
    return api_once_submit(api, request, response, &reported->once, reterr);
}

/* ---- extend ---- */

ErrorCode api_activation_extend(void *context, Request *request, Response *response, Error *reterr)
{
    ExtendRequest given;
    const char   *queue;

    TRY(queue_read(request, &queue, reterr));
    TRY(api_body_read(request, &activation_extend_table, &given, reterr));
    return api_extend_submit(context, request, response, queue, &given,
                             given.lease_s > 0 ? given.lease_s : ACTIVATION_LEASE_S_DEFAULT, &activation_extended_shape,
                             reterr);
}

/* ---- progress ---- */

ErrorCode api_activation_progress(void *context, Request *request, Response *response, Error *reterr)
{
    ProgressRequest given;
    const char     *queue;

    TRY(queue_read(request, &queue, reterr));
    TRY(api_body_read(request, &activation_progress_table, &given, reterr));
    return api_progress_submit(context, request, response, queue, &given, &activation_reported_shape, reterr);
}
