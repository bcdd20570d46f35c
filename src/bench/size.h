/*
 * size.h - the sizes of commands and transfers: bytes of WAL and of each table with its indexes, before and after.
 *
 * WAL is counted for the whole server, so nothing else should run on it. Tables that are emptied as work goes on keep their
 * space until vacuum has passed, and use it again afterwards: the first round shows what they take, later ones what they
 * still need.
 */
#ifndef BENCH_SIZE_H
#define BENCH_SIZE_H

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
} Size;

/* Of the tables of one schema. */
must_check ErrorCode size_measure(Bench *bench, const BenchDatabase *database, const char *schema, Size *ret_size,
                                  Error *reterr);
/* Figures for each of `count`: WAL, all tables, and each table that changed by a byte for each in this round or did before. */
void size_report(Bench *bench, const char *section, const Size *before, const Size *after, int64_t count);

#endif
