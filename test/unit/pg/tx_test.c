/*
 * tx_test.c - the four verdicts of tx.h, each provoked on a real server.
 */
#include "pg/tx.h"

#include <stdio.h>
#include <string.h>

#include "pg/metric.h"
#include "test/harness/database.h"
#include "test/harness/proxy.h"
#include "test/harness/test.h"
#include "test/unit/pg/await.h"

typedef struct {
    TestDatabase *db;
    Proxy        *proxy;
    Pool         *pool;
    Arena        *arena;
} Fixture;

static Fixture fixture_new(void)
{
    Fixture fixture = {.db = database_new_empty(), .arena = arena_new(ARENA_BYTES_DEFAULT)};
    Error   error;

    database_exec(fixture.db, "create table public.done (key bigint primary key); create table public.log (n int)");
    fixture.proxy = proxy_new(database_url(fixture.db));
    assert_ok(pool_new(&(PoolOptions){.conninfo = proxy_url(fixture.proxy), .size_max = 4, .no_janitor = true},
                       &fixture.pool, &error));
    return fixture;
}

static void fixture_free(Fixture *fixture)
{
    pool_free(fixture->pool);
    arena_free(fixture->arena);
    proxy_free(fixture->proxy);
    database_free(fixture->db);
}

static TxOptions options_of(const Fixture *fixture)
{
    return (TxOptions){.name = "test", .deadline = deadline_in_ms(10000), .arena = fixture->arena};
}

/* Which statement to run in which try. */
typedef struct {
    int         tries;
    const char *first; /* run in the first try only, after the insert */
    const char *always;
} TryScript;

static ErrorCode script_body(Tx *tx, void *context, Error *reterr)
{
    TryScript *script = context;

    script->tries++;
    TRY(db_run(tx, "insert into public.log values (1)", DB_NONE, NULL, reterr));
    if (script->tries == 1 && script->first)
        TRY(db_run(tx, script->first, DB_NONE, NULL, reterr));
    if (script->always)
        TRY(db_run(tx, script->always, DB_NONE, NULL, reterr));
    return OK;
}

/* Inserting the key waits for a twin that is committing; then the work is done already. */
static ErrorCode keyed_body(Tx *tx, void *context, Error *reterr)
{
    int64_t fresh = 0;

    (void)context;
    TRY(db_run(tx, "insert into public.done values ($1) on conflict do nothing", DB_ARGS(db_i64(7)), &fresh, reterr));
    return fresh ? db_run(tx, "insert into public.log values (1)", DB_NONE, NULL, reterr) : OK;
}

typedef struct {
    int64_t value;
} Value;
#define VALUE_COLUMNS(X, T) X(T, I64, value)
DB_SHAPE(value, Value, VALUE_COLUMNS);

static int64_t log_count(const Fixture *fixture)
{
    return database_get_i64(fixture->db, "select count(*) from public.log");
}

TEST(tx_commits)
{
    Fixture   fixture = fixture_new();
    TxOptions options = options_of(&fixture);
    TryScript script  = {0};
    Error     error;

    assert_ok(tx_run(fixture.pool, &options, script_body, &script, &error));
    assert_int_equal(script.tries, 1);
    assert_int_equal(log_count(&fixture), 1);
    fixture_free(&fixture);
}

TEST(tx_final_error_rolls_back_and_keeps_the_connection)
{
    Fixture    fixture = fixture_new();
    TxOptions  options = options_of(&fixture);
    TryScript  script  = {.always = "select 1/0"};
    PoolStatus status;
    Error      error;

    assert_code(ERR_INVALID, tx_run(fixture.pool, &options, script_body, &script, &error));
    assert_string_equal(error.sqlstate, "22012");
    assert_int_equal(script.tries, 1);
    assert_int_equal(log_count(&fixture), 0);
    pool_status(fixture.pool, &status);
    assert_int_equal(status.idle, 1);
    fixture_free(&fixture);
}

