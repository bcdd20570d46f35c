/*
 * library_wallet.c - a program that uses the wallet ledger through libpawl in every way that the test "library" needs to see.
 *
 *     library_wallet URL SCENARIO     prints what each call returned, one line each; the test reads the database
 */
#include <pawl/pawl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define RACERS       16
#define RACER_SPENDS 5
#define LARGE_COUNT  400
#define LARGE_BYTES  60000
#define ID_SIZE      37

static Pawl *pawl;

/* ---- words ---- */

/* A key that is the same each time the program is run; several are in use at once. */
static const char *id(int number)
{
    static _Thread_local char texts[32][ID_SIZE];
    static _Thread_local int  next;
    char                     *text = texts[next++ % 32];

    snprintf(text, ID_SIZE, "0198C0DE-0000-7000-8000-%012d", number); /* capitals are fine */
    return text;
}

static void need(PawlStatus status, const PawlError *error)
{
    if (status == PAWL_OK)
        return;
    printf("status %d: %s\n", (int)status, error->text);
    exit(1);
}

static void posted_print(const char *label, PawlStatus status, const PawlPosted *posted)
{
    printf("%s: %d %s", label, (int)status, posted->replayed ? "replayed" : "new");
    if (status == PAWL_OK && !posted->type && !posted->error.text[0])
        printf(" %lld: %lld -> %lld, held %lld, available %lld, version %lld\n", posted->amount, posted->balance_before,
               posted->balance, posted->held, posted->available, posted->version);
    else
        printf(" %s: %s (%lld %lld)\n", posted->type, posted->error.text, posted->amount, posted->balance);
}

static void wallet_open(const char *label, PawlWallet wallet)
{
    bool       is_new = false;
    PawlError  error;
    PawlStatus status = pawl_wallet_open(pawl, &wallet, 0, &is_new, &error);

    printf("%s: %d %s %s\n", label, (int)status, is_new ? "new" : "known", error.text);
}

static void look(const char *owner, const char *asset)
{
    PawlBalance found = {0};
    PawlError   error;
    PawlStatus  status = pawl_wallet_get(pawl, owner, asset, 0, &found, &error);

    printf("%s: %d %lld, held %lld, available %lld, floor %lld, version %lld%s %s\n", owner, (int)status, found.balance,
           found.held, found.available, found.floor, found.version, found.frozen ? ", frozen" : "", error.text);
}

static void post(const char *label, PawlOperation operation)
{
    PawlPosted posted;
    PawlError  error;
    PawlStatus status = pawl_post(pawl, &operation, 0, &posted, &error);

    if (status != error.status || status != posted.error.status || strcmp(error.text, posted.error.text) != 0)
        printf("%s: the two errors differ\n", label);
    posted_print(label, status, &posted);
}

static void wallets_make(void)
{
    PawlError error;

    need(pawl_wallet_open(pawl, &(PawlWallet){.owner = "ann"}, 0, NULL, &error), &error);
    need(pawl_wallet_open(pawl, &(PawlWallet){.owner = "bob"}, 0, NULL, &error), &error);
    need(pawl_post(pawl, &(PawlOperation){.kind = PAWL_TOPUP, .txn_id = id(1), .owner = "ann", .amount = 1000}, 0, NULL,
                   &error),
         &error);
}

/* ---- wallets ---- */

static void scenario_open(void)
{
    wallet_open("first", (PawlWallet){.owner = "ann"});
    wallet_open("again", (PawlWallet){.owner = "ann"});
    wallet_open("floor", (PawlWallet){.owner = "ann", .floor = -5});
    wallet_open(
        "full",
        (PawlWallet){.owner = "ann", .asset = "GOLD", .floor = -50, .metadata = "{\"tier\": 1}", .txn_id = id(7)});
    wallet_open("key", (PawlWallet){.owner = "bob", .txn_id = id(7)});
    wallet_open("no owner", (PawlWallet){0});
    wallet_open("bad asset", (PawlWallet){.owner = "bob", .asset = "gold"});
    wallet_open("bad floor", (PawlWallet){.owner = "bob", .floor = 1});
    wallet_open("bad id", (PawlWallet){.owner = "bob", .txn_id = "seven"});
    wallet_open("bad metadata", (PawlWallet){.owner = "bob", .metadata = "{\"tier\": }"});
    look("ann", NULL);
    look("ann", "GOLD");
    look("bob", NULL);
    look("@system", NULL);
}

/* ---- one ---- */

