/*
 * task_test.c - periodic tasks that are hastened.
 */
#include "app/task.h"

#include <stdatomic.h>

#include "test/harness/test.h"

#define HOUR_MS 3600000

typedef struct {
    atomic_int begun, may_end;
} Steps;

static void await_count(const atomic_int *count, int wanted)
{
    Deadline deadline = deadline_in_ms(60000);

    while (atomic_load(count) < wanted) {
        assert_false(deadline_passed(deadline));
        clock_sleep_ms(1);
    }
}

/* Its nth run ends when n may. */
static ErrorCode step_count(void *context, TaskRun *run, Error *reterr)
{
    Steps *steps  = context;
    int    number = atomic_fetch_add(&steps->begun, 1) + 1;

    (void)reterr;
    while (atomic_load(&steps->may_end) < number && !deadline_passed(run->deadline))
        clock_sleep_ms(1);
    return OK;
}

TEST(hastened_task_runs_at_once_and_again_if_it_was_running)
{
    static const PeriodicTask table[] = {
        {"counted", HOUR_MS, HOUR_MS, .step = step_count}
    };
    Steps                     steps = {0};
    scoped(tasks_free) Tasks *tasks = tasks_new(table, COUNT(table), 0, NULL, &steps);

    tasks_hasten(tasks, "unknown");
    tasks_hasten(tasks, "counted");
    await_count(&steps.begun, 1);
    tasks_hasten(tasks, "counted"); /* the step that runs may have read before what this is about */
    atomic_store(&steps.may_end, 1);
    await_count(&steps.begun, 2);
    atomic_store(&steps.may_end, 2);
    tasks_hasten(tasks, "counted");
    await_count(&steps.begun, 3);
    atomic_store(&steps.may_end, 3);
}
