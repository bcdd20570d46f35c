/*
 * row_test.c - the mapper on results made by hand: no server needed.
 */
#include <stdio.h>
#include <string.h>

#include "pg/oid.h"
#include "pg/query.h"
#include "test/harness/test.h"

#define THING_COLUMNS(X, T) \
    X(T, I64, id)           \
    X(T, TEXT, owner)       \
    X(T, I32, small)        \
    X(T, REAL, real)        \
    X(T, BOOL, frozen)      \
    X(T, UUID, uuid)        \
    X(T, JSONB, document)   \
    X(T, TIME, made_at)
DB_ROW(Thing, THING_COLUMNS);
DB_SHAPE(thing, Thing, THING_COLUMNS);

static const struct {
    const char *name;
    Oid         type;
} thing_attributes[] = {
    {"made_at",  OID_INT8  },
    {"document", OID_JSONB },
    {"uuid",     OID_UUID  },
    {"frozen",   OID_BOOL  },
    {"real",     OID_FLOAT8},
    {"small",    OID_INT4  },
    {"owner",    OID_TEXT  },
    {"id",       OID_INT8  },
};
#define THING_COUNT ((int)COUNT(thing_attributes))

/* As many rows as values / THING_COUNT; NULL is SQL null. */
static PGresult *result_new(const char *const *values, int rows)
{
    PGresult    *result                  = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc attributes[THING_COUNT] = {0};

    for (int i = 0; i < THING_COUNT; i++)
        attributes[i] =
            (PGresAttDesc){.name = (char *)(uintptr_t)thing_attributes[i].name, .typid = thing_attributes[i].type};
    assert_true(PQsetResultAttrs(result, THING_COUNT, attributes));
    for (int i = 0; i < rows * THING_COUNT; i++) {
        char *value = (char *)(uintptr_t)values[i];

        assert_true(PQsetvalue(result, i / THING_COUNT, i % THING_COUNT, value, value ? (int)strlen(value) : -1));
    }
    return result;
}

static const char *const whole[] = {
    "1700000000000000", "{\"a\": 1}",         "0190b5a1-0000-7000-8000-000000000000", "t", "2.5", "-7",
    "Łukasz",           "9223372036854775807"};

TEST(row_maps_every_type_by_name)
{
    scoped(PQclear) PGresult *result = result_new(whole, 1);
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    Error                     error;
    void                     *rows;

    assert_ok(db_rows(result, &thing_shape, arena, &rows, &error));
    const Thing *thing = rows;
    assert_true(thing->id == INT64_MAX && thing->small == -7 && thing->real == 2.5 && thing->frozen);
    assert_string_equal(thing->owner, "Łukasz");
    assert_string_equal(thing->uuid, "0190b5a1-0000-7000-8000-000000000000");
    assert_string_equal(thing->document, "{\"a\": 1}");
    assert_true(thing->made_at == 1700000000000000);
}

TEST(row_null_is_zero_false_or_null)
{
    const char *const         values[THING_COUNT] = {0};
    scoped(PQclear) PGresult *result              = result_new(values, 1);
    scoped(arena_free) Arena *arena               = arena_new(ARENA_BYTES_DEFAULT);
    Error                     error;
    void                     *rows;

    assert_ok(db_rows(result, &thing_shape, arena, &rows, &error));
    const Thing *thing = rows;
    assert_true(thing->id == 0 && thing->small == 0 && thing->real == 0 && !thing->frozen && thing->made_at == 0);
    assert_null(thing->owner);
    assert_null(thing->uuid);
    assert_null(thing->document);
}

TEST(row_texts_outlive_the_result)
{
    PGresult                 *result = result_new(whole, 1);
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    Error                     error;
    void                     *rows;

    assert_ok(db_rows(result, &thing_shape, arena, &rows, &error));
    PQclear(result);
    assert_string_equal(((const Thing *)rows)->owner, "Łukasz");
}

static void assert_bad_value(int column, const char *value, const char *words)
{
    const char *values[THING_COUNT];
    void       *rows = NULL;
    Error       error;

    memcpy(values, whole, sizeof whole);
    values[column]                   = value;
    scoped(PQclear) PGresult *result = result_new(values, 1);
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    assert_code(ERR_INTERNAL, db_rows(result, &thing_shape, arena, &rows, &error));
    assert_contains(error.text, words);
    assert_null(rows);
}

TEST(row_bad_integers_are_named)
{
    assert_bad_value(7, "9x", "\"9x\" is not a 64-bit integer");
    assert_bad_value(7, "", "is not a 64-bit integer");
    assert_bad_value(7, "9223372036854775808", "is not a 64-bit integer");
    assert_bad_value(5, "2147483648", "is not a 32-bit integer");
}

TEST(row_missing_column_and_wrong_type_are_named)
{
    static const DbColumn missing[] =
        {
            {"balance", DB_I64, 0}
    },
                          wrong[] = {{"owner", DB_I64, 0}};
    const DbShape no_column = {"thing", missing, 1, sizeof(int64_t)}, no_type = {"thing", wrong, 1, sizeof(int64_t)};
    scoped(PQclear) PGresult *result = result_new(whole, 1);
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    Error                     error;
    void                     *rows;

    assert_code(ERR_INTERNAL, db_rows(result, &no_column, arena, &rows, &error));
    assert_string_equal(error.text, "thing has no column \"balance\"");
    assert_code(ERR_INTERNAL, db_rows(result, &no_type, arena, &rows, &error));
    assert_string_equal(error.text, "thing column \"owner\" has type 25");
}

TEST(row_larger_than_the_arena_is_over_the_limit)
{
    static char               big[100000];
    const char               *values[THING_COUNT];
    scoped(arena_free) Arena *arena = arena_new(50000);
    Error                     error;
    void                     *rows;

    memset(big, 'x', sizeof big - 1);
    memcpy(values, whole, sizeof whole);
    values[6]                        = big;
    scoped(PQclear) PGresult *result = result_new(values, 1);
    assert_code(ERR_LIMIT, db_rows(result, &thing_shape, arena, &rows, &error));
}

TEST(row_only_one_is_wanted)
{
    Thing things[2] = {{.id = 4}, {.id = 5}}, thing = {.id = 77};
    Error error;

    assert_code(ERR_NOT_FOUND, db_only(&thing_shape, things, 0, &thing, &error));
    assert_string_equal(error.text, "thing not found");
    assert_code(ERR_INTERNAL, db_only(&thing_shape, things, 2, &thing, &error));
    assert_string_equal(error.text, "more than one thing");
    assert_true(thing.id == 77);
    assert_ok(db_only(&thing_shape, things, 1, &thing, &error));
    assert_true(thing.id == 4);
}
