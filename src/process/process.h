/*
 * process.h - processes from outside: define types, start, signal, read and list processes, and decide about them.
 *
 *     (nothing) -> PENDING [start]              PENDING -> IN_PROGRESS [a worker claims it]
 *     IN_PROGRESS -> WAITING_FOR_REPLY, WAITING_FOR_ASYNC, WAITING_FOR_RETRY [it is suspended]
 *     WAITING_... -> PENDING [a response, an outcome, a time]     IN_PROGRESS -> PENDING [its lease ran out; its worker stopped]
 *     IN_PROGRESS -> COMPLETED, FAILED | WAITING_FOR_TSQ [no attempt is left]
 *     PENDING, IN_PROGRESS, WAITING_... -> CANCELED [process_cancel]   -> COMPENSATING [process_compensate; a failure; the deadline]
 *     COMPENSATING -> COMPENSATED | WAITING_FOR_TSQ                    WAITING_FOR_TSQ -> PENDING, CANCELED, COMPLETED [operators]
 *
 * COMPLETED, FAILED, CANCELED and COMPENSATED are the end. A process is a command of the bus in the domain "process:DOMAIN"
 * (sql/process), so a start is a send: process_start_item() makes the item, bus/send.h sends it.
 * Threads: any. Ownership: what is returned lives in the arena.
 */
#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/bound.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/writer.h"
#include "bus/command.h"
#include "bus/send.h"
#include "pg/pool.h"
#include "process/definition.h"

#define PROCESS_DOMAIN_PREFIX   "process:" /* "process:shop" is the domain of the bus that has the processes of "shop" */
#define PROCESS_DOMAIN_DEFAULT  "process"
#define PROCESS_DOMAIN_MAX      54 /* bytes */
#define PROCESS_STATE_BYTES_MAX ((size_t)1024 * 1024)
#define PROCESS_ATTEMPTS_MAX    10 /* workers that may die of one activation; failures of steps do not count here */
#define PROCESS_LIST_MAX        1000

/* Every status, ended by NULL; pawl.process_status and process_wait_check in SQL have the same. */
extern const char *const process_statuses[];
must_check ErrorCode     process_status_check(const char *status, Error *reterr);

/* ---- definitions ---- */

#define PROCESS_DEFINED_COLUMNS(X, T) \
    X(T, I32, version)                \
    X(T, BOOL, is_new)
DB_ROW(ProcessDefined, PROCESS_DEFINED_COLUMNS);

/* Pods that run processes listen to it: a new definition has been stored in the domain that is the payload. */
#define DEFINITION_CHANNEL "pawl_definition"

/* Store the file of a definition as the next version of its type, and notify pods; is_new false: it is the newest version already. lock_ms: as in
 * bus/command.h. */
must_check ErrorCode process_define(Pool *pool, Deadline deadline, int lock_ms, const Definition *definition,
                                    const char *author, ProcessDefined *ret_defined, Error *reterr);
void                 process_defined_write(Writer *writer, const Definition *definition, const ProcessDefined *defined);

/* Why nothing runs processes of this type, as a sentence; NULL: a file defines it, or a program runs it. */
must_check ErrorCode process_type_note(Pool *pool, Deadline deadline, Arena *arena, const char *domain,
                                       const char *type, const char **ret_note, Error *reterr);

#define PROCESS_VERSION_COLUMNS(X, T) \
    X(T, I64, id)                     \
    X(T, I32, version)                \
    X(T, TEXT, domain, type, author)  \
    X(T, TIME, created_at)
DB_ROW(ProcessVersion, PROCESS_VERSION_COLUMNS);
typedef struct {
    const char  *domain, *type; /* NULL: all */
    int64_t      version;       /* 0: all */
    int64_t      before;        /* cursor; 0: from the newest */
    int          limit;         /* 1 to PROCESS_LIST_MAX */
    const Bound *bound;         /* only domains that these patterns have; NULL: all */
} ProcessVersionFilter;

/* Versions of definitions, newest first. */
must_check ErrorCode process_versions(Pool *pool, Deadline deadline, Arena *arena, const ProcessVersionFilter *filter,
                                      ProcessVersion **ret_list, int *ret_count, Error *reterr);
void                 process_version_write(Writer *writer, const ProcessVersion *version);
/* Its file. */
must_check ErrorCode process_version_source(Pool *pool, Deadline deadline, Arena *arena, const ProcessVersion *version,
                                            const char **ret_source, Error *reterr);

/* ---- start ---- */

/* process_id, domain and state may be NULL. ERR_INVALID, ERR_LIMIT name the field. */
must_check ErrorCode process_start_item(Arena *arena, const char *type, const char *state, const char *process_id,
                                        const char *domain, SendItem *ret_item, Error *reterr);
/* ERR_INVALID, ERR_LIMIT: the payload of such an item is no state. NULL is {}. */
must_check ErrorCode process_state_check(const char *state, Error *reterr);
/* The deadline of such an item: how long from when it is due ("2h"), or a time (MOMENT_LENIENT of base/moment.h);
 * on_deadline: a word of failure_actions, what happens then. Both may be NULL: those of the definition. ERR_INVALID names
 * the field. */
must_check ErrorCode process_start_deadline(Arena *arena, const char *deadline, const char *on_deadline, SendItem *item,
                                            Error *reterr);

