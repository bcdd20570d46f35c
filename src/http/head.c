/*
 * head.c - the request line and the headers.
 *
 * Invariants
 *   1. A byte is read a bounded number of times, however the client slices the request.
 *   2. Bad bytes are refused as soon as they are seen, not when the line is complete.
 *   3. When the head is done, exactly one of these holds: no body, content_length >= 0, chunked.
 */
#include "http/head.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "http/syntax.h"

#define METHOD_LENGTH_MAX 16
#define LENGTH_DIGITS_MAX 18 /* always fits 64 bits */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t span(const char *text, bool (*is_wanted)(unsigned char))
{
    size_t length = 0;

    while (is_wanted((unsigned char)text[length]))
        length++;
    return length;
}

/* Find the end of the line at head->line and cut it off. *ret_line stays NULL while the line is incomplete. */
static ErrorCode line_next(Head *head, char *bytes, size_t size, char **ret_line, Error *reterr)
{
    char  *end   = memchr(bytes + head->seen, '\n', size - head->seen);
    size_t stop  = end ? (size_t)(end - bytes) : size;
    bool   is_cr = stop > head->line && bytes[stop - 1] == '\r';

    if (end && !is_cr)
        return fail(reterr, ERR_INVALID, "a line of the request does not end in CRLF");
    if (is_cr)
        stop--; /* its LF may still be on the way */
    for (size_t i = head->seen; i < stop; i++)
        if (!syntax_is_field((unsigned char)bytes[i]))
            return fail(reterr, ERR_INVALID, "the request has a control character at byte %zu", i);
    if (!end) {
        head->seen = stop;
        return OK;
    }
    bytes[stop] = '\0';
    *ret_line   = bytes + head->line;
    head->line = head->seen = stop + 2;
    return OK;
}

static ErrorCode request_line(Head *head, char *line, Error *reterr)
{
    size_t method = span(line, syntax_is_token);

    if (method == 0 || method > METHOD_LENGTH_MAX || line[method] != ' ')
        return fail(reterr, ERR_INVALID, "the request line has no method");
    char  *target = line + method + 1;
    size_t length = span(target, syntax_is_visible);
    if (length == 0 || target[length] != ' ')
        return fail(reterr, ERR_INVALID, "the request line must be a method, a target and a version");
    const char *version = target + length + 1;
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
        return fail(reterr, ERR_INVALID, "the version must be HTTP/1.1 or HTTP/1.0");
    line[method]   = '\0';
    target[length] = '\0';
    head->method   = line;
    head->target   = target;
    head->minor    = version[7] - '0';
    head->close    = head->minor == 0; /* 1.0 clients get one response per connection */
    return OK;
}

static ErrorCode apply_host(Head *head, const char *value, Error *reterr)
{
    (void)head;
    if (span(value, syntax_is_visible) != strlen(value) || strpbrk(value, "/?#@\\"))
        return fail(reterr, ERR_INVALID, "header \"Host\" must be a name and maybe a port");
    return OK;
}

static ErrorCode apply_content_length(Head *head, const char *value, Error *reterr)
{
    size_t digits = strspn(value, "0123456789");

    if (digits == 0 || value[digits] != '\0')
        return fail(reterr, ERR_INVALID, "header \"Content-Length\" must be a number");
    if (digits > LENGTH_DIGITS_MAX)
        return fail(reterr, ERR_LIMIT, "header \"Content-Length\" is over any limit");
    head->content_length = 0;
    for (size_t i = 0; i < digits; i++)
        head->content_length = head->content_length * 10 + (value[i] - '0');
    return OK;
}

static ErrorCode apply_transfer_encoding(Head *head, const char *value, Error *reterr)
{
    if (strcasecmp(value, "chunked") != 0)
        return fail(reterr, ERR_INVALID, "header \"Transfer-Encoding\" must be \"chunked\"");
    head->chunked = true;
    return OK;
}

static ErrorCode apply_connection(Head *head, const char *value, Error *reterr)
{
    static const char close[] = "close";

    (void)reterr;
    while (*value) {
        value += strspn(value, " \t,");
        size_t length = strcspn(value, " \t,");
        if (length == sizeof close - 1 && strncasecmp(value, close, length) == 0)
            head->close = true;
        value += length;
    }
    return OK;
}

static ErrorCode apply_expect(Head *head, const char *value, Error *reterr)
{
    if (strcasecmp(value, "100-continue") != 0)
        return fail(reterr, ERR_INVALID, "header \"Expect\" must be \"100-continue\"");
    head->expects_continue = head->minor > 0;
    return OK;
}

