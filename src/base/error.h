/*
 * error.h - error codes in one table, and errors with a message.
 *
 * A row holds the text, the stable type in problem documents, the HTTP status, the exit code and the verdict.
 * Functions return the code; an Error carries the message. It is written once, where the fact is
 * known; callers pass reterr on, or put context before it with error_prefix().
 * Each module has a table of the SQLSTATEs that its SQL raises (SqlState, joined by base/module.h).
 *
 * Threads: no shared state. Ownership: an Error owns nothing; file and type point to constants.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/*
 * What to do about a failure:
 *   FINAL    report it
 *   RETRY    roll back, wait, run again
 *   EVICT    the connection is bad and nothing was committed: run again on another one
 *   RESOLVE  it may have committed: look the key up
 */
typedef enum { VERDICT_FINAL, VERDICT_RETRY, VERDICT_RESOLVE, VERDICT_EVICT } Verdict;

/* clang-format off */
/*        code              text                        type                 http exit verdict */
#define ERROR_CODES(X)                                                                            \
        X(OK,               "ok",                       "ok",                200,  0, FINAL)      \
        X(ERR_USAGE,        "wrong usage",              "wrong-usage",       400,  2, FINAL)      \
        X(ERR_INVALID,      "invalid request",          "invalid-request",   400,  1, FINAL)      \
        X(ERR_NO_TOKEN,     "no valid token",           "no-valid-token",    401,  1, FINAL)      \
        X(ERR_DENIED,       "not allowed",              "not-allowed",       403,  1, FINAL)      \
        X(ERR_NOT_FOUND,    "not found",                "not-found",         404,  1, FINAL)      \
        X(ERR_METHOD,       "method not allowed",       "method-not-allowed", 405, 1, FINAL)      \
        X(ERR_SLOW,         "request took too long",    "request-timeout",   408,  1, FINAL)      \
        X(ERR_CONFLICT,     "conflicts with the state", "conflict",          409,  1, FINAL)      \
        X(ERR_LIMIT,        "over a limit",             "over-limit",        413,  1, FINAL)      \
        X(ERR_MEDIA,        "wrong content type",       "wrong-content-type", 415, 1, FINAL)      \
        X(ERR_KEY_REUSED,   "same key, another body",   "key-reused",        422,  1, FINAL)      \
        X(ERR_RATE,         "too many requests",        "too-many-requests", 429, 75, FINAL)      \
        X(ERR_HEADERS,      "headers too large",        "headers-too-large", 431,  1, FINAL)      \
        X(ERR_BUSY,         "try again",                "try-again",         503, 75, RETRY)      \
        X(ERR_TIMEOUT,      "timed out",                "timed-out",         503, 75, RETRY)      \
        X(ERR_STOPPING,     "shutting down",            "shutting-down",     503, 75, FINAL)      \
        X(ERR_UNAVAILABLE,  "database is unavailable",  "database-unavailable", 503, 69, EVICT)   \
        X(ERR_REFUSED,      "database refused us",      "database-refused",  503, 69, FINAL)      \
        X(ERR_UNKNOWN,      "may have committed",       "try-same-key",      503, 75, RESOLVE)    \
        X(ERR_INTERNAL,     "internal error",           "internal-error",    500,  1, FINAL)
/* clang-format on */

#define X(code, ...) code,
typedef enum { ERROR_CODES(X) ERROR_CODE_COUNT } ErrorCode;
#undef X

/* A SQLSTATE that a module's SQL raises, or a prefix of several. */
typedef struct {
    const char *sqlstate; /* NULL ends a table */
    ErrorCode   code;
    bool        is_outage;        /* the server's fault: counts towards opening the breaker */
    const char *type;             /* of problem documents, more specific than the code's; NULL: the code's */
    const char *meaning, *action; /* with a type: what it means, and what a client can do */
} SqlState;

/* What went wrong, for people. The code is for programs. */
typedef struct {
    ErrorCode   code;
    char        sqlstate[6]; /* "": not from PostgreSQL */
    const char *file;        /* NULL until error_set() */
    int         line;
    int         retry_ms; /* after which a retry may succeed; 0: not known */
    uint16_t    peer_at;  /* see error_set_peer(); 0: none */
    char        text[512];
} Error;

/* Fill *reterr (NULL is allowed) and return code, so that a caller can write: return fail(...). */
ErrorCode error_set(Error *reterr, const char *file, int line, ErrorCode code, const char *format, ...)
    printf_like(5, 6);
/* The code is the macro's own value, so that compilers see: where it failed, no ret_ is read. */
#define fail(reterr, code, ...)                                      \
    ({                                                               \
        const ErrorCode fail_ = (code);                              \
        error_set((reterr), __FILE__, __LINE__, fail_, __VA_ARGS__); \
        fail_;                                                       \
    })

/* What was found before, passed on with its code: into *reterr, unless the code is OK. Returns the code. */
ErrorCode error_pass(ErrorCode code, const Error *error, Error *reterr);
/* Put context before the text: error_prefix(reterr, "migration %d", 3) gives "migration 3: ...". */
void error_prefix(Error *reterr, const char *format, ...) printf_like(2, 3);

/* The other server that the error is about, such as "hooks.example.com port 443". Only the log shows it: it is kept
 * behind the text's NUL, so the text can be stored and sent to clients, who must not learn the names of internal hosts.
 * Cut to what fits. */
void        error_set_peer(Error *reterr, const char *format, ...) printf_like(2, 3);
const char *error_peer(const Error *error); /* "" for none */

/* Remember which SQLSTATE PostgreSQL gave; "" or NULL for none. */
void error_set_sqlstate(Error *reterr, const char *sqlstate);

/* The code for a SQLSTATE: the longest matching prefix in the tables of the modules wins; ERR_INTERNAL if there is
 * none. NULL or "": the connection broke, ERR_UNAVAILABLE. */
ErrorCode error_from_sqlstate(const char *sqlstate);

const char *error_text(ErrorCode code);
const char *error_name(ErrorCode code); /* "ERR_BUSY" */
/* The stable type for problem documents; a SQLSTATE may have a more specific one than its code. */
const char *error_type(const Error *error);
int         error_http(ErrorCode code);
int         error_exit(ErrorCode code);
Verdict     error_verdict(ErrorCode code);
/* Failures of the server or of the connection to it; only these count towards opening the breaker. */
bool error_is_infrastructure(ErrorCode code, const char *sqlstate);

/* The only macro that returns. */
#define TRY(expression)                \
    do {                               \
        ErrorCode try_ = (expression); \
        if (try_ != OK)                \
            return try_;               \
    } while (0)

#endif
