/*
 * moment_test.c - what is a moment, and which one.
 */
#include "base/moment.h"

#include "base/clock.h"
#include "test/harness/test.h"

static const struct {
    const char *text;
    int64_t     micros; /* -1: no moment */
    bool        lenient_only;
} rows[] = {
    {"1970-01-01T00:00:00Z", 0},
    {"2026-01-31T12:00:00Z", INT64_C(1769860800000000)},
    {"2026-01-31t12:00:00z", INT64_C(1769860800000000)},
    {"2026-01-31T13:00:00+01:00", INT64_C(1769860800000000)},
    {"2026-01-31T08:30:00-03:30", INT64_C(1769860800000000)},
    {"2026-01-31T12:00:00.25Z", INT64_C(1769860800250000)},
    {"2026-01-31T12:00:00.123456789Z", INT64_C(1769860800123456)},
    {"2026-01-31T12:00:00+14:59", INT64_C(1769806860000000)},
    {"0001-01-01T00:00:00Z", INT64_C(-62135596800000000)},
    {"2024-02-29T00:00:00Z", INT64_C(1709164800000000)},
    {"2026-01-31", INT64_C(1769817600000000), true},
    {"2026-01-31T12:00", INT64_C(1769860800000000), true},
    {"2026-01-31 12:00:00", INT64_C(1769860800000000), true},
    {"2026-01-31T13:00:00+01", INT64_C(1769860800000000), true},
    {"2026-01-31T08:30:00-0330", INT64_C(1769860800000000), true},
    {"", -1},
    {"yesterday", -1},
    {"0000-01-01T00:00:00Z", -1},
    {"2026-02-29T00:00:00Z", -1},
    {"2026-02-30T00:00:00Z", -1},
    {"2026-04-31T00:00:00Z", -1},
    {"2026-00-10T00:00:00Z", -1},
    {"2026-01-00T00:00:00Z", -1},
    {"2026-13-01T00:00:00Z", -1},
    {"2026-01-32", -1},
    {"2026-01-31T24:00:00Z", -1},
    {"2026-01-31T12:60:00Z", -1},
    {"2026-01-31T12:00:60Z", -1},
    {"2026-01-31T12:00:00.Z", -1},
    {"2026-01-31T12:00:00.1234567890Z", -1},
    {"2026-01-31T12:00:00+15:00", -1},
    {"2026-01-31T12:00:00+01:60", -1},
    {"2026-01-31T12:00:00Z ", -1},
    {"2026-01-31T", -1},
    {"2026-1-31", -1},
    {"2026-01-31T-1:00:00Z", -1},
    {"2026-01- 3T12:00:00Z", -1},
    {"2026-01-31T12:00:00+ 1:00", -1},
};

TEST(moment_parses_rfc_3339_and_what_people_type)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool    is_lenient = rows[i].micros != -1, is_strict = is_lenient && !rows[i].lenient_only;
        int64_t micros = 0;

        if (moment_parse(rows[i].text, MOMENT_RFC3339, &micros) != is_strict)
            fail_msg("RFC 3339: %s", rows[i].text);
        assert_true(!is_strict || micros == rows[i].micros);
        if (moment_parse(rows[i].text, MOMENT_LENIENT, &micros) != is_lenient)
            fail_msg("lenient: %s", rows[i].text);
        assert_true(!is_lenient || micros == rows[i].micros);
    }
}

TEST(moment_that_was_written_is_read_again)
{
    char    text[WALL_TEXT_SIZE];
    int64_t micros;

    wall_text_us((Wall){INT64_C(1769860800000007)}, text);
    assert_string_equal(text, "2026-01-31T12:00:00.000007Z");
    assert_true(moment_parse(text, MOMENT_RFC3339, &micros));
    assert_int_equal(micros, INT64_C(1769860800000007));
    wall_text_us((Wall){-1}, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999999Z");
    assert_true(moment_parse(text, MOMENT_RFC3339, &micros));
    assert_int_equal(micros, -1);
}
