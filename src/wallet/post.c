/*
 * post.c - operations become arrays, rows become verdicts; see post.h.
 */
#include "wallet/post.h"

#include <stdlib.h>
#include <string.h>

#include "base/writer.h"
#include "pg/tx.h"
#include "sql.h"
#include "wallet/metric.h"

/* As arrays in text form, being built, items take several times as much. */
#define BYTES_FACTOR 8
#define REQUEST_MAX  ((size_t)4 * WALLET_METADATA_MAX)
#define AMOUNTS_MAX  ((size_t)WALLET_BATCH_MAX * 20)
#define POST_ARGS    10 /* of sql_wallet_post */

#define VERDICT_COLUMNS(X, T)                                                         \
    X(T, I32, ord)                                                                    \
    X(T, BOOL, is_new)                                                                \
    X(T, TEXT, refusal, sentence, differs, kind, owner, other, asset)                 \
    X(T, I64, amount, balance_before, balance, held, available, version, balance_now) \
    X(T, TIME, at)
DB_ROW(VerdictRow, VERDICT_COLUMNS);
DB_SHAPE(verdict, VerdictRow, VERDICT_COLUMNS);

/* A refusal's SQLSTATE gives it its code, status and type: see the table in module.c. */
static const struct {
    const char *refusal, *sqlstate;
} refusals[] = {
    {"insufficient-funds",  "QW011"},
    {"balance-limit",       "QW012"},
    {"wallet-frozen",       "QW013"},
    {"hold-ended",          "QW014"},
    {"over-captured",       "QW015"},
    {"over-refunded",       "QW016"},
    {"not-refundable",      "QW017"},
    {"asset-mismatch",      "QW018"},
    {"same-wallet",         "QW019"},
    {"wallet-unknown",      "QW021"},
    {"hold-unknown",        "QW022"},
    {"transaction-unknown", "QW023"},
    {"busy",                "55P03"},
};

/* ---- arrays ---- */

/* The usual one is left out; where there is a ref it is asked for, not chosen. */
static const char *asset_of(const WalletItem *item)
{
    return item->asset && (item->ref || strcmp(item->asset, WALLET_ASSET_DEFAULT) != 0) ? item->asset : NULL;
}

static DbArg amounts_arg(Arena *arena, WalletItem *const *items, int count)
{
    Text text;

    text_init(&text, arena, AMOUNTS_MAX);
    for (int i = 0; i < count; i++) {
        text_append_char(&text, i ? ',' : '{');
        if (items[i]->amount)
            text_print(&text, "%lld", (long long)items[i]->amount);
        else
            text_append(&text, "NULL");
    }
    text_append_char(&text, '}');
    return db_text(text_string(&text));
}

/* What has no column of its own; NULL: nothing. */
static const char *request_of(Arena *arena, const WalletItem *item)
{
    Text   text;
    Writer writer;

    if (!item->metadata && !item->expires_in_s && !item->legs.count && item->kind != WALLET_FLOOR)
        return NULL;
    text_init(&text, arena, REQUEST_MAX);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    if (item->metadata)
        writer_raw(&writer, "metadata", item->metadata);
    if (item->expires_in_s)
        writer_i64(&writer, "expires_in_s", item->expires_in_s);
    if (item->legs.count)
        legs_write(&writer, "legs", item->legs);
    if (item->kind == WALLET_FLOOR)
        writer_i64(&writer, "floor", item->floor);
    writer_end(&writer);
    return text_string(&text);
}

static DbArg requests_arg(Arena *arena, WalletItem *const *items, int count)
{
    const char **texts = arena_array(arena, const char *, count);
    bool         any   = false;

    for (int i = 0; i < count; i++) {
        texts[i] = request_of(arena, items[i]);
        any |= texts[i] != NULL;
    }
    return any ? db_jsonbs(arena, texts, count) : db_null();
}

/* ---- verdicts ---- */

static ErrorCode verdict_reused(WalletItem *item, const char *column, const char *kind)
{
    if (strcmp(column, "kind") == 0)
        return fail(&item->error, ERR_KEY_REUSED, "txn_id %s was used before for another operation: %s", item->txn_id,
                    kind);
    return fail(&item->error, ERR_KEY_REUSED, "txn_id %s was used before with another \"%s\"", item->txn_id,
                wallet_field_name(item->kind, column));
}

