/*
 * request.c - decodes the request target, and the functions that handlers call.
 */
#include "http/request_internal.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"
#include "http/syntax.h"

#define BODY_KEPT_BYTES_MAX ((size_t)64 << 10) /* a larger buffer goes back to the heap after its request */

/* Decode in place. what names the place in the message. */
static ErrorCode percent_decode(char *text, bool plus_is_space, const char *what, Error *reterr)
{
    char *out = text;

    for (const char *in = text; *in; in++) {
        if (*in == '%') {
            int high = text_hex(in[1]), low = high < 0 ? -1 : text_hex(in[2]);

            if (low < 0)
                return fail(reterr, ERR_INVALID, "the %s has a \"%%\" without two hexadecimal digits", what);
            *out++ = (char)(high << 4 | low);
            in += 2;
        } else {
            *out++ = *in == '+' && plus_is_space ? ' ' : *in;
        }
    }
    *out = '\0';
    if (!text_is_utf8(text, (size_t)(out - text)))
        return fail(reterr, ERR_INVALID, "the %s is not UTF-8 text", what);
    return OK;
}

/* "http://host/path" is legal in a request line too: RFC 9112, 3.2.2. */
static char *skip_authority(char *target)
{
    static const char scheme[] = "http://";

    if (strncasecmp(target, scheme, sizeof scheme - 1) != 0)
        return target;
    target += sizeof scheme - 1;
    return target + strcspn(target, "/?");
}

static ErrorCode read_path(Request *request, const char *path, Error *reterr)
{
    char *rest = arena_text(request->arena, path);

    request->path.count = 0;
    while (rest) {
        char *segment = ++rest; /* behind the slash */

        rest = strchr(segment, '/');
        if (rest)
            *rest = '\0';
        if (request->path.count == ROUTE_SEGMENTS_MAX)
            return fail(reterr, ERR_NOT_FOUND, "no such path");
        TRY(percent_decode(segment, /* plus_is_space= */ false, "path", reterr));
        request->path.segments[request->path.count++] = segment;
    }
    return OK;
}

ErrorCode request_query_set(Request *request, const char *name, const char *value, Error *reterr)
{
    int i = 0;

    while (i < request->query_count && strcmp(request->query[i].name, name) != 0)
        i++;
    if (i == REQUEST_QUERY_MAX)
        return fail(reterr, ERR_INVALID, "the query has more than %d parameters", REQUEST_QUERY_MAX);
    request->query[i].name  = name;
    request->query[i].value = value;
    if (i == request->query_count)
        request->query_count++;
    return OK;
}

static ErrorCode add_parameter(Request *request, char *pair, Error *reterr)
{
    char *value = strchr(pair, '=');

    if (value)
        *value++ = '\0';
    else
        value = pair + strlen(pair);
    TRY(percent_decode(pair, /* plus_is_space= */ true, "query", reterr));
    TRY(percent_decode(value, /* plus_is_space= */ true, "query", reterr));
    if (request_query(request, pair))
        return fail(reterr, ERR_INVALID, "query parameter \"%.64s\" is given twice", pair);
    return request_query_set(request, pair, value, reterr);
}

static ErrorCode read_query(Request *request, char *query, Error *reterr)
{
    for (char *pair; (pair = strsep(&query, "&")) != NULL;)
        if (*pair)
            TRY(add_parameter(request, pair, reterr));
    return OK;
}

static void read_method(Request *request)
{
    static const struct {
        const char *word;
        HttpMethod  method;
        bool        is_head;
    } methods[] = {
        {"GET",    HTTP_GET,    false},
        {"POST",   HTTP_POST,   false},
        {"PUT",    HTTP_PUT,    false},
        {"HEAD",   HTTP_GET,    true },
        {"DELETE", HTTP_DELETE, false},
    };

    request->method = HTTP_METHOD_COUNT; /* fits no route: 405 or 404 */
    for (size_t i = 0; i < COUNT(methods); i++)
        if (strcmp(request->head.method, methods[i].word) == 0) {
            request->method  = methods[i].method;
            request->is_head = methods[i].is_head;
        }
}

/* Of the next request. */
static void text_empty(Text *text)
{
    if (text->capacity > BODY_KEPT_BYTES_MAX)
        text_done(text);
    else
        text_clear(text);
}

Request *request_new(size_t body_bytes_max)
{
    Request *request = memory_new(1, sizeof *request);

    request->arena = arena_new(ARENA_BYTES_DEFAULT);
    text_init(&request->body, /* arena= */ NULL, body_bytes_max);
    response_init(&request->response, /* arena= */ NULL);
    request_begin(request);
    return request;
}

void request_free(Request *request)
{
    text_done(&request->body);
    text_done(&request->response.body);
    arena_free(request->arena);
    free(request);
}

void request_begin(Request *request)
{
    arena_reset(request->arena);
    text_empty(&request->body);
    text_empty(&request->response.body);
    head_init(&request->head);
    response_reset(&request->response);
    request->id[0]         = '\0';
    request->check.name[0] = '\0';
    request->check.scopes  = SCOPE_NONE;
    request->check.bound   = NULL;
    request->method        = HTTP_METHOD_COUNT;
    request->is_head = request->authentic = false;
    request->match                        = (RouteMatch){0};
    request->path.count = request->query_count = 0;
    request->chunks                            = (Chunks){0};
    request->began                             = (Mono){0};
    request->deadline                          = deadline_never();
    request->suspend                           = (Suspend){0};
    request->mark                              = arena_mark(request->arena);
    request->state                             = NULL;
    request->delivered = request->resumed = false;
    atomic_store(&request->watched, false);
}

