/*
 * compensate.c - the compensations of the steps that have ended, last one first, each recorded as "~NAME".
 *
 * First, what the process has sent must have ended: the canceler (sql/process/sent.sql) ends what it can, and what completes all the same is
 * recorded, and so compensated.
 *
 * One after the other: a compensation begins when the one before it has its record. One that must wait blocks the rest, because order is the
 * promise. Items of an each are found again by what the each remembered when it began. A step that an operator has set aside, and that had
 * succeeded, has happened as well: its compensation is recorded as "~NAME:goneN".
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "process/interpret_internal.h"

#define DEPTH_MAX       DEFINITION_DEPTH_MAX
#define REPLY_BYTES_MAX ((size_t)16 << 20)

/* "send[3][0]", "send[3][0]:done" and "send[3][0]:gone1" name a step that has happened; others do not. size: of what the record of its
 * compensation is named after. gone: the time for which it was set aside; 0: it was not. */
static bool record_is_step(const char *record, size_t *ret_size, int *ret_gone)
{
    const char *behind = record + strcspn(record, ":");

    *ret_size = (size_t)(behind - record);
    *ret_gone = 0;
    if (record[0] == '~')
        return false;
    if (strncmp(behind, RUN_GONE, strlen(RUN_GONE)) == 0) {
        *ret_size = strlen(record);
        *ret_gone = (int)strtol(behind + strlen(RUN_GONE), NULL, 10);
        return true;
    }
    return *behind == '\0' || strcmp(behind, RECORD_DONE) == 0;
}

/* The step, and the scope with its indices. NULL: it is no record of a step. */
static const Step *record_step(Walk *walk, const char *record, int64_t *ret_indices, int *ret_depth)
{
    size_t size = strcspn(record, "[:");
    char   base[RECORD_NAME_MAX];

    *ret_depth = 0;
    if (size >= sizeof base)
        return NULL;
    memcpy(base, record, size);
    base[size] = '\0';
    for (const char *at = record + size; *at == '[' && *ret_depth < DEPTH_MAX; at = strchr(at, ']') + 1) {
        ret_indices[(*ret_depth)++] = strtoll(at + 1, NULL, 10);
        if (!strchr(at, ']'))
            return NULL;
    }
    return definition_find(walk->definition, base);
}

/* The each around a step, the outermost first. */
static int eaches_find(const Step *step, const Step **ret_list)
{
    int count = 0;

    for (const Step *above = step->list->above; above; above = above->list->above)
        if (above->action.kind == STEP_EACH)
            count++;
    int at = count;

    for (const Step *above = step->list->above; above; above = above->list->above)
        if (above->action.kind == STEP_EACH)
            ret_list[--at] = above;
    return count;
}

/* The items of the each that was compensated last, per level of nesting, so that they are not searched from the first one for each record. */
typedef struct {
    struct {
        RecordName name; /* of the record that remembers the items */
        int        gone;
        Value     *list;
        int64_t    count;
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

static Value item_find(Walk *walk, ItemCache *cache, int level, const RecordName *name, int gone, int64_t index)
{
    const char *json = run_result_before(walk->run, name->text, gone);

    if (!json)
        return (Value){0};
    if (!cache->levels[level].list || cache->levels[level].gone != gone ||
        strcmp(cache->levels[level].name.text, name->text) != 0) {
        free(cache->levels[level].list);
        cache->levels[level].name = *name;
        cache->levels[level].gone = gone;
        items_list(json, &cache->levels[level].list, &cache->levels[level].count);
    }
    return index < cache->levels[level].count ? cache->levels[level].list[index] : (Value){0};
}

static void cache_done(ItemCache *cache)
{
    for (int i = 0; i < DEPTH_MAX; i++)
        free(cache->levels[i].list);
}

static const Scope *scope_rebuild(Walk *walk, ItemCache *cache, const Step *step, const int64_t *indices, int depth,
                                  int gone, Scope *space)
{
    const Step  *eaches[DEPTH_MAX];
    const Scope *scope = NULL;
    int          count = eaches_find(step, eaches);

    for (int i = 0; i < count && i < depth; i++) {
        RecordName name = record_name(scope, eaches[i], ":begun");

        space[i] = (Scope){.above = scope,
                           .index = indices[i],
                           .item  = item_find(walk, cache, /* level= */ i, &name, gone, indices[i])};
        scope    = &space[i];
    }
    return scope;
}

static ErrorCode record_compensate(Walk *walk, ItemCache *cache, const StepRecord *record, Flow *ret_flow,
                                   Error *reterr)
{
    int64_t     indices[DEPTH_MAX];
    int         depth;
    Scope       space[DEPTH_MAX];
    RecordName  name = {"~"};
    const Step *step;
    const char *result;
    size_t      size;
    int         gone;

    *ret_flow = FLOW_NEXT;
    if (!record_is_step(record->name, &size, &gone) || size + 2 > sizeof name.text)
        return OK;
    memcpy(name.text + 1, record->name, size);
    step = record_step(walk, name.text + 1, indices, &depth);
    if (!step || !step->compensate || run_result(walk->run, name.text))
        return OK;
    if (run_must_end(walk->run)) {
        *ret_flow = FLOW_STOPPED;
        return OK;
    }
    result = record->result ? record->result : "null";
    return action_walk(walk, scope_rebuild(walk, cache, step, indices, depth, gone, space), step, step->compensate,
                       name.text, (Value){result, strlen(result)}, gone, ret_flow, reterr);
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

#define REPLY_PREFIX "$reply."

static bool is_of_compensation(const char *record)
{
    return record[0] == '~';
}

static ErrorCode completed_record(Walk *walk, ItemCache *cache, const char *name, Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena  = NULL;
    const char               *record = name + strlen(REPLY_PREFIX);
    const char *const        *payloads;
    int                       count = run_responses(walk->run, name, &payloads);
    int64_t                   indices[DEPTH_MAX];
    int                       depth;
    Scope                     space[DEPTH_MAX];
    SentReply                 reply = {0};
    const Step               *step  = record_step(walk, record, indices, &depth);
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
    return reply_record(walk, scope_rebuild(walk, cache, step, indices, depth, /* gone= */ 0, space), step, record,
                        &reply, ret_flow, reterr);
}

/* false: everything has ended. */
static bool open_wait(Walk *walk)
{
    Value       open = run_open(walk->run), item;
    const char *at   = NULL;
    bool        any  = false;

    while (value_item_next(open, &at, &item)) {
        Value              decoded = value_decode(item, walk->arena);
        const char        *record  = arena_bytes(walk->arena, decoded.bytes, decoded.size);
        const char        *name    = sent_reply_name(walk->arena, record);
        const char *const *payloads;

        if (is_of_compensation(record))
            continue;
        run_wait(walk->run, record, WAIT_REPLY, name, run_responses(walk->run, name, &payloads) + 1, 0);
        any = true;
    }
    return any;
}

static ErrorCode completed_walk(Walk *walk, ItemCache *cache, Flow *ret_flow, Error *reterr)
{
    const char *name;

    *ret_flow = FLOW_NEXT;
    for (int i = 0; (name = run_response_name(walk->run, i)); i++) {
        if (strncmp(name, REPLY_PREFIX, strlen(REPLY_PREFIX)) != 0 || is_of_compensation(name + strlen(REPLY_PREFIX)))
            continue;
        TRY(completed_record(walk, cache, name, ret_flow, reterr));
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
