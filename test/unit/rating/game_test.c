/*
 * game_test.c - what people write and what they get, without a messenger.
 */
#include "rating/game.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pg/metric.h"
#include "test/unit/rating/fixture.h"

/* <, > and & as the transport does it. */
static void escape(Text *html, const char *text)
{
    for (; *text; text++)
        if (*text == '<')
            text_append(html, "&lt;");
        else if (*text == '>')
            text_append(html, "&gt;");
        else if (*text == '&')
            text_append(html, "&amp;");
        else
            text_append_char(html, *text);
}

typedef struct {
    RatingFixture *fixture;
    GameUser       users[8];
    int64_t        message_id;
    GameOutput     output;
    ErrorCode      code;
} Chat;

static ErrorCode body(Tx *tx, void *context, Error *reterr)
{
    void **call = context;

    return game_run(tx, call[0], 1, call[1], reterr);
}

static const GameOutput *run(Chat *chat, GameInput input)
{
    Error     error   = {0};
    void     *call[]  = {&input, &chat->output};
    TxOptions options = {.name = "game", .deadline = soon(), .arena = chat->fixture->arena, .keyed = true};

    input.chat_id  = input.chat_id ? input.chat_id : FIXTURE_CHAT;
    input.bot_name = "PawlBot";
    input.escape   = escape;
    input.date_s   = input.date_s ? input.date_s : 1800000000;
    game_input_parse(&input, chat->fixture->arena);
    assert_ok(tx_run(chat->fixture->pool, &options, body, call, &error));
    return &chat->output;
}

static Chat chat_new(int players)
{
    Chat chat = {.fixture = rating_fixture_new(2, players), .message_id = 100};

    for (int i = 0; i < players && i < 8; i++)
        chat.users[i] = (GameUser){.id       = FIXTURE_USER(i),
                                   .name     = arena_print(chat.fixture->arena, "Player %d", i),
                                   .username = arena_print(chat.fixture->arena, "p%d", i)};
    return chat;
}

static void chat_done(Chat *chat)
{
    rating_fixture_verify(chat->fixture);
    rating_fixture_free(chat->fixture);
}

/* A message of a user, with a new id. The text of its only reply, to which an undo adds an edit. */
static const char *say(Chat *chat, int user, const char *text)
{
    const GameOutput *output = run(chat, (GameInput){.kind       = GAME_MESSAGE,
                                                     .from       = &chat->users[user],
                                                     .text       = text,
                                                     .message_id = ++chat->message_id});

    if (output->count == 0)
        return "";
    assert_int_equal(output->list[1].kind == GAME_EDIT_ABOUT && output->count > 1 ? 2 : 1, output->count);
    assert_int_equal(GAME_SAY, output->list[0].kind);
    return output->list[0].html;
}

static const GameOutput *press(Chat *chat, int user, const char *id, const char *data, Admin admin)
{
    return run(chat, (GameInput){.kind        = GAME_BUTTON,
                                 .from        = &chat->users[user],
                                 .button_id   = id,
                                 .button_data = data,
                                 .message_id  = 1,
                                 .admin       = admin});
}

TEST(game_registers_a_match_and_answers_with_ratings_places_and_undo)
{
    Chat chat = chat_new(3);

    assert_string_equal("🏆 <b>Player 0</b> 3:1 Player 1\nPlayer 0: <b>1516</b> (+16), place 1\n"
                        "Player 1: <b>1484</b> (−16), place 2",
                        say(&chat, 2, "/match @p0 @P1 3 1"));
    assert_string_equal("match:1", chat.output.list[0].reference);
    assert_int_equal(1, chat.output.list[0].buttons_count);
    assert_string_equal("undo:1", chat.output.list[0].buttons[0].data);
    assert_contains(say(&chat, 2, "/match@pawlbot @p1 @p2 2:2"), "🤝");
    assert_string_equal("", say(&chat, 2, "/match@OtherBot @p1 @p2 3 1"));
    assert_string_equal("", say(&chat, 2, "just talking about /match"));
    assert_int_equal(2, rating_fixture_count(chat.fixture, "match"));
    chat_done(&chat);
}

TEST(game_registers_by_reply_and_by_linked_name)
{
    Chat      chat  = chat_new(3);
    GameUser  anna  = {.id = 42, .name = "Анна"};
    GameLink  links = {strlen("/match 🎉 "), strlen("Анна"), &anna};
    GameInput reply = {.kind       = GAME_MESSAGE,
                       .from       = &chat.users[0],
                       .reply_to   = &chat.users[1],
                       .is_reply   = true,
                       .text       = "/match 3 1",
                       .message_id = 5};

    assert_contains(run(&chat, reply)->list[0].html, "<b>Player 0</b> 3:1 Player 1");
    links.offset = strlen("/match ");
    assert_contains(run(&chat, (GameInput){.kind        = GAME_MESSAGE,
                                           .from        = &chat.users[0],
                                           .text        = "/match Анна @p1 0 2",
                                           .links       = &links,
                                           .links_count = 1,
                                           .message_id  = 6})
                        ->list[0]
                        .html,
                    "🏆 <b>Player 1</b> 2:0 Анна\nPlayer 1: <b>"); /* the winner first, in both lines */
    assert_contains(say(&chat, 0, "/match 3 1"), "Reply to a message of your opponent");
    assert_contains(say(&chat, 0, "/match @p2 3 1"), "<b>Player 0</b> 3:1 Player 2");
    reply.reply_to   = &chat.users[0];
    reply.message_id = 7;
    assert_contains(run(&chat, reply)->list[0].html, "two different players");
    chat_done(&chat);
}

TEST(game_wrong_input_gets_one_helpful_line)
{
    Chat     chat = chat_new(4);
    GameUser bot  = {.id = 9, .name = "Bot", .username = "somebot", .is_bot = true};
    GameUser gone = chat.users[3];
    static const struct {
        const char *text, *answer;
    } rows[] = {
        {"/match",                                     "/match @ann @bob 3 1"       },
        {"/match @p0 @p1",                             "/match @ann @bob 3 1"       },
        {"/match @p0 @p1 3",                           "/match @ann @bob 3 1"       },
        {"/match @p0 @p1 3 1 5",                       "/match @ann @bob 3 1"       },
        {"/match @p0 @p1 three 1",                     "/match @ann @bob 3 1"       },
        {"/match @p0 @p1 -3 1",                        "/match @ann @bob 3 1"       },
        {"/match @p0 p1 3 1",                          "/match @ann @bob 3 1"       },
        {"/match @p0 @p0 3 1",                         "two different players"      },
        {"/match @p0 @p1 0 0",                         "0:0 cannot be registered"   },
        {"/match @p0 @p1 1001 0",                      "from 0 to 1000"             },
        {"/match @p0 @p1 9999999999 0",                "from 0 to 1000"             },
        {"/match @p0, @nobody_here, 3 1",              "I do not know @nobody_here "},
        {"/match @p0 @PawlBot 3 1",                    "I don’t play"             },
        {"/match @p0 @nobody_here 3 1",                "I do not know @nobody_here" },
        {"/match @p0 @<b>x</b> 3 1",                   "@&lt;b&gt;x&lt;/b&gt;"      },
        {"/match @p0 @somebot 3 1",                    "Bot is a bot"               },
        {"/match @p0 @p3 3 1",                         "Player 3 has left the group"},
        {"/stats @nobody_here",                        "I do not know @nobody_here" },
        {"/h2h",                                       "/h2h @ann @bob"             },
        {"/h2h @p0 @p0",                               "two different players"      },
        {"/chart",                                     "nothing to draw"            },
        {"/chart @p0 @p1 @p2 @p3 @p0 @p1 @p2 @p3 @p0", "At most 8 players"          },
        {"/history",                                   "no matches yet"             },
        {"/history @p0 @p1",                           "Name one player"            },
        {"/ranking foo",                               "not a place"                },
        {"/ranking -1",                                "not a place"                },
        {"/ranking 0",                                 "not a place"                },
        {"/ranking 1 2",                               "not a place"                },
        {"/ranking",                                   "Nobody has played yet"      },
        {"/me",                                        "has not played here yet"    },
        {"/undo",                                      "no match to undo"           },
        {"/settings",                                  "Only admins"                },
    };

    run(&chat, (GameInput){.kind = GAME_MEMBERS, .came = &bot, .came_count = 1});
    run(&chat, (GameInput){.kind = GAME_MEMBERS, .left = &gone, .left_count = 1});
    database_exec(
        chat.fixture->db,
        "create function rating.usage_off() returns trigger language plpgsql as $$ begin return null; end $$; "
        "create trigger off before insert on rating.usage for each row execute function rating.usage_off()");
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *answer = say(&chat, 0, rows[i].text);

        assert_contains(answer, rows[i].answer);
        assert_null(strchr(answer, '\n'));
    }
    assert_int_equal(0, rating_fixture_count(chat.fixture, "match"));
    chat_done(&chat);
}

