/*
 * handler.c - see handler.h.
 */
#include "process/handler.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/problem.h"
#include "bus/claim.h"
#include "bus/lease.h"
#include "pg/migrate.h"
#include "process/judge.h"
#include "process/postpone.h"
#include "sql.h"

#define CALL_MS          10000
#define SUSPECT_DELAY_MS 1000
#define LOAD_BYTES_MAX   ((size_t)128 << 20)
/* Of what one claim reads ahead. A process that is larger is read by itself. */
#define PREPARE_BYTES_MAX ((int64_t)16 << 20)

typedef struct {
    Handler        base;
    Pool          *pool;
    ProcessWriter *writer;
    ProcessBody   *body;
    void          *context;
    ProcessStop   *stop; /* NULL: none */
    Postpone       postpone;
} ProcessHandler;

/* ---- load ---- */

static int id_compare(const void *key, const void *item)
{
    int64_t id = *(const int64_t *)key, other = ((const LoadedProcess *)item)->id;

    return (id > other) - (id < other);
}

/* In the place of a process that was claimed with others that are large: it is released, and claimed again when they need no memory any more. */
static LoadedProcess left_out;

static LoadedProcess *claimed_get(const ClaimedCommand *command)
{
    ClaimedProcess *claimed = command->row;

    return claimed && claimed->loaded.state ? &claimed->loaded : NULL;
}

/* Those that the claim has not read. If the database does not answer, each is loaded when it is run. Returns how many were read. */
static int others_prepare(ProcessHandler *handler, const ClaimedCommand *list, int count, Arena *arena, void **ret_list)
{
    int64_t       *ids = arena_array(arena, int64_t, count), *tokens = arena_array(arena, int64_t, count);
    LoadedProcess *loaded;
    int            loaded_count = 0, other_count = 0;
    bool           is_cut;
    Error          error = {0};

    for (int i = 0; i < count; i++)
        if (!ret_list[i]) {
            ids[other_count]      = list[i].id;
            tokens[other_count++] = list[i].token;
        }
    if (other_count == 0)
        return 0;
    if (process_load(handler->pool, deadline_in_ms(CALL_MS), arena, ids, tokens, other_count, PREPARE_BYTES_MAX,
                     &loaded, &loaded_count, &error) != OK)
        return other_count;
    is_cut = loaded_count > 0 && loaded[loaded_count - 1].is_last;
    for (int i = 0; i < count; i++) {
        if (!ret_list[i])
            ret_list[i] = bsearch(&list[i].id, loaded, (size_t)loaded_count, sizeof *loaded, id_compare);
        if (!ret_list[i] && is_cut)
            ret_list[i] = &left_out;
    }
    return loaded_count;
}

static int process_prepare(Handler *base, const ClaimedCommand *list, int count, Arena *arena, void **ret_list)
{
    int read_count = 0;

    if (FAULT("process.claim.after"))
        return count;
    for (int i = 0; i < count; i++) {
        ret_list[i] = claimed_get(&list[i]);
        read_count += ret_list[i] != NULL;
    }
    return read_count + others_prepare((ProcessHandler *)base, list, count, arena, ret_list);
}

static void *process_unpack(const char *loaded, Arena *arena)
{
    return loaded_read(loaded, arena);
}

static ErrorCode loaded_get(ProcessHandler *handler, Job *job, bool fresh, Arena *arena,
                            const LoadedProcess **ret_loaded, Error *reterr)
{
    LoadedProcess *loaded;
    int            count;

    if (job->prepared && !fresh) {
        *ret_loaded = job->prepared;
        return OK;
    }
    TRY(process_load(handler->pool, deadline_in_ms(CALL_MS), arena, &job->command->id, &job->command->token, 1,
                     /* bytes_max= */ 0, &loaded, &count, reterr));
    if (count == 0)
        return fail(reterr, ERR_NOT_FOUND, "process %s is not there, or its lease has ended", job->command->command_id);
    *ret_loaded = loaded;
    return OK;
}

/* ---- one activation ---- */

static ErrorCode verdict_obey(Run *run, const BodyVerdict *verdict, bool *ret_met, Error *reterr)
{
    RunVerdict written;

    *ret_met = false;
    switch (verdict->end) {
    case BODY_WAITS:
        return run_suspend(run, ret_met, reterr);
    case BODY_ENDS:
        return run_end(run, verdict->outcome, verdict->result, verdict->error, verdict->failed, verdict->last, reterr);
    case BODY_CONTINUES:
        TRY(run_continue(run, verdict->result, /* version= */ 0, &written, reterr));
        *ret_met = !run_is_over(run);
        return OK;
    case BODY_AGAIN:
        *ret_met = true;
        return OK;
    case BODY_STOPS:
        break;
    }
    return OK;
}

/* Each pass gives back what it has taken from the arena of the job, because responses can have any number of passes follow. *ret_done: the process
 * is suspended or ended, or its lease is lost. */
