/*
 * doctor_login.c - the check of PAWL_HANDLER_DATABASE_URL: the login of transactions that call functions of applications, see
 * sql/bus/handler.sql. Each finding has the statement that mends it.
 */
#include <string.h>

#include "app/doctor_internal.h"
#include "bus/handler.h"
#include "sql.h"

#define LOGIN_COLUMNS(X, T)          \
    X(T, TEXT, login, others, owner) \
    X(T, BOOL, is_super, may_call, is_member, is_owner)
DB_ROW(Login, LOGIN_COLUMNS);
DB_SHAPE(login, Login, LOGIN_COLUMNS);

#define ENDER_COLUMNS(X, T) \
    X(T, BOOL, may_end)     \
    X(T, TEXT, login)
DB_ROW(Ender, ENDER_COLUMNS);
DB_SHAPE(ender, Ender, ENDER_COLUMNS);

DB_SHAPE(found, HandlerFound, HANDLER_FOUND_COLUMNS);

static ErrorCode check_place(Doctor *doctor, Pool *pool, Error *reterr)
{
    const char *here, *there;

    TRY(doctor_ask(doctor, sql_app_doctor_place, &db_text_shape, &here, reterr));
    if (doctor_ask_of(doctor, pool, sql_app_doctor_place, &db_text_shape, &there, reterr) != OK)
        return doctor_found(
            doctor, CHECK_FAIL,
            "check user, password and database in PAWL_HANDLER_DATABASE_URL, and pg_hba.conf on the server", "%s",
            reterr->text);
    if (strcmp(here, there) != 0)
        return doctor_found(doctor, CHECK_FAIL, "name the same server and database in both",
                            "PAWL_HANDLER_DATABASE_URL leads to another database than PAWL_DATABASE_URL");
    return OK;
}

static ErrorCode check_rights(Doctor *doctor, const Login *login)
{
    static const char *const create =
        "name a login of its own in PAWL_HANDLER_DATABASE_URL: create role NAME login in role pawl_handler";
    Arena *arena = doctor->arena;

    if (login->is_super)
        return doctor_found(doctor, CHECK_WARN, create, "%s is a superuser: only functions of superusers are called",
                            login->login);
    if (!login->may_call && !login->is_member)
        return doctor_found(doctor, CHECK_FAIL,
                            arena_print(arena, "run as an administrator: grant pawl_handler to %s", login->login),
                            "%s may not call functions of applications", login->login);
    if (!login->may_call)
        return doctor_found(doctor, CHECK_FAIL,
                            arena_print(arena, "run as %s: select pawl.grant_roles()", login->owner),
                            "%s may not call functions of applications", login->login);
    if (login->is_owner)
        return doctor_found(doctor, CHECK_WARN, create,
                            "%s may act as %s: only functions of roles that may act as it are called", login->login,
                            login->owner);
    if (login->others[0])
        return doctor_found(doctor, CHECK_WARN, arena_print(arena, "revoke %s from %s", login->others, login->login),
                            "%s has %s: only functions of roles that may act as it are called", login->login,
                            login->others);
    return OK;
}

/* Can pawl's own login end functions that outlive their deadline? Their login can, but they can end its sessions as well. */
static ErrorCode check_ender(Doctor *doctor, const Login *login, Error *reterr)
{
    TxOptions options = doctor_options(doctor);
    Arena    *arena   = doctor->arena;
    Ender     ender;

    TRY(db_call(doctor->app->pool, &options, sql_app_doctor_ender, DB_ARGS(db_text(login->login)), &ender_shape, &ender,
                reterr));
    if (ender.may_end)
        return OK;
    return doctor_found(doctor, CHECK_WARN,
                        arena_print(arena, "run as an administrator: grant %s to %s", login->login, ender.login),
                        "%s may not end sessions of %s: only %s itself ends functions that outlive their "
                        "deadline, and a function can prevent that",
                        ender.login, login->login, login->login);
}

/* Of a section [worker NAME]; others name theirs when they start. */
static ErrorCode check_function(Doctor *doctor, Pool *pool, const Login *login, const char *function, Error *reterr)
{
    TxOptions     options = doctor_options(doctor);
    Arena        *arena   = doctor->arena;
    const char   *dot     = strchr(function, '.');
    HandlerFound *rows;
    int           count;

    if (!dot)
        return OK; /* refused by the settings */
    const char *schema = arena_bytes(arena, function, (size_t)(dot - function));
    TRY(db_call_many(pool, &options, sql_bus_handler_find, DB_ARGS(db_text(schema), db_text(dot + 1)), &found_shape,
                     &rows, &count, reterr));
    if (count == 0)
        return doctor_found(doctor, CHECK_FAIL, "create it, or correct the section [worker NAME] of the settings",
                            "function %s(payload jsonb, command_id uuid) returns jsonb does not exist", function);

    const HandlerFound *found = rows;
    if (!found->is_safe && !found->is_definer)
        return doctor_found(doctor, CHECK_FAIL,
                            arena_print(arena, "run as %s: alter function %s(jsonb, uuid) security definer",
                                        found->owner, function),
                            "function %s of %s would run with the rights of %s", function, found->owner, login->login);
    if (!found->is_callable)
        return doctor_found(
            doctor, CHECK_FAIL,
            arena_print(arena,
                        "run as %s: grant usage on schema %s to %s; grant execute on function %s(jsonb, uuid) to %s",
                        found->owner, schema, login->login, function, login->login),
            "%s may not call function %s", login->login, function);
    return OK;
}

ErrorCode check_handler_login(Doctor *doctor, Error *reterr)
{
    Pool              *pool     = doctor->app->handler_pool;
    const Settings    *settings = &doctor->serve;
    const CheckResult *result   = doctor->result;
    Login              login;

    if (pool == doctor->app->pool)
        return doctor_ok(doctor, "none: only functions of roles that may act as %s are called",
                         doctor->vitals.username);
    TRY(check_place(doctor, pool, reterr));
    if (result->state != CHECK_OK)
        return OK;
    TRY(doctor_ask_of(doctor, pool, sql_app_doctor_login, &login_shape, &login, reterr));
    TRY(check_rights(doctor, &login));
    if (result->state == CHECK_OK)
        TRY(check_ender(doctor, &login, reterr));
    for (size_t i = 0; result->state == CHECK_OK && i < settings->workers_count; i++) {
        const WorkerSettings *worker = settings->workers_list[i].values;

        if (worker->sql)
            TRY(check_function(doctor, pool, &login, worker->sql, reterr));
    }
    if (result->state != CHECK_OK)
        return OK;
    return doctor_ok(doctor, "%s may call functions of applications, and nothing else", login.login);
}
