/*
 * login.h - may the login of PAWL_DATABASE_URL do what the roles of a pod need?
 *
 * Each role of a pod needs the functions of one group of sql/base/grants.sql; a login that may call all of them has them, whether as a member of
 * the group, by grants of its own or as the owner. Without this check a pod would say that it is ready and fail at its first periodic task.
 * Threads: any. Ownership: texts live in the given arena.
 */
#ifndef APP_LOGIN_H
#define APP_LOGIN_H

#include "base/arena.h"
#include "base/error.h"
#include "pg/pool.h"

typedef struct {
    const char *denied;  /* what pawl serve would not start with; NULL: nothing */
    const char *refused; /* what it would refuse to its clients; NULL: nothing */
    const char *grant;   /* the statement that mends either */
    const char *rest;    /* "api,worker": the roles that this login is enough for; "": none */
} LoginRights;

/* roles: of the pod, see Role. */
must_check ErrorCode login_rights(Pool *pool, unsigned roles, Deadline deadline, Arena *arena, LoginRights *ret_rights,
                                  Error *reterr);

/* "permission denied for function process_retry": adds the groups that may call it, if the login may ask. */
void login_explain(Pool *pool, Deadline deadline, Error *error);

#endif
