/*
 * library.c - the public functions for the pool and transactions: opaque handles over the modules.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/memory.h"
#include "lib/library_internal.h"
#include "pg/tx.h"
#include "sql.h"

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

    pawl->url    = memory_text(url);
    pawl->pool   = pool;
    pawl->sender = sender_new(pool);
    pawl->waker  = waker_new(pool);
    pawl->ledger = ledger_new(pool);
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
    code = pool_new(&options, &pool, &why);
    if (code == OK)
        *ret_pawl = pawl_new(database_url, pool);
    return library_answer(code, &why, error);
}

Pawl *library_enter(Pawl *pawl)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pawl->mutex);

    pawl->calls++;
    return pawl;
}

void library_leave(Pawl *pawl)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pawl->mutex);

    pawl->calls--;
    cond_signal(&pawl->left);
}

void pawl_close(Pawl *pawl)
{
    if (!pawl)
        return;
    mutex_lock(&pawl->mutex);
    while (pawl->calls > 0)
        cond_wait(&pawl->left, &pawl->mutex, deadline_never());
    mutex_unlock(&pawl->mutex);
    ledger_free(pawl->ledger);
    waker_free(pawl->waker);
    sender_free(pawl->sender);
    pool_free(pawl->pool);
    cond_done(&pawl->left);
    mutex_done(&pawl->mutex);
    free(pawl->url);
    free(pawl);
}

PawlStatus pawl_ping(Pawl *pawl, int timeout_ms, PawlError *error)
{
    scoped(library_leave) Pawl *inside = library_enter(pawl);
    scoped(arena_free) Arena   *arena  = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions options = {.name = "ping", .deadline = deadline_in_ms(timeout_ms), .arena = arena, .read_only = true};
    Error     why     = {0};
    int64_t   one;

    ErrorCode code = db_call(pawl->pool, &options, sql_api_ready, DB_NONE, &db_i64_shape, &one, &why);

    return library_answer(code, &why, error);
}

/* ---- transactions ---- */

typedef struct {
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
    PawlTx     mine  = {.tx = tx, .why = reterr, .error = &error};
    PawlStatus status;

    status      = call->body(&mine, call->context);
    call->wakes = mine.wakes;
    return status == PAWL_OK ? OK : refused(&mine, status, reterr);
}

PawlStatus pawl_transaction(Pawl *pawl, const PawlTransaction *given, PawlBody *body, void *context, PawlError *error)
{
    scoped(library_leave) Pawl *inside  = library_enter(pawl);
    scoped(arena_free) Arena   *arena   = arena_new(LIBRARY_ARENA_BYTES);
    TxOptions                   options = {.name       = given->name ? given->name : "transaction",
                                           .deadline   = library_deadline(given->timeout_ms),
                                           .arena      = arena,
                                           .keyed      = given->keyed,
                                           .is_foreign = true};
    Call                        call    = {.body = body, .context = context};
    Error                       why     = {0};
    ErrorCode                   code    = tx_run(pawl->pool, &options, call_body, &call, &why);

    if (code == OK)
        waker_notify_list(pawl->waker, &call.wakes);
    return library_answer(code, &why, error);
}

PawlStatus pawl_query(PawlTx *tx, const char *sql, int count, const char *const *parameters, PawlResult *ret_result)
{
    DbTable   table;
    ErrorCode code = db_table(tx->tx, sql, count, parameters, &table, tx->why);

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