static void scenario_kinds(void)
{
    const PawlLeg legs[] = {
        {.owner = "ann",     .amount = -30},
        {.owner = "bob",     .amount = 20 },
        {.owner = "@system", .amount = 10 }
    };

    wallets_make();
    post("topup", (PawlOperation){.kind = PAWL_TOPUP, .txn_id = id(2), .owner = "ann", .amount = 500});
    post("spend", (PawlOperation){.kind = PAWL_SPEND, .txn_id = id(3), .owner = "ann", .amount = 100});
    post("transfer", (PawlOperation){.kind     = PAWL_TRANSFER,
                                     .txn_id   = id(4),
                                     .from     = "ann",
                                     .to       = "bob",
                                     .amount   = 300,
                                     .metadata = "{\"for\": \"lunch\"}"});
    post("multi", (PawlOperation){.kind = PAWL_MULTI, .txn_id = id(5), .legs = legs, .leg_count = COUNT(legs)});
    post("hold",
         (PawlOperation){.kind = PAWL_HOLD, .txn_id = id(6), .owner = "ann", .amount = 200, .expires_in_s = 3600});
    post("capture", (PawlOperation){.kind = PAWL_CAPTURE, .txn_id = id(7), .hold = id(6), .to = "bob", .amount = 50});
    post("void", (PawlOperation){.kind = PAWL_VOID, .txn_id = id(8), .hold = id(6)});
    post("refund", (PawlOperation){.kind = PAWL_REFUND, .txn_id = id(9), .transaction = id(3)});
    post("freeze", (PawlOperation){.kind = PAWL_FREEZE, .txn_id = id(10), .owner = "ann"});
    look("ann", NULL);
    post("frozen", (PawlOperation){.kind = PAWL_SPEND, .txn_id = id(11), .owner = "ann", .amount = 1});
    post("unfreeze", (PawlOperation){.kind = PAWL_UNFREEZE, .txn_id = id(12), .owner = "ann"});
    post("floor", (PawlOperation){.kind = PAWL_FLOOR, .txn_id = id(13), .owner = "ann", .floor = -100});
    look("ann", NULL);
    look("bob", NULL);
}

static void scenario_keys(void)
{
    PawlOperation spend = {.kind = PAWL_SPEND, .txn_id = id(2), .owner = "ann", .amount = 400};
    PawlOperation large = {.kind = PAWL_SPEND, .txn_id = id(3), .owner = "ann", .amount = 900};
    PawlOperation other = spend;

    wallets_make();
    post("first", spend);
    post("again", spend);
    other.amount = 401;
    post("other amount", other);
    other.kind = PAWL_TOPUP;
    post("other kind", other);
    post("too much", large);
    post("more money", (PawlOperation){.kind = PAWL_TOPUP, .txn_id = id(4), .owner = "ann", .amount = 1000});
    post("still refused", large);
    post("nobody", (PawlOperation){.kind = PAWL_SPEND, .txn_id = id(5), .owner = "zoe", .amount = 1});
    post("no hold", (PawlOperation){.kind = PAWL_VOID, .txn_id = id(5), .hold = id(99)});
    post("no transaction", (PawlOperation){.kind = PAWL_REFUND, .txn_id = id(5), .transaction = id(99)});
    look("ann", NULL);
}

static const PawlLeg uneven[] = {
    {.owner = "ann", .amount = -2},
    {.owner = "bob", .amount = 1 }
};
static const PawlLeg twice[] = {
    {.owner = "ann", .amount = -2},
    {.owner = "ann", .amount = 2 }
};
static const PawlLeg nameless[] = {
    {.owner = "ann", .amount = -2},
    {.amount = 2}
};

