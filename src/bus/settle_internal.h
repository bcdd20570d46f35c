/*
 * settle_internal.h - what leases.c shares with settle.c: parts of a settle of many items, each with a verdict of its own.
 *
 * Threads: any. Ownership: as in settle.h.
 */
#ifndef BUS_SETTLE_INTERNAL_H
#define BUS_SETTLE_INTERNAL_H

#include "bus/settle.h"

#define SETTLE_CALL_BYTES_MAX  ((size_t)16 << 20) /* of the items of one call */
#define SETTLE_BYTES_FACTOR    8
#define SETTLE_CALL_WEIGHT_MAX ((size_t)SETTLE_CALL_BYTES_MAX)
/* For one call, also where its only item is too large to share it. */
#define SETTLE_CALL_ARENA_BYTES ((SETTLE_CALL_BYTES_MAX + SETTLE_RESULT_MAX + SETTLE_ERROR_MAX) * SETTLE_BYTES_FACTOR)

/* What the items weigh in a call of SETTLE_CALL_WEIGHT_MAX, which has at most SETTLE_MAX of them. */
size_t settle_weigh(SettleItem *const *items, int count);
/* Those that can be settled, into ret_good; returns how many. The others have their code. */
int settle_items_good(SettleItem *const *items, int count, SettleItem **ret_good);
/* Those that another transaction holds, first; returns how many. */
int settle_items_busy(SettleItem **items, int count);
/* In one call, then wake. An error: none was settled. */
must_check ErrorCode settle_together(Pool *pool, Deadline deadline, const Wake *wake, Arena *arena, SettleItem **items,
                                     int count, Error *reterr);
/* In as many calls as it takes that no item fails others: each has its code. */
void settle_apart(Pool *pool, Deadline deadline, const Wake *wake, SettleItem **items, int count);

#endif
