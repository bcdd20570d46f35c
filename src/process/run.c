/*
 * run.c - see run.h.
 */
#include "process/run.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"
#include "base/sync.h"
#include "base/writer.h"
#include "bus/send.h"

#define WRITE_MS       10000
#define BUSY_MS        5 /* until a locked process is tried again, and twice as long each time, up to BUSY_MS_MAX */
#define BUSY_MS_MAX    200
#define LAST_BYTES_MAX ((size_t)64 << 10) /* of a result that is written with the end: both must fit into one call */
#define WAITS_MAX      10000
#define KEY_NAME_SIZE  512
/* Results of steps together; what is loaded is copied into the arena twice. */
#define RECORDS_BYTES_MAX ((size_t)16 << 20)
#define RUN_BYTES_MAX     ((size_t)256 << 20)
/* What an activation may add to the memory of what it has loaded before it is ended and begun again. */
#define ACTIVATION_BYTES_MAX ((size_t)16 << 20)

/* The responses of one name, in the order of their arrival. */
typedef struct {
    const char  *name;
    const char **payloads;
    int          count;
} ResponseList;

typedef struct {
    const char *name;
    int64_t     count;
} Wait;

struct Run {
    ProcessWriter       *writer;
    Job                 *job;
    const LoadedProcess *loaded;
    ProcessMetrics      *metrics;
    Mono                 began;
    Mutex                mutex; /* guards the rest and the arena */
    Arena               *arena;
    const char          *state, *phase;
    int64_t              version;
    StepRecord         **records; /* sorted by name and attempt */
    int                  record_count, record_space;
    const StepRecord   **succeeded; /* in the order in which they ended */
    int                  succeeded_count;
    ResponseList        *responses; /* sorted by name */
    int                  response_count, response_total;
    Wait                *waits;
    int                  wait_count, wait_space;
    WaitKind             wait_kind;
    const char          *wait_step;
    int64_t              due_us;
    int64_t              condition_version; /* the oldest state that a condition was evaluated against; 0: none */
    size_t               record_bytes;
    size_t               bytes_at_start; /* of the arena */
    bool                 has_waits, is_over, is_canceled, is_suspect;
};

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

static void *list_grow(Arena *arena, void *list, int count, int *space, size_t size)
{
    if (count < *space)
        return list;
    *space     = *space ? *space * 2 : 16;
    void *next = arena_alloc(arena, (size_t)*space * size);

    if (count > 0)
        memcpy(next, list, (size_t)count * size);
    return next;
}

