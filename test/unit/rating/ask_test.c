/*
 * ask_test.c - commands and their words.
 */
#include "rating/ask.h"

#include <string.h>

#include "base/text.h"
#include "test/harness/test.h"

static Ask parsed(Arena *arena, const char *text)
{
    Ask ask;

    ask_parse(text, NULL, 0, "PawlBot", arena, &ask);
    return ask;
}

/* Mistake 4 of the bot that this one replaces: "/match@botname" was routed and then not parsed. */
TEST(ask_knows_its_commands_and_its_name)
{
    static const struct {
        const char *text;
        AskKind     kind;
        int         words;
    } rows[] = {
        {"/match @ann @bob 3 1",          ASK_MATCH,   4},
        {"/match@PawlBot @ann @bob 3 1",  ASK_MATCH,   4},
        {"/MATCH@pawlbot\n@ann @bob 3 1", ASK_MATCH,   4},
        {"/match@OtherBot @ann @bob 3 1", ASK_NONE,    0},
        {"/match@PawlBotter @a @b 3 1",   ASK_NONE,    0},
        {"/top",                          ASK_RANKING, 0},
        {"/rank 21",                      ASK_RANKING, 1},
        {"/undo",                         ASK_UNDO,    0},
        {"/undone",                       ASK_NONE,    0},
        {"/edmundo",                      ASK_NONE,    0},
        {"edmundo /undo",                 ASK_NONE,    0},
        {" /undo",                        ASK_NONE,    0},
        {"/stats @edmundo",               ASK_STATS,   1},
        {"/",                             ASK_NONE,    0},
        {"/@PawlBot",                     ASK_NONE,    0},
        {"",                              ASK_NONE,    0},
        {NULL,                            ASK_NONE,    0},
    };
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    for (size_t i = 0; i < COUNT(rows); i++) {
        Ask ask = parsed(arena, rows[i].text);

        if (rows[i].kind != ask.kind || rows[i].words != ask.count)
            fail_msg("%s: %d with %d words", rows[i].text, ask.kind, ask.count);
    }
    assert_true(parsed(arena, "/match help").wants_help);
    assert_false(parsed(arena, "/match help me").wants_help);
}

TEST(ask_takes_a_linked_name_as_one_word)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    const char               *text    = "/match Анна Ли @bob 3:1";
    GameUser                  anna    = {.id = 7, .name = "Анна Ли"};
    GameLink                  links[] = {
        {strlen("/match "), strlen("Анна Ли"), &anna},
        {500,               3,                       &anna}
    };
    Ask ask;

    ask_parse(text, links, 2, NULL, arena, &ask);
    assert_int_equal(3, ask.count);
    assert_ptr_equal(&anna, ask.words[0].user);
    assert_string_equal("Анна Ли", ask.words[0].text);
    assert_true(ask.words[1].is_name);
    ask_split_scores(&ask, arena);
    assert_int_equal(4, ask.count);
    assert_string_equal("3", ask.words[2].text);
    assert_string_equal("1", ask.words[3].text);
}

TEST(ask_counts_words_beyond_its_limit)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Ask ask = parsed(arena, "/match 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2");

    assert_int_equal(ASK_WORDS_MAX + 1, ask.count);
    ask_split_scores(&ask, arena);
    assert_int_equal(ASK_WORDS_MAX + 1, ask.count);
    ask = parsed(arena, "/match 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2");
    ask_split_scores(&ask, arena);
    assert_int_equal(ASK_WORDS_MAX + 1, ask.count);
    ask = parsed(arena, "/match 1-2 1-2 1-2 1-2 1-2 1-2 1-2 1-2");
    ask_split_scores(&ask, arena);
    assert_int_equal(ASK_WORDS_MAX, ask.count);
}

/* As people and their keyboards write a result. */
TEST(ask_splits_scores_in_every_usual_form)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"/match @ann @bob 3:1",     "@ann|@bob|3|1"    },
        {"/match @ann @bob 3 : 1",   "@ann|@bob|3|1"    },
        {"/match @ann @bob 3: 1",    "@ann|@bob|3|1"    },
        {"/match @ann @bob 3 :1",    "@ann|@bob|3|1"    },
        {"/match @ann @bob 3-1",     "@ann|@bob|3|1"    },
        {"/match @ann @bob 3 - 1",   "@ann|@bob|3|1"    },
        {"/match @ann @bob 3–1",   "@ann|@bob|3|1"    },
        {"/match @ann @bob 3 — 1", "@ann|@bob|3|1"    },
        {"/match @ann @bob 3−1",   "@ann|@bob|3|1"    },
        {"/match @ann, @bob; 3:1",   "@ann|@bob|3|1"    },
        {"/match @ann , @bob: 3:1",  "@ann|@bob|3|1"    },
        {"/match @ann 3:1 @bob",     "@ann|3|1|@bob"    },
        {"/match 3:1 @bob",          "3|1|@bob"         },
        {"/match @ann @bob 3 -1",    "@ann|@bob|3|-1"   },
        {"/match @ann @bob -1 3",    "@ann|@bob|-1|3"   },
        {"/match @ann - @bob 3 1",   "@ann|-|@bob|3|1"  },
        {"/match @ann @bob 3::1",    "@ann|@bob|3::1"   },
        {"/match @ann @bob 3:1:2:4", "@ann|@bob|3:1:2:4"},
    };
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    for (size_t i = 0; i < COUNT(rows); i++) {
        Ask  ask = parsed(arena, rows[i].text);
        Text text;

        ask_split_scores(&ask, arena);
        text_init(&text, arena, TEXT_MAX_LINE);
        for (int k = 0; k < ask.count; k++)
            text_print(&text, "%s%s", k ? "|" : "", ask.words[k].text);
        assert_string_equal(rows[i].words, text_string(&text));
    }
}

TEST(ask_scores_are_whole_numbers)
{
    assert_int_equal(0, ask_score("0"));
    assert_int_equal(21, ask_score("021"));
    assert_int_equal(999999, ask_score("999999"));
    assert_int_equal(ASK_SCORE_MAX + 1, ask_score("1000000"));
    assert_int_equal(ASK_SCORE_MAX + 1, ask_score("99999999999999999999"));
    assert_int_equal(3, ask_score("00000003"));
    assert_int_equal(-1, ask_score("-1"));
    assert_int_equal(-1, ask_score("1.5"));
    assert_int_equal(-1, ask_score("٣"));
    assert_int_equal(-1, ask_score(""));
}
