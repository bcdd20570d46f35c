/*
 * request.h - one HTTP request as a handler sees it: method, path, captures, query, headers, body, deadline.
 *
 * Ownership: everything is borrowed from the request and lives until the response was sent.
 * Threads: one at a time: first the network thread, then one executor.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"

/* A HEAD request is a GET whose response is sent without its body. */
typedef enum { HTTP_GET, HTTP_POST, HTTP_PUT, HTTP_DELETE, HTTP_METHOD_COUNT } HttpMethod;

typedef struct Request Request;

Arena      *request_arena(Request *request);
Deadline    request_deadline(const Request *request);
Mono        request_began(const Request *request); /* when its head was complete */
const char *request_id(
    const Request *request); /* the client's X-Request-Id if it is well-formed, else a generated one; echoed */
const char *request_path(const Request *request); /* as it was sent, without the query */
/* What stood in {owner}: percent-decoded, UTF-8 checked before the handler runs. name must be in the route's path. */
const char *request_capture(const Request *request, const char *name);
const char *request_header(const Request *request, const char *name); /* UTF-8; NULL: absent */
const char *request_body(const Request *request, size_t *ret_size);   /* "" when there is none */
/* A handler that has read the body frees it before it suspends its request; from here on there is none. */
void request_body_free(Request *request);

/* Query parameters: NULL or fallback when absent; ERR_INVALID names the parameter. Unknown and repeated parameters are
 * refused before the handler runs. */
const char          *request_query(const Request *request, const char *name);
must_check ErrorCode request_query_i64(const Request *request, const char *name, int64_t min, int64_t max,
                                       int64_t fallback, int64_t *ret_value, Error *reterr);
/* Seconds, such as 30 or 0.5, as milliseconds; absent: 0. */
must_check ErrorCode request_query_seconds(const Request *request, const char *name, int64_t max_s, int64_t *ret_ms,
                                           Error *reterr);
/* Before the handler runs: as if the client had given this parameter. The value is borrowed. */
must_check ErrorCode request_query_set(Request *request, const char *name, const char *value, Error *reterr);

/* The row of the table that the request has matched (route.h). */
const struct Route *request_route(const Request *request);
/* Whom the authenticator found: the name of the key, for audits. "" when the route needs none. */
const char *request_principal(const Request *request);
/* What its token is bound to: the application's. NULL: it is not. */
const void *request_bound(const Request *request);
/* What its token may do: bits of Scope (route.h). */
unsigned request_scopes(const Request *request);

#endif
