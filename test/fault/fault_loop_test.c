/*
 * fault_loop_test.c - the same scenarios with every call failing in turn: arm the n-th fault point, run the scenario, check the
 * equations, n + 1, until a run meets no fault. So no error path that a scenario can reach is left out by accident.
 *
 * After each run the same work is asked for once more without faults: it must end with exactly one effect, and the pool
 * must have all its connections back.
 */
#include <stdio.h>

#include "api/key.h"
#include "base/fault.h"
#include "bus/dead_letter.h"
#include "pg/migrate.h"
#include "sql.h"
#include "test/concurrency/keyed_insert.h"
#include "test/harness/database.h"
#include "test/harness/test.h"

#define FAULTS_MAX  2000 /* a scenario that meets more does not end */
#define DEADLINE_MS 60000

static Deadline soon(void)
{
    return deadline_in_ms(DEADLINE_MS);
}

/* A new one for each run, so that connecting is part of every scenario. */
static Pool *pool_open(const TestDatabase *db)
{
    Pool *pool  = NULL;
    Error error = {0};

    assert_ok(pool_new(&(PoolOptions){.conninfo = database_url(db), .size_max = 3}, &pool, &error));
    return pool;
}

static void pool_close(Pool *pool)
{
    PoolStatus status;

    pool_status(pool, &status);
    assert_int_equal(0, status.acquired + status.opening + status.waiting);
    assert_true(pool_drain(pool, soon()));
    pool_free(pool);
}

printf_like(2, 3) static int64_t count_of(TestDatabase *db, const char *format, ...)
{
    char    sql[256];
    va_list values;

    va_start(values, format);
    assert_true((size_t)vsnprintf(sql, sizeof sql, format, values) < sizeof sql);
    va_end(values);
    return database_get_i64(db, sql);
}

typedef ErrorCode Scenario(Pool *pool, TestDatabase *db, long n, Error *reterr);

/* One run with the n-th fault armed. Returns whether it was met; if not, the scenario must have gone well. */
static bool run_armed(Scenario *scenario, Pool *pool, TestDatabase *db, long n, ErrorCode *ret_code)
{
    Error error = {0};

    fault_arm_nth(n);
    *ret_code = scenario(pool, db, n, &error);
    bool hit  = fault_was_hit();
    fault_arm_nth(0);
    if (*ret_code != OK)
        assert_int_equal(*ret_code, error.code);
    if (!hit) /* nothing else may go wrong */
        assert_ok(*ret_code);
    return hit;
}

static void run_plain(Scenario *scenario, Pool *pool, TestDatabase *db, long n)
{
    Error error = {0};

    assert_ok(scenario(pool, db, n, &error));
}

/* ---- a keyed transaction ---- */

static ErrorCode insert_scenario(Pool *pool, TestDatabase *db, long n, Error *reterr)
{
    (void)db;
    return keyed_insert_run(pool, soon(), (KeyedInsert){.number = (int)n}, reterr);
}

TEST(fault_loop_keyed_insert_happens_once)
{
    scoped(database_free) TestDatabase *db  = database_new_empty();
    bool                                hit = true;
    long                                n   = 0;

    keyed_insert_prepare(database_url(db));
    while (hit && ++n < FAULTS_MAX) {
        Pool     *pool = pool_open(db);
        ErrorCode code;

        hit = run_armed(insert_scenario, pool, db, n, &code);
        /* One fault is one failure: the transaction is tried three more times. */
        assert_int_equal(OK, code);
        assert_int_equal(1, count_of(db, "select count(*) from inserted_log where number = %ld", n));
        run_plain(insert_scenario, pool, db, n);
        assert_int_equal(1, count_of(db, "select count(*) from inserted_log where number = %ld", n));
        pool_close(pool);
    }
    /* Connect, begin, two statements, before the commit, the commit, after it. */
    assert_in_range(n - 1, 7, 20);
}

/* ---- dead letters ---- */

static ErrorCode effect_insert(Tx *tx, const char *key, const char *data, void *context, Error *reterr)
{
    (void)context;
    return db_run(tx, "insert into public.effect values ($1, $2)", DB_ARGS(db_text(key), db_jsonb(data)), NULL, reterr);
}

static ErrorCode put_scenario(Pool *pool, TestDatabase *db, long n, Error *reterr)
{
    Error   why = {0};
    int64_t id;
    char    key[32];

    (void)db;
    snprintf(key, sizeof key, "k%ld", n);
    (void)fail(&why, ERR_TIMEOUT, "took too long");
    return dead_letter_put(pool, soon(), &(DeadLetterNew){"pay", key, "{}", &why, 0}, &id, reterr);
}

static ErrorCode step_scenario(Pool *pool, TestDatabase *db, long n, Error *reterr)
{
    static const DeadLetterType types[] = {
        {"pay", effect_insert, NULL}
    };
    int tried;

    (void)n;
    database_exec(
        db, "select pawl.dead_letter_retry(array(select id from pawl.failed_operations where status = 'pending'))");
    return dead_letter_step(pool, soon(),
                            (DeadLetterTypes){.list = types, .count = 1, .tries_max = 9, .lease_ms = 1000}, &tried,
                            reterr);
}

