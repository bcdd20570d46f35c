/*
 * session.c - the client's end of a connection: what libpq would see of the server.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "test/sim/server_inner.h"

static const char *const verbs[] = {
    [VERB_BEGIN] = "begin", [VERB_COMMIT] = "commit", [VERB_ROLLBACK] = "rollback", [VERB_PING] = "select 1",
    [VERB_PUT] = "put",     [VERB_ADD] = "add",       [VERB_GET] = "get",
};

Session *session_open(void)
{
    Session *session = server_session_new();

    session->client      = true;
    session->status      = CONNECTION_STARTED;
    session->polls_left  = 2;
    session->transaction = PQTRANS_IDLE;
    session->answer_at   = after_latency();
    if (sim_chance(server_phase()->refused))
        snprintf(session->refusal, sizeof session->refusal, "connection refused\n");
    else if (sim_chance(server_phase()->full))
        snprintf(session->refusal, sizeof session->refusal, "connection failed: FATAL:  53300: too many clients\n");
    else if (sim_chance(server_phase()->starting))
        snprintf(session->refusal, sizeof session->refusal, "connection failed: FATAL:  57P03: starting up\n");
    else if (sim_chance(server_phase()->silent))
        fate_silent(session);
    return session;
}

PostgresPollingStatusType session_poll(Session *session)
{
    if (session->answer_is_eof && !session->refusal[0])
        snprintf(session->refusal, sizeof session->refusal, "server closed the connection unexpectedly\n");
    session->polls_left--;
    if (session->refusal[0] && session->polls_left == 0) {
        session->status = CONNECTION_BAD;
        return PGRES_POLLING_FAILED;
    }
    session->answer_at = after_latency();
    if (session->polls_left > 0)
        return PGRES_POLLING_READING;
    session->answer_at = NEVER;
    session->status    = CONNECTION_OK;
    session->server    = true;
    return PGRES_POLLING_OK;
}

void session_close(Session *session)
{
    sim_trace("closes %d", session_fd(session));
    session->client = false;
    if (session->server && session->end_at.ns == INT64_MAX)
        session->end_at = session->silent ? soon(1, 3000) : sim_now();
    server_tick();
}

static Verb verb_of(const char *sql)
{
    for (size_t i = 0; i < COUNT(verbs); i++)
        if (strncmp(sql, verbs[i], strlen(verbs[i])) == 0)
            return (Verb)i;
    sim_fail("the server does not know \"%s\"", sql);
}

bool session_send(Session *session, const char *sql, const char *parameter)
{
    const char *timeout = strstr(sql, "statement_timeout = ");

    if (session->status != CONNECTION_OK || session->asked)
        return false;
    if (session->pipeline &&
        strncmp(sql, "select pg_catalog.set_config", strlen("select pg_catalog.set_config")) == 0) {
        session->timeout_ms = (int)strtol(parameter, NULL, 10);
        return true;
    }
    session->verb        = verb_of(sql);
    session->key         = parameter ? strtoll(parameter, NULL, 10) : NO_KEY;
    session->asked       = true;
    session->arrived     = false;
    session->transaction = PQTRANS_ACTIVE;
    if (timeout)
        session->timeout_ms = (int)strtol(timeout + strlen("statement_timeout = "), NULL, 10);
    if (session->server) {
        fate_choose(session);
    } else {
        session->answer_is_eof = true;
        session->answer_at     = after_latency();
    }
    sim_trace("sends %d: %s %lld", session_fd(session), verbs[session->verb], (long long)session->key);
    return true;
}

bool session_receive(Session *session)
{
    server_tick();
    if (!is_due(session->answer_at))
        return true;
    if (session->answer_is_eof) {
        sim_trace("loses %d", session_fd(session));
        session->status      = CONNECTION_BAD;
        session->transaction = PQTRANS_UNKNOWN;
        return false;
    }
    session->arrived   = true;
    session->answer_at = NEVER;
    return true;
}

bool session_is_busy(const Session *session)
{
    return session->asked && !session->arrived;
}

static PGresult *result_with_value(int64_t value)
{
    PGresult    *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    char         name[] = "value", text[24];
    PGresAttDesc column = {.name = name, .typid = 20, .typlen = 8};

    snprintf(text, sizeof text, "%lld", (long long)value);
    PQsetResultAttrs(result, 1, &column);
    PQsetvalue(result, 0, 0, text, (int)strlen(text));
    return result;
}

/* libpq gives nobody a way to set a result's SQLSTATE: the name of its only column serves. */
static PGresult *result_with_error(char *sqlstate)
{
    PGresult    *result = PQmakeEmptyPGresult(NULL, PGRES_FATAL_ERROR);
    PGresAttDesc column = {.name = sqlstate};

    PQsetResultAttrs(result, 1, &column);
    return result;
}

