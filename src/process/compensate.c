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

/* "send[3][0]" and "send[3][0]:done" name a step that has happened; others do not. size: without what is behind the colon. */
static bool record_is_step(const char *record, size_t *ret_size)
{
    *ret_size = strcspn(record, ":");
    return record[0] != '~' && (record[*ret_size] == '\0' || strcmp(record + *ret_size, RECORD_DONE) == 0);
}

/* The step, and the scope with its indices. NULL: it is no record of a step. */
static const Step *record_step(Walk *walk, const char *record, int64_t *ret_indices, int *ret_depth)
{
    size_t size = strcspn(record, "[");
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
    Scope       space[DEPTH_MAX];
    RecordName  name = {"~"};
    const Step *step;
    const char *result;
    size_t      size;

    *ret_flow = FLOW_NEXT;
    if (!record_is_step(record->name, &size) || size + 2 > sizeof name.text)
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
