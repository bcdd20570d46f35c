/*
 * chart.c - see chart.h.
 */
#include "rating/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "rating/cairo_load.h"
#include "rating/png.h"

/* Drawn in units of which SCALE are a pixel. */
#define WIDTH     1080.0
#define HEIGHT    720.0
#define SCALE     (CHART_WIDTH / WIDTH)
#define COLUMN    3.0 /* points within so much of the width are one column of the curve */
#define LEFT      92.0
#define RIGHT     236.0 /* for the names */
#define TOP       84.0
#define BOTTOM    70.0
#define PNG_MAX   ((size_t)2 << 20)
#define LABEL_GAP 58.0 /* between two names with their ratings below them, at least */
#define SIZE      24.0 /* of a name */
#define RADIUS    8.0  /* of the dot at the end of a curve */
#define FONT      "DejaVu Sans"

typedef struct {
    double r, g, b;
} Colour;

/* Okabe and Ito's, lightened for the dark panel: also for people who cannot tell red from green. */
static const Colour colours[CHART_SERIES_MAX] = {
    {0.34, 0.71, 0.91},
    {0.95, 0.68, 0.13},
    {0.20, 0.78, 0.60},
    {0.93, 0.56, 0.76},
    {0.95, 0.90, 0.35},
    {0.96, 0.47, 0.33},
    {0.68, 0.58, 0.98},
    {0.86, 0.88, 0.91},
};
static const Colour panel = {0.09, 0.11, 0.15}, grid = {0.22, 0.25, 0.31}, mark = {0.50, 0.54, 0.61},
                    words = {0.80, 0.83, 0.88};

typedef struct {
    cairo_t           *cairo;
    const ChartSeries *list;
    int                count;
    Language           language;
    int64_t            from, to;
    double             low, high, step;
    double             start; /* where the first curve begins */
} Chart;

static void colour_set(cairo_t *cairo, Colour colour)
{
    cairo_library.set_source_rgb(cairo, colour.r, colour.g, colour.b);
}

static double x_of(const Chart *chart, int64_t at)
{
    double share = (double)(at - chart->from) / (double)(chart->to - chart->from);

    return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double y_of(const Chart *chart, double rating)
{
    return HEIGHT - BOTTOM - (rating - chart->low) / (chart->high - chart->low) * (HEIGHT - TOP - BOTTOM);
}

#ifdef __SANITIZE_ADDRESS__
/* fontconfig keeps the patterns of fonts until the process ends. */
const char                                        *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
    return "leak:libfontconfig\n";
}
#endif

/* ---- ranges ---- */

/* 1, 2 or 5 times a power of ten, so that about five lines fit. */
static double step_of(double range)
{
    double power = pow(10, floor(log10(range / 5))), share = range / 5 / power;

    return fmax(power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10), 1);
}

static void ranges_find(Chart *chart)
{
    double low = INFINITY, high = -INFINITY;

    chart->from = INT64_MAX;
    chart->to   = INT64_MIN;
    for (int i = 0; i < chart->count; i++)
        for (int j = 0; j < chart->list[i].count; j++) {
            const ChartPoint *point = &chart->list[i].points[j];

            chart->start = point->at < chart->from ? point->rating : chart->start;
            chart->from  = point->at < chart->from ? point->at : chart->from;
            chart->to    = point->at > chart->to ? point->at : chart->to;
            low          = fmin(low, point->rating);
            high         = fmax(high, point->rating);
        }
    if (chart->to <= chart->from) /* one match: the hour before it, not after */
        chart->from -= INT64_C(3600) * 1000000;
    if (high - low < 20) {
        low -= 10;
        high += 10;
    }
    chart->step = step_of(high - low);
    chart->low  = floor(low / chart->step) * chart->step;
    chart->high = ceil(high / chart->step) * chart->step;
}

/* ---- words ---- */

static void text_show(cairo_t *cairo, double x, double y, double size, const char *text, double align)
{
    cairo_text_extents_t extents;

    cairo_library.set_font_size(cairo, size);
    cairo_library.text_extents(cairo, text, &extents);
    cairo_library.move_to(cairo, x - align * extents.x_advance, y);
    cairo_library.show_text(cairo, text);
}

/* The length of a character in bytes. */
static size_t char_length(const char *text)
{
    size_t length = 1;

    while (((unsigned char)text[length] & 0xc0) == 0x80)
        length++;
    return length;
}

/* Has the font something to show for this character? An emoji would be an empty box; noncharacters are refused by
 * cairo. */
