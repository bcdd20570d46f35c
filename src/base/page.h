/*
 * page.h - text in columns for a terminal, wrapped at PAGE_COLUMNS. Widths count bytes: the pages are ASCII.
 */
#ifndef BASE_PAGE_H
#define BASE_PAGE_H

#include <stddef.h>

#include "base/text.h"

#define PAGE_COLUMNS 80

typedef struct {
    Text  *text; /* borrowed */
    size_t line_start;
} Page;

/* Appends to this text, from a new line on. */
Page page_of(Text *text);
/* Ends the line. */
void page_break(Page *page);
/* Continues at this column; on the next line if this one already extends to it. */
void page_go(Page *page, size_t column);
/* Words from this column on. Lines that would exceed PAGE_COLUMNS are wrapped between words and continue at the same
 * column. */
void page_words(Page *page, size_t column, const char *words);

#endif
