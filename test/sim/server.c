/*
 * server.c - sessions, their statements and fates; see server.h.
 *
 * A session has two ends. The client's ends with session_close(), the server's when it notices, which may be later: then
 * it rolls back, unless the statement it is working on commits first.
 */
#include "test/sim/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"

#define SESSIONS_MAX 256
#define PHASES_MAX   8
#define NO_KEY       (-1)

/* Chances are in permille per statement or per connect. */
typedef struct {
    const char *name;
    int         latency_ms_max;
    int         refused;  /* connect: nobody listens */
    int         full;     /* connect: 53300 */
    int         starting; /* connect: 57P03 */
    int         silent;   /* connect and statement: no answer until the phase ends */
    int         lost;     /* the connection breaks */
    int         failed;   /* an error with a SQLSTATE */
    bool        kills;    /* every session dies when it begins */
} Phase;

static const Phase phases[] = {
    {.name = "up", .latency_ms_max = 5, .lost = 5, .failed = 20},
    {.name = "slow", .latency_ms_max = 1500, .lost = 10, .failed = 20},
    {.name = "flaky", .latency_ms_max = 30, .refused = 200, .lost = 250, .failed = 150},
    {.name = "full", .latency_ms_max = 5, .full = 800, .failed = 20},
    {.name = "silent", .latency_ms_max = 5, .silent = 950},
    {.name = "moody", .latency_ms_max = 20, .silent = 300, .lost = 100},
    {.name = "down", .latency_ms_max = 5, .refused = 1000, .lost = 1000, .kills = true},
    {.name = "starting", .latency_ms_max = 5, .starting = 1000, .lost = 1000, .kills = true},
};
static const Phase healthy = {.name = "healthy", .latency_ms_max = 5};

typedef enum { VERB_BEGIN, VERB_COMMIT, VERB_ROLLBACK, VERB_PING, VERB_PUT, VERB_ADD, VERB_GET } Verb;
static const char *const verbs[] = {
    [VERB_BEGIN] = "begin", [VERB_COMMIT] = "commit", [VERB_ROLLBACK] = "rollback", [VERB_PING] = "select 1",
    [VERB_PUT] = "put",     [VERB_ADD] = "add",       [VERB_GET] = "get",
};

struct Session {
    unsigned serial;
    /* the client's end */
    bool                    client;
    ConnStatusType          status;
    int                     polls_left;
    char                    refusal[80]; /* connecting will fail with these words */
    bool                    asked;       /* a statement's last result has not been fetched */
    bool                    arrived;     /* a result is here */
    Mono                    answer_at;
    bool                    answer_is_eof;
    PGTransactionStatusType transaction;
    /* the statement and its answer */
    Verb    verb;
    int64_t key;
    Mono    apply_at; /* NEVER: done, or will not be */
    Mono    cut_at;   /* statement_timeout */
    bool    applied;
    bool    blocked;  /* another session is putting the same key */
    bool    silent;   /* until the phase ends */
    char    sqlstate[6];
    int64_t value;
    /* the server's end */
    bool    server;
    bool    in_transaction, failed;
    int     timeout_ms;
    int64_t put, add; /* not yet committed */
    Mono    end_at;   /* when it notices that the client is gone */
};

static Session      sessions[SESSIONS_MAX];
static int          sessions_used;
static unsigned     serials;
static int          commits[KEYS_MAX];
static const Phase *plan[PHASES_MAX + 1];
static Mono         plan_from[PHASES_MAX + 2];
static int          plan_count, plan_now;

static const Phase *phase(void)
{
    return plan[plan_now];
}

static bool is_due(Mono at)
{
    return !mono_before(sim_now(), at);
}

static Mono soon(int least_ms, int most_ms)
{
    return mono_plus_ms(sim_now(), sim_between(least_ms, most_ms));
}

static Mono after_latency(void)
{
    return soon(1, phase()->latency_ms_max);
}

/* ---- the server's end ---- */

static void answer_set(Session *session, const char *sqlstate)
{
    snprintf(session->sqlstate, sizeof session->sqlstate, "%s", sqlstate);
}

