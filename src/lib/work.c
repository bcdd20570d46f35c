/*
 * work.c - a worker in the caller's process, whose handler is a function in C.
 *
 * Invariants
 *   1. A worker has a pool of its own, large enough for every handler's transaction, a claim, a settle and a heartbeat
 *      at the same time, so handlers cannot prevent their leases from being extended.
 *   2. pawl_worker_stop() only posts a semaphore, so a signal handler may call it; the thread in pawl_worker_run() waits for it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/problem.h"
#include "base/reader.h"
#include "base/text.h"
#include "lib/library_internal.h"
#include "process/process.h"

#define OWN_CONNECTIONS  3
#define PLAIN_POOL_SIZE  10
#define PROCESS_LEASE_MS 60000

/* ---- what a handler may do ---- */

Given given_new(PawlWorker *worker, Job *bus_job)
{
    const ClaimedCommand *command = bus_job->command;

    return (Given){
        .job     = {.command_id   = command->command_id,
                    .domain       = bus_job->domain,
                    .type         = command->type,
                    .payload      = command->payload,
                    .attempt      = command->attempt,
                    .max_attempts = command->max_attempts},
        .bus_job = bus_job,
        .worker  = worker
    };
}

void pawl_job_result(PawlJob *job, const char *json)
{
    Given *given = (Given *)job;
    Arena *arena = given->bus_job->arena;
    size_t size  = json ? strlen(json) : 0;
    Error  why   = {0};

    given->result = given->defect = NULL;
    if (!json)
        return;
    if (size > SETTLE_RESULT_MAX || !arena_has_space(arena, size + 1))
        given->defect =
            arena_print(arena, "result has %zu bytes: at most %zu are allowed", size, (size_t)SETTLE_RESULT_MAX);
    else if (reader_check(json, size, &why) != OK)
        given->defect = arena_print(arena, "result is no JSON: %s", why.text);
    else
        given->result = arena_bytes(arena, json, size);
}

void pawl_job_error(PawlJob *job, const char *format, ...)
{
    Given  *given = (Given *)job;
    char    text[SETTLE_ERROR_MAX + sizeof "1234"]; /* and the rest of the last character */
    size_t  size;
    va_list values;

    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    size = text_cut(text, strlen(text), SETTLE_ERROR_MAX);
    text_clean(text, size); /* PostgreSQL would not keep other bytes */
    if (arena_has_space(given->bus_job->arena, size + 1))
        given->error = arena_bytes(given->bus_job->arena, text, size);
}

bool pawl_job_is_stopped(const PawlJob *job)
{
    return job_is_stopped(((const Given *)job)->bus_job);
}

const char *pawl_job_progress(PawlJob *job, int percent, const char *text)
{
    Given *given = (Given *)job;
    Error  why   = {0};

    if (job_progress(given->bus_job, &(JobProgress){.percent = percent, .text = text, .step = given->step}, &why) == OK)
        return NULL;
    return arena_text(given->bus_job->arena, why.text);
}

const char *pawl_job_last_progress(const PawlJob *job)
{
    const Given *given = (const Given *)job;
    const char  *json  = given->bus_job->command->progress;

    return given->step ? progress_of_step(json, given->step, given->bus_job->arena) : json;
}

/* ---- what it said ---- */

static void given_fail(const Given *given, const char *error, SettleItem *ret_settle)
{
    ret_settle->outcome = OUTCOME_FAIL;
    ret_settle->error   = error ? error : given->error;
}

