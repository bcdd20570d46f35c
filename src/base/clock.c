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

/* "+01:30" in seconds; "Z" is 0. false: neither. */
static bool offset_parse(const char *text, int64_t *ret_s)
{
    int hours, minutes, used = 0;

    *ret_s = 0;
    if ((text[0] == 'Z' || text[0] == 'z') && !text[1])
        return true;
    if ((text[0] != '+' && text[0] != '-') || sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2 ||
        used != 5 || text[6] || hours > 23 || minutes > 59)
        return false;
    *ret_s = (int64_t)(text[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
}

bool wall_parse_us(const char *text, int64_t *ret_us)
{
    struct tm   time     = {0};
    int64_t     fraction = 0, offset_s;
    int         used     = 0;
    const char *at;

    if (sscanf(text, "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%2d%n", &time.tm_year, &time.tm_mon, &time.tm_mday, &time.tm_hour,
               &time.tm_min, &time.tm_sec, &used) != 6 ||
        used != 19)
        return false;
    if (time.tm_mon < 1 || time.tm_mon > 12 || time.tm_mday < 1 || time.tm_mday > 31 || time.tm_hour > 23 ||
        time.tm_min > 59 || time.tm_sec > 60)
        return false;
    at = text + used;
    if (*at == '.') {
        int64_t unit = 100000;

        for (at++; *at >= '0' && *at <= '9'; at++, unit /= 10)
            fraction += (*at - '0') * unit;
        if (at == text + used + 1)
            return false;
    }
    if (!offset_parse(at, &offset_s))
        return false;
    time.tm_year -= 1900;
    time.tm_mon -= 1;
    int    day     = time.tm_sec < 60 ? time.tm_mday : 0; /* a leap second may end the day */
    time_t seconds = timegm(&time);

    if (day && time.tm_mday != day) /* carried over: there is no such day */
        return false;
    *ret_us = ((int64_t)seconds - offset_s) * 1000000 + fraction;
    return true;
}