static void unblock_all(void)
{
    for (int i = 0; i < sessions_used; i++) {
        Session *session = &sessions[i];

        if (session->blocked && !is_due(session->cut_at)) {
            session->blocked     = false;
            answer_set(session, "");
            session->apply_at    = sim_now();
            if (!session->answer_is_eof && !session->silent)
                session->answer_at = after_latency();
        }
    }
}

static void transaction_end(Session *session, bool commit)
{
    if (commit && !session->failed) {
        if (session->put != NO_KEY)
            commits[session->put]++;
        if (session->add != NO_KEY)
            commits[session->add]++;
    }
    session->put = session->add = NO_KEY;
    session->in_transaction = session->failed = false;
    session->timeout_ms                       = 0;
    unblock_all();
}

static void session_end(Session *session)
{
    session->server   = false;
    session->blocked  = false;
    session->apply_at = session->end_at = NEVER;
    transaction_end(session, /* commit= */ false);
}

static const Session *rival(const Session *session)
{
    for (int i = 0; i < sessions_used; i++)
        if (&sessions[i] != session && sessions[i].server && sessions[i].put == session->key)
            return &sessions[i];
    return NULL;
}

static void block_on_rival(Session *session)
{
    session->blocked = true;
    if (!session->answer_is_eof && !session->silent)
        session->answer_at = session->cut_at;
    answer_set(session, "57014"); /* unless the rival ends before */
}

static void apply_put(Session *session)
{
    if (commits[session->key] > 0) {
        session->value = 1;
    } else if (rival(session)) {
        block_on_rival(session);
        return;
    } else {
        session->put   = session->key;
        session->value = 0;
    }
    if (!session->in_transaction)
        transaction_end(session, /* commit= */ true);
}

/* The key is looked at first: whatever the work would be refused for, what was done before is done. */
static bool is_answered_by_key(const Session *session)
{
    return session->verb == VERB_PUT && session->sqlstate[0] == '2' && session->sqlstate[1] != '5' &&
           (commits[session->key] > 0 || rival(session));
}

static void apply(Session *session)
{
    session->apply_at = NEVER;
    session->applied  = true;
    if (is_answered_by_key(session))
        answer_set(session, "");
    if (session->sqlstate[0]) {
        if (session->in_transaction)
            session->failed = true;
        if (session->verb == VERB_COMMIT)
            transaction_end(session, /* commit= */ false);
        return;
    }
    switch (session->verb) {
    case VERB_BEGIN:
        session->in_transaction = true;
        break;
    case VERB_COMMIT:
    case VERB_ROLLBACK:
        transaction_end(session, session->verb == VERB_COMMIT);
        break;
    case VERB_PING:
        session->value = 1;
        break;
    case VERB_PUT:
        apply_put(session);
        break;
    case VERB_ADD:
        session->add = session->key;
        if (!session->in_transaction)
            transaction_end(session, /* commit= */ true);
        break;
    case VERB_GET:
        session->value = commits[session->key];
        break;
    }
}

/* ---- fates ---- */

/* The connection breaks: before the work, after it, or first and the work is done later all the same. */
static void fate_lost(Session *session)
{
    session->answer_is_eof = true;
    session->answer_at     = after_latency();
    session->end_at        = soon(1, 3000);
    switch (sim_between(0, 2)) {
    case 0:
        session->apply_at = NEVER;
        session->end_at   = session->answer_at;
        break;
    case 1:
        session->apply_at = sim_now();
        break;
    default:
        session->apply_at = soon(1, 3000);
        break;
    }
}

static void fate_silent(Session *session)
{
    session->silent    = true;
    session->answer_at = NEVER;
    session->apply_at  = sim_chance(500) ? after_latency() : NEVER;
}