/* What is wrong stands in the label; the key is the same, and never used. */
#define KEY "0198c0de-0000-7000-8000-00000000000b"
static const struct {
    const char   *label;
    PawlOperation operation;
} bad[] = {
    {"kind",          {.txn_id = KEY, .owner = "ann", .amount = 1}                                       },
    {"kind",          {.kind = (PawlKind)12, .txn_id = KEY, .owner = "ann", .amount = 1}                 },
    {"txn_id",        {.kind = PAWL_SPEND, .owner = "ann", .amount = 1}                                  },
    {"txn_id",        {.kind = PAWL_SPEND, .txn_id = "seven", .owner = "ann", .amount = 1}               },
    {"owner",         {.kind = PAWL_SPEND, .txn_id = KEY, .amount = 1}                                   },
    {"owner",         {.kind = PAWL_SPEND, .txn_id = KEY, .owner = "@system", .amount = 1}               },
    {"owner",         {.kind = PAWL_VOID, .txn_id = KEY, .hold = KEY, .owner = "ann"}                    },
    {"from",          {.kind = PAWL_TRANSFER, .txn_id = KEY, .to = "bob", .amount = 1}                   },
    {"from",          {.kind = PAWL_TRANSFER, .txn_id = KEY, .from = "bob", .to = "bob", .amount = 1}    },
    {"to",            {.kind = PAWL_TRANSFER, .txn_id = KEY, .from = "ann", .amount = 1}                 },
    {"to",            {.kind = PAWL_SPEND, .txn_id = KEY, .owner = "ann", .to = "bob", .amount = 1}      },
    {"amount",        {.kind = PAWL_SPEND, .txn_id = KEY, .owner = "ann"}                                },
    {"amount",        {.kind = PAWL_SPEND, .txn_id = KEY, .owner = "ann", .amount = -1}                  },
    {"amount",        {.kind = PAWL_SPEND, .txn_id = KEY, .owner = "ann", .amount = 9007199254740992}    },
    {"amount",        {.kind = PAWL_FREEZE, .txn_id = KEY, .owner = "ann", .amount = 1}                  },
    {"asset",         {.kind = PAWL_SPEND, .txn_id = KEY, .owner = "ann", .amount = 1, .asset = "x"}     },
    {"hold",          {.kind = PAWL_CAPTURE, .txn_id = KEY}                                              },
    {"hold",          {.kind = PAWL_SPEND, .txn_id = KEY, .owner = "ann", .amount = 1, .hold = KEY}      },
    {"transaction",   {.kind = PAWL_REFUND, .txn_id = KEY, .transaction = "1"}                           },
    {"expires_in_s",  {.kind = PAWL_HOLD, .txn_id = KEY, .owner = "ann", .amount = 1, .expires_in_s = -1}},
    {"expires_in_s",  {.kind = PAWL_SPEND, .txn_id = KEY, .owner = "ann", .amount = 1, .expires_in_s = 1}},
    {"floor",         {.kind = PAWL_FLOOR, .txn_id = KEY, .owner = "ann", .floor = 1}                    },
    {"floor",         {.kind = PAWL_SPEND, .txn_id = KEY, .owner = "ann", .amount = 1, .floor = -1}      },
    {"metadata",      {.kind = PAWL_SPEND, .txn_id = KEY, .owner = "ann", .amount = 1, .metadata = "[1]"}},
    {"metadata",      {.kind = PAWL_SPEND, .txn_id = KEY, .owner = "ann", .amount = 1, .metadata = "{1"} },
    {"legs",          {.kind = PAWL_MULTI, .txn_id = KEY}                                                },
    {"legs",          {.kind = PAWL_MULTI, .txn_id = KEY, .leg_count = 2}                                },
    {"legs",          {.kind = PAWL_MULTI, .txn_id = KEY, .legs = uneven, .leg_count = 1}                },
    {"legs",          {.kind = PAWL_MULTI, .txn_id = KEY, .legs = uneven, .leg_count = 2}                },
    {"legs",          {.kind = PAWL_MULTI, .txn_id = KEY, .legs = twice, .leg_count = 2}                 },
    {"legs[1].owner", {.kind = PAWL_MULTI, .txn_id = KEY, .legs = nameless, .leg_count = 2}              },
    {"legs",          {.kind = PAWL_SPEND, .txn_id = KEY, .owner = "ann", .amount = 1, .legs = uneven}   },
};

static void scenario_bad(void)
{
    wallets_make();
    for (size_t i = 0; i < COUNT(bad); i++)
        post(bad[i].label, bad[i].operation);
    post("number",
         (PawlOperation){
             .kind = PAWL_SPEND, .txn_id = KEY, .owner = "ann", .amount = 1, .metadata = "{\"n\": 1e999999}"});
}

static PawlStatus bad_body(PawlTx *tx, void *context)
{
    (void)context;
    for (size_t i = 0; i < COUNT(bad); i++) {
        PawlPosted posted;
        PawlStatus status = pawl_tx_post(tx, &bad[i].operation, &posted);

        if (strcmp(pawl_tx_error(tx)->text, posted.error.text) != 0)
            printf("%s: the two errors differ\n", bad[i].label);
        posted_print(bad[i].label, status, &posted);
    }
    return pawl_query(tx, "select 1", 0, NULL, NULL);
}