void given_end(const Given *given, PawlOutcome said, SettleItem *ret_settle)
{
    static const Outcome outcomes[] = {OUTCOME_COMPLETE, OUTCOME_RETRY, OUTCOME_FAIL, OUTCOME_REJECT, OUTCOME_SNOOZE};
    int                  number     = (int)said - PAWL_JOB_COMPLETE;

    if (number < 0 || number >= (int)COUNT(outcomes)) {
        given_fail(given,
                   arena_print(given->bus_job->arena, "the handler returned %d, which is not a PawlOutcome", (int)said),
                   ret_settle);
        return;
    }
    ret_settle->outcome = outcomes[number];
    if (said == PAWL_JOB_COMPLETE && given->defect)
        given_fail(given, given->defect, ret_settle);
    else if (said == PAWL_JOB_COMPLETE)
        ret_settle->result = given->result;
    else if (said == PAWL_JOB_SNOOZE)
        ret_settle->error = given->error;
    else if (given->error || said != PAWL_JOB_RETRY || !job_is_stopped(given->bus_job))
        ret_settle->error = given->error ? given->error : "the handler gave no reason";
    if (given->job.retry_in_ms > 0)
        ret_settle->delay_ms = given->job.retry_in_ms;
}

/* ---- the two kinds of handler ---- */

static void plain_run(Handler *handler, Job *bus_job, SettleItem *ret_settle)
{
    PawlWorker *worker = (PawlWorker *)handler;
    Given       given  = given_new(worker, bus_job);
    Outside     outside;
    PawlOutcome said;

    library_go_out(worker->pawl, &outside);
    said = worker->options.handler(&given.job, worker->options.context);
    library_came_back(&outside);
    given_end(&given, said, ret_settle);
}

/* After a statement that failed in passing, PAWL_JOB_RETRY means what PostgreSQL means: run it again right now. */
static ErrorCode tx_body(Tx *tx, Job *bus_job, void *context, SettleItem *ret_settle, Error *reterr)
{
    Given      *given  = context;
    PawlWorker *worker = given->worker;
    PawlError   error  = {0};
    PawlTx      mine   = {.pawl = worker->pawl, .tx = tx, .why = reterr, .error = &error};
    Outside     outside;
    PawlOutcome said;

    *given = given_new(worker, bus_job);
    library_go_out(worker->pawl, &outside);
    said = worker->options.tx_handler(&given->job, &mine, worker->options.context);
    library_came_back(&outside);
    given->wakes = mine.wakes;
    if (said == PAWL_JOB_COMPLETE && conn_transaction(tx->conn) != PQTRANS_INTRANS)
        return mine.code != OK ? mine.code : fail(reterr, ERR_INTERNAL, "the handler ended its transaction by itself");
    if (said == PAWL_JOB_RETRY && error_verdict(mine.code) != VERDICT_FINAL)
        return mine.code;
    if (!given->error && mine.code != OK)
        given->error = arena_text(bus_job->arena, problem_stored(reterr));
    given_end(given, said, ret_settle);
    return OK;
}

static void tx_run_handler(Handler *handler, Job *bus_job, SettleItem *ret_settle)
{
    PawlWorker *worker = (PawlWorker *)handler;
    Given       given  = {.worker = worker};

    tx_handler_run(&worker->handler, bus_job, tx_body, &given, ret_settle);
    if (ret_settle->settled)
        waker_notify_list(worker->pawl->waker, &given.wakes);
}

/* ---- life ---- */

static ErrorCode number_check(const char *name, int number, int least, int most, Error *reterr)
{
    if (number != 0 && (number < least || number > most))
        return fail(reterr, ERR_USAGE, "%s must be from %d to %d, or 0 for the default", name, least, most);
    return OK;
}

static ErrorCode types_check(const char *const *types, Error *reterr)
{
    int count = 0;

    while (types && types[count] && count <= CLAIM_TYPES_MAX)
        TRY(send_check_type("types", types[count++], reterr) == OK ? OK : ERR_USAGE);
    if (types && (count == 0 || count > CLAIM_TYPES_MAX))
        return fail(reterr, ERR_USAGE, "types must be 1 to %d types and a NULL, or NULL for all types",
                    CLAIM_TYPES_MAX);
    return OK;
}

static ErrorCode url_check(const char *url, Error *reterr)
{
    char      text[CONNINFO_TEXT_SIZE];
    ErrorCode code = url ? conninfo_describe(url, text, reterr) : OK;

    if (code != OK)
        error_prefix(reterr, "listen_url");
    return code;
}

