/*
 * outcome_wait.h - waits for the ends of commands and processes, without a thread for each waiter.
 *
 *     submitted -> found by its id -> asked about -> done: it has ended
 *                                               `-> done: its time is over, or its caller has canceled the wait
 *                          `-> done: it is unknown, has ended already, or may not be waited for
 *
 * One thread serves all waits of an OutcomeWaits. One statement finds those that are new; one (pawl.outcomes_ended) asks about all that wait, every
 * OUTCOME_POLL_MS, or less often when it takes long: its statements take at most a third of the time of one connection. Settles send no notification, so they
 * cost nothing more, and what an application or another pod settles is seen as soon as what this one does. Without waits there are no statements.
 *
 * Invariants
 *   1. on_done comes exactly once for each submitted wait, under no lock. `until` bounds it, with the statement under way then.
 *   2. A wait says that the command has ended, not how: its caller reads that then. A failed statement ends those waits that it was to find; others are
 *      asked about again.
 * Threads: any. Ownership: a wait is borrowed until on_done.
 */
#ifndef BUS_OUTCOME_WAIT_H
#define BUS_OUTCOME_WAIT_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "pg/pool.h"
#include "pg/query.h"

#define OUTCOME_POLL_MS    25
#define OUTCOME_READ_MS    2000
#define OUTCOME_WAIT_S_MAX 60 /* over HTTP */

typedef struct OutcomeWaits OutcomeWaits;

typedef enum { OUTCOME_WAIT_NEW, OUTCOME_WAIT_FINDING, OUTCOME_WAIT_WAITING, OUTCOME_WAIT_DONE } OutcomeWaitState;

typedef struct OutcomeWait OutcomeWait;
struct OutcomeWait {
    const char *command_id;
    const char *domain; /* on the bus; NULL: the one that has it */
    const char *prefix; /* of the domain's name; NULL: any */
    Deadline    until;
    /* May it wait for a command of this domain? On the thread of the waits, under no lock. NULL: it may. */
    bool (*may_wait)(const OutcomeWait *wait, const char *domain);
    void (*on_done)(void *context);
    void *context;
    /* At on_done. */
    int64_t id; /* the command's number; 0: unknown, or several domains have it */
    bool    has_ended;
    bool    is_allowed; /* it is known, and may be waited for */
    /* Of outcome_wait.c. */
    OutcomeWaitState state;
    bool             canceled; /* for on_done, too */
    TAILQ_ENTRY(OutcomeWait) link;
};

OutcomeWaits *outcome_waits_new(Pool *pool);
/* All that wait are done, as they are; so is what comes from now on. */
void outcome_waits_stop(OutcomeWaits *waits);
void outcome_waits_free(OutcomeWaits *waits); /* every wait is done */
SCOPED(OutcomeWaits, outcome_waits_free)

void outcome_wait_submit(OutcomeWaits *waits, OutcomeWait *wait);
/* Its caller is gone: it is done as soon as it is not being found, maybe in here. Nothing happens if it is done already. */
void outcome_wait_cancel(OutcomeWaits *waits, OutcomeWait *wait);

#define COMMAND_OUTCOME_COLUMNS(X, T) \
    X(T, BOOL, ended)                 \
    X(T, TEXT, status, result, error)
DB_ROW(CommandOutcome, COMMAND_OUTCOME_COLUMNS);
/* How the command of such a wait has ended, or as what it is now. ERR_NOT_FOUND; ERR_CONFLICT: several domains have this id. noun: "command" or
 * "process", for messages. */
must_check ErrorCode outcome_get(Pool *pool, Deadline deadline, Arena *arena, const char *noun, const OutcomeWait *wait,
                                 CommandOutcome *ret_outcome, Error *reterr);
/* Submit, wait, and read how it has ended, or what it is when the time is over; that takes at most OUTCOME_READ_MS more. on_done and context are set
 * in here. While the database is away it is waited for. */
must_check ErrorCode outcome_wait_run(OutcomeWaits *waits, Arena *arena, const char *noun, OutcomeWait *wait,
                                      CommandOutcome *ret_outcome, Error *reterr);

#endif
