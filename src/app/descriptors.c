/*
 * descriptors.c - see descriptors.h.
 */
#include "app/descriptors.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>

/* Listener, epoll, event and log descriptors, the LISTEN connection, webhooks, connections to be refused or lingering. */
#define OTHERS 256
/* Below this a quarter is kept for them. */
#define SMALL (4 * OTHERS)

int descriptors_raise(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        abort();
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {limit.rlim_max, limit.rlim_max};

        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    return limit.rlim_cur > INT_MAX ? INT_MAX : (int)limit.rlim_cur;
}

int descriptors_for_clients(int limit, int pool_max, int wanted)
{
    int others = limit < SMALL ? limit / 4 : OTHERS;
    int left   = limit - others - pool_max;

    if (left < 1)
        left = 1;
    return wanted < left ? wanted : left;
}
