/*
 * memory.c - see memory.h.
 */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void *memory_new(size_t count, size_t size)
{
    void *bytes = calloc(count, size);

    if (!bytes)
        abort();
    return bytes;
}

char *memory_text(const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        abort();
    return copy;
}
