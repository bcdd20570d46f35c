/*
 * moment.c - see moment.h.
 */
#include "base/moment.h"

#include <string.h>
#include <time.h>

#define US_PER_S        INT64_C(1000000)
#define SECONDS_PER_MIN 60
#define SECONDS_PER_H   3600
#define OFFSET_H_MAX    14 /* the largest in use */
#define FRACTION_MAX    9  /* digits */

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

static bool date_take(const char **at, struct tm *parts)
{
    int year, month;

    if (!digits_take(at, 4, 1, 9999, &year) || !mark_take(at, "-") || !digits_take(at, 2, 1, 12, &month) ||
        !mark_take(at, "-") || !digits_take(at, 2, 1, 31, &parts->tm_mday))
        return false;
    parts->tm_year = year - 1900;
    parts->tm_mon  = month - 1;
    return true;
}

/* ".25"; digits beyond the microsecond are dropped. */
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
    return count > 0 && count <= FRACTION_MAX;
}

static bool time_take(const char **at, MomentForm form, struct tm *parts, int64_t *ret_micros)
{
    if (!digits_take(at, 2, 0, 23, &parts->tm_hour) || !mark_take(at, ":") ||
        !digits_take(at, 2, 0, 59, &parts->tm_min))
        return false;
    if (!mark_take(at, ":"))
        return form == MOMENT_LENIENT;
    return digits_take(at, 2, 0, 59, &parts->tm_sec) && (!mark_take(at, ".") || fraction_take(at, ret_micros));
}

/* "Z" or "+01:00"; lenient: also "+01", "-0330" or nothing. */
static bool offset_take(const char **at, MomentForm form, int *ret_seconds)
{
    int sign = **at == '-' ? -1 : 1, hours, minutes = 0;

    *ret_seconds = 0;
    if (mark_take(at, "Zz") || (!**at && form == MOMENT_LENIENT))
        return true;
    if (!mark_take(at, "+-") || !digits_take(at, 2, 0, OFFSET_H_MAX, &hours))
        return false;
    if (!mark_take(at, ":") && form != MOMENT_LENIENT)
        return false;
    if ((**at || form != MOMENT_LENIENT) && !digits_take(at, 2, 0, 59, &minutes))
        return false;
    *ret_seconds = sign * (hours * SECONDS_PER_H + minutes * SECONDS_PER_MIN);
    return true;
}

bool moment_parse(const char *text, MomentForm form, int64_t *ret_micros)
{
    struct tm parts  = {0};
    int64_t   micros = 0;
    int       offset = 0, day;
    time_t    seconds;

    if (!date_take(&text, &parts))
        return false;
    if (mark_take(&text, form == MOMENT_LENIENT ? "Tt " : "Tt")) {
        if (!time_take(&text, form, &parts, &micros) || !offset_take(&text, form, &offset))
            return false;
    } else if (form != MOMENT_LENIENT)
        return false;
    day     = parts.tm_mday;
    seconds = timegm(&parts);
    if (*text || parts.tm_mday != day) /* timegm() turns the 30th of February into a day in March */
        return false;
    *ret_micros = (seconds - offset) * US_PER_S + micros;
    return true;
}
