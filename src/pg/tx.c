/*
 * tx.c - run, judge, run again; see tx.h for the four verdicts.
 *
 * A try that ends in doubt leaves its mark: if no later try brings certainty, the answer is ERR_UNKNOWN, never a code
 * that claims nothing happened.
 */
#include "pg/tx.h"

#include <string.h>

#include "base/fault.h"
#include "base/log.h"
#include "pg/metric.h"
#include "pg/retry.h"
#include "sql.h"

/* How much longer than the deadline a transaction may sit idle before the server ends it: we are stopped or gone. */
#define IDLE_MARGIN_MS 5000
/* Two clocks and their rounding: an answer this much before the limit is still the limit's. */
#define LIMIT_TOLERANCE_MS 10

/* What is known about one try besides its code. */
typedef struct {
    bool     acquired; /* it got as far as a connection */
    bool     began;    /* its body was run, or its statement sent */
    bool     own;      /* it failed by itself, on a connection that is well: not the database's doing */
    bool     doubt;    /* it may have committed */
    Deadline limit;    /* the server's time limit for its statements */
} TxTry;

/* What one try does: tx_run and db_call differ only in this. */
typedef struct Work Work;
typedef ErrorCode   WorkRun(Work *work, Tx *tx, TxTry *try, Error *reterr);
struct Work {
    WorkRun       *run;
    TxBody        *body; /* tx_run */
    void          *context;
    const char    *sql; /* db_call */
    DbArgs         args;
    const DbShape *shape;
    void          *rows;
    int            count;
};

/* Did the server say how it ended? Only an error of its own, on a connection that it keeps, proves that it rolled
 * back. A statement that said too much was given up before its end. */
static bool answer_is_lost(const Conn *conn, ErrorCode code, const Error *error)
{
    if (code == ERR_UNKNOWN || conn_transaction(conn) == PQTRANS_ACTIVE ||
        conn_transaction(conn) == PQTRANS_UNKNOWN) /* a panic takes the connection with it */
        return true;
    if (code != ERR_UNAVAILABLE && code != ERR_TIMEOUT) /* e.g. rows that came but do not fit their shape */
        return false;
    return error->sqlstate[0] == '\0' || strncmp(error->sqlstate, "08", 2) == 0 ||
           strncmp(error->sqlstate, "57P", 3) == 0;
}

/* ---- a whole transaction ---- */

/*
 * One round trip. Only `set local`: nothing outlives the transaction, and a pooler needs to know nothing. Pawl's own
 * statements name the schemas of what they use, and take operators and functions of PostgreSQL from nowhere else,
 * whichever search_path the login has: that may name a schema that others can write to. A transaction that runs code
 * which is not pawl's keeps the login's.
 * - It says that it writes, because such code may set the defaults of its login. A standby does not support that, which
 * means the same as 25006 there.
 * - Deferred triggers fire at the commit, under no statement_timeout, and a commit is never canceled. So the server
 * looks whether the client is gone, which closes its socket at the deadline. It does not look while it waits for a
 * standby: what is written stays so. The code may turn that off, so the pool is given the process that runs it.
 */
static ErrorCode tx_begin(Tx *tx, const TxOptions *options, int64_t *ret_process, Error *reterr)
{
    const char *mode = options->read_only ? " read only" : tx->is_foreign ? " read write" : "";
    char        sql[400];
    int         left = deadline_left_ms(tx->deadline);

    int limit = conn_limit_ms(tx->deadline);

    if (options->statement_ms > 0 && options->statement_ms < limit)
        limit = options->statement_ms;
    int lock = options->lock_ms > 0 && options->lock_ms < limit ? options->lock_ms : limit;

    snprintf(sql, sizeof sql,
             "begin isolation level read committed%s; set local statement_timeout = %d; set local lock_timeout = %d; "
             "set local idle_in_transaction_session_timeout = %d%s%s",
             mode, limit, lock, left < INT32_MAX - IDLE_MARGIN_MS ? left + IDLE_MARGIN_MS : 0,
             tx->is_foreign ? "; set local client_connection_check_interval = 1000; "
                            : "; set local search_path = pg_catalog, pg_temp",
             tx->is_foreign ? sql_pg_process : "");
    if (!tx->is_foreign)
        return db_run(tx, sql, DB_NONE, NULL, reterr);
    ErrorCode code = db_get_i64(tx, sql, DB_NONE, ret_process, reterr);

    if (code == OK || strcmp(reterr->sqlstate, "0A000") != 0)
        return code;
    error_set_sqlstate(reterr, "25006");
    return reterr->code = ERR_UNAVAILABLE;
}

