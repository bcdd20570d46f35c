/*
 * executor_test.c - a queue that has an end: in size, and in time.
 */
#include "http/executor.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/sync.h"
#include "http/metric.h"
#include "test/harness/test.h"

#define LATE_MAX 10000

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
    Executor   *executor = executor_new(/* threads= */ 1, /* readers_max= */ 1, /* queue_max= */ 1 << 16, item_run);
    Item        running = {0}, late = {.may_end = true};
    ExecutorJob first = {.item = &running}, *jobs = calloc(LATE_MAX, sizeof *jobs);
    int         count = 0;

    assert_true(executor_submit(executor, &first));
    assert_true(item_has_begun(&running));
    pthread_t thread = thread_start("test-stop", stop_body, executor);
    do {
        assert_true(count < LATE_MAX); /* the queue is far from full: only the end refuses */
        clock_sleep_ms(1);
        jobs[count] = (ExecutorJob){.item = &late};
    } while (executor_submit(executor, &jobs[count++]));
    atomic_store(&running.may_end, true);
    thread_join(thread);
    assert_false(executor_submit(executor, &first)); /* stopped, and still there to say so */
    assert_int_equal(atomic_load(&late.runs), 0);
    assert_int_equal(metric_value(&http_metrics.queue), 0);
    executor_free(executor);
    free(jobs);
}

/* Four threads read; of these, and of 8 places of 16, one key leaves some to others. */
TEST(executor_reads_of_one_key_leave_threads_and_places_to_others)
{
    enum { READS = 12 };
    Executor   *executor     = executor_new(/* threads= */ 8, /* readers_max= */ 4, /* queue_max= */ 16, item_run);
    Item        items[READS] = {0}, other = {0}, write = {0};
    ExecutorJob jobs[READS], of_other = {.item = &other, .reader = "other"}, of_write = {.item = &write};
    int         taken = 0, begun = 0;

    for (; taken < READS; taken++) {
        jobs[taken] = (ExecutorJob){.item = &items[taken], .reader = "curious"};
        if (!executor_submit(executor, &jobs[taken]))
            break;
        assert_true(taken >= 3 || item_has_begun(&items[taken]));
    }
    assert_int_equal(taken, 3 + 6); /* they run, they wait */
    assert_true(executor_submit(executor, &of_other));
    assert_true(item_has_begun(&other));
    assert_true(executor_submit(executor, &of_write));
    assert_true(item_has_begun(&write));
    for (int i = 0; i < taken; i++)
        begun += atomic_load(&items[i].runs);
    assert_int_equal(begun, 3);
    atomic_store(&other.may_end, true);
    atomic_store(&write.may_end, true);
    for (int i = 0; i < taken; i++) {
        assert_true(item_has_begun(&items[i])); /* in their order */
        atomic_store(&items[i].may_end, true);
    }
    executor_stop(executor);
    for (int i = 0; i < taken; i++)
        assert_int_equal(atomic_load(&items[i].runs), 1);
    executor_free(executor);
}
