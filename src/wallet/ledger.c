/*
 * ledger.c - see ledger.h. The thread that runs a batch writes each item's texts into that item's arena: its owner is waiting.
 *
 * Two combiners for single operations: `posts` for new ones, `retries` for deferred ones. Operations on a wallet that was found locked
 * within the last LOCKED_MS go to `retries` directly, so that `posts` does not wait for it again.
 */
#include "wallet/ledger.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "wallet/ledger_internal.h"

#define BATCH_BYTES_MAX ((size_t)16 << 20) /* of metadata in one batch */
#define BYTES_FACTOR    8

#define RETRY_LEFT_MS 250 /* a try that the deadline cuts off would end in doubt: not begun with less */

/* ---- posting ---- */

/* The wallets that it locks. Those of an operation with a ref are found by the database. */
static int post_keys(const void *post, uint64_t *ret_keys)
{
    const WalletItem *item  = ((const LedgerPost *)post)->item;
    int               count = 0;

    if (item->ref)
        return -1;
    if (item->owner)
        ret_keys[count++] = hash_text(item->owner);
    if (item->other)
        ret_keys[count++] = hash_text(item->other);
    for (int i = 0; i < item->legs.count; i++)
        ret_keys[count++] = hash_text(item->legs.list[i].owner);
    return count;
}
static_assert(WALLET_LEGS_MAX + 2 <= COMBINER_KEYS_MAX, "an operation names at most so many wallets");

static size_t post_weigh(const void *post)
{
    return wallet_weigh(((const LedgerPost *)post)->item);
}

/* Texts that came from the batch's rows; those that were asked for are the caller's already. */
static void texts_keep(WalletItem *item, Arena *arena)
{
    if (item->posted_owner != item->owner)
        item->posted_owner = arena_text(arena, item->posted_owner);
    if (item->posted_other != item->other)
        item->posted_other = arena_text(arena, item->posted_other);
    if (item->posted_asset != item->asset)
        item->posted_asset = arena_text(arena, item->posted_asset);
}

/* Those whose wallets were not found locked since they were submitted: when a batch is run again in halves, one operation waits
 * for the lock and the others on the same wallet need not. */
static int posts_choose(Ledger *ledger, void **posts, int count, LedgerPost **ret_chosen)
{
    int chosen = 0;

    for (int i = 0; i < count; i++) {
        LedgerPost *post = posts[i];

        post->skipped = locked_has(&ledger->locked, post->item, post->submitted);
        if (!post->skipped)
            ret_chosen[chosen++] = post;
    }
    return chosen;
}

/* After a batch did not get a lock: posts the operations whose wallets are free. The others are deferred, and their wallets recorded. A
 * failure is about a single key, which another transaction has inserted and not committed: the combiner finds it by halving. */
static ErrorCode posts_run_unlocked(Ledger *ledger, LedgerPost **posts, WalletItem **items, int count,
                                    Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new((BATCH_BYTES_MAX + WALLET_METADATA_MAX) * BYTES_FACTOR);

    if (reterr)
        *reterr = (Error){0};
    TRY(wallet_post(ledger->pool, deadline, WALLET_LOCK_SKIP, arena, items, count, reterr));
    for (int i = 0; i < count; i++) {
        posts[i]->skipped = wallet_is_locked(items[i]);
        if (posts[i]->skipped)
            locked_add(&ledger->locked, items[i]->posted_owner);
        texts_keep(items[i], posts[i]->arena);
    }
    return OK;
}

static ErrorCode posts_run(void *context, void **posts, int count, Deadline deadline, Error *reterr)
{
    Ledger                   *ledger = context;
    scoped(arena_free) Arena *arena  = arena_new((BATCH_BYTES_MAX + WALLET_METADATA_MAX) * BYTES_FACTOR);
    WalletItem              **items  = arena_array(arena, WalletItem *, count);
    LedgerPost              **chosen = arena_array(arena, LedgerPost *, count);
    ErrorCode                 code;

    count = posts_choose(ledger, posts, count, chosen);
    if (count == 0)
        return OK;
    for (int i = 0; i < count; i++)
        items[i] = chosen[i]->item;
    code = wallet_post(ledger->pool, deadline, WALLET_LOCK_BRIEFLY, arena, items, count, reterr);
    if (code != OK && error_is_lock(reterr))
        code = posts_run_unlocked(ledger, chosen, items, count, deadline, reterr);
    else
        for (int i = 0; code == OK && i < count; i++)
            texts_keep(items[i], chosen[i]->arena);
    return code;
}

static void post_prepare(Ledger *ledger, LedgerPost *post)
{
    post->ledger    = ledger;
    post->submitted = clock_mono();
    post->skipped   = false;
}

/* The combiner that runs it first. */
static Combiner *post_route(Ledger *ledger, LedgerPost *post)
{
    post_prepare(ledger, post);
    return locked_has(&ledger->locked, post->item, mono_plus_ms(post->submitted, -LOCKED_MS)) ? ledger->retries
                                                                                              : ledger->posts;
}

/* It did not get its lock, so nothing was written, and there is time for another try. */
static bool post_is_deferred(LedgerPost *post, const Error *error)
{
    if (!post->skipped && !error_is_lock(error))
        return false;
    return deadline_left_ms(post->deadline) > RETRY_LEFT_MS;
}

