/*
 * run.c - see run.h: how an activation begins, what it writes, and how it ends.
 */
#include "process/run_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "bus/send.h"

#define WRITE_MS         10000
#define BUSY_MS          5 /* until a locked process is tried again, and twice as long each time */
#define DELAYED_MS_MAX   200
#define REFUSED_MS       30000 /* of tries of a write that the server does not run; then the activation is retried later */
#define REFUSED_PAUSE_MS 1000
#define LAST_BYTES_MAX   ((size_t)64 << 10) /* of a result that is written with the end: both must fit into one call */
#define WAITS_MAX        10000
/* Results of steps together; what is loaded is copied into the arena twice. */
#define RECORDS_BYTES_MAX ((size_t)16 << 20)
#define RUN_BYTES_MAX     ((size_t)256 << 20)

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
        run_record_add(run, &steps[i]);
    }
    run_responses_add(run, responses, response_count);
    run_sent_add(run, run->loaded->sent);
    TRY(open_read(run->loaded->open, run->arena, &run->open, &run->open_count, reterr));
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
    mutex_init(&run->responses_mutex);
    TRY(run_fill(run, reterr));
    run->bytes_at_start = arena_used(run->arena);
    *ret_run            = take(run);
    return OK;
}

void run_free(Run *run)
{
    run_bytes_give(run);
    mutex_done(&run->mutex);
    mutex_done(&run->responses_mutex);
    arena_free(run->arena);
    free(run->suspected);
    free(run);
}

ProcessMetrics *run_metrics(const Run *run)
{
    return run->metrics;
}

/* ---- what is written ---- */

static ProcessWrite write_begin(const Run *run)
{
    return (ProcessWrite){.id = run->job->command->id, .token = run->job->command->token};
}

/* Under the mutex. Only what is committed is taken: version then grows, and the greater one is the later one. */
static void state_take(Run *run, const char *state, int64_t version)
{
    if (!state || version < run->version)
        return;
    run->state   = arena_text(run->arena, state);
    run->version = version;
}

/* Of a write that is committed, or part of a transaction that is not yet: its state is not taken here. */
static ErrorCode write_judge(Run *run, const ProcessWrite *write, RunVerdict *ret_verdict, Error *reterr)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    run->is_canceled |= write->is_canceled;
    switch (write->verdict) {
    case WRITE_LOST:
    case WRITE_ENDED:
        run->is_over = true;
        *ret_verdict = RUN_OVER;
        return OK;
    case WRITE_STALE:
        *ret_verdict = RUN_STALE;
        return OK;
    case WRITE_TOO_LARGE:
        return fail(reterr, ERR_LIMIT, "the state of the process would have more than 1048576 bytes");
    case WRITE_BUSY:
        metric_add(&run->metrics->busy, 1);
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

static void delayed_sleep(int64_t *ms)
{
    *ms = *ms * 2 < BUSY_MS ? BUSY_MS : *ms * 2 < DELAYED_MS_MAX ? *ms * 2 : DELAYED_MS_MAX;
    clock_sleep_ms(*ms);
}

bool run_busy_wait(int64_t *ms)
{
    if (*ms * 2 > RUN_BUSY_MS) /* 5 and 10 and so on up to 80 */
        return false;
    delayed_sleep(ms);
    return true;
}

/* May the same write succeed later? Another transaction has the process or a table locked, or the database is not there, or refuses logins while its
 * password or its access rules are changed. */
static bool write_is_delayed(const ProcessWrite *write, ErrorCode code)
{
    if (code == OK)
        return write->verdict == WRITE_BUSY;
    return error_verdict(code) != VERDICT_FINAL || code == ERR_REFUSED;
}

/* Does the server not run the statement? A right was revoked, or a trigger of the application's raises an error. What is written may be right. */
static bool write_is_refused(ErrorCode code, const Error *error)
{
    return error->sqlstate[0] && (code == ERR_INTERNAL || code == ERR_DENIED || code == ERR_CONFLICT);
}

static bool write_goes_on(const Run *run, const ProcessWrite *write, ErrorCode code, const Error *error, Mono began)
{
    if (write_is_delayed(write, code))
        return true;
    return write_is_refused(code, error) && mono_ms_between(began, clock_mono()) < REFUSED_MS &&
           !process_writer_is_outdated(run->writer, error);
}

static ErrorCode write_refused(Run *run, Error *error)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    run->is_unwritten = true;
    error_prefix(error, "what a step has done cannot be recorded (SQLSTATE %s)", error->sqlstate);
    return error->code = ERR_INTERNAL; /* not ERR_DENIED: it is no step that is not allowed */
}