static void fate_failed(Session *session)
{
    static const char *const sick[]   = {"53100", "57P01"};
    static const char *const work[]   = {"40001", "40P01", "55P03", "25006", "53100", "57P01", "23505", "22023"};
    static const char *const commit[] = {"40001", "57P01", "57P01"};

    if (session->verb == VERB_COMMIT)
        answer_set(session, commit[sim_between(0, COUNT(commit) - 1)]);
    else if (session->verb >= VERB_PUT)
        answer_set(session, work[sim_between(0, COUNT(work) - 1)]);
    else
        answer_set(session, sick[sim_between(0, COUNT(sick) - 1)]);
    /* Told to go right after the commit: it is done, and the client hears that the server is closing down. */
    if (session->verb == VERB_COMMIT && session->sqlstate[0] == '5' && sim_chance(500)) {
        answer_set(session, "");
        apply(session);
        answer_set(session, "57P01");
    }
}

static void fate_choose(Session *session)
{
    session->apply_at      = after_latency();
    session->answer_at     = session->apply_at;
    session->cut_at        = session->timeout_ms ? mono_plus_ms(sim_now(), session->timeout_ms) : NEVER;
    session->answer_is_eof = session->silent = session->blocked = session->applied = false;
    answer_set(session, "");
    if (sim_chance(phase()->lost)) {
        fate_lost(session);
    } else if (sim_chance(phase()->silent)) {
        fate_silent(session);
    } else if (session->verb >= VERB_PUT && !mono_before(session->apply_at, session->cut_at)) {
        session->apply_at = session->answer_at = session->cut_at;
        answer_set(session, "57014");
    } else if (session->verb != VERB_ROLLBACK && sim_chance(phase()->failed)) {
        fate_failed(session);
    }
}

static void sessions_kill(void)
{
    for (int i = 0; i < sessions_used; i++) {
        Session *session = &sessions[i];

        if (session->server && session->apply_at.ns != INT64_MAX && sim_chance(500))
            apply(session); /* the last thing it did */
        if (session->server)
            session_end(session);
        session->silent = false;
        if (session->client && !session->arrived) {
            session->answer_is_eof = true;
            session->answer_at     = soon(1, 50);
        }
    }
}

/* What was silent is heard again, or finds its connection broken. */
static void sessions_thaw(void)
{
    for (int i = 0; i < sessions_used; i++) {
        Session *session = &sessions[i];

        if (!session->silent)
            continue;
        session->silent    = false;
        session->answer_at = after_latency();
        if (session->status != CONNECTION_OK || !session->server || sim_chance(500))
            session->answer_is_eof = true;
        else if (!session->applied)
            session->apply_at = sim_now();
        if (session->answer_is_eof && session->server)
            session->end_at = sim_now();
    }
}

/* ---- time ---- */

void server_start(void)
{
    Mono at = sim_now();

    memset(sessions, 0, sizeof sessions[0] * (size_t)sessions_used);
    memset(commits, 0, sizeof commits);
    sessions_used = 0;
    plan_count    = sim_between(1, PHASES_MAX);
    plan_now      = 0;
    for (int i = 0; i < plan_count; i++) {
        plan[i]      = &phases[sim_chance(300) ? 0 : sim_between(0, COUNT(phases) - 1)];
        plan_from[i] = at;
        at           = mono_plus_ms(at, sim_chance(200) ? sim_between(5000, 60000) : sim_between(100, 6000));
    }
    plan[plan_count]          = &healthy;
    plan_from[plan_count]     = at;
    plan_from[plan_count + 1] = NEVER;
    sim_trace("server is %s", phase()->name);
}

Mono server_healthy_at(void)
{
    return plan_from[plan_count];
}

int server_commits(int64_t key)
{
    return commits[key];
}

int server_sessions_of_client(void)
{
    int count = 0;

    for (int i = 0; i < sessions_used; i++)
        count += sessions[i].client;
    return count;
}

static Mono sooner(Mono a, Mono b)
{
    return mono_before(b, a) ? b : a;
}

/* It looks at its socket between statements only. */
static Mono session_next_event(const Session *session)
{
    if (!session->server)
        return NEVER;
    if (session->blocked)
        return session->cut_at;
    return session->apply_at.ns != INT64_MAX ? session->apply_at : session->end_at;
}