static ErrorCode verdict_refused(WalletItem *item, const char *refusal, const char *sentence)
{
    const char *sqlstate = "QW002";

    for (size_t i = 0; i < COUNT(refusals); i++)
        if (strcmp(refusals[i].refusal, refusal) == 0)
            sqlstate = refusals[i].sqlstate;
    fail(&item->error, error_from_sqlstate(sqlstate), "%s", sentence);
    error_set_sqlstate(&item->error, sqlstate);
    return item->error.code;
}

static void verdict_take(WalletItem *item, const VerdictRow *row)
{
    item->decided_at = row->at;
    item->replayed   = row->at && !row->is_new;
    item->code       = OK;
    item->error      = (Error){0};
    if (row->differs) {
        item->code       = verdict_reused(item, row->differs, row->kind);
        item->replayed   = false;
        item->decided_at = 0;
        return;
    }
    if (row->refusal)
        item->code = verdict_refused(item, row->refusal, row->sentence);
    item->posted_owner   = row->owner ? row->owner : item->owner;
    item->posted_other   = row->other ? row->other : item->other;
    item->posted_asset   = row->asset ? row->asset : item->asset ? item->asset : WALLET_ASSET_DEFAULT;
    item->posted_amount  = row->amount ? row->amount : item->amount;
    item->balance_before = row->balance_before;
    item->balance        = row->balance;
    item->held           = row->held;
    item->available      = row->available;
    item->version        = row->version;
    item->balance_now    = row->balance_now;
}

static void verdicts_count(WalletItem *const *items, int count)
{
    int64_t posted = 0, refused = 0, replayed = 0;

    for (int i = 0; i < count; i++)
        if (items[i]->replayed)
            replayed++;
        else if (items[i]->code == OK)
            posted++;
        else if (!wallet_is_locked(items[i]))
            refused++;
    metric_add(&wallet_metrics.posted, posted);
    metric_add(&wallet_metrics.refused, refused);
    metric_add(&wallet_metrics.replayed, replayed);
}

static ErrorCode rows_take(WalletItem **items, int count, const VerdictRow *rows, int row_count, Error *reterr)
{
    if (row_count != count)
        return fail(reterr, ERR_INTERNAL, "%d operations were posted and %d answered", count, row_count);
    for (int i = 0; i < count; i++)
        verdict_take(items[rows[i].ord - 1], &rows[i]);
    return OK;
}

/* ---- posting ---- */

static DbArg lock_arg(WalletLock lock)
{
    return lock == WALLET_LOCK_WAIT ? db_null() : db_i32(WALLET_LOCK_MS);
}

static DbArgs post_args(Arena *arena, WalletItem *const *items, int count, WalletLock lock, DbArg *ret_list)
{
    const char **kinds  = arena_array(arena, const char *, count);
    const char **assets = arena_array(arena, const char *, count);
    bool         any    = false;

    for (int i = 0; i < count; i++) {
        kinds[i]  = wallet_kind_names[items[i]->kind];
        assets[i] = asset_of(items[i]);
        any |= assets[i] != NULL;
    }
    ret_list[0] = db_texts(arena, kinds, count);
    ret_list[1] = db_uuids_at(arena, items, count, offsetof(WalletItem, txn_id));
    ret_list[2] = db_texts_at(arena, items, count, offsetof(WalletItem, owner));
    ret_list[3] = amounts_arg(arena, items, count);
    ret_list[4] = db_texts_at(arena, items, count, offsetof(WalletItem, other));
    ret_list[5] = any ? db_texts(arena, assets, count) : db_null();
    ret_list[6] = db_uuids_at(arena, items, count, offsetof(WalletItem, ref));
    ret_list[7] = requests_arg(arena, items, count);
    ret_list[8] = lock_arg(lock);
    ret_list[9] = db_bool(lock == WALLET_LOCK_SKIP);
    return (DbArgs){ret_list, POST_ARGS};
}

/* One transfer has a statement without arrays; see sql/wallet/post_transfer.sql. */
static ErrorCode call_transfer(Pool *pool, const TxOptions *options, const WalletItem *item, WalletLock lock,
                               void *ret_rows, int *ret_count, Error *reterr)
{
    return db_call_many(pool, options, sql_wallet_post_transfer,
                        DB_ARGS(db_uuid(item->txn_id), db_text(item->owner), db_i64(item->amount), db_text(item->other),
                                db_text(asset_of(item)), db_jsonb(request_of(options->arena, item)), lock_arg(lock)),
                        &verdict_shape, ret_rows, ret_count, reterr);
}

