/*
 * library.c - the public functions for the pool and transactions: opaque handles over the modules.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/memory.h"
#include "lib/library_internal.h"
#include "pg/tx.h"
#include "sql.h"

#define PARAMETERS_MAX 65535 /* of the protocol */
#define CLOSE_GRACE_MS 1000

static PawlStatus status_of(ErrorCode code)
{
    switch (code) {
    case OK:
        return PAWL_OK;
    case ERR_NOT_FOUND:
        return PAWL_NOT_FOUND;
    case ERR_BUSY:
    case ERR_TIMEOUT:
    case ERR_RATE:
    case ERR_STOPPING:
        return PAWL_TRY_AGAIN;
    case ERR_UNAVAILABLE:
    case ERR_REFUSED:
        return PAWL_UNAVAILABLE;
    case ERR_UNKNOWN:
        return PAWL_UNKNOWN;
    case ERR_INTERNAL:
        return PAWL_FAILED;
    default:
        return PAWL_REFUSED;
    }
}

PawlStatus library_answer(ErrorCode code, const Error *why, PawlError *error)
{
    PawlStatus status = status_of(code);

    if (error) {
        *error = (PawlError){.status = status};
        if (code != OK) {
            memcpy(error->sqlstate, why->sqlstate, sizeof error->sqlstate);
            snprintf(error->text, sizeof error->text, "%s", why->text);
        }
    }
    return status;
}

Deadline library_deadline(int timeout_ms)
{
    return deadline_in_ms(timeout_ms ? timeout_ms : LIBRARY_TIMEOUT_MS);
}

/* ---- life ---- */

const char *pawl_version(void)
{
    return PAWL_VERSION;
}

/* A library does not write to its program's standard error: what happened is in PawlError. */
static void be_silent(void)
{
    log_set_level(LOG_OFF);
}

static Pawl *pawl_new(const char *url, Pool *pool)
{
    Pawl *pawl = memory_new(1, sizeof *pawl);

    pawl->opener   = getpid();
    pawl->url      = memory_text(url);
    pawl->pool     = pool;
    pawl->sender   = sender_new(pool);
    pawl->waker    = waker_new(pool);
    pawl->ledger   = ledger_new(pool);
    pawl->outcomes = outcome_waits_new(pool);
    mutex_init(&pawl->mutex);
    cond_init(&pawl->left);
    return pawl;
}

PawlStatus pawl_open(const char *database_url, Pawl **ret_pawl, PawlError *error)
{
    static pthread_once_t once    = PTHREAD_ONCE_INIT;
    PoolOptions           options = {.conninfo = database_url, .application_name = LIBRARY_NAME};
    Error                 why     = {0};
    Pool                 *pool;
    ErrorCode             code;

    pthread_once(&once, be_silent);
    *ret_pawl = NULL;
    code      = database_url ? pool_new(&options, &pool, &why)
                             : fail(&why, ERR_INVALID, "database_url must be a url, got NULL");
    if (code == OK)
        *ret_pawl = pawl_new(database_url, pool);
    return library_answer(code, &why, error);
}

ErrorCode library_check(const Pawl *pawl, Error *reterr)
{
    if (!pawl)
        return fail(reterr, ERR_INVALID, "pawl must be what pawl_open() has returned, got NULL");
    if (getpid() != pawl->opener)
        return fail(reterr, ERR_INTERNAL,
                    "opened in process %d, of which this is a child: open the library after fork(), not before",
                    (int)pawl->opener);
    return OK;
}

static _Thread_local Outside *innermost;

void library_go_out(const Pawl *pawl, Outside *ret_outside)
{
    *ret_outside = (Outside){pawl, innermost};
    innermost    = ret_outside;
}

/* Does this thread run a function for a call that uses it? */
static bool is_outside(const Pawl *pawl)
{
    for (const Outside *outside = innermost; outside; outside = outside->outer)
        if (outside->pawl == pawl)
            return true;
    return false;
}

