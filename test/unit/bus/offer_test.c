/*
 * offer_test.c - the handlers that workers offer to the senders of their process: how many, until when, and what becomes of what was leased for them.
 */
#include "bus/offer.h"

#include <stdlib.h>

#include "base/sync.h"
#include "bus/worker_internal.h"
#include "test/unit/bus/fixture.h"
#include "test/unit/pg/await.h"

static void complete_run(Handler *handler, Job *job, SettleItem *ret_settle)
{
    (void)handler;
    (void)job;
    ret_settle->outcome = OUTCOME_COMPLETE;
}

static Handler complete = {.run = complete_run};

/* A worker on a thread of its own. */
typedef struct {
    Bus        *bus;
    Worker     *worker;
    pthread_t   thread;
    atomic_bool ended;
} Offering;

static void *offering_body(void *context)
{
    Offering *offering = context;
    Error     error    = {0};

    if (worker_run(offering->worker, &error) != OK)
        print_message("# %s\n", error.text);
    atomic_store(&offering->ended, true);
    return NULL;
}

static void offering_start(Offering *offering, Bus *bus, WorkerOptions options)
{
    options.pool     = bus->pool;
    options.domain   = "mail";
    options.name     = "test";
    options.handler  = &complete;
    *offering        = (Offering){.bus = bus, .worker = worker_new(&options)};
    offering->thread = thread_start("worker", offering_body, offering);
}

static WorkerCounts offering_end(Offering *offering)
{
    WorkerCounts counts;

    worker_stop(offering->worker, deadline_in_ms(60000));
    thread_join(offering->thread);
    worker_counts(offering->worker, &counts);
    worker_free(offering->worker);
    return counts;
}

static bool offer(Offering *offering, const char *domain, const char *type, int wanted, Offer *ret_offer)
{
    return offer_take(offering->bus->pool, domain, type, wanted, offering->bus->arena, ret_offer);
}

/* What a send that has taken the offer commits: one lease. */
static ClaimedCommand started(const Offering *offering, const Offer *taken)
{
    TestDatabase *db = offering->bus->db;

    database_exec(
        db, "select pawl.send_items(false, 'mail', '{t}', '{1}', null, null, null, null, null, null, null, null, "
            "p_tokens => '{7}', p_worker => 'test', p_lease_ms => 30000, p_after => array_fill(0::bigint, array[10]))");
    assert_string_equal(taken->name, "test");
    return (ClaimedCommand){.id           = database_get_i64(db, "select id from pawl.lease where token = 7"),
                            .token        = 7,
                            .command_id   = "018f0000-0000-7000-8000-000000000001",
                            .type         = "t",
                            .payload      = "1",
                            .attempt      = 1,
                            .max_attempts = 3,
                            .priority     = 4};
}

TEST(offers_are_of_free_handlers_and_are_taken_once)
{
    scoped(bus_free) Bus *bus = bus_new(8);
    Offering              offering;
    Offer                 first, second;

    offering_start(&offering, bus,
                   (WorkerOptions){
                       .concurrency = 3, .types = (const char *const[]){"t", "u", NULL}
    });
    await(offer(&offering, "mail", "t", 2, &first));
    assert_int_equal(first.slots, 2);
    assert_true(offer_has_type(&first, "u") && !offer_has_type(&first, "v"));
    assert_false(offer(&offering, "mail", "v", 1, &second));
    assert_false(offer(&offering, "post", "t", 1, &second));
    await(offer(&offering, "mail", "u", 9, &second)); /* it may just be asking for work */
    assert_int_equal(second.slots, 1);
    for (int i = 0; i < 3; i++) {
        Offer third;

        assert_false(offer(&offering, "mail", "t", 1, &third));
    }
    offer_end(&first, NULL, 0);
    await(offer(&offering, "mail", "t", 9, &first));
    assert_int_equal(first.slots, 2);
    offer_end(&first, NULL, 0);
    offer_end(&second, NULL, 0);
    assert_int_equal(offering_end(&offering).claimed, 0);
}

TEST(offers_that_are_open_hold_their_handlers)
{
    scoped(bus_free) Bus *bus = bus_new(8);
    Offering              offering;
    Offer                 taken;

    offering_start(&offering, bus, (WorkerOptions){.concurrency = 1});
    await(offer(&offering, "mail", "t", 1, &taken));
    mutex_lock(&offering.worker->mutex);
    assert_int_equal(worker_begins(offering.worker), 0);
    mutex_unlock(&offering.worker->mutex);
    bus_send(bus, "mail", 1); /* it cannot start, and is queued */
    assert_int_equal(bus_count(bus, "ready"), 1);
    worker_wake(offering.worker);
    offer_end(&taken, NULL, 0);
    await(bus_count(bus, "outcome") == 1);
    assert_int_equal(offering_end(&offering).completed, 1);
}

