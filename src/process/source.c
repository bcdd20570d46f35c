/*
 * source.c - see source.h.
 */
#include "process/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/scan.h"

#define NAME_SHOWN_MAX 100 /* bytes of the file's name in a message */
#define PATH_SHOWN_MAX 150 /* and of the path; a longer one loses its beginning */

static bool is_plain(const char *key, const char *end)
{
    for (; key < end; key++)
        if (*key == '.' || *key == '[' || *key == ' ' || *key == '\\')
            return false;
    return true;
}

static void key_print(const char *key, Text *text)
{
    const char *end  = scan_value_end(key);
    Excerpt     name = scan_excerpt(key + 1, end - 1);

    if (is_plain(key + 1, end - 1))
        text_print(text, "%s%s", text->length ? "." : "", name.text);
    else
        text_print(text, "[\"%s\"]", name.text);
}

/* The member or item of a container in which at stands; NULL: it is at the container itself. */
static const char *part_enter(const char *container, const char *at, Text *text)
{
    bool        is_object = *container == '{';
    const char *next      = container + 1;

    for (int index = 0; scan_next(&next); index++) {
        const char *key = next, *value = is_object ? scan_member_value(next) : next;

        next = scan_value_end(value);
        if (at < key || at >= next)
            continue;
        if (is_object)
            key_print(key, text);
        else
            text_print(text, "[%d]", index);
        return at < value ? NULL : value;
    }
    return NULL;
}

static void path_print(const char *value, const char *at, Text *text)
{
    while (value && value != at && (*value == '{' || *value == '['))
        value = part_enter(value, at, text);
}

void source_prefix(const Source *source, const char *at, Error *reterr)
{
    scoped_text Text path = {0};
    int              line, column;

    text_init(&path, NULL, TEXT_MAX_LINE);
    path_print(scan_space(source->text.bytes), at, &path);
    scan_locate(source->text.bytes, at, &line, &column);

    size_t      skipped = path.length > PATH_SHOWN_MAX ? path.length - PATH_SHOWN_MAX : 0;
    const char *shown   = text_string(&path) + skipped;
    while (((unsigned char)*shown & 0xc0) == 0x80) /* not from the middle of a character */
        shown++;
    if (path.length > 0)
        error_prefix(reterr, "%s%s", skipped ? "..." : "", shown);
    error_prefix(reterr, "%.*s:%d:%d", (int)text_cut(source->name, strlen(source->name), NAME_SHOWN_MAX), source->name,
                 line, column);
}

void source_error_set(const Source *source, const char *at, Error *reterr, const char *format, ...)
{
    char    words[sizeof reterr->text];
    va_list values;

    va_start(values, format);
    vsnprintf(words, sizeof words, format, values);
    va_end(values);
    (void)fail(reterr, ERR_INVALID, "%s", words);
    source_prefix(source, at, reterr);
}

ErrorCode source_check(const Source *source, Error *reterr)
{
    const char *at;
    int         line, column;
    ErrorCode   code = scan_check_at(source->text.bytes, source->text.size, &at, reterr);

    if (code == OK)
        return OK;
    scan_locate(source->text.bytes, at, &line, &column);
    error_prefix(reterr, "%.*s:%d:%d", (int)text_cut(source->name, strlen(source->name), NAME_SHOWN_MAX), source->name,
                 line, column);
    return code;
}
