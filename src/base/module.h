/*
 * module.h - what a module contributes to tables that the whole program reads: metrics and SQLSTATEs.
 *
 * A module defines one Module in its module.c, beside the metrics that its other files count, and joins it with
 * MODULE_JOIN(), before main() or while a library is loaded. So a program has the rows of exactly the modules it is
 * linked with, and no program can forget one. Readers go through the list by index.
 *
 * Threads: joined before threads exist; read from any.
 */
#ifndef BASE_MODULE_H
#define BASE_MODULE_H

#include "base/error.h"
#include "base/metric.h"

#define MODULES_MAX       32
#define MODULE_TABLES_MAX 4

typedef struct {
    const char        *name;
    const MetricTable *metrics[MODULE_TABLES_MAX + 1]; /* NULL: no more */
    const MetricSum   *sums;                           /* a row without a name ends them; NULL: none */
    const MetricStat  *stats;                          /* a row without a measure ends them; NULL: none */
    const SqlState    *states;                         /* a row without a SQLSTATE ends them; NULL: none */
} Module;

/* A second join of a module changes nothing. */
void module_join(const Module *module);
#define MODULE_JOIN(module)                                      \
    __attribute__((constructor)) static void module##_join(void) \
    {                                                            \
        module_join(&(module));                                  \
    }

/* In the order of their names. NULL: no more. */
const Module *module_at(size_t index);
/* The tables of all modules, in the order of their names. NULL: no more. */
const MetricTable *module_metrics(size_t index);
/* Likewise. */
const MetricSum  *module_sum(size_t index);
const MetricStat *module_stat(size_t index);

#endif
