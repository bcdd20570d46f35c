/*
 * lease.h - what a worker does with leases that it has, other than settle their commands: extend, release and postpone them.
 *
 * Invariant: only leases under the tokens given are changed; one that has ended, or has another token by now, is left alone. So every call may be
 * repeated. No call waits for another transaction.
 * Threads: any.
 */
#ifndef BUS_LEASE_H
#define BUS_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "bus/claim.h"
#include "pg/pool.h"

/* What became of one lease. */
typedef enum {
    LEASE_EXTENDED,
    LEASE_CANCELED,
    LEASE_LOST,
    LEASE_BUSY,     /* still the caller's, and unchanged: another transaction has it locked */
    LEASE_RELEASED, /* the last one: lease_verdicts (answers.h) are those of lease_extend() */
} LeaseVerdict;

/* As pawl.lease_token() in SQL: random, 53 bits. */
int64_t lease_token_new(void);

/* Heartbeat: keep leases for lease_ms more. A verdict for each. */
must_check ErrorCode lease_extend(Pool *pool, Deadline deadline, Arena *arena, const int64_t *ids,
                                  const int64_t *tokens, int count, int lease_ms, LeaseVerdict *ret_verdicts,
                                  Error *reterr);

/* Undo a claim: commands that were not begun are queued again, and the attempt does not count. ret_verdicts: of each; NULL: leases that are busy may
 * expire. */
must_check ErrorCode lease_release(Pool *pool, Deadline deadline, Arena *arena, const ClaimedCommand *list, int count,
                                   LeaseVerdict *ret_verdicts, Error *reterr);

/* One of them after delay_ms, because it cannot be done yet. reason: for the audit. *ret_settled: the lease was the caller's. */
must_check ErrorCode lease_postpone(Pool *pool, Deadline deadline, Arena *arena, const ClaimedCommand *command,
                                    int64_t delay_ms, const char *reason, bool *ret_settled, Error *reterr);

#endif