ErrorCode request_read_target(Request *request, Error *reterr)
{
    char *target = skip_authority(request->head.target);
    char *query  = strchr(target, '?');

    read_method(request);
    if (strchr(request->head.target, '#'))
        return fail(reterr, ERR_INVALID, "the target must not have a fragment");
    if (query)
        *query++ = '\0';
    if (*target == '\0' && target != request->head.target)
        target = arena_text(request->arena, "/"); /* "http://host" */
    if (*target != '/')
        return fail(reterr, ERR_INVALID, "the target must begin with \"/\"");
    request->head.target = target;
    TRY(read_path(request, target, reterr));
    return query ? read_query(request, query, reterr) : OK;
}

ErrorCode request_check_query(const Request *request, Error *reterr)
{
    const RouteParameter *parameters = request->match.route->parameters;
    const char           *names[REQUEST_QUERY_MAX];
    size_t                count = 0;

    for (; parameters && parameters[count].name; count++) {
        assert(count < COUNT(names));
        names[count] = parameters[count].name;
    }
    for (int i = 0; i < request->query_count; i++) {
        const char *name  = request->query[i].name;
        size_t      known = 0;

        while (known < count && strcmp(names[known], name) != 0)
            known++;
        if (known < count)
            continue;
        const char *nearest = text_nearest(name, names, count);
        return nearest
                   ? fail(reterr, ERR_INVALID, "unknown query parameter \"%.64s\"; did you mean \"%s\"?", name, nearest)
                   : fail(reterr, ERR_INVALID, "unknown query parameter \"%.64s\"", name);
    }
    return OK;
}

bool request_take_id(Request *request)
{
    const char *given  = head_header(&request->head, "X-Request-Id");
    size_t      length = 0;

    if (!given)
        return false;
    while (isalnum((unsigned char)given[length]) || (given[length] && strchr("._-", given[length])))
        length++;
    if (length == 0 || length > REQUEST_ID_MAX || given[length] != '\0')
        return false;
    memcpy(request->id, given, length + 1);
    return true;
}

Arena *request_arena(Request *request)
{
    return request->arena;
}

Deadline request_deadline(const Request *request)
{
    return request->deadline;
}

Mono request_began(const Request *request)
{
    return request->began;
}

const char *request_id(const Request *request)
{
    return request->id;
}

const char *request_path(const Request *request)
{
    return request->head.target;
}

const char *request_capture(const Request *request, const char *name)
{
    const char *value = route_capture(request->match.route, &request->path, name);

    assert(value);
    return value;
}

const char *request_header(const Request *request, const char *name)
{
    return head_header(&request->head, name);
}

const char *request_body(const Request *request, size_t *ret_size)
{
    *ret_size = request->body.length;
    return text_string(&request->body);
}

void request_body_free(Request *request)
{
    text_done(&request->body);
}

const char *request_query(const Request *request, const char *name)
{
    for (int i = 0; i < request->query_count; i++)
        if (strcmp(request->query[i].name, name) == 0)
            return request->query[i].value;
    return NULL;
}

ErrorCode request_query_i64(const Request *request, const char *name, int64_t min, int64_t max, int64_t fallback,
                            int64_t *ret_value, Error *reterr)
{
    const char *text = request_query(request, name);
    char       *end  = NULL;

    if (!text) {
        *ret_value = fallback;
        return OK;
    }
    errno           = 0;
    long long value = strtoll(text, &end, 10);
    bool      is_number =
        (isdigit((unsigned char)text[0]) || (text[0] == '-' && isdigit((unsigned char)text[1]))) && *end == '\0';
    if (!is_number || errno != 0 || value < min || value > max)
        return fail(reterr, ERR_INVALID, "query parameter \"%s\" must be an integer from %" PRId64 " to %" PRId64, name,
                    min, max);
    *ret_value = value;
    return OK;
}

ErrorCode request_query_seconds(const Request *request, const char *name, int64_t max_s, int64_t *ret_ms, Error *reterr)
{
    const char *text = request_query(request, name), *at = text;
    int64_t     ms   = 0;
    int         unit = 1000;

    *ret_ms = 0;
    if (!text)
        return OK;
    for (; isdigit((unsigned char)*at) && ms <= max_s; at++)
        ms = ms * 10 + (*at - '0');
    ms *= unit;
    if (at > text && *at == '.' && isdigit((unsigned char)at[1]))
        for (at++; isdigit((unsigned char)*at); at++)
            ms += (unit /= 10) * (*at - '0');
    if (at == text || *at || ms > max_s * 1000)
        return fail(reterr, ERR_INVALID, "query parameter \"%s\" must be a number from 0 to %" PRId64, name, max_s);
    *ret_ms = ms;
    return OK;
}

const char *request_principal(const Request *request)
{
    return request->check.name;
}

const Route *request_route(const Request *request)
{
    return request->match.route;
}

const void *request_bound(const Request *request)
{
    return request->check.bound;
}

unsigned request_scopes(const Request *request)
{
    return request->check.scopes;
}
