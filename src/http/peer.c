/*
 * peer.c - one connection: its life, its events, and its way from one state to the next. The diagram of states is in
 * server_internal.h; peer_read.c reads the requests, one at a time, and peer_write.c writes their responses.
 *
 * Invariants
 *   1. A request in state ASKING belongs to the lookup of its token, one in state WAITING to the executor or to the
 * party that will resume it; the loop does not touch it, and does not free the connection, until loop_post() returns
 * it.
 *   2. The buffer does not move and its first `used` bytes do not change while a request is under way: the head's
 *      strings lie there.
 *   3. A connection that is closed after a response lingers: closing with unread bytes would make the kernel reset it,
 *      and the client might never see the response.
 */
#include "http/peer_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/metric.h"

#define READ_SPACE   ((size_t)16 << 10) /* beside the head; a body passes through here */
#define OUT_HEAD_MAX ((size_t)16 << 10) /* all the headers that a response can have fit */

static_assert(OUT_HEAD_MAX >= RESPONSE_HEADERS_BYTES_MAX + (size_t)4 * RESPONSE_HEADERS_MAX + 1024,
              "what the server adds fits too");

size_t peer_space(const Server *server)
{
    return (size_t)server->options.header_bytes_max + READ_SPACE;
}

static void peer_want(Peer *peer, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = peer};

    if (peer->interest == events)
        return;
    if (epoll_ctl(peer->loop->epoll_fd, EPOLL_CTL_MOD, peer->fd, &event) != 0)
        abort();
    peer->interest = events;
}

/* A drain no longer waits for it. */
static void peer_passive(Server *server)
{
    atomic_fetch_sub(&server->active, 1);
    if (atomic_load(&server->phase) != SERVER_RUNNING)
        server_quiet(server);
}

static void peer_uncount(Peer *peer)
{
    if (peer->counted)
        atomic_fetch_sub(&peer->loop->server->in_flight, 1);
    peer->counted = false;
}

static void peer_request_end(Peer *peer)
{
    peer_uncount(peer);
    if (!peer->request)
        return;
    request_sent(peer->request);
    peer_unsent_end(peer);
    peer_body_end(peer);
    loop_request_end(peer->loop, take(peer->request));
}

ErrorCode peer_queue(Peer *peer, Error *reterr)
{
    const Request *request = peer->request;

    peer->job = (ExecutorJob){.item = peer, .reader = request->method == HTTP_GET ? request->check.name : NULL};
    if (executor_submit(peer->loop->server->executor, &peer->job))
        return OK;
    metric_add(&http_metrics.shed, 1);
    return fail(reterr, ERR_BUSY, "too many requests are waiting");
}

static Step peer_linger(Peer *peer)
{
    if (shutdown(peer->fd, SHUT_WR) != 0) {
        peer_close(peer);
        return STEP_CLOSED;
    }
    peer->state = PEER_LINGERING;
    loop_move(peer, LIST_LINGERING);
    peer_passive(peer->loop->server);
    return STEP_PAUSE;
}

/* The response was sent. The bytes behind this request are the beginning of the next one. */
Step peer_next(Peer *peer)
{
    peer_request_end(peer);
    if (peer->close)
        return peer_linger(peer);
    peer->filled -= peer->used;
    memmove(peer->bytes, peer->bytes + peer->used, peer->filled);
    peer->used  = 0;
    peer->state = PEER_HEAD;
    loop_move(peer, LIST_MOVING);
    return STEP_ON;
}

static Step peer_step(Peer *peer)
{
    switch (peer->state) {
    case PEER_HEAD:
        return peer_step_head(peer);
    case PEER_BODY:
        return peer_step_body(peer);
    case PEER_WRITING:
        return peer_step_write(peer);
    case PEER_ASKING:
    case PEER_WAITING:
    case PEER_LINGERING:
        break;
    }
    return STEP_PAUSE;
}

static bool peer_is_away(const Peer *peer)
{
    return peer->state == PEER_ASKING || peer->state == PEER_WAITING;
}

/* Go on as far as bytes and buffers allow, then register with epoll what is missing. */
static void peer_advance(Peer *peer)
{
    Step step;

    do
        step = peer_step(peer);
    while (step == STEP_ON);
    /* While a request is with its executor epoll is left alone: most clients send nothing until they have the
     * response, and a system call is saved. peer_event() deals with the others. */
    if (step == STEP_PAUSE && !peer_is_away(peer))
        peer_want(peer, peer->state == PEER_WRITING ? EPOLLOUT : EPOLLIN);
}

static void peer_read(Peer *peer)
{
    Error error;

    switch (peer_fill(peer)) {
    case FILL_SOME:
        peer_advance(peer);
        return;
    case FILL_NONE:
        return;
    case FILL_BROKEN:
        peer_close(peer);
        return;
    case FILL_END:
        if (!peer->request) {
            peer_close(peer);
            return;
        }
        fail(&error, ERR_INVALID, "the request ended early");
        peer_fail(peer, &error, /* close= */ true);
        peer_advance(peer);
    }
}

/* Nothing that comes now matters; only the end does. */
static void peer_discard(Peer *peer)
{
    ssize_t count = recv(peer->fd, peer->bytes, peer_space(peer->loop->server), 0);

    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        peer_close(peer);
}

