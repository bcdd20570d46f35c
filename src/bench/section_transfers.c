/*
 * section_transfers.c - how many transfers a second, how long one takes, and what it weighs: any wallets, one wallet, in
 * arrays; how long it takes to read a wallet with a history, and to verify all of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/sync.h"
#include "base/uuid.h"
#include "bench/bench.h"
#include "bench/database.h"
#include "bench/histogram.h"
#include "bench/measure.h"
#include "bench/size.h"
#include "wallet/ledger.h"
#include "wallet/verify.h"

#define CALL_MS     60000
#define VERIFY_MS   3600000
#define ARENA_BYTES ((size_t)256 << 20)
#define RICH        INT64_C(1000000000)
#define ARRAY       1000
#define FEW         10
#define READS_MAX   20000
#define WARM_EACH   20 /* transfers of each client */
#define WINDOW_EACH 100
#define FLAT_SHARE  0.7 /* of the first third, in the last */

typedef struct {
    const BenchDatabase *database;
    Ledger              *ledger;
    bool                 hot; /* all transfers are from the first wallet */
    Mutex                mutex;
    Histogram           *histogram; /* under the mutex */
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
static ErrorCode items_post(const BenchDatabase *database, Arena *arena, WalletItem *items, int count, Error *reterr)
{
    WalletItem **list = arena_array(arena, WalletItem *, count);
    int          refused;

    for (int i = 0; i < count; i++)
        list[i] = &items[i];
    TRY(wallet_post_many(database->pool, deadline_in_ms(CALL_MS), /* lock_ms= */ 0, arena, list, count,
                         /* atomic= */ true, &refused, reterr));
    return refused < 0 ? OK : fail(reterr, ERR_INTERNAL, "%s", items[refused].error.text);
}

static ErrorCode wallets_open(Bench *bench, const BenchDatabase *database, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES);
    int64_t                   count = bench->options.wallets;

    bench_print(bench, "opening wallets");
    for (int64_t first = 0; first < count; first += ARRAY) {
        int         chunk = (int)(count - first < ARRAY ? count - first : ARRAY);
        WalletItem *items = arena_array(arena, WalletItem, chunk);

        for (int i = 0; i < chunk; i++) {
            WalletNew wallet = {.owner = owner_name(arena, first + i)};

            TRY(wallet_open(database->pool, deadline_in_ms(CALL_MS), WALLET_LOCK_WAIT, arena, &wallet, reterr));
            items[i]        = transfer(arena, first + i, first + i);
            items[i].kind   = WALLET_TOPUP;
            items[i].other  = NULL;
            items[i].amount = RICH;
        }
        TRY(items_post(database, arena, items, chunk, reterr));
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
        histogram_add(market->histogram, mono_us_between(start, clock_mono()));
        atomic_fetch_add(&bench->done, 1);
        arena_reset(arena);
    }
    return OK;
}

static ErrorCode market_run(Bench *bench, const BenchDatabase *database, bool hot, int64_t count, Histogram *histogram,
                            double *ret_rate, Error *reterr)
{
    scoped(ledger_free) Ledger *ledger = ledger_new(database->pool);
    Market                      market = {.database = database, .ledger = ledger, .hot = hot, .histogram = histogram};
    int64_t                     us;
    ErrorCode                   code;

    memset(histogram, 0, sizeof *histogram);
    bench_print(bench, hot ? "paying from one wallet" : "paying");
    mutex_init(&market.mutex);
    code = threads_run(bench, client_pay, &market, count, &us, reterr);
    mutex_done(&market.mutex);
    *ret_rate = per_second(count, us);
    return code;
}

