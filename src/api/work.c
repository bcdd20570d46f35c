/*
 * work.c - workers in any language: claim with a long poll, settle, extend.
 */
#include <string.h>

#include "api/api.h"
#include "base/problem.h"
#include "base/reader.h"
#include "base/writer.h"
#include "bus/command.h"
#include "bus/settle.h"
#include "http/suspend.h"

#define CLAIM_LIMIT_MAX  1000
#define LEASE_S_DEFAULT  30
#define LEASE_S_MAX      86400
#define WAIT_S_MAX       60
#define SETTLE_ITEMS_MAX 8000

/* ---- claim ---- */

typedef struct {
    int64_t     limit;
    double      lease_s, wait_s;
    ReaderArray types;
    const char *worker;
} ClaimRequest;

static const Field claim_fields[] = {
    {"limit", FIELD_I64, offsetof(ClaimRequest, limit), .required = true, .min = 1, .max = CLAIM_LIMIT_MAX},
    {"lease_s", FIELD_REAL, offsetof(ClaimRequest, lease_s), .min = 1, .max = LEASE_S_MAX, .help = "30 when absent"},
    {"wait_s", FIELD_REAL, offsetof(ClaimRequest, wait_s), .min = 0, .max = WAIT_S_MAX,
     .help = "long poll; 0 when absent"},
    {"types", FIELD_TEXTS, offsetof(ClaimRequest, types), .min = 1, .max = 100, .length_max = 100},
    {"worker", FIELD_TEXT, offsetof(ClaimRequest, worker), .length_max = 200,
     .help = "name of the worker; the audit shows it after the key's name: shop (host-7)"},
};
const FieldTable api_claim_body = {"claim", claim_fields, COUNT(claim_fields), sizeof(ClaimRequest)};

static void write_claimed(Writer *writer, const ClaimedCommand *list, int count)
{
    writer_object(writer, NULL);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++) {
        writer_object(writer, NULL);
        writer_text(writer, "command_id", list[i].command_id);
        writer_text(writer, "type", list[i].type);
        writer_raw(writer, "payload", list[i].payload);
        writer_i64(writer, "attempt", list[i].attempt);
        writer_i64(writer, "max_attempts", list[i].max_attempts);
        writer_i64(writer, "lease", list[i].token);
        writer_end(writer);
    }
    writer_end(writer);
    writer_end(writer);
}

static void claim_gone(void *state)
{
    ClaimWait *wait = state;

    claims_cancel(wait->claims, wait);
}

static void claim_sent(void *state, bool delivered)
{
    claims_end(state, delivered);
}

static ErrorCode claim_answer(void *context, Request *request, Response *response, Error *reterr)
{
    const ClaimWait *wait = request_state(request);
    Writer           writer;

    (void)context;
    if (wait->code != OK) {
        *reterr = wait->error;
        return wait->code;
    }
    writer_open(&writer, &response->body);
    write_claimed(&writer, wait->list, wait->count);
    return OK;
}

ErrorCode api_claim(void *context, Request *request, Response *response, Error *reterr)
{
    Api         *api  = context;
    ClaimWait   *wait = arena_array(request_arena(request), ClaimWait, 1);
    ClaimRequest given;
    size_t       size;
    const char  *body = request_body(request, &size);

    (void)response;
    TRY(api_key_refuse(
        request,
        "each claim leases other commands, and those of a lost response are queued again when their leases expire",
        reterr));
    TRY(reader_object(body, size, &api_claim_body, request_arena(request), &given, reterr));
    *wait = (ClaimWait){.domain     = request_capture(request, "domain"),
                        .types      = given.types.items,
                        .type_count = given.types.count,
                        .limit      = (int)given.limit,
                        .lease_ms   = (int)((given.lease_s > 0 ? given.lease_s : LEASE_S_DEFAULT) * 1000),
                        .worker     = api_actor(request, given.worker),
                        .until      = deadline_in_ms((int64_t)(given.wait_s * 1000)),
                        .on_done    = request_resume,
                        .context    = request,
                        .claims     = api->claims};
    request_suspend(request, &(Suspend){.on_resume = claim_answer, .on_closed = claim_gone, .on_sent = claim_sent},
                    wait);
    claims_submit(api->claims, wait);
    return OK;
}

