/*
 * action_sql.c - a function in SQL and an operation of the ledger: their effects and their record commit together, so they happen exactly once.
 */
#include <stdio.h>
#include <string.h>

#include "base/reader.h"
#include "pg/tx.h"
#include "process/interpret_internal.h"
#include "sql.h"
#include "wallet/post.h"

#define CALL_MS 30000

typedef struct {
    Attempt    *attempt;
    const char *input; /* SQL */
    WalletItem *item;  /* WALLET */
    RunRecord   record;
    bool        is_over, is_stale;
} SqlRun;

/* ---- the transaction ---- */

static ErrorCode function_call(Tx *tx, SqlRun *run, const char **ret_result, Error *reterr)
{
    const char *function = run->attempt->action->sql;
    const char *dot      = strchr(function, '.'); /* the definition was checked */

    return db_get_text(tx, sql_bus_handler_call,
                       DB_ARGS(db_text(arena_bytes(tx->arena, function, (size_t)(dot - function))), db_text(dot + 1),
                               db_jsonb(run->input), db_uuid(run->attempt->key)),
                       ret_result, reterr);
}

static ErrorCode operation_post(Tx *tx, SqlRun *run, const char **ret_result, Error *reterr)
{
    WalletItem *item = run->item;

    TRY(wallet_post_in(tx, &run->item, 1, reterr));
    if (item->code != OK) {
        if (reterr)
            *reterr = item->error;
        return item->code;
    }
    *ret_result = arena_print(tx->arena, "{\"txn_id\":\"%s\",\"amount\":%lld,\"balance\":%lld}", item->txn_id,
                              (long long)item->posted_amount, (long long)item->balance);
    return OK;
}

static ErrorCode sql_body(Tx *tx, void *context, Error *reterr)
{
    SqlRun     *run    = context;
    const char *result = NULL;
    RunVerdict  verdict;

    run->is_over = run->is_stale = false;
    TRY((run->item ? operation_post : function_call)(tx, run, &result, reterr));
    result = arena_text(run->attempt->arena, result ? result : "null");
    TRY(attempt_patch(run->attempt, result, reterr));
    run->record = (RunRecord){.step       = run->attempt->record,
                              .result     = result,
                              .started_us = run->attempt->started_us,
                              .patch      = run->attempt->patch,
                              .version    = run->attempt->version};
    TRY(run_record_in(run->attempt->walk->run, tx, &run->record, &verdict, reterr));
    run->is_over  = verdict == RUN_OVER || verdict == RUN_KNOWN; /* the next activation loads the record */
    run->is_stale = verdict == RUN_STALE;
    if (verdict != RUN_OK)
        return fail(reterr, ERR_CONFLICT, "rolled back: %s",
                    run->is_over ? "the lease is lost, or the step is recorded" : "the state has changed");
    return OK;
}

/* ---- what it meant ---- */

static AttemptEnd error_end(const Error *error)
{
    if (strcmp(error->sqlstate, "QU065") == 0)
        return ATTEMPT_REFUSED;
    if (strcmp(error->sqlstate, "QU070") == 0)
        return ATTEMPT_FAIL;
    return ATTEMPT_RETRY;
}

static ErrorCode sql_run(SqlRun *run, AttemptResult *ret_result, Error *reterr)
{
    Attempt  *attempt = run->attempt;
    int64_t   ms      = attempt->action->timeout_ms ? attempt->action->timeout_ms : CALL_MS;
    TxOptions options = {.name = "step", .arena = attempt->arena, .keyed = true, .is_foreign = !run->item};
    Error     error   = {0};
    ErrorCode code;

    do {
        options.deadline = deadline_in_ms(ms);
        code             = tx_run(attempt->walk->interpreter->pool, &options, sql_body, run, &error);
    } while (code != OK && run->is_stale && !run_must_stop(attempt->walk->run));
    if (code == OK) {
        run_record_done(attempt->walk->run, &run->record);
        *ret_result = (AttemptResult){.end = ATTEMPT_DONE, .result = run->record.result, .recorded = true};
        return OK;
    }
    if (run->is_over || run->is_stale) {
        ret_result->end = ATTEMPT_STOPPED;
        return OK;
    }
    if (!error.sqlstate[0] && code != ERR_CONFLICT && code != ERR_NOT_FOUND && code != ERR_INVALID &&
        code != ERR_KEY_REUSED) {
        if (reterr) /* the database is away: says nothing about the step */
            *reterr = error;
        return code;
    }
    *ret_result = (AttemptResult){.end   = run->item ? ATTEMPT_REFUSED : error_end(&error),
                                  .error = error.sqlstate[0] ? arena_print(attempt->arena, "%s (SQLSTATE %s)",
                                                                           error.text, error.sqlstate)
                                                             : arena_text(attempt->arena, error.text)};
    return OK;
}

/* ---- a function ---- */

ErrorCode attempt_sql(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    SqlRun run = {.attempt = attempt};

    TRY(attempt_render(attempt, attempt->action->input, "null", &run.input, reterr));
    return sql_run(&run, ret_result, reterr);
}

/* ---- an operation of the ledger ---- */

typedef struct {
    WalletItem  item;
    const char *kind; /* known */
    ReaderArray legs;
} Operation;

static const Field operation_fields[] = {
    {"kind", FIELD_TEXT, offsetof(Operation, kind)},
    {"owner", FIELD_TEXT, offsetof(Operation, item.owner)},
    {"from", FIELD_TEXT, offsetof(Operation, item.owner)},
    {"to", FIELD_TEXT, offsetof(Operation, item.other)},
    {"asset", FIELD_TEXT, offsetof(Operation, item.asset)},
    {"hold", FIELD_UUID, offsetof(Operation, item.ref)},
    {"transaction", FIELD_UUID, offsetof(Operation, item.ref)},
    {"amount", FIELD_I64, offsetof(Operation, item.amount)},
    {"expires_in_s", FIELD_I64, offsetof(Operation, item.expires_in_s)},
    {"floor", FIELD_I64, offsetof(Operation, item.floor)},
    {"legs", FIELD_ROWS, offsetof(Operation, legs), .rows = &wallet_leg_table},
    {"metadata", FIELD_JSON, offsetof(Operation, item.metadata)},
};
static const FieldTable operation_table = {"operation", operation_fields, COUNT(operation_fields), sizeof(Operation)};

ErrorCode attempt_wallet(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    SqlRun      run  = {.attempt = attempt};
    Operation  *read = arena_alloc(attempt->arena, sizeof *read);
    WalletItem *item = &read->item;
    const char *operation;

    TRY(attempt_render(attempt, attempt->action->wallet.operation, "{}", &operation, reterr));
    TRY(reader_object(operation, strlen(operation), &operation_table, attempt->arena, read, reterr));
    item->kind   = attempt->action->wallet.kind;
    item->txn_id = attempt->key;
    item->legs   = (WalletLegs){read->legs.items, read->legs.count};
    TRY(wallet_check(item, reterr));
    run.item = item;
    return sql_run(&run, ret_result, reterr);
}
