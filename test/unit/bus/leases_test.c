/*
 * leases_test.c - settles and extensions by domain and id, each item for itself.
 */
#include "bus/leases.h"

#include <stdatomic.h>

#include "test/unit/bus/fixture.h"
#include "test/unit/pg/await.h"

#define UNKNOWN_ID "00000000-0000-4000-8000-00000000dead"

static void call_done(void *context)
{
    atomic_fetch_add((atomic_int *)context, 1);
}

static ClaimedCommand *claimed(Bus *bus, const char *domain, int count)
{
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, domain, NULL, "w1");
    ClaimedCommand               *list    = NULL;

    bus_send(bus, domain, count);
    assert_int_equal(bus_claim(bus, claimer, count, 60000, &list), count);
    return list;
}

static SettleItem completed(const ClaimedCommand *command, const char *domain)
{
    return (SettleItem){.token      = command->token,
                        .outcome    = OUTCOME_COMPLETE,
                        .domain     = domain,
                        .command_id = command->command_id};
}

static SettleCall settle_call(const char *domain, SettleItem **items, int count, atomic_int *done)
{
    return (SettleCall){
        .domain = domain, .items = items, .count = count, .deadline = soon(), .on_done = call_done, .context = done};
}

TEST(leases_settle_calls_of_several_domains_with_a_verdict_for_each_item)
{
    scoped(bus_free) Bus       *bus    = bus_new(4);
    scoped(leases_free) Leases *leases = leases_new(bus->pool, NULL);
    const ClaimedCommand       *mail = claimed(bus, "mail", 2), *shop = claimed(bus, "shop", 1);
    ClaimedCommand              unknown = {.command_id = UNKNOWN_ID, .token = 7};
    atomic_int                  done    = 0;
    /* The last one is of another domain than its call. */
    SettleItem  items[] = {completed(&mail[0], "mail"), completed(&unknown, "mail"), completed(&mail[1], "mail"),
                           completed(shop, "shop"), completed(shop, "mail")};
    SettleItem *first[] = {&items[0], &items[1], &items[4]}, *second[] = {&items[3], &items[2]};
    SettleItem *open[2][3];
    SettleCall  calls[2] = {settle_call("mail", first, 3, &done), settle_call("shop", second, 1, &done)};

    leases_settle(leases, &calls[0], open[0]);
    leases_settle(leases, &calls[1], open[1]);
    await(atomic_load(&done) == 2);
    assert_int_equal(calls[0].code, OK);
    assert_int_equal(calls[1].code, OK);
    assert_true(items[0].settled && items[3].settled);
    assert_string_equal(items[0].status, "COMPLETED");
    assert_true(!items[1].settled && !items[4].settled);
    assert_string_equal(items[1].status, "UNKNOWN");
    assert_int_equal(bus_count(bus, "lease"), 1); /* of the one that no call named */
}

TEST(leases_settle_leaves_what_is_locked_for_a_second_and_the_rest_at_once)
{
    scoped(bus_free) Bus       *bus      = bus_new(4);
    scoped(leases_free) Leases *leases   = leases_new(bus->pool, NULL);
    const ClaimedCommand       *list     = claimed(bus, "mail", 2);
    PGconn                     *holder   = database_connect(bus->db);
    atomic_int                  done     = 0;
    SettleItem                  items[2] = {completed(&list[0], "mail"), completed(&list[1], "mail")};
    SettleItem                 *refs[2]  = {&items[0], &items[1]}, *open[2];
    SettleCall                  call     = settle_call("mail", refs, 2, &done);

    PQclear(PQexec(holder, arena_print(bus->arena, "begin; select from pawl.lease where id = %lld for update",
                                       (long long)list[1].id)));
    leases_settle(leases, &call, open);
    await(atomic_load(&done) == 1);
    assert_true(items[0].code == OK && items[0].settled);
    assert_true(items[1].code == ERR_BUSY && items[1].busy && !items[1].settled);
    PQclear(PQexec(holder, "rollback"));
    items[1] = completed(&list[1], "mail");
    call     = settle_call("mail", refs + 1, 1, &done);
    leases_settle(leases, &call, open);
    await(atomic_load(&done) == 2);
    assert_true(items[1].code == OK && items[1].settled);
    PQfinish(holder);
}

TEST(leases_extend_by_the_length_of_each_call)
{
    enum { CALLS = 3 };
    scoped(bus_free) Bus       *bus            = bus_new(4);
    scoped(leases_free) Leases *leases         = leases_new(bus->pool, NULL);
    const ClaimedCommand       *list           = claimed(bus, "mail", CALLS);
    const int                   lengths[CALLS] = {3600000, 7200000, 3600000};
    const char                 *ids[CALLS][2];
    int64_t                     tokens[CALLS][2];
    int                         verdicts[CALLS][2];
    LeaseCall                   calls[CALLS];
    atomic_int                  done = 0;

    for (int i = 0; i < CALLS; i++) {
        ids[i][0]    = list[i].command_id;
        ids[i][1]    = i ? UNKNOWN_ID : list[i].command_id;
        tokens[i][0] = list[i].token;
        tokens[i][1] = list[i].token + 1;
        calls[i]     = (LeaseCall){.domain   = "mail",
                                   .ids      = ids[i],
                                   .tokens   = tokens[i],
                                   .count    = 2,
                                   .lease_ms = lengths[i],
                                   .verdicts = verdicts[i],
                                   .deadline = soon(),
                                   .on_done  = call_done,
                                   .context  = &done};
        leases_extend(leases, &calls[i]);
    }
    await(atomic_load(&done) == CALLS);
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(calls[i].code, OK);
        assert_int_equal(verdicts[i][0], LEASE_EXTENDED);
        assert_int_equal(verdicts[i][1], LEASE_LOST);
        assert_int_equal(database_get_i64(bus->db,
                                          arena_print(bus->arena, "select lease_ms from pawl.lease where id = %lld",
                                                      (long long)list[i].id)),
                         lengths[i]);
    }
}
