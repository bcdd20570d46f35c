/*
 * claim.c - claims from the cursor, moves the cursor by proof, and requeues what is due; see claim.h.
 */
#include "bus/claim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "bus/metric.h"
#include "bus/sample.h"
#include "pg/tx.h"
#include "sql.h"

/* In one batch; leases that expired within this time are read again, because a settle that failed may have locked them. */
#define REQUEUE_LIMIT    5000
#define REQUEUE_AGAIN_US 2000000
#define REQUEUE_FULL_MS  60000
#define REQUEUE_PAUSE_MS 5000
#define ATTACHED_LIMIT   100
#define ATTACHED_MS      1000 /* after a failure */

DB_SHAPE(claimed, ClaimedCommand, CLAIMED_COLUMNS);

#define DECIDED_POSITION_COLUMNS(X, T) X(T, I64, allocated, running, oldest, first)
DB_ROW(DecidedPositionRow, DECIDED_POSITION_COLUMNS);
DB_SHAPE(decided_position, DecidedPositionRow, DECIDED_POSITION_COLUMNS);

DB_SHAPE(requeued, Requeued, REQUEUED_COLUMNS);

struct Claimer {
    Pool              *pool;
    Arena             *arena; /* the names */
    const char        *domain, *worker;
    const char *const *workers; /* of the next claim; NULL: `worker` */
    const char        *types[CLAIM_TYPES_MAX];
    int                type_count; /* 0: all */
    int32_t            domain_id;  /* 0: not known yet */
    ClaimCursor        cursor;
    bool               is_gated; /* the domain of the last claim was paused or limited */
    int                again_ms; /* of that claim; -1: not known */
};

Claimer *claimer_new(Pool *pool, const char *domain, const char *const *types, const char *worker)
{
    Claimer *claimer = memory_new(1, sizeof *claimer);

    claimer->pool     = pool;
    claimer->arena    = arena_new(ARENA_BYTES_DEFAULT);
    claimer->domain   = arena_text(claimer->arena, domain);
    claimer->worker   = arena_text(claimer->arena, worker);
    claimer->again_ms = -1;
    for (; types && types[claimer->type_count] && claimer->type_count < CLAIM_TYPES_MAX; claimer->type_count++)
        claimer->types[claimer->type_count] = arena_text(claimer->arena, types[claimer->type_count]);
    return claimer;
}

void claimer_free(Claimer *claimer)
{
    arena_free(claimer->arena);
    free(claimer);
}

static bool list_has(const char *const *types, const char *type)
{
    while (*types && strcmp(*types, type) != 0)
        types++;
    return *types;
}

Claimer *claimer_without(const Claimer *claimer, const char *const *types)
{
    const char *left[CLAIM_TYPES_MAX + 1];
    int         count = 0;

    for (int i = 0; i < claimer->type_count; i++)
        if (!list_has(types, claimer->types[i]))
            left[count++] = claimer->types[i];
    left[count] = NULL;
    return count ? claimer_new(claimer->pool, claimer->domain, left, claimer->worker) : NULL;
}

bool claimer_is_same(const Claimer *a, const Claimer *b)
{
    if (a->type_count != b->type_count)
        return false;
    for (int i = 0; i < a->type_count; i++)
        if (strcmp(a->types[i], b->types[i]) != 0)
            return false;
    return true;
}

void claimer_serve(Claimer *claimer, const char *worker, const char *const *workers)
{
    claimer->worker  = worker;
    claimer->workers = workers;
}

/* It stays 0 as long as nothing was sent there: a claim does not create a domain. */
static ErrorCode claimer_find_domain(Claimer *claimer, Deadline deadline, Arena *arena, Error *reterr)
{
    TxOptions options = {.name = "domain", .deadline = deadline, .arena = arena, .keyed = true};
    int64_t   id      = 0;

    if (claimer->domain_id)
        return OK;
    TRY(db_call(claimer->pool, &options, sql_bus_domain, DB_ARGS(db_text(claimer->domain)), &db_i64_shape, &id,
                reterr));
    claimer->domain_id = (int32_t)id;
    return OK;
}

