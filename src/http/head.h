/*
 * head.h - the head of an HTTP/1.x request, read strictly: what two programs could interpret differently is refused.
 *
 * It is parsed in place, line by line, as it arrives: names and values become C strings inside the caller's
 * buffer, which must not move until the request is over. Pure: no sockets, no clock, no memory of its own.
 *
 * Refused with ERR_INVALID: a line that does not end in CRLF, control characters, folded headers, space around a
 * header's name, a version other than 1.0 and 1.1, no Host or two, Content-Length twice or beside Transfer-Encoding,
 * a coding other than "chunked". ERR_HEADERS: too many headers. ERR_LIMIT: a Content-Length beyond all limits.
 */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define HEAD_HEADERS_MAX 64

typedef struct {
    const char *method;
    char       *target;
    int         minor; /* HTTP/1.minor */
    int         header_count;
    struct {
        const char *name, *value;
    } headers[HEAD_HEADERS_MAX];

    int64_t content_length; /* -1: none was given */
    bool    chunked;
    bool    close; /* the client wants the connection closed after the response */
    bool    expects_continue;
    size_t  length; /* of the whole head, once it is done */

    /* The parser's position. */
    size_t   line; /* start of the line that is being read */
    size_t   seen; /* bytes read so far */
    unsigned once; /* headers that may come once and have come */
} Head;

void head_init(Head *head);
/* Read on in bytes[0..size); everything before head->line is done with. Call again with more until *ret_done. */
must_check ErrorCode head_parse(Head *head, char *bytes, size_t size, bool *ret_done, Error *reterr);
const char          *head_header(const Head *head, const char *name); /* any case; NULL: absent */

#endif
