/*
 * cursor_test.c - a cursor carries its filter, and belongs to one list of one owner.
 */
#include "wallet/entry.h"

#include <string.h>

#include "test/harness/test.h"

TEST(cursor_carries_what_the_filter_said)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    EntryFilter               said  = {.owner = "o'ann \"\xc3\xa9\"",
                                       .asset = "EUR.2",
                                       .kind  = "topup",
                                       .since = "2026-01-31T12:00:00Z",
                                       .until = "2026-02-28T12:00:00.000001+01:00"};
    EntryFilter               bare  = {.owner = said.owner};
    Error                     error = {0};

    assert_ok(cursor_take(arena, "entries", cursor_text(arena, "entries", &said, INT64_MAX), &bare, &error));
    assert_string_equal(bare.asset, said.asset);
    assert_string_equal(bare.kind, said.kind);
    assert_string_equal(bare.since, said.since);
    assert_string_equal(bare.until, said.until);
    assert_true(bare.seen == INT64_MAX);

    bare = said;
    assert_ok(cursor_take(arena, "entries", cursor_text(arena, "entries", &said, 7), &bare, &error));
    assert_int_equal(bare.seen, 7);
    bare.seen = 0;
    assert_ok(cursor_take(arena, "entries", NULL, &bare, &error));
    assert_int_equal(bare.seen, 0);
}

TEST(cursor_knows_the_usual_asset_by_both_names)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    EntryFilter               plain = {.owner = "ann"}, named = {.owner = "ann", .asset = WALLET_ASSET_DEFAULT};
    Error                     error = {0};

    assert_string_equal(cursor_text(arena, "entries", &plain, 1), cursor_text(arena, "entries", &named, 1));
    assert_ok(cursor_take(arena, "entries", cursor_text(arena, "entries", &plain, 1), &named, &error));
}

TEST(cursor_names_the_parameter_that_differs)
{
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    EntryFilter               said   = {.owner = "ann", .asset = "EUR", .since = "2026-01-31T12:00:00Z"};
    const char               *cursor = cursor_text(arena, "entries", &said, 9);
    static const struct {
        EntryFilter given;
        const char *words;
    } rows[] = {
        {{.owner = "ann", .asset = "USD"},                  "asset must be that of the cursor"},
        {{.owner = "ann", .asset = WALLET_ASSET_DEFAULT},   "asset must be"                   },
        {{.owner = "ann", .kind = "topup"},                 "kind must be"                    },
        {{.owner = "ann", .since = "2026-01-31T12:00:01Z"}, "since must be"                   },
        {{.owner = "ann", .until = "2026-01-31T12:00:00Z"}, "until must be"                   },
        {{.owner = "bob"},                                  "cursor must be"                  },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        EntryFilter filter = rows[i].given;
        Error       error  = {0};

        assert_code(ERR_INVALID, cursor_take(arena, "entries", cursor, &filter, &error));
        assert_memory_equal(error.text, rows[i].words, strlen(rows[i].words));
    }
}

TEST(cursor_that_is_broken_or_of_another_list_is_refused)
{
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    EntryFilter               filter = {.owner = "ann"};
    char                     *cursor = arena_text(arena, cursor_text(arena, "entries", &filter, 123456789));
    size_t                    length = strlen(cursor);
    char                     *large  = arena_array(arena, char, 5000);
    Error                     error  = {0};

    assert_code(ERR_INVALID, cursor_take(arena, "statement", cursor, &filter, &error));
    for (size_t i = 0; i < length; i++) {
        char kept = cursor[i];

        cursor[i] = kept == 'A' ? 'B' : 'A';
        assert_code(ERR_INVALID, cursor_take(arena, "entries", cursor, &filter, &error));
        cursor[i] = '\0';
        assert_code(ERR_INVALID, cursor_take(arena, "entries", cursor, &filter, &error));
        cursor[i] = kept;
    }
    memset(large, 'A', 4999);
    assert_code(ERR_INVALID, cursor_take(arena, "entries", large, &filter, &error));
    assert_contains(error.text, "cursor must be");
    assert_ok(cursor_take(arena, "entries", cursor, &filter, &error));
}
