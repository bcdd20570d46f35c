/*
 * translate_test.c - updates of the Bot API as inputs of the game, and its replies as messages.
 */
#include "bot/translate.h"

#include <string.h>

#include "test/harness/test.h"

#define CHAT "\"chat\": {\"id\": -100, \"type\": \"supergroup\", \"title\": \"Chess\"}"
#define ANN  "\"from\": {\"id\": 11, \"first_name\": \"Ann\", \"last_name\": \"Lee\", \"language_code\": \"ru\"}"
#define BOB  "\"from\": {\"id\": 12, \"first_name\": \"Bob\"}"

static bool input_read(Arena *arena, const char *json, GameInput *ret_input)
{
    TelegramUpdate update = {0};
    Error          error  = {0};

    *ret_input = (GameInput){.bot_id = 7, .bot_name = "PawlBot"};
    assert_ok(telegram_update_parse(json, strlen(json), arena, &update, &error));
    return bot_input_read(&update, arena, ret_input);
}

/* ---- from an update to an input ---- */

TEST(translate_a_command_with_its_words)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    GameInput                 input;

    assert_true(input_read(arena,
                           "{\"update_id\": 5, \"message\": {\"message_id\": 9, \"date\": 1700000000, " CHAT ", " ANN
                           ", \"text\": \"/match@PawlBot Bob 3:1\", \"entities\": [{\"type\": \"text_mention\", "
                           "\"offset\": 15, \"length\": 3, \"user\": {\"id\": 12, \"first_name\": \"Bob\"}}]}}",
                           &input));
    assert_int_equal(input.kind, GAME_MESSAGE);
    assert_true(input.chat_id == -100 && input.message_id == 9 && input.update_id == 5);
    assert_false(input.is_private || input.is_reply || input.is_anonymous);
    assert_string_equal(input.from->name, "Ann Lee");
    assert_string_equal(input.language, "ru");
    assert_int_equal(input.links_count, 1);
    assert_int_equal(input.ask.kind, ASK_MATCH);
    assert_int_equal(input.ask.count, 2);
    assert_ptr_equal(input.ask.words[0].user, input.links[0].user);
    assert_string_equal(game_operation(&input), GAME_MATCH);
    assert_int_equal(input.admin, ADMIN_UNKNOWN);
}

TEST(translate_a_command_for_another_bot_is_none)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    GameInput                 input;

    assert_true(input_read(arena,
                           "{\"update_id\": 5, \"message\": {\"message_id\": 9, " CHAT ", " ANN
                           ", \"text\": \"/match@OtherBot @bob 3 1\"}}",
                           &input));
    assert_int_equal(input.ask.kind, ASK_NONE);
    assert_null(game_operation(&input));
}

TEST(translate_edits_channels_and_other_updates_are_not_for_the_game)
{
    static const char *const updates[] = {
        "{\"update_id\": 1, \"edited_message\": {\"message_id\": 9, " CHAT ", " ANN ", \"text\": \"/undo\"}}",
        "{\"update_id\": 1, \"message\": {\"message_id\": 9, \"chat\": {\"id\": -5, \"type\": \"channel\"}, "
        "\"text\": \"/undo\"}}",
        "{\"update_id\": 1, \"poll\": {}}",
        "{\"update_id\": 1, \"my_chat_member\": {\"chat\": {\"id\": 11, \"type\": \"private\"}, " ANN ", "
        "\"old_chat_member\": {\"status\": \"member\"}, \"new_chat_member\": {\"status\": \"kicked\"}}}",
    };
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    GameInput                 input;

    for (size_t i = 0; i < COUNT(updates); i++)
        assert_false(input_read(arena, updates[i], &input));
}

/* In a forum each message answers the one that opened its topic. */
TEST(translate_replies_are_those_to_other_messages_than_the_topics_first)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    GameInput                 input;

    for (int i = 0; i < 2; i++) {
        Text text;

        text_init(&text, arena, TEXT_MAX_LINE);
        text_append(&text, "{\"update_id\": 1, \"message\": {\"message_id\": 9, \"message_thread_id\": 3, "
                           "\"is_topic_message\": true, \"chat\": {\"id\": -100, \"type\": \"supergroup\", "
                           "\"is_forum\": true}, " ANN ", \"text\": \"/match 3 1\", \"reply_to_message\": "
                           "{\"message_id\": ");
        text_append(&text, i ? "4" : "3");
        text_append(&text, ", \"chat\": {\"id\": -100}, " BOB "}}}");
        assert_true(input_read(arena, text_string(&text), &input));
        assert_int_equal(input.topic, 3);
        assert_int_equal(input.is_reply, i);
        assert_int_equal(input.reply_to != NULL, i);
    }
}

