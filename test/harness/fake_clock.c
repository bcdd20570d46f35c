/*
 * fake_clock.c - a World whose time changes only when a test moves it.
 */
#include "test/harness/fake_clock.h"

#include <assert.h>

#include "base/world.h"

#define MONO_START_NS NS_PER_S /* not zero: code that takes zero for "never" shall not be pleased by accident */

static Mono now;
static Wall started_at;

static Mono fake_mono(void)
{
    return now;
}

static Wall fake_wall(void)
{
    return (Wall){started_at.us + (now.ns - MONO_START_NS) / 1000};
}

static void fake_sleep_until(Mono at)
{
    assert(at.ns != INT64_MAX); /* would never wake up */
    if (mono_before(now, at))
        now = at;
}

static bool fake_wait(Cond *cond, Mutex *mutex, Mono until)
{
    (void)cond;
    (void)mutex;
    fake_sleep_until(until);
    return false;
}

static int fake_socket_wait(int fd, int events, Mono until)
{
    Mono real = {INT64_MAX};

    if (until.ns != INT64_MAX)
        real.ns = world_real.mono().ns + (until.ns - now.ns);
    int ready = world_real.socket_wait(fd, events, real);
    if (!ready)
        fake_sleep_until(until);
    return ready;
}

static World fake;

void fake_clock_install(Wall start)
{
    now              = (Mono){MONO_START_NS};
    started_at       = start;
    fake             = world_real;
    fake.mono        = fake_mono;
    fake.wall        = fake_wall;
    fake.sleep_until = fake_sleep_until;
    fake.wait        = fake_wait;
    fake.socket_wait = fake_socket_wait;
    world            = &fake;
}

void fake_clock_advance_ms(int64_t ms)
{
    assert(ms >= 0);
    now = mono_plus_ms(now, ms);
}

void fake_clock_restore(void)
{
    world = &world_real;
}
