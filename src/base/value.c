/*
 * value.c - see value.h. The walk trusts the bytes, as base/scan.h says; only a value at the top may end without a byte
 * behind it, and its end is the slice's.
 */
#include "base/value.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/scan.h"

#define EXPONENT_MAX ((int64_t)1 << 60) /* larger ones compare like this one */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

Value value_trim(const char *bytes, size_t size)
{
    while (size > 0 && is_space(bytes[0])) {
        bytes++;
        size--;
    }
    while (size > 0 && is_space(bytes[size - 1]))
        size--;
    return (Value){bytes, size};
}

ValueKind value_kind(Value value)
{
    if (value.size == 0)
        return VALUE_MISSING;
    switch (value.bytes[0]) {
    case 'n':
        return VALUE_NULL;
    case 'f':
        return VALUE_FALSE;
    case 't':
        return VALUE_TRUE;
    case '"':
        return VALUE_STRING;
    case '[':
        return VALUE_ARRAY;
    case '{':
        return VALUE_OBJECT;
    default:
        return VALUE_NUMBER;
    }
}

const char *value_kind_name(ValueKind kind)
{
    static const char *const names[] = {
        [VALUE_MISSING] = "nothing", [VALUE_NULL] = "null",        [VALUE_FALSE] = "false",
        [VALUE_TRUE] = "true",       [VALUE_NUMBER] = "a number",  [VALUE_STRING] = "a string",
        [VALUE_ARRAY] = "an array",  [VALUE_OBJECT] = "an object",
    };

    return names[kind];
}

/* ---- parts ---- */

Value value_slice(const char *value)
{
    return (Value){value, (size_t)(scan_value_end(value) - value)};
}

/* A string without its quotes, escapes left as they are. */
static Value inner(Value string)
{
    return (Value){string.bytes + 1, string.size - 2};
}

static bool has_escape(Value string)
{
    return memchr(string.bytes, '\\', string.size) != NULL;
}

/* The caller frees the bytes. */
static char *decode(Value string, size_t *ret_size)
{
    char *bytes = memory_new(string.size, 1);

    *ret_size = scan_string(string.bytes, bytes);
    return bytes;
}

static bool key_is(Value key, const char *name, size_t size)
{
    size_t decoded_size;

    if (!has_escape(key))
        return key.size - 2 == size && memcmp(key.bytes + 1, name, size) == 0;
    char *decoded = decode(key, &decoded_size);
    bool  is_same = decoded_size == size && memcmp(decoded, name, size) == 0;
    free(decoded);
    return is_same;
}

Value value_member(Value object, const char *name, size_t size)
{
    if (value_kind(object) != VALUE_OBJECT)
        return (Value){0};
    const char *at = object.bytes + 1;
    while (scan_next(&at)) {
        Value key = value_slice(at), value = value_slice(scan_member_value(at));

        if (key_is(key, name, size))
            return value;
        at = value.bytes + value.size;
    }
    return (Value){0};
}

Value value_field(Value object, const char *name)
{
    Value value = value_member(object, name, strlen(name));

    if (value_kind(value) == VALUE_NULL)
        return (Value){0};
    return value;
}

Value value_item(Value array, int64_t index)
{
    if (value_kind(array) != VALUE_ARRAY)
        return (Value){0};
    const char *at = array.bytes + 1;
    for (; scan_next(&at); at = scan_value_end(at))
        if (index-- == 0)
            return value_slice(at);
    return (Value){0};
}

bool value_item_next(Value array, const char **at, Value *ret_item)
{
    if (value_kind(array) != VALUE_ARRAY)
        return false;
    *at = *at ? scan_value_end(*at) : array.bytes + 1;
    if (!scan_next(at))
        return false;
    *ret_item = value_slice(*at);
    return true;
}

int64_t value_item_count(Value array)
{
    const char *at    = NULL;
    int64_t     count = 0;
    Value       item;

    while (value_item_next(array, &at, &item))
        count++;
    return count;
}

/* ---- printing ---- */

void value_print(Value value, Text *text)
{
    if (value_kind(value) != VALUE_STRING) {
        text_append_bytes(text, value.bytes, value.size);
        return;
    }
    if (!has_escape(value)) {
        text_append_bytes(text, value.bytes + 1, value.size - 2);
        return;
    }
    size_t size;
    char  *decoded = decode(value, &size);
    text_append_bytes(text, decoded, size);
    free(decoded);
}

void value_print_escaped(Value value, Text *text)
{
    if (value_kind(value) == VALUE_STRING)
        text_append_bytes(text, inner(value).bytes, inner(value).size);
    else
        value_escape(value.bytes, value.size, text);
}

void value_escape(const char *bytes, size_t size, Text *text)
{
    size_t done = 0;

    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        text_append_bytes(text, bytes + done, i - done);
        if (c < 0x20)
            text_print(text, "\\u%04x", c);
        else
            text_print(text, "\\%c", c);
        done = i + 1;
    }
    text_append_bytes(text, bytes + done, size - done);
}

