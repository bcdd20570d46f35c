/*
 * response.h - one HTTP response: status, headers, body or borrowed bytes. Errors are RFC 9457 problem
 * documents.
 *
 * The type of a problem is a relative reference, "/problems/insufficient-funds": stable, readable, resolved against
 * whatever address the server has, and independent of any domain name. Threads: the one that has the request.
 */
#ifndef HTTP_RESPONSE_H
#define HTTP_RESPONSE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "base/writer.h"

#define RESPONSE_HEADERS_MAX       32
#define RESPONSE_HEADERS_BYTES_MAX ((size_t)12 << 10) /* names and values of all */

typedef struct {
    int         status; /* 200 unless set */
    const char *type;   /* content type; "application/json" unless set */
    Text        body;
    const char *borrowed; /* sent instead of body; NULL: body is */
    size_t      borrowed_size;
    bool        is_shared; /* with the responses to other requests, so it takes no memory of its own */
    int         header_count;
    size_t      header_bytes;
    struct {
        const char *name, *value;
    } headers[RESPONSE_HEADERS_MAX];
    char   retry_after[12];
    Writer writer; /* of the body: see response_writer() */
} Response;

void response_init(Response *response, Arena *arena);                          /* of the body; NULL: the heap */
void response_reset(Response *response);                                       /* all but the body */
void response_header(Response *response, const char *name, const char *value); /* borrowed or in the arena */
/* For one JSON document, which is the body. */
Writer *response_writer(Response *response);
/* The body is this row, as JSON. */
void response_row(Response *response, RowWrite *write, const void *row);
/* Send these bytes, which must stay valid until the response was sent, instead of the body. */
void response_borrow(Response *response, const char *bytes, size_t size);
/* What is sent behind the head; nothing with 204 and 304. */
const char *response_content(const Response *response, size_t *ret_size);
/* Replace whatever was there by a problem document: type, title, status, detail, instance; Retry-After with 503 and
 * 429, WWW-Authenticate with 401. Texts for operators stay in the log (base/problem.h). */
void response_problem(Response *response, const Error *error, const char *instance);

/* What the server adds to a response's head. */
typedef struct {
    const char *date; /* as HTTP writes it */
    const char *request_id;
    bool        close;
} ResponseFrame;
/* Write the status line and all headers, up to the empty line. */
void response_write_head(const Response *response, const ResponseFrame *frame, Text *head);

#endif
