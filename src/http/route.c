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

/* "{path*}" */
static bool segment_is_tail(const char *segment, size_t length)
{
    return segment[0] == '{' && length > 3 && segment[length - 2] == '*';
}

/* Segments are distinct: joined by slashes, no two paths are the same text, and none leads upwards. */
static bool tail_matches(const RoutePath *path, int from)
{
    for (int i = from; i < path->count; i++) {
        const char *segment = path->segments[i];

        if (*segment == '\0' || strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0 || strchr(segment, '/'))
            return false;
    }
    return true;
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
        if (segment_is_tail(segment, length)) {
            if (!tail_matches(path, i))
                return -1;
            for (; i < path->count; i++)
                weight *= 3;
            return weight;
        }
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

static const char *tail_join(const RoutePath *path, int from, Arena *arena)
{
    Text text;

    text_init(&text, arena, TEXT_MAX_BODY); /* the request line's limit is far below */
    for (int i = from; i < path->count; i++) {
        if (i > from)
            text_append_char(&text, '/');
        text_append(&text, path->segments[i]);
    }
    return text_string(&text);
}

const char *route_capture(const Route *route, const RoutePath *path, const char *name, Arena *arena)
{
    const char *pattern = route->path;
    size_t      length, name_length = strlen(name);

    for (int i = 0; i < path->count; i++) {
        const char *segment = pattern_next(&pattern, &length);

        if (!segment)
            return NULL;
        if (segment[0] != '{' || strncmp(segment + 1, name, name_length) != 0)
            continue;
        if (length == name_length + 2)
            return path->segments[i];
        if (length == name_length + 3 && segment_is_tail(segment, length))
            return tail_join(path, i, arena);
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
