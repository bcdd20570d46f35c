/*
 * task.c - see task.h.
 */
#include "app/task.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/sync.h"

#define CLAIM_DEADLINE_MS 5000
#define EXTERNAL_THREAD   (TASKS_THREADS - 1)

typedef struct {
    const PeriodicTask *task;
    Mono                due;
    Mono                held_until; /* of the lease; single tasks only */
    bool                running;
    bool                hastened; /* while it ran */
    bool                failing;  /* of its own thread while it runs */
} TaskPlan;

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
    TaskPlan    *plans; /* the last one claims the leases, if there are single tasks */
    bool         stop;
    TaskThread   threads[TASKS_THREADS];
};

/* ---- leases ---- */

static bool plan_is_single(const TaskPlan *plan)
{
    return plan->task->scope == TASK_SINGLE;
}

/* From the moment before the call on: never later than the database's own end of the lease. */
static void leases_take(Tasks *tasks, const bool *held, Mono asked)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    for (int i = 0, name = 0; i < tasks->count; i++)
        if (plan_is_single(&tasks->plans[i]))
            tasks->plans[i].held_until = held[name++] ? mono_plus_ms(asked, TASKS_LEASE_MS) : (Mono){0};
    cond_broadcast(&tasks->wake);
}

static ErrorCode leases_claim(void *context, TaskRun *run, Error *reterr)
{
    Tasks      *tasks = context;
    const char *names[TASKS_MAX];
    bool        held[TASKS_MAX] = {0};
    Mono        asked           = clock_mono();
    int         count           = 0;

    for (int i = 0; i < tasks->count; i++)
        if (plan_is_single(&tasks->plans[i]))
            names[count++] = tasks->plans[i].task->name;
    TRY(tasks->claim(tasks->context, run->deadline, names, count, held, reterr));
    leases_take(tasks, held, asked);
    return OK;
}

bool tasks_holds(Tasks *tasks, const char *name)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    for (int i = 0; i < tasks->count; i++)
        if (plan_is_single(&tasks->plans[i]) && strcmp(tasks->plans[i].task->name, name) == 0)
            return mono_before(clock_mono(), tasks->plans[i].held_until);
    return false;
}

/* ---- steps ---- */

/* When the plan may run; far away while it must not. */
static Mono plan_time(const TaskPlan *plan, Mono now)
{
    bool is_ours = !plan_is_single(plan) || mono_before(now, plan->held_until);

    return plan->running || !is_ours ? mono_plus_ms(now, TASKS_CLAIM_MS) : plan->due;
}

static TaskPlan *plan_next(Tasks *tasks, TaskTarget target, Mono now)
{
    TaskPlan *next = NULL;

    for (int i = 0; i < tasks->count; i++) {
        TaskPlan *plan = &tasks->plans[i];

        if (plan->task->target == target && (!next || mono_before(plan_time(plan, now), plan_time(next, now))))
            next = plan;
    }
    return next;
}

/* NULL: stop. */
static TaskPlan *plan_wait(Tasks *tasks, TaskTarget target)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    while (!tasks->stop) {
        Mono      now  = clock_mono();
        TaskPlan *next = plan_next(tasks, target, now);
        Mono      time = next ? plan_time(next, now) : mono_plus_ms(now, TASKS_CLAIM_MS);

        if (next && !mono_before(now, time)) {
            next->running = true;
            return next;
        }
        (void)cond_wait(&tasks->wake, lock, (Deadline){time});
    }
    return NULL;
}

static void plan_end(Tasks *tasks, TaskPlan *plan, int next_ms)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    plan->due      = mono_plus_ms(clock_mono(), plan->hastened ? 0 : next_ms);
    plan->running  = false;
    plan->hastened = false;
    cond_broadcast(&tasks->wake);
}

static void plan_run(Tasks *tasks, TaskPlan *plan)
{
    const PeriodicTask *task    = plan->task;
    void               *context = task == &tasks->claim_task ? tasks : tasks->context;
    TaskRun             run     = {deadline_in_ms(task->deadline_ms), task->period_ms};
    Error               error   = {0};
    ErrorCode           code;

    log_set_request(task->name);
    code = task->step(context, &run, &error);
    if (code != OK && !plan->failing)
        log_error(LOG_WARN, "task", "a periodic task failed and will be tried again", &error);
    if (code == OK && plan->failing)
        log_write(LOG_INFO, "task", "a periodic task works again");
    plan->failing = code != OK;
    log_set_request(NULL);
    plan_end(tasks, plan, code == OK ? run.next_ms : task->period_ms);
}

static void *thread_run(void *context)
{
    TaskThread *thread = context;
    TaskTarget  target = thread->number == EXTERNAL_THREAD ? TASK_EXTERNAL : TASK_DATABASE;
    TaskPlan   *plan;

    while ((plan = plan_wait(thread->tasks, target)))
        plan_run(thread->tasks, plan);
    return NULL;
}

/* ---- life ---- */

static void plans_add(Tasks *tasks, const PeriodicTask *task, int delay_ms)
{
    tasks->plans[tasks->count++] = (TaskPlan){.task = task, .due = mono_plus_ms(clock_mono(), delay_ms)};
}

Tasks *tasks_new(const PeriodicTask *table, int count, unsigned roles, TaskClaim *claim, void *context)
{
    Tasks *tasks      = memory_new(1, sizeof *tasks);
    bool   any_single = false;

    assert(count <= TASKS_MAX);
    tasks->plans      = memory_new((size_t)count + 1, sizeof *tasks->plans);
    tasks->claim      = claim;
    tasks->context    = context;
    tasks->claim_task = (PeriodicTask){.name        = "leases",
                                       .period_ms   = TASKS_CLAIM_MS,
                                       .deadline_ms = CLAIM_DEADLINE_MS,
                                       .step        = leases_claim};
    for (int i = 0; i < count; i++)
        if (!table[i].role || table[i].role & roles) {
            plans_add(tasks, &table[i], table[i].scope == TASK_SINGLE ? 0 : table[i].period_ms);
            any_single |= table[i].scope == TASK_SINGLE;
        }
    if (any_single)
        plans_add(tasks, &tasks->claim_task, 0);
    mutex_init(&tasks->mutex);
    cond_init(&tasks->wake);
    for (int i = 0; i < TASKS_THREADS; i++) {
        tasks->threads[i].tasks  = tasks;
        tasks->threads[i].number = i;
        tasks->threads[i].id     = thread_start("task", thread_run, &tasks->threads[i]);
    }
    return tasks;
}

void tasks_hasten(Tasks *tasks, const char *name)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    for (int i = 0; i < tasks->count; i++) {
        TaskPlan *plan = &tasks->plans[i];

        if (strcmp(plan->task->name, name) != 0)
            continue;
        plan->hastened = plan->running;
        plan->due      = clock_mono();
    }
    cond_broadcast(&tasks->wake);
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
    free(tasks->plans);
    free(tasks);
}
