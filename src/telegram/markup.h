/*
 * markup.h - texts of messages: HTML as the Bot API reads it, its lengths in UTF-16 units, texts that are too long.
 *
 * A message may have TELEGRAM_TEXT_MAX units after its entities were parsed, a caption TELEGRAM_CAPTION_MAX. Units
 * are counted as UTF-16, the stricter of the two ways that servers count.
 *
 * Invariants
 *   1. A part of a split text is well-formed by itself: tags that are open at its end are closed and opened again in
 *      the next one, and no tag, character reference or UTF-8 character is cut.
 *   2. The parts together show the whole text, except for a line break or space at which it was split.
 * Threads: any. Ownership: results live in the arena.
 */
#ifndef TELEGRAM_MARKUP_H
#define TELEGRAM_MARKUP_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"

#define TELEGRAM_TEXT_MAX    4096
#define TELEGRAM_CAPTION_MAX 1024
#define TELEGRAM_ANSWER_MAX  200 /* of answerCallbackQuery */

/* Append text with <, > and & escaped: for names and other text of users. */
void telegram_escape(Text *html, const char *text);
/* The address of a topic of a supergroup, 0: the general one; NULL: other chats have no topics. */
const char *telegram_topic_url(int64_t chat_id, int64_t topic, Arena *arena);
/* How many UTF-16 units bytes of UTF-8 have. */
size_t telegram_units(const char *text, size_t size);
/* The offset in bytes that is `units` behind `from`; size if the text is shorter. Inside of a surrogate pair:
 * behind it. */
size_t telegram_bytes_at(const char *text, size_t size, size_t from, size_t units);
/* The units that a server shows for an HTML text: tags count nothing, a character reference counts as its character. */
size_t telegram_html_units(const char *html);
/* Parts of at most units_max units each, one at least; ended by NULL. */
const char *const *telegram_html_split(const char *html, size_t units_max, Arena *arena);
/* The first units_max units, the last of them an ellipsis if something is left out. */
const char *telegram_html_shorten(const char *html, size_t units_max, Arena *arena);
/* The same for plain text. */
const char *telegram_shorten(const char *text, size_t units_max, Arena *arena);

#endif
