/*
 * definition_cache_test.c - which definitions are kept.
 */
#include "process/definition_cache.h"
#include "test/harness/test.h"

static const Definition *add(DefinitionCache *cache, int id)
{
    Arena      *arena      = arena_new(ARENA_BYTES_DEFAULT);
    Definition *definition = arena_array(arena, Definition, 1);

    return definition_cache_add(cache, id, arena, definition);
}

static bool has(DefinitionCache *cache, int id)
{
    bool found = definition_cache_find(cache, id);

    if (found)
        definition_cache_release(cache, id);
    return found;
}

TEST(definition_cache_forgets_the_least_recently_used)
{
    scoped(definition_cache_free) DefinitionCache *cache = definition_cache_new(3);

    for (int id = 1; id <= 3; id++) {
        add(cache, id);
        definition_cache_release(cache, id);
    }
    assert_true(has(cache, 1));
    add(cache, 4);
    definition_cache_release(cache, 4);
    assert_int_equal(definition_cache_count(cache), 3);
    assert_true(has(cache, 1) && !has(cache, 2) && has(cache, 3) && has(cache, 4));
}

TEST(definition_cache_keeps_what_is_held)
{
    scoped(definition_cache_free) DefinitionCache *cache = definition_cache_new(1);
    const Definition                              *first = add(cache, 1);

    add(cache, 2);
    assert_ptr_equal(definition_cache_find(cache, 1), first);
    assert_ptr_equal(add(cache, 1), first); /* loaded by two threads at the same time */
    assert_int_equal(definition_cache_count(cache), 2);
    for (int i = 0; i < 3; i++)
        definition_cache_release(cache, 1);
    assert_true(!has(cache, 1) && has(cache, 2));
    definition_cache_release(cache, 2);
    assert_int_equal(definition_cache_count(cache), 1);
}
