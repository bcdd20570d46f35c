/*
 * doctor_internal.h - what the checks of a doctor share: doctor.c runs them, doctor_settings.c, doctor_server.c and doctor_work.c have them.
 *
 * Threads: one. Ownership: texts live in the arena of the caller of doctor_run().
 */
#ifndef APP_DOCTOR_INTERNAL_H
#define APP_DOCTOR_INTERNAL_H

#include "app/app.h"
#include "app/doctor.h"
#include "pg/tx.h"

#define DOCTOR_CHECK_MS 10000 /* for what one check asks */

/* One row about the server. */
#define VITALS_COLUMNS(X, T)                                                                          \
    X(T, TIME, now)                                                                                   \
    X(T, TEXT, version, longest_name, data_directory, username, prepared_gid, prepared_in, slot_name) \
    X(T, I32, version_number, connections, connections_max, longest_pid)                              \
    X(T, BOOL, read_only, synchronous, durable, sees_all, slot_active)                                \
    X(T, I64, longest_seconds, wraparound_age, prepared_seconds, slot_age)
DB_ROW(Vitals, VITALS_COLUMNS);

/* What alerts about shared state are about. */
#define WAITING_COLUMNS(X, T)                                                                          \
    X(T, I64, queued_s, queued_more, queued_domains, in_tsq, letters_open, retention_jump_s, handlers, \
      handlers_failed, rate_limited, deepest, deepest_s)                                               \
    X(T, TEXT, queued_domain, queued_type, queued_id, queued_note, tsq_domain, deepest_domain)         \
    X(T, BOOL, deepest_about)
DB_ROW(Waiting, WAITING_COLUMNS);

/* What checks need and find out for each other. */
typedef struct {
    const SettingsGiven *given;
    Settings             serve;      /* as pawl serve would have them */
    bool                 is_private; /* no URL is given */
    int64_t              long_tx_ms;
    Arena               *arena;
    CheckResult         *result;   /* of the check that runs; CHECK_OK until it finds something */
    const char          *data_dir; /* of a private server, whether it answers or not; NULL: not known */
    App                 *app;      /* NULL until the check "settings" passed */
    Vitals               vitals;   /* asked once, by the check "connection" */
    int64_t              skew_ms;  /* of the database's clock, when it answered */
    Waiting              waiting;  /* asked once, by the check "queues" */
} Doctor;

/* An error is a check that failed, too; its code gives the advice. */
typedef ErrorCode Check(Doctor *doctor, Error *reterr);
/* What the check found: nothing to do, or what to do. Both return OK. */
ErrorCode doctor_ok(Doctor *doctor, const char *format, ...) printf_like(2, 3);
ErrorCode doctor_found(Doctor *doctor, CheckState state, const char *advice, const char *format, ...) printf_like(4, 5);
/* For a read of the database. */
TxOptions doctor_options(const Doctor *doctor);
/* One row of it. */
must_check ErrorCode doctor_ask(Doctor *doctor, const char *sql, const DbShape *shape, void *ret_row, Error *reterr);
must_check ErrorCode doctor_ask_of(Doctor *doctor, Pool *pool, const char *sql, const DbShape *shape, void *ret_row,
                                   Error *reterr);

/* ---- doctor_settings.c: before the database is asked ---- */
Check check_settings, check_environment, check_charts;

/* ---- doctor_server.c: the server, the schema and the rights ---- */
Check check_connection, check_server, check_schema, check_roles, check_row_types, check_disk, check_pool, check_clock,
    check_long_transactions, check_slots, check_wraparound;

/* ---- doctor_login.c: the login of transactions that call functions of applications ---- */
Check check_handler_login;

/* ---- doctor_work.c: commands, dead letters, the ledger ---- */
Check check_stuck, check_ledger_clock, check_queues, check_troubleshooting, check_handlers, check_dead_letters,
    check_retention, check_schedules, check_rate_limits;

#endif