static void record_add(Run *run, StepRecord *record)
{
    int at = record_position(run, record->name, record->attempt);

    if (at < run->record_count && record_compare(record->name, record->attempt, run->records[at]) == 0)
        return;
    int space    = run->record_space;
    run->records = list_grow(run->arena, run->records, run->record_count, &run->record_space, sizeof *run->records);
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

static void responses_add(Run *run, const ProcessResponse *list, int count)
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

/* ---- life ---- */

static ErrorCode run_fill(Run *run, Error *reterr)
{
    StepRecord      *steps;
    ProcessResponse *responses;
    int              count, response_count;

    TRY(records_read(run->loaded->steps, run->arena, &steps, &count, reterr));
    TRY(responses_read(run->loaded->responses, run->arena, &responses, &response_count, reterr));
    for (int i = 0; i < count; i++) {
        run->record_bytes += steps[i].result ? strlen(steps[i].result) : 0;
        record_add(run, &steps[i]);
    }
    responses_add(run, responses, response_count);
    run->response_total = (int)run->loaded->response_total;
    return OK;
}

ErrorCode run_new(ProcessWriter *writer, Job *job, const LoadedProcess *loaded, Run **ret_run, Error *reterr)
{
    scoped(run_free) Run *run = memory_new(1, sizeof *run);

    run->writer  = writer;
    run->metrics = process_metrics_of(job->domain);
    run->job     = job;
    run->loaded  = loaded;
    run->arena   = arena_new(RUN_BYTES_MAX);
    run->began   = clock_mono();
    run->state   = loaded->state;
    run->version = loaded->version;
    run->phase   = loaded->phase;
    mutex_init(&run->mutex);
    TRY(run_fill(run, reterr));
    run->bytes_at_start = arena_used(run->arena);
    *ret_run            = take(run);
    return OK;
}

void run_free(Run *run)
{
    mutex_done(&run->mutex);
    arena_free(run->arena);
    free(run);
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

ProcessMetrics *run_metrics(const Run *run)
{
    return run->metrics;
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

        if (!record->error || record->ended_us <= run->loaded->retried_us)
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
        if (run->records[i]->error && run->records[i]->ended_us > run->loaded->retried_us)
            last = run->records[i];
    return last;
}

/* Under the mutex: how many attempts are recorded, also those that do not count any more. */
static int attempts_recorded(const Run *run, const char *step)
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

    return attempts_recorded(run, step);
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
static bool deadline_counts(const Run *run)
{
    return deadline_is_obeyed(run) && strcmp(run->phase, "forward") == 0;
}

bool run_is_late(const Run *run)
{
    return deadline_is_obeyed(run) && run_now_us(run) >= run->loaded->deadline_us;
}

int64_t run_ms_left(const Run *run)
{
    if (!deadline_counts(run))
        return -1;
    int64_t us = run->loaded->deadline_us - run_now_us(run);

    return us > 0 ? us / 1000 + 1 : 0;
}

/* States and records of an activation are kept until it ends, because branches may be reading them. One that has added too many is
 * ended, and the next one continues with what is current. */
static bool run_is_full(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return arena_used(run->arena) > run->bytes_at_start + ACTIVATION_BYTES_MAX;
}

void run_suspect(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    run->is_suspect = true;
}

bool run_is_suspect(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run->is_suspect;
}

bool run_must_stop(Run *run)
{
    return job_is_stopped(run->job) || run_is_over(run);
}

bool run_must_end(Run *run)
{
    return run_must_stop(run) || run_is_full(run);
}

/* ---- what is written ---- */

static ProcessWrite write_begin(const Run *run)
{
    return (ProcessWrite){.id = run->job->command->id, .token = run->job->command->token};
}

/* Under the mutex. */
static void state_take(Run *run, const ProcessWrite *write)
{
    if (!write->state || write->state_version < run->version)
        return;
    run->state   = arena_text(run->arena, write->state);
    run->version = write->state_version;
}

static ErrorCode write_judge(Run *run, const ProcessWrite *write, RunVerdict *ret_verdict, Error *reterr)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    state_take(run, write);
    run->is_canceled |= write->is_canceled;
    switch (write->verdict) {
    case WRITE_LOST:
        run->is_over = true;
        *ret_verdict = RUN_OVER;
        return OK;
    case WRITE_STALE:
        *ret_verdict = RUN_STALE;
        return OK;
    case WRITE_TOO_LARGE:
        return fail(reterr, ERR_LIMIT, "the state of the process would have more than 1048576 bytes");
    case WRITE_BUSY:
        return fail(reterr, ERR_BUSY, "another transaction has the process locked");
    case WRITE_WRITTEN:
    case WRITE_KNOWN:
    case WRITE_MET:
    case WRITE_VERDICT_COUNT:
        break;
    }
    *ret_verdict = RUN_OK;
    return OK;
}

void run_busy_wait(int64_t *ms)
{
    *ms = *ms * 2 < BUSY_MS ? BUSY_MS : *ms * 2 < BUSY_MS_MAX ? *ms * 2 : BUSY_MS_MAX;
    clock_sleep_ms(*ms);
}

/* A write that failed may have been committed: nothing more is known, so nothing more is done in this activation. While another transaction
 * has the process locked the activation keeps its lease and tries again: giving up would make a step that has ended run again. */
static ErrorCode write_do(Run *run, ProcessWrite *write, RunVerdict *ret_verdict, Error *reterr)
{
    ErrorCode code;
    int64_t   wait_ms = 0;
    Mono      began   = clock_mono();

    while ((code = process_write(run->writer, deadline_in_ms(WRITE_MS), write, reterr)) == OK &&
           write->verdict == WRITE_BUSY && !run_must_stop(run))
        run_busy_wait(&wait_ms);
    metric_observe_us(&run->metrics->write_seconds, mono_us_between(began, clock_mono()));
    metric_add(&run->metrics->stale, code == OK && write->verdict == WRITE_STALE);
    if (code == OK)
        code = write_judge(run, write, ret_verdict, reterr);
    free(write->state);
    write->state = NULL;
    return code;
}

static void record_fill(Run *run, const RunRecord *record, ProcessWrite *write)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    write->step       = record->step;
    write->attempt    = record->attempt ? record->attempt : attempts_recorded(run, record->step) + 1;
    write->input_hash = record->input_hash;
    write->result     = record->result;
    write->error      = record->error;
    write->started_us = record->started_us;
    write->patch      = record->patch;
    write->version    = record->version;
}

/* As PostgreSQL prints it, which writes numbers out. */
static size_t json_bytes(const char *json)
{
    return strlen(json) + send_exponents_sum(json);
}

/* The engine's own records, when a step began and why it is compensated, are no steps. */
static void record_count(Run *run, const RunRecord *record)
{
    if (strchr(record->step, ':') || strcmp(record->step, "~") == 0)
        return;
    metric_add(record->error ? &run->metrics->steps_failed : &run->metrics->steps_done, 1);
    metric_add(&run->metrics->compensations, record->step[0] == '~' && !record->error);
}

