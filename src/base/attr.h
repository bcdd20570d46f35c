/*
 * attr.h - additions to C that every module uses: must_check, scoped, take, COUNT.
 *
 * scoped(fn) frees a handle on every way out of a block; take(p) hands it over and leaves NULL behind.
 */
#ifndef BASE_ATTR_H
#define BASE_ATTR_H

#include <stddef.h>

#define must_check                  __attribute__((warn_unused_result))
#define printf_like(format, values) __attribute__((__format__(printf, format, values)))

/* scoped(PQclear) PGresult *r = NULL;  frees r on every way out of the block. */
#define scoped(fn) __attribute__((cleanup(fn##_p), unused))
#define SCOPED(Type, fn)                \
    static inline void fn##_p(Type **p) \
    {                                   \
        if (*p)                         \
            fn(*p);                     \
    }

/* take(r) hands r over: the scoped variable is left NULL. */
#define take(pointer)                           \
    ({                                          \
        __typeof__(pointer) taken_ = (pointer); \
        (pointer)                  = NULL;      \
        taken_;                                 \
    })

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
