/*
 * dead_letter.c - asks the functions of sql/bus/dead_letter.sql; what may happen to a letter is decided there.
 *
 * A try with a handler is one transaction: lock the letter by its lease, run the handler, settle. So effect and outcome commit
 * together, no other pod claims a letter while its transaction is open, and a lost commit is resolved by reading the letter again.
 * A try with a call has no transaction while the call is under way: the lease alone keeps other pods off.
 */
#include "bus/dead_letter.h"

#include <assert.h>
#include <string.h>

#include "bus/answers.h"
#include "bus/metric.h"
#include "pg/tx.h"
#include "sql.h"

#define TRIES_MAX       3
#define DELAY_MS        (5 * 60 * 1000)
#define LEASE_MS        (60 * 1000)
#define REPORT_MS       5000 /* to report the outcome of a try, after its own time */
#define TRY_MS_MIN      500 /* with less left in a turn no letter is begun: the try would count and could not succeed */
#define LIST_MAX        1000
#define STEP_LETTERS    100 /* so that a turn ends, however fast letters fall due */
#define ARENA_BYTES_MAX ((size_t)64 << 20)

const char *const dead_letter_statuses[] = {"pending", "retrying", "failed", "resolved", NULL};

static const DbColumn dead_letter_columns[] = {DEAD_LETTER_COLUMNS(DB_COLUMNS, DeadLetter)};
static const DbShape  dead_letter_shape     = {"dead letter", dead_letter_columns, COUNT(dead_letter_columns),
                                               sizeof(DeadLetter)};

#define CLAIMED_COLUMNS(X, T)                 \
    X(T, I64, id, lease)                      \
    X(T, TEXT, operation_type, operation_key) \
    X(T, JSONB, operation_data)
DB_ROW(ClaimedCommand, CLAIMED_COLUMNS);
DB_SHAPE(claimed, ClaimedCommand, CLAIMED_COLUMNS);

#define SETTLED_COLUMNS(X, T) \
    X(T, BOOL, settled)       \
    X(T, TEXT, status)
DB_ROW(Settled, SETTLED_COLUMNS);
DB_SHAPE(settled, Settled, SETTLED_COLUMNS);

#define MOVED_COLUMNS(X, T) \
    X(T, BOOL, moved)       \
    X(T, TEXT, status)
DB_ROW(Moved, MOVED_COLUMNS);
DB_SHAPE(moved, Moved, MOVED_COLUMNS);

/* PostgreSQL's own code where it spoke, else the stable name of ours. */
static const char *error_code_text(const Error *error)
{
    return error->sqlstate[0] ? error->sqlstate : error_type(error);
}

/* ---- put and read ---- */

ErrorCode dead_letter_put(Pool *pool, Deadline deadline, const DeadLetterNew *letter, int64_t *ret_id, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_MAX);
    TxOptions   options             = {.name = "dead_letter_put", .deadline = deadline, .arena = arena, .keyed = true};
    const char *message = letter->why->text, *code = error_code_text(letter->why);

    TRY(db_call(pool, &options, sql_bus_dead_letter_put,
                DB_ARGS(db_texts(arena, &letter->type, 1), db_texts(arena, &letter->key, 1),
                        db_jsonbs(arena, &letter->data, 1), db_texts(arena, &message, 1), db_texts(arena, &code, 1),
                        db_i32(letter->delay_ms ? letter->delay_ms : DELAY_MS)),
                &db_i64_shape, ret_id, reterr));
    return OK;
}

static bool status_is_known(const char *status)
{
    for (const char *const *known = dead_letter_statuses; *known; known++)
        if (strcmp(*known, status) == 0)
            return true;
    return false;
}

ErrorCode dead_letter_status_check(const char *status, Error *reterr)
{
    if (status && !status_is_known(status))
        return fail(reterr, ERR_INVALID, "status must be pending, retrying, failed or resolved, got \"%.60s\"", status);
    return OK;
}

