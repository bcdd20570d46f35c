/*
 * share.c - see share.h: holders in the order of their turns, each with a queue of requests.
 */
#include "base/share.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sync.h"

#define STOP_POLL_MS 100

/* A request that waits; its caller's. */
typedef struct ShareRequest ShareRequest;
struct ShareRequest {
    ShareRequest *next;
    int64_t       amount;
    bool          is_granted;
};

/* Exists while it has something or waits. */
typedef struct ShareHolder ShareHolder;
struct ShareHolder {
    ShareHolder  *next;
    char         *name;
    int64_t       held;
    ShareRequest *first;
};

struct Share {
    Mutex        mutex; /* guards the rest */
    Cond         granted;
    int64_t      most, used;
    ShareHolder *first; /* whose turn is next; served holders go to the end */
};

Share *share_new(int64_t most)
{
    Share *share = memory_new(1, sizeof *share);

    share->most = most;
    mutex_init(&share->mutex);
    cond_init(&share->granted);
    return share;
}

void share_free(Share *share)
{
    assert(!share->first);
    cond_done(&share->granted);
    mutex_done(&share->mutex);
    free(share);
}

/* ---- under the mutex ---- */

static void holder_append(Share *share, ShareHolder *holder)
{
    ShareHolder **at = &share->first;

    while (*at)
        at = &(*at)->next;
    holder->next = NULL;
    *at          = holder;
}

static void holder_remove(Share *share, const ShareHolder *holder)
{
    ShareHolder **at = &share->first;

    while (*at != holder)
        at = &(*at)->next;
    *at = holder->next;
}

static ShareHolder *holder_get(Share *share, const char *name)
{
    ShareHolder *holder = share->first;

    while (holder && strcmp(holder->name, name) != 0)
        holder = holder->next;
    if (holder)
        return holder;
    holder       = memory_new(1, sizeof *holder);
    holder->name = memory_text(name);
    holder_append(share, holder);
    return holder;
}

static void holder_drop_idle(Share *share, ShareHolder *holder)
{
    if (holder->held > 0 || holder->first)
        return;
    holder_remove(share, holder);
    free(holder->name);
    free(holder);
}

static void holder_add(Share *share, ShareHolder *holder, int64_t amount)
{
    holder->held += amount;
    share->used += amount;
}

static bool request_fits(const Share *share, const ShareHolder *holder, int64_t amount)
{
    return share_allows(share->most, share->used, holder->held, amount);
}

/* The first holder in turn whose first request is granted now; NULL: none. */
static ShareHolder *holder_find_next(const Share *share)
{
    for (ShareHolder *holder = share->first; holder; holder = holder->next) {
        if (!holder->first)
            continue;
        if (request_fits(share, holder, holder->first->amount))
            return holder;
        if (holder->held == 0)
            return NULL; /* what it waits for is not given to those behind it */
    }
    return NULL;
}

static void share_serve(Share *share)
{
    ShareHolder *holder;

    while ((holder = holder_find_next(share))) {
        ShareRequest *request = holder->first;

        holder->first       = request->next;
        request->is_granted = true;
        holder_add(share, holder, request->amount);
        holder_remove(share, holder);
        holder_append(share, holder);
        cond_broadcast(&share->granted);
    }
}

static void request_append(ShareHolder *holder, ShareRequest *request)
{
    ShareRequest **at = &holder->first;

    while (*at)
        at = &(*at)->next;
    *at = request;
}

static void request_remove(ShareHolder *holder, const ShareRequest *request)
{
    ShareRequest **at = &holder->first;

    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
}

/* ---- public ---- */

bool share_take(Share *share, const char *holder_name, int64_t amount, ShareStop *must_stop, void *context)
{
    scoped(mutex_unlock) Mutex *held    = mutex_hold(&share->mutex);
    ShareHolder                *holder  = holder_get(share, holder_name);
    ShareRequest                request = {.amount = amount};

    request_append(holder, &request);
    share_serve(share);
    while (!request.is_granted) {
        if (must_stop(context)) {
            request_remove(holder, &request);
            holder_drop_idle(share, holder);
            share_serve(share); /* it may have been in the way of others */
            return false;
        }
        (void)cond_wait(&share->granted, &share->mutex, deadline_in_ms(STOP_POLL_MS));
    }
    return true;
}

bool share_try(Share *share, const char *holder_name, int64_t amount)
{
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&share->mutex);
    ShareHolder                *holder = holder_get(share, holder_name);
    bool                        fits   = !holder->first && request_fits(share, holder, amount);

    holder_add(share, holder, fits ? amount : 0);
    holder_drop_idle(share, holder);
    return fits;
}

int64_t share_give(Share *share, const char *holder_name, int64_t amount)
{
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&share->mutex);
    ShareHolder                *holder = holder_get(share, holder_name);

    assert(holder->held >= amount);
    holder_add(share, holder, -amount);
    holder_drop_idle(share, holder);
    share_serve(share);
    return share->used;
}
