/*
 * page.c - see page.h.
 */
#include "base/page.h"

#include <stdbool.h>
#include <string.h>

Page page_of(Text *text)
{
    return (Page){text, text->length};
}

void page_break(Page *page)
{
    text_append_char(page->text, '\n');
    page->line_start = page->text->length;
}

static size_t page_column(const Page *page)
{
    return page->text->length - page->line_start;
}

void page_go(Page *page, size_t column)
{
    if (page_column(page) >= column && page_column(page) > 0)
        page_break(page);
    text_print(page->text, "%*s", (int)(column - page_column(page)), "");
}

void page_words(Page *page, size_t column, const char *words)
{
    page_go(page, column);
    while (*words) {
        size_t size  = strcspn(words, " ");
        bool   first = page_column(page) == column;

        if (!first && page_column(page) + 1 + size > PAGE_COLUMNS) {
            page_go(page, column);
            first = true;
        }
        text_print(page->text, "%s%.*s", first ? "" : " ", (int)size, words);
        words += size;
        words += strspn(words, " ");
    }
}
