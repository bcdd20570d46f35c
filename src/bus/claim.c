/*
 * claim.c - one domain's line, from where this lane remembers; and what is due, back in line. See claim.h.
 */
#include "bus/claim.h"

#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "pg/tx.h"
#include "sql.h"

#define TYPES_MAX 100
/* In one bite; leases that ended within this time are looked at again, because a settle that failed may have held them. */
#define BRING_BACK_LIMIT    5000
#define BRING_BACK_AGAIN_US 2000000
#define BRING_BACK_FULL_MS  60000
#define BRING_BACK_REST_MS  5000

DB_SHAPE(claimed, Claimed, CLAIMED_COLUMNS);

#define HORIZON_COLUMNS(X, T)      \
    X(T, int64_t, DB_I64, drawn)   \
    X(T, int64_t, DB_I64, running) \
    X(T, int64_t, DB_I64, oldest)  \
    X(T, int64_t, DB_I64, first)
typedef struct {
    HORIZON_COLUMNS(DB_FIELD, HorizonRow)
} HorizonRow;
DB_SHAPE(horizon, HorizonRow, HORIZON_COLUMNS);

DB_SHAPE(brought, Brought, BROUGHT_COLUMNS);

#define NUMBER_COLUMNS(X, T) X(T, int64_t, DB_I64, value)
typedef struct {
    NUMBER_COLUMNS(DB_FIELD, Number)
} Number;
DB_SHAPE(number, Number, NUMBER_COLUMNS);

struct Lane {
    Pool       *pool;
    Arena      *arena; /* the names */
    const char *domain, *worker;
    const char *types[TYPES_MAX];
    int         type_count; /* 0: all */
    int32_t     domain_id;  /* 0: not known yet */
    LaneMemory  memory;
};

Lane *lane_new(Pool *pool, const char *domain, const char *const *types, const char *worker)
{
    Lane *lane = calloc(1, sizeof *lane);

    if (!lane)
        abort();
    lane->pool   = pool;
    lane->arena  = arena_new(ARENA_BYTES_DEFAULT);
    lane->domain = arena_text(lane->arena, domain);
    lane->worker = arena_text(lane->arena, worker);
    for (; types && types[lane->type_count] && lane->type_count < TYPES_MAX; lane->type_count++)
        lane->types[lane->type_count] = arena_text(lane->arena, types[lane->type_count]);
    return lane;
}

void lane_free(Lane *lane)
{
    arena_free(lane->arena);
    free(lane);
}

void lane_serve(Lane *lane, const char *worker)
{
    lane->worker = worker;
}

/* It stays 0 as long as nothing was sent there: whoever only looks makes no domain. */
static ErrorCode lane_find_domain(Lane *lane, Deadline deadline, Arena *arena, Error *reterr)
{
    TxOptions options = {.name = "domain", .deadline = deadline, .arena = arena, .keyed = true};
    Number    number  = {0};

    if (lane->domain_id)
        return OK;
    TRY(db_call(lane->pool, &options, sql_bus_domain, DB_ARGS(db_text(lane->domain)), &number_shape, &number, reterr));
    lane->domain_id = (int32_t)number.value;
    return OK;
}

static DbArg lane_types(const Lane *lane, Arena *arena)
{
    return lane->type_count ? db_texts(arena, lane->types, lane->type_count) : db_null();
}

static const int64_t *lane_places(const Lane *lane, Look look)
{
    static const int64_t beginning[PRIORITY_COUNT];

    switch (look) {
    case LOOK_FRONT:
        return lane->memory.front;
    case LOOK_FLOOR:
        return lane->memory.floor;
    case LOOK_FULL:
        break;
    }
    return beginning;
}

/* Not keyed: leases whose answer was lost are nobody's until they run out. */
static ErrorCode claim_once(Lane *lane, const TxOptions *options, Look look, int limit, int lease_ms,
                            Claimed **ret_list, int *ret_count, Error *reterr)
{
    void *rows;

    TRY(db_call_many(lane->pool, options, sql_bus_claim,
                     DB_ARGS(db_i32(lane->domain_id), db_i32(limit), db_i32(lease_ms),
                             db_i64s(options->arena, lane_places(lane, look), PRIORITY_COUNT),
                             lane_types(lane, options->arena), db_text(lane->worker)),
                     &claimed_shape, &rows, ret_count, reterr));
    *ret_list = rows;
    lane_memory_took(&lane->memory, *ret_list, *ret_count);
    metric_add(METRIC_CLAIMED, *ret_count);
    return OK;
}

