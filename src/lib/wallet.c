/*
 * wallet.c - the ledger from C: wallets, and operations alone, many, or as part of a transaction.
 *
 * What PostgreSQL would raise an error about is refused here, with its field: an error would abort the caller's
 * transaction.
 */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/reader.h"
#include "base/uuid.h"
#include "lib/library_internal.h"
#include "pg/combiner_split.h"

#define BYTES_FACTOR   8 /* as arrays in text form, being built, items take several times as much */
#define RUN_BYTES_MAX  ((size_t)16 << 20)
#define KIND_OF(given) ((WalletKind)((given)-PAWL_TOPUP))

static_assert(KIND_OF(PAWL_FLOOR) == WALLET_FLOOR && WALLET_FLOOR + 1 == WALLET_KIND_COUNT,
              "both headers have the same kinds");

/* ---- what an operation may have ---- */

/* wallet_check() checks the rest. */
static ErrorCode check_fields(const PawlOperation *given, Error *reterr)
{
    if (!given)
        return fail(reterr, ERR_INVALID, "operation must be given, got NULL");
    if (given->kind < PAWL_TOPUP || given->kind > PAWL_FLOOR)
        return fail(reterr, ERR_INVALID, "kind must be from PAWL_TOPUP to PAWL_FLOOR, got %d", (int)given->kind);
    if (KIND_OF(given->kind) != WALLET_MULTI && (given->legs || given->leg_count))
        return fail(reterr, ERR_INVALID, "legs must not be given: %s takes %s", wallet_kind_names[KIND_OF(given->kind)],
                    wallet_kind_takes[KIND_OF(given->kind)]);
    return OK;
}

/* The module assumes that it is well-formed. */
static ErrorCode check_metadata(const char *metadata, Error *reterr)
{
    ErrorCode code;

    TRY(wallet_check_metadata(metadata, reterr));
    code = metadata ? reader_check(metadata, strlen(metadata), reterr) : OK;
    if (code != OK)
        error_prefix(reterr, "metadata");
    return code;
}

/* ---- from the caller's structs to the module's ---- */

/* Too many are counted and not copied: the module refuses them by their number. */
static WalletLegs legs_take(const PawlLeg *given, int count, Arena *arena)
{
    int        copied = !given || count < 0 ? 0 : count > WALLET_LEGS_MAX ? WALLET_LEGS_MAX : count;
    WalletLeg *list   = copied ? arena_array(arena, WalletLeg, copied) : NULL;

    for (int i = 0; i < copied; i++)
        list[i] = (WalletLeg){.owner = given[i].owner, .asset = given[i].asset, .amount = given[i].amount};
    return (WalletLegs){list, given ? count : 0};
}

/* In lower case, as the module compares them; what is not a UUID is refused there. */
static const char *id_take(const char *text, Arena *arena)
{
    char id[UUID_TEXT_SIZE];

    return text && uuid_parse(text, id) ? arena_text(arena, id) : text;
}

static ErrorCode item_read(const PawlOperation *given, Arena *arena, WalletItem *item, Error *reterr)
{
    TRY(check_fields(given, reterr));
    *item = (WalletItem){.kind         = KIND_OF(given->kind),
                         .txn_id       = id_take(given->txn_id, arena),
                         .owner        = given->owner,
                         .other        = given->to,
                         .asset        = given->asset,
                         .ref          = id_take(given->hold, arena),
                         .amount       = given->amount,
                         .expires_in_s = given->expires_in_s,
                         .floor        = given->floor,
                         .legs         = legs_take(given->legs, given->leg_count, arena),
                         .metadata     = given->metadata};
    TRY(wallet_check(item, reterr));
    return check_metadata(item->metadata, reterr);
}

/* An item with its verdict, if that can be known without the database. */
static ErrorCode item_take(const PawlOperation *given, Arena *arena, WalletItem *ret_item)
{
    WalletItem item = {0};
    Error      why  = {0};
    ErrorCode  code = item_read(given, arena, &item, &why);

    item.code  = code;
    item.error = why;
    *ret_item  = item;
    return code;
}

/* Its verdict is void: its transaction failed. */
static void item_fail(WalletItem *item, ErrorCode code, const Error *why)
{
    item->code     = code;
    item->error    = *why;
    item->replayed = false;
}

