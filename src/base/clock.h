/*
 * clock.h - monotonic time, wall time and deadlines, as three types that cannot be mixed up.
 *
 * Mono is for waiting and measuring, Wall is for people and rows. Both come from the World (world.h), so a test or
 * a simulation can set the clock. One Deadline is made when a request arrives and bounds each of its waits. Threads:
 * any.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t ns; /* since some fixed moment */
} Mono;
typedef struct {
    int64_t us; /* since 1970-01-01 UTC */
} Wall;
/* Ends waits of other threads: see deadline_cut(). */
typedef struct {
    _Atomic int64_t ns; /* of a Mono; 0: nothing is to end yet */
} Cut;
typedef struct {
    Mono       at;  /* INT64_MAX: never */
    const Cut *cut; /* may bring it forward; NULL: nothing does */
} Deadline;

#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL

Mono clock_mono(void);
Wall clock_wall(void);
void clock_sleep_ms(int64_t ms);
void clock_sleep_until(Deadline deadline);
/* Before the next try: 1, 2, 4 ... 64 s, at most most_ms. tries: those that failed before the last one. */
int64_t clock_backoff_ms(int tries, int64_t most_ms);

static inline int64_t mono_ms_between(Mono from, Mono to)
{
    return (to.ns - from.ns) / NS_PER_MS;
}

static inline int64_t mono_us_between(Mono from, Mono to)
{
    return (to.ns - from.ns) / 1000;
}

static inline bool mono_before(Mono a, Mono b)
{
    return a.ns < b.ns;
}

/* Saturates: far enough away is never, or always ago. */
static inline Mono mono_plus_ms(Mono from, int64_t ms)
{
    int64_t ns;

    if (__builtin_mul_overflow(ms, NS_PER_MS, &ns) || __builtin_add_overflow(from.ns, ns, &ns))
        return (Mono){ms < 0 ? INT64_MIN : INT64_MAX};
    return (Mono){ns};
}

Deadline deadline_in_ms(int64_t ms);
Deadline deadline_never(void);
Deadline deadline_sooner(Deadline a, Deadline b);
bool     deadline_passed(Deadline deadline);
/* The same deadline, unless cut_at() has named a sooner time: then waits until it end at that time, those under way
 * within CUT_LOOK_MS after it. */
#define CUT_LOOK_MS 100
Deadline deadline_cut(Deadline deadline, const Cut *cut);
/* From any thread; the soonest of several times counts. */
void cut_at(Cut *cut, Mono at);
/* Until when to wait before looking at the deadline again. */
Mono deadline_look(Deadline deadline);
/* Milliseconds left, rounded up, 0 when passed; at most INT32_MAX, so that it fits a poll(). */
int deadline_left_ms(Deadline deadline);

/* "2026-11-15T07:41:22.123Z" into a buffer of at least WALL_TEXT_SIZE bytes. */
#define WALL_TEXT_SIZE 32
void wall_text(Wall wall, char *buffer);
/* Likewise to the microsecond: "2026-11-15T07:41:22.123456Z". */
void wall_text_us(Wall wall, char *buffer);

#endif
