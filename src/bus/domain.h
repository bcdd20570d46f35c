/*
 * domain.h - domains as people see them: how many commands each has where, and how long the oldest has been queued.
 *
 * Numbers are exact up to a bound, and estimates above it (sql/bus/depth.sql); `estimated` names the estimates. Processes of a domain D are commands of
 * the domain process:D, which is a row of its own.
 * Threads: any. Ownership: texts live in the arena.
 */
#ifndef BUS_DOMAIN_H
#define BUS_DOMAIN_H

#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/writer.h"
#include "pg/pool.h"
#include "pg/query.h"

#define DOMAIN_LIST_MAX 100

/* oldest_at: when the command that has been queued for longest was queued; 0: none is queued. recent: the numbers of the last five minutes, which stand behind it
 * for tables; NULL, "-", -1: none. pauses, limits: as of pawl.domain_held. */
#define DOMAIN_COLUMNS(X, T)                                      \
    X(T, TEXT, domain)                                            \
    X(T, I64, queued, delayed, parked, running, in_tsq, oldest_s) \
    X(T, TIME, oldest_at)                                         \
    X(T, JSONB, estimated, recent, pauses, limits)                \
    X(T, TEXT, sent_per_s, ended_per_s)                           \
    X(T, I64, wait_p50_ms, wait_p95_ms, run_p50_ms, run_p95_ms)
DB_ROW(Domain, DOMAIN_COLUMNS);

typedef struct {
    const char  *after; /* names above this one; NULL: from the first */
    const char  *order; /* one of domain_orders; NULL: the first */
    int          limit; /* 1..DOMAIN_LIST_MAX */
    const Bound *bound; /* only domains that these patterns have; NULL: all */
} DomainFilter;

/* "name"; "depth": those with most queued commands first, of the domains that have a command which has not ended. Ended by NULL. */
extern const char *const domain_orders[];

/* ERR_INVALID: a limit or an order that does not exist. */
must_check ErrorCode domain_list(Pool *pool, Deadline deadline, Arena *arena, const DomainFilter *filter,
                                 Domain **ret_list, int *ret_count, Error *reterr);
/* A domain and that of its processes, whose name is "" where there is none. ERR_NOT_FOUND: nothing was ever sent to either. */
must_check ErrorCode domain_show(Pool *pool, Deadline deadline, Arena *arena, const char *name, Domain *ret_domain,
                                 Domain *ret_processes, Error *reterr);

/* ---- as JSON, the same for HTTP and the command line ---- */

RowWrite domain_write;
/* With the member "processes". */
void domain_show_write(Writer *writer, const Domain *domain, const Domain *processes);

#endif
