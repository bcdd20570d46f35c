/*
 * route.c - finds the row for a path. A table has some dozens of rows and most differ in an early segment, so
 * comparing all of them costs less than the system call that read the request.
 */
#include "http/route.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void scope_print(const char *const *names, Scope scopes, char *ret_text)
{
    size_t used  = 0;
    int    count = 0;

    while (names[count])
        count++;
    ret_text[0] = '\0';
    if (scopes == (1u << count) - 1) {
        snprintf(ret_text, SCOPE_TEXT_SIZE, "any");
        return;
    }
    for (int bit = 0; bit < count; bit++) {
        if (!(scopes & 1u << bit))
            continue;
        scopes &= ~(1u << bit);
        used += (size_t)snprintf(ret_text + used, SCOPE_TEXT_SIZE - used, "%s%s",
                                 !used    ? ""
                                 : scopes ? ", "
                                          : " or ",
                                 names[bit]);
    }
    assert(used < SCOPE_TEXT_SIZE);
}

/* Skip one segment of a pattern: "/wallets/{owner}" gives "wallets". NULL: the pattern ends. */
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

/* A digit of match_weight(). -1: no match. */
static int segment_weight(const char *pattern, size_t length, const char *segment)
{
    if (pattern[0] == '{')
        return *segment == '\0' ? -1 : 1; /* "/v1/wallets//entries" names no wallet */
    return strncmp(pattern, segment, length) == 0 && segment[length] == '\0' ? 2 : -1;
}

/* Does the path match, and how literally: a number with a digit per segment, the leftmost first. -1: no match. */
static int match_weight(const char *pattern, const RoutePath *path)
{
    int    weight = 0;
    size_t length;

    for (int i = 0; i < path->count; i++) {
        const char *segment = pattern_next(&pattern, &length);

        if (!segment)
            return -1;
        int digit = segment_weight(segment, length, path->segments[i]);
        if (digit < 0)
            return -1;
        weight = weight * 3 + digit;
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

        if (!segment)
            return NULL;
        if (segment[0] == '{' && length == name_length + 2 && strncmp(segment + 1, name, name_length) == 0)
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