static ErrorCode options_check(const PawlWork *options, Error *reterr)
{
    if (!options)
        return fail(reterr, ERR_USAGE, "a worker needs options, got NULL");
    if (!options->domain)
        return fail(reterr, ERR_USAGE, "a worker needs a domain");
    if (!!options->handler + !!options->tx_handler + !!options->process != 1)
        return fail(reterr, ERR_USAGE, "a worker needs exactly one of handler, tx_handler and process");
    if (options->process && (!options->types || !options->types[0]))
        return fail(reterr, ERR_USAGE, "a worker for processes needs the types that its function runs");
    if (options->process && options->timeout_ms)
        return fail(reterr, ERR_USAGE,
                    "timeout_ms is for handlers of commands: waits and calls of a process have their own");
    TRY(types_check(options->types, reterr));
    TRY(url_check(options->listen_url, reterr));
    TRY(number_check("concurrency", options->concurrency, 1, WORKER_CONCURRENCY_MAX, reterr));
    TRY(number_check("batch", options->batch, 1, CLAIM_MAX, reterr));
    TRY(number_check("lease_ms", options->lease_ms, WORKER_LEASE_MS_MIN, WORKER_TIME_MS_MAX, reterr));
    TRY(number_check("timeout_ms", options->timeout_ms, 1, WORKER_TIME_MS_MAX, reterr));
    return number_check("stop_ms", options->stop_ms, 1, WORKER_TIME_MS_MAX, reterr);
}

static int pool_size(const PawlWork *options)
{
    int handlers = options->concurrency ? options->concurrency : WORKER_CONCURRENCY_DEFAULT;
    int most     = options->tx_handler || options->process ? POOL_SIZE_MAX : PLAIN_POOL_SIZE;
    int wanted   = handlers + OWN_CONNECTIONS;

    return wanted < most ? wanted : most;
}

/* The row has a handler of its own, so nothing is queried and nothing can be refused. */
static ErrorCode worker_make(PawlWorker *worker, Error *reterr)
{
    const PawlWork *options = &worker->options;

    if (options->tx_handler)
        tx_handler_init(&worker->handler, worker->pool, tx_run_handler);
    else if (options->handler)
        worker->handler.base.run = plain_run;
    if (options->process) {
        worker->program = (CodeProgram){worker->pool, process_function, worker};
        worker->process = process_handler_new(worker->pool, code_body, &worker->program);
    }
    worker->workers = worker_set_new(worker->pool, /* handler_pool= */ NULL);
    return worker_set_add(worker->workers,
                          &(WorkerRow){.domain      = options->domain,
                                       .types       = options->types,
                                       .concurrency = options->concurrency,
                                       .batch       = options->batch,
                                       .lease_ms    = options->process && !options->lease_ms ? PROCESS_LEASE_MS
                                                                                             : options->lease_ms,
                                       .timeout_ms  = options->timeout_ms,
                                       .drain       = options->drain,
                                       .handler     = worker->process ? worker->process : &worker->handler.base},
                          deadline_never(), reterr);
}

static ErrorCode worker_pool_new(const Pawl *pawl, const PawlWork *options, Pool **ret_pool, Error *reterr)
{
    TRY(library_check(pawl, reterr));
    TRY(options_check(options, reterr));
    return pool_new(&(PoolOptions){.conninfo         = pawl->url,
                                   .application_name = LIBRARY_NAME " worker",
                                   .size_max         = pool_size(options)},
                    ret_pool, reterr);
}