static void tx_rollback(Tx *tx)
{
    /* No time or no connection left: closing it rolls back as well. */
    if (!conn_is_good(tx->conn))
        return;
    if (conn_transaction(tx->conn) == PQTRANS_IDLE) { /* ended by the body itself, or by its commit */
        if (tx->is_foreign)
            conn_condemn(tx->conn);
        return;
    }
    if (deadline_passed(tx->deadline) || (tx->is_foreign ? conn_rollback_reset(tx->conn, tx->deadline, NULL)
                                                         : db_run(tx, "rollback", DB_NONE, NULL, NULL)) != OK)
        conn_condemn(tx->conn);
}

static ErrorCode tx_commit(Tx *tx, TxTry *try, Error *reterr)
{
    ErrorCode code;

    if (FAULT("pg.commit.before")) {
        conn_condemn(tx->conn);
        return fail(reterr, ERR_UNAVAILABLE, "fault at pg.commit.before");
    }
    /* PostgreSQL answers the commit of a failed transaction with success, and rolls it back. */
    if (conn_transaction(tx->conn) == PQTRANS_INERROR)
        return fail(reterr, ERR_INTERNAL, "a statement failed and the body went on: rolled back");
    if (conn_transaction(tx->conn) == PQTRANS_IDLE)
        return fail(reterr, ERR_INTERNAL, "the body ended its transaction by itself");
    code = (tx->is_foreign ? conn_commit_reset : conn_commit)(tx->conn, tx->deadline, reterr);
    if (code == OK && FAULT("pg.commit.after")) {
        conn_condemn(tx->conn);
        code = fail(reterr, ERR_UNAVAILABLE, "fault at pg.commit.after");
    }
    try->doubt = code != OK && answer_is_lost(tx->conn, code, reterr);
    return code;
}

static ErrorCode run_body(Work *work, Tx *tx, TxTry *try, Error *reterr)
{
    ErrorCode code = work->body(tx, work->context, reterr);

    if (code == OK)
        code = tx_commit(tx, try, reterr);
    if (code != OK)
        tx_rollback(tx);
    return code;
}

/* ---- one statement, autocommit ---- */

static ErrorCode run_statement(Work *work, Tx *tx, TxTry *try, Error *reterr)
{
    ErrorCode code = db_many(tx, work->sql, work->args, work->shape, &work->rows, &work->count, reterr);

    try->doubt = code != OK && answer_is_lost(tx->conn, code, reterr);
    return code;
}

/* ---- the loop ---- */

/* The server's limit ends a little before the deadline. What is sent later than that ends in doubt rather than in an
 * answer. */
static ErrorCode limit_begin(const TxOptions *options, TxTry *try, Error *reterr)
{
    if (!conn_has_time(options->deadline))
        return fail(reterr, ERR_TIMEOUT, "%s was not sent: its time is used up", options->name);
    try->limit = deadline_in_ms(conn_limit_ms(options->deadline) - LIMIT_TOLERANCE_MS);
    return OK;
}

