/*
 * fake_clock.h - a clock that a test turns by hand.
 *
 * Between install and restore, clock_mono() and clock_wall() move only by fake_clock_advance_ms() or by waiting: a
 * sleep, and a condition that no thread can signal, move the clock to their end at once. A wait for a socket is real,
 * and moves the clock only when it ran out. For tests with one thread; with several, use the simulation.
 */
#ifndef HARNESS_FAKE_CLOCK_H
#define HARNESS_FAKE_CLOCK_H

#include "base/clock.h"

void fake_clock_install(Wall start);
void fake_clock_advance_ms(int64_t ms);
void fake_clock_restore(void);

#endif
