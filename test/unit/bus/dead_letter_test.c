/*
 * dead_letter_test.c - the four cases of P7 (twice, two workers, concurrent, crash) and all other states of a letter.
 *
 * The operation under test is an insert into "effect", which has no unique key: an operation done twice is two rows.
 */
#include "bus/dead_letter.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/sync.h"
#include "bus/metric.h"
#include "test/harness/database.h"
#include "test/harness/test.h"

#define THREADS 8

static TestDatabase *database_with_effect(void)
{
    TestDatabase *db = database_new();

    database_exec(db, "create table public.effect (key text, data jsonb)");
    return db;
}

static Pool *pool_open(const TestDatabase *db)
{
    Pool *pool  = NULL;
    Error error = {0};

    assert_ok(pool_new(&(PoolOptions){.conninfo = database_url(db), .size_max = THREADS}, &pool, &error));
    return pool;
}

static Deadline soon(void)
{
    return deadline_in_ms(60000);
}

static ErrorCode effect_insert(Tx *tx, const char *key, const char *data, void *context, Error *reterr)
{
    (void)context;
    return db_run(tx, "insert into public.effect values ($1, $2)", DB_ARGS(db_text(key), db_jsonb(data)), NULL, reterr);
}

/* The effect first, so that a failure which does not roll back would show. */
static ErrorCode effect_then_failure(Tx *tx, const char *key, const char *data, void *context, Error *reterr)
{
    TRY(effect_insert(tx, key, data, context, reterr));
    return fail(reterr, ERR_CONFLICT, "not today");
}

static ErrorCode effect_then_death(Tx *tx, const char *key, const char *data, void *context, Error *reterr)
{
    TRY(effect_insert(tx, key, data, context, reterr));
    raise(SIGKILL);
    return OK;
}

static const DeadLetterType working[] = {
    {"pay", effect_insert, NULL}
};
static const DeadLetterType failing[] = {
    {"pay", effect_then_failure, NULL}
};
static const DeadLetterType deadly[] = {
    {"pay", effect_then_death, NULL}
};

#define TYPES(array, ...) ((DeadLetterTypes){.list = array, .count = (int)COUNT(array), __VA_ARGS__})

static int64_t letter_put(Pool *pool, const char *type, const char *key)
{
    Error   error = {0}, why = {0};
    int64_t id = 0;

    (void)fail(&why, ERR_TIMEOUT, "took too long");
    assert_ok(dead_letter_put(pool, soon(), &(DeadLetterNew){type, key, "{\"amount\": 5}", &why, 0}, &id, &error));
    assert_true(id > 0);
    return id;
}

/* As dead_letter_retry() would, for all of them. */
static void letters_are_due(TestDatabase *db)
{
    database_exec(db, "select pawl.dead_letter_retry(array(select id from pawl.failed_operations))");
}

static DeadLetter letter_find(Pool *pool, Arena *arena, int64_t id)
{
    DeadLetter letter = {0};
    Error      error  = {0};

    assert_ok(dead_letter_find(pool, soon(), arena, id, &letter, &error));
    return letter;
}

static int step(Pool *pool, DeadLetterTypes types)
{
    Error error = {0};
    int   tried = -1;

    assert_ok(dead_letter_step(pool, soon(), types, &tried, &error));
    return tried;
}

/* ---- P7 ---- */

TEST(dead_letter_same_put_twice_is_one_row)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(pool_free) Pool             *pool  = pool_open(db);
    scoped(arena_free) Arena           *arena = arena_new(ARENA_BYTES_DEFAULT);
    int64_t                             id    = letter_put(pool, "pay", "k1");

    assert_int_equal(id, letter_put(pool, "pay", "k1"));
    assert_int_not_equal(id, letter_put(pool, "pay", "k2"));
    assert_int_not_equal(id, letter_put(pool, "refund", "k1"));
    assert_int_equal(3, database_get_i64(db, "select count(*) from pawl.failed_operations"));

    DeadLetter letter = letter_find(pool, arena, id);
    assert_string_equal("pay", letter.operation_type);
    assert_string_equal("{\"amount\": 5}", letter.operation_data);
    assert_string_equal("took too long", letter.error_message);
    assert_string_equal("timed-out", letter.error_code);
    assert_string_equal("pending", letter.status);
    assert_int_equal(0, letter.retry_count);
    assert_int_equal(0, letter.last_retry_at);
    assert_true(letter.created_at > 0);
}

