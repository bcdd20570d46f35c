/*
 * send.c - group commands by domain and batch, send each group as arrays; see send.h.
 */
#include "bus/send.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fault.h"
#include "base/setting.h"
#include "base/text.h"
#include "bus/command.h"
#include "bus/lease.h"
#include "bus/metric.h"
#include "bus/offer.h"
#include "bus/send_internal.h"
#include "pg/combiner_split.h"
#include "pg/lock_calls.h"
#include "pg/tx.h"
#include "sql.h"

#define PRIORITY_DEFAULT 4
#define ATTEMPTS_DEFAULT 3
#define SEND_ARGS        24 /* of sql_bus_send */
#define EACH_ARENA_BYTES ((size_t)256 << 20)
#define ITEM_BYTES       512 /* of the other fields, so that 8000 commands fit into a request's arena */

#define SENT_COLUMNS(X, T)       \
    X(T, I32, ord)               \
    X(T, BOOL, is_new)           \
    X(T, TEXT, status, refusal)  \
    X(T, I64, number)            \
    X(T, JSONB, payload, loaded) \
    X(T, UUID, first_id)         \
    X(T, TEXT, duplicate)
DB_ROW(Sent, SENT_COLUMNS);
DB_SHAPE(sent, Sent, SENT_COLUMNS);

/* ---- items that can share one call ---- */

