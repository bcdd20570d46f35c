/*
 * shifted_clock.h - the real clock, which a test puts forward. Unlike the fake clock it runs, and is for tests with
 * several threads.
 *
 * A thread that waits until a moment is not woken when the clock passes it: what it waits for must happen, or the wait
 * was begun later. Declared before all that has threads, so that it is restored after them: scoped_shifted_clock int
 * clock = shifted_clock_install();
 */
#ifndef HARNESS_SHIFTED_CLOCK_H
#define HARNESS_SHIFTED_CLOCK_H

#include <stdint.h>

int  shifted_clock_install(void);
void shifted_clock_advance_ms(int64_t ms);
/* The wall clock alone, also backwards. */
void shifted_clock_set_wall_ms(int64_t ms);
void shifted_clock_restore(int *installed);

#define scoped_shifted_clock __attribute__((unused, cleanup(shifted_clock_restore)))

#endif
