/*
 * text.c - the growing string, UTF-8, and edit distance.
 */
#include "base/text.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACE_MIN          ((size_t)64)
#define NEAREST_SIZE_MAX   64 /* longer words are not typing mistakes */
#define BEGINNING_SIZE_MIN 3

static char *space_move(Text *text, size_t capacity)
{
    if (!text->arena) {
        char *bytes = realloc(text->bytes, capacity);
        if (!bytes)
            abort();
        return bytes;
    }
    if (!arena_has_space(text->arena, capacity))
        return NULL;
    char *bytes = arena_alloc(text->arena, capacity);
    if (text->length > 0)
        memcpy(bytes, text->bytes, text->length + 1);
    return bytes;
}

/* Make space for size more bytes and their NUL; false: they do not fit, and the text is full. */
static bool space_make(Text *text, size_t size)
{
    if (text->full || size > text->length_max - text->length) {
        text->full = true;
        return false;
    }
    size_t needed = text->length + size + 1;
    if (needed <= text->capacity)
        return true;

    size_t capacity = text->capacity * 2; /* doubling keeps a long text linear */
    if (capacity < SPACE_MIN)
        capacity = SPACE_MIN;
    if (capacity > text->length_max + 1)
        capacity = text->length_max + 1;
    if (capacity < needed)
        capacity = needed;
    char *bytes = space_move(text, capacity);
    if (!bytes) {
        text->full = true;
        return false;
    }
    text->bytes    = bytes;
    text->capacity = capacity;
    return true;
}

void text_init(Text *text, Arena *arena, size_t length_max)
{
    assert(length_max < SIZE_MAX / 2);
    *text = (Text){.length_max = length_max, .arena = arena};
}

void text_done(Text *text)
{
    if (!text->arena)
        free(text->bytes);
    text_init(text, text->arena, text->length_max);
}

void text_clear(Text *text)
{
    text_shorten(text, 0);
}

void text_shorten(Text *text, size_t length)
{
    text->length = length;
    text->full   = false;
    if (text->bytes)
        text->bytes[length] = '\0';
}

void text_reserve(Text *text, size_t size)
{
    if (size <= text->length_max - text->length)
        (void)space_make(text, size);
}

void text_append(Text *text, const char *string)
{
    text_append_bytes(text, string, strlen(string));
}

void text_append_bytes(Text *text, const void *bytes, size_t size)
{
    if (!space_make(text, size))
        return;
    if (size > 0)
        memcpy(text->bytes + text->length, bytes, size);
    text->length += size;
    text->bytes[text->length] = '\0';
}

void text_append_char(Text *text, char c)
{
    text_append_bytes(text, &c, 1);
}

void text_print(Text *text, const char *format, ...)
{
    va_list values;

    if (!space_make(text, 0))
        return;
    /* Most prints fit into the space that is left; the others are printed a second time. */
    size_t left = text->capacity - text->length;
    va_start(values, format);
    int size = vsnprintf(text->bytes + text->length, left, format, values);
    va_end(values);
    assert(size >= 0);
    if ((size_t)size >= left) {
        text->bytes[text->length] = '\0';
        if (!space_make(text, (size_t)size))
            return;
        va_start(values, format);
        vsnprintf(text->bytes + text->length, (size_t)size + 1, format, values);
        va_end(values);
    }
    text->length += (size_t)size;
}

const char *text_string(const Text *text)
{
    return text->bytes ? text->bytes : "";
}

bool text_is_full(const Text *text)
{
    return text->full;
}

/* How many bytes at the start are ASCII without NUL, in steps of eight: the common case costs little. */
static size_t ascii_run(const unsigned char *bytes, size_t size)
{
    const uint64_t ones = 0x0101010101010101ULL, tops = 0x8080808080808080ULL;
    size_t         run = 0;
    uint64_t       word;

    for (; size - run >= sizeof word; run += sizeof word) {
        memcpy(&word, bytes + run, sizeof word);
        /* Subtracting one sets the top bit of a zero byte; a byte above 0x7f has it anyway. */
        if ((word | (word - ones)) & tops)
            break;
    }
    return run;
}

