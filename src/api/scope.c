/*
 * scope.c - see scope.h.
 */
#include "api/scope.h"

#include <stddef.h>

#define X(scope, name) name,
const char *const scope_names[SCOPE_COUNT + 1] = {SCOPES(X) NULL};
#undef X
