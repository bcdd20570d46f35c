/*
 * moment.h - a moment as people write it: a day or a time (MOMENT_LENIENT of base/moment.h), or how long ago: 15m, 2d.
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
/* "2026-11-15T08:51:01.180288Z" as people read it, to the millisecond; NULL for NULL. */
const char *moment_short(Arena *arena, const char *iso);

#endif