ErrorCode dead_letter_list(Pool *pool, Deadline deadline, Arena *arena, const DeadLetterFilter *filter,
                           DeadLetter **ret_list, int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "dead_letter_list", .deadline = deadline, .arena = arena, .read_only = true};
    int64_t   before  = filter->before > 0 ? filter->before : INT64_MAX;
    void     *rows;

    TRY(dead_letter_status_check(filter->status, reterr));
    if (filter->limit < 1 || filter->limit > LIST_MAX)
        return fail(reterr, ERR_INVALID, "limit must be an integer from 1 to %d, got %d", LIST_MAX, filter->limit);
    if (filter->status)
        TRY(db_call_many(pool, &options, sql_bus_dead_letter_list,
                         DB_ARGS(db_text(filter->status), db_text(filter->type), db_i64(before), db_i32(filter->limit)),
                         &dead_letter_shape, &rows, ret_count, reterr));
    else
        TRY(db_call_many(pool, &options, sql_bus_dead_letter_list_open,
                         DB_ARGS(db_text(filter->type), db_i64(before), db_i32(filter->limit)), &dead_letter_shape,
                         &rows, ret_count, reterr));
    *ret_list = rows;
    return OK;
}

/* The same code; the words name the letter. */
static ErrorCode not_found(int64_t id, ErrorCode code, Error *reterr)
{
    return code == ERR_NOT_FOUND ? fail(reterr, code, "dead letter %lld not found", (long long)id) : code;
}

ErrorCode dead_letter_find(Pool *pool, Deadline deadline, Arena *arena, int64_t id, DeadLetter *ret_letter,
                           Error *reterr)
{
    TxOptions options = {.name = "dead_letter_find", .deadline = deadline, .arena = arena, .read_only = true};

    return not_found(id,
                     db_call(pool, &options, sql_bus_dead_letter_find, DB_ARGS(db_i64(id)), &dead_letter_shape,
                             ret_letter, reterr),
                     reterr);
}

/* ---- by hand ---- */

typedef struct {
    int64_t    id;
    DeadLetter letter;
} RetryCall;

static ErrorCode retry_body(Tx *tx, void *context, Error *reterr)
{
    RetryCall *call = context;
    Moved      moved;

    TRY(db_one(tx, sql_bus_dead_letter_retry, DB_ARGS(db_i64(call->id)), &moved_shape, &moved, reterr));
    if (!moved.moved && moved.status)
        return fail(reterr, ERR_CONFLICT, "dead letter is %s: only a pending or failed one can be retried",
                    moved.status);
    return db_one(tx, sql_bus_dead_letter_find, DB_ARGS(db_i64(call->id)), &dead_letter_shape, &call->letter, reterr);
}

ErrorCode dead_letter_retry(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, int64_t id,
                            DeadLetter *ret_letter, Error *reterr)
{
    /* Keyed by its id: making it due twice is making it due. */
    TxOptions options = {
        .name = "dead_letter_retry", .deadline = deadline, .lock_ms = lock_ms, .arena = arena, .keyed = true};
    RetryCall call = {.id = id};

    TRY(not_found(id, tx_run(pool, &options, retry_body, &call, reterr), reterr));
    *ret_letter = call.letter;
    return OK;
}

ErrorCode dead_letter_delete(Pool *pool, Deadline deadline, int lock_ms, int64_t id, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_MAX);
    TxOptions options = {.name = "dead_letter_delete", .deadline = deadline, .lock_ms = lock_ms, .arena = arena};
    int64_t   deleted;

    TRY(db_call(pool, &options, sql_bus_dead_letter_delete, DB_ARGS(db_i64(id)), &db_i64_shape, &deleted, reterr));
    return not_found(id, deleted == 1 ? OK : ERR_NOT_FOUND, reterr);
}

/* ---- one turn of the job ---- */

/* One try at one letter. */
typedef struct {
    const DeadLetterTypes *types;
    const DeadLetterType  *type;
    const ClaimedCommand  *letter;
    bool                   lost; /* the lease is not ours any more: nothing to do and nothing to report */
} Try;

