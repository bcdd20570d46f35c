/*
 * migrate_test.c - the schema is migrated to the binary's version once, by however many processes at once, and every refusal is one sentence.
 */
#include "pg/migrate.h"

#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/sync.h"
#include "sql.h"
#include "test/harness/conninfo.h"
#include "test/harness/database.h"
#include "test/harness/server.h"
#include "test/harness/test.h"

#define THREADS 8

static Pool *pool_open(const char *url)
{
    Pool *pool  = NULL;
    Error error = {0};

    assert_ok(pool_new(&(PoolOptions){.conninfo = url, .size_min = 1, .size_max = 2}, &pool, &error));
    return pool;
}

static Deadline soon(void)
{
    return deadline_in_ms(60000);
}

/* A small schema whose first migration would fail, and whose second would leave two rows, if applied twice. */
static const Migration two_migrations[] = {
    {1, "table", "1", "create table pawl.thing (number integer);"                             },
    {2, "row",   "2", "insert into pawl.thing values (1);\ninsert into pawl.thing values (2);"},
};
static const SqlDefinition first_definitions[] = {
    {"x/f.sql", "1", "create or replace function pawl.f () returns integer language sql as 'select 1'"}
};
static const SqlDefinition second_definitions[] = {
    {"x/f.sql", "2", "create or replace function pawl.f () returns integer language sql as 'select 2'"}
};
static const Schema two_schema = {two_migrations, 2, first_definitions, 1};

/* Databases remember the checksums: those that the build computes have to be the same for the same text. */
TEST(migrate_embedded_checksums_are_those_of_the_texts)
{
    for (int i = 0; i < schema_embedded.migration_count; i++) {
        const Migration *migration = &schema_embedded.migrations[i];
        unsigned char    hash[crypto_hash_sha256_BYTES];
        char             hex[2 * sizeof hash + 1];

        crypto_hash_sha256(hash, (const unsigned char *)migration->sql, strlen(migration->sql));
        assert_string_equal(sodium_bin2hex(hex, sizeof hex, hash, sizeof hash), migration->checksum);
    }
}

TEST(migrate_applies_all_to_an_empty_database_then_nothing)
{
    scoped(database_free) TestDatabase *db      = database_new_empty();
    scoped(pool_free) Pool             *pool    = pool_open(database_url(db));
    int                                 applied = -1;
    Error                               error   = {0};

    assert_code(ERR_CONFLICT, migrate_check(pool, &schema_embedded, soon(), &error));
    assert_contains(error.text, "database schema is at version 0");
    assert_ok(migrate_run(pool, &schema_embedded, soon(), &applied, &error));
    assert_int_equal(schema_embedded.migration_count, applied);
    assert_ok(migrate_check(pool, &schema_embedded, soon(), &error));
    assert_ok(migrate_run(pool, &schema_embedded, soon(), &applied, &error));
    assert_int_equal(0, applied);
    assert_int_equal(schema_embedded.migration_count, database_get_i64(db, "select count(*) from pawl.migration"));
}

typedef struct {
    const char   *url;
    const Schema *schema;
    int           applied;
    ErrorCode     code;
    Error         error;
} Migrator;

static void *migrator_run(void *context)
{
    Migrator               *migrator = context;
    scoped(pool_free) Pool *pool     = NULL;

    migrator->code =
        pool_new(&(PoolOptions){.conninfo = migrator->url, .size_min = 1, .size_max = 1}, &pool, &migrator->error);
    if (migrator->code == OK)
        migrator->code =
            migrate_run(pool, migrator->schema, deadline_in_ms(60000), &migrator->applied, &migrator->error);
    return NULL;
}

/* Run all at once; the sum of what they applied. */
static int migrators_run(Migrator *migrators, int count)
{
    pthread_t threads[THREADS];
    int       applied = 0;

    assert_in_range(count, 1, THREADS);
    for (int i = 0; i < count; i++)
        threads[i] = thread_start("migrator", migrator_run, &migrators[i]);
    for (int i = 0; i < count; i++)
        thread_join(threads[i]);
    for (int i = 0; i < count; i++) {
        Error error = migrators[i].error;

        assert_ok(migrators[i].code);
        applied += migrators[i].applied;
    }
    return applied;
}

TEST(migrate_by_eight_at_once_applies_each_once)
{
    scoped(database_free) TestDatabase *db = database_new_empty();
    Migrator                            migrators[THREADS];

    for (int i = 0; i < THREADS; i++)
        migrators[i] = (Migrator){.url = database_url(db), .schema = &two_schema};
    assert_int_equal(2, migrators_run(migrators, THREADS));
    assert_int_equal(2, database_get_i64(db, "select count(*) from pawl.thing"));
    assert_int_equal(2, database_get_i64(db, "select count(*) from pawl.migration"));
}

