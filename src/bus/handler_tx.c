/*
 * handler_tx.c - run a body, settle its command, commit; or roll back and say why. See handler_tx.h.
 */
#include "bus/handler_tx.h"

#include <string.h>

#include "base/fault.h"
#include "base/problem.h"
#include "pg/tx.h"

/* A time limit of the server comes up to this much before the deadline that it is for. */
#define LIMIT_MARGIN_MS 300

/* What one try needs, and what it found out. */
typedef struct {
    TxHandler     *handler;
    Job           *job;
    TxHandlerBody *body;
    void          *context;
    SettleItem    *item;
    bool           decided; /* the body wants another end than completion: rolled back */
    bool           lost;    /* the lease was another's: rolled back */
    bool           begun;   /* the body was called, in this try or an earlier one */
    bool           suspect; /* the connection was lost in the body, which may be the cause */
    bool           refused; /* what the body said cannot be stored: it would say the same the next time */
    bool           raised;  /* the last try ended with an error of the body's own statement: said */
    Error          said;
} TxRun;

void tx_handler_publish(TxHandler *handler, Job *job, Conn *conn)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&handler->mutex);

    job->run = conn;
}

static ErrorCode body_call(Tx *tx, TxRun *run, Error *reterr)
{
    ErrorCode code;

    run->begun = true;
    tx_handler_publish(run->handler, run->job, tx->conn);
    code = job_is_stopped(run->job) ? fail(reterr, ERR_CONFLICT, "handler was stopped")
                                    : run->body(tx, run->job, run->context, run->item, reterr);
    tx_handler_publish(run->handler, run->job, NULL);
    run->suspect = !conn_is_good(tx->conn) && conn_transaction(tx->conn) != PQTRANS_INERROR && code != ERR_LIMIT;
    return code;
}

/*
 * A statement of the body failed, and the server keeps the session: what it raised is the body's own. A function may raise the
 * SQLSTATEs of a lost connection as well, say because a server that it asks is down: that is no outage of this database.
 */
static ErrorCode body_raised(Tx *tx, TxRun *run, ErrorCode code, Error *reterr)
{
    run->raised = reterr->sqlstate[0] && conn_transaction(tx->conn) == PQTRANS_INERROR;
    if (!run->raised)
        return code;
    run->said = *reterr;
    if (strncmp(reterr->sqlstate, "08", 2) != 0 && strncmp(reterr->sqlstate, "57P", 3) != 0)
        return code;
    error_set_sqlstate(reterr, "");
    return fail(reterr, ERR_CONFLICT, "%s", run->said.text);
}

static SettleItem item_begin(const Job *job)
{
    return (SettleItem){.id = job->command->id, .token = job->command->token, .delay_ms = SETTLE_DELAY_DEFAULT};
}

static ErrorCode try_settled(Tx *tx, TxRun *run, Error *reterr)
{
    ErrorCode code;

    *run->item   = item_begin(run->job);
    run->decided = run->lost = run->refused = run->raised = false;
    code                                                  = body_call(tx, run, reterr);
    if (code != OK)
        return body_raised(tx, run, code, reterr);
    run->decided = run->item->outcome != OUTCOME_COMPLETE;
    if (run->decided)
        return fail(reterr, ERR_CONFLICT, "handler said %s", outcome_names[run->item->outcome]);
    if (FAULT("bus.sql.settle")) {
        conn_condemn(tx->conn);
        return fail(reterr, ERR_UNAVAILABLE, "fault at bus.sql.settle");
    }
    code         = settle_in(tx, &run->item, 1, reterr);
    run->refused = code == ERR_LIMIT || code == ERR_INVALID;
    TRY(code);
    run->lost = !run->item->settled;
    if (run->lost)
        return fail(reterr, ERR_CONFLICT, "lease was lost: command is %s", run->item->status);
    return OK;
}

static ErrorCode try_body(Tx *tx, void *context, Error *reterr)
{
    TxRun *run   = context;
    Mono   began = clock_mono();

    TRY(try_settled(tx, run, reterr));
    tx_handler_took(run->handler, /* count= */ 1, mono_us_between(began, clock_mono()));
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

static void tx_handler_stop(Handler *base, Job *job)
{
    TxHandler                  *handler = (TxHandler *)base;
    scoped(mutex_unlock) Mutex *held    = mutex_hold(&handler->mutex);

    /* Those of a shared transaction have one connection, whose statement is canceled once: a second time would close it. */
    if (job->run && !conn_was_interrupted(job->run))
        conn_interrupt(job->run);
}

void tx_handler_init(TxHandler *handler, Pool *pool, void (*run)(Handler *handler, Job *job, SettleItem *ret_settle))
{
    handler->base        = (Handler){.run = run, .stop = tx_handler_stop};
    handler->pool        = pool;
    handler->shared_most = 1;
    mutex_init(&handler->mutex);
}

void tx_handler_done(TxHandler *handler)
{
    mutex_done(&handler->mutex);
}

/* A stopped body ends with the cancellation of its statement: that is no reason of its own. */
static bool error_is_of_stop(Job *job, const Error *said)
{
    return (job_is_stopped(job) || job->timed_out) &&
           (!said->sqlstate[0] || error_from_sqlstate(said->sqlstate) == ERR_TIMEOUT);
}

static const char *error_stored(Arena *arena, const TxRun *run, const Error *said)
{
    const char *text = run->raised ? said->text : problem_stored(said);

    if (run->suspect)
        text = "the connection to the database was lost while the handler ran; the handler may be the cause";

    if (run->refused)
        return arena_print(arena, "outcome could not be stored: %s", text);
    return said->sqlstate[0] ? arena_print(arena, "%s (SQLSTATE %s)", text, said->sqlstate) : arena_text(arena, text);
}

void tx_handler_run(TxHandler *handler, Job *job, TxHandlerBody *body, void *context, SettleItem *ret_settle)
{
    TxRun     run     = {.handler = handler, .job = job, .body = body, .context = context, .item = ret_settle};
    TxOptions options = {.name       = "handler",
                         .deadline   = job->deadline,
                         .arena      = job->arena,
                         .keyed      = true,
                         .is_foreign = true,
                         .is_suspect = &run.suspect};
    Error     error   = {0};
    ErrorCode code    = tx_run(handler->pool, &options, try_body, &run, &error);

    if (code == OK || run.decided)
        return;
    if (run.lost) {
        ret_settle->settled = ret_settle->again; /* by an earlier try whose response was lost */
        return;
    }
    const Error *said   = run.raised ? &run.said : &error;
    *ret_settle         = item_begin(job);
    ret_settle->outcome = run.refused ? OUTCOME_FAIL : error_outcome(said);
    job->timed_out      = run.begun && error_from_sqlstate(said->sqlstate) == ERR_TIMEOUT &&
                     deadline_left_ms(job->deadline) <= LIMIT_MARGIN_MS;
    /* An outage says nothing about a command that was not begun. One that was begun may be what ended the connection: that counts
     * as an attempt. */
    if (!run.begun && (error_verdict(code) != VERDICT_FINAL || code == ERR_REFUSED))
        job->not_begun = arena_text(job->arena, error.text);
    if (run.refused || run.suspect || !error_is_of_stop(job, said))
        ret_settle->error = error_stored(job->arena, &run, said);
}