/* The usual time, or longer if what was called asked for that. */
static int delay_ms(const Try *try, const Error *why)
{
    return why && why->retry_ms > try->types->delay_ms ? why->retry_ms : try->types->delay_ms;
}

static ErrorCode settle(Tx *tx, const Try *try, bool worked, const Error *why, Error *reterr)
{
    Settled settled;

    TRY(db_one(tx, sql_bus_dead_letter_settle,
               DB_ARGS(db_i64(try->letter->id), db_i64(try->letter->lease), db_bool(worked),
                       db_text(why ? why->text : NULL), db_text(why ? error_code_text(why) : NULL),
                       db_i32(try->types->tries_max), db_i32(delay_ms(try, why))),
               &settled_shape, &settled, reterr));
    return settled.settled ? OK : fail(reterr, ERR_CONFLICT, "another pod has the dead letter");
}

/*
 * A handler's own failure, a webhook that is down say, may have a code that tx_run takes for the database's and answers
 * with another run. So only what came from the database keeps its code; the error keeps the handler's for the letter.
 */
static ErrorCode handler_run(Tx *tx, const Try *try, Error *reterr)
{
    const ClaimedCommand *letter = try->letter;
    ErrorCode code = try->type->handler(tx, letter->operation_key, letter->operation_data, try->type->context, reterr);

    return code == OK || reterr->sqlstate[0] || !conn_is_good(tx->conn) ? code : ERR_CONFLICT;
}

static ErrorCode try_body(Tx *tx, void *context, Error *reterr)
{
    Try                  *try    = context;
    const ClaimedCommand *letter = try->letter;
    const char           *status;

    TRY(db_get_text(tx, sql_bus_dead_letter_hold, DB_ARGS(db_i64(letter->id), db_i64(letter->lease)), &status, reterr));
    try->lost = status == NULL;
    if (try->lost)
        return fail(reterr, ERR_CONFLICT, "another pod has the dead letter");
    if (strcmp(status, "resolved") == 0)
        return OK; /* an earlier run of this body committed, and its response was lost */
    TRY(handler_run(tx, try, reterr));
    return settle(tx, try, /* worked= */ true, /* why= */ NULL, reterr);
}

typedef struct {
    const Try   *try;
    const Error *why; /* NULL: it worked */
} Report;

/* Keyed by the lease: the second time it finds nothing to settle. */
static ErrorCode report_body(Tx *tx, void *context, Error *reterr)
{
    const Report *report = context;
    ErrorCode     code   = settle(tx, report->try, /* worked= */ !report->why, report->why, reterr);

    return code == ERR_CONFLICT ? OK : code;
}

static const DeadLetterType *type_find(const DeadLetterTypes *types, const char *name)
{
    for (int i = 0; i < types->count; i++)
        if (strcmp(types->list[i].type, name) == 0)
            return &types->list[i];
    return NULL;
}

/* A try ends early enough for its report to come within the lease. */
static Deadline try_deadline(const DeadLetterTypes *types, Deadline deadline)
{
    int reserve_ms = types->lease_ms / 2 < REPORT_MS ? types->lease_ms / 2 : REPORT_MS;

    return deadline_sooner(deadline, deadline_in_ms(types->lease_ms - reserve_ms));
}

/* With time of its own: a try that used up the time of the whole turn would otherwise be counted and its reason lost. */
static ErrorCode report(Pool *pool, Arena *arena, const Try *try, const Error *why, Error *reterr)
{
    TxOptions options = {.name     = "dead_letter_report",
                         .deadline = deadline_in_ms(REPORT_MS),
                         .arena    = arena,
                         .keyed    = true};

    metric_add(why ? &bus_metrics.dead_letter_retry_failed : &bus_metrics.dead_letter_retry_ok, 1);
    return tx_run(pool, &options, report_body, &(Report){try, why}, reterr);
}