/* Has the client closed its sending half? What it sent before that stays unread. */
static bool peer_has_ended(const Peer *peer)
{
    char byte;

    return recv(peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* The client sends or hangs up while its request is with an executor, or suspended. One that closes only its sending
 * half may still read, but if its request waits for work (on_closed) it is taken for gone, as other servers do. */
static void peer_disturbed(Peer *peer, uint32_t events)
{
    bool watched = atomic_load(&peer->request->watched);
    bool hung_up = events & (EPOLLHUP | EPOLLERR);

    if (!hung_up && !(watched && (events & EPOLLRDHUP || peer_has_ended(peer)))) {
        peer_want(peer, watched ? EPOLLRDHUP : 0); /* it sent something: that is read after the response */
        return;
    }
    /* epoll reports a hang-up whether asked or not, so the only way to silence it is to leave. */
    loop_forget(peer->loop, peer->fd);
    peer->gone = true;
    request_closed(peer->request);
}

Peer *peer_new(Loop *loop, int fd, bool surplus)
{
    Peer *peer = malloc(sizeof *peer + peer_space(loop->server)); /* not memory_new(): the buffer needs no zeros */

    if (!peer)
        abort();
    *peer = (Peer){.loop = loop, .fd = fd, .surplus = surplus, .state = PEER_HEAD, .list = LIST_MOVING};
    text_init(&peer->out, /* arena= */ NULL, OUT_HEAD_MAX);
    atomic_fetch_add(&loop->server->open, 1);
    atomic_fetch_add(&loop->server->active, 1);
    metric_add(&http_metrics.connections, 1);
    return peer;
}

void peer_begin(Peer *peer)
{
    Loop              *loop  = peer->loop;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};

    peer->interest = EPOLLIN;
    peer->since    = loop->now;
    TAILQ_INSERT_TAIL(&loop->lists[peer->list].peers, peer, link);
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, peer->fd, &event) != 0) {
        peer_close(peer);
        return;
    }
    if (peer->surplus && !loop_evict(loop, peer)) {
        Error error;

        peer_request_begin(peer);
        fail(&error, ERR_BUSY, "too many connections");
        peer_fail(peer, &error, /* close= */ true);
        peer_advance(peer);
    } else if (loop->draining) {
        peer_drain(peer);
    }
}

void peer_event(Peer *peer, uint32_t events)
{
    switch (peer->state) {
    case PEER_HEAD:
    case PEER_BODY:
        peer_read(peer);
        return;
    case PEER_ASKING:
    case PEER_WAITING:
        peer_disturbed(peer, events);
        return;
    case PEER_WRITING:
        peer_advance(peer);
        return;
    case PEER_LINGERING:
        peer_discard(peer);
    }
}

void peer_expire(Peer *peer)
{
    Error error;

    if (peer->state == PEER_WRITING && peer_takes(peer)) {
        loop_move(peer, LIST_MOVING);
        return;
    }
    if (!peer->request || peer->state == PEER_WRITING) {
        peer_close(peer);
        return;
    }
    assert(peer->state == PEER_HEAD || peer->state == PEER_BODY);
    fail(&error, ERR_SLOW, "the request did not arrive within %d ms", peer->loop->server->options.read_ms_max);
    peer_fail(peer, &error, /* close= */ true);
    peer_advance(peer);
}

/* The token is known now, or refused; the body's time begins, or it is never read. */
static void peer_asked(Peer *peer)
{
    Error error;

    atomic_fetch_sub(&peer->loop->suspended, 1);
    if (peer->gone) {
        peer_close(peer);
        return;
    }
    if (dispatch_asked(peer->loop->server, peer->request, &error) == OK) {
        peer->known = true;
        peer_uncount(peer);
        loop_move(peer, LIST_MOVING);
        peer_take_body(peer);
    } else {
        peer_fail(peer, &error, /* close= */ head_has_body(&peer->request->head));
    }
    peer_advance(peer);
}

/* on_resume may wait: an executor runs it, and brings the request back once more. From here on it is like any other
 * request with an executor. false: not so, or too many wait there and the response says so. */
static bool peer_hand_over(Peer *peer)
{
    Request *request = peer->request;
    Error    error;

    if (!request->suspend.on_resume || !request->suspend.may_wait || request->resumed)
        return false;
    request->resumed = true;
    atomic_store(&request->watched, false);
    atomic_fetch_sub(&peer->loop->suspended, 1);
    if (peer_queue(peer, &error) == OK)
        return true;
    dispatch_fail(request, &error);
    return false;
}

void peer_resume(Peer *peer)
{
    assert(peer_is_away(peer));
    if (peer->state == PEER_ASKING) {
        peer_asked(peer);
        return;
    }
    if (peer_hand_over(peer))
        return;
    /* Its end may have arrived without its event having been read yet. */
    if (!peer->gone && peer->request->suspend.on_sent && peer_has_ended(peer))
        peer->gone = true;
    dispatch_end(peer->loop->server, peer->request);
    if (peer->gone) {
        peer_close(peer);
        return;
    }
    peer_answer(peer);
    peer_advance(peer);
}

void peer_drain(Peer *peer)
{
    if (peer->state != PEER_HEAD || peer->request)
        return;
    if (peer_fill(peer) == FILL_SOME) /* a request that arrived in time gets its response */
        peer_advance(peer);
    else
        peer_close(peer);
}

void peer_close(Peer *peer)
{
    Server *server = peer->loop->server;

    peer_request_end(peer);
    peer_place_end(peer);
    TAILQ_REMOVE(&peer->loop->lists[peer->list].peers, peer, link);
    loop_forget(peer->loop, peer->fd);
    close(peer->fd);
    metric_add(&http_metrics.connections, -1);
    atomic_fetch_sub(&server->open, 1);
    if (peer->state != PEER_LINGERING)
        peer_passive(server);
    text_done(&peer->out);
    free(peer);
}

void peer_execute(void *item)
{
    Peer *peer = item;

    if (peer->request->resumed)
        dispatch_resumed(peer->loop->server, peer->request);
    else if (!dispatch_run(peer->loop->server, peer->request))
        return;
    loop_post(peer->loop, peer);
}
