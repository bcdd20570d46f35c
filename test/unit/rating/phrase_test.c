/*
 * phrase_test.c - both languages say the same: every text is there, with the same values and well-formed tags.
 */
#include "rating/phrase.h"

#include <string.h>

#include "rating/ask.h"
#include "test/harness/test.h"

static unsigned values_of(const char *text)
{
    unsigned set = 0;

    for (; (text = strchr(text, '{')); text++) {
        assert_true(text[1] >= '0' && text[1] <= '9' && text[2] == '}');
        set |= 1u << (text[1] - '0');
    }
    return set;
}

static int count_of(const char *text, const char *part)
{
    int count = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

TEST(phrase_languages_have_every_text_with_the_same_values)
{
    static const char *const tags[][2] = {
        {"<b>",    "</b>"   },
        {"<i>",    "</i>"   },
        {"<s>",    "</s>"   },
        {"<code>", "</code>"}
    };

    for (PhraseId id = 0; id < PHRASE_COUNT; id++)
        for (Language language = 0; language < LANGUAGE_COUNT; language++) {
            const char *text = phrase_text(language, id);
            int         all  = 0;

            assert_non_null(text);
            assert_true(text[0]);
            assert_int_equal(values_of(phrase_text(LANGUAGE_EN, id)), values_of(text));
            for (size_t i = 0; i < COUNT(tags); i++) {
                assert_int_equal(count_of(text, tags[i][0]), count_of(text, tags[i][1]));
                all += 2 * count_of(text, tags[i][0]);
            }
            assert_int_equal(all, count_of(text, "<"));
            assert_int_equal(0, count_of(text, "&"));
        }
}

TEST(phrase_values_are_put_in)
{
    Text text;

    text_init(&text, NULL, 1000);
    PHRASE(&text, LANGUAGE_RU, PHRASE_MATCH_LINE, "A", "1516", "+16", "1");
    assert_string_equal("A: <b>1516</b> (+16), место 1", text_string(&text));
    text_clear(&text);
    PHRASE_ALONE(&text, LANGUAGE_EN, PHRASE_PLAYER_BOT);
    assert_string_equal("❌  is a bot.", text_string(&text));
    text_done(&text);
    assert_int_equal(LANGUAGE_RU, language_of("ru-RU"));
    assert_int_equal(LANGUAGE_EN, language_of("de"));
    assert_int_equal(LANGUAGE_EN, language_of(NULL));
}

/* Limits of command menus: 1 to 32 characters, descriptions of 1 to 256. */
TEST(phrase_numbers_have_their_forms)
{
    static const struct {
        int number, english, russian;
    } rows[] = {
        {1,   0, 0},
        {2,   2, 1},
        {4,   2, 1},
        {5,   2, 2},
        {11,  2, 2},
        {12,  2, 2},
        {21,  2, 0},
        {22,  2, 1},
        {100, 2, 2},
        {111, 2, 2},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(PHRASE_STATS_WON_ONE + rows[i].english,
                         phrase_of_number(LANGUAGE_EN, PHRASE_STATS_WON_ONE, rows[i].number));
        assert_int_equal(PHRASE_STATS_WON_ONE + rows[i].russian,
                         phrase_of_number(LANGUAGE_RU, PHRASE_STATS_WON_ONE, rows[i].number));
    }
    assert_string_equal("Серия: {0} победы", phrase_text(LANGUAGE_RU, PHRASE_STATS_WON_FEW));
}

TEST(phrase_commands_have_descriptions_in_both_languages)
{
    for (const AskCommand *row = ask_commands; row->command; row++) {
        assert_in_range(strlen(row->command), 1, 32);
        assert_int_equal(!row->description[0], !row->description[1]);
        if (row->description[0])
            for (int i = 0; i < 2; i++)
                assert_in_range(strlen(row->description[i]), 1, 256);
    }
}
