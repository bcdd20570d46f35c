/*
 * task.c - see task.h.
 */
#include "app/task.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/sync.h"

#define CLAIM_DEADLINE_MS 5000
#define OUTSIDE_THREAD    (TASKS_THREADS - 1)

typedef struct {
    const PeriodicTask *task;
    Mono                due;
    Mono                held_until; /* of the lease; single tasks only */
    bool                running;
    bool                failing; /* of its own thread while it runs */
} Turn;

typedef struct {
    Tasks    *tasks;
    int       number;
    pthread_t id;
} TaskThread;

struct Tasks {
    TaskClaim   *claim;
    void        *context;
    PeriodicTask claim_task;
    int          count;
    Mutex        mutex; /* guards all below */
    Cond         wake;
    Turn        *turns; /* the last one claims the leases, if there are single tasks */
    bool         stop;
    TaskThread   threads[TASKS_THREADS];
};

/* ---- leases ---- */

static bool turn_is_single(const Turn *turn)
{
    return turn->task->scope == TASK_SINGLE;
}

/* From the moment before the call on: never later than the database's own end of the lease. */
static void leases_take(Tasks *tasks, const bool *held, Mono asked)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    for (int i = 0, name = 0; i < tasks->count; i++)
        if (turn_is_single(&tasks->turns[i]))
            tasks->turns[i].held_until = held[name++] ? mono_plus_ms(asked, TASKS_LEASE_MS) : (Mono){0};
    cond_broadcast(&tasks->wake);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): as PeriodicTask.step has it */
static ErrorCode leases_claim(void *context, Deadline deadline, int *ret_next_ms, Error *reterr)
{
    Tasks      *tasks = context;
    const char *names[TASKS_MAX];
    bool        held[TASKS_MAX] = {0};
    Mono        asked           = clock_mono();
    int         count           = 0;

    (void)ret_next_ms;
    for (int i = 0; i < tasks->count; i++)
        if (turn_is_single(&tasks->turns[i]))
            names[count++] = tasks->turns[i].task->name;
    TRY(tasks->claim(tasks->context, deadline, names, count, held, reterr));
    leases_take(tasks, held, asked);
    return OK;
}

bool tasks_holds(Tasks *tasks, const char *name)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    for (int i = 0; i < tasks->count; i++)
        if (turn_is_single(&tasks->turns[i]) && strcmp(tasks->turns[i].task->name, name) == 0)
            return mono_before(clock_mono(), tasks->turns[i].held_until);
    return false;
}

/* ---- steps ---- */

/* When the turn may run; far away while it must not. */
static Mono turn_time(const Turn *turn, Mono now)
{
    bool is_ours = !turn_is_single(turn) || mono_before(now, turn->held_until);

    return turn->running || !is_ours ? mono_plus_ms(now, TASKS_CLAIM_MS) : turn->due;
}

static Turn *turn_next(Tasks *tasks, TaskPlace place, Mono now)
{
    Turn *next = NULL;

    for (int i = 0; i < tasks->count; i++) {
        Turn *turn = &tasks->turns[i];

        if (turn->task->place == place && (!next || mono_before(turn_time(turn, now), turn_time(next, now))))
            next = turn;
    }
    return next;
}

/* NULL: stop. */
static Turn *turn_wait(Tasks *tasks, TaskPlace place)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    while (!tasks->stop) {
        Mono  now  = clock_mono();
        Turn *next = turn_next(tasks, place, now);
        Mono  time = next ? turn_time(next, now) : mono_plus_ms(now, TASKS_CLAIM_MS);

        if (next && !mono_before(now, time)) {
            next->running = true;
            return next;
        }
        (void)cond_wait(&tasks->wake, lock, (Deadline){time});
    }
    return NULL;
}

static void turn_end(Tasks *tasks, Turn *turn, int next_ms)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    turn->due     = mono_plus_ms(clock_mono(), next_ms);
    turn->running = false;
    cond_broadcast(&tasks->wake);
}

static void turn_run(Tasks *tasks, Turn *turn)
{
    const PeriodicTask *task    = turn->task;
    void               *context = task == &tasks->claim_task ? tasks : tasks->context;
    int                 next_ms = task->period_ms;
    Error               error   = {0};
    ErrorCode           code;

    log_set_request(task->name);
    code = task->step(context, deadline_in_ms(task->deadline_ms), &next_ms, &error);
    if (code != OK && !turn->failing)
        log_error(LOG_WARN, "task", "a periodic task failed and will be tried again", &error);
    if (code == OK && turn->failing)
        log_write(LOG_INFO, "task", "a periodic task works again");
    turn->failing = code != OK;
    log_set_request(NULL);
    turn_end(tasks, turn, code == OK ? next_ms : task->period_ms);
}

static void *thread_run(void *context)
{
    TaskThread *thread = context;
    TaskPlace   place  = thread->number == OUTSIDE_THREAD ? TASK_OUTSIDE : TASK_INSIDE;
    Turn       *turn;

    while ((turn = turn_wait(thread->tasks, place)))
        turn_run(thread->tasks, turn);
    return NULL;
}

/* ---- life ---- */

static void turns_add(Tasks *tasks, const PeriodicTask *task, int delay_ms)
{
    tasks->turns[tasks->count++] = (Turn){.task = task, .due = mono_plus_ms(clock_mono(), delay_ms)};
}

Tasks *tasks_new(const PeriodicTask *table, int count, unsigned roles, TaskClaim *claim, void *context)
{
    Tasks *tasks      = calloc(1, sizeof *tasks);
    bool   any_single = false;

    assert(count <= TASKS_MAX);
    if (!tasks || !(tasks->turns = calloc((size_t)count + 1, sizeof *tasks->turns)))
        abort();
    tasks->claim      = claim;
    tasks->context    = context;
    tasks->claim_task = (PeriodicTask){.name        = "leases",
                                       .period_ms   = TASKS_CLAIM_MS,
                                       .deadline_ms = CLAIM_DEADLINE_MS,
                                       .step        = leases_claim};
    for (int i = 0; i < count; i++)
        if (!table[i].role || table[i].role & roles) {
            turns_add(tasks, &table[i], table[i].scope == TASK_SINGLE ? 0 : table[i].period_ms);
            any_single |= table[i].scope == TASK_SINGLE;
        }
    if (any_single)
        turns_add(tasks, &tasks->claim_task, 0);
    mutex_init(&tasks->mutex);
    cond_init(&tasks->wake);
    for (int i = 0; i < TASKS_THREADS; i++) {
        tasks->threads[i].tasks  = tasks;
        tasks->threads[i].number = i;
        tasks->threads[i].id     = thread_start("task", thread_run, &tasks->threads[i]);
    }
    return tasks;
}

void tasks_stop(Tasks *tasks)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    tasks->stop = true;
    cond_broadcast(&tasks->wake);
}

void tasks_free(Tasks *tasks)
{
    tasks_stop(tasks);
    for (int i = 0; i < TASKS_THREADS; i++)
        thread_join(tasks->threads[i].id);
    mutex_done(&tasks->mutex);
    cond_done(&tasks->wake);
    free(tasks->turns);
    free(tasks);
}