static bool char_is_drawable(cairo_t *cairo, const char *text, size_t length)
{
    cairo_scaled_font_t *font   = cairo_library.get_scaled_font(cairo);
    cairo_glyph_t       *glyphs = NULL;
    int                  count  = 0;
    bool                 shown;

    if ((unsigned char)text[0] < 0x20)
        return false;
    if (cairo_library.scaled_font_text_to_glyphs(font, 0, 0, text, (int)length, &glyphs, &count, NULL, NULL, NULL) !=
        CAIRO_STATUS_SUCCESS)
        return false;
    shown = count > 0 && glyphs[0].index != 0;
    cairo_library.glyph_free(glyphs);
    return shown;
}

/* What can be drawn of a text, without spaces at its ends; "" : nothing. */
static char *text_drawable(cairo_t *cairo, const char *text, Arena *arena)
{
    size_t length = text_cut(text, strnlen(text, 256), 255), kept = 0;
    char  *copy = arena_bytes(arena, text, length);

    text_clean(copy, strlen(copy));
    for (size_t at = 0, size; copy[at]; at += size) {
        size = char_length(copy + at);
        if (copy[at] == '\n' || copy[at] == '\t')
            copy[at] = ' ';
        if ((copy[at] == ' ' && (kept == 0 || copy[kept - 1] == ' ')) || !char_is_drawable(cairo, copy + at, size))
            continue;
        memmove(copy + kept, copy + at, size);
        kept += size;
    }
    while (kept > 0 && copy[kept - 1] == ' ')
        kept--;
    copy[kept] = '\0';
    return copy;
}

/* At most so wide, with an ellipsis. */
static const char *text_fit(cairo_t *cairo, const char *text, double size, double width, Arena *arena)
{
    char                *copy   = text_drawable(cairo, text, arena);
    size_t               length = strlen(copy);
    cairo_text_extents_t extents;

    cairo_library.set_font_size(cairo, size);
    cairo_library.text_extents(cairo, copy, &extents);
    while (extents.x_advance > width && length > 1) {
        length = text_cut(copy, length, length - 1);
        copy   = arena_print(arena, "%.*s…", (int)length, copy);
        cairo_library.text_extents(cairo, copy, &extents);
    }
    return copy;
}

/* A player whose name cannot be drawn is called by the username. */
static const char *name_fit(const Chart *chart, const ChartSeries *series, double size, double width, Arena *arena)
{
    const char *fit = series->name ? text_fit(chart->cairo, series->name, size, width, arena) : "";

    if (!fit[0] && series->username && series->username[0])
        fit = text_fit(chart->cairo, arena_print(arena, "@%s", series->username), size, width, arena);
    return fit[0] ? fit : "?";
}

/* ---- the parts ---- */

static void line_draw(const Chart *chart, double rating, Colour colour, double width)
{
    double y = floor(y_of(chart, rating)) + 0.5;

    colour_set(chart->cairo, colour);
    cairo_library.set_line_width(chart->cairo, width);
    cairo_library.move_to(chart->cairo, LEFT, y);
    cairo_library.line_to(chart->cairo, WIDTH - RIGHT, y);
    cairo_library.stroke(chart->cairo);
}

/* The start stands out: above it a player has won more than expected since then. */
static void grid_draw(const Chart *chart)
{
    cairo_t *cairo = chart->cairo;
    char     text[32];
    int      lines = (int)lround((chart->high - chart->low) / chart->step);

    for (int i = 0; i <= lines; i++) {
        double rating = chart->low + i * chart->step;

        line_draw(chart, rating, grid, 1.5);
        snprintf(text, sizeof text, "%.0f", rating);
        colour_set(cairo, words);
        text_show(cairo, LEFT - 14, floor(y_of(chart, rating)) + 8.5, 24, text, 1);
    }
    line_draw(chart, chart->start, mark, 2.5);
}

/* Days where the chart covers days, else hours. */
const char *chart_time_text(Language language, int64_t at, int64_t range, Arena *arena)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t                   seconds  = (time_t)(at / 1000000);
    struct tm                moment   = {0};

    gmtime_r(&seconds, &moment);
    if (range <= INT64_C(2) * 86400 * 1000000)
        return arena_print(arena, "%02d:%02d", moment.tm_hour, moment.tm_min);
    if (range <= INT64_C(300) * 86400 * 1000000)
        return language == LANGUAGE_RU ? arena_print(arena, "%02d.%02d", moment.tm_mday, moment.tm_mon + 1)
                                       : arena_print(arena, "%d %s", moment.tm_mday, months[moment.tm_mon]);
    return language == LANGUAGE_RU ? arena_print(arena, "%02d.%d", moment.tm_mon + 1, moment.tm_year + 1900)
                                   : arena_print(arena, "%s %d", months[moment.tm_mon], moment.tm_year + 1900);
}

