/*
 * source.h - the text of a definition file, and how to say where in it something is wrong.
 *
 *     order.json:12:9: steps[3].when: expected a path or a value, found "and"
 *
 * A location is a pointer into the text: line, column and path are found from it when something is refused, so nothing has to carry them
 * along.
 *
 * Threads: any. Ownership: everything is borrowed.
 */
#ifndef PROCESS_SOURCE_H
#define PROCESS_SOURCE_H

#include "base/error.h"
#include "base/value.h"

typedef struct {
    const char *name; /* of the file, for messages */
    Value       text;
} Source;

/* Is it well-formed JSON? ERR_INVALID has the location. */
must_check ErrorCode source_check(const Source *source, Error *reterr);
/* ERR_INVALID with the location before the words. The text is well-formed, and at is in it. As with fail(), the code is the macro's own
 * value, so that compilers see it. */
#define source_refuse(...)             \
    ({                                 \
        source_error_set(__VA_ARGS__); \
        ERR_INVALID;                   \
    })
void source_error_set(const Source *source, const char *at, Error *reterr, const char *format, ...) printf_like(4, 5);
/* Put the location before the text that reterr already has; reterr may be NULL. */
void source_prefix(const Source *source, const char *at, Error *reterr);

#endif