/* ---- decoding ---- */

Value value_decode(Value string, Arena *arena)
{
    if (!has_escape(string))
        return inner(string);
    char *bytes = arena_alloc(arena, string.size);
    return (Value){bytes, scan_string(string.bytes, bytes)};
}

/* Not by strtoll(), which may read on to a NUL that the text need not have. */
int64_t value_i64(Value value)
{
    bool     is_negative = value.size > 0 && value.bytes[0] == '-';
    uint64_t number = 0, most = (uint64_t)INT64_MAX + is_negative;

    for (size_t i = is_negative; i < value.size; i++) {
        uint64_t digit = (uint64_t)(value.bytes[i] - '0');

        if (digit > 9 || number > (most - digit) / 10)
            return 0;
        number = number * 10 + digit;
    }
    return is_negative ? (int64_t)-number : (int64_t)number;
}

bool value_true(Value value)
{
    return value_kind(value) == VALUE_TRUE;
}

const char *value_text(Value value, Arena *arena)
{
    if (value_kind(value) != VALUE_STRING)
        return NULL;
    if (!has_escape(value))
        return value_raw(inner(value), arena);
    char *text                           = arena_alloc(arena, value.size);
    text[scan_string(value.bytes, text)] = '\0';
    return text;
}

const char *value_raw(Value value, Arena *arena)
{
    return value.bytes ? arena_bytes(arena, value.bytes, value.size) : NULL;
}

/* Of the character that is written by these four digits. */
static size_t utf8_size(const char *hex)
{
    if (hex[0] != '0' || hex[1] >= '8')
        return 3;
    return hex[1] == '0' && hex[2] < '8' ? 1 : 2;
}

ValueCursor value_cursor(Value string)
{
    return (ValueCursor){string.bytes + 1, 0};
}

const char *value_cursor_move(ValueCursor *cursor, size_t offset)
{
    while (cursor->offset < offset) {
        if (cursor->raw[0] != '\\') {
            cursor->raw++;
            cursor->offset++;
        } else if (cursor->raw[1] != 'u') {
            cursor->raw += 2;
            cursor->offset++;
        } else if (cursor->raw[2] == 'd' || cursor->raw[2] == 'D') {
            bool is_pair = strchr("89abAB", cursor->raw[3]) != NULL;

            cursor->raw += is_pair ? 12 : 6;
            cursor->offset += is_pair ? 4 : 3;
        } else {
            cursor->offset += utf8_size(cursor->raw + 2);
            cursor->raw += 6;
        }
    }
    return cursor->raw;
}

/* ---- comparing ---- */

/* 0.digits times ten to the power of point; digits without zeros at the start, none: zero. */
typedef struct {
    bool    is_negative;
    Value   whole, fraction;
    int64_t point;
} Decimal;

static size_t digits_count(const char *at, const char *end)
{
    size_t count = 0;

    while (at + count < end && at[count] >= '0' && at[count] <= '9')
        count++;
    return count;
}

static int64_t exponent_read(const char *at, const char *end)
{
    bool    is_negative = at < end && *at == '-';
    int64_t exponent    = 0;

    if (at < end && (*at == '-' || *at == '+'))
        at++;
    for (; at < end; at++)
        exponent = exponent > EXPONENT_MAX / 10 - 1 ? EXPONENT_MAX : exponent * 10 + (*at - '0');
    return is_negative ? -exponent : exponent;
}

static size_t zeros_strip(Value *digits)
{
    size_t count = 0;

    while (count < digits->size && digits->bytes[count] == '0')
        count++;
    *digits = (Value){digits->bytes + count, digits->size - count};
    return count;
}

static Decimal decimal_read(Value number)
{
    const char *at = number.bytes, *end = at + number.size;
    Decimal     decimal = {.is_negative = *at == '-'};

    at += decimal.is_negative;
    decimal.whole = (Value){at, digits_count(at, end)};
    at += decimal.whole.size;
    if (at < end && *at == '.') {
        decimal.fraction = (Value){at + 1, digits_count(at + 1, end)};
        at += 1 + decimal.fraction.size;
    }
    (void)zeros_strip(&decimal.whole);
    decimal.point = (int64_t)decimal.whole.size;
    if (decimal.whole.size == 0)
        decimal.point = -(int64_t)zeros_strip(&decimal.fraction);
    if (at < end) /* e or E */
        decimal.point += exponent_read(at + 1, end);
    return decimal;
}

static bool decimal_is_zero(const Decimal *decimal)
{
    return decimal->whole.size == 0 && decimal->fraction.size == 0;
}

static char decimal_digit(const Decimal *decimal, size_t index)
{
    if (index < decimal->whole.size)
        return decimal->whole.bytes[index];
    index -= decimal->whole.size;
    return index < decimal->fraction.size ? decimal->fraction.bytes[index] : '0';
}

