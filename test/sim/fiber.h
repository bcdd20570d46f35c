/*
 * fiber.h - a World in which a seed decides who runs next and what time it is.
 *
 * Threads are fibers: one runs at a time, and at every lock, wait, sleep and socket the seed picks the next one that
 * could run. When none can, the clock jumps to the next moment at which one will. When there is no such moment, that is
 * a deadlock, and the run fails. A run is therefore a pure function of its seed.
 */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/clock.h"

#define NEVER ((Mono){INT64_MAX})

/* The outside of the simulated program: what its sockets do, and what else happens at some time. */
typedef struct {
    Mono (*socket_ready)(int fd); /* when fd will next have something to say */
    void (*socket_shut)(int fd);
    Mono (*next_event)(void);
    void (*tick)(void); /* time has moved: let everything happen that is due */
    void (*look)(void); /* before each switch: does every invariant hold? */
} Outside;

/* Run body as the first fiber until all fibers have ended. */
void sim_run(uint64_t seed, const Outside *outside, void *(*body)(void *), void *context);

Mono     sim_now(void);
unsigned sim_random(void);
int      sim_between(int least, int most); /* both included */
bool     sim_chance(int permille);

extern bool sim_tracing;
void        sim_trace(const char *format, ...) printf_like(1, 2);
/* Print what is wrong, the seed and how to see it again; ends the process. */
_Noreturn void sim_fail(const char *format, ...) printf_like(1, 2);

#endif
