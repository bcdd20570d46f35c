/*
 * release_test.c - a claim that did not reach its worker is undone: the attempt does not count, and no other lease changes.
 */
#include "bus/lease.h"

#include "test/unit/bus/fixture.h"

TEST(release_queues_again_without_counting_the_attempt)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    Error                         error   = {0};
    ClaimedCommand               *first = NULL, *second = NULL;

    bus_send(bus, "mail", 3);
    assert_int_equal(bus_claim(bus, claimer, 2, 30000, &first), 2);
    assert_ok(lease_release(bus->pool, soon(), bus->arena, first, 2, NULL, &error));
    assert_int_equal(bus_count(bus, "lease"), 0);
    assert_int_equal(bus_count(bus, "ready where attempt = 0"), 3);
    assert_ok(lease_release(bus->pool, soon(), bus->arena, first, 2, NULL, &error)); /* again: nothing changes */
    assert_int_equal(bus_count(bus, "ready"), 3);
    assert_int_equal(bus_claim(bus, claimer, 3, 30000, &second), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(second[i].attempt, 1);
    assert_ok(lease_release(bus->pool, soon(), bus->arena, first, 2, NULL, &error)); /* they have other tokens by now */
    assert_int_equal(bus_count(bus, "lease"), 3);
    assert_int_equal(bus_count(bus, "audit where event = 'RETRY_SCHEDULED' and attempt = 0"), 2);
}

TEST(release_ends_a_command_that_was_canceled_meanwhile)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    Error                         error   = {0};
    ClaimedCommand               *list    = NULL;
    LeaseVerdict                  verdicts[2];

    bus_send(bus, "mail", 2);
    assert_int_equal(bus_claim(bus, claimer, 2, 30000, &list), 2);
    database_exec(bus->db, "update pawl.lease set cancel = true where id = (select min(id) from pawl.lease)");
    assert_ok(lease_release(bus->pool, soon(), bus->arena, list, 2, verdicts, &error));
    assert_int_equal(verdicts[0], LEASE_CANCELED);
    assert_int_equal(verdicts[1], LEASE_RELEASED);
    assert_int_equal(bus_count(bus, "lease"), 0);
    assert_int_equal(bus_count(bus, "ready"), 1);
    assert_int_equal(bus_count(bus, "audit where event = 'CANCELED'"), 1);
}

TEST(release_says_what_became_of_each_lease)
{
    scoped(bus_free) Bus         *bus     = bus_new(4);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    Error                         error   = {0};
    ClaimedCommand               *list    = NULL;
    LeaseVerdict                  verdicts[3];

    bus_send(bus, "mail", 3);
    assert_int_equal(bus_claim(bus, claimer, 3, 30000, &list), 3);
    list[2].token++;
    database_exec(bus->db, "begin; select from pawl.lease where id = (select min(id) from pawl.lease) for update");
    assert_ok(lease_release(bus->pool, soon(), bus->arena, list, 3, verdicts, &error));
    database_exec(bus->db, "commit");
    assert_int_equal(verdicts[0], LEASE_BUSY);
    assert_int_equal(verdicts[1], LEASE_RELEASED);
    assert_int_equal(verdicts[2], LEASE_LOST);
    assert_int_equal(bus_count(bus, "lease"), 2);
    assert_ok(lease_release(bus->pool, soon(), bus->arena, list, 1, verdicts, &error));
    assert_int_equal(verdicts[0], LEASE_RELEASED);
}