/* As the first release after this one will do it: tables that exist and have rows are changed, by whichever pod comes first. */
TEST(migrate_applies_version_2_to_a_database_of_version_1)
{
    scoped(database_free) TestDatabase *db      = database_new();
    Migration                           both[2] = {
        schema_embedded.migrations[0],
        {2, "later", "2", "alter table pawl.task add column later integer; update pawl.task set later = 2;"}
    };
    Schema   later = schema_embedded;
    Migrator migrators[THREADS];
    Error    error = {0};

    later.migrations      = both;
    later.migration_count = 2;
    database_exec(db, "insert into pawl.task values ('seal', gen_random_uuid(), now())");
    for (int i = 0; i < THREADS; i++)
        migrators[i] = (Migrator){.url = database_url(db), .schema = &later};
    assert_int_equal(1, migrators_run(migrators, THREADS));
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.task where name = 'seal' and later = 2"));
    assert_int_equal(2, database_get_i64(db, "select max(version) from pawl.migration"));
    {
        scoped(pool_free) Pool *pool = pool_open(database_url(db));

        assert_ok(migrate_check(pool, &later, soon(), &error));
        assert_code(ERR_CONFLICT, migrate_check(pool, &schema_embedded, soon(), &error));
    }
    assert_string_equal("database schema is at version 2, this pawl knows 1: run a newer pawl", error.text);
}

/* Before the first release there were other migrations, and more of them. */
TEST(migrate_refuses_a_database_of_an_unreleased_pawl_and_writes_nothing)
{
    static const char *const written =
        "select (select count(*) from pg_class) + (select count(*) from pg_proc)"
        " + (select count(*) from pawl.migration) + (select count(*) from pawl.definition)";
    scoped(database_free) TestDatabase *db      = database_new();
    scoped(pool_free) Pool             *pool    = pool_open(database_url(db));
    int                                 applied = 0;
    Error                               error   = {0};

    database_exec(db,
                  "delete from pawl.migration; insert into pawl.migration (version, name, checksum)"
                  " select n, case n when 1 then 'base' else 'more' end, repeat('0', 64) from generate_series(1, 53) n;"
                  " update pawl.definition set checksum = repeat('0', 64)");
    int64_t before = database_get_i64(db, written);

    assert_code(ERR_CONFLICT, migrate_run(pool, &schema_embedded, soon(), &applied, &error));
    assert_string_equal("migration 1 \"base\" of the database differs from this pawl's: run the pawl that applied it, "
                        "or use a new database",
                        error.text);
    assert_code(ERR_CONFLICT, migrate_check(pool, &schema_embedded, soon(), &error));
    assert_int_equal(before, database_get_i64(db, written));
}

TEST(migrate_refuses_a_schema_newer_than_the_binary)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(pool_free) Pool             *pool = pool_open(database_url(db));
    Schema                              old  = two_schema;
    int                                 applied;
    Error                               error = {0};

    assert_ok(migrate_run(pool, &two_schema, soon(), &applied, &error));
    old.migration_count = 1;
    old.definitions     = second_definitions;
    assert_code(ERR_CONFLICT, migrate_run(pool, &old, soon(), &applied, &error));
    assert_string_equal("database schema is at version 2, this pawl knows 1: run a newer pawl", error.text);
    assert_code(ERR_CONFLICT, migrate_check(pool, &old, soon(), &error));
    assert_int_equal(1, database_get_i64(db, "select pawl.f()"));
}

TEST(migrate_refuses_a_text_changed_after_it_was_applied)
{
    scoped(database_free) TestDatabase *db         = database_new_empty();
    scoped(pool_free) Pool             *pool       = pool_open(database_url(db));
    Migration                           changed[2] = {
        two_migrations[0], {2, "row", "3", "insert into pawl.thing values (3);"}
    };
    int   applied;
    Error error = {0};

    assert_ok(migrate_run(pool, &two_schema, soon(), &applied, &error));
    assert_code(ERR_CONFLICT, migrate_run(pool, &(Schema){changed, 2, first_definitions, 1}, soon(), &applied, &error));
    assert_string_equal("migration 2 \"row\" of the database differs from this pawl's: run the pawl that applied it, "
                        "or use a new database",
                        error.text);
    assert_int_equal(2, database_get_i64(db, "select count(*) from pawl.thing"));
}

