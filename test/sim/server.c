/*
 * server.c - statements, their fates and the passing of time, at the server's end of every session.
 */
#include "test/sim/server_inner.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "test/sim/mutant.h"

#define SESSIONS_MAX 256
#define PHASES_MAX   8

/* clang-format off */
static const Phase phases[] = {
    {.name = "up", .latency_ms_max = 5, .lost = 5, .failed = 20},
    {.name = "slow", .latency_ms_max = 1500, .lost = 10, .failed = 20},
    {.name = "flaky", .latency_ms_max = 30, .refused = 200, .lost = 250, .failed = 150},
    {.name = "full", .latency_ms_max = 5, .full = 800, .failed = 20},
    {.name = "silent", .latency_ms_max = 5, .silent = 950},
    {.name = "moody", .latency_ms_max = 20, .silent = 300, .lost = 100},
    {.name = "alone", .latency_ms_max = 5, .lost = 50, .failed = 20, .alone = true},
    {.name = "alone and slow", .latency_ms_max = 500, .lost = 100, .alone = true},
    {.name = "down", .latency_ms_max = 5, .refused = 1000, .lost = 1000, .kills = true},
    {.name = "starting", .latency_ms_max = 5, .starting = 1000, .lost = 1000, .kills = true},
};
/* clang-format on */
static const Phase healthy = {.name = "healthy", .latency_ms_max = 5};

static Session      sessions[SESSIONS_MAX];
static int          sessions_used;
static unsigned     serials;
static int          commits[KEYS_MAX];
static int          unreplicated[KEYS_MAX]; /* of those, what the standby lacks */
static const Phase *plan[PHASES_MAX + 1];
static Mono         plan_from[PHASES_MAX + 2];
static int          plan_count, plan_now;

const Phase *server_phase(void)
{
    return plan[plan_now];
}

bool is_due(Mono at)
{
    return !mono_before(sim_now(), at);
}

Mono soon(int least_ms, int most_ms)
{
    return mono_plus_ms(sim_now(), sim_between(least_ms, most_ms));
}

Mono after_latency(void)
{
    return soon(1, server_phase()->latency_ms_max);
}

/* ---- the server's end ---- */

void answer_set(Session *session, const char *sqlstate)
{
    snprintf(session->sqlstate, sizeof session->sqlstate, "%s", sqlstate);
}

static void unblock_all(void)
{
    for (int i = 0; i < sessions_used; i++) {
        Session *session = &sessions[i];

        if (session->blocked && !is_due(session->cut_at)) {
            session->blocked = false;
            answer_set(session, "");
            session->apply_at = sim_now();
            if (!session->answer_is_eof && !session->silent)
                session->answer_at = after_latency();
        }
    }
}

static void commit_count(int64_t key, bool replicated)
{
    if (key == NO_KEY)
        return;
    commits[key]++;
    unreplicated[key] += !replicated;
}

static void transaction_close(Session *session)
{
    session->put = session->add = NO_KEY;
    session->in_transaction = session->failed = session->barrier = session->waits = false;
    session->cancel_at                                                            = NEVER;
    session->timeout_ms                                                           = 0;
    unblock_all();
}

/* What it wrote can be seen from now on. */
static void commit_end(Session *session, bool replicated)
{
    commit_count(session->put, replicated);
    commit_count(session->add, replicated);
    if (session->waits) {
        session->warned = !replicated;
        if (!session->answer_is_eof && !session->silent)
            session->answer_at = after_latency();
    }
    transaction_close(session);
}

static void transaction_end(Session *session, bool commit)
{
    bool wrote = session->put != NO_KEY || session->add != NO_KEY || session->barrier;

    if (!commit || session->failed) {
        transaction_close(session);
    } else if (wrote && server_phase()->alone) {
        session->waits     = true;
        session->cancel_at = sim_chance(300) ? soon(1, 3000) : NEVER;
        if (!session->answer_is_eof)
            session->answer_at = NEVER;
    } else {
        commit_end(session, /* replicated= */ true);
    }
}

void session_end(Session *session)
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
        session->value   = 1;
        session->barrier = mutant != MUTANT_NO_BARRIER;
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

void fate_silent(Session *session)
{
    session->silent    = true;
    session->answer_at = NEVER;
    session->apply_at  = sim_chance(500) ? after_latency() : NEVER;
}

