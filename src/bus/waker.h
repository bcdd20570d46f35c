/*
 * waker.h - notifies waiting workers that a domain has work: at most one NOTIFY per WAKER_INTERVAL_MS and process, never inside
 * a sender's transaction.
 *
 * waker_notify() marks the domain and returns; a thread sends one statement for all marked domains, then waits WAKER_INTERVAL_MS.
 * Claimers of the same process (WakeMember) are called directly, as often and before the statement: they do not wait for the server
 * to flush the notification and send it back.
 * A lost notification is harmless, because workers also poll.
 * A transaction collects the domains in which it queues commands and notifies them after its commit: SQL functions in the setting
 * pawl.wake (pawl.wake_later()), which statements return as the column `wake`; C code that sends items in a WakeList.
 * Channel: WAKER_CHANNEL, payload: the domain's name; pawl.wake() in SQL uses both.
 * Threads: any; members are called from the threads of others. A WakeList belongs to its transaction.
 */
#ifndef BUS_WAKER_H
#define BUS_WAKER_H

#include "base/attr.h"
#include "bus/send.h"
#include "pg/pool.h"

#define WAKER_CHANNEL "pawl_work"
/* The domain was paused or resumed: pawl.domain_pause(). */
#define WAKER_PAUSE_CHANNEL "pawl_pause"
#define WAKER_INTERVAL_MS   5

typedef struct Waker Waker;
Waker               *waker_new(Pool *pool);
void                 waker_free(Waker *waker); /* sends what is marked, if the database responds immediately */
SCOPED(Waker, waker_free)
void waker_notify(Waker *waker, const char *domain);

/* A claimer of this process. It is called for notifications of every waker whose pool connects to the same database; it must not wait
 * and must call no waker. */
typedef struct WakeMember WakeMember;
struct WakeMember {
    const Pool *pool;
    void (*call)(void *context, const char *domain);
    void       *context;
    WakeMember *next;
};
/* The member is borrowed until it leaves. It is not called any more when wake_leave() returns. */
void wake_join(WakeMember *member);
void wake_leave(WakeMember *member);

/* After the commit: notify the item's domain if a worker can claim the command now, that is, it is new, not delayed and not started. */
void waker_notify_sent(Waker *waker, const SendItem *item);

/* The same for each of the names that a column `wake` joins by commas; NULL: none. */
void waker_notify_names(Waker *waker, const char *domains);

/* Called after a commit with the name of each domain in which the transaction queued commands. */
typedef struct {
    void (*call)(void *context, const char *domain);
    void *context;
} Wake;
/* For each of the names; wake or domains NULL: nothing is called. */
void wake_names(const Wake *wake, const char *domains);
/* waker_notify() as such a call. */
Wake waker_wake(Waker *waker);

/* Domains to notify after the commit, each once; {0} is empty. */
typedef struct WakeDomain WakeDomain;
typedef struct {
    WakeDomain *first;
} WakeList;
/* In the transaction: what waker_notify_sent() would notify. The list is in the arena. */
void wake_list_add_sent(WakeList *list, Arena *arena, const SendItem *item);
/* The same domains in another arena, for a caller that outlives that of the transaction. */
WakeList wake_list_copy(const WakeList *list, Arena *arena);
/* After its commit. */
void waker_notify_list(Waker *waker, const WakeList *list);

#endif