ErrorCode wallet_post(Pool *pool, Deadline deadline, WalletLock lock, Arena *arena, WalletItem **items, int count,
                      Error *reterr)
{
    TxOptions options = {.name      = "wallet_post",
                         .deadline  = deadline,
                         .arena     = arena,
                         .keyed     = true,
                         .lock_once = lock != WALLET_LOCK_WAIT,
                         .prepare   = true};
    DbArg     list[POST_ARGS];
    void     *rows;
    int       row_count;

    if (count == 1 && items[0]->kind == WALLET_TRANSFER && lock != WALLET_LOCK_SKIP)
        TRY(call_transfer(pool, &options, items[0], lock, &rows, &row_count, reterr));
    else
        TRY(db_call_many(pool, &options, sql_wallet_post, post_args(arena, items, count, lock, list), &verdict_shape,
                         &rows, &row_count, reterr));
    TRY(rows_take(items, count, rows, row_count, reterr));
    verdicts_count(items, count);
    return OK;
}

bool wallet_is_locked(const WalletItem *item)
{
    return item->code == ERR_BUSY && strcmp(item->error.sqlstate, "55P03") == 0;
}

ErrorCode wallet_post_in(Tx *tx, WalletItem **items, int count, Error *reterr)
{
    DbArg list[POST_ARGS];
    void *rows;
    int   row_count;

    TRY(db_many(tx, sql_wallet_post, post_args(tx->arena, items, count, WALLET_LOCK_WAIT, list), &verdict_shape, &rows,
                &row_count, reterr));
    return rows_take(items, count, rows, row_count, reterr);
}

/* ---- many ---- */

typedef struct {
    WalletItem *item;
    int         position;
} Position;

static int position_order(const void *a, const void *b)
{
    const Position *left = a, *right = b;
    int             order = strcmp(left->item->txn_id, right->item->txn_id);

    return order ? order : left->position - right->position;
}

/* ret_first[i]: the position of the first item with the key of item i. Returns these first items, in order. */
static int firsts_find(Arena *arena, WalletItem **items, int count, WalletItem **ret_firsts, int *ret_first)
{
    Position *positions = arena_array(arena, Position, count);
    int       found     = 0;

    for (int i = 0; i < count; i++)
        positions[i] = (Position){items[i], i};
    qsort(positions, (size_t)count, sizeof *positions, position_order);
    for (int i = 0, run = 0; i < count; i++) {
        if (strcmp(positions[i].item->txn_id, positions[run].item->txn_id) != 0)
            run = i;
        ret_first[positions[i].position] = positions[run].position;
    }
    for (int i = 0; i < count; i++)
        if (ret_first[i] == i)
            ret_firsts[found++] = items[i];
    return found;
}

static bool text_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The column in which two operations under one key differ; NULL: in none. */
static const char *item_difference(const WalletItem *a, const WalletItem *b)
{
    if (a->kind != b->kind)
        return "kind";
    if (!text_same(a->ref, b->ref))
        return "ref";
    if (!text_same(asset_of(a), asset_of(b)))
        return "asset";
    if (!text_same(a->owner, b->owner))
        return "owner";
    if (!text_same(a->other, b->other))
        return "other";
    if (a->amount != b->amount)
        return "amount";
    if (!legs_same(a->legs, b->legs))
        return "legs";
    if (a->floor != b->floor)
        return "floor";
    if (a->expires_in_s != b->expires_in_s)
        return "expires_in_s";
    return text_same(a->metadata, b->metadata) ? NULL : "metadata";
}

static void repeat_judge(WalletItem *item, const WalletItem *first)
{
    const char *column = item_difference(first, item);
    WalletItem  verdict;

    if (column) {
        item->code = verdict_reused(item, column, wallet_kind_names[first->kind]);
        return;
    }
    verdict          = *first;
    verdict.replayed = first->decided_at != 0;
    *item            = verdict;
}

