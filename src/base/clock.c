/*
 * clock.c - time and deadlines. Every sum saturates: a deadline too far away is "never", not yesterday.
 */
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/world.h"

#define US_PER_S 1000000LL

Mono clock_mono(void)
{
    return world->mono();
}

Wall clock_wall(void)
{
    return world->wall();
}

void clock_sleep_ms(int64_t ms)
{
    if (ms > 0)
        clock_sleep_until(deadline_in_ms(ms));
}

int64_t clock_backoff_ms(int tries, int64_t most_ms)
{
    int64_t wait_ms = INT64_C(1000) << (tries < 0 ? 0 : tries < 6 ? tries : 6);

    return wait_ms < most_ms ? wait_ms : most_ms;
}

void clock_sleep_until(Deadline deadline)
{
    do
        world->sleep_until(deadline_look(deadline));
    while (deadline.cut && !deadline_passed(deadline));
}

Deadline deadline_in_ms(int64_t ms)
{
    return (Deadline){.at = mono_plus_ms(clock_mono(), ms)};
}

Deadline deadline_never(void)
{
    return (Deadline){.at = {INT64_MAX}};
}

Deadline deadline_sooner(Deadline a, Deadline b)
{
    return (Deadline){.at = mono_before(b.at, a.at) ? b.at : a.at, .cut = a.cut ? a.cut : b.cut};
}

Deadline deadline_cut(Deadline deadline, const Cut *cut)
{
    deadline.cut = cut;
    return deadline;
}

void cut_at(Cut *cut, Mono at)
{
    int64_t before = atomic_load(&cut->ns);

    while ((before == 0 || at.ns < before) && !atomic_compare_exchange_weak(&cut->ns, &before, at.ns))
        ;
}

static Mono deadline_end(Deadline deadline)
{
    int64_t cut = deadline.cut ? atomic_load(&deadline.cut->ns) : 0;

    if (cut != 0 && cut < deadline.at.ns)
        return (Mono){cut};
    return deadline.at;
}

Mono deadline_look(Deadline deadline)
{
    Mono end = deadline_end(deadline), look;

    if (!deadline.cut)
        return end;
    look = mono_plus_ms(clock_mono(), CUT_LOOK_MS);
    return mono_before(look, end) ? look : end;
}

bool deadline_passed(Deadline deadline)
{
    Mono end = deadline_end(deadline);

    return end.ns != INT64_MAX && !mono_before(clock_mono(), end);
}

int deadline_left_ms(Deadline deadline)
{
    int64_t end = deadline_end(deadline).ns;
    int64_t now = clock_mono().ns;
    int64_t left;

    if (end == INT64_MAX)
        return INT32_MAX;
    if (end <= now)
        return 0;
    if (__builtin_sub_overflow(end, now, &left))
        return INT32_MAX;
    /* Rounded up: a wait that ends a moment too early would spin through the last millisecond. */
    int64_t ms = left / NS_PER_MS + (left % NS_PER_MS != 0);
    return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

static void wall_print(Wall wall, int digits, char *buffer)
{
    int64_t   second = wall.us / US_PER_S;
    int64_t   us     = wall.us % US_PER_S;
    struct tm parts;

    if (us < 0) { /* before 1970 C rounds towards zero, a calendar rounds down */
        us += US_PER_S;
        second--;
    }
    time_t time   = (time_t)second;
    size_t length = strftime(buffer, WALL_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", gmtime_r(&time, &parts));
    snprintf(buffer + length, WALL_TEXT_SIZE - length, ".%0*dZ", digits, (int)(digits == 3 ? us / 1000 : us));
}

void wall_text(Wall wall, char *buffer)
{
    wall_print(wall, 3, buffer);
}

void wall_text_us(Wall wall, char *buffer)
{
    wall_print(wall, 6, buffer);
}
