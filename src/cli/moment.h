/*
 * moment.h - a moment as people write it: a day, a day with a time, or how long ago.
 *
 *     2026-11-15    2026-11-15T10:30    "2026-11-15 10:30:05.25"    2026-11-15T10:30:05+01:00    15m    2d
 *
 * Without a zone it is UTC, as everything that pawl prints.
 */
#ifndef CLI_MOMENT_H
#define CLI_MOMENT_H

#include <stdint.h>

#include "base/error.h"
#include "cli/command.h"

/* The moment given as a flag, in microseconds since 1970; 0: not given. ERR_USAGE names the flag. */
must_check ErrorCode call_moment(const Call *call, const char *flag, int64_t *ret_micros, Error *reterr);
/* As RFC 3339, in the arena, to the microsecond; NULL for 0. */
const char *moment_text(Arena *arena, int64_t micros);

#endif
