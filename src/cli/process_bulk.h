/*
 * process_bulk.h - the processes that the arguments of a command name: one, or all that a filter matches (--all).
 *
 * All are decided about in chunks, and moved in transactions of some milliseconds, so that signals to them never wait
 * long. Those that other transactions have locked are repeated for a few seconds, then counted and named.
 */
#ifndef CLI_PROCESS_BULK_H
#define CLI_PROCESS_BULK_H

#include "cli/command.h"
#include "process/process.h"

typedef struct LockedList LockedList;

/* What is done to all processes that match: a decision, or a move to a version. */
typedef struct {
    const ProcessDecision *decision; /* NULL: move */
    int                    version;
    int                    move_count; /* processes that the next transaction moves */
    const char            *reason;
    LockedList            *locked;
    /* What came of it. left: of those that were locked. */
    int64_t matched, decided, known, refused, left;
} ProcessBulk;

/* status: the only one that the decision is about; NULL: any that has not ended. ERR_CONFLICT: some were refused. ERR_BUSY: some are locked. */
must_check ErrorCode process_bulk_run(Call *call, const char *status, ProcessBulk *bulk, Error *reterr);

/* Those that flags name; no limit. */
must_check ErrorCode process_filter_read(const Call *call, ProcessFilter *ret_filter, Error *reterr);
/* One: ID and --domain. */
must_check ErrorCode process_name_read(const Call *call, ProcessName *ret_name, Error *reterr);

#endif