TEST(tx_serialization_failure_is_run_again)
{
    Fixture   fixture = fixture_new();
    TxOptions options = options_of(&fixture);
    TryScript script  = {.first = "do $$ begin raise exception 'lost the race' using errcode = '40001'; end $$"};
    Error     error;

    assert_ok(tx_run(fixture.pool, &options, script_body, &script, &error));
    assert_int_equal(script.tries, 2);
    assert_int_equal(log_count(&fixture), 1);
    fixture_free(&fixture);
}

TEST(tx_is_run_four_times_at_most)
{
    Fixture   fixture = fixture_new();
    TxOptions options = options_of(&fixture);
    TryScript script  = {.always = "do $$ begin raise exception 'deadlock' using errcode = '40P01'; end $$"};
    Error     error;

    assert_code(ERR_BUSY, tx_run(fixture.pool, &options, script_body, &script, &error));
    assert_int_equal(script.tries, 4);
    assert_int_equal(log_count(&fixture), 0);
    fixture_free(&fixture);
}

TEST(tx_terminated_backend_is_evicted_and_run_again)
{
    Fixture   fixture = fixture_new();
    TxOptions options = options_of(&fixture);
    TryScript script  = {.first = "select pg_terminate_backend(pg_backend_pid())"};
    Error     error;

    assert_ok(tx_run(fixture.pool, &options, script_body, &script, &error));
    assert_int_equal(script.tries, 2);
    assert_int_equal(log_count(&fixture), 1);
    fixture_free(&fixture);
}

TEST(tx_lost_commit_is_resolved_by_the_key)
{
    static const ProxyMoment moments[] = {PROXY_CUT_BEFORE, PROXY_CUT_SENT, PROXY_CUT_ANSWERED};

    for (size_t i = 0; i < COUNT(moments); i++) {
        Fixture   fixture  = fixture_new();
        TxOptions options  = options_of(&fixture);
        int64_t   resolved = metric_value(&pg_metrics.commits_resolved);
        Error     error;

        options.keyed = true;
        proxy_cut_commit(fixture.proxy, moments[i], 1);
        assert_ok(tx_run(fixture.pool, &options, keyed_body, NULL, &error));
        assert_int_equal(log_count(&fixture), 1);
        assert_int_equal(metric_value(&pg_metrics.commits_resolved), resolved + 1);
        fixture_free(&fixture);
    }
}

/* ---- only the database settles a doubt ---- */

/* After a lost commit the second try fails in this way. */
typedef struct {
    int         tries;
    const char *sql; /* it fails with a SQLSTATE; NULL: by itself */
} Second;

static ErrorCode second_body(Tx *tx, void *context, Error *reterr)
{
    Second *second = context;

    if (++second->tries == 1)
        return keyed_body(tx, NULL, reterr);
    if (second->sql)
        return db_run(tx, second->sql, DB_NONE, NULL, reterr);
    return fail(reterr, ERR_LIMIT, "rows are larger than the request's memory");
}

static ErrorCode run_after_lost_commit(Fixture *fixture, const char *sql, Error *reterr)
{
    TxOptions options = options_of(fixture);
    Second    second  = {.sql = sql};
    ErrorCode code;

    options.keyed = true;
    proxy_cut_commit(fixture->proxy, PROXY_CUT_ANSWERED, 1);
    code = tx_run(fixture->pool, &options, second_body, &second, reterr);
    assert_int_equal(second.tries, 2);
    assert_int_equal(log_count(fixture), 1);
    return code;
}

TEST(tx_lost_commit_is_not_settled_by_a_failure_of_our_own)
{
    Fixture fixture = fixture_new();
    Error   error;

    assert_code(ERR_UNKNOWN, run_after_lost_commit(&fixture, NULL, &error));
    fixture_free(&fixture);
}

