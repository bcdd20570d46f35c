/*
 * postpone_test.c - a process that stays locked is tried less and less often, and many of them one after the other.
 */
#include "test/harness/test.h"

#include "process/postpone.h"

static Postpone postpone;

static Mono now_at(int64_t ms)
{
    return (Mono){.ns = 1000000000000 + ms * 1000000};
}

TEST(postpone_doubles_the_delay_of_tries_in_a_row)
{
    static const int64_t delays[] = {1000, 2000, 4000, 8000, 10000, 10000};
    int64_t              now      = 0;

    postpone_init(&postpone);
    for (size_t i = 0; i < COUNT(delays); i++) {
        assert_int_equal(postpone_ms(&postpone, 7, now_at(now)), delays[i]);
        now += delays[i] + 155;
    }
    now += 60000; /* it went on meanwhile */
    assert_int_equal(postpone_ms(&postpone, 7, now_at(now)), 1000);
    postpone_done(&postpone);
}

TEST(postpone_keeps_the_tries_of_many_processes_apart)
{
    postpone_init(&postpone);
    for (int64_t id = 0; id < 100; id++)
        assert_int_equal(postpone_ms(&postpone, id, now_at(0)), 1000 + 40 * id);
    for (int64_t id = 100; id < 5000; id++)
        assert_true(postpone_ms(&postpone, id, now_at(0)) <= 30000);
    postpone_done(&postpone);
}