/* May one row be the cause? Its payload is damaged (class XX), or too large to be written out (54, 53200). */
static bool failure_is_of_a_row(const Error *error)
{
    return strncmp(error->sqlstate, "XX", 2) == 0 || strncmp(error->sqlstate, "54", 2) == 0 ||
           strcmp(error->sqlstate, "53200") == 0;
}

/* A row that cannot be delivered is moved to the troubleshooting queue, so that it does not stop the domain. */
static ErrorCode claim_from(Lane *lane, const TxOptions *options, Look look, int limit, int lease_ms,
                            Claimed **ret_list, int *ret_count, Error *reterr)
{
    TxOptions isolating = *options;
    Number    moved     = {0};
    Error     error     = {0};
    ErrorCode code      = claim_once(lane, options, look, limit, lease_ms, ret_list, ret_count, &error);

    if (code == OK || !failure_is_of_a_row(&error)) {
        if (code != OK && reterr)
            *reterr = error;
        return code;
    }
    isolating.name  = "isolate";
    isolating.keyed = true;
    TRY(db_call(lane->pool, &isolating, sql_bus_claim_isolate,
                DB_ARGS(db_i32(lane->domain_id), db_i32(limit), lane_types(lane, options->arena)), &number_shape,
                &moved, reterr));
    return claim_once(lane, options, look, limit, lease_ms, ret_list, ret_count, reterr);
}

static ErrorCode lane_prove(Lane *lane, const TxOptions *options, Error *reterr)
{
    TxOptions   reading = *options;
    Horizon     horizon = {0};
    HorizonRow *rows;
    void       *any;
    int         count;

    reading.name  = "horizon";
    reading.keyed = true; /* it changes nothing, but has a transaction id of its own, which read_only would forbid */
    TRY(db_call_many(lane->pool, &reading, sql_bus_horizon,
                     DB_ARGS(db_i32(lane->domain_id), db_i64s(options->arena, lane->memory.floor, PRIORITY_COUNT),
                             lane_types(lane, options->arena)),
                     &horizon_shape, &any, &count, reterr));
    if (count != PRIORITY_COUNT)
        return fail(reterr, ERR_INTERNAL, "horizon has %d rows", count);
    rows    = any;
    horizon = (Horizon){.drawn = rows[0].drawn, .running = rows[0].running, .oldest = rows[0].oldest};
    for (int i = 0; i < PRIORITY_COUNT; i++)
        horizon.firsts[i] = rows[i].first;
    lane_memory_prove(&lane->memory, &horizon);
    return OK;
}

/* Prove what can be proven, then claim from below the front; what both took decides when to do so again. */
static ErrorCode claim_below(Lane *lane, const TxOptions *options, Look look, int limit, int lease_ms,
                             Claimed **ret_list, int *ret_count, Error *reterr)
{
    Mono start = clock_mono();

    if (lane_memory_is_behind(&lane->memory))
        TRY(lane_prove(lane, options, reterr));
    TRY(claim_from(lane, options, look, limit, lease_ms, ret_list, ret_count, reterr));
    lane_memory_looked(&lane->memory, clock_mono(), mono_us_between(start, clock_mono()));
    return OK;
}

/* A lane of some types walks over the commands of all others. If that took long and found nothing, prove that it need not be
 * done again: the first proof is a promise, the second one keeps it, unless an old transaction runs. */
static ErrorCode lane_pass_others(Lane *lane, const TxOptions *options, Mono start, Error *reterr)
{
    if (lane->type_count == 0 || mono_us_between(start, clock_mono()) <= CLAIM_CHEAP_US)
        return OK;
    TRY(lane_prove(lane, options, reterr));
    TRY(lane_prove(lane, options, reterr));
    lane_memory_looked(&lane->memory, clock_mono(), mono_us_between(start, clock_mono()));
    return OK;
}