typedef struct {
    Pool           *pool;
    DeadLetterTypes types;
    int             tried;
    ErrorCode       code;
    Error           error;
} Worker;

static void *worker_run(void *context)
{
    Worker *worker = context;

    worker->code = dead_letter_step(worker->pool, soon(), worker->types, &worker->tried, &worker->error);
    return NULL;
}

TEST(dead_letter_two_workers_one_letter)
{
    scoped(database_free) TestDatabase *db   = database_with_effect();
    scoped(pool_free) Pool             *pool = pool_open(db);
    Worker                              workers[THREADS];
    pthread_t                           threads[THREADS];
    int                                 tried = 0;

    database_exec(
        db, "select pawl.dead_letter_put(array['pay'], array[n::text], array['{}'::jsonb], array[''], array[''], 0)"
            " from generate_series(1, 60) n");
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (Worker){.pool = pool, .types = TYPES(working)};
        threads[i] = thread_start("worker", worker_run, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        thread_join(threads[i]);
    for (int i = 0; i < THREADS; i++) {
        Error error = workers[i].error;

        assert_ok(workers[i].code);
        tried += workers[i].tried;
    }
    assert_int_equal(60, tried);
    assert_int_equal(60, database_get_i64(db, "select count(*) from public.effect"));
    assert_int_equal(60, database_get_i64(db, "select count(distinct key) from public.effect"));
    assert_int_equal(60, database_get_i64(db, "select count(*) from pawl.failed_operations where status = 'resolved'"));
}

typedef struct {
    PGconn *conn;
    int     settled;
} Settler;

static void *settler_run(void *context)
{
    Settler  *settler = context;
    PGresult *result =
        PQexec(settler->conn, "select from pawl.dead_letter_settle(array[1::bigint], array[1::bigint], array[false],"
                              " array['no'], array['x'], 3, 60000) where settled");

    settler->settled = PQntuples(result);
    PQclear(result);
    return NULL;
}

TEST(dead_letter_concurrent_settles_move_it_once)
{
    scoped(database_free) TestDatabase *db = database_new();
    Settler                             settlers[THREADS];
    pthread_t                           threads[THREADS];
    int                                 settled = 0;

    database_exec(db,
                  "select pawl.dead_letter_put(array['pay'], array['k'], array['{}'::jsonb], array[''], array[''], 0);"
                  "select pawl.dead_letter_claim(array['pay'], 1, 60000, 3)");
    for (int i = 0; i < THREADS; i++) {
        settlers[i] = (Settler){.conn = database_connect(db)};
        threads[i]  = thread_start("settler", settler_run, &settlers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        thread_join(threads[i]);
        PQfinish(settlers[i].conn);
        settled += settlers[i].settled;
    }
    assert_int_equal(1, settled);
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.failed_operations where status = 'pending'"
                                             " and retry_count = 1 and lease = 1 and lease_until is null"));
}

/* The child dies in the middle of its transaction: the effect is rolled back with it, and the letter is claimed again when its lease expires. */
TEST(dead_letter_crash_then_recovery)
{
    scoped(database_free) TestDatabase *db = database_with_effect();
    int                                 status;

    database_exec(db,
                  "select pawl.dead_letter_put(array['pay'], array['k'], array['{}'::jsonb], array[''], array[''], 0)");
    pid_t child = fork();
    if (child == 0) {
        Pool *pool = NULL;
        int   tried;

        if (pool_new(&(PoolOptions){.conninfo = database_url(db)}, &pool, NULL) == OK)
            (void)!dead_letter_step(pool, soon(), TYPES(deadly, .lease_ms = 3000), &tried, NULL);
        _exit(1);
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.failed_operations where status = 'retrying'"));

    scoped(pool_free) Pool *pool     = pool_open(db);
    Deadline                deadline = soon();
    int                     tried    = 0;

    while (tried == 0 && !deadline_passed(deadline))
        tried = step(pool, TYPES(working));
    assert_int_equal(1, tried);
    assert_int_equal(1, database_get_i64(db, "select count(*) from public.effect"));
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.failed_operations"
                                             " where status = 'resolved' and retry_count = 2 and lease = 2"));
}

