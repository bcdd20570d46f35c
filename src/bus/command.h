/*
 * command.h - reading commands, and decisions of operators about them.
 *
 *     PENDING -> IN_PROGRESS [claim]        IN_PROGRESS -> PENDING  [settle: retry; its lease expired]
 *     IN_PROGRESS -> COMPLETED, FAILED [settle]                IN_PROGRESS -> IN_TSQ [settle: fail; no attempt left]
 *     PENDING, IN_PROGRESS -> CANCELED [command_cancel]        IN_TSQ -> PENDING, CANCELED, COMPLETED [tsq_decide]
 *
 * COMPLETED, FAILED and CANCELED are the end. Threads: any.
 */
#ifndef BUS_COMMAND_H
#define BUS_COMMAND_H

#include <stdint.h>

#include "base/arena.h"
#include "base/bound.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"
#include "pg/pool.h"
#include "pg/query.h"
#include "pg/tx.h"

/* Every status, ended by NULL; a test compares it with what SQL says. */
extern const char *const command_statuses[];
/* The constant of a status, which outlives the row it came in; NULL: it is none of them. */
const char *command_status_constant(const char *status);

#define COMMAND_COLUMNS(X, T)               \
    X(T, I64, id, searched_to)              \
    X(T, UUID, command_id)                  \
    X(T, TEXT, domain, type, status, error) \
    X(T, I32, attempts)                     \
    X(T, TIME, created_at, due_at)
DB_ROW(Command, COMMAND_COLUMNS);

typedef struct {
    const char  *domain, *status, *type; /* NULL: all */
    const char  *since, *until;          /* RFC 3339, of the time of sending, both included; NULL: no limit */
    const char  *batch_id, *command_id, *correlation_id, *order_key; /* NULL: all */
    int64_t      before;                                             /* cursor: ids below this; 0: from the newest */
    int          limit;                                              /* 1 to 1000 */
    const Bound *bound; /* only domains that these patterns have; NULL: all */
} CommandFilter;

/* ERR_INVALID: a status that does not exist. */
must_check ErrorCode command_status_check(const char *status, Error *reterr);
/* One command with its audit, as JSON. domain may be NULL. ERR_NOT_FOUND; ERR_CONFLICT: several domains have this id. */
must_check ErrorCode command_show(Pool *pool, Deadline deadline, Arena *arena, const char *command_id,
                                  const char *domain, const char **ret_json, Error *reterr);
/* The most rows that one call of command_list() reads. */
#define COMMAND_PAGE_ROWS 20000

/* Newest first. *ret_next: where the next page continues, 0: there is none. A page may be short, even empty, and have a next one: a call
 * reads at most COMMAND_PAGE_ROWS rows. */
must_check ErrorCode command_list(Pool *pool, Deadline deadline, Arena *arena, const CommandFilter *filter,
                                  Command **ret_list, int *ret_count, int64_t *ret_next, Error *reterr);
must_check ErrorCode command_count(Pool *pool, Deadline deadline, const CommandFilter *filter, int64_t *ret_count,
                                   Error *reterr);

/* What has not ended, as a worker that drains a domain sees it. parked: behind a command with the same order key. */
#define WORK_LEFT_COLUMNS(X, T) X(T, I64, queued, delayed, parked, leased)
DB_ROW(WorkLeft, WORK_LEFT_COLUMNS);
/* types: ends with NULL; NULL: all. */
must_check ErrorCode work_left(Pool *pool, Deadline deadline, const char *domain, const char *const *types,
                               WorkLeft *ret_left, Error *reterr);

/* The numbers behind ids, for claim and settle; 0 for an id that this domain does not know. */
must_check ErrorCode command_numbers(Pool *pool, Deadline deadline, Arena *arena, const char *domain,
                                     const char *const *ids, int count, int64_t **ret_numbers, Error *reterr);
/* The same with a domain for each id. wish: POOL_URGENT for a heartbeat, POOL_SOON for a settle, 0. */
must_check ErrorCode command_numbers_in(Pool *pool, Deadline deadline, PoolWish wish, Arena *arena,
                                        const char *const *domains, const char *const *ids, int count,
                                        int64_t **ret_numbers, Error *reterr);

