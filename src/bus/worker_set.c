/*
 * worker_set.c - see worker_set.h.
 */
#include "bus/worker_set.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/sync.h"
#include "base/uuid.h"
#include "bus/reserved_domain.h"
#include "bus/send.h"

typedef struct Entry Entry;
struct Entry {
    WorkerSet *set;
    Entry     *next;
    Worker    *worker;
    Handler   *handler; /* ours: made from exec or sql; NULL: borrowed */
    void (*handler_free)(Handler *handler);
    const char *domain;
    pthread_t   thread;
    bool        started;
    ErrorCode   code; /* of its last run; guarded by the mutex while it runs */
    Error       error;
};

struct WorkerSet {
    Pool          *pool, *handler_pool;
    Arena         *arena; /* what the rows say */
    Entry         *first, **end;
    WorkerSetStart start;
    Mutex          mutex; /* guards the rest */
    Cond           changed;
    int            running;
    bool           stopping;
};

/* ---- rows ---- */

WorkerSet *worker_set_new(Pool *pool, Pool *handler_pool)
{
    WorkerSet *set = memory_new(1, sizeof *set);

    set->pool         = pool;
    set->handler_pool = handler_pool;
    set->arena        = arena_new(ARENA_BYTES_DEFAULT);
    set->end          = &set->first;
    mutex_init(&set->mutex);
    cond_init(&set->changed);
    return set;
}

static void entry_free(Entry *entry)
{
    if (entry->worker)
        worker_free(entry->worker);
    if (entry->handler)
        entry->handler_free(entry->handler);
    free(entry);
}
SCOPED(Entry, entry_free)

void worker_set_free(WorkerSet *set)
{
    assert(set->running == 0);
    for (Entry *entry = set->first, *next; entry; entry = next) {
        next = entry->next;
        if (entry->started)
            thread_join(entry->thread);
        entry_free(entry);
    }
    cond_done(&set->changed);
    mutex_done(&set->mutex);
    arena_free(set->arena);
    free(set);
}

/* Unique for each worker of each start, readable for people: host:pid:random. */
static const char *name_make(Arena *arena)
{
    char host[64] = "", id[UUID_TEXT_SIZE];

    (void)gethostname(host, sizeof host - 1);
    uuid_new(id);
    return arena_print(arena, "%s:%d:%.8s", host, (int)getpid(), id + 28);
}

ErrorCode worker_types_read(const char *field, const char *text, Arena *arena, const char *const **ret_types,
                            Error *reterr)
{
    const char **list  = arena_array(arena, const char *, strlen(text) / 2 + 2);
    int          count = 0;

    for (const char *word = text + strspn(text, ", "); *word; word += strspn(word, ", ")) {
        size_t size = strcspn(word, ", ");

        list[count] = arena_bytes(arena, word, size);
        TRY(send_check_type(field, list[count++], reterr) == OK ? OK : ERR_USAGE);
        word += size;
    }
    if (count > CLAIM_TYPES_MAX)
        return fail(reterr, ERR_USAGE, "%s must have at most %d types, got %d", field, CLAIM_TYPES_MAX, count);
    if (count == 0)
        return fail(reterr, ERR_USAGE, "%s must be one or more types, comma-separated, got \"%.60s\"", field, text);
    *ret_types = list;
    return OK;
}

static const char *const *types_copy(Arena *arena, const char *const *types)
{
    int count = 0;

    while (types && types[count])
        count++;
    if (!count)
        return NULL;
    const char **copy = arena_array(arena, const char *, count + 1);

    for (int i = 0; i < count; i++)
        copy[i] = arena_text(arena, types[i]);
    return copy;
}

/* *ret_handler: what the worker calls. */
static ErrorCode handler_make(Entry *entry, const WorkerRow *row, Deadline deadline, Handler **ret_handler,
                              Error *reterr)
{
    const ReservedDomain *reserved = reserved_domain_find(row->domain);

    if ((row->exec != NULL) + (row->sql != NULL) + row->noop + (row->handler != NULL) != 1)
        return fail(reterr, ERR_USAGE, "a worker needs exactly one handler: exec, sql or noop");
    if (!row->handler && reserved && reserved->handled_by)
        return fail(reterr, ERR_USAGE, "domain \"%.80s\" has %s, which are run by %s, not by handlers of commands",
                    row->domain, reserved->commands, reserved->handled_by);
    *ret_handler = row->noop ? &handler_noop : row->handler;
    if (row->exec) {
        TRY(handler_exec_check(row->exec, reterr));
        entry->handler      = handler_exec_new(arena_text(entry->set->arena, row->exec));
        entry->handler_free = handler_exec_free;
    }
    if (row->sql) {
        TRY(handler_sql_new(entry->set->handler_pool, deadline, row->sql, !row->alone, &entry->handler, reterr));
        entry->handler_free = handler_sql_free;
    }
    if (entry->handler)
        *ret_handler = entry->handler;
    return OK;
}

