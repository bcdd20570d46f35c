/*
 * claim.h - lease commands of one domain, from a cursor behind the rows that were deleted.
 *
 * Positions in the queue only grow. A Claimer keeps, per priority, the last position it took and a watermark below which no row can
 * be left, and claims from there. So it does not scan rows that are deleted but not yet vacuumed, which is what slows queues down
 * while a transaction holds an old snapshot.
 *
 *   position    moves with every claim. Rows below it may still appear: a sender that allocated a smaller number commits later, or a
 *               claim that had locked some rows is rolled back.
 *   watermark   moves only by proof. pawl.decided_position() returns the last number allocated, D, and a transaction id X above that of
 *               every transaction that allocated one. Once no transaction below X that allocates numbers is open (sql/base/allocation.sql;
 *               others may stay open for hours), every number up to D is decided. What a scan in a later snapshot does not find up to
 *               D will never be there, so the watermark moves up to the first row that it finds. A row that an open claim has
 *               locked is found.
 *
 * Most claims begin at the position. When one finds nothing, and otherwise every CLAIM_LOW_MS, a claim begins at the watermark;
 * every CLAIM_FULL_MS one begins at the first row. A server that was restored or failed over to may allocate positions a second
 * time: a claim whose cursor is beyond the last position of the sequence starts at the first row (sql/bus/claim.sql), and the cursor is
 * reset when a row comes from below the watermark, or when positions or transaction ids are smaller than those seen before. Scans
 * below the position that take more than CLAIM_CHEAP_US use at most 1/CLAIM_LOW_SHARE of the time, and come at the latest after
 * CLAIM_PAUSE_MS.
 *
 * A claimer of some types scans the commands of the others, in parts: a statement reads at most CLAIM_READ_MAX of them, and the next
 * one goes on from where it stopped. Until such a scan has ended or found something, no other one begins. After each part the claimer proves that what it
 * read is none of its own, and begins behind that from then on. A scan from the first row proves nothing below the watermark; so one that has found
 * something, such as a command of a higher priority, is kept, and goes on CLAIM_LOW_MS later.
 *
 * A claim is committed without waiting for the flush, unless it has a command in its last attempt. A crash of the server within the next moments may undo it:
 * its token names no lease then, so its worker changes nothing, and the command is claimed again, by the next claim from the first row at the latest. Its settle
 * waits for a flush, which includes that of the claim.
 *
 * Threads: one per Claimer. Ownership: commands live in the arena given to claimer_claim().
 */
#ifndef BUS_CLAIM_H
#define BUS_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "bus/waker.h"
#include "pg/pool.h"
#include "pg/query.h"

#define CLAIM_LOW_MS    100
#define CLAIM_FULL_MS   15000
#define CLAIM_LOW_SHARE 20
#define CLAIM_PAUSE_MS  5000
#define CLAIM_CHEAP_US  5000
#define CLAIM_MAX       10000
#define CLAIM_READ_MAX  5000
#define CLAIM_TYPES_MAX 100
#define PRIORITY_COUNT  10

/* progress: what the attempts before have reported last; NULL: none. lost: the worker of the attempt before was lost. */
#define CLAIMED_COLUMNS(X, T)                  \
    X(T, I64, id, token, pos)                  \
    X(T, UUID, command_id)                     \
    X(T, TEXT, type)                           \
    X(T, JSONB, payload, progress)             \
    X(T, I32, attempt, max_attempts, priority) \
    X(T, BOOL, lost)
typedef struct {
    CLAIMED_COLUMNS(DB_FIELDS, ClaimedCommand)
    void *row; /* of the ClaimSource; NULL: it was claimed without one */
    const char
        *loaded; /* of one that was started without a claim (offer.h): what its handler reads, as JSON; NULL: nothing */
} ClaimedCommand;

/* A statement that claims as sql_bus_claim does, and reads in the same round trip what the commands are run with: it has one more parameter and more
 * columns. Where it fails because of what it reads, a claim reads nothing else. */
typedef struct {
    const char    *sql;
    const DbShape *shape;     /* of a struct that begins with a ClaimedCommand */
    int64_t        bytes_max; /* the parameter: how much it reads */
} ClaimSource;

/* No other lost command is beside it in its worker: if that is lost, it was the cause. */
static inline bool claimed_is_alone(const ClaimedCommand *command)
{
    return command->lost && command->attempt >= command->max_attempts;
}

typedef struct Claimer Claimer;

