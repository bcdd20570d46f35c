/*
 * error.c - the table of failures, and the table that turns a SQLSTATE into one of them.
 */
#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

typedef struct {
    const char *name;
    const char *text;
    const char *type;
    int         http;
    int         exit;
    Verdict     verdict;
} ErrorRow;

#define X(code, text, type, http, exit, verdict) {#code, text, type, http, exit, VERDICT_##verdict},
static const ErrorRow rows[ERROR_CODE_COUNT] = {ERROR_CODES(X)};
#undef X

/* Does the failure say something about the server's health? SICK feeds the breaker, FINE does not. */
typedef enum { FINE, SICK } Health;

typedef struct {
    const char *prefix;
    ErrorCode   code;
    Health      health;
    const char *type; /* finer than the code's own; NULL: the code's */
} StateRow;

/* clang-format off */
/* The order is for people: the longest prefix wins wherever it stands. */
static const StateRow states[] = {
    {"08",    ERR_UNAVAILABLE, SICK, NULL},
    {"08007", ERR_UNKNOWN,     SICK, NULL}, /* transaction resolution unknown */
    {"0A000", ERR_INTERNAL,    FINE, NULL},
    {"22",    ERR_INVALID,     FINE, NULL},
    {"23",    ERR_CONFLICT,    FINE, NULL},
    {"23502", ERR_INVALID,     FINE, NULL}, /* a missing value and a check that fails are bad input, not a conflict */
    {"23514", ERR_INVALID,     FINE, NULL},
    {"25006", ERR_UNAVAILABLE, FINE, NULL}, /* read-only: a failover left us on a standby that is alive and well */
    {"25P03", ERR_UNAVAILABLE, FINE, NULL}, /* idle in transaction for too long: the session is gone, not the server */
    {"25P04", ERR_UNAVAILABLE, FINE, NULL}, /* transaction_timeout: likewise */
    {"28",    ERR_REFUSED,     FINE, NULL}, /* password, pg_hba.conf: trying again does not help */
    {"3D000", ERR_REFUSED,     FINE, NULL}, /* no such database */
    {"40",    ERR_BUSY,        FINE, NULL}, /* deadlock, serialization: the loser runs again */
    {"40003", ERR_UNKNOWN,     FINE, NULL}, /* statement completion unknown: the one of its class that may have committed */
    {"42",    ERR_INTERNAL,    FINE, NULL}, /* our own SQL is wrong */
    {"42501", ERR_DENIED,      FINE, NULL},
    {"53",    ERR_UNAVAILABLE, SICK, NULL}, /* out of memory and the like */
    {"53100", ERR_UNAVAILABLE, FINE, NULL}, /* disk full: writes fail, reads go on, so the breaker must not refuse them */
    {"53300", ERR_BUSY,        FINE, NULL}, /* too many connections: the server answers, and one may come free */
    {"55006", ERR_BUSY,        FINE, NULL}, /* object in use */
    {"55P03", ERR_BUSY,        FINE, NULL}, /* lock not available: lock_timeout or nowait */
    {"57",    ERR_BUSY,        FINE, NULL}, /* operator intervention */
    {"57014", ERR_TIMEOUT,     FINE, NULL}, /* a slow statement is not a dead server */
    {"57P",   ERR_UNAVAILABLE, SICK, NULL}, /* shutting down, crashed, starting up */
    {"58",    ERR_UNAVAILABLE, SICK, NULL}, /* I/O error under the server */
    {"PW001", ERR_NOT_FOUND,   FINE, NULL},
    {"PW002", ERR_CONFLICT,    FINE, NULL},
    {"PW003", ERR_INVALID,     FINE, NULL},
    {"QU001", ERR_INVALID,     FINE, NULL},
    {"QU002", ERR_KEY_REUSED,  FINE, NULL},
    {"QU003", ERR_CONFLICT,    FINE, "batch-closed"},
    {"QU004", ERR_NOT_FOUND,   FINE, NULL},
    {"QU005", ERR_CONFLICT,    FINE, "ambiguous-id"}, /* several domains have a command of this id */
    {"QU006", ERR_CONFLICT,    FINE, "decided-otherwise"}, /* an operator decided otherwise, or another operator did */
    {"QU065", ERR_CONFLICT,    FINE, NULL}, /* raised by a handler in SQL: a business refusal */
    {"QU070", ERR_CONFLICT,    FINE, NULL}, /* likewise: no further attempt would help */
    {"QW001", ERR_INVALID,     FINE, NULL},
    {"QW002", ERR_CONFLICT,    FINE, "not-posted"},
    {"QW009", ERR_DENIED,      FINE, NULL}, /* the books are append-only */
    {"QW011", ERR_CONFLICT,    FINE, "insufficient-funds"},
    {"QW012", ERR_CONFLICT,    FINE, "balance-limit"},
    {"QW013", ERR_CONFLICT,    FINE, "wallet-frozen"},
    {"QW014", ERR_CONFLICT,    FINE, "hold-ended"},
    {"QW015", ERR_CONFLICT,    FINE, "over-captured"},
    {"QW016", ERR_CONFLICT,    FINE, "over-refunded"},
    {"QW017", ERR_CONFLICT,    FINE, "not-refundable"},
    {"QW018", ERR_INVALID,     FINE, "asset-mismatch"},
    {"QW019", ERR_INVALID,     FINE, "same-wallet"},
    {"QW021", ERR_NOT_FOUND,   FINE, "wallet-unknown"},
    {"QW022", ERR_NOT_FOUND,   FINE, "hold-unknown"},
    {"QW023", ERR_NOT_FOUND,   FINE, "transaction-unknown"},
    {"XX",    ERR_INTERNAL,    FINE, NULL},
};
/* clang-format on */