TEST(game_takes_a_result_in_every_usual_form)
{
    static const char *const rows[] = {
        "/match @p0 @p1 3 : 1", "/match @p0 @p1 3–1", "/match @p0, @p1 3 — 1",
        "/match @p0 3:1 @p1",   "/match 3:1 @p1",     "/match @p0 3 @p1 1",
    };
    Chat chat = chat_new(2);

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_contains(say(&chat, 0, rows[i]), "<b>Player 0</b> 3:1 Player 1");
        say(&chat, 0, "/undo");
    }
    assert_int_equal(COUNT(rows), rating_fixture_count(chat.fixture, "match"));
    chat_done(&chat);
}

TEST(game_a_reply_names_its_player_in_every_command)
{
    Chat      chat  = chat_new(3);
    GameUser  bot   = {.id = 77, .name = "Bot", .is_bot = true};
    GameInput reply = {.kind = GAME_MESSAGE, .from = &chat.users[0], .reply_to = &chat.users[1], .is_reply = true};

    say(&chat, 0, "/match @p0 @p1 3 1");
    say(&chat, 0, "/match @p0 @p2 3 1");
    reply.text = "/stats", reply.message_id = 800;
    assert_contains(run(&chat, reply)->list[0].html, "<b>Player 1</b>");
    reply.text = "/history", reply.message_id = 801;
    assert_contains(run(&chat, reply)->list[0].html, "Last matches of Player 1");
    reply.text = "/h2h", reply.message_id = 802;
    assert_contains(run(&chat, reply)->list[0].html, "<b>Player 0 - Player 1</b>: 1 : 0");
    reply.reply_to = &bot, reply.text = "/history", reply.message_id = 803; /* the bot's messages are about others */
    assert_contains(run(&chat, reply)->list[0].html, "<b>Last matches</b>");
    assert_contains(say(&chat, 0, "/ranking 999"), "The ranking has 3 places");
    chat_done(&chat);
}

TEST(game_refuses_forwarded_commands)
{
    Chat chat = chat_new(2);

    assert_contains(run(&chat, (GameInput){.kind         = GAME_MESSAGE,
                                           .from         = &chat.users[0],
                                           .text         = "/match @p0 @p1 3 1",
                                           .is_forwarded = true,
                                           .message_id   = 5})
                        ->list[0]
                        .html,
                    "cannot be forwarded");
    assert_int_equal(0, rating_fixture_count(chat.fixture, "match"));
    chat_done(&chat);
}

TEST(game_same_message_twice_is_one_match)
{
    Chat      chat  = chat_new(2);
    GameInput input = {.kind = GAME_MESSAGE, .from = &chat.users[0], .text = "/match @p0 @p1 3 1", .message_id = 5};
    char      first[512];

    snprintf(first, sizeof first, "%s", run(&chat, input)->list[0].html);
    for (int i = 0; i < 4; i++)
        assert_string_equal(first, run(&chat, input)->list[0].html);
    assert_int_equal(1, rating_fixture_count(chat.fixture, "match"));
    chat_done(&chat);
}

/* A message without a usable id: the date tells two matches apart. */
TEST(game_without_a_message_id_two_matches_stay_two)
{
    Chat      chat  = chat_new(2);
    GameInput input = {.kind   = GAME_MESSAGE,
                       .from   = &chat.users[0],
                       .text   = "/match @p0 @p1 3 1",
                       .date_s = 1800000001};

    run(&chat, input);
    run(&chat, input);
    assert_int_equal(1, rating_fixture_count(chat.fixture, "match"));
    input.date_s++;
    run(&chat, input);
    assert_int_equal(2, rating_fixture_count(chat.fixture, "match"));
    input.text = "/match @p0 @p1 3 2";
    run(&chat, input);
    assert_int_equal(3, rating_fixture_count(chat.fixture, "match"));
    input = (GameInput){.kind = GAME_MESSAGE, .from = &chat.users[0], .text = "/undo", .date_s = 1800000009};
    run(&chat, input);
    run(&chat, input);
    assert_int_equal(2, rating_fixture_count(chat.fixture, "match where undone_at is null"));
    chat_done(&chat);
}

TEST(game_asks_back_for_the_same_result_within_a_minute)
{
    Chat        chat = chat_new(3);
    const char *data, *no;

    say(&chat, 0, "/match @p0 @p1 3 1");
    assert_contains(say(&chat, 1, "/match @p1 @p0 1 3"), "less than a minute ago");
    assert_int_equal(2, chat.output.list[0].buttons_count);
    data = arena_text(chat.fixture->arena, chat.output.list[0].buttons[0].data);
    assert_true(strlen(data) <= GAME_DATA_MAX);
    no = arena_text(chat.fixture->arena, chat.output.list[0].buttons[1].data);
    assert_int_equal(1, rating_fixture_count(chat.fixture, "match"));
    /* A third person answers neither way, and leaves the question to those concerned. */
    assert_contains(press(&chat, 2, "c8", data, ADMIN_NO)->list[0].html, "Only the players and the sender");
    assert_contains(press(&chat, 2, "c9", no, ADMIN_NO)->list[0].html, "Only the players and the sender");
    assert_int_equal(1, rating_fixture_count(chat.fixture, "match"));
    /* Pressed by two people at once: one match. */
    assert_contains(press(&chat, 0, "c1", data, ADMIN_NO)->list[1].html, "<b>Player 0</b> 3:1 Player 1");
    assert_int_equal(GAME_EDIT, chat.output.list[1].kind);
    assert_contains(press(&chat, 1, "c2", data, ADMIN_NO)->list[0].html, "was answered");
    assert_int_equal(2, rating_fixture_count(chat.fixture, "match"));
    /* What a press says is the client's word: it names a question of this group, and nothing else. */
    assert_contains(press(&chat, 1, "c4", "again:1:2:5:0:900", ADMIN_NO)->list[0].html, "more than a day old");
    assert_contains(press(&chat, 1, "c5", "again:99", ADMIN_NO)->list[0].html, "more than a day old");
    assert_contains(run(&chat, (GameInput){.kind        = GAME_BUTTON,
                                           .chat_id     = -77,
                                           .from        = &chat.users[0],
                                           .button_id   = "c6",
                                           .button_data = data})
                        ->list[0]
                        .html,
                    "more than a day old");
    say(&chat, 1, "/match @p1 @p0 1 3");
    data = arena_text(chat.fixture->arena, chat.output.list[0].buttons[0].data);
    database_exec(chat.fixture->db, "update rating.question set asked_at = asked_at - interval '25 hours'");
    assert_contains(press(&chat, 1, "c7", data, ADMIN_NO)->list[0].html, "more than a day old");
    assert_int_equal(2, rating_fixture_count(chat.fixture, "match"));
    say(&chat, 1, "/match @p1 @p0 1 3");
    assert_int_equal(1, rating_fixture_count(chat.fixture, "question"));
    data = arena_text(chat.fixture->arena, chat.output.list[0].buttons[0].data);
    no   = arena_text(chat.fixture->arena, chat.output.list[0].buttons[1].data);
    assert_contains(press(&chat, 1, "c3", no, ADMIN_NO)->list[1].html, "Not registered");
    assert_contains(press(&chat, 1, "c10", data, ADMIN_NO)->list[0].html, "was answered");
    assert_int_equal(2, rating_fixture_count(chat.fixture, "match"));
    chat_done(&chat);
}

