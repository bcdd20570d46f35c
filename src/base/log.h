/*
 * log.h - one line per event, for people (text) or programs (JSON), on standard error.
 *
 *     log_write(LOG_WARN, "pool", "connection lost", LOG_STR("sqlstate", state), LOG_INT("slot", 3));
 *
 * Invariants
 *   1. A line is written with one write(2): lines of threads and processes never mix.
 *   2. The thread's request id stands on every line, with the name of the client's key. Values are escaped: no line
 *      break gets through. A line is at most TEXT_MAX_LINE bytes: a long value ends in "...", and fields that do not
 *      fit are left out.
 *   3. No secret: a value passed as LOG_STR must not be one; log_error() prints what the Error says and no payload.
 *   4. No thread waits for a reader: a line that would block on standard error is left out and counted, and the next
 * one that is taken says how many were.
 *   5. Only code without a caller that gets an Error logs: threads of their own, app, cli; and pg/tx, each rollback.
 * Threads: any.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define LOG_LEVELS(X)     \
    X(LOG_DEBUG, "debug") \
    X(LOG_INFO, "info")   \
    X(LOG_WARN, "warn")   \
    X(LOG_ERROR, "error") \
    X(LOG_OFF, "off")
#define X(level, name) level,
typedef enum { LOG_LEVELS(X) LOG_LEVEL_COUNT } LogLevel;
#undef X
typedef enum { LOG_TEXT, LOG_JSON } LogFormat;

typedef struct {
    const char *name; /* NULL ends the list */
    const char *text; /* NULL: the number */
    int64_t     number;
} LogField;
/* A function, because a macro that compares an array with NULL makes compilers talk. */
static inline LogField log_str(const char *name, const char *value)
{
    return (LogField){name, value ? value : "", 0};
}
#define LOG_STR(name, value) log_str((name), (value))
#define LOG_INT(name, value) ((LogField){(name), NULL, (value)})

/* Before threads start. fd 2 unless a test wants another one; borrowed until the next call, its flags are not changed:
 * other processes may share it. */
void log_open(LogLevel level, LogFormat format, int fd);
void log_set_level(LogLevel level); /* any time: SIGHUP */
bool log_is_on(LogLevel level);
/* This thread's request or job id; NULL ends it. Copied, at most LOG_REQUEST_MAX bytes. */
#define LOG_REQUEST_MAX 64
void log_set_request(const char *request_id);
/* The same with the name of the key that the request came with, "" for none; log_set_request() ends both. */
void log_set_request_of(const char *request_id, const char *key);
void log_write_fields(LogLevel level, const char *module, const char *message, const LogField *fields);
/* An Error as an event: message, then the error's text, code, SQLSTATE, file and line. */
void log_error(LogLevel level, const char *module, const char *message, const Error *error);

/* The fields are evaluated only when the level is on. */
#define log_write(level, module, ...) log_write_(level, module, __VA_ARGS__, (LogField){0})
#define log_write_(level, module, message, ...)                                        \
    do {                                                                               \
        if (log_is_on(level))                                                          \
            log_write_fields(level, module, message, (const LogField[]){__VA_ARGS__}); \
    } while (0)

#endif