static const ErrorRow *row_of(ErrorCode code)
{
    assert((unsigned)code < ERROR_CODE_COUNT);
    return &rows[code];
}

/* NULL: no row matches. */
static const StateRow *state_find(const char *sqlstate)
{
    const StateRow *best        = NULL;
    size_t          best_length = 0;

    for (size_t i = 0; i < COUNT(states); i++) {
        size_t length = strlen(states[i].prefix);

        if (length > best_length && strncmp(states[i].prefix, sqlstate, length) == 0) {
            best        = &states[i];
            best_length = length;
        }
    }
    return best;
}

/* "pg/pool.c" out of "../src/pg/pool.c": where the builder's tree stood is nobody's business. */
static const char *file_in_house(const char *file)
{
    const char *start   = file + strlen(file);
    int         slashes = 0;

    while (start > file && (start[-1] != '/' || ++slashes < 2))
        start--;
    return start;
}

/* One line: libpq ends its messages with a line break and puts DETAIL and HINT on lines of their own. */
static void flatten(char *text)
{
    char *out = text;

    for (const char *in = text; *in; in++) {
        if ((unsigned char)*in >= ' ')
            *out++ = *in;
        else if (out > text && out[-1] != ' ') /* a run of breaks and tabs becomes one space */
            *out++ = ' ';
    }
    while (out > text && out[-1] == ' ')
        out--;
    *out = '\0';
}

/* Put at most size_max bytes of one line into buffer, which has room for one byte more and the NUL. */
static printf_like(3, 0) void line_print(char *buffer, size_t size_max, const char *format, va_list values)
{
    vsnprintf(buffer, size_max + 2, format, values); /* the byte more shows whether a character was split */
    buffer[text_cut(buffer, strlen(buffer), size_max)] = '\0';
    flatten(buffer);
}

ErrorCode error_set(Error *reterr, const char *file, int line, ErrorCode code, const char *format, ...)
{
    char    text[sizeof reterr->text + 1];
    va_list values;

    if (!reterr)
        return code;
    va_start(values, format);
    line_print(text, sizeof reterr->text - 1, format, values); /* not into reterr: its own text may be a value */
    va_end(values);
    *reterr = (Error){.code = code, .file = file_in_house(file), .line = line};
    memcpy(reterr->text, text, strlen(text) + 1);
    return code;
}

void error_prefix(Error *reterr, const char *format, ...)
{
    char    text[2 * sizeof reterr->text + 2];
    va_list values;

    if (!reterr)
        return;
    va_start(values, format);
    line_print(text, sizeof reterr->text - 1, format, values);
    va_end(values);
    size_t length = strlen(text);
    length += (size_t)snprintf(text + length, sizeof text - length, ": %s", reterr->text);
    length = text_cut(text, length, sizeof reterr->text - 1);
    memcpy(reterr->text, text, length);
    reterr->text[length] = '\0';
}

void error_set_sqlstate(Error *reterr, const char *sqlstate)
{
    if (reterr)
        snprintf(reterr->sqlstate, sizeof reterr->sqlstate, "%s", sqlstate ? sqlstate : "");
}

ErrorCode error_from_sqlstate(const char *sqlstate)
{
    if (!sqlstate || !*sqlstate)
        return ERR_UNAVAILABLE;
    const StateRow *state = state_find(sqlstate);
    return state ? state->code : ERR_INTERNAL;
}

const char *error_text(ErrorCode code)
{
    return row_of(code)->text;
}

const char *error_name(ErrorCode code)
{
    return row_of(code)->name;
}

const char *error_type(const Error *error)
{
    const StateRow *state = state_find(error->sqlstate);

    /* A caller may have judged otherwise than the table; then the SQLSTATE's word would contradict the status. */
    if (state && state->type && state->code == error->code)
        return state->type;
    return row_of(error->code)->type;
}

bool error_type_at(size_t index, const char **ret_type, ErrorCode *ret_code)
{
    if (index < ERROR_CODE_COUNT) {
        *ret_type = rows[index].type;
        *ret_code = (ErrorCode)index;
        return true;
    }
    index -= ERROR_CODE_COUNT;
    for (size_t i = 0; i < COUNT(states); i++)
        if (states[i].type && index-- == 0) {
            *ret_type = states[i].type;
            *ret_code = states[i].code;
            return true;
        }
    return false;
}

int error_http(ErrorCode code)
{
    return row_of(code)->http;
}

int error_exit(ErrorCode code)
{
    return row_of(code)->exit;
}

Verdict error_verdict(ErrorCode code)
{
    return row_of(code)->verdict;
}

bool error_is_infrastructure(ErrorCode code, const char *sqlstate)
{
    if (sqlstate && *sqlstate) {
        const StateRow *state = state_find(sqlstate);
        return code != OK && state && state->health == SICK;
    }
    /* Nobody answered: connect failed, the connection died (ERR_UNKNOWN: in a commit), or silence until the deadline. */
    return code == ERR_UNAVAILABLE || code == ERR_UNKNOWN || code == ERR_TIMEOUT;
}
