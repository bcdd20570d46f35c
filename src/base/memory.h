/*
 * memory.h - long-lived memory from the heap, for objects that have one owner.
 *
 * What lives as long as a request comes from an arena (base/arena.h). Threads: any.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

/* Zeroed; the caller frees it with free(). Aborts if there is none: no caller could go on without. */
void *memory_new(size_t count, size_t size);
/* A copy; the caller frees it with free(). */
char *memory_text(const char *text);

#endif
