/*
 * Updates as no server sends them: bytes changed, cut, doubled and moved. The parser refuses them or reads them within bounds; the
 * sanitizers watch.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "telegram/markup.h"
#include "telegram/update.h"
#include "test/harness/test.h"

#define MUTATIONS 20000

static const char *const seeds[] = {
    "{\"update_id\": 7, \"message\": {\"message_id\": 5, \"date\": 1700000000, \"chat\": {\"id\": -1001234567890, "
    "\"type\": "
    "\"supergroup\", \"title\": \"Chess\", \"is_forum\": true}, \"message_thread_id\": 4, \"from\": {\"id\": 11, "
    "\"first_name\": "
    "\"\xf0\x9f\x98\x80\"}, \"text\": \"/match \xd0\x9f\xd1\x80\xd0\xb8 @bob \\ud83d\\ude00 3 1\", \"entities\": "
    "[{\"type\": "
    "\"bot_command\", \"offset\": 0, \"length\": 6}, {\"type\": \"text_mention\", \"offset\": 11, \"length\": 4, "
    "\"user\": {\"id\": 3}}], "
    "\"reply_to_message\": {\"message_id\": 2, \"text\": \"x\", \"entities\": [{\"type\": \"mention\", \"offset\": 0, "
    "\"length\": 1}]}}}",
    "{\"update_id\": 1, \"callback_query\": {\"id\": \"77\", \"from\": {\"id\": 5}, \"data\": \"undo:1\", \"message\": "
    "{\"message_id\": 9, "
    "\"chat\": {\"id\": -3}}}}",
    "{\"update_id\": 1, \"my_chat_member\": {\"chat\": {\"id\": -3}, \"old_chat_member\": {\"status\": \"member\", "
    "\"user\": {\"id\": "
    "6}}, \"new_chat_member\": {\"status\": \"kicked\", \"user\": {\"id\": 6}}}}",
};

static unsigned next(unsigned *state, unsigned below)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 8) % below;
}

static size_t mutate(char *bytes, size_t size, size_t size_max, unsigned *state)
{
    static const char *const words[] = {"null",    "-1",       "99999999999999999999",
                                        "{}",      "[]",       "\"\"",
                                        "\\ud83d", "\xf0\x9f", "1e9",
                                        "\\u0000"};
    size_t                   at      = next(state, (unsigned)size);

    switch (next(state, 5)) {
    case 0:
        bytes[at] = (char)next(state, 256);
        return size;
    case 1: {
        size_t gone = 1 + next(state, 20);

        gone = gone < size - at ? gone : size - at;
        memmove(bytes + at, bytes + at + gone, size - at - gone);
        return size - gone > 0 ? size - gone : 1;
    }
    case 2: {
        const char *word   = words[next(state, COUNT(words))];
        size_t      length = strlen(word);

        if (size + length > size_max)
            return size;
        memmove(bytes + at + length, bytes + at, size - at);
        memcpy(bytes + at, word, length);
        return size + length;
    }
    case 3: /* another digit: offsets, lengths, ids */
        for (size_t i = at; i < size; i++)
            if (bytes[i] >= '0' && bytes[i] <= '9') {
                bytes[i] = (char)('0' + next(state, 10));
                break;
            }
        return size;
    default:
        return at > 0 ? at : 1;
    }
}

static void check_message(const TelegramMessage *message)
{
    if (!message)
        return;
    size_t size = message->text ? strlen(message->text) : 0;

    for (int i = 0; i < message->entities_count; i++) {
        const TelegramEntity *entity = &message->entities[i];

        assert_true(entity->length > 0 && entity->offset < size && entity->length <= size - entity->offset);
        assert_true((message->text[entity->offset] & 0xc0) != 0x80); /* begins and ends with whole characters */
        assert_true((message->text[entity->offset + entity->length] & 0xc0) != 0x80);
    }
    check_message(message->reply_to);
}

TEST(update_mutated_20000_times)
{
    unsigned random = 20261116;
    int      read   = 0;

    for (int i = 0; i < MUTATIONS; i++) {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        const char               *seed  = seeds[(size_t)i % COUNT(seeds)];
        size_t                    size = strlen(seed), size_max = size + 512;
        char                     *bytes  = malloc(size_max); /* exactly as large as it is: reads behind it are seen */
        TelegramUpdate            update = {0};

        assert_non_null(bytes);
        memcpy(bytes, seed, size);
        for (unsigned n = 1 + next(&random, 4); n > 0; n--)
            size = mutate(bytes, size, size_max, &random);
        char *exact = realloc(bytes, size);

        assert_non_null(exact);
        if (telegram_update_parse(exact, size, arena, &update, NULL) == OK) {
            read++;
            assert_true(update.id >= 1);
            check_message(update.message);
            (void)telegram_update_chat(&update);
        }
        free(exact);
    }
    assert_true(read > MUTATIONS / 20 && read < MUTATIONS); /* it mutates neither too little nor too much */
}

TEST(html_mutated)
{
    static const char html[] =
        "<b>a &lt; <i class=\"x>y\">\xd0\x9f\xf0\x9f\x98\x80 word word</i></b> &#128512; <a href='u'>link</a>\n tail";
    unsigned random = 42;

    for (int i = 0; i < 5000; i++) {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        char                      text[sizeof html + 512];
        size_t                    size = sizeof html - 1;

        memcpy(text, html, size);
        for (unsigned n = 1 + next(&random, 4); n > 0; n--)
            size = mutate(text, size, sizeof text - 1, &random);
        text_clean(text, size);
        text[size]               = '\0';
        const char *const *parts = telegram_html_split(text, 4 + next(&random, 8), arena);

        for (; *parts; parts++)
            assert_true(telegram_html_units(*parts) <= 12);
    }
}
