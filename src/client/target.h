/*
 * target.h - where a request goes: a parsed URL, and the hosts that are allowed. libcurl connects to the same parsed
 * form that was checked, so the two cannot read a URL differently.
 *
 * Threads: any; nothing is shared. Ownership: target_done() frees what target_parse() and target_redirect() made.
 */
#ifndef CLIENT_TARGET_H
#define CLIENT_TARGET_H

#include <curl/curl.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/error.h"

#define TARGET_HOST_SIZE 256

typedef struct {
    CURLU *url; /* NULL: none */
    bool   is_https;
    int    port;
    char   host[TARGET_HOST_SIZE]; /* lower case, without a final dot; IPv6 in brackets */
} Target;

/* ERR_INVALID: malformed, not http or https, or a host that is not ASCII. Nothing of the URL is in the message. */
must_check ErrorCode target_parse(const char *url, Target *ret_target, Error *reterr);
/* Resolve the value of Location against a target. Another origin gets no userinfo. ERR_DENIED: from https to http.
 * ERR_REFUSED: not a URL that can be followed. */
must_check ErrorCode target_redirect(const Target *from, const char *location, Target *ret_target, Error *reterr);
void                 target_done(Target *target);
/* The same scheme, host and port. */
bool target_is_same_origin(const Target *a, const Target *b);

/* ERR_USAGE: an item of the list is not "name", "*.name", an address, each maybe with ":port". */
must_check ErrorCode hosts_check(const char *list, Error *reterr);
/* list: checked; NULL or "": every host. */
bool hosts_allow(const char *list, const Target *target);

#define scoped_target __attribute__((cleanup(target_done)))

/* ---- addresses ---- */

/* After IANA's registries of special-purpose addresses: loopback, private, shared, link-local, documentation,
 * multicast, reserved, and IPv6 addresses that map to such an IPv4 address; also any family but IPv4 and IPv6. */
bool address_is_private(const struct sockaddr *address);

#endif
