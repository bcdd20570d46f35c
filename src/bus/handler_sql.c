/*
 * handler_sql.c - a function in SQL, and the settling of its command, in one transaction; see handler.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/sync.h"
#include "bus/handler.h"
#include "pg/tx.h"
#include "sql.h"

typedef struct {
    Handler base;
    Pool   *pool;
    Mutex   mutex; /* guards task->run: the connection that is calling the function */
    char   *statement;
} SqlHandler;

/* What one try needs, and what it found out. */
typedef struct {
    SqlHandler *handler;
    Task       *task;
    SettleItem *item;
    bool        lost; /* the lease was another's: rolled back */
} SqlRun;

static void task_publish(SqlHandler *handler, Task *task, Conn *conn)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&handler->mutex);

    task->run = conn;
}

static ErrorCode function_call(Tx *tx, const SqlRun *run, const char **ret_result, Error *reterr)
{
    const Claimed *command = run->task->command;
    ErrorCode      code;

    task_publish(run->handler, run->task, tx->conn);
    code = task_is_stopped(run->task)
               ? fail(reterr, ERR_CONFLICT, "handler was stopped")
               : db_get_text(tx, run->handler->statement,
                             DB_ARGS(db_jsonb(command->payload), db_uuid(command->command_id)), ret_result, reterr);
    task_publish(run->handler, run->task, NULL);
    return code;
}

static ErrorCode sql_body(Tx *tx, void *context, Error *reterr)
{
    SqlRun *run = context;
    *run->item  = (SettleItem){.id = run->task->command->id, .token = run->task->command->token};

    run->lost = false;
    TRY(function_call(tx, run, &run->item->result, reterr));
    if (FAULT("bus.sql.settle")) {
        conn_condemn(tx->conn);
        return fail(reterr, ERR_UNAVAILABLE, "fault at bus.sql.settle");
    }
    TRY(settle_in(tx, &run->item, 1, reterr));
    run->lost = !run->item->settled;
    if (run->lost)
        return fail(reterr, ERR_CONFLICT, "lease was lost: command is %s", run->item->status);
    return OK;
}

static Outcome error_outcome(const Error *error)
{
    static const struct {
        const char *sqlstate;
        Outcome     outcome;
    } rows[] = {
        {"QU065", OUTCOME_REJECT},
        {"QU070", OUTCOME_FAIL  }
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].sqlstate, error->sqlstate) == 0)
            return rows[i].outcome;
    return OUTCOME_RETRY;
}

/* Keyed by the lease's token: run again after a lost commit, the settle finds the lease gone and all is rolled back. */
static void sql_run(Handler *base, Task *task, SettleItem *ret_settle)
{
    SqlRun    run     = {.handler = (SqlHandler *)base, .task = task, .item = ret_settle};
    TxOptions options = {.name = "handler", .deadline = task->deadline, .arena = task->arena, .keyed = true};
    Error     error   = {0};

    if (tx_run(run.handler->pool, &options, sql_body, &run, &error) == OK)
        return;
    if (run.lost) {
        ret_settle->settled = ret_settle->again; /* by an earlier try whose answer was lost */
        return;
    }
    *ret_settle          = (SettleItem){.id = task->command->id, .token = task->command->token};
    ret_settle->outcome  = error_outcome(&error);
    ret_settle->error    = error.sqlstate[0] ? arena_print(task->arena, "%s (SQLSTATE %s)", error.text, error.sqlstate)
                                             : arena_text(task->arena, error.text);
    ret_settle->delay_ms = SETTLE_DELAY_DEFAULT;
}

static void sql_stop(Handler *base, Task *task)
{
    SqlHandler                 *handler = (SqlHandler *)base;
    scoped(mutex_unlock) Mutex *held    = mutex_hold(&handler->mutex);

    if (task->run)
        conn_interrupt(task->run);
}

/* ---- finding it ---- */

#define STATEMENT_COLUMNS(X, T) X(T, const char *, DB_TEXT, value)
typedef struct {
    STATEMENT_COLUMNS(DB_FIELD, Statement)
} Statement;
DB_SHAPE(statement, Statement, STATEMENT_COLUMNS);

ErrorCode handler_sql_new(Pool *pool, Deadline deadline, const char *function, Handler **ret_handler, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "handler", .deadline = deadline, .arena = arena, .read_only = true};
    const char               *dot     = strchr(function, '.');
    void                     *rows;
    int                       count;

    if (!dot || dot == function || !dot[1] || strchr(dot + 1, '.'))
        return fail(reterr, ERR_INVALID, "\"%s\" is not the name of a function: a right one is schema.function",
                    function);
    const char *schema = arena_bytes(arena, function, (size_t)(dot - function));
    TRY(db_call_many(pool, &options, sql_bus_handler_find, DB_ARGS(db_text(schema), db_text(dot + 1)), &statement_shape,
                     &rows, &count, reterr));
    if (count == 0)
        return fail(reterr, ERR_NOT_FOUND, "function %s(payload jsonb, command_id uuid) returns jsonb does not exist",
                    function);
    SqlHandler *handler = calloc(1, sizeof *handler);
    if (!handler)
        abort();
    handler->base      = (Handler){.run = sql_run, .stop = sql_stop};
    handler->pool      = pool;
    handler->statement = strdup(((const Statement *)rows)->value);
    if (!handler->statement)
        abort();
    mutex_init(&handler->mutex);
    *ret_handler = &handler->base;
    return OK;
}

void handler_sql_free(Handler *base)
{
    SqlHandler *handler = (SqlHandler *)base;

    mutex_done(&handler->mutex);
    free(handler->statement);
    free(handler);
}