Mono server_next_event(void)
{
    Mono next = plan_from[plan_now + 1];

    for (int i = 0; i < sessions_used; i++)
        next = sooner(next, session_next_event(&sessions[i]));
    return next;
}

/* What session_next_event() announced. */
static void session_step(Session *session)
{
    if (session->blocked) {
        session->blocked = false;
        session->failed  = session->in_transaction;
    } else if (session->apply_at.ns != INT64_MAX) {
        apply(session);
    } else {
        session_end(session);
    }
}

void server_tick(void)
{
    while (is_due(plan_from[plan_now + 1])) {
        plan_now++;
        sim_trace("server is %s", phase()->name);
        sessions_thaw();
        if (phase()->kills)
            sessions_kill();
    }
    for (int i = 0; i < sessions_used; i++) {
        Session *session = &sessions[i];

        while (is_due(session_next_event(session)))
            session_step(session);
    }
}

Mono server_socket_ready(int fd)
{
    return sessions[fd].answer_at;
}

/* ---- the client's end ---- */

Session *session_open(void)
{
    Session *session = sessions;

    while (session < sessions + SESSIONS_MAX && (session->client || session->server))
        session++;
    if (session == sessions + SESSIONS_MAX)
        sim_fail("the server has no session left");
    if (session >= sessions + sessions_used)
        sessions_used = (int)(session - sessions) + 1;
    *session = (Session){.serial = ++serials, .client = true, .status = CONNECTION_STARTED, .polls_left = 2,
                         .transaction = PQTRANS_IDLE, .put = NO_KEY, .add = NO_KEY, .apply_at = NEVER,
                         .end_at = NEVER, .cut_at = NEVER, .answer_at = after_latency()};
    if (sim_chance(phase()->refused))
        snprintf(session->refusal, sizeof session->refusal, "connection refused\n");
    else if (sim_chance(phase()->full))
        snprintf(session->refusal, sizeof session->refusal, "connection failed: FATAL:  53300: too many clients\n");
    else if (sim_chance(phase()->starting))
        snprintf(session->refusal, sizeof session->refusal, "connection failed: FATAL:  57P03: starting up\n");
    else if (sim_chance(phase()->silent))
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
    PGresult      *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    char           name[] = "value", text[24];
    PGresAttDesc   column = {.name = name, .typid = 20, .typlen = 8};

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

PGresult *session_result(Session *session)
{
    if (!session->asked)
        return NULL;
    if (!session->arrived)
        sim_fail("PQgetResult would block");
    session->arrived = false;
    sim_trace("hears %d: %s", session_fd(session), session->sqlstate[0] ? session->sqlstate : "ok");
    if (strncmp(session->sqlstate, "57P", 3) == 0) { /* said, and gone: what comes next is the end of the stream */
        session_end(session);
        session->answer_is_eof = true;
        session->answer_at     = sim_now();
        return result_with_error(session->sqlstate);
    }
    session->asked       = false;
    session->transaction = !session->in_transaction ? PQTRANS_IDLE : session->failed ? PQTRANS_INERROR : PQTRANS_INTRANS;
    if (session->sqlstate[0])
        return result_with_error(session->sqlstate);
    return session->verb >= VERB_PING ? result_with_value(session->value) : PQmakeEmptyPGresult(NULL, PGRES_COMMAND_OK);
}

int session_fd(const Session *session)
{
    return (int)(session - sessions);
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

/* A commit cannot be canceled; anything else can, if it is still the same session and still at it. */
void session_cancel(SessionName name)
{
    Session *session = &sessions[name.fd];

    if (session->serial != name.serial || !session->server || session->verb == VERB_COMMIT || phase()->silent)
        return;
    if (session->apply_at.ns == INT64_MAX && !session->blocked)
        return;
    sim_trace("cancels %d", name.fd);
    session->apply_at = NEVER;
    session->blocked  = false;
    session->failed   = session->in_transaction;
    answer_set(session, "57014");
    if (!session->answer_is_eof && !session->silent)
        session->answer_at = sooner(session->answer_at, after_latency());
    server_tick();
}
