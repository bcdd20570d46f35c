/*
 * text_test.c - a string that grows up to its maximum; UTF-8; the nearest word.
 */
#include "test/harness/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

TEST(text_grows_by_every_append)
{
    scoped_text Text text = {0};

    text_init(&text, NULL, TEXT_MAX_BODY);
    assert_string_equal(text_string(&text), "");
    assert_null(text.bytes);
    text_append(&text, "one");
    text_append_char(&text, ',');
    text_append_bytes(&text, "two!", 3);
    text_print(&text, ",%d", 3);
    assert_string_equal(text_string(&text), "one,two,3");
    assert_int_equal(text.length, 9);
    assert_false(text_is_full(&text));
}

TEST(text_grows_far)
{
    scoped_text Text text = {0};

    text_init(&text, NULL, TEXT_MAX_BODY);
    for (int i = 0; i < 100000; i++)
        text_print(&text, "%05d,", i);
    assert_int_equal(text.length, 600000);
    assert_memory_equal(text.bytes + 600000 - 12, "99998,99999,", 13);
}

TEST(text_print_longer_than_its_room)
{
    scoped_text Text text = {0};
    char             word[500];

    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    text_init(&text, NULL, TEXT_MAX_LINE);
    text_append(&text, "a");
    text_print(&text, "%s", word);
    assert_int_equal(text.length, sizeof word);
    assert_int_equal(strlen(text.bytes), sizeof word);
}

TEST(text_full_is_sticky_and_leaves_no_holes)
{
    scoped_text Text text = {0};

    text_init(&text, NULL, 10);
    text_append(&text, "12345");
    text_append(&text, "1234567");
    assert_true(text_is_full(&text));
    text_append_char(&text, 'x');
    text_print(&text, "%d", 1);
    assert_string_equal(text_string(&text), "12345");
    text_clear(&text);
    assert_false(text_is_full(&text));
    assert_string_equal(text_string(&text), "");
    text_append(&text, "1234567890"); /* exactly the maximum */
    assert_false(text_is_full(&text));
    text_append(&text, "");
    assert_false(text_is_full(&text));
    text_append_char(&text, 'x');
    assert_true(text_is_full(&text));
    assert_int_equal(text.length, 10);
}

TEST(text_print_that_does_not_fit_changes_nothing)
{
    scoped_text Text text = {0};

    text_init(&text, NULL, 10);
    text_append(&text, "abc");
    text_print(&text, "%s", "12345678");
    assert_true(text_is_full(&text));
    assert_string_equal(text_string(&text), "abc");
    assert_int_equal(text.length, 3);
}

TEST(text_done_can_be_repeated)
{
    Text text;

    text_init(&text, NULL, 100);
    text_append(&text, "x");
    text_done(&text);
    assert_string_equal(text_string(&text), "");
    text_append(&text, "again");
    assert_string_equal(text_string(&text), "again");
    text_done(&text);
    text_done(&text);
}

TEST(text_lives_in_an_arena)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Text                      text;

    text_init(&text, arena, TEXT_MAX_BODY);
    for (int i = 0; i < 1000; i++)
        text_append(&text, "0123456789");
    text_done(&text); /* the arena frees */
    assert_true(arena_used(arena) >= 10000);
}

TEST(text_is_full_when_its_arena_is)
{
    scoped(arena_free) Arena *arena = arena_new(1000);
    Text                      text;

    text_init(&text, arena, TEXT_MAX_BODY);
    for (int i = 0; i < 1000; i++)
        text_append(&text, "0123456789");
    assert_true(text_is_full(&text));
    assert_int_equal(text.length % 10, 0);
    assert_int_equal(strlen(text_string(&text)), text.length);
}

TEST(text_utf8_accepts_what_postgresql_can_hold)
{
    static const char *const good[] = {
        "",
        "a",
        "plain ascii that is longer than eight bytes",
        "\x7F",
        "\xC2\x80",
        "\xDF\xBF",
        "\xE0\xA0\x80",
        "\xED\x9F\xBF",
        "\xEE\x80\x80",
        "\xEF\xBF\xBF",
        "\xF0\x90\x80\x80",
        "\xF4\x8F\xBF\xBF",
        "na\xC3\xAFve \xE2\x82\xAC \xF0\x9F\x90\x98 elephants, then more ascii",
    };

    for (size_t i = 0; i < COUNT(good); i++)
        assert_true(text_is_utf8(good[i], strlen(good[i])));
}