TEST(migrate_refuses_a_history_with_a_hole)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(pool_free) Pool             *pool = pool_open(database_url(db));
    int                                 applied;
    Error                               error = {0};

    assert_ok(migrate_run(pool, &two_schema, soon(), &applied, &error));
    database_exec(db, "delete from pawl.migration where version = 1");
    assert_code(ERR_CONFLICT, migrate_run(pool, &two_schema, soon(), &applied, &error));
    assert_contains(error.text, "migration 1 is missing");
}

TEST(migrate_failure_names_the_migration_and_leaves_the_one_before)
{
    scoped(database_free) TestDatabase *db     = database_new_empty();
    scoped(pool_free) Pool             *pool   = pool_open(database_url(db));
    Migration                           bad[2] = {
        two_migrations[0], {2, "bad", "3", "insert into pawl.thing values (1); insert into pawl.nothing values (1);"}
    };
    int   applied;
    Error error = {0};

    assert_int_not_equal(OK, migrate_run(pool, &(Schema){bad, 2, first_definitions, 1}, soon(), &applied, &error));
    assert_string_equal("migration 2 \"bad\": relation \"pawl.nothing\" does not exist", error.text);
    assert_string_equal("42P01", error.sqlstate);
    assert_int_equal(1, database_get_i64(db, "select max(version) from pawl.migration"));
    assert_int_equal(0, database_get_i64(db, "select count(*) from pawl.thing"));
}

/* What of a user stands in the way of a change is named, and what to do about it; once it is gone, the migration is applied. */
TEST(migrate_names_the_view_that_keeps_a_table_from_being_changed)
{
    static const struct {
        const char *create, *name, *change;
    } rows[] = {
        {"create view public.seen as select number from pawl.thing",              "view public.seen depends on",
         "alter table pawl.thing alter column number type bigint"                                                                       },
        {"create materialized view public.seen as select number from pawl.thing",
         "materialized view public.seen depends on",                                                             "drop table pawl.thing"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped(database_free) TestDatabase *db      = database_new_empty();
        scoped(pool_free) Pool             *pool    = pool_open(database_url(db));
        Migration                           both[2] = {
            two_migrations[0], {2, "change", "3", rows[i].change}
        };
        Schema schema = {both, 1, first_definitions, 1};
        Error  error  = {0};
        int    applied;

        assert_ok(migrate_run(pool, &schema, soon(), &applied, &error));
        database_exec(db, rows[i].create);
        schema.migration_count = 2;
        assert_int_not_equal(OK, migrate_run(pool, &schema, soon(), &applied, &error));
        assert_contains(error.text, rows[i].name);
        assert_contains(error.text, "drop it, migrate, then create it again");
        assert_contains(error.text, "migration 2 \"change\": cannot ");
        database_exec(db, i == 0 ? "drop view public.seen" : "drop materialized view public.seen");
        assert_ok(migrate_run(pool, &schema, soon(), &applied, &error));
    }
}

TEST(migrate_applies_definitions_again_when_their_text_changed)
{
    scoped(database_free) TestDatabase *db      = database_new_empty();
    scoped(pool_free) Pool             *pool    = pool_open(database_url(db));
    Schema                              changed = {two_migrations, 2, second_definitions, 1};
    int                                 applied;
    Error                               error = {0};

    assert_ok(migrate_run(pool, &two_schema, soon(), &applied, &error));
    assert_int_equal(1, database_get_i64(db, "select pawl.f()"));
    assert_code(ERR_CONFLICT, migrate_check(pool, &changed, soon(), &error));
    assert_contains(error.text, "functions in the database differ");
    assert_ok(migrate_run(pool, &changed, soon(), &applied, &error));
    assert_int_equal(0, applied);
    assert_int_equal(2, database_get_i64(db, "select pawl.f()"));
    assert_ok(migrate_check(pool, &changed, soon(), &error));
}

TEST(migrate_bad_definition_changes_none_of_them)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(pool_free) Pool             *pool  = pool_open(database_url(db));
    SqlDefinition                       bad[] = {
        second_definitions[0], {"x/g.sql", "3", "create functoin"}
    };
    int   applied;
    Error error = {0};

    assert_ok(migrate_run(pool, &two_schema, soon(), &applied, &error));
    assert_int_not_equal(OK, migrate_run(pool, &(Schema){two_migrations, 2, bad, 2}, soon(), &applied, &error));
    assert_contains(error.text, "definition \"x/g.sql\": syntax error");
    assert_int_equal(1, database_get_i64(db, "select pawl.f()"));
}