static PawlStatus posted_fill(const WalletItem *item, PawlPosted *ret_posted)
{
    PawlPosted posted = {.replayed = item->replayed};

    library_answer(item->code, &item->error, &posted.error);
    if (item->code != OK) {
        posted.type = error_type(&item->error);
    } else {
        posted.amount         = item->posted_amount;
        posted.balance_before = item->balance_before;
        posted.balance        = item->balance;
        posted.held           = item->held;
        posted.available      = item->available;
        posted.version        = item->version;
    }
    if (ret_posted)
        *ret_posted = posted;
    return posted.error.status;
}

/* ---- wallets ---- */

static ErrorCode wallet_take(const PawlWallet *given, Arena *arena, WalletNew *ret_wallet, Error *reterr)
{
    char id[UUID_TEXT_SIZE];

    if (!given)
        return fail(reterr, ERR_INVALID, "wallet must be given, got NULL");
    if (given->txn_id && !uuid_parse(given->txn_id, id))
        return fail(reterr, ERR_INVALID, "txn_id must be a UUID");
    TRY(check_metadata(given->metadata, reterr));
    *ret_wallet = (WalletNew){.owner    = given->owner,
                              .asset    = given->asset,
                              .metadata = given->metadata,
                              .txn_id   = id_take(given->txn_id, arena),
                              .floor    = given->floor};
    return OK;
}

PawlStatus pawl_wallet_open(Pawl *pawl, const PawlWallet *given, int timeout_ms, bool *ret_is_new, PawlError *error)
{
    Error                       why    = {0};
    scoped(library_leave) Pawl *inside = library_enter(pawl, timeout_ms, &why);
    scoped(arena_free) Arena   *arena  = arena_new(ARENA_BYTES_DEFAULT);
    WalletNew                   wallet;
    ErrorCode                   code = inside ? wallet_take(given, arena, &wallet, &why) : why.code;

    if (ret_is_new)
        *ret_is_new = false;
    if (code == OK)
        code = wallet_open(pawl->pool, library_deadline(timeout_ms), WALLET_LOCK_WAIT, arena, &wallet, &why);
    if (code == OK && ret_is_new)
        *ret_is_new = wallet.is_new;
    return library_answer(code, &why, error);
}

PawlStatus pawl_wallet_get(Pawl *pawl, const char *owner, const char *asset, int timeout_ms, PawlBalance *ret_balance,
                           PawlError *error)
{
    Error                       why    = {0};
    scoped(library_leave) Pawl *inside = library_enter(pawl, timeout_ms, &why);
    scoped(arena_free) Arena   *arena  = arena_new(ARENA_BYTES_DEFAULT);
    Wallet                      wallet = {0};
    ErrorCode                   code   = why.code;

    if (inside)
        code = ledger_get(pawl->ledger, library_deadline(timeout_ms), arena, owner, asset, &wallet, &why);
    if (ret_balance)
        *ret_balance = (PawlBalance){.balance   = wallet.balance,
                                     .held      = wallet.held,
                                     .floor     = wallet.floor,
                                     .available = wallet.available,
                                     .version   = wallet.version,
                                     .frozen    = wallet.frozen};
    return library_answer(code, &why, error);
}

/* ---- one ---- */

PawlStatus pawl_post(Pawl *pawl, const PawlOperation *operation, int timeout_ms, PawlPosted *ret_posted,
                     PawlError *error)
{
    Error                       why    = {0};
    scoped(library_leave) Pawl *inside = library_enter(pawl, timeout_ms, &why);
    scoped(arena_free) Arena   *arena  = arena_new(ARENA_BYTES_DEFAULT);
    WalletItem                  item;

    if (item_take(operation, arena, &item) == OK) {
        item.code  = inside ? ledger_post(pawl->ledger, library_deadline(timeout_ms), arena, &item, &why) : why.code;
        item.error = why;
    }
    posted_fill(&item, ret_posted);
    return library_answer(item.code, &item.error, error);
}

/* ---- many ---- */

/* All that were given, and those of them that can be posted. */
typedef struct {
    WalletItem  *all;
    WalletItem **good;
    int          count, good_count;
} Items;

static ErrorCode items_take(const PawlOperation *operations, int count, Arena *arena, Items *ret_items, Error *reterr)
{
    if (!operations)
        return fail(reterr, ERR_INVALID, "operations must be an array, got NULL");
    if (count < 1 || count > WALLET_BATCH_MAX)
        return fail(reterr, ERR_LIMIT, "1 to %d operations can be posted in one call, got %d", WALLET_BATCH_MAX, count);
    *ret_items = (Items){.all   = arena_array(arena, WalletItem, count),
                         .good  = arena_array(arena, WalletItem *, count),
                         .count = count};
    for (int i = 0; i < count; i++)
        if (item_take(&operations[i], arena, &ret_items->all[i]) == OK)
            ret_items->good[ret_items->good_count++] = &ret_items->all[i];
    return OK;
}