static void post_finish(const LedgerPost *post, const Error *error)
{
    WalletItem *item = post->item;

    if (post->skipped || error_is_lock(error)) {
        item->code = fail(&item->error, ERR_BUSY, "nothing was done: another transaction keeps a wallet locked");
        error_set_sqlstate(&item->error, "55P03");
    } else if (error->code != OK) {
        item->code  = error->code;
        item->error = *error;
    }
}

static void post_done(void *context, const Error *error)
{
    LedgerPost *post = context;

    if (post_is_deferred(post, error)) {
        post_prepare(post->ledger, post);
        combiner_submit(post->ledger->retries, post, post->deadline, post_done);
        return;
    }
    post_finish(post, error);
    post->on_done(post->context);
}

void ledger_submit(Ledger *ledger, LedgerPost *post)
{
    WalletItem *item = post->item;

    item->code = wallet_check(item, &item->error);
    if (item->code == OK)
        combiner_submit(post_route(ledger, post), post, post->deadline, post_done);
    else
        post->on_done(post->context);
}

ErrorCode ledger_post(Ledger *ledger, Deadline deadline, Arena *arena, WalletItem *item, Error *reterr)
{
    LedgerPost post  = {.item = item, .arena = arena, .deadline = deadline};
    Error      error = {0};

    TRY(item->code = wallet_check(item, reterr));
    error.code = combiner_run(post_route(ledger, &post), &post, deadline, &error);
    while (post_is_deferred(&post, &error)) {
        post_prepare(ledger, &post);
        error      = (Error){0};
        error.code = combiner_run(ledger->retries, &post, deadline, &error);
    }
    post_finish(&post, &error);
    return error_pass(item->code, &item->error, reterr);
}

/* ---- reading ---- */

typedef struct {
    const char *owner, *asset;
    Arena      *arena;
    Wallet      wallet;
    bool        found;
} WalletRead;

static ErrorCode reads_run(void *context, void **reads, int count, Deadline deadline, Error *reterr)
{
    Ledger                   *ledger = context;
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    const char              **owners = arena_array(arena, const char *, count);
    const char              **assets = arena_array(arena, const char *, count);
    bool                      named  = false;
    Wallet                   *list;
    int                       found;

    for (int i = 0; i < count; i++) {
        const WalletRead *read = reads[i];

        owners[i] = read->owner;
        assets[i] = read->asset;
        named |= read->asset != NULL;
    }
    TRY(wallet_get(ledger->pool, deadline, arena, owners, named ? assets : NULL, count, &list, &found, reterr));
    for (int i = 0; i < found; i++) {
        WalletRead *read = reads[list[i].ord - 1];

        read->wallet          = list[i];
        read->wallet.owner    = read->owner;
        read->wallet.asset    = read->asset ? read->asset : WALLET_ASSET_DEFAULT;
        read->wallet.metadata = arena_text(read->arena, list[i].metadata);
        read->found           = true;
    }
    return OK;
}

ErrorCode ledger_get(Ledger *ledger, Deadline deadline, Arena *arena, const char *owner, const char *asset,
                     Wallet *ret_wallet, Error *reterr)
{
    WalletRead read = {.owner = owner, .asset = asset, .arena = arena};

    TRY(wallet_check_owner_seen("owner", owner, reterr));
    TRY(wallet_check_asset("asset", asset, reterr));
    TRY(combiner_run(ledger->reads, &read, deadline, reterr));
    if (!read.found)
        return wallet_missing(owner, asset, reterr);
    *ret_wallet = read.wallet;
    return OK;
}

/* ---- life ---- */

Ledger *ledger_new(Pool *pool)
{
    Ledger    *ledger = memory_new(1, sizeof *ledger);
    PoolStatus status;
    int        share;

    pool_status(pool, &status);
    share        = combiner_share(status.size_max, 4);
    ledger->pool = pool;
    locked_init(&ledger->locked);
    /* Two at a time, on different wallets: so neither waits for the other, and PostgreSQL uses two cores (docs/benchmarks.md). */
    ledger->posts   = combiner_new(&(CombinerOptions){.run        = posts_run,
                                                      .context    = ledger,
                                                      .slots      = 2,
                                                      .slots_max  = share,
                                                      .weigh      = post_weigh,
                                                      .weight_max = BATCH_BYTES_MAX,
                                                      .keys       = post_keys});
    ledger->retries = combiner_new(&(CombinerOptions){.run        = posts_run,
                                                      .context    = ledger,
                                                      .slots      = 1,
                                                      .slots_max  = 1,
                                                      .weigh      = post_weigh,
                                                      .weight_max = BATCH_BYTES_MAX});
    ledger->reads   = combiner_new(&(CombinerOptions){.run = reads_run, .context = ledger, .slots_max = share});
    ledger->batches = lock_calls_new(share);
    return ledger;
}

void ledger_free(Ledger *ledger)
{
    lock_calls_free(ledger->batches);
    combiner_free(ledger->posts);
    combiner_free(ledger->retries);
    combiner_free(ledger->reads);
    locked_done(&ledger->locked);
    free(ledger);
}