/* The transaction is well after each of them. */
static void scenario_bad_in_tx(void)
{
    PawlError error;

    wallets_make();
    need(pawl_transaction(pawl, &(PawlTransaction){.name = "bad"}, bad_body, NULL, &error), &error);
}

/* ---- many ---- */

static void scenario_many(void)
{
    const PawlOperation list[] = {
        {.kind = PAWL_TRANSFER, .txn_id = id(2), .from = "ann", .to = "bob", .amount = 300},
        {.kind = PAWL_SPEND, .txn_id = id(3), .owner = "bob", .amount = 301},
        {.kind = PAWL_SPEND, .txn_id = id(4), .owner = "bob", .amount = 100},
        {.kind = PAWL_SPEND, .txn_id = id(5), .amount = 1},
        {.kind = PAWL_SPEND, .txn_id = id(6), .owner = "bob", .amount = 1, .metadata = "{\"n\": 1e999999}"},
        {.kind = PAWL_HOLD, .txn_id = id(7), .owner = "ann", .amount = 700},
        {.kind = PAWL_CAPTURE, .txn_id = id(8), .hold = id(7)},
        {.kind = PAWL_SPEND, .txn_id = id(4), .owner = "bob", .amount = 100},
        {.kind = PAWL_SPEND, .txn_id = id(4), .owner = "bob", .amount = 99},
    };
    PawlPosted posted[COUNT(list)];
    PawlError  error;
    PawlStatus status;

    wallets_make();
    status = pawl_post_many(pawl, list, COUNT(list), 0, posted, &error);
    for (size_t i = 0; i < COUNT(list); i++)
        posted_print("item", posted[i].error.status, &posted[i]);
    printf("all: %d %s\n", (int)status, error.text);
    printf("good: %d\n", (int)pawl_post_many(pawl, list, 1, 0, NULL, NULL));
    status = pawl_post_many(pawl, list, 0, 0, posted, &error);
    printf("none: %d %s\n", (int)status, error.text);
    look("ann", NULL);
    look("bob", NULL);
}

/* More than fits into one transaction: 24 MB of metadata. */
static void scenario_large(void)
{
    static PawlOperation list[LARGE_COUNT];
    static char          keys[LARGE_COUNT][ID_SIZE], metadata[LARGE_BYTES];
    static PawlPosted    posted[LARGE_COUNT];
    PawlError            error;
    int                  mistakes = 0;

    wallets_make();
    snprintf(metadata, sizeof metadata, "{\"x\": \"%0*d\"}", (int)sizeof metadata - 12, 0);
    for (int i = 0; i < LARGE_COUNT; i++) {
        snprintf(keys[i], ID_SIZE, "%s", id(1000 + i));
        list[i] =
            (PawlOperation){.kind = PAWL_SPEND, .txn_id = keys[i], .owner = "ann", .amount = 1, .metadata = metadata};
    }
    need(pawl_post_many(pawl, list, LARGE_COUNT, 60000, posted, &error), &error);
    for (int i = 0; i < LARGE_COUNT; i++)
        mistakes += posted[i].balance != 1000 - i - 1; /* in order */
    printf("mistakes: %d\n", mistakes);
    look("ann", NULL);
}

/* ---- as part of a transaction ---- */

typedef struct {
    PawlStatus    end; /* what the body returns after a post that went well */
    bool          swallow;
    PawlOperation operation;
} Purchase;

static PawlStatus purchase_body(PawlTx *tx, void *context)
{
    const Purchase *purchase = context;
    PawlPosted      posted;
    PawlStatus      status = pawl_query(tx, "insert into mine default values", 0, NULL, NULL);

    if (status != PAWL_OK)
        return status;
    status = pawl_tx_post(tx, &purchase->operation, &posted);
    posted_print("post", status, &posted);
    return status == PAWL_OK || purchase->swallow ? purchase->end : status;
}

static void purchase(const Purchase *given)
{
    Purchase   copy = *given;
    PawlError  error;
    PawlStatus status =
        pawl_transaction(pawl, &(PawlTransaction){.name = "buy", .keyed = true}, purchase_body, &copy, &error);

    printf("end: %d %s\n", (int)status, error.text);
    look("ann", NULL);
}

static PawlStatus pair_body(PawlTx *tx, void *context)
{
    return pawl_tx_post_many(tx, context, 2, NULL);
}

