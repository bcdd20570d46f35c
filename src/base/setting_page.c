/*
 * setting_page.c - the table of settings as a page of columns, wrapped at 100 columns.
 */
#include <assert.h>
#include <string.h>

#include "base/page.h"
#include "base/setting.h"

#define CELL_MAX 26 /* a longer value pushes the next cell to a new line */

static void bits_print(const char *const *words, uint64_t bits, Text *text)
{
    const char *comma = "";

    for (int i = 0; words[i]; i++)
        if (bits >> i & 1) {
            text_print(text, "%s%s", comma, words[i]);
            comma = ",";
        }
}

static void setting_value_print(const Setting *row, const char *values, Text *text)
{
    const void *value = values + row->offset;
    const char *word;

    assert(!row->secret || row->type == SETTING_TEXT);
    switch (row->type) {
    case SETTING_TEXT:
    case SETTING_WORD:
        word = *(const char *const *)value;
        text_append(text, !word ? "(not set)" : row->secret ? "(set)" : word);
        break;
    case SETTING_INT:
        text_print(text, "%lld", (long long)*(const int64_t *)value);
        break;
    case SETTING_DURATION_MS:
        setting_duration_print(*(const int64_t *)value, text);
        break;
    case SETTING_BOOL:
        text_append(text, *(const bool *)value ? "on" : "off");
        break;
    case SETTING_WORDS:
        bits_print(row->words, *(const uint64_t *)value, text);
        break;
    }
}

/* "most connections (an integer from 1 to 1000; SIGHUP reloads it)" */
static void meaning_print(const Setting *row, Text *text)
{
    scoped_text Text notes = {0};

    text_init(&notes, NULL, TEXT_MAX_LINE);
    setting_rule_print(row, &notes);
    if (row->name_alt)
        text_print(&notes, "%selse %s", notes.length ? "; " : "", row->name_alt);
    if (row->reloads)
        text_print(&notes, "%sSIGHUP reloads it", notes.length ? "; " : "");
    text_append(text, row->help);
    if (notes.length)
        text_print(text, " (%s)", text_string(&notes));
}

typedef struct {
    const char *name, *now, *fallback, *meaning;
} SettingPageLine;

typedef struct {
    size_t now, fallback, meaning; /* where the columns begin */
} Columns;

static size_t cell_size(size_t widest, const char *cell)
{
    size_t size = strlen(cell);

    return size > widest && size <= CELL_MAX ? size : widest;
}

static Columns columns_measure(const SettingPageLine *lines, size_t count)
{
    size_t name = 0, now = 0, fallback = 0;

    for (size_t i = 0; i < count; i++) {
        name     = strlen(lines[i].name) > name ? strlen(lines[i].name) : name;
        now      = cell_size(now, lines[i].now);
        fallback = cell_size(fallback, lines[i].fallback);
    }
    Columns columns  = {.now = name + 2};
    columns.fallback = columns.now + (now ? now + 2 : 0);
    columns.meaning  = columns.fallback + fallback + 2;
    return columns;
}

static void line_print(const SettingPageLine *line, const Columns *columns, Page *page)
{
    text_append(page->text, line->name);
    if (*line->now) {
        page_go(page, columns->now);
        text_append(page->text, line->now);
    }
    page_go(page, columns->fallback);
    text_append(page->text, line->fallback);
    page_words(page, columns->meaning, line->meaning);
    page_break(page);
}

static const char *text_keep(Arena *arena, Text *text)
{
    const char *kept = arena_text(arena, text_string(text));

    text_clear(text);
    return kept;
}

void setting_describe(const SettingTable *table, const void *values, Text *text)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    SettingPageLine          *lines = arena_array(arena, SettingPageLine, table->count + 1);
    Page                      page  = page_of(text);
    scoped_text Text          cell  = {0};

    text_init(&cell, NULL, TEXT_MAX_LINE);
    lines[0] = (SettingPageLine){"setting", values ? "now" : "", "default", "meaning"};
    for (size_t i = 0; i < table->count; i++) {
        const Setting   *row  = &table->rows[i];
        SettingPageLine *line = &lines[i + 1];

        line->name     = row->name;
        line->fallback = row->fallback ? row->fallback : "(none)";
        if (values)
            setting_value_print(row, values, &cell);
        line->now = text_keep(arena, &cell);
        meaning_print(row, &cell);
        line->meaning = text_keep(arena, &cell);
    }
    Columns columns = columns_measure(lines, table->count + 1);
    for (size_t i = 0; i <= table->count; i++)
        line_print(&lines[i], &columns, &page);
}
