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
} Schedule;

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
    Schedule    *schedules; /* the last one claims the leases, if there are single tasks */
    bool         stop;
    TaskThread   threads[TASKS_THREADS];
};

/* ---- leases ---- */

static bool schedule_is_single(const Schedule *schedule)
{
    return schedule->task->scope == TASK_SINGLE;
}

/* From the moment before the call on: never later than the database's own end of the lease. */
static void leases_take(Tasks *tasks, const bool *held, Mono asked)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    for (int i = 0, name = 0; i < tasks->count; i++)
        if (schedule_is_single(&tasks->schedules[i]))
            tasks->schedules[i].held_until = held[name++] ? mono_plus_ms(asked, TASKS_LEASE_MS) : (Mono){0};
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
        if (schedule_is_single(&tasks->schedules[i]))
            names[count++] = tasks->schedules[i].task->name;
    TRY(tasks->claim(tasks->context, run->deadline, names, count, held, reterr));
    leases_take(tasks, held, asked);
    return OK;
}

bool tasks_holds(Tasks *tasks, const char *name)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    for (int i = 0; i < tasks->count; i++)
        if (schedule_is_single(&tasks->schedules[i]) && strcmp(tasks->schedules[i].task->name, name) == 0)
            return mono_before(clock_mono(), tasks->schedules[i].held_until);
    return false;
}

/* ---- steps ---- */

/* When the schedule may run; far away while it must not. */
static Mono schedule_time(const Schedule *schedule, Mono now)
{
    bool is_ours = !schedule_is_single(schedule) || mono_before(now, schedule->held_until);

    return schedule->running || !is_ours ? mono_plus_ms(now, TASKS_CLAIM_MS) : schedule->due;
}

static Schedule *schedule_next(Tasks *tasks, TaskTarget target, Mono now)
{
    Schedule *next = NULL;

    for (int i = 0; i < tasks->count; i++) {
        Schedule *schedule = &tasks->schedules[i];

        if (schedule->task->target == target &&
            (!next || mono_before(schedule_time(schedule, now), schedule_time(next, now))))
            next = schedule;
    }
    return next;
}

/* NULL: stop. */
static Schedule *schedule_wait(Tasks *tasks, TaskTarget target)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    while (!tasks->stop) {
        Mono      now  = clock_mono();
        Schedule *next = schedule_next(tasks, target, now);
        Mono      time = next ? schedule_time(next, now) : mono_plus_ms(now, TASKS_CLAIM_MS);

        if (next && !mono_before(now, time)) {
            next->running = true;
            return next;
        }
        (void)cond_wait(&tasks->wake, lock, (Deadline){time});
    }
    return NULL;
}

static void schedule_end(Tasks *tasks, Schedule *schedule, int next_ms)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&tasks->mutex);

    schedule->due      = mono_plus_ms(clock_mono(), schedule->hastened ? 0 : next_ms);
    schedule->running  = false;
    schedule->hastened = false;
    cond_broadcast(&tasks->wake);
}

static void schedule_run(Tasks *tasks, Schedule *schedule)
{
    const PeriodicTask *task    = schedule->task;
    void               *context = task == &tasks->claim_task ? tasks : tasks->context;
    TaskRun             run     = {deadline_in_ms(task->deadline_ms), task->period_ms};
    Error               error   = {0};
    ErrorCode           code;

    log_set_request(task->name);
    code = task->step(context, &run, &error);
    if (code != OK && !schedule->failing)
        log_error(LOG_WARN, "task", "a periodic task failed and will be tried again", &error);
    if (code == OK && schedule->failing)
        log_write(LOG_INFO, "task", "a periodic task works again");
    schedule->failing = code != OK;
    log_set_request(NULL);
    schedule_end(tasks, schedule, code == OK ? run.next_ms : task->period_ms);
}

static void *thread_run(void *context)
{
    TaskThread *thread = context;
    TaskTarget  target = thread->number == EXTERNAL_THREAD ? TASK_EXTERNAL : TASK_DATABASE;
    Schedule   *schedule;

    while ((schedule = schedule_wait(thread->tasks, target)))
        schedule_run(thread->tasks, schedule);
    return NULL;
}

/* ---- life ---- */

static void schedules_add(Tasks *tasks, const PeriodicTask *task, int delay_ms)
{
    tasks->schedules[tasks->count++] = (Schedule){.task = task, .due = mono_plus_ms(clock_mono(), delay_ms)};
}

Tasks *tasks_new(const PeriodicTask *table, int count, unsigned roles, TaskClaim *claim, void *context)
{
    Tasks *tasks      = memory_new(1, sizeof *tasks);
    bool   any_single = false;

    assert(count <= TASKS_MAX);
    tasks->schedules  = memory_new((size_t)count + 1, sizeof *tasks->schedules);
    tasks->claim      = claim;
    tasks->context    = context;
    tasks->claim_task = (PeriodicTask){.name        = "leases",
                                       .period_ms   = TASKS_CLAIM_MS,
                                       .deadline_ms = CLAIM_DEADLINE_MS,
                                       .step        = leases_claim};
    for (int i = 0; i < count; i++)
        if (!table[i].role || table[i].role & roles) {
            schedules_add(tasks, &table[i], table[i].scope == TASK_SINGLE ? 0 : table[i].period_ms);
            any_single |= table[i].scope == TASK_SINGLE;
        }
    if (any_single)
        schedules_add(tasks, &tasks->claim_task, 0);
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
        Schedule *schedule = &tasks->schedules[i];

        if (strcmp(schedule->task->name, name) != 0)
            continue;
        schedule->hastened = schedule->running;
        schedule->due      = clock_mono();
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
    free(tasks->schedules);
    free(tasks);
}