ErrorCode lane_claim(Lane *lane, Deadline deadline, Arena *arena, int limit, int lease_ms, Claimed **ret_list,
                     int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "claim", .deadline = deadline, .arena = arena};
    Mono      start;
    Look      look;
    bool      rested;

    *ret_list  = NULL;
    *ret_count = 0;
    TRY(lane_find_domain(lane, deadline, arena, reterr));
    if (!lane->domain_id)
        return OK;
    start  = clock_mono();
    rested = !mono_before(start, lane->memory.rest_until);
    look   = lane_memory_look(&lane->memory, start);
    if (look == LOOK_FRONT) {
        TRY(claim_from(lane, &options, look, limit, lease_ms, ret_list, ret_count, reterr));
        if (*ret_count == 0 && lane_memory_may_look(&lane->memory, clock_mono()))
            look = LOOK_FLOOR;
    }
    if (look != LOOK_FRONT)
        TRY(claim_below(lane, &options, look, limit, lease_ms, ret_list, ret_count, reterr));
    return *ret_count == 0 && rested ? lane_pass_others(lane, &options, start, reterr) : OK;
}

ErrorCode lane_has_work(Lane *lane, Deadline deadline, Arena *arena, bool *ret_has, Error *reterr)
{
    TxOptions options = {.name = "has work", .deadline = deadline, .arena = arena, .read_only = true};
    Number    number  = {0};

    *ret_has = false;
    TRY(lane_find_domain(lane, deadline, arena, reterr));
    if (!lane->domain_id)
        return OK;
    TRY(db_call(lane->pool, &options, sql_bus_has_work, DB_ARGS(db_i32(lane->domain_id), lane_types(lane, arena)),
                &number_shape, &number, reterr));
    *ret_has = number.value != 0;
    return OK;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void bring_back_prove(BringBack *state, const Brought *brought)
{
    if (brought->running < state->last_running || brought->looked_us < state->due_us)
        *state = (BringBack){0}; /* restored, or the clock was put back: what was proven is about another history */
    if (state->running && brought->oldest >= state->running) {
        int64_t proven = least(state->promised_us, brought->due_left_us);

        state->due_us  = state->due_us > proven ? state->due_us : proven;
        state->running = 0;
    }
    if (!state->running) {
        state->promised_us =
            brought->looked_us - BRING_BACK_AGAIN_US; /* a settle reads the clock before it has the lock */
        state->running = brought->running;
    }
    state->last_running = brought->running;
}

ErrorCode bring_back_step(Pool *pool, Deadline deadline, BringBack *state, int most_ms, int *ret_moved,
                          int *ret_next_ms, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "bring back", .deadline = deadline, .arena = arena, .keyed = true};
    Mono                      start   = clock_mono();
    bool                      full    = !mono_before(start, state->full_at);
    bool                      resting = mono_before(start, state->rest_until);
    int64_t                   due_us  = resting ? state->looked_us - BRING_BACK_AGAIN_US : state->due_us;
    int64_t                   took_us;
    Brought                   brought = {0};

    TRY(db_call(pool, &options, sql_bus_bring_back,
                DB_ARGS(db_i32(BRING_BACK_LIMIT), db_i64(full ? 0 : state->since_us), db_i32(most_ms),
                        db_i64(full ? 0 : due_us)),
                &brought_shape, &brought, reterr));
    took_us = mono_us_between(start, clock_mono());
    if (full || !resting)
        bring_back_prove(state, &brought);
    if (full)
        state->full_at = mono_plus_ms(start, BRING_BACK_FULL_MS);
    else if (!resting && brought.moved == 0 && took_us > CLAIM_CHEAP_US)
        state->rest_until = mono_plus_ms(start, least(took_us * CLAIM_LOOK_SHARE / 1000, BRING_BACK_REST_MS));
    if (brought.next_ms > 0) { /* all that had ended was looked at */
        state->since_us  = brought.looked_us - BRING_BACK_AGAIN_US;
        state->looked_us = brought.looked_us;
    }
    *ret_moved   = brought.moved;
    *ret_next_ms = brought.next_ms;
    return OK;
}
