/*
 * handler_sql.c - a function in SQL, found and called; see handler.h for the contract, handler_tx.c for the transaction.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "bus/command.h"
#include "bus/handler.h"
#include "bus/handler_tx.h"
#include "pg/tx.h"
#include "sql.h"

typedef struct {
    TxHandler base;
    char     *schema;
    char     *name;
} SqlHandler;

static ErrorCode function_call(Tx *tx, Job *job, void *context, SettleItem *ret_settle, Error *reterr)
{
    const SqlHandler     *handler = context;
    const ClaimedCommand *command = job->command;

    ErrorCode code = db_get_text(tx, sql_bus_handler_call,
                                 DB_ARGS(db_text(handler->schema), db_text(handler->name), db_jsonb(command->payload),
                                         db_uuid(command->command_id)),
                                 &ret_settle->result, reterr);

    ret_settle->outcome = OUTCOME_COMPLETE;
    if (code != ERR_LIMIT || reterr->sqlstate[0])
        return code;
    ret_settle->outcome = OUTCOME_FAIL; /* it would return as much the next time */
    ret_settle->error   = "result is too large to be read";
    return OK;
}

#define SHARED_COLUMNS(X, T) \
    X(T, I32, ord)           \
    X(T, TEXT, status, wake)
DB_ROW(Shared, SHARED_COLUMNS);
DB_SHAPE(shared, Shared, SHARED_COLUMNS);

/* The calls and the settle of those that succeeded, in one statement. */
static ErrorCode shared_call(Tx *tx, Job *const *jobs, SettleItem *const *items, int count, void *context,
                             Error *reterr)
{
    const SqlHandler *handler  = context;
    int64_t          *ids      = arena_array(tx->arena, int64_t, count);
    int64_t          *tokens   = arena_array(tx->arena, int64_t, count);
    const char      **payloads = arena_array(tx->arena, const char *, count);
    const char      **keys     = arena_array(tx->arena, const char *, count);
    int               row_count;
    void             *rows;

    for (int i = 0; i < count; i++) {
        ids[i]      = items[i]->id;
        tokens[i]   = items[i]->token;
        payloads[i] = jobs[i]->command->payload;
        keys[i]     = jobs[i]->command->command_id;
    }
    TRY(db_many(tx, sql_bus_handler_call_shared,
                DB_ARGS(db_text(handler->schema), db_text(handler->name), db_i64s(tx->arena, ids, count),
                        db_i64s(tx->arena, tokens, count), db_jsonbs(tx->arena, payloads, count),
                        db_uuids(tx->arena, keys, count)),
                &shared_shape, &rows, &row_count, reterr));
    for (const Shared *row = rows, *end = row + row_count; row < end; row++) {
        SettleItem *item = items[row->ord - 1];

        item->settled = true;
        item->status  = command_status_constant(row->status);
        item->wake    = row->wake;
    }
    return OK;
}

/* ---- finding it ---- */

DB_SHAPE(found, HandlerFound, HANDLER_FOUND_COLUMNS);

static ErrorCode found_check(const HandlerFound *found, const char *function, Error *reterr)
{
    if (!found->is_safe && !found->is_definer)
        return fail(reterr, ERR_DENIED,
                    "function %s belongs to \"%s\" and would run with the rights of \"%s\": "
                    "its owner must alter it to be security definer",
                    function, found->owner, found->connected);
    if (!found->is_safe)
        return fail(reterr, ERR_DENIED,
                    "function %s belongs to \"%s\", and what it leaves behind would run with the rights of \"%s\": "
                    "PAWL_HANDLER_DATABASE_URL must name a login that is a member of pawl_handler only",
                    function, found->owner, found->connected);
    if (!found->is_callable)
        return fail(
            reterr, ERR_DENIED,
            "\"%s\" may not call function %s: \"%s\" must grant it USAGE on the schema and EXECUTE on the function",
            found->connected, function, found->owner);
    return OK;
}

ErrorCode handler_sql_check(Pool *pool, Deadline deadline, Arena *arena, const char *function, Error *reterr)
{
    TxOptions   options = {.name = "handler", .deadline = deadline, .arena = arena, .read_only = true};
    const char *dot     = strchr(function, '.');
    void       *rows;
    int         count;

    if (!dot || dot == function || !dot[1] || strchr(dot + 1, '.'))
        return fail(reterr, ERR_INVALID, "\"%s\" is not the name of a function: it must be schema.function", function);
    TRY(db_call_many(pool, &options, sql_bus_handler_find,
                     DB_ARGS(db_text(arena_bytes(arena, function, (size_t)(dot - function))), db_text(dot + 1)),
                     &found_shape, &rows, &count, reterr));
    if (count == 0)
        return fail(reterr, ERR_NOT_FOUND, "function %s(payload jsonb, command_id uuid) returns jsonb does not exist",
                    function);
    return found_check(rows, function, reterr);
}

/* Was it refused to call the function (42501), and not only something that the function did? Then nothing was called, and the command is
 * released, because it is no failure of its own. */
static void sql_run(Handler *base, Job *job, SettleItem *ret_settle)
{
    SqlHandler *handler = (SqlHandler *)base;
    Error       why     = {0};

    tx_handler_run(&handler->base, job, function_call, /* context= */ handler, ret_settle);
    if (ret_settle->error && strstr(ret_settle->error, "(SQLSTATE 42501)") &&
        handler_sql_check(handler->base.pool, job->deadline, job->arena,
                          arena_print(job->arena, "%s.%s", handler->schema, handler->name), &why) == ERR_DENIED)
        job->not_begun = arena_text(job->arena, why.text);
}

static void sql_run_shared(Handler *base, Job *const *jobs, SettleItem *const *items, int count)
{
    SqlHandler *handler = (SqlHandler *)base;

    tx_handler_run_shared(&handler->base, jobs, items, count, shared_call, /* context= */ handler);
}

ErrorCode handler_sql_new(Pool *pool, Deadline deadline, const char *function, bool shares, Handler **ret_handler,
                          Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    TRY(handler_sql_check(pool, deadline, arena, function, reterr));

    const char *dot     = strchr(function, '.');
    SqlHandler *handler = memory_new(1, sizeof *handler);
    tx_handler_init(&handler->base, pool, sql_run);
    if (shares) {
        handler->base.base.run_shared  = sql_run_shared;
        handler->base.base.shared_most = tx_handler_shared_most;
    }
    handler->schema = memory_text(arena_bytes(arena, function, (size_t)(dot - function)));
    handler->name   = memory_text(dot + 1);
    *ret_handler    = &handler->base.base;
    return OK;
}

void handler_sql_free(Handler *base)
{
    SqlHandler *handler = (SqlHandler *)base;

    tx_handler_done(&handler->base);
    free(handler->schema);
    free(handler->name);
    free(handler);
}
