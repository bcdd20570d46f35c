/*
 * action_sql.c - a function in SQL and an operation of the ledger: their effects and their record commit together, so they happen exactly once.
 */
#include <stdio.h>
#include <string.h>

#include "base/reader.h"
#include "bus/handler.h"
#include "pg/migrate.h"
#include "pg/tx.h"
#include "process/interpret_internal.h"
#include "process/judge.h"
#include "sql.h"
#include "wallet/operation.h"

#define CALL_MS          30000
#define RESULT_BYTES_MAX ((size_t)1 << 20) /* as for programs and HTTP responses */

typedef struct {
    Attempt    *attempt;
    const char *input; /* SQL */
    WalletItem *item;  /* WALLET */
    RunRecord   record;
    bool        is_over, is_stale;
    bool        is_busy;       /* another transaction has the process locked: says nothing about the function */
    bool        is_begun;      /* the function was called, in this try or an earlier one */
    bool        is_suspect;    /* the connection was lost while it ran: it may be the cause */
    bool        is_raised;     /* its statement failed, and the session goes on: what it raised is its own */
    bool        is_unrecorded; /* it has returned, and the server does not run the statement that records its result */
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

/* A function may raise the SQLSTATEs of a lost or refused connection as well, say because a server that it asks is down: as long as the
 * session goes on, that is no outage of this database. */
static ErrorCode raised_judge(const Tx *tx, SqlRun *run, ErrorCode code, Error *reterr)
{
    run->is_raised = judge_is_raised(tx, reterr);
    if (!run->is_raised || run->item || judge(code, JUDGE_BEGUN) != ABOUT_WORLD)
        return code;
    Error said = *reterr;

    error_set_sqlstate(reterr, "");
    return fail(reterr, ERR_CONFLICT, "%s (SQLSTATE %s)", said.text, said.sqlstate);
}

/* From now until statement_end() interpreter_stop() cancels it. */
static void statement_begin(Interpreter *interpreter, Statement *statement)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&interpreter->mutex);

    statement->next         = interpreter->statements;
    interpreter->statements = statement;
}

static void statement_end(Interpreter *interpreter, const Statement *statement)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&interpreter->mutex);
    Statement                 **at   = &interpreter->statements;

    while (*at != statement)
        at = &(*at)->next;
    *at = statement->next;
}

static ErrorCode statement_run(Tx *tx, SqlRun *run, const char **ret_result, Error *reterr)
{
    Walk     *walk      = run->attempt->walk;
    Statement statement = {.job = walk->job, .conn = tx->conn};
    ErrorCode code;

    run->is_begun = true;
    statement_begin(walk->interpreter, &statement);
    code = run_must_stop(walk->run) ? fail(reterr, ERR_STOPPING, "the step was stopped")
                                    : (run->item ? operation_post : function_call)(tx, run, ret_result, reterr);
    statement_end(walk->interpreter, &statement);
    run->is_suspect = !conn_is_good(tx->conn) && conn_transaction(tx->conn) != PQTRANS_INERROR;
    return code == OK ? OK : raised_judge(tx, run, code, reterr);
}

static ErrorCode sql_body(Tx *tx, void *context, Error *reterr)
{
    SqlRun     *run    = context;
    const char *result = NULL;
    RunVerdict  verdict;
    ErrorCode   code;

    run->is_over = run->is_stale = run->is_raised = run->is_busy = run->is_unrecorded = false;
    TRY(statement_run(tx, run, &result, reterr));
    result = result ? result : "null";
    if (strlen(result) > RESULT_BYTES_MAX)
        return fail(reterr, ERR_LIMIT, "the function returned more than %zu bytes", RESULT_BYTES_MAX);
    TRY(attempt_patch(run->attempt, result, reterr));
    run->record  = (RunRecord){.id         = run->attempt->id,
                               .result     = result,
                               .started_us = run->attempt->verb.record.started_us,
                               .patch      = run->attempt->patch,
                               .version    = run->attempt->version};
    code         = run_record_in(run->attempt->walk->run, tx, &run->record, &verdict, reterr);
    run->is_busy = code == ERR_BUSY;
    if (code == ERR_INTERNAL || code == ERR_DENIED || code == ERR_CONFLICT) {
        run->is_unrecorded = reterr->sqlstate[0] != '\0';
        error_prefix(reterr, "its result cannot be recorded");
    }
    TRY(code);
    run->is_over  = verdict == RUN_OVER || verdict == RUN_KNOWN; /* the next activation loads the record */
    run->is_stale = verdict == RUN_STALE;
    if (verdict != RUN_OK)
        return fail(reterr, ERR_CONFLICT, "rolled back: %s",
                    run->is_over ? "the lease is lost, or the step is recorded" : "the state has changed");
    return OK;
}