/* ---- the rest of its life ---- */

TEST(dead_letter_that_kills_every_pod_ends_as_failed)
{
    scoped(database_free) TestDatabase *db   = database_new();
    scoped(pool_free) Pool             *pool = pool_open(db);

    (void)letter_put(pool, "pay", "k");
    database_exec(db, "update pawl.failed_operations set status = 'retrying', retry_count = 3, lease = 3,"
                      " lease_until = pawl.now() - interval '1 s'");
    assert_int_equal(0, step(pool, TYPES(working)));
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.failed_operations"
                                             " where status = 'failed' and error_code = 'lease-expired'"));
}

TEST(dead_letter_that_is_lost_takes_no_queue_position)
{
    scoped(database_free) TestDatabase *db   = database_with_effect();
    scoped(pool_free) Pool             *pool = pool_open(db);

    (void)letter_put(pool, "pay", "lost");
    (void)letter_put(pool, "pay", "due");
    letters_are_due(db);
    database_exec(db, "update pawl.failed_operations set status = 'retrying', retry_count = 3, lease = 3,"
                      " lease_until = pawl.now() - interval '1 s' where operation_key = 'lost'");
    assert_int_equal(1, step(pool, TYPES(working)));
    assert_int_equal(1, database_get_i64(db, "select count(*) from public.effect where key = 'due'"));
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.failed_operations where status = 'failed'"));
}

TEST(dead_letter_fails_three_times_then_waits_for_an_operator)
{
    scoped(database_free) TestDatabase *db    = database_with_effect();
    scoped(pool_free) Pool             *pool  = pool_open(db);
    scoped(arena_free) Arena           *arena = arena_new(ARENA_BYTES_DEFAULT);
    int64_t                             id    = letter_put(pool, "pay", "k");
    DeadLetter                          letter;
    Error                               error = {0};

    assert_int_equal(0, step(pool, TYPES(failing))); /* due in five minutes */
    database_exec(db, "update pawl.failed_operations set next_retry_at = pawl.now()");
    for (int tries = 1; tries <= 3; tries++) {
        assert_int_equal(1, step(pool, TYPES(failing)));
        assert_int_equal(0, step(pool, TYPES(failing)));
        letter = letter_find(pool, arena, id);
        assert_int_equal(tries, letter.retry_count);
        assert_string_equal(tries < 3 ? "pending" : "failed", letter.status);
        database_exec(db, "update pawl.failed_operations set next_retry_at = pawl.now()");
    }
    assert_int_equal(0, step(pool, TYPES(working)));
    assert_string_equal("not today", letter.error_message);
    assert_string_equal("conflict", letter.error_code);
    assert_true(letter.last_retry_at >= letter.created_at);
    assert_int_equal(0, database_get_i64(db, "select count(*) from public.effect"));

    assert_ok(dead_letter_retry(pool, soon(), /* lock_ms= */ 0, arena, id, &letter, &error));
    assert_string_equal("pending", letter.status);
    assert_int_equal(0, letter.retry_count);
    assert_int_equal(1, step(pool, TYPES(working)));
    assert_string_equal("resolved", letter_find(pool, arena, id).status);
    assert_int_equal(
        1, database_get_i64(db, "select count(*) from public.effect where key = 'k' and data = '{\"amount\": 5}'"));
}

TEST(dead_letter_lost_commit_is_not_done_again)
{
    scoped(database_free) TestDatabase *db     = database_with_effect();
    scoped(pool_free) Pool             *pool   = pool_open(db);
    int64_t                             worked = metric_value(&bus_metrics.dead_letter_retry_ok),
            failed                             = metric_value(&bus_metrics.dead_letter_retry_failed);

    (void)letter_put(pool, "pay", "k");
    letters_are_due(db);
    fault_arm("pg.commit.after", 1);
    assert_int_equal(1, step(pool, TYPES(working)));
    fault_arm_nth(0);
    assert_int_equal(worked + 1, metric_value(&bus_metrics.dead_letter_retry_ok));
    assert_int_equal(failed, metric_value(&bus_metrics.dead_letter_retry_failed));
    assert_int_equal(1, database_get_i64(db, "select count(*) from public.effect"));
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.failed_operations"
                                             " where status = 'resolved' and retry_count = 1"));
}

