/*
 * scope.c - see scope.h.
 */
#include "api/scope.h"

#include <string.h>

#define X(scope, name) name,
const char *const scope_names[SCOPE_COUNT + 1] = {SCOPES(X) NULL};
#undef X

unsigned scope_find(const char *name, size_t length)
{
    for (int i = 0; i < SCOPE_COUNT; i++)
        if (strlen(scope_names[i]) == length && memcmp(scope_names[i], name, length) == 0)
            return 1u << i;
    return 0;
}
