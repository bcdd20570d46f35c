/*
 * route.c - finds the row for a path. A table has some dozens of rows and most differ in an early segment, so a walk
 * over all of them costs less than the system call that brought the request.
 */
#include "http/route.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define X(scope, name) name,
const char *const scope_names[SCOPE_COUNT + 1] = {SCOPES(X) NULL};
#undef X

void scope_print(Scope scopes, char *ret_text)
{
    size_t used = 0;

    ret_text[0] = '\0';
    if (scopes == SCOPE_ALL) {
        snprintf(ret_text, SCOPE_TEXT_SIZE, "any");
        return;
    }
    for (unsigned bit = 0, left = scopes; bit < SCOPE_COUNT; bit++) {
        if (!(left & 1u << bit))
            continue;
        left &= ~(1u << bit);
        used += (size_t)snprintf(ret_text + used, SCOPE_TEXT_SIZE - used, "%s%s",
                                 !used  ? ""
                                 : left ? ", "
                                        : " or ",
                                 scope_names[bit]);
    }
    assert(used < SCOPE_TEXT_SIZE);
}

/* Step over one segment of a pattern: "/wallets/{owner}" gives "wallets". NULL: the pattern ends. */
static const char *pattern_next(const char **pattern, size_t *ret_length)
{
    const char *segment = *pattern;

    if (*segment != '/')
        return NULL;
    segment++;
    *ret_length = strcspn(segment, "/");
    *pattern    = segment + *ret_length;
    return segment;
}

/* Does the path match, and how literally: the leftmost segment weighs most. -1: no match. */
static int match_weight(const char *pattern, const RoutePath *path)
{
    int    weight = 0;
    size_t length;

    for (int i = 0; i < path->count; i++) {
        const char *segment = pattern_next(&pattern, &length);

        if (!segment)
            return -1;
        bool is_capture = segment[0] == '{';
        if (!is_capture && (strncmp(segment, path->segments[i], length) != 0 || path->segments[i][length] != '\0'))
            return -1;
        if (is_capture && path->segments[i][0] == '\0')
            return -1; /* "/v1/wallets//entries" names no wallet */
        weight = weight << 1 | !is_capture;
    }
    return *pattern == '\0' ? weight : -1;
}

ErrorCode route_find(const RouteTable *table, HttpMethod method, const RoutePath *path, RouteMatch *ret_match,
                     Error *reterr)
{
    RouteMatch match    = {0};
    int        heaviest = -1;

    for (size_t i = 0; i < table->count; i++) {
        const Route *row    = &table->rows[i];
        int          weight = match_weight(row->path, path);

        if (weight < 0)
            continue;
        match.methods |= 1u << row->method;
        if (row->method == method && weight > heaviest) {
            heaviest    = weight;
            match.route = row;
        }
    }
    *ret_match = match;
    if (match.route)
        return OK;
    if (match.methods == 0)
        return fail(reterr, ERR_NOT_FOUND, "no such path");
    char allow[ROUTE_ALLOW_SIZE];
    route_allow(match.methods, allow);
    return fail(reterr, ERR_METHOD, "this path allows %s", allow);
}

const char *route_capture(const Route *route, const RoutePath *path, const char *name)
{
    const char *pattern = route->path;
    size_t      length, name_length = strlen(name);

    for (int i = 0; i < path->count; i++) {
        const char *segment = pattern_next(&pattern, &length);

        if (segment && segment[0] == '{' && length == name_length + 2 && strncmp(segment + 1, name, name_length) == 0)
            return path->segments[i];
    }
    return NULL;
}

void route_allow(unsigned methods, char *ret_text)
{
    static const char *const words[HTTP_METHOD_COUNT] = {
        [HTTP_GET] = "GET, HEAD", [HTTP_POST] = "POST", [HTTP_PUT] = "PUT", [HTTP_DELETE] = "DELETE"};
    size_t used = 0;

    ret_text[0] = '\0';
    for (int i = 0; i < HTTP_METHOD_COUNT; i++)
        if (methods & 1u << i)
            used += (size_t)snprintf(ret_text + used, ROUTE_ALLOW_SIZE - used, "%s%s", used ? ", " : "", words[i]);
    assert(used < ROUTE_ALLOW_SIZE);
}
