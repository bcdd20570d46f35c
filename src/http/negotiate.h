/*
 * negotiate.h - what a request accepts and has already: Accept-Encoding and If-None-Match. Pure, like head.h.
 *
 * Malformed parts count for nothing: the client then gets the complete identity representation, which is always
 * correct. Several headers of one name are one list: RFC 9110, 5.3.
 */
#ifndef HTTP_NEGOTIATE_H
#define HTTP_NEGOTIATE_H

#include <stdbool.h>

#include "http/head.h"

/* Is gzip accepted, and not less than the identity encoding? RFC 9110, 12.5.3. */
bool negotiate_gzip(const Head *head);
/* Does the client have the representation with this strong entity tag, written with its quotes? RFC 9110, 13.1.2. */
bool negotiate_unchanged(const Head *head, const char *etag);

#endif
