/*
 * share_test.c - one holder leaves a part to the others, queues are served in turn, and a wait ends when its caller must stop.
 */
#include "test/harness/test.h"

#include "base/share.h"
#include "base/sync.h"

#define TAKERS_MAX 8

/* Requests that wait on threads of their own; `order` is that of their grants. */
typedef struct {
    Share *share;
    Mutex  mutex; /* guards the rest */
    Cond   changed;
    int    queued, granted;
    char   order[TAKERS_MAX + 1];
    bool   must_stop;
} Takers;

typedef struct {
    Takers   *takers;
    char      holder[2];
    int64_t   amount;
    bool      is_queued, is_granted;
    pthread_t thread;
} Taker;

static void takers_init(Takers *takers, int64_t most)
{
    *takers = (Takers){.share = share_new(most)};
    mutex_init(&takers->mutex);
    cond_init(&takers->changed);
}

static void takers_done(Takers *takers)
{
    cond_done(&takers->changed);
    mutex_done(&takers->mutex);
    share_free(takers->share);
}

/* It is asked by a request that waits, so it is queued. */
static bool taker_must_stop(void *context)
{
    Taker                      *taker  = context;
    Takers                     *takers = taker->takers;
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&takers->mutex);

    takers->queued += !taker->is_queued;
    taker->is_queued = true;
    cond_broadcast(&takers->changed);
    return takers->must_stop;
}

static void *taker_run(void *context)
{
    Taker  *taker  = context;
    Takers *takers = taker->takers;

    taker->is_granted = share_take(takers->share, taker->holder, taker->amount, taker_must_stop, taker);
    mutex_lock(&takers->mutex);
    if (taker->is_granted)
        takers->order[takers->granted++] = taker->holder[0];
    cond_broadcast(&takers->changed);
    mutex_unlock(&takers->mutex);
    return NULL;
}

static void takers_wait(Takers *takers, const int *count, int wanted)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&takers->mutex);

    while (*count < wanted)
        cond_wait(&takers->changed, &takers->mutex, deadline_never());
}

static int takers_count(Takers *takers, const int *count)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&takers->mutex);

    return *count;
}

/* Returns when its request waits. */
static void taker_begin(Takers *takers, Taker *taker, char holder, int64_t amount)
{
    int queued = takers_count(takers, &takers->queued);

    *taker        = (Taker){.takers = takers, .holder = {holder}, .amount = amount};
    taker->thread = thread_start("taker", taker_run, taker);
    takers_wait(takers, &takers->queued, queued + 1);
}

/* Give one place back, and return the holder that got it. */
static char turn_take(Takers *takers, const char *holder)
{
    int granted = takers_count(takers, &takers->granted);

    share_give(takers->share, holder, 1);
    takers_wait(takers, &takers->granted, granted + 1);
    return takers->order[granted];
}

static int places_take(Share *share, const char *holder)
{
    int count = 0;

    while (share_try(share, holder, 1))
        count++;
    return count;
}

TEST(share_leaves_a_part_of_what_one_holder_takes)
{
    Share *share = share_new(64);

    assert_int_equal(places_take(share, "a"), 48);
    assert_int_equal(places_take(share, "b"), 12);
    assert_int_equal(places_take(share, "c"), 3);
    assert_int_equal(places_take(share, "d"), 1);
    assert_int_equal(places_take(share, "e"), 0);
    assert_int_equal(share_give(share, "a", 48), 16);
    assert_int_equal(share_give(share, "b", 12), 4);
    assert_int_equal(share_give(share, "c", 3), 1);
    assert_int_equal(share_give(share, "d", 1), 0);
    share_free(share);
}

TEST(share_of_a_few_places_keeps_one_for_another_holder)
{
    for (int places = 1; places <= 100; places++) {
        Share *share = share_new(share_size(places));

        assert_int_equal(places_take(share, "a"), places);
        assert_true(places_take(share, "b") >= 1);
        (void)share_give(share, "a", places);
        int64_t left = share_give(share, "b", 1);
        (void)share_give(share, "b", left);
        share_free(share);
    }
}

TEST(share_of_one_place_serves_all_holders)
{
    Share *share = share_new(1);

    assert_int_equal(places_take(share, "a"), 1);
    assert_int_equal(places_take(share, "b"), 0);
    assert_int_equal(share_give(share, "a", 1), 0);
    assert_int_equal(places_take(share, "b"), 1);
    assert_int_equal(share_give(share, "b", 1), 0);
    share_free(share);
}

TEST(share_grants_an_amount_above_its_most_when_nothing_is_taken)
{
    Share *share = share_new(8);

    assert_true(share_try(share, "a", 20));
    assert_false(share_try(share, "b", 1));
    assert_int_equal(share_give(share, "a", 20), 0);
    share_free(share);
}

TEST(share_serves_holders_in_turn_and_the_requests_of_one_in_order)
{
    Takers takers;
    Taker  list[5];

    takers_init(&takers, 2);
    assert_int_equal(places_take(takers.share, "x"), 1);
    assert_int_equal(places_take(takers.share, "y"), 1);
    taker_begin(&takers, &list[0], 'a', 1);
    taker_begin(&takers, &list[1], 'a', 1);
    taker_begin(&takers, &list[2], 'a', 1);
    taker_begin(&takers, &list[3], 'b', 1);
    taker_begin(&takers, &list[4], 'c', 1);
    assert_int_equal(turn_take(&takers, "x"), 'a');
    assert_int_equal(turn_take(&takers, "y"), 'b');
    assert_int_equal(turn_take(&takers, "b"), 'c');
    assert_int_equal(turn_take(&takers, "a"), 'a');
    assert_int_equal(turn_take(&takers, "a"), 'a');
    for (int i = 0; i < 5; i++)
        thread_join(list[i].thread);
    (void)share_give(takers.share, "a", 1);
    assert_int_equal(share_give(takers.share, "c", 1), 0);
    takers_done(&takers);
}

TEST(share_lets_no_small_request_overtake_a_large_one)
{
    Takers takers;
    Taker  large, small;

    takers_init(&takers, 8);
    assert_true(share_try(takers.share, "x", 4));
    taker_begin(&takers, &large, 'l', 8);
    taker_begin(&takers, &small, 's', 1);
    (void)share_give(takers.share, "x", 4);
    takers_wait(&takers, &takers.granted, 1);
    assert_int_equal(takers.order[0], 'l');
    (void)share_give(takers.share, "l", 8);
    thread_join(large.thread);
    thread_join(small.thread);
    assert_int_equal(share_give(takers.share, "s", 1), 0);
    takers_done(&takers);
}

TEST(share_ends_the_waits_of_callers_that_must_stop)
{
    Takers takers;
    Taker  taker;

    takers_init(&takers, 1);
    assert_int_equal(places_take(takers.share, "x"), 1);
    taker_begin(&takers, &taker, 'a', 1);
    mutex_lock(&takers.mutex);
    takers.must_stop = true;
    mutex_unlock(&takers.mutex);
    thread_join(taker.thread);
    assert_false(taker.is_granted);
    assert_int_equal(share_give(takers.share, "x", 1), 0);
    takers_done(&takers);
}
