/*
 * definition_cache.c - see definition_cache.h.
 */
#include "process/definition_cache.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/sync.h"

typedef struct CachedDefinition CachedDefinition;
struct CachedDefinition {
    CachedDefinition *next;
    Arena            *arena;
    int               id, holders;
    const Definition *definition;
};

struct DefinitionCache {
    int               max;
    Mutex             mutex; /* guards the rest */
    CachedDefinition *first; /* the most recently used */
    int               count;
};

DefinitionCache *definition_cache_new(int max)
{
    DefinitionCache *cache = memory_new(1, sizeof *cache);

    cache->max = max;
    mutex_init(&cache->mutex);
    return cache;
}

static void cached_free(CachedDefinition *cached)
{
    arena_free(cached->arena);
    free(cached);
}

void definition_cache_free(DefinitionCache *cache)
{
    for (CachedDefinition *at = cache->first, *next; at; at = next) {
        next = at->next;
        cached_free(at);
    }
    mutex_done(&cache->mutex);
    free(cache);
}

/* Under the mutex: it becomes the first. NULL: it is not there. */
static CachedDefinition *cached_take(DefinitionCache *cache, int id)
{
    for (CachedDefinition **at = &cache->first; *at; at = &(*at)->next) {
        CachedDefinition *cached = *at;

        if (cached->id != id)
            continue;
        *at          = cached->next;
        cached->next = cache->first;
        cache->first = cached;
        return cached;
    }
    return NULL;
}

/* Under the mutex: forget the least recently used that is not held. */
static void cache_trim(DefinitionCache *cache)
{
    while (cache->count > cache->max) {
        CachedDefinition **last = NULL, *cached;

        for (CachedDefinition **at = &cache->first; *at; at = &(*at)->next)
            if ((*at)->holders == 0)
                last = at;
        if (!last)
            return;
        cached = *last;
        *last  = cached->next;
        cache->count--;
        cached_free(cached);
    }
}

const Definition *definition_cache_find(DefinitionCache *cache, int id)
{
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&cache->mutex);
    CachedDefinition           *cached = cached_take(cache, id);

    if (!cached)
        return NULL;
    cached->holders++;
    return cached->definition;
}

const Definition *definition_cache_add(DefinitionCache *cache, int id, Arena *arena, const Definition *definition)
{
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&cache->mutex);
    CachedDefinition           *cached = cached_take(cache, id);

    if (cached) {
        arena_free(arena);
    } else {
        cached       = memory_new(1, sizeof *cached);
        *cached      = (CachedDefinition){cache->first, arena, id, /* holders= */ 0, definition};
        cache->first = cached;
        cache->count++;
    }
    cached->holders++;
    cache_trim(cache);
    return cached->definition;
}

void definition_cache_release(DefinitionCache *cache, int id)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&cache->mutex);

    for (CachedDefinition *at = cache->first; at; at = at->next)
        if (at->id == id)
            at->holders--;
    cache_trim(cache);
}

int definition_cache_count(DefinitionCache *cache)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&cache->mutex);

    return cache->count;
}
