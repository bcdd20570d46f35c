/*
 * negotiate.c - see negotiate.h.
 */
#include "http/negotiate.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "http/syntax.h"

#define BLANKS         " \t"
#define LIST_BLANKS    " \t,"
#define WEIGHT_DIGITS  3
#define WEIGHT_MAX     1000
#define WEIGHT_UNKNOWN (-1)

/* ---- Accept-Encoding ---- */

/* Of a thousand. -1: not mentioned. */
typedef struct {
    int gzip, identity, any;
} Weights;

/* "0.5" is 500. -1: not a weight. */
static int weight_read(const char *text, size_t length)
{
    int weight = 0, unit = WEIGHT_MAX;

    if (length == 0 || length > WEIGHT_DIGITS + 2 || (text[0] != '0' && text[0] != '1') ||
        (length > 1 && text[1] != '.'))
        return WEIGHT_UNKNOWN;
    for (size_t i = 0; i < length; i++) {
        if (i == 1)
            continue;
        if (!isdigit((unsigned char)text[i]))
            return WEIGHT_UNKNOWN;
        weight += (text[i] - '0') * unit;
        unit /= 10;
    }
    return weight <= WEIGHT_MAX ? weight : WEIGHT_UNKNOWN;
}

/* What follows the coding: nothing, or ";q=" and a weight. */
static int weight_of_rest(const char *rest, size_t length)
{
    const char *end = rest + length;

    while (end > rest && strchr(BLANKS, end[-1]))
        end--;
    rest += strspn(rest, BLANKS);
    if (rest >= end)
        return WEIGHT_MAX;
    if (*rest++ != ';')
        return WEIGHT_UNKNOWN;
    rest += strspn(rest, BLANKS);
    if (end - rest < 2 || (rest[0] != 'q' && rest[0] != 'Q') || rest[1] != '=')
        return WEIGHT_UNKNOWN;
    return weight_read(rest + 2, (size_t)(end - rest - 2));
}

static bool word_is(const char *word, size_t length, const char *wanted)
{
    return strlen(wanted) == length && strncasecmp(word, wanted, length) == 0;
}

static void weights_add(Weights *weights, const char *item, size_t length)
{
    size_t coding = 0;

    while (coding < length && syntax_is_token((unsigned char)item[coding]))
        coding++;
    int weight = weight_of_rest(item + coding, length - coding);
    if (weight == WEIGHT_UNKNOWN)
        return;
    if (word_is(item, coding, "gzip") || word_is(item, coding, "x-gzip"))
        weights->gzip = weight;
    else if (word_is(item, coding, "identity"))
        weights->identity = weight;
    else if (word_is(item, coding, "*"))
        weights->any = weight;
}

bool negotiate_gzip(const Head *head)
{
    Weights weights = {WEIGHT_UNKNOWN, WEIGHT_UNKNOWN, WEIGHT_UNKNOWN};

    for (int i = 0; i < head->header_count; i++) {
        if (strcasecmp(head->headers[i].name, "Accept-Encoding") != 0)
            continue;
        for (const char *item = head->headers[i].value; *(item += strspn(item, LIST_BLANKS));) {
            size_t length = strcspn(item, ",");

            weights_add(&weights, item, length);
            item += length;
        }
    }
    int gzip = weights.gzip != WEIGHT_UNKNOWN ? weights.gzip : weights.any;
    return gzip > 0 && gzip >= weights.identity;
}

/* ---- If-None-Match ---- */

/* The end of the entity tag that begins at its opening quote; NULL: it is none. */
static const char *etag_end(const char *tag)
{
    if (*tag != '"')
        return NULL;
    for (tag++; *tag != '"'; tag++)
        if ((unsigned char)*tag <= ' ' || *tag == 0x7f)
            return NULL;
    return tag + 1;
}

/* Weak tags compare like strong ones: RFC 9110, 8.8.3.2. */
static bool list_has(const char *list, const char *etag)
{
    size_t length = strlen(etag);

    if (strcmp(list, "*") == 0)
        return true;
    while (*(list += strspn(list, LIST_BLANKS))) {
        const char *tag = strncmp(list, "W/", 2) == 0 ? list + 2 : list, *end = etag_end(tag);

        if (!end)
            return false;
        if ((size_t)(end - tag) == length && memcmp(tag, etag, length) == 0)
            return true;
        list = end + strspn(end, BLANKS);
        if (*list != ',' && *list != '\0')
            return false;
    }
    return false;
}

bool negotiate_unchanged(const Head *head, const char *etag)
{
    for (int i = 0; i < head->header_count; i++)
        if (strcasecmp(head->headers[i].name, "If-None-Match") == 0 && list_has(head->headers[i].value, etag))
            return true;
    return false;
}