/* ---- read ---- */

/* Which process; domain NULL: the one that has it. */
typedef struct {
    const char *id, *domain;
} ProcessName;

/* One process with its steps, responses and audit, as JSON. ERR_NOT_FOUND; ERR_CONFLICT: several domains have this id. */
must_check ErrorCode process_show(Pool *pool, Deadline deadline, Arena *arena, ProcessName name, const char **ret_json,
                                  Error *reterr);

#define PROCESS_COLUMNS(X, T)                     \
    X(T, I64, id, last)                           \
    X(T, UUID, process_id)                        \
    X(T, TEXT, domain, type, status, step, error) \
    X(T, TIME, created_at)
DB_ROW(Process, PROCESS_COLUMNS);

typedef struct {
    const char  *domain, *type, *status, *step; /* NULL: all */
    const char  *text;                          /* contained in the state; NULL: any */
    int64_t      older_ms;                      /* started at least so long ago; 0: any */
    int64_t      before;                        /* cursor; 0: from the newest */
    int          limit;                         /* 1 to PROCESS_LIST_MAX */
    const Bound *bound;                         /* only domains that these patterns have; NULL: all */
} ProcessFilter;

/* Newest first. *ret_next: where the next page continues, 0: there is none. A page may be short, even empty, and have a next one: a call
 * reads a bounded number of processes. */
must_check ErrorCode process_list(Pool *pool, Deadline deadline, Arena *arena, const ProcessFilter *filter,
                                  Process **ret_list, int *ret_count, int64_t *ret_next, Error *reterr);
RowWrite             process_row_write; /* of a Process */

/* ---- responses ---- */

typedef struct {
    const char *name;
    const char *payload; /* JSON; NULL: {} */
    const char *key;     /* one response per process, name and key */
    const char *actor;
    const char *step; /* the wait that it answers, as it is shown: "approval[2]"; NULL: any of this name */
} ProcessSignal;

/* verdict: RESUMED, STORED (it does not wait for it, or for more), STORED_UNEXPECTED (no wait of its definition takes this name), REPEATED (the key
 * is known), LATE (it has ended, or the wait that it names; its state was patched). first: the verdict when the key was new.
 * expected: of STORED_UNEXPECTED, the names that waits take, separated by spaces; NULL: any.
 * wake: the domain of the bus whose workers should be woken; NULL: none. */
#define PROCESS_SIGNALED_COLUMNS(X, T)                 \
    X(T, TEXT, verdict, wake, first, expected, domain) \
    X(T, JSONB, started)
DB_ROW(ProcessSignaled, PROCESS_SIGNALED_COLUMNS);

/* lock_ms: as in bus/command.h. ERR_INVALID, ERR_LIMIT, ERR_NOT_FOUND, ERR_CONFLICT. */
must_check ErrorCode process_signal(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, ProcessName name,
                                    const ProcessSignal *signal, ProcessSignaled *ret_signaled, Error *reterr);
/* The name among the expected ones that the sender may have meant; NULL: none is near, or the name was expected. */
const char *process_signal_nearest(Arena *arena, const char *name, const ProcessSignaled *signaled);

/* ---- decisions ---- */

typedef enum { PROCESS_RETRY, PROCESS_CANCEL, PROCESS_COMPENSATE, PROCESS_COMPLETE } ProcessVerb;
typedef struct {
    ProcessVerb action;
    const char *actor, *reason; /* reason may be NULL */
    const char *from;           /* RETRY: run again from this step; NULL: from the one that failed */
    const char *result;         /* COMPLETE: JSON; NULL: null */
} ProcessDecision;

/* A Decision for each (bus/command.h), with the noun "process". */
must_check ErrorCode process_decide(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, CommandNames names,
                                    const ProcessDecision *decision, Decision **ret_list, Error *reterr);

/* ---- versions ---- */

/* verdict: "MOVED", or why it was not: "RUNNING" (an activation runs; try again), "DIFFERS" (reason: the first step that differs), "OLDER",
 * "CODE" (it has no definition), "NO_VERSION", "ENDED", "NOT_FOUND", "LOCKED" (by another transaction; try again). operator and moved_at: who moved it to this version, also when it was before. */
#define PROCESS_MOVED_COLUMNS(X, T)                \
    X(T, I32, ord, from_version)                   \
    X(T, TEXT, verdict, reason, operator, domains) \
    X(T, BOOL, is_new)                             \
    X(T, TIME, moved_at)
DB_ROW(ProcessMoved, PROCESS_MOVED_COLUMNS);

#define PROCESS_VERSION_MAX 2147483647
/* Let processes go on with a newer version of their definition, if what they have recorded means the same there. A verdict for each; at most
 * PROCESS_LIST_MAX. */
must_check ErrorCode process_move(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, CommandNames names,
                                  int version, const char *actor, const char *reason, ProcessMoved **ret_list,
                                  Error *reterr);
/* The verdict as an error: OK if it has this version. ERR_NOT_FOUND, ERR_CONFLICT, ERR_BUSY. */
must_check ErrorCode process_moved_check(const char *process_id, int version, const ProcessMoved *moved, Error *reterr);
/* {"process_id", "version", "from_version", "operator", "moved_at"} */
void process_moved_write(Writer *writer, const char *process_id, int version, const ProcessMoved *moved);

#endif
