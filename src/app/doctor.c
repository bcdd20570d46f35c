/*
 * doctor.c - the table of checks, and the run over it; see doctor.h.
 */
#include "app/doctor_internal.h"

#include <stdarg.h>

static printf_like(4, 0) void found_set(Doctor *doctor, CheckState state, const char *advice, const char *format,
                                        va_list values)
{
    doctor->result->state  = state;
    doctor->result->text   = arena_vprint(doctor->arena, format, values);
    doctor->result->advice = advice;
}

ErrorCode doctor_ok(Doctor *doctor, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    found_set(doctor, CHECK_OK, /* advice= */ NULL, format, values);
    va_end(values);
    return OK;
}

ErrorCode doctor_found(Doctor *doctor, CheckState state, const char *advice, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    found_set(doctor, state, advice, format, values);
    va_end(values);
    return OK;
}

TxOptions doctor_options(const Doctor *doctor)
{
    return (TxOptions){.name      = "doctor",
                       .deadline  = deadline_in_ms(DOCTOR_CHECK_MS),
                       .arena     = doctor->arena,
                       .read_only = true};
}

ErrorCode doctor_ask(Doctor *doctor, const char *sql, const DbShape *shape, void *ret_row, Error *reterr)
{
    return doctor_ask_of(doctor, doctor->app->pool, sql, shape, ret_row, reterr);
}

ErrorCode doctor_ask_of(Doctor *doctor, Pool *pool, const char *sql, const DbShape *shape, void *ret_row, Error *reterr)
{
    TxOptions options = doctor_options(doctor);

    return db_call(pool, &options, sql, DB_NONE, shape, ret_row, reterr);
}

static const struct {
    const char *name;
    Check      *check;
    bool        needs_schema;
    bool        vital; /* without it nothing after it can be checked */
} checks[] = {
    {"settings",          check_settings,          false, true },
    {"environment",       check_environment,       false, false},
    {"charts",            check_charts,            false, false},
    {"connection",        check_connection,        false, true },
    {"server",            check_server,            false, false},
    {"schema",            check_schema,            false, false},
    {"roles",             check_roles,             true,  false},
    {"handlers' login",   check_handler_login,     true,  false},
    {"row types",         check_row_types,         true,  false},
    {"pool",              check_pool,              false, false},
    {"clock",             check_clock,             false, false},
    {"long transactions", check_long_transactions, false, false},
    {"replication slots", check_slots,             false, false},
    {"wraparound",        check_wraparound,        false, false},
    {"disk",              check_disk,              false, false},
    {"stuck rows",        check_stuck,             true,  false},
    {"queues",            check_queues,            true,  false},
    {"troubleshooting",   check_troubleshooting,   true,  false},
    {"handlers",          check_handlers,          true,  false},
    {"dead letters",      check_dead_letters,      true,  false},
    {"retention",         check_retention,         true,  false},
    {"schedules",         check_schedules,         true,  false},
    {"rate limits",       check_rate_limits,       true,  false},
    {"ledger clock",      check_ledger_clock,      true,  false},
};

const char *check_state_text(CheckState state)
{
    static const char *const texts[] = {
        [CHECK_OK] = "ok", [CHECK_WARN] = "warn", [CHECK_FAIL] = "fail", [CHECK_SKIPPED] = "skipped"};

    return texts[state];
}

/* The codes that a check may return, as advice. */
static const char *advice_for(const Doctor *doctor, ErrorCode code)
{
    switch (code) {
    case ERR_USAGE:
        return "see pawl help settings";
    case ERR_REFUSED:
        return "check user, password and database in PAWL_DATABASE_URL, and pg_hba.conf on the server";
    case ERR_UNAVAILABLE:
        if (doctor->app && !doctor->app->pool)
            return doctor->data_dir ? "run pawl db start" : "pawl serve and pawl db start create and start it";
        return "is PostgreSQL running, and reachable from here? see host and port in PAWL_DATABASE_URL";
    case ERR_TIMEOUT:
        return "is PostgreSQL running, and reachable from here? see host and port in PAWL_DATABASE_URL";
    case ERR_BUSY:
        return "the server has no connection left: raise max_connections or lower PAWL_POOL_MAX";
    case ERR_DENIED:
        if (doctor->vitals.username)
            return arena_print(doctor->arena, "run as an administrator: grant pawl_reader to %s",
                               doctor->vitals.username);
        return "run pawl as the user who owns PAWL_HOME, or name another directory";
    default:
        return "see the message";
    }
}

ErrorCode doctor_run(const SettingsGiven *given, int64_t long_tx_ms, Arena *arena, CheckResult *ret_list,
                     int *ret_count, Error *reterr)
{
    Doctor    doctor = {.given = given, .long_tx_ms = long_tx_ms, .arena = arena};
    ErrorCode worst  = OK;
    bool      dead = false, no_schema = false;

    _Static_assert(COUNT(checks) <= DOCTOR_CHECKS_MAX, "space for every result");
    for (size_t i = 0; i < COUNT(checks); i++) {
        CheckResult *result = &ret_list[i];
        Error        error  = {0};
        ErrorCode    code;

        *result       = (CheckResult){.check = checks[i].name};
        doctor.result = result;
        /* A full disk is why a server does not start or answer, so it is looked for in any case. */
        bool is_blind = dead && !(doctor.data_dir && checks[i].check == check_disk);

        if (is_blind || (no_schema && checks[i].needs_schema)) {
            (void)doctor_found(&doctor, CHECK_SKIPPED, /* advice= */ NULL, "not checked");
            continue;
        }
        code = checks[i].check(&doctor, &error);
        if (code != OK)
            (void)doctor_found(&doctor, CHECK_FAIL, advice_for(&doctor, code), "%s", error.text);
        else if (result->state == CHECK_FAIL)
            code = fail(&error, ERR_CONFLICT, "%s", result->text);
        dead |= code != OK && checks[i].vital;
        no_schema |= code != OK && checks[i].check == check_schema;
        if (code != OK && worst == OK) {
            worst = code;
            (void)fail(reterr, code, "check \"%s\" failed", checks[i].name);
        }
    }
    if (doctor.app)
        app_close(doctor.app);
    *ret_count = COUNT(checks);
    return worst;
}
