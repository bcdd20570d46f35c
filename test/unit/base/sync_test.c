/*
 * sync_test.c - the lock excludes, the condition wakes, a deadline ends a wait; by way of the World.
 */
#include "test/harness/test.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/sync.h"
#include "base/world.h"

#define THREADS 4
#define ROUNDS  5000

typedef struct {
    Mutex mutex;
    Cond  cond;
    long  count; /* guarded by mutex, as is all below */
    int   ready;
    bool  go;
    int   awake;
} Shared;

static void shared_init(Shared *shared)
{
    *shared = (Shared){0};
    mutex_init(&shared->mutex);
    cond_init(&shared->cond);
}

static void shared_done(Shared *shared)
{
    cond_done(&shared->cond);
    mutex_done(&shared->mutex);
}

static void *count_up(void *context)
{
    Shared *shared = context;

    for (int i = 0; i < ROUNDS; i++) {
        scoped(mutex_unlock) Mutex *held = mutex_hold(&shared->mutex);
        shared->count++;
    }
    return NULL;
}

TEST(sync_mutex_excludes)
{
    Shared    shared;
    pthread_t threads[THREADS];

    shared_init(&shared);
    for (int i = 0; i < THREADS; i++)
        threads[i] = thread_start("counter", count_up, &shared);
    for (int i = 0; i < THREADS; i++)
        thread_join(threads[i]);
    long count = shared.count;
    shared_done(&shared);
    assert_int_equal(count, (long)THREADS * ROUNDS);
}

static void *wait_for_go(void *context)
{
    Shared                     *shared = context;
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&shared->mutex);

    shared->ready++;
    cond_broadcast(&shared->cond);
    while (!shared->go)
        if (!cond_wait(&shared->cond, held, deadline_in_ms(20000)))
            return NULL;
    shared->awake++;
    return NULL;
}

TEST(sync_broadcast_wakes_everyone)
{
    Shared    shared;
    pthread_t threads[THREADS];

    shared_init(&shared);
    for (int i = 0; i < THREADS; i++)
        threads[i] = thread_start("waiter", wait_for_go, &shared);
    mutex_lock(&shared.mutex);
    while (shared.ready < THREADS)
        cond_wait(&shared.cond, &shared.mutex, deadline_never());
    shared.go = true;
    cond_broadcast(&shared.cond);
    mutex_unlock(&shared.mutex);
    for (int i = 0; i < THREADS; i++)
        thread_join(threads[i]);
    int awake = shared.awake;
    shared_done(&shared);
    assert_int_equal(awake, THREADS);
}

TEST(sync_signal_wakes_a_waiter)
{
    Shared shared;

    shared_init(&shared);
    pthread_t thread = thread_start("waiter", wait_for_go, &shared);
    mutex_lock(&shared.mutex);
    while (shared.ready < 1)
        cond_wait(&shared.cond, &shared.mutex, deadline_never());
    shared.go = true;
    mutex_unlock(&shared.mutex);
    cond_signal(&shared.cond);
    thread_join(thread);
    int awake = shared.awake;
    shared_done(&shared);
    assert_int_equal(awake, 1);
}

TEST(sync_wait_ends_at_its_deadline)
{
    Shared   shared;
    Deadline deadline = deadline_in_ms(20);

    shared_init(&shared);
    mutex_lock(&shared.mutex);
    while (cond_wait(&shared.cond, &shared.mutex, deadline))
        ;
    bool passed      = deadline_passed(deadline);
    bool second_time = cond_wait(&shared.cond, &shared.mutex, (Deadline){{-1}});
    mutex_unlock(&shared.mutex);
    shared_done(&shared);
    assert_true(passed);
    assert_false(second_time);
}

typedef struct {
    char     name[32];
    sigset_t blocked;
} Portrait;

static void *portrait_take(void *context)
{
    Portrait *portrait = context;

    pthread_sigmask(SIG_SETMASK, NULL, &portrait->blocked);
    return NULL;
}

TEST(sync_threads_have_all_signals_blocked)
{
    Portrait portrait;
    sigset_t before, after;

    pthread_sigmask(SIG_SETMASK, NULL, &before);
    thread_join(thread_start("portrait", portrait_take, &portrait));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_true(sigismember(&portrait.blocked, SIGTERM));
    assert_true(sigismember(&portrait.blocked, SIGHUP));
    assert_true(sigismember(&portrait.blocked, SIGUSR1));
    assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

TEST(sync_long_thread_names_are_cut)
{
    Shared shared;
    char   name[32] = "";

    shared_init(&shared);
    pthread_t thread = thread_start("a-name-that-is-too-long", wait_for_go, &shared);
    pthread_getname_np(thread, name, sizeof name);
    mutex_lock(&shared.mutex);
    shared.go = true;
    cond_signal(&shared.cond);
    mutex_unlock(&shared.mutex);
    thread_join(thread);
    shared_done(&shared);
    assert_string_equal(name, "a-name-that-is-");
}

static int fake_locks, fake_unlocks, fake_waits, fake_wakes_all;

static void fake_lock(Mutex *mutex)
{
    (void)mutex;
    fake_locks++;
}

static void fake_unlock(Mutex *mutex)
{
    (void)mutex;
    fake_unlocks++;
}

static bool fake_wait(Cond *cond, Mutex *mutex, Mono until)
{
    (void)cond, (void)mutex;
    fake_waits++;
    return until.ns == 123;
}

static void fake_wake(Cond *cond, bool all)
{
    (void)cond;
    fake_wakes_all += all;
}

TEST(sync_goes_through_the_world)
{
    World  fake = world_real;
    Shared shared;

    shared_init(&shared);
    fake.lock   = fake_lock;
    fake.unlock = fake_unlock;
    fake.wait   = fake_wait;
    fake.wake   = fake_wake;
    world       = &fake;
    mutex_lock(&shared.mutex);
    bool woken = cond_wait(&shared.cond, &shared.mutex, (Deadline){{123}});
    cond_signal(&shared.cond);
    cond_broadcast(&shared.cond);
    mutex_unlock(&shared.mutex);
    world = &world_real;
    shared_done(&shared);
    assert_true(woken);
    assert_int_equal(fake_locks, 1);
    assert_int_equal(fake_unlocks, 1);
    assert_int_equal(fake_waits, 1);
    assert_int_equal(fake_wakes_all, 1);
}
