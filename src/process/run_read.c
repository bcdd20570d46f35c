/*
 * run_read.c - see run.h: what an activation knows of its process: records, responses, keys, state, time.
 */
#include "process/run_internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define KEY_NAME_SIZE 512
/* What an activation may add to the memory of what it has loaded before it is ended and begun again. */
#define ACTIVATION_BYTES_MAX ((size_t)16 << 20)
/* Of all activations of this pod, which go on while they have not added GROWN_BYTES_LEAST each. */
#define GROWN_BYTES_MAX   ((size_t)64 << 20)
#define GROWN_BYTES_LEAST ((size_t)1 << 20)

/* What the activations of this pod have added to what they began with. */
static atomic_size_t grown_bytes;

/* ---- records, sorted by name and attempt ---- */

static int record_compare(const char *name, int64_t attempt, const StepRecord *record)
{
    int order = strcmp(name, record->name);

    return order ? order : (attempt > record->attempt) - (attempt < record->attempt);
}

/* The index of the first record that is not below this one. */
static int record_position(const Run *run, const char *name, int64_t attempt)
{
    int low = 0, high = run->record_count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (record_compare(name, attempt, run->records[middle]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void *run_list_grow(Arena *arena, void *list, int count, int *space, size_t size)
{
    if (count < *space)
        return list;
    *space     = *space ? *space * 2 : 16;
    void *next = arena_alloc(arena, (size_t)*space * size);

    if (count > 0)
        memcpy(next, list, (size_t)count * size);
    return next;
}

void run_record_add(Run *run, StepRecord *record)
{
    int at = record_position(run, record->name, record->attempt);

    if (at < run->record_count && record_compare(record->name, record->attempt, run->records[at]) == 0)
        return;
    int space    = run->record_space;
    run->records = run_list_grow(run->arena, run->records, run->record_count, &run->record_space, sizeof *run->records);
    if (run->record_space != space) {
        const StepRecord **succeeded = arena_array(run->arena, const StepRecord *, run->record_space);

        if (run->succeeded_count > 0)
            memcpy(succeeded, run->succeeded, (size_t)run->succeeded_count * sizeof *succeeded);
        run->succeeded = succeeded;
    }
    memmove(&run->records[at + 1], &run->records[at], (size_t)(run->record_count - at) * sizeof *run->records);
    run->records[at] = record;
    run->record_count++;
    if (!record->error)
        run->succeeded[run->succeeded_count++] = record;
}

/* ---- responses by name ---- */

static int name_compare(const void *key, const void *item)
{
    return strcmp(key, ((const ResponseList *)item)->name);
}

static ResponseList *responses_find(const Run *run, const char *name)
{
    if (run->response_count == 0)
        return NULL;
    return bsearch(name, run->responses, (size_t)run->response_count, sizeof *run->responses, name_compare);
}

/* By name, then in the order of their arrival, which is that of the array they point into. */
static int response_compare(const void *left, const void *right)
{
    const ProcessResponse *a = *(const ProcessResponse *const *)left, *b = *(const ProcessResponse *const *)right;
    int                    order = strcmp(a->name, b->name);

    return order ? order : (a > b) - (a < b);
}

void run_responses_add(Run *run, const ProcessResponse *list, int count)
{
    const ProcessResponse **sorted   = arena_array(run->arena, const ProcessResponse *, count + 1);
    const char            **payloads = arena_array(run->arena, const char *, count + 1);

    for (int i = 0; i < count; i++)
        sorted[i] = &list[i];
    qsort(sorted, (size_t)count, sizeof *sorted, response_compare);
    run->responses = arena_array(run->arena, ResponseList, count + 1);
    for (int i = 0; i < count; i++) {
        if (i == 0 || strcmp(sorted[i - 1]->name, sorted[i]->name) != 0)
            run->responses[run->response_count++] = (ResponseList){sorted[i]->name, &payloads[i], 0};
        payloads[i] = sorted[i]->payload ? sorted[i]->payload : "null";
        run->responses[run->response_count - 1].count++;
    }
}

/* ---- what was sent, sorted by id ---- */

void run_sent_add(Run *run, const char *json)
{
    Value       list = json ? value_trim(json, strlen(json)) : (Value){0}, item;
    const char *at   = NULL;

    run->sent = arena_array(run->arena, Value, value_item_count(list) + 1);
    while (value_item_next(list, &at, &item))
        run->sent[run->sent_count++] = item;
}

static int id_compare(const void *key, const void *item)
{
    return memcmp(key, ((const Value *)item)->bytes + 1, UUID_TEXT_SIZE - 1);
}

bool run_has_sent(const Run *run, const char *id)
{
    return bsearch(id, run->sent, (size_t)run->sent_count, sizeof *run->sent, id_compare);
}

KeyOwner run_key_owner(const Run *run)
{
    return (KeyOwner){run->job->domain, run->job->command->command_id, run->loaded->secret};
}

/* Under the mutex: the number behind the name of the record at this index, if it is one of this step that was set aside; else 0. */
static int gone_number(const Run *run, int at, const char *step)
{
    size_t      size = strlen(step), behind = strlen(RUN_GONE);
    const char *name = at < run->record_count ? run->records[at]->name : "";

    if (strncmp(name, step, size) != 0 || strncmp(name + size, RUN_GONE, behind) != 0)
        return 0;
    return (int)strtol(name + size + behind, NULL, 10);
}

/* Under the mutex: the index of the first record of this step that was set aside, if there is one. */
static int gone_position(const Run *run, const char *step)
{
    char name[KEY_NAME_SIZE];

    snprintf(name, sizeof name, "%s%s", step, RUN_GONE);
    return record_position(run, name, 0);
}

/* Compensations are never set aside: "~NAME:goneN" is the compensation of what was. */
void run_step_key(Run *run, const char *step, char *ret_uuid)
{
    KeyOwner owner = run_key_owner(run);
    char     name[KEY_NAME_SIZE];
    int      last = 0;

    mutex_lock(&run->mutex);
    for (int at = gone_position(run, step), number; step[0] != '~' && (number = gone_number(run, at, step)); at++)
        last = number > last ? number : last;
    mutex_unlock(&run->mutex);
    if (last)
        snprintf(name, sizeof name, "%s%s%d", step, RUN_GONE, last);
    step_key(&owner, last ? name : step, ret_uuid);
}

/* ---- what is known ---- */

/* Under the mutex: the record of a step that succeeded. */
static const StepRecord *success_find(const Run *run, const char *step)
{
    for (int i = record_position(run, step, 0); i < run->record_count && strcmp(run->records[i]->name, step) == 0; i++)
        if (!run->records[i]->error)
            return run->records[i];
    return NULL;
}

const char *run_result(Run *run, const char *step)
{
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&run->mutex);
    const StepRecord           *record = success_find(run, step);

    if (!record)
        return NULL;
    return record->result ? record->result : "null";
}

const char *run_result_before(Run *run, const char *step, int number)
{
    const StepRecord *found = NULL;
    int               least = 0;

    if (number == 0)
        return run_result(run, step);
    mutex_lock(&run->mutex);
    for (int at = gone_position(run, step), own; (own = gone_number(run, at, step)); at++)
        if (own >= number && (!found || own < least) && !run->records[at]->error) {
            found = run->records[at];
            least = own;
        }
    mutex_unlock(&run->mutex);
    if (!found)
        return run_result(run, step);
    return found->result ? found->result : "null";
}

int64_t run_ended_us(Run *run, const char *step)
{
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&run->mutex);
    const StepRecord           *record = success_find(run, step);

    return record ? record->ended_us : 0;
}

int run_failures(Run *run, const char *step, int64_t *ret_ended_us, const char **ret_error)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&run->mutex);
    int                         count = 0;

    *ret_ended_us = 0;
    *ret_error    = NULL;
    for (int i = record_position(run, step, 0); i < run->record_count && strcmp(run->records[i]->name, step) == 0;
         i++) {
        const StepRecord *record = run->records[i];

        if (!record->error || record->is_reset)
            continue;
        count++;
        *ret_ended_us = record->ended_us;
        *ret_error    = record->error;
    }
    return count;
}