/* Headers that decide how the request is framed, and those of which two would be ambiguous. */
static const struct {
    const char *name;
    bool        many;
    ErrorCode (*apply)(Head *head, const char *value, Error *reterr);
} known[] = {
    {"Host",              false, apply_host             },
    {"Content-Length",    false, apply_content_length   },
    {"Transfer-Encoding", false, apply_transfer_encoding},
    {"Connection",        true,  apply_connection       },
    {"Expect",            false, apply_expect           },
    {"Content-Type",      false, NULL                   },
    {"Authorization",     false, NULL                   },
    {"Idempotency-Key",   false, NULL                   },
    {"X-Request-Id",      false, NULL                   },
};
enum { KNOWN_HOST };

static ErrorCode header_apply(Head *head, const char *name, const char *value, Error *reterr)
{
    for (size_t i = 0; i < COUNT(known); i++) {
        if (strcasecmp(name, known[i].name) != 0)
            continue;
        if (!known[i].many && (head->once & 1u << i))
            return fail(reterr, ERR_INVALID, "header \"%s\" is given twice", known[i].name);
        head->once |= 1u << i;
        return known[i].apply ? known[i].apply(head, value, reterr) : OK;
    }
    return OK;
}

/* Cut "name: value" in two. The line holds no control characters any more. */
static ErrorCode header_cut(char *line, char **ret_value, Error *reterr)
{
    size_t name = span(line, syntax_is_token);

    if (is_blank(line[0]))
        return fail(reterr, ERR_INVALID, "a folded header is not allowed");
    if (name == 0 || line[name] != ':')
        return fail(reterr, ERR_INVALID, "a header must be a name, a colon and a value");
    line[name]   = '\0';
    char  *value = line + name + 1 + strspn(line + name + 1, " \t");
    size_t end   = strlen(value);
    while (end > 0 && is_blank(value[end - 1]))
        value[--end] = '\0';
    if (!text_is_utf8(value, end))
        return fail(reterr, ERR_INVALID, "header \"%.64s\" is not UTF-8", line);
    *ret_value = value;
    return OK;
}

static ErrorCode header_line(Head *head, char *line, Error *reterr)
{
    char *value = NULL;

    TRY(header_cut(line, &value, reterr));
    if (head->header_count == HEAD_HEADERS_MAX)
        return fail(reterr, ERR_HEADERS, "the request has more than %d headers", HEAD_HEADERS_MAX);
    head->headers[head->header_count].name    = line;
    head->headers[head->header_count++].value = value;
    return header_apply(head, line, value, reterr);
}

static ErrorCode head_finish(Head *head, Error *reterr)
{
    head->length = head->line;
    if (head->minor > 0 && !(head->once & 1u << KNOWN_HOST))
        return fail(reterr, ERR_INVALID, "header \"Host\" is missing");
    if (head->chunked && head->content_length >= 0)
        return fail(reterr, ERR_INVALID, "headers \"Content-Length\" and \"Transfer-Encoding\" exclude each other");
    if (head->chunked && head->minor == 0)
        return fail(reterr, ERR_INVALID, "HTTP/1.0 has no \"Transfer-Encoding\"");
    return OK;
}

void head_init(Head *head)
{
    /* The headers themselves are valid up to header_count only; clearing them all would cost more than parsing. */
    head->method         = NULL;
    head->target         = NULL;
    head->minor          = 0;
    head->header_count   = 0;
    head->content_length = -1;
    head->chunked = head->close = head->expects_continue = false;
    head->length = head->line = head->seen = 0;
    head->once                             = 0;
}

ErrorCode head_parse(Head *head, char *bytes, size_t size, bool *ret_done, Error *reterr)
{
    assert(head->line <= head->seen && head->seen <= size);
    *ret_done = false;
    for (;;) {
        char *line = NULL;

        TRY(line_next(head, bytes, size, &line, reterr));
        if (!line)
            return OK;
        if (!head->method) {
            if (line == bytes && *line == '\0')
                continue; /* one empty line may come first: RFC 9112, 2.2 */
            TRY(request_line(head, line, reterr));
        } else if (*line != '\0') {
            TRY(header_line(head, line, reterr));
        } else {
            *ret_done = true;
            return head_finish(head, reterr);
        }
    }
}

const char *head_header(const Head *head, const char *name)
{
    for (int i = 0; i < head->header_count; i++)
        if (strcasecmp(head->headers[i].name, name) == 0)
            return head->headers[i].value;
    return NULL;
}
