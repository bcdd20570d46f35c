/*
 * work.c - workers in any language: claim with a long poll, settle, extend, report progress.
 */
#include "api/api.h"
#include "api/domain.h"
#include "base/writer.h"
#include "bus/answers.h"

/* ---- claim ---- */

static ErrorCode claim_write(const ClaimWait *wait, Writer *writer, const ClaimedCommand *list, int n, Arena *arena,
                             Error *reterr)
{
    (void)wait, (void)arena, (void)reterr;
    writer_row(writer, &answer_claimed_item, &list[n]);
    return OK;
}

ClaimWait *api_claim_wait(Request *request, const char *domain, const ClaimRequest *given, double lease_s_default)
{
    ClaimWait *wait = arena_array(request_arena(request), ClaimWait, 1);

    *wait = (ClaimWait){.key        = request_principal(request),
                        .domain     = domain,
                        .types      = given->types.items,
                        .type_count = given->types.count,
                        .limit      = given->limit ? (int)given->limit : 1,
                        .lease_ms   = (int)((given->lease_s > 0 ? given->lease_s : lease_s_default) * 1000),
                        .worker     = api_actor(request, given->worker),
                        .until      = deadline_in_ms((int64_t)(given->wait_s * 1000))};
    return wait;
}

ErrorCode api_claim(void *context, Request *request, Response *response, Error *reterr)
{
    Api         *api    = context;
    const char  *domain = request_capture(request, "domain");
    ClaimRequest given;
    ClaimWait   *wait;

    (void)response;
    TRY(api_key_refuse(
        request,
        "each claim leases other commands, and those of a lost response are queued again when their leases expire",
        reterr));
    TRY(domain_check(request, domain, DOMAIN_WORK, reterr));
    TRY(api_body_read_if_any(request, &claim_table, &given, reterr));
    wait        = api_claim_wait(request, domain, &given, CLAIM_LEASE_S_DEFAULT);
    wait->write = claim_write;
    claims_suspend(api->claims, request, wait);
    return OK;
}

/* ---- settle ---- */

typedef struct {
    Once          once; /* first: begin and write get its address */
    Api          *api;
    SettleRequest given;
    SettleItem  **open;
    SettleCall    call;
} Settling;

static void settle_begin(Once *once)
{
    Settling *settling = (Settling *)once;

    leases_settle(settling->api->leases, &settling->call, settling->open);
}

static ErrorCode settle_write(Once *once, Response *response, Error *reterr)
{
    const Settling   *settling = (const Settling *)once;
    const SettleCall *call     = &settling->call;

    TRY(error_pass(call->code, &call->error, reterr));
    for (int i = 0; i < call->count; i++)
        if (call->items[i]->code == OK)
            settle_count(call->items[i], metric_series(&domain_metric_table, call->domain));
    settled_write(response_writer(response), settling->given.items.items, call->items, call->count);
    return OK;
}

ErrorCode api_settle(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api      = context;
    Arena      *arena    = request_arena(request);
    const char *domain   = request_capture(request, "domain");
    Settling   *settling = arena_array(arena, Settling, 1);

    *settling = (Settling){
        .once = {.begin = settle_begin, .write = settle_write},
          .api = api
    };
    TRY(domain_check(request, domain, DOMAIN_WORK, reterr));
    TRY(api_body_read(request, &settle_table, &settling->given, reterr));
    TRY(settle_rows_check(&settling->given, reterr));

    const SettleRow *rows  = settling->given.items.items;
    int              count = settling->given.items.count;
    SettleItem     **items = arena_array(arena, SettleItem *, count);

    for (int i = 0; i < count; i++) {
        items[i]  = arena_array(arena, SettleItem, 1);
        *items[i] = settle_row_item(&rows[i], domain);
    }
    settling->open = arena_array(arena, SettleItem *, count);
    settling->call = (SettleCall){.domain   = domain,
                                  .items    = items,
                                  .count    = count,
                                  .deadline = request_deadline(request),
                                  .on_done  = api_once_done,
                                  .context  = &settling->once};
    return api_once_submit(api, request, response, &settling->once, reterr);
}

