/*
 * compensate.c - the compensations of the steps that have ended, last one first, each recorded as "~NAME".
 *
 * One after the other: a compensation begins when the one before it has its record. One that must wait blocks the rest, because order is the
 * promise. Items of an each are found again by what the each remembered when it began.
 */
#include <stdlib.h>
#include <string.h>

#include "process/interpret_internal.h"

#define DEPTH_MAX DEFINITION_DEPTH_MAX

/* "send[3][0]": the step, and the scope with these indices. NULL: it is no record of a step. */
static const Step *record_step(Walk *walk, const char *record, int64_t *ret_indices, int *ret_depth)
{
    size_t size = strcspn(record, "[:");
    char   base[RECORD_NAME_MAX];

    *ret_depth = 0;
    if (record[0] == '~' || size >= sizeof base)
        return NULL;
    memcpy(base, record, size);
    base[size] = '\0';
    for (const char *at = record + size; *at == '[' && *ret_depth < DEPTH_MAX; at = strchr(at, ']') + 1) {
        ret_indices[(*ret_depth)++] = strtoll(at + 1, NULL, 10);
        if (!strchr(at, ']'))
            return NULL;
    }
    return strchr(record, ':') ? NULL : definition_find(walk->definition, base);
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

static const Scope *scope_rebuild(Walk *walk, const Step *step, const int64_t *indices, int depth, Scope *space)
{
    const Step  *eaches[DEPTH_MAX];
    const Scope *scope = NULL;
    int          count = eaches_find(step, eaches);

    for (int i = 0; i < count && i < depth; i++) {
        RecordName  name  = record_name(scope, eaches[i], ":begun");
        const char *items = run_result(walk->run, name.text);

        space[i] = (Scope){.above = scope,
                           .index = indices[i],
                           .item  = items ? value_item(value_trim(items, strlen(items)), indices[i]) : (Value){0}};
        scope    = &space[i];
    }
    return scope;
}

static ErrorCode record_compensate(Walk *walk, const StepRecord *record, Flow *ret_flow, Error *reterr)
{
    int64_t     indices[DEPTH_MAX];
    int         depth;
    const Step *step = record_step(walk, record->name, indices, &depth);
    Scope       space[DEPTH_MAX];
    RecordName  name = {0};
    const char *result;

    *ret_flow = FLOW_NEXT;
    if (!step || !step->compensate)
        return OK;
    snprintf(name.text, sizeof name.text, "~%s", record->name);
    if (run_result(walk->run, name.text))
        return OK;
    if (run_must_stop(walk->run)) {
        *ret_flow = FLOW_STOPPED;
        return OK;
    }
    result = record->result ? record->result : "null";
    return action_walk(walk, scope_rebuild(walk, step, indices, depth, space), step, step->compensate, name.text,
                       (Value){result, strlen(result)}, ret_flow, reterr);
}

ErrorCode compensate_walk(Walk *walk, Flow *ret_flow, Error *reterr)
{
    const StepRecord *const *records;
    int                      count = run_records(walk->run, &records);

    *ret_flow = FLOW_NEXT;
    for (int i = count - 1; i >= 0; i--) {
        TRY(record_compensate(walk, records[i], ret_flow, reterr));
        if (*ret_flow != FLOW_NEXT)
            return OK;
        run_records(walk->run, &records); /* it may have moved; what was there stays where it was */
    }
    return OK;
}
