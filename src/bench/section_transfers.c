/*
 * section_transfers.c - how many transfers a second, how long one takes, and what it weighs: any wallets, one wallet, in
 * arrays; how long it takes to look at a wallet with a history, and to verify all of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/sync.h"
#include "base/uuid.h"
#include "bench/bench.h"
#include "bench/hold.h"
#include "bench/tally.h"
#include "bench/team.h"
#include "bench/turns.h"
#include "bench/weight.h"
#include "wallet/ledger.h"
#include "wallet/verify.h"

#define CALL_MS     60000
#define VERIFY_MS   3600000
#define ARENA_BYTES ((size_t)256 << 20)
#define RICH        INT64_C(1000000000)
#define ARRAY       1000
#define FEW         10
#define LOOKS       20000
#define WARM_EACH   20 /* transfers of each client */
#define WINDOW_EACH 100
#define FLAT_SHARE  0.7 /* of the first third, in the last */

typedef struct {
    const Place *place;
    Ledger      *ledger;
    bool         hot; /* everybody pays from the first wallet */
    Mutex        mutex;
    Tally       *tally; /* under the mutex */
} Market;

static const char *owner_name(Arena *arena, int64_t number)
{
    return arena_print(arena, "owner %lld", (long long)number);
}

static WalletItem transfer(Arena *arena, int64_t from, int64_t to)
{
    char id[UUID_TEXT_SIZE];

    uuid_new(id);
    return (WalletItem){.kind   = WALLET_TRANSFER,
                        .txn_id = arena_text(arena, id),
                        .owner  = owner_name(arena, from),
                        .other  = owner_name(arena, to),
                        .amount = 1};
}

/* Post all of them; each has to succeed. */
static ErrorCode items_post(const Place *place, Arena *arena, WalletItem *items, int count, Error *reterr)
{
    WalletItem **list = arena_array(arena, WalletItem *, count);
    int          refused;

    for (int i = 0; i < count; i++)
        list[i] = &items[i];
    TRY(wallet_post_many(place->pool, deadline_in_ms(CALL_MS), arena, list, count, /* atomic= */ true, &refused,
                         reterr));
    return refused < 0 ? OK : fail(reterr, ERR_INTERNAL, "%s", items[refused].error.text);
}

static ErrorCode wallets_open(Bench *bench, const Place *place, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES);
    int64_t                   count = bench->options.wallets;

    bench_tell(bench, "opening wallets");
    for (int64_t first = 0; first < count; first += ARRAY) {
        int         bite  = (int)(count - first < ARRAY ? count - first : ARRAY);
        WalletItem *items = arena_array(arena, WalletItem, bite);

        for (int i = 0; i < bite; i++) {
            WalletNew wallet = {.owner = owner_name(arena, first + i)};

            TRY(wallet_open(place->pool, deadline_in_ms(CALL_MS), arena, &wallet, reterr));
            items[i]        = transfer(arena, first + i, first + i);
            items[i].kind   = WALLET_TOPUP;
            items[i].other  = NULL;
            items[i].amount = RICH;
        }
        TRY(items_post(place, arena, items, bite, reterr));
        TRY(bench_continue(bench, reterr));
        arena_reset(arena);
    }
    return OK;
}

/* ---- one at a time, from many ---- */

static ErrorCode client_pay(Bench *bench, void *context, int thread, int64_t count, Error *reterr)
{
    Market                   *market  = context;
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES);
    int64_t                   wallets = bench->options.wallets;
    unsigned                  seed    = (unsigned)thread + 1;

    for (int64_t i = 0; i < count; i++) {
        int64_t    from  = market->hot ? 0 : rand_r(&seed) % wallets;
        int64_t    to    = (from + 1 + rand_r(&seed) % (wallets - 1)) % wallets;
        WalletItem item  = transfer(arena, from, to);
        Mono       start = clock_mono();

        TRY(bench_continue(bench, reterr));
        TRY(ledger_post(market->ledger, deadline_in_ms(CALL_MS), arena, &item, reterr));
        scoped(mutex_unlock) Mutex *held = mutex_hold(&market->mutex);
        tally_add(market->tally, mono_us_between(start, clock_mono()));
        atomic_fetch_add(&bench->done, 1);
        arena_reset(arena);
    }
    return OK;
}

