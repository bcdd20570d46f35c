/*
 * bound.h - patterns of names, to which a client is bound: a name, or a prefix and "*".
 *
 * The same rule in SQL is pawl.bound_text (sql/bus/bound.sql). Threads: any; nothing is kept.
 */
#ifndef BASE_BOUND_H
#define BASE_BOUND_H

#include <stdbool.h>

#include "base/arena.h"

#define BOUND_PATTERNS_MAX 20

/* Where a function takes a const Bound *, NULL is no bound: every name. */
typedef struct {
    const char *const *patterns;
    int                count; /* 0: no name */
} Bound;

/* Does one of the patterns have this name? */
bool bound_has(const Bound *bound, const char *name);
/* Has the bound every name that this pattern has? */
bool bound_has_all(const Bound *bound, const char *pattern);
/* "a,b*" in the arena: the list of patterns, and back. An empty text is an empty list. */
Bound       bound_split(Arena *arena, const char *words);
const char *bound_join(Arena *arena, const Bound *bound);

#endif
