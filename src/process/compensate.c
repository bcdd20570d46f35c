/*
 * compensate.c - the compensations of the steps that have ended, last one first, each recorded as its undo.
 *
 * First, what the process has sent must have ended: the canceler (sql/process/sent.sql) ends what it can, and what completes all the same is
 * recorded, and so compensated.
 *
 * One after the other: a compensation begins when the one before it has its record. One that must wait blocks the rest, because order is the
 * promise. Items of an each are found again by what the each remembered when it began. A step that an operator has set aside, and that had
 * succeeded, has happened as well, and is compensated by itself.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "process/interpret_internal.h"

#define DEPTH_MAX       DEFINITION_DEPTH_MAX
#define REPLY_BYTES_MAX ((size_t)16 << 20)

/* The record of the compensation of what this one says; false: nothing is to be compensated because of it. */
static bool undo_of(const StepRecord *record, RecordId *ret_undo)
{
    *ret_undo      = record_as(record->id, RECORD_STEP);
    ret_undo->undo = true;
    return !record->id.undo && (record->id.kind == RECORD_STEP || record->id.kind == RECORD_DONE);
}

/* The loops around a step, the innermost first. */
static int loops_find(const Step *step, const Step **ret_list)
{
    int count = 0;

    for (const Step *above = step->list->above; above; above = above->list->above)
        if (step_is_loop(above))
            ret_list[count++] = above;
    return count;
}

/* The items of the each that was compensated last, per level of nesting, so that they are not searched from the first one for each record. */
typedef struct {
    struct {
        RecordId id;   /* of the record that remembers the items */
        Value   *list; /* NULL: none yet */
        int64_t  count;
    } levels[DEPTH_MAX];
} ItemCache;

static void items_list(const char *json, Value **ret_list, int64_t *ret_count)
{
    Value       items = value_trim(json, strlen(json)), item;
    const char *at    = NULL;

    *ret_count = 0;
    *ret_list  = memory_new((size_t)value_item_count(items) + 1, sizeof **ret_list);
    while (value_item_next(items, &at, &item))
        (*ret_list)[(*ret_count)++] = item;
}

static Value item_find(Walk *walk, ItemCache *cache, int level, RecordId id, int64_t index)
{
    const char *json = run_result_before(walk->run, record_as(id, RECORD_BEGIN), id.aside);

    if (!json)
        return (Value){0};
    if (!cache->levels[level].list || record_compare(&cache->levels[level].id, &id) != 0) {
        free(cache->levels[level].list);
        cache->levels[level].id = id;
        items_list(json, &cache->levels[level].list, &cache->levels[level].count);
    }
    return index < cache->levels[level].count ? cache->levels[level].list[index] : (Value){0};
}

static void cache_done(ItemCache *cache)
{
    for (int i = 0; i < DEPTH_MAX; i++)
        free(cache->levels[i].list);
}

/* The scope of a record, which has a number for each loop around its step, the outermost first. */
static const Scope *scope_rebuild(Walk *walk, ItemCache *cache, const Step *step, const RecordId *id, Scope *space)
{
    const Step  *loops[DEPTH_MAX];
    const Scope *scope = NULL;
    int          count = loops_find(step, loops);

    for (int i = 0; i < count && i < id->depth; i++) {
        const Step *around = loops[count - 1 - i];
        RecordId    loop   = step_id(scope, around);

        loop.aside = id->aside;
        space[i]   = scope_round(scope, id->item[i]);
        if (around->action.kind == STEP_EACH)
            space[i].item = item_find(walk, cache, /* level= */ i, loop, id->item[i]);
        scope = &space[i];
    }
    return scope;
}

static ErrorCode record_compensate(Walk *walk, ItemCache *cache, const StepRecord *record, Flow *ret_flow,
                                   Error *reterr)
{
    Scope       space[DEPTH_MAX];
    RecordId    undo;
    const Step *step;
    const char *result;

    *ret_flow = FLOW_NEXT;
    if (!undo_of(record, &undo))
        return OK;
    step = definition_find(walk->definition, undo.step);
    if (!step || !step->compensate || run_result(walk->run, undo))
        return OK;
    if (run_must_end(walk->run)) {
        *ret_flow = FLOW_STOPPED;
        return OK;
    }
    result = record->result ? record->result : "null";
    return action_walk(walk, scope_rebuild(walk, cache, step, &undo, space), step, step->compensate, undo,
                       (Value){result, strlen(result)}, ret_flow, reterr);
}

static ErrorCode records_compensate(Walk *walk, ItemCache *cache, Flow *ret_flow, Error *reterr)
{
    const StepRecord *const *records;
    int                      count = run_records(walk->run, &records);

    *ret_flow = FLOW_NEXT;
    for (int i = count - 1; i >= 0; i--) {
        TRY(record_compensate(walk, cache, records[i], ret_flow, reterr));
        if (*ret_flow != FLOW_NEXT)
            return OK;
        run_records(walk->run, &records); /* it may have moved; what was there stays where it was */
    }
    return OK;
}

/* ---- what was sent ---- */

static ErrorCode completed_record(Walk *walk, ItemCache *cache, RecordId id, Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena = NULL;
    const char *const        *payloads;
    int                       count = run_responses(walk->run, response_reply(id), &payloads);
    Scope                     space[DEPTH_MAX];
    SentReply                 reply = {0};
    const Step               *step  = definition_find(walk->definition, id.step);
    bool                      found;

    *ret_flow = FLOW_NEXT;
    if (!step)
        return OK;
    arena = arena_new(REPLY_BYTES_MAX);
    TRY(sent_reply_completed(payloads, count, arena, &reply, &found, reterr));
    if (!found)
        return OK;
    if (run_must_end(walk->run)) {
        *ret_flow = FLOW_STOPPED;
        return OK;
    }
    return reply_record(walk, scope_rebuild(walk, cache, step, &id, space), step, id, &reply, ret_flow, reterr);
}

/* false: everything has ended. */
static bool open_wait(Walk *walk)
{
    const RecordId *open;
    int             count = run_open(walk->run, &open);
    bool            any   = false;

    for (int i = 0; i < count; i++) {
        if (open[i].undo)
            continue;
        verb_reply_wait(walk->run, open[i], /* due_us= */ 0);
        any = true;
    }
    return any;
}

static ErrorCode completed_walk(Walk *walk, ItemCache *cache, Flow *ret_flow, Error *reterr)
{
    const ResponseOf *of;

    *ret_flow = FLOW_NEXT;
    for (int i = 0; (of = run_response_of(walk->run, i)); i++) {
        if (of->kind != RESPONSE_REPLY || of->of.undo)
            continue;
        TRY(completed_record(walk, cache, of->of, ret_flow, reterr));
        if (*ret_flow == FLOW_STOPPED)
            return OK;
    }
    *ret_flow = FLOW_NEXT; /* one whose result could not be saved is compensated as well */
    return OK;
}

ErrorCode replies_walk(Walk *walk, Flow *ret_flow, Error *reterr)
{
    ItemCache cache = {0};
    ErrorCode code  = completed_walk(walk, &cache, ret_flow, reterr);

    cache_done(&cache);
    if (code == OK && *ret_flow == FLOW_NEXT && open_wait(walk))
        *ret_flow = FLOW_BLOCKED;
    return code;
}

/* ---- all of it ---- */

ErrorCode compensate_walk(Walk *walk, Flow *ret_flow, Error *reterr)
{
    ItemCache cache = {0};
    ErrorCode code  = records_compensate(walk, &cache, ret_flow, reterr);

    cache_done(&cache);
    return code;
}
