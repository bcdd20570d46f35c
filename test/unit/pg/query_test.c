/*
 * query_test.c - what is bound is what arrives, quotes, backslashes, nulls and all.
 */
#include "pg/query.h"

#include <float.h>
#include <string.h>

#include "test/harness/database.h"
#include "test/harness/test.h"

typedef struct {
    TestDatabase *db;
    Arena        *arena;
    Tx            tx;
} Fixture;

static Fixture fixture_new(void)
{
    Fixture fixture = {.db = database_new_empty(), .arena = arena_new(ARENA_BYTES_DEFAULT)};
    Error   error;

    fixture.tx = (Tx){.arena = fixture.arena, .deadline = deadline_in_ms(10000)};
    assert_ok(conn_open(database_url(fixture.db), "query_test", fixture.tx.deadline, &fixture.tx.conn, &error));
    return fixture;
}

static void fixture_free(Fixture *fixture)
{
    conn_close(fixture->tx.conn);
    arena_free(fixture->arena);
    database_free(fixture->db);
}

TEST(query_array_elements_arrive_as_they_were)
{
    Fixture           fixture  = fixture_new();
    const char *const values[] = {"a",   "say \"hi\"", "back\\slash",     "", NULL, "NULL",
                                  "{,}", "żółw",       "line\nbreak\ttab"};
    Error             error;

    for (int i = 0; i < (int)COUNT(values); i++) {
        const char *back = "untouched";

        assert_ok(db_get_text(&fixture.tx, "select ($1::text[])[$2] as value",
                              DB_ARGS(db_texts(fixture.arena, values, (int)COUNT(values)), db_i32(i + 1)), &back,
                              &error));
        if (values[i])
            assert_string_equal(back, values[i]);
        else
            assert_null(back);
    }
    fixture_free(&fixture);
}

/* Each array as the server writes it. */
TEST(query_arrays_of_every_type_arrive_as_they_were)
{
    Fixture           fixture   = fixture_new();
    const int32_t     small[]   = {INT32_MIN, -1, 0, INT32_MAX};
    const int64_t     numbers[] = {INT64_MIN, -1, 0, INT64_MAX};
    const char *const uuids[] = {"01890a5d-ac96-774b-bcce-b302099a8057", NULL, "FFFFFFFF-ffff-ffff-ffff-ffffffffffff"};
    const char *const jsons[] = {"{\"a\": \"say \\\"hi\\\"\"}", NULL, "null", "[1, 2]"};
    const char *const wrong[] = {"01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d"};
    const char       *back;
    Error             error;

    assert_ok(
        db_get_text(&fixture.tx, "select $1::text as value", DB_ARGS(db_i32s(fixture.arena, small, 4)), &back, &error));
    assert_string_equal(back, "{-2147483648,-1,0,2147483647}");
    assert_ok(db_get_text(&fixture.tx, "select $1::text as value", DB_ARGS(db_i64s(fixture.arena, numbers, 4)), &back,
                          &error));
    assert_string_equal(back, "{-9223372036854775808,-1,0,9223372036854775807}");
    assert_ok(db_get_text(&fixture.tx, "select $1::text as value", DB_ARGS(db_uuids(fixture.arena, uuids, 3)), &back,
                          &error));
    assert_string_equal(back, "{01890a5d-ac96-774b-bcce-b302099a8057,NULL,ffffffff-ffff-ffff-ffff-ffffffffffff}");
    assert_ok(db_get_text(&fixture.tx,
                          "select $1::jsonb[]::text[]::text || array_ndims($1) || array_lower($1, 1) as value",
                          DB_ARGS(db_jsonbs(fixture.arena, jsons, 4)), &back, &error));
    assert_string_equal(back, "{\"{\\\"a\\\": \\\"say \\\\\\\"hi\\\\\\\"\\\"}\",NULL,\"null\",\"[1, 2]\"}11");
    assert_ok(db_get_text(&fixture.tx,
                          "select ($1 = '{}' and $2 = '{}' and $3 = '{}' and $4 = '{}' and $5 = '{}')::text as value",
                          DB_ARGS(db_i32s(fixture.arena, small, 0), db_i64s(fixture.arena, numbers, 0),
                                  db_uuids(fixture.arena, uuids, 0), db_jsonbs(fixture.arena, jsons, 0),
                                  db_texts(fixture.arena, jsons, 0)),
                          &back, &error));
    assert_string_equal(back, "true");
    assert_code(ERR_INVALID, db_get_text(&fixture.tx, "select $1::text as value",
                                         DB_ARGS(db_uuids(fixture.arena, wrong, 2)), &back, &error));
    assert_contains(error.text, "01890a5d");
    assert_true(conn_is_good(fixture.tx.conn));
    fixture_free(&fixture);
}

