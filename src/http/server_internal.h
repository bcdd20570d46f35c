/*
 * server_internal.h - what the files of the server share: the server, its loops, their connections.
 *
 *   server.c    options, listening, drain, the end
 *   loop.c      one network thread: epoll, timers, accepting, the inbox
 *   peer.c      one connection; peer_read.c its requests, peer_write.c its responses
 *   dispatch.c  one request: route, token, body rules, handler, problem
 *   suspend.c   one request that is suspended
 */
#ifndef HTTP_SERVER_INTERNAL_H
#define HTTP_SERVER_INTERNAL_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/share.h"
#include "base/sync.h"
#include "http/executor.h"
#include "http/metric.h"
#include "http/request_internal.h"
#include "http/server.h"

typedef struct Peer Peer;
typedef struct Loop Loop;
typedef TAILQ_HEAD(PeerQueue, Peer) PeerQueue;

/*
 *               bytes             head done             body done, queued
 *   (accepted) -------> HEAD --------------> BODY ------------------------> WAITING
 *                        ^ |                  |                                |
 *       keep-alive       | | error            | error, inline, queue full      | executor is done, or resumed
 *                        | v                  v                                v
 *                       WRITING <--------------------------------------------- +
 *                          |  close
 *                          v
 *                       LINGERING: nothing more to say; read until the client has heard it
 *
 *   A suspended request is WAITING, too; no executor holds it.
 *   A token that memory does not know: HEAD -> ASKING, while it is looked up -> BODY when it is good, else WRITING.
 */
typedef enum { PEER_HEAD, PEER_ASKING, PEER_BODY, PEER_WAITING, PEER_WRITING, PEER_LINGERING } PeerState;

/* Every connection is in exactly one list of its loop. All of a list have the same time limit, so the one that expires
 * first is at the front. */
typedef enum { LIST_MOVING, LIST_WAITING, LIST_LINGERING, LIST_COUNT } PeerListName;
typedef struct {
    PeerQueue peers;
    int       ms_max; /* 0: no limit here, the request's own deadline rules */
} PeerList;

struct Peer {
    Loop        *loop;
    int          fd;
    PeerState    state;
    PeerListName list;
    Mono         since;    /* when it came into this list, or when its request began to arrive */
    uint32_t     interest; /* the events registered with epoll */
    bool         gone;     /* the client hung up while an executor had the request */
    bool         close;    /* after the answer */
    bool         surplus; /* accepted beyond the limit: it replaces an unauthenticated one, or gets 503 and is closed */
    bool         known;   /* a token was accepted on it; until then it is unauthenticated */
    char         key[TOKEN_NAME_SIZE]; /* its name, for which this connection counts in server->places; "": none */
    bool         counted;              /* its request is in server->in_flight */
    Request     *request;              /* NULL while idle */
    ExecutorJob  job;                  /* while it waits for an executor */
    Text         out;                  /* the answer's head */
    size_t       sent;                 /* of head and body */
    size_t       reserved;             /* bytes for its request's body that count in server->bodies */
    size_t       unsent;               /* bytes of its response that count in server->unsent */
    size_t       taken;                /* of these, what the client had acknowledged when its time began anew */
    TAILQ_ENTRY(Peer) link;
    TAILQ_ENTRY(Peer) posted;
    size_t used;   /* bytes of the request that are done with */
    size_t filled; /* bytes read */
    char   bytes[];
};

#define HTTP_DATE_SIZE 32

struct Loop {
    Server   *server;
    pthread_t thread;
    int       epoll_fd;
    int       wake_fd;
    Mono      now; /* read once per turn */
    int64_t   date_s;
    char      date[HTTP_DATE_SIZE];
    PeerList  lists[LIST_COUNT];
    Request  *spare; /* requests to use again */
    int       spare_count;
    char      id_head[25]; /* request ids are UUIDs: this, then a number in 12 hexadecimal digits */
    uint64_t  id_next;
    bool      draining;
    Mono      accept_again;  /* after descriptors ran out; .ns 0: accepting */
    bool      accept_failed; /* and the log has it */

