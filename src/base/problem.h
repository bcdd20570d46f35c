/*
 * problem.h - the stable types of problem documents: what each means and what a client can do.
 *
 * Each error code has a type; a SQLSTATE of a module may have a more specific one (SqlState in base/error.h). A type's
 * status, exit code and verdict are those of its code. The pages below /problems/, OpenAPI, `pawl help errors` and the
 * reference are made from these rows.
 *
 * Invariant: every type that error_type() can return, "ok" apart, is listed exactly once.
 * Threads: any.
 */
#ifndef BASE_PROBLEM_H
#define BASE_PROBLEM_H

#include <stddef.h>

#include "base/error.h"

typedef struct {
    const char *type; /* "insufficient-funds" */
    ErrorCode   code;
    const char *meaning;
    const char *action;
    const char *sqlstate; /* that has this type; NULL: it is the code's own */
} Problem;

/* In the order of the codes, each followed by its SQLSTATEs' types. false: there are not that many. */
bool problem_at(size_t index, Problem *ret_problem);
/* false: no such type. */
bool problem_find(const char *type, Problem *ret_problem);

/* The message for a client: the error's own text, but the type's meaning where that text is for operators: it comes
 * from the database or from the connection and may name hosts, users, sockets and statements. */
const char *problem_detail(const Error *error);
/* The message that is stored with a command whose handler failed in a transaction. PostgreSQL's message about a
 * statement of the handler is kept; one about the connection is replaced, as in problem_detail(). */
const char *problem_stored(const Error *error);
/* Is the error's own text kept from clients? Then the log should have it. */
bool problem_is_confidential(const Error *error);

#endif
