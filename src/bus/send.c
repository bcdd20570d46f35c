/*
 * send.c - check, group by domain and batch, send each group as arrays; see send.h.
 */
#include "bus/send.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "base/text.h"
#include "bus/command.h"
#include "bus/metric.h"
#include "bus/reserved_domain.h"
#include "pg/combiner.h"
#include "pg/tx.h"
#include "sql.h"

#define QUEUE_LENGTH_MAX 47
#define COMMAND_PREFIX   "command:"
#define ACTOR_LENGTH_MAX 200
#define PRIORITY_DEFAULT 4
#define ATTEMPTS_DEFAULT 3
/* Of payloads, in one call; as an array in text form, being built, they take several times as much. */
#define CALL_BYTES_MAX ((size_t)16 << 20)
#define BYTES_FACTOR   8
#define ITEM_BYTES     512 /* of the other fields, so that 8000 commands fit into a request's arena */
/* As pawl.payload_bytes() has it: what a worker gets. */
#define EXPONENT_MAX  1000000 /* larger ones are refused in any case */
#define RETRY_LEFT_MS 250     /* an item that waits for a concurrent send is tried again only with more time left */

#define SENT_COLUMNS(X, T)              \
    X(T, int32_t, DB_I32, ord)          \
    X(T, bool, DB_BOOL, is_new)         \
    X(T, const char *, DB_TEXT, status) \
    X(T, const char *, DB_TEXT, refusal)
typedef struct {
    SENT_COLUMNS(DB_FIELD, Sent)
} Sent;
DB_SHAPE(sent, Sent, SENT_COLUMNS);

/* ---- checks ---- */

/* Of a value in a message: at most so many bytes, and whole characters. */
#define EXCERPT_MAX 80
#define CUT(text)   ((int)((text) ? text_cut(text, strlen(text), EXCERPT_MAX) : 0))