/* ---- settle ---- */

typedef struct {
    const char *command_id, *outcome, *result, *error;
    int64_t     lease;
    double      delay_s;
    bool        delay_given;
} SettleRow;

static const Field settle_row_fields[] = {
    {"command_id", FIELD_UUID, offsetof(SettleRow, command_id), .required = true},
    {"lease", FIELD_I64, offsetof(SettleRow, lease), .required = true, .min = 1, .max = INT64_MAX,
     .help = "the token that the claim gave"},
    {"outcome", FIELD_TEXT, offsetof(SettleRow, outcome), .required = true, .words = outcome_names,
     .help =
         "complete: COMPLETED. retry: PENDING again after a delay, or IN_TSQ when its attempts are exhausted. fail: "
         "IN_TSQ, "
         "for an operator to decide; another attempt would not help. reject: FAILED, a business refusal that is final"},
    {"result", FIELD_JSON, offsetof(SettleRow, result), .help = "complete: what the handler returns; null when absent"},
    {"error", FIELD_TEXT, offsetof(SettleRow, error), .help = "retry, fail, reject: why"},
    {"delay_s", FIELD_REAL, offsetof(SettleRow, delay_s), .min = 0, .max = 315360000,
     .is_set = offsetof(SettleRow, delay_given), .help = "retry: instead of the retry policy's delay"},
};
static const FieldTable settle_row_table = {"settlement", settle_row_fields, COUNT(settle_row_fields),
                                            sizeof(SettleRow)};

typedef struct {
    ReaderArray items;
} SettleRequest;
static const Field settle_fields[] = {
    {"items", FIELD_ROWS, offsetof(SettleRequest, items), .required = true, .min = 1, .max = SETTLE_ITEMS_MAX,
     .rows = &settle_row_table},
};
const FieldTable api_settle_body = {"settle", settle_fields, COUNT(settle_fields), sizeof(SettleRequest)};

static Outcome outcome_find(const char *name)
{
    Outcome outcome = OUTCOME_COMPLETE;

    while (strcmp(outcome_names[outcome], name) != 0) /* the field table lets no other word in */
        outcome++;
    return outcome;
}

static void write_settled(Writer *writer, const SettleRow *rows, SettleItem *const *items, int count)
{
    writer_object(writer, NULL);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++) {
        writer_object(writer, NULL);
        writer_text(writer, "command_id", rows[i].command_id);
        writer_bool(writer, "settled", items[i]->code == OK && items[i]->settled);
        writer_text(writer, "status", items[i]->status);
        if (items[i]->code != OK)
            writer_text(writer, "error", problem_detail(&items[i]->error_text));
        writer_end(writer);
    }
    writer_end(writer);
    writer_end(writer);
}

static void domain_wake(void *context, const char *domain)
{
    waker_notify(context, domain);
}