TEST(offers_end_with_what_was_leased_and_it_begins)
{
    scoped(bus_free) Bus *bus = bus_new(8);
    Offering              offering;
    Offer                 taken;

    offering_start(&offering, bus, (WorkerOptions){.concurrency = 2});
    await(offer(&offering, "mail", "t", 2, &taken));
    ClaimedCommand command = started(&offering, &taken);

    offer_end(&taken, &command, 1);
    await(bus_count(bus, "outcome") == 1);
    WorkerCounts counts = offering_end(&offering);

    assert_int_equal(counts.claimed, 1);
    assert_int_equal(counts.completed, 1);
    assert_int_equal(bus_count(bus, "lease"), 0);
}

TEST(offers_that_are_open_are_awaited_by_a_stop_and_what_they_started_is_released)
{
    scoped(bus_free) Bus *bus = bus_new(8);
    Offering              offering;
    Offer                 taken, other;

    offering_start(&offering, bus, (WorkerOptions){.concurrency = 2});
    await(offer(&offering, "mail", "t", 1, &taken));
    worker_stop(offering.worker, deadline_in_ms(60000));
    assert_false(offer(&offering, "mail", "t", 1, &other));
    ClaimedCommand command = started(&offering, &taken);

    assert_false(atomic_load(&offering.ended));
    offer_end(&taken, &command, 1);
    WorkerCounts counts = offering_end(&offering);

    assert_int_equal(counts.released, 1);
    assert_int_equal(counts.completed, 0);
    assert_int_equal(bus_count(bus, "lease"), 0);
    assert_int_equal(database_get_i64(bus->db, "select count(*) from pawl.ready where attempt = 0"), 1);
}

/* The send takes longer than the worker may: its lease expires, and the worker lives until the send has ended. */
TEST(offers_that_outlast_their_worker_lose_their_leases)
{
    scoped(bus_free) Bus *bus = bus_new(8);
    Offering              offering;
    Offer                 taken;

    offering_start(&offering, bus, (WorkerOptions){.concurrency = 2});
    await(offer(&offering, "mail", "t", 1, &taken));
    worker_stop(offering.worker, deadline_in_ms(0));
    await(atomic_load(&offering.ended));
    ClaimedCommand command = started(&offering, &taken);

    offer_end(&taken, &command, 1);
    assert_int_equal(offering_end(&offering).lost, 1);
    assert_int_equal(bus_count(bus, "lease"), 1);
}

/* Of two types, one that is slow leaves handlers to the other. */
TEST(offers_leave_each_type_its_share)
{
    scoped(bus_free) Bus *bus = bus_new(8);
    Offering              offering;
    Offer                 first, second;

    offering_start(&offering, bus,
                   (WorkerOptions){
                       .concurrency = 4, .shares_types = true, .types = (const char *const[]){"t", "u", NULL}
    });
    await(offer(&offering, "mail", "t", 9, &first));
    assert_int_equal(first.slots, 3);
    assert_string_equal(first.only, "t");
    assert_false(offer(&offering, "mail", "t", 9, &second));
    offer_end(&first, NULL, 0);
    (void)offering_end(&offering);
}

TEST(sends_start_by_priority_what_fits)
{
    scoped(bus_free) Bus *bus = bus_new(8);
    Offering              offering;
    SendItem              items[4], *list[4];
    Error                 error = {0};
    int                   begun = 0;

    offering_start(&offering, bus, (WorkerOptions){.concurrency = 2});
    while (begun == 0) {
        for (int i = 0; i < 4; i++) {
            items[i]          = bus_item("mail", "t", "1");
            items[i].priority = i;
            list[i]           = &items[i];
        }
        assert_ok(send_many(bus->pool, soon(), bus->arena, list, 4, &error));
        for (int i = 0; i < 4; i++)
            begun += items[i].is_started;
        if (begun > 0)
            assert_true(items[3].is_started && items[2].is_started == (begun > 1) && !items[1].is_started &&
                        !items[0].is_started);
        else
            worker_wake(offering.worker);
        await(bus_count(bus, "ready") + bus_count(bus, "lease") == 0 || (worker_wake(offering.worker), false));
    }
    /* The last attempt goes first and cannot start: nothing else may. */
    for (int i = 0; i < 4; i++) {
        items[i]              = bus_item("mail", "t", "1");
        items[i].max_attempts = i == 3 ? 1 : 3;
        items[i].priority     = i;
    }
    assert_ok(send_many(bus->pool, soon(), bus->arena, list, 4, &error));
    for (int i = 0; i < 4; i++)
        assert_false(items[i].is_started);
    worker_wake(offering.worker);
    await(bus_count(bus, "ready") + bus_count(bus, "lease") == 0);
    (void)offering_end(&offering);
}