TEST(translate_a_press_has_the_message_of_its_button)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    GameInput                 input;

    assert_true(input_read(arena,
                           "{\"update_id\": 1, \"callback_query\": {\"id\": \"q1\", " BOB
                           ", \"data\": \"undo:42\", \"message\": {\"message_id\": 9, " CHAT ", " ANN
                           ", \"text\": \"/undo\", \"reply_markup\": {\"inline_keyboard\": [[{\"text\": \"Undo\", "
                           "\"callback_data\": \"undo:42\"}]]}}}}",
                           &input));
    assert_int_equal(input.kind, GAME_BUTTON);
    assert_true(input.chat_id == -100 && input.message_id == 9 && input.from->id == 12);
    assert_string_equal(input.button_id, "q1");
    assert_string_equal(input.button_data, "undo:42");
    assert_null(input.text);
    assert_int_equal(input.ask.kind, ASK_NONE);
    assert_string_equal(game_operation(&input), GAME_UNDO);
    assert_true(game_needs_admin(&input));
    /* The client's word for a button that the message does not have. */
    assert_true(input_read(arena,
                           "{\"update_id\": 1, \"callback_query\": {\"id\": \"q1\", " BOB
                           ", \"data\": \"undo:42\", \"message\": {\"message_id\": 9, " CHAT ", \"text\": \"x\"}}}",
                           &input));
    assert_null(input.button_data);
}

TEST(translate_who_comes_and_goes_and_a_group_that_moves)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    const struct {
        const char *json;
        GameKind    kind;
        int         came, left;
        int64_t     moved_to;
    } rows[] = {
        {"\"message\": {\"message_id\": 9, " CHAT ", " ANN ", \"new_chat_members\": [{\"id\": 12}, {\"id\": 13}]}",
         GAME_MEMBERS,                                                                                                            2, 0, 0   },
        {"\"message\": {\"message_id\": 9, " CHAT ", " BOB ", \"left_chat_member\": {\"id\": 12}}",                 GAME_MEMBERS, 0, 1,
         0                                                                                                                                  },
        {"\"message\": {\"message_id\": 9, " CHAT ", " ANN ", \"left_chat_member\": {\"id\": 7}}",                  GAME_REMOVED, 0, 1,
         0                                                                                                                                  },
        {"\"my_chat_member\": {\"chat\": {\"id\": -100, \"type\": \"supergroup\"}, " ANN ", \"old_chat_member\": "
         "{\"status\": \"left\"}, \"new_chat_member\": {\"status\": \"member\"}}",                         GAME_ADDED,   0, 0, 0   },
        {"\"my_chat_member\": {\"chat\": {\"id\": -100, \"type\": \"supergroup\"}, " ANN ", \"old_chat_member\": "
         "{\"status\": \"member\"}, \"new_chat_member\": {\"status\": \"kicked\"}}",                       GAME_REMOVED, 0, 0, 0   },
        {"\"chat_member\": {\"chat\": {\"id\": -100, \"type\": \"supergroup\"}, " ANN ", \"old_chat_member\": "
         "{\"status\": \"left\", \"user\": {\"id\": 12}}, \"new_chat_member\": {\"status\": \"member\", \"user\": "
         "{\"id\": 12}}}",                                                                                 GAME_MEMBERS, 1, 0, 0   },
        {"\"message\": {\"message_id\": 9, " CHAT ", \"migrate_to_chat_id\": -200}",                                GAME_MOVED,   0, 0, -200},
        {"\"message\": {\"message_id\": 9, " CHAT ", \"migrate_from_chat_id\": -50}",                               GAME_MOVED,   0, 0, -100},
    };
    GameInput input;

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_true(input_read(arena, arena_print(arena, "{\"update_id\": 1, %s}", rows[i].json), &input));
        assert_int_equal(input.kind, rows[i].kind);
        assert_int_equal(input.came_count, rows[i].came);
        assert_int_equal(input.left_count, rows[i].left);
        assert_true(input.moved_to == rows[i].moved_to);
    }
    assert_true(input.chat_id == -50);
}

TEST(translate_an_anonymous_sender_is_an_administrator_only_in_the_groups_name)
{
    static const struct {
        const char *sender;
        Admin       admin;
    } rows[] = {
        {"\"sender_chat\": {\"id\": -100, \"type\": \"supergroup\"}", ADMIN_YES},
        {"\"sender_chat\": {\"id\": -300, \"type\": \"channel\"}",    ADMIN_NO },
    };
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    GameInput                 input;

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_true(input_read(arena,
                               arena_print(arena,
                                           "{\"update_id\": 1, \"message\": {\"message_id\": 9, " CHAT ", " ANN
                                           ", %s, \"text\": \"/undo\"}}",
                                           rows[i].sender),
                               &input));
        assert_true(input.is_anonymous);
        assert_null(input.from);
        assert_int_equal(input.admin, rows[i].admin);
    }
}

/* ---- from replies to messages ---- */

static GameInput asked(Arena *arena, const char *text)
{
    GameInput input = {.kind = GAME_MESSAGE, .chat_id = -100, .topic = 3, .message_id = 9, .text = text};

    game_input_parse(&input, arena);
    return input;
}

static GameInput pressed(const char *data)
{
    return (GameInput){.kind = GAME_BUTTON, .chat_id = -100, .message_id = 9, .button_id = "q1", .button_data = data};
}

