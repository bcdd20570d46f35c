/*
 * scan.c - strict JSON, checked and walked in place.
 *
 * The check descends at most SCAN_DEPTH_MAX levels; it alone compares with the end of the bytes. Reading after it
 * needs no such check: every value inside a bracket is followed by a byte that ends it.
 */
#include "base/scan.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/keys.h"
#include "base/text.h"

typedef struct {
    const char  *start, *at, *end;
    const char  *what;
    const char **ret_at; /* the caller wants to know where; NULL: the text says it */
    int          depth;
    Keys         keys;
    char        *decoded; /* keys that had escapes; as large as the text, made when the first one comes */
    size_t       decoded_size;
    Error       *reterr;
} Scan;

static ErrorCode scan_value(Scan *scan);

static void scan_done(Scan *scan)
{
    keys_done(&scan->keys);
    free(scan->decoded);
}

void scan_locate(const char *start, const char *at, int *ret_line, int *ret_column)
{
    *ret_line = *ret_column = 1;
    for (const char *p = start; p < at; p++) {
        if (*p == '\n') {
            *ret_line += 1;
            *ret_column = 1;
        } else if (((unsigned char)*p & 0xc0) != 0x80) /* characters, not bytes */
            *ret_column += 1;
    }
}

static ErrorCode refuse(const Scan *scan, const char *at, const char *why)
{
    int line, column;

    if (scan->ret_at) {
        *scan->ret_at = at;
        return fail(scan->reterr, ERR_INVALID, "not valid JSON: %s", why);
    }
    scan_locate(scan->start, at, &line, &column);
    return fail(scan->reterr, ERR_INVALID, "%s is not valid JSON: line %d column %d: %s", scan->what, line, column,
                why);
}

