/*
 * leases.h - settles, extensions and progress of workers that name commands by domain and id, such as those over HTTP: no thread waits for one, and
 * concurrent calls share statements.
 *
 * Invariants
 *   1. An item that cannot be settled affects no other item and no other call.
 *   2. An item whose lease another transaction has locked is tried again for a second, apart from the other calls; then it is busy.
 *   3. Extensions and progress are apart from settles, and may use the connection that the pool keeps for heartbeats.
 * Threads: any. on_done is called exactly once, on another thread or in the submitting call, without a lock held; it must not block.
 * Ownership: calls, their items and ids are borrowed until then.
 */
#ifndef BUS_LEASES_H
#define BUS_LEASES_H

#include "bus/lease.h"
#include "bus/progress.h"
#include "bus/settle.h"

typedef struct Leases Leases;

typedef struct {
    const char  *domain;
    SettleItem **items; /* with command_id; id is filled */
    int          count;
    Deadline     deadline;
    void (*on_done)(void *context);
    void *context;
    /* OK: each item has its own code. Otherwise nothing was settled. */
    ErrorCode code;
    Error     error;
    /* Set by leases_settle(). */
    Leases      *leases;
    SettleItem **open; /* items without a verdict */
    int          open_count;
    bool         is_numbered;
    Deadline     until; /* busy items are tried again */
} SettleCall;

/* Leases to extend, or progress to report. */
typedef struct {
    const char        *domain;
    const char *const *ids; /* of the commands */
    int                count;
    const int64_t     *tokens;   /* of leases to extend */
    int                lease_ms; /* of them */
    ProgressItem      *items;    /* to report */
    int               *verdicts; /* filled: LeaseVerdict, or ProgressVerdict */
    Deadline           deadline;
    void (*on_done)(void *context);
    void *context;
    /* OK, or why nothing was written. */
    ErrorCode code;
    Error     error;
} LeaseCall;

/* wake: called with the domains in which settles queued commands; borrowed. */
Leases *leases_new(Pool *pool, const Wake *wake);
void    leases_free(Leases *leases);
SCOPED(Leases, leases_free)
/* open: an array of count elements. */
void leases_settle(Leases *leases, SettleCall *call, SettleItem **open);
void leases_extend(Leases *leases, LeaseCall *call);
void leases_progress(Leases *leases, LeaseCall *call);

#endif
