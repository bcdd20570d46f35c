/*
 * gate.h - operators pause and limit domains (ADR 52); sql/bus/gate.sql decides.
 *
 * Each decision may be repeated: it changes nothing more.
 * Threads: any. Ownership: texts live in the arena.
 */
#ifndef BUS_GATE_H
#define BUS_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"
#include "pg/pool.h"
#include "pg/query.h"

#define LIMIT_RUNNING_MAX 100000
#define LIMIT_RATE_MAX    1000000
#define PAUSE_TYPES_MAX   100

/* domain: its own, or that of its processes. type: "*" is the whole domain. */
#define DOMAIN_PAUSE_COLUMNS(X, T)             \
    X(T, TEXT, domain, type, reason, operator) \
    X(T, TIME, at)
DB_ROW(DomainPause, DOMAIN_PAUSE_COLUMNS);

/* 0 is what the limit does not set; running_now -1: it does not count what runs. */
#define DOMAIN_LIMIT_COLUMNS(X, T) \
    X(T, TEXT, type)               \
    X(T, BOOL, per_key)            \
    X(T, I64, running, rate, period_s, burst, running_now)
DB_ROW(DomainLimit, DOMAIN_LIMIT_COLUMNS);

/* Who decides and why; reason NULL: none. lock_ms: as in bus/command.h. */
typedef struct {
    const char *domain, *by, *reason;
    int         lock_ms;
} GateDecision;

/* Pause or resume a domain (types NULL), or types. *ret_wake: domains to notify, joined by commas; NULL: none. */
must_check ErrorCode domain_pause(Pool *pool, Deadline deadline, Arena *arena, const GateDecision *decision,
                                  const char *const *types, int count, const char **ret_wake, Error *reterr);
must_check ErrorCode domain_resume(Pool *pool, Deadline deadline, Arena *arena, const GateDecision *decision,
                                   const char *const *types, int count, const char **ret_wake, Error *reterr);
must_check ErrorCode domain_pauses(Pool *pool, Deadline deadline, Arena *arena, const char *domain,
                                   DomainPause **ret_list, int *ret_count, Error *reterr);

/* Set a limit in the place of the one of the same type and per_key; type NULL: the domain's. period_s: 1 or 60. */
must_check ErrorCode domain_limit_set(Pool *pool, Deadline deadline, Arena *arena, const GateDecision *decision,
                                      const DomainLimit *limit, const char **ret_wake, Error *reterr);
/* Remove the limits of a type; NULL: all. */
must_check ErrorCode domain_limit_remove(Pool *pool, Deadline deadline, Arena *arena, const GateDecision *decision,
                                         const char *type, const char **ret_wake, Error *reterr);
must_check ErrorCode domain_limits(Pool *pool, Deadline deadline, Arena *arena, const char *domain,
                                   DomainLimit **ret_list, int *ret_count, Error *reterr);
/* "100/s", "600/m"; NULL: the limit has no rate. */
const char *limit_rate_print(const DomainLimit *limit, Arena *arena);
/* The same back. ERR_INVALID says what is right. */
must_check ErrorCode limit_rate_read(const char *text, DomainLimit *limit, Error *reterr);

/* ---- as JSON, the same for HTTP and the command line ---- */

typedef struct {
    ReaderArray types;
    const char *reason, *by;
} PauseRequest;
extern const FieldTable pause_table;

typedef struct {
    const char *type, *reason, *by;
    int64_t     running, burst, rate_per_m;
    double      rate_per_s;
    bool        has_rate_per_s, per_key;
} LimitRequest;
extern const FieldTable limit_table;
must_check ErrorCode    limit_request_take(const LimitRequest *request, DomainLimit *ret_limit, Error *reterr);

RowWrite domain_limit_write, domain_pause_write;

#endif
