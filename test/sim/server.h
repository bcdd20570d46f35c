/*
 * server.h - a PostgreSQL made of a few hundred lines: it knows seven statements and every way to fail at them.
 *
 * What it does is decided by the seed, statement by statement: answer, refuse, hang, die before or after the work, or do
 * the work long after the client has lost its connection. It counts how often each operation was committed, which
 * is the truth that callers' answers are compared with. It has phases (up, slow, full, down ...), and is healthy for ever
 * after the last one.
 * It has a standby. In a phase called "alone" commits wait for it; an administrator may cancel such a wait, and then the commit
 * can be seen although the standby lacks it. Such a phase ends with the standby's return, or with the primary's end: then the
 * standby takes over, and what it lacks is gone.
 *
 *     begin ...; set local ...     commit     rollback     select 1
 *     put $1     commit this key once: value 0, or 1 when it was there; waits for another one that is putting it
 *     add $1     commit once more, however often that was
 *     get $1     value: how often it was committed
 */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "test/sim/fiber.h"

#define KEYS_MAX 1024

typedef struct Session Session;

void server_start(void);
Mono server_healthy_at(void);
int  server_commits(int64_t key);
int  server_sessions_of_client(void); /* connections that the client has begun to open and not closed */

/* For sim_run(). */
Mono server_socket_ready(int fd);
void server_socket_shut(int fd);
Mono server_next_event(void);
void server_tick(void);

/* The client's side of a connection; libpq.c speaks these. */
Session                  *session_open(void);
void                      session_close(Session *session);
PostgresPollingStatusType session_poll(Session *session);
bool                      session_send(Session *session, const char *sql, const char *parameter);
bool                      session_pipeline(Session *session, bool on);
void                      session_notices(Session *session, PQnoticeReceiver receiver, void *context);
bool                      session_receive(Session *session); /* false: the other side is gone */
bool                      session_is_busy(const Session *session);
PGresult                 *session_result(Session *session); /* NULL: no more */
int                       session_fd(const Session *session);
ConnStatusType            session_status(const Session *session);
PGTransactionStatusType   session_transaction(const Session *session);
const char               *session_message(const Session *session);

/* Which session, and which of those that used its number. */
typedef struct {
    int      fd;
    unsigned serial;
} SessionName;
SessionName session_name(const Session *session);
void        session_cancel(SessionName name);

/* The SQLSTATE of a failed result, NULL when it has none. */
const char *result_sqlstate(const PGresult *result);

#endif