static DbArg claimer_types(const Claimer *claimer, Arena *arena)
{
    return claimer->type_count ? db_texts(arena, claimer->types, claimer->type_count) : db_null();
}

void claimer_positions_read(const Claimer *claimer, Mono now, int64_t *ret_positions)
{
    ClaimFrom from = claim_cursor_search_from(&claimer->cursor, now);

    /* A scan from the first row is for what no cursor promises; the poll does it. */
    from = from == CLAIM_FROM_START ? CLAIM_FROM_WATERMARK : from;
    memcpy(ret_positions, claim_cursor_after(&claimer->cursor, from), PRIORITY_COUNT * sizeof *ret_positions);
}

bool claimer_is_gated(const Claimer *claimer)
{
    return claimer->is_gated;
}

int claimer_again_ms(const Claimer *claimer)
{
    return claimer->again_ms;
}

bool claimer_has_type(const Claimer *claimer, const char *type)
{
    int i = 0;

    while (i < claimer->type_count && strcmp(claimer->types[i], type) != 0)
        i++;
    return claimer->type_count == 0 || i < claimer->type_count;
}

const char *const *claimer_types_copy(const Claimer *claimer, Arena *arena)
{
    const char **copy = claimer->type_count ? arena_array(arena, const char *, claimer->type_count + 1) : NULL;

    for (int i = 0; i < claimer->type_count; i++)
        copy[i] = arena_text(arena, claimer->types[i]);
    if (copy)
        copy[claimer->type_count] = NULL;
    return copy;
}

/* A claim of all types finds what it reads. */
static DbArg claimer_read_max(const Claimer *claimer)
{
    return claimer->type_count ? db_i32(CLAIM_READ_MAX) : db_null();
}

static ClaimedCommand *commands_take(Arena *arena, char *rows, size_t size, int count)
{
    ClaimedCommand *list = arena_array(arena, ClaimedCommand, count);

    for (int i = 0; i < count; i++, rows += size) {
        memcpy(&list[i], rows, sizeof *list);
        list[i].row = rows;
    }
    return list;
}

/* The rows behind the commands of a claim of a domain that is paused or limited. */
static void gate_take(Claimer *claimer, const ClaimedCommand *list, int *count)
{
    const ClaimedCommand *rows = list + *count - PRIORITY_COUNT;

    claimer->is_gated = *count >= PRIORITY_COUNT && rows->id == 0 && rows->token != 0;
    claimer->again_ms = claimer->is_gated ? (int)rows->token : -1;
    if (!claimer->is_gated)
        return;
    *count -= PRIORITY_COUNT;
    claim_cursor_passed(&claimer->cursor, rows);
}

/* Not keyed: leases of a lost response belong to no worker until they expire. */
static ErrorCode claim_once(Claimer *claimer, const TxOptions *options, ClaimFrom from, const ClaimTerms *terms,
                            const ClaimSource *source, ClaimedCommand **ret_list, int *ret_count, Error *reterr)
{
    const DbShape *shape = source ? source->shape : &claimed_shape;
    void          *rows;
    DbArgs         args =
        DB_ARGS(db_i32(claimer->domain_id), db_i32(terms->limit), db_i32(terms->lease_ms),
                db_i64s(options->arena, claim_cursor_after(&claimer->cursor, from), PRIORITY_COUNT),
                claimer_types(claimer, options->arena), db_text(claimer->worker),
                claimer->workers ? db_texts(options->arena, claimer->workers, terms->limit) : db_null(),
                db_i32(terms->limit - terms->ahead), terms->lost == CLAIM_LOST_ALONE ? db_null() : db_i32(terms->lost),
                db_bool(!terms->is_flushed), claimer_read_max(claimer), db_i64(source ? source->bytes_max : 0));

    args.count -= !source; /* the last one is only a source's */
    TRY(db_call_many(claimer->pool, options, source ? source->sql : sql_bus_claim, args, shape, &rows, ret_count,
                     reterr));
    *ret_list = source ? commands_take(options->arena, rows, shape->size, *ret_count) : rows;
    gate_take(claimer, *ret_list, ret_count);
    if (claimer->type_count > 0 && !claimer->is_gated)
        claim_cursor_scan(&claimer->cursor, from);
    if (*ret_count == PRIORITY_COUNT && (*ret_list)->id == 0) {
        claim_cursor_stopped(&claimer->cursor, *ret_list);
        *ret_count = 0;
        return OK;
    }
    claim_cursor_took(&claimer->cursor, clock_mono(), *ret_list, *ret_count);
    metric_add(&bus_metrics.claimed, *ret_count);
    sample_claimed(claimer->domain, *ret_list, *ret_count);
    return OK;
}

