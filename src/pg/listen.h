/*
 * listen.h - one LISTEN connection per process. Notifications may be lost, so listeners also poll; a notification only
 * makes them poll earlier.
 *
 * A thread keeps one direct connection, listens to every channel asked for, and calls back for each notification.
 * Behind PgBouncer in transaction mode LISTEN seems to work and nothing ever arrives, so the listener sends itself a
 * notification through the pool every minute. If one does not come back within 3 s, the listener logs that once, and
 * workers poll. So a pooler put in between or taken away is noticed. A lost connection is opened again after 1 s, 2 s
 * and so on up to 30 s.
 *
 * Invariants
 *   1. Whenever listening to a channel begins, at first or after a reconnect, it is called back once with payload NULL:
 *      something may have been missed.
 *   2. Callbacks run on the listener's thread and must be short; none runs after listen_free() returned.
 * Threads: any. Ownership: listen_free() stops the thread and frees: immediately, unless the thread waits for the
 * database, which takes 3 s at most.
 */
#ifndef PG_LISTEN_H
#define PG_LISTEN_H

#include <stdbool.h>

#include "base/error.h"
#include "pg/pool.h"

typedef struct Listen Listen;
typedef void          ListenCallback(void *context, const char *channel, const char *payload);

/* conninfo of the direct connection; pool is used for the self-test. Starts the thread; never waits for the
 * database. */
Listen *listen_new(const char *conninfo, Pool *pool);
void    listen_free(Listen *listen);
SCOPED(Listen, listen_free)
/* channel: a short lower-case name of our own, which any number of callbacks may share. */
void listen_add(Listen *listen, const char *channel, ListenCallback *callback, void *context);
/* The callback does not run any more when this returns; not from a callback. */
void listen_remove(Listen *listen, ListenCallback *callback, void *context);
/* Do notifications arrive right now? */
bool listen_is_up(Listen *listen);

#endif
