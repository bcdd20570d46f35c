/*
 * chunk.c - sizes, data and the trailer, one step at a time. A step that lacks bytes uses none and is tried again.
 */
#include "http/chunk.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "http/syntax.h"

#define CHUNK_LINE_MAX    256
#define CHUNK_DIGITS_MAX  16
#define TRAILER_BYTES_MAX ((size_t)4 << 10)

/* The length of the line at bytes without its CRLF. *ret_done is false while it is incomplete. */
static ErrorCode chunk_line(const char *bytes, size_t size, size_t *ret_length, bool *ret_done, Error *reterr)
{
    const char *end   = memchr(bytes, '\n', size);
    size_t      stop  = end ? (size_t)(end - bytes) : size;
    bool        is_cr = stop > 0 && bytes[stop - 1] == '\r';

    if (stop > CHUNK_LINE_MAX)
        return fail(reterr, ERR_INVALID, "a line between chunks is longer than %d bytes", CHUNK_LINE_MAX);
    if (end && !is_cr)
        return fail(reterr, ERR_INVALID, "a line between chunks does not end in CRLF");
    *ret_length = is_cr ? stop - 1 : stop;
    *ret_done   = end != NULL;
    for (size_t i = 0; i < *ret_length; i++)
        if (!syntax_is_field((unsigned char)bytes[i]))
            return fail(reterr, ERR_INVALID, "a line between chunks has a control character");
    return OK;
}

/* "1a2b" or "1a2b;extension": extensions are ignored, as RFC 9112, 7.1.1 requires. */
static ErrorCode chunk_size(const char *line, size_t length, bool done, uint64_t *ret_size, Error *reterr)
{
    uint64_t size   = 0;
    size_t   digits = 0;

    while (digits < length && digits <= CHUNK_DIGITS_MAX && text_hex(line[digits]) >= 0)
        size = size << 4 | (unsigned)text_hex(line[digits++]);
    bool is_cut = digits == length && !done; /* the rest of the line is on the way */
    if (digits > CHUNK_DIGITS_MAX || (digits == 0 && !is_cut) || (digits < length && line[digits] != ';'))
        return fail(reterr, ERR_INVALID, "a chunk must begin with its size in hexadecimal digits");
    *ret_size = size;
    return OK;
}

static ErrorCode step_size(Chunks *chunks, const char *bytes, size_t size, const Text *body, size_t *ret_used,
                           Error *reterr)
{
    size_t   length = 0;
    bool     done   = false;
    uint64_t wanted = 0;

    TRY(chunk_line(bytes, size, &length, &done, reterr));
    TRY(chunk_size(bytes, length, done, &wanted, reterr));
    if (!done)
        return OK;
    if (wanted > body->length_max - body->length)
        return fail(reterr, ERR_LIMIT, "the body is larger than %zu bytes", body->length_max);
    chunks->left  = (size_t)wanted;
    chunks->state = wanted > 0 ? CHUNK_DATA : CHUNK_TRAILER;
    *ret_used     = length + 2;
    return OK;
}

static void step_data(Chunks *chunks, const char *bytes, size_t size, Text *body, size_t *ret_used)
{
    size_t now = size < chunks->left ? size : chunks->left;

    text_append_bytes(body, bytes, now);
    chunks->left -= now;
    if (chunks->left == 0)
        chunks->state = CHUNK_DATA_END;
    *ret_used = now;
}

static ErrorCode step_data_end(Chunks *chunks, const char *bytes, size_t size, size_t *ret_used, Error *reterr)
{
    if (bytes[0] != '\r' || (size > 1 && bytes[1] != '\n'))
        return fail(reterr, ERR_INVALID, "a chunk is longer than its size");
    if (size < 2)
        return OK;
    chunks->state = CHUNK_SIZE;
    *ret_used     = 2;
    return OK;
}

static ErrorCode step_trailer(Chunks *chunks, const char *bytes, size_t size, size_t *ret_used, Error *reterr)
{
    size_t length = 0;
    bool   done   = false;

    TRY(chunk_line(bytes, size, &length, &done, reterr));
    if (!done)
        return OK;
    chunks->trailer_bytes += length;
    if (chunks->trailer_bytes > TRAILER_BYTES_MAX)
        return fail(reterr, ERR_HEADERS, "the trailer is larger than %zu bytes", TRAILER_BYTES_MAX);
    size_t name = 0;
    while (name < length && syntax_is_token((unsigned char)bytes[name]))
        name++;
    if (length > 0 && (name == 0 || name == length || bytes[name] != ':'))
        return fail(reterr, ERR_INVALID, "a trailer must be a name, a colon and a value");
    if (length == 0)
        chunks->state = CHUNK_DONE;
    *ret_used = length + 2;
    return OK;
}

ErrorCode chunks_parse(Chunks *chunks, const char *bytes, size_t size, Text *body, size_t *ret_used, Error *reterr)
{
    size_t used = 0;

    for (size_t step = 1; step > 0 && used < size && chunks->state != CHUNK_DONE; used += step) {
        step = 0;
        switch (chunks->state) {
        case CHUNK_SIZE:
            TRY(step_size(chunks, bytes + used, size - used, body, &step, reterr));
            break;
        case CHUNK_DATA:
            step_data(chunks, bytes + used, size - used, body, &step);
            break;
        case CHUNK_DATA_END:
            TRY(step_data_end(chunks, bytes + used, size - used, &step, reterr));
            break;
        case CHUNK_TRAILER:
            TRY(step_trailer(chunks, bytes + used, size - used, &step, reterr));
            break;
        case CHUNK_DONE:
            break;
        }
    }
    *ret_used = used;
    return OK;
}
