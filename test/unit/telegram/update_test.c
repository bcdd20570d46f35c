/*
 * Updates: what the Bot API sends becomes structs; what is missing or odd is absent; offsets in UTF-16 become ranges of bytes.
 */
#include "telegram/update.h"

#include <string.h>

#include "base/arena.h"
#include "test/harness/test.h"

static TelegramUpdate parse(Arena *arena, const char *json)
{
    TelegramUpdate update = {0};
    Error          error  = {0};

    assert_ok(telegram_update_parse(json, strlen(json), arena, &update, &error));
    return update;
}

static const char *slice(Arena *arena, const TelegramMessage *message, int entity)
{
    assert_true(entity < message->entities_count);
    return arena_bytes(arena, message->text + message->entities[entity].offset, message->entities[entity].length);
}

TEST(update_of_a_message)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TelegramUpdate update = parse(arena, "{\"update_id\": 7, \"message\": {\"message_id\": 5, \"date\": 1700000000, "
                                         "\"chat\": {\"id\": -1001234567890, \"type\": "
                                         "\"supergroup\", \"title\": \"Chess\"}, \"from\": {\"id\": 11, \"is_bot\": "
                                         "false, \"first_name\": \"Ann\", \"username\": "
                                         "\"ann\", \"language_code\": \"ru\"}, \"text\": \"/match @bob 3 1\", "
                                         "\"entities\": [{\"type\": \"bot_command\", \"offset\": "
                                         "0, \"length\": 6}, {\"type\": \"mention\", \"offset\": 7, \"length\": 4}]}}");
    const TelegramMessage *message = update.message;

    assert_int_equal(7, update.id);
    assert_int_equal(TELEGRAM_MESSAGE, update.kind);
    assert_true(telegram_update_chat(&update) == INT64_C(-1001234567890));
    assert_int_equal(5, message->id);
    assert_int_equal(1700000000, message->date);
    assert_int_equal(TELEGRAM_CHAT_SUPERGROUP, message->chat.type);
    assert_string_equal("ann", message->from->username);
    assert_string_equal("ru", message->from->language_code);
    assert_null(message->from->last_name);
    assert_int_equal(2, message->entities_count);
    assert_int_equal(TELEGRAM_ENTITY_COMMAND, message->entities[0].type);
    assert_string_equal("/match", slice(arena, message, 0));
    assert_string_equal("@bob", slice(arena, message, 1));
    assert_false(message->is_anonymous);
    assert_false(message->is_forwarded);
    assert_int_equal(0, message->thread_id);
}

/* Emoji have two units and four bytes, Cyrillic letters one and two. */
TEST(update_offsets_are_utf16)
{
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    TelegramUpdate            update = parse(arena, "{\"update_id\": 1, \"message\": {\"text\": \"\xf0\x9f\x98\x80 "
                                                               "\xd0\x9f\xd1\x80\xd0\xb8 @bob \\ud83d\\ude00 \xd0\x90\xd0\xbd\xd1\x8f!\", "
                                                               "\"entities\": [{\"type\": \"mention\", \"offset\": 7, \"length\": 4}, "
                                                               "{\"type\": \"text_mention\", \"offset\": 15, "
                                                               "\"length\": 3, \"user\": {\"id\": 9, \"first_name\": "
                                                               "\"\xd0\x90\xd0\xbd\xd1\x8f\"}}, {\"type\": \"bold\", \"offset\": 0, "
                                                               "\"length\": 19}]}}");

    assert_int_equal(3, update.message->entities_count);
    assert_string_equal("@bob", slice(arena, update.message, 0));
    assert_string_equal("\xd0\x90\xd0\xbd\xd1\x8f", slice(arena, update.message, 1));
    assert_int_equal(9, update.message->entities[1].user->id);
    assert_int_equal(TELEGRAM_ENTITY_OTHER, update.message->entities[2].type);
    assert_string_equal(update.message->text, slice(arena, update.message, 2)); /* behind one with a greater offset */
}

