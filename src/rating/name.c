/*
 * name.c - see name.h.
 */
#include "rating/name.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

#define NAME_BYTES  4096     /* far more than a messenger allows */
#define WORD_JOINER "\u2060" /* invisible; a link, a mention or a command does not continue behind it */

typedef struct {
    uint32_t first, last;
} Range;

/* Invisible characters, and those that change the direction of text. */
static const Range hidden[] = {
    {0x01,    0x1f   },
    {0x7f,    0x9f   },
    {0xad,    0xad   },
    {0x34f,   0x34f  },
    {0x61c,   0x61c  },
    {0x115f,  0x1160 },
    {0x17b4,  0x17b5 },
    {0x180b,  0x180f },
    {0x200b,  0x200c },
    {0x200e,  0x200f },
    {0x202a,  0x202e },
    {0x2060,  0x206f },
    {0x2800,  0x2800 },
    {0x3164,  0x3164 },
    {0xfeff,  0xfeff },
    {0xffa0,  0xffa0 },
    {0xfff0,  0xfffb },
    {0xe0000, 0xe007f},
};
static const Range blanks[] = {
    {0x09,   0x0d  },
    {0x20,   0x20  },
    {0x85,   0x85  },
    {0xa0,   0xa0  },
    {0x1680, 0x1680},
    {0x2000, 0x200a},
    {0x2028, 0x2029},
    {0x202f, 0x202f},
    {0x205f, 0x205f},
    {0x3000, 0x3000},
};
/* Zero width joiner and variation selectors: emoji and some scripts need them, letters before U+0600 do not. */
static const Range joining[] = {
    {0x200d, 0x200d},
    {0xfe00, 0xfe0f},
};
#define LETTERS_END 0x600

static bool is_in(const Range *ranges, size_t count, uint32_t c)
{
    for (size_t i = 0; i < count; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}
#define IS(ranges, c) is_in((ranges), sizeof(ranges) / sizeof *(ranges), (c))

/* Reads one character of UTF-8 and returns its length. A broken one ends before the byte that does not continue it. */
static size_t char_read(const char *text, uint32_t *ret_char)
{
    const unsigned char *bytes  = (const unsigned char *)text;
    size_t               length = bytes[0] < 0x80 ? 1 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;

    *ret_char = length == 1 ? bytes[0] : bytes[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return i;
        *ret_char = *ret_char << 6 | (bytes[i] & 0x3fu);
    }
    return length;
}

static const char *name_text(Arena *arena, const char *name, bool is_inert)
{
    Text     text;
    uint32_t c, before = 0; /* the last character that was kept */
    bool     is_spaced = false;

    text_init(&text, arena, NAME_BYTES);
    for (size_t length; name && *name; name += length) {
        length = char_read(name, &c);
        if (IS(blanks, c)) {
            is_spaced = true;
            continue;
        }
        if (IS(hidden, c) || (IS(joining, c) && (is_spaced || before < LETTERS_END)))
            continue;
        if (is_spaced && before)
            text_append_char(&text, ' ');
        is_spaced = false;
        before    = c;
        text_append_bytes(&text, name, length);
        if (is_inert && c < 0x80 && strchr("@/.:#$", (int)c))
            text_append(&text, WORD_JOINER);
    }
    return text_string(&text);
}

const char *name_clean(Arena *arena, const char *name)
{
    return name_text(arena, name, false);
}

const char *name_inert(Arena *arena, const char *name)
{
    return name_text(arena, name, true);
}
