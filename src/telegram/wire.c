/*
 * wire.c - see wire.h.
 */
#include "telegram/wire.h"

#include "base/scan.h"

const char *wire_open(const char *json)
{
    return scan_space(json);
}

/* Keys of the Bot API have no escapes: one that is written with them is another name. */
static bool key_is(const char *key, const char *name)
{
    for (key++; *name && *key == *name; name++)
        key++;
    return !*name && *key == '"';
}

const char *wire_member(const char *object, const char *name)
{
    if (!object || *object != '{')
        return NULL;
    for (const char *at = object + 1; scan_next(&at);) {
        const char *value = scan_member_value(at);

        if (key_is(at, name))
            return *value == 'n' ? NULL : value;
        at = scan_value_end(value);
    }
    return NULL;
}

bool wire_next(const char *array, const char **item)
{
    if (!array || *array != '[')
        return false;
    const char *at = *item ? scan_value_end(*item) : array + 1;

    if (!scan_next(&at))
        return false;
    *item = at;
    return true;
}

/* Not by strtoll(), which may read on to a NUL that the text need not have. */
int64_t wire_i64(const char *value)
{
    bool     is_negative = value && *value == '-';
    uint64_t number = 0, most = (uint64_t)INT64_MAX + is_negative;

    if (!value)
        return 0;
    value += is_negative;
    if (*value < '0' || *value > '9')
        return 0;
    for (; *value >= '0' && *value <= '9'; value++) {
        uint64_t digit = (uint64_t)(*value - '0');

        if (number > (most - digit) / 10)
            return 0;
        number = number * 10 + digit;
    }
    if (*value == '.' || *value == 'e' || *value == 'E')
        return 0;
    return is_negative ? (int64_t)-number : (int64_t)number;
}

bool wire_true(const char *value)
{
    return value && *value == 't';
}

const char *wire_text(const char *value, Arena *arena)
{
    if (!value || *value != '"')
        return NULL;
    char *text = arena_alloc(arena, (size_t)(scan_value_end(value) - value));

    text[scan_string(value, text)] = '\0';
    return text;
}

const char *wire_raw(const char *value, Arena *arena)
{
    return value ? arena_bytes(arena, value, (size_t)(scan_value_end(value) - value)) : NULL;
}
