/*
 * send_internal.h - what send.c and sender.c share: prepare items, sort them into groups, send them in one transaction.
 */
#ifndef BUS_SEND_INTERNAL_H
#define BUS_SEND_INTERNAL_H

#include "bus/send.h"

/* Of payloads, in one call; as an array in text form, being built, they take several times as much. */
#define SEND_CALL_BYTES_MAX ((size_t)16 << 20)
#define SEND_BYTES_FACTOR   8

/* Check the item and give it its id; its verdict is the return value. */
must_check ErrorCode send_prepare(SendItem *item, Error *reterr);
/* Of a SendItem, for the limit above. */
size_t send_bytes(const void *item);
/* By groups that can share a call, in one order everywhere, so that two senders of two new domains do not wait for each other. The order
 * within a group stays. */
void send_sort(Arena *arena, SendItem **items, int count);
/* Sorted items that are prepared, in one transaction. nowait: other callers share it, so do not wait for concurrent sends. */
must_check ErrorCode send_sorted(Pool *pool, Deadline deadline, Arena *arena, SendItem **items, int count, bool nowait,
                                 Error *reterr);

#endif
