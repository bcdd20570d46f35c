/*
 * pool_bench.c - what it costs to lease a pooled connection and to give it back, without contention.
 *
 *     pool_bench [URL]       the default is PAWL_TEST_URL
 *
 * Prints nanoseconds per cycle, and per lock and unlock of a mutex of the same kind, which is the part nobody can save.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/sync.h"
#include "pg/pool.h"

#define CYCLES 1000000

static double ns_per_cycle(Mono start)
{
    return (double)(clock_mono().ns - start.ns) / CYCLES;
}

static ErrorCode leases_run(Pool *pool, Error *reterr)
{
    for (int i = 0; i < CYCLES; i++) {
        Checkout *lease;

        TRY(pool_acquire(pool, deadline_never(), &lease, reterr));
        pool_release(lease);
    }
    return OK;
}

static double lock_measure(void)
{
    Mutex mutex;
    Mono  start;

    mutex_init(&mutex);
    start = clock_mono();
    for (int i = 0; i < CYCLES; i++) {
        mutex_lock(&mutex);
        mutex_unlock(&mutex);
    }
    double ns = ns_per_cycle(start);
    mutex_done(&mutex);
    return ns;
}

int main(int argc, char **argv)
{
    const char             *url   = argc > 1 ? argv[1] : getenv("PAWL_TEST_URL");
    scoped(pool_free) Pool *pool  = NULL;
    Error                   error = {0};
    ErrorCode               code;

    if (!url) {
        fprintf(stderr, "usage: pool_bench URL\n");
        return 2;
    }
    code = pool_new(&(PoolOptions){.conninfo = url}, &pool, &error);
    if (code == OK)
        code = leases_run(pool, &error); /* the first lease connects; a million share that */
    Mono start = clock_mono();
    if (code == OK)
        code = leases_run(pool, &error);
    double ns = ns_per_cycle(start);
    if (code != OK) {
        fprintf(stderr, "pool_bench: %s\n", error.text);
        return 1;
    }
    printf("lease and release: %.0f ns\nlock and unlock:   %.0f ns\n", ns, lock_measure());
    return 0;
}