static void scenario_tx(void)
{
    PawlOperation spend = {.kind = PAWL_SPEND, .txn_id = id(2), .owner = "ann", .amount = 400};
    PawlOperation large = {.kind = PAWL_SPEND, .txn_id = id(3), .owner = "ann", .amount = 900};
    PawlOperation pair[2], other = spend;
    PawlError     error;

    wallets_make();
    purchase(&(Purchase){.end = PAWL_REFUSED, .operation = spend}); /* rolled back: the key is free */
    purchase(&(Purchase){.operation = spend});
    purchase(&(Purchase){.operation = spend});
    other.amount = 401;
    purchase(&(Purchase){.operation = other});
    purchase(&(Purchase){.operation = large});                  /* rolled back: the refusal too */
    purchase(&(Purchase){.swallow = true, .operation = large}); /* kept */
    purchase(&(Purchase){
        .operation = {.kind = PAWL_TRANSFER, .txn_id = id(4), .from = "ann", .to = "zoe", .amount = 1}
    });
    pair[0] = (PawlOperation){.kind = PAWL_SPEND, .txn_id = id(5), .owner = "ann", .amount = 500};
    pair[1] = (PawlOperation){.kind = PAWL_SPEND, .txn_id = id(6), .owner = "ann", .amount = 500};
    printf("pair: %d ", (int)pawl_transaction(pawl, &(PawlTransaction){.keyed = true}, pair_body, pair, &error));
    printf("%s\n", error.text);
    look("ann", NULL);
}

static PawlStatus kinds_body(PawlTx *tx, void *context)
{
    const PawlLeg legs[] = {
        {.owner = "ann", .amount = -30},
        {.owner = "bob", .amount = 30 }
    };
    const PawlOperation list[] = {
        {.kind = PAWL_TOPUP, .txn_id = id(2), .owner = "ann", .amount = 500},
        {.kind = PAWL_SPEND, .txn_id = id(3), .owner = "ann", .amount = 100},
        {.kind = PAWL_TRANSFER, .txn_id = id(4), .from = "ann", .to = "bob", .amount = 300, .metadata = "{}"},
        {.kind = PAWL_MULTI, .txn_id = id(5), .legs = legs, .leg_count = COUNT(legs)},
        {.kind = PAWL_HOLD, .txn_id = id(6), .owner = "ann", .amount = 200, .expires_in_s = 3600},
        {.kind = PAWL_CAPTURE, .txn_id = id(7), .hold = id(6), .to = "bob", .amount = 50},
        {.kind = PAWL_VOID, .txn_id = id(8), .hold = id(6)},
        {.kind = PAWL_REFUND, .txn_id = id(9), .transaction = id(3), .asset = "CREDIT"},
        {.kind = PAWL_FREEZE, .txn_id = id(10), .owner = "ann"},
        {.kind = PAWL_UNFREEZE, .txn_id = id(12), .owner = "ann"},
        {.kind = PAWL_FLOOR, .txn_id = id(13), .owner = "ann", .floor = -100},
        {.kind = PAWL_VOID, .txn_id = id(14), .hold = id(6)},
        {.kind = PAWL_REFUND, .txn_id = id(15), .transaction = id(3), .amount = 1},
    };
    PawlPosted posted[COUNT(list)];

    (void)context;
    pawl_tx_post_many(tx, list, COUNT(list), posted);
    for (size_t i = 0; i < COUNT(list); i++)
        posted_print("item", posted[i].error.status, &posted[i]);
    return PAWL_OK;
}

static void scenario_kinds_in_tx(void)
{
    PawlError error;

    wallets_make();
    need(pawl_transaction(pawl, &(PawlTransaction){.keyed = true}, kinds_body, NULL, &error), &error);
    look("ann", NULL);
    look("bob", NULL);
}

/* ---- all at once ---- */

static PawlStatus race_body(PawlTx *tx, void *context)
{
    return pawl_tx_post(tx, context, NULL);
}