static int text_order(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int group_order(const SendItem *a, const SendItem *b)
{
    int order = text_order(a->domain, b->domain);

    if (order == 0)
        order = text_order(a->batch_id, b->batch_id);
    return order ? order : text_order(a->actor, b->actor);
}

typedef struct {
    SendItem *item;
    int       number;
} Position;

static int position_order(const void *a, const void *b)
{
    const Position *left = a, *right = b;
    int             order = group_order(left->item, right->item);

    return order ? order : left->number - right->number;
}

void send_sort(Arena *arena, SendItem **items, int count)
{
    Position *positions = arena_array(arena, Position, count);

    for (int i = 0; i < count; i++)
        positions[i] = (Position){items[i], i};
    qsort(positions, (size_t)count, sizeof *positions, position_order);
    for (int i = 0; i < count; i++)
        items[i] = positions[i].item;
}

/* Items that share a call. */
typedef struct {
    SendItem **items;
    int        count;
    /* Handlers that a worker of this process offers for them; slots 0: none. */
    Offer           offer;
    int64_t        *tokens;  /* of the items that may start, else 0; the same in each try */
    ClaimedCommand *started; /* by the last try */
    int             started_count;
} SendGroup;

static int group_size(SendItem *const *items, int count)
{
    int size = 1;

    while (size < count && group_order(items[0], items[size]) == 0)
        size++;
    return size;
}

static SendGroup *groups_make(Arena *arena, SendItem **items, int count, int *ret_count)
{
    SendGroup *groups      = arena_array(arena, SendGroup, count);
    int        group_count = 0;

    for (int i = 0; i < count; i += groups[group_count++].count)
        groups[group_count] = (SendGroup){.items = items + i, .count = group_size(items + i, count - i)};
    *ret_count = group_count;
    return groups;
}

/* ---- what starts without a claim ---- */

static int item_priority(const SendItem *item)
{
    return item->priority == SEND_DEFAULT ? PRIORITY_DEFAULT : item->priority;
}

static int item_attempts(const SendItem *item)
{
    return item->max_attempts == SEND_DEFAULT ? ATTEMPTS_DEFAULT : item->max_attempts;
}

/* The item that goes first: of the highest priority; NULL: one is delayed or has a unique key, then none starts. */
static const SendItem *group_first(const SendGroup *group)
{
    const SendItem *first = group->items[0];

    for (int i = 0; i < group->count; i++) {
        if (group->items[i]->delay_ms != 0 || group->items[i]->unique_key)
            return NULL;
        if (item_priority(group->items[i]) > item_priority(first))
            first = group->items[i];
    }
    return first;
}

/* false: it goes before all that follow, but cannot start. The last attempt is leased by a claim only (ADR 49). */
static bool item_can_start(const SendItem *item, const Offer *offer)
{
    return item_attempts(item) > 1 && (!offer->only || strcmp(item->type, offer->only) == 0);
}

/* Give tokens to the items that a claim would find first, as many as there are handlers. Returns how many have one. */
static int tokens_give(SendGroup *group)
{
    int given = 0;

    for (int priority = SEND_PRIORITY_MAX; priority >= 0; priority--)
        for (int i = 0; i < group->count; i++) {
            const SendItem *item = group->items[i];

            if (item_priority(item) != priority || !offer_has_type(&group->offer, item->type))
                continue;
            if (given == group->offer.slots || !item_can_start(item, &group->offer))
                return given;
            group->tokens[i] = lease_token_new();
            given++;
        }
    return given;
}

static void group_offer(const Pool *pool, Arena *arena, SendGroup *group)
{
    const SendItem *first = group_first(group);

    if (!first || item_attempts(first) == 1 ||
        !offer_take(pool, first->domain, first->type, group->count, arena, &group->offer))
        return;
    group->tokens  = arena_array(arena, int64_t, group->count);
    group->started = arena_array(arena, ClaimedCommand, group->count);
    memset(group->tokens, 0, (size_t)group->count * sizeof *group->tokens);
    if (tokens_give(group) > 0)
        return;
    offer_end(&group->offer, NULL, 0);
    group->offer.slots = 0;
}

/* code: of the send. After a failure nothing has begun; if it is in doubt, leases that it made expire. */
static void group_begin(SendGroup *group, ErrorCode code)
{
    if (code == OK && group->started_count > 0 && FAULT("bus.start.before"))
        group->started_count = 0;
    if (group->offer.slots > 0)
        offer_end(&group->offer, group->started, code == OK ? group->started_count : 0);
}

/* ---- one group as arrays ---- */

static DbArg delays_arg(Arena *arena, SendItem *const *items, int count)
{
    int64_t *delays = arena_array(arena, int64_t, count);
    bool     any    = false;

    for (int i = 0; i < count; i++) {
        delays[i] = items[i]->delay_ms;
        any |= delays[i] != 0;
    }
    return any ? db_i64s(arena, delays, count) : db_null();
}

/* Priorities and numbers of attempts: mostly all at their default. */
static DbArg numbers_arg(Arena *arena, SendItem *const *items, int count, size_t offset, int standard)
{
    int32_t *numbers = arena_array(arena, int32_t, count);
    bool     any     = false;

    for (int i = 0; i < count; i++) {
        int number = *(const int *)((const char *)items[i] + offset);

        numbers[i] = number == SEND_DEFAULT ? standard : number;
        any |= numbers[i] != standard;
    }
    return any ? db_i32s(arena, numbers, count) : db_null();
}

/* How a group is called, either alone or as one of several in a transaction. */
typedef ErrorCode GroupCall(void *context, DbArgs args, void *ret_rows, int *ret_count, Error *reterr);

static ErrorCode refusal_say(SendItem *item, const char *refusal)
{
    const char *field = item->payload_noun && strncmp(refusal, "payload ", 8) == 0 ? item->payload_noun : "";

    return fail(&item->error, ERR_KEY_REUSED, "%s %s exists already: %s%s", item->noun ? item->noun : "command",
                item->id, field, refusal + (*field ? strlen("payload") : 0));
}

static const char *word_constant(const char *word, const char *const *words)
{
    while (word && *words && strcmp(*words, word) != 0)
        words++;
    return word ? *words : NULL;
}

static void verdict_take(SendItem *item, const Sent *sent)
{
    item->duplicate = word_constant(sent->duplicate, duplicate_ends);
    memcpy(item->first_id, item->id, sizeof item->first_id);
    if (item->duplicate)
        (void)uuid_parse(sent->first_id, item->first_id);
    item->is_new = sent->is_new;
    item->status = sent->status;
    item->code   = OK;
    item->busy   = sent->status && strcmp(sent->status, "BUSY") == 0;
    if (item->busy)
        item->code =
            fail(&item->error, ERR_BUSY,
                 "command %s waits for another transaction that has not ended: it sends the same id%s%s%s", item->id,
                 item->unique_key ? " or unique key" : "", item->reply_to ? ", creates the reply queue" : "",
                 item->batch_id ? ", or holds the batch" : "");
    if (sent->refusal)
        item->code = refusal_say(item, sent->refusal);
}

/* Were all ids made by send_prepare()? */
static bool ids_are_fresh(SendItem *const *items, int count)
{
    for (int i = 0; i < count; i++)
        if (items[i]->command_id)
            return false;
    return true;
}

/* null: no item may start. */
static DbArg tokens_arg(Arena *arena, const SendGroup *group)
{
    const char **tokens = arena_array(arena, const char *, group->count);

    for (int i = 0; i < group->count; i++)
        tokens[i] = group->tokens[i] ? arena_print(arena, "%" PRId64, group->tokens[i]) : NULL;
    return db_texts(arena, tokens, group->count);
}

static void offer_args(Arena *arena, const SendGroup *group, DbArg *ret_list)
{
    const Offer *offer = &group->offer;
    int          types = 0;

    for (int i = 0; i < 5; i++)
        ret_list[i] = db_null();
    if (offer->slots == 0)
        return;
    while (offer->types && offer->types[types])
        types++;
    ret_list[0] = tokens_arg(arena, group);
    ret_list[1] = db_text(offer->name);
    ret_list[2] = db_i32(offer->lease_ms);
    ret_list[3] = offer->types ? db_texts(arena, offer->types, types) : db_null();
    ret_list[4] = db_i64s(arena, offer->after, PRIORITY_COUNT);
}

/* Scopes, as SQL reads them. */
static DbArg unique_for_arg(Arena *arena, SendItem *const *items, int count)
{
    const char **scopes = arena_array(arena, const char *, count);
    int64_t      ms;

    for (int i = 0; i < count; i++) {
        scopes[i] = items[i]->unique_for;
        if (scopes[i] && setting_duration(scopes[i], &ms, NULL) == OK)
            scopes[i] = arena_print(arena, "%" PRId64 " ms", ms);
    }
    return db_texts(arena, scopes, count);
}

/* null: no item has a unique key. */
static void unique_args(Arena *arena, SendItem *const *items, int count, DbArg *ret_list)
{
    bool any = false;

    for (int i = 0; i < count; i++)
        any |= items[i]->unique_key != NULL;
    ret_list[0] = ret_list[1] = ret_list[2] = db_null();
    if (!any)
        return;
    ret_list[0] = db_texts_at(arena, items, count, offsetof(SendItem, unique_key));
    ret_list[1] = unique_for_arg(arena, items, count);
    ret_list[2] = db_texts_at(arena, items, count, offsetof(SendItem, on_duplicate));
}

static DbArgs group_args(Arena *arena, const SendGroup *group, bool nowait, DbArg *ret_list)
{
    SendItem *const *items    = group->items;
    int              count    = group->count;
    const char     **payloads = arena_array(arena, const char *, count);
    const char     **ids      = arena_array(arena, const char *, count);
    const char     **keyed    = arena_array(arena, const char *, count);
    bool             any      = false;

    for (int i = 0; i < count; i++) {
        payloads[i] = items[i]->payload ? items[i]->payload : "{}";
        ids[i]      = items[i]->id;
        keyed[i]    = items[i]->is_keyed ? "true" : NULL;
        any |= items[i]->is_keyed;
    }
    ret_list[0]  = db_text(items[0]->domain);
    ret_list[1]  = db_texts_at(arena, items, count, offsetof(SendItem, type));
    ret_list[2]  = db_jsonbs(arena, payloads, count);
    ret_list[3]  = db_uuids(arena, ids, count);
    ret_list[4]  = delays_arg(arena, items, count);
    ret_list[5]  = numbers_arg(arena, items, count, offsetof(SendItem, priority), PRIORITY_DEFAULT);
    ret_list[6]  = numbers_arg(arena, items, count, offsetof(SendItem, max_attempts), ATTEMPTS_DEFAULT);
    ret_list[7]  = db_texts_at(arena, items, count, offsetof(SendItem, reply_to));
    ret_list[8]  = db_texts_at(arena, items, count, offsetof(SendItem, correlation_id));
    ret_list[9]  = db_uuid(items[0]->batch_id);
    ret_list[10] = db_text(items[0]->actor);
    ret_list[11] = db_bool(nowait);
    ret_list[12] = db_texts_at(arena, items, count, offsetof(SendItem, order_key));
    ret_list[13] = db_bool(ids_are_fresh(items, count));
    ret_list[14] = db_texts_at(arena, items, count, offsetof(SendItem, attached));
    ret_list[15] = any ? db_texts(arena, keyed, count) : db_null();
    offer_args(arena, group, ret_list + 16);
    unique_args(arena, items, count, ret_list + 21);
    return (DbArgs){ret_list, SEND_ARGS};
}

static void started_take(SendGroup *group, int number, const Sent *sent)
{
    const SendItem *item = group->items[number];

    assert(group->tokens && group->started);
    group->started[group->started_count++] = (ClaimedCommand){.id           = sent->number,
                                                              .token        = group->tokens[number],
                                                              .pos          = sent->number,
                                                              .command_id   = item->id,
                                                              .type         = item->type,
                                                              .payload      = sent->payload,
                                                              .loaded       = sent->loaded,
                                                              .attempt      = 1,
                                                              .max_attempts = item_attempts(item),
                                                              .priority     = item_priority(item)};
}

static ErrorCode group_send(Arena *arena, SendGroup *group, bool nowait, GroupCall *call, void *context, Error *reterr)
{
    DbArg       list[SEND_ARGS];
    const Sent *sent;
    int         sent_count;
    bool        is_short;

    group->started_count = 0;
    TRY(call(context, group_args(arena, group, nowait, list), &sent, &sent_count, reterr));
    is_short = sent_count == 1 && sent[0].ord == 0; /* all are new */
    if (!is_short && sent_count != group->count)
        return fail(reterr, ERR_INTERNAL, "%d commands were sent and %d returned", group->count, sent_count);
    for (int i = 0; i < group->count; i++) {
        const Sent *row = is_short ? &sent[0] : &sent[i];

        verdict_take(group->items[i], row);
        group->items[i]->is_started = row->number != 0;
        if (row->number)
            started_take(group, i, row);
    }
    return OK;
}

/* ---- all groups ---- */

typedef struct {
    Pool            *pool;
    const TxOptions *options;
    SendGroup       *groups;
    int              count;
    bool             nowait; /* other callers share the transaction: do not wait for concurrent sends */
} Sending;

static ErrorCode call_alone(void *context, DbArgs args, void *ret_rows, int *ret_count, Error *reterr)
{
    const Sending *sending = context;

    return db_call_many(sending->pool, sending->options, sql_bus_send, args, &sent_shape, ret_rows, ret_count, reterr);
}

static ErrorCode call_inside(void *context, DbArgs args, void *ret_rows, int *ret_count, Error *reterr)
{
    return db_many(context, sql_bus_send, args, &sent_shape, ret_rows, ret_count, reterr);
}

static ErrorCode groups_send(Tx *tx, void *context, Error *reterr)
{
    const Sending *sending = context;

    for (int i = 0; i < sending->count; i++)
        TRY(group_send(tx->arena, &sending->groups[i], sending->nowait, call_inside, tx, reterr));
    return OK;
}

ErrorCode send_prepare(SendItem *item, Error *reterr)
{
    item->busy = item->is_started = false;
    TRY(item->code = send_check(item, reterr));
    if (!item->command_id)
        uuid_new(item->id);
    else
        (void)uuid_parse(item->command_id, item->id);
    return OK;
}

size_t send_bytes(const void *item)
{
    const char *payload = ((const SendItem *)item)->payload;

    return ITEM_BYTES + (payload ? strlen(payload) : 0);
}

/* Those that may be sent, with their ids, group by group. Each of the others has its verdict. */
static int items_prepare(Arena *arena, SendItem **items, int count, SendItem **ret_good)
{
    int good = 0;

    for (int i = 0; i < count; i++)
        if (send_prepare(items[i], &items[i]->error) == OK)
            ret_good[good++] = items[i];
    send_sort(arena, ret_good, good);
    return good;
}

/* Most calls have items of one domain. */
static void send_count_domains(SendItem *const *items, int count)
{
    DomainMetrics *metrics = NULL;
    const char    *domain  = NULL;

    for (int i = 0; i < count; i++) {
        if (items[i]->code != OK || !items[i]->is_new)
            continue;
        if (!domain || strcmp(domain, items[i]->domain) != 0)
            metrics = metric_series(&domain_metric_table, items[i]->domain);
        domain = items[i]->domain;
        metric_add(&metrics->sent, 1);
    }
}

void send_count(SendItem *const *items, int count)
{
    int new = 0, refused = 0, busy = 0;

    send_count_domains(items, count);
    for (int i = 0; i < count; i++) {
        new += items[i]->code == OK &&items[i]->is_new;
        refused += items[i]->code != OK && !items[i]->busy;
        busy += items[i]->busy;
    }
    metric_add(&bus_metrics.send_calls, 1);
    metric_add(&bus_metrics.sent_new, new);
    metric_add(&bus_metrics.sent_refused, refused);
    metric_add(&bus_metrics.sent_known, count - new - refused - busy);
}

ErrorCode send_sorted(Pool *pool, Deadline deadline, Arena *arena, SendItem **items, int count, bool nowait,
                      Error *reterr)
{
    TxOptions options = {.name = "send", .deadline = deadline, .arena = arena, .keyed = true, .prepare = true};
    Sending   sending = {.pool = pool, .options = &options, .nowait = nowait};
    ErrorCode code;

    if (count == 0)
        return OK;
    sending.groups = groups_make(arena, items, count, &sending.count);
    for (int i = 0; i < sending.count; i++)
        group_offer(pool, arena, &sending.groups[i]);
    code = sending.count == 1 ? group_send(arena, &sending.groups[0], nowait, call_alone, &sending, reterr)
                              : tx_run(pool, &options, groups_send, &sending, reterr);
    for (int i = 0; i < sending.count; i++)
        group_begin(&sending.groups[i], code);
    if (code == OK)
        send_count(items, count);
    return code;
}

/* Those of the items that can be sent, if all of them fit into one call. */
static ErrorCode items_choose(Arena *arena, SendItem **items, int count, SendItem ***ret_good, int *ret_count,
                              Error *reterr)
{
    size_t bytes = 0;

    if (count < 1 || count > SEND_BATCH_MAX)
        return fail(reterr, ERR_LIMIT, "1 to %d commands can be sent in one call, got %d", SEND_BATCH_MAX, count);
    for (int i = 0; i < count; i++)
        bytes += send_bytes(items[i]);
    if (!arena_has_space(arena, bytes * SEND_BYTES_FACTOR))
        return fail(reterr, ERR_LIMIT, "%d commands of %zu bytes together are too large for one call", count, bytes);
    *ret_good  = arena_array(arena, SendItem *, count);
    *ret_count = items_prepare(arena, items, count, *ret_good);
    return OK;
}

ErrorCode send_many(Pool *pool, Deadline deadline, Arena *arena, SendItem **items, int count, Error *reterr)
{
    SendItem **good;

    TRY(items_choose(arena, items, count, &good, &count, reterr));
    return send_sorted(pool, deadline, arena, good, count, /* nowait= */ false, reterr);
}

typedef struct {
    Pool *pool;
    bool  nowait;
} Each;

/* Statuses are in the run's arena until they are constants. */
static ErrorCode each_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    const Each               *each  = context;
    scoped(arena_free) Arena *arena = arena_new(EACH_ARENA_BYTES);
    SendItem                **list  = (SendItem **)items, **good;
    int                       good_count;

    TRY(items_choose(arena, list, count, &good, &good_count, reterr));
    TRY(send_sorted(each->pool, deadline, arena, good, good_count, each->nowait, reterr));
    for (int i = 0; i < count; i++)
        list[i]->status = command_status_constant(list[i]->status);
    return OK;
}

