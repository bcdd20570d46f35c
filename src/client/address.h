/*
 * address.h - which addresses are on the public Internet, after IANA's registries of special-purpose addresses.
 */
#ifndef CLIENT_ADDRESS_H
#define CLIENT_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/* true: loopback, private, shared, link-local, documentation, multicast, reserved, and IPv6 addresses that map to such an IPv4
 * address; also any family but IPv4 and IPv6. */
bool address_is_private(const struct sockaddr *address);

#endif
