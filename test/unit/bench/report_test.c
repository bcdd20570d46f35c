/*
 * report_test.c - figures by name, medians, windows beyond the first room.
 */
#include "test/harness/test.h"

#include <string.h>

#include "bench/report.h"

static Report report;

TEST(report_gathers_the_runs_of_a_figure)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    report_init(&report, arena);
    assert_false(report_has(&report, "send", "rate"));
    report_run(&report, "send", "rate", UNIT_RATE, 3);
    report_run(&report, "handle", "rate", UNIT_RATE, 7);
    report_run(&report, "send", "rate", UNIT_RATE, 1);
    report_run(&report, "send", "rate", UNIT_RATE, 2);
    assert_true(report_has(&report, "send", "rate"));
    assert_int_equal(report.figure_count, 2);
    assert_string_equal(report.figures[0].section, "send");
    assert_int_equal(report.figures[0].count, 3);
    assert_true(figure_median(&report.figures[0]) == 2 && figure_median(&report.figures[1]) == 7);
    assert_true(report.figures[0].runs[0] == 3); /* as measured, not sorted */
}

TEST(report_median_of_an_even_number_lies_between)
{
    Figure figure = {
        .count = 4, .runs = {10, 1, 3, 2}
    };

    assert_true(figure_median(&figure) == 2.5);
}

TEST(report_keeps_every_window)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    report_init(&report, arena);
    for (int i = 0; i < 1000; i++)
        report_window(&report, &(Window){.section = "hold", .backlog = i});
    assert_int_equal(report.window_count, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(report.windows[i].backlog, i);
}

TEST(report_units_have_words)
{
    for (Unit unit = 0; unit < UNIT_COUNT; unit++)
        assert_true(unit_rows[unit].text && strlen(unit_rows[unit].text) > 0);
}
