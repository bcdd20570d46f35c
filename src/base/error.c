/*
 * error.c - the table of codes, and what the modules say about SQLSTATEs.
 */
#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/module.h"
#include "base/text.h"

#define TEXT_SIZE sizeof((Error){0}.text)

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

static const ErrorRow *row_of(ErrorCode code)
{
    assert((unsigned)code < ERROR_CODE_COUNT);
    return &rows[code];
}

/* The row with the longest matching prefix, of any module. NULL: none matches. */
static const SqlState *state_find(const char *sqlstate)
{
    const SqlState *best        = NULL;
    size_t          best_length = 0;
    const Module   *module;

    for (size_t i = 0; (module = module_at(i)); i++)
        for (const SqlState *state = module->states; state && state->sqlstate; state++) {
            size_t length = strlen(state->sqlstate);

            if (length > best_length && strncmp(state->sqlstate, sqlstate, length) == 0) {
                best        = state;
                best_length = length;
            }
        }
    return best;
}

/* "pg/pool.c" of "../src/pg/pool.c": the path of the build tree is of no use in a message. */
static const char *file_in_tree(const char *file)
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

/* Put at most size_max bytes of one line into buffer, which is size_max + 2 bytes large. */
static printf_like(3, 0) void line_print(char *buffer, size_t size_max, const char *format, va_list values)
{
    vsnprintf(buffer, size_max + 2, format, values); /* the byte more shows whether a character was split */
    buffer[text_cut(buffer, strlen(buffer), size_max)] = '\0';
    flatten(buffer);
}

static void peer_keep(Error *error, const char *peer)
{
    size_t at = strlen(error->text) + 1, length = at < TEXT_SIZE ? TEXT_SIZE - at - 1 : 0;

    length         = text_cut(peer, strlen(peer), length);
    error->peer_at = length ? (uint16_t)at : 0;
    if (length) {
        memcpy(error->text + at, peer, length);
        error->text[at + length] = '\0';
    }
}

ErrorCode error_set(Error *reterr, const char *file, int line, ErrorCode code, const char *format, ...)
{
    char    text[TEXT_SIZE + 1];
    va_list values;

    if (!reterr)
        return code;
    va_start(values, format);
    line_print(text, TEXT_SIZE - 1, format, values); /* not into reterr: its own text may be a value */
    va_end(values);
    *reterr = (Error){.code = code, .file = file_in_tree(file), .line = line};
    memcpy(reterr->text, text, strlen(text) + 1);
    return code;
}

void error_set_peer(Error *reterr, const char *format, ...)
{
    char    peer[TEXT_SIZE + 1];
    va_list values;

    if (!reterr)
        return;
    va_start(values, format);
    line_print(peer, TEXT_SIZE - 1, format, values);
    va_end(values);
    peer_keep(reterr, peer);
}

const char *error_peer(const Error *error)
{
    return error->peer_at ? error->text + error->peer_at : "";
}

ErrorCode error_pass(ErrorCode code, const Error *error, Error *reterr)
{
    if (code != OK && reterr)
        *reterr = *error;
    return code;
}

void error_prefix(Error *reterr, const char *format, ...)
{
    char    text[2 * TEXT_SIZE + 2], peer[TEXT_SIZE];
    va_list values;

    if (!reterr)
        return;
    va_start(values, format);
    line_print(text, TEXT_SIZE - 1, format, values);
    va_end(values);
    size_t length = strlen(text);
    length += (size_t)snprintf(text + length, sizeof text - length, ": %s", reterr->text);
    length = text_cut(text, length, TEXT_SIZE - 1);
    snprintf(peer, sizeof peer, "%s", error_peer(reterr));
    memcpy(reterr->text, text, length);
    reterr->text[length] = '\0';
    peer_keep(reterr, peer);
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
    const SqlState *state = state_find(sqlstate);
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
    const SqlState *state = state_find(error->sqlstate);

    /* A caller may have replaced the table's code; then the SQLSTATE's type would contradict the status. */
    if (state && state->type && state->code == error->code)
        return state->type;
    return row_of(error->code)->type;
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
        const SqlState *state = state_find(sqlstate);
        return code != OK && state && state->is_outage;
    }
    /* Without a SQLSTATE: connect failed, the connection broke (ERR_UNKNOWN: in a commit), or the server was silent
     * until the deadline. */
    return code == ERR_UNAVAILABLE || code == ERR_UNKNOWN || code == ERR_TIMEOUT;
}