const char *result_sqlstate(const PGresult *result)
{
    return PQnfields(result) == 1 ? PQfname(result, 0) : NULL;
}

bool session_pipeline(Session *session, bool on)
{
    bool was = session->pipeline;

    session->pipeline = on;
    session->round    = 0;
    return was != on && !session->asked;
}

void session_notices(Session *session, PQnoticeReceiver receiver, void *context)
{
    session->notices         = receiver;
    session->notices_context = context;
}

static PGresult *statement_result(Session *session);

/* The limits, the end of their round, the statement, the end of its round, the sync. */
PGresult *session_result(Session *session)
{
    if (!session->pipeline)
        return statement_result(session);
    if (session->round < 2 && !session->arrived)
        sim_fail("PQgetResult would block");
    switch (session->round++) {
    case 0:
        return PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    case 2:
        return statement_result(session);
    case 4:
        if (!session->in_transaction)
            session->timeout_ms = 0;
        return PQmakeEmptyPGresult(NULL, PGRES_PIPELINE_SYNC);
    default:
        return NULL;
    }
}

static PGresult *statement_result(Session *session)
{
    if (!session->asked)
        return NULL;
    if (!session->arrived)
        sim_fail("PQgetResult would block");
    session->arrived = false;
    sim_trace("hears %d: %s%s", session_fd(session), session->sqlstate[0] ? session->sqlstate : "ok",
              session->warned ? ", without the standby" : "");
    if (session->warned) {
        PGresult *notice = PQmakeEmptyPGresult(NULL, PGRES_NONFATAL_ERROR);

        session->notices(session->notices_context, notice);
        PQclear(notice);
        session->warned = false;
    }
    if (strncmp(session->sqlstate, "57P", 3) == 0) { /* said, and gone: what comes next is the end of the stream */
        session_end(session);
        session->answer_is_eof = true;
        session->answer_at     = sim_now();
        return result_with_error(session->sqlstate);
    }
    session->asked       = false;
    session->transaction = !session->in_transaction ? PQTRANS_IDLE
                           : session->failed        ? PQTRANS_INERROR
                                                    : PQTRANS_INTRANS;
    if (session->sqlstate[0])
        return result_with_error(session->sqlstate);
    return session->verb >= VERB_PING ? result_with_value(session->value) : PQmakeEmptyPGresult(NULL, PGRES_COMMAND_OK);
}

int session_fd(const Session *session)
{
    return server_session_fd(session);
}

ConnStatusType session_status(const Session *session)
{
    return session->status;
}

PGTransactionStatusType session_transaction(const Session *session)
{
    return session->transaction;
}

const char *session_message(const Session *session)
{
    return session->refusal[0] ? session->refusal : "server closed the connection unexpectedly\n";
}

SessionName session_name(const Session *session)
{
    return (SessionName){session_fd(session), session->serial};
}

static bool may_commit(const Session *session)
{
    return session->verb == VERB_COMMIT ||
           (!session->in_transaction && (session->verb == VERB_PUT || session->verb == VERB_ADD));
}

/* If it is still the same session and still at it. */
void session_cancel(SessionName name)
{
    Session *session = server_session(name.fd);

    if (session->serial != name.serial || !session->server || server_phase()->silent)
        return;
    if (session->apply_at.ns == INT64_MAX && !session->blocked && !session->waits)
        return;
    if (may_commit(session))
        sim_fail("a cancel was sent to what may be committing");
    sim_trace("cancels %d", name.fd);
    session->apply_at = NEVER;
    session->blocked  = false;
    session->failed   = session->in_transaction;
    answer_set(session, "57014");
    if (!session->answer_is_eof && !session->silent)
        session->answer_at = after_latency();
    server_tick();
}
