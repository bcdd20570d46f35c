/*
 * commit_cut_test.c - a thousand commits whose wire is cut before, while or after the server did its part, each resolved
 * by its key.
 *
 * Each lane is a thread with a pool and a proxy of its own, so it decides what happens to its own commits. Its dice are
 * seeded with its number: a run can be repeated.
 */
#include <stdlib.h>

#include "base/sync.h"
#include "pg/metric.h"
#include "pg/tx.h"
#include "test/concurrency/deed.h"
#include "test/harness/database.h"
#include "test/harness/proxy.h"
#include "test/harness/test.h"

#define LANES       20
#define CUTS        50 /* per lane: a thousand in all */
#define DEADLINE_MS 20000

typedef struct {
    pthread_t thread;
    int       number;
    unsigned  dice;
    Pool     *pool;
    Proxy    *proxy;
    Told      told;
    int       repeated, refused_well, misled;
} Claimer;

static int roll(Claimer *lane, int sides)
{
    return rand_r(&lane->dice) % sides;
}

/* Mostly one cut; sometimes more, up to one for every try that a transaction has. */
static int cuts_choose(Claimer *lane, int left)
{
    static const int counts[] = {1, 1, 1, 1, 1, 1, 1, 1, 2, 4};
    int              count    = counts[roll(lane, (int)COUNT(counts))];

    return count < left ? count : left;
}

/* Again with the same key, until the answer is certain. */
static ErrorCode deed_insist(Claimer *lane, Deed deed)
{
    for (;;) {
        ErrorCode code = deed_do(lane->pool, deadline_in_ms(DEADLINE_MS), deed, NULL);

        told_note(&lane->told, deed.number, code);
        if (code != ERR_UNKNOWN)
            return code;
        lane->repeated++;
    }
}

static void *lane_run(void *context)
{
    Claimer *lane = context;

    for (int left = CUTS, n = 0; left > 0; n++) {
        Deed deed = {.caller = lane->number, .number = n, .bad = roll(lane, 4) == 0};
        int  cuts = cuts_choose(lane, left);

        proxy_cut_commit(lane->proxy, (ProxyMoment)roll(lane, 3), cuts);
        ErrorCode code = deed_insist(lane, deed);
        lane->refused_well += deed.bad && code == ERR_CONFLICT;
        lane->misled += code != (deed.bad ? ERR_CONFLICT : OK);
        left = CUTS - proxy_counts(lane->proxy).cuts;
    }
    return NULL;
}

/* A deed that was told ERR_UNKNOWN at first and refused at last was not done: certain after all. */
static void told_settle(Claimer *lane)
{
    for (int i = 0; i < lane->told.count; i++)
        if (lane->told.codes[i] == ERR_UNKNOWN)
            lane->told.codes[i] = ERR_CONFLICT;
}

static void lane_open(Claimer *lane, int number, const TestDatabase *db)
{
    Error error = {0};

    lane->number = number;
    lane->dice   = (unsigned)number + 1;
    lane->proxy  = proxy_new(database_url(db));
    assert_ok(pool_new(&(PoolOptions){.conninfo = proxy_url(lane->proxy), .size_max = 2}, &lane->pool, &error));
}

static void lane_close(Claimer *lane)
{
    assert_true(pool_drain(lane->pool, deadline_in_ms(DEADLINE_MS)));
    pool_free(lane->pool);
    proxy_free(lane->proxy);
}

TEST(commit_cut_a_thousand_times_is_never_reported_wrongly)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    Claimer                            *lanes = calloc(LANES, sizeof *lanes);
    const Told                         *tolds[LANES];
    int                                 cuts = 0, repeated = 0, refused = 0, misled = 0;
    int64_t                             resolved = metric_value(&pg_metrics.commits_resolved);

    assert_non_null(lanes);
    deed_prepare(database_url(db));
    for (int i = 0; i < LANES; i++)
        lane_open(&lanes[i], i, db);
    for (int i = 0; i < LANES; i++)
        lanes[i].thread = thread_start("lane", lane_run, &lanes[i]);
    for (int i = 0; i < LANES; i++) {
        thread_join(lanes[i].thread);
        told_settle(&lanes[i]);
        tolds[i] = &lanes[i].told;
        cuts += proxy_counts(lanes[i].proxy).cuts;
        repeated += lanes[i].repeated;
        refused += lanes[i].refused_well;
        misled += lanes[i].misled;
    }
    Judgement judgement = deeds_judge(database_url(db), tolds, LANES);
    print_message("# %d cuts: %d done, %d refused, %d repeated by their caller\n", cuts, judgement.done,
                  judgement.refused, repeated);

    assert_int_equal(LANES * CUTS, cuts);
    assert_int_equal(0, misled);
    assert_int_equal(0, judgement.wrong);
    assert_int_equal(refused, judgement.refused);
    assert_true(refused > 0 && repeated > 0);
    assert_true(metric_value(&pg_metrics.commits_resolved) - resolved > 0);
    for (int i = 0; i < LANES; i++)
        lane_close(&lanes[i]);
    free(lanes);
}

static ErrorCode increment(Tx *tx, void *context, Error *reterr)
{
    (void)context;
    return db_run(tx, "update counter set n = n + 1", DB_NONE, NULL, reterr);
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

    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(arena_free) Arena           *arena = arena_new(ARENA_BYTES_DEFAULT);
    Claimer                             lane  = {0};
    Error                               error = {0};

    database_exec(db, "create table counter (n int); insert into counter values (0)");
    lane_open(&lane, 0, db);
    for (size_t i = 0; i < COUNT(cases); i++) {
        TxOptions options = {.name = "increment", .deadline = deadline_in_ms(DEADLINE_MS), .arena = arena};

        database_exec(db, "update counter set n = 0");
        proxy_cut_commit(lane.proxy, cases[i].moment, 1);
        assert_code(ERR_UNKNOWN, tx_run(lane.pool, &options, increment, NULL, &error));
        assert_contains(error.text, "increment may have been done");
        assert_int_equal(cases[i].counted, database_get_i64(db, "select n from counter"));
    }
    lane_close(&lane);
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
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(arena_free) Arena           *arena = arena_new(ARENA_BYTES_DEFAULT);
    Claimer                             lane  = {0};
    Error                               error = {0};
    TxOptions options = {.name = "careless", .deadline = deadline_in_ms(DEADLINE_MS), .arena = arena};

    database_exec(db, "create table counter (n int); insert into counter values (0)");
    lane_open(&lane, 0, db);
    assert_code(ERR_INTERNAL, tx_run(lane.pool, &options, fail_and_go_on, NULL, &error));
    assert_contains(error.text, "rolled back");
    assert_int_equal(0, database_get_i64(db, "select n from counter"));
    lane_close(&lane);
}