TEST(tx_lost_commit_is_not_settled_by_a_statement_that_cannot_run)
{
    Fixture fixture = fixture_new();
    Error   error;

    assert_code(ERR_UNKNOWN, run_after_lost_commit(&fixture, "select no_such_function()", &error));
    fixture_free(&fixture);
}

TEST(tx_lost_commit_is_settled_by_a_refusal_of_the_database)
{
    Fixture fixture = fixture_new();
    Error   error;

    assert_code(ERR_CONFLICT, run_after_lost_commit(&fixture, "insert into public.done values (7)", &error));
    assert_string_equal(error.sqlstate, "23505");
    fixture_free(&fixture);
}

/* ---- every try begins as the first one did ---- */

enum { HOG_BYTES = 60000 };

static ErrorCode hog_body(Tx *tx, void *context, Error *reterr)
{
    TryScript *script = context;

    if (!arena_has_space(tx->arena, HOG_BYTES))
        return fail(reterr, ERR_LIMIT, "no space in try %d", script->tries + 1);
    (void)arena_alloc(tx->arena, HOG_BYTES);
    return script_body(tx, context, reterr);
}

TEST(tx_gives_back_the_memory_of_a_try_before_the_next_one)
{
    Fixture                   fixture = fixture_new();
    scoped(arena_free) Arena *arena   = arena_new(100000); /* for one try, not for two */
    TxOptions                 options = options_of(&fixture);
    TryScript                 script  = {.first = "do $$ begin raise exception 'x' using errcode = '40001'; end $$"};
    Error                     error;

    options.arena = arena;
    assert_ok(tx_run(fixture.pool, &options, hog_body, &script, &error));
    assert_int_equal(script.tries, 2);
    assert_true(arena_used(arena) < 2 * HOG_BYTES);
    fixture_free(&fixture);
}

TEST(tx_parameter_that_does_not_fit_is_an_error_before_anything_is_sent)
{
    Fixture                   fixture         = fixture_new();
    scoped(arena_free) Arena *arena           = arena_new(10000);
    TxOptions                 options         = options_of(&fixture);
    static const char         long_text[9000] = {[0 ... 8998] = 'x'};
    const char               *texts[]         = {long_text, long_text};
    Error                     error;

    options.arena = arena;
    for (int i = 0; i < 2; i++) {
        DbArg arg = i ? db_bytea(arena, long_text, sizeof long_text) : db_texts(arena, texts, COUNT(texts));
        Value row;

        assert_code(ERR_LIMIT, db_call(fixture.pool, &options, "select count($1) as value", (DbArgs){&arg, 1},
                                       &value_shape, &row, &error));
        assert_contains(error.text, "parameters are larger");
    }
    fixture_free(&fixture);
}

TEST(tx_retries_are_the_pools)
{
    scoped(database_free) TestDatabase *db      = database_new_empty();
    scoped(arena_free) Arena           *arena   = arena_new(ARENA_BYTES_DEFAULT);
    scoped(pool_free) Pool             *pool    = NULL;
    PoolOptions                         options = {
                                .conninfo = database_url(db), .operation_retry = {.retries_max = 1, .delay_ms = 1, .delay_ms_max = 1}
    };
    TryScript script = {.always = "do $$ begin raise exception 'operator' using errcode = '57000'; end $$"};
    Error     error;

    database_exec(db, "create table public.log (n int)");
    assert_ok(pool_new(&options, &pool, &error));
    assert_code(ERR_BUSY, tx_run(pool, &(TxOptions){.name = "test", .deadline = deadline_in_ms(10000), .arena = arena},
                                 script_body, &script, &error));
    assert_int_equal(script.tries, 2);
}