/* Mistake 6: the reply was ignored, and a second /undo failed. */
TEST(game_undo_by_command_reply_and_button)
{
    Chat      chat  = chat_new(3);
    GameInput reply = {.kind            = GAME_MESSAGE,
                       .from            = &chat.users[0],
                       .text            = "/undo",
                       .is_reply        = true,
                       .reply_reference = "match:1",
                       .message_id      = 50};

    say(&chat, 0, "/match @p0 @p1 3 1");
    say(&chat, 0, "/match @p0 @p1 3 2");
    say(&chat, 0, "/match @p0 @p1 3 0");
    assert_contains(run(&chat, reply)->list[0].html, "<s>Player 0 3:1 Player 1</s>");
    assert_contains(chat.output.list[0].html, "recalculated: 2");
    assert_contains(run(&chat, reply)->list[0].html, "<s>Player 0 3:1 Player 1</s>");
    reply.reply_reference = NULL, reply.message_id = 51;
    assert_contains(run(&chat, reply)->list[0].html, "Reply to my message");
    assert_int_equal(2, rating_fixture_count(chat.fixture, "match where undone_at is null"));
    assert_contains(say(&chat, 2, "/undo"), "Only its players and admins");
    assert_contains(say(&chat, 0, "/undo"), "<s>Player 0 3:0 Player 1</s>");
    assert_contains(say(&chat, 0, "/undo"), "<s>Player 0 3:2 Player 1</s>");
    assert_contains(say(&chat, 0, "/undo"), "no match to undo");
    say(&chat, 0, "/match @p0 @p1 5 1");
    assert_contains(press(&chat, 2, "b0", "undo:4", ADMIN_NO)->list[0].html, "Only its players");
    assert_int_equal(GAME_TOAST, chat.output.list[0].kind);
    assert_contains(press(&chat, 2, "b1", "undo:4", ADMIN_YES)->list[1].html, "<s>Player 0 5:1 Player 1</s>");
    press(&chat, 2, "b1", "undo:4", ADMIN_YES);
    assert_contains(press(&chat, 2, "b2", "undo:4", ADMIN_YES)->list[0].html, "already undone");
    assert_int_equal(1500, (int)rating_fixture_rating(chat.fixture, 0));
    chat_done(&chat);
}

/* The words look like a target, so the last match of the group is not what is meant. */
TEST(game_undo_refuses_words)
{
    Chat chat = chat_new(3);

    say(&chat, 0, "/match @p0 @p1 3 1");
    say(&chat, 2, "/match @p0 @p2 3 1");
    assert_contains(say(&chat, 0, "/undo @p1"), "Reply to my message");
    assert_contains(say(&chat, 0, "/undo 1"), "Reply to my message");
    assert_contains(say(&chat, 0, "/undo last match"), "Reply to my message");
    assert_int_equal(2, rating_fixture_count(chat.fixture, "match where undone_at is null"));
    assert_contains(say(&chat, 0, "/undo help"), "24 hours");
    chat_done(&chat);
}

TEST(game_undo_that_comes_too_late_says_for_whom_it_is)
{
    Chat chat = chat_new(2);

    say(&chat, 0, "/match @p0 @p1 3 1");
    database_exec(chat.fixture->db, "update rating.match set played_at = now() - interval '2 hours'; "
                                    "update rating.history set played_at = (select played_at from rating.match)");
    rating_fixture_set(chat.fixture, "undo_hours", "1");
    assert_contains(say(&chat, 0, "/undo"), "more than 1 hours old: only an admin may undo it");
    rating_fixture_set(chat.fixture, "undo_hours", "0");
    assert_contains(say(&chat, 0, "/undo"), "In this group only admins can undo matches");
    assert_int_equal(1, rating_fixture_count(chat.fixture, "match where undone_at is null"));
    chat_done(&chat);
}

/* Without the first match player 0 gains by the second one the point that the first one gave. */
TEST(game_undo_lists_only_ratings_that_changed)
{
    Chat        chat = chat_new(3);
    const char *text;

    rating_fixture_set(chat.fixture, "k_factor", "1");
    say(&chat, 0, "/match @p0 @p1 3 1");
    say(&chat, 0, "/match @p0 @p2 3 1");
    text = run(&chat, (GameInput){.kind            = GAME_MESSAGE,
                                  .from            = &chat.users[0],
                                  .text            = "/undo",
                                  .is_reply        = true,
                                  .reply_reference = "match:1",
                                  .message_id      = 50})
               ->list[0]
               .html;
    assert_null(strstr(text, "Player 0:"));
    assert_contains(text, "Player 1: 1499 → <b>1500</b>");
    assert_contains(text, "Player 2: 1500 → <b>1499</b>");
    assert_contains(text, "Later matches recalculated: 1. Ratings changed: 2.");
    chat_done(&chat);
}

/* The edit of the message may come late, or be refused. */
TEST(game_undo_by_button_says_so_in_its_toast)
{
    Chat chat = chat_new(2);

    say(&chat, 0, "/match @p0 @p1 3 1");
    press(&chat, 0, "a", "undo:1", ADMIN_NO);
    assert_int_equal(GAME_TOAST, chat.output.list[0].kind);
    assert_string_equal("↩️ Undone", chat.output.list[0].html);
    assert_true(chat.output.list[0].is_brief);
    assert_false(press(&chat, 0, "b", "undo:1", ADMIN_NO)->list[0].is_brief);
    chat_done(&chat);
}

/* Every Russian group has two Sashas. */
TEST(game_tells_players_of_one_name_apart)
{
    Chat chat = chat_new(4);

    for (int i = 0; i < 3; i++)
        chat.users[i].name = "Саша";
    chat.users[1].name     = "Са\u200bша\u200d"; /* looks the same */
    chat.users[2].username = NULL;
    for (int i = 0; i < 3; i++)
        say(&chat, i, "/top");
    assert_contains(say(&chat, 0, "/match @p0 @p1 3 1"), "Саша (@\u2060p0)</b> 3:1 Саша (@\u2060p1)");
    assert_contains(run(&chat, (GameInput){.kind       = GAME_MESSAGE,
                                           .from       = &chat.users[0],
                                           .reply_to   = &chat.users[2],
                                           .is_reply   = true,
                                           .text       = "/match 3 1",
                                           .message_id = 90})
                        ->list[0]
                        .html,
                    "3:1 Саша (…0002)");
    assert_contains(say(&chat, 0, "/top"), "Саша (@\u2060p1)");
    assert_contains(say(&chat, 0, "/me"), "Саша (@\u2060p0)");
    assert_contains(say(&chat, 0, "/history"), "Саша (@\u2060p0) 3:1 Саша (…0002)");
    assert_contains(say(&chat, 0, "/history @p1"), "Саша (@\u2060p1) 1:3 Саша (@\u2060p0)");
    assert_contains(say(&chat, 0, "/h2h @p1"), "Саша (@\u2060p0)");
    assert_contains(say(&chat, 0, "/undo"), "<s>Саша (@\u2060p0) 3:1 Саша (…0002)</s>");
    assert_contains(say(&chat, 3, "/match @p3 @p1 1 0"), "<b>Player 3</b> 1:0 Саша (@\u2060p1)");
    chat_done(&chat);
}

/* A name is a text that its user chooses: it links, pings, commands and turns nothing in the bot's messages. */
TEST(game_names_are_only_text)
{
    Chat chat = chat_new(6);

    chat.users[0].name = "https://evil.example/win";
    chat.users[1].name = "/undo @ann #x";
    chat.users[2].name = "An\u202En\u2067\u200F"; /* right to left */
    chat.users[3].name = " \u200B\u3164\u00AD\n";
    chat.users[4].name = "A\tB\u2028C";
    chat.users[5].name = "\u2800", chat.users[5].username = NULL;
    for (int i = 0; i < 6; i++)
        say(&chat, i, "/top");
    assert_contains(
        say(&chat, 0, "/match @p0 @p1 3 1"),
        "<b>https:\u2060/\u2060/\u2060evil.\u2060example/\u2060win</b> 3:1 /\u2060undo @\u2060ann #\u2060x\n");
    assert_contains(say(&chat, 2, "/match @p2 @p3 3 1"), "<b>Ann</b> 3:1 @\u2060p3\n");
    assert_contains(say(&chat, 4, "/match @p4 @p3 3 1"), "<b>A B C</b> 3:1");
    assert_contains(say(&chat, 5, "/me"), "5000000005 has not");
    assert_contains(say(&chat, 0, "/stats @x.t.me/evil"), "<code>@x.t.me/evil</code>");
    chat_done(&chat);
}

