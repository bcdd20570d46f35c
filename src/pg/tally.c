/*
 * tally.c - see tally.h.
 */
#include "pg/tally.h"

#include <string.h>

#include "base/metric.h"
#include "pg/tx.h"
#include "sql.h"

/* What is counted: the sum of some counters. A refusal for business reasons is a good end of a handler. */
static const struct {
    const char *name;
    Metric      first, last;
} rows[TALLY_NAMES] = {
    {"handlers",        METRIC_SETTLED_COMPLETED, METRIC_SETTLED_REJECTED},
    {"handlers_failed", METRIC_SETTLED_RETRIED,   METRIC_SETTLED_FAILED  },
    {"rate_limited",    METRIC_RATE_LIMITED,      METRIC_RATE_LIMITED    },
};

static Tally own = {.mutex = {.native = PTHREAD_MUTEX_INITIALIZER}};

Tally *tally_own(void)
{
    return &own;
}

static int64_t row_value(int row)
{
    int64_t sum = 0;

    for (Metric metric = rows[row].first; metric <= rows[row].last; metric++)
        sum += metric_value(metric);
    return sum;
}

/* Under the mutex: what to write now; false: nothing. */
static bool flush_begin(Tally *tally)
{
    bool any = tally->is_unsure;

    if (tally->is_running)
        return false;
    if (!tally->source[0])
        uuid_new(tally->source);
    for (int i = 0; i < TALLY_NAMES && !tally->is_unsure; i++) {
        tally->unsure[i] = row_value(i) - tally->stored[i];
        any |= tally->unsure[i] > 0;
    }
    if (!any)
        return false;
    tally->flush += !tally->is_unsure;
    tally->is_unsure = tally->is_running = true;
    return true;
}

static void flush_end(Tally *tally, ErrorCode code)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&tally->mutex);

    for (int i = 0; i < TALLY_NAMES && code == OK; i++)
        tally->stored[i] += tally->unsure[i];
    tally->is_unsure  = code != OK;
    tally->is_running = false;
}

typedef struct {
    int64_t value;
} Added;
#define ADDED_COLUMNS(X, T) X(T, int64_t, DB_I64, value)
DB_SHAPE(added, Added, ADDED_COLUMNS);

static ErrorCode flush_write(const Tally *tally, Pool *pool, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "tally", .deadline = deadline, .arena = arena, .keyed = true};
    const char               *names[TALLY_NAMES];
    int64_t                   counts[TALLY_NAMES];
    int                       count = 0;
    Added                     added;

    for (int i = 0; i < TALLY_NAMES; i++)
        if (tally->unsure[i] > 0) {
            names[count]    = rows[i].name;
            counts[count++] = tally->unsure[i];
        }
    return db_call(pool, &options, sql_pg_tally_add,
                   DB_ARGS(db_text(tally->source), db_i64(tally->flush), db_texts(arena, names, count),
                           db_i64s(arena, counts, count)),
                   &added_shape, &added, reterr);
}

ErrorCode tally_flush(Tally *tally, Pool *pool, Deadline deadline, Error *reterr)
{
    ErrorCode code;
    bool      any;

    mutex_lock(&tally->mutex);
    tally->next = mono_plus_ms(clock_mono(), TALLY_MS);
    any         = flush_begin(tally);
    mutex_unlock(&tally->mutex);
    if (!any)
        return OK;
    code = flush_write(tally, pool, deadline, reterr);
    flush_end(tally, code);
    return code;
}

ErrorCode tally_step(Tally *tally, Pool *pool, Deadline deadline, Error *reterr)
{
    bool is_due;

    mutex_lock(&tally->mutex);
    is_due = !mono_before(clock_mono(), tally->next);
    mutex_unlock(&tally->mutex);
    return is_due ? tally_flush(tally, pool, deadline, reterr) : OK;
}