/* Say what was expected, and what stands there instead. */
static ErrorCode refuse_found(const Scan *scan, const char *expected)
{
    char why[96];
    int  length;

    if (scan->at == scan->end)
        length = snprintf(why, sizeof why, "expected %s, found the end", expected);
    else if (*scan->at > ' ' && *scan->at < 0x7f)
        length = snprintf(why, sizeof why, "expected %s, found '%c'", expected, *scan->at);
    else
        length = snprintf(why, sizeof why, "expected %s, found byte 0x%02x", expected, (unsigned char)*scan->at);
    assert(length > 0 && (size_t)length < sizeof why);
    return refuse(scan, scan->at, why);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void skip_space(Scan *scan)
{
    while (scan->at < scan->end && is_space(*scan->at))
        scan->at++;
}

static bool next_is(const Scan *scan, char c)
{
    return scan->at < scan->end && *scan->at == c;
}

/* true: it stood there and was passed. */
static bool skip_char(Scan *scan, char c)
{
    if (!next_is(scan, c))
        return false;
    scan->at++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static uint32_t hex_four(const char *digits)
{
    uint32_t code = 0;

    for (int i = 0; i < 4; i++)
        code = code << 4 | (uint32_t)text_hex(digits[i]);
    return code;
}

static bool is_high_surrogate(uint32_t code)
{
    return code >= 0xd800 && code <= 0xdbff;
}

static bool is_low_surrogate(uint32_t code)
{
    return code >= 0xdc00 && code <= 0xdfff;
}

/* The four digits behind "\u". */
static bool hex_accept(Scan *scan, uint32_t *ret_code)
{
    if (scan->end - scan->at < 4)
        return false;
    for (int i = 0; i < 4; i++)
        if (text_hex(scan->at[i]) < 0)
            return false;
    *ret_code = hex_four(scan->at);
    scan->at += 4;
    return true;
}

/* at stands behind the backslash. */
static ErrorCode scan_escape(Scan *scan)
{
    const char *backslash = scan->at - 1;
    uint32_t    code, low;

    if (scan->at < scan->end && *scan->at != '\0' && strchr("\"\\/bfnrt", *scan->at)) {
        scan->at++;
        return OK;
    }
    if (!skip_char(scan, 'u'))
        return refuse(scan, backslash, "no such escape: one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    if (!hex_accept(scan, &code))
        return refuse(scan, backslash, "\\u needs four hexadecimal digits");
    if (code == 0)
        return refuse(scan, backslash, "\\u0000 is not allowed in text");
    if (is_low_surrogate(code))
        return refuse(scan, backslash, "a low surrogate without a high one before it");
    if (!is_high_surrogate(code))
        return OK;
    if (!skip_char(scan, '\\') || !skip_char(scan, 'u') || !hex_accept(scan, &low) || !is_low_surrogate(low))
        return refuse(scan, backslash, "a high surrogate without a low one behind it");
    return OK;
}

static ErrorCode scan_text(Scan *scan, bool *ret_has_escape)
{
    const char *quote    = scan->at++;
    bool        is_ascii = true;

    *ret_has_escape = false;
    while (scan->at < scan->end && *scan->at != '"') {
        unsigned char c = (unsigned char)*scan->at;

        if (c < 0x20)
            return refuse(scan, scan->at, "line breaks and control characters in text must be escaped");
        is_ascii = is_ascii && c < 0x80;
        scan->at++;
        if (c == '\\') {
            *ret_has_escape = true;
            TRY(scan_escape(scan));
        }
    }
    if (!is_ascii && !text_is_utf8(quote + 1, (size_t)(scan->at - quote - 1)))
        return refuse(scan, quote, "the text that begins here is not UTF-8");
    if (!skip_char(scan, '"'))
        return refuse(scan, quote, "the text that begins here has no end");
    return OK;
}

static ErrorCode scan_digits(Scan *scan)
{
    if (scan->at == scan->end || !is_digit(*scan->at))
        return refuse_found(scan, "a digit");
    while (scan->at < scan->end && is_digit(*scan->at))
        scan->at++;
    return OK;
}

static ErrorCode scan_number(Scan *scan)
{
    const char *number = scan->at;

    (void)skip_char(scan, '-');
    const char *digits = scan->at;
    TRY(scan_digits(scan));
    if (*digits == '0' && scan->at - digits > 1)
        return refuse(scan, number, "a number must not begin with a needless 0");
    if (skip_char(scan, '.'))
        TRY(scan_digits(scan));
    if (skip_char(scan, 'e') || skip_char(scan, 'E')) {
        if (!skip_char(scan, '+'))
            (void)skip_char(scan, '-');
        TRY(scan_digits(scan));
    }
    return OK;
}

static ErrorCode scan_word(Scan *scan)
{
    static const char *const words[] = {"true", "false", "null"};

    for (size_t i = 0; i < COUNT(words); i++) {
        size_t length = strlen(words[i]);

        if ((size_t)(scan->end - scan->at) >= length && memcmp(scan->at, words[i], length) == 0) {
            scan->at += length;
            return OK;
        }
    }
    return refuse_found(scan, "a value");
}

static ErrorCode scan_key(Scan *scan)
{
    const char *quote = scan->at;
    bool        has_escape;

    if (!next_is(scan, '"'))
        return refuse_found(scan, "a name in double quotes");
    TRY(scan_text(scan, &has_escape));

    Key key = {quote + 1, (uint32_t)(scan->at - quote - 2), (uint32_t)(quote - scan->start)};
    if (has_escape) {
        if (!scan->decoded && !(scan->decoded = malloc((size_t)(scan->end - scan->start))))
            abort();
        key.bytes = scan->decoded + scan->decoded_size;
        key.size  = (uint32_t)scan_string(quote, scan->decoded + scan->decoded_size);
        scan->decoded_size += key.size;
    }
    keys_push(&scan->keys, key);
    return OK;
}

static ErrorCode refuse_duplicate(const Scan *scan, const Key *key)
{
    const char *quote = scan->start + key->at;
    Excerpt     name  = scan_excerpt(quote + 1, scan_value_end(quote) - 1);
    int         line, column;

    if (scan->ret_at) {
        *scan->ret_at = quote;
        return fail(scan->reterr, ERR_INVALID, "duplicate field \"%s\"", name.text);
    }
    scan_locate(scan->start, quote, &line, &column);
    return fail(scan->reterr, ERR_INVALID, "duplicate field \"%s\" at line %d column %d", name.text, line, column);
}

static ErrorCode scan_object(Scan *scan)
{
    size_t first = scan->keys.count;

    scan->at++;
    skip_space(scan);
    if (skip_char(scan, '}'))
        return OK;
    do {
        skip_space(scan);
        TRY(scan_key(scan));
        skip_space(scan);
        if (!skip_char(scan, ':'))
            return refuse_found(scan, "':'");
        TRY(scan_value(scan));
    } while (skip_char(scan, ','));
    if (!skip_char(scan, '}'))
        return refuse_found(scan, "',' or '}'");
    const Key *repeated = keys_repeat(&scan->keys, first);
    if (repeated)
        return refuse_duplicate(scan, repeated);
    keys_drop(&scan->keys, first);
    return OK;
}

static ErrorCode scan_array(Scan *scan)
{
    scan->at++;
    skip_space(scan);
    if (skip_char(scan, ']'))
        return OK;
    do
        TRY(scan_value(scan));
    while (skip_char(scan, ','));
    if (!skip_char(scan, ']'))
        return refuse_found(scan, "',' or ']'");
    return OK;
}

static ErrorCode scan_nested(Scan *scan)
{
    if (scan->depth == SCAN_DEPTH_MAX && scan->ret_at) {
        *scan->ret_at = scan->at;
        return fail(scan->reterr, ERR_INVALID, "nested deeper than %d levels", SCAN_DEPTH_MAX);
    }
    if (scan->depth == SCAN_DEPTH_MAX)
        return fail(scan->reterr, ERR_INVALID, "%s is nested deeper than %d levels", scan->what, SCAN_DEPTH_MAX);
    scan->depth++;
    TRY(*scan->at == '{' ? scan_object(scan) : scan_array(scan));
    scan->depth--;
    return OK;
}

/* One value with the white space around it. */
static ErrorCode scan_value(Scan *scan)
{
    bool has_escape;

    skip_space(scan);
    if (next_is(scan, '{') || next_is(scan, '['))
        TRY(scan_nested(scan));
    else if (next_is(scan, '"'))
        TRY(scan_text(scan, &has_escape));
    else if (next_is(scan, '-') || (scan->at < scan->end && is_digit(*scan->at)))
        TRY(scan_number(scan));
    else
        TRY(scan_word(scan));
    skip_space(scan);
    return OK;
}

static ErrorCode text_check(const char *bytes, size_t size, const char *what, const char **ret_at, Error *reterr)
{
    if (!bytes) /* an empty body has no address */
        bytes = "";

    __attribute__((cleanup(scan_done)))
    Scan scan = {.start = bytes, .at = bytes, .end = bytes + size, .what = what, .ret_at = ret_at, .reterr = reterr};
    TRY(scan_value(&scan));
    if (scan.at != scan.end)
        return refuse_found(&scan, "the end");
    return OK;
}

ErrorCode scan_check(const char *bytes, size_t size, const char *what, Error *reterr)
{
    if (size > SCAN_BYTES_MAX)
        return fail(reterr, ERR_LIMIT, "%s is larger than %zu bytes", what, SCAN_BYTES_MAX);
    return text_check(bytes, size, what, /* ret_at= */ NULL, reterr);
}

ErrorCode scan_check_at(const char *bytes, size_t size, const char **ret_at, Error *reterr)
{
    *ret_at = bytes;
    if (size > SCAN_BYTES_MAX)
        return fail(reterr, ERR_LIMIT, "larger than %zu bytes", SCAN_BYTES_MAX);
    return text_check(bytes, size, /* what= */ NULL, ret_at, reterr);
}

Excerpt scan_excerpt(const char *begin, const char *end)
{
    Excerpt excerpt;
    size_t  size = (size_t)(end - begin), cut = text_cut(begin, size, SCAN_EXCERPT_MAX);

    memcpy(excerpt.text, begin, cut);
    memcpy(excerpt.text + cut, cut < size ? "..." : "", cut < size ? 4 : 1);
    return excerpt;
}

const char *scan_space(const char *at)
{
    while (is_space(*at))
        at++;
    return at;
}

static const char *string_end(const char *string)
{
    const char *at = string + 1;

    for (; *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at + 1;
}

static const char *nested_end(const char *at)
{
    int depth = 0;

    do {
        if (*at == '"') {
            at = string_end(at);
            continue;
        }
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        at++;
    } while (depth > 0);
    return at;
}

const char *scan_value_end(const char *value)
{
    if (*value == '"')
        return string_end(value);
    if (*value == '{' || *value == '[')
        return nested_end(value);
    while (*value != ',' && *value != ']' && *value != '}' && !is_space(*value))
        value++;
    return value;
}

bool scan_next(const char **at)
{
    const char *next = scan_space(*at);

    if (*next == '}' || *next == ']') {
        *at = next + 1;
        return false;
    }
    *at = *next == ',' ? scan_space(next + 1) : next;
    return true;
}

const char *scan_member_value(const char *key)
{
    const char *colon = scan_space(string_end(key));

    assert(*colon == ':');
    return scan_space(colon + 1);
}

/* The character as UTF-8; never longer than its escape. */
static size_t utf8_put(uint32_t code, char *ret_bytes)
{
    static const uint8_t leads[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    size_t               size    = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (size_t i = size; i-- > 1; code >>= 6)
        ret_bytes[i] = (char)(0x80 | (code & 0x3f));
    ret_bytes[0] = (char)(leads[size] | code);
    return size;
}

/* at stands behind the backslash and is left behind the escape. */
static size_t escape_decode(const char **at, char *ret_bytes)
{
    static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
    char              name = *(*at)++;

    if (name != 'u') {
        const char *found = strchr(names, name);

        *ret_bytes = found ? values[found - names] : name;
        return 1;
    }
    uint32_t code = hex_four(*at);
    *at += 4;
    if (is_high_surrogate(code)) {
        code = 0x10000 + ((code - 0xd800) << 10) + (hex_four(*at + 2) - 0xdc00);
        *at += 6;
    }
    return utf8_put(code, ret_bytes);
}

size_t scan_string(const char *string, char *ret_bytes)
{
    const char *at  = string + 1;
    char       *out = ret_bytes;

    while (*at != '"') {
        if (*at != '\\') {
            *out++ = *at++;
            continue;
        }
        at++;
        out += escape_decode(&at, out);
    }
    return (size_t)(out - ret_bytes);
}
