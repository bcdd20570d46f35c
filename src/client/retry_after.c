/*
 * retry_after.c - see retry_after.h.
 */
#include "client/retry_after.h"

#include <curl/curl.h>
#include <string.h>

#include "client/client.h"

#define SECONDS_MAX       (CLIENT_RETRY_AFTER_MS_MAX / 1000)
#define SECOND_DIGITS_MAX 9

static int ms_of(int64_t seconds)
{
    if (seconds <= 0)
        return 0;
    return seconds < SECONDS_MAX ? (int)seconds * 1000 : CLIENT_RETRY_AFTER_MS_MAX;
}

static int ms_of_digits(const char *digits, size_t length)
{
    int64_t seconds = 0;

    if (length > SECOND_DIGITS_MAX)
        return CLIENT_RETRY_AFTER_MS_MAX;
    for (size_t i = 0; i < length; i++)
        seconds = seconds * 10 + (digits[i] - '0');
    return ms_of(seconds);
}

int retry_after_ms(const char *value, Wall now)
{
    if (!value)
        return 0;
    size_t digits = strspn(value, "0123456789");
    if (digits > 0 && value[digits] == '\0')
        return ms_of_digits(value, digits);
    time_t date = curl_getdate(value, NULL);
    return date < 0 ? 0 : ms_of((int64_t)date - now.us / 1000000);
}
