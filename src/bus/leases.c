/*
 * leases.c - four combiners, whose items are calls: settles, settles that are tried again, extensions, progress.
 */
#include "bus/leases.h"

#include <stdlib.h>

#include "base/memory.h"
#include "bus/command.h"
#include "bus/settle_internal.h"
#include "pg/combiner.h"

#define BUSY_MS       1000 /* how long busy items are tried again */
#define BUSY_PAUSE_MS 50

struct Leases {
    Pool       *pool;
    const Wake *wake;
    Combiner   *settles, *retries, *extends, *progress;
};

/* ---- settles ---- */

static size_t settle_call_weight(const void *call)
{
    const SettleCall *settle = call;

    return settle_weigh(settle->open, settle->open_count);
}

static int items_gather(SettleCall *const *calls, int count, SettleItem **ret_items)
{
    int found = 0;

    for (int i = 0; i < count; i++)
        for (int k = 0; k < calls[i]->open_count; k++)
            ret_items[found++] = calls[i]->open[k];
    return found;
}

static int items_count(SettleCall *const *calls, int count)
{
    int found = 0;

    for (int i = 0; i < count; i++)
        found += calls[i]->open_count;
    return found;
}

/* The numbers of commands; 0: the domain has no such command, and the audit of the settle says what was meant. */
static ErrorCode settles_number(const Leases *leases, Deadline deadline, Arena *arena, SettleCall *const *calls,
                                int count, Error *reterr)
{
    int          total = items_count(calls, count), named = 0;
    const char **domains = arena_array(arena, const char *, total);
    const char **ids     = arena_array(arena, const char *, total);
    SettleItem **items   = arena_array(arena, SettleItem *, total);
    int64_t     *numbers;

    for (int i = 0; i < count; i++)
        for (int k = 0; k < calls[i]->open_count && !calls[i]->is_numbered; k++) {
            items[named]   = calls[i]->open[k];
            domains[named] = calls[i]->domain;
            ids[named++]   = calls[i]->open[k]->command_id;
        }
    if (named == 0)
        return OK;
    TRY(command_numbers_in(leases->pool, deadline, POOL_SOON, arena, domains, ids, named, &numbers, reterr));
    for (int i = 0; i < named; i++) {
        items[i]->id         = numbers[i];
        items[i]->domain     = numbers[i] ? NULL : domains[i];
        items[i]->command_id = numbers[i] ? NULL : ids[i];
    }
    for (int i = 0; i < count; i++)
        calls[i]->is_numbered = true;
    return OK;
}

/* Nothing was settled. */
static void settles_fail(SettleCall *const *calls, int count, const Error *error)
{
    for (int i = 0; i < count; i++) {
        calls[i]->code  = error->code;
        calls[i]->error = *error;
    }
}

/* A failure of several calls is returned, so that the combiner runs them apart; that of a single one is in its items. */
static ErrorCode settles_run(void *context, void **calls, int count, Deadline deadline, Error *reterr)
{
    Leases                   *leases = context;
    scoped(arena_free) Arena *arena  = arena_new(SETTLE_CALL_ARENA_BYTES);
    SettleItem              **items  = arena_array(arena, SettleItem *, items_count((SettleCall **)calls, count));
    int                       total  = items_gather((SettleCall **)calls, count, items);
    Error                     error  = {0};

    if (settles_number(leases, deadline, arena, (SettleCall **)calls, count, &error) != OK) {
        settles_fail((SettleCall **)calls, count, &error);
        return OK;
    }
    if (count > 1 && total > 0)
        return settle_together(leases->pool, deadline, leases->wake, arena, items, total, reterr);
    if (total > 0)
        settle_apart(leases->pool, deadline, leases->wake, items, total);
    return OK;
}

static ErrorCode retries_run(void *context, void **calls, int count, Deadline deadline, Error *reterr)
{
    clock_sleep_ms(BUSY_PAUSE_MS);
    return settles_run(context, calls, count, deadline, reterr);
}

static void settle_call_done(void *context, const Error *error)
{
    SettleCall *call = context;

    for (int i = 0; i < call->open_count && error->code != OK; i++) {
        call->open[i]->code       = error->code;
        call->open[i]->error_text = *error;
        call->open[i]->busy       = false;
    }
    call->open_count = call->code == OK ? settle_items_busy(call->open, call->open_count) : 0;
    if (call->open_count > 0 && !deadline_passed(call->until))
        combiner_submit(call->leases->retries, call, call->deadline, settle_call_done);
    else
        call->on_done(call->context);
}

void leases_settle(Leases *leases, SettleCall *call, SettleItem **open)
{
    call->leases     = leases;
    call->code       = OK;
    call->until      = deadline_sooner(call->deadline, deadline_in_ms(BUSY_MS));
    call->open       = open;
    call->open_count = settle_items_good(call->items, call->count, open);
    if (call->open_count > 0)
        combiner_submit(leases->settles, call, call->deadline, settle_call_done);
    else
        call->on_done(call->context);
}

/* ---- what extensions and progress share ---- */

static size_t lease_call_weight(const void *call)
{
    return (size_t)((const LeaseCall *)call)->count;
}

static void lease_call_done(void *context, const Error *error)
{
    LeaseCall *call = context;

    call->code  = error->code;
    call->error = *error;
    call->on_done(call->context);
}