static bool name_is_good(const char *name, size_t length_max, const char *marks)
{
    size_t length = strnlen(name, length_max + 1);

    if (length == 0 || length > length_max || !isalnum((unsigned char)name[0]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isascii((unsigned char)name[i]) || (!isalnum((unsigned char)name[i]) && !strchr(marks, name[i])))
            return false;
    return true;
}

static ErrorCode check_text(const char *field, const char *text, size_t length_max, Error *reterr)
{
    size_t length = text ? strlen(text) : 1;

    if (length == 0 || length > length_max)
        return fail(reterr, ERR_INVALID, "%s must be 1 to %zu bytes, got %zu", field, length_max, length);
    if (text && !text_is_utf8(text, length))
        return fail(reterr, ERR_INVALID, "%s must be UTF-8", field);
    return OK;
}

static ErrorCode check_id(const char *field, const char *text, Error *reterr)
{
    char id[UUID_TEXT_SIZE];

    if (text && !uuid_parse(text, id))
        return fail(reterr, ERR_INVALID, "%s must be a UUID, got \"%.*s\"", field, CUT(text), text);
    return OK;
}

ErrorCode send_check_domain(const char *field, const char *domain, Error *reterr)
{
    if (!domain || !name_is_good(domain, SEND_DOMAIN_MAX, "_.:-"))
        return fail(
            reterr, ERR_INVALID,
            "%s must be 1 to %d letters, digits, \"_\", \".\", \":\" or \"-\", beginning with a letter or digit, "
            "got \"%.*s\"",
            field, SEND_DOMAIN_MAX, CUT(domain), domain ? domain : "");
    return OK;
}

ErrorCode send_check_type(const char *field, const char *type, Error *reterr)
{
    if (!type || !name_is_good(type, SEND_TYPE_MAX, "_.:-"))
        return fail(
            reterr, ERR_INVALID,
            "%s must be 1 to %d letters, digits, \"_\", \".\", \":\" or \"-\", beginning with a letter or digit, "
            "got \"%.*s\"",
            field, SEND_TYPE_MAX, CUT(type), type ? type : "");
    return OK;
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The domain of "command:DOMAIN/TYPE", and its type; false: it has other parts. */
static bool command_split(const char *target, char *ret_domain, const char **ret_type)
{
    const char *domain = target + strlen(COMMAND_PREFIX), *slash;

    if (!starts_with(target, COMMAND_PREFIX) || !(slash = strchr(domain, '/')) || slash - domain > SEND_DOMAIN_MAX)
        return false;
    memcpy(ret_domain, domain, (size_t)(slash - domain));
    ret_domain[slash - domain] = '\0';
    *ret_type                  = slash + 1;
    return true;
}

/* As pawl.reply_to_check(). */
static ErrorCode check_reply_to(const SendItem *item, Error *reterr)
{
    const char           *target = item->reply_to, *type;
    char                  domain[SEND_DOMAIN_MAX + 1];
    const ReservedDomain *reserved;

    if (!target || item->replies_to_module)
        return OK;
    if (command_split(target, domain, &type)) {
        reserved = reserved_domain_find(domain);
        if (reserved && reserved->refuses_replies)
            return fail(reterr, ERR_INVALID, "reply_to must not name a domain of %s, got \"%.*s\"", reserved->commands,
                        CUT(target), target);
        if (name_is_good(domain, SEND_DOMAIN_MAX, "_.:-") && name_is_good(type, SEND_TYPE_MAX, "_.:-"))
            return OK;
    }
    /* PGMQ takes "--" for a comment and refuses it. */
    if (name_is_good(target, QUEUE_LENGTH_MAX, "_.-") && !strstr(target, "--"))
        return OK;
    return fail(reterr, ERR_INVALID,
                "reply_to must be a queue (1 to %d letters, digits, \"_\", \".\" or single \"-\") or "
                "command:DOMAIN/TYPE, got \"%.*s\"",
                QUEUE_LENGTH_MAX, CUT(target), target);
}

static ErrorCode check_names(const SendItem *item, Error *reterr)
{
    TRY(send_check_domain("domain", item->domain, reterr));
    TRY(send_check_type("type", item->type, reterr));
    TRY(check_reply_to(item, reterr));
    TRY(check_id("command_id", item->command_id, reterr));
    TRY(check_id("batch_id", item->batch_id, reterr));
    TRY(check_text("correlation_id", item->correlation_id, SEND_CORRELATION_MAX, reterr));
    TRY(check_text("order_key", item->order_key, SEND_ORDER_KEY_MAX, reterr));
    return check_text("actor", item->actor, ACTOR_LENGTH_MAX, reterr);
}

size_t send_exponents_sum(const char *json)
{
    size_t sum       = 0;
    bool   in_string = false;

    for (; *json; json++) {
        if (in_string && *json == '\\' && json[1])
            json++;
        else if (*json == '"')
            in_string = !in_string;
        else if (!in_string && (*json == 'e' || *json == 'E') && strchr("+-0123456789", json[1])) {
            size_t exponent = 0;

            json += json[1] == '+' || json[1] == '-';
            for (; isdigit((unsigned char)json[1]); json++)
                if (exponent < EXPONENT_MAX)
                    exponent = exponent * 10 + (size_t)(json[1] - '0');
            sum += exponent;
        }
    }
    return sum;
}

static ErrorCode check_payload(const char *payload, Error *reterr)
{
    size_t    size = payload ? strlen(payload) : 0;
    ErrorCode code;

    if (!payload)
        return OK;
    if (size > SEND_PAYLOAD_MAX)
        return fail(reterr, ERR_LIMIT, "payload has %zu bytes: at most %zu are allowed", size, SEND_PAYLOAD_MAX);
    code = reader_check(payload, size, reterr);
    if (code != OK) {
        error_prefix(reterr, "payload");
        return code;
    }
    if (send_exponents_sum(payload) > SEND_EXPANDED_MAX - size)
        return fail(reterr, ERR_LIMIT, "payload must have at most %zu bytes when its numbers are written out, got more",
                    SEND_EXPANDED_MAX);
    return OK;
}

ErrorCode send_check(const SendItem *item, Error *reterr)
{
    TRY(check_names(item, reterr));
    if (item->delay_ms < 0 || item->delay_ms > (SEND_DELAY_S_MAX * 1000LL))
        return fail(reterr, ERR_INVALID, "delay must be from 0 to %lld ms, got %lld", (SEND_DELAY_S_MAX * 1000LL),
                    (long long)item->delay_ms);
    if (item->priority != SEND_DEFAULT && (item->priority < 0 || item->priority > SEND_PRIORITY_MAX))
        return fail(reterr, ERR_INVALID, "priority must be an integer from 0 to %d, got %d", SEND_PRIORITY_MAX,
                    item->priority);
    if (item->max_attempts != SEND_DEFAULT && (item->max_attempts < 1 || item->max_attempts > SEND_ATTEMPTS_MAX))
        return fail(reterr, ERR_INVALID, "max_attempts must be an integer from 1 to %d, got %d", SEND_ATTEMPTS_MAX,
                    item->max_attempts);
    return check_payload(item->payload, reterr);
}

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

/* Groups in one order everywhere, so that two senders of two new domains do not wait for each other; the order of the
 * items within a group is the caller's. */
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

static int group_size(SendItem *const *items, int count)
{
    int size = 1;

    while (size < count && group_order(items[0], items[size]) == 0)
        size++;
    return size;
}

/* ---- one group as arrays ---- */

static const char *type_of(const void *any)
{
    const SendItem *item = any;

    return item->type;
}

static const char *payload_of(const void *any)
{
    const SendItem *item = any;

    return item->payload ? item->payload : "{}";
}

static const char *id_of(const void *any)
{
    const SendItem *item = any;

    return item->id;
}

static const char *reply_of(const void *any)
{
    const SendItem *item = any;

    return item->reply_to;
}

static const char *correlation_of(const void *any)
{
    const SendItem *item = any;

    return item->correlation_id;
}

static const char *order_key_of(const void *any)
{
    const SendItem *item = any;

    return item->order_key;
}

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
typedef ErrorCode GroupCall(void *context, DbArgs args, void **ret_rows, int *ret_count, Error *reterr);

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
        item->code = fail(&item->error, ERR_KEY_REUSED, "command %s exists already: %s", item->id, sent->refusal);
}

/* Are all ids made by item_prepare()? */
static bool ids_are_fresh(SendItem *const *items, int count)
{
    for (int i = 0; i < count; i++)
        if (items[i]->command_id)
            return false;
    return true;
}

static ErrorCode group_send(Arena *arena, SendItem **items, int count, bool nowait, GroupCall *call, void *context,
                            Error *reterr)
{
    const SendItem *first = items[0];
    bool            fresh = ids_are_fresh(items, count);
    void           *rows;
    const Sent     *sent;
    int             sent_count;

    TRY(call(context,
             DB_ARGS(db_text(first->domain), db_texts_by(arena, items, count, type_of),
                     db_jsonbs(arena, db_texts_of(arena, items, count, payload_of), count),
                     db_uuids(arena, db_texts_of(arena, items, count, id_of), count), delays_arg(arena, items, count),
                     numbers_arg(arena, items, count, offsetof(SendItem, priority), PRIORITY_DEFAULT),
                     numbers_arg(arena, items, count, offsetof(SendItem, max_attempts), ATTEMPTS_DEFAULT),
                     db_texts_by(arena, items, count, reply_of), db_texts_by(arena, items, count, correlation_of),
                     db_uuid(first->batch_id), db_text(first->actor), db_bool(nowait),
                     db_texts_by(arena, items, count, order_key_of), db_bool(fresh)),
             &rows, &sent_count, reterr));
    sent = rows;
    if (fresh && sent_count == 1 && sent[0].ord == 0) { /* all are new */
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

static ErrorCode call_alone(void *context, DbArgs args, void **ret_rows, int *ret_count, Error *reterr)
{
    const Sending *sending = context;

    return db_call_many(sending->pool, sending->options, sql_bus_send, args, &sent_shape, ret_rows, ret_count, reterr);
}

static ErrorCode call_inside(void *context, DbArgs args, void **ret_rows, int *ret_count, Error *reterr)
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

static ErrorCode item_prepare(SendItem *item, Error *reterr)
{
    item->busy = false;
    TRY(item->code = send_check(item, reterr));
    if (!item->command_id)
        uuid_new(item->id);
    else
        (void)uuid_parse(item->command_id, item->id);
    return OK;
}

static size_t item_bytes(const void *item)
{
    const char *payload = ((const SendItem *)item)->payload;

    return ITEM_BYTES + (payload ? strlen(payload) : 0);
}

/* Those that may be sent, with their ids, group by group. Each of the others has its verdict. */
static int items_prepare(Arena *arena, SendItem **items, int count, SendItem **ret_good)
{
    Position *positions = arena_array(arena, Position, count);
    int       good      = 0;

    for (int i = 0; i < count; i++)
        if (item_prepare(items[i], &items[i]->error) == OK) {
            positions[good] = (Position){items[i], good};
            good++;
        }
    qsort(positions, (size_t)good, sizeof *positions, position_order);
    for (int i = 0; i < good; i++)
        ret_good[i] = positions[i].item;
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

static ErrorCode items_send(Pool *pool, Deadline deadline, Arena *arena, SendItem **items, int count, bool nowait,
                            Error *reterr)
{
    TxOptions options = {.name = "send", .deadline = deadline, .arena = arena, .keyed = true};
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
        bytes += item_bytes(items[i]);
    if (!arena_has_space(arena, bytes * BYTES_FACTOR))
        return fail(reterr, ERR_LIMIT, "%d commands of %zu bytes together are too large for one call", count, bytes);
    *ret_good  = arena_array(arena, SendItem *, count);
    *ret_count = items_prepare(arena, items, count, *ret_good);
    return OK;
}

ErrorCode send_many(Pool *pool, Deadline deadline, Arena *arena, SendItem **items, int count, Error *reterr)
{
    SendItem **good;

    TRY(items_choose(arena, items, count, &good, &count, reterr));
    return items_send(pool, deadline, arena, good, count, /* nowait= */ false, reterr);
}

ErrorCode send_in(Tx *tx, SendItem **items, int count, Error *reterr)
{
    Sending sending = {0};

    for (int i = 0; i < count; i++)
        assert(items[i]->command_id);
    TRY(items_choose(tx->arena, items, count, &sending.items, &sending.count, reterr));
    return groups_send(tx, &sending, reterr);
}

/* ---- through a combiner ---- */

/* Items that wait for a concurrent send of the same id go to `retries`, so that `sends` waits for it once at most. There an item is run
 * again until that send has ended; each run waits for some milliseconds inside PostgreSQL, which is all the pause that is needed. */
struct Sender {
    Pool     *pool;
    Combiner *sends, *retries;
};

static int id_order(const void *a, const void *b)
{
    const SendItem *const *left = a, *const *right = b;

    return strcmp((*left)->id, (*right)->id);
}

/* The items were checked and have their ids. */
static ErrorCode sender_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    Sender                   *sender    = context;
    scoped(arena_free) Arena *arena     = arena_new((CALL_BYTES_MAX + SEND_PAYLOAD_MAX) * BYTES_FACTOR);
    SendItem                **sorted    = arena_array(arena, SendItem *, count);
    Position                 *positions = arena_array(arena, Position, count);

    for (int i = 0; i < count; i++)
        sorted[i] = items[i];
    /* Concurrent callers have no order among them. By id, so that two batches with the same ids cannot wait for each other. */
    qsort(sorted, (size_t)count, sizeof(void *), id_order);
    for (int i = 0; i < count; i++)
        positions[i] = (Position){sorted[i], i};
    qsort(positions, (size_t)count, sizeof *positions, position_order);
    for (int i = 0; i < count; i++)
        sorted[i] = positions[i].item;
    TRY(items_send(sender->pool, deadline, arena, sorted, count, /* nowait= */ true, reterr));
    for (int i = 0; i < count; i++)
        sorted[i]->status = command_status_constant(sorted[i]->status);
    return OK;
}

Sender *sender_new(Pool *pool)
{
    Sender    *sender = calloc(1, sizeof *sender);
    PoolStatus status;

    if (!sender)
        abort();
    pool_status(pool, &status);
    sender->pool    = pool;
    sender->sends   = combiner_new(&(CombinerOptions){.run        = sender_run,
                                                      .context    = sender,
                                                      .slots_max  = combiner_share(status.size_max, 4),
                                                      .weigh      = item_bytes,
                                                      .weight_max = CALL_BYTES_MAX});
    sender->retries = combiner_new(&(CombinerOptions){.run        = sender_run,
                                                      .context    = sender,
                                                      .slots      = 1,
                                                      .slots_max  = 1,
                                                      .weigh      = item_bytes,
                                                      .weight_max = CALL_BYTES_MAX});
    return sender;
}

void sender_free(Sender *sender)
{
    combiner_free(sender->retries);
    combiner_free(sender->sends);
    free(sender);
}

/* Shall it be run again, because another transaction that has not ended sends the same command? */
static bool item_is_busy(const SendItem *item, const Error *error, Deadline deadline)
{
    return error->code == OK && item->busy && deadline_left_ms(deadline) > RETRY_LEFT_MS;
}

/* The batch failed: so did the item. */
static void item_fail(SendItem *item, const Error *error)
{
    if (error->code == OK)
        return;
    item->code  = error->code;
    item->error = *error;
}

ErrorCode sender_send(Sender *sender, Deadline deadline, SendItem *item, Error *reterr)
{
    Error error = {0};

    TRY(item_prepare(item, reterr));
    error.code = combiner_run(sender->sends, item, deadline, &error);
    while (item_is_busy(item, &error, deadline))
        error.code = combiner_run(sender->retries, item, deadline, &error);
    item_fail(item, &error);
    if (reterr && item->code != OK)
        *reterr = item->error;
    return item->code;
}

static void send_done(void *context, const Error *error)
{
    SendItem *item = context;

    if (item_is_busy(item, error, item->deadline)) {
        combiner_submit(item->sender->retries, item, item->deadline, send_done);
        return;
    }
    item_fail(item, error);
    item->on_done(item->context);
}

void sender_submit(Sender *sender, Deadline deadline, SendItem *item)
{
    item->sender   = sender;
    item->deadline = deadline;
    item->code     = item_prepare(item, &item->error);
    if (item->code == OK)
        combiner_submit(sender->sends, item, deadline, send_done);
    else
        item->on_done(item->context);
}
