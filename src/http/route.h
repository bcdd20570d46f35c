/*
 * route.h - the table of routes: method, path, handler, scope; OpenAPI is made from the same rows.
 *
 *     {HTTP_POST, "/v1/wallets/{owner}/spend", api_spend, SCOPE_WALLET, .body = &spend_table, .summary = "..."}
 *
 * A path is split at slashes; {name} captures one whole segment. The leftmost difference decides: a literal segment
 * wins over a capture. Threads: any; a table is constant.
 */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/answer.h"
#include "base/error.h"
#include "base/reader.h"
#include "http/request.h"
#include "http/response.h"

/* What a token may do: a set of bits. Their meaning is the application's; RouteTable has their names. */
typedef unsigned Scope;
#define SCOPE_NONE 0u
/* "read, wallet or admin", or "any" for all of them, in at least SCOPE_TEXT_SIZE bytes. names: in the order of the
 * bits, ended by NULL. */
#define SCOPE_TEXT_SIZE 80
void scope_print(const char *const *names, Scope scopes, char *ret_text);

typedef ErrorCode RouteHandler(void *app, Request *request, Response *response, Error *reterr);
/* Decides by the head whether the body is read; on a network thread, so it must not wait. */
typedef ErrorCode RouteCheck(void *app, Request *request, Error *reterr);

typedef enum {
    PARAMETER_TEXT,
    PARAMETER_I64,
    PARAMETER_SECONDS,
    PARAMETER_BOOL,
    PARAMETER_UUID,
    PARAMETER_TIME
} ParameterType;

/* For OpenAPI; handlers check the value. */
typedef struct {
    const char        *name;
    const char        *help;
    ParameterType      type;
    int64_t            min, max; /* I64; SECONDS: max */
    int64_t            fallback; /* I64: when absent; 0: none */
    const char *const *words;    /* TEXT: the only values, ended by NULL */
    FieldNames         names;    /* what its value names */
} RouteParameter;

typedef struct Route {
    HttpMethod    method;
    const char   *path;
    RouteHandler *handler;
    Scope         scope;       /* any one of these will do; SCOPE_NONE: open to everyone */
    int           touches;     /* the application's: how it knows what a request touches, for tokens that are bound */
    bool          touch_waits; /* it may have to wait for that: a request of such a token does not run inline */
    RouteHandler *inner;       /* what the handler runs, when and where it sees fit; NULL: it has no other */
    bool          is_kept;     /* for such a handler: a repeat under one Idempotency-Key gets the stored bytes */
    bool          is_inline;   /* runs on the network thread: must not wait, but may suspend its request (suspend.h) */
    const char *
        inline_with; /* a query parameter: a request that has it runs inline, and only it has deadline_ms; NULL: none */
    int deadline_ms; /* 0: the server's default */
    const FieldTable     *body;           /* JSON body; NULL: none is read */
    bool                  body_required;  /* also where every field of the table is optional */
    bool                  body_any;       /* a JSON body of any shape, where no table can describe it */
    int                   body_bytes_max; /* 0: the server's limit */
    RouteCheck           *on_head;        /* NULL: none. A route that is open to everyone and reads a body has one */
    const RouteParameter *parameters;     /* query parameters, ended by a NULL name; NULL: none allowed */
    const char           *summary;        /* for OpenAPI and docs */

    /* Its responses, for OpenAPI. */
    int                   status;      /* of success; 0: 200 */
    const AnswerTable    *answer;      /* the JSON; NULL: none */
    const AnswerTable    *answer_or;   /* another shape that it may have; NULL: none */
    const char           *answer_type; /* besides JSON, or instead of it: "text/csv"; NULL: none */
    const char           *example;     /* of the JSON; NULL: none */
    const char *const    *headers;     /* of the response, besides X-Request-Id, ended by NULL; NULL: none */
    const RouteParameter *captures;    /* for the captures of the path; NULL: the usual ones */
    bool                  conditional; /* has an ETag, and If-None-Match gets 304 (asset.h) */
    bool                  key_refused; /* a POST that takes no Idempotency-Key */
} Route;

typedef struct {
    const Route       *rows;
    size_t             count;
    const char *const *scope_names; /* in the order of the bits, ended by NULL */
} RouteTable;

#define ROUTE_SEGMENTS_MAX 16

/* A path cut at its slashes, each segment percent-decoded. */
typedef struct {
    int         count;
    const char *segments[ROUTE_SEGMENTS_MAX];
} RoutePath;

/* What a path matched. methods has a bit per HttpMethod that the path knows, for the header Allow. */
typedef struct {
    const Route *route;
    unsigned     methods;
} RouteMatch;

/* ERR_NOT_FOUND: no row has this path. ERR_METHOD: rows have it, with other methods; *ret_match says which.
 * method may be HTTP_METHOD_COUNT: one that no row can have. */
must_check ErrorCode route_find(const RouteTable *table, HttpMethod method, const RoutePath *path,
                                RouteMatch *ret_match, Error *reterr);
/* The text captured by {name} of the route's path; NULL if it has no such capture. */
const char *route_capture(const Route *route, const RoutePath *path, const char *name);
/* "GET, HEAD, POST" for a set of methods, in at least ROUTE_ALLOW_SIZE bytes. */
#define ROUTE_ALLOW_SIZE 64
void route_allow(unsigned methods, char *ret_text);

#endif
