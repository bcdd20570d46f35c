/*
 * doctor_work.c - checks of stored work: rows that are stuck, queues, dead letters, retention, the ledger's clock.
 */
#include <inttypes.h>
#include <string.h>

#include "app/alert_rules.h"
#include "app/doctor_internal.h"
#include "sql.h"

#define BATCH_IDLE_S    86400
#define SCHEDULE_LATE_S 60
#define LEDGER_AHEAD_S  5 /* as in sql/wallet/post_batch.sql */

#define STUCK_COLUMNS(X, T) X(T, I64, expired, failed, unrescued, idle_s, read, lost, keyless)
DB_ROW(Stuck, STUCK_COLUMNS);
DB_SHAPE(stuck, Stuck, STUCK_COLUMNS);

DB_SHAPE(waiting, Waiting, WAITING_COLUMNS);

ErrorCode check_stuck(Doctor *doctor, Error *reterr)
{
    Stuck stuck;

    TRY(doctor_ask(doctor, sql_app_doctor_stuck, &stuck_shape, &stuck, reterr));
    if (stuck.lost)
        return doctor_found(doctor, CHECK_FAIL, "this must not happen: keep the database as it is and report it",
                            "%" PRId64 " of %" PRId64 " commands are in no queue and have no end", stuck.lost,
                            stuck.read);
    if (stuck.keyless)
        return doctor_found(doctor, CHECK_FAIL, "this must not happen: keep the database as it is and report it",
                            "%" PRId64 " order keys are held by no command, or wait for one", stuck.keyless);
    if (stuck.unrescued)
        return doctor_found(doctor, CHECK_WARN,
                            "a worker or a pawl serve with role monitor requeues them: is one running?",
                            "%" PRId64 " commands have a lease that ended a minute ago or earlier", stuck.unrescued);
    if (stuck.idle_s > BATCH_IDLE_S)
        return doctor_found(doctor, CHECK_WARN, "seal it with POST /v1/batches/{id}/seal",
                            "an open batch has had no new command for %" PRId64 " hours", stuck.idle_s / 3600);
    if (stuck.expired)
        return doctor_found(doctor, CHECK_WARN, "a pawl serve with role monitor takes them over: is one running?",
                            "%" PRId64 " dead letters have an expired lease", stuck.expired);
    if (stuck.failed)
        return doctor_found(doctor, CHECK_WARN, "see pawl dlq list --status failed, then retry or delete them",
                            "%" PRId64 " dead letters have failed for good", stuck.failed);
    return doctor_ok(doctor, "no row is stuck");
}

#define SCHEDULES_COLUMNS(X, T) \
    X(T, I64, failing, due_s)   \
    X(T, TEXT, name, error)
DB_ROW(SchedulesFound, SCHEDULES_COLUMNS);
DB_SHAPE(schedules_found, SchedulesFound, SCHEDULES_COLUMNS);

ErrorCode check_schedules(Doctor *doctor, Error *reterr)
{
    SchedulesFound found;

    TRY(doctor_ask(doctor, sql_app_doctor_schedules, &schedules_found_shape, &found, reterr));
    if (found.failing)
        return doctor_found(doctor, CHECK_WARN, "see pawl schedule list --status failing",
                            "%" PRId64 " cannot fire; %s, for longest: %s", found.failing, found.name, found.error);
    if (found.due_s > SCHEDULE_LATE_S)
        return doctor_found(doctor, CHECK_WARN, "a pawl serve with role monitor fires them: is one running?",
                            "one has been due for %" PRId64 " s and has not fired", found.due_s);
    return doctor_ok(doctor, "none is late or failing");
}

/* Postings follow the clock again immediately; the times that were written remain. */
ErrorCode check_ledger_clock(Doctor *doctor, Error *reterr)
{
    int64_t ahead_s;

    TRY(doctor_ask(doctor, sql_app_doctor_ledger, &db_i64_shape, &ahead_s, reterr));
    if (ahead_s > LEDGER_AHEAD_S)
        return doctor_found(
            doctor, CHECK_WARN,
            "the database's clock was ahead: check its time source; their order is that of the versions",
            "transactions of the ledger are dated %" PRId64 " s after the database's clock", ahead_s);
    return doctor_ok(doctor, "no transaction of the ledger is dated in the future");
}

#define QUEUED_MORE_MAX 10000 /* counted at most */

