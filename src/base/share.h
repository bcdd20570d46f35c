/*
 * share.h - a resource of the pod (connections, bytes, threads) that holders share fairly; a holder is a domain, or a
 * type of commands.
 *
 * Each holder has a queue, and the queues are served in turn. A holder that has something gets more only while it has
 * at most SHARE_FACTOR times what is left free. So a holder that is slow, hangs or is huge leaves a part to the others,
 * whatever it asks for.
 *
 * Invariants
 *   1. No more than `most` is taken, but for an amount above `most`, which is granted when nothing is taken.
 *   2. Requests of one holder are granted in their order. A holder that has nothing is not overtaken when its turn has
 *      come, so a large request is not starved by small ones.
 * Threads: any. Ownership: share_free() when nothing is taken.
 */
#ifndef BASE_SHARE_H
#define BASE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

#define SHARE_FACTOR 3

typedef struct Share Share;
/* Must the caller give up? Asked about every 100 ms. */
typedef bool ShareStop(void *context);

Share *share_new(int64_t most);
void   share_free(Share *share);
/* Wait for an amount. A caller that holds some already must not wait for more. false: must_stop(context) was true. */
must_check bool share_take(Share *share, const char *holder, int64_t amount, ShareStop *must_stop, void *context);
/* Without waiting. false: not now. */
must_check bool share_try(Share *share, const char *holder, int64_t amount);
/* Returns what is still taken, by all holders. */
int64_t share_give(Share *share, const char *holder, int64_t amount);

/* The rule: of `most`, `used` is taken, `held` of it by one holder. May that holder have an amount more? */
static inline bool share_allows(int64_t most, int64_t used, int64_t held, int64_t amount)
{
    int64_t left = most - used - amount;

    return held == 0 ? used == 0 || left >= 0 : left >= 0 && held + amount <= SHARE_FACTOR * left;
}

/* The smallest number of places of which one holder gets `places`. */
static inline int share_size(int places)
{
    return places + (places + SHARE_FACTOR - 1) / SHARE_FACTOR;
}

#endif