TEST(tx_lost_commit_without_a_key_is_unknown)
{
    Fixture   fixture = fixture_new();
    TxOptions options = options_of(&fixture);
    TryScript script  = {0};
    Error     error;

    proxy_cut_commit(fixture.proxy, PROXY_CUT_ANSWERED, 1);
    assert_code(ERR_UNKNOWN, tx_run(fixture.pool, &options, script_body, &script, &error));
    assert_int_equal(script.tries, 1);
    assert_int_equal(log_count(&fixture), 1);
    fixture_free(&fixture);
}

static ErrorCode read_body(Tx *tx, void *context, Error *reterr)
{
    return db_get_i64(tx, "select count(*) as value from public.log", DB_NONE, context, reterr);
}

TEST(tx_lost_commit_of_a_reader_is_run_again)
{
    Fixture   fixture = fixture_new();
    TxOptions options = options_of(&fixture);
    int64_t   count   = -1;
    Error     error;

    options.read_only = true;
    proxy_cut_commit(fixture.proxy, PROXY_CUT_ANSWERED, 1);
    assert_ok(tx_run(fixture.pool, &options, read_body, &count, &error));
    assert_int_equal(count, 0);
    fixture_free(&fixture);
}

TEST(tx_read_only_cannot_write)
{
    Fixture   fixture = fixture_new();
    TxOptions options = options_of(&fixture);
    TryScript script  = {0};
    Error     error;

    options.read_only = true;
    options.tries_max = 1;
    assert_code(ERR_UNAVAILABLE, tx_run(fixture.pool, &options, script_body, &script, &error));
    assert_string_equal(error.sqlstate, "25006");
    fixture_free(&fixture);
}

TEST(tx_deadline_becomes_the_statement_timeout)
{
    Fixture   fixture = fixture_new();
    TxOptions options = options_of(&fixture);
    TryScript script  = {.always = "select pg_sleep(600)"};
    Mono      start   = clock_mono();
    Error     error;

    options.deadline = deadline_in_ms(300);
    assert_code(ERR_TIMEOUT, tx_run(fixture.pool, &options, script_body, &script, &error));
    assert_true(mono_ms_between(start, clock_mono()) < 2000 + test_stalled_ms());
    assert_int_equal(log_count(&fixture), 0);
    await(database_get_i64(fixture.db, "select count(*) from pg_stat_activity where datname = current_database()"
                                       " and state <> 'idle' and pid <> pg_backend_pid()") == 0);
    fixture_free(&fixture);
}

/* Uses up the request's time, then fails as a statement does that the server ends at its time limit. */
static ErrorCode time_limit_body(Tx *tx, void *context, Error *reterr)
{
    int *tries = context;

    ++*tries;
    clock_sleep_ms(deadline_left_ms(tx->deadline) - 50);
    return db_run(tx, "do $$ begin raise exception 'statement timeout' using errcode = '57014'; end $$", DB_NONE, NULL,
                  reterr);
}

static ErrorCode canceled_body(Tx *tx, void *context, Error *reterr)
{
    int *tries = context;

    if (++*tries > 1)
        return OK;
    return db_run(tx, "do $$ begin raise exception 'canceled' using errcode = '57014'; end $$", DB_NONE, NULL, reterr);
}

TEST(tx_statement_that_used_up_the_time_is_not_run_again)
{
    scoped(database_free) TestDatabase *db      = database_new_empty();
    scoped(arena_free) Arena           *arena   = arena_new(ARENA_BYTES_DEFAULT);
    scoped(pool_free) Pool             *pool    = NULL;
    PoolOptions                         options = {
                                .conninfo = database_url(db), .operation_retry = {.retries_max = 3, .delay_ms = 1, .delay_ms_max = 1}
    };
    int   tries = 0;
    Error error;

    assert_ok(pool_new(&options, &pool, &error));
    assert_code(ERR_TIMEOUT,
                tx_run(pool, &(TxOptions){.name = "test", .deadline = deadline_in_ms(3000), .arena = arena},
                       time_limit_body, &tries, &error));
    assert_int_equal(tries, 1);
    tries = 0; /* a cancel that leaves time is */
    assert_ok(tx_run(pool, &(TxOptions){.name = "test", .deadline = deadline_in_ms(60000), .arena = arena},
                     canceled_body, &tries, &error));
    assert_int_equal(tries, 2);
}

