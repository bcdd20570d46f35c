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

void clock_sleep_until(Deadline deadline)
{
    world->sleep_until(deadline.at);
}

Deadline deadline_in_ms(int64_t ms)
{
    return (Deadline){mono_plus_ms(clock_mono(), ms)};
}

Deadline deadline_never(void)
{
    return (Deadline){{INT64_MAX}};
}

Deadline deadline_sooner(Deadline a, Deadline b)
{
    return mono_before(b.at, a.at) ? b : a;
}

bool deadline_passed(Deadline deadline)
{
    return deadline.at.ns != INT64_MAX && !mono_before(clock_mono(), deadline.at);
}

int deadline_left_ms(Deadline deadline)
{
    int64_t now = clock_mono().ns;
    int64_t left;

    if (deadline.at.ns == INT64_MAX)
        return INT32_MAX;
    if (deadline.at.ns <= now)
        return 0;
    if (__builtin_sub_overflow(deadline.at.ns, now, &left))
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