/* A stand-in for an extension; a renamed row of pg_extension is one that is installed, as far as migrate can tell. */
TEST(migrate_leaves_out_a_definition_where_its_extension_is_installed)
{
    static const char *const has_g =
        "select count(*) from pg_proc where proname = 'g' and pronamespace = 'pawl'::regnamespace";
    scoped(database_free) TestDatabase *db            = database_new_empty();
    scoped(pool_free) Pool             *pool          = pool_open(database_url(db));
    SqlDefinition                       definitions[] = {
        first_definitions[0],
        {"x/g.sql", "3", "create or replace function pawl.g () returns integer language sql as 'select 1'",
             "elsewhere"}
    };
    Schema schema = {two_migrations, 2, definitions, 2};
    int    applied;
    Error  error = {0};

    database_exec(db, "update pg_extension set extname = 'elsewhere' where extname = 'plpgsql'");
    assert_ok(migrate_run(pool, &schema, soon(), &applied, &error));
    assert_int_equal(1, database_get_i64(db, "select pawl.f()"));
    assert_int_equal(0, database_get_i64(db, has_g));
    assert_ok(migrate_check(pool, &schema, soon(), &error));

    /* It goes: what stood in for it comes. */
    database_exec(db, "update pg_extension set extname = 'plpgsql' where extname = 'elsewhere'");
    assert_code(ERR_CONFLICT, migrate_check(pool, &schema, soon(), &error));
    assert_ok(migrate_run(pool, &schema, soon(), &applied, &error));
    assert_int_equal(1, database_get_i64(db, has_g));

    /* It comes back: nobody removes what is there, and nobody applies it again. */
    database_exec(db, "update pg_extension set extname = 'elsewhere' where extname = 'plpgsql'; drop function pawl.g");
    assert_code(ERR_CONFLICT, migrate_check(pool, &schema, soon(), &error));
    assert_ok(migrate_run(pool, &schema, soon(), &applied, &error));
    assert_ok(migrate_check(pool, &schema, soon(), &error));
    assert_int_equal(0, database_get_i64(db, has_g));
}

/* Where PGMQ itself lives, nothing of ours touches it. */
TEST(migrate_does_not_touch_schema_pgmq_where_the_extension_is_installed)
{
    static const char *const in_pgmq =
        "select (select count(*) from pg_proc where pronamespace = to_regnamespace('pgmq'))"
        " + (select count(*) from pg_class where relnamespace = to_regnamespace('pgmq'))"
        " + (select count(*) from pg_type where typnamespace = to_regnamespace('pgmq'))"
        " + (select count(*) from pg_default_acl)";
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(pool_free) Pool             *pool = pool_open(database_url(db));
    int                                 applied;
    Error                               error = {0};

    database_exec(db, "create extension hstore; update pg_extension set extname = 'pgmq' where extname = 'hstore'");
    database_exec(db, "create schema pgmq");
    assert_ok(migrate_run(pool, &schema_embedded, soon(), &applied, &error));
    assert_int_equal(0, database_get_i64(db, in_pgmq));
    assert_int_equal(1,
                     database_get_i64(db,
                                      "select count(*) from pg_namespace where nspname = 'pgmq' and nspacl is null"));

    database_exec(db, "drop schema pgmq");
    database_exec(db, "update pg_extension set extname = 'hstore' where extname = 'pgmq'");
    assert_ok(migrate_run(pool, &schema_embedded, soon(), &applied, &error));
    database_exec(db, "select pgmq.create('q')");
    assert_int_equal(1, database_get_i64(db, "select pgmq.send('q', '1')"));
}

TEST(migrate_waits_for_another_process_until_its_deadline)
{
    scoped(database_free) TestDatabase *db     = database_new_empty();
    scoped(pool_free) Pool             *pool   = pool_open(database_url(db));
    PGconn                             *holder = database_connect(db);
    int                                 applied;
    Error                               error = {0};

    /* Any login can take an advisory lock, for ever: this one was that of migrations once. */
    PQclear(PQexec(holder, "select pg_advisory_lock(x'7061776c'::integer, 1)"));
    assert_ok(migrate_run(pool, &(Schema){two_migrations, 1, NULL, 0}, soon(), &applied, &error));
    PQclear(PQexec(holder, "begin; lock table pawl.migration in share row exclusive mode"));
    assert_code(ERR_BUSY, migrate_run(pool, &two_schema, deadline_in_ms(600), &applied, &error));
    assert_string_equal("another process is migrating", error.text);
    PQfinish(holder);
    assert_ok(migrate_run(pool, &two_schema, soon(), &applied, &error));
    assert_int_equal(1, applied);
}

/* Two views, of which a second version replaces the last one and has one more function. */
#define VIEW_FIRST \
    "create or replace view pawl.first as select number from pawl.thing; comment on view pawl.first is '1';"