ErrorCode api_settle(void *context, Request *request, Response *response, Error *reterr)
{
    Api          *api = context;
    SettleRequest given;
    size_t        size;
    const char   *body  = request_body(request, &size);
    Arena        *arena = request_arena(request);
    Writer        writer;

    TRY(reader_object(body, size, &api_settle_body, arena, &given, reterr));

    const SettleRow *rows  = given.items.items;
    int              count = given.items.count;
    SettleItem     **items = arena_array(arena, SettleItem *, count);
    const char     **ids   = arena_array(arena, const char *, count);
    int64_t         *numbers;

    for (int i = 0; i < count; i++)
        ids[i] = rows[i].command_id;
    TRY(command_numbers(api->pool, request_deadline(request), arena, request_capture(request, "domain"), ids, count,
                        &numbers, reterr));
    for (int i = 0; i < count; i++) {
        items[i] = arena_array(arena, SettleItem, 1);
        *items[i] =
            (SettleItem){.id       = numbers[i],
                         .token    = rows[i].lease,
                         .outcome  = outcome_find(rows[i].outcome),
                         .result   = rows[i].result,
                         .error    = rows[i].error,
                         .delay_ms = rows[i].delay_given ? (int64_t)(rows[i].delay_s * 1000) : SETTLE_DELAY_DEFAULT};
        if (!numbers[i]) {
            items[i]->domain     = request_capture(request, "domain");
            items[i]->command_id = rows[i].command_id;
        }
    }
    settle_each(api->pool, request_deadline(request), &(SettleWake){domain_wake, api->waker}, items, count);
    for (int i = 0; i < count; i++)
        if (items[i]->code == OK)
            settle_count(items[i]);
    writer_open(&writer, &response->body);
    write_settled(&writer, rows, items, count);
    return OK;
}

/* ---- extend ---- */

typedef struct {
    const char *command_id;
    int64_t     lease;
} ExtendRow;
static const Field extend_row_fields[] = {
    {"command_id", FIELD_UUID, offsetof(ExtendRow, command_id), .required = true},
    {"lease", FIELD_I64, offsetof(ExtendRow, lease), .required = true, .min = 1, .max = INT64_MAX,
     .help = "the token that the claim gave"},
};
static const FieldTable extend_row_table = {"lease", extend_row_fields, COUNT(extend_row_fields), sizeof(ExtendRow)};

typedef struct {
    ReaderArray items;
    double      lease_s;
} ExtendRequest;
static const Field extend_fields[] = {
    {"items",   FIELD_ROWS, offsetof(ExtendRequest, items),   .required = true, .min = 1, .max = SETTLE_ITEMS_MAX,
     .rows = &extend_row_table},
    {"lease_s", FIELD_REAL, offsetof(ExtendRequest, lease_s), .required = true, .min = 1, .max = LEASE_S_MAX,
     .help = "from now on"    },
};
const FieldTable api_extend_body = {"extend", extend_fields, COUNT(extend_fields), sizeof(ExtendRequest)};

ErrorCode api_extend(void *context, Request *request, Response *response, Error *reterr)
{
    static const char *const words[] = {
        [LEASE_EXTENDED] = "extended", [LEASE_CANCELED] = "canceled", [LEASE_LOST] = "lost", [LEASE_BUSY] = "busy"};
    Api          *api = context;
    ExtendRequest given;
    size_t        size;
    const char   *body  = request_body(request, &size);
    Arena        *arena = request_arena(request);
    Writer        writer;

    TRY(reader_object(body, size, &api_extend_body, arena, &given, reterr));

    const ExtendRow *rows     = given.items.items;
    int              count    = given.items.count;
    const char     **ids      = arena_array(arena, const char *, count);
    int64_t         *tokens   = arena_array(arena, int64_t, count), *numbers;
    LeaseVerdict    *verdicts = arena_array(arena, LeaseVerdict, count);

    for (int i = 0; i < count; i++) {
        ids[i]    = rows[i].command_id;
        tokens[i] = rows[i].lease;
    }
    TRY(command_numbers(api->pool, request_deadline(request), arena, request_capture(request, "domain"), ids, count,
                        &numbers, reterr));
    TRY(lease_extend(api->pool, request_deadline(request), arena, numbers, tokens, count, (int)(given.lease_s * 1000),
                     verdicts, reterr));
    writer_open(&writer, &response->body);
    writer_object(&writer, NULL);
    writer_array(&writer, "items");
    for (int i = 0; i < count; i++) {
        writer_object(&writer, NULL);
        writer_text(&writer, "command_id", rows[i].command_id);
        writer_bool(&writer, "extended", verdicts[i] == LEASE_EXTENDED);
        writer_text(&writer, "verdict", words[verdicts[i]]);
        writer_end(&writer);
    }
    writer_end(&writer);
    writer_end(&writer);
    return OK;
}
