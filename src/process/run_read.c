/*
 * run_read.c - see run.h: what an activation knows of its process: records, responses, keys, state, time.
 */
#include "process/run_internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* What an activation may add to the memory of what it has loaded before it is ended and begun again. */
#define ACTIVATION_BYTES_MAX ((size_t)16 << 20)
/* Of all activations of this pod, which go on while they have not added GROWN_BYTES_LEAST each. */
#define GROWN_BYTES_MAX   ((size_t)64 << 20)
#define GROWN_BYTES_LEAST ((size_t)1 << 20)

/* What the activations of this pod have added to what they began with. */
static atomic_size_t grown_bytes;

/* ---- records, sorted by identity and attempt ---- */

static int attempt_compare(const RecordId *id, int64_t attempt, const StepRecord *record)
{
    int order = record_compare(id, &record->id);

    return order ? order : (attempt > record->attempt) - (attempt < record->attempt);
}

/* The index of the first record that is not below this one. */
static int record_position(const Run *run, const RecordId *id, int64_t attempt)
{
    int low = 0, high = run->record_count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (attempt_compare(id, attempt, run->records[middle]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The record at this index, if it is of this identity; else NULL. */
static const StepRecord *record_at(const Run *run, int at, const RecordId *id)
{
    return at < run->record_count && record_compare(id, &run->records[at]->id) == 0 ? run->records[at] : NULL;
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
    int at = record_position(run, &record->id, record->attempt);

    if (at < run->record_count && attempt_compare(&record->id, record->attempt, run->records[at]) == 0)
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

/* ---- responses, by what they are of ---- */

static int of_compare(const void *key, const void *item)
{
    return response_compare(key, &((const ResponseList *)item)->of);
}

static ResponseList *responses_find(const Run *run, const ResponseOf *of)
{
    if (run->response_count == 0)
        return NULL;
    return bsearch(of, run->responses, (size_t)run->response_count, sizeof *run->responses, of_compare);
}

/* Then in the order of their arrival, which is that of the array they point into. */
static int arrival_compare(const void *left, const void *right)
{
    const ProcessResponse *a = *(const ProcessResponse *const *)left, *b = *(const ProcessResponse *const *)right;
    int                    order = response_compare(&a->of, &b->of);

    return order ? order : (a > b) - (a < b);
}

void run_responses_add(Run *run, const ProcessResponse *list, int count)
{
    const ProcessResponse **sorted   = arena_array(run->arena, const ProcessResponse *, count + 1);
    const ProcessResponse **listed   = arena_array(run->arena, const ProcessResponse *, count + 1);
    const char            **payloads = arena_array(run->arena, const char *, count + 1);

    for (int i = 0; i < count; i++)
        sorted[i] = &list[i];
    qsort(sorted, (size_t)count, sizeof *sorted, arrival_compare);
    run->responses = arena_array(run->arena, ResponseList, count + 1);
    for (int i = 0, taken = 0; i < count; i++) {
        if (i == 0 || response_compare(&sorted[i - 1]->of, &sorted[i]->of) != 0)
            run->responses[run->response_count++] =
                (ResponseList){.of = sorted[i]->of, .payloads = &payloads[taken], .list = &listed[taken]};
        ResponseList *own = &run->responses[run->response_count - 1];

        own->aside_count += sorted[i]->is_aside;
        if (sorted[i]->is_aside)
            continue;
        payloads[taken] = sorted[i]->payload ? sorted[i]->payload : "null";
        listed[taken++] = sorted[i];
        own->count++;
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

int64_t run_number(const Run *run)
{
    return run->job->command->id;
}

KeyOwner run_key_owner(const Run *run)
{
    return (KeyOwner){run->job->domain, run->job->command->command_id, run->loaded->secret};
}

/* The last of its records that was set aside; 0: none was. A compensation is never set aside: which record it undoes is its own identity. */
void run_step_key(Run *run, RecordId step, char *ret_uuid)
{
    KeyOwner owner = run_key_owner(run);
    RecordId aside = record_as(step, RECORD_STEP);

    mutex_lock(&run->mutex);
    for (aside.aside = 1; !step.undo; aside.aside++) {
        int at = record_position(run, &aside, 0); /* of this number, or of a greater one */

        if (at == run->record_count)
            break;
        aside.aside = run->records[at]->id.aside;
        if (!record_at(run, at, &aside))
            break;
        step.aside = aside.aside;
    }
    mutex_unlock(&run->mutex);
    step_key(&owner, &step, ret_uuid);
}

/* ---- what is known ---- */

/* Under the mutex. */
static const StepRecord *success_find(const Run *run, const RecordId *id)
{
    const StepRecord *record;

    for (int i = record_position(run, id, 0); (record = record_at(run, i, id)); i++)
        if (!record->error)
            return record;
    return NULL;
}

const StepRecord *run_success(Run *run, RecordId id)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return success_find(run, &id);
}

const char *run_result(Run *run, RecordId id)
{
    const StepRecord *record = run_success(run, id);

    if (!record)
        return NULL;
    return record->result ? record->result : "null";
}

const char *run_result_before(Run *run, RecordId id, int number)
{
    const StepRecord *found = NULL;

    if (number == 0)
        return run_result(run, id);
    id.aside = number;
    mutex_lock(&run->mutex);
    for (int at = record_position(run, &id, 0); !found && at < run->record_count; at++) {
        id.aside = run->records[at]->id.aside;
        if (!record_at(run, at, &id))
            break;
        found = run->records[at]->error ? NULL : run->records[at];
    }
    mutex_unlock(&run->mutex);
    id.aside = 0;
    if (!found)
        return run_result(run, id);
    return found->result ? found->result : "null";
}

const StepRecord *run_attempt(Run *run, RecordId id, int attempt)
{
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&run->mutex);
    const StepRecord           *record = record_at(run, record_position(run, &id, attempt), &id);

    return record && record->attempt == attempt ? record : NULL;
}

const StepRecord *run_failure(Run *run, RecordId id, int *ret_failures)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);
    const StepRecord           *last = NULL, *record;

    *ret_failures = 0;
    for (int i = record_position(run, &id, 0); (record = record_at(run, i, &id)); i++)
        if (record->error && !record->is_reset) {
            last = record;
            ++*ret_failures;
        }
    return last;
}

const StepRecord *run_last(Run *run, RecordId id)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&run->mutex);
    int                         count = run_attempts_recorded(run, &id);

    return count ? run->records[record_position(run, &id, 0) + count - 1] : NULL;
}