typedef struct {
    WalletItem **items; /* all of them */
    int          count;
    WalletItem **firsts;
    int          first_count;
    const int   *first; /* of each item: the position of the first item with its key */
    DbArgs       args;  /* of the firsts; made once, however often the transaction is run */
    bool         atomic;
    int          refused;
} Many;

/* The transaction is rolled back: nothing is posted, and no refusal is kept. */
static ErrorCode many_take_back(Many *many, Error *reterr)
{
    for (int i = 0; i < many->count; i++) {
        WalletItem *item = many->items[i];

        /* A repeat of an item of this call counts as replayed only if that item was decided before this call. */
        item->replayed = item->replayed && many->items[many->first[i]]->replayed;
        if (item->code == OK && !item->replayed)
            item->code = fail(&item->error, ERR_CONFLICT, "not posted, because items[%d] was refused", many->refused);
        item->decided_at = item->replayed ? item->decided_at : 0;
    }
    return fail(reterr, ERR_CONFLICT, "nothing was posted, because items[%d] was refused: %s", many->refused,
                many->items[many->refused]->error.text);
}

static ErrorCode many_post(Tx *tx, void *context, Error *reterr)
{
    Many *many = context;
    void *rows;
    int   row_count;

    many->refused = -1;
    TRY(db_many(tx, sql_wallet_post, many->args, &verdict_shape, &rows, &row_count, reterr));
    TRY(rows_take(many->firsts, many->first_count, rows, row_count, reterr));
    for (int i = 0; i < many->count; i++)
        if (many->first[i] != i)
            repeat_judge(many->items[i], many->items[many->first[i]]);
    for (int i = many->count - 1; i >= 0; i--)
        if (many->items[i]->code != OK)
            many->refused = i;
    return many->atomic && many->refused >= 0 ? many_take_back(many, reterr) : OK;
}

static size_t items_bytes(WalletItem *const *items, int count)
{
    size_t bytes = 0;

    for (int i = 0; i < count; i++)
        bytes += wallet_weigh(items[i]);
    return bytes;
}

ErrorCode wallet_post_many(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, WalletItem **items, int count,
                           bool atomic, int *ret_refused, Error *reterr)
{
    TxOptions options = {.name     = "wallet_post",
                         .deadline = deadline,
                         .lock_ms  = lock_ms,
                         .arena    = arena,
                         .keyed    = true,
                         .prepare  = true};
    DbArg     list[POST_ARGS];
    Many      many = {.items = items, .count = count, .atomic = atomic, .refused = -1};
    ErrorCode code;

    if (count < 1 || count > WALLET_BATCH_MAX)
        return fail(reterr, ERR_LIMIT, "1 to %d operations can be posted in one call, not %d", WALLET_BATCH_MAX, count);
    if (!arena_has_space(arena, items_bytes(items, count) * BYTES_FACTOR))
        return fail(reterr, ERR_LIMIT, "%d operations of %zu bytes together are too large for one call", count,
                    items_bytes(items, count));
    many.firsts = arena_array(arena, WalletItem *, count);

    int *first       = arena_array(arena, int, count);
    many.first_count = firsts_find(arena, items, count, many.firsts, first);
    many.first       = first;
    many.args        = post_args(arena, many.firsts, many.first_count, WALLET_LOCK_WAIT, list);
    code             = tx_run(pool, &options, many_post, &many, reterr);
    *ret_refused     = many.refused;
    if (code == OK)
        verdicts_count(items, count);
    /* Taken back because of a verdict: that is an answer, and not a failure. */
    return code == ERR_CONFLICT && many.atomic && many.refused >= 0 ? OK : code;
}

ErrorCode wallet_locked(Pool *pool, Deadline deadline, Arena *arena, WalletItem *const *items, int count,
                        const char ***ret_owners, int *ret_count, Error *reterr)
{
    TxOptions    options = {.name = "wallet_locked", .deadline = deadline, .arena = arena};
    const char **owners  = arena_array(arena, const char *, 2 * (size_t)count);
    int          named   = 0;

    for (int i = 0; i < count; i++) {
        if (items[i]->owner)
            owners[named++] = items[i]->owner;
        if (items[i]->other)
            owners[named++] = items[i]->other;
    }
    return db_call_many(pool, &options, sql_wallet_locked, DB_ARGS(db_texts(arena, owners, named)), &db_text_shape,
                        ret_owners, ret_count, reterr);
}