/* types: only these, ended by NULL; NULL: all. worker: who claims, for the audit. All copied. */
Claimer *claimer_new(Pool *pool, const char *domain, const char *const *types, const char *worker);
void     claimer_free(Claimer *claimer);
SCOPED(Claimer, claimer_free)
/* One of the same types but these, ended by NULL. NULL: none is left. `claimer` must be of types. */
Claimer *claimer_without(const Claimer *claimer, const char *const *types);
bool     claimer_is_same(const Claimer *a, const Claimer *b); /* of the same types in the same order */
/* Who claims from now on. workers: of one claim that serves several, the nth command that it finds is leased to workers[n], of which there are as many
 * as its limit; NULL: all to `worker`. Borrowed until the next call. */
void claimer_serve(Claimer *claimer, const char *worker, const char *const *workers);
/* For the check of a send that starts commands without a claim: where a claim would begin to search. */
void claimer_positions_read(const Claimer *claimer, Mono now, int64_t *ret_positions);
bool claimer_has_type(const Claimer *claimer, const char *type);
/* Ended by NULL; NULL: all. */
const char *const *claimer_types_copy(const Claimer *claimer, Arena *arena);
/* What a claim is for. */
#define CLAIM_LOST_ALONE (-1)
typedef struct {
    int  limit, lease_ms;
    int  ahead;      /* so many of the limit could not be begun at once */
    int  lost;       /* how many lost commands the worker has; CLAIM_LOST_ALONE: one that is alone */
    bool is_flushed; /* wait for the flush: a handler that knows of the attempts before relies on their number */
    const ClaimSource *source; /* NULL: it reads nothing else */
} ClaimTerms;
/* Up to limit commands, leased for lease_ms. None is fine; also fewer, although there are more, when the next one may not be claimed ahead (ADR 42).
 * ERR_INVALID: a domain that cannot exist. After ERR_UNKNOWN they
 * may be leased to no worker; they are queued again when the lease expires. */
/* A domain that is paused or limited is claimed without claims ahead (sql/bus/gate_claim.sql). */
must_check ErrorCode claimer_claim(Claimer *claimer, Deadline deadline, Arena *arena, const ClaimTerms *terms,
                                   ClaimedCommand **ret_list, int *ret_count, Error *reterr);
/* The same, but reads at most CLAIM_READ_MAX commands of other types. *ret_more: it found none, and has not read all: call it again. */
must_check ErrorCode claimer_claim_part(Claimer *claimer, Deadline deadline, Arena *arena, const ClaimTerms *terms,
                                        ClaimedCommand **ret_list, int *ret_count, bool *ret_more, Error *reterr);
/* Was the domain of the last claim paused or limited? */
bool claimer_is_gated(const Claimer *claimer);
/* After how many milliseconds a claim may find something that is held back now; -1: it is not known. */
int claimer_again_ms(const Claimer *claimer);
/* Which of these may claim something? One statement for all, at most CLAIMERS_MAX. Cursors are moved by proof, so what is not ready costs
 * less the next time. No thread claims with them meanwhile. */
#define CLAIMERS_MAX 1000
must_check ErrorCode claimers_ready(Pool *pool, Deadline deadline, Arena *arena, Claimer *const *list, int count,
                                    bool *ret_ready, Error *reterr);
/* Is any command of the domain queued, delayed or leased? */
must_check ErrorCode claimer_has_work(Claimer *claimer, Deadline deadline, Arena *arena, bool *ret_has, Error *reterr);

/* Requeue delayed commands that are due and leases that have expired, of all domains; a batch per call, from any pod. Then, in a transaction of its
 * own, do what is due by rows that modules attach to commands: it may wait for locks, and a failure of it is only logged.
 * *ret_next_ms: when something is due next, at most `most_ms` from now; 0: there is more to do now. */
typedef struct {
    const Wake *wake;     /* called with the domains in which commands were queued; borrowed; NULL: none is notified */
    int64_t     since_us; /* leases that expired before this were read; begin with 0 */
    Mono        full_at;  /* when to scan all of them again */
    /* The low watermark: nothing that was due before due_us is left. It moves by proof, as the watermarks of claims do: the promise is
     * that all up to promised_us is decided once the oldest transaction that allocates is `running` or later. */
    int64_t due_us, promised_us, running; /* running 0: none */
    int64_t last_running;                 /* when it goes back, the server was restored */
    Mono    pause_until; /* scans from due_us take long: until then only what became due since is read */
    int64_t looked_us;
} Requeue;
must_check ErrorCode requeue_step(Pool *pool, Deadline deadline, Requeue *state, int most_ms, int *ret_moved,
                                  int *ret_next_ms, Error *reterr);

