/*
 * library.c - the public front: opaque handles and plain words over the rooms behind it.
 */
#include "pawl/pawl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "pg/pool.h"
#include "pg/tx.h"
#include "sql.h"

#define TIMEOUT_MS  10000
#define ARENA_BYTES ((size_t)256 << 20)

struct Pawl {
    Pool *pool;
};

struct PawlTx {
    Tx        *tx;
    ErrorCode  code; /* of the last statement that failed */
    Error     *why;
    PawlError *error;
};

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

static PawlStatus answer(ErrorCode code, const Error *why, PawlError *error)
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

const char *pawl_version(void)
{
    return PAWL_VERSION;
}

/* A library does not speak for its program: what happened is in PawlError. */
static void be_silent(void)
{
    log_set_level(LOG_OFF);
}

PawlStatus pawl_open(const char *database_url, Pawl **ret_pawl, PawlError *error)
{
    static pthread_once_t once    = PTHREAD_ONCE_INIT;
    PoolOptions           options = {.conninfo = database_url, .application_name = "libpawl"};
    Error                 why     = {0};
    Pool                 *pool;
    ErrorCode             code;

    pthread_once(&once, be_silent);
    code = pool_new(&options, &pool, &why);
    if (code == OK) {
        Pawl *pawl = malloc(sizeof *pawl);

        if (!pawl)
            abort();
        pawl->pool = pool;
        *ret_pawl  = pawl;
    }
    return answer(code, &why, error);
}

void pawl_close(Pawl *pawl)
{
    if (!pawl)
        return;
    /* Threads that are still inside a call would use what we free: wait for them. */
    pool_drain(pawl->pool, deadline_never());
    pool_free(pawl->pool);
    free(pawl);
}

static ErrorCode ping(Tx *tx, void *context, Error *reterr)
{
    return db_get_i64(tx, sql_app_ready, DB_NONE, context, reterr);
}

PawlStatus pawl_ping(Pawl *pawl, int timeout_ms, PawlError *error)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES);
    TxOptions options = {.name = "ping", .deadline = deadline_in_ms(timeout_ms), .arena = arena, .read_only = true};
    Error     why     = {0};
    int64_t   one;

    return answer(tx_run(pawl->pool, &options, ping, &one, &why), &why, error);
}

/* ---- transactions ---- */

typedef struct {
    PawlBody *body;
    void     *context;
} Call;

/* What the body refused by itself, in the words of the house. */
static ErrorCode refused(const PawlTx *tx, PawlStatus status, Error *reterr)
{
    static const ErrorCode codes[] = {
        [PAWL_REFUSED] = ERR_CONFLICT,        [PAWL_NOT_FOUND] = ERR_NOT_FOUND, [PAWL_TRY_AGAIN] = ERR_BUSY,
        [PAWL_UNAVAILABLE] = ERR_UNAVAILABLE, [PAWL_UNKNOWN] = ERR_INTERNAL,    [PAWL_FAILED] = ERR_INTERNAL};

    if (tx->code != OK && status == status_of(tx->code))
        return tx->code; /* the words are there already */
    if (status < PAWL_REFUSED || status > PAWL_FAILED)
        return fail(reterr, ERR_INTERNAL, "the body returned %d, which is no status", (int)status);
    return fail(reterr, codes[status], "the body rolled back");
}

static ErrorCode call_body(Tx *tx, void *context, Error *reterr)
{
    Call      *call  = context;
    PawlError  error = {0};
    PawlTx     mine  = {.tx = tx, .why = reterr, .error = &error};
    PawlStatus status;

    status = call->body(&mine, call->context);
    return status == PAWL_OK ? OK : refused(&mine, status, reterr);
}

PawlStatus pawl_transaction(Pawl *pawl, const PawlTransaction *given, PawlBody *body, void *context, PawlError *error)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES);
    TxOptions                 options = {.name     = given->name ? given->name : "transaction",
                                         .deadline = deadline_in_ms(given->timeout_ms ? given->timeout_ms : TIMEOUT_MS),
                                         .arena    = arena,
                                         .keyed    = given->keyed};
    Error                     why     = {0};

    return answer(tx_run(pawl->pool, &options, call_body, &(Call){body, context}, &why), &why, error);
}

PawlStatus pawl_query(PawlTx *tx, const char *sql, int count, const char *const *parameters, PawlResult *ret_result)
{
    DbTable   table;
    ErrorCode code = db_table(tx->tx, sql, count, parameters, &table, tx->why);

    if (code != OK) {
        tx->code = code;
        return answer(code, tx->why, tx->error);
    }
    if (ret_result)
        *ret_result = (PawlResult){table.rows, table.columns, table.values, table.changed};
    return PAWL_OK;
}

const PawlError *pawl_tx_error(const PawlTx *tx)
{
    return tx->error;
}