const StepRecord *run_failure(Run *run, const char *step)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);
    const StepRecord           *last = NULL;

    for (int i = record_position(run, step, 0); i < run->record_count && strcmp(run->records[i]->name, step) == 0; i++)
        if (run->records[i]->error && !run->records[i]->is_reset)
            last = run->records[i];
    return last;
}

const StepRecord *run_last(Run *run, const char *step)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&run->mutex);
    int                         count = run_attempts_recorded(run, step);

    return count ? run->records[record_position(run, step, 0) + count - 1] : NULL;
}

/* Under the mutex: how many attempts are recorded, also those that do not count any more. */
int run_attempts_recorded(const Run *run, const char *step)
{
    int first = record_position(run, step, 0);
    int at    = first;

    while (at < run->record_count && strcmp(run->records[at]->name, step) == 0)
        at++;
    return at - first;
}

int run_attempts(Run *run, const char *step)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run_attempts_recorded(run, step);
}

int64_t run_retried_us(const Run *run)
{
    return run->loaded->retried_us;
}

int run_responses(Run *run, const char *name, const char *const **ret_payloads)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&run->mutex);
    const ResponseList         *found = responses_find(run, name);

    *ret_payloads = found ? found->payloads : NULL;
    return found ? found->count : 0;
}

int run_response_count(Run *run)
{
    return run->response_total;
}