static bool is_resolved(TestDatabase *db)
{
    return database_get_i64(db, "select count(*) from pawl.failed_operations where status = 'resolved'") == 1;
}

/* Every call on the way fails once, in turn: in the end it is resolved, and was done once. */
TEST(dead_letter_survives_every_fault)
{
    scoped(database_free) TestDatabase *db    = database_with_effect();
    scoped(pool_free) Pool             *pool  = pool_open(db);
    DeadLetterTypes                     types = TYPES(working, .tries_max = 1000, .delay_ms = 1, .lease_ms = 200);
    bool                                hit   = true;

    for (long n = 1; hit; n++) {
        Deadline deadline = soon();
        Error    error    = {0};
        int      tried;

        database_exec(db, "truncate public.effect; truncate pawl.failed_operations");
        (void)letter_put(pool, "pay", "k");
        letters_are_due(db);
        fault_arm_nth(n);
        (void)!dead_letter_step(pool, soon(), types, &tried, &error);
        hit = fault_was_hit();
        fault_arm_nth(0);
        while (!is_resolved(db) && !deadline_passed(deadline))
            (void)step(pool, types);
        assert_true(is_resolved(db));
        assert_int_equal(1, database_get_i64(db, "select count(*) from public.effect"));
        assert_in_range(n, 1, 200);
    }
}

/* As another pod's claim would, right after ours. */
TEST(dead_letter_whose_lease_was_lost_is_left_alone)
{
    scoped(database_free) TestDatabase *db   = database_with_effect();
    scoped(pool_free) Pool             *pool = pool_open(db);

    database_exec(db, "create function taken() returns trigger language plpgsql as"
                      " $$ begin update pawl.failed_operations set lease = 2 where id = new.id; return null; end $$;"
                      "create trigger taken after update on pawl.failed_operations for each row when (new.lease = 1)"
                      " execute function taken()");
    (void)letter_put(pool, "pay", "k");
    letters_are_due(db);
    assert_int_equal(1, step(pool, TYPES(working)));
    assert_int_equal(0, database_get_i64(db, "select count(*) from public.effect"));
    assert_int_equal(1,
                     database_get_i64(db,
                                      "select count(*) from pawl.failed_operations"
                                      " where status = 'retrying' and lease = 2 and error_message = 'took too long'"));
}

/* Too slow for its turn, whatever time there is. */
static ErrorCode sleep_for_ever(Tx *tx, const char *key, const char *data, void *context, Error *reterr)
{
    (void)key;
    (void)data;
    (void)context;
    return db_run(tx, "select pg_sleep(3600)", DB_NONE, NULL, reterr);
}

TEST(dead_letter_slow_one_costs_the_others_no_try)
{
    static const DeadLetterType types[] = {
        {"pay", sleep_for_ever, NULL}
    };
    scoped(database_free) TestDatabase *db   = database_new();
    scoped(pool_free) Pool             *pool = pool_open(db);
    int                                 tried;

    (void)letter_put(pool, "pay", "a");
    (void)letter_put(pool, "pay", "b");
    letters_are_due(db);
    (void)!dead_letter_step(pool, deadline_in_ms(1000), TYPES(types), &tried, NULL);
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.failed_operations where retry_count = 1"));
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.failed_operations"
                                             " where status = 'pending' and retry_count = 0 and lease = 0"));
}

static ErrorCode hang(Deadline deadline, const char *key, const char *data, void *context, Error *reterr)
{
    (void)key, (void)data, (void)context;
    clock_sleep_until(deadline);
    return fail(reterr, ERR_TIMEOUT, "webhook does not answer");
}

