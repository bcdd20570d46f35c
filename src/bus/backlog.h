/*
 * backlog.h - how many commands are queued and for how long: read from the database every few seconds and put into the metrics.
 *
 * A queue position is a number, not a time. The age of a command that was delayed or requeued follows from samples kept here: the
 * last allocated position, once a minute, for a day. So the reported age is at most the true one, and a monitor that has just
 * started reports none for such commands.
 *
 * While an old snapshot is held, a call reads the dead entries of everything that was claimed since. Calls that take more than
 * BACKLOG_CHEAP_US are made less often, at most 1/BACKLOG_SHARE of the time.
 * Threads: one per Backlog.
 */
#ifndef BUS_BACKLOG_H
#define BUS_BACKLOG_H

#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "pg/pool.h"

#define BACKLOG_MARK_MS  60000
#define BACKLOG_MARKS    1440
#define BACKLOG_SHARE    20
#define BACKLOG_CHEAP_US 50000

typedef struct {
    int64_t allocated;
    Mono    at;
} BacklogMark;

/* Begin with zeros. */
typedef struct {
    BacklogMark marks[BACKLOG_MARKS]; /* oldest first */
    int         count;
    Mono        pause_until;
    char        oldest_domain[64];  /* of the command that has been queued for longest; "": none is queued */
    char        deepest_domain[64]; /* that has most queued commands; "": none is queued */
    int64_t     deepest;            /* how many, about */
} Backlog;

/* Query the database, unless calls are paused, and set bus_metrics.ready, the gauges after it, bus_depths,
 * and the domains that have the oldest and the most. */
must_check ErrorCode backlog_step(Pool *pool, Deadline deadline, Backlog *backlog, Error *reterr);

/* ---- the memory by itself, without a database ---- */

/* The numbers have got this far; kept if the last mark is old enough. */
void backlog_mark(Backlog *backlog, int64_t allocated, Mono now);
/* How long ago at least this number was allocated. */
int64_t backlog_age_ms(const Backlog *backlog, int64_t number, Mono now);

#endif
