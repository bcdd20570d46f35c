/*
 * breaker_test.c - every arrow of breaker.h.
 */
#include "pg/breaker.h"

#include "test/harness/test.h"

static Mono at_ms(int64_t ms)
{
    return (Mono){ms * NS_PER_MS};
}

static Breaker breaker_new(void)
{
    Breaker breaker;

    breaker_init(&breaker, 5, 1000, 30000, 5000);
    return breaker;
}

static Breaker breaker_opened_at(int64_t ms)
{
    Breaker breaker = breaker_new();

    for (int i = 0; i < 4; i++)
        assert_false(breaker_failed(&breaker, at_ms(ms)));
    assert_true(breaker_failed(&breaker, at_ms(ms)));
    return breaker;
}

TEST(breaker_starts_closed)
{
    Breaker breaker = breaker_new();

    assert_true(breaker_is_closed(&breaker));
}

TEST(breaker_opens_at_the_fifth_failure_in_a_row)
{
    Breaker breaker = breaker_opened_at(1000);

    assert_int_equal(breaker.state, BREAKER_OPEN);
    assert_false(breaker_is_closed(&breaker));
    assert_int_equal(breaker_next_probe(&breaker).ns, at_ms(2000).ns);
}

TEST(breaker_is_near_before_the_failure_that_opens_it)
{
    Breaker breaker = breaker_new();

    for (int i = 0; i < 4; i++) {
        assert_false(breaker_is_near(&breaker));
        assert_false(breaker_failed(&breaker, at_ms(0)));
    }
    assert_true(breaker_is_near(&breaker));
    assert_true(breaker_failed(&breaker, at_ms(0)));
    assert_false(breaker_is_near(&breaker));
}

/* A restart of a second must not cost thirty; a long outage is asked rarely. */
TEST(breaker_probes_after_a_second_and_doubles_up_to_thirty)
{
    static const int waits[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};
    Breaker          breaker = breaker_opened_at(0);
    int64_t          now     = 0;
    unsigned         probe   = 0;

    for (size_t i = 0; i < COUNT(waits); i++) {
        assert_false(breaker_probe(&breaker, at_ms(now + waits[i] - 1), &probe));
        assert_true(breaker_probe(&breaker, at_ms(now + waits[i]), &probe));
        now += waits[i] + 10;
        breaker_probe_ended(&breaker, probe, /* worked= */ false, at_ms(now));
    }
    assert_true(breaker_probe(&breaker, at_ms(now + 30000), &probe));
    breaker_probe_ended(&breaker, probe, /* worked= */ true, at_ms(now + 30000));
    for (int i = 0; i < 5; i++)
        (void)breaker_failed(&breaker, at_ms(now + 40000));
    assert_int_equal(breaker_next_probe(&breaker).ns, at_ms(now + 41000).ns); /* another outage begins anew */
}

TEST(breaker_with_a_short_longest_wait_probes_no_later)
{
    Breaker breaker;

    breaker_init(&breaker, 1, 1000, 200, 5000);
    assert_true(breaker_failed(&breaker, at_ms(0)));
    assert_int_equal(breaker_next_probe(&breaker).ns, at_ms(200).ns);
}

TEST(breaker_success_sets_the_count_back)
{
    Breaker breaker = breaker_new();

    for (int i = 0; i < 40; i++) {
        assert_false(breaker_failed(&breaker, at_ms(i)));
        if (i % 4 == 3)
            breaker_succeeded(&breaker);
    }
    assert_true(breaker_is_closed(&breaker));
}

TEST(breaker_failure_while_open_does_not_prolong_it)
{
    Breaker breaker = breaker_opened_at(1000);

    assert_false(breaker_failed(&breaker, at_ms(1500)));
    assert_int_equal(breaker_next_probe(&breaker).ns, at_ms(2000).ns);
}

TEST(breaker_has_one_probe_when_its_time_has_come)
{
    Breaker  breaker = breaker_opened_at(1000);
    unsigned probe   = 0;

    assert_false(breaker_probe(&breaker, at_ms(1999), &probe));
    assert_true(breaker_probe(&breaker, at_ms(2000), &probe));
    assert_int_equal(breaker.state, BREAKER_HALF_OPEN);
    assert_false(breaker_is_closed(&breaker));
    for (int i = 0; i < 50; i++)
        assert_false(breaker_probe(&breaker, at_ms(2001 + i), &probe));
}

TEST(breaker_closes_when_the_probe_worked)
{
    Breaker  breaker = breaker_opened_at(0);
    unsigned probe   = 0;

    assert_true(breaker_probe(&breaker, at_ms(1000), &probe));
    breaker_probe_ended(&breaker, probe, /* worked= */ true, at_ms(1010));
    assert_true(breaker_is_closed(&breaker));
    assert_false(breaker_failed(&breaker, at_ms(1011))); /* counting begins anew */
}

TEST(breaker_reopens_when_the_probe_failed)
{
    Breaker  breaker = breaker_opened_at(0);
    unsigned probe   = 0;

    assert_true(breaker_probe(&breaker, at_ms(1000), &probe));
    breaker_probe_ended(&breaker, probe, /* worked= */ false, at_ms(2000));
    assert_int_equal(breaker.state, BREAKER_OPEN);
    assert_int_equal(breaker_next_probe(&breaker).ns, at_ms(4000).ns);
}

TEST(breaker_counts_a_probe_that_never_reports_as_failed)
{
    Breaker  breaker = breaker_opened_at(0);
    unsigned lost = 0, next = 0;

    assert_true(breaker_probe(&breaker, at_ms(1000), &lost));
    assert_false(breaker_probe(&breaker, at_ms(6000), &next)); /* reopens */
    assert_int_equal(breaker.state, BREAKER_OPEN);
    assert_true(breaker_probe(&breaker, at_ms(8000), &next));
    assert_int_not_equal(lost, next);
    breaker_probe_ended(&breaker, lost, /* worked= */ true, at_ms(8001)); /* too late: nobody believes it */
    assert_int_equal(breaker.state, BREAKER_HALF_OPEN);
    breaker_probe_ended(&breaker, next, /* worked= */ true, at_ms(8002));
    assert_true(breaker_is_closed(&breaker));
}

TEST(breaker_believes_only_the_probe_while_not_closed)
{
    Breaker  breaker = breaker_opened_at(0);
    unsigned probe   = 0;

    breaker_succeeded(&breaker); /* a checkout from before the outage */
    assert_int_equal(breaker.state, BREAKER_OPEN);
    assert_true(breaker_probe(&breaker, at_ms(1000), &probe));
    breaker_succeeded(&breaker);
    assert_false(breaker_failed(&breaker, at_ms(1001)));
    assert_int_equal(breaker.state, BREAKER_HALF_OPEN);
}
