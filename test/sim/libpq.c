/*
 * libpq.c - the calls of conn.c that would reach a server, sent to the one in server.c by the linker (--wrap).
 *
 * What only looks at a result stays libpq's own.
 */
#include <libpq-fe.h>
#include <stdlib.h>

#include "test/sim/mutant.h"
#include "test/sim/server.h"
#include "test/sim/watch.h"

#define SESSION(conn) ((Session *)(uintptr_t)(conn))

PGconn                   *__wrap_PQconnectStartParams(const char *const *keys, const char *const *values, int expand);
PostgresPollingStatusType __wrap_PQconnectPoll(PGconn *conn);
void                      __wrap_PQfinish(PGconn *conn);
ConnStatusType            __wrap_PQstatus(const PGconn *conn);
PGTransactionStatusType   __wrap_PQtransactionStatus(const PGconn *conn);
int                       __wrap_PQsocket(const PGconn *conn);
char                     *__wrap_PQerrorMessage(const PGconn *conn);
PGVerbosity               __wrap_PQsetErrorVerbosity(PGconn *conn, PGVerbosity verbosity);
PQnoticeReceiver          __wrap_PQsetNoticeReceiver(PGconn *conn, PQnoticeReceiver receiver, void *context);
int                       __wrap_PQsetnonblocking(PGconn *conn, int nonblocking);
int                       __wrap_PQsendQuery(PGconn *conn, const char *sql);
int __wrap_PQsendQueryParams(PGconn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                             const int *lengths, const int *formats, int result_format);
int __wrap_PQenterPipelineMode(PGconn *conn);
int __wrap_PQexitPipelineMode(PGconn *conn);
int __wrap_PQpipelineSync(PGconn *conn);
int __wrap_PQflush(PGconn *conn);
int __wrap_PQconsumeInput(PGconn *conn);
int __wrap_PQisBusy(PGconn *conn);
PGresult *__wrap_PQgetResult(PGconn *conn);
char     *__wrap_PQresultErrorField(const PGresult *result, int field);
PGcancel *__wrap_PQgetCancel(PGconn *conn);
int       __wrap_PQcancel(PGcancel *cancel, char *message, int size);
void      __wrap_PQfreeCancel(PGcancel *cancel);

PGconn *__wrap_PQconnectStartParams(const char *const *keys, const char *const *values, int expand)
{
    Session *session = session_open();

    (void)keys, (void)values, (void)expand;
    watch_connect(session_fd(session));
    return (PGconn *)session;
}

PostgresPollingStatusType __wrap_PQconnectPoll(PGconn *conn)
{
    return session_poll(SESSION(conn));
}

void __wrap_PQfinish(PGconn *conn)
{
    session_close(SESSION(conn));
}

ConnStatusType __wrap_PQstatus(const PGconn *conn)
{
    return session_status(SESSION(conn));
}

PGTransactionStatusType __wrap_PQtransactionStatus(const PGconn *conn)
{
    return session_transaction(SESSION(conn));
}

int __wrap_PQsocket(const PGconn *conn)
{
    return session_fd(SESSION(conn));
}

char *__wrap_PQerrorMessage(const PGconn *conn)
{
    return (char *)(uintptr_t)session_message(SESSION(conn));
}

PGVerbosity __wrap_PQsetErrorVerbosity(PGconn *conn, PGVerbosity verbosity)
{
    (void)conn;
    return verbosity;
}

PQnoticeReceiver __wrap_PQsetNoticeReceiver(PGconn *conn, PQnoticeReceiver receiver, void *context)
{
    session_notices(SESSION(conn), receiver, context);
    return receiver;
}

int __wrap_PQsetnonblocking(PGconn *conn, int nonblocking)
{
    (void)conn, (void)nonblocking;
    return 0;
}

int __wrap_PQsendQuery(PGconn *conn, const char *sql)
{
    return session_send(SESSION(conn), sql, NULL);
}

int __wrap_PQsendQueryParams(PGconn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                             const int *lengths, const int *formats, int result_format)
{
    (void)types, (void)lengths, (void)formats, (void)result_format;
    return session_send(SESSION(conn), sql, count > 0 ? values[0] : NULL);
}

int __wrap_PQenterPipelineMode(PGconn *conn)
{
    return session_pipeline(SESSION(conn), true);
}

int __wrap_PQexitPipelineMode(PGconn *conn)
{
    return session_pipeline(SESSION(conn), false);
}

int __wrap_PQpipelineSync(PGconn *conn)
{
    (void)conn;
    return 1;
}

int __wrap_PQflush(PGconn *conn)
{
    (void)conn;
    return 0;
}

int __wrap_PQconsumeInput(PGconn *conn)
{
    return session_receive(SESSION(conn));
}

int __wrap_PQisBusy(PGconn *conn)
{
    return session_is_busy(SESSION(conn));
}

PGresult *__wrap_PQgetResult(PGconn *conn)
{
    return session_result(SESSION(conn));
}

char *__wrap_PQresultErrorField(const PGresult *result, int field)
{
    static char message[] = "the server said so";

    static char standby[] = "SyncRepWaitForLSN";

    if (field == PG_DIAG_SOURCE_FUNCTION)
        return mutant == MUTANT_NOTICE_IGNORED ? NULL : standby; /* the only notice there is */
    return field == PG_DIAG_SQLSTATE ? (char *)(uintptr_t)result_sqlstate(result) : message;
}

PGcancel *__wrap_PQgetCancel(PGconn *conn)
{
    SessionName *name = malloc(sizeof *name);

    if (!name)
        abort();
    *name = session_name(SESSION(conn));
    return (PGcancel *)name;
}

int __wrap_PQcancel(PGcancel *cancel, char *message, int size)
{
    (void)message, (void)size;
    clock_sleep_ms(sim_between(0, 200)); /* a connection of its own */
    session_cancel(*(SessionName *)cancel);
    return 1;
}

void __wrap_PQfreeCancel(PGcancel *cancel)
{
    free(cancel);
}
