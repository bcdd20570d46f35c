/*
 * retry.c - see retry.h.
 */
#include "pg/retry.h"

#include <assert.h>

#include "base/world.h"

const BackoffPolicy retry_connect   = {.retries_max = 5, .delay_ms = 100, .delay_ms_max = 30000};
const BackoffPolicy retry_operation = {.retries_max = 3, .delay_ms = 100, .delay_ms_max = 30000};

int retry_delay_ms(const BackoffPolicy *policy, int tries)
{
    int delay = policy->delay_ms;

    assert(tries >= 1);
    for (int i = 1; i < tries && delay < policy->delay_ms_max; i++)
        delay = delay <= policy->delay_ms_max / 2 ? delay * 2 : policy->delay_ms_max;
    return delay < policy->delay_ms_max ? delay : policy->delay_ms_max;
}

bool retry_wait(const BackoffPolicy *policy, int tries, Deadline deadline)
{
    int delay;

    if (tries > policy->retries_max)
        return false;
    delay = retry_delay_ms(policy, tries);
    delay -= (int)(world_random() % (unsigned)(delay / 4 + 1));
    if (deadline_left_ms(deadline) <= delay)
        return false;
    clock_sleep_ms(delay);
    return true;
}