#define VIEW_SEEN "create or replace view pawl.seen as select number from pawl.thing; comment on view pawl.seen is '1';"
#define VIEW_SEEN_2 \
    "create or replace view pawl.seen as select number, 2 as n from pawl.thing; comment on view pawl.seen is '2';"
static const SqlDefinition views_first[] = {
    {"x/first.sql", "1", VIEW_FIRST, NULL, "pawl.first"},
    {"x/seen.sql",  "1", VIEW_SEEN,  NULL, "pawl.seen" },
};
static const SqlDefinition views_second[] = {
    {"x/first.sql", "2", VIEW_FIRST,  NULL, "pawl.first"},
    {"x/seen.sql",  "2", VIEW_SEEN_2, NULL, "pawl.seen" },
};
static const Schema views_schema        = {two_migrations, 2, views_first, 2};
static const Schema views_schema_second = {two_migrations, 2, views_second, 2};

/* A transaction that has read this view, and stays open. */
static PGconn *reader_open(const TestDatabase *db, const char *views)
{
    PGconn *reader = database_connect(db);
    char    sql[256];

    snprintf(sql, sizeof sql, "set application_name = 'report'; begin; select from %s", views);
    PQclear(PQexec(reader, sql));
    assert_int_equal(PQTRANS_INTRANS, PQtransactionStatus(reader));
    return reader;
}

/* Applications read the ledger's views in transactions of their own, of any length. */
TEST(migrate_waits_for_no_reader_of_a_view_that_stays_as_it_is)
{
    scoped(database_free) TestDatabase *db     = database_new();
    scoped(pool_free) Pool             *pool   = pool_open(database_url(db));
    PGconn                             *reader = reader_open(db, "pawl.audit, wallet.state, wallet.holds, pawl.domain");
    int                                 applied;
    Error                               error = {0};

    database_exec(db, "update pawl.definition set checksum = repeat('0', 64)");
    assert_code(ERR_CONFLICT, migrate_check(pool, &schema_embedded, soon(), &error));
    assert_ok(migrate_run(pool, &schema_embedded, deadline_in_ms(40000), &applied, &error));
    assert_ok(migrate_check(pool, &schema_embedded, soon(), &error));
    PQfinish(reader);
}

/* A view that is gone is made again, although its text is the same. */
TEST(migrate_makes_a_view_again_that_was_dropped)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(pool_free) Pool             *pool = pool_open(database_url(db));
    int                                 applied;
    Error                               error = {0};

    assert_ok(migrate_run(pool, &views_schema, soon(), &applied, &error));
    database_exec(db, "drop view pawl.seen; update pawl.definition set checksum = '0'");
    assert_ok(migrate_run(pool, &views_schema, soon(), &applied, &error));
    assert_int_equal(2, database_get_i64(db, "select count(*) from pawl.seen"));
}

/* The first view is replaced at once and its lock held while the second one's is waited for: for a moment, again and again. */
TEST(migrate_that_does_not_get_a_lock_lets_others_through_until_it_gets_it)
{
    static const char *const waits =
        "select count(*) from pg_locks where relation = 'pawl.seen'::regclass and not granted";
    scoped(database_free) TestDatabase *db       = database_new_empty();
    scoped(pool_free) Pool             *pool     = pool_open(database_url(db));
    Migrator                            migrator = {.url = database_url(db), .schema = &views_schema_second};
    Error                               error    = {0};
    int                                 applied, tries = 0;

    assert_ok(migrate_run(pool, &views_schema, soon(), &applied, &error));

    PGconn   *reader = reader_open(db, "pawl.seen");
    pthread_t thread = thread_start("migrator", migrator_run, &migrator);

    database_exec(db, "set statement_timeout = '20s'"); /* of a migrator that would wait for a minute */
    for (Deadline limit = deadline_in_ms(45000); tries < 3 && !deadline_passed(limit); clock_sleep_ms(1)) {
        if (database_get_i64(db, waits) == 0)
            continue;
        assert_int_equal(2, database_get_i64(db, "select count(*) from pawl.first"));
        assert_int_equal(2, database_get_i64(db, "select count(*) from pawl.seen"));
        tries++;
    }
    PQfinish(reader);
    thread_join(thread);
    error = migrator.error;
    assert_ok(migrator.code);
    assert_int_equal(3, tries);
    assert_int_equal(4, database_get_i64(db, "select sum(n) from pawl.seen"));
}

