/*
 * waker.h - notifies waiting workers that a domain has work: at most one NOTIFY per WAKER_INTERVAL_MS and process, never inside
 * a sender's transaction.
 *
 * waker_notify() marks the domain and returns; a thread sends one statement for all marked domains, then waits WAKER_INTERVAL_MS.
 * A lost notification is harmless, because workers also poll.
 * A transaction that sends commands collects their domains in a WakeList and notifies them after its commit.
 * Channel: WAKER_CHANNEL, payload: the domain's name; pawl.wake() in SQL uses both.
 * Threads: any; a WakeList belongs to its transaction.
 */
#ifndef BUS_WAKER_H
#define BUS_WAKER_H

#include "base/attr.h"
#include "bus/send.h"
#include "pg/pool.h"

#define WAKER_CHANNEL     "pawl_work"
#define WAKER_INTERVAL_MS 5

typedef struct Waker Waker;
Waker               *waker_new(Pool *pool);
void                 waker_free(Waker *waker); /* sends what is marked, if the database responds immediately */
SCOPED(Waker, waker_free)
void waker_notify(Waker *waker, const char *domain);
/* After the commit: notify the item's domain if a worker can claim the command now, that is, it is new and not delayed. */
void waker_notify_sent(Waker *waker, const SendItem *item);

/* Domains to notify after the commit, each once; {0} is empty. */
typedef struct WakeDomain WakeDomain;
typedef struct {
    WakeDomain *first;
} WakeList;
/* In the transaction: what waker_notify_sent() would notify. The list is in the arena. */
void wake_list_add_sent(WakeList *list, Arena *arena, const SendItem *item);
/* After its commit. */
void waker_notify_list(Waker *waker, const WakeList *list);

#endif
