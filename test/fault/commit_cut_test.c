/*
 * commit_cut_test.c - a thousand commits whose wire is cut before, while or after the server did its part, each resolved
 * by its key.
 *
 * Each caller is a thread with a pool and a proxy of its own, so it decides what happens to its own commits. Its dice are
 * seeded with its number: a run can be repeated.
 */
#include <stdlib.h>

#include "base/sync.h"
#include "pg/metric.h"
#include "pg/tx.h"
#include "test/concurrency/keyed_insert.h"
#include "test/harness/database.h"
#include "test/harness/proxy.h"
#include "test/harness/test.h"

#define CALLERS     20
#define CUTS        50 /* per caller: a thousand in all */
#define DEADLINE_MS 60000

typedef struct {
    pthread_t thread;
    int       number;
    unsigned  dice;
    Pool     *pool;
    Proxy    *proxy;
    Results   results;
    int       repeated, refused_well, misled;
} Caller;

static int roll(Caller *caller, int sides)
{
    return rand_r(&caller->dice) % sides;
}

/* Mostly one cut; sometimes more, up to one for every try that a transaction has. */
static int cuts_choose(Caller *caller, int left)
{
    static const int counts[] = {1, 1, 1, 1, 1, 1, 1, 1, 2, 4};
    int              count    = counts[roll(caller, (int)COUNT(counts))];

    return count < left ? count : left;
}

/* Again with the same key, until the answer is certain. */
static ErrorCode insert_repeat(Caller *caller, KeyedInsert insert)
{
    for (;;) {
        ErrorCode code = keyed_insert_run(caller->pool, deadline_in_ms(DEADLINE_MS), insert, NULL);

        result_record(&caller->results, insert.number, code);
        if (code != ERR_UNKNOWN)
            return code;
        caller->repeated++;
    }
}

static void *caller_run(void *context)
{
    Caller *caller = context;

    for (int left = CUTS, n = 0; left > 0; n++) {
        KeyedInsert insert = {.caller = caller->number, .number = n, .bad = roll(caller, 4) == 0};
        int         cuts   = cuts_choose(caller, left);

        proxy_cut_commit(caller->proxy, (ProxyMoment)roll(caller, 3), cuts);
        ErrorCode code = insert_repeat(caller, insert);
        caller->refused_well += insert.bad && code == ERR_CONFLICT;
        caller->misled += code != (insert.bad ? ERR_CONFLICT : OK);
        left = CUTS - proxy_counts(caller->proxy).cuts;
    }
    return NULL;
}

/* An insert with the result ERR_UNKNOWN that was then refused has not committed. */
static void results_settle(Caller *caller)
{
    for (int i = 0; i < caller->results.count; i++)
        if (caller->results.codes[i] == ERR_UNKNOWN)
            caller->results.codes[i] = ERR_CONFLICT;
}

static void caller_open(Caller *caller, int number, const TestDatabase *db)
{
    Error error = {0};

    caller->number = number;
    caller->dice   = (unsigned)number + 1;
    caller->proxy  = proxy_new(database_url(db));
    assert_ok(pool_new(&(PoolOptions){.conninfo = proxy_url(caller->proxy), .size_max = 2}, &caller->pool, &error));
}

static void caller_close(Caller *caller)
{
    assert_true(pool_drain(caller->pool, deadline_in_ms(DEADLINE_MS)));
    pool_free(caller->pool);
    proxy_free(caller->proxy);
}