static BotMessages *add(Arena *arena, const GameInput *input, const GameReply *replies, int count, const char *progress)
{
    BotMessages *messages = arena_array(arena, BotMessages, 1);
    GameOutput   output   = {.count = count};

    for (int i = 0; i < count; i++)
        output.list[i] = replies[i];
    bot_messages_add(messages, input, &output, progress, arena);
    return messages;
}

TEST(translate_an_answer_to_a_change_goes_first)
{
    static const struct {
        const char *text;
        bool        is_first;
    } rows[] = {
        {"/match @a @b 3 1", true },
        {"/undo",            true },
        {"/undo help",       false},
        {"/ranking",         false},
    };
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    for (size_t i = 0; i < COUNT(rows); i++) {
        GameInput          input    = asked(arena, rows[i].text);
        const BotMessages *messages = add(arena, &input, &(GameReply){.kind = GAME_SAY, .html = "x"}, 1, NULL);

        assert_int_equal(messages->count, 1);
        assert_int_equal(messages->list[0].method, TELEGRAM_SEND);
        assert_int_equal(messages->list[0].is_first, rows[i].is_first);
        assert_true(messages->list[0].reply_to == 9 && messages->list[0].thread_id == 3);
    }
}

TEST(translate_a_toast_is_plain_text)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    GameInput                 input = pressed("undo:42");
    const BotMessages        *messages =
        add(arena, &input, &(GameReply){.kind = GAME_TOAST, .html = "<b>A &amp; B</b> &lt;3", .is_brief = true}, 1,
            NULL);

    assert_int_equal(messages->count, 1);
    assert_int_equal(messages->list[0].method, TELEGRAM_ANSWER);
    assert_string_equal(messages->list[0].html, "A & B <3");
    assert_string_equal(messages->list[0].callback_id, "q1");
    assert_false(messages->list[0].is_alert);
}

TEST(translate_every_press_is_answered_unless_it_is_ignored)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    GameInput                 input    = pressed("top:11");
    BotMessages              *messages = add(arena, &input, NULL, 0, NULL);

    assert_int_equal(messages->count, 1);
    assert_int_equal(messages->list[0].method, TELEGRAM_ANSWER);
    messages->count = 0;
    bot_messages_add(messages, &input, &(GameOutput){.is_ignored = true}, NULL, arena);
    assert_int_equal(messages->count, 0);
}

TEST(translate_an_edit_of_a_message_that_is_unknown_is_none)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    GameInput                 input   = asked(arena, "/undo");
    const GameReply           about[] = {
        {.kind = GAME_EDIT_ABOUT, .html = "undone", .reference = "match:4"},
        {.kind = GAME_EDIT_ABOUT, .html = "undone", .reference = "match:5", .message_id = 8},
    };
    const BotMessages *messages = add(arena, &input, about, 2, NULL);

    assert_int_equal(messages->count, 1);
    assert_int_equal(messages->list[0].method, TELEGRAM_EDIT);
    assert_true(messages->list[0].message_id == 8);
    assert_false(messages->list[0].is_first);
    assert_null(messages->list[0].reference);
}

TEST(translate_the_answer_replaces_the_message_with_the_progress)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    GameInput                 said = asked(arena, "/undo"), press = pressed("undo:42");
    const BotMessages        *messages = add(arena, &said, &(GameReply){.kind = GAME_SAY, .html = "done"}, 1, "p1");

    assert_int_equal(messages->count, 1);
    assert_string_equal(messages->list[0].replaces, "p1");
    /* The answer to a press edits the message with the button: the progress gets the same text. */
    messages = add(arena, &press, &(GameReply){.kind = GAME_EDIT, .html = "done"}, 1, "p1");
    assert_int_equal(messages->count, 2);
    assert_null(messages->list[0].replaces);
    assert_int_equal(messages->list[1].method, TELEGRAM_EDIT);
    assert_string_equal(messages->list[1].replaces, "p1");
    assert_string_equal(messages->list[1].html, "done");
}

TEST(translate_messages_beyond_the_limit_are_dropped)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    BotMessages              *messages = arena_array(arena, BotMessages, 1);
    GameInput                 input    = asked(arena, "/top");
    GameOutput                output   = {.list = {{.kind = GAME_SAY, .html = "x"}}, .count = 1};

    for (int i = 0; i < BOT_MESSAGES_MAX + 3; i++)
        bot_messages_add(messages, &input, &output, NULL, arena);
    assert_int_equal(messages->count, BOT_MESSAGES_MAX);
}

TEST(translate_a_failure_is_said_to_who_sent_a_command)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    BotMessages              *messages = arena_array(arena, BotMessages, 1);
    GameInput                 command = asked(arena, "/match @a @b 1 0"), words = asked(arena, "hello");
    Error                     away = {.code = ERR_UNAVAILABLE};

    bot_messages_add_failure(messages, &words, &away, NULL, arena);
    assert_int_equal(messages->count, 0);
    bot_messages_add_failure(messages, &command, &away, NULL, arena);
    assert_int_equal(messages->count, 1);
    assert_true(messages->list[0].reply_to == 9);
}