static ErrorCode market_run(Bench *bench, const Place *place, bool hot, int64_t count, Tally *tally, double *ret_rate,
                            Error *reterr)
{
    scoped(ledger_free) Ledger *ledger = ledger_new(place->pool);
    Market                      market = {.place = place, .ledger = ledger, .hot = hot, .tally = tally};
    int64_t                     us;
    ErrorCode                   code;

    memset(tally, 0, sizeof *tally);
    bench_tell(bench, hot ? "paying from one wallet" : "paying");
    mutex_init(&market.mutex);
    code = team_run(bench, client_pay, &market, count, &us, reterr);
    mutex_done(&market.mutex);
    *ret_rate = per_second(count, us);
    return code;
}

ErrorCode section_transfers(Bench *bench, int64_t value, Error *reterr)
{
    Report *report = &bench->report;
    Tally  *tally  = arena_alloc(bench->arena, sizeof *tally);
    Place  *place;

    (void)value;
    TRY(bench_place(bench, &place, reterr));
    TRY(wallets_open(bench, place, reterr));
    for (int64_t round = 0; round < bench->options.rounds; round++) {
        Weight before, after;
        double rate;

        TRY(weight_take(bench, place, "wallet", &before, reterr));
        TRY(market_run(bench, place, /* hot= */ false, bench->options.count, tally, &rate, reterr));
        TRY(weight_take(bench, place, "wallet", &after, reterr));
        report_run(report, "transfers", "transfers", UNIT_RATE, rate);
        report_run(report, "transfers", "p50", UNIT_MS, tally_ms(tally, 50));
        report_run(report, "transfers", "p99", UNIT_MS, tally_ms(tally, 99));
        weight_report(bench, "transfers", &before, &after, bench->options.count);
    }
    return OK;
}

/* ---- while another connection holds a transaction id ---- */

static double windows_rate(const Window *windows, int count)
{
    double sum = 0;

    for (int i = 0; i < count; i++)
        sum += windows[i].done;
    return sum / count;
}

/* Not slower in the last third than in the first, but for what a machine varies. */
static void hold_judge(Bench *bench, int first_window)
{
    const Window *windows = bench->report.windows + first_window;
    int           count = bench->report.window_count - first_window, third = count / 3;
    double        first, last;

    if (third == 0)
        return;
    first = windows_rate(windows, third);
    last  = windows_rate(windows + count - third, third);
    report_judge(&bench->report, "hold-xid", last >= first * FLAT_SHARE,
                 arena_print(bench->arena, "from the first third to the last: %.0f to %.0f transfers/s", first, last));
}

ErrorCode section_transfers_hold_xid(Bench *bench, int64_t value, Error *reterr)
{
    scoped(conn_close) Conn *hold  = NULL;
    Tally                   *tally = arena_alloc(bench->arena, sizeof *tally);
    int                      first = bench->report.window_count;
    Mono                     start;
    Place                   *place;
    double                   rate;

    TRY(bench_place(bench, &place, reterr));
    TRY(wallets_open(bench, place, reterr));
    TRY(market_run(bench, place, /* hot= */ false, bench->options.clients * WARM_EACH, tally, &rate, reterr));
    TRY(hold_begin(place, HOLD_XID, &hold, reterr));
    start = clock_mono();
    while (mono_us_between(start, clock_mono()) < value * 1000) {
        TRY(market_run(bench, place, /* hot= */ false, bench->options.clients * WINDOW_EACH, tally, &rate, reterr));
        report_window(&bench->report, &(Window){.section      = "hold-xid",
                                                .end_s        = (double)mono_us_between(start, clock_mono()) / 1e6,
                                                .offered      = rate,
                                                .done         = rate,
                                                .start_p50_ms = tally_ms(tally, 50),
                                                .start_p99_ms = tally_ms(tally, 99)});
    }
    TRY(hold_check(hold, reterr));
    hold_judge(bench, first);
    return OK;
}

/* ---- all from one wallet ---- */

static ErrorCode hot_measure(Bench *bench, int which, int64_t value, double *ret_rate, Error *reterr)
{
    Tally *tally = arena_alloc(bench->arena, sizeof *tally);

    (void)value;
    return market_run(bench, &bench->places[0], which == 1, bench->options.count, tally, ret_rate, reterr);
}

ErrorCode section_hot(Bench *bench, int64_t value, Error *reterr)
{
    Turns turns = {
        "hot", {"transfers, any wallets", "transfers, all from one wallet"},
         hot_measure, value
    };
    Place *place;

    TRY(bench_place(bench, &place, reterr));
    TRY(wallets_open(bench, place, reterr));
    return turns_run(bench, &turns, reterr);
}

/* ---- arrays, from one thread ---- */

