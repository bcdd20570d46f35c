/*
 * name.h - names that users choose for themselves, as text that shows a name and does nothing else.
 */
#ifndef RATING_NAME_H
#define RATING_NAME_H

#include "base/arena.h"

/* The name without characters that turn the line, hide or show nothing, and with single spaces. Two names that look
 * the same because of such characters become equal. "": nothing of it can be seen. NULL is "". */
const char *name_clean(Arena *arena, const char *name);
/* The same, interrupted by invisible characters where a messenger would make a link, a mention, a hashtag or a
 * command of it. Not escaped. */
const char *name_inert(Arena *arena, const char *name);

#endif
