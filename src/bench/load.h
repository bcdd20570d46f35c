/*
 * load.h - sends commands from several threads at the same time.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdint.h>

#include "bench/bench.h"
#include "bus/send.h"

typedef struct {
    BenchDatabase *database;
    const char    *domain; /* NULL: BENCH_DOMAIN */
    int64_t        count;
    int64_t        delay_ms; /* 0: none */
    bool           single;   /* one at a time from each client, through a combiner, instead of in batches */
} Load;

/* An ordinary small command. */
SendItem load_item(const char *payload);
/* Returns when all are sent; *ret_us: how long it took. */
must_check ErrorCode load_send(Bench *bench, const Load *load, int64_t *ret_us, Error *reterr);

#endif