TEST(update_leaves_out_entities_that_point_elsewhere)
{
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    TelegramUpdate            update = parse(arena, "{\"update_id\": 1, \"message\": {\"text\": \"abc\", \"entities\": "
                                                               "[{\"type\": \"mention\", \"offset\": 3, \"length\": 1}, "
                                                               "{\"type\": \"mention\", \"offset\": 1, \"length\": 9}, {\"type\": "
                                                               "\"mention\", \"offset\": -1, \"length\": 1}, {\"type\": "
                                                               "\"mention\", \"offset\": 9223372036854775807, \"length\": "
                                                               "9223372036854775807}, {\"type\": \"mention\", \"offset\": 1, "
                                                               "\"length\": 0}, {\"type\": \"text_mention\", \"offset\": 0, \"length\": 1}, "
                                                               "5, null, {\"type\": \"mention\", \"offset\": 1, "
                                                               "\"length\": 2}]}}");

    assert_int_equal(1, update.message->entities_count);
    assert_string_equal("bc", slice(arena, update.message, 0));
}

TEST(update_topics)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    assert_int_equal(7, parse(arena, "{\"update_id\": 1, \"message\": {\"chat\": {\"id\": -1, \"is_forum\": true}, "
                                     "\"is_topic_message\": true, \"message_thread_id\": 7}}")
                            .message->thread_id);
    /* The General topic, and a thread of replies in a group without topics. */
    assert_int_equal(0, parse(arena, "{\"update_id\": 1, \"message\": {\"chat\": {\"id\": -1, \"is_forum\": true}, "
                                     "\"is_topic_message\": true, \"message_thread_id\": 1}}")
                            .message->thread_id);
    assert_int_equal(0,
                     parse(arena, "{\"update_id\": 1, \"message\": {\"chat\": {\"id\": -1}, \"message_thread_id\": 7}}")
                         .message->thread_id);
}

TEST(update_senders)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    assert_true(
        parse(arena, "{\"update_id\": 1, \"message\": {\"from\": {\"id\": 1087968824}, \"sender_chat\": {\"id\": -5}}}")
            .message->is_anonymous);
    assert_true(
        parse(arena, "{\"update_id\": 1, \"message\": {\"from\": {\"id\": 1087968824}}}").message->is_anonymous);
    assert_true(parse(arena, "{\"update_id\": 1, \"message\": {\"forward_origin\": {\"type\": \"user\"}}}")
                    .message->is_forwarded);
    assert_null(parse(arena, "{\"update_id\": 1, \"message\": {\"from\": null}}").message->from);
    assert_null(parse(arena, "{\"update_id\": 1, \"message\": {\"from\": {\"first_name\": \"x\"}}}").message->from);
}

TEST(update_replies_do_not_nest)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TelegramUpdate update = parse(arena, "{\"update_id\": 1, \"message\": {\"message_id\": 3, \"reply_to_message\": "
                                         "{\"message_id\": 2, \"from\": {\"id\": 12}, "
                                         "\"reply_to_message\": {\"message_id\": 1}}}}");

    assert_int_equal(2, update.message->reply_to->id);
    assert_int_equal(12, update.message->reply_to->from->id);
    assert_null(update.message->reply_to->reply_to);
}

TEST(update_of_a_button_press)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TelegramUpdate            update =
        parse(arena, "{\"update_id\": 1, \"callback_query\": {\"id\": \"77\", \"from\": {\"id\": 5}, \"data\": "
                     "\"undo:1\", \"message\": "
                     "{\"message_id\": 9, \"date\": 0, \"chat\": {\"id\": -3, \"type\": \"group\"}}}}");

    assert_int_equal(TELEGRAM_CALLBACK, update.kind);
    assert_string_equal("77", update.callback->id);
    assert_string_equal("undo:1", update.callback->data);
    assert_int_equal(5, update.callback->from->id);
    assert_true(update.message == update.callback->message);
    assert_int_equal(-3, telegram_update_chat(&update));
    assert_false(update.callback->is_shown);
    update = parse(arena,
                   "{\"update_id\": 1, \"callback_query\": {\"data\": \"b\", \"message\": {\"reply_markup\": "
                   "{\"inline_keyboard\": [null, [{}, {\"callback_data\": \"a\"}], [{\"callback_data\": \"b\"}]]}}}}");
    assert_true(update.callback->is_shown);
    update = parse(arena, "{\"update_id\": 2, \"callback_query\": {}}");
    assert_string_equal("", update.callback->id);
    assert_null(update.message);
    assert_int_equal(0, telegram_update_chat(&update));
}

