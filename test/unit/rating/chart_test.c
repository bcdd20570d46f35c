/*
 * chart_test.c - charts are PNGs of their size, from one point to a thousand, with any names. PAWL_TEST_CHART=FILE keeps one to look at.
 */
#include "rating/chart.h"

#include <cairo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/harness/test.h"

#define DAY (INT64_C(86400) * 1000000)

static ChartSeries walk(Arena *arena, const char *name, unsigned seed, int count, double drift)
{
    ChartSeries series = {.name = name, .points = arena_array(arena, ChartPoint, count), .count = count};
    double      rating = 1500;

    srandom(seed);
    for (int i = 0; i < count; i++) {
        series.points[i] = (ChartPoint){INT64_C(1760000000) * 1000000 + DAY * 60 / count * i, rating};
        rating += (double)(random() % 33) - 16 + drift;
    }
    return series;
}

static void png_check(const void *png, size_t size)
{
    const unsigned char *bytes = png;

    assert_true(size > 1000);
    assert_memory_equal("\x89PNG\r\n\x1a\n", bytes, 8);
    assert_int_equal(CHART_WIDTH, bytes[18] * 256 + bytes[19]);
    assert_int_equal(CHART_HEIGHT, bytes[22] * 256 + bytes[23]);
    assert_memory_equal("IEND", bytes + size - 8, 4);
}

TEST(chart_of_several_players_is_a_png)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    ChartSeries list[] = {walk(arena, "Анна Каренина", 1, 60, 1.5), walk(arena, "Bob <b>", 2, 45, 0),
                          walk(arena, "Константин Константинопольский", 3, 50, -1.5), walk(arena, "Ann", 4, 30, 0.2),
                          walk(arena, "x\xff\xfe", 5, 12, 0)};
    const void *png;
    size_t      size;
    Error       error = {0};
    const char *file  = getenv("PAWL_TEST_CHART");

    assert_ok(chart_draw("Шахматы по пятницам: динамика рейтинга", LANGUAGE_RU, list, 5, arena, &png, &size, &error));
    png_check(png, size);
    if (file) {
        FILE *out = fopen(file, "we");

        assert_non_null(out);
        assert_int_equal(size, fwrite(png, 1, size, out));
        fclose(out);
    }
}

TEST(chart_of_one_point_and_of_a_thousand)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    ChartSeries               one = walk(arena, "", 1, 1, 0), many = walk(arena, "Ann", 2, CHART_POINTS_MAX, 0);
    const void               *png;
    size_t                    size;
    Error                     error = {0};

    assert_ok(chart_draw(NULL, LANGUAGE_EN, &one, 1, arena, &png, &size, &error));
    png_check(png, size);
    assert_ok(chart_draw("", LANGUAGE_EN, &many, 1, arena, &png, &size, &error));
    png_check(png, size);
    one.name = NULL;
    assert_ok(chart_draw("a\nb", LANGUAGE_EN, &one, 1, arena, &png, &size, &error));
    png_check(png, size);
}

/* cairo refuses noncharacters, and its font has no emoji: one player must not stop the chart of a group. */
TEST(chart_leaves_out_what_the_font_does_not_have)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    static const char *const  names[] = {"Bob\xef\xb7\x90", "\xf0\x9f\xbf\xbe", "🎉 Анна",  "👩‍👩‍👧",
                                         "李小龙",          "\xed\xa0\x80",     "a\tb\x01", ""};
    ChartSeries               list[COUNT(names)], plain, other;
    const void               *png, *same;
    size_t                    size, same_size;
    Error                     error = {0};

    for (size_t i = 0; i < COUNT(names); i++) {
        list[i]          = walk(arena, names[i], (unsigned)i, 20, 0);
        list[i].username = i % 2 ? "user_name" : NULL;
        assert_ok(chart_draw("\xef\xbf\xbf title \xef\xb7\xaf", LANGUAGE_EN, &list[i], 1, arena, &png, &size, &error));
        png_check(png, size);
    }
    assert_ok(chart_draw("🎉", LANGUAGE_EN, list, (int)COUNT(names), arena, &png, &size, &error));
    png_check(png, size);
    /* Drawn as if they had not been there. */
    plain = walk(arena, "Анна", 1, 20, 0);
    other = walk(arena, "🎉 Анна \xef\xb7\x90", 1, 20, 0);
    assert_ok(chart_draw("Chess", LANGUAGE_EN, &plain, 1, arena, &png, &size, &error));
    assert_ok(chart_draw("Chess 🎉", LANGUAGE_EN, &other, 1, arena, &same, &same_size, &error));
    assert_int_equal(size, same_size);
    assert_memory_equal(png, same, size);
    /* Nothing is left of the name: the username. */
    plain = walk(arena, "@ann", 1, 20, 0);
    other = walk(arena, "\xef\xb7\x90", 1, 20, 0), other.username = "ann";
    assert_ok(chart_draw("Chess", LANGUAGE_EN, &plain, 1, arena, &png, &size, &error));
    assert_ok(chart_draw("Chess", LANGUAGE_EN, &other, 1, arena, &same, &same_size, &error));
    assert_int_equal(size, same_size);
    assert_memory_equal(png, same, size);
}

TEST(chart_refuses_what_it_cannot_draw)
{
    scoped(arena_free) Arena *arena                      = arena_new(ARENA_BYTES_DEFAULT);
    ChartSeries               list[CHART_SERIES_MAX + 1] = {{0}};
    const void               *png;
    size_t                    size;
    Error                     error = {0};

    assert_code(ERR_INVALID, chart_draw("", LANGUAGE_EN, list, 0, arena, &png, &size, &error));
    assert_code(ERR_INVALID, chart_draw("", LANGUAGE_EN, list, 1, arena, &png, &size, &error));
    assert_code(ERR_LIMIT, chart_draw("", LANGUAGE_EN, list, CHART_SERIES_MAX + 1, arena, &png, &size, &error));
    list[0].count = CHART_POINTS_MAX + 2;
    assert_code(ERR_LIMIT, chart_draw("", LANGUAGE_EN, list, 1, arena, &png, &size, &error));
}

