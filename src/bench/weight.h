/*
 * weight.h - what commands and transfers weigh: bytes of WAL and of each table with its indexes, before and after.
 *
 * WAL is counted for the whole server, so nothing else should run on it. Tables that are emptied as work goes on keep their
 * space until vacuum has passed, and use it again afterwards: the first round shows what they take, later ones what they
 * still need.
 */
#ifndef BENCH_WEIGHT_H
#define BENCH_WEIGHT_H

#include <stdint.h>

#include "bench/bench.h"

typedef struct {
    const char *name;
    int64_t     bytes;
} TableWeight;

typedef struct {
    int64_t      wal;
    TableWeight *tables; /* by name */
    int          count;
} Weight;

/* Of the tables of one schema. */
must_check ErrorCode weight_take(Bench *bench, const Place *place, const char *schema, Weight *ret_weight,
                                 Error *reterr);
/* Figures for each of `count`: WAL, all tables, and each table that changed by a byte for each in this round or did before. */
void weight_report(Bench *bench, const char *section, const Weight *before, const Weight *after, int64_t count);

#endif