TEST(query_array_too_large_for_the_arena_fails_its_query)
{
    Fixture                   fixture = fixture_new();
    scoped(arena_free) Arena *small   = arena_new(1 << 16);
    const char              **texts   = arena_array(fixture.arena, const char *, 1 << 15);
    const char               *back;
    Error                     error;

    for (int i = 0; i < 1 << 15; i++)
        texts[i] = "0123456789";
    assert_code(ERR_LIMIT, db_get_text(&fixture.tx, "select $1::text as value",
                                       DB_ARGS(db_texts(small, texts, 1 << 15)), &back, &error));
    assert_ok(db_get_text(&fixture.tx, "select cardinality($1)::text as value",
                          DB_ARGS(db_texts(fixture.arena, texts, 1 << 15)), &back, &error));
    assert_string_equal(back, "32768");
    fixture_free(&fixture);
}

TEST(query_scalars_arrive_as_they_were)
{
    Fixture fixture = fixture_new();
    int64_t same    = 0;
    Error   error;

    assert_ok(db_get_i64(&fixture.tx,
                         "select ($1 = -9223372036854775808 and $2 and $3 is null"
                         " and $4 = '\\x00ff'::bytea and $5 ->> 'a' = '1')::int::bigint as value",
                         DB_ARGS(db_i64(INT64_MIN), db_bool(true), db_text(NULL),
                                 db_bytea(fixture.arena, "\x00\xff", 2), db_jsonb("{\"a\": 1}")),
                         &same, &error));
    assert_int_equal(same, 1);
    fixture_free(&fixture);
}

TEST(query_failures_have_names)
{
    Fixture fixture = fixture_new();
    int64_t value = 5, changed = -1;
    Error   error;

    assert_code(ERR_NOT_FOUND,
                db_get_i64(&fixture.tx, "select 1::bigint as value where false", DB_NONE, &value, &error));
    assert_code(ERR_INTERNAL, db_get_i64(&fixture.tx, "select 1::bigint, 2::bigint", DB_NONE, &value, &error));
    assert_contains(error.text, "2 columns");
    assert_code(ERR_INTERNAL, db_get_i64(&fixture.tx, "select 1::integer as small", DB_NONE, &value, &error));
    assert_contains(error.text, "small");
    assert_code(ERR_INTERNAL, db_get_i64(&fixture.tx, "selec 1", DB_NONE, &value, &error));
    assert_string_equal(error.sqlstate, "42601");
    assert_code(ERR_INVALID,
                db_get_i64(&fixture.tx, "select (1 / $1::int)::bigint as value", DB_ARGS(db_i32(0)), &value, &error));
    assert_int_equal(value, 5);
    assert_true(conn_is_good(fixture.tx.conn));
    assert_ok(db_run(&fixture.tx, "create table t (id int); insert into t values (1), (2)", DB_NONE, NULL, &error));
    assert_ok(db_run(&fixture.tx, "update t set id = id + $1", DB_ARGS(db_i32(1)), &changed, &error));
    assert_int_equal(changed, 2);
    assert_code(ERR_INVALID, db_run(&fixture.tx, "copy t from stdin", DB_NONE, NULL, &error)); /* does not hang */
    assert_false(conn_is_good(fixture.tx.conn));
    fixture_free(&fixture);
}
