/*
 * workers.c - see workers.h.
 */
#include "process/workers.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/share.h"
#include "base/sync.h"
#include "bus/worker_set.h"
#include "pg/tx.h"
#include "process/interpret.h"
#include "process/process.h"
#include "sql.h"

#define RESTART_MS 10000

/* One worker: of a domain with a list of types; a domain with many types has several. */
typedef struct DomainWorker DomainWorker;
struct DomainWorker {
    DomainWorker *next;
    char         *domain, *types; /* "order,refund" */
    int           number;         /* of the domain's workers */
    WorkerSet    *set;
};

struct ProcessWorkers {
    ProcessWorkersOptions options;
    Interpreter          *interpreter;
    Handler              *handler;
    Mutex                 mutex; /* guards the rest */
    DomainWorker         *first;
    bool                  stopping;
};

#define TYPES_COLUMNS(X, T)   \
    X(T, TEXT, domain, types) \
    X(T, I32, number)         \
    X(T, BOOL, has_orphans)
DB_ROW(DomainTypes, TYPES_COLUMNS);
DB_SHAPE(types, DomainTypes, TYPES_COLUMNS);

ProcessWorkers *process_workers_new(const ProcessWorkersOptions *options)
{
    ProcessWorkers *workers = memory_new(1, sizeof *workers);

    workers->options     = *options;
    workers->interpreter = interpreter_new(options->pool, options->handler_pool, options->client);
    workers->handler     = process_handler_new(options->pool, interpret_body, workers->interpreter);
    process_handler_on_stop(workers->handler, interpreter_stop);
    mutex_init(&workers->mutex);
    return workers;
}

static void domain_worker_free(DomainWorker *worker)
{
    if (worker->set)
        worker_set_free(worker->set);
    free(worker->domain);
    free(worker->types);
    free(worker);
}
SCOPED(DomainWorker, domain_worker_free)

void process_workers_free(ProcessWorkers *workers)
{
    for (DomainWorker *at = workers->first, *next; at; at = next) {
        next = at->next;
        domain_worker_free(at);
    }
    process_handler_free(workers->handler);
    interpreter_free(workers->interpreter);
    mutex_done(&workers->mutex);
    free(workers);
}

/* ---- starting ---- */

static DomainWorker *worker_find(const ProcessWorkers *workers, const DomainTypes *row)
{
    DomainWorker *at = workers->first;

    while (at && (at->number != row->number || strcmp(at->domain, row->domain) != 0))
        at = at->next;
    return at;
}

static int places_count(int of_one_type)
{
    int places = share_size(of_one_type);

    return places < WORKER_CONCURRENCY_MAX ? places : WORKER_CONCURRENCY_MAX;
}

static ErrorCode worker_start(ProcessWorkers *workers, const DomainTypes *row, Arena *arena, Deadline deadline,
                              Error *reterr)
{
    scoped(domain_worker_free) DomainWorker *worker = memory_new(1, sizeof *worker);
    WorkerRow added = {.domain       = arena_print(arena, PROCESS_DOMAIN_PREFIX "%s", row->domain),
                       .concurrency  = places_count(workers->options.concurrency),
                       .lease_ms     = workers->options.lease_ms,
                       .is_lazy      = true,
                       .shares_types = true,
                       .handler      = workers->handler};

    worker->domain = memory_text(row->domain);
    worker->number = row->number;
    worker->types  = memory_text(row->types);
    worker->set    = worker_set_new(workers->options.pool, /* handler_pool= */ NULL);
    TRY(worker_types_read("types", row->types, arena, &added.types, reterr));
    TRY(worker_set_add(worker->set, &added, deadline, reterr));
    TRY(worker_set_start(worker->set, &(WorkerSetStart){.listen = workers->options.listen, .restart_ms = RESTART_MS},
                         reterr));
    worker->next   = workers->first;
    workers->first = take(worker);
    return OK;
}

/* In the worker that is there, so that a domain has as many activations at the same time as before. */
static ErrorCode types_change(DomainWorker *worker, const DomainTypes *row, Arena *arena, Error *reterr)
{
    const char *const *types;

    TRY(worker_types_read("types", row->types, arena, &types, reterr));
    worker_set_types(worker->set, types);
    free(worker->types);
    worker->types = memory_text(row->types);
    return OK;
}

/* What processes that have ended have sent: a hundred at a time, for at most half of the time that there is. */
static ErrorCode orphans_cancel(Pool *pool, Deadline deadline, Error *reterr)
{
    TxOptions options = {.name = "orphans", .deadline = deadline, .keyed = true};
    Deadline  pause   = deadline_in_ms(deadline_left_ms(deadline) / 2);
    int64_t   count;

    do {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

        options.arena = arena;
        TRY(db_call(pool, &options, sql_process_orphans, DB_NONE, &db_i64_shape, &count, reterr));
    } while (count > 0 && !deadline_passed(pause));
    return OK;
}

static void workers_start(ProcessWorkers *workers, const DomainTypes *rows, int count, Arena *arena, Deadline deadline)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&workers->mutex);
    Error                       error = {0};

    for (int i = 0; i < count && !workers->stopping; i++) {
        const DomainTypes *row   = &rows[i];
        DomainWorker      *known = row->domain ? worker_find(workers, row) : NULL;
        ErrorCode          code  = OK;

        if (!row->domain || (known && strcmp(known->types, row->types) == 0))
            continue;
        code = known ? types_change(known, row, arena, &error) : worker_start(workers, row, arena, deadline, &error);
        if (code != OK) /* the next step tries again; other domains are started */
            log_error(LOG_WARN, "process", arena_print(arena, "no worker for processes of %s", row->domain), &error);
    }
}

ErrorCode process_workers_step(ProcessWorkers *workers, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "types", .deadline = deadline, .arena = arena, .read_only = true};
    Error                     error   = {0};
    DomainTypes              *rows;
    int                       count;

    TRY(db_call_many(workers->options.pool, &options, sql_process_types, DB_NONE, &types_shape, &rows, &count, reterr));
    workers_start(workers, rows, count, arena, deadline);
    if (rows->has_orphans && orphans_cancel(workers->options.pool, deadline, &error) != OK)
        log_error(LOG_WARN, "process", "what ended processes have sent is not canceled yet", &error);
    return OK;
}

/* ---- ending ---- */

void process_workers_stop(ProcessWorkers *workers, Deadline deadline)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&workers->mutex);

    workers->stopping = true;
    for (DomainWorker *at = workers->first; at; at = at->next)
        worker_set_stop(at->set, deadline);
}

bool process_workers_wait(ProcessWorkers *workers, Deadline deadline)
{
    for (DomainWorker *at = workers->first; at; at = at->next)
        if (!worker_set_wait(at->set, deadline))
            return false;
    return true;
}
