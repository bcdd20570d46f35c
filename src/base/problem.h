/*
 * problem.h - the stable types of problem documents: what each means and what a client can do.
 *
 * A row per type; a type's status, exit code and verdict are those of its code. The pages below /problems/, OpenAPI, `pawl help
 * errors` and the reference are made from these rows.
 *
 * Invariant: every name that error_type() can give has exactly one row.
 * Threads: no shared state.
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
} Problem;

extern const Problem problem_rows[];
extern const size_t  problem_count;

/* NULL: no such type. */
const Problem *problem_find(const char *type);

/* The sentence for a client: the error's own text, but the type's meaning where that text was made for operators: it comes from
 * the database or the way to it and may name hosts, users, sockets and statements. */
const char *problem_detail(const Error *error);
/* The sentence that is stored with a command whose handler failed in a transaction. What the server says about a statement is the
 * handler's own text and stays; what was said about the connection is replaced, as in problem_detail(). */
const char *problem_stored(const Error *error);
/* Is the error's own text kept from clients? Then the log should have it. */
bool problem_is_confidential(const Error *error);

#endif