PawlStatus pawl_worker_open(Pawl *pawl, const PawlWork *options, PawlWorker **ret_worker, PawlError *error)
{
    Error       why  = {0};
    Pool       *pool = NULL;
    PawlWorker *worker;
    ErrorCode   code = worker_pool_new(pawl, options, &pool, &why);

    *ret_worker = NULL;
    if (code != OK)
        return library_answer(code, &why, error);
    worker                 = memory_new(1, sizeof *worker);
    worker->pawl           = pawl;
    worker->pool           = pool;
    worker->arena          = arena_new(ARENA_BYTES_DEFAULT);
    worker->options        = *options;
    worker->options.domain = options->process ? arena_print(worker->arena, PROCESS_DOMAIN_PREFIX "%s", options->domain)
                                              : arena_text(worker->arena, options->domain);
    worker->options.listen_url = arena_text(worker->arena, options->listen_url ? options->listen_url : pawl->url);
    sem_init(&worker->stop, /* pshared= */ 0, 0);
    code                  = worker_make(worker, &why);
    worker->options.types = NULL; /* the row has copied them */
    if (code == OK)
        *ret_worker = worker;
    else
        pawl_worker_close(worker);
    return library_answer(code, &why, error);
}

void pawl_worker_close(PawlWorker *worker)
{
    Error why;

    if (!worker || library_check(worker->pawl, &why) != OK)
        return;
    worker_set_free(worker->workers);
    if (worker->options.tx_handler)
        tx_handler_done(&worker->handler);
    if (worker->process)
        process_handler_free(worker->process);
    pool_free(worker->pool);
    arena_free(worker->arena);
    sem_destroy(&worker->stop);
    free(worker);
}

static void worker_ended(void *context)
{
    PawlWorker *worker = context;

    sem_post(&worker->stop);
}

/* The caller's thread waits for a stop or for the end. */
static ErrorCode run_once(PawlWorker *worker, Error *reterr)
{
    scoped(listen_free) Listen *listen = NULL;

    if (atomic_exchange(&worker->begun, true))
        return fail(reterr, ERR_USAGE, "a worker can be run once");
    if (sem_trywait(&worker->stop) == 0)
        return OK; /* stopped before it began */
    listen = listen_new(worker->options.listen_url, worker->pool);
    TRY(worker_set_start(worker->workers,
                         &(WorkerSetStart){.listen = listen, .on_end = worker_ended, .context = worker}, reterr));
    while (sem_wait(&worker->stop) != 0 && errno == EINTR)
        ;
    worker_set_stop(worker->workers,
                    deadline_in_ms(worker->options.stop_ms ? worker->options.stop_ms : WORKER_STOP_MS));
    (void)worker_set_wait(worker->workers, deadline_never());
    return worker_set_result(worker->workers, reterr);
}

PawlStatus pawl_worker_run(PawlWorker *worker, PawlError *error)
{
    Error                       why    = {0};
    scoped(library_leave) Pawl *inside = worker ? library_enter(worker->pawl, /* timeout_ms= */ 0, &why) : NULL;
    ErrorCode                   code   = why.code;

    if (inside) {
        library_runs_add(inside, 1);
        code = run_once(worker, &why);
        library_runs_add(inside, -1);
    }
    if (!worker)
        code = fail(&why, ERR_USAGE, "worker must be what pawl_worker_open() has returned, got NULL");
    /* The server said no before the worker had ever worked: it is the program's settings that are wrong. */
    return library_answer(code == ERR_REFUSED ? ERR_USAGE : code, &why, error);
}

void pawl_worker_stop(PawlWorker *worker)
{
    if (worker)
        sem_post(&worker->stop);
}

void pawl_worker_counts(PawlWorker *worker, PawlCounts *ret_counts)
{
    WorkerCounts counts = {0};
    Error        why;

    if (worker && library_check(worker->pawl, &why) == OK)
        worker_set_counts(worker->workers, &counts);
    *ret_counts = (PawlCounts){.claimed   = counts.claimed,
                               .completed = counts.completed,
                               .retried   = counts.retried,
                               .failed    = counts.failed,
                               .rejected  = counts.rejected,
                               .lost      = counts.lost,
                               .canceled  = counts.canceled,
                               .released  = counts.released,
                               .running   = counts.running,
                               .waiting   = counts.waiting};
}