TEST(game_pages_of_the_ranking)
{
    Chat              chat = chat_new(24);
    const GameOutput *output;

    for (int i = 0; i < 24; i += 2)
        rating_fixture_play(chat.fixture, i, i + 1, 1, 0);
    assert_contains(say(&chat, 0, "/top"), "<b>Ranking</b> (1–10 of 24)");
    assert_contains(chat.output.list[0].html, "🥇 Player 0 - <b>1516</b> (+16) · 1");
    assert_int_equal(1, chat.output.list[0].buttons_count);
    assert_string_equal("top:10", chat.output.list[0].buttons[0].data);
    output = press(&chat, 0, "a", "top:10", ADMIN_NO);
    assert_int_equal(GAME_EDIT, output->list[1].kind);
    assert_contains(output->list[1].html, "(11–20 of 24)");
    assert_int_equal(2, output->list[1].buttons_count);
    assert_contains(press(&chat, 0, "b", "top:20", ADMIN_NO)->list[1].html, "(21–24 of 24)");
    assert_contains(press(&chat, 0, "c", "top:500", ADMIN_NO)->list[1].html, "(1–10 of 24)");
    assert_contains(say(&chat, 0, "/ranking 21"), "(21–24 of 24)");
    /* Twelve share the first place, twelve the thirteenth, on whichever page they are. */
    assert_contains(say(&chat, 0, "/ranking 11"), "\n🥇 Player 20 -");
    assert_contains(chat.output.list[0].html, "\n13. Player 1 -");
    assert_contains(chat.output.list[0].html, "\n13. Player 15 -");
    assert_contains(say(&chat, 0, "/ranking 14"), "\n13. Player 3 -");
    assert_contains(say(&chat, 3, "/me"), "Place: 13");
    assert_contains(say(&chat, 2, "/match @p0 @p2 1 0"), "place 1");
    assert_contains(say(&chat, 2, "/ranking 2"), "\n🥈 Player 4 -");
    chat_done(&chat);
}

TEST(game_shows_a_player_matches_and_head_to_head)
{
    Chat chat = chat_new(3);

    say(&chat, 0, "/match @p0 @p1 3 1");
    say(&chat, 0, "/match @p0 @p1 4 1");
    say(&chat, 0, "/match @p0 @p2 1 1");
    say(&chat, 0, "/match @p1 @p0 2 0");
    assert_contains(say(&chat, 1, "/stats @p0"), "Games: 4 - won 2, drawn 1, lost 1");
    assert_contains(chat.output.list[0].html, "Last: 🔴⚪🟢🟢");
    assert_contains(say(&chat, 1, "/me"), "Player 1");
    assert_contains(say(&chat, 0, "/history"), "Player 1 2:0 Player 0");
    assert_contains(say(&chat, 0, "/history @p2"), "Player 2 1:1 Player 0");
    assert_contains(say(&chat, 2, "/h2h @p0 @p1"), "<b>Player 0 - Player 1</b>: 2 : 1, drawn 0\nPoints: 7 : 4");
    assert_contains(say(&chat, 1, "/h2h @p0"), "<b>Player 1 - Player 0</b>: 1 : 2");
    assert_contains(say(&chat, 1, "/h2h @p2"), "have not played against each other");
    say(&chat, 0, "/undo");
    assert_contains(say(&chat, 0, "/me"), "won 2, drawn 1, lost 0");
    chat_done(&chat);
}

TEST(game_draws_a_chart_and_exports)
{
    Chat              chat = chat_new(3);
    const GameOutput *output;
    GameInput input = {.kind = GAME_MESSAGE, .from = &chat.users[0], .text = "/chart @p0 @p1", .message_id = 90};

    database_exec(chat.fixture->db, "update rating.player set name = '=cmd(\"x\"), y' where name = 'Player 1'");
    say(&chat, 2, "/match @p0 @p2 3 1");
    rating_fixture_play(chat.fixture, 0, 1, 1, 0);
    output = run(&chat, input);
    assert_int_equal(GAME_PHOTO, output->list[0].kind);
    assert_memory_equal("\x89PNG", output->list[0].file, 4);
    for (int i = 0; i < GAME_CHARTS - 1; i++)
        assert_int_equal(GAME_PHOTO, run(&chat, input)->list[0].kind);
    assert_contains(run(&chat, input)->list[0].html, "at most 5 charts a minute");
    input.text = "/export", input.message_id = 91;
    output = run(&chat, input);
    assert_int_equal(2, output->count);
    assert_int_equal(GAME_DOCUMENT, output->list[0].kind);
    assert_string_equal("matches.csv", output->list[0].file_name);
    assert_contains(output->list[0].file, "\xEF\xBB\xBFmatch,");
    assert_contains(output->list[0].file, "\"'=cmd(\"\"x\"\"), y\"");
    assert_contains(output->list[1].file,
                    "\xEF\xBB\xBFplace,player,username,rating,deviation,games,change_7_days\r\n1,\"Player "
                    "0\",\"p0\",1531,,2,31");
    assert_contains(output->list[1].file, "\r\n2,\"");
    rating_fixture_set(chat.fixture, "system", "glicko2");
    database_exec(chat.fixture->db, "delete from rating.usage");
    input.message_id = 92;
    assert_contains(run(&chat, input)->list[1].file, "1531,350,2,31");
    chat_done(&chat);
}

/* Which day it was is decided by PostgreSQL's data about time zones. */
TEST(game_shows_dates_in_the_time_zone_of_the_group)
{
    Chat      chat  = chat_new(2);
    GameInput input = {.kind = GAME_MESSAGE, .from = &chat.users[0], .admin = ADMIN_YES, .message_id = 500};
    static const struct {
        const char *text, *answer;
    } rows[] = {
        {"/settings timezone",              "<code>timezone</code> = <b>UTC</b> - time zone of dates"         },
        {"/settings timezone moscow",       "timezone = Europe/Moscow"                                        },
        {"/settings timezone Mars/Olympus", "timezone cannot be <code>Mars/Olympus</code>: time zone of dates"},
        {"/settings timezone posix/Zulu",   "cannot be"                                                       },
        {"/settings",                       "<code>timezone</code> = <b>Europe/Moscow</b>"                    },
        {"/history",                        "02.03.2027  Player"                                              },
        {"/history @p0",                    "02.03.2027  Player"                                              },
        {"/h2h @p0 @p1",                    "Last match: 02.03.2027"                                          },
        {"/settings timezone utc",          "timezone = UTC"                                                  },
        {"/history",                        "01.03.2027  Player"                                              },
    };

    rating_fixture_play(chat.fixture, 0, 1, 1, 0);
    database_exec(chat.fixture->db, "update rating.match set played_at = '2027-03-01 22:30 UTC'");
    database_exec(chat.fixture->db, "update rating.history set played_at = '2027-03-01 22:30 UTC'");
    for (size_t i = 0; i < COUNT(rows); i++) {
        input.text = rows[i].text, input.message_id++;
        assert_contains(run(&chat, input)->list[0].html, rows[i].answer);
    }
    input.text = "/chart", input.message_id++;
    assert_contains(run(&chat, input)->list[0].html, "Ratings over time (UTC)");
    /* A zone that this server does not know, as after a restore. */
    database_exec(chat.fixture->db, "update rating.groups set timezone = 'Mars/Olympus'");
    assert_contains(say(&chat, 0, "/history"), "01.03.2027  Player");
    chat_done(&chat);
}

static const char *topic_url(int64_t chat_id, int64_t topic, Arena *arena)
{
    assert_true(chat_id == FIXTURE_CHAT);
    return arena_print(arena, "https://example.org/%d", (int)topic);
}

TEST(game_greets_the_group_that_it_was_added_to)
{
    Chat              chat   = chat_new(1);
    const GameOutput *output = run(&chat, (GameInput){.kind = GAME_ADDED, .chat_id = -79, .language = "ru"});

    assert_int_equal(1, output->count);
    assert_contains(output->list[0].html, "Я веду рейтинг этой группы");
    assert_int_equal(0, run(&chat, (GameInput){.kind = GAME_ADDED, .chat_id = 79, .is_private = true})->count);
    chat_done(&chat);
}

/* The message about the match shows it as won otherwise, with a button that undoes nothing. */
TEST(game_undo_edits_the_message_about_the_match)
{
    Chat              chat = chat_new(2);
    const GameOutput *output;
    const char       *reference;

    run(&chat,
        (GameInput){.kind = GAME_MESSAGE, .from = &chat.users[0], .text = "/match @p0 @p1 3 1", .message_id = 90});
    reference = chat.output.list[0].reference;
    output = run(&chat, (GameInput){.kind = GAME_MESSAGE, .from = &chat.users[0], .text = "/undo", .message_id = 91});
    assert_int_equal(2, output->count);
    assert_int_equal(GAME_SAY, output->list[0].kind);
    assert_int_equal(GAME_EDIT_ABOUT, output->list[1].kind);
    assert_string_equal(reference, output->list[1].reference);
    assert_string_equal("↩️ Undone: <s>Player 0 3:1 Player 1</s>", output->list[1].html);
    chat_done(&chat);
}