TEST(migrate_that_gives_up_names_the_transaction_that_has_the_lock)
{
    scoped(database_free) TestDatabase *db      = database_new_empty();
    scoped(pool_free) Pool             *pool    = pool_open(database_url(db));
    Migration                           both[3] = {
        two_migrations[0], two_migrations[1], {3, "wider", "3", "alter table pawl.thing add column more integer"}
    };
    Schema wider = {both, 3, views_first, 2};
    int    applied;
    Error  error = {0};
    char   text[128];

    assert_ok(migrate_run(pool, &views_schema, soon(), &applied, &error));

    PGconn *reader = reader_open(db, "pawl.seen");

    snprintf(text, sizeof text, "process %d of user \"postgres\" (\"report\"), in a transaction since 20",
             PQbackendPID(reader));
    assert_code(ERR_BUSY, migrate_run(pool, &views_schema_second, deadline_in_ms(1000), &applied, &error));
    assert_contains(error.text, "cannot apply \"x/seen.sql\": ");
    assert_contains(error.text, text);
    assert_contains(error.text, "has locked what it changes: end that, or migrate later");
    assert_code(ERR_BUSY, migrate_run(pool, &wider, deadline_in_ms(1000), &applied, &error));
    assert_contains(error.text, "cannot apply \"wider\": ");
    assert_contains(error.text, text);
    PQfinish(reader);
    assert_ok(migrate_run(pool, &wider, soon(), &applied, &error));
}

/* Before there is a table to lock, the one that creates it has the lock. */
TEST(migrate_of_an_empty_database_waits_for_the_process_that_creates_the_schema)
{
    scoped(database_free) TestDatabase *db     = database_new_empty();
    scoped(pool_free) Pool             *pool   = pool_open(database_url(db));
    PGconn                             *holder = database_connect(db);
    int                                 applied;
    Error                               error = {0};

    PQclear(PQexec(holder, "begin; create schema pawl"));
    assert_code(ERR_BUSY, migrate_run(pool, &two_schema, deadline_in_ms(900), &applied, &error));
    assert_string_equal("another process is migrating", error.text);
    PQfinish(holder);
    assert_ok(migrate_run(pool, &two_schema, soon(), &applied, &error));
    assert_int_equal(2, applied);
}

/* Every call on the way fails once, in turn: whatever migrate_run() said then, the next one ends at the right place. */
TEST(migrate_survives_every_fault)
{
    bool hit = true;

    for (long n = 1; hit; n++) {
        scoped(database_free) TestDatabase *db   = database_new_empty();
        scoped(pool_free) Pool             *pool = pool_open(database_url(db));
        int                                 applied;
        Error                               error = {0};

        fault_arm_nth(n);
        (void)!migrate_run(pool, &two_schema, soon(), &applied, &error);
        hit = fault_was_hit();
        fault_arm_nth(0);
        assert_ok(migrate_run(pool, &two_schema, soon(), &applied, &error));
        assert_int_equal(2, database_get_i64(db, "select count(*) from pawl.thing"));
        assert_ok(migrate_check(pool, &two_schema, soon(), &error));
        assert_in_range(n, 1, 500);
    }
}

TEST(migrate_status_says_what_is_applied_pending_changed_and_unknown)
{
    scoped(database_free) TestDatabase *db         = database_new_empty();
    scoped(pool_free) Pool             *pool       = pool_open(database_url(db));
    scoped(arena_free) Arena           *arena      = arena_new(ARENA_BYTES_DEFAULT);
    Migration                           changed[3] = {
        two_migrations[0], {2, "row",  "3", "select 1"},
         {3, "more", "4", "select 1"}
    };
    MigrationStatus *list;
    int              count, applied;
    Error            error = {0};

    assert_ok(migrate_status(pool, &two_schema, soon(), arena, &list, &count, &error));
    assert_int_equal(2, count);
    assert_string_equal("pending", list[0].state);
    assert_null(list[0].applied_at);

    assert_ok(migrate_run(pool, &two_schema, soon(), &applied, &error));
    assert_ok(migrate_status(pool, &(Schema){changed, 3, NULL, 0}, soon(), arena, &list, &count, &error));
    assert_int_equal(3, count);
    assert_string_equal("applied", list[0].state);
    assert_string_equal("table", list[0].name);
    assert_int_equal(24, strlen(list[0].applied_at)); /* 2026-11-15T07:41:22.123Z */
    assert_string_equal("changed", list[1].state);
    assert_string_equal("pending", list[2].state);

    assert_ok(migrate_status(pool, &(Schema){two_migrations, 1, NULL, 0}, soon(), arena, &list, &count, &error));
    assert_int_equal(2, count);
    assert_string_equal("unknown", list[1].state);
    assert_int_equal(2, list[1].version);
}