/* What is sent too late for the server's own answer could only end in doubt. */
TEST(call_without_time_for_an_answer_is_not_sent)
{
    Fixture   fixture = fixture_new();
    TxOptions options = options_of(&fixture);
    Value     value   = {-1};
    Error     error;

    assert_ok(db_call(fixture.pool, &options, "select 1::bigint as value", DB_NONE, &value_shape, &value, &error));
    for (int i = 0; i < 20; i++) {
        options.deadline = deadline_in_ms(i);
        assert_code(ERR_TIMEOUT,
                    db_call(fixture.pool, &options,
                            "with k as (insert into public.done values (3) returning 1) select 1::bigint as value",
                            DB_NONE, &value_shape, &value, &error));
    }
    assert_int_equal(database_get_i64(fixture.db, "select count(*) from public.done"), 0);
    fixture_free(&fixture);
}

static ErrorCode careless_body(Tx *tx, void *context, Error *reterr)
{
    Error ignored;

    (void)context;
    TRY(db_run(tx, "insert into public.log values (1)", DB_NONE, NULL, reterr));
    (void)!db_run(tx, "select 1/0", DB_NONE, NULL, &ignored);
    return OK;
}

TEST(tx_of_a_body_that_swallows_an_error_does_not_claim_success)
{
    Fixture   fixture = fixture_new();
    TxOptions options = options_of(&fixture);
    Error     error;

    assert_code(ERR_INTERNAL, tx_run(fixture.pool, &options, careless_body, NULL, &error));
    assert_int_equal(log_count(&fixture), 0);
    fixture_free(&fixture);
}

static ErrorCode hasty_body(Tx *tx, void *context, Error *reterr)
{
    (void)context;
    return db_run(tx, "rollback", DB_NONE, NULL, reterr);
}

TEST(tx_of_a_body_that_ends_its_transaction_does_not_claim_success)
{
    Fixture   fixture = fixture_new();
    TxOptions options = options_of(&fixture);
    Error     error;

    assert_code(ERR_INTERNAL, tx_run(fixture.pool, &options, hasty_body, NULL, &error));
    assert_contains(error.text, "by itself");
    fixture_free(&fixture);
}

static ErrorCode failing_body(Tx *tx, void *context, Error *reterr)
{
    int *tries = context;

    (void)tx;
    ++*tries;
    return fail(reterr, ERR_UNAVAILABLE, "a webhook did not answer");
}

TEST(tx_failure_of_the_body_itself_is_not_the_databases)
{
    Fixture    fixture = fixture_new();
    TxOptions  options = options_of(&fixture);
    int        tries   = 0;
    int64_t    lost    = metric_value(&pg_metrics.connections_lost);
    PoolStatus status;
    Error      error;

    for (int i = 0; i < 6; i++) /* six such failures would open the breaker if they counted */
        assert_code(ERR_UNAVAILABLE, tx_run(fixture.pool, &options, failing_body, &tries, &error));
    pool_status(fixture.pool, &status);
    assert_int_equal(tries, 6);
    assert_int_equal(status.breaker, BREAKER_CLOSED);
    assert_int_equal(status.idle, 1); /* the same connection each time */
    assert_int_equal(metric_value(&pg_metrics.connections_lost), lost);
    fixture_free(&fixture);
}

static const char settings_sql[] =
    "select count(*) as value from pg_settings where source = 'session' and name in ('statement_timeout', "
    "'lock_timeout',"
    " 'idle_in_transaction_session_timeout', 'transaction_isolation', 'default_transaction_read_only')";