TEST(chart_times_have_the_form_of_the_language)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    int64_t                   at    = INT64_C(1789822980) * 1000000; /* 2026-09-19 13:03 */

    assert_string_equal("13:03", chart_time_text(LANGUAGE_EN, at, DAY, arena));
    assert_string_equal("19 Sep", chart_time_text(LANGUAGE_EN, at, 10 * DAY, arena));
    assert_string_equal("19.09", chart_time_text(LANGUAGE_RU, at, 10 * DAY, arena));
    assert_string_equal("Sep 2026", chart_time_text(LANGUAGE_EN, at, 400 * DAY, arena));
    assert_string_equal("09.2026", chart_time_text(LANGUAGE_RU, at, 400 * DAY, arena));
}

/* Eight curves that end at one rating: rings of all colours, and a line to each label. PAWL_TEST_CHART_EQUAL=FILE keeps it to look at. */
TEST(chart_shows_players_of_one_rating)
{
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    ChartPoint                flat[] = {
        {INT64_C(1760000000) * 1000000, 1500},
        {INT64_C(1760090000) * 1000000, 1500}
    };
    ChartSeries list[CHART_SERIES_MAX];
    const void *png;
    size_t      size;
    Error       error = {0};
    const char *file  = getenv("PAWL_TEST_CHART_EQUAL");

    for (int i = 0; i < CHART_SERIES_MAX; i++)
        list[i] = (ChartSeries){.name = arena_print(arena, "Player %d", i), .points = flat, .count = 2};
    assert_ok(chart_draw("Equal", LANGUAGE_EN, list, CHART_SERIES_MAX, arena, &png, &size, &error));
    png_check(png, size);
    if (file) {
        FILE *out = fopen(file, "we");

        assert_non_null(out);
        assert_int_equal(size, fwrite(png, 1, size, out));
        fclose(out);
    }
}

/* ---- pixels ---- */

typedef struct {
    const unsigned char *bytes;
    size_t               size;
} Bytes;

static cairo_status_t bytes_read(void *context, unsigned char *ret_data, unsigned length)
{
    Bytes *bytes = context;

    if (length > bytes->size)
        return CAIRO_STATUS_READ_ERROR;
    memcpy(ret_data, bytes->bytes, length);
    bytes->bytes += length;
    bytes->size -= length;
    return CAIRO_STATUS_SUCCESS;
}

/* How many rows of a column have about this colour. */
static int rows_of_colour(cairo_surface_t *surface, int x, uint32_t rgb)
{
    const unsigned char *data   = cairo_image_surface_get_data(surface);
    int                  stride = cairo_image_surface_get_stride(surface), rows = 0;

    for (int y = 0; y < CHART_HEIGHT; y++) {
        uint32_t pixel;
        bool     same = true;

        memcpy(&pixel, data + (size_t)y * (size_t)stride + (size_t)x * 4, sizeof pixel);
        for (int shift = 0; shift < 24; shift += 8)
            same &= abs((int)(pixel >> shift & 255) - (int)(rgb >> shift & 255)) <= 12;
        rows += same;
    }
    return rows;
}

/* The curve begins at 1500 and goes up: the line of the start is below it, and its first point is a dot. */
TEST(chart_marks_the_start)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    ChartPoint                points[] = {
        {INT64_C(1760000000) * 1000000, 1500},
        {INT64_C(1760900000) * 1000000, 1600}
    };
    ChartSeries      one = {.name = "Ann", .points = points, .count = 2};
    const void      *png;
    size_t           size;
    Error            error = {0};
    cairo_surface_t *surface;

    assert_ok(chart_draw("Chess", LANGUAGE_EN, &one, 1, arena, &png, &size, &error));
    surface = cairo_image_surface_create_from_png_stream(bytes_read, &(Bytes){png, size});
    assert_int_equal(CAIRO_STATUS_SUCCESS, cairo_surface_status(surface));
    assert_in_range(rows_of_colour(surface, 600, 0x808a9c), 1, 4);
    /* The dot is wider than the line of the curve. */
    assert_true(rows_of_colour(surface, 111, 0x57b5e8) > rows_of_colour(surface, 600, 0x57b5e8));
    cairo_surface_destroy(surface);
}

/* All points at one moment: they are at the right end of the axis, which shows the hour before them and no time to come. */
TEST(chart_of_one_match_ends_with_it)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    ChartPoint                point = {INT64_C(1760000000) * 1000000, 1516};
    ChartSeries               one   = {.name = "Ann", .points = &point, .count = 1};
    const void               *png;
    size_t                    size;
    Error                     error = {0};
    cairo_surface_t          *surface;

    assert_ok(chart_draw("Chess", LANGUAGE_EN, &one, 1, arena, &png, &size, &error));
    surface = cairo_image_surface_create_from_png_stream(bytes_read, &(Bytes){png, size});
    assert_int_equal(CAIRO_STATUS_SUCCESS, cairo_surface_status(surface));
    assert_true(rows_of_colour(surface, CHART_WIDTH - 236, 0x57b5e8) > 3);
    assert_int_equal(rows_of_colour(surface, (92 + CHART_WIDTH - 236) / 2, 0x57b5e8), 0);
    cairo_surface_destroy(surface);
}