TEST(text_utf8_refuses_everything_else)
{
    static const struct {
        const char *bytes;
        size_t      size;
    } bad[] = {
        {"\0",                 1 }, /* NUL */
        {"abcdefgh\0ijklmnop", 17},
        {"\x80",               1 }, /* a tail alone */
        {"\xC0\x80",           2 }, /* overlong */
        {"\xC1\xBF",           2 },
        {"\xE0\x9F\xBF",       3 },
        {"\xF0\x8F\xBF\xBF",   4 },
        {"\xED\xA0\x80",       3 }, /* surrogates */
        {"\xED\xBF\xBF",       3 },
        {"\xF4\x90\x80\x80",   4 }, /* above U+10FFFF */
        {"\xF5\x80\x80\x80",   4 },
        {"\xFF",               1 },
        {"\xC3",               1 }, /* cut off */
        {"\xE2\x82",           2 },
        {"\xF0\x9F\x90",       3 },
        {"\xC3(",              2 }, /* no tail */
        {"\xE2(\xAC",          3 },
        {"\xF0\x9F(\x98",      4 },
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        /* At the start, and behind text that the fast path swallows; on the heap, so that a read too far is seen. */
        for (size_t before = 0; before < 20; before++) {
            char *bytes = malloc(before + bad[i].size);
            memset(bytes, 'a', before);
            memcpy(bytes + before, bad[i].bytes, bad[i].size);
            bool fine = text_is_utf8(bytes, before + bad[i].size);
            free(bytes);
            assert_false(fine);
        }
    }
}

TEST(text_utf8_accepts_every_code_point_and_no_surrogate)
{
    for (uint32_t c = 1; c <= 0x10FFFF; c++) {
        char                       bytes[4];
        size_t                     size    = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        static const unsigned char heads[] = {0, 0, 0xC0, 0xE0, 0xF0};

        for (size_t i = size; i-- > 1;)
            bytes[i] = (char)(0x80 | (c >> (6 * (size - 1 - i)) & 0x3F));
        bytes[0]       = (char)(heads[size] | c >> (6 * (size - 1)));
        bool surrogate = c >= 0xD800 && c <= 0xDFFF;
        if (text_is_utf8(bytes, size) == surrogate) {
            print_error("U+%04X\n", c);
            assert_int_equal(text_is_utf8(bytes, size), !surrogate);
        }
    }
}

TEST(text_cut_keeps_characters_whole)
{
    const char         *text   = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x98z"; /* 1 + 2 + 3 + 4 + 1 bytes */
    static const size_t kept[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};

    for (size_t max = 0; max < COUNT(kept); max++)
        assert_int_equal(text_cut(text, 11, max), kept[max]);
    assert_int_equal(text_cut("\x80\x80\x80\x80\x80\x80", 6, 5), 5); /* not UTF-8: anywhere */
}

TEST(text_nearest_finds_typing_mistakes)
{
    static const char *const words[] = {"serve", "migrate", "doctor", "wallet", "work", "command"};
    static const struct {
        const char *typed;
        const char *meant;
    } rows[] = {
        {"serv",     "serve"  },
        {"sevre",    "serve"  },
        {"migarte",  "migrate"},
        {"Doctor",   "doctor" },
        {"walet",    "wallet" },
        {"wrok",     "work"   },
        {"work",     "work"   },
        {"comandd",  "command"},
        {"elephant", NULL     },
        {"",         NULL     },
        {"xyz",      NULL     },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *found = text_nearest(rows[i].typed, words, COUNT(words));
        if (rows[i].meant)
            assert_string_equal(found, rows[i].meant);
        else
            assert_null(found);
    }
}

TEST(text_nearest_takes_the_only_word_that_begins_so)
{
    static const char *const words[] = {"priority", "property", "delay", "deadline"};

    assert_string_equal(text_nearest("prio", words, COUNT(words)), "priority");
    assert_string_equal(text_nearest("dea", words, COUNT(words)), "deadline");
    assert_null(text_nearest("pr", words, COUNT(words)));
    assert_null(text_nearest("de", words, COUNT(words)));
}

TEST(text_nearest_is_never_empty)
{
    static const char *const words[] = {"", "d"};

    assert_null(text_nearest("x", words, 1));
    assert_string_equal(text_nearest("x", words, 2), "d");
}

TEST(text_nearest_takes_the_nearest_not_the_first)
{
    static const char *const words[] = {"pool_min", "pool_max", "pool_map"};
    char                     longer[200];

    assert_string_equal(text_nearest("pool_mx", words, COUNT(words)), "pool_max");
    memset(longer, 'p', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_null(text_nearest(longer, words, COUNT(words)));
    assert_null(text_nearest("pool_max", words, 0));
}
