/*
 * retry_test.c - delays, jitter and deadlines, on a clock turned by hand.
 */
#include "pg/retry.h"

#include "test/harness/fake_clock.h"
#include "test/harness/test.h"

TEST(retry_delays_double_up_to_their_cap)
{
    static const int connect[]   = {100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
    static const int operation[] = {100, 200, 400, 800};

    for (size_t i = 0; i < COUNT(connect); i++)
        assert_int_equal(retry_delay_ms(&retry_connect, (int)i + 1), connect[i]);
    for (size_t i = 0; i < COUNT(operation); i++)
        assert_int_equal(retry_delay_ms(&retry_operation, (int)i + 1), operation[i]);
}

/* D2: connect at most 5 retries after the first try, an operation at most 3. */
TEST(retry_ends_with_its_retries)
{
    fake_clock_install((Wall){0});
    for (int tries = 1; tries <= 5; tries++)
        assert_true(retry_wait(&retry_connect, tries, deadline_never()));
    assert_false(retry_wait(&retry_connect, 6, deadline_never()));
    for (int tries = 1; tries <= 3; tries++)
        assert_true(retry_wait(&retry_operation, tries, deadline_never()));
    assert_false(retry_wait(&retry_operation, 4, deadline_never()));
    assert_false(retry_wait(&(BackoffPolicy){0, 100, 100}, 1, deadline_never()));
    fake_clock_restore();
}

TEST(retry_jitter_shortens_by_a_quarter_at_most)
{
    bool varied = false;

    fake_clock_install((Wall){0});
    for (int i = 0; i < 500; i++) {
        Mono    start = clock_mono();
        int64_t waited;

        assert_true(retry_wait(&retry_operation, 3, deadline_never()));
        waited = mono_ms_between(start, clock_mono());
        assert_in_range(waited, 300, 400);
        varied |= waited != 400;
    }
    assert_true(varied);
    fake_clock_restore();
}

TEST(retry_does_not_begin_a_wait_that_outlasts_the_deadline)
{
    fake_clock_install((Wall){0});
    Mono start = clock_mono();
    assert_false(retry_wait(&retry_operation, 1, deadline_in_ms(75)));
    assert_false(retry_wait(&retry_operation, 1, deadline_in_ms(0)));
    assert_int_equal(mono_ms_between(start, clock_mono()), 0);
    assert_true(retry_wait(&retry_operation, 1, deadline_in_ms(101)));
    fake_clock_restore();
}
