/*
 * ready.h - readiness of the database, and of its schema for this program: one verdict for all callers, at most one check per second.
 *
 * /health/ready is open to anyone, so its cost must not grow with the number of requests. A verdict is kept for READY_MS; callers
 * that find it older share one check.
 * Threads: any.
 */
#ifndef API_READY_H
#define API_READY_H

#include "base/clock.h"
#include "base/error.h"
#include "pg/pool.h"

#define READY_MS 1000

typedef struct Ready Ready;

/* One caller that waits for a check; error is the verdict at on_done. */
typedef struct {
    void (*on_done)(void *context);
    void *context;
    Error error;
} ReadyWait;

Ready *ready_new(Pool *pool);
void   ready_free(Ready *ready);
SCOPED(Ready, ready_free)

/* false: there is no verdict that is new enough. */
bool ready_known(Ready *ready, Error *ret_verdict);
/* on_done(context) is called exactly once, on another thread or in here. No check in time is ERR_TIMEOUT: not ready. */
void ready_submit(Ready *ready, Deadline deadline, ReadyWait *wait);

#endif
