/*
 * retry.c - see retry.h.
 */
#include "pg/retry.h"

#include <assert.h>

#include "base/world.h"

const RetryPolicy retry_connect   = {.tries_max = 5, .delay_ms = 100, .delay_ms_max = 30000};
const RetryPolicy retry_operation = {.tries_max = 4, .delay_ms = 100, .delay_ms_max = 400};

int retry_delay_ms(const RetryPolicy *policy, int tries)
{
    int delay = policy->delay_ms;

    assert(tries >= 1);
    for (int i = 1; i < tries && delay < policy->delay_ms_max; i++)
        delay *= 2;
    return delay < policy->delay_ms_max ? delay : policy->delay_ms_max;
}

bool retry_wait(const RetryPolicy *policy, int tries, Deadline deadline)
{
    int delay;

    if (tries >= policy->tries_max)
        return false;
    delay = retry_delay_ms(policy, tries);
    delay -= (int)(world_random() % (unsigned)(delay / 4 + 1));
    if (deadline_left_ms(deadline) <= delay)
        return false;
    clock_sleep_ms(delay);
    return true;
}
