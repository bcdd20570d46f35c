/*
 * arena_test.c - zeroed, aligned, bounded, and gone all at once.
 */
#include "test/harness/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"

TEST(arena_memory_is_zeroed_and_aligned)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    for (size_t size = 1; size < 3000; size += 7) {
        unsigned char *memory = arena_alloc(arena, size);
        assert_int_equal((uintptr_t)memory % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xAA, size);
    }
}

TEST(arena_allocations_do_not_overlap)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    unsigned char            *memory[200];

    for (size_t i = 0; i < COUNT(memory); i++)
        memory[i] = memset(arena_alloc(arena, 100 + i * 50), (int)i, 100 + i * 50);
    for (size_t i = 0; i < COUNT(memory); i++) {
        assert_int_equal(memory[i][0], i);
        assert_int_equal(memory[i][99 + i * 50], i);
    }
}

TEST(arena_copies_texts_and_bytes)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    char                      source[] = "wallet";

    char *text  = arena_text(arena, source);
    char *bytes = arena_bytes(arena, "a\0b", 3);
    char *empty = arena_bytes(arena, NULL, 0);
    source[0]   = 'W';
    assert_string_equal(text, "wallet");
    assert_memory_equal(bytes, "a\0b", 4);
    assert_string_equal(empty, "");
    assert_null(arena_text(arena, NULL));
    assert_string_equal(arena_print(arena, "%s-%d", "slot", 7), "slot-7");
    int64_t *numbers = arena_array(arena, int64_t, 1000);
    assert_int_equal(numbers[999], 0);
}

TEST(arena_gives_a_large_block_of_its_own)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    char                     *large = arena_alloc(arena, (size_t)5 << 20);

    large[((size_t)5 << 20) - 1] = 'x';
    assert_true(arena_used(arena) >= (size_t)5 << 20);
}

TEST(arena_has_room_up_to_its_maximum)
{
    scoped(arena_free) Arena *arena = arena_new(1024);

    assert_true(arena_has_space(arena, 1024));
    assert_false(arena_has_space(arena, 1025));
    assert_false(arena_has_space(arena, SIZE_MAX));
    arena_alloc(arena, 1000);
    assert_false(arena_has_space(arena, 1000));
    assert_true(arena_has_space(arena, 16));
    arena_alloc(arena, 16);
    assert_false(arena_has_space(arena, 1));
    assert_int_equal(arena_used(arena), 1024);
}

TEST(arena_reset_forgets_and_zeroes_again)
{
    scoped(arena_free) Arena *arena = arena_new((size_t)1 << 20);

    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 50; i++) {
            unsigned char *memory = arena_alloc(arena, 1000);
            assert_int_equal(memory[0] | memory[500] | memory[999], 0);
            memset(memory, 0xFF, 1000);
        }
        arena_reset(arena);
        assert_int_equal(arena_used(arena), 0);
    }
}

TEST(arena_rewind_gives_back_what_came_after_the_mark)
{
    Arena    *arena = arena_new(1 << 20);
    char     *kept  = arena_text(arena, "kept");
    ArenaMark mark  = arena_mark(arena);
    size_t    used  = arena_used(arena);

    for (int try = 0; try < 100; try++) {
        char *small = arena_alloc(arena, 100);
        char *large = arena_alloc(arena, 100000); /* a block of its own: a hundred of them would not fit */

        for (int i = 0; i < 100; i++)
            assert_int_equal(small[i], 0);
        memset(small, 'x', 100);
        memset(large, 'x', 100000);
        arena_rewind(arena, mark);
        assert_int_equal(arena_used(arena), used);
    }
    assert_string_equal(kept, "kept");
    arena_free(arena);
}

TEST(arena_free_allows_null)
{
    arena_free(NULL);
}

TEST(arena_aborts_when_the_border_forgot_to_measure)
{
    int status = 0;

    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        Arena *arena = arena_new(100);
        arena_alloc(arena, 101);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}
