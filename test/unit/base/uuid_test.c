/*
 * uuid_test.c - ids are version 7, unique and sorted, even when the clock stands still or steps back.
 */
#include "test/harness/test.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sync.h"
#include "base/uuid.h"
#include "base/world.h"

TEST(uuid_has_the_form_of_version_7)
{
    char id[UUID_TEXT_SIZE], parsed[UUID_TEXT_SIZE];

    for (int i = 0; i < 1000; i++) {
        uuid_new(id);
        assert_int_equal(strlen(id), UUID_TEXT_SIZE - 1);
        assert_true(uuid_parse(id, parsed));
        assert_string_equal(id, parsed); /* lower case already */
        assert_int_equal(id[14], '7');
        assert_non_null(strchr("89ab", id[19]));
    }
}

static Wall fake_now;

static Wall fake_wall(void)
{
    return fake_now;
}

TEST(uuid_sorts_while_the_clock_stands_or_steps_back)
{
    World fake = world_real;
    char  last[UUID_TEXT_SIZE], next[UUID_TEXT_SIZE];
    bool  sorted = true;

    fake.wall = fake_wall;
    fake_now  = clock_wall();
    world     = &fake;
    uuid_new(last);
    for (int i = 0; i < 20000; i++) { /* more than fit below one millisecond */
        if (i == 10000)
            fake_now.us -= 3600LL * 1000000;
        uuid_new(next);
        sorted = sorted && strcmp(last, next) < 0;
        memcpy(last, next, sizeof last);
    }
    world = &world_real;
    assert_true(sorted);
}

TEST(uuid_begins_with_the_milliseconds)
{
    World    fake = world_real;
    char     id[UUID_TEXT_SIZE];
    unsigned high, low;

    fake.wall = fake_wall;
    fake_now  = (Wall){clock_wall().us + 60LL * 1000000}; /* ahead of every id made so far */
    world     = &fake;
    uuid_new(id);
    world = &world_real;
    assert_int_equal(sscanf(id, "%8x-%4x-", &high, &low), 2);
    assert_int_equal((int64_t)high << 16 | low, fake_now.us / 1000);
}

#define THREADS 4
#define IDS     2000

typedef char Id[UUID_TEXT_SIZE];

static void *make_many(void *context)
{
    Id *ids = context;

    for (int i = 0; i < IDS; i++)
        uuid_new(ids[i]);
    return NULL;
}

static int id_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

TEST(uuid_threads_never_make_the_same)
{
    static Id ids[THREADS * IDS];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        threads[i] = thread_start("maker", make_many, &ids[(size_t)i * IDS]);
    for (int i = 0; i < THREADS; i++)
        thread_join(threads[i]);
    for (int i = 1; i < THREADS * IDS; i++)
        if (i % IDS != 0) /* within one thread's share */
            assert_true(strcmp(ids[i - 1], ids[i]) < 0);
    qsort(ids, COUNT(ids), sizeof(Id), id_compare);
    for (int i = 1; i < THREADS * IDS; i++) /* the first 60 bits alone tell them apart */
        assert_true(strncmp(ids[i - 1], ids[i], 18) < 0);
}

/* The random part: where the clocks of two processes agree, nothing else tells their ids apart. */
TEST(uuid_of_a_forked_process_has_its_own_random_bits)
{
    char  ours[UUID_TEXT_SIZE], theirs[UUID_TEXT_SIZE] = "";
    int   ends[2], status;
    pid_t child;

    uuid_new(ours); /* now there are random numbers that the child gets a copy of */
    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        uuid_new(theirs);
        _exit(write(ends[1], theirs, sizeof theirs) == sizeof theirs ? 0 : 1);
    }
    uuid_new(ours);
    assert_int_equal(read(ends[0], theirs, sizeof theirs), sizeof theirs);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
    close(ends[1]);
    assert_string_not_equal(ours + 19, theirs + 19);
}

TEST(uuid_parse_lowers_and_refuses)
{
    static const char *const bad[] = {
        "",
        "x",
        "01890a5d-ac96-774b-bcce-b302099a805",
        "01890a5d-ac96-774b-bcce-b302099a80577",
        "01890a5d-ac96-774b-bcce-b302099a805g",
        "01890a5dac96774bbcceb302099a8057",
        "{01890a5d-ac96-774b-bcce-b302099a8057}",
        "01890a5d-ac96-774b-bcce_b302099a8057",
        " 01890a5d-ac96-774b-bcce-b302099a8057",
        "01890a5d-ac96-774b-bcce-b302099a8057 ",
    };
    char text[UUID_TEXT_SIZE] = "untouched";

    unsigned char bytes[UUID_BYTES];

    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(uuid_parse(bad[i], text));
        assert_string_equal(text, "untouched");
        assert_false(uuid_bytes(bad[i], bytes));
    }
    assert_true(uuid_bytes("01890A5d-ac96-474b-bcce-b302099a8057", bytes));
    assert_memory_equal(bytes, "\x01\x89\x0a\x5d\xac\x96\x47\x4b\xbc\xce\xb3\x02\x09\x9a\x80\x57", UUID_BYTES);
    assert_true(uuid_parse("01890A5D-AC96-474B-BCCE-B302099A8057", text));
    assert_string_equal(text, "01890a5d-ac96-474b-bcce-b302099a8057");
    assert_true(uuid_parse("00000000-0000-0000-0000-000000000000", text));
}

TEST(uuid_of_a_hash_keeps_all_bits_but_version_and_variant)
{
    static const unsigned char zeros[UUID_BYTES], ones[UUID_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    char                       id[UUID_TEXT_SIZE], parsed[UUID_TEXT_SIZE];

    uuid_from_hash(zeros, id);
    assert_string_equal(id, "00000000-0000-8000-8000-000000000000");
    uuid_from_hash(ones, id);
    assert_string_equal(id, "ffffffff-ffff-8fff-bfff-ffffffffffff");
    assert_true(uuid_parse(id, parsed));
}
