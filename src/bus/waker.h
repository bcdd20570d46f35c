/*
 * waker.h - tells waiting workers that a domain has work: at most one NOTIFY every few milliseconds per process, never inside
 * a sender's transaction.
 *
 * waker_notify() marks the domain and returns; a thread sends one statement for all marked domains, then rests WAKER_INTERVAL_MS.
 * Losing a note is harmless: polling is the truth.
 * Channel: WAKER_CHANNEL, payload: the domain's name; pawl.wake() in SQL knows both.
 */
#ifndef BUS_WAKER_H
#define BUS_WAKER_H

#include "base/attr.h"
#include "pg/pool.h"

#define WAKER_CHANNEL     "pawl_work"
#define WAKER_INTERVAL_MS 5

typedef struct Waker Waker;
Waker               *waker_new(Pool *pool);
void                 waker_free(Waker *waker); /* sends what is marked, if the database answers at once */
SCOPED(Waker, waker_free)
void waker_notify(Waker *waker, const char *domain);

#endif
