/*
 * locked.c - a small table, in which a new wallet replaces the oldest.
 */
#include "wallet/ledger_internal.h"

#include "base/hash.h"

/* Under the mutex: the place of this wallet, else where it would be put. */
static int locked_place(const LockedWallets *locked, uint64_t owner)
{
    int oldest = 0;

    for (int i = 0; i < LOCKED_MAX; i++) {
        if (locked->list[i].owner == owner)
            return i;
        if (mono_before(locked->list[i].at, locked->list[oldest].at))
            oldest = i;
    }
    return oldest;
}

void locked_add(LockedWallets *locked, const char *owner)
{
    if (!owner)
        return;
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&locked->mutex);
    uint64_t                    hash  = hash_text(owner);
    int                         place = locked_place(locked, hash);

    locked->list[place].owner = hash;
    locked->list[place].at    = clock_mono();
}

/* Under the mutex. */
static bool owner_is_locked(const LockedWallets *locked, const char *owner, Mono since)
{
    if (!owner)
        return false;
    uint64_t hash  = hash_text(owner);
    int      place = locked_place(locked, hash);

    return locked->list[place].owner == hash && locked->list[place].at.ns != 0 &&
           !mono_before(locked->list[place].at, since);
}

bool locked_has(LockedWallets *locked, const WalletItem *item, Mono since)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&locked->mutex);
    bool found = owner_is_locked(locked, item->owner, since) || owner_is_locked(locked, item->other, since);

    for (int i = 0; i < item->legs.count && !found; i++)
        found = owner_is_locked(locked, item->legs.list[i].owner, since);
    return found;
}

void locked_init(LockedWallets *locked)
{
    mutex_init(&locked->mutex);
}

void locked_done(LockedWallets *locked)
{
    mutex_done(&locked->mutex);
}