ErrorCode section_transfers(Bench *bench, int64_t value, Error *reterr)
{
    Report        *report    = &bench->report;
    Histogram     *histogram = arena_alloc(bench->arena, sizeof *histogram);
    BenchDatabase *database;

    (void)value;
    TRY(bench_database(bench, &database, reterr));
    TRY(wallets_open(bench, database, reterr));
    for (int64_t round = 0; round < bench->options.rounds; round++) {
        Size   before, after;
        double rate;

        TRY(size_measure(bench, database, "wallet", &before, reterr));
        TRY(market_run(bench, database, /* hot= */ false, bench->options.count, histogram, &rate, reterr));
        TRY(size_measure(bench, database, "wallet", &after, reterr));
        report_run(report, "transfers", "transfers", UNIT_RATE, rate);
        report_run(report, "transfers", "p50", UNIT_MS, histogram_ms(histogram, 50));
        report_run(report, "transfers", "p99", UNIT_MS, histogram_ms(histogram, 99));
        size_report(bench, "transfers", &before, &after, bench->options.count);
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
    scoped(conn_close) Conn *hold      = NULL;
    Histogram               *histogram = arena_alloc(bench->arena, sizeof *histogram);
    int                      first     = bench->report.window_count;
    Mono                     start;
    BenchDatabase           *database;
    double                   rate;

    TRY(bench_database(bench, &database, reterr));
    TRY(wallets_open(bench, database, reterr));
    TRY(market_run(bench, database, /* hot= */ false, bench->options.clients * WARM_EACH, histogram, &rate, reterr));
    TRY(hold_begin(database, HOLD_XID, &hold, reterr));
    start = clock_mono();
    while (mono_us_between(start, clock_mono()) < value * 1000) {
        TRY(market_run(bench, database, /* hot= */ false, bench->options.clients * WINDOW_EACH, histogram, &rate,
                       reterr));
        report_window(&bench->report, &(Window){.section      = "hold-xid",
                                                .end_s        = (double)mono_us_between(start, clock_mono()) / 1e6,
                                                .offered      = rate,
                                                .done         = rate,
                                                .start_p50_ms = histogram_ms(histogram, 50),
                                                .start_p99_ms = histogram_ms(histogram, 99)});
    }
    TRY(hold_check(hold, reterr));
    hold_judge(bench, first);
    return OK;
}

/* ---- all from one wallet ---- */

static ErrorCode hot_measure(Bench *bench, int which, int64_t value, double *ret_rate, Error *reterr)
{
    Histogram *histogram = arena_alloc(bench->arena, sizeof *histogram);

    (void)value;
    return market_run(bench, &bench->databases[0], which == 1, bench->options.count, histogram, ret_rate, reterr);
}

ErrorCode section_hot(Bench *bench, int64_t value, Error *reterr)
{
    Alternation alternation = {
        "hot", {"transfers, any wallets", "transfers, all from one wallet"},
         hot_measure, value
    };
    BenchDatabase *database;

    TRY(bench_database(bench, &database, reterr));
    TRY(wallets_open(bench, database, reterr));
    return alternate_run(bench, &alternation, reterr);
}

/* ---- arrays, from one thread ---- */

/* from < 0: any wallets. */
static ErrorCode arrays_post(Bench *bench, const BenchDatabase *database, int64_t count, int64_t array, int64_t from,
                             Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES);
    int64_t                   wallets = bench->options.wallets;
    unsigned                  seed    = 1;

    for (int64_t done = 0; done < count; done += array) {
        int         chunk = (int)(count - done < array ? count - done : array);
        WalletItem *items = arena_array(arena, WalletItem, chunk);

        for (int i = 0; i < chunk; i++) {
            int64_t payer = from < 0 ? rand_r(&seed) % wallets : from;

            items[i] = transfer(arena, payer, (payer + 1 + rand_r(&seed) % (wallets - 1)) % wallets);
        }
        TRY(bench_continue(bench, reterr));
        TRY(items_post(database, arena, items, chunk, reterr));
        atomic_fetch_add(&bench->done, chunk);
        arena_reset(arena);
    }
    return OK;
}

