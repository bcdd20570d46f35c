/*
 * visible.c - see visible.h.
 */
#include "cli/visible.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define CHARACTER_BYTES_MAX 4
#define CHUNK_BYTES         1024

typedef struct {
    bool   json;
    char   begun[CHARACTER_BYTES_MAX]; /* a character whose other bytes are still to come */
    size_t begun_size;
} Filter;

typedef struct {
    int    file;
    bool   is_raw;
    Filter filter;
} Stream;

static Stream standard_output = {.file = STDOUT_FILENO}, standard_error = {.file = STDERR_FILENO};

/* ---- characters ---- */

static void escape(const Filter *filter, uint32_t character, Text *text)
{
    text_print(text, filter->json || character > 0xff ? "\\u%04x" : "\\x%02x", character);
}

/* The first bytes of what has begun are written, and the others move up. */
static void begun_shift(Filter *filter, size_t size)
{
    filter->begun_size -= size;
    memmove(filter->begun, filter->begun + size, filter->begun_size);
}

static bool begun_is_whole(const Filter *filter, size_t size)
{
    return filter->begun_size >= size && filter->begun[0] != '\0' && text_is_utf8(filter->begun, size);
}

/* Can it still become a character? Then only bytes that continue one follow its first. */
static bool begun_is_open(const Filter *filter, size_t size)
{
    for (size_t i = 1; i < filter->begun_size; i++)
        if (((unsigned char)filter->begun[i] & 0xc0) != 0x80)
            return false;
    return filter->begun_size < size;
}

/* Of what has begun, all that is known now; with is_end also what misses its end. */
static void begun_show(Filter *filter, bool is_end, Text *text)
{
    while (filter->begun_size > 0) {
        size_t   size = text_character_size(filter->begun[0]);
        uint32_t character;

        if (begun_is_whole(filter, size)) {
            character = text_obeyed(filter->begun, size);
            if (character)
                escape(filter, character, text);
            else
                text_append_bytes(text, filter->begun, size);
            begun_shift(filter, size);
            continue;
        }
        if (!is_end && begun_is_open(filter, size))
            return;
        escape(filter, (unsigned char)filter->begun[0], text);
        begun_shift(filter, 1);
    }
}

static void bytes_show(Filter *filter, const char *bytes, size_t size, Text *text)
{
    for (size_t i = 0; i < size; i++) {
        filter->begun[filter->begun_size++] = bytes[i];
        begun_show(filter, /* is_end= */ false, text);
    }
}

const char *visible_text(Arena *arena, const char *text)
{
    Filter filter = {.json = false};
    Text   shown;

    text_init(&shown, arena, TEXT_MAX_BODY);
    bytes_show(&filter, text, strlen(text), &shown);
    begun_show(&filter, /* is_end= */ true, &shown);
    return text_string(&shown);
}

/* ---- streams ---- */

static bool bytes_write(int file, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(file, bytes, size);

        if (written < 0)
            return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

/* 0 is an error, with errno. */
static ssize_t stream_write(void *context, const char *bytes, size_t size)
{
    scoped_text Text text   = {0};
    Stream          *stream = context;

    if (stream->is_raw)
        return bytes_write(stream->file, bytes, size) ? (ssize_t)size : 0;
    text_init(&text, NULL, TEXT_MAX_BODY);
    for (size_t at = 0, part; at < size; at += part) {
        part = size - at < CHUNK_BYTES ? size - at : CHUNK_BYTES;
        text_clear(&text);
        bytes_show(&stream->filter, bytes + at, part, &text);
        if (!bytes_write(stream->file, text_string(&text), text.length))
            return 0;
    }
    return (ssize_t)size;
}

/* Without memory the stream stays as it was. */
static void stream_open(Stream *stream, FILE **file, bool json, int buffering)
{
    FILE *filtered = fopencookie(stream, "w", (cookie_io_functions_t){.write = stream_write});

    if (!filtered)
        return;
    stream->filter.json = json;
    (void)setvbuf(filtered, NULL, buffering, BUFSIZ);
    *file = filtered;
}

void visible_begin(bool json)
{
    stream_open(&standard_output, &stdout, json, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
    stream_open(&standard_error, &stderr, json, _IONBF);
    if (json)
        visible_data();
}

void visible_data(void)
{
    (void)fflush(stdout); /* an error stays in the stream, for the end of the program */
    standard_output.is_raw = !isatty(STDOUT_FILENO);
}
