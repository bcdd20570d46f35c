/*
 * Outgoing messages: what is written as a payload is read back; what no server would take is refused.
 */
#include "telegram/outgoing.h"

#include <string.h>

#include "test/harness/test.h"

TEST(outgoing_survives_its_payload)
{
    scoped(arena_free) Arena *arena     = arena_new(ARENA_BYTES_DEFAULT);
    TelegramButton            buttons[] = {
        {"Undo", "undo:1", .ends_row = true},
        {"<", "page:1"},
        {">", "page:3"}
    };
    TelegramOutgoing item = {.method        = TELEGRAM_SEND,
                             .chat_id       = INT64_C(-1001234567890),
                             .thread_id     = 7,
                             .reply_to      = 9,
                             .html          = "<b>\"\xf0\x9f\x98\x80\"</b>\n",
                             .buttons       = buttons,
                             .buttons_count = 3,
                             .is_silent     = true,
                             .reference     = "match:42"};
    TelegramOutgoing read;
    Error            error = {0};
    const char      *payload;

    assert_ok(telegram_outgoing_write(&item, arena, &payload, &error));
    assert_ok(telegram_outgoing_read("send", payload, NULL, arena, &read, &error));
    assert_true(read.method == TELEGRAM_SEND && read.chat_id == item.chat_id && read.thread_id == 7 &&
                read.reply_to == 9);
    assert_string_equal(item.html, read.html);
    assert_string_equal("match:42", read.reference);
    assert_true(read.is_silent && !read.is_alert);
    assert_int_equal(3, read.buttons_count);
    assert_true(read.buttons[0].ends_row && !read.buttons[1].ends_row && read.buttons[2].ends_row);
    assert_string_equal("page:1", read.buttons[1].data);
}

TEST(outgoing_keeps_files_byte_for_byte)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    char                      bytes[256];
    TelegramOutgoing          read;
    Error                     error = {0};
    const char               *payload;

    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    TelegramOutgoing item = {
        .method = TELEGRAM_PHOTO, .chat_id = 5, .file = bytes, .file_size = sizeof bytes, .file_name = "chart.png"};

    assert_ok(telegram_outgoing_write(&item, arena, &payload, &error));
    assert_ok(telegram_outgoing_read("photo", payload, NULL, arena, &read, &error));
    assert_int_equal(sizeof bytes, read.file_size);
    assert_memory_equal(bytes, read.file, sizeof bytes);
}

TEST(outgoing_refuses_what_no_server_takes)
{
    scoped(arena_free) Arena *arena       = arena_new(ARENA_BYTES_DEFAULT);
    TelegramButton            long_data[] = {
        {"x", "0123456789012345678901234567890123456789012345678901234567890123456789"}
    };
    const TelegramOutgoing refused[] = {
        {.method = TELEGRAM_SEND, .html = "x"},
        {.method = TELEGRAM_SEND, .chat_id = 1, .html = ""},
        {.method = TELEGRAM_SEND, .chat_id = 1, .html = "\xff"},
        {.method = TELEGRAM_EDIT, .chat_id = 1, .html = "x"},
        {.method = TELEGRAM_ANSWER},
        {.method = TELEGRAM_EDIT, .chat_id = 1, .html = "x", .replaces = "no id"},
        {.method = TELEGRAM_PHOTO, .chat_id = 1, .file_name = "a.png"},
        {.method = TELEGRAM_DOCUMENT, .chat_id = 1, .file = "x", .file_size = 1, .file_name = "a\"\r\n.csv"},
        {.method = TELEGRAM_SEND, .chat_id = 1, .html = "x", .buttons = long_data, .buttons_count = 1},
    };

    for (size_t i = 0; i < COUNT(refused); i++) {
        const char *payload = "unchanged";

        assert_true(telegram_outgoing_write(&refused[i], arena, &payload, NULL) != OK);
        assert_string_equal("unchanged", payload);
    }
    TelegramOutgoing read;
    Error            error = {0};

    assert_code(ERR_INVALID, telegram_outgoing_read("mail", "{}", NULL, arena, &read, &error));
    assert_code(ERR_INVALID, telegram_outgoing_read("send", "{\"chat_id\": 5}", NULL, arena, &read, &error));
    assert_code(ERR_INVALID, telegram_outgoing_read("send", "[", NULL, arena, &read, &error));
}