/* Does the write contain what a step has done, and nothing that needs the row of the process? Then a lock is short: see pawl.write_leases. */
static bool write_is_record(const ProcessWrite *write)
{
    return write->record.id.step && !write->patch && !write->phase && !write->end;
}

/* Another transaction has the process locked: for how long is not known, so what can be computed again is not waited for. */
static bool lock_is_left(const ProcessWrite *write, ErrorCode code, int64_t wait_ms)
{
    return code == OK && !write_is_record(write) && wait_ms * 2 > RUN_BUSY_MS;
}

/* Do other transactions take the process's row again and again? One alone that holds it has not changed the state. */
static bool row_is_contended(Run *run, const ProcessWrite *write)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    return write->verdict == WRITE_BUSY && write->state_version > run->version;
}

/* The activation keeps its lease and tries again for as long as it has it: giving up would make a step that has ended run again. A write that
 * failed may have been committed; the same write again changes nothing then. ERR_BUSY: see lock_is_left(). */
static ErrorCode write_do(Run *run, ProcessWrite *write, RunVerdict *ret_verdict, Error *reterr)
{
    Error     error = {0};
    ErrorCode code;
    int64_t   wait_ms = 0;
    Mono      began   = clock_mono();

    while (write_goes_on(run, write, code = process_write(run->writer, deadline_in_ms(WRITE_MS), write, &error), &error,
                         began) &&
           !run_must_stop(run) && !lock_is_left(write, code, wait_ms)) {
        if (code != OK && wait_ms == 0)
            log_error(LOG_WARN, "process", "what a step has done is not recorded yet, and will be tried again", &error);
        metric_add(&run->metrics->busy, code == OK);
        delayed_sleep(&wait_ms);
        if (write_is_refused(code, &error))
            clock_sleep_ms(REFUSED_PAUSE_MS);
    }
    if (code == OK && row_is_contended(run, write) && !run_must_stop(run)) {
        metric_add(&run->metrics->busy, 1);
        code = process_write_queued(run->writer, deadline_in_ms(WRITE_MS), write, &error);
    }
    if (write_is_refused(code, &error))
        code = write_refused(run, &error);
    if (code != OK && reterr)
        *reterr = error;
    metric_observe_us(&run->metrics->write_seconds, mono_us_between(began, clock_mono()));
    metric_add(&run->metrics->stale, code == OK && write->verdict == WRITE_STALE);
    if (code == OK) {
        mutex_lock(&run->mutex);
        state_take(run, write->state, write->state_version);
        mutex_unlock(&run->mutex);
        code = write_judge(run, write, ret_verdict, reterr);
    }
    free(write->state);
    write->state = NULL;
    return code;
}

/* As it is loaded by a later activation, with borrowed texts. */
static StepRecord record_kept(const RunRecord *record, int attempt)
{
    return (StepRecord){.id         = record->id,
                        .attempt    = attempt,
                        .end        = record->error && record->end == END_DONE ? END_FAILED : record->end,
                        .retry_us   = record->retry_us,
                        .response   = record->response,
                        .taken      = record->taken,
                        .call       = record->call_kind ? record->call : -1,
                        .call_kind  = record->call_kind,
                        .input_hash = record->input_hash,
                        .result     = record->result,
                        .error      = record->error};
}

static void record_fill(Run *run, const RunRecord *record, ProcessWrite *write)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    write->record =
        record_kept(record, record->attempt ? record->attempt : run_attempts_recorded(run, &record->id) + 1);
    write->started_us = record->started_us;
    write->patch      = record->patch;
    write->version    = record->version;
}

/* As PostgreSQL prints it, which writes numbers out. */
static size_t json_bytes(const char *json)
{
    return strlen(json) + send_exponents_sum(json);
}

static void record_count(Run *run, const RunRecord *record)
{
    if (record->id.kind != RECORD_STEP)
        return;
    metric_add(record->error ? &run->metrics->steps_failed : &run->metrics->steps_done, 1);
    metric_add(&run->metrics->compensations, record->id.undo && !record->error);
}