void run_record_done(Run *run, const RunRecord *record)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);
    StepRecord                 *kept = arena_alloc(run->arena, sizeof *kept);

    *kept = (StepRecord){.name       = arena_text(run->arena, record->step),
                         .attempt    = attempts_recorded(run, record->step) + 1,
                         .result     = arena_text(run->arena, record->result),
                         .error      = arena_text(run->arena, record->error),
                         .input_hash = arena_text(run->arena, record->input_hash),
                         .ended_us   = run_now_us(run)};
    record_count(run, record);
    run->record_bytes += kept->result ? json_bytes(kept->result) : 0;
    record_add(run, kept);
}

/* What was done must be recorded, so that it is compensated, and what is compensated as well: these have no limit of their number. */
static bool is_unlimited(const char *step)
{
    return step[0] == '~' || strchr(step, ':');
}

/* Under the mutex. A record without a result always fits. */
static bool result_fits(const Run *run, const RunRecord *record)
{
    size_t bytes = record->result && strcmp(record->result, "null") != 0 ? json_bytes(record->result) : 0;

    return bytes == 0 || run->record_bytes + bytes <= RECORDS_BYTES_MAX;
}

/* The result of a compensation is read by nothing, so one that does not fit is left out. */
static ErrorCode records_check(Run *run, RunRecord *record, Error *reterr)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    if (record->step[0] == '~' && !result_fits(run, record))
        record->result = "null";
    if (record->patch && json_bytes(record->patch) > SEND_EXPANDED_MAX)
        return fail(reterr, ERR_LIMIT, "the patch of the state has more than %zu bytes", SEND_EXPANDED_MAX);
    if (!result_fits(run, record))
        return fail(reterr, ERR_LIMIT, "the results of the steps would have more than %zu bytes together",
                    RECORDS_BYTES_MAX);
    if (run->record_count >= RUN_RECORDS_MAX && !is_unlimited(record->step))
        return fail(reterr, ERR_LIMIT, RUN_RECORDS_REACHED, RUN_RECORDS_MAX);
    return OK;
}

const RunRecord *run_record_with_end(Run *run, const RunRecord *record)
{
    RunRecord  checked = *record;
    RunRecord *last;

    if ((record->result && strlen(record->result) > LAST_BYTES_MAX) || records_check(run, &checked, NULL) != OK)
        return NULL;
    mutex_lock(&run->mutex);
    last          = arena_alloc(run->arena, sizeof *last);
    *last         = *record;
    last->step    = arena_text(run->arena, record->step);
    last->result  = arena_text(run->arena, record->result);
    last->attempt = attempts_recorded(run, record->step) + 1;
    mutex_unlock(&run->mutex);
    run_record_done(run, last);
    return last;
}

