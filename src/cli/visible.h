/*
 * visible.h - standard output and error of pawl: what a terminal would obey instead of showing it is made visible.
 *
 * Payloads, names, reasons and errors come from users. Printed raw, an escape sequence in one of them could change the screen of the operator who reads
 * it, hide a line, or show a text in another order. So both streams of the program go through one filter, which writes such a character as \x1b, \x9b or
 * \u202e: control characters but line breaks and tabs, those that change the direction of text, and bytes that are not UTF-8. No caller escapes.
 *
 * Threads: any. What a program that is run by pawl prints is not filtered, nor is what is written to the file numbers.
 */
#ifndef CLI_VISIBLE_H
#define CLI_VISIBLE_H

#include <stdbool.h>

#include "base/arena.h"

/* Before anything is printed. json: what is printed is JSON, which stays so: to a terminal it is escaped as JSON has it (\u001b), else it is written as
 * it is. */
void visible_begin(bool json);
/* What standard output gets from here on is a file of the user's, or CSV: as it is, unless it goes to a terminal. */
void visible_data(void);
/* A text as the filter writes it, for callers that need its width. */
const char *visible_text(Arena *arena, const char *text);

#endif
