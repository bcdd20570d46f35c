/*
 * settle.h - settle leased commands in batches, each with a verdict of its own.
 *
 * Invariant: an outcome counts only under the token it was claimed with. A worker whose lease has expired gets `settled = false` and
 * the present status of the command; nothing changes. A repeated settle, after a lost response, gets the same verdict once the
 * command has ended by it.
 * Threads: any. Ownership: items are borrowed until the call returns; status is one of a few constants.
 */
#ifndef BUS_SETTLE_H
#define BUS_SETTLE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "bus/metric.h"
#include "bus/waker.h"
#include "pg/pool.h"
#include "pg/query.h"

#define OUTCOMES(X)                 \
    X(OUTCOME_COMPLETE, "complete") \
    X(OUTCOME_RETRY, "retry")       \
    X(OUTCOME_FAIL, "fail")         \
    X(OUTCOME_REJECT, "reject")     \
    X(OUTCOME_SNOOZE, "snooze")
#define X(outcome, name) outcome,
typedef enum { OUTCOMES(X) OUTCOME_COUNT } Outcome;
#undef X
extern const char *const outcome_names[OUTCOME_COUNT + 1]; /* NULL-terminated */

#define SETTLE_DELAY_DEFAULT (-1)
#define SNOOZE_S_MIN         1
#define SNOOZE_S_MAX         2592000 /* 30 days */
#define SETTLE_MAX           10000
#define SETTLE_ERROR_MAX     8192 /* bytes of error text kept */
#define SETTLE_RESULT_MAX    ((size_t)4 << 20)

typedef struct {
    int64_t     id, token;
    Outcome     outcome;
    const char *result;   /* JSON or NULL */
    const char *error;    /* text or NULL; cut at SETTLE_ERROR_MAX, what is not UTF-8 becomes "?" */
    int64_t     delay_ms; /* retry: SETTLE_DELAY_DEFAULT follows the schedule; snooze: of it, 10 s */
    /* What the caller believes it settles, for the trace of a command that does not exist; NULL where id is known. */
    const char *domain, *command_id;
    /* The verdict. */
    bool        settled;
    bool        again;     /* it had been settled by the same settle before, whose response was lost */
    const char *status;    /* "COMPLETED", "PENDING", ... */
    ErrorCode   code;      /* OK also when not settled; an error: this item could not even be judged */
    bool        postponed; /* by its handler (release.h): neither an end nor a failure */
    const char *wake; /* domains in which the transaction queued commands, joined by commas, in its arena; NULL: none */
    bool  busy; /* ERR_BUSY, because another transaction that has not ended has the lease locked; nothing was done */
    Error error_text;
} SettleItem;

/* All in one statement, one transaction. The return value is about the call as a whole. A lease that another transaction has locked
 * (an application's cancel that is not committed yet) is not waited for: that item is busy. */
must_check ErrorCode settle_many(Pool *pool, Deadline deadline, Arena *arena, SettleItem **items, int count,
                                 Error *reterr);

/* The same as part of a transaction: what the handler wrote and that it is done commit together. Not settled: roll back, also
 * if it had been settled before (again), because then what was written has been committed once already. */
must_check ErrorCode settle_in(Tx *tx, SettleItem **items, int count, Error *reterr);
/* The same without neighbours failing each other: each item has its code. Busy items are tried again for a second. */
void settle_each(Pool *pool, Deadline deadline, const Wake *wake, SettleItem **items, int count);
/* It was canceled while it was leased: no outcome of the handler counts but a completion. */
bool settle_is_canceled(const SettleItem *item);
/* Into the metrics, also those of its domain, once for each item, after its transaction has ended. */
void settle_count(const SettleItem *item, DomainMetrics *domain);

#endif
