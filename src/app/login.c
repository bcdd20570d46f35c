/*
 * login.c - see login.h.
 */
#include "app/login.h"

#include <string.h>

#include "app/settings.h"
#include "pg/query.h"
#include "pg/tx.h"
#include "sql.h"

#define LACKS_COLUMNS(X, T) \
    X(T, TEXT, login, mend) \
    X(T, BOOL, worker, monitor, app, admin, is_idle, is_read_only)
DB_ROW(Lacks, LACKS_COLUMNS);
DB_SHAPE(lacks, Lacks, LACKS_COLUMNS);

/* The bot leases its updates as a monitor does, and registers matches as an application does. */
static unsigned roles_denied(const Lacks *lacks)
{
    return (lacks->app ? ROLE_API | ROLE_BOT : 0) | (lacks->worker ? ROLE_WORKER : 0) |
           (lacks->monitor ? ROLE_MONITOR | ROLE_BOT : 0);
}

/* The groups of which a login may do all of it. */
static const char *groups_text(unsigned roles)
{
    if (roles & (ROLE_API | ROLE_BOT))
        return "pawl_admin";
    if (roles & ROLE_WORKER)
        return roles & ROLE_MONITOR ? "pawl_worker, pawl_monitor" : "pawl_worker";
    return "pawl_monitor";
}

/* "api,worker" */
static const char *roles_text(Arena *arena, unsigned roles)
{
    static const char *const names[] = {
#define X(role, name) [role##_BIT] = (name),
        ROLES(X)
#undef X
    };
    const char *text = "";

    for (int i = 0; i < ROLE_COUNT; i++)
        if (roles & 1u << i)
            text = arena_print(arena, "%s%s%s", text, text[0] ? "," : "", names[i]);
    return text;
}

static const char *grant_text(Arena *arena, const Lacks *lacks, unsigned roles)
{
    if (lacks->mend)
        return lacks->mend;
    return arena_print(arena, "grant %s to %s%s", groups_text(roles), lacks->login,
                       lacks->is_idle ? " with inherit true" : "");
}

ErrorCode login_rights(Pool *pool, unsigned roles, Deadline deadline, Arena *arena, LoginRights *ret_rights,
                       Error *reterr)
{
    TxOptions options = {.name = "login-rights", .deadline = deadline, .arena = arena, .read_only = true};
    Lacks     lacks;

    TRY(db_call(pool, &options, sql_app_login_lacks, DB_NONE, &lacks_shape, &lacks, reterr));

    unsigned    denied = lacks.is_read_only ? roles : roles & roles_denied(&lacks);
    LoginRights rights = {.grant = grant_text(arena, &lacks, roles), .rest = roles_text(arena, roles & ~denied)};

    if (lacks.is_read_only)
        rights.denied = arena_print(arena, "default_transaction_read_only is on for user %s", lacks.login);
    else if (denied)
        rights.denied = arena_print(arena, "user %s may not do what the role%s", lacks.login,
                                    denied & (denied - 1) ? arena_print(arena, "s %s need", roles_text(arena, denied))
                                                          : arena_print(arena, " %s needs", roles_text(arena, denied)));
    else if (roles & ROLE_API && lacks.admin)
        rights.refused =
            arena_print(arena, "requests of operators get 403: user %s has not all rights of pawl_admin", lacks.login);
    *ret_rights = rights;
    return OK;
}

#define NEEDS_COLUMNS(X, T) X(T, TEXT, login, groups)
DB_ROW(Needs, NEEDS_COLUMNS);
DB_SHAPE(needs, Needs, NEEDS_COLUMNS);

void login_explain(Pool *pool, Deadline deadline, Error *error)
{
    static const char         denied[] = "permission denied for function ";
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions   options = {.name = "login-needs", .deadline = deadline, .arena = arena, .read_only = true};
    const char *found   = strcmp(error->sqlstate, "42501") == 0 ? strstr(error->text, denied) : NULL, *name;
    Needs       needs;

    if (!found)
        return;
    name = found + strlen(denied);
    name = arena_bytes(arena, name, strcspn(name, " "));
    if (db_call(pool, &options, sql_app_login_needs, DB_ARGS(db_text(name)), &needs_shape, &needs, NULL) == OK &&
        needs.groups)
        (void)fail(error, error->code, "%s: user %s needs the role %s: grant %s to %s",
                   arena_print(arena, "permission denied for function %s", name), needs.login, needs.groups,
                   needs.groups, needs.login);
}