ErrorCode run_record(Run *run, const RunRecord *given, RunVerdict *ret_verdict, Error *reterr)
{
    ProcessWrite write  = write_begin(run);
    RunRecord    record = *given;

    TRY(records_check(run, &record, reterr));
    record_fill(run, &record, &write);
    if (FAULT("process.record.before"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.record.before");
    TRY(write_do(run, &write, ret_verdict, reterr));
    if (FAULT("process.record.after"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.record.after");
    if (*ret_verdict == RUN_OK)
        run_record_done(run, &record);
    return OK;
}

ErrorCode run_record_in(Run *run, Tx *tx, const RunRecord *given, RunVerdict *ret_verdict, Error *reterr)
{
    ProcessWrite write  = write_begin(run);
    RunRecord    record = *given;
    ErrorCode    code;

    TRY(records_check(run, &record, reterr));
    record_fill(run, &record, &write);
    code = process_write_in(tx, &write, reterr);
    if (code == OK)
        code = write_judge(run, &write, ret_verdict, reterr);
    if (code == OK && write.verdict == WRITE_KNOWN)
        *ret_verdict = RUN_KNOWN;
    free(write.state);
    return code;
}

ErrorCode run_fence_in(Run *run, Tx *tx, RunVerdict *ret_verdict, Error *reterr)
{
    ProcessWrite write = write_begin(run);
    ErrorCode    code  = process_write_in(tx, &write, reterr);

    if (code == OK)
        code = write_judge(run, &write, ret_verdict, reterr);
    free(write.state);
    return code;
}

void run_wake(Run *run, const char *domain)
{
    process_writer_wake(run->writer, domain);
}

ErrorCode run_phase_set(Run *run, const char *phase, const RunRecord *record, RunVerdict *ret_verdict, Error *reterr)
{
    ProcessWrite write = write_begin(run);

    write.phase = phase;
    if (record)
        record_fill(run, record, &write);
    TRY(write_do(run, &write, ret_verdict, reterr));
    if (*ret_verdict != RUN_OK)
        return OK;
    if (record)
        run_record_done(run, record);
    mutex_lock(&run->mutex);
    run->phase = phase;
    mutex_unlock(&run->mutex);
    return OK;
}

/* ---- how it ends ---- */

void run_wait(Run *run, const char *step, WaitKind kind, const char *name, int64_t count, int64_t due_us)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    if (!run->has_waits || kind < run->wait_kind) {
        run->wait_kind = kind;
        run->wait_step = arena_text(run->arena, step);
    }
    if (due_us && (!run->due_us || due_us < run->due_us))
        run->due_us = due_us;
    run->has_waits = true;
    if (!name || run->wait_count == WAITS_MAX)
        return;
    for (int i = 0; i < run->wait_count; i++)
        if (strcmp(run->waits[i].name, name) == 0) {
            if (count < run->waits[i].count)
                run->waits[i].count = count;
            return;
        }
    run->waits = list_grow(run->arena, run->waits, run->wait_count, &run->wait_space, sizeof *run->waits);
    run->waits[run->wait_count++] = (Wait){arena_text(run->arena, name), count};
}

void run_wait_state(Run *run, int64_t version)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    if (!run->condition_version || version < run->condition_version)
        run->condition_version = version;
}

/* A branch has patched the state after another one's condition was evaluated. Patches from outside come with responses, which waits count. */
static bool condition_is_outdated(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run->condition_version && run->version > run->condition_version;
}

bool run_has_waits(Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return run->has_waits;
}

/* {"name": count}; NULL: none. */
static const char *waits_print(Run *run)
{
    Text   text;
    Writer writer;

    if (run->wait_count == 0)
        return NULL;
    text_init(&text, run->arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    for (int i = 0; i < run->wait_count; i++)
        writer_i64(&writer, run->waits[i].name, run->waits[i].count);
    writer_end(&writer);
    return text_string(&text);
}

static int64_t due_find(const Run *run)
{
    int64_t due = run->due_us ? run->due_us : run_now_us(run) + PROCESS_FOREVER_US;

    return deadline_counts(run) && run->loaded->deadline_us < due ? run->loaded->deadline_us : due;
}

static void suspension_count(Run *run)
{
    Metric *const waits[] = {[WAIT_REPLY] = &run->metrics->waits_reply,
                             [WAIT_ASYNC] = &run->metrics->waits_async,
                             [WAIT_RETRY] = &run->metrics->waits_retry};

    metric_add(&run->metrics->suspended, 1);
    metric_add(waits[run->wait_kind], 1);
}

ErrorCode run_suspend(Run *run, bool *ret_met, Error *reterr)
{
    static const char *const kinds[] = {
        [WAIT_REPLY] = "WAITING_FOR_REPLY", [WAIT_ASYNC] = "WAITING_FOR_ASYNC", [WAIT_RETRY] = "WAITING_FOR_RETRY"};
    ProcessWrite write = write_begin(run);
    RunVerdict   verdict;

    assert(run_has_waits(run));
    *ret_met = condition_is_outdated(run);
    if (*ret_met)
        return OK;
    mutex_lock(&run->mutex);
    write.wait      = kinds[run->wait_kind];
    write.wait_step = run->wait_step;
    write.waits_for = waits_print(run);
    write.due_us    = due_find(run);
    mutex_unlock(&run->mutex);
    if (FAULT("process.suspend.before"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.suspend.before");
    TRY(write_do(run, &write, &verdict, reterr));
    if (FAULT("process.suspend.after"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.suspend.after");
    *ret_met = write.verdict == WRITE_MET;
    mutex_lock(&run->mutex);
    run->is_over = !*ret_met;
    mutex_unlock(&run->mutex);
    if (!*ret_met && verdict == RUN_OK)
        suspension_count(run);
    return OK;
}

ErrorCode run_end(Run *run, Outcome outcome, const char *result, const char *error, const RunRecord *record,
                  Error *reterr)
{
    ProcessWrite write = write_begin(run);
    RunVerdict   verdict;

    if (record)
        record_fill(run, record, &write);
    write.end        = outcome_names[outcome];
    write.end_result = result;
    write.end_error  = error;
    if (FAULT("process.end.before"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.end.before");
    TRY(write_do(run, &write, &verdict, reterr));
    if (FAULT("process.end.after"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.end.after");
    mutex_lock(&run->mutex);
    run->is_over = write.verdict != WRITE_MET;
    mutex_unlock(&run->mutex);
    metric_add(&run->metrics->ended, verdict == RUN_OK && write.verdict != WRITE_MET);
    return OK;
}
