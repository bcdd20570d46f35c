/*
 * error_test.c - the tables of failures, and texts that stay one line of UTF-8 whatever they are made of.
 */
#include "test/harness/test.h"

#include <string.h>

#include "base/module.h"
#include "base/text.h"

TEST(error_codes_follow_the_table)
{
    static const struct {
        const char *name;
        ErrorCode   code;
        int         http;
        int         exit;
        Verdict     verdict;
    } rows[] = {
        {"OK",              OK,              200, 0,  VERDICT_FINAL  },
        {"ERR_USAGE",       ERR_USAGE,       400, 2,  VERDICT_FINAL  },
        {"ERR_BUSY",        ERR_BUSY,        503, 75, VERDICT_RETRY  },
        {"ERR_UNAVAILABLE", ERR_UNAVAILABLE, 503, 69, VERDICT_EVICT  },
        {"ERR_UNKNOWN",     ERR_UNKNOWN,     503, 75, VERDICT_RESOLVE},
        {"ERR_INTERNAL",    ERR_INTERNAL,    500, 1,  VERDICT_FINAL  },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_string_equal(error_name(rows[i].code), rows[i].name);
        assert_int_equal(error_http(rows[i].code), rows[i].http);
        assert_int_equal(error_exit(rows[i].code), rows[i].exit);
        assert_int_equal(error_verdict(rows[i].code), rows[i].verdict);
    }
    assert_string_equal(error_text(ERR_KEY_REUSED), "same key, another body");
}

