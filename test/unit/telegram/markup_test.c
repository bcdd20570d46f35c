/*
 * Texts: escaped, measured in UTF-16 units, split and shortened without cutting a tag, a reference or a character.
 */
#include "telegram/markup.h"

#include <string.h>

#include "test/harness/test.h"

#define SMILE "\xf0\x9f\x98\x80"

TEST(topics_of_supergroups_have_addresses)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    assert_string_equal("https://t.me/c/1234567890/7", telegram_topic_url(INT64_C(-1001234567890), 7, arena));
    assert_string_equal("https://t.me/c/1234567890/1", telegram_topic_url(INT64_C(-1001234567890), 0, arena));
    assert_null(telegram_topic_url(-1001, 7, arena));
    assert_null(telegram_topic_url(5, 7, arena));
}

TEST(markup_escapes_html)
{
    scoped_text Text text = {0};

    text_init(&text, NULL, TEXT_MAX_LINE);
    telegram_escape(&text, "<b>A & B</b> \"x\"");
    assert_string_equal("&lt;b&gt;A &amp; B&lt;/b&gt; \"x\"", text_string(&text));
}

TEST(markup_counts_utf16_units)
{
    const char *text = "\xd0\x9f" SMILE "a"; /* 1 + 2 + 1 units, 2 + 4 + 1 bytes */

    assert_int_equal(4, telegram_units(text, strlen(text)));
    assert_int_equal(2, telegram_bytes_at(text, strlen(text), 0, 1));
    assert_int_equal(6, telegram_bytes_at(text, strlen(text), 0, 2)); /* inside of the pair: behind it */
    assert_int_equal(6, telegram_bytes_at(text, strlen(text), 0, 3));
    assert_int_equal(7, telegram_bytes_at(text, strlen(text), 2, 99));
    assert_int_equal(4, telegram_html_units("<b>&lt;" SMILE "</b>\xd0\x9f"));
    assert_int_equal(5, telegram_html_units("a & b"));
    assert_int_equal(2, telegram_html_units("&#128512;"));
    assert_int_equal(5, telegram_html_units("1 < 2"));
}

TEST(markup_splits_at_lines_and_words)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    const char *const        *parts = telegram_html_split("one two\nthree four\nfive", 12, arena);

    assert_string_equal("one two", parts[0]);
    assert_string_equal("three four", parts[1]);
    assert_string_equal("five", parts[2]);
    assert_null(parts[3]);
    parts = telegram_html_split("short", 12, arena);
    assert_string_equal("short", parts[0]);
    assert_null(parts[1]);
    assert_null(telegram_html_split("", 12, arena)[1]);
}

TEST(markup_closes_and_opens_tags_around_a_cut)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    const char *const        *parts =
        telegram_html_split("<b>one <a href=\"http://x/?a>b\">two three four</a> five</b> &lt;six&gt;", 10, arena);

    assert_string_equal("<b>one <a href=\"http://x/?a>b\">two</a></b>", parts[0]);
    assert_string_equal("<b><a href=\"http://x/?a>b\">three four</a></b>", parts[1]);
    assert_string_equal("<b>five</b> &lt;six&gt;", parts[2]);
    assert_null(parts[3]);
}

TEST(markup_splits_a_long_text_into_parts_that_fit)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    scoped_text Text          text  = {0};
    size_t                    units = 0;

    text_init(&text, NULL, TEXT_MAX_BODY);
    for (int i = 0; i < 5000; i++)
        text_append(&text, SMILE);
    for (const char *const *part = telegram_html_split(text_string(&text), TELEGRAM_TEXT_MAX, arena); *part; part++) {
        assert_true(telegram_html_units(*part) <= TELEGRAM_TEXT_MAX);
        assert_true(text_is_utf8(*part, strlen(*part)));
        units += telegram_html_units(*part);
    }
    assert_int_equal(10000, units);
}

TEST(markup_shortens)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    assert_string_equal("<b>ab\xe2\x80\xa6</b>", telegram_html_shorten("<b>abcdef</b>", 3, arena));
    assert_string_equal("<b>abc</b>", telegram_html_shorten("<b>abc</b>", 3, arena));
    assert_string_equal("a" SMILE "\xe2\x80\xa6", telegram_shorten("a" SMILE SMILE "b", 5, arena));
    assert_string_equal("a\xe2\x80\xa6", telegram_shorten("a" SMILE SMILE "b", 3, arena));
    assert_string_equal("abc", telegram_shorten("abc", 3, arena));
}