    atomic_int suspended; /* requests that will be resumed, and tokens that are looked up */

    Mutex     mutex; /* guards inbox */
    PeerQueue inbox; /* new ones, and those whose executor or lookup is done */
};

typedef enum { SERVER_RUNNING, SERVER_DRAINING, SERVER_STOPPING } ServerPhase;

struct Server {
    ServerOptions            options; /* defaults filled in */
    int                      listen_fd;
    int                      port;
    Executor                *executor;
    Share                   *unsent; /* bytes of large responses that are being sent, by key */
    Share                   *bodies; /* bytes of large bodies, until their responses are sent, by key */
    Share                   *places; /* connections, by the key that was used last */
    int                      loop_count;
    Loop                    *loops;
    _Atomic(RouteMetrics *) *route_metrics; /* by the index of the route; NULL: not used yet */
    int loop_next; /* who gets the next connection; only the first loop, which accepts, touches it */

    atomic_int phase;     /* ServerPhase */
    atomic_int open;      /* connections, all */
    atomic_int active;    /* connections that are not lingering */
    atomic_int in_flight; /* requests with executors, or whose response is being sent */
    atomic_int drained;   /* loops that have closed their idle connections */
    Mutex      mutex;     /* for the condition only */
    Cond       quiet;     /* active or drained changed while draining */
};

/* loop.c */
void loop_start(Loop *loop, Server *server);
void loop_wake(Loop *loop);
void loop_post(Loop *loop, Peer *peer); /* any thread: the loop takes the connection (back) */
/* Before close(): a child that is about to exec holds the socket a moment longer, and with it epoll would go on to
 * report it. */
void loop_forget(Loop *loop, int fd);
void loop_move(Peer *peer, PeerListName list);
/* Close the oldest unauthenticated connection without a complete request head. false: there is none besides `but`. */
bool     loop_evict(Loop *loop, const Peer *but);
Request *loop_request(Loop *loop);
void     loop_request_end(Loop *loop, Request *request);
void     loop_end(Loop *loop); /* after STOPPING: join, wait for suspended requests, close everything */

/* peer.c; all but peer_new() and peer_execute() on the loop's thread */
Peer *peer_new(Loop *loop, int fd, bool surplus);
void  peer_begin(Peer *peer); /* the loop has it now */
void  peer_event(Peer *peer, uint32_t events);
void  peer_expire(Peer *peer);
void  peer_resume(Peer *peer); /* its executor or lookup is done, or it was resumed */
void  peer_drain(Peer *peer);  /* close it if it is idle */
void  peer_close(Peer *peer);
void  peer_execute(void *peer); /* on an executor */

/* dispatch.c */
/* The head is complete: find the route, check the token and the body's framing. OK without request->authentic: the
 * token is to be looked up by dispatch_token(). */
must_check ErrorCode dispatch_head(Server *server, Request *request, Error *reterr);
/* The connection comes back to its loop with the verdict, which is for dispatch_asked(). */
void                 dispatch_token(Server *server, Request *request);
must_check ErrorCode dispatch_asked(const Server *server, Request *request, Error *reterr);
/* Some of the body has come. */
/* Does its handler run on the network thread? */
bool                 dispatch_runs_inline(const Request *request);
must_check ErrorCode dispatch_body(const Request *request, Error *reterr);
/* Run the handler. true: the response is filled, whatever happened. false: the request is suspended, and not ours. */
bool dispatch_run(Server *server, Request *request);
/* It was resumed, if it was suspended at all: fill the response. */
void dispatch_end(Server *server, Request *request);
/* The same on an executor, for on_resume that may wait. */
void dispatch_resumed(Server *server, Request *request);
/* Fill the response with a problem. */
void dispatch_fail(Request *request, const Error *error);

/* server.c */
void server_quiet(Server *server); /* something that server_drain() waits for has changed */

#endif
