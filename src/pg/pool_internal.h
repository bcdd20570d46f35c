/*
 * pool_internal.h - what pool.c (callers) and janitor.c (upkeep) share; nobody else includes it.
 *
 * A slot is what pool_acquire() hands out: a Checkout. Whoever moved a slot to OPENING, CHECKED or ACQUIRED owns it and its
 * connection alone until it gives it back with slot_offer(); so the mutex guards the lists and counts, not the traffic.
 */
#ifndef PG_POOL_INTERNAL_H
#define PG_POOL_INTERNAL_H

#include "base/sync.h"
#include "pg/pool.h"

typedef enum { SLOT_FREE, SLOT_OPENING, SLOT_IDLE, SLOT_CHECKED, SLOT_ACQUIRED, SLOT_STATE_COUNT } SlotState;

struct Checkout {
    Pool     *pool;
    SlotState state;
    Conn     *conn; /* NULL while FREE and OPENING */
    Checkout *next; /* in the free or the idle list */
    unsigned  generation;
    Mono      idle_since;
    Mono      checked_at;
    Mono      retire_at;
    Mono      acquired_at;
    bool      answered; /* on this checkout: the server is well */
    bool      ordinary; /* held by a caller that is not urgent */
};

typedef struct Waiter Waiter;
struct Waiter {
    Cond      cond;
    Waiter   *next;
    Deadline  deadline;
    bool      urgent;
    bool      prompt;
    Checkout *own;     /* it has a slot, and the server no connection to spare: only another's connection helps */
    Checkout *slot;    /* handed over: ACQUIRED with a connection, or OPENING without */
    ErrorCode refused; /* not OK: nobody will come */
};

struct Pool {
    PoolOptions options; /* conninfo and name are copies of our own */
    Mutex       mutex;   /* guards everything below */
    Checkout   *slots;
    int         counts[SLOT_STATE_COUNT];
    Checkout   *free, *idle; /* idle: newest first */
    Waiter     *first, **last;
    int         waiting;
    int         ordinary; /* slots held by callers that are not urgent */
    Breaker     breaker;
    unsigned    generation; /* connections of a former one are closed, not reused */
    bool        closing;
    Cond        drained;
    Error       last_error;
    bool        answered;  /* there was a connection once */
    bool        opened;    /* the breaker opened and the janitor has not said so yet */
    bool        suspected; /* the last silence would have opened the breaker: the janitor asks the server */
    Mono        next_check;
    Cond        janitor_wake;
    bool        janitor_woken, janitor_stop;
    pthread_t   janitor;
};

/* The mutex is held. */
void      slot_move(Checkout *slot, SlotState state);
Checkout *slot_pop(Checkout **list, SlotState state); /* NULL: the list is empty */
void      slot_fill(Checkout *slot, Conn *conn);
bool      slot_is_stale(const Checkout *slot);
/* A slot its owner is done with: to the first waiter, or to its list. */
void slot_offer(Checkout *slot);
/* The breaker has closed: idle and free slots go to waiters. */
void waiters_serve(Pool *pool);
/* The next probe was put off: waiters whose deadline comes before it are refused. */
void waiters_refuse_late(Pool *pool);
/* A failure that says something about the server. */
void failure_note(Pool *pool, const Error *error);
void pool_gauges(const Pool *pool);

/* The mutex is not held. */
void slot_give_back(Checkout *slot);
/* One try to connect a slot that is OPENING; then it is ACQUIRED. *ret_held: nothing was tried, because the breaker is not
 * closed. A failure is not noted: that is for the caller, once. */
must_check ErrorCode slot_connect(Checkout *slot, Deadline deadline, bool *ret_held, Error *reterr);

ThreadBody janitor_run; /* context: the Pool */

#endif