TEST(game_settings_are_for_admins_and_apply_from_now_on)
{
    Chat      chat  = chat_new(2);
    GameInput input = {.kind = GAME_MESSAGE, .from = &chat.users[0], .admin = ADMIN_YES};
    static const struct {
        const char *text, *answer;
    } rows[] = {
        {"/settings",               "Id of this group, for operators: <code>-"                           },
        {"/settings",               "<code>k</code> = <b>32</b>"                                         },
        {"/settings k 10",          "k = 10"                                                             },
        {"/settings k",             "<code>k</code> = <b>10</b> - points at stake"                       },
        {"/settings k 24 5",        "A setting has one value: <code>/settings k 24</code>"               },
        {"/settings color",         "There is no setting <code>color</code>"                             },
        {"/settings margin вкл", "margin = on"                                                        },
        {"/settings margin off",    "margin = off"                                                       },
        {"/settings undo 0",        "undo = 0"                                                           },
        {"/undo help",              "only admins can undo"                                               },
        {"/settings undo 24",       "undo = 24"                                                          },
        {"/settings k 401",         "k cannot be <code>401</code>"                                       },
        {"/settings k ten",         "k cannot be <code>ten</code>"                                       },
        {"/settings color red",     "There is no setting <code>color</code>"                             },
        {"/settings start 0",       "start cannot be <code>0</code>: rating of a new player, 100 to 9000"},
        {"/settings start 9001",    "start cannot be <code>9001</code>"                                  },
        {"/settings draws off",     "draws = off"                                                        },
        {"/settings system chess",  "system cannot be <code>chess</code>"                                },
        {"/settings matches here",  "matches = a topic"                                                  },
        {"/settings rankings here", "rankings = a topic"                                                 },
        {"/settings language ru",   "Действует с этого момента"                    },
        {"/settings k 401",         "k не может быть <code>401</code>"                        },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        input.text = rows[i].text, input.message_id = 200 + (int64_t)i, input.topic = 7;
        assert_contains(run(&chat, input)->list[0].html, rows[i].answer);
    }
    /* Mistake 12: a topic check that allowed any other topic. */
    input.text = "/match @p0 @p1 3 1", input.message_id = 300, input.topic = 8;
    assert_contains(run(&chat, input)->list[0].html, "в другой теме");
    input.topic = 0, input.message_id++;
    assert_contains(run(&chat, input)->list[0].html, "в другой теме");
    input.topic_url = topic_url, input.message_id++;
    assert_contains(run(&chat, input)->list[0].html, "в <a href=\"https://example.org/7\">другой теме</a> этой");
    input.text = "/settings matches", input.message_id++;
    assert_contains(run(&chat, input)->list[0].html, "<b><a href=\"https://example.org/7\">тема</a></b>");
    input.text = "/match @p0 @p1 3 1", input.topic_url = NULL;
    database_exec(chat.fixture->db, "delete from rating.usage");
    input.topic = 7, input.message_id++;
    assert_contains(run(&chat, input)->list[0].html, "(+5), место 1");
    input.text = "/match @p0 @p1 1 1", input.message_id++;
    assert_contains(run(&chat, input)->list[0].html, "ничьи выключены");
    input.text = "/top", input.topic = 8, input.message_id++;
    assert_contains(run(&chat, input)->list[0].html, "в другой теме");
    assert_contains(press(&chat, 0, "s1", "set:language:en", ADMIN_YES)->list[1].html, "<b>Settings</b>");
    assert_contains(press(&chat, 0, "s2", "set:language:ru", ADMIN_NO)->list[0].html, "Only admins");
    input = (GameInput){
        .kind = GAME_MESSAGE, .is_anonymous = true, .admin = ADMIN_YES, .text = "/settings k 20", .message_id = 400};
    assert_contains(run(&chat, input)->list[0].html, "k = 20");
    input.text = "/match 3 1", input.message_id = 401, input.topic = 7;
    assert_contains(run(&chat, input)->list[0].html, "I cannot see who you are");
    chat_done(&chat);
}

TEST(game_limits_commands_of_a_user)
{
    Chat chat = chat_new(2);
    int  said = 0;

    for (int i = 0; i < GAME_PER_USER + 5; i++)
        said += say(&chat, 0, "/top")[0] != '\0';
    assert_int_equal(GAME_PER_USER + 1, said); /* the first one beyond is answered, the others are not */
    /* A match that is refused is never refused in silence. */
    for (int i = 0; i < 3; i++)
        assert_contains(say(&chat, 0, "/match @p0 @p1 3 1"), "was not registered");
    assert_contains(press(&chat, 0, "a", "again:1", ADMIN_NO)->list[0].html, "was not registered");
    assert_int_equal(0, press(&chat, 0, "b", "top:10", ADMIN_NO)->count);
    assert_contains(say(&chat, 1, "/top"), "Nobody has played yet");
    database_exec(chat.fixture->db, "update rating.usage set at = at - interval '61 seconds'");
    assert_contains(say(&chat, 0, "/top"), "Nobody has played yet");
    database_exec(chat.fixture->db, "update rating.usage set at = at - interval '1 hour'");
    say(&chat, 0, "/top");
    assert_in_range(rating_fixture_count(chat.fixture, "usage"), 1, 40);
    chat_done(&chat);
}

TEST(game_limits_are_settings_and_hold_for_forwarded_commands_and_private_chats)
{
    Chat      chat    = chat_new(2);
    GameInput forward = {.kind         = GAME_MESSAGE,
                         .from         = &chat.users[0],
                         .text         = "/top",
                         .is_forwarded = true,
                         .per_user     = 2,
                         .per_group    = 3};
    GameInput alone   = {.kind       = GAME_MESSAGE,
                         .chat_id    = 5,
                         .is_private = true,
                         .from       = &chat.users[0],
                         .text       = "/start",
                         .per_user   = 2,
                         .per_group  = 3};

    for (int i = 0; i < 5; i++) {
        forward.message_id = alone.message_id = ++chat.message_id;
        assert_int_equal(i < 3, run(&chat, forward)->count);
        if (i == 2)
            assert_contains(chat.output.list[0].html, "Too many commands");
        assert_int_equal(i < 3, run(&chat, alone)->count);
    }
    alone.chat_id = 6, alone.from = &chat.users[1]; /* another user is not held up */
    assert_int_equal(1, run(&chat, alone)->count);
    /* The group's own limit. */
    database_exec(chat.fixture->db, "delete from rating.usage");
    forward.is_forwarded = false, forward.per_user = 100;
    for (int i = 0; i < 6; i++) {
        forward.from       = &chat.users[i % 2];
        forward.message_id = ++chat.message_id;
        assert_int_equal(i < 4, run(&chat, forward)->count);
    }
    chat_done(&chat);
}

/* What was sent while the bot was away arrives at once, and counts for the minutes in which it was sent. */
TEST(game_limits_and_times_of_a_backlog_are_those_of_its_messages)
{
    Chat      chat  = chat_new(2);
    int64_t   begin = (int64_t)time(NULL) - 7200;
    GameInput input = {.kind = GAME_MESSAGE, .from = &chat.users[0]};
    char      text[64];

    for (int i = 0; i < 2 * GAME_PER_USER; i++) {
        snprintf(text, sizeof text, "/match @p0 @p1 %d 1", i / 2 + 2);
        input.text = text, input.message_id = ++chat.message_id, input.date_s = begin + (int64_t)i * 61;
        assert_contains(run(&chat, input)->list[0].html, "🏆");
    }
    assert_int_equal(2 * GAME_PER_USER,
                     rating_fixture_count(chat.fixture, "match where played_at < now() - interval '1 hour'"));
    for (int i = 0; i < GAME_PER_USER; i++) {
        input.message_id = ++chat.message_id, input.date_s = begin - 1, input.text = "/me";
        run(&chat, input);
    }
    input.message_id = ++chat.message_id;
    assert_contains(run(&chat, input)->list[0].html, "Too many commands");
    chat_done(&chat);
}