/* Does the server refuse the statement? A source may be the cause: something that it reads, a function, a right. */
static bool failure_is_of_source(ErrorCode code, const Error *error)
{
    return error->sqlstate[0] && error_verdict(code) == VERDICT_FINAL;
}

static ErrorCode claim_try(Claimer *claimer, const TxOptions *options, ClaimFrom from, const ClaimTerms *terms,
                           ClaimedCommand **ret_list, int *ret_count, Error *reterr)
{
    ErrorCode code = claim_once(claimer, options, from, terms, terms->source, ret_list, ret_count, reterr);

    if (code == OK || !terms->source || !failure_is_of_source(code, reterr))
        return code;
    return claim_once(claimer, options, from, terms, /* source= */ NULL, ret_list, ret_count, reterr);
}

/* May one row be the cause? Its payload is damaged (class XX), or too large to be written out (54, 53200). */
static bool failure_is_of_a_row(const Error *error)
{
    return strncmp(error->sqlstate, "XX", 2) == 0 || strncmp(error->sqlstate, "54", 2) == 0 ||
           strcmp(error->sqlstate, "53200") == 0;
}

/* A row that cannot be delivered is moved to the troubleshooting queue, so that it does not stop the domain. */
static ErrorCode claim_from(Claimer *claimer, const TxOptions *options, ClaimFrom from, const ClaimTerms *terms,
                            ClaimedCommand **ret_list, int *ret_count, Error *reterr)
{
    TxOptions isolating = *options;
    int64_t   moved     = 0;
    Error     error     = {0};
    ErrorCode code      = claim_try(claimer, options, from, terms, ret_list, ret_count, &error);

    if (code == OK || !failure_is_of_a_row(&error)) {
        if (code != OK && reterr)
            *reterr = error;
        return code;
    }
    isolating.name  = "isolate";
    isolating.keyed = true;
    TRY(db_call(claimer->pool, &isolating, sql_bus_claim_isolate,
                DB_ARGS(db_i32(claimer->domain_id), db_i32(terms->limit), claimer_types(claimer, options->arena)),
                &db_i64_shape, &moved, reterr));
    return claim_once(claimer, options, from, terms, /* source= */ NULL, ret_list, ret_count, reterr);
}

static ErrorCode claimer_prove(Claimer *claimer, const TxOptions *options, Error *reterr)
{
    TxOptions           reading          = *options;
    DecidedPosition     decided_position = {0};
    DecidedPositionRow *rows;
    void               *any;
    int                 count;

    reading.name  = "decided position";
    reading.keyed = true; /* it changes nothing, but has a transaction id of its own, which read_only would forbid */
    TRY(db_call_many(claimer->pool, &reading, sql_bus_decided_position,
                     DB_ARGS(db_i32(claimer->domain_id),
                             db_i64s(options->arena, claimer->cursor.watermark, PRIORITY_COUNT),
                             claimer_types(claimer, options->arena), claimer_read_max(claimer)),
                     &decided_position_shape, &any, &count, reterr));
    if (count != PRIORITY_COUNT)
        return fail(reterr, ERR_INTERNAL, "decided_position returned %d rows", count);
    rows = any;
    decided_position =
        (DecidedPosition){.allocated = rows[0].allocated, .running = rows[0].running, .oldest = rows[0].oldest};
    for (int i = 0; i < PRIORITY_COUNT; i++)
        decided_position.firsts[i] = rows[i].first;
    claim_cursor_prove(&claimer->cursor, &decided_position);
    return OK;
}

