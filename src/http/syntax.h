/*
 * syntax.h - the character classes of RFC 9110 and RFC 9112.
 */
#ifndef HTTP_SYNTAX_H
#define HTTP_SYNTAX_H

#include <stdbool.h>
#include <string.h>

/* What names of methods and headers are made of. */
static inline bool syntax_is_token(unsigned char c)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";

    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && memchr(marks, c, sizeof marks - 1));
}

static inline bool syntax_is_visible(unsigned char c)
{
    return c > ' ' && c < 0x7f;
}

/* What the value of a header may contain: visible, space, tab, and bytes of UTF-8. */
static inline bool syntax_is_field(unsigned char c)
{
    return (c >= ' ' && c != 0x7f) || c == '\t';
}

#endif
