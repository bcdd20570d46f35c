/*
 * ledger.c - see ledger.h. Whoever leads a run puts each caller's texts into that caller's arena: its owner waits.
 *
 * A run is shared, so a wallet that somebody holds locked would hold up everyone in it. Hence two lines: in the first one a
 * run is tried once and hardly waits for locks; what cannot be had at once goes to the second, where there is patience, and
 * the retries of pg/tx.
 */
#include "wallet/ledger.h"

#include <stdlib.h>

#include "pg/combiner.h"

#define RUN_BYTES_MAX ((size_t)16 << 20) /* of metadata in one run */
#define BYTES_FACTOR  8

struct Ledger {
    Pool     *pool;
    Combiner *posts, *patient, *looks;
};

/* ---- posting ---- */

typedef struct {
    WalletItem *item;
    Arena      *arena;
    void (*told)(void *context); /* NULL: the caller waits, and needs none of the rest */
    void    *context;
    Ledger  *ledger;
    Deadline deadline;
} PostTurn;

static size_t post_weigh(const void *turn)
{
    return wallet_weigh(((const PostTurn *)turn)->item);
}

/* Texts that came from the run's rows; those that were asked for are the caller's already. */
static void texts_keep(WalletItem *item, Arena *arena)
{
    if (item->posted_owner != item->owner)
        item->posted_owner = arena_text(arena, item->posted_owner);
    if (item->posted_other != item->other)
        item->posted_other = arena_text(arena, item->posted_other);
    if (item->posted_asset != item->asset)
        item->posted_asset = arena_text(arena, item->posted_asset);
}

typedef ErrorCode Post(Pool *pool, Deadline deadline, Arena *arena, WalletItem **items, int count, Error *reterr);

static ErrorCode turns_post(Ledger *ledger, Post *post, void **turns, int count, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new((RUN_BYTES_MAX + WALLET_METADATA_MAX) * BYTES_FACTOR);
    WalletItem              **items = arena_array(arena, WalletItem *, count);

    for (int i = 0; i < count; i++)
        items[i] = ((PostTurn *)turns[i])->item;
    TRY(post(ledger->pool, deadline, arena, items, count, reterr));
    for (int i = 0; i < count; i++)
        texts_keep(items[i], ((PostTurn *)turns[i])->arena);
    return OK;
}

static ErrorCode posts_run(void *context, void **turns, int count, Deadline deadline, Error *reterr)
{
    return turns_post(context, wallet_post_hurried, turns, count, deadline, reterr);
}

static ErrorCode patient_run(void *context, void **turns, int count, Deadline deadline, Error *reterr)
{
    return turns_post(context, wallet_post, turns, count, deadline, reterr);
}

/* It was run and could not be done at once; not: it had no turn. */
static bool is_put_off(const Error *verdict)
{
    return error_verdict(verdict->code) != VERDICT_FINAL &&
           (verdict->sqlstate[0] != '\0' || verdict->code == ERR_UNAVAILABLE || verdict->code == ERR_UNKNOWN);
}

ErrorCode ledger_post(Ledger *ledger, Deadline deadline, Arena *arena, WalletItem *item, Error *reterr)
{
    PostTurn  turn = {.item = item, .arena = arena};
    Error     why  = {0};
    ErrorCode code;

    TRY(item->code = wallet_check(item, reterr));
    code = combiner_do(ledger->posts, &turn, deadline, &why);
    if (code != OK && is_put_off(&why))
        code = combiner_do(ledger->patient, &turn, deadline, &why);
    if (code != OK) {
        if (reterr)
            *reterr = why;
        return item->code = code;
    }
    if (reterr && item->code != OK)
        *reterr = item->error;
    return item->code;
}

static void patient_told(void *context, const Error *verdict)
{
    PostTurn *turn = context;

    if (verdict->code != OK) {
        turn->item->code  = verdict->code;
        turn->item->error = *verdict;
    }
    turn->told(turn->context);
}

static void post_told(void *context, const Error *verdict)
{
    PostTurn *turn = context;

    if (is_put_off(verdict))
        combiner_begin(turn->ledger->patient, turn, turn->deadline, patient_told);
    else
        patient_told(turn, verdict);
}

void ledger_post_begin(Ledger *ledger, Deadline deadline, Arena *arena, WalletItem *item, void (*told)(void *context),
                       void *context)
{
    PostTurn *turn = arena_array(arena, PostTurn, 1);

    *turn      = (PostTurn){item, arena, told, context, ledger, deadline};
    item->code = wallet_check(item, &item->error);
    if (item->code == OK)
        combiner_begin(ledger->posts, turn, deadline, post_told);
    else
        told(context);
}

/* ---- looking ---- */

typedef struct {
    const char *owner, *asset;
    Arena      *arena;
    Wallet      wallet;
    bool        found;
} LookTurn;

static ErrorCode looks_run(void *context, void **turns, int count, Deadline deadline, Error *reterr)
{
    Ledger                   *ledger = context;
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    const char              **owners = arena_array(arena, const char *, count);
    const char              **assets = arena_array(arena, const char *, count);
    bool                      named  = false;
    Wallet                   *list;
    int                       found;

    for (int i = 0; i < count; i++) {
        const LookTurn *turn = turns[i];

        owners[i] = turn->owner;
        assets[i] = turn->asset;
        named |= turn->asset != NULL;
    }
    TRY(wallet_look(ledger->pool, deadline, arena, owners, named ? assets : NULL, count, &list, &found, reterr));
    for (int i = 0; i < found; i++) {
        LookTurn *turn = turns[list[i].ord - 1];

        turn->wallet          = list[i];
        turn->wallet.owner    = turn->owner;
        turn->wallet.asset    = turn->asset ? turn->asset : WALLET_ASSET_DEFAULT;
        turn->wallet.metadata = arena_text(turn->arena, list[i].metadata);
        turn->found           = true;
    }
    return OK;
}

ErrorCode ledger_look(Ledger *ledger, Deadline deadline, Arena *arena, const char *owner, const char *asset,
                      Wallet *ret_wallet, Error *reterr)
{
    LookTurn turn = {.owner = owner, .asset = asset, .arena = arena};

    TRY(wallet_check_owner_seen("owner", owner, reterr));
    TRY(wallet_check_asset("asset", asset, reterr));
    TRY(combiner_do(ledger->looks, &turn, deadline, reterr));
    if (!turn.found)
        return wallet_missing(owner, asset, reterr);
    *ret_wallet = turn.wallet;
    return OK;
}

/* ---- life ---- */

Ledger *ledger_new(Pool *pool)
{
    Ledger *ledger = calloc(1, sizeof *ledger);

    if (!ledger)
        abort();
    ledger->pool = pool;
    /* Two runs nearly always have a wallet in common, so that one waits for the other. Where callers lead that is worth its
     * while, because it takes time to wake the next one; our own threads begin the next run at once. */
    ledger->posts   = combiner_new(&(CombinerOptions){
          .run = posts_run, .context = ledger, .lanes_begun_max = 1, .weigh = post_weigh, .weight_max = RUN_BYTES_MAX});
    ledger->patient = combiner_new(
        &(CombinerOptions){.run = patient_run, .context = ledger, .weigh = post_weigh, .weight_max = RUN_BYTES_MAX});
    ledger->looks = combiner_new(&(CombinerOptions){.run = looks_run, .context = ledger});
    return ledger;
}

void ledger_free(Ledger *ledger)
{
    combiner_free(ledger->posts);
    combiner_free(ledger->patient);
    combiner_free(ledger->looks);
    free(ledger);
}
