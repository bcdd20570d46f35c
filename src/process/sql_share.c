/*
 * sql_share.c - see sql_share.h.
 */
#include "process/sql_share.h"

#include "pg/combiner.h"

#define POOL_PARTS   3
#define STOP_POLL_MS 100

void sql_share_init(SqlShare *share, Pool *pool)
{
    PoolStatus status;

    pool_status(pool, &status);
    mutex_init(&share->mutex);
    cond_init(&share->free);
    share->most = combiner_share(status.size_max, POOL_PARTS);
}

void sql_share_done(SqlShare *share)
{
    cond_done(&share->free);
    mutex_done(&share->mutex);
}

bool sql_share_take(SqlShare *share, Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&share->mutex);

    while (share->used >= share->most) {
        if (run_must_stop(run))
            return false;
        (void)cond_wait(&share->free, &share->mutex, deadline_in_ms(STOP_POLL_MS));
    }
    share->used++;
    return true;
}

void sql_share_give(SqlShare *share)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&share->mutex);

    share->used--;
    cond_signal(&share->free);
}

void sql_share_began(SqlShare *share, SqlUse *use)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&share->mutex);

    use->next      = share->running;
    share->running = use;
}

void sql_share_ended(SqlShare *share, SqlUse *use)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&share->mutex);
    SqlUse                    **at   = &share->running;

    while (*at != use)
        at = &(*at)->next;
    *at = use->next;
}

void sql_share_stop(SqlShare *share, const Job *job)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&share->mutex);

    for (const SqlUse *use = share->running; use; use = use->next)
        if (use->job == job)
            conn_interrupt(use->conn);
}