/* from < 0: any wallets. */
static ErrorCode arrays_post(Bench *bench, const Place *place, int64_t count, int64_t array, int64_t from,
                             Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES);
    int64_t                   wallets = bench->options.wallets;
    unsigned                  seed    = 1;

    for (int64_t done = 0; done < count; done += array) {
        int         bite  = (int)(count - done < array ? count - done : array);
        WalletItem *items = arena_array(arena, WalletItem, bite);

        for (int i = 0; i < bite; i++) {
            int64_t payer = from < 0 ? rand_r(&seed) % wallets : from;

            items[i] = transfer(arena, payer, (payer + 1 + rand_r(&seed) % (wallets - 1)) % wallets);
        }
        TRY(bench_continue(bench, reterr));
        TRY(items_post(place, arena, items, bite, reterr));
        atomic_fetch_add(&bench->done, bite);
        arena_reset(arena);
    }
    return OK;
}

ErrorCode section_arrays(Bench *bench, int64_t value, Error *reterr)
{
    Place *place;

    TRY(bench_place(bench, &place, reterr));
    TRY(wallets_open(bench, place, reterr));
    bench_tell(bench, "paying in arrays");
    for (int64_t round = 0; round < bench->options.rounds; round++) {
        Mono start = clock_mono();

        TRY(arrays_post(bench, place, bench->options.count, value, -1, reterr));
        report_run(&bench->report, "arrays", "transfers", UNIT_RATE,
                   per_second(bench->options.count, mono_us_between(start, clock_mono())));
    }
    return OK;
}

/* ---- a long history ---- */

/* The first wallet has the long history; the last one, which nobody has paid, a short one. */
static ErrorCode history_measure(Bench *bench, int which, int64_t value, double *ret_rate, Error *reterr)
{
    scoped(ledger_free) Ledger *ledger = ledger_new(bench->places[0].pool);
    scoped(arena_free) Arena   *arena  = arena_new(ARENA_BYTES);
    const char                 *owner  = which ? "owner 0" : "short";
    Mono                        start  = clock_mono();
    Wallet                      wallet;

    (void)value;
    for (int i = 0; i < LOOKS; i++) {
        TRY(bench_continue(bench, reterr));
        TRY(ledger_look(ledger, deadline_in_ms(CALL_MS), arena, owner, NULL, &wallet, reterr));
        arena_reset(arena);
    }
    *ret_rate = per_second(LOOKS, mono_us_between(start, clock_mono()));
    return OK;
}

static ErrorCode history_short(const Place *place, Arena *arena, Error *reterr)
{
    WalletNew  wallet = {.owner = "short"};
    WalletItem items[FEW];

    TRY(wallet_open(place->pool, deadline_in_ms(CALL_MS), arena, &wallet, reterr));
    for (int i = 0; i < FEW; i++) {
        items[i]       = transfer(arena, 0, 1);
        items[i].other = "short";
    }
    return items_post(place, arena, items, FEW, reterr);
}

ErrorCode section_history(Bench *bench, int64_t value, Error *reterr)
{
    Turns turns = {
        "history", {"looks at a wallet with 10 entries", NULL},
         history_measure, value
    };
    Place *place;

    turns.names[1] = arena_print(bench->arena, "looks at a wallet with %lld entries", (long long)value);
    TRY(bench_place(bench, &place, reterr));
    TRY(wallets_open(bench, place, reterr));
    bench_tell(bench, "making a history");
    TRY(arrays_post(bench, place, value, ARRAY, 0, reterr));
    TRY(history_short(place, bench->arena, reterr));
    bench_tell(bench, "looking");
    return turns_run(bench, &turns, reterr);
}

/* ---- verify ---- */

ErrorCode section_verify(Bench *bench, int64_t value, Error *reterr)
{
    VerifyReport *verified = arena_alloc(bench->arena, sizeof *verified);
    VerifyOptions options  = {0};
    Place        *place;

    TRY(bench_place(bench, &place, reterr));
    TRY(wallets_open(bench, place, reterr));
    bench_tell(bench, "making a history");
    TRY(arrays_post(bench, place, value / 2, ARRAY, -1, reterr));
    bench_tell(bench, "sealing and verifying");
    /* The first time seals, which daemons do all along. */
    for (int64_t round = 0; round <= bench->options.rounds; round++) {
        TRY(wallet_verify(place->pool, &options, deadline_in_ms(VERIFY_MS), bench->arena, verified, reterr));
        if (verified->count > 0)
            return fail(reterr, ERR_INTERNAL, "%s %s", verified->findings[0].which, verified->findings[0].sentence);
        report_run(&bench->report, "verify", round == 0 ? "seal and verify" : "verify", UNIT_MS,
                   (double)verified->took_ms);
        TRY(bench_continue(bench, reterr));
    }
    return OK;
}