static void fate_failed(Session *session)
{
    static const char *const sick[]   = {"53200", "57P01"};
    static const char *const work[]   = {"40001", "40P01", "55P03", "25006", "53200", "57P01", "23505", "22023"};
    static const char *const commit[] = {"40001", "57P01", "57P01"};

    if (session->verb == VERB_COMMIT)
        answer_set(session, commit[sim_between(0, COUNT(commit) - 1)]);
    else if (session->verb >= VERB_PUT)
        answer_set(session, work[sim_between(0, COUNT(work) - 1)]);
    else
        answer_set(session, sick[sim_between(0, COUNT(sick) - 1)]);
    /* Terminated right after the commit: it is done, and the client gets the message that the server is shutting down. */
    if (session->verb == VERB_COMMIT && session->sqlstate[0] == '5' && sim_chance(500)) {
        answer_set(session, "");
        apply(session);
        if (session->waits)
            commit_end(session, /* replicated= */ false);
        session->warned = false;
        answer_set(session, "57P01");
    }
}

void fate_choose(Session *session)
{
    session->apply_at      = after_latency();
    session->answer_at     = session->apply_at;
    session->cut_at        = session->timeout_ms ? mono_plus_ms(sim_now(), session->timeout_ms) : NEVER;
    session->answer_is_eof = session->silent = session->blocked = session->applied = false;
    answer_set(session, "");
    if (sim_chance(server_phase()->lost)) {
        fate_lost(session);
    } else if (sim_chance(server_phase()->silent)) {
        fate_silent(session);
    } else if (session->verb >= VERB_PUT && !mono_before(session->apply_at, session->cut_at)) {
        session->apply_at = session->answer_at = session->cut_at;
        answer_set(session, "57014");
    } else if (session->verb != VERB_ROLLBACK && sim_chance(server_phase()->failed)) {
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

/* The standby is back, or takes over: then what it lacks is gone, and so is every session. */
static void alone_end(void)
{
    bool failover = sim_chance(400);

    sim_trace(failover ? "the standby takes over" : "the standby is back");
    for (int key = 0; key < KEYS_MAX; key++) {
        commits[key] -= failover ? unreplicated[key] : 0;
        unreplicated[key] = 0;
    }
    for (int i = 0; i < sessions_used; i++) {
        Session *session = &sessions[i];

        if (failover && session->server)
            session_end(session);
        else if (session->waits)
            commit_end(session, /* replicated= */ true);
        if (failover && session->client && !session->arrived) {
            session->answer_is_eof = true;
            session->answer_at     = soon(1, 50);
        }
    }
}

/* ---- time ---- */

void server_start(void)
{
    Mono at = sim_now();

    memset(sessions, 0, sizeof sessions[0] * (size_t)sessions_used);
    memset(commits, 0, sizeof commits);
    memset(unreplicated, 0, sizeof unreplicated);
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
    sim_trace("server is %s", server_phase()->name);
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
    if (session->waits) /* it does not notice that its client is gone */
        return session->cancel_at;
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
    } else if (session->waits) {
        commit_end(session, /* replicated= */ false);
    } else if (session->apply_at.ns != INT64_MAX) {
        apply(session);
    } else {
        session_end(session);
    }
}

void server_tick(void)
{
    while (is_due(plan_from[plan_now + 1])) {
        bool was_alone = server_phase()->alone;

        plan_now++;
        sim_trace("server is %s", server_phase()->name);
        if (was_alone)
            alone_end();
        sessions_thaw();
        if (server_phase()->kills)
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

void server_socket_shut(int fd)
{
    Session *session = &sessions[fd];

    session->answer_is_eof = true;
    session->answer_at     = sim_now();
    if (session->server && session->end_at.ns == INT64_MAX)
        session->end_at = sim_now();
}

Session *server_session_new(void)
{
    Session *session = sessions;

    while (session < sessions + SESSIONS_MAX && (session->client || session->server))
        session++;
    if (session == sessions + SESSIONS_MAX)
        sim_fail("the server has no session left");
    if (session >= sessions + sessions_used)
        sessions_used = (int)(session - sessions) + 1;
    *session        = (Session){.serial = ++serials, .put = NO_KEY, .add = NO_KEY};
    session->end_at = session->cut_at = session->apply_at = session->cancel_at = NEVER;
    return session;
}

Session *server_session(int fd)
{
    return &sessions[fd];
}

int server_session_fd(const Session *session)
{
    return (int)(session - sessions);
}
