/*
 * moment.c - moments in a query: RFC 3339, which PostgreSQL reads as well; but it also reads "yesterday".
 */
#include <ctype.h>
#include <string.h>

#include "api/api.h"

static bool digits_read(const char **text, int count, int *ret_number)
{
    int number = 0;

    for (int i = 0; i < count; i++, (*text)++) {
        if (!isdigit((unsigned char)**text))
            return false;
        number = number * 10 + (**text - '0');
    }
    *ret_number = number;
    return true;
}

static bool mark_read(const char **text, const char *marks)
{
    if (**text == '\0' || !strchr(marks, **text))
        return false;
    (*text)++;
    return true;
}

static bool date_read(const char **text)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int              year, month, day;
    bool             leap;

    if (!digits_read(text, 4, &year) || !mark_read(text, "-") || !digits_read(text, 2, &month) ||
        !mark_read(text, "-") || !digits_read(text, 2, &day))
        return false;
    leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] + (month == 2 && leap);
}

static bool time_read(const char **text)
{
    int hour, minute, second;

    if (!digits_read(text, 2, &hour) || !mark_read(text, ":") || !digits_read(text, 2, &minute) ||
        !mark_read(text, ":") || !digits_read(text, 2, &second))
        return false;
    if (mark_read(text, ".")) {
        size_t length = strspn(*text, "0123456789");

        if (length == 0 || length > 9)
            return false;
        *text += length;
    }
    return hour < 24 && minute < 60 && second < 60;
}

static bool zone_read(const char **text)
{
    int hour, minute;

    if (mark_read(text, "Zz"))
        return true;
    return mark_read(text, "+-") && digits_read(text, 2, &hour) && mark_read(text, ":") &&
           digits_read(text, 2, &minute) && hour < 15 && minute < 60;
}

ErrorCode api_moment_take(Request *request, const char *name, const char **ret_moment, Error *reterr)
{
    const char *text;
    char       *moment = arena_text(request_arena(request), request_query(request, name));

    *ret_moment = moment;
    if (!moment)
        return OK;
    /* A plus that was not escaped arrives as a space. */
    for (char *space = moment; (space = strchr(space, ' '));)
        *space = '+';
    text = moment;
    if (!date_read(&text) || !mark_read(&text, "Tt") || !time_read(&text) || !zone_read(&text) || *text)
        return fail(reterr, ERR_INVALID, "%s must be a moment such as 2026-01-31T12:00:00Z, got \"%.60s\"", name,
                    moment);
    return OK;
}
