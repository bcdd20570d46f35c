/*
 * png.c - see png.h.
 */
#include "rating/png.h"

#include <string.h>
#include <zlib.h>

#define LEVEL        1
#define CHUNK_BYTES  65536
#define ROW_PIXELS   4096
#define COLOUR_TYPE  2 /* red, green, blue */
#define FILTER_NONE  0
#define HEADER_BYTES 13

static void number_write(unsigned char *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* Length, type, data, and the checksum of the last two. */
static void chunk_write(Text *text, const char *type, const unsigned char *data, size_t size)
{
    unsigned char number[4];
    uLong         sum = crc32(crc32(0, (const Bytef *)type, 4), data, (uInt)size);

    number_write(number, (uint32_t)size);
    text_append_bytes(text, number, sizeof number);
    text_append_bytes(text, type, 4);
    text_append_bytes(text, data, size);
    number_write(number, (uint32_t)sum);
    text_append_bytes(text, number, sizeof number);
}

static void header_write(Text *text, int width, int height)
{
    unsigned char header[HEADER_BYTES] = {[8] = 8, [9] = COLOUR_TYPE};

    number_write(header, (uint32_t)width);
    number_write(header + 4, (uint32_t)height);
    text_append_bytes(text, "\x89PNG\r\n\x1a\n", 8);
    chunk_write(text, "IHDR", header, sizeof header);
}

static size_t row_fill(unsigned char *row, const unsigned char *pixels, int width)
{
    unsigned char *out = row;

    *out++ = FILTER_NONE;
    for (int x = 0; x < width; x++) {
        uint32_t pixel;

        memcpy(&pixel, pixels + 4 * (size_t)x, sizeof pixel);
        *out++ = (unsigned char)(pixel >> 16);
        *out++ = (unsigned char)(pixel >> 8);
        *out++ = (unsigned char)pixel;
    }
    return (size_t)(out - row);
}

/* Compress what the stream has; a chunk is written when the buffer is full, and at the end. */
static void stream_run(z_stream *stream, int flush, unsigned char *buffer, Text *text)
{
    int code;

    do {
        code = deflate(stream, flush);
        if (stream->avail_out == 0 || code == Z_STREAM_END) {
            chunk_write(text, "IDAT", buffer, CHUNK_BYTES - stream->avail_out);
            stream->next_out  = buffer;
            stream->avail_out = CHUNK_BYTES;
        }
    } while (stream->avail_in > 0 || (flush == Z_FINISH && code == Z_OK));
}

ErrorCode png_write(const unsigned char *pixels, int width, int height, int stride, Text *text, Error *reterr)
{
    unsigned char row[1 + 3 * ROW_PIXELS];
    unsigned char buffer[CHUNK_BYTES];
    z_stream      stream = {.next_out = buffer, .avail_out = sizeof buffer};

    if (width < 1 || width > ROW_PIXELS || height < 1)
        return fail(reterr, ERR_INVALID, "a picture is 1 to %d pixels wide, got %d", ROW_PIXELS, width);
    if (deflateInit(&stream, LEVEL) != Z_OK)
        return fail(reterr, ERR_INTERNAL, "the picture cannot be compressed");
    header_write(text, width, height);
    for (int y = 0; y < height; y++) {
        stream.next_in  = row;
        stream.avail_in = (uInt)row_fill(row, pixels + (size_t)y * (size_t)stride, width);
        stream_run(&stream, y + 1 < height ? Z_NO_FLUSH : Z_FINISH, buffer, text);
    }
    deflateEnd(&stream);
    chunk_write(text, "IEND", (const unsigned char *)"", 0);
    return text_is_full(text) ? fail(reterr, ERR_LIMIT, "the picture does not fit") : OK;
}
