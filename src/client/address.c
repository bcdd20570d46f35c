/*
 * address.c - see address.h.
 */
#include "client/address.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "base/attr.h"

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

/* Only 2000::/3 is public, and these parts of it are not; the addresses of translators are what their IPv4 address is. */
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