/* ---- what it meant ---- */

/* What the ledger refuses it would refuse again; a lock or a time limit is no refusal. */
static StepEnd error_end(const SqlRun *run, ErrorCode code, const Error *error)
{
    if (run->is_unrecorded)
        return END_FAILED;
    if (run->item && error_verdict(code) == VERDICT_FINAL && code != ERR_INTERNAL)
        return END_REFUSED;
    if (strcmp(error->sqlstate, "QU065") == 0)
        return END_REFUSED;
    return strcmp(error->sqlstate, "QU070") == 0 ? END_FINAL : END_FAILED;
}

static JudgeWhen failed_when(const SqlRun *run)
{
    if (run->is_unrecorded || (run->is_raised && !run->item)) /* what the ledger raises is pawl's own */
        return JUDGE_RAISED;
    return run->is_begun ? JUDGE_BEGUN : JUDGE_OURS;
}

/* A compensation that voids a hold wants nothing of it to be left. When it was captured or has expired meanwhile, nothing is: what was captured
 * is the concern of the capture's own compensation. */
static bool is_released_already(const SqlRun *run, const Error *error)
{
    const Attempt *attempt = run->attempt;

    return run->item && run->item->kind == WALLET_VOID && attempt->action != &attempt->step->action &&
           strcmp(error->sqlstate, "QW014") == 0;
}

/* It cannot be called, so that nothing ran and no other attempt would do better: it does not exist, it is not security definer, or the login of handlers may
 * not call it. */
static bool is_uncallable(const SqlRun *run, const Error *error, Error *ret_why)
{
    const Attempt *attempt = run->attempt;
    ErrorCode      code;

    if (run->item || (strcmp(error->sqlstate, "42501") != 0 && strcmp(error->sqlstate, "42883") != 0))
        return false;
    code = handler_sql_check(attempt->walk->interpreter->handler_pool, deadline_in_ms(CALL_MS), attempt->arena,
                             attempt->action->sql, ret_why);
    return code == ERR_DENIED || code == ERR_NOT_FOUND;
}

static ErrorCode failure_judge(SqlRun *run, ErrorCode code, const Error *error, AttemptResult *ret_result,
                               Error *reterr)
{
    Attempt *attempt = run->attempt;
    Error    why     = {0};

    if (run->is_over || run->is_stale || run_must_stop(attempt->walk->run)) {
        ret_result->state = ATTEMPT_STOPPED; /* it did not fail: it was stopped */
        return OK;
    }
    if (run->is_busy) { /* nor did it fail: it was rolled back, and is run again when the process is not locked any more */
        if (reterr)
            *reterr = *error;
        return code;
    }
    About about = judge(code, failed_when(run));

    if (about == ABOUT_WORLD) {
        if (run->is_begun && !run->item)
            run_suspect(attempt->walk->run, attempt->id);
        if (reterr)
            *reterr = *error;
        return code;
    }
    if ((run->item || run->is_unrecorded) &&
        migrate_explains(attempt->walk->interpreter->pool, &schema_embedded, error, NULL)) {
        if (reterr)
            *reterr = *error;
        return code; /* not refused: the functions of pawl are those of a newer program */
    }
    if (!run->item && about == ABOUT_ITEM) { /* a template, a limit */
        if (reterr)
            *reterr = *error;
        return code;
    }
    if (is_released_already(run, error)) {
        *ret_result = (AttemptResult){.end = END_DONE, .result = "{\"amount\":0}"};
        return OK;
    }
    if (is_uncallable(run, error, &why)) {
        *ret_result = (AttemptResult){.end = END_FINAL, .error = arena_text(attempt->arena, why.text)};
        return OK;
    }
    *ret_result = (AttemptResult){.end   = error_end(run, code, error),
                                  .error = error->sqlstate[0] ? arena_print(attempt->arena, "%s (SQLSTATE %s)",
                                                                            error->text, error->sqlstate)
                                                              : arena_text(attempt->arena, error->text)};
    return OK;
}