TEST(error_types_differ_from_each_other)
{
    for (int a = 0; a < ERROR_CODE_COUNT; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(error_type(&(Error){.code = (ErrorCode)a}),
                                    error_type(&(Error){.code = (ErrorCode)b}));
}

static const SqlState test_states[] = {
    {"ZY", ERR_BUSY},
    {"ZY001", ERR_CONFLICT, .type = "test-conflict", .meaning = "A test.", .action = "Pass it."},
    {"ZY1", ERR_UNAVAILABLE, .is_outage = true},
    {0},
};
static const Module error_module = {.name = "error-test", .states = test_states};
MODULE_JOIN(error_module)

TEST(error_from_sqlstate_takes_the_longest_prefix)
{
    assert_int_equal(error_from_sqlstate(NULL), ERR_UNAVAILABLE);
    assert_int_equal(error_from_sqlstate(""), ERR_UNAVAILABLE);
    assert_int_equal(error_from_sqlstate("ZY000"), ERR_BUSY);
    assert_int_equal(error_from_sqlstate("ZY001"), ERR_CONFLICT);
    assert_int_equal(error_from_sqlstate("ZY123"), ERR_UNAVAILABLE);
    assert_int_equal(error_from_sqlstate("Z"), ERR_INTERNAL);
    assert_int_equal(error_from_sqlstate("YY000"), ERR_INTERNAL);
}

TEST(error_type_is_that_of_the_sqlstate_unless_the_code_was_replaced)
{
    assert_string_equal(error_type(&(Error){.code = ERR_CONFLICT, .sqlstate = "ZY001"}), "test-conflict");
    assert_string_equal(error_type(&(Error){.code = ERR_CONFLICT, .sqlstate = "ZY000"}), "conflict");
    assert_string_equal(error_type(&(Error){.code = ERR_BUSY, .sqlstate = "ZY001"}), "try-again");
}

TEST(error_is_infrastructure_for_outages_and_without_an_answer)
{
    assert_true(error_is_infrastructure(ERR_UNAVAILABLE, "ZY123"));
    assert_false(error_is_infrastructure(ERR_UNAVAILABLE, "ZY000"));
    assert_false(error_is_infrastructure(OK, "ZY123"));
    assert_true(error_is_infrastructure(ERR_UNAVAILABLE, NULL));
    assert_true(error_is_infrastructure(ERR_UNKNOWN, ""));
    assert_true(error_is_infrastructure(ERR_TIMEOUT, ""));
    assert_false(error_is_infrastructure(ERR_CONFLICT, ""));
    assert_false(error_is_infrastructure(ERR_BUSY, ""));
    assert_false(error_is_infrastructure(OK, ""));
}

TEST(error_set_fills_everything_and_forgets_the_error_before)
{
    Error error = {.sqlstate = "40001"};

    assert_code(ERR_LIMIT, fail(&error, ERR_LIMIT, "%d items, at most %d", 9, 8));
    assert_int_equal(error.code, ERR_LIMIT);
    assert_string_equal(error.text, "9 items, at most 8");
    assert_string_equal(error.sqlstate, "");
    assert_string_equal(error.file, "base/error_test.c");
    assert_true(error.line > 0);
}

TEST(error_set_allows_null)
{
    assert_int_equal(fail(NULL, ERR_BUSY, "nobody listens"), ERR_BUSY);
    error_prefix(NULL, "nor here");
    error_set_sqlstate(NULL, "40001");
}

TEST(error_set_may_use_its_own_text)
{
    Error error;

    fail(&error, ERR_BUSY, "first");
    fail(&error, ERR_BUSY, "second after %s", error.text);
    assert_string_equal(error.text, "second after first");
}

TEST(error_text_is_one_line)
{
    Error error;

    fail(&error, ERR_REFUSED, "FATAL:  no such role\nDETAIL:\tnone\r\n\n");
    assert_string_equal(error.text, "FATAL:  no such role DETAIL: none");
    fail(&error, ERR_REFUSED, "\n\n");
    assert_string_equal(error.text, "");
}

TEST(error_text_is_cut_between_characters)
{
    char  text[2000];
    Error error;

    /* Each start shifts the border by one byte, so it falls on every byte of the three-byte character. */
    for (size_t start = 1; start < 7; start++) {
        memset(text, 'a', start);
        text[0] = '\n'; /* removed, which must not hide a split end */
        for (size_t at = start; at + 3 < sizeof text; at += 3)
            memcpy(text + at, "\xE2\x82\xAC", 4);
        fail(&error, ERR_INVALID, "%s", text);
        size_t length = strlen(error.text);
        assert_in_range(length, sizeof error.text - 5, sizeof error.text - 1);
        assert_true(text_is_utf8(error.text, length));
        error_prefix(&error, "b");
        length = strlen(error.text);
        assert_in_range(length, sizeof error.text - 5, sizeof error.text - 1);
        assert_true(text_is_utf8(error.text, length));
    }
}

TEST(error_prefix_puts_context_before_the_text)
{
    Error error;

    fail(&error, ERR_CONFLICT, "checksum differs");
    error_set_sqlstate(&error, "23505");
    error_prefix(&error, "migration %d", 3);
    assert_string_equal(error.text, "migration 3: checksum differs");
    assert_string_equal(error.sqlstate, "23505");
    assert_int_equal(error.code, ERR_CONFLICT);
}

TEST(error_prefix_longer_than_the_text_is_cut)
{
    char  prefix[1500];
    Error error;

    for (size_t at = 0; at + 2 < sizeof prefix; at += 2)
        memcpy(prefix + at, "\xC3\xA9", 3);
    fail(&error, ERR_CONFLICT, "checksum differs");
    error_prefix(&error, "%s", prefix);
    assert_int_equal(strlen(error.text), sizeof error.text - 1);
    assert_true(text_is_utf8(error.text, strlen(error.text)));
    assert_contains(error.text, "\xC3\xA9:"); /* 255 characters of two bytes, and what fits behind them */
}

TEST(error_sqlstate_is_bounded)
{
    Error error;

    fail(&error, ERR_BUSY, "x");
    error_set_sqlstate(&error, "40001 and more");
    assert_string_equal(error.sqlstate, "40001");
    error_set_sqlstate(&error, NULL);
    assert_string_equal(error.sqlstate, "");
}

static ErrorCode try_twice(ErrorCode first, ErrorCode second, int *calls)
{
    TRY(first);
    ++*calls;
    TRY(second);
    ++*calls;
    return OK;
}

TEST(error_try_returns_the_first_failure)
{
    int calls = 0;

    assert_int_equal(try_twice(ERR_BUSY, ERR_LIMIT, &calls), ERR_BUSY);
    assert_int_equal(calls, 0);
    assert_int_equal(try_twice(OK, ERR_LIMIT, &calls), ERR_LIMIT);
    assert_int_equal(calls, 1);
    assert_int_equal(try_twice(OK, OK, &calls), OK);
    assert_int_equal(calls, 3);
}

TEST(error_peer_is_kept_behind_the_text)
{
    Error error = {0};
    char  long_text[sizeof error.text];

    (void)fail(&error, ERR_TIMEOUT, "the server did not respond in time");
    assert_string_equal("", error_peer(&error));
    error_set_peer(&error, "%s port %d", "hooks.test", 443);
    error_prefix(&error, "webhook");
    Error copy = error;
    assert_string_equal("webhook: the server did not respond in time", copy.text);
    assert_string_equal("hooks.test port 443", error_peer(&copy));
    error_set_peer(&copy, "%s", "other");
    assert_string_equal("other", error_peer(&copy));

    /* There is no space behind a text that fills the buffer. */
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    (void)fail(&error, ERR_TIMEOUT, "%s", long_text);
    error_set_peer(&error, "hooks.test");
    assert_string_equal("", error_peer(&error));
    (void)fail(&error, ERR_TIMEOUT, "again");
    assert_string_equal("", error_peer(&error));
}
