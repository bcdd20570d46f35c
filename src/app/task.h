/*
 * task.h - periodic tasks of a pod: a table of them, a few threads, one step of a task at a time.
 *
 * A task with scope TASK_SINGLE runs in one pod of all that share a database: in the one whose lease on the task's name is in
 * force. Leases are claimed for all such tasks by one call every TASKS_CLAIM_MS; a pod that stops gives them back, one that dies
 * loses them after TASKS_LEASE_MS. They save work and are no lock: a step that outlasts its lease may meet the step of
 * another pod, so every step claims its rows as if it were one of many.
 * A task that calls something outside of the database (TASK_EXTERNAL) runs on a thread of its own, so that it delays no other.
 * A task that fails is logged once, and once more when it works again.
 * Threads: tasks_new() starts TASKS_THREADS. Ownership: tasks_free() waits for the steps under way and joins.
 */
#ifndef APP_TASK_H
#define APP_TASK_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/error.h"

#define TASKS_CLAIM_MS 6000
#define TASKS_LEASE_MS 18000
#define TASKS_THREADS  3 /* two for steps that ask the database, one for calls outside */
#define TASKS_MAX      64

typedef enum { TASK_EVERYWHERE, TASK_SINGLE } TaskScope;
typedef enum { TASK_DATABASE, TASK_EXTERNAL } TaskTarget;

/* One step of a task. */
typedef struct {
    Deadline deadline;
    int      next_ms; /* until the next step: the task's period, unless the step sets another time */
} TaskRun;
typedef ErrorCode TaskStep(void *context, TaskRun *run, Error *reterr);
typedef struct {
    const char *name;
    int         period_ms;
    int         deadline_ms; /* for one step */
    TaskScope   scope;
    TaskTarget  target;
    unsigned    role; /* runs in pods that have one of these roles; 0: in every pod */
    TaskStep   *step;
} PeriodicTask;

/* Claim or renew leases on names for TASKS_LEASE_MS; ret_held[i]: names[i] is ours. */
typedef ErrorCode TaskClaim(void *context, Deadline deadline, const char *const *names, int count, bool *ret_held,
                            Error *reterr);

typedef struct Tasks Tasks;

/* The table is borrowed for as long as the tasks run. roles: what this pod is. */
Tasks *tasks_new(const PeriodicTask *table, int count, unsigned roles, TaskClaim *claim, void *context);
/* Is our lease on this single task in force? false for any other name. */
bool tasks_holds(Tasks *tasks, const char *name);
/* The next step of this task begins at once; one that runs is followed by another. Nothing if there is no such task. */
void tasks_hasten(Tasks *tasks, const char *name);
/* No further step begins; does not wait for those under way. */
void tasks_stop(Tasks *tasks);
void tasks_free(Tasks *tasks);
SCOPED(Tasks, tasks_free)

#endif