static void times_draw(const Chart *chart, Arena *arena)
{
    int         marks = 4;
    const char *last  = "";

    for (int i = 0; i <= marks; i++) {
        int64_t     at   = chart->from + (chart->to - chart->from) / marks * i;
        const char *text = chart_time_text(chart->language, at, chart->to - chart->from, arena);

        if (strcmp(text, last) == 0)
            continue;
        last = text;
        colour_set(chart->cairo, words);
        text_show(chart->cairo, x_of(chart, at), HEIGHT - 28, 22, text, i == 0 ? 0 : i == marks ? 1 : 0.5);
    }
}

/* Points of one column of the curve: the first, the lowest, the highest and the last one are drawn. A thousand
 * points are more than a phone shows, and each costs. */
typedef struct {
    int first, low, high, last;
} Column;

static void point_draw(const Chart *chart, const ChartPoint *point)
{
    cairo_library.line_to(chart->cairo, x_of(chart, point->at), y_of(chart, point->rating));
}

static void column_draw(const Chart *chart, const ChartPoint *points, const Column *column)
{
    int low = column->low < column->high ? column->low : column->high;
    int top = column->low < column->high ? column->high : column->low;

    point_draw(chart, &points[column->first]);
    if (low != column->first)
        point_draw(chart, &points[low]);
    if (top != low)
        point_draw(chart, &points[top]);
    if (column->last != top)
        point_draw(chart, &points[column->last]);
}

static void curve_draw(const Chart *chart, const ChartSeries *series)
{
    const ChartPoint *points = series->points;
    Column            column = {0};

    for (int i = 1; i < series->count; i++) {
        if (x_of(chart, points[i].at) - x_of(chart, points[column.first].at) >= COLUMN) {
            column_draw(chart, points, &column);
            column = (Column){i, i, i, i};
            continue;
        }
        column.low  = points[i].rating < points[column.low].rating ? i : column.low;
        column.high = points[i].rating > points[column.high].rating ? i : column.high;
        column.last = i;
    }
    column_draw(chart, points, &column);
}

static double end_y(const Chart *chart, int index)
{
    const ChartSeries *series = &chart->list[index];

    return y_of(chart, series->points[series->count - 1].rating);
}

/* Curves that end at the same place have dots of one middle: the one that is drawn before the others is the largest. */
static double end_radius(const Chart *chart, int index)
{
    double radius = RADIUS;

    for (int i = 0; i < index; i++)
        if (fabs(end_y(chart, i) - end_y(chart, index)) < RADIUS / 2)
            radius += RADIUS / 3;
    return radius;
}

static void series_draw(const Chart *chart, int index)
{
    const ChartSeries *series = &chart->list[index];
    const ChartPoint  *last   = &series->points[series->count - 1];
    cairo_t           *cairo  = chart->cairo;

    colour_set(cairo, colours[index]);
    cairo_library.new_path(cairo); /* words leave a current point behind */
    cairo_library.set_line_width(cairo, series->count > 300 ? 3.5 : 5);
    cairo_library.set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
    cairo_library.set_line_cap(cairo, CAIRO_LINE_CAP_ROUND);
    curve_draw(chart, series);
    /* A player who has not played lately keeps the rating until the end of the chart. */
    cairo_library.line_to(cairo, x_of(chart, chart->to), y_of(chart, last->rating));
    cairo_library.stroke(cairo);
    cairo_library.arc(cairo, x_of(chart, chart->to), end_y(chart, index), end_radius(chart, index), 0, 2 * M_PI);
    cairo_library.fill(cairo);
    /* Where it begins: at the left edge many curves begin at one rating. */
    cairo_library.arc(cairo, x_of(chart, series->points[0].at), y_of(chart, series->points[0].rating), RADIUS * 2 / 3,
                      0, 2 * M_PI);
    cairo_library.fill(cairo);
}

typedef struct {
    int    index;
    double y;
} Label;

static int label_order(const void *a, const void *b)
{
    const Label *x = a, *y = b;

    return x->y < y->y ? -1 : x->y > y->y;
}