void run_record_done(Run *run, const RunRecord *record)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);
    StepRecord                 *kept = arena_alloc(run->arena, sizeof *kept);

    *kept = record_kept(record, record->attempt ? record->attempt : run_attempts_recorded(run, &record->id) + 1);
    kept->id.step    = arena_text(run->arena, record->id.step);
    kept->response   = arena_text(run->arena, record->response);
    kept->taken      = arena_text(run->arena, record->taken);
    kept->call_kind  = arena_text(run->arena, record->call_kind);
    kept->input_hash = arena_text(run->arena, record->input_hash);
    kept->result     = arena_text(run->arena, record->result);
    kept->error      = arena_text(run->arena, record->error);
    kept->ended_us   = run_now_us(run);
    state_take(run, record->state, record->state_version);
    record_count(run, record);
    run->record_bytes += kept->result ? json_bytes(kept->result) : 0;
    run_record_add(run, kept);
}

/* What was done must be recorded, so that it is compensated, and what is compensated as well: these have no limit of their number. */
static bool is_unlimited(const RecordId *id)
{
    return id->undo || id->kind != RECORD_STEP;
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

    if (record->id.undo && !result_fits(run, record))
        record->result = "null";
    if (record->patch && json_bytes(record->patch) > SEND_EXPANDED_MAX)
        return fail(reterr, ERR_LIMIT, "the patch of the state has more than %zu bytes", SEND_EXPANDED_MAX);
    if (!result_fits(run, record))
        return fail(reterr, ERR_LIMIT, "the results of the steps would have more than %zu bytes together",
                    RECORDS_BYTES_MAX);
    if (run->record_count >= RUN_RECORDS_MAX && !is_unlimited(&record->id) && strcmp(run->phase, "forward") == 0)
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
    last->id.step = arena_text(run->arena, record->id.step);
    last->result  = arena_text(run->arena, record->result);
    last->attempt = run_attempts_recorded(run, &record->id) + 1;
    mutex_unlock(&run->mutex);
    run_record_done(run, last);
    return last;
}

typedef struct {
    Run       *run;
    RunRecord *record;
} Refresh;

/* The row is locked, so what is computed now is not stale. */
static ErrorCode write_refresh(void *context, ProcessWrite *write, Error *reterr)
{
    Refresh *refresh = context;

    mutex_lock(&refresh->run->mutex);
    state_take(refresh->run, write->state, write->state_version);
    mutex_unlock(&refresh->run->mutex);
    TRY(refresh->record->refresh(refresh->record->context, refresh->record, reterr));
    TRY(records_check(refresh->run, refresh->record, reterr));
    write->patch   = refresh->record->patch;
    write->version = refresh->record->version;
    return OK;
}