static int magnitude_compare(const Decimal *a, const Decimal *b)
{
    size_t a_size = a->whole.size + a->fraction.size, b_size = b->whole.size + b->fraction.size;

    if (a->point != b->point)
        return a->point < b->point ? -1 : 1;
    for (size_t i = 0; i < a_size || i < b_size; i++)
        if (decimal_digit(a, i) != decimal_digit(b, i))
            return decimal_digit(a, i) - decimal_digit(b, i);
    return 0;
}

int value_compare_numbers(Value left, Value right)
{
    Decimal a = decimal_read(left), b = decimal_read(right);

    if (decimal_is_zero(&a) && decimal_is_zero(&b))
        return 0;
    if (decimal_is_zero(&a))
        return b.is_negative ? 1 : -1;
    if (decimal_is_zero(&b))
        return a.is_negative ? -1 : 1;
    if (a.is_negative != b.is_negative)
        return a.is_negative ? -1 : 1;
    return a.is_negative ? magnitude_compare(&b, &a) : magnitude_compare(&a, &b);
}

static int bytes_compare(Value a, Value b)
{
    int order = memcmp(a.bytes, b.bytes, a.size < b.size ? a.size : b.size);

    return order ? order : (a.size > b.size) - (a.size < b.size);
}

int value_compare_strings(Value a, Value b)
{
    if (!has_escape(a) && !has_escape(b))
        return bytes_compare(inner(a), inner(b));
    Value a_text, b_text;
    char *a_bytes = decode(a, &a_text.size), *b_bytes = decode(b, &b_text.size);
    a_text.bytes = a_bytes;
    b_text.bytes = b_bytes;
    int order    = bytes_compare(a_text, b_text);
    free(a_bytes);
    free(b_bytes);
    return order;
}

/* ---- a hash ---- */

/* Equal numbers have the same digits and the same point. */
static void number_hash(crypto_generichash_state *state, Value number)
{
    Decimal decimal = decimal_read(number);
    size_t  count   = decimal.whole.size + decimal.fraction.size;
    char    head[sizeof "-9223372036854775808."];

    while (count > 0 && decimal_digit(&decimal, count - 1) == '0')
        count--;
    if (count == 0)
        return;
    int size = snprintf(head, sizeof head, "%s%lld.", decimal.is_negative ? "-" : "", (long long)decimal.point);
    crypto_generichash_update(state, (const unsigned char *)head, (size_t)size);
    size_t whole = count < decimal.whole.size ? count : decimal.whole.size;
    crypto_generichash_update(state, (const unsigned char *)decimal.whole.bytes, whole);
    crypto_generichash_update(state, (const unsigned char *)decimal.fraction.bytes, count - whole);
}

static void string_hash(crypto_generichash_state *state, Value string)
{
    Value text  = inner(string);
    char *bytes = NULL;

    if (has_escape(string)) {
        bytes      = decode(string, &text.size);
        text.bytes = bytes;
    }
    crypto_generichash_update(state, (const unsigned char *)text.bytes, text.size);
    free(bytes);
}

static void items_hash(crypto_generichash_state *state, Value array)
{
    unsigned char hash[VALUE_HASH_BYTES];
    const char   *at = NULL;
    Value         item;

    while (value_item_next(array, &at, &item)) {
        value_hash(item, hash);
        crypto_generichash_update(state, hash, sizeof hash);
    }
}

/* The sum of what its members hash to, so that their order does not count. */
static void members_hash(crypto_generichash_state *state, Value object)
{
    uint64_t sum[VALUE_HASH_BYTES / sizeof(uint64_t)] = {0}, parts[COUNT(sum)];

    for (const char *at = object.bytes + 1; scan_next(&at);) {
        Value                    value = value_slice(scan_member_value(at));
        crypto_generichash_state member;

        crypto_generichash_init(&member, NULL, 0, VALUE_HASH_BYTES);
        value_hash(value_slice(at), (unsigned char *)parts);
        crypto_generichash_update(&member, (const unsigned char *)parts, sizeof parts);
        value_hash(value, (unsigned char *)parts);
        crypto_generichash_update(&member, (const unsigned char *)parts, sizeof parts);
        crypto_generichash_final(&member, (unsigned char *)parts, sizeof parts);
        for (size_t i = 0; i < COUNT(sum); i++)
            sum[i] += parts[i];
        at = value.bytes + value.size;
    }
    crypto_generichash_update(state, (const unsigned char *)sum, sizeof sum);
}

void value_hash(Value value, unsigned char *ret_hash)
{
    ValueKind                kind = value_kind(value);
    unsigned char            head = (unsigned char)kind;
    crypto_generichash_state state;

    crypto_generichash_init(&state, NULL, 0, VALUE_HASH_BYTES);
    crypto_generichash_update(&state, &head, 1);
    if (kind == VALUE_NUMBER)
        number_hash(&state, value);
    else if (kind == VALUE_STRING)
        string_hash(&state, value);
    else if (kind == VALUE_ARRAY)
        items_hash(&state, value);
    else if (kind == VALUE_OBJECT)
        members_hash(&state, value);
    crypto_generichash_final(&state, ret_hash, VALUE_HASH_BYTES);
}