const char *run_response_name(Run *run, int index)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return index < run->response_count ? run->responses[index].name : NULL;
}

Value run_open(const Run *run)
{
    return run->loaded->open ? value_trim(run->loaded->open, strlen(run->loaded->open)) : (Value){"[]", 2};
}

const char *run_state(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run->state;
}

int64_t run_version(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run->version;
}

const char *run_phase(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run->phase;
}

int64_t run_now_us(const Run *run)
{
    return run->loaded->now_us + mono_us_between(run->began, clock_mono());
}

int run_records(Run *run, const StepRecord *const **ret_list)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    *ret_list = run->succeeded;
    return run->succeeded_count;
}

int run_records_left(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run->record_count < RUN_RECORDS_MAX ? RUN_RECORDS_MAX - run->record_count : 0;
}

int run_history(Run *run, StepRecord *const **ret_list)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    *ret_list = run->records;
    return run->record_count;
}

bool run_is_canceled(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run->is_canceled || responses_find(run, "$cancel");
}

/* The first request counts, so that every replay gives the same reason. Of one that the last write has reported nothing is known yet. */
const char *run_cancel_text(Run *run)
{
    const char *const *payloads;

    if (run_responses(run, "$cancel", &payloads) == 0)
        return run_is_late(run) ? RUN_LATE_TEXT : RUN_CANCELED_TEXT;

    Value request = value_member((Value){payloads[0], strlen(payloads[0])}, "$cancel", strlen("$cancel"));
    Value passed  = value_member(request, "deadline", strlen("deadline"));

    return value_kind(passed) == VALUE_MISSING ? RUN_CANCELED_TEXT : RUN_LATE_TEXT;
}

bool run_is_over(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run->is_over;
}

/* An operator who had it tried again after its deadline means it. */
static bool deadline_is_obeyed(const Run *run)
{
    return run->loaded->deadline_us && run->loaded->retried_us < run->loaded->deadline_us;
}

/* A deadline that is not obeyed must not end a wait either: it would be due again at once, forever. */
bool run_deadline_counts(const Run *run)
{
    return deadline_is_obeyed(run) && strcmp(run->phase, "forward") == 0;
}

bool run_is_late(const Run *run)
{
    return deadline_is_obeyed(run) && run_now_us(run) >= run->loaded->deadline_us;
}

const char *run_deadline_action(const Run *run)
{
    return run->loaded->deadline_action;
}

int64_t run_ms_left(const Run *run)
{
    if (!run_deadline_counts(run))
        return -1;
    int64_t us = run->loaded->deadline_us - run_now_us(run);

    return us > 0 ? us / 1000 + 1 : 0;
}

/* States and records of an activation are kept until it ends, because branches may be reading them. One that has added too many is
 * ended, and the next one continues with what is current; so is one that has added some when all of the pod together have added too many. */
static bool run_is_full(Run *run)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&run->mutex);
    size_t                      grown = arena_used(run->arena) - run->bytes_at_start;
    size_t all = atomic_fetch_add(&grown_bytes, grown - run->bytes_counted) + grown - run->bytes_counted;

    run->bytes_counted = grown;
    return grown > ACTIVATION_BYTES_MAX || (grown > GROWN_BYTES_LEAST && all > GROWN_BYTES_MAX);
}

void run_bytes_give(const Run *run)
{
    atomic_fetch_sub(&grown_bytes, run->bytes_counted);
}

void run_suspect(Run *run, const char *record)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    if (!run->suspected)
        run->suspected = memory_text(record);
}

const char *run_suspected(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run->suspected;
}

bool run_is_unwritten(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run->is_unwritten;
}

bool run_must_stop(Run *run)
{
    return job_is_stopped(run->job) || run_is_over(run);
}

bool run_must_end(Run *run)
{
    return run_must_stop(run) || run_is_full(run);
}
