/*
 * definition_cache.h - definitions by number, compiled. One never changes, so it is kept until others are used more recently.
 *
 * Invariants
 *   1. A definition that is held is not freed. Of those that are not, the most recently used stay, so that there are at most `max` in all.
 * Threads: any. Ownership: definition_cache_free() when none is held.
 */
#ifndef PROCESS_DEFINITION_CACHE_H
#define PROCESS_DEFINITION_CACHE_H

#include "process/definition.h"

typedef struct DefinitionCache DefinitionCache;

DefinitionCache *definition_cache_new(int max);
void             definition_cache_free(DefinitionCache *cache);
SCOPED(DefinitionCache, definition_cache_free)

/* NULL: it is not there. Otherwise it is held until definition_cache_release(). */
const Definition *definition_cache_find(DefinitionCache *cache, int id);
/* Takes the arena over. The one to use, held: another thread may have added the same. */
const Definition *definition_cache_add(DefinitionCache *cache, int id, Arena *arena, const Definition *definition);
void              definition_cache_release(DefinitionCache *cache, int id);
int               definition_cache_count(DefinitionCache *cache);

#endif
