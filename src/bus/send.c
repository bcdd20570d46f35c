/*
 * send.c - group commands by domain and batch, send each group as arrays; see send.h.
 */
#include "bus/send.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "bus/command.h"
#include "bus/metric.h"
#include "bus/send_internal.h"
#include "pg/combiner_split.h"
#include "pg/lock_calls.h"
#include "pg/tx.h"
#include "sql.h"

#define PRIORITY_DEFAULT 4
#define ATTEMPTS_DEFAULT 3
#define SEND_ARGS        16 /* of sql_bus_send */
#define EACH_ARENA_BYTES ((size_t)256 << 20)
#define ITEM_BYTES       512 /* of the other fields, so that 8000 commands fit into a request's arena */

#define SENT_COLUMNS(X, T) \
    X(T, I32, ord)         \
    X(T, BOOL, is_new)     \
    X(T, TEXT, status, refusal)
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

static int group_size(SendItem *const *items, int count)
{
    int size = 1;

    while (size < count && group_order(items[0], items[size]) == 0)
        size++;
    return size;
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

static void verdict_take(SendItem *item, const Sent *sent)
{
    item->is_new = sent->is_new;
    item->status = sent->status;
    item->code   = OK;
    item->busy   = sent->status && strcmp(sent->status, "BUSY") == 0;
    if (item->busy)
        item->code =
            fail(&item->error, ERR_BUSY,
                 "command %s waits for another transaction that has not ended: it sends the same id%s%s", item->id,
                 item->reply_to ? ", creates the reply queue" : "", item->batch_id ? ", or holds the batch" : "");
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

static DbArgs group_args(Arena *arena, SendItem *const *items, int count, bool nowait, DbArg *ret_list)
{
    const char **payloads = arena_array(arena, const char *, count);
    const char **ids      = arena_array(arena, const char *, count);
    const char **keyed    = arena_array(arena, const char *, count);
    bool         any      = false;

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
    return (DbArgs){ret_list, SEND_ARGS};
}

static ErrorCode group_send(Arena *arena, SendItem **items, int count, bool nowait, GroupCall *call, void *context,
                            Error *reterr)
{
    DbArg       list[SEND_ARGS];
    const Sent *sent;
    int         sent_count;

    TRY(call(context, group_args(arena, items, count, nowait, list), &sent, &sent_count, reterr));
    if (sent_count == 1 && sent[0].ord == 0) { /* all are new */
        for (int i = 0; i < count; i++)
            verdict_take(items[i], &sent[0]);
        return OK;
    }
    if (sent_count != count)
        return fail(reterr, ERR_INTERNAL, "%d commands were sent and %d returned", count, sent_count);
    for (int i = 0; i < count; i++)
        verdict_take(items[i], &sent[i]);
    return OK;
}

/* ---- all groups ---- */

typedef struct {
    Pool            *pool;
    const TxOptions *options;
    SendItem       **items;
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

    for (int i = 0; i < sending->count;) {
        int size = group_size(sending->items + i, sending->count - i);

        TRY(group_send(tx->arena, sending->items + i, size, sending->nowait, call_inside, tx, reterr));
        i += size;
    }
    return OK;
}

ErrorCode send_prepare(SendItem *item, Error *reterr)
{
    item->busy = false;
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

void send_count(SendItem *const *items, int count)
{
    int new = 0, refused = 0, busy = 0;

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
    Sending   sending = {pool, &options, items, count, nowait};

    if (count == 0)
        return OK;
    if (group_size(items, count) == count)
        TRY(group_send(arena, items, count, nowait, call_alone, &sending, reterr));
    else
        TRY(tx_run(pool, &options, groups_send, &sending, reterr));
    send_count(items, count);
    return OK;
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
    Sending sending = {0};

    for (int i = 0; i < count; i++)
        assert(items[i]->command_id);
    TRY(items_choose(tx->arena, items, count, &sending.items, &sending.count, reterr));
    return groups_send(tx, &sending, reterr);
}
