/*
 * chunk.h - the body of a request that comes in chunks. Pure, like head.h, and as strict.
 *
 * Refused with ERR_INVALID: a size that is not 1 to 16 hexadecimal digits, data longer than its size, lines that do
 * not end in CRLF. ERR_LIMIT: the body is too large. ERR_HEADERS: the trailer is. Extensions and trailers are
 * ignored.
 */
#ifndef HTTP_CHUNK_H
#define HTTP_CHUNK_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

typedef enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_DATA_END, CHUNK_TRAILER, CHUNK_DONE } ChunkState;
typedef struct {
    ChunkState state;
    size_t     left;          /* of this chunk's data */
    size_t     trailer_bytes; /* read and discarded */
} Chunks;

/* Decode into body, whose length_max is the limit. *ret_used bytes are done with; the rest comes again with more. */
must_check ErrorCode chunks_parse(Chunks *chunks, const char *bytes, size_t size, Text *body, size_t *ret_used,
                                  Error *reterr);

#endif
