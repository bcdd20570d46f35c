/*
 * Tokens and roots: what is refused, and that no error repeats a token.
 */
#include "telegram/bot.h"

#include <string.h>

#include "test/harness/test.h"

TEST(bot_id_is_the_token_s_number)
{
    assert_int_equal(424242, telegram_token_id("424242:AAbb-_9"));
    assert_true(telegram_token_id("no-number") > 0);
    assert_true(telegram_token_id("no-number") == telegram_token_id("no-number"));
    assert_true(telegram_token_id("no-number") != telegram_token_id("another"));
}

TEST(bot_refuses_tokens_and_roots_without_repeating_them)
{
    TelegramBot *bot   = NULL;
    Error        error = {0};

    assert_code(ERR_USAGE, telegram_bot_new("", NULL, &bot, &error));
    assert_code(ERR_USAGE, telegram_bot_new("12:se cret/x", NULL, &bot, &error));
    assert_null(strstr(error.text, "se cret"));
    assert_code(ERR_USAGE, telegram_bot_new("12:secret", "no url", &bot, &error));
    assert_code(ERR_USAGE, telegram_bot_new("12:secret", "https://host/?x", &bot, &error));
    assert_null(bot);
}

TEST(bot_errors_do_not_name_the_token)
{
    scoped(telegram_bot_free) TelegramBot *bot   = NULL;
    scoped(arena_free) Arena              *arena = arena_new(ARENA_BYTES_DEFAULT);
    TelegramAnswer                         answer;
    Error                                  error = {0};

    assert_ok(telegram_bot_new("12:very-secret", "http://127.0.0.1:1/", &bot, &error));
    assert_code(ERR_UNAVAILABLE,
                telegram_call(bot, &(TelegramCall){.method = "getMe", .deadline = deadline_in_ms(5000)}, arena, &answer,
                              &error));
    assert_null(strstr(error.text, "secret"));
    assert_null(strstr(error_peer(&error), "secret"));
    assert_string_equal("null", answer.result);
    telegram_bot_stop(bot);
    assert_code(ERR_STOPPING, telegram_call(bot, &(TelegramCall){.method = "getMe", .deadline = deadline_in_ms(5000)},
                                            arena, &answer, &error));
}