ErrorCode check_queues(Doctor *doctor, Error *reterr)
{
    Waiting    *waiting = &doctor->waiting;
    const char *text;

    TRY(doctor_ask(doctor, sql_app_doctor_waiting, &waiting_shape, waiting, reterr));
    if (!waiting->queued_id)
        return doctor_ok(doctor, "no command is queued");
    text = arena_print(doctor->arena, "the oldest queued command, %s (%s / %s), has been queued for %" PRId64 " s",
                       waiting->queued_id, waiting->queued_domain, waiting->queued_type, waiting->queued_s);
    if (waiting->queued_more)
        text = arena_print(doctor->arena, "%s, and %" PRId64 "%s more in %" PRId64 " domain%s", text,
                           waiting->queued_more, waiting->queued_more == QUEUED_MORE_MAX ? " or" : "",
                           waiting->queued_domains, waiting->queued_domains == 1 ? "" : "s");
    if (waiting->deepest_domain && strcmp(waiting->deepest_domain, waiting->queued_domain) != 0)
        text = arena_print(doctor->arena,
                           "%s; most commands are queued in %s, %s%" PRId64 ", the oldest of them for %" PRId64 " s",
                           text, waiting->deepest_domain, waiting->deepest_about ? "about " : "", waiting->deepest,
                           waiting->deepest_s);
    if (waiting->queued_s * 1000 <= doctor->serve.alert_waiting)
        return doctor_ok(doctor, "%s", text);
    if (waiting->queued_note)
        return doctor_found(doctor, CHECK_WARN,
                            "pawl process define FILE, start the program that runs it, or pawl process cancel ID",
                            "%s: %s", text, waiting->queued_note);
    if (strncmp(waiting->queued_domain, "process:", strlen("process:")) == 0)
        return doctor_found(doctor, CHECK_WARN,
                            "start a pawl serve with the role worker, or the program that runs processes of this type",
                            "%s", text);
    return doctor_found(doctor, CHECK_WARN,
                        arena_print(doctor->arena,
                                    "start workers: pawl work %s, or a section [worker NAME] for pawl serve",
                                    waiting->queued_domain),
                        "%s", text);
}

ErrorCode check_troubleshooting(Doctor *doctor, Error *reterr)
{
    const Waiting *waiting = &doctor->waiting;

    (void)reterr;
    if (waiting->in_tsq == 0)
        return doctor_ok(doctor, "no command waits for an operator");
    return doctor_found(
        doctor, CHECK_WARN,
        "see pawl tsq list, and pawl process list --status WAITING_FOR_TSQ; then retry, cancel or complete",
        "%" PRId64 " command%s for an operator, the oldest in domain %s", waiting->in_tsq,
        waiting->in_tsq == 1 ? " waits" : "s wait", waiting->tsq_domain);
}

ErrorCode check_handlers(Doctor *doctor, Error *reterr)
{
    const Waiting *waiting = &doctor->waiting;
    const char    *text = arena_print(doctor->arena, "%" PRId64 " of %" PRId64 " handlers of the last 5 minutes failed",
                                      waiting->handlers_failed, waiting->handlers);

    (void)reterr;
    if (alert_handlers_percent(waiting->handlers, waiting->handlers_failed) > doctor->serve.alert_failing)
        return doctor_found(doctor, CHECK_WARN, "see the logs of the workers, and pawl tsq list", "%s", text);
    return doctor_ok(doctor, "%s", text);
}

ErrorCode check_dead_letters(Doctor *doctor, Error *reterr)
{
    const char *text = arena_print(doctor->arena, "%" PRId64 " unresolved", doctor->waiting.letters_open);

    (void)reterr;
    if (doctor->waiting.letters_open > doctor->serve.alert_dead_letters)
        return doctor_found(doctor, CHECK_WARN, "see pawl dlq list", "%s", text);
    return doctor_ok(doctor, "%s", text);
}

ErrorCode check_retention(Doctor *doctor, Error *reterr)
{
    (void)reterr;
    if (doctor->waiting.retention_jump_s > 0)
        return doctor_found(doctor, CHECK_WARN, "check the server's time source, within a day",
                            "retention waits for a day, because the clock is %" PRId64 " s past its last run",
                            doctor->waiting.retention_jump_s);
    return doctor_ok(doctor, "does not wait");
}

ErrorCode check_rate_limits(Doctor *doctor, Error *reterr)
{
    const char *text = arena_print(doctor->arena, "other servers answered 429 %" PRId64 " times within the last hour",
                                   doctor->waiting.rate_limited);

    (void)reterr;
    if (doctor->waiting.rate_limited > doctor->serve.alert_rate_limited)
        return doctor_found(doctor, CHECK_WARN,
                            "see pawl_rate_limited_total of the pods: which server is called too often?", "%s", text);
    return doctor_ok(doctor, "%s", text);
}