/* A number of spends: most alone, one in an array, one in a transaction. Counts those that were posted. */
static void *race_main(void *context)
{
    int      *posted = context, racer = *posted;
    PawlError error;

    *posted = 0;
    for (int i = 0; i < RACER_SPENDS; i++) {
        PawlOperation spend  = {.kind   = PAWL_SPEND,
                                .txn_id = id(100 + racer * RACER_SPENDS + i),
                                .owner  = "ann",
                                .amount = 30};
        PawlStatus    status = i == 0   ? pawl_post_many(pawl, &spend, 1, 60000, NULL, &error)
                               : i == 1 ? pawl_transaction(pawl, &(PawlTransaction){.timeout_ms = 60000, .keyed = true},
                                                           race_body, &spend, &error)
                                        : pawl_post(pawl, &spend, 60000, NULL, &error);

        *posted += status == PAWL_OK;
        if (status != PAWL_OK && (status != PAWL_REFUSED || !strstr(error.text, "has 10 available")))
            printf("status %d: %s\n", (int)status, error.text);
    }
    return NULL;
}

static void scenario_race(void)
{
    pthread_t threads[RACERS];
    int       posted[RACERS], sum = 0;

    wallets_make();
    for (int i = 0; i < RACERS; i++) {
        posted[i] = i;
        pthread_create(&threads[i], NULL, race_main, &posted[i]);
    }
    for (int i = 0; i < RACERS; i++) {
        pthread_join(threads[i], NULL);
        sum += posted[i];
    }
    printf("posted: %d of %d\n", sum, RACERS * RACER_SPENDS);
    look("ann", NULL);
}

/* Two transactions that lock two wallets the other way round: PostgreSQL ends one of them, and it is run again. */
typedef struct {
    const char        *owners[2];
    const char        *keys[2];
    pthread_barrier_t *both_hold_one;
    int                runs;
    PawlStatus         end;
} Crossing;

static PawlStatus crossing_body(PawlTx *tx, void *context)
{
    Crossing *crossing = context;

    crossing->runs++;
    for (int i = 0; i < 2; i++) {
        PawlOperation hold   = {.kind   = PAWL_HOLD,
                                .txn_id = crossing->keys[i],
                                .owner  = crossing->owners[i],
                                .amount = 1};
        PawlStatus    status = pawl_tx_post(tx, &hold, NULL);

        if (status != PAWL_OK)
            return status;
        if (i == 0 && crossing->runs == 1)
            pthread_barrier_wait(crossing->both_hold_one);
    }
    return PAWL_OK;
}

static void *crossing_main(void *context)
{
    Crossing *crossing = context;

    crossing->end =
        pawl_transaction(pawl, &(PawlTransaction){.timeout_ms = 60000, .keyed = true}, crossing_body, crossing, NULL);
    return NULL;
}

static void scenario_crossing(void)
{
    pthread_barrier_t barrier;
    Crossing          crossings[] = {
        {.owners = {"ann", "bob"}, .keys = {id(3), id(4)}, .both_hold_one = &barrier},
        {.owners = {"bob", "ann"}, .keys = {id(5), id(6)}, .both_hold_one = &barrier}
    };
    pthread_t threads[COUNT(crossings)];

    wallets_make();
    post("bob", (PawlOperation){.kind = PAWL_TOPUP, .txn_id = id(2), .owner = "bob", .amount = 1000});
    pthread_barrier_init(&barrier, NULL, COUNT(crossings));
    for (size_t i = 0; i < COUNT(crossings); i++)
        pthread_create(&threads[i], NULL, crossing_main, &crossings[i]);
    for (size_t i = 0; i < COUNT(crossings); i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    printf("ends: %d %d, runs: %d\n", (int)crossings[0].end, (int)crossings[1].end,
           crossings[0].runs + crossings[1].runs);
    look("ann", NULL);
    look("bob", NULL);
}

static void scenario_one(void)
{
    post("one", (PawlOperation){.kind = PAWL_SPEND, .txn_id = id(2), .owner = "ann", .amount = 400});
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"open",        scenario_open       },
    {"kinds",       scenario_kinds      },
    {"kinds-in-tx", scenario_kinds_in_tx},
    {"keys",        scenario_keys       },
    {"bad",         scenario_bad        },
    {"bad-in-tx",   scenario_bad_in_tx  },
    {"many",        scenario_many       },
    {"large",       scenario_large      },
    {"tx",          scenario_tx         },
    {"race",        scenario_race       },
    {"crossing",    scenario_crossing   },
    {"make",        wallets_make        },
    {"one",         scenario_one        }
};

int main(int argc, char **argv)
{
    PawlError error;

    need(pawl_open(argv[1], &pawl, &error), &error);
    for (size_t i = 0; argc == 3 && i < COUNT(scenarios); i++)
        if (strcmp(scenarios[i].name, argv[2]) == 0)
            scenarios[i].run();
    pawl_close(pawl);
    return 0;
}
