/*
 * moment.h - moments written as text, to microseconds since 1970.
 *
 * MOMENT_RFC3339 reads exactly what RFC 3339 allows, with an offset of at most 14 hours and up to 9 digits of a second.
 * MOMENT_LENIENT also reads what people type; without an offset it is UTC:
 *
 *     2026-11-15    2026-11-15T10:30    "2026-11-15 10:30:05.25"    2026-11-15T10:30:05+01
 *
 * Years are 1 to 9999. wall_text() of base/clock.h writes moments.
 * Threads: no shared state.
 */
#ifndef BASE_MOMENT_H
#define BASE_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { MOMENT_RFC3339, MOMENT_LENIENT } MomentForm;

/* false: the text is no moment. */
bool moment_parse(const char *text, MomentForm form, int64_t *ret_micros);

#endif
