/*
 * arena.c - a list of blocks, newest first; only the newest has free space that is still used. Free space is zero.
 *
 * Under AddressSanitizer what was not handed out is poisoned, so that an overrun inside an arena is found like one
 * on the heap.
 */
#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __has_feature
#define HAS_FEATURE(feature) __has_feature(feature)
#else
#define HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define POISON(start, size)   __asan_poison_memory_region((start), (size))
#define UNPOISON(start, size) __asan_unpoison_memory_region((start), (size))
#else
#define POISON(start, size)   ((void)0)
#define UNPOISON(start, size) ((void)0)
#endif

#define ALIGNMENT       _Alignof(max_align_t)
#define BLOCK_BYTES_MIN ((size_t)8 << 10) /* holds most requests whole */
#define BLOCK_BYTES_MAX ((size_t)1 << 20) /* blocks double up to here; a larger wish gets a block of its own size */

typedef struct Block Block;
struct Block {
    Block *older;
    size_t size;
    size_t used;
    _Alignas(max_align_t) unsigned char bytes[];
};

struct Arena {
    Block *newest;
    size_t bytes_max;
    size_t used; /* handed out, with padding; over all blocks */
};

static size_t padded(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

static void block_push(Arena *arena, size_t size)
{
    Block *block = calloc(1, sizeof *block + size); /* large ones come zeroed from the kernel for nothing */

    if (!block)
        abort();
    block->older  = arena->newest;
    block->size   = size;
    arena->newest = block;
    POISON(block->bytes, size);
}

static void block_pop(Arena *arena)
{
    Block *block = arena->newest;

    arena->newest = block->older;
    UNPOISON(block->bytes, block->size);
    free(block);
}

static size_t block_size_next(const Arena *arena, size_t wanted)
{
    size_t size = arena->newest->size * 2;

    if (size > BLOCK_BYTES_MAX)
        size = BLOCK_BYTES_MAX;
    return size < wanted ? wanted : size;
}

Arena *arena_new(size_t bytes_max)
{
    Arena *arena = malloc(sizeof *arena);

    if (!arena)
        abort();
    *arena = (Arena){.bytes_max = bytes_max};
    block_push(arena, BLOCK_BYTES_MIN);
    return arena;
}

void arena_free(Arena *arena)
{
    if (!arena)
        return;
    while (arena->newest)
        block_pop(arena);
    free(arena);
}

ArenaMark arena_mark(const Arena *arena)
{
    return (ArenaMark){arena->newest, arena->newest->used, arena->used};
}

void arena_rewind(Arena *arena, ArenaMark mark)
{
    while (arena->newest != mark.block)
        block_pop(arena);
    Block *block = arena->newest;
    size_t size  = block->used - mark.block_used;
    UNPOISON(block->bytes + mark.block_used, size);
    memset(block->bytes + mark.block_used, 0, size);
    POISON(block->bytes + mark.block_used, size);
    block->used = mark.block_used;
    arena->used = mark.used;
}

void arena_reset(Arena *arena)
{
    Block *first = arena->newest;

    while (first->older)
        first = first->older;
    arena_rewind(arena, (ArenaMark){.block = first});
}

void *arena_alloc(Arena *arena, size_t bytes)
{
    /* Callers check arena_has_space() for sizes from outside; getting here is a defect. */
    if (!arena_has_space(arena, bytes)) {
        fprintf(stderr, "arena of %zu bytes is full: %zu bytes more were asked for\n", arena->bytes_max, bytes);
        abort();
    }
    size_t wanted = padded(bytes);
    if (wanted > arena->newest->size - arena->newest->used)
        block_push(arena, block_size_next(arena, wanted));

    Block *block  = arena->newest;
    void  *memory = block->bytes + block->used;
    block->used += wanted;
    arena->used += wanted;
    UNPOISON(memory, bytes);
    return memory;
}

char *arena_text(Arena *arena, const char *text)
{
    return text ? arena_bytes(arena, text, strlen(text)) : NULL;
}

char *arena_bytes(Arena *arena, const void *bytes, size_t size)
{
    assert(size < SIZE_MAX);
    char *copy = arena_alloc(arena, size + 1);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

char *arena_vprint(Arena *arena, const char *format, va_list values)
{
    va_list again;

    assert(format);
    va_copy(again, values);
    int length = vsnprintf(NULL, 0, format, values);
    assert(length >= 0);

    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *arena_print(Arena *arena, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    char *text = arena_vprint(arena, format, values);
    va_end(values);
    return text;
}

bool arena_has_space(const Arena *arena, size_t bytes)
{
    size_t left = arena->bytes_max - arena->used;

    return bytes <= left && padded(bytes) <= left;
}

size_t arena_used(const Arena *arena)
{
    return arena->used;
}