/* A receiver that hangs until the end of the turn: the outcome is reported all the same. */
TEST(dead_letter_that_used_up_the_time_of_its_turn_is_reported)
{
    const DeadLetterType types[] = {
        {"pay", .call = hang},
        {"slow", sleep_for_ever, NULL},
    };
    scoped(database_free) TestDatabase *db   = database_new();
    scoped(pool_free) Pool             *pool = pool_open(db);
    int                                 tried;

    (void)letter_put(pool, "pay", "a");
    (void)letter_put(pool, "slow", "a");
    letters_are_due(db);
    for (size_t i = 0; i < COUNT(types); i++) {
        Error error = {0};

        assert_ok(dead_letter_step(pool, deadline_in_ms(1000), (DeadLetterTypes){.list = &types[i], .count = 1}, &tried,
                                   &error));
        assert_int_equal(tried, 1);
    }
    assert_int_equal(2, database_get_i64(db, "select count(*) from pawl.failed_operations where status = 'pending' and "
                                             "retry_count = 1 and error_message <> 'took too long'"));
}

typedef struct {
    ErrorCode code;
    int       runs;
} Webhook;

/* A webhook that is down: the code may be the same as a lost database's, but the database is well. */
static ErrorCode fail_by_itself(Tx *tx, const char *key, const char *data, void *context, Error *reterr)
{
    Webhook *webhook = context;

    webhook->runs++;
    TRY(effect_insert(tx, key, data, /* context= */ NULL, reterr));
    return fail(reterr, webhook->code, "webhook does not answer");
}

TEST(dead_letter_handler_fails_by_itself_once_per_try)
{
    static const ErrorCode              codes[] = {ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_BUSY, ERR_UNKNOWN};
    scoped(database_free) TestDatabase *db      = database_with_effect();
    scoped(pool_free) Pool             *pool    = pool_open(db);
    scoped(arena_free) Arena           *arena   = arena_new(ARENA_BYTES_DEFAULT);
    int64_t                             id      = letter_put(pool, "pay", "k");

    for (size_t i = 0; i < COUNT(codes); i++) {
        Webhook              webhook = {.code = codes[i]};
        const DeadLetterType types[] = {
            {"pay", fail_by_itself, &webhook}
        };

        letters_are_due(db);
        assert_int_equal(1, step(pool, TYPES(types)));
        assert_int_equal(1, webhook.runs);

        DeadLetter letter = letter_find(pool, arena, id);
        assert_string_equal("pending", letter.status);
        assert_int_equal(1, letter.retry_count);
        assert_string_equal("webhook does not answer", letter.error_message);
        assert_string_equal(error_type(&(Error){.code = codes[i]}), letter.error_code);
    }
    assert_int_equal(0, database_get_i64(db, "select count(*) from public.effect"));
}

static ErrorCode fail_for_an_hour(Deadline deadline, const char *key, const char *data, void *context, Error *reterr)
{
    (void)deadline, (void)key, (void)data, (void)context;
    (void)fail(reterr, ERR_RATE, "asks for fewer requests");
    reterr->retry_ms = 3600000;
    return ERR_RATE;
}

/* What Retry-After of an HTTP response becomes. */
TEST(dead_letter_waits_for_as_long_as_it_was_asked_to)
{
    const DeadLetterType types[] = {
        {"pay", .call = fail_for_an_hour}
    };
    scoped(database_free) TestDatabase *db   = database_new();
    scoped(pool_free) Pool             *pool = pool_open(db);

    (void)letter_put(pool, "pay", "k");
    letters_are_due(db);
    assert_int_equal(1, step(pool, TYPES(types)));
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.failed_operations where status = 'pending' and "
                                             "next_retry_at > pawl.now() + interval '50 minutes'"));
}

static ErrorCode deadlock_then_effect(Tx *tx, const char *key, const char *data, void *context, Error *reterr)
{
    int *runs = context;

    if (++*runs == 1)
        return db_run(tx, "do $$ begin raise exception 'unlucky' using errcode = '40P01'; end $$", DB_NONE, NULL,
                      reterr);
    return effect_insert(tx, key, data, context, reterr);
}