/* Prove what can be proven, then claim from below the position; what both took decides when to do so again. */
static ErrorCode claim_below(Claimer *claimer, const TxOptions *options, ClaimFrom from, const ClaimTerms *terms,
                             ClaimedCommand **ret_list, int *ret_count, Error *reterr)
{
    Mono start = clock_mono();

    if (claim_cursor_is_behind(&claimer->cursor))
        TRY(claimer_prove(claimer, options, reterr));
    TRY(claim_from(claimer, options, from, terms, ret_list, ret_count, reterr));
    if (!claimer->cursor.scan.is_open)
        claim_cursor_measured(&claimer->cursor, clock_mono(), mono_us_between(start, clock_mono()));
    return OK;
}

/* A claimer of some types reads the commands of all others. If that took long and found nothing, prove that it need not be
 * done again: the first proof is a promise, the second one keeps it, unless an old transaction runs. */
static ErrorCode claimer_skip_others(Claimer *claimer, const TxOptions *options, Mono start, int64_t before_us,
                                     Error *reterr)
{
    if (claimer->type_count == 0 || before_us + mono_us_between(start, clock_mono()) <= CLAIM_CHEAP_US)
        return OK;
    TRY(claimer_prove(claimer, options, reterr));
    TRY(claimer_prove(claimer, options, reterr));
    claim_cursor_measured(&claimer->cursor, clock_mono(), before_us + mono_us_between(start, clock_mono()));
    return OK;
}

/* The same for a part of a scan, which the next part need not wait for: it goes on where this one was stopped in any case. */
static ErrorCode claimer_skip_part(Claimer *claimer, const TxOptions *options, Mono start, Error *reterr)
{
    if (!claim_cursor_is_below(&claimer->cursor))
        TRY(claimer_prove(claimer, options, reterr));
    if (claim_cursor_is_behind(&claimer->cursor) && !claim_cursor_is_below(&claimer->cursor))
        TRY(claimer_prove(claimer, options, reterr));
    claimer->cursor.scan.took_us += mono_us_between(start, clock_mono());
    return OK;
}

ErrorCode claimer_claim(Claimer *claimer, Deadline deadline, Arena *arena, const ClaimTerms *terms,
                        ClaimedCommand **ret_list, int *ret_count, Error *reterr)
{
    bool more;

    do
        TRY(claimer_claim_part(claimer, deadline, arena, terms, ret_list, ret_count, &more, reterr));
    while (more && !claimer->is_gated);
    return OK;
}

ErrorCode claimer_claim_part(Claimer *claimer, Deadline deadline, Arena *arena, const ClaimTerms *terms,
                             ClaimedCommand **ret_list, int *ret_count, bool *ret_more, Error *reterr)
{
    TxOptions options = {.name = "claim", .deadline = deadline, .arena = arena, .prepare = true};
    ClaimScan scan; /* that this claim goes on with */
    Mono      start;
    ClaimFrom from;
    bool      rested;

    *ret_list  = NULL;
    *ret_count = 0;
    *ret_more  = false;
    TRY(claimer_find_domain(claimer, deadline, arena, reterr));
    if (!claimer->domain_id)
        return OK;
    start  = clock_mono();
    rested = !mono_before(start, claimer->cursor.pause_until);
    from   = claim_cursor_from(&claimer->cursor, start);
    scan   = claimer->cursor.scan;
    if (from == CLAIM_FROM_CURSOR || from == CLAIM_FROM_SCAN) {
        TRY(claim_from(claimer, &options, from, terms, ret_list, ret_count, reterr));
        if (*ret_count == 0 && scan.from == CLAIM_FROM_CURSOR && !claimer->cursor.scan.is_open &&
            claim_cursor_may_start_lower(&claimer->cursor, clock_mono()))
            from = CLAIM_FROM_WATERMARK;
    }
    if (from == CLAIM_FROM_WATERMARK || from == CLAIM_FROM_START)
        TRY(claim_below(claimer, &options, from, terms, ret_list, ret_count, reterr));
    if (*ret_count > 0)
        return OK;
    *ret_more = claimer->cursor.scan.is_open || scan.was_kept || claimer->again_ms == 0;
    if (claimer->cursor.scan.is_open)
        return claimer_skip_part(claimer, &options, start, reterr);
    return rested ? claimer_skip_others(claimer, &options, start, scan.took_us, reterr) : OK;
}

