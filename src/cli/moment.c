/*
 * moment.c - see moment.h.
 */
#include "cli/moment.h"

#include <string.h>

#include "base/clock.h"
#include "base/moment.h"

ErrorCode call_moment(const Call *call, const char *flag, int64_t *ret_micros, Error *reterr)
{
    const char *text   = call_flag(call, flag);
    int64_t     now_us = clock_wall().us, ago_ms;

    *ret_micros = 0;
    if (!text || (moment_parse(text, MOMENT_LENIENT, ret_micros) && *ret_micros > 0))
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
    char text[WALL_TEXT_SIZE];

    if (!micros)
        return NULL;
    wall_text_us((Wall){micros}, text);
    return arena_text(arena, text);
}

const char *moment_short(Arena *arena, const char *iso)
{
    return iso ? arena_print(arena, "%.10s %.12sZ", iso, iso + strlen("2026-11-15T")) : NULL;
}