TEST(dead_letter_database_failure_inside_a_handler_is_run_again)
{
    int                  runs    = 0;
    const DeadLetterType types[] = {
        {"pay", deadlock_then_effect, &runs}
    };
    scoped(database_free) TestDatabase *db   = database_with_effect();
    scoped(pool_free) Pool             *pool = pool_open(db);

    (void)letter_put(pool, "pay", "k");
    letters_are_due(db);
    assert_int_equal(1, step(pool, TYPES(types)));
    assert_int_equal(2, runs);
    assert_int_equal(1, database_get_i64(db, "select count(*) from public.effect"));
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.failed_operations"
                                             " where status = 'resolved' and retry_count = 1"));
}

/* While the handler runs, its letter is deleted under it: the try must not leave its effect behind. */
static ErrorCode effect_while_deleted(Tx *tx, const char *key, const char *data, void *context, Error *reterr)
{
    TRY(effect_insert(tx, key, data, context, reterr));
    return db_run(tx, "delete from pawl.failed_operations", DB_NONE, NULL, reterr);
}

TEST(dead_letter_deleted_under_its_handler_rolls_back)
{
    static const DeadLetterType types[] = {
        {"pay", effect_while_deleted, NULL}
    };
    scoped(database_free) TestDatabase *db   = database_with_effect();
    scoped(pool_free) Pool             *pool = pool_open(db);

    (void)letter_put(pool, "pay", "k");
    letters_are_due(db);
    assert_int_equal(1, step(pool, TYPES(types)));
    assert_int_equal(0, database_get_i64(db, "select count(*) from public.effect"));
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.failed_operations where status = 'pending'"));
}

TEST(dead_letter_of_a_type_without_handler_stays_as_it_is)
{
    scoped(database_free) TestDatabase *db   = database_with_effect();
    scoped(pool_free) Pool             *pool = pool_open(db);

    (void)letter_put(pool, "unheard_of", "k");
    letters_are_due(db);
    assert_int_equal(0, step(pool, TYPES(working)));
    assert_int_equal(0, step(pool, (DeadLetterTypes){0}));
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.failed_operations"
                                             " where status = 'pending' and retry_count = 0 and lease = 0"));
}

TEST(dead_letter_step_takes_all_that_is_due)
{
    scoped(database_free) TestDatabase *db   = database_with_effect();
    scoped(pool_free) Pool             *pool = pool_open(db);

    database_exec(
        db, "select pawl.dead_letter_put(array['pay'], array[n::text], array['{}'::jsonb], array[''], array[''], 0)"
            " from generate_series(1, 25) n");
    assert_int_equal(25, step(pool, TYPES(working)));
    assert_int_equal(25, database_get_i64(db, "select count(*) from public.effect"));
}

/* ---- by hand ---- */

TEST(dead_letter_retry_refuses_what_is_resolved_or_running)
{
    scoped(database_free) TestDatabase *db    = database_with_effect();
    scoped(pool_free) Pool             *pool  = pool_open(db);
    scoped(arena_free) Arena           *arena = arena_new(ARENA_BYTES_DEFAULT);
    int64_t                             id    = letter_put(pool, "pay", "k");
    DeadLetter                          letter;
    Error                               error = {0};

    letters_are_due(db);
    database_exec(db, "select pawl.dead_letter_claim(array['pay'], 1, 60000, 3)");
    assert_code(ERR_CONFLICT, dead_letter_retry(pool, soon(), /* lock_ms= */ 0, arena, id, &letter, &error));
    assert_contains(error.text, "dead letter is retrying");
    database_exec(db, "update pawl.failed_operations set status = 'resolved', lease_until = null");
    assert_code(ERR_CONFLICT, dead_letter_retry(pool, soon(), /* lock_ms= */ 0, arena, id, &letter, &error));
    assert_contains(error.text, "dead letter is resolved");
    assert_code(ERR_NOT_FOUND, dead_letter_retry(pool, soon(), /* lock_ms= */ 0, arena, id + 1, &letter, &error));
    assert_contains(error.text, "not found");
    assert_contains(error.text, arena_print(arena, "dead letter %lld", (long long)id + 1));
}

