/*
 * setting_page.c - the table of settings as a page of columns, wrapped at PAGE_COLUMNS.
 */
#include <string.h>

#include "base/page.h"
#include "base/setting.h"

#define CELL_MAX 26 /* a longer default pushes the meaning to a new line */

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

#define MEANING_COLUMN_MAX 44

typedef struct {
    size_t fallback, meaning; /* where the columns begin */
} Columns;

static const char *fallback_of(const Setting *row)
{
    return row->fallback ? row->fallback : "(none)";
}

static Columns columns_measure(const SettingTable *table)
{
    size_t name = strlen("setting"), fallback = strlen("default");

    for (size_t i = 0; i < table->count; i++) {
        size_t name_size = strlen(table->rows[i].name), size = strlen(fallback_of(&table->rows[i]));

        name     = name_size > name ? name_size : name;
        fallback = size > fallback && size <= CELL_MAX ? size : fallback;
    }
    fallback = name + 2 + fallback + 2;
    /* Behind a longer default the meaning begins on the next line. */
    return (Columns){.fallback = name + 2, .meaning = fallback < MEANING_COLUMN_MAX ? fallback : MEANING_COLUMN_MAX};
}

static void line_print(Page *page, const Columns *columns, const char *name, const char *fallback, const char *meaning)
{
    text_append(page->text, name);
    page_go(page, columns->fallback);
    text_append(page->text, fallback);
    page_words(page, columns->meaning, meaning);
    page_break(page);
}

void setting_describe(const SettingTable *table, Text *text)
{
    Columns          columns = columns_measure(table);
    Page             page    = page_of(text);
    scoped_text Text meaning = {0};

    text_init(&meaning, NULL, TEXT_MAX_LINE);
    line_print(&page, &columns, "setting", "default", "meaning");
    for (size_t i = 0; i < table->count; i++) {
        text_clear(&meaning);
        meaning_print(&table->rows[i], &meaning);
        line_print(&page, &columns, table->rows[i].name, fallback_of(&table->rows[i]), text_string(&meaning));
    }
}