static ErrorCode work_try(Pool *pool, const TxOptions *options, Work *work, bool fresh, TxTry *try, Error *reterr)
{
    scoped(pool_release) Checkout *checkout = NULL;
    ErrorCode                      code     = OK;
    int64_t                        process  = 0;
    Tx                             tx       = {.arena      = options->arena,
                                               .deadline   = options->deadline,
                                               .autocommit = work->run == run_statement,
                                               .read_only  = options->read_only,
                                               .prepare    = options->prepare,
                                               .lock_ms    = options->lock_ms,
                                               .is_foreign = options->is_foreign};

    TRY(pool_acquire_as(pool,
                        (fresh ? POOL_FRESH : 0) | (options->urgent ? POOL_URGENT : 0) |
                            (options->prompt ? POOL_PROMPT : 0) | (options->soon ? POOL_SOON : 0),
                        options->deadline, &checkout, reterr));
    try->acquired = true;
    tx.conn       = checkout_conn(checkout);
    TRY(limit_begin(options, try, reterr));
    if (work->run == run_body)
        code = tx_begin(&tx, options, &process, reterr);
    if (process)
        checkout_runs_foreign(checkout, (int)process);
    try->began = code == OK;
    if (try->began)
        code = work->run(work, &tx, try, reterr);
    try->own = code != OK && !reterr->sqlstate[0] && conn_is_good(tx.conn);
    checkout_report(checkout, code, reterr);
    return code;
}

static Verdict try_verdict(const TxTry *try, ErrorCode code)
{
    if (try->doubt)
        return VERDICT_RESOLVE;
    /* Say, a webhook inside the body that did not answer: another connection would not help. */
    if (try->own && error_verdict(code) == VERDICT_EVICT)
        return VERDICT_FINAL;
    return error_verdict(code);
}

static void retry_log(const char *name, int tries, bool doubt, const Error *error)
{
    log_write(LOG_WARN, "tx", doubt ? "answer to commit lost, asking the key" : "rolled back, running again",
              LOG_STR("operation", name), LOG_INT("try", tries), LOG_STR("sqlstate", error->sqlstate),
              LOG_STR("error", error->text));
}

static ErrorCode unknown(const char *name, Error *reterr)
{
    char text[sizeof reterr->text];

    memcpy(text, reterr->text, sizeof text);
    return fail(reterr, ERR_UNKNOWN, "%s may have been done: send it again with the same key (%s)", name, text);
}

/* The caller gave it little time for its locks: it tries again, or says so. */
static bool is_short_of_lock(const TxOptions *options, const Error *error)
{
    return (options->lock_once || options->lock_ms > 0) && strcmp(error->sqlstate, "55P03") == 0;
}

/* Every rollback is logged once. What the caller expects, a refusal or a lock that is held, is logged at a lower
 * level. */
static void rollback_log(const TxOptions *options, int tries, ErrorCode code, const Error *error)
{
    bool loud = error_http(code) >= 500 && !is_short_of_lock(options, error);

    log_write(loud ? LOG_WARN : LOG_DEBUG, "tx", "rolled back", LOG_STR("operation", options->name),
              LOG_INT("try", tries), LOG_STR("sqlstate", error->sqlstate), LOG_STR("error", error->text));
}

/* doubt: some try may have committed. settled: the last one came to an end of its own, so it has looked the key up. */
static ErrorCode work_end(const TxOptions *options, ErrorCode code, int tries, bool doubt, bool settled, Error *reterr)
{
    metric_add(code == OK ? &pg_metrics.tx_ok : &pg_metrics.tx_failed, 1);
    if (code == OK && tries > 1)
        metric_add(&pg_metrics.retries_ok, 1);
    if (doubt && !settled)
        return unknown(options->name, reterr);
    if (doubt)
        metric_add(&pg_metrics.commits_resolved, 1);
    return code;
}

/* Did the server end the last statement because the time of the whole request was used up? Then another try has
 * none. */
static bool time_is_used_up(const TxTry *try, const Error *error)
{
    return (strcmp(error->sqlstate, "57014") == 0 || strcmp(error->sqlstate, "55P03") == 0) &&
           deadline_passed(try->limit);
}

