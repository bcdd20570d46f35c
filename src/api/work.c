/*
 * work.c - workers in any language: claim with a long poll, settle, extend.
 */
#include "api/api.h"
#include "api/domain.h"
#include "base/writer.h"

/* ---- claim ---- */

static ErrorCode claim_write(const ClaimWait *wait, Writer *writer, Arena *arena, Error *reterr)
{
    (void)arena, (void)reterr;
    claimed_write(writer, wait->list, wait->count);
    return OK;
}

ClaimWait *api_claim_wait(Request *request, const char *domain, const ClaimRequest *given, double lease_s_default)
{
    ClaimWait *wait = arena_array(request_arena(request), ClaimWait, 1);

    *wait = (ClaimWait){.domain     = domain,
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
    TRY(api_body_read(request, &claim_table, &given, reterr));
    wait        = api_claim_wait(request, domain, &given, CLAIM_LEASE_S_DEFAULT);
    wait->write = claim_write;
    claims_suspend(api->claims, request, wait);
    return OK;
}

/* ---- settle ---- */

ErrorCode api_settle(void *context, Request *request, Response *response, Error *reterr)
{
    Api          *api    = context;
    Arena        *arena  = request_arena(request);
    const char   *domain = request_capture(request, "domain");
    SettleRequest given;
    Writer        writer;

    TRY(domain_check(request, domain, DOMAIN_WORK, reterr));
    TRY(api_body_read(request, &settle_table, &given, reterr));

    const SettleRow *rows  = given.items.items;
    int              count = given.items.count;
    SettleItem     **items = arena_array(arena, SettleItem *, count);
    const char     **ids   = arena_array(arena, const char *, count);
    Wake             wake  = waker_wake(api->waker);
    int64_t         *numbers;

    for (int i = 0; i < count; i++)
        ids[i] = rows[i].command_id;
    TRY(command_numbers(api->pool, request_deadline(request), arena, domain, ids, count, &numbers, reterr));
    for (int i = 0; i < count; i++) {
        items[i]  = arena_array(arena, SettleItem, 1);
        *items[i] = settle_row_item(&rows[i], numbers[i], domain);
    }
    settle_each(api->pool, request_deadline(request), &wake, items, count);
    for (int i = 0; i < count; i++)
        if (items[i]->code == OK)
            settle_count(items[i]);
    writer_open(&writer, &response->body);
    settled_write(&writer, rows, items, count);
    return OK;
}

/* ---- extend ---- */

ErrorCode api_leases_extend(Api *api, Request *request, const char *domain, const ExtendRequest *given, double lease_s,
                            LeaseVerdict **ret_verdicts, Error *reterr)
{
    Arena           *arena  = request_arena(request);
    const ExtendRow *rows   = given->items.items;
    int              count  = given->items.count;
    const char     **ids    = arena_array(arena, const char *, count);
    int64_t         *tokens = arena_array(arena, int64_t, count), *numbers;

    *ret_verdicts = arena_array(arena, LeaseVerdict, count);
    for (int i = 0; i < count; i++) {
        ids[i]    = rows[i].command_id;
        tokens[i] = rows[i].lease;
    }
    TRY(command_numbers(api->pool, request_deadline(request), arena, domain, ids, count, &numbers, reterr));
    return lease_extend(api->pool, request_deadline(request), arena, numbers, tokens, count, (int)(lease_s * 1000),
                        *ret_verdicts, reterr);
}

ErrorCode api_extend(void *context, Request *request, Response *response, Error *reterr)
{
    const char   *domain = request_capture(request, "domain");
    ExtendRequest given;
    LeaseVerdict *verdicts;
    Writer        writer;

    TRY(domain_check(request, domain, DOMAIN_WORK, reterr));
    TRY(api_body_read(request, &extend_table, &given, reterr));
    TRY(api_leases_extend(context, request, domain, &given, given.lease_s, &verdicts, reterr));
    writer_open(&writer, &response->body);
    extended_write(&writer, given.items.items, verdicts, given.items.count);
    return OK;
}