static ErrorCode activation_run(ProcessHandler *handler, Job *job, bool *ret_done, const char **ret_suspicion,
                                bool *ret_is_unwritten, Error *reterr)
{
    ArenaMark mark = arena_mark(job->arena);
    bool      met  = false;

    do {
        scoped(arena_free) Arena *arena   = arena_new(LOAD_BYTES_MAX);
        scoped(run_free) Run     *run     = NULL;
        BodyVerdict               verdict = {0};
        const LoadedProcess      *loaded;

        arena_rewind(job->arena, mark);
        *ret_suspicion = NULL;
        TRY(loaded_get(handler, job, /* fresh= */ met, arena, &loaded, reterr));
        TRY(run_new(handler->writer, job, loaded, &run, reterr));
        ErrorCode code = handler->body(run, job, loaded, handler->context, &verdict, reterr);
        if (code == OK)
            code = verdict_obey(run, &verdict, &met, reterr);
        if (run_suspected(run))
            *ret_suspicion = arena_print(job->arena,
                                         "step %s: the connection to the database was lost while its function ran; "
                                         "the function may be the cause",
                                         run_suspected(run));
        *ret_is_unwritten = run_is_unwritten(run);
        TRY(code);
        *ret_done = run_is_over(run);
    } while (met);
    return OK;
}

/* Nothing is known about this process any more but that it holds a lease: give it back, so that it need not run out. */
static void activation_release(ProcessHandler *handler, Job *job, SettleItem *ret_settle)
{
    Error        error   = {0};
    LeaseVerdict verdict = LEASE_RELEASED;

    if (lease_release(handler->pool, deadline_in_ms(CALL_MS), job->arena, job->command, 1, &verdict, &error) != OK)
        log_error(LOG_WARN, "process", "cannot release an activation, its lease runs out", &error);
    job->is_locked        = verdict == LEASE_BUSY;
    ret_settle->settled   = true;
    ret_settle->postponed = true;
    ret_settle->status    = "PENDING";
}

/* Another transaction has the process locked, or the machine cannot do more now: no program or thread can be started. */
static void activation_postpone(ProcessHandler *handler, Job *job, const char *why, SettleItem *ret_settle)
{
    Error error   = {0};
    bool  settled = true;

    if (lease_postpone(handler->pool, deadline_in_ms(CALL_MS), job->arena, job->command,
                       postpone_ms(&handler->postpone, job->command->id, clock_mono()), why, &settled, &error) != OK)
        log_error(LOG_WARN, "process", "cannot postpone an activation, its lease runs out", &error);
    job->is_locked        = !settled; /* by pawl.cancel in a transaction that is open; or it is lost */
    ret_settle->settled   = true;
    ret_settle->postponed = true;
    ret_settle->status    = "PENDING";
}

static void process_run(Handler *base, Job *job, SettleItem *ret_settle)
{
    ProcessHandler *handler = (ProcessHandler *)base;
    Error           error = {0}, why = {0};
    bool            done = false, is_unwritten = false;
    const char     *suspicion = NULL;
    ErrorCode       code;

    if (job->prepared == &left_out) {
        activation_release(handler, job, ret_settle);
        return;
    }
    code = activation_run(handler, job, &done, &suspicion, &is_unwritten, &error);
    if (job->not_begun)
        return;
    if (code != OK && migrate_explains(handler->pool, &schema_embedded, &error, &why)) {
        job->not_begun = arena_text(job->arena, why.text); /* not the process's failure: another pod runs it */
        return;
    }
    if (code == OK && done) {
        ret_settle->settled = true;
        ret_settle->status  = "COMPLETED";
        return;
    }
    if (code != OK && (suspicion || is_unwritten) && !job_is_stopped(job)) {
        ret_settle->outcome  = OUTCOME_RETRY;
        ret_settle->delay_ms = is_unwritten ? SETTLE_DELAY_DEFAULT : SUSPECT_DELAY_MS;
        ret_settle->error    = suspicion ? suspicion : arena_text(job->arena, problem_stored(&error));
        log_error(LOG_WARN, "process", "activation has failed, it will be retried", &error);
        return;
    }
    if (code == OK || is_unwritten || judge(code, JUDGE_OURS) == ABOUT_WORLD) {
        if (code != OK)
            log_error(code == ERR_BUSY ? LOG_INFO : LOG_WARN, "process",
                      "activation is interrupted, it will be run again", &error);
        metric_add(&process_metrics_of(job->domain)->interrupted, 1);
        if (code == ERR_BUSY && !job_is_stopped(job))
            activation_postpone(handler, job, error.text, ret_settle);
        else
            activation_release(handler, job, ret_settle);
        return;
    }
    ret_settle->outcome = OUTCOME_FAIL;
    ret_settle->error   = arena_text(job->arena, problem_stored(&error));
}

static void process_stop(Handler *base, Job *job)
{
    const ProcessHandler *handler = (const ProcessHandler *)base;

    if (handler->stop)
        handler->stop(handler->context, job);
}

Handler *process_handler_new(Pool *pool, ProcessBody *body, void *context)
{
    ProcessHandler *handler = memory_new(1, sizeof *handler);

    handler->base    = (Handler){.run     = process_run,
                                 .stop    = process_stop,
                                 .source  = &process_claims,
                                 .prepare = process_prepare,
                                 .unpack  = process_unpack};
    handler->pool    = pool;
    handler->writer  = process_writer_new(pool);
    handler->body    = body;
    handler->context = context;
    postpone_init(&handler->postpone);
    return &handler->base;
}

void process_handler_on_stop(Handler *base, ProcessStop *stop)
{
    ((ProcessHandler *)base)->stop = stop;
}

void process_handler_free(Handler *base)
{
    ProcessHandler *handler = (ProcessHandler *)base;

    process_writer_free(handler->writer);
    postpone_done(&handler->postpone);
    free(handler);
}