static bool is_tail(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* The length of the well-formed character at the start, 0: there is none. Unicode 15, table 3-7. */
static size_t character_size(const unsigned char *b, size_t size)
{
    if (b[0] == 0)
        return 0;
    if (b[0] < 0x80)
        return 1;
    if (b[0] >= 0xC2 && b[0] <= 0xDF) /* C0 and C1 would be overlong */
        return size >= 2 && is_tail(b[1]) ? 2 : 0;
    if (b[0] >= 0xE0 && b[0] <= 0xEF) {
        if (size < 3 || !is_tail(b[1]) || !is_tail(b[2]))
            return 0;
        bool overlong = b[0] == 0xE0 && b[1] < 0xA0, surrogate = b[0] == 0xED && b[1] > 0x9F;
        return overlong || surrogate ? 0 : 3;
    }
    if (b[0] >= 0xF0 && b[0] <= 0xF4) {
        if (size < 4 || !is_tail(b[1]) || !is_tail(b[2]) || !is_tail(b[3]))
            return 0;
        bool overlong = b[0] == 0xF0 && b[1] < 0x90, too_large = b[0] == 0xF4 && b[1] > 0x8F;
        return overlong || too_large ? 0 : 4;
    }
    return 0;
}

bool text_is_utf8(const char *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes, *end = at + size;

    while (at < end) {
        at += ascii_run(at, (size_t)(end - at));
        if (at == end)
            break;
        size_t step = character_size(at, (size_t)(end - at));
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

void text_clean(char *bytes, size_t size)
{
    for (size_t at = 0, step; at < size; at += step) {
        step = character_size((const unsigned char *)bytes + at, size - at);
        if (step == 0) {
            bytes[at] = '?';
            step      = 1;
        }
    }
}

uint32_t text_obeyed(const char *character, size_t size)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t                   c       = (unsigned char)character[0] & masks[size];

    for (size_t i = 1; i < size; i++)
        c = c << 6 | ((unsigned char)character[i] & 0x3f);
    bool is_control = c < ' ' ? c != '\n' && c != '\t' : c >= 0x7f && c < 0xa0;
    bool turns =
        c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);

    return is_control || turns ? c : 0;
}

void text_append_shown(Text *text, const char *utf8)
{
    for (size_t size; *utf8; utf8 += size) {
        size            = text_character_size(*utf8);
        uint32_t obeyed = text_obeyed(utf8, size);

        if (obeyed)
            text_print(text, "\\u%04x", obeyed);
        else
            text_append_bytes(text, utf8, size);
    }
}

size_t text_cut(const char *bytes, size_t size, size_t size_max)
{
    if (size <= size_max)
        return size;
    size_t cut = size_max;
    /* At most three tail bytes belong to a character; more are not UTF-8 and may be cut anywhere. */
    while (cut > 0 && size_max - cut < 3 && is_tail((unsigned char)bytes[cut]))
        cut--;
    return is_tail((unsigned char)bytes[cut]) ? size_max : cut;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t min = a < b ? a : b;

    return min < c ? min : c;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Insertions, deletions, replacements and swapped neighbours that turn a into b, whatever the case. */
static size_t edit_distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t  rows[3][NEAREST_SIZE_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b_size; j++)
        before[j] = above[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            row[j]       = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + !same_letter(a[i - 1], b[j - 1]));
            bool swapped = i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]);
            if (swapped && before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        size_t *free_row = before;
        before           = above;
        above            = row;
        row              = free_row;
    }
    return above[b_size];
}

/* The only word that begins with this one; NULL: none or several do. */
static const char *only_longer(const char *word, size_t size, const char *const *words, size_t count)
{
    const char *found = NULL;

    for (size_t i = 0; i < count; i++)
        if (size >= BEGINNING_SIZE_MIN && strncmp(word, words[i], size) == 0) {
            if (found)
                return NULL;
            found = words[i];
        }
    return found;
}

const char *text_nearest(const char *word, const char *const *words, size_t count)
{
    size_t      size    = strlen(word);
    size_t      nearest = size / 3 > 1 ? size / 3 : 1;
    const char *found   = NULL;

    if (size == 0 || size > NEAREST_SIZE_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t candidate_size = strlen(words[i]);
        if (candidate_size == 0 || candidate_size > NEAREST_SIZE_MAX)
            continue;
        size_t distance = edit_distance(word, size, words[i], candidate_size);
        if (distance < nearest || (distance == nearest && !found)) {
            nearest = distance;
            found   = words[i];
        }
    }
    return found ? found : only_longer(word, size, words, count);
}
