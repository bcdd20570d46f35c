/*
 * doctor_work.c - checks of stored work: rows that are stuck, queues, dead letters, retention, the ledger's clock.
 */
#include <inttypes.h>
#include <string.h>

#include "app/alert_rules.h"
#include "app/doctor_internal.h"
#include "sql.h"

#define BATCH_IDLE_S   86400
#define LEDGER_AHEAD_S 5 /* as in sql/wallet/post_batch.sql */

#define STUCK_COLUMNS(X, T) X(T, I64, expired, failed, unrescued, idle_s, read, lost, keyless)
DB_ROW(Stuck, STUCK_COLUMNS);
DB_SHAPE(stuck, Stuck, STUCK_COLUMNS);

DB_SHAPE(waiting, Waiting, WAITING_COLUMNS);

ErrorCode check_stuck(Doctor *doctor, CheckResult *result, Error *reterr)
{
    Stuck stuck;

    TRY(doctor_ask(doctor, sql_app_doctor_stuck, &stuck_shape, &stuck, reterr));
    if (stuck.lost)
        return check_found(result, CHECK_FAIL,
                           arena_print(doctor->arena,
                                       "%" PRId64 " of %" PRId64 " commands are in no queue and have no end",
                                       stuck.lost, stuck.read),
                           "this must not happen: keep the database as it is and report it");
    if (stuck.keyless)
        return check_found(result, CHECK_FAIL,
                           arena_print(doctor->arena, "%" PRId64 " order keys are held by no command, or wait for one",
                                       stuck.keyless),
                           "this must not happen: keep the database as it is and report it");
    if (stuck.unrescued)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena,
                                       "%" PRId64 " commands have a lease that ended a minute ago or earlier",
                                       stuck.unrescued),
                           "a worker or a pawl serve with role monitor requeues them: is one running?");
    if (stuck.idle_s > BATCH_IDLE_S)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena, "an open batch has had no new command for %" PRId64 " hours",
                                       stuck.idle_s / 3600),
                           "seal it with POST /v1/batches/{id}/seal");
    if (stuck.expired)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena, "%" PRId64 " dead letters have an expired lease", stuck.expired),
                           "a pawl serve with role monitor takes them over: is one running?");
    if (stuck.failed)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena, "%" PRId64 " dead letters have failed for good", stuck.failed),
                           "see pawl dlq list --status failed, then retry or delete them");
    return check_found(result, CHECK_OK, "no row is stuck", NULL);
}

/* Postings follow the clock again immediately; the times that were written remain. */
ErrorCode check_ledger_clock(Doctor *doctor, CheckResult *result, Error *reterr)
{
    int64_t ahead_s;

    TRY(doctor_ask(doctor, sql_app_doctor_ledger, &db_i64_shape, &ahead_s, reterr));
    if (ahead_s > LEDGER_AHEAD_S)
        return check_found(
            result, CHECK_WARN,
            arena_print(doctor->arena, "transactions of the ledger are dated %" PRId64 " s after the database's clock",
                        ahead_s),
            "the database's clock was ahead: check its time source; their order is that of the versions");
    return check_found(result, CHECK_OK, "no transaction of the ledger is dated in the future", NULL);
}

ErrorCode check_queues(Doctor *doctor, CheckResult *result, Error *reterr)
{
    Waiting    *waiting = &doctor->waiting;
    const char *text;

    TRY(doctor_ask(doctor, sql_app_doctor_waiting, &waiting_shape, waiting, reterr));
    if (!waiting->queued_id)
        return check_found(result, CHECK_OK, "no command is queued", NULL);
    text = arena_print(doctor->arena, "the oldest queued command, %s (%s / %s), has been queued for %" PRId64 " s",
                       waiting->queued_id, waiting->queued_domain, waiting->queued_type, waiting->queued_s);
    if (waiting->queued_s * 1000 <= doctor->serve.alert_waiting)
        return check_found(result, CHECK_OK, text, NULL);
    if (waiting->queued_note)
        return check_found(result, CHECK_WARN, arena_print(doctor->arena, "%s: %s", text, waiting->queued_note),
                           "pawl process define FILE, start the program that runs it, or pawl process cancel ID");
    if (strncmp(waiting->queued_domain, "process:", strlen("process:")) == 0)
        return check_found(result, CHECK_WARN, text,
                           "start a pawl serve with the role worker, or the program that runs processes of this type");
    return check_found(result, CHECK_WARN, text,
                       arena_print(doctor->arena,
                                   "start workers: pawl work %s, or a section [worker NAME] for pawl serve",
                                   waiting->queued_domain));
}

ErrorCode check_troubleshooting(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Waiting *waiting = &doctor->waiting;

    (void)reterr;
    if (waiting->in_tsq == 0)
        return check_found(result, CHECK_OK, "no command waits for an operator", NULL);
    return check_found(
        result, CHECK_WARN,
        arena_print(doctor->arena, "%" PRId64 " command%s for an operator, the oldest in domain %s", waiting->in_tsq,
                    waiting->in_tsq == 1 ? " waits" : "s wait", waiting->tsq_domain),
        "see pawl tsq list, and pawl process list --status WAITING_FOR_TSQ; then retry, cancel or complete");
}

ErrorCode check_handlers(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Waiting *waiting = &doctor->waiting;
    const char    *text = arena_print(doctor->arena, "%" PRId64 " of %" PRId64 " handlers of the last 5 minutes failed",
                                      waiting->handlers_failed, waiting->handlers);

    (void)reterr;
    if (alert_handlers_percent(waiting->handlers, waiting->handlers_failed) > doctor->serve.alert_failing)
        return check_found(result, CHECK_WARN, text, "see the logs of the workers, and pawl tsq list");
    return check_found(result, CHECK_OK, text, NULL);
}

ErrorCode check_dead_letters(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const char *text = arena_print(doctor->arena, "%" PRId64 " unresolved", doctor->waiting.letters_open);

    (void)reterr;
    if (doctor->waiting.letters_open > doctor->serve.alert_dead_letters)
        return check_found(result, CHECK_WARN, text, "see pawl dlq list");
    return check_found(result, CHECK_OK, text, NULL);
}

ErrorCode check_retention(Doctor *doctor, CheckResult *result, Error *reterr)
{
    (void)reterr;
    if (doctor->waiting.retention_jump_s > 0)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena,
                                       "retention waits for a day, because the clock is %" PRId64
                                       " s past its last run",
                                       doctor->waiting.retention_jump_s),
                           "check the server's time source, within a day");
    return check_found(result, CHECK_OK, "does not wait", NULL);
}

ErrorCode check_rate_limits(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const char *text = arena_print(doctor->arena, "other servers answered 429 %" PRId64 " times within the last hour",
                                   doctor->waiting.rate_limited);

    (void)reterr;
    if (doctor->waiting.rate_limited > doctor->serve.alert_rate_limited)
        return check_found(result, CHECK_WARN, text,
                           "see pawl_rate_limited_total of the pods: which server is called too often?");
    return check_found(result, CHECK_OK, text, NULL);
}