void library_came_back(const Outside *outside)
{
    Error why;

    innermost = outside->outer;
    if (library_check(outside->pawl, &why) == OK)
        return;
    fprintf(stderr, "libpawl: %s; the child returned from a function that pawl had called\n", why.text);
    abort();
}

Pawl *library_enter(Pawl *pawl, int timeout_ms, Error *reterr)
{
    if (library_check(pawl, reterr) != OK)
        return NULL;
    if (timeout_ms < 0) {
        (void)fail(reterr, ERR_INVALID, "timeout_ms must not be negative, got %d", timeout_ms);
        return NULL;
    }

    scoped(mutex_unlock) Mutex *held = mutex_hold(&pawl->mutex);
    Mono                        end  = mono_plus_ms(clock_mono(), timeout_ms ? timeout_ms : LIBRARY_TIMEOUT_MS);

    pawl->calls++;
    if (mono_before(pawl->ends_at, end))
        pawl->ends_at = end;
    return pawl;
}

static void pawl_free(Pawl *pawl)
{
    outcome_waits_free(pawl->outcomes);
    ledger_free(pawl->ledger);
    waker_free(pawl->waker);
    sender_free(pawl->sender);
    pool_free(pawl->pool);
    cond_done(&pawl->left);
    mutex_done(&pawl->mutex);
    free(pawl->url);
    free(pawl);
}

void library_leave(Pawl *pawl)
{
    bool is_last;

    mutex_lock(&pawl->mutex);
    pawl->calls--;
    is_last = pawl->is_closing && pawl->calls == 0;
    cond_signal(&pawl->left);
    mutex_unlock(&pawl->mutex);
    if (is_last)
        pawl_free(pawl);
}

void library_runs_add(Pawl *pawl, int count)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pawl->mutex);

    pawl->runs += count;
    cond_signal(&pawl->left);
}

/* Calls end at their timeouts, but for functions of the caller that do not return. Those keep what they use. false: there are some. */
static bool calls_end(Pawl *pawl)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pawl->mutex);
    Deadline                    last = {mono_plus_ms(pawl->ends_at, CLOSE_GRACE_MS)};

    while (pawl->calls > 0 && cond_wait(&pawl->left, &pawl->mutex, pawl->runs > 0 ? deadline_never() : last))
        ;
    pawl->is_closing = pawl->calls > 0;
    return !pawl->is_closing;
}

/* In a child of fork() it stays as it is: the threads to be joined and the sessions to be ended are the parent's. In a function that pawl
 * called it does too: the call that waits for the function would wait for itself. */
void pawl_close(Pawl *pawl)
{
    Error why;

    if (!pawl || library_check(pawl, &why) != OK || is_outside(pawl))
        return;
    if (calls_end(pawl))
        pawl_free(pawl);
}

PawlStatus pawl_ping(Pawl *pawl, int timeout_ms, PawlError *error)
{
    Error                       why    = {0};
    scoped(library_leave) Pawl *inside = library_enter(pawl, timeout_ms, &why);
    scoped(arena_free) Arena   *arena  = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions options = {.name = "ping", .deadline = library_deadline(timeout_ms), .arena = arena, .read_only = true};
    int64_t   one;
    ErrorCode code = why.code;

    if (inside)
        code = db_call(pawl->pool, &options, sql_api_ready, DB_NONE, &db_i64_shape, &one, &why);
    return library_answer(code, &why, error);
}

/* ---- transactions ---- */

typedef struct {
    Pawl     *pawl;
    PawlBody *body;
    void     *context;
    WakeList  wakes;
} Call;

