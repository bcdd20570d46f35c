/*
 * uuid.c - UUID version 7 (RFC 9562): 48 bits of milliseconds, 12 bits below the millisecond, 62 random bits.
 *
 * The first 60 bits are one number that only grows: when the clock stands still or steps back, the next id takes the
 * last number plus one. So ids of one process are unique and sorted without a lock.
 */
#include "base/uuid.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "base/clock.h"

#define RANDOM_BITS 62

static uint64_t tick_of(Wall wall)
{
    uint64_t us = wall.us > 0 ? (uint64_t)wall.us : 0;

    return (us / 1000) << 12 | (us % 1000) * 4096 / 1000;
}

static uint64_t tick_next(void)
{
    static _Atomic uint64_t last;
    uint64_t                now    = tick_of(clock_wall());
    uint64_t                before = atomic_load_explicit(&last, memory_order_relaxed);
    uint64_t                next;

    do
        next = now > before ? now : before + 1;
    while (!atomic_compare_exchange_weak_explicit(&last, &before, next, memory_order_relaxed, memory_order_relaxed));
    return next;
}

void uuid_new(char *ret_text)
{
    uint64_t tick = tick_next();
    uint64_t random;

    /* Idempotent and safe from any thread; without it the generator's first use would be a race. */
    if (sodium_init() < 0)
        abort();
    randombytes_buf(&random, sizeof random);
    random >>= 64 - RANDOM_BITS;
    uint64_t millisecond = tick >> 12 & 0xFFFFFFFFFFFF;
    snprintf(ret_text, UUID_TEXT_SIZE, "%08" PRIx64 "-%04" PRIx64 "-7%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
             millisecond >> 16, millisecond & 0xFFFF, tick & 0xFFF, 0x8000 | random >> 48, random & 0xFFFFFFFFFFFF);
}

bool uuid_parse(const char *text, char *ret_text)
{
    static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    char              lower[UUID_TEXT_SIZE];

    static_assert(sizeof shape == UUID_TEXT_SIZE, "the shape of a UUID");
    for (size_t i = 0; i < sizeof shape; i++) { /* the NUL at the end included */
        bool fits = shape[i] == 'x' ? isxdigit((unsigned char)text[i]) != 0 : text[i] == shape[i];
        if (!fits)
            return false;
        lower[i] = (char)tolower((unsigned char)text[i]);
    }
    memcpy(ret_text, lower, sizeof lower);
    return true;
}