TEST(game_flood_of_one_leaves_the_group_its_limit)
{
    Chat      chat    = chat_new(2);
    GameUser  eve     = {.id = 990, .name = "Eve"};
    GameInput press   = {.kind = GAME_BUTTON, .from = &eve, .button_data = "x", .per_group = 40};
    GameInput top     = {.kind = GAME_MESSAGE, .from = &chat.users[0], .text = "/top", .per_group = 40};
    GameInput other   = {.kind = GAME_MESSAGE, .from = &chat.users[1], .text = "/top", .per_group = 40};
    GameInput channel = {
        .kind = GAME_MESSAGE, .is_anonymous = true, .sender_chat = -100500, .text = "/top", .admin = ADMIN_NO};
    int answered = 0;

    for (int i = 0; i < 100; i++) {
        press.button_id = arena_print(chat.fixture->arena, "p%d", i);
        answered += run(&chat, press)->count;
        assert_true(answered <= GAME_PER_USER + 1 && chat.output.is_ignored == (i > GAME_PER_USER));
        top.message_id = ++chat.message_id;
        run(&chat, top);
    }
    other.message_id = ++chat.message_id;
    assert_contains(run(&chat, other)->list[0].html, "Nobody has played yet");
    /* Who writes as a channel has a limit of its own, and leaves anonymous administrators theirs. */
    for (int i = 0; i < 40; i++) {
        channel.message_id = ++chat.message_id;
        run(&chat, channel);
    }
    assert_true(chat.output.is_ignored);
    channel.sender_chat = 0, channel.admin = ADMIN_YES, channel.message_id = ++chat.message_id;
    assert_contains(run(&chat, channel)->list[0].html, "Nobody has played yet");
    chat_done(&chat);
}

/* In the name of a channel anyone may write. */
TEST(game_anonymous_senders_are_admins_only_in_the_groups_own_name)
{
    Chat      chat  = chat_new(2);
    GameInput input = {.kind = GAME_MESSAGE, .is_anonymous = true, .text = "/settings k 400", .message_id = 1};

    say(&chat, 0, "/match @p0 @p1 3 1");
    input.admin = ADMIN_NO;
    assert_contains(run(&chat, input)->list[0].html, "Only admins");
    input.admin = ADMIN_UNKNOWN;
    assert_contains(run(&chat, input)->list[0].html, "could not find out");
    input.text = "/undo", input.admin = ADMIN_NO, input.message_id = 2;
    assert_contains(run(&chat, input)->list[0].html, "Only its players and admins");
    assert_int_equal(1, rating_fixture_count(chat.fixture, "match where undone_at is null"));
    input.admin = ADMIN_YES, input.message_id = 3;
    assert_contains(run(&chat, input)->list[0].html, "Undone");
    input.text = "/settings k 24", input.message_id = 4;
    assert_contains(run(&chat, input)->list[0].html, "k = 24");
    chat_done(&chat);
}

/* Ids of presses and of messages in basic groups are unique for one bot at best. */
TEST(game_keys_name_the_bot_the_chat_and_what_is_changed)
{
    Chat      chat  = chat_new(2);
    GameInput other = {.kind = GAME_MESSAGE, .chat_id = -77, .from = &chat.users[0], .text = "hi", .message_id = 1};
    GameInput undo  = {.kind        = GAME_BUTTON,
                       .chat_id     = -77,
                       .from        = &chat.users[0],
                       .button_id   = "5",
                       .button_data = "undo:2",
                       .message_id  = 9};

    run(&chat, other);
    other.from = &chat.users[1], other.message_id = 2;
    run(&chat, other);
    say(&chat, 0, "/match @p0 @p1 3 1");
    other.text = "/match @p0 @p1 4 1", other.message_id = 3;
    assert_contains(run(&chat, other)->list[0].html, "4:1");
    assert_contains(press(&chat, 0, "5", "undo:1", ADMIN_NO)->list[1].html, "<s>Player 0 3:1 Player 1</s>");
    assert_contains(run(&chat, undo)->list[1].html, "<s>Player 0 4:1 Player 1</s>");
    assert_int_equal(0, rating_fixture_count(chat.fixture, "match where undone_at is null"));
    /* Two bots in one chat have their own message ids. */
    other.text = "/match @p0 @p1 5 1", other.message_id = 4, other.bot_id = 11;
    run(&chat, other);
    other.text = "/match @p0 @p1 6 1", other.bot_id = 12;
    run(&chat, other);
    assert_int_equal(2, rating_fixture_count(chat.fixture, "match where undone_at is null"));
    /* The same message with another match is refused in words, and is no success. */
    other.text = "/match @p0 @p1 7 1";
    assert_contains(run(&chat, other)->list[0].html, "already used for another match");
    assert_int_equal(2, rating_fixture_count(chat.fixture, "match where undone_at is null"));
    /* A very long id of a press. */
    undo.button_id = arena_print(chat.fixture->arena, "%0200d", 7), undo.button_data = "undo:4";
    assert_contains(run(&chat, undo)->list[1].html, "<s>Player 0 6:1 Player 1</s>");
    assert_contains(run(&chat, undo)->list[1].html, "<s>Player 0 6:1 Player 1</s>");
    assert_int_equal(1, rating_fixture_count(chat.fixture, "match where undone_at is null"));
    chat_done(&chat);
}

TEST(game_a_press_changes_neither_presence_nor_membership)
{
    Chat     chat     = chat_new(2);
    GameUser stranger = {.id = 99, .name = "Stranger"};

    say(&chat, 0, "/match @p0 @p1 3 1");
    run(&chat, (GameInput){.kind = GAME_MEMBERS, .left = &chat.users[1], .left_count = 1});
    assert_contains(press(&chat, 1, "c1", "undo:1", ADMIN_NO)->list[0].html, "Only its players");
    assert_int_equal(1, rating_fixture_count(chat.fixture, "member where not is_present"));
    run(&chat, (GameInput){.kind = GAME_BUTTON, .from = &stranger, .button_id = "c2", .button_data = "top:0"});
    assert_int_equal(2, chat.output.count);
    assert_int_equal(2, rating_fixture_count(chat.fixture, "member"));
    chat_done(&chat);
}

TEST(game_takes_the_language_of_users_until_the_first_command)
{
    Chat      chat  = chat_new(2);
    GameInput input = {.kind = GAME_MEMBERS, .chat_id = -78, .language = "en"};

    run(&chat, input);
    input.language = "ru";
    run(&chat, input);
    assert_int_equal(1, rating_fixture_count(chat.fixture, "groups where chat_id = -78 and language = 'ru'"));
    input.kind = GAME_MESSAGE, input.from = &chat.users[0], input.text = "/me", input.message_id = 1;
    assert_contains(run(&chat, input)->list[0].html, "ещё не играл");
    input.language = "en", input.message_id = 2;
    assert_contains(run(&chat, input)->list[0].html, "ещё не играл");
    chat_done(&chat);
}

/* Messages that were sent to the old chat come after the move, because chats do not wait for each other. */
TEST(game_a_group_that_moved_gets_what_was_sent_to_its_old_chat)
{
    Chat      chat  = chat_new(2);
    GameInput input = {.kind = GAME_MESSAGE, .from = &chat.users[0], .text = "/match @p0 @p1 4 1", .message_id = 700};

    say(&chat, 0, "/match @p0 @p1 3 1");
    run(&chat, (GameInput){.kind = GAME_MEMBERS, .chat_id = -100999, .came = chat.users, .came_count = 2});
    run(&chat, (GameInput){.kind = GAME_MOVED, .moved_to = -100999});
    assert_contains(run(&chat, input)->list[0].html, "(+15)");
    input.chat_id = -100999, input.text = "/match @p0 @p1 5 1", input.message_id = 1;
    assert_contains(run(&chat, input)->list[0].html, "(+13)");
    run(&chat, (GameInput){.kind = GAME_MOVED, .moved_to = -100999});
    assert_int_equal(1, rating_fixture_count(chat.fixture, "groups"));
    assert_int_equal(3, rating_fixture_count(chat.fixture, "match"));
    /* It moves again. */
    run(&chat, (GameInput){.kind = GAME_MOVED, .chat_id = -100999, .moved_to = -100777});
    input.chat_id = FIXTURE_CHAT, input.text = "/match @p0 @p1 6 1", input.message_id = 701;
    assert_contains(run(&chat, input)->list[0].html, "6:1");
    assert_int_equal(1, rating_fixture_count(chat.fixture, "groups where chat_id = -100777"));
    assert_int_equal(1, rating_fixture_count(chat.fixture, "groups"));
    chat_done(&chat);
}