/* What the body refused by itself, with our own message. */
static ErrorCode refused(const PawlTx *tx, PawlStatus status, Error *reterr)
{
    static const ErrorCode codes[] = {
        [PAWL_REFUSED] = ERR_CONFLICT,        [PAWL_NOT_FOUND] = ERR_NOT_FOUND, [PAWL_TRY_AGAIN] = ERR_BUSY,
        [PAWL_UNAVAILABLE] = ERR_UNAVAILABLE, [PAWL_UNKNOWN] = ERR_INTERNAL,    [PAWL_FAILED] = ERR_INTERNAL};

    if (tx->code != OK && status == status_of(tx->code))
        return tx->code; /* the message was set before */
    if (status < PAWL_REFUSED || status > PAWL_FAILED)
        return fail(reterr, ERR_INTERNAL, "the body returned %d, which is not a PawlStatus", (int)status);
    return fail(reterr, codes[status], "the body rolled back");
}

static ErrorCode call_body(Tx *tx, void *context, Error *reterr)
{
    Call      *call  = context;
    PawlError  error = {0};
    PawlTx     mine  = {.pawl = call->pawl, .tx = tx, .why = reterr, .error = &error};
    Outside    outside;
    PawlStatus status;

    library_go_out(call->pawl, &outside);
    status = call->body(&mine, call->context);
    library_came_back(&outside);
    call->wakes = mine.wakes;
    return status == PAWL_OK ? OK : refused(&mine, status, reterr);
}

static ErrorCode transaction_run(const PawlTransaction *given, Call *call, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(LIBRARY_ARENA_BYTES);
    TxOptions                 options = {.name       = given->name ? given->name : "transaction",
                                         .deadline   = library_deadline(given->timeout_ms),
                                         .arena      = arena,
                                         .keyed      = given->keyed,
                                         .is_foreign = true};

    if (!call->body)
        return fail(reterr, ERR_INVALID, "body must be a function, got NULL");
    TRY(tx_run(call->pawl->pool, &options, call_body, call, reterr));
    waker_notify_list(call->pawl->waker, &call->wakes); /* while the arena has them */
    return OK;
}

PawlStatus pawl_transaction(Pawl *pawl, const PawlTransaction *given, PawlBody *body, void *context, PawlError *error)
{
    static const PawlTransaction defaults;
    const PawlTransaction       *options = given ? given : &defaults;
    Error                        why     = {0};
    scoped(library_leave) Pawl  *inside  = library_enter(pawl, options->timeout_ms, &why);
    Call                         call    = {.pawl = pawl, .body = body, .context = context};
    ErrorCode                    code    = inside ? transaction_run(options, &call, &why) : why.code;

    return library_answer(code, &why, error);
}

/* libpq's refusal of these would look like a lost connection. */
static ErrorCode statement_check(const char *sql, int count, const char *const *parameters, Error *reterr)
{
    if (!sql)
        return fail(reterr, ERR_INVALID, "sql must be a statement, got NULL");
    if (count < 0 || count > PARAMETERS_MAX)
        return fail(reterr, ERR_LIMIT, "a statement can have 0 to %d parameters, got %d", PARAMETERS_MAX, count);
    if (count > 0 && !parameters)
        return fail(reterr, ERR_INVALID, "parameters must be an array of %d texts, got NULL", count);
    return OK;
}

static ErrorCode query(const PawlTx *tx, const char *sql, int count, const char *const *parameters, DbTable *ret_table)
{
    TRY(library_check(tx->pawl, tx->why));
    TRY(statement_check(sql, count, parameters, tx->why));
    return db_table(tx->tx, sql, count, parameters, ret_table, tx->why);
}

PawlStatus pawl_query(PawlTx *tx, const char *sql, int count, const char *const *parameters, PawlResult *ret_result)
{
    DbTable   table;
    ErrorCode code = query(tx, sql, count, parameters, &table);

    if (ret_result)
        *ret_result = (PawlResult){0};
    if (code != OK) {
        tx->code = code;
        return library_answer(code, tx->why, tx->error);
    }
    if (ret_result)
        *ret_result = (PawlResult){table.rows, table.columns, table.values, table.changed};
    return PAWL_OK;
}

const PawlError *pawl_tx_error(const PawlTx *tx)
{
    return tx->error;
}
