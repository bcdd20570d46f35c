/*
 * bound.c - see bound.h.
 */
#include "base/bound.h"

#include <string.h>

static bool pattern_has(const char *pattern, const char *name)
{
    size_t length = strlen(pattern);

    if (length > 0 && pattern[length - 1] == '*')
        return strncmp(name, pattern, length - 1) == 0;
    return strcmp(name, pattern) == 0;
}

bool bound_has(const Bound *bound, const char *name)
{
    for (int i = 0; i < bound->count; i++)
        if (pattern_has(bound->patterns[i], name))
            return true;
    return false;
}

/* Only a prefix has another pattern with "*". */
bool bound_has_all(const Bound *bound, const char *pattern)
{
    size_t length = strlen(pattern);
    bool   is_one = length == 0 || pattern[length - 1] != '*';

    for (int i = 0; i < bound->count; i++)
        if (pattern_has(bound->patterns[i], pattern) && (is_one || strchr(bound->patterns[i], '*')))
            return true;
    return false;
}

Bound bound_split(Arena *arena, const char *words)
{
    char        *rest = arena_bytes(arena, words, strlen(words));
    const char **patterns;
    int          count = 0;

    if (!*words)
        return (Bound){0};
    for (const char *at = words; at; at = strchr(at + 1, ','))
        count++;
    patterns = arena_array(arena, const char *, count);
    for (int i = 0; i < count; i++)
        patterns[i] = strsep(&rest, ",");
    return (Bound){patterns, count};
}

const char *bound_join(Arena *arena, const Bound *bound)
{
    const char *words = "";

    for (int i = 0; i < bound->count; i++)
        words = arena_print(arena, "%s%s%s", words, i > 0 ? "," : "", bound->patterns[i]);
    return words;
}