TEST(tx_leaves_no_session_state_behind)
{
    Fixture                        fixture  = fixture_new();
    TxOptions                      options  = options_of(&fixture);
    TryScript                      script   = {0};
    scoped(pool_release) Checkout *checkout = NULL;
    int64_t                        count    = -1;
    Error                          error;

    assert_ok(tx_run(fixture.pool, &options, script_body, &script, &error));
    assert_ok(pool_acquire(fixture.pool, options.deadline, &checkout, &error));
    Tx tx = {.conn = checkout_conn(checkout), .arena = fixture.arena, .deadline = options.deadline};
    assert_ok(db_get_i64(&tx, settings_sql, DB_NONE, &count, &error));
    assert_int_equal(count, 0);
    pool_release(take(checkout));
    fixture_free(&fixture);
}

static ErrorCode littering_body(Tx *tx, void *context, Error *reterr)
{
    const char *last = context;

    TRY(db_run(tx, "set statement_timeout = 12345; select pg_advisory_lock(7)", DB_NONE, NULL, reterr));
    return db_run(tx, last, DB_NONE, NULL, reterr);
}

/* Of handlers and the bodies of a library's users: whether they end well, badly, or end the transaction by themselves. */
TEST(tx_of_foreign_code_leaves_no_session_state_behind)
{
    static const char *const ends[]  = {"select 1", "select 1/0", "commit"};
    Fixture                  fixture = fixture_new();
    TxOptions                options = options_of(&fixture);
    Error                    error;

    options.is_foreign = true;
    for (size_t i = 0; i < COUNT(ends); i++) {
        scoped(pool_release) Checkout *checkout = NULL;
        int64_t                        settings = -1, locks = -1;

        assert_int_equal(tx_run(fixture.pool, &options, littering_body, (void *)(uintptr_t)ends[i], &error) == OK,
                         i == 0);
        assert_ok(pool_acquire(fixture.pool, options.deadline, &checkout, &error));
        Tx tx = {.conn = checkout_conn(checkout), .arena = fixture.arena, .deadline = options.deadline};
        assert_ok(db_get_i64(&tx, settings_sql, DB_NONE, &settings, &error));
        assert_ok(db_get_i64(&tx,
                             "select count(*) as value from pg_locks where locktype = 'advisory' and "
                             "pid = pg_backend_pid()",
                             DB_NONE, &locks, &error));
        assert_int_equal(settings, 0);
        assert_int_equal(locks, 0);
        pool_release(take(checkout));
    }
    fixture_free(&fixture);
}

static const char outlive_sql[] =
    "do $$ begin perform set_config('client_connection_check_interval', '0', true);"
    " loop begin perform pg_sleep(60); exception when query_canceled then null; end; end loop; end $$";

static ErrorCode outliving_body(Tx *tx, void *context, Error *reterr)
{
    (void)context;
    return db_run(tx, outlive_sql, DB_NONE, NULL, reterr);
}

static int64_t outliving(const Fixture *fixture)
{
    return database_get_i64(fixture->db, "select count(*) from pg_stat_activity where query like 'do %' and "
                                         "datname = current_database() and state = 'active'");
}

/* It catches the cancel and the time limits, and the server does not look for the closed socket. */
TEST(tx_of_foreign_code_ends_what_outlives_its_deadline)
{
    Fixture    fixture = fixture_new();
    TxOptions  options = options_of(&fixture);
    PoolStatus status;
    Error      error;

    options.is_foreign = true;
    options.deadline   = deadline_in_ms(300);
    assert_code(ERR_TIMEOUT, tx_run(fixture.pool, &options, outliving_body, NULL, &error));
    assert_int_equal(outliving(&fixture), 1);
    pool_status(fixture.pool, &status);
    assert_int_equal(status.size, 1); /* its slot is taken until it is gone */
    await((pool_tend(fixture.pool), outliving(&fixture) == 0));
    await((pool_tend(fixture.pool), pool_status(fixture.pool, &status), status.size == 0));
    fixture_free(&fixture);
}