/* A login role of this test alone; roles belong to the whole cluster. */
static void role_url(const TestDatabase *db, const char *role, char *ret_url)
{
    conninfo_change(database_url(db), ret_url, "user", role, NULL);
}

TEST(migrate_without_rights_says_what_to_grant)
{
    scoped(database_free) TestDatabase *db = database_new_empty();
    char                                role[64], sql[128], url[CONNINFO_SIZE];
    int                                 applied;
    Error                               error = {0};

    snprintf(role, sizeof role, "nobody_%d", (int)getpid());
    snprintf(sql, sizeof sql, "create role %s login", role);
    database_exec(db, sql);
    role_url(db, role, url);
    {
        scoped(pool_free) Pool *pool = pool_open(url);

        assert_code(ERR_DENIED, migrate_run(pool, &two_schema, soon(), &applied, &error));
    }
    assert_contains(error.text, "may not create schema in database \"test_");
    assert_contains(error.text, ": grant create on database \"");
    assert_contains(error.text, role);
    database_exec(db, "create schema pawl");
    {
        scoped(pool_free) Pool *pool = pool_open(url);

        assert_code(ERR_DENIED, migrate_run(pool, &two_schema, soon(), &applied, &error));
    }
    assert_contains(error.text, "may not create tables in schema \"pawl\": grant create on schema \"pawl\" to ");
    snprintf(sql, sizeof sql, "drop role %s", role);
    database_exec(db, sql);
}

/* The owner of a schema may replace the functions that pawl creates there, and they run with the rights of pawl's login. */
TEST(migrate_refuses_a_schema_of_a_role_that_may_not_act_as_the_user)
{
    static const char *const            names[] = {"pawl", "pgmq", "rating", "wallet"};
    scoped(database_free) TestDatabase *db      = database_new_empty();
    scoped(pool_free) Pool             *pool    = pool_open(database_url(db));
    Schema                              changed = {two_migrations, 2, second_definitions, 1};
    char                                role[64], sql[256];
    int                                 applied;
    Error                               error = {0};

    snprintf(role, sizeof role, "stranger_%d", (int)getpid());
    snprintf(sql, sizeof sql, "create role %s", role);
    database_exec(db, sql);
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(sql, sizeof sql, "create schema %s authorization %s", names[i], role);
        database_exec(db, sql);
        assert_code(ERR_REFUSED, migrate_run(pool, &two_schema, soon(), &applied, &error));
        snprintf(sql, sizeof sql, "schema \"%s\" belongs to \"%s\"", names[i], role);
        assert_contains(error.text, sql);
        snprintf(sql, sizeof sql, "drop schema %s", names[i]);
        database_exec(db, sql);
    }
    assert_ok(migrate_run(pool, &two_schema, soon(), &applied, &error));
    snprintf(sql, sizeof sql, "alter schema pawl owner to %s; alter table pawl.migration owner to %s", role, role);
    database_exec(db, sql);
    assert_ok(migrate_run(pool, &changed, soon(), &applied, &error)); /* an administrator migrates for the owner */
    assert_int_equal(2, database_get_i64(db, "select pawl.f()"));
    snprintf(sql, sizeof sql, "drop owned by %s cascade; drop role %s", role, role);
    database_exec(db, sql);
}

/* Anything that the functions of a migration find by its name. Pods of a schema that is current still start. */
TEST(migrate_creates_nothing_beside_functions_of_others)
{
    static const char *const            extended = "select count(*) from pg_extension where extname = 'hstore'";
    scoped(database_free) TestDatabase *db       = database_new_empty();
    scoped(pool_free) Pool             *pool     = pool_open(database_url(db));
    Schema                              changed  = {two_migrations, 2, second_definitions, 1};
    char                                role[64], sql[256];
    int                                 applied;
    Error                               error = {0};

    assert_ok(migrate_run(pool, &two_schema, soon(), &applied, &error));
    snprintf(role, sizeof role, "stranger_%d", (int)getpid());
    snprintf(sql, sizeof sql,
             "create role %s; create function pawl.mine(a text) returns int language sql as 'select 1'; alter function "
             "pawl.mine owner to %s",
             role, role);
    database_exec(db, sql);
    assert_ok(migrate_run(pool, &two_schema, soon(), &applied, &error));
    assert_code(ERR_REFUSED, migrate_run(pool, &changed, soon(), &applied, &error));
    assert_contains(
        error.text,
        "function pawl.mine(text) is in a schema of pawl's, and is not pawl's: run drop function pawl.mine");
    snprintf(sql, sizeof sql, "drop function pawl.mine(text); drop role %s", role);
    database_exec(db, sql);
    database_exec(db, "do 'begin if exists (select from pg_available_extensions where name = $$hstore$$) then "
                      "create extension hstore schema pawl; end if; end'");
    if (database_get_i64(db, extended)) {
        assert_code(ERR_REFUSED, migrate_run(pool, &changed, soon(), &applied, &error));
        assert_contains(error.text, "of extension \"hstore\" is in a schema of pawl's, and is not pawl's: run alter "
                                    "extension hstore set schema public");
        database_exec(db, "alter extension hstore set schema public");
    }
    assert_ok(migrate_run(pool, &changed, soon(), &applied, &error));
}