ErrorCode section_arrays(Bench *bench, int64_t value, Error *reterr)
{
    BenchDatabase *database;

    TRY(bench_database(bench, &database, reterr));
    TRY(wallets_open(bench, database, reterr));
    bench_print(bench, "paying in arrays");
    for (int64_t round = 0; round < bench->options.rounds; round++) {
        Mono start = clock_mono();

        TRY(arrays_post(bench, database, bench->options.count, value, -1, reterr));
        report_run(&bench->report, "arrays", "transfers", UNIT_RATE,
                   per_second(bench->options.count, mono_us_between(start, clock_mono())));
    }
    return OK;
}

/* ---- a long history ---- */

/* The first wallet has the long history; the last one, without transfers, a short one. */
static ErrorCode history_measure(Bench *bench, int which, int64_t value, double *ret_rate, Error *reterr)
{
    scoped(ledger_free) Ledger *ledger = ledger_new(bench->databases[0].pool);
    scoped(arena_free) Arena   *arena  = arena_new(ARENA_BYTES);
    const char                 *owner  = which ? "owner 0" : "short";
    Mono                        start  = clock_mono();
    int64_t                     reads  = bench->options.count < READS_MAX ? bench->options.count : READS_MAX;
    Wallet                      wallet;

    (void)value;
    for (int64_t i = 0; i < reads; i++) {
        TRY(bench_continue(bench, reterr));
        TRY(ledger_get(ledger, deadline_in_ms(CALL_MS), arena, owner, NULL, &wallet, reterr));
        arena_reset(arena);
    }
    *ret_rate = per_second(reads, mono_us_between(start, clock_mono()));
    return OK;
}

static ErrorCode history_short(const BenchDatabase *database, Arena *arena, Error *reterr)
{
    WalletNew  wallet = {.owner = "short"};
    WalletItem items[FEW];

    TRY(wallet_open(database->pool, deadline_in_ms(CALL_MS), WALLET_LOCK_WAIT, arena, &wallet, reterr));
    for (int i = 0; i < FEW; i++) {
        items[i]       = transfer(arena, 0, 1);
        items[i].other = "short";
    }
    return items_post(database, arena, items, FEW, reterr);
}

ErrorCode section_history(Bench *bench, int64_t value, Error *reterr)
{
    Alternation alternation = {
        "history", {"reads of a wallet with 10 entries", NULL},
         history_measure, value
    };
    BenchDatabase *database;

    alternation.names[1] = arena_print(bench->arena, "reads of a wallet with %lld entries", (long long)value);
    TRY(bench_database(bench, &database, reterr));
    TRY(wallets_open(bench, database, reterr));
    bench_print(bench, "making a history");
    TRY(arrays_post(bench, database, value, ARRAY, 0, reterr));
    TRY(history_short(database, bench->arena, reterr));
    bench_print(bench, "looking");
    return alternate_run(bench, &alternation, reterr);
}

/* ---- verify ---- */

ErrorCode section_verify(Bench *bench, int64_t value, Error *reterr)
{
    VerifyReport  *verified = arena_alloc(bench->arena, sizeof *verified);
    VerifyOptions  options  = {0};
    BenchDatabase *database;

    TRY(bench_database(bench, &database, reterr));
    TRY(wallets_open(bench, database, reterr));
    bench_print(bench, "making a history");
    TRY(arrays_post(bench, database, value / 2, ARRAY, -1, reterr));
    bench_print(bench, "sealing and verifying");
    /* The first time seals, which daemons do all along. */
    for (int64_t round = 0; round <= bench->options.rounds; round++) {
        TRY(wallet_verify(database->pool, &options, deadline_in_ms(VERIFY_MS), bench->arena, verified, reterr));
        if (verified->findings.count > 0)
            return fail(reterr, ERR_INTERNAL, "%s %s", verified->findings.rows[0].which,
                        verified->findings.rows[0].sentence);
        report_run(&bench->report, "verify", round == 0 ? "seal and verify" : "verify", UNIT_MS,
                   (double)verified->took_ms);
        TRY(bench_continue(bench, reterr));
    }
    return OK;
}