/* One try. *ret_code: of the transaction. false: the activation must stop. */
static bool sql_try(SqlRun *run, ErrorCode *ret_code, Error *reterr)
{
    Attempt  *attempt = run->attempt;
    Share    *share   = attempt->walk->interpreter->connections;
    Pool     *pool    = run->item ? attempt->walk->interpreter->pool : attempt->walk->interpreter->handler_pool;
    TxOptions options = {.name       = "step",
                         .arena      = attempt->arena,
                         .keyed      = true,
                         .is_foreign = !run->item,
                         .is_suspect = run->item ? NULL : &run->is_suspect};

    if (!walk_share_take(attempt->walk, share, 1))
        return false;
    options.deadline = deadline_in_ms(attempt_limit_ms(attempt, CALL_MS));
    *ret_code        = tx_run(pool, &options, sql_body, run, reterr);
    walk_share_give(attempt->walk, share, 1);
    return true;
}

/* Before a try is repeated, in the same attempt. What the transaction that was rolled back has read of the state may be its own change. */
static ErrorCode again_prepare(const SqlRun *run, Error *reterr)
{
    RunVerdict verdict;

    return run->is_stale ? run_reload(run->attempt->walk->run, &verdict, reterr) : OK;
}

/* Rolled back because the state has changed, or the process is locked: tried again in the same attempt. */
static ErrorCode sql_run(SqlRun *run, AttemptResult *ret_result, Error *reterr)
{
    Run      *activation = run->attempt->walk->run;
    ArenaMark mark       = arena_mark(run->attempt->arena);
    int64_t   wait_ms    = 0;
    int       stale      = 0;
    Error     error      = {0};
    ErrorCode code;

    do {
        arena_rewind(run->attempt->arena, mark); /* results of earlier tries */
        TRY(again_prepare(run, reterr));
        if (!sql_try(run, &code, &error)) {
            ret_result->state = ATTEMPT_STOPPED;
            return OK;
        }
        stale += run->is_stale;
    } while (code != OK && (run->is_stale || (run->is_busy && run_busy_wait(&wait_ms))) && stale < STALE_TRIES &&
             !run_must_stop(activation));
    if (stale == STALE_TRIES) {
        *ret_result = (AttemptResult){.end   = END_FAILED,
                                      .error = arena_print(run->attempt->arena,
                                                           "the state has changed in each of %d tries", STALE_TRIES)};
        return OK;
    }
    if (code != OK)
        return failure_judge(run, code, &error, ret_result, reterr);
    run_record_done(activation, &run->record);
    *ret_result = (AttemptResult){.end = END_DONE, .result = run->record.result, .recorded = true};
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

ErrorCode attempt_wallet(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    SqlRun        run  = {.attempt = attempt};
    WalletKind    kind = attempt->action->wallet.kind;
    WalletItem   *item = arena_alloc(attempt->arena, sizeof *item);
    WalletRequest request;
    const char   *operation;

    TRY(attempt_render(attempt, attempt->action->wallet.operation, "{}", &operation, reterr));
    TRY(reader_object(operation, strlen(operation), &wallet_operation_lines[kind], attempt->arena, &request, reterr));
    request.txn_id = attempt->key;
    *item          = wallet_request_item(kind, &request);
    TRY(wallet_check(item, reterr));
    run.item = item;
    return sql_run(&run, ret_result, reterr);
}