TEST(update_of_members_and_migration)
{
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    TelegramUpdate            update = parse(
        arena,
        "{\"update_id\": 1, \"my_chat_member\": {\"chat\": {\"id\": -3}, \"from\": {\"id\": 5}, \"old_chat_member\": "
                   "{\"status\": "
                   "\"member\", \"user\": {\"id\": 6}}, \"new_chat_member\": {\"status\": \"kicked\", \"user\": {\"id\": 6}}}}");

    assert_int_equal(TELEGRAM_MY_MEMBER, update.kind);
    assert_true(update.member->was_in && !update.member->is_in);
    assert_int_equal(6, update.member->user->id);
    assert_string_equal("kicked", update.member->status_after);
    assert_int_equal(-3, telegram_update_chat(&update));
    update =
        parse(arena,
              "{\"update_id\": 1, \"chat_member\": {\"new_chat_member\": {\"status\": \"restricted\", \"is_member\": "
              "true, \"user\": {\"id\": 6}}}}");
    assert_true(!update.member->was_in && update.member->is_in);
    assert_string_equal("", update.member->status_before);
    update = parse(arena, "{\"update_id\": 1, \"message\": {\"chat\": {\"id\": -3}, \"migrate_to_chat_id\": -1003, "
                          "\"new_chat_members\": [{\"id\": 1}, {}, {\"id\": 2}], \"left_chat_member\": {\"id\": 4}}}");
    assert_int_equal(-1003, update.message->migrate_to);
    assert_int_equal(2, update.message->members_new_count);
    assert_int_equal(2, update.message->members_new[1].id);
    assert_int_equal(4, update.message->member_left->id);
}

/* What emulators send: dates in milliseconds, null instead of a field, no is_bot. */
TEST(update_of_odd_servers)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TelegramUpdate            update =
        parse(arena, "{\"update_id\": 1, \"message\": {\"date\": 1700000000123, \"text\": null, "
                     "\"entities\": null, \"chat\": null, \"botToken\": \"x\"}, \"edited_message\": 5}");

    assert_int_equal(1700000000, update.message->date);
    assert_null(update.message->text);
    assert_int_equal(TELEGRAM_CHAT_UNKNOWN, update.message->chat.type);
    assert_int_equal(TELEGRAM_OTHER, parse(arena, "{\"update_id\": 1, \"message\": \"x\"}").kind);
    assert_int_equal(TELEGRAM_OTHER, parse(arena, "{\"update_id\": 1, \"poll\": {}}").kind);
}

TEST(update_refuses_what_has_no_id)
{
    static const char *const  refused[] = {"",
                                           "{",
                                           "[]",
                                           "5",
                                           "null",
                                           "{}",
                                           "{\"update_id\": 0}",
                                           "{\"update_id\": \"5\"}",
                                           "{\"update_id\": 1.5}",
                                           "{\"update_id\": 99999999999999999999}",
                                           "{\"update_id\": -4}"};
    scoped(arena_free) Arena *arena     = arena_new(ARENA_BYTES_DEFAULT);

    for (size_t i = 0; i < COUNT(refused); i++) {
        TelegramUpdate update = {.id = 4242};
        Error          error  = {0};

        assert_code(ERR_INVALID, telegram_update_parse(refused[i], strlen(refused[i]), arena, &update, &error));
        assert_int_equal(4242, update.id);
    }
}

static void reduces_to(const char *json, const char *expected)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TelegramUpdate            update  = parse(arena, json);
    const char               *reduced = telegram_update_reduce(&update, json, arena);
    TelegramUpdate            again   = parse(arena, reduced);

    assert_string_equal(expected, reduced);
    assert_int_equal(update.id, again.id);
    assert_int_equal(update.kind, again.kind);
    assert_true(telegram_update_chat(&update) == telegram_update_chat(&again));
    assert_string_equal(expected, telegram_update_reduce(&again, reduced, arena));
}

#define CHAT "\"chat\":{\"id\":-5,\"title\":\"x\"},\"from\":{\"id\":11,\"first_name\":\"Ann\"}"