/* The name at the height of its dot, the rating below it; a line leads to a label that was moved. */
static void label_draw(const Chart *chart, const Label *label, Arena *arena)
{
    const ChartSeries *series = &chart->list[label->index];
    cairo_t           *cairo  = chart->cairo;
    double             x = WIDTH - RIGHT + 30, dot = end_y(chart, label->index);
    char               number[32];

    colour_set(cairo, colours[label->index]);
    if (fabs(label->y - dot) > RADIUS / 2) {
        cairo_library.new_path(cairo);
        cairo_library.set_line_width(cairo, 1.5);
        cairo_library.move_to(cairo, x_of(chart, chart->to), dot);
        cairo_library.line_to(cairo, x - 5, label->y);
        cairo_library.stroke(cairo);
    }
    text_show(cairo, x, label->y + SIZE / 3, SIZE, name_fit(chart, series, SIZE, RIGHT - 38, arena), 0);
    snprintf(number, sizeof number, "%.0f", series->points[series->count - 1].rating);
    text_show(cairo, x, label->y + SIZE / 3 + 27, SIZE, number, 0);
}

/* Names beside the ends of their curves, moved apart where they would overlap. */
static void names_draw(const Chart *chart, Arena *arena)
{
    Label  labels[CHART_SERIES_MAX] = {0};
    double bottom                   = HEIGHT - BOTTOM;

    for (int i = 0; i < chart->count; i++)
        labels[i] = (Label){i, end_y(chart, i)};
    qsort(labels, (size_t)chart->count, sizeof labels[0], label_order);
    for (int i = 1; i < chart->count; i++)
        labels[i].y = fmax(labels[i].y, labels[i - 1].y + LABEL_GAP);
    for (int i = chart->count - 1; i >= 0; i--) {
        labels[i].y = fmin(labels[i].y, bottom);
        bottom      = labels[i].y - LABEL_GAP;
    }
    for (int i = 0; i < chart->count; i++)
        label_draw(chart, &labels[i], arena);
}

/* ---- the picture ---- */

static void all_draw(Chart *chart, const char *title, Arena *arena)
{
    cairo_t *cairo = chart->cairo;

    colour_set(cairo, panel);
    cairo_library.paint(cairo);
    cairo_library.select_font_face(cairo, FONT, CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_BOLD);
    if (title && title[0]) {
        colour_set(cairo, words);
        text_show(cairo, LEFT, 52, 32, text_fit(cairo, title, 32, WIDTH - LEFT - 40, arena), 0);
    }
    cairo_library.select_font_face(cairo, FONT, CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    grid_draw(chart);
    times_draw(chart, arena);
    for (int i = chart->count - 1; i >= 0; i--)
        series_draw(chart, i);
    names_draw(chart, arena);
}

static ErrorCode series_check(const ChartSeries *list, int count, Error *reterr)
{
    if (count < 1)
        return fail(reterr, ERR_INVALID, "a chart needs a player");
    if (count > CHART_SERIES_MAX)
        return fail(reterr, ERR_LIMIT, "a chart has at most %d players, got %d", CHART_SERIES_MAX, count);
    for (int i = 0; i < count; i++) {
        if (list[i].count < 1)
            return fail(reterr, ERR_INVALID, "player %d of a chart has no points", i + 1);
        if (list[i].count > CHART_POINTS_MAX + 1)
            return fail(reterr, ERR_LIMIT, "a chart has at most %d points of a player", CHART_POINTS_MAX + 1);
    }
    return OK;
}

ErrorCode chart_check(Error *reterr)
{
    return cairo_load(reterr);
}

ErrorCode chart_draw(const char *title, Language language, const ChartSeries *list, int count, Arena *arena,
                     const void **ret_png, size_t *ret_size, Error *reterr)
{
    Chart            chart = {.list = list, .count = count, .language = language};
    cairo_surface_t *surface;
    cairo_status_t   status;
    ErrorCode        code = OK;
    Text             png;

    TRY(series_check(list, count, reterr));
    TRY(cairo_load(reterr));
    ranges_find(&chart);
    surface     = cairo_library.image_surface_create(CAIRO_FORMAT_RGB24, CHART_WIDTH, CHART_HEIGHT);
    chart.cairo = cairo_library.create(surface);
    cairo_library.scale(chart.cairo, SCALE, SCALE);
    all_draw(&chart, title, arena);
    text_init(&png, arena, PNG_MAX);
    status = cairo_library.status(chart.cairo);
    if (status == CAIRO_STATUS_SUCCESS) {
        cairo_library.surface_flush(surface);
        code = png_write(cairo_library.image_surface_get_data(surface), CHART_WIDTH, CHART_HEIGHT,
                         cairo_library.image_surface_get_stride(surface), &png, reterr);
    }
    cairo_library.destroy(chart.cairo);
    cairo_library.surface_destroy(surface);
    if (status != CAIRO_STATUS_SUCCESS)
        return fail(reterr, ERR_INTERNAL, "the chart could not be drawn: %s", cairo_library.status_to_string(status));
    TRY(code);
    *ret_png  = png.bytes;
    *ret_size = png.length;
    return OK;
}