/* Another process of the same login may have its number by then. */
TEST(tx_of_foreign_code_spares_a_process_that_began_later)
{
    Fixture                        fixture = fixture_new();
    TxOptions                      options = options_of(&fixture);
    scoped(pool_release) Checkout *other   = NULL;
    int64_t                        pid     = 0;
    Error                          error;

    assert_ok(pool_acquire(fixture.pool, options.deadline, &other, &error));
    Tx tx = {.conn = checkout_conn(other), .arena = fixture.arena, .deadline = options.deadline};
    assert_ok(db_get_i64(&tx, "select pg_backend_pid()::bigint as value", DB_NONE, &pid, &error));
    checkout_runs_foreign(other, (int)pid);
    assert_ok(db_run(&tx, "select pg_sleep(0.01)", DB_NONE, NULL, &error));
    assert_ok(db_run(&tx, "begin isolation level repeatable read; select count(*) from public.log", DB_NONE, NULL,
                     &error)); /* it has a snapshot */
    assert_false(pool_drain(fixture.pool, deadline_in_ms(0)));
    (void)pool_tend(fixture.pool);
    (void)pool_tend(fixture.pool);
    assert_int_equal(database_get_i64(fixture.db,
                                      "select count(*) from pg_stat_activity where backend_xmin is not null "
                                      "and datname = current_database() and query like 'begin iso%'"),
                     1);
    pool_release(take(other));
    fixture_free(&fixture);
}

static ErrorCode path_body(Tx *tx, void *context, Error *reterr)
{
    return db_get_text(tx, "select current_setting('search_path') as value", DB_NONE, context, reterr);
}

/* The search_path of the login names what others can write to. */
TEST(tx_and_call_look_for_names_in_no_schema_of_others)
{
    static const char own[]   = "pg_catalog, pg_temp";
    Fixture           fixture = fixture_new();
    TxOptions         options = options_of(&fixture);
    const char       *path    = NULL;
    Error             error;

    database_exec(fixture.db, "do $$ begin execute format('alter database %I set search_path = trap, pg_catalog', "
                              "current_database()); end $$");
    assert_ok(tx_run(fixture.pool, &options, path_body, &path, &error));
    assert_string_equal(own, path);
    path = NULL;
    assert_ok(db_call(fixture.pool, &options, "select current_setting('search_path') as value", DB_NONE, &db_text_shape,
                      &path, &error));
    assert_string_equal(own, path);
    options.is_foreign = true;
    assert_ok(tx_run(fixture.pool, &options, path_body, &path, &error));
    assert_string_equal("trap, pg_catalog", path);
    fixture_free(&fixture);
}

TEST(call_lost_answer_is_unknown_without_a_key_and_run_again_with_one)
{
    static const char sql[]   = "with k as (insert into public.done values ($1) on conflict do nothing returning 1)"
                                " select count(*) as value from k";
    Fixture           fixture = fixture_new();
    TxOptions         options = options_of(&fixture);
    Value             value   = {-1};
    Error             error;

    proxy_cut_on(fixture.proxy, "insert into public.done", PROXY_CUT_ANSWERED, 1);
    assert_code(ERR_UNKNOWN, db_call(fixture.pool, &options, sql, DB_ARGS(db_i64(1)), &value_shape, &value, &error));
    assert_int_equal(database_get_i64(fixture.db, "select count(*) from public.done"), 1);
    assert_int_equal(value.value, -1);

    options.keyed = true;
    proxy_cut_on(fixture.proxy, "insert into public.done", PROXY_CUT_ANSWERED, 1);
    assert_ok(db_call(fixture.pool, &options, sql, DB_ARGS(db_i64(2)), &value_shape, &value, &error));
    assert_int_equal(value.value, 0); /* it was there */
    assert_int_equal(database_get_i64(fixture.db, "select count(*) from public.done"), 2);
    fixture_free(&fixture);
}
