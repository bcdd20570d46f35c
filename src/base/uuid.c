/*
 * uuid.c - UUID version 7 (RFC 9562): 48 bits of milliseconds, 12 bits below the millisecond, 62 random bits.
 *
 * The first 60 bits are one number that only grows: when the clock stands still or steps back, the next id takes the
 * last number plus one. So ids of one process are unique and sorted without a lock.
 */
#include "base/uuid.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <sodium.h>

#include "base/clock.h"
#include "base/text.h"

#define RANDOM_BITS  62
#define RANDOM_COUNT 64

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

/* Counts the forks above this process: a child has a copy of the random numbers of its parent, and must not use
 * them. */
static _Atomic unsigned forks;

static void child_begin(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void random_init(void)
{
    /* Idempotent and safe from any thread; without it the generator's first use would be a race. */
    if (sodium_init() < 0 || pthread_atfork(NULL, NULL, child_begin) != 0)
        abort();
}

/* Random numbers are got many at a time, because each call of the generator is a system call. */
static uint64_t random_next(void)
{
    static pthread_once_t         once = PTHREAD_ONCE_INIT;
    static _Thread_local uint64_t numbers[RANDOM_COUNT];
    static _Thread_local int      left;
    static _Thread_local unsigned forks_before;
    unsigned                      forks_now = atomic_load_explicit(&forks, memory_order_relaxed);

    if (left == 0 || forks_before != forks_now) {
        pthread_once(&once, random_init);
        randombytes_buf(numbers, sizeof numbers);
        left         = RANDOM_COUNT;
        forks_before = forks_now;
    }
    return numbers[--left];
}

/* The lowest `digits` digits, in hexadecimal. */
static char *put_hex(char *at, uint64_t value, int digits)
{
    for (int i = digits - 1; i >= 0; i--) {
        at[i] = "0123456789abcdef"[value & 0xF];
        value >>= 4;
    }
    return at + digits;
}

void uuid_new(char *ret_text)
{
    uint64_t tick = tick_next(), millisecond = tick >> 12;
    uint64_t random = random_next() >> (64 - RANDOM_BITS);
    char    *at     = ret_text;

    at    = put_hex(at, millisecond >> 16, 8);
    *at++ = '-';
    at    = put_hex(at, millisecond, 4);
    *at++ = '-';
    *at++ = '7';
    at    = put_hex(at, tick, 3);
    *at++ = '-';
    at    = put_hex(at, 0x8000 | random >> 48, 4);
    *at++ = '-';
    at    = put_hex(at, random, 12);
    *at   = '\0';
}

void uuid_from_hash(const unsigned char *hash, char *ret_text)
{
    char *at = ret_text;

    for (int i = 0; i < UUID_BYTES; i++) {
        unsigned byte = hash[i];

        if (i == 6)
            byte = (byte & 0x0F) | 0x80; /* version */
        else if (i == 8)
            byte = (byte & 0x3F) | 0x80; /* variant */
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        at = put_hex(at, byte, 2);
    }
    *at = '\0';
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

bool uuid_bytes(const char *text, unsigned char *ret_bytes)
{
    size_t at = 0;

    for (int i = 0; i < UUID_BYTES; i++) {
        int high, low;

        if (i == 4 || i == 6 || i == 8 || i == 10) {
            if (text[at++] != '-')
                return false;
        }
        high = text_hex(text[at]);
        low  = high < 0 ? -1 : text_hex(text[at + 1]);
        if (low < 0)
            return false;
        ret_bytes[i] = (unsigned char)(high << 4 | low);
        at += 2;
    }
    return text[at] == '\0';
}