/* The domains that have a command of this id, by name. */
must_check ErrorCode command_domains(Pool *pool, Deadline deadline, Arena *arena, const char *command_id,
                                     const char ***ret_names, int *ret_count, Error *reterr);
/* Commands by their numbers, as command_show() gives them. */
#define COMMAND_SHOWN_COLUMNS(X, T) \
    X(T, I64, id)                   \
    X(T, TEXT, value)
DB_ROW(CommandShown, COMMAND_SHOWN_COLUMNS);
/* The first of these, up to the one with which they reach COMMANDS_SHOWN_BYTES, in any order; those that do not exist are left out. */
#define COMMANDS_SHOWN_BYTES ((int64_t)4 << 20)
must_check ErrorCode commands_show(Pool *pool, Deadline deadline, Arena *arena, const int64_t *ids, int count,
                                   const CommandShown **ret_list, int *ret_count, Error *reterr);

/* What came of a decision about one command: "CANCELED", "CANCELING", "PENDING", "COMPLETED", or why nothing was done:
 * "DECIDED" (otherwise), "ENDED", "NOT_IN_TSQ", "NOT_FOUND", "AMBIGUOUS", "COMPENSATING" (a process). The same decision again is no
 * refusal: is_new is false and the rest says who decided what and when. wake: of the call as a whole, in each row: the domains in which it
 * queued commands, for waker_notify_names(). status: the present one of a command about which this call has not decided. */
#define DECISION_COLUMNS(X, T)                                     \
    X(T, I32, ord)                                                 \
    X(T, TEXT, verdict, decision, operator, domains, wake, status) \
    X(T, BOOL, is_new)                                             \
    X(T, TIME, decided_at)
DB_ROW(Decision, DECISION_COLUMNS);

/* Which commands: domains is NULL, or has a domain, or NULL for any, for each id. */
typedef struct {
    const char *const *ids;
    const char *const *domains;
    int                count;
} CommandNames;
/* lock_ms: how long a row that another transaction has locked is waited for, with a connection; then ERR_BUSY. 0: until the deadline. */
must_check ErrorCode command_cancel(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, CommandNames names,
                                    const char *reason, const char *actor, Decision **ret_list, Error *reterr);

typedef enum { TSQ_RETRY, TSQ_CANCEL, TSQ_COMPLETE } TsqAction;
typedef struct {
    TsqAction   action;
    const char *actor;  /* who decided */
    const char *reason; /* NULL: none */
    const char *result; /* TSQ_COMPLETE: JSON or NULL */
} TsqDecision;
must_check ErrorCode tsq_decide(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, CommandNames names,
                                const TsqDecision *decision, Decision **ret_list, Error *reterr);
/* The verdict about one command as an error: OK unless it was refused. ERR_NOT_FOUND, ERR_CONFLICT. noun: "command", or what else it is. */
must_check ErrorCode decision_check(const char *noun, const char *command_id, const Decision *decision, Error *reterr);
/* The verdict, but the present status where the same retry was decided before: the command may have gone on since. */
const char *decision_status(const Decision *decision);
/* One that is OK as JSON, the same for HTTP and the command line: {"command_id": ..., "status": ...}. */
void decision_write(Writer *writer, const char *noun, const char *command_id, const Decision *decision);
/* The rows of a decision, one for each command, as pawl.command_decide returns them. */
must_check ErrorCode decisions_call(Pool *pool, const TxOptions *options, const char *sql, DbArgs args, int count,
                                    Decision **ret_list, Error *reterr);

/* As JSON, the same for HTTP and the command line. */
RowWrite command_write; /* of a Command */

/* ---- a decision as JSON ---- */

/* Rows of every table of decisions; Request has the texts `by` and `reason`. */
#define DECISION_FIELDS(Request)                                                                      \
    {"operator", FIELD_TEXT, offsetof(Request, by), .length_max = 200,                                \
     .help = "who decides, as the client says; the audit shows it after the key's name: shop (ann)"}, \
    {                                                                                                 \
        "reason", FIELD_TEXT, offsetof(Request, reason), .length_max = 2000                           \
    }

typedef struct {
    const char *by, *reason, *result;
} DecisionRequest;
extern const FieldTable decision_table;

#endif