TEST(commit_cut_a_thousand_times_is_never_reported_wrongly)
{
    scoped(database_free) TestDatabase *db      = database_new_empty();
    Caller                             *callers = calloc(CALLERS, sizeof *callers);
    const Results                      *lists[CALLERS];
    int                                 cuts = 0, repeated = 0, refused = 0, misled = 0;
    int64_t                             resolved = metric_value(&pg_metrics.commits_resolved);

    assert_non_null(callers);
    keyed_insert_prepare(database_url(db));
    for (int i = 0; i < CALLERS; i++)
        caller_open(&callers[i], i, db);
    for (int i = 0; i < CALLERS; i++)
        callers[i].thread = thread_start("caller", caller_run, &callers[i]);
    for (int i = 0; i < CALLERS; i++) {
        thread_join(callers[i].thread);
        results_settle(&callers[i]);
        lists[i] = &callers[i].results;
        cuts += proxy_counts(callers[i].proxy).cuts;
        repeated += callers[i].repeated;
        refused += callers[i].refused_well;
        misled += callers[i].misled;
    }
    Comparison comparison = keyed_inserts_compare(database_url(db), lists, CALLERS);
    print_message("# %d cuts: %d done, %d refused, %d repeated by their caller\n", cuts, comparison.done,
                  comparison.refused, repeated);

    assert_int_equal(CALLERS * CUTS, cuts);
    assert_int_equal(0, misled);
    assert_int_equal(0, comparison.wrong);
    assert_int_equal(refused, comparison.refused);
    assert_true(refused > 0 && repeated > 0);
    assert_true(metric_value(&pg_metrics.commits_resolved) - resolved > 0);
    for (int i = 0; i < CALLERS; i++)
        caller_close(&callers[i]);
    free(callers);
}

static ErrorCode increment(Tx *tx, void *context, Error *reterr)
{
    (void)context;
    return db_run(tx, "update public.counter set n = n + 1", DB_NONE, NULL, reterr);
}

/* Without a key nobody can tell, and nothing is done a second time to find out. */
TEST(commit_cut_without_a_key_is_reported_as_unknown)
{
    static const struct {
        ProxyMoment moment;
        int64_t     counted;
    } cases[] = {
        {PROXY_CUT_BEFORE,   0},
        {PROXY_CUT_ANSWERED, 1}
    };

    scoped(database_free) TestDatabase *db     = database_new_empty();
    scoped(arena_free) Arena           *arena  = arena_new(ARENA_BYTES_DEFAULT);
    Caller                              caller = {0};
    Error                               error  = {0};

    database_exec(db, "create table public.counter (n int); insert into public.counter values (0)");
    caller_open(&caller, 0, db);
    for (size_t i = 0; i < COUNT(cases); i++) {
        TxOptions options = {.name = "increment", .deadline = deadline_in_ms(DEADLINE_MS), .arena = arena};

        database_exec(db, "update public.counter set n = 0");
        proxy_cut_commit(caller.proxy, cases[i].moment, 1);
        assert_code(ERR_UNKNOWN, tx_run(caller.pool, &options, increment, NULL, &error));
        assert_contains(error.text, "increment may have been done");
        assert_int_equal(cases[i].counted, database_get_i64(db, "select n from public.counter"));
    }
    caller_close(&caller);
}

static ErrorCode fail_and_go_on(Tx *tx, void *context, Error *reterr)
{
    TRY(increment(tx, context, reterr));
    (void)!db_run(tx, "select 1 / 0", DB_NONE, NULL, NULL);
    return OK;
}

/* PostgreSQL answers such a commit with success. */
TEST(commit_of_a_failed_transaction_is_not_reported_as_committed)
{
    scoped(database_free) TestDatabase *db     = database_new_empty();
    scoped(arena_free) Arena           *arena  = arena_new(ARENA_BYTES_DEFAULT);
    Caller                              caller = {0};
    Error                               error  = {0};
    TxOptions options = {.name = "careless", .deadline = deadline_in_ms(DEADLINE_MS), .arena = arena};

    database_exec(db, "create table public.counter (n int); insert into public.counter values (0)");
    caller_open(&caller, 0, db);
    assert_code(ERR_INTERNAL, tx_run(caller.pool, &options, fail_and_go_on, NULL, &error));
    assert_contains(error.text, "rolled back");
    assert_int_equal(0, database_get_i64(db, "select n from public.counter"));
    caller_close(&caller);
}
