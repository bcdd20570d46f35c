/*
 * load.h - sends commands: from several threads as fast as they can, or from one at a fixed rate, handled or not.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdint.h>

#include "bench/bench.h"
#include "bench/stopwatch.h"
#include "bus/send.h"
#include "bus/waker.h"

typedef struct {
    BenchDatabase *database;
    const char    *domain; /* NULL: BENCH_DOMAIN */
    int64_t        count;
    int64_t        delay_ms; /* 0: none */
    bool           single;   /* one at a time from each client, through a combiner, instead of in batches */
} Load;

/* An ordinary small command. */
SendItem load_item(const char *payload);
/* Send as many copies of the model in one call. */
must_check ErrorCode load_items_send(const BenchDatabase *database, Arena *arena, const SendItem *model, int count,
                                     SendItem **ret_items, Error *reterr);
/* Returns when all are sent; *ret_us: how long it took. */
must_check ErrorCode load_send(Bench *bench, const Load *load, int64_t *ret_us, Error *reterr);

/* What is due is sent a hundred times a second. */
typedef struct PacedLoad PacedLoad;
struct PacedLoad {
    Bench         *bench;
    BenchDatabase *database;
    Waker         *waker;
    int64_t        rate; /* a second */
    int64_t        ms;   /* how long */
    int64_t        sent;
    /* Called when this much time has passed, again and again; 0: never. */
    int64_t window_ms;
    void (*window)(PacedLoad *paced_load, int64_t elapsed_us);
    void *context; /* of window() */
};

/* Returns when the last one is sent. */
must_check ErrorCode paced_load_run(PacedLoad *paced_load, Error *reterr);

#endif