TEST(game_export_of_many_matches_has_the_newest_that_fit)
{
    Chat              chat = chat_new(2);
    const GameOutput *output;

    say(&chat, 0, "/match @p0 @p1 3 1");
    database_exec(chat.fixture->db, "update rating.player set name = repeat('Ж', 60)");
    database_exec(chat.fixture->db,
                  "insert into rating.match (group_id, key, player_a, player_b, score_a, score_b, rules_id, played_at) "
                  "select group_id, 'x' || i, player_a, player_b, 1, 0, 1, now() from rating.match, "
                  "generate_series(1, 12000) i");
    output = run(&chat, (GameInput){.kind = GAME_MESSAGE, .from = &chat.users[0], .text = "/export", .message_id = 5});
    assert_int_equal(2, output->count);
    assert_contains(output->list[0].html, "older ones by HTTP");
    assert_true(output->list[0].file_size <= GAME_FILE_MAX && output->list[0].file_size > GAME_FILE_MAX - 1000);
    assert_non_null(strstr(output->list[0].file, "\r\n12001,"));
    assert_null(strstr(output->list[0].file, "\r\n1,"));
    /* Files are large: one export a minute. */
    output = run(&chat, (GameInput){.kind = GAME_MESSAGE, .from = &chat.users[1], .text = "/export", .message_id = 6});
    assert_int_equal(1, output->count);
    assert_contains(output->list[0].html, "once a minute");
    rating_fixture_free(chat.fixture); /* a replay would not give these ratings */
}

TEST(game_remembers_names_from_every_message)
{
    Chat     chat  = chat_new(2);
    GameUser carol = {.id = 77, .name = "<b>Carol</b> & co", .username = "carol"};

    assert_contains(say(&chat, 0, "/match @p0 @carol 3 1"), "I do not know @carol");
    run(&chat, (GameInput){.kind = GAME_MESSAGE, .from = &carol, .text = "hi", .message_id = 900});
    assert_contains(say(&chat, 0, "/match @p0 @CAROL 3 1"), "3:1 &lt;b&gt;Carol&lt;/\u2060b&gt; &amp; co\n");
    /* Known from another group only. */
    run(&chat, (GameInput){
                   .kind       = GAME_MESSAGE,
                   .chat_id    = -5,
                   .from       = &(GameUser){.id = 78, .name = "Dave", .username = "dave"},
                   .text       = "hi",
                   .message_id = 1
    });
    assert_contains(say(&chat, 0, "/match @p0 @dave 3 1"), "I do not know @dave");
    /* The name changes hands. */
    run(&chat, (GameInput){
                   .kind       = GAME_MESSAGE,
                   .from       = &(GameUser){.id = 79, .name = "Eve", .username = "carol"},
                   .text       = "hi",
                   .date_s     = 1800000100,
                   .message_id = 901
    });
    assert_contains(say(&chat, 0, "/match @p0 @carol 3 1"), "3:1 Eve\n");
    assert_contains(say(&chat, 0, "/stats @carol"), "<b>Eve</b>");
    chat_done(&chat);
}

TEST(game_group_moves_and_is_left)
{
    Chat chat = chat_new(2);

    say(&chat, 0, "/match @p0 @p1 3 1");
    run(&chat, (GameInput){.kind = GAME_MOVED, .moved_to = -100999});
    run(&chat, (GameInput){.kind = GAME_MOVED, .moved_to = -100999});
    assert_contains(run(&chat, (GameInput){.kind       = GAME_MESSAGE,
                                           .chat_id    = -100999,
                                           .from       = &chat.users[0],
                                           .text       = "/top",
                                           .message_id = 1})
                        ->list[0]
                        .html,
                    "Player 0 - <b>1516</b>");
    database_exec(chat.fixture->db, "update rating.groups set is_published = true");
    run(&chat, (GameInput){.kind = GAME_REMOVED}); /* from the old chat */
    assert_int_equal(1, rating_fixture_count(chat.fixture, "groups where is_active and is_published"));
    run(&chat, (GameInput){.kind = GAME_REMOVED, .chat_id = -100999});
    assert_int_equal(1, rating_fixture_count(chat.fixture, "groups where not is_active and not is_published"));
    run(&chat, (GameInput){.kind        = GAME_BUTTON,
                           .chat_id     = -100999,
                           .from        = &chat.users[0],
                           .button_id   = "late",
                           .button_data = "top:0"});
    assert_int_equal(1, rating_fixture_count(chat.fixture, "groups where not is_active"));
    run(&chat, (GameInput){.kind = GAME_REMOVED, .chat_id = -4});
    run(&chat,
        (GameInput){.kind = GAME_MESSAGE, .chat_id = -100999, .from = &chat.users[0], .text = "hi", .message_id = 2});
    assert_int_equal(0, rating_fixture_count(chat.fixture, "groups where not is_active"));
    chat_done(&chat);
}

TEST(game_quotes_what_was_written_shortened_and_as_code)
{
    Chat chat = chat_new(1);
    char text[3000];

    assert_contains(say(&chat, 0, "/history https://evil.example/win"),
                    "I do not know <code>https://evil.example/win</code>");
    snprintf(text, sizeof text, "/stats %02000d", 0);
    assert_true(strlen(say(&chat, 0, text)) < 300);
    assert_contains(chat.output.list[0].html, "0…</code> here");
    chat_done(&chat);
}

TEST(game_private_chats_and_help)
{
    Chat      chat  = chat_new(1);
    GameInput input = {.kind       = GAME_MESSAGE,
                       .chat_id    = 5,
                       .is_private = true,
                       .from       = &chat.users[0],
                       .text       = "/start",
                       .message_id = 1};

    assert_contains(run(&chat, input)->list[0].html, "Add me to a group");
    input.language = "ru";
    assert_contains(run(&chat, input)->list[0].html, "Добавьте меня");
    input.text = "/top";
    assert_contains(run(&chat, input)->list[0].html, "работает в группе");
    input.text = "hello";
    assert_int_equal(0, run(&chat, input)->count);
    assert_int_equal(1, rating_fixture_count(chat.fixture, "groups"));
    assert_contains(say(&chat, 0, "/help"), "/match @ann @bob 3 1");
    assert_contains(say(&chat, 0, "/undo help"), "for 24 hours");
    for (const AskCommand *row = ask_commands; row->command; row++) {
        database_exec(chat.fixture->db, "delete from rating.usage");
        assert_true(say(&chat, 0, arena_print(chat.fixture->arena, "/%s help", row->command))[0] != '\0');
    }
    chat_done(&chat);
}

/* 290.32 after the first match, grown by 100 days: sqrt(290.32^2 + 100 * 10.423^2). */
TEST(game_stats_show_the_deviation_of_today)
{
    Chat chat = chat_new(2);

    rating_fixture_set(chat.fixture, "system", "glicko2");
    say(&chat, 0, "/match @p0 @p1 3 1");
    assert_contains(say(&chat, 0, "/stats @p0"), "±290");
    database_exec(chat.fixture->db, "update rating.match set played_at = played_at - interval '100 days'");
    database_exec(chat.fixture->db, "update rating.history set played_at = played_at - interval '100 days'");
    assert_contains(say(&chat, 0, "/stats @p0"), "±308");
    chat_done(&chat);
}

TEST(game_says_why_it_failed)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    GameUser                  user  = {.id = 1, .name = "A"};
    GameInput                 input = {
                        .kind = GAME_MESSAGE, .chat_id = -1, .from = &user, .text = "/match @a @b 1 0", .escape = escape};
    Error      conflict = {.code = ERR_BUSY, .sqlstate = MATCH_CONFLICT}, outage = {.code = ERR_UNAVAILABLE};
    Error      internal = {.code = ERR_INTERNAL};
    GameOutput output;

    game_input_parse(&input, arena);
    assert_true(game_failed(&input, &conflict, arena, &output));
    assert_contains(output.list[0].html, "send it again");
    assert_true(game_failed(&input, &outage, arena, &output));
    assert_contains(output.list[0].html, "is saved and will run");
    assert_true(game_failed(&input, &internal, arena, &output));
    assert_contains(output.list[0].html, "Nothing was changed");
    input.text = "hi";
    game_input_parse(&input, arena);
    assert_false(game_failed(&input, &outage, arena, &output));
}

