/*
 * moment.c - see moment.h.
 */
#include "cli/moment.h"

#include <stdbool.h>
#include <time.h>

#include "base/clock.h"

#define US_PER_S  INT64_C(1000000)
#define YEAR_MIN  1970
#define YEAR_MAX  9999
#define ZONE_MAX  15 /* hours; the largest in use is 14 */
#define MINUTES_S 60
#define HOURS_S   3600

/* Exactly this many digits whose value lies in the range; *at goes behind them. */
static bool digits_take(const char **at, int count, int min, int max, int *ret_value)
{
    int value = 0;

    for (int i = 0; i < count; i++) {
        if ((*at)[i] < '0' || (*at)[i] > '9')
            return false;
        value = value * 10 + ((*at)[i] - '0');
    }
    if (value < min || value > max)
        return false;
    *at += count;
    *ret_value = value;
    return true;
}

static bool mark_take(const char **at, const char *marks)
{
    if (!**at || !strchr(marks, **at))
        return false;
    (*at)++;
    return true;
}

static bool day_take(const char **at, struct tm *day)
{
    int year, month;

    if (!digits_take(at, 4, YEAR_MIN, YEAR_MAX, &year) || !mark_take(at, "-") || !digits_take(at, 2, 1, 12, &month) ||
        !mark_take(at, "-") || !digits_take(at, 2, 1, 31, &day->tm_mday))
        return false;
    day->tm_year = year - 1900;
    day->tm_mon  = month - 1;
    return true;
}

/* ".25": up to six digits, later ones are dropped. */
static bool fraction_take(const char **at, int64_t *ret_micros)
{
    int     digit, count = 0;
    int64_t micros = 0;

    for (; digits_take(at, 1, 0, 9, &digit); count++)
        if (count < 6)
            micros = micros * 10 + digit;
    for (int i = count; i < 6; i++)
        micros *= 10;
    *ret_micros = micros;
    return count > 0;
}

static bool clock_take(const char **at, struct tm *day, int64_t *ret_micros)
{
    if (!digits_take(at, 2, 0, 23, &day->tm_hour) || !mark_take(at, ":") || !digits_take(at, 2, 0, 59, &day->tm_min))
        return false;
    if (mark_take(at, ":") && !digits_take(at, 2, 0, 59, &day->tm_sec))
        return false;
    return !mark_take(at, ".") || fraction_take(at, ret_micros);
}

/* "Z", "+01", "+01:00", "-0330" or nothing. */
static bool zone_take(const char **at, int *ret_seconds)
{
    int sign = **at == '-' ? -1 : 1, hours, minutes = 0;

    *ret_seconds = 0;
    if (!**at || mark_take(at, "Zz"))
        return true;
    if (!mark_take(at, "+-") || !digits_take(at, 2, 0, ZONE_MAX, &hours))
        return false;
    if (**at && (mark_take(at, ":"), !digits_take(at, 2, 0, 59, &minutes)))
        return false;
    *ret_seconds = sign * (hours * HOURS_S + minutes * MINUTES_S);
    return true;
}

static bool moment_parse(const char *text, int64_t *ret_micros)
{
    struct tm day    = {0};
    int64_t   micros = 0;
    int       zone   = 0, mday;
    time_t    seconds;

    if (!day_take(&text, &day))
        return false;
    if (mark_take(&text, "Tt ") && (!clock_take(&text, &day, &micros) || !zone_take(&text, &zone)))
        return false;
    mday    = day.tm_mday;
    seconds = timegm(&day);
    if (*text || day.tm_mday != mday) /* the 30th of February became a day in March */
        return false;
    *ret_micros = (seconds - zone) * US_PER_S + micros;
    return *ret_micros > 0;
}

ErrorCode call_moment(const Call *call, const char *flag, int64_t *ret_micros, Error *reterr)
{
    const char *text   = call_flag(call, flag);
    int64_t     now_us = clock_wall().us, ago_ms;

    *ret_micros = 0;
    if (!text || moment_parse(text, ret_micros))
        return OK;
    if (setting_duration(text, &ago_ms, NULL) != OK || ago_ms >= now_us / 1000)
        return fail(
            reterr, ERR_USAGE,
            "%s must be a day or moment such as 2026-11-15 or 2026-11-15T10:30:00Z, or how long ago, such as 15m "
            "or 2d, got \"%.60s\"",
            flag, text);
    *ret_micros = now_us - ago_ms * 1000;
    return OK;
}

const char *moment_text(Arena *arena, int64_t micros)
{
    time_t    seconds = micros / US_PER_S;
    struct tm day;

    if (!micros)
        return NULL;
    gmtime_r(&seconds, &day);
    return arena_print(arena, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday,
                       day.tm_hour, day.tm_min, day.tm_sec, (int)(micros % US_PER_S));
}