/* The first that was not posted, or NULL. */
static const WalletItem *items_answer(const Items *items, PawlPosted *ret_posted)
{
    const WalletItem *bad = NULL;

    for (int i = items->count - 1; i >= 0; i--)
        if (posted_fill(&items->all[i], ret_posted ? &ret_posted[i] : NULL) != PAWL_OK)
            bad = &items->all[i];
    return bad;
}

static PawlStatus items_refuse(ErrorCode code, const Error *why, int count, PawlPosted *ret_posted, PawlError *error)
{
    WalletItem refused = {.code = code, .error = *why};

    for (int i = 0; ret_posted && i < count; i++)
        posted_fill(&refused, &ret_posted[i]);
    return library_answer(code, why, error);
}

static size_t items_weigh(WalletItem *const *items, int count)
{
    size_t bytes = 0;

    for (int i = 0; i < count; i++)
        bytes += wallet_weigh(items[i]);
    return bytes;
}

/* On ERR_LIMIT the caller splits the items in half: what does not fit into one transaction goes into two, in order. */
static ErrorCode items_post(void *context, void **list, int count, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(LIBRARY_ARENA_BYTES);
    WalletItem              **items = (WalletItem **)list;
    int                       refused;

    if (count > 1 && items_weigh(items, count) > RUN_BYTES_MAX)
        return fail(reterr, ERR_LIMIT, "%d operations are too large for one transaction", count);
    return wallet_post_many(context, deadline, /* lock_ms= */ 0, arena, items, count, /* atomic= */ false, &refused,
                            reterr);
}

static void item_posted(void *item, const Error *error)
{
    if (error->code != OK)
        item_fail(item, error->code, error);
}

PawlStatus pawl_post_many(Pawl *pawl, const PawlOperation *operations, int count, int timeout_ms,
                          PawlPosted *ret_posted, PawlError *error)
{
    Error                       why    = {0};
    scoped(library_leave) Pawl *inside = library_enter(pawl, timeout_ms, &why);
    scoped(arena_free) Arena   *arena  = arena_new(LIBRARY_ARENA_BYTES);
    const WalletItem           *bad;
    Items                       items = {0};
    ErrorCode                   code  = inside ? items_take(operations, count, arena, &items, &why) : why.code;

    if (code != OK)
        return items_refuse(code, &why, count, ret_posted, error);
    if (items.good_count > 0)
        combiner_split(items_post, pawl->pool, (void **)items.good, items.good_count, library_deadline(timeout_ms),
                       item_posted);
    bad = items_answer(&items, ret_posted);
    return bad ? library_answer(bad->code, &bad->error, error) : library_answer(OK, &why, error);
}

/* ---- as part of a transaction ---- */

static ErrorCode good_post_in(Tx *tx, const Items *items, Error *reterr)
{
    size_t bytes = items_weigh(items->good, items->good_count);

    if (items->good_count == 0)
        return OK;
    if (!arena_has_space(tx->arena, bytes * BYTES_FACTOR))
        return fail(reterr, ERR_LIMIT, "%d operations of %zu bytes together are too large for one call",
                    items->good_count, bytes);
    return wallet_post_in(tx, items->good, items->good_count, reterr);
}

static void items_post_in(const PawlTx *tx, const Items *items)
{
    Error     why  = {0};
    ErrorCode code = library_check(tx->pawl, &why);

    if (code == OK)
        code = good_post_in(tx->tx, items, &why);
    for (int i = 0; code != OK && i < items->good_count; i++)
        item_fail(items->good[i], code, &why);
}

PawlStatus pawl_tx_post_many(PawlTx *tx, const PawlOperation *operations, int count, PawlPosted *ret_posted)
{
    scoped(arena_free) Arena *arena = arena_new(LIBRARY_ARENA_BYTES);
    const WalletItem         *bad;
    Items                     items;
    ErrorCode                 code = items_take(operations, count, arena, &items, tx->why);

    if (code != OK)
        return items_refuse(tx->code = code, tx->why, count, ret_posted, tx->error);
    items_post_in(tx, &items);
    bad = items_answer(&items, ret_posted);
    if (!bad)
        return PAWL_OK;
    tx->code = bad->code;
    *tx->why = bad->error;
    return library_answer(bad->code, &bad->error, tx->error);
}

PawlStatus pawl_tx_post(PawlTx *tx, const PawlOperation *operation, PawlPosted *ret_posted)
{
    return pawl_tx_post_many(tx, operation, 1, ret_posted);
}