/* A pod that only works needs no more than pawl_app, once someone else has migrated. */
TEST(migrate_of_a_current_schema_needs_only_pawl_app)
{
    scoped(database_free) TestDatabase *db = database_new();
    char                                role[64], sql[160], url[CONNINFO_SIZE];
    int                                 applied = -1;
    Error                               error   = {0};

    snprintf(role, sizeof role, "pod_%d", (int)getpid());
    snprintf(sql, sizeof sql, "create role %s login in role pawl_app", role);
    database_exec(db, sql);
    role_url(db, role, url);
    {
        scoped(pool_free) Pool *pool = pool_open(url);

        assert_ok(migrate_run(pool, &schema_embedded, soon(), &applied, &error));
        assert_ok(migrate_check(pool, &schema_embedded, soon(), &error));
    }
    assert_int_equal(0, applied);
    snprintf(sql, sizeof sql, "drop role %s", role);
    database_exec(db, sql);
}

static void server_exec(TestServer *server, const char *dbname, const char *sql)
{
    PGconn   *conn   = PQconnectdb(test_server_url(server, dbname));
    PGresult *result = PQexec(conn, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    PQclear(result);
    PQfinish(conn);
}

static int server_count(TestServer *server, const char *dbname, const char *sql)
{
    PGconn   *conn   = PQconnectdb(test_server_url(server, dbname));
    PGresult *result = PQexec(conn, sql);
    int       rows   = PQntuples(result);

    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    PQclear(result);
    PQfinish(conn);
    return rows;
}

/* Roles are shared by all databases of a server, the lock of migrations is not: they are made while others make them. */
TEST(migrate_of_several_databases_at_once_makes_the_roles_once)
{
    scoped(test_server_free) TestServer *server = test_server_new((TestServerOptions){.unix_url = true});
    char                                 urls[THREADS][CONNINFO_SIZE], name[16], sql[64];
    Migrator                             migrators[THREADS];

    for (int i = 0; i < THREADS; i++) {
        snprintf(name, sizeof name, "d%d", i);
        snprintf(sql, sizeof sql, "create database %s", name);
        server_exec(server, "postgres", sql);
        snprintf(urls[i], sizeof urls[i], "%s", test_server_url(server, name));
        migrators[i] = (Migrator){.url = urls[i], .schema = &schema_embedded};
    }
    assert_int_equal(THREADS * schema_embedded.migration_count, migrators_run(migrators, THREADS));
    assert_int_equal(9, server_count(server, "postgres", "select from pg_roles where rolname like 'pawl\\_%'"));
}

TEST(migrate_without_the_right_to_create_roles_goes_on_and_grants_later)
{
    static const char *const may = "select where has_function_privilege('pawl_app', 'pawl.extend(bigint[], bigint[], "
                                   "integer, boolean)', 'execute')"
                                   " and not has_function_privilege('pawl_reader', 'pawl.extend(bigint[], bigint[], "
                                   "integer, boolean)', 'execute')";
    scoped(test_server_free) TestServer *server = test_server_new((TestServerOptions){.unix_url = true});
    char                                 url[CONNINFO_SIZE];
    Migrator                             migrator = {.url = url, .schema = &schema_embedded};

    server_exec(server, "postgres", "create role plain login");
    server_exec(server, "postgres", "create database d owner plain");
    conninfo_change(test_server_url(server, "d"), url, "user", "plain", NULL);
    assert_int_equal(schema_embedded.migration_count, migrators_run(&migrator, 1));
    assert_int_equal(0, server_count(server, "d", "select from pg_roles where rolname like 'pawl\\_%'"));

    server_exec(server, "d", "create role pawl_reader; create role pawl_app; create role pawl_admin");
    assert_int_equal(0, server_count(server, "d", may));
    server_exec(server, "d", "set role plain; select pawl.grant_roles()");
    assert_int_equal(1, server_count(server, "d", may));
}