/* The numbers of the commands of all calls, in order. */
static ErrorCode calls_number(const Leases *leases, Deadline deadline, Arena *arena, LeaseCall *const *calls, int count,
                              int64_t **ret_numbers, int *ret_total, Error *reterr)
{
    const char **domains, **ids;
    int          total = 0, named = 0;

    for (int i = 0; i < count; i++)
        total += calls[i]->count;
    domains = arena_array(arena, const char *, total);
    ids     = arena_array(arena, const char *, total);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < calls[i]->count; k++) {
            domains[named] = calls[i]->domain;
            ids[named++]   = calls[i]->ids[k];
        }
    TRY(command_numbers_in(leases->pool, deadline, POOL_URGENT, arena, domains, ids, total, ret_numbers, reterr));
    *ret_total = total;
    return OK;
}

/* ---- extensions ---- */

/* All with the same length in one statement. */
typedef struct {
    int64_t *ids, *tokens;
    int    **verdicts;
    int      count;
} Group;

/* Those of calls from `first` on that want the same length as that one. done: of each call. numbers: of all calls, in order. */
static void group_fill(LeaseCall *const *calls, int count, int first, const int64_t *numbers, bool *done, Group *group)
{
    int from = 0;

    group->count = 0;
    for (int i = 0; i < count; from += calls[i++]->count) {
        if (done[i] || calls[i]->lease_ms != calls[first]->lease_ms)
            continue;
        done[i] = true;
        for (int k = 0; k < calls[i]->count; k++) {
            group->ids[group->count]        = numbers[from + k];
            group->tokens[group->count]     = calls[i]->tokens[k];
            group->verdicts[group->count++] = &calls[i]->verdicts[k];
        }
    }
}

static ErrorCode extends_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    Leases                   *leases = context;
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    LeaseCall               **calls  = (LeaseCall **)items;
    bool                     *done   = arena_array(arena, bool, count);
    int64_t                  *numbers;
    int                       total;

    TRY(calls_number(leases, deadline, arena, calls, count, &numbers, &total, reterr));

    LeaseVerdict *verdicts = arena_array(arena, LeaseVerdict, total);
    Group         group    = {.ids      = arena_array(arena, int64_t, total),
                              .tokens   = arena_array(arena, int64_t, total),
                              .verdicts = arena_array(arena, int *, total)};

    for (int i = 0; i < count; i++) {
        if (done[i])
            continue;
        group_fill(calls, count, i, numbers, done, &group);
        TRY(lease_extend(leases->pool, deadline, arena, group.ids, group.tokens, group.count, calls[i]->lease_ms,
                         verdicts, reterr));
        for (int k = 0; k < group.count; k++)
            *group.verdicts[k] = verdicts[k];
    }
    return OK;
}

void leases_extend(Leases *leases, LeaseCall *call)
{
    combiner_submit(leases->extends, call, call->deadline, lease_call_done);
}

/* ---- progress ---- */

static ErrorCode progress_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    Leases                   *leases = context;
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    LeaseCall               **calls  = (LeaseCall **)items;
    int64_t                  *numbers;
    ProgressItem             *all;
    int                       total, at = 0;

    TRY(calls_number(leases, deadline, arena, calls, count, &numbers, &total, reterr));
    all = arena_array(arena, ProgressItem, total);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < calls[i]->count; k++, at++) {
            all[at]    = calls[i]->items[k];
            all[at].id = numbers[at];
        }
    TRY(progress_report(leases->pool, deadline, arena, all, total, reterr));
    at = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < calls[i]->count; k++)
            calls[i]->verdicts[k] = all[at++].verdict;
    return OK;
}

void leases_progress(Leases *leases, LeaseCall *call)
{
    combiner_submit(leases->progress, call, call->deadline, lease_call_done);
}

/* ---- life ---- */

Leases *leases_new(Pool *pool, const Wake *wake)
{
    Leases    *leases = memory_new(1, sizeof *leases);
    PoolStatus status;
    int        share;

    pool_status(pool, &status);
    share            = combiner_share(status.size_max, 4);
    leases->pool     = pool;
    leases->wake     = wake;
    leases->settles  = combiner_new(&(CombinerOptions){.run        = settles_run,
                                                       .context    = leases,
                                                       .slots_max  = share,
                                                       .weigh      = settle_call_weight,
                                                       .weight_max = SETTLE_CALL_WEIGHT_MAX});
    leases->retries  = combiner_new(&(CombinerOptions){.run        = retries_run,
                                                       .context    = leases,
                                                       .slots      = 1,
                                                       .slots_max  = 1,
                                                       .weigh      = settle_call_weight,
                                                       .weight_max = SETTLE_CALL_WEIGHT_MAX});
    leases->extends  = combiner_new(&(CombinerOptions){.run        = extends_run,
                                                       .context    = leases,
                                                       .slots_max  = share,
                                                       .weigh      = lease_call_weight,
                                                       .weight_max = SETTLE_MAX});
    leases->progress = combiner_new(&(CombinerOptions){.run        = progress_run,
                                                       .context    = leases,
                                                       .slots      = 1,
                                                       .slots_max  = 1,
                                                       .weigh      = lease_call_weight,
                                                       .weight_max = SETTLE_MAX});
    return leases;
}

void leases_free(Leases *leases)
{
    combiner_free(leases->retries);
    combiner_free(leases->settles);
    combiner_free(leases->extends);
    combiner_free(leases->progress);
    free(leases);
}