/* The verdict of an item whose transaction failed is void. */
static void each_done(void *any, const Error *error)
{
    SendItem *item = any;

    if (error->code == OK)
        return;
    item->code   = error->code;
    item->error  = *error;
    item->is_new = false;
    item->status = NULL;
    item->busy   = error_is_lock(error);
}

void send_each(Pool *pool, Deadline deadline, bool nowait, SendItem **items, int count)
{
    combiner_split(each_run, &(Each){pool, nowait}, (void **)items, count, deadline, each_done);
}

ErrorCode send_key_id(Pool *pool, Deadline deadline, Arena *arena, const char *key, const char **ret_id, Error *reterr)
{
    TxOptions options = {.name = "key", .deadline = deadline, .arena = arena, .read_only = true};

    return db_call(pool, &options, sql_bus_key, DB_ARGS(db_text(key)), &db_text_shape, ret_id, reterr);
}

static ErrorCode key_check(const char *key, Error *reterr)
{
    size_t length = strlen(key);

    if (length < 1 || length > SEND_KEY_MAX || !text_is_utf8(key, length))
        return fail(reterr, ERR_INVALID, "key must be UTF-8 of 1 to %d bytes, got %zu", SEND_KEY_MAX, length);
    return OK;
}

static ErrorCode key_ids(Pool *pool, Tx *tx, Deadline deadline, Arena *arena, const char **keys, int count,
                         const char ***ret_ids, Error *reterr)
{
    TxOptions options = {.name = "key", .deadline = deadline, .arena = arena, .read_only = true};
    DbArgs    args    = DB_ARGS(db_texts(arena, keys, count));
    int       found;

    return tx ? db_many(tx, sql_bus_keys, args, &db_text_shape, ret_ids, &found, reterr)
              : db_call_many(pool, &options, sql_bus_keys, args, &db_text_shape, ret_ids, &found, reterr);
}