TEST(fault_loop_letter_is_put_once)
{
    scoped(database_free) TestDatabase *db  = database_new();
    bool                                hit = true;
    long                                n   = 0;

    while (hit && ++n < FAULTS_MAX) {
        Pool     *pool = pool_open(db);
        ErrorCode code;

        hit = run_armed(put_scenario, pool, db, n, &code);
        assert_int_equal(OK, code);
        run_plain(put_scenario, pool, db, n);
        assert_int_equal(1,
                         count_of(db, "select count(*) from pawl.failed_operations where operation_key = 'k%ld'", n));
        pool_close(pool);
    }
    assert_in_range(n - 1, 2, 20);
}

/* A claim whose answer was lost comes back when its lease ends. */
static void letter_await(Pool *pool, TestDatabase *db, long n)
{
    for (Deadline deadline = soon();; clock_sleep_ms(20)) {
        run_plain(step_scenario, pool, db, n);
        if (count_of(db,
                     "select count(*) from pawl.failed_operations where operation_key = 'k%ld' and status = 'resolved'",
                     n) == 1)
            return;
        assert_false(deadline_passed(deadline));
    }
}

TEST(fault_loop_letter_has_one_effect)
{
    scoped(database_free) TestDatabase *db  = database_new();
    bool                                hit = true;
    long                                n   = 0;

    database_exec(db, "create table public.effect (key text, data jsonb)");
    while (hit && ++n < FAULTS_MAX) {
        Pool     *pool = pool_open(db);
        ErrorCode code;

        run_plain(put_scenario, pool, db, n);
        pool_close(pool);
        pool = pool_open(db);
        hit  = run_armed(step_scenario, pool, db, n, &code);
        assert_int_equal(OK, code);
        letter_await(pool, db, n);
        assert_int_equal(1, count_of(db, "select count(*) from public.effect where key = 'k%ld'", n));
        pool_close(pool);
    }
    assert_in_range(n - 1, 8, 40);
}

/* ---- migrations ---- */

/* Two definitions go through the same code as all of them, and every call can fail within a minute. */
static Schema schema_small(void)
{
    static const SqlDefinition definitions[] = {
        {"base/one.sql", "1", "create or replace function pawl.one () returns integer language sql as 'select 1'",
         NULL},
        {"base/two.sql", "2", "create or replace function pawl.two () returns integer language sql as 'select 2'",
         NULL},
    };
    static Migration migrations[] = {
        {0},
        {2, "more", "2", "create table pawl.more ()"}
    };

    migrations[0] = schema_embedded.migrations[0];
    return (Schema){migrations, COUNT(migrations), definitions, COUNT(definitions)};
}

static ErrorCode migrate_scenario(Pool *pool, TestDatabase *db, long n, Error *reterr)
{
    Schema schema = schema_small();
    int    applied;

    (void)db, (void)n;
    return migrate_run(pool, &schema, soon(), &applied, reterr);
}

TEST(fault_loop_migrations_are_applied_once)
{
    Schema schema = schema_small();
    bool   hit    = true;
    long   n      = 0;

    while (hit && ++n < FAULTS_MAX) {
        scoped(database_free) TestDatabase *db    = database_new_empty();
        Pool                               *pool  = pool_open(db);
        Error                               error = {0};
        ErrorCode                           code;

        hit = run_armed(migrate_scenario, pool, db, n, &code);
        run_plain(migrate_scenario, pool, db, n);
        assert_ok(migrate_check(pool, &schema, soon(), &error));
        assert_int_equal(3, database_get_i64(db, "select pawl.one() + pawl.two()"));
        assert_int_equal(schema.migration_count, database_get_i64(db, "select count(*) from pawl.migration"));
        assert_int_equal(0, database_get_i64(db, "select count(*) from pg_locks where locktype = 'advisory' and "
                                                 "database = (select oid from pg_database where datname = "
                                                 "current_database())"));
        pool_close(pool);
    }
    assert_in_range(n - 1, 8, FAULTS_MAX);
}

/* ---- keys ---- */

static ErrorCode key_scenario(Pool *pool, TestDatabase *db, long n, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    char                      token[KEY_TOKEN_SIZE], name[32];
    int64_t                   id;
    Key                      *list;
    int                       count;

    (void)db;
    snprintf(name, sizeof name, "key%ld", n);
    TRY(key_create(pool, soon(), &(KeyNew){.name = name, .scopes = SCOPE_READ, .ttl_ms = 0}, token, &id, reterr));
    return key_list(pool, soon(), arena, KEY_LIST_MAX, 0, &list, &count, reterr);
}

TEST(fault_loop_key_is_made_once)
{
    scoped(database_free) TestDatabase *db  = database_new();
    bool                                hit = true;
    long                                n   = 0;

    while (hit && ++n < FAULTS_MAX) {
        Pool     *pool = pool_open(db);
        ErrorCode code;

        hit          = run_armed(key_scenario, pool, db, n, &code);
        int64_t rows = count_of(db, "select count(*) from pawl.api_key where name = 'key%ld'", n);
        if (code == OK)
            assert_int_equal(1, rows);
        else if (code == ERR_UNKNOWN)
            assert_in_range(rows, 0, 1);
        else
            assert_int_equal(0, rows);
        pool_close(pool);
    }
    assert_in_range(n - 1, 3, 40);
}
