/*
 * byte_share.c - see byte_share.h.
 */
#include "process/byte_share.h"

#include <malloc.h>

#define STOP_POLL_MS 100

struct ByteWait {
    ByteWait *next;
};

void byte_share_init(ByteShare *share, size_t most)
{
    *share = (ByteShare){.most = most};
    mutex_init(&share->mutex);
    cond_init(&share->changed);
    share->end = &share->first;
}

void byte_share_done(ByteShare *share)
{
    cond_done(&share->changed);
    mutex_done(&share->mutex);
}

static bool bytes_fit(const ByteShare *share, size_t bytes)
{
    return share->used == 0 || (share->used < share->most && bytes <= share->most - share->used);
}

static void wait_remove(ByteShare *share, const ByteWait *wait)
{
    ByteWait **at = &share->first;

    while (*at != wait)
        at = &(*at)->next;
    *at = wait->next;
    if (!*at)
        share->end = at;
    cond_broadcast(&share->changed); /* the next one may fit */
}

bool byte_share_take(ByteShare *share, Run *run, size_t bytes)
{
    scoped(mutex_unlock) Mutex *held    = mutex_hold(&share->mutex);
    ByteWait                    wait    = {0};
    bool                        stopped = false;

    *share->end = &wait;
    share->end  = &wait.next;
    while (share->first != &wait || !bytes_fit(share, bytes)) {
        stopped = run_must_stop(run);
        if (stopped)
            break;
        (void)cond_wait(&share->changed, &share->mutex, deadline_in_ms(STOP_POLL_MS));
    }
    wait_remove(share, &wait);
    share->used += stopped ? 0 : bytes;
    return !stopped;
}

void byte_share_add(ByteShare *share, size_t bytes)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&share->mutex);

    share->used += bytes;
}

void byte_share_give(ByteShare *share, size_t bytes)
{
    bool is_last;

    mutex_lock(&share->mutex);
    share->used -= bytes;
    is_last = share->used == 0;
    cond_broadcast(&share->changed);
    mutex_unlock(&share->mutex);
    if (is_last)
        malloc_trim(0); /* the memory of large inputs is returned to the system */
}
