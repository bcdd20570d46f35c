/*
 * shifted_clock.c - a World whose time is the real one and a number.
 */
#include "test/harness/shifted_clock.h"

#include <stdatomic.h>

#include "base/world.h"

static _Atomic int64_t shift_ns, wall_ms;

static Mono shifted_mono(void)
{
    return (Mono){world_real.mono().ns + atomic_load(&shift_ns)};
}

static Wall shifted_wall(void)
{
    return (Wall){world_real.wall().us + atomic_load(&shift_ns) / 1000 + atomic_load(&wall_ms) * 1000};
}

static Mono to_real(Mono at)
{
    return at.ns == INT64_MAX ? at : (Mono){at.ns - atomic_load(&shift_ns)};
}

static void shifted_sleep_until(Mono at)
{
    world_real.sleep_until(to_real(at));
}

static bool shifted_wait(Cond *cond, Mutex *mutex, Mono until)
{
    return world_real.wait(cond, mutex, to_real(until));
}

static int shifted_socket_wait(int fd, int events, Mono until)
{
    return world_real.socket_wait(fd, events, to_real(until));
}

static World shifted;

int shifted_clock_install(void)
{
    atomic_store(&shift_ns, 0);
    atomic_store(&wall_ms, 0);
    shifted             = world_real;
    shifted.mono        = shifted_mono;
    shifted.wall        = shifted_wall;
    shifted.sleep_until = shifted_sleep_until;
    shifted.wait        = shifted_wait;
    shifted.socket_wait = shifted_socket_wait;
    world               = &shifted;
    return 1;
}

void shifted_clock_advance_ms(int64_t ms)
{
    atomic_fetch_add(&shift_ns, ms * NS_PER_MS);
}

void shifted_clock_set_wall_ms(int64_t ms)
{
    atomic_store(&wall_ms, ms);
}

void shifted_clock_restore(int *installed)
{
    (void)installed;
    world = &world_real;
}
