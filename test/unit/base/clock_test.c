/*
 * clock_test.c - deadlines under a clock that the test turns, and the real World's waits.
 */
#include "test/harness/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sync.h"
#include "base/world.h"

static Mono fake_now;
static Mono fake_slept_until;

static Mono fake_mono(void)
{
    return fake_now;
}

static Wall fake_wall(void)
{
    return (Wall){42};
}

static void fake_sleep_until(Mono at)
{
    fake_slept_until = at;
    fake_now         = at;
}

static World fake_world;

static void fake_install(int64_t now_ns)
{
    fake_world             = world_real;
    fake_world.mono        = fake_mono;
    fake_world.wall        = fake_wall;
    fake_world.sleep_until = fake_sleep_until;
    fake_now               = (Mono){now_ns};
    fake_slept_until       = (Mono){0};
    world                  = &fake_world;
}

static void real_install(void)
{
    world = &world_real;
}

TEST(clock_comes_from_the_world)
{
    fake_install(7);
    Mono mono = clock_mono();
    Wall wall = clock_wall();
    real_install();
    assert_int_equal(mono.ns, 7);
    assert_int_equal(wall.us, 42);
    assert_true(clock_mono().ns > 7);
    assert_true(clock_wall().us > 1700000000LL * 1000000);
}

TEST(clock_sleep_goes_through_the_world)
{
    fake_install(5 * NS_PER_MS);
    clock_sleep_ms(10);
    Mono after_sleep = fake_slept_until;
    fake_slept_until = (Mono){0};
    clock_sleep_ms(-1);
    clock_sleep_ms(0);
    Mono after_nothing = fake_slept_until;
    real_install();
    assert_int_equal(after_sleep.ns, 15 * NS_PER_MS);
    assert_int_equal(after_nothing.ns, 0);
}

TEST(clock_deadline_passes_when_its_moment_comes)
{
    fake_install(NS_PER_S);
    Deadline deadline = deadline_in_ms(100);
    bool     at_start = deadline_passed(deadline);
    fake_now.ns += 100 * NS_PER_MS - 1;
    bool just_before = deadline_passed(deadline);
    int  left_before = deadline_left_ms(deadline);
    fake_now.ns += 1;
    bool at_moment = deadline_passed(deadline);
    int  left_then = deadline_left_ms(deadline);
    fake_now.ns += NS_PER_S;
    int left_after = deadline_left_ms(deadline);
    real_install();
    assert_false(at_start);
    assert_false(just_before);
    assert_int_equal(left_before, 1); /* rounded up */
    assert_true(at_moment);
    assert_int_equal(left_then, 0);
    assert_int_equal(left_after, 0);
}

TEST(clock_deadlines_saturate)
{
    fake_install(NS_PER_S);
    Deadline far = deadline_in_ms(INT64_MAX), near_overflow = deadline_in_ms(INT64_MAX / NS_PER_MS);
    Deadline past = deadline_in_ms(INT64_MIN), yesterday = deadline_in_ms(-1);
    Deadline month      = deadline_in_ms(40LL * 24 * 3600 * 1000);
    bool     far_passed = deadline_passed(far), past_passed = deadline_passed(past);
    bool     yesterday_passed = deadline_passed(yesterday);
    int      far_left = deadline_left_ms(far), past_left = deadline_left_ms(past), month_left = deadline_left_ms(month);
    fake_now      = (Mono){INT64_MIN / 2};
    int huge_left = deadline_left_ms((Deadline){{INT64_MAX - 1}});
    real_install();
    assert_int_equal(far.at.ns, INT64_MAX);
    assert_int_equal(near_overflow.at.ns, INT64_MAX);
    assert_false(far_passed);
    assert_int_equal(far_left, INT32_MAX);
    assert_true(past_passed);
    assert_int_equal(past_left, 0);
    assert_true(yesterday_passed);
    assert_int_equal(month_left, INT32_MAX);
    assert_int_equal(huge_left, INT32_MAX);
}

TEST(clock_never_does_not_pass)
{
    fake_install(INT64_MAX);
    bool passed = deadline_passed(deadline_never());
    int  left   = deadline_left_ms(deadline_never());
    real_install();
    assert_false(passed);
    assert_int_equal(left, INT32_MAX);
}

TEST(clock_sooner_of_two_deadlines)
{
    Deadline a = {{10}}, b = {{20}};

    assert_int_equal(deadline_sooner(a, b).at.ns, 10);
    assert_int_equal(deadline_sooner(b, a).at.ns, 10);
    assert_int_equal(deadline_sooner(deadline_never(), a).at.ns, 10);
}

TEST(clock_differences_have_units)
{
    Mono a = {1 * NS_PER_S}, b = {3 * NS_PER_S + 1999};

    assert_int_equal(mono_ms_between(a, b), 2000);
    assert_int_equal(mono_us_between(a, b), 2000001);
    assert_int_equal(mono_ms_between(b, a), -2000);
    assert_int_equal(mono_plus_ms(a, 5).ns, NS_PER_S + 5 * NS_PER_MS);
    assert_true(mono_before(a, b));
    assert_false(mono_before(a, a));
}

TEST(clock_wall_text_is_utc_with_milliseconds)
{
    static const struct {
        int64_t     us;
        const char *text;
    } rows[] = {
        {0,                "1970-01-01T00:00:00.000Z"   },
        {1794728482123456, "2026-11-15T07:41:22.123Z"   },
        {-1,               "1969-12-31T23:59:59.999Z"   },
        {951782400000000,  "2000-02-29T00:00:00.000Z"   },
        {INT64_MAX,        "294247-01-10T04:00:54.775Z" },
        {INT64_MIN,        "-290308-12-21T19:59:05.224Z"},
    };
    char text[WALL_TEXT_SIZE];

    for (size_t i = 0; i < COUNT(rows); i++) {
        wall_text((Wall){rows[i].us}, text);
        assert_string_equal(text, rows[i].text);
    }
}

