/*
 * problem.c - see problem.h.
 */
#include "base/problem.h"

#include <string.h>

#include "base/module.h"

#define SAME_KEY "Repeat it after Retry-After, with the same key."

/* clang-format off */
static const struct {
    const char *meaning, *action;
} rows[ERROR_CODE_COUNT] = {
    [ERR_USAGE] = {"The command line or a setting is wrong.",
     "Correct what the detail names; see pawl help."},
    [ERR_INVALID] = {"A field, parameter or header is missing, malformed or out of range. Nothing was written.",
     "Correct what the detail names."},
    [ERR_NO_TOKEN] = {"The request has no token, or one that is unknown, revoked or expired.",
     "Send Authorization: Bearer TOKEN with a token from pawl key create."},
    [ERR_DENIED] = {"The token lacks the scope that this route needs, or is bound to other domains or owners.",
     "Use a key with the scope, or with the binding, that the detail names."},
    [ERR_NOT_FOUND] = {"Nothing has this path or id.",
     "Check the id; it may have been deleted after its retention."},
    [ERR_METHOD] = {"The path exists, but not with this method.",
     "Use a method of the header Allow."},
    [ERR_SLOW] = {"The request did not arrive in time.",
     "Send it faster, or in smaller pieces."},
    [ERR_CONFLICT] = {"The request conflicts with the present state.",
     "Read the state; another request with a new key may succeed."},
    [ERR_LIMIT] = {"The request is larger than a limit.",
     "Send it in smaller pieces."},
    [ERR_MEDIA] = {"The Content-Type of the body is not JSON.",
     "Send application/json in UTF-8."},
    [ERR_KEY_REUSED] = {"The key was used for another request.",
     "Use a new key, or send exactly the request that was sent with this one."},
    [ERR_RATE] = {"Too many requests.",
     "Slow down; repeat after Retry-After."},
    [ERR_HEADERS] = {"The headers are larger than a limit.",
     "Send fewer or smaller headers."},
    [ERR_BUSY] = {"The server is busy, or another transaction holds what this one needs. Nothing was written.",
     SAME_KEY},
    [ERR_TIMEOUT] = {"The request could not be completed in time. Nothing was written.",
     SAME_KEY},
    [ERR_STOPPING] = {"The server is shutting down.",
     "Repeat it on another server, with the same key."},
    [ERR_UNAVAILABLE] = {"The database cannot be reached. Nothing was written.",
     SAME_KEY},
    [ERR_REFUSED] = {"The database refuses the server's connections. Nothing was written.",
     "The operator of the server must act: pawl doctor says how."},
    [ERR_UNKNOWN] = {"The commit was not confirmed: the connection to the database broke, or no synchronous standby confirmed it in time. The "
     "request may have been committed.",
     "Repeat it with the same key: the response has the outcome."},
    [ERR_INTERNAL] = {"A bug in the server. Its log has the details under this instance.",
     "Report it with the instance; a repeat with the same key is safe."},
};
/* clang-format on */

/* The index-th SQLSTATE of any module that has this code and a type of its own. */
static const SqlState *state_at(ErrorCode code, size_t index)
{
    const Module *module;

    for (size_t i = 0; (module = module_at(i)); i++)
        for (const SqlState *state = module->states; state && state->sqlstate; state++)
            if (state->code == code && state->type && index-- == 0)
                return state;
    return NULL;
}

bool problem_at(size_t index, Problem *ret_problem)
{
    for (ErrorCode code = OK + 1; code < ERROR_CODE_COUNT; code++) {
        const SqlState *state;

        if (index-- == 0) {
            *ret_problem =
                (Problem){error_type(&(Error){.code = code}), code, rows[code].meaning, rows[code].action, NULL};
            return true;
        }
        for (size_t i = 0; (state = state_at(code, i)); i++)
            if (index-- == 0) {
                *ret_problem = (Problem){state->type, code, state->meaning, state->action, state->sqlstate};
                return true;
            }
    }
    return false;
}

bool problem_find(const char *type, Problem *ret_problem)
{
    Problem problem;

    for (size_t i = 0; problem_at(i, &problem); i++)
        if (strcmp(problem.type, type) == 0) {
            *ret_problem = problem;
            return true;
        }
    return false;
}

/* Errors of requests are worded for clients where they are made; those of status 500 and above only if the database had
 * no part in them, as in "too many connections" of the HTTP server. */
bool problem_is_confidential(const Error *error)
{
    if (error_http(error->code) < 500)
        return false;
    return error->code == ERR_INTERNAL || error->sqlstate[0] != '\0' ||
           (error->file && strncmp(error->file, "pg/", 3) == 0);
}

const char *problem_stored(const Error *error)
{
    bool is_connection = error->code == ERR_UNAVAILABLE || error->code == ERR_REFUSED || error->code == ERR_UNKNOWN;

    return is_connection || (error->code != ERR_INTERNAL && error->sqlstate[0] == '\0') ? problem_detail(error)
                                                                                        : error->text;
}

const char *problem_detail(const Error *error)
{
    Problem problem;

    if (!problem_is_confidential(error))
        return error->text;
    return problem_find(error_type(error), &problem) ? problem.meaning : error_text(error->code);
}
