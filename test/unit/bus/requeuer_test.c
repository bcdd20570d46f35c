/*
 * requeuer_test.c - several members, one call.
 */
#include "bus/requeuer.h"

#include <limits.h>

#include "base/fault.h"
#include "bus/metric.h"
#include "test/unit/bus/fixture.h"
#include "test/unit/pg/await.h"

#define LONG_MS 60000

static void count(void *context)
{
    ++*(int *)context;
}

static int64_t calls(void)
{
    return metric_value(&bus_metrics.requeue_calls);
}

TEST(requeuer_makes_one_call_for_all_members_of_a_pool)
{
    scoped(bus_free) Bus *bus = bus_new(4), *other = bus_new(2);
    RequeuerMember        members[4], stranger;
    Requeuer             *requeuer = NULL;
    int                   woken = 0, elsewhere = 0;
    int64_t               before = calls();
    Error                 error  = {0};

    for (int i = 0; i < 4; i++) {
        members[i]      = (RequeuerMember){.wake = count, .context = &woken};
        Requeuer *again = requeuer_join(bus->pool, &members[i]);
        assert_true(!requeuer || requeuer == again);
        requeuer = again;
    }
    stranger            = (RequeuerMember){.wake = count, .context = &elsewhere};
    Requeuer *separated = requeuer_join(other->pool, &stranger);
    assert_true(separated != requeuer);

    for (int i = 0; i < 4; i++)
        assert_ok(requeuer_step(requeuer, LONG_MS, soon(), &error));
    assert_int_equal(calls() - before, 1);
    assert_true(mono_before(clock_mono(), requeuer_at(requeuer, LONG_MS)));
    assert_int_equal(woken, 0);

    /* A delayed command that a notification is about: one more call finds its time, and one at that time moves it. */
    SendItem  later = bus_item("mail", "t", NULL);
    SendItem *list  = &later;

    later.delay_ms = 50;
    assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    requeuer_notified(requeuer);
    while (woken == 0)
        assert_ok(requeuer_step(requeuer, LONG_MS, soon(), &error));
    assert_int_equal(woken, 4);
    assert_int_equal(bus_count(bus, "ready"), 1);
    assert_int_equal(elsewhere, 0);

    for (int i = 0; i < 4; i++)
        requeuer_leave(requeuer, &members[i]);
    requeuer_leave(separated, &stranger);
}

/* A member that wants it more often than the others gets it. */
TEST(requeuer_serves_the_member_that_asks_for_the_least)
{
    scoped(bus_free) Bus *bus      = bus_new(4);
    int                   woken    = 0;
    RequeuerMember        member   = {.wake = count, .context = &woken};
    Requeuer             *requeuer = requeuer_join(bus->pool, &member);
    int64_t               before   = calls();
    Error                 error    = {0};

    assert_ok(requeuer_step(requeuer, LONG_MS, soon(), &error));
    await(!mono_before(clock_mono(), requeuer_at(requeuer, 5)));
    assert_ok(requeuer_step(requeuer, LONG_MS, soon(), &error));
    assert_int_equal(calls() - before, 1);
    assert_ok(requeuer_step(requeuer, 5, soon(), &error));
    assert_int_equal(calls() - before, 2);
    requeuer_leave(requeuer, &member);
}

#ifdef PAWL_FAULTS
/* A call that failed is made again by the next member. */
TEST(requeuer_tries_again_after_a_failure)
{
    scoped(bus_free) Bus *bus      = bus_new(4);
    int                   woken    = 0;
    RequeuerMember        member   = {.wake = count, .context = &woken};
    Requeuer             *requeuer = requeuer_join(bus->pool, &member);
    int64_t               before   = calls();
    Error                 error    = {0};

    fault_arm("pg.query", LONG_MAX);
    assert_true(requeuer_step(requeuer, LONG_MS, deadline_in_ms(300), &error) != OK);
    fault_arm_nth(0);
    assert_ok(requeuer_step(requeuer, LONG_MS, soon(), &error));
    assert_int_equal(calls() - before, 2);
    requeuer_leave(requeuer, &member);
}
#endif