static ErrorCode letter_call(Pool *pool, Deadline deadline, Arena *arena, const Try *try, Error *reterr)
{
    const ClaimedCommand *letter = try->letter;
    Deadline              until  = try_deadline(try->types, deadline);
    Error                 why    = {0};
    ErrorCode code = try->type->call(until, letter->operation_key, letter->operation_data, try->type->context, &why);

    return report(pool, arena, try, code == OK ? NULL : &why, reterr);
}

/* A handler's failure is not ours: it is reported to the letter. Ours is not to be able to report it. */
static ErrorCode letter_try(Pool *pool, Deadline deadline, const DeadLetterTypes *types, const ClaimedCommand *letter,
                            Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_MAX);
    Deadline                  until   = try_deadline(types, deadline);
    TxOptions                 options = {
                        .name = "dead_letter_try", .deadline = until, .arena = arena, .keyed = true, .lock_once = true};
    Try   try = {.types = types, .type = type_find(types, letter->operation_type), .letter = letter};
    Error why = {0};

    assert(try.type); /* only letters of these types are claimed */
    if (try.type->call)
        return letter_call(pool, deadline, arena, &try, reterr);
    if (tx_run(pool, &options, try_body, &try, &why) == OK) {
        metric_add(&bus_metrics.dead_letter_retry_ok, 1);
        return OK;
    }
    return try.lost ? OK : report(pool, arena, &try, &why, reterr);
}

static DbArg type_names(Arena *arena, const DeadLetterTypes *types)
{
    const char **names = arena_array(arena, const char *, types->count);

    for (int i = 0; i < types->count; i++)
        names[i] = types->list[i].type;
    return db_texts(arena, names, types->count);
}

ErrorCode dead_letter_next(Pool *pool, Deadline deadline, DeadLetterTypes types, int *ret_ms, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_MAX);
    TxOptions options = {.name = "dead_letter_next", .deadline = deadline, .arena = arena, .read_only = true};
    int64_t   ms;

    TRY(db_call(pool, &options, sql_bus_dead_letter_next, DB_ARGS(type_names(arena, &types)), &db_i64_shape, &ms,
                reterr));
    *ret_ms = ms > 0 ? (int)ms : 0;
    return OK;
}

/* NULL: nothing is due. */
static ErrorCode claim(Pool *pool, Deadline deadline, Arena *arena, const DeadLetterTypes *types,
                       ClaimedCommand **ret_letter, Error *reterr)
{
    /* Run again if its response is lost: what it had claimed is claimed again when the lease expires. */
    TxOptions options = {.name = "dead_letter_claim", .deadline = deadline, .arena = arena, .keyed = true};
    void     *rows;
    int       count;

    TRY(db_call_many(pool, &options, sql_bus_dead_letter_claim,
                     DB_ARGS(type_names(arena, types), db_i32(1), db_i32(types->lease_ms), db_i32(types->tries_max)),
                     &claimed_shape, &rows, &count, reterr));
    *ret_letter = count ? rows : NULL;
    return OK;
}

static DeadLetterTypes types_with_defaults(DeadLetterTypes types)
{
    types.tries_max = types.tries_max ? types.tries_max : TRIES_MAX;
    types.delay_ms  = types.delay_ms ? types.delay_ms : DELAY_MS;
    types.lease_ms  = types.lease_ms ? types.lease_ms : LEASE_MS;
    return types;
}

ErrorCode dead_letter_step(Pool *pool, Deadline deadline, DeadLetterTypes types, int *ret_tried, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_MAX);
    int                       tried = 0;

    types = types_with_defaults(types);
    for (; tried < STEP_LETTERS && deadline_left_ms(deadline) >= TRY_MS_MIN; tried++) {
        ClaimedCommand *letter = NULL;

        arena_reset(arena);
        TRY(claim(pool, deadline, arena, &types, &letter, reterr));
        if (!letter)
            break;
        TRY(letter_try(pool, deadline, &types, letter, reterr));
    }
    *ret_tried = tried;
    return OK;
}

void dead_letter_write(Writer *writer, const void *letter)
{
    writer_row(writer, &answer_letter, letter);
}