/* ---- what waits ---- */

#define READY_COLUMNS(X, T)               \
    X(T, I64, allocated, running, oldest) \
    X(T, I32, ord)
DB_ROW(ReadyRow, READY_COLUMNS);
DB_SHAPE(ready, ReadyRow, READY_COLUMNS);

static const char *claimer_types_text(const Claimer *claimer, Arena *arena)
{
    Text text scoped_text = {0};

    if (claimer->type_count == 0)
        return NULL;
    text_init(&text, /* arena= */ NULL, ARENA_BYTES_DEFAULT);
    for (int i = 0; i < claimer->type_count; i++)
        text_print(&text, "%s%s", i ? "\n" : "", claimer->types[i]);
    return arena_text(arena, text_string(&text));
}

static ErrorCode ready_find(const TxOptions *options, Pool *pool, Claimer *const *list, int count,
                            const ClaimFrom *starts, const ReadyRow **ret_rows, int *ret_count, Error *reterr)
{
    Arena       *arena   = options->arena;
    const char **domains = arena_array(arena, const char *, count), **types = arena_array(arena, const char *, count);
    int64_t     *floors = arena_array(arena, int64_t, count * PRIORITY_COUNT);

    for (int i = 0; i < count; i++) {
        domains[i] = list[i]->domain;
        types[i]   = claimer_types_text(list[i], arena);
        memcpy(floors + (ptrdiff_t)i * PRIORITY_COUNT, claim_cursor_after(&list[i]->cursor, starts[i]),
               PRIORITY_COUNT * sizeof *floors);
    }
    return db_call_many(pool, options, sql_bus_claimers_ready,
                        DB_ARGS(db_texts(arena, domains, count), db_texts(arena, types, count),
                                db_i64s(arena, floors, count * PRIORITY_COUNT)),
                        &ready_shape, ret_rows, ret_count, reterr);
}

ErrorCode claimers_ready(Pool *pool, Deadline deadline, Arena *arena, Claimer *const *list, int count, bool *ret_ready,
                         Error *reterr)
{
    /* It changes nothing, but has a transaction id of its own, as the proof of one claimer. */
    TxOptions       options = {.name = "ready", .deadline = deadline, .arena = arena, .keyed = true, .prepare = true};
    ClaimFrom      *starts  = arena_array(arena, ClaimFrom, count);
    Mono            now     = clock_mono();
    DecidedPosition none;
    const ReadyRow *rows;
    bool           *is_read; /* up to the end: not of a domain that is paused or limited */
    int             row_count;

    assert(count <= CLAIMERS_MAX);
    for (int i = 0; i < count; i++)
        starts[i] = claim_cursor_search_from(&list[i]->cursor, now);
    TRY(ready_find(&options, pool, list, count, starts, &rows, &row_count, reterr));
    memset(ret_ready, 0, (size_t)count * sizeof *ret_ready);
    is_read = arena_array(arena, bool, count);
    memset(is_read, true, (size_t)count * sizeof *is_read);
    for (int i = 0; i < row_count; i++) {
        if (rows[i].ord > 0)
            ret_ready[rows[i].ord - 1] = true;
        if (rows[i].ord < 0)
            is_read[-rows[i].ord - 1] = false;
    }
    none = (DecidedPosition){.allocated = rows[0].allocated, .running = rows[0].running, .oldest = rows[0].oldest};
    for (int i = 0; i < PRIORITY_COUNT; i++)
        none.firsts[i] = none.allocated + 1;
    for (int i = 0; i < count; i++)
        if (!ret_ready[i] && is_read[i])
            claim_cursor_searched(&list[i]->cursor, now, starts[i], &none);
    return OK;
}

