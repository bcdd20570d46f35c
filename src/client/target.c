/*
 * target.c - see target.h.
 */
#include "client/target.h"

#include <assert.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "client/client.h"

#define HOST_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
#define V6_CHARACTERS   "abcdefABCDEF0123456789:."
#define SEPARATORS      ", \t"
#define PORT_DIGITS_MAX 5

typedef char *UrlPart;

static void url_part_done(UrlPart *part)
{
    curl_free(*part);
}
#define scoped_part __attribute__((cleanup(url_part_done)))

static UrlPart url_part(CURLU *url, CURLUPart what, unsigned flags)
{
    UrlPart part = NULL;

    return curl_url_get(url, what, &part, flags) == CURLUE_OK ? part : NULL;
}

/* "[::1]" or a name or an IPv4 address: 0 when it is neither. */
static size_t host_span(const char *text)
{
    if (*text != '[')
        return strspn(text, HOST_CHARACTERS);
    size_t inside = strspn(text + 1, V6_CHARACTERS);
    return inside > 0 && text[1 + inside] == ']' ? inside + 2 : 0;
}

/* Fill what is known from the URL. false: not one to connect to. */
static bool target_read(Target *target)
{
    scoped_part UrlPart scheme = url_part(target->url, CURLUPART_SCHEME, 0);
    scoped_part UrlPart host   = url_part(target->url, CURLUPART_HOST, 0);
    scoped_part UrlPart port   = url_part(target->url, CURLUPART_PORT, CURLU_DEFAULT_PORT);

    if (!scheme || !host || !port)
        return false;
    target->is_https = strcasecmp(scheme, "https") == 0;
    target->port     = (int)strtol(port, NULL, 10);
    size_t length    = strlen(host);
    if ((!target->is_https && strcasecmp(scheme, "http") != 0) || host_span(host) != length)
        return false;
    if (length > 0 && host[length - 1] == '.')
        length--;
    if (length == 0 || length >= sizeof target->host)
        return false;
    for (size_t i = 0; i < length; i++)
        target->host[i] = (char)tolower((unsigned char)host[i]);
    target->host[length] = '\0';
    return true;
}

ErrorCode target_parse(const char *url, Target *ret_target, Error *reterr)
{
    scoped_target Target target = {.url = curl_url()};

    if (!target.url)
        abort();
    if (strlen(url) > CLIENT_URL_BYTES_MAX)
        return fail(reterr, ERR_INVALID, "url must be at most %d bytes", CLIENT_URL_BYTES_MAX);
    if (curl_url_set(target.url, CURLUPART_URL, url, 0) != CURLUE_OK || !target_read(&target))
        return fail(reterr, ERR_INVALID,
                    "url must look like https://host/path, with http or https and a host in ASCII");
    *ret_target = target;
    target.url  = NULL;
    return OK;
}

/* What the server wrote before an "@" is not sent to it; the same origin keeps what the caller gave. */
static void userinfo_set(Target *target, const Target *from)
{
    bool                same     = target_is_same_origin(target, from);
    scoped_part UrlPart user     = same ? url_part(from->url, CURLUPART_USER, 0) : NULL;
    scoped_part UrlPart password = same ? url_part(from->url, CURLUPART_PASSWORD, 0) : NULL;

    if (curl_url_set(target->url, CURLUPART_USER, user, 0) != CURLUE_OK ||
        curl_url_set(target->url, CURLUPART_PASSWORD, password, 0) != CURLUE_OK)
        abort(); /* parts that were parsed before: only memory can be missing */
}

ErrorCode target_redirect(const Target *from, const char *location, Target *ret_target, Error *reterr)
{
    scoped_target Target target = {.url = curl_url_dup(from->url)};

    if (!target.url)
        abort();
    if (strlen(location) > CLIENT_URL_BYTES_MAX || curl_url_set(target.url, CURLUPART_URL, location, 0) != CURLUE_OK ||
        !target_read(&target))
        return fail(reterr, ERR_REFUSED, "the server redirects to a URL that is neither http nor https");
    if (from->is_https && !target.is_https)
        return fail(reterr, ERR_DENIED, "the server redirects from https to http");
    userinfo_set(&target, from);
    *ret_target = target;
    target.url  = NULL;
    return OK;
}

void target_done(Target *target)
{
    curl_url_cleanup(target->url);
    target->url = NULL;
}

