/*
 * arena.h - memory that lives as long as one request or one task and is freed as a whole.
 *
 * Invariants
 *   1. An arena never holds more than bytes_max; asking for more is ERR_LIMIT at the border (arena_has_space) and
 *      abort() inside: what comes from outside is measured before it is copied.
 *   2. Memory is zeroed and aligned for any type.
 * Threads: one at a time. Ownership: arena_free() frees everything that was ever handed out.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

typedef struct Arena Arena;

#define ARENA_BYTES_DEFAULT ((size_t)64 << 20)

Arena *arena_new(size_t bytes_max);
void   arena_free(Arena *arena);
/* Forget everything but keep the first block, for loops that reuse one arena. */
void  arena_reset(Arena *arena);
void *arena_alloc(Arena *arena, size_t bytes);
char *arena_text(Arena *arena, const char *text);                /* NULL stays NULL */
char *arena_bytes(Arena *arena, const void *bytes, size_t size); /* a NUL is put behind */
char *arena_print(Arena *arena, const char *format, ...) printf_like(2, 3);
char *arena_vprint(Arena *arena, const char *format, va_list values) printf_like(2, 0);
/* What is handed out after the mark is given back by the rewind, for work that is tried again from its beginning. */
typedef struct {
    void  *block;
    size_t block_used, used;
} ArenaMark;
ArenaMark arena_mark(const Arena *arena);
void      arena_rewind(Arena *arena, ArenaMark mark);
bool      arena_has_space(const Arena *arena, size_t bytes);
size_t    arena_used(const Arena *arena);

#define arena_array(arena, Type, count) ((Type *)arena_alloc((arena), sizeof(Type) * (size_t)(count)))

SCOPED(Arena, arena_free)

#endif
