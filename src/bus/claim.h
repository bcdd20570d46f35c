/*
 * claim.h - take work from one domain: leases, and a memory of how far we got.
 *
 * Claims begin where work begins. Places in line are numbers that only grow, so a Lane remembers, per priority, the last
 * place it took (the front) and a floor below which nothing can be left, and claims from there: it does not walk over
 * rows that are gone but not yet vacuumed, which is what makes queues slow down while somebody holds an old snapshot.
 *
 *   front   moves with every claim. Rows below it may still appear: a sender that drew a smaller number commits later, or a
 *           claim that had locked some dies and gives them back.
 *   floor   moves only by proof. pawl.horizon() tells the last number drawn, D, and a transaction id X above that of
 *           everyone who drew one. Once no transaction below X that draws numbers runs any more (sql/base/draw.sql; others
 *           may stay open for hours), every number up to D is decided; so what
 *           a look in a later snapshot does not find up to D will never be there, and the floor moves up to the first
 *           row that it does find. A row that an unfinished claim has locked is found.
 *
 * Most claims begin at the front. When one finds nothing, and otherwise every CLAIM_FLOOR_MS, a claim begins at the floor;
 * and every CLAIM_FULL_MS at the very beginning, whatever was proven. A server that was restored or failed over to may allocate
 * positions a second time: a claim whose cursor is beyond the last position of the sequence starts at the beginning
 * (sql/bus/claim.sql), and what a Lane remembers is forgotten when a row comes from below the floor, or positions or transaction ids
 * are smaller than those seen before. Looks below the front that take more than CLAIM_CHEAP_US are made less often: at most
 * 1/CLAIM_LOOK_SHARE of the time.
 *
 * A lane of some types walks over the commands of the others, at a price for each. What it walked over in vain it proves to be
 * none of its own, and begins behind it from then on.
 *
 * Threads: one per Lane. Ownership: commands live in the arena given to lane_claim().
 */
#ifndef BUS_CLAIM_H
#define BUS_CLAIM_H

#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "pg/pool.h"
#include "pg/query.h"

#define CLAIM_FLOOR_MS   100
#define CLAIM_FULL_MS    15000
#define CLAIM_LOOK_SHARE 20
#define CLAIM_CHEAP_US   5000
#define CLAIM_MAX        10000
#define PRIORITY_COUNT   10

#define CLAIMED_COLUMNS(X, T)               \
    X(T, int64_t, DB_I64, id)               \
    X(T, int64_t, DB_I64, token)            \
    X(T, const char *, DB_UUID, command_id) \
    X(T, const char *, DB_TEXT, type)       \
    X(T, const char *, DB_JSONB, payload)   \
    X(T, int32_t, DB_I32, attempt)          \
    X(T, int32_t, DB_I32, max_attempts)     \
    X(T, int32_t, DB_I32, priority)         \
    X(T, int64_t, DB_I64, pos)
typedef struct {
    CLAIMED_COLUMNS(DB_FIELD, Claimed)
} Claimed;

typedef struct Lane Lane;

/* types: only these, ended by NULL; NULL: all. worker: who claims, for the audit. All copied. */
Lane *lane_new(Pool *pool, const char *domain, const char *const *types, const char *worker);
void  lane_free(Lane *lane);
SCOPED(Lane, lane_free)
/* From the next claim on it is this one who claims; borrowed until somebody else does. */
void lane_serve(Lane *lane, const char *worker);
/* Up to limit commands, leased for lease_ms. None is fine. ERR_INVALID: a domain that cannot exist. After ERR_UNKNOWN they
 * may be leased to nobody; they come back when the lease runs out. */
must_check ErrorCode lane_claim(Lane *lane, Deadline deadline, Arena *arena, int limit, int lease_ms,
                                Claimed **ret_list, int *ret_count, Error *reterr);
/* Is any command of the domain in line, delayed or leased to anyone? */
must_check ErrorCode lane_has_work(Lane *lane, Deadline deadline, Arena *arena, bool *ret_has, Error *reterr);

/* Bring back delayed commands that are due and leases that ran out, of all domains; a bite at a time, from any pod.
 * *ret_next_ms: when something is due next, at most `most_ms` from now; 0: there is more to do at once. */
typedef struct {
    int64_t since_us; /* leases that ended before this were looked at; begin with 0 */
    Mono    full_at;  /* when to look at all of them again */
    /* The low watermark: nothing that was due before due_us is left. It moves by proof, as the floors of claims do: the promise is
     * that all up to promised_us is decided once the oldest transaction that allocates is `running` or later. */
    int64_t due_us, promised_us, running; /* running 0: none */
    int64_t last_running;                 /* when it goes back, the server was restored */
    Mono    rest_until; /* looks from due_us take long: until this one only at what became due since */
    int64_t looked_us;
} BringBack;
must_check ErrorCode bring_back_step(Pool *pool, Deadline deadline, BringBack *state, int most_ms, int *ret_moved,
                                     int *ret_next_ms, Error *reterr);

/* What pawl.bring_back() said. */
#define BROUGHT_COLUMNS(X, T)           \
    X(T, int32_t, DB_I32, moved)        \
    X(T, int32_t, DB_I32, next_ms)      \
    X(T, int64_t, DB_TIME, looked_us)   \
    X(T, int64_t, DB_TIME, due_left_us) \
    X(T, int64_t, DB_I64, running)      \
    X(T, int64_t, DB_I64, oldest)
typedef struct {
    BROUGHT_COLUMNS(DB_FIELD, Brought)
} Brought;
/* Move the watermark as far as a look that began at it proves. */
void bring_back_prove(BringBack *state, const Brought *brought);

/* ---- the memory of a lane by itself, without a database ---- */

typedef enum { LOOK_FRONT, LOOK_FLOOR, LOOK_FULL } Look;

/* What pawl.horizon() said. */
typedef struct {
    int64_t drawn, running, oldest;
    int64_t firsts[PRIORITY_COUNT]; /* the first row behind the floor; drawn + 1: none */
} Horizon;

typedef struct {
    int64_t front[PRIORITY_COUNT];
    int64_t floor[PRIORITY_COUNT];
    /* The promise under way: all numbers up to drawn are decided once the oldest transaction is `running` or later. */
    int64_t drawn, running;    /* running 0: none */
    int64_t decided;           /* all numbers up to this one are */
    Mono    floor_at, full_at; /* the next planned looks */
    Mono    rest_until;        /* no look below the front before this */
} LaneMemory;

/* Where the next claim should begin; anything but LOOK_FRONT is noted as made now. */
Look lane_memory_look(LaneMemory *memory, Mono now);
/* The claim from the front found nothing: may it look at the floor, off plan? */
bool lane_memory_may_look(const LaneMemory *memory, Mono now);
/* A look below the front ended now and took took_us. */
void lane_memory_looked(LaneMemory *memory, Mono now, int64_t took_us);
/* A claim took these. */
void lane_memory_took(LaneMemory *memory, const Claimed *list, int count);
/* Is there anything left to prove? */
bool lane_memory_is_behind(const LaneMemory *memory);
/* Move the floors as far as this proves. */
void lane_memory_prove(LaneMemory *memory, const Horizon *horizon);

#endif
