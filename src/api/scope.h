/*
 * scope.h - what a token may do, by the names that keys are created with. The HTTP server knows a scope as a bit only.
 */
#ifndef API_SCOPE_H
#define API_SCOPE_H

#include <stddef.h>

#define SCOPES(X)                 \
    X(SCOPE_READ, "read")         \
    X(SCOPE_WALLET, "wallet")     \
    X(SCOPE_TREASURY, "treasury") \
    X(SCOPE_COMMAND, "command")   \
    X(SCOPE_PROCESS, "process")   \
    X(SCOPE_RATING, "rating")     \
    X(SCOPE_ADMIN, "admin")
#define X(scope, name) scope##_BIT,
enum { SCOPES(X) SCOPE_COUNT };
#undef X
#define X(scope, name) scope = 1u << scope##_BIT,
enum { SCOPES(X) SCOPE_ALL = (1u << SCOPE_COUNT) - 1 };
#undef X
extern const char *const scope_names[SCOPE_COUNT + 1]; /* NULL-terminated, in the order of the bits */
/* The bit of the scope with this name; 0: there is none. */
unsigned scope_find(const char *name, size_t length);

#endif
