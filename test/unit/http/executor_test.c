/*
 * executor_test.c - a queue that has an end: in size, and in time.
 */
#include "http/executor.h"

#include <stdatomic.h>

#include "base/sync.h"
#include "http/metric.h"
#include "test/harness/test.h"

/* The item: a handler that tells when it began and ends when it may. */
typedef struct {
    atomic_int  runs;
    atomic_bool may_end;
} Item;

static void item_run(void *context)
{
    Item *item = context;

    atomic_fetch_add(&item->runs, 1);
    while (!atomic_load(&item->may_end))
        clock_sleep_ms(1);
}

static bool item_has_begun(Item *item)
{
    for (Deadline deadline = deadline_in_ms(10000); !deadline_passed(deadline); clock_sleep_ms(1))
        if (atomic_load(&item->runs) > 0)
            return true;
    return false;
}

static void *stop_body(void *context)
{
    executor_stop(context);
    return NULL;
}

TEST(executor_stop_lets_the_running_finish_and_refuses_the_rest)
{
    Executor *executor = executor_new(/* threads= */ 1, /* queue_max= */ 1 << 16, item_run);
    Item      running = {0}, late = {.may_end = true};

    assert_true(executor_submit(executor, &running));
    assert_true(item_has_begun(&running));
    pthread_t thread = thread_start("test-stop", stop_body, executor);
    for (Deadline d = deadline_in_ms(10000); executor_submit(executor, &late); clock_sleep_ms(1))
        assert_false(deadline_passed(d)); /* the queue is far from full: only the end refuses */
    atomic_store(&running.may_end, true);
    thread_join(thread);
    assert_false(executor_submit(executor, &late)); /* stopped, and still there to say so */
    assert_int_equal(atomic_load(&late.runs), 0);
    assert_int_equal(metric_value(&http_metrics.queue), 0);
    executor_free(executor);
}
