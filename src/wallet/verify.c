/*
 * verify.c - works off the plan of a verification with a few threads.
 */
#include "wallet/verify.h"

#include <string.h>

#include "base/sync.h"
#include "pg/lock_calls.h"
#include "pg/tx.h"
#include "sql.h"
#include "wallet/wallet.h"

#define VERIFY_WORKERS 2
#define SEAL_BLOCK     1000
#define NOTE_LOCK_MS   1000

#define FINDING_COLUMNS(X, T) X(T, TEXT, what, which, sentence)
DB_SHAPE(finding, Finding, FINDING_COLUMNS);

#define STEP_COLUMNS(X, T) \
    X(T, TEXT, step)       \
    X(T, I64, low, high, work)
DB_ROW(Step, STEP_COLUMNS);
DB_SHAPE(step, Step, STEP_COLUMNS);

typedef struct {
    Pool                *pool;
    const VerifyOptions *options;
    Deadline             deadline;
    const Step          *steps;
    int                  step_count;
    int64_t              total;
    Mutex                mutex; /* guards what follows */
    int                  next;
    int64_t              done;
    Arena               *arena;
    VerifyReport        *report;
    ErrorCode            code; /* of the first step that failed; it ends the others */
    Error               *error;
} Verification;

static const Step *step_take(Verification *verification)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&verification->mutex);

    if (verification->code != OK || verification->next == verification->step_count)
        return NULL;
    return &verification->steps[verification->next++];
}

static void step_done(Verification *verification, const Step *step, ErrorCode code, const Error *why,
                      const Finding *list, int count)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&verification->mutex);

    if (code != OK) {
        if (verification->code == OK)
            *verification->error = *why;
        verification->code = code;
        return;
    }
    for (int i = 0; i < count; i++)
        findings_add(&verification->report->findings, verification->arena, &list[i]);
    verification->done += step->work;
    /* Rows of sealed transactions are read twice: compared with their seals, and with each other. */
    if (strcmp(step->step, "txns") != 0)
        verification->report->rows += step->work;
    if (verification->options->progress)
        verification->options->progress(verification->options->context, verification->done, verification->total);
}

static void *worker_run(void *context)
{
    Verification *verification = context;
    const Step   *step;

    while ((step = step_take(verification))) {
        scoped(arena_free) Arena *arena = arena_new((size_t)64 << 20);
        TxOptions options = {.name = "verify", .deadline = verification->deadline, .arena = arena, .read_only = true};
        Error     why     = {0};
        void     *rows;
        int       count = 0;
        ErrorCode code;

        code = db_call_many(verification->pool, &options, sql_wallet_verify_step,
                            DB_ARGS(db_text(step->step), db_i64(step->low), db_i64(step->high)), &finding_shape, &rows,
                            &count, &why);
        step_done(verification, step, code, &why, code == OK ? rows : NULL, count);
    }
    return NULL;
}

static ErrorCode steps_run(Verification *verification)
{
    pthread_t workers[VERIFY_WORKERS];
    int       started = 0; /* this thread takes all steps if no other can be had */

    mutex_init(&verification->mutex);
    while (started < VERIFY_WORKERS - 1 && thread_try_start("verify", worker_run, verification, &workers[started]))
        started++;
    worker_run(verification);
    for (int i = 0; i < started; i++)
        thread_join(workers[i]);
    mutex_done(&verification->mutex);
    return verification->code;
}

static ErrorCode note(Tx *tx, void *context, Error *reterr)
{
    const VerifyReport *report = context;

    return db_run(tx, sql_wallet_verify_record, DB_ARGS(db_i64(report->seals)), NULL, reterr);
}

/* Idempotent. A mark that another transaction has locked is not waited for: the caller's thread is one of few. */
static ErrorCode report_note(Pool *pool, Deadline deadline, Arena *arena, VerifyReport *report, Error *reterr)
{
    TxOptions options = {
        .name = "verify_note", .deadline = deadline, .lock_ms = NOTE_LOCK_MS, .arena = arena, .keyed = true};
    ErrorCode code = tx_run(pool, &options, note, report, reterr);

    if (code != OK && error_is_lock(reterr))
        return fail(reterr, ERR_BUSY,
                    "the ledger is consistent, but this cannot be remembered, because another transaction has locked "
                    "table wallet.verified: verify again");
    return code;
}

static ErrorCode plan_make(Verification *verification, Arena *arena, Error *reterr)
{
    TxOptions reading = {.name = "verify_plan", .deadline = verification->deadline, .arena = arena, .read_only = true};
    void     *rows;

    TRY(db_call_many(verification->pool, &reading, sql_wallet_verify_plan,
                     DB_ARGS(db_bool(verification->options->incremental)), &step_shape, &rows,
                     &verification->step_count, reterr));
    verification->steps = rows;
    for (int i = 0; i < verification->step_count; i++) {
        const Step *step = &verification->steps[i];

        verification->total += step->work;
        if (strcmp(step->step, "seals") == 0 && step->high > verification->report->seals)
            verification->report->seals = step->high;
        else if (strcmp(step->step, "tail") == 0)
            verification->report->unsealed += step->work;
    }
    return OK;
}

ErrorCode wallet_verify(Pool *pool, const VerifyOptions *options, Deadline deadline, Arena *arena,
                        VerifyReport *ret_report, Error *reterr)
{
    Verification verification = {
        .pool = pool, .options = options, .deadline = deadline, .arena = arena, .report = ret_report, .error = reterr};
    Mono start  = clock_mono();
    int  sealed = SEAL_BLOCK;

    memset(ret_report, 0, sizeof *ret_report);
    while (sealed == SEAL_BLOCK)
        TRY(wallet_seal(pool, deadline, SEAL_BLOCK, &sealed, reterr));
    TRY(plan_make(&verification, arena, reterr));
    TRY(steps_run(&verification));
    ret_report->took_ms = mono_ms_between(start, clock_mono());
    if (ret_report->findings.count == 0 && ret_report->seals > 0) {
        ErrorCode noted = report_note(pool, deadline, arena, ret_report, reterr);

        if (noted !=
            ERR_DENIED) /* only admins may set where the next incremental one begins; the verification is valid */
            return noted;
    }
    return OK;
}

void verify_write(Writer *writer, const VerifyReport *report)
{
    writer_object(writer, NULL);
    writer_bool(writer, "ok", report->findings.count == 0);
    writer_i64(writer, "rows", report->rows);
    writer_i64(writer, "seals", report->seals);
    writer_i64(writer, "unsealed", report->unsealed);
    writer_i64(writer, "took_ms", report->took_ms);
    findings_write(writer, &report->findings);
    writer_end(writer);
}