/* Run again? A connection that could not be had is not asked for again: the pool has tried as often as it makes
 * sense. */
static bool work_goes_on(const TxOptions *options, const TxTry *try, Verdict verdict, const Error *error)
{
    if (!try->acquired || verdict == VERDICT_FINAL || time_is_used_up(try, error))
        return false;
    if (is_short_of_lock(options, error))
        return false;
    if (options->is_suspect && *options->is_suspect && verdict == VERDICT_EVICT)
        return false;
    return verdict != VERDICT_RESOLVE || options->keyed || options->read_only;
}

/* Does a refusal come from work that has met the key? A failure of our own (memory, limits) says nothing about an
 * earlier commit, nor does a server that cannot run the statement at all: a missing function, no rights. */
static bool is_evidence(ErrorCode code, const Error *error)
{
    return error->sqlstate[0] && code != ERR_INTERNAL && code != ERR_DENIED && code != ERR_REFUSED;
}

/*
 * Is the last try's end the end of the matter? A transaction in doubt had put its key before its commit was sent, so a
 * later try has waited for it and a refusal counts. A single statement in doubt may not even have begun: one that
 * begins after a later try was refused could still succeed. Then only success, which leaves the key behind, is certain.
 */
static bool work_is_settled(const Work *work, const TxTry *try, ErrorCode code, Verdict verdict, const Error *error)
{
    return code == OK || (try->began && verdict == VERDICT_FINAL && work->run == run_body && is_evidence(code, error));
}

static ErrorCode work_run(Pool *pool, const TxOptions *options, Work *work, Error *reterr)
{
    BackoffPolicy policy = *pool_operation_retry(pool);
    Error         error  = {0}; /* the caller's may be NULL, and the verdict needs the SQLSTATE */
    ArenaMark     mark   = arena_mark(options->arena);
    bool          doubt = false, fresh = false;

    if (options->tries_max)
        policy.retries_max = options->tries_max - 1;
    for (int tries = 1;; tries++) {
        TxTry     try     = {0};
        ErrorCode code    = work_try(pool, options, work, fresh, &try, &error);
        Verdict   verdict = try_verdict(&try, code);

        doubt |= try.doubt && !options->read_only;
        fresh = verdict == VERDICT_EVICT || verdict == VERDICT_RESOLVE;
        if (code == OK || !work_goes_on(options, &try, verdict, &error) ||
            !retry_wait(&policy, tries, options->deadline)) {
            if (code != OK && try.began)
                rollback_log(options, tries, code, &error);
            code = work_end(options, code, tries, doubt, work_is_settled(work, &try, code, verdict, &error), &error);
            if (reterr && code != OK)
                *reterr = error;
            return code;
        }
        metric_add(&pg_metrics.retries, 1);
        retry_log(options->name, tries, try.doubt, &error);
        arena_rewind(options->arena, mark); /* the next try begins as the first one did */
    }
}

ErrorCode tx_run(Pool *pool, const TxOptions *options, TxBody *body, void *context, Error *reterr)
{
    return work_run(pool, options, &(Work){.run = run_body, .body = body, .context = context}, reterr);
}

ErrorCode db_call_many(Pool *pool, const TxOptions *options, const char *sql, DbArgs args, const DbShape *shape,
                       void *ret_rows, int *ret_count, Error *reterr)
{
    Work work = {.run = run_statement, .sql = sql, .args = args, .shape = shape};

    TRY(work_run(pool, options, &work, reterr));
    memcpy(ret_rows, &work.rows, sizeof work.rows);
    *ret_count = work.count;
    return OK;
}

ErrorCode db_call(Pool *pool, const TxOptions *options, const char *sql, DbArgs args, const DbShape *shape,
                  void *ret_row, Error *reterr)
{
    void *rows;
    int   count;

    TRY(db_call_many(pool, options, sql, args, shape, &rows, &count, reterr));
    return db_only(shape, rows, count, ret_row, reterr);
}