ErrorCode send_keys_take(Pool *pool, Tx *tx, Deadline deadline, Arena *arena, SendItem *items, int count, Error *reterr)
{
    const char **keys = arena_array(arena, const char *, count), **ids;
    bool         any  = false;

    for (int i = 0; i < count; i++) {
        if (items[i].code == OK && items[i].key)
            items[i].code = key_check(items[i].key, &items[i].error);
        keys[i] = items[i].code == OK ? items[i].key : NULL;
        any |= keys[i] != NULL;
    }
    if (!any)
        return OK;
    TRY(key_ids(pool, tx, deadline, arena, keys, count, &ids, reterr));
    for (int i = 0; i < count; i++) {
        if (!keys[i])
            continue;
        if (items[i].command_id && strcasecmp(items[i].command_id, ids[i]) != 0)
            items[i].code = fail(&items[i].error, ERR_INVALID, "key and id differ: give one of them");
        items[i].command_id = ids[i];
        items[i].is_keyed   = true;
    }
    return OK;
}

ErrorCode send_domain_nearest(Pool *pool, Deadline deadline, Arena *arena, const char *domain, bool *ret_is_new,
                              const char **ret_nearest, Error *reterr)
{
    TxOptions options = {.name = "domain", .deadline = deadline, .arena = arena, .read_only = true};
    void     *rows;
    int       count;

    TRY(db_call_many(pool, &options, sql_bus_domain_names, DB_ARGS(db_text(domain)), &db_text_shape, &rows, &count,
                     reterr));
    *ret_is_new  = count > 0;
    *ret_nearest = text_nearest(domain, rows, (size_t)count);
    return OK;
}

ErrorCode send_in(Tx *tx, SendItem **items, int count, Error *reterr)
{
    Sending    sending = {0};
    SendItem **good;

    for (int i = 0; i < count; i++)
        assert(items[i]->command_id);
    TRY(items_choose(tx->arena, items, count, &good, &count, reterr));
    sending.groups = groups_make(tx->arena, good, count, &sending.count);
    return groups_send(tx, &sending, reterr);
}

struct SendStart {
    SendGroup group;
};

SendStart *send_start_offer(Pool *pool, Arena *arena, SendItem *item)
{
    SendStart *start = arena_alloc(arena, sizeof *start);
    SendItem **items = arena_array(arena, SendItem *, 1);

    items[0]     = item;
    start->group = (SendGroup){.items = items, .count = 1};
    if (send_prepare(item, &item->error) == OK)
        group_offer(pool, arena, &start->group);
    return start;
}

ErrorCode send_start_in(Tx *tx, SendStart *start, Error *reterr)
{
    if (start->group.items[0]->code != OK)
        return OK; /* it has its verdict */
    return group_send(tx->arena, &start->group, /* nowait= */ false, call_inside, tx, reterr);
}

void send_start_end(SendStart *start, ErrorCode code)
{
    group_begin(&start->group, code);
}
