/*
 * handler.h - the handlers that come with pawl: nothing, a program, a function in SQL.
 *
 * Ownership: each *_new() has its *_free(), called after worker_run() returned.
 */
#ifndef BUS_HANDLER_H
#define BUS_HANDLER_H

#include "bus/worker.h"

/* Completes every command: for measurements. */
extern Handler handler_noop;

/*
 * Runs `/bin/sh -c PROGRAM` in a process group of its own. The payload is its standard input; PAWL_COMMAND_ID, PAWL_DOMAIN,
 * PAWL_TYPE, PAWL_ATTEMPT and PAWL_MAX_ATTEMPTS are in its environment. It may write progress (bus/progress.h) to the descriptor that
 * PAWL_PROGRESS_FD names; PAWL_PROGRESS has what the attempts before reported last.
 *
 *     exit 0    complete; standard output is the result if it is JSON
 *     exit 65   business refusal        exit 70   permanent failure        any other end: to be tried again
 *     exit 79   snooze: later, without counting the attempt; standard output may be {"delay_s": N}, else 10 s
 *
 * Standard error is the error's text: its last EXEC_ERROR_MAX bytes. More output than EXEC_OUTPUT_MAX ends the program,
 * permanently: it would say as much the next time. When stopped, the group gets SIGTERM, and what is left of it EXEC_GRACE_MS later
 * gets SIGKILL.
 */
#define EXEC_OUTPUT_MAX ((size_t)1 << 20)
#define EXEC_ERROR_MAX  ((size_t)SETTLE_ERROR_MAX)
#define EXEC_GRACE_MS   5000
/* ERR_USAGE: the program that the shell would start is not there, or may not be run. What only a shell can resolve is not checked. */
must_check ErrorCode handler_exec_check(const char *program, Error *reterr);
Handler             *handler_exec_new(const char *program);
void                 handler_exec_free(Handler *handler);
SCOPED(Handler, handler_exec_free)

/*
 * Calls schema.function(payload jsonb, command_id uuid) returns jsonb, and settles the command in the same transaction: what
 * it wrote and that it is done commit together or not at all, so its effects in this database happen exactly once.
 * An exception with errcode QU065 is a business refusal, QU070 a permanent failure, any other one is tried again.
 * shares: while the function is short, several commands share a transaction, and only those that succeed (ADR 47).
 *
 * pool: what the function leaves behind, deferred triggers above all, runs with the rights of its connections, from the first to the
 * last statement of the transaction. So they belong to a login that may only call functions and settle (pawl_handler).
 * ERR_INVALID, ERR_NOT_FOUND: there is no such function. ERR_DENIED: the login has rights that the function's owner has not, or may not
 * call it; see sql/bus/handler.sql. That is checked again before each call.
 */
must_check ErrorCode handler_sql_check(Pool *pool, Deadline deadline, Arena *arena, const char *function,
                                       Error *reterr);
must_check ErrorCode handler_sql_new(Pool *pool, Deadline deadline, const char *function, bool shares,
                                     Handler **ret_handler, Error *reterr);
void                 handler_sql_free(Handler *handler);

/* What may be said of the function: a row of sql_bus_handler_find. */
#define HANDLER_FOUND_COLUMNS(X, T)              \
    X(T, BOOL, is_safe, is_callable, is_definer) \
    X(T, TEXT, owner, connected)
DB_ROW(HandlerFound, HANDLER_FOUND_COLUMNS);

#endif