TEST(game_asks_for_administrators_only_where_the_answer_depends_on_it)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    GameUser                  user  = {.id = 1, .name = "A"};
    const struct {
        const char *text, *button;
        bool        needs;
    } rows[] = {
        {"/undo",      NULL,      true },
        {"/undo help", NULL,      false},
        {"/settings",  NULL,      true },
        {"/top",       NULL,      false},
        {"undo",       NULL,      false},
        {NULL,         "undo:1",  true },
        {NULL,         "set:k:2", true },
        {NULL,         "top:11",  false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        GameInput input = {.kind        = rows[i].text ? GAME_MESSAGE : GAME_BUTTON,
                           .from        = &user,
                           .text        = rows[i].text,
                           .button_data = rows[i].button};

        game_input_parse(&input, arena);
        assert_int_equal(game_needs_admin(&input), rows[i].needs);
    }
}

/* ---- many groups at once ---- */

#define GROUPS 12

typedef struct {
    GameInput  inputs[GROUPS];
    GameOutput outputs[GROUPS];
    int        count;
} Many;

static ErrorCode many_body(Tx *tx, void *context, Error *reterr)
{
    Many *many = context;

    return game_run(tx, many->inputs, many->count, many->outputs, reterr);
}

static int64_t statements(void)
{
    int64_t all = 0;

    for (int i = 0; i <= METRIC_BUCKETS; i++)
        all += atomic_load(&pg_metrics.query_seconds.buckets[i]);
    return all;
}

/* How many statements it takes, with those of its transaction. */
static int64_t many_run(Chat *chat, Many *many, ErrorCode expected)
{
    Error     error   = {0};
    TxOptions options = {
        .name = "game", .deadline = soon(), .arena = chat->fixture->arena, .keyed = true, .tries_max = 1};
    int64_t before;

    for (int i = 0; i < many->count; i++)
        game_input_parse(&many->inputs[i], chat->fixture->arena);
    before = statements();

    assert_code(expected, tx_run(chat->fixture->pool, &options, many_body, many, &error));
    return statements() - before;
}

/* A message of the first player in each of the groups. */
static Many many_new(Chat *chat, int count, const char *text)
{
    Many many = {.count = count};

    for (int i = 0; i < count; i++)
        many.inputs[i] = (GameInput){.kind       = GAME_MESSAGE,
                                     .chat_id    = FIXTURE_CHAT - i,
                                     .bot_name   = "PawlBot",
                                     .escape     = escape,
                                     .date_s     = 1800000000,
                                     .from       = &chat->users[0],
                                     .text       = text,
                                     .message_id = ++chat->message_id};
    return many;
}

TEST(game_matches_of_many_groups_take_as_many_statements_as_one)
{
    Chat    chat = chat_new(3);
    Many    many;
    int64_t one;

    for (int i = 0; i < 3; i++) {
        many = many_new(&chat, GROUPS, "hello");
        for (int group = 0; group < GROUPS; group++)
            many.inputs[group].from = &chat.users[i];
        many_run(&chat, &many, OK);
    }
    assert_int_equal(3 * GROUPS, rating_fixture_count(chat.fixture, "member"));
    many = many_new(&chat, 1, "/match @p0 @p1 3 1");
    one  = many_run(&chat, &many, OK);
    many = many_new(&chat, GROUPS, "/match @p0 @p2 3 2");
    assert_int_equal(one, many_run(&chat, &many, OK));
    for (int i = 0; i < GROUPS; i++) {
        assert_int_equal(1, many.outputs[i].count);
        assert_contains(many.outputs[i].list[0].html, i ? "<b>1516</b> (+16), place 1" : "<b>1531</b> (+15), place 1");
    }
    assert_int_equal(1 + GROUPS, rating_fixture_count(chat.fixture, "match"));
    /* A repeat, a refusal and a question among them: the others are registered. */
    many.inputs[0].message_id = ++chat.message_id;
    many.inputs[1].message_id = ++chat.message_id;
    many.inputs[1].text       = "/match @p0 @p0 1 0";
    many.inputs[2].message_id = ++chat.message_id;
    many.inputs[2].text       = "/match @p1 @p0 1 0";
    many_run(&chat, &many, OK);
    assert_contains(many.outputs[0].list[0].html, "minute");
    assert_contains(many.outputs[2].list[0].html, "<b>Player 1</b> 1:0 Player 0");
    assert_contains(many.outputs[3].list[0].html, "<b>1516</b> (+16)");
    assert_int_equal(2 + GROUPS, rating_fixture_count(chat.fixture, "match"));
    chat_done(&chat);
}

TEST(game_a_conflict_in_one_group_changes_none)
{
    Chat chat = chat_new(2);
    Many many = many_new(&chat, GROUPS, "hello");

    many_run(&chat, &many, OK);
    for (int group = 0; group < GROUPS; group++)
        many.inputs[group].from = &chat.users[1];
    many_run(&chat, &many, OK);
    database_exec(chat.fixture->db,
                  "create function public.disturb() returns trigger language plpgsql as $$ begin return case when "
                  "new.group_id = 5 then null else new end; end $$; create trigger disturb before update on "
                  "rating.member for each row execute function public.disturb()");
    many = many_new(&chat, GROUPS, "/match @p0 @p1 3 1");
    many_run(&chat, &many, ERR_BUSY);
    assert_int_equal(0, rating_fixture_count(chat.fixture, "match"));
    assert_int_equal(0, rating_fixture_count(chat.fixture, "member where version > 1"));
    assert_int_equal(0, rating_fixture_count(chat.fixture, "usage"));
    chat_done(&chat);
}

/* Whatever is in the input, nothing crashes, and no match appears that the text does not name. */
TEST(game_survives_mutated_input)
{
    Chat                     chat   = chat_new(3);
    static const char *const pool[] = {"/match",
                                       "/undo",
                                       "/top",
                                       "/stats",
                                       "/h2h",
                                       "/chart",
                                       "/settings",
                                       "/history",
                                       "@p0",
                                       "@p1",
                                       "@p2",
                                       "@",
                                       "3",
                                       "1",
                                       "0",
                                       "-1",
                                       "99999999999",
                                       "3:1",
                                       "help",
                                       "\xf0\x9f\x8e\x89",
                                       "Анна",
                                       "<b>",
                                       "&",
                                       "/match@PawlBot",
                                       "k",
                                       "on",
                                       "here",
                                       "\xff\xfe",
                                       "'; drop table rating.match; --"};
    const char              *count  = getenv("PAWL_TEST_MUTATIONS");
    int                      runs   = (int)strtol(count ? count : "300", NULL, 10);

    srandom(3);
    for (int i = 0; i < runs; i++) {
        char                     text[512] = "";
        GameLink                 link  = {(size_t)(random() % 40), (size_t)(random() % 40), &chat.users[random() % 3]};
        GameInput                input = {.kind            = random() % 4 ? GAME_MESSAGE : GAME_BUTTON,
                                          .from            = random() % 9 ? &chat.users[random() % 3] : NULL,
                                          .is_anonymous    = random() % 20 == 0,
                                          .is_reply        = random() % 3 == 0,
                                          .reply_to        = random() % 3 ? NULL : &chat.users[random() % 3],
                                          .reply_reference = random() % 2 ? "match:1" : "match:x",
                                          .message_id      = random() % 5 ? i + 1000 : 0,
                                          .links           = &link,
                                          .links_count     = (int)(random() % 2),
                                          .admin           = (Admin)(random() % 3),
                                          .text            = text,
                                          .button_id       = random() % 5 ? "id" : NULL,
                                          .button_data     = text};
        static const char *const presses[] = {"undo:", "again:1:2:3:1:", "top:",   "set:k:",
                                              "no:",   "again:",         "undo:-", "set:"};

        if (input.kind == GAME_BUTTON)
            snprintf(text, sizeof text, "%s%ld", presses[random() % (long)COUNT(presses)], random() % 100 - 10);
        else
            for (int words = (int)(random() % 7); words >= 0; words--)
                snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", text[0] ? " " : "",
                         pool[random() % (long)COUNT(pool)]);
        text_clean(text, strlen(text));
        if (i % 10 == 0)
            database_exec(chat.fixture->db, "delete from rating.usage");
        run(&chat, input);
        assert_in_range(chat.output.count, 0, GAME_REPLIES_MAX);
    }
    assert_int_equal(0, rating_fixture_count(chat.fixture, "match where score_a + score_b = 0 or player_a = player_b"));
    chat_done(&chat);
}