ErrorCode run_record(Run *run, const RunRecord *given, RunVerdict *ret_verdict, Error *reterr)
{
    ProcessWrite write   = write_begin(run);
    RunRecord    record  = *given;
    Refresh      refresh = {run, &record};

    record.state = NULL; /* the write reports it */
    TRY(records_check(run, &record, reterr));
    record_fill(run, &record, &write);
    if (record.refresh) {
        write.refresh = write_refresh;
        write.context = &refresh;
    }
    if (FAULT("process.record.before"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.record.before");
    TRY(write_do(run, &write, ret_verdict, reterr));
    if (FAULT("process.record.after"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.record.after");
    if (*ret_verdict == RUN_OK)
        run_record_done(run, &record);
    return OK;
}

ErrorCode run_reload(Run *run, RunVerdict *ret_verdict, Error *reterr)
{
    ProcessWrite write = write_begin(run);

    write.patch   = "{}";
    write.version = -1; /* no state has it: STALE, and the present one */
    return write_do(run, &write, ret_verdict, reterr);
}

ErrorCode run_record_in(Run *run, Tx *tx, RunRecord *given, RunVerdict *ret_verdict, Error *reterr)
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
    if (code == OK && write.verdict == WRITE_ENDED) /* the transaction commits, and the run is over */
        *ret_verdict = RUN_OK;
    given->state         = arena_text(tx->arena, write.state);
    given->state_version = write.state_version;
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

ErrorCode run_phase_set(Run *run, const char *phase, const char *reason, const char *failed, RunVerdict *ret_verdict,
                        Error *reterr)
{
    ProcessWrite write = write_begin(run);

    write.phase     = phase;
    write.end_error = reason;
    write.failed    = failed;
    TRY(write_do(run, &write, ret_verdict, reterr));
    if (*ret_verdict != RUN_OK)
        return OK;
    mutex_lock(&run->mutex);
    run->phase = phase;
    mutex_unlock(&run->mutex);
    return OK;
}

/* ---- how it ends ---- */

static RecordId record_copy(Arena *arena, RecordId id)
{
    id.step = arena_text(arena, id.step);
    return id;
}

static bool wait_is_same(const Wait *a, const Wait *b)
{
    return response_compare(&a->of, &b->of) == 0 && (!a->to.step || record_is_step(&a->to, &b->to));
}

void run_wait(Run *run, RecordId step, WaitKind kind, const ResponseOf *of, int64_t count, int64_t due_us)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&run->mutex);

    if (!run->has_waits || kind < run->wait_kind) {
        run->wait_kind = kind;
        run->wait_step = record_copy(run->arena, record_as(step, RECORD_STEP));
    }
    if (due_us && (!run->due_us || due_us < run->due_us))
        run->due_us = due_us;
    run->has_waits = true;
    if (!of || run->wait_count == WAITS_MAX)
        return;
    Wait wait = {.of = *of, .count = count};

    if (of->kind == RESPONSE_SIGNAL)
        wait.to = record_as(step, RECORD_STEP);
    for (int i = 0; i < run->wait_count; i++)
        if (wait_is_same(&run->waits[i], &wait)) {
            if (count < run->waits[i].count)
                run->waits[i].count = count;
            return;
        }
    run->waits = run_list_grow(run->arena, run->waits, run->wait_count, &run->wait_space, sizeof *run->waits);
    wait.of.of = record_copy(run->arena, of->of);
    wait.to    = record_copy(run->arena, wait.to);
    run->waits[run->wait_count++] = wait;
}

void run_wait_none(Run *run, RecordId step)
{
    ResponseOf any = response_any();

    run_wait(run, step, WAIT_ASYNC, &any, 0, 0);
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

/* A deadline that has passed and still leaves the process waiting is the database's, which has decided about it or will. */
static int64_t due_find(const Run *run)
{
    int64_t now = run_now_us(run), deadline = run->loaded->deadline_us;
    int64_t due = run->due_us ? run->due_us : now + PROCESS_FOREVER_US;

    return run_deadline_counts(run) && now < deadline && deadline < due ? deadline : due;
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
    write.wait       = kinds[run->wait_kind];
    write.wait_step  = run->wait_step;
    write.waits      = run->waits;
    write.wait_count = run->wait_count;
    write.due_us     = due_find(run);
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

/* An end that a lock delays must not hold up what the last step has done: that is recorded by itself then. */
static ErrorCode end_write(Run *run, ProcessWrite *write, RunVerdict *ret_verdict, Error *reterr)
{
    ProcessWrite record = *write;
    ErrorCode    code   = write_do(run, write, ret_verdict, reterr);

    if (code != ERR_BUSY || !record.record.id.step)
        return code;
    record.end = record.end_result = record.end_error = record.failed = NULL;
    TRY(write_do(run, &record, ret_verdict, reterr));
    return *ret_verdict == RUN_OK ? ERR_BUSY : OK;
}

ErrorCode run_end(Run *run, Outcome outcome, const char *result, const char *error, const char *failed,
                  const RunRecord *record, Error *reterr)
{
    ProcessWrite write = write_begin(run);
    RunVerdict   verdict;

    if (record)
        record_fill(run, record, &write);
    write.end        = outcome_names[outcome];
    write.end_result = result;
    write.end_error  = error;
    write.failed     = failed;
    if (FAULT("process.end.before"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.end.before");
    TRY(end_write(run, &write, &verdict, reterr));
    if (FAULT("process.end.after"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.end.after");
    mutex_lock(&run->mutex);
    run->is_over = write.verdict != WRITE_MET;
    mutex_unlock(&run->mutex);
    metric_add(&run->metrics->ended, verdict == RUN_OK && write.verdict != WRITE_MET);
    return OK;
}

ErrorCode run_continue(Run *run, const char *state, int64_t version, RunVerdict *ret_verdict, Error *reterr)
{
    ProcessWrite write = write_begin(run);

    write.end        = WRITE_CONTINUE;
    write.end_result = state;
    write.version    = version;
    if (FAULT("process.continue.before"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.continue.before");
    TRY(write_do(run, &write, ret_verdict, reterr));
    if (FAULT("process.continue.after"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.continue.after");
    mutex_lock(&run->mutex);
    run->is_over = write.verdict != WRITE_MET && write.verdict != WRITE_STALE;
    mutex_unlock(&run->mutex);
    metric_add(&run->metrics->continued, write.verdict == WRITE_WRITTEN);
    return OK;
}
