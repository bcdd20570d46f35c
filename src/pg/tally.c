/*
 * tally.c - see tally.h.
 */
#include "pg/tally.h"

#include <string.h>

#include "base/module.h"
#include "pg/tx.h"
#include "sql.h"

static Tally own = {.mutex = {.native = PTHREAD_MUTEX_INITIALIZER}};

Tally *tally_own(void)
{
    return &own;
}

/* Under the mutex: what to write now; false: nothing. */
static bool flush_begin(Tally *tally)
{
    bool             any = tally->is_unsure;
    const MetricSum *sum;

    if (tally->is_running)
        return false;
    if (!tally->source[0])
        uuid_new(tally->source);
    for (int i = 0; i < TALLY_SUMS_MAX && !tally->is_unsure && (sum = module_sum((size_t)i)); i++) {
        tally->unsure[i] = metric_sum(sum) - tally->stored[i];
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

    for (int i = 0; i < TALLY_SUMS_MAX && code == OK; i++)
        tally->stored[i] += tally->unsure[i];
    tally->is_unsure  = code != OK;
    tally->is_running = false;
}

static ErrorCode flush_write(const Tally *tally, Pool *pool, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "tally", .deadline = deadline, .arena = arena, .keyed = true};
    const char               *names[TALLY_SUMS_MAX];
    int64_t                   counts[TALLY_SUMS_MAX];
    int                       count = 0;
    int64_t                   added;

    for (int i = 0; i < TALLY_SUMS_MAX; i++)
        if (tally->unsure[i] > 0) {
            names[count]    = module_sum((size_t)i)->name;
            counts[count++] = tally->unsure[i];
        }
    return db_call(pool, &options, sql_pg_tally_add,
                   DB_ARGS(db_text(tally->source), db_i64(tally->flush), db_texts(arena, names, count),
                           db_i64s(arena, counts, count)),
                   &db_i64_shape, &added, reterr);
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