TEST(world_sleeps_at_least_until_the_moment)
{
    Deadline deadline = deadline_in_ms(20);

    clock_sleep_until(deadline);
    assert_true(deadline_passed(deadline));
    clock_sleep_until((Deadline){{-5}}); /* long ago: returns */
}

TEST(world_socket_wait_reports_what_is_ready)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(world_socket_wait(ends[0], SOCKET_READ | SOCKET_WRITE, deadline_never()), SOCKET_WRITE);
    assert_int_equal(world_socket_wait(ends[0], SOCKET_READ, deadline_in_ms(1)), 0);
    assert_int_equal(world_socket_wait(ends[0], SOCKET_READ, deadline_in_ms(INT64_MIN)), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(world_socket_wait(ends[0], SOCKET_READ | SOCKET_WRITE, deadline_never()),
                     SOCKET_READ | SOCKET_WRITE);
    /* What is ready is reported even when the deadline has passed. */
    assert_int_equal(world_socket_wait(ends[0], SOCKET_READ, deadline_in_ms(-1)), SOCKET_READ);
    close(ends[0]);
    close(ends[1]);
}

TEST(world_socket_wait_reports_a_dead_socket_as_ready)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    close(ends[1]);
    assert_int_equal(world_socket_wait(ends[0], SOCKET_READ, deadline_never()), SOCKET_READ); /* POLLHUP */
    close(ends[0]);
    assert_int_equal(world_socket_wait(ends[0], SOCKET_READ, deadline_never()), SOCKET_READ); /* POLLNVAL */
}

static atomic_int signals_seen;

static void signal_count(int number)
{
    (void)number;
    atomic_fetch_add(&signals_seen, 1);
}

typedef struct {
    pthread_t target;
    int       fd;
} Disturber;

/* Interrupt the waiter, see that the signal arrived, and only then let its wait end. */
static void *disturb(void *context)
{
    const Disturber *disturber = context;

    for (int i = 1; i <= 5; i++) {
        pthread_kill(disturber->target, SIGUSR1);
        while (atomic_load(&signals_seen) < i)
            clock_sleep_ms(1);
    }
    return write(disturber->fd, "x", 1) == 1 ? context : NULL;
}

TEST(world_socket_wait_goes_on_after_a_signal)
{
    int              ends[2];
    struct sigaction action = {.sa_handler = signal_count}, before;

    atomic_store(&signals_seen, 0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    Disturber disturber = {pthread_self(), ends[1]};
    pthread_t thread    = thread_start("disturber", disturb, &disturber);
    int       ready     = world_socket_wait(ends[0], SOCKET_READ, deadline_in_ms(20000));
    thread_join(thread);
    sigaction(SIGUSR1, &before, NULL);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(ready, SOCKET_READ);
    assert_int_equal(atomic_load(&signals_seen), 5);
}

static void *random_draw(void *context)
{
    *(unsigned *)context = world_random();
    return NULL;
}

/* ---- deadlines that another thread brings forward ---- */

typedef struct {
    Deadline deadline;
    int      fd;
    int      ready;
    bool     woken;
} Waiting;

static void *wait_for_all(void *context)
{
    Waiting *waiting = context;
    Mutex    mutex;
    Cond     cond;

    mutex_init(&mutex);
    cond_init(&cond);
    waiting->ready = world_socket_wait(waiting->fd, SOCKET_READ, waiting->deadline);
    clock_sleep_until(waiting->deadline);
    mutex_lock(&mutex);
    while ((waiting->woken = cond_wait(&cond, &mutex, waiting->deadline)))
        ;
    mutex_unlock(&mutex);
    cond_done(&cond);
    mutex_done(&mutex);
    return NULL;
}

TEST(clock_cut_ends_waits_of_other_threads)
{
    Cut      cut     = {0};
    Deadline never   = deadline_cut(deadline_never(), &cut);
    Waiting  waiting = {.deadline = deadline_sooner(deadline_in_ms(INT64_MAX), never), .ready = -1, .woken = true};
    Mono     before;
    int      ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    waiting.fd = ends[0];
    assert_false(deadline_passed(never));
    assert_int_equal(deadline_left_ms(never), INT32_MAX);
    pthread_t thread = thread_start("waiting", wait_for_all, &waiting);

    cut_at(&cut, mono_plus_ms(clock_mono(), 600000));
    before = clock_mono();
    cut_at(&cut, before);
    cut_at(&cut, mono_plus_ms(before, 600000)); /* the soonest counts */
    thread_join(thread);
    assert_int_equal(waiting.ready, 0);
    assert_false(waiting.woken);
    assert_true(deadline_passed(never));
    assert_int_equal(deadline_left_ms(never), 0);
    assert_true(deadline_passed(deadline_cut(deadline_in_ms(600000), &cut)));
    close(ends[0]);
    close(ends[1]);
}

TEST(world_random_differs_from_call_to_call_and_thread_to_thread)
{
    unsigned draws[8];
    bool     all_equal = true;

    for (size_t i = 0; i < COUNT(draws); i++) {
        if (i % 2)
            draws[i] = world_random();
        else
            thread_join(thread_start("draw", random_draw, &draws[i]));
        all_equal = all_equal && draws[i] == draws[0];
    }
    assert_false(all_equal);
}