ErrorCode worker_set_add(WorkerSet *set, const WorkerRow *row, Deadline deadline, Error *reterr)
{
    scoped(entry_free) Entry *entry   = memory_new(1, sizeof *entry);
    Handler                  *handler = NULL;

    entry->set    = set;
    entry->domain = arena_text(set->arena, row->domain);
    TRY(handler_make(entry, row, deadline, &handler, reterr));
    entry->worker = worker_new(&(WorkerOptions){.pool         = set->pool,
                                                .domain       = entry->domain,
                                                .types        = types_copy(set->arena, row->types),
                                                .name         = name_make(set->arena),
                                                .concurrency  = row->concurrency,
                                                .ahead_max    = row->ahead_max,
                                                .batch        = row->batch,
                                                .lease_ms     = row->lease_ms,
                                                .timeout_ms   = row->timeout_ms,
                                                .drain        = row->drain,
                                                .is_lazy      = row->is_lazy,
                                                .is_flushed   = row->is_flushed,
                                                .shares_types = row->shares_types,
                                                .handler      = handler});
    Entry **end   = set->end;

    set->end = &entry->next;
    *end     = take(entry);
    return OK;
}

/* ---- running ---- */

/* false: it is not to be run again. */
static bool restart_wait(WorkerSet *set)
{
    scoped(mutex_unlock) Mutex *held     = mutex_hold(&set->mutex);
    Deadline                    deadline = deadline_in_ms(set->start.restart_ms);

    while (!set->stopping && set->start.restart_ms && !deadline_passed(deadline))
        cond_wait(&set->changed, &set->mutex, deadline);
    return !set->stopping && set->start.restart_ms;
}

static void entry_end(Entry *entry)
{
    WorkerSet *set = entry->set;

    mutex_lock(&set->mutex);
    bool last = --set->running == 0;
    cond_broadcast(&set->changed);
    if (last && set->start.on_end)
        set->start.on_end(set->start.context); /* under the mutex: the set may be freed after it */
    mutex_unlock(&set->mutex);
}

static void *entry_run(void *context)
{
    Entry *entry = context;

    do {
        Error     error = {0};
        ErrorCode code  = worker_run(entry->worker, &error);

        entry->code  = code;
        entry->error = error;
        if (code == OK)
            break;
        if (entry->set->start.restart_ms) {
            error_prefix(&error, "worker of domain \"%s\"", entry->domain);
            log_error(LOG_ERROR, "worker", "a worker has failed and is started again later", &error);
        }
    } while (restart_wait(entry->set));
    entry_end(entry);
    return NULL;
}

/* Notifications do not wake them any more. */
static void set_unlisten(WorkerSet *set)
{
    for (Entry *entry = set->first; entry && set->start.listen; entry = entry->next)
        worker_unlisten(entry->worker, set->start.listen);
}

ErrorCode worker_set_start(WorkerSet *set, const WorkerSetStart *start, Error *reterr)
{
    set->start = *start;
    for (Entry *entry = set->first; entry; entry = entry->next) {
        if (start->listen)
            worker_listen(entry->worker, start->listen);
        mutex_lock(&set->mutex);
        set->running++;
        mutex_unlock(&set->mutex);
        entry->started = thread_try_start("worker", entry_run, entry, &entry->thread);
        if (entry->started)
            continue;
        int error = errno;
        mutex_lock(&set->mutex);
        set->running--;
        mutex_unlock(&set->mutex);
        set_unlisten(set);
        worker_set_stop(set, deadline_in_ms(0));
        (void)worker_set_wait(set, deadline_never());
        return fail(reterr, ERR_INTERNAL, "cannot start the thread \"worker\": %s", strerrordesc_np(error));
    }
    return OK;
}

void worker_set_types(WorkerSet *set, const char *const *types)
{
    for (Entry *entry = set->first; entry; entry = entry->next)
        worker_types_set(entry->worker, types);
}

void worker_set_stop(WorkerSet *set, Deadline deadline)
{
    for (Entry *entry = set->first; entry; entry = entry->next)
        worker_stop(entry->worker, deadline);
    mutex_lock(&set->mutex);
    set->stopping = true;
    cond_broadcast(&set->changed);
    mutex_unlock(&set->mutex);
}

bool worker_set_wait(WorkerSet *set, Deadline deadline)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&set->mutex);

    while (set->running > 0 && !deadline_passed(deadline))
        cond_wait(&set->changed, &set->mutex, deadline);
    return set->running == 0;
}

ErrorCode worker_set_result(const WorkerSet *set, Error *reterr)
{
    for (const Entry *entry = set->first; entry; entry = entry->next)
        if (entry->code != OK) {
            if (reterr)
                *reterr = entry->error;
            return entry->code;
        }
    return OK;
}

void worker_set_counts(WorkerSet *set, WorkerCounts *ret_counts)
{
    *ret_counts = (WorkerCounts){0};
    for (Entry *entry = set->first; entry; entry = entry->next) {
        WorkerCounts counts;

        worker_counts(entry->worker, &counts);
        ret_counts->claimed += counts.claimed;
        ret_counts->completed += counts.completed;
        ret_counts->retried += counts.retried;
        ret_counts->failed += counts.failed;
        ret_counts->rejected += counts.rejected;
        ret_counts->canceled += counts.canceled;
        ret_counts->lost += counts.lost;
        ret_counts->released += counts.released;
        ret_counts->running += counts.running;
        ret_counts->waiting += counts.waiting;
    }
}
