/*
 * release.h - undo a claim: commands that were not begun are queued again, now or later, and the attempt does not count.
 *
 * Leases that have ended, or that have another token by now, are left alone, so it may be repeated.
 * Threads: any.
 */
#ifndef BUS_RELEASE_H
#define BUS_RELEASE_H

#include "bus/claim.h"

must_check ErrorCode lease_release(Pool *pool, Deadline deadline, Arena *arena, const ClaimedCommand *list, int count,
                                   Error *reterr);

/* One of them after delay_ms, because it cannot be done yet. reason: for the audit. *ret_settled: the lease was the caller's. */
must_check ErrorCode lease_postpone(Pool *pool, Deadline deadline, Arena *arena, const ClaimedCommand *command,
                                    int64_t delay_ms, const char *reason, bool *ret_settled, Error *reterr);

#endif
