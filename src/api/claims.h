/*
 * claims.h - claims over HTTP: one wait list per key, domain and set of types, and no thread for each waiter.
 *
 * A group is a key of the API with a domain and a set of types: its claim cursor (bus/claim.h), shared by all requests, and the requests that wait, in
 * the order they came. Few threads serve all groups: one claim at a time for a group, for its first waiters together: those with the lease time of the
 * first, up to SERVED_MAX. What it finds goes to them in their order. One that finds nothing counts for all waiters of the group, however many.
 *
 *     submitted -> group is due                        group is due, its turn comes -> claim for the first waiters
 *     notification of the domain -> group is due       found nothing -> all wait for the next poll, 200 ms later, or up to 5 s if polls take long
 *                                                      found nothing in a part of the queue -> group is due
 *     a poll found something for it -> group is due    a poll found nothing for it -> wait for the next one
 *
 * Invariants
 *   1. on_done comes exactly once for each submitted wait, under no lock. `until` bounds it, and the claim under way then. A wait with nothing
 *      is not done before claims have read the whole queue for it; its group claims in parts (claimer_claim_part). If that takes until its request's
 *      deadline, it fails with ERR_TIMEOUT.
 *   2. A wait that was canceled gets no commands: if a claim for it was under way, what it found is released, and no attempt counts.
 *   3. A notification makes only groups of its domain claim, once each. Idle groups cost one statement every POLL_MS for each thousand of
 *      them, with any number of waiters. A wait takes no memory beyond itself, however often its group claims.
 *   4. While pool_is_outdated() nothing is claimed: waits end within a poll, with ERR_UNAVAILABLE.
 *   5. At most GROUPS_KEPT groups without waiters keep their cursor; of the keys and their domains that have more than their share, the one not used
 *      for longest goes first.
 *   6. A response has as many of the claimed commands as fit, and only these keep their leases.
 *   7. Keys take turns, regardless of how many domains they have, and so do the domains of a key, regardless of how many groups they have. No claim reads
 *      for longer than a part, so a claim waits for at most one of each other key, and in the turns of its key for one of each other domain. While groups
 *      of several keys are known, one key has at most all threads but one; likewise one domain of those of its key.
 * Threads: any; claims_new() starts its own. Ownership: a wait is borrowed until claims_end(); its list lives until then.
 */
#ifndef API_CLAIMS_H
#define API_CLAIMS_H

#include <sys/queue.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/writer.h"
#include "bus/claim.h"
#include "http/request.h"
#include "pg/listen.h"

typedef struct Claims     Claims;
typedef struct ClaimGroup ClaimGroup;

typedef struct ClaimWait ClaimWait;
struct ClaimWait {
    const char        *key; /* of the client: keys take turns */
    const char        *domain;
    const char *const *types;
    int                type_count; /* 0: all */
    int                limit, lease_ms;
    const char        *worker;
    Deadline           until;    /* wait for work until then; already passed: a single claim */
    Deadline           deadline; /* of its request */
    /* on_found is called with what was claimed, on a thread that claims, under no lock: it may read more about it, and release a part of it. On a
     * failure all of what is left is released. What it puts into the arena lives until they are written. NULL: none. */
    ErrorCode (*on_found)(ClaimWait *wait, Arena *arena, ClaimedCommand *list, int *count, Error *reterr);
    void *owner; /* for on_found */
    /* The nth command as an item of the response. On a thread that claims, like on_found. */
    ErrorCode (*write)(const ClaimWait *wait, Writer *writer, const ClaimedCommand *list, int n, Arena *arena,
                       Error *reterr);
    void (*on_done)(void *context);
    void *context;
    /* The outcome, at on_done. */
    ErrorCode       code;
    Error           error;
    Text            body; /* the response with the commands; empty: none was found */
    ClaimedCommand *list; /* ids and tokens */
    int             count;
    void           *found; /* by on_found */
    /* Of claims.c. */
    Claims     *claims;
    ClaimGroup *group;  /* NULL: it does not wait */
    Arena      *arena;  /* of the list */
    int64_t     number; /* in the order of arrival */
    bool        tried, running, canceled;
    TAILQ_ENTRY(ClaimWait) link;
};

/* listen may be NULL. */
Claims *claims_new(Pool *pool, Listen *listen);
/* All that wait are done, with nothing; so is what comes from now on. */
void claims_stop(Claims *claims);
void claims_free(Claims *claims); /* every wait was ended */
SCOPED(Claims, claims_free)

void claims_submit(Claims *claims, ClaimWait *wait);
/* Its client is gone: it is done as soon as no claim for it is under way, maybe in here. Also right before claims_submit(). */
void claims_cancel(Claims *claims, ClaimWait *wait);
/* After on_done. delivered false: the response did not reach the client, so its commands are released. */
void claims_end(ClaimWait *wait, bool delivered);
/* Suspend the request until the wait is done; then it is resumed with what `write` writes, and the wait is ended. The caller fills in all
 * above `write`. */
void claims_suspend(Claims *claims, Request *request, ClaimWait *wait);

#endif
