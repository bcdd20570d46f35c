/*
 * pool_internal.h - what pool.c, pool_slot.c (slots and waiters), pool_open.c (connecting), pool_end.c (processes that
 * outlive their deadline) and janitor.c (upkeep) share.
 *
 * A slot is what pool_acquire() hands out: a Checkout. The thread that moved a slot to OPENING, CHECKED or ACQUIRED
 * owns it and its connection until it gives it back with slot_offer(); so the mutex guards the lists and counts, and is
 * not held during I/O.
 */
#ifndef PG_POOL_INTERNAL_H
#define PG_POOL_INTERNAL_H

#include <stdatomic.h>

#include "base/sync.h"
#include "pg/pool.h"

/* While the breaker is open this many callers per connection wait for the next probe; more are refused immediately. */
#define POOL_OUTAGE_WAITERS 4

typedef enum {
    SLOT_FREE,
    SLOT_OPENING,
    SLOT_IDLE,
    SLOT_CHECKED,
    SLOT_ACQUIRED,
    SLOT_ENDING,
    SLOT_STATE_COUNT
} SlotState;

struct Checkout {
    Pool     *pool;
    SlotState state;
    Conn     *conn; /* NULL while FREE, OPENING and ENDING */
    Checkout *next; /* in the free or the idle list */
    unsigned  generation;
    Mono      idle_since;
    Mono      checked_at;
    Mono      retire_at;
    Mono      acquired_at;
    bool      answered; /* on this checkout: the server is well */
    bool      ordinary; /* held by a caller that is not urgent */
    int       process;  /* of the server, that runs code which is not pawl's for this slot; 0: none */
    Mono      begun_at; /* its transaction */
    bool      is_over;  /* end it, although the slot is still held */
    bool      is_ended; /* the janitor's: it has signaled the process */
};

typedef struct Waiter Waiter;
struct Waiter {
    Cond      cond;
    Waiter   *next;
    Deadline  deadline;
    bool      urgent, soon;
    bool      prompt;
    Checkout *own;     /* the slot that it has, when the server has no connection left: it waits for a connected one */
    Checkout *slot;    /* handed over: ACQUIRED with a connection, or OPENING without */
    ErrorCode refused; /* not OK: it gets none, for this reason */
};

struct Pool {
    PoolOptions options; /* conninfo and name are copies of our own */
    atomic_bool is_outdated;
    Cut         closed; /* of what the janitor waits for */
    Mutex       mutex;  /* guards everything below */
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
    bool        runs_foreign; /* it has run code that is not pawl's */
    Conn       *ender;        /* the janitor's own, to end such code; over size_max */
    Mono        next_ender;   /* not opened before */
    bool        ends_own;     /* the janitor's: the login of end_conninfo has no right to end what runs in this pool */
    Cond        janitor_wake;
    bool        janitor_woken, janitor_stop;
    pthread_t   janitor;
};

/* ---- pool_slot.c; the mutex is held ---- */

bool      pool_is_quiet(const Pool *pool); /* all slots are free or idle */
void      slot_move(Checkout *slot, SlotState state);
Checkout *slot_pop(Checkout **list, SlotState state); /* NULL: the list is empty */
void      slot_push(Checkout **list, Checkout *slot, SlotState state);
void      slot_fill(Checkout *slot, Conn *conn);
bool      slot_is_stale(const Checkout *slot);
/* A slot its owner is done with: to the first waiter, or to its list. */
void slot_offer(Checkout *slot);
/* The caller that holds it counts against what ordinary callers may take, or no longer. */
void slot_hold(Checkout *slot, bool urgent);
void slot_let_go(Checkout *slot);
bool ordinary_may_take(const Pool *pool);
/* Wait in the queue until a slot is handed over; NULL: the deadline has passed, or *ret_refused. The mutex is released
 * meanwhile. own: see Waiter. */
Checkout *waiters_join(Pool *pool, Deadline deadline, int wishes, Checkout *own, ErrorCode *ret_refused);
void      waiters_refuse(Pool *pool, ErrorCode code);
/* Could the next probe succeed before the deadline? */
bool probe_is_worth_waiting(const Pool *pool, Deadline deadline);
/* The breaker has closed: idle and free slots go to waiters. */
void waiters_serve(Pool *pool);
/* The next probe was put off: waiters whose deadline comes before it are refused. */
void waiters_refuse_late(Pool *pool);
/* A failure that says something about the server. */
void failure_record(Pool *pool, const Error *error);
void pool_wake_janitor(Pool *pool);
void pool_gauges(const Pool *pool);

/* ---- pool.c ---- */

/* The error of a caller that gets no connection; the mutex is held. */
ErrorCode pool_refuse(const Pool *pool, ErrorCode code, Error *reterr);
/* A slot for a caller: connected, or OPENING. The mutex is not held. */
must_check ErrorCode slot_take(Pool *pool, int wishes, Deadline deadline, Checkout **ret_slot, Error *reterr);

/* ---- pool_open.c; the mutex is not held ---- */

/* The least time for a try to connect that says something about the server. */
int pool_fair_ms(const Pool *pool);
/* One try to connect as this pool's callers do. */
must_check ErrorCode pool_connect(const Pool *pool, Deadline deadline, Conn **ret_conn, Error *reterr);
/* The slot is the caller's and OPENING: close the connection that it held, connect, and keep trying while that makes
 * sense. *ret_slot: this one, or another one that was handed over meanwhile, which may be OPENING too. */
must_check ErrorCode slot_open(Checkout *slot, int wishes, Deadline deadline, Checkout **ret_slot, Error *reterr);
void                 slot_give_back(Checkout *slot);
/* One try to connect a slot that is OPENING; then it is ACQUIRED. *ret_held: nothing was tried, because the breaker is
 * not closed. A failure is not noted: that is for the caller, once. */
must_check ErrorCode slot_connect(Checkout *slot, Deadline deadline, bool *ret_held, Error *reterr);

/* ---- pool_end.c ---- */

/* Its connection is about to be closed. May the server's process go on running code that is not pawl's? */
bool slot_may_run_on(const Checkout *slot);
/* For the janitor: end such processes, and free the slots of those that are gone. The mutex is not held. true: some are
 * left. */
bool endings_tend(Pool *pool);
void ender_check(Pool *pool); /* is the connection for that still alive? */

/* ---- janitor.c ---- */

/* Nothing that the janitor waits for is worth a wait of pool_free(). */
Deadline   janitor_deadline(const Pool *pool, int ms);
bool       conn_answers(Pool *pool, Conn *conn);
ThreadBody janitor_run; /* context: the Pool */

#endif