bool target_is_same_origin(const Target *a, const Target *b)
{
    return a->is_https == b->is_https && a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* ---- allowed hosts ---- */

typedef struct {
    const char *host; /* not terminated */
    size_t      length;
    bool        is_wildcard; /* "*." stood before it */
    int         port;        /* 0: any */
} Pattern;

/* Read one item of the list. false: malformed. */
static bool pattern_read(const char *item, size_t length, Pattern *ret_pattern)
{
    Pattern pattern = {.is_wildcard = length > 2 && item[0] == '*' && item[1] == '.'};

    pattern.host   = item + (pattern.is_wildcard ? 2 : 0);
    pattern.length = host_span(pattern.host);
    if (pattern.length == 0 || pattern.host[0] == '.' || (pattern.is_wildcard && pattern.host[0] == '['))
        return false;
    const char *rest = pattern.host + pattern.length, *end = item + length;
    if (pattern.host[pattern.length - 1] == '.')
        pattern.length--;
    if (rest < end) {
        size_t digits = *rest == ':' ? strspn(rest + 1, "0123456789") : 0;

        if (digits == 0 || digits > PORT_DIGITS_MAX || rest + 1 + digits != end)
            return false;
        pattern.port = (int)strtol(rest + 1, NULL, 10);
        if (pattern.port == 0 || pattern.port > UINT16_MAX)
            return false;
    }
    *ret_pattern = pattern;
    return true;
}

static bool pattern_matches(const Pattern *pattern, const Target *target)
{
    size_t length = strlen(target->host);

    if (pattern->port != 0 && pattern->port != target->port)
        return false;
    if (!pattern->is_wildcard)
        return length == pattern->length && strncasecmp(target->host, pattern->host, length) == 0;
    if (length < pattern->length + 2) /* at least one character and the dot */
        return false;
    const char *tail = target->host + length - pattern->length;
    return tail[-1] == '.' && strncasecmp(tail, pattern->host, pattern->length) == 0;
}

/* The next item; false: there is none. */
static bool item_next(const char **list, const char **ret_item, size_t *ret_length)
{
    *ret_item   = *list + strspn(*list, SEPARATORS);
    *ret_length = strcspn(*ret_item, SEPARATORS);
    *list       = *ret_item + *ret_length;
    return *ret_length > 0;
}

ErrorCode hosts_check(const char *list, Error *reterr)
{
    const char *item;
    size_t      length;
    Pattern     pattern;

    while (list && item_next(&list, &item, &length))
        if (!pattern_read(item, length, &pattern))
            return fail(reterr, ERR_USAGE,
                        "allowed host \"%.*s\" must be a name, \"*.name\" or an address, then maybe \":port\"",
                        length < TARGET_HOST_SIZE ? (int)length : TARGET_HOST_SIZE, item);
    return OK;
}

bool hosts_allow(const char *list, const Target *target)
{
    const char *item;
    size_t      length;
    Pattern     pattern;
    bool        is_empty = true;

    while (list && item_next(&list, &item, &length)) {
        is_empty = false;
        if (pattern_read(item, length, &pattern) && pattern_matches(&pattern, target))
            return true;
    }
    return is_empty;
}

/* ---- addresses ---- */

#define V4(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

static const struct {
    uint32_t net;
    int      bits;
} private_v4[] = {
    {V4(0,   0,   0,   0), 8 }, /* this network; Linux connects to itself */
    {V4(10,  0,   0,   0), 8 },
    {V4(100, 64,  0,   0), 10}, /* shared by carriers */
    {V4(127, 0,   0,   0), 8 },
    {V4(169, 254, 0,   0), 16}, /* link-local; metadata of cloud machines */
    {V4(172, 16,  0,   0), 12},
    {V4(192, 0,   0,   0), 24},
    {V4(192, 0,   2,   0), 24}, /* documentation */
    {V4(192, 88,  99,  0), 24}, /* 6to4 relays */
    {V4(192, 168, 0,   0), 16},
    {V4(198, 18,  0,   0), 15}, /* benchmarks */
    {V4(198, 51,  100, 0), 24}, /* documentation */
    {V4(203, 0,   113, 0), 24}, /* documentation */
    {V4(224, 0,   0,   0), 3 }, /* multicast, reserved, broadcast */
};

static bool v4_is_private(uint32_t address)
{
    for (size_t i = 0; i < COUNT(private_v4); i++)
        if ((address ^ private_v4[i].net) >> (32 - private_v4[i].bits) == 0)
            return true;
    return false;
}

static uint32_t v4_at(const uint8_t *bytes)
{
    return V4(bytes[0], bytes[1], bytes[2], bytes[3]);
}

/* Only 2000::/3 is public, and these parts of it are not; the addresses of translators are what their IPv4 address
 * is. */
static bool v6_is_private(const uint8_t *bytes)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, nat64[12] = {0x00, 0x64, 0xff, 0x9b};

    if (memcmp(bytes, mapped, sizeof mapped) == 0 || memcmp(bytes, nat64, sizeof nat64) == 0)
        return v4_is_private(v4_at(bytes + 12));
    if (bytes[0] >> 5 != 1)
        return true;
    uint32_t head = v4_at(bytes);
    return head >> 9 == 0x20010000u >> 9       /* 2001::/23: Teredo, benchmarks, ORCHID */
           || head == 0x20010db8u              /* documentation */
           || head >> 16 == 0x2002             /* 6to4 */
           || head >> 12 == 0x3fff0000u >> 12; /* documentation */
}

bool address_is_private(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;

        memcpy(&v4, address, sizeof v4);
        return v4_is_private(ntohl(v4.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;

        memcpy(&v6, address, sizeof v6);
        return v6_is_private(v6.sin6_addr.s6_addr);
    }
    return true;
}