/* Under the mutex: how many attempts are recorded, also those that do not count any more. */
int run_attempts_recorded(const Run *run, const RecordId *id)
{
    int first = record_position(run, id, 0);
    int at    = first;

    while (record_at(run, at, id))
        at++;
    return at - first;
}

int run_attempts(Run *run, RecordId id)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run_attempts_recorded(run, &id);
}

int run_life(const Run *run)
{
    return run->loaded->life;
}

const char *run_input(const Run *run)
{
    return run->loaded->input ? run->loaded->input : run->job->command->payload;
}

int64_t run_retried_us(const Run *run)
{
    return run->loaded->retried_us;
}

int run_responses(Run *run, ResponseOf of, const char *const **ret_payloads)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&run->mutex);
    const ResponseList         *found = responses_find(run, &of);

    *ret_payloads = found ? found->payloads : NULL;
    return found ? found->count : 0;
}

int run_arrivals(Run *run, ResponseOf of, const ProcessResponse *const **ret_list)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&run->mutex);
    const ResponseList         *found = responses_find(run, &of);

    *ret_list = found ? found->list : NULL;
    return found ? found->count : 0;
}

Mutex *run_responses_mutex(Run *run)
{
    return &run->responses_mutex;
}

int run_replies_aside(Run *run, RecordId step)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&run->mutex);
    ResponseOf                  of    = response_reply(step);
    const ResponseList         *found = responses_find(run, &of);

    return found ? found->aside_count : 0;
}

int run_response_count(Run *run)
{
    return run->response_total;
}

const ResponseOf *run_response_of(Run *run, int index)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return index < run->response_count ? &run->responses[index].of : NULL;
}

int run_open(const Run *run, const RecordId **ret_list)
{
    *ret_list = run->open;
    return run->open_count;
}

const char *run_reason(const Run *run)
{
    return run->loaded->reason;
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

static const ResponseOf cancellation = {.kind = RESPONSE_CANCEL, .of = {.step = ""}};

bool run_is_canceled(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run->is_canceled || responses_find(run, &cancellation);
}

/* The first request counts, so that every replay gives the same reason. Of one that the last write has reported nothing is known yet. */
const char *run_cancel_text(Run *run)
{
    const char *const *payloads;

    if (run_responses(run, cancellation, &payloads) == 0)
        return run_is_late(run) ? RUN_LATE_TEXT : RUN_CANCELED_TEXT;

    Value passed = value_member((Value){payloads[0], strlen(payloads[0])}, "deadline", strlen("deadline"));

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

void run_suspect(Run *run, RecordId record)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    if (!run->suspected)
        run->suspected = memory_text(record_text(run->arena, &record));
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