ErrorCode claimer_has_work(Claimer *claimer, Deadline deadline, Arena *arena, bool *ret_has, Error *reterr)
{
    TxOptions options = {.name = "has work", .deadline = deadline, .arena = arena, .read_only = true};
    int64_t   has     = 0;

    *ret_has = false;
    TRY(claimer_find_domain(claimer, deadline, arena, reterr));
    if (!claimer->domain_id)
        return OK;
    TRY(db_call(claimer->pool, &options, sql_bus_has_work,
                DB_ARGS(db_i32(claimer->domain_id), claimer_types(claimer, arena)), &db_i64_shape, &has, reterr));
    *ret_has = has != 0;
    return OK;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void requeue_prove(Requeue *state, const Requeued *requeued)
{
    if (requeued->running < state->last_running || requeued->looked_us < state->due_us)
        *state = (Requeue){
            .wake = state->wake}; /* restored, or the clock was put back: what was proven is about another history */
    if (state->running && requeued->oldest >= state->running) {
        int64_t proven = least(state->promised_us, requeued->due_left_us);

        state->due_us  = state->due_us > proven ? state->due_us : proven;
        state->running = 0;
    }
    if (!state->running) {
        state->promised_us =
            requeued->looked_us - REQUEUE_AGAIN_US; /* a settle reads the clock before it has the lock */
        state->running = requeued->running;
    }
    state->last_running = requeued->running;
}

#define ATTACHED_COLUMNS(X, T) \
    X(T, I32, next_ms)         \
    X(T, TEXT, wake)
DB_ROW(Attached, ATTACHED_COLUMNS);
DB_SHAPE(attached, Attached, ATTACHED_COLUMNS);

/* Returns when to ask again, in milliseconds. */
static int attached_step(Pool *pool, Deadline deadline, Arena *arena, const Wake *wake, int most_ms)
{
    TxOptions options  = {.name = "attached", .deadline = deadline, .arena = arena, .keyed = true};
    Attached  attached = {0};
    Error     error    = {0};

    if (db_call(pool, &options, sql_bus_attached_due, DB_ARGS(db_i32(ATTACHED_LIMIT), db_i32(most_ms)), &attached_shape,
                &attached, &error) != OK) {
        log_error(LOG_WARN, "requeue", "deadlines were not decided about, trying again", &error);
        return most_ms < ATTACHED_MS ? most_ms : ATTACHED_MS;
    }
    wake_names(wake, attached.wake);
    return attached.next_ms;
}

ErrorCode requeue_step(Pool *pool, Deadline deadline, Requeue *state, int most_ms, int *ret_moved, int *ret_next_ms,
                       Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions options = {.name = "requeue", .deadline = deadline, .arena = arena, .keyed = true, .prepare = true};
    Mono      start   = clock_mono();
    bool      full    = !mono_before(start, state->full_at);
    bool      resting = mono_before(start, state->pause_until);
    int64_t   due_us  = resting ? state->looked_us - REQUEUE_AGAIN_US : state->due_us;
    int64_t   took_us;
    Requeued  requeued = {0};

    metric_add(&bus_metrics.requeue_calls, 1);
    TRY(db_call(pool, &options, sql_bus_requeue_due,
                DB_ARGS(db_i32(REQUEUE_LIMIT), db_i64(full ? 0 : state->since_us), db_i32(most_ms),
                        db_i64(full ? 0 : due_us)),
                &requeued_shape, &requeued, reterr));
    took_us = mono_us_between(start, clock_mono());
    wake_names(state->wake, requeued.wake);
    if (full || !resting)
        requeue_prove(state, &requeued);
    if (full)
        state->full_at = mono_plus_ms(start, REQUEUE_FULL_MS);
    else if (!resting && requeued.moved == 0 && took_us > CLAIM_CHEAP_US)
        state->pause_until = mono_plus_ms(start, least(took_us * CLAIM_LOW_SHARE / 1000, REQUEUE_PAUSE_MS));
    if (requeued.next_ms > 0) { /* every expired lease was read */
        state->since_us  = requeued.looked_us - REQUEUE_AGAIN_US;
        state->looked_us = requeued.looked_us;
    }
    *ret_moved   = requeued.moved;
    *ret_next_ms = requeued.next_ms;
    if (requeued.is_attached_due)
        *ret_next_ms = (int)least(requeued.next_ms, attached_step(pool, deadline, arena, state->wake, most_ms));
    return OK;
}