TEST(dead_letter_delete_forgets_one)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(pool_free) Pool             *pool  = pool_open(db);
    scoped(arena_free) Arena           *arena = arena_new(ARENA_BYTES_DEFAULT);
    int64_t                             id = letter_put(pool, "pay", "a"), other = letter_put(pool, "pay", "b");
    DeadLetter                          letter;
    Error                               error = {0};

    assert_ok(dead_letter_delete(pool, soon(), /* lock_ms= */ 0, id, &error));
    assert_code(ERR_NOT_FOUND, dead_letter_delete(pool, soon(), /* lock_ms= */ 0, id, &error));
    assert_code(ERR_NOT_FOUND, dead_letter_find(pool, soon(), arena, id, &letter, &error));
    assert_string_equal("b", letter_find(pool, arena, other).operation_key);
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.failed_operations"));
}

static void assert_ids(Pool *pool, DeadLetterFilter filter, const char *expected)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    DeadLetter               *list;
    int                       count;
    Error                     error = {0};
    char                     *ids   = arena_text(arena, "");

    assert_ok(dead_letter_list(pool, soon(), arena, &filter, &list, &count, &error));
    for (int i = 0; i < count; i++)
        ids = arena_print(arena, "%s%s%lld", ids, i ? " " : "", (long long)list[i].id);
    assert_string_equal(expected, ids);
}

TEST(dead_letter_list_filters_and_pages)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(pool_free) Pool             *pool  = pool_open(db);
    scoped(arena_free) Arena           *arena = arena_new(ARENA_BYTES_DEFAULT);
    DeadLetter                         *list;
    int                                 count;
    Error                               error = {0};

    for (int i = 1; i <= 5; i++)
        (void)letter_put(pool, i % 2 ? "pay" : "refund", arena_print(arena, "%d", i));
    database_exec(db, "update pawl.failed_operations set status = 'resolved' where id = 5;"
                      "update pawl.failed_operations set status = 'failed' where id = 2");
    assert_ids(pool, (DeadLetterFilter){.limit = 10}, "4 3 2 1");
    assert_ids(pool, (DeadLetterFilter){.limit = 2}, "4 3");
    assert_ids(pool, (DeadLetterFilter){.limit = 2, .before = 3}, "2 1");
    assert_ids(pool, (DeadLetterFilter){.limit = 10, .type = "pay"}, "3 1");
    assert_ids(pool, (DeadLetterFilter){.limit = 10, .status = "resolved"}, "5");
    assert_ids(pool, (DeadLetterFilter){.limit = 10, .status = "failed", .type = "pay"}, "");
    assert_code(ERR_INVALID,
                dead_letter_list(pool, soon(), arena, &(DeadLetterFilter){.limit = 0}, &list, &count, &error));
    assert_code(ERR_INVALID, dead_letter_list(pool, soon(), arena, &(DeadLetterFilter){.limit = 10, .status = "lost"},
                                              &list, &count, &error));
    assert_contains(error.text, "status must be pending, retrying, failed or resolved, got \"lost\"");
}

TEST(dead_letter_put_refuses_what_is_not_json_or_too_long)
{
    scoped(database_free) TestDatabase *db   = database_new();
    scoped(pool_free) Pool             *pool = pool_open(db);
    char                                key[300];
    Error                               error = {0}, why = {.code = ERR_INTERNAL};
    int64_t                             id = -1;

    assert_code(ERR_INVALID, dead_letter_put(pool, soon(), &(DeadLetterNew){"pay", "k", "{", &why, 0}, &id, &error));
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = '\0';
    assert_int_not_equal(OK, dead_letter_put(pool, soon(), &(DeadLetterNew){"pay", key, "{}", &why, 0}, &id, &error));
    assert_int_equal(-1, id);
    assert_int_equal(0, database_get_i64(db, "select count(*) from pawl.failed_operations"));
}

TEST(dead_letter_statuses_are_those_of_the_table)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(arena_free) Arena           *arena = arena_new(ARENA_BYTES_DEFAULT);
    const char                         *check = database_get_text(
        db, "select pg_get_constraintdef(oid) from pg_constraint where conname = 'failed_operations_status_check'",
        arena);
    char *expected = arena_text(arena, "CHECK ((status = ANY (ARRAY[");

    for (int i = 0; dead_letter_statuses[i]; i++)
        expected = arena_print(arena, "%s%s'%s'::text", expected, i ? ", " : "", dead_letter_statuses[i]);
    assert_string_equal(arena_print(arena, "%s])))", expected), check);
}