/* ---- extend, report progress ---- */

typedef struct {
    Once                once; /* first, as above */
    Api                *api;
    const VerdictShape *shape; /* of its response */
    void (*submit)(Leases *leases, LeaseCall *call);
    LeaseCall call;
} LeaseOnce;

static void leased_begin(Once *once)
{
    LeaseOnce *leased = (LeaseOnce *)once;

    leased->submit(leased->api->leases, &leased->call);
}

static ErrorCode leased_write(Once *once, Response *response, Error *reterr)
{
    const LeaseOnce *leased = (const LeaseOnce *)once;
    const LeaseCall *call   = &leased->call;

    TRY(error_pass(call->code, &call->error, reterr));
    verdicts_write(response_writer(response), leased->shape, call->ids, call->verdicts, call->count);
    return OK;
}

/* call: what it does, with its domain, ids and count. */
static ErrorCode leased_submit(Api *api, Request *request, Response *response, const VerdictShape *shape,
                               void (*submit)(Leases *leases, LeaseCall *call), LeaseCall call, Error *reterr)
{
    Arena     *arena  = request_arena(request);
    LeaseOnce *leased = arena_array(arena, LeaseOnce, 1);

    call.verdicts = arena_array(arena, int, call.count);
    call.deadline = request_deadline(request);
    call.on_done  = api_once_done;
    call.context  = &leased->once;
    *leased       = (LeaseOnce){
              .once   = {.begin = leased_begin, .write = leased_write},
              .api    = api,
              .shape  = shape,
              .submit = submit,
              .call   = call
    };
    return api_once_submit(api, request, response, &leased->once, reterr);
}

ErrorCode api_extend_submit(Api *api, Request *request, Response *response, const char *domain,
                            const ExtendRequest *given, double lease_s, const VerdictShape *shape, Error *reterr)
{
    Arena           *arena  = request_arena(request);
    const ExtendRow *rows   = given->items.items;
    int              count  = given->items.count;
    const char     **ids    = arena_array(arena, const char *, count);
    int64_t         *tokens = arena_array(arena, int64_t, count);
    LeaseCall        call   = {
                 .domain = domain, .ids = ids, .count = count, .tokens = tokens, .lease_ms = (int)(lease_s * 1000)};

    for (int i = 0; i < count; i++) {
        ids[i]    = rows[i].command_id;
        tokens[i] = rows[i].lease;
    }
    return leased_submit(api, request, response, shape, leases_extend, call, reterr);
}

ErrorCode api_extend(void *context, Request *request, Response *response, Error *reterr)
{
    const char   *domain = request_capture(request, "domain");
    ExtendRequest given;

    TRY(domain_check(request, domain, DOMAIN_WORK, reterr));
    TRY(api_body_read(request, &extend_table, &given, reterr));
    return api_extend_submit(context, request, response, domain, &given, given.lease_s, &extended_shape, reterr);
}

ErrorCode api_progress_submit(Api *api, Request *request, Response *response, const char *domain,
                              const ProgressRequest *given, const VerdictShape *shape, Error *reterr)
{
    Arena             *arena = request_arena(request);
    const ProgressRow *rows  = given->items.items;
    int                count = given->items.count;
    const char       **ids   = arena_array(arena, const char *, count);
    LeaseCall          call  = {.domain = domain, .ids = ids, .count = count};

    TRY(progress_items_read(given, arena, &call.items, reterr));
    for (int i = 0; i < count; i++)
        ids[i] = rows[i].command_id;
    return leased_submit(api, request, response, shape, leases_progress, call, reterr);
}

ErrorCode api_progress(void *context, Request *request, Response *response, Error *reterr)
{
    const char     *domain = request_capture(request, "domain");
    ProgressRequest given;

    TRY(domain_check(request, domain, DOMAIN_WORK, reterr));
    TRY(api_body_read(request, &progress_table, &given, reterr));
    return api_progress_submit(context, request, response, domain, &given, &reported_shape, reterr);
}