/* What pawl.requeue_due() said. */
#define REQUEUED_COLUMNS(X, T)         \
    X(T, I32, moved, next_ms)          \
    X(T, TIME, looked_us, due_left_us) \
    X(T, I64, running, oldest)         \
    X(T, TEXT, wake)                   \
    X(T, BOOL, is_attached_due)
DB_ROW(Requeued, REQUEUED_COLUMNS);
/* Move the watermark as far as a scan that began at it proves. */
void requeue_prove(Requeue *state, const Requeued *requeued);

/* ---- the cursor of a claimer by itself, without a database ---- */

/* SCAN: where a scan was stopped. */
typedef enum { CLAIM_FROM_CURSOR, CLAIM_FROM_WATERMARK, CLAIM_FROM_START, CLAIM_FROM_SCAN } ClaimFrom;

/* What pawl.decided_position() said. */
typedef struct {
    int64_t allocated, running, oldest;
    int64_t firsts[PRIORITY_COUNT]; /* the first row behind the watermark; allocated + 1: none */
} DecidedPosition;

/* A scan in parts. */
typedef struct {
    bool      is_open;
    bool      was_kept;              /* it does not tell what was queued since it began */
    ClaimFrom from;                  /* where it began */
    int64_t   took_us;               /* by now */
    int64_t   after[PRIORITY_COUNT]; /* it goes on behind these */
} ClaimScan;

typedef struct {
    int64_t position[PRIORITY_COUNT];
    int64_t watermark[PRIORITY_COUNT];
    /* The promise under way: all numbers up to allocated are decided once the oldest transaction is `running` or later. */
    int64_t   allocated, running; /* running 0: none */
    int64_t   decided;            /* all numbers up to this one are */
    Mono      low_at, full_at;    /* the next planned scans */
    Mono      pause_until;        /* no scan from below the position before this */
    ClaimScan scan;               /* that the next claim goes on with */
    ClaimScan kept;               /* one from the first row that has found something; it goes on at full_at */
} ClaimCursor;

/* Where the next claim should begin; anything but CLAIM_FROM_CURSOR is recorded as made now. */
ClaimFrom claim_cursor_from(ClaimCursor *cursor, Mono now);
/* The positions of this place. */
const int64_t *claim_cursor_after(const ClaimCursor *cursor, ClaimFrom from);
/* Where to search without a claim. Nothing is recorded, so the claim that follows begins there, too. */
ClaimFrom claim_cursor_search_from(const ClaimCursor *cursor, Mono now);
/* It found nothing. */
void claim_cursor_searched(ClaimCursor *cursor, Mono now, ClaimFrom from, const DecidedPosition *decided_position);
/* The claim from the position found nothing: may it start at the watermark, off schedule? */
bool claim_cursor_may_start_lower(const ClaimCursor *cursor, Mono now);
/* A scan from below the position ended now and took took_us. */
void claim_cursor_measured(ClaimCursor *cursor, Mono now, int64_t took_us);
/* A claim in parts from there: if no scan is open, one is from now on. */
void claim_cursor_scan(ClaimCursor *cursor, ClaimFrom from);
/* Its claim took nothing, and was stopped; rows: PRIORITY_COUNT, each with a priority and the position to go on behind. */
void claim_cursor_stopped(ClaimCursor *cursor, const ClaimedCommand *rows);
/* A claim took these, or nothing and was not stopped: its scan is over. Position 0: it was held back before, and does not come from the queue. */
void claim_cursor_took(ClaimCursor *cursor, Mono now, const ClaimedCommand *list, int count);
/* It read up to these positions, and what it did not take is nothing for this claimer; rows: as for claim_cursor_stopped(). Any scan is over. */
void claim_cursor_passed(ClaimCursor *cursor, const ClaimedCommand *rows);
/* Is there anything left to prove? */
bool claim_cursor_is_behind(const ClaimCursor *cursor);
/* Does its scan read what is known to be empty, to be sure? */
bool claim_cursor_is_below(const ClaimCursor *cursor);
/* Move the floors as far as this proves. */
void claim_cursor_prove(ClaimCursor *cursor, const DecidedPosition *decided_position);

#endif
