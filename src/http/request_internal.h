/*
 * request_internal.h - what a request holds, for the files of this module.
 *
 * Requests are reused: begin, read, respond, end. The head's strings lie in the connection's buffer. Threads: one at a
 * time (peer.c).
 */
#ifndef HTTP_REQUEST_INTERNAL_H
#define HTTP_REQUEST_INTERNAL_H

#include <stdatomic.h>

#include "http/chunk.h"
#include "http/head.h"
#include "http/request.h"
#include "http/response.h"
#include "http/route.h"
#include "http/suspend.h"
#include "http/token.h"

#define REQUEST_ID_MAX    64
#define REQUEST_QUERY_MAX 32

struct Request {
    struct Peer *peer; /* on whose connection it came */
    Arena       *arena;
    Head         head;
    Mono         began; /* when the head was complete; .ns 0: it never was */
    Deadline     deadline;
    char         id[REQUEST_ID_MAX + 1];

    HttpMethod method;
    bool       is_head; /* response without the body */
    RoutePath  path;
    RouteMatch match;
    int        query_count;
    struct {
        const char *name, *value;
    } query[REQUEST_QUERY_MAX];

    bool       authentic; /* the token was checked and has the scope, or none is needed */
    TokenCheck check;

    Chunks    chunks;
    Text      body;     /* on the heap: it grows while it arrives */
    Response  response; /* its body on the heap: it outlives the rest of what the handler allocated */
    ArenaMark mark;     /* what is behind it belongs to the handler, and is freed when the response's head is written */

    atomic_int  holders;   /* its handler, and the party that is to resume it */
    Suspend     suspend;   /* on_resume NULL: it was not suspended */
    void       *state;     /* for its callbacks */
    atomic_bool watched;   /* on_closed is still to be called if the client goes */
    bool        resumed;   /* on_resume is left to an executor, or was */
    bool        delivered; /* the whole response was written to the socket */

    Request *next; /* in the list of spare ones */
};

Request *request_new(size_t body_bytes_max);
void     request_free(Request *request);
/* Make it ready for the next head; what the last one held is gone. */
void request_begin(Request *request);

/* Cut head.target into path and query and decode both. ERR_INVALID: a bad escape, not UTF-8, a parameter twice. */
must_check ErrorCode request_read_target(Request *request, Error *reterr);
/* ERR_INVALID: a query parameter that the route does not list. */
must_check ErrorCode request_check_query(const Request *request, Error *reterr);
/* true: it has no other holder. */
bool request_let_go(Request *request);
/* On the network thread: the client has gone. false: the request was not suspended with on_closed, or knows already. */
bool request_closed(Request *request);
/* On the network thread: the response was sent, or never will be. */
void request_sent(Request *request);
/* Take the client's id when it is well-formed: 1 to 64 of A-Z a-z 0-9 . _ - */
bool request_take_id(Request *request);

#endif
