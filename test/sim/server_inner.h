/*
 * server_inner.h - what server.c (the server's end) and session.c (the client's end) share.
 *
 * A session has two ends. The client's ends with session_close(), the server's when it notices, which may be later: then
 * it rolls back, unless the statement it is working on commits first.
 */
#ifndef SIM_SERVER_INNER_H
#define SIM_SERVER_INNER_H

#include "test/sim/server.h"

#define NO_KEY (-1)

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
    bool        alone;    /* the standby is away */
} Phase;

typedef enum { VERB_BEGIN, VERB_COMMIT, VERB_ROLLBACK, VERB_PING, VERB_PUT, VERB_ADD, VERB_GET } Verb;

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
    bool                    pipeline;
    int                     round; /* of a pipeline's results */
    PQnoticeReceiver        notices;
    void                   *notices_context;
    /* the statement and its answer */
    Verb    verb;
    int64_t key;
    Mono    apply_at; /* NEVER: done, or will not be */
    Mono    cut_at;   /* statement_timeout */
    bool    applied;
    bool    blocked; /* another session is putting the same key */
    bool    silent;  /* until the phase ends */
    char    sqlstate[6];
    int64_t value;
    /* the server's end */
    bool    server;
    bool    in_transaction, failed;
    int     timeout_ms;
    int64_t put, add;  /* not yet committed */
    bool    barrier;   /* it has read what another one put, and commits no sooner than that was replicated */
    bool    waits;     /* committing: for the standby */
    bool    warned;    /* its wait was canceled: the answer comes with a notice */
    Mono    cancel_at; /* an administrator loses patience */
    Mono    end_at;    /* when it notices that the client is gone */
};

/* The phase that the server is in. */
const Phase *server_phase(void);
/* A session that nobody uses, with a serial number of its own; and the one with this number. */
Session *server_session_new(void);
Session *server_session(int fd);
int      server_session_fd(const Session *session);

bool is_due(Mono at);
Mono soon(int least_ms, int most_ms);
Mono after_latency(void);

/* A statement has come in: what will become of it? */
void fate_choose(Session *session);
void fate_silent(Session *session);
void answer_set(Session *session, const char *sqlstate);
void session_end(Session *session);

#endif