TEST(update_is_stored_without_what_is_not_needed)
{
    static const char *const whole[] = {
        "{\"update_id\":7,\"message\":{\"message_id\":5," CHAT ",\"text\":\" /me\",\"entities\":[]}}",
        "{\"update_id\":7,\"callback_query\":{\"id\":\"1\",\"data\":\"top:0\",\"message\":{\"message_id\":5," CHAT
        ",\"reply_markup\":{\"inline_keyboard\":[[{\"callback_data\":\"top:0\"}]]}}}}",
        "{\"update_id\":7,\"my_chat_member\":{" CHAT ",\"new_chat_member\":{\"status\":\"left\"}}}",
    };

    for (size_t i = 0; i < COUNT(whole); i++)
        reduces_to(whole[i], whole[i]);
    reduces_to("{\"update_id\":7,\"message\":{\"message_id\":5,\"date\":9," CHAT
               ",\"text\":\"a secret /me\",\"entities\":[],\"photo\":[{\"file_id\":\"f\"}]}}",
               "{\"update_id\":7,\"message\":{\"message_id\":5,\"date\":9," CHAT "}}");
    reduces_to("{\"update_id\":7,\"message\":{\"message_id\":5," CHAT
               ",\"caption\":\"secret\",\"new_chat_members\":[{\"id\":4}],"
               "\"forward_origin\":{\"type\":\"user\",\"sender_user\":{\"id\":9}},\"migrate_to_chat_id\":-6}}",
               "{\"update_id\":7,\"message\":{\"message_id\":5," CHAT
               ",\"new_chat_members\":[{\"id\":4}],\"migrate_to_chat_id\":-6,\"forward_origin\":true}}");
    reduces_to("{\"update_id\":7,\"message\":{\"message_id\":5," CHAT
               ",\"text\":\"/match 3 1\",\"reply_to_message\":{\"message_id\":4," CHAT
               ",\"text\":\"secret\",\"reply_to_message\":{\"message_id\":3,\"text\":\"older\"}}}}",
               "{\"update_id\":7,\"message\":{\"message_id\":5," CHAT
               ",\"text\":\"/match 3 1\",\"reply_to_message\":{\"message_id\":4," CHAT "}}}");
    /* Of a command only what is read: not what it quotes, or answers in another chat. */
    reduces_to("{\"update_id\":7,\"message\":{\"message_id\":5," CHAT
               ",\"caption\":\"/match 3 1\",\"caption_entities\":[],\"quote\":{\"text\":\"secret\"},"
               "\"external_reply\":{\"origin\":{\"sender_user\":{\"id\":9}}},\"photo\":[{\"file_id\":\"f\"}]}}",
               "{\"update_id\":7,\"message\":{\"message_id\":5," CHAT
               ",\"caption\":\"/match 3 1\",\"caption_entities\":[]}}");
    reduces_to("{\"update_id\":7,\"callback_query\":{\"id\":\"1\",\"from\":{\"id\":11},\"data\":\"top:0\","
               "\"chat_instance\":\"9\",\"message\":{\"message_id\":5," CHAT
               ",\"text\":\"secret\",\"reply_to_message\":{\"message_id\":4," CHAT ",\"text\":\"secret\"}}}}",
               "{\"update_id\":7,\"callback_query\":{\"id\":\"1\",\"from\":{\"id\":11},\"data\":\"top:0\","
               "\"message\":{\"message_id\":5," CHAT ",\"reply_to_message\":{\"message_id\":4," CHAT "}}}}");
    reduces_to("{\"update_id\":7,\"chat_member\":{" CHAT ",\"date\":3,\"invite_link\":{\"name\":\"secret\"},"
               "\"new_chat_member\":{\"user\":{\"id\":4},\"status\":\"restricted\",\"is_member\":true,\"custom_title\":"
               "\"secret\"}}}",
               "{\"update_id\":7,\"chat_member\":{" CHAT ",\"date\":3,"
               "\"new_chat_member\":{\"user\":{\"id\":4},\"status\":\"restricted\",\"is_member\":true}}}");
    reduces_to("{\"update_id\":7,\"edited_message\":{\"message_id\":5," CHAT ",\"text\":\"/match 3 1\"}}",
               "{\"update_id\":7,\"edited_message\":{\"message_id\":5," CHAT "}}");
    reduces_to("{\"update_id\":7,\"poll\":{\"question\":\"secret\"}}", "{\"update_id\":7}");
}
