/*
 * peer.c - one connection: reads requests, one at a time, and writes their responses. The diagram of states is in
 * server_internal.h.
 *
 * Invariants
 *   1. A request in state ASKING or WAITING belongs to the executor, or to the party that will resume it; the loop does not touch
 *      it, and does not free the connection, until loop_post() returns it.
 *   2. The buffer does not move and its first `used` bytes do not change while a request is under way: the head's
 *      strings lie there.
 *   3. A connection that is closed after a response lingers: closing with unread bytes would make the kernel reset it,
 *      and the client might never see the response.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "http/metric.h"
#include "http/server_internal.h"

#define READ_SPACE     ((size_t)16 << 10) /* beside the head; a body passes through here */
#define OUT_HEAD_MAX   ((size_t)16 << 10) /* all the headers that a response can have fit */
#define QUICK_BODY_MAX ((size_t)64 << 10) /* reading a larger one would keep the other connections waiting */

static_assert(OUT_HEAD_MAX >= RESPONSE_HEADERS_BYTES_MAX + (size_t)4 * RESPONSE_HEADERS_MAX + 1024,
              "what the server adds fits too");

/* GONE: the connection was closed and freed. */
typedef enum { STEP_ON, STEP_PAUSE, STEP_CLOSED } Step;
typedef enum { FILL_SOME, FILL_NONE, FILL_END, FILL_BROKEN } Fill;

static size_t peer_space(const Server *server)
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
    loop_request_end(peer->loop, take(peer->request));
}

static void peer_request_begin(Peer *peer)
{
    peer->request       = loop_request(peer->loop);
    peer->request->peer = peer;
}

static Fill peer_fill(Peer *peer)
{
    size_t space = peer_space(peer->loop->server) - peer->filled;

    assert(space > 0);
    ssize_t count = recv(peer->fd, peer->bytes + peer->filled, space, 0);
    if (count < 0)
        return errno == EAGAIN || errno == EINTR ? FILL_NONE : FILL_BROKEN;
    if (count == 0)
        return FILL_END;
    if (!peer->request && peer->filled == 0)
        loop_move(peer, LIST_MOVING); /* from the first byte on, the whole request has read_ms_max to arrive */
    peer->filled += (size_t)count;
    return FILL_SOME;
}

/* A client's own id, else one that this process never gives twice. */
static void peer_name_request(Peer *peer)
{
    Request *request = peer->request;
    Loop    *loop    = peer->loop;

    if (request->id[0] != '\0' || request_take_id(request))
        return;
    size_t   length = sizeof loop->id_head - 1;
    uint64_t number = loop->id_next++;

    memcpy(request->id, loop->id_head, length);
    for (int shift = 44; shift >= 0; shift -= 4)
        request->id[length++] = "0123456789abcdef"[number >> shift & 15];
    request->id[length] = '\0';
}

static void count_answer(const Request *request)
{
    static Metric *const by_class[] = {[2] = &http_metrics.status_2xx,
                                       &http_metrics.status_3xx,
                                       &http_metrics.status_4xx,
                                       &http_metrics.status_5xx};
    int                  status     = request->response.status;
    int64_t              us         = request->began.ns == 0 ? 0 : mono_us_between(request->began, clock_mono());

    assert(status >= 200 && status <= 599);
    metric_add(by_class[status / 100], 1);
    if (request->began.ns != 0)
        metric_observe_us(&http_metrics.seconds, us);
    log_write(LOG_DEBUG, "http", "request answered", LOG_STR("id", request->id),
              LOG_STR("method", request->head.method), LOG_STR("path", request->head.target), LOG_INT("status", status),
              LOG_INT("us", us));
}

/* The response is filled: from here on it is being written. */
static Step peer_answer(Peer *peer)
{
    Server *server = peer->loop->server;

    if (atomic_load_explicit(&server->phase, memory_order_relaxed) != SERVER_RUNNING)
        peer->close = true;
    count_answer(peer->request);
    text_clear(&peer->out);
    response_write_head(&peer->request->response, &(ResponseFrame){peer->loop->date, peer->request->id, peer->close},
                        &peer->out);
    peer->sent  = 0;
    peer->state = PEER_WRITING;
    loop_move(peer, LIST_MOVING);
    return STEP_ON;
}

static Step peer_fail(Peer *peer, const Error *error, bool close)
{
    peer->close |= close;
    peer_name_request(peer);
    dispatch_fail(peer->request, error);
    return peer_answer(peer);
}

/* Bytes behind the head that are done with: what follows moves up, the head stays where it is. */
static void peer_consume(Peer *peer, size_t count)
{
    peer->filled -= count;
    memmove(peer->bytes + peer->used, peer->bytes + peer->used + count, peer->filled - peer->used);
}

static bool head_has_body(const Head *head)
{
    return head->content_length > 0 || head->chunked;
}

/* A client that sent Expect: 100-continue and waits gets 100 Continue now; one that did not wait needs none. */
static void peer_say_continue(Peer *peer)
{
    static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (!head_has_body(&peer->request->head) || !peer->request->head.expects_continue || peer->filled > peer->used)
        return;
    ssize_t count = send(peer->fd, line, sizeof line - 1, MSG_NOSIGNAL);
    if (count != (ssize_t)sizeof line - 1)
        peer->close = true; /* the socket's buffer is full before the first response: the client does not read */
}

/* Another thread has the request now. */
static void peer_leave(Peer *peer, PeerState state)
{
    peer->state   = state;
    peer->counted = true;
    atomic_fetch_add(&peer->loop->server->in_flight, 1);
    loop_move(peer, LIST_WAITING);
}

/* Hand the request to an executor, or refuse it when too many wait already. unread: its body is still to come. */
static Step peer_submit(Peer *peer, PeerState state, bool unread)
{
    Server *server = peer->loop->server;
    Error   error;

    peer_leave(peer, state);
    if (executor_submit(server->executor, peer))
        return STEP_PAUSE;
    metric_add(&http_metrics.shed, 1);
    fail(&error, ERR_BUSY, "too many requests are waiting");
    return peer_fail(peer, &error, /* close= */ unread);
}

static Step peer_take_body(Peer *peer)
{
    peer_say_continue(peer);
    peer->state = PEER_BODY;
    return STEP_ON;
}

static Step step_head(Peer *peer)
{
    Server *server = peer->loop->server;
    size_t  max    = (size_t)server->options.header_bytes_max;
    bool    done   = false;
    Error   error;

    if (peer->filled == 0)
        return STEP_PAUSE;
    if (!peer->request)
        peer_request_begin(peer);
    Head *head = &peer->request->head;
    if (head_parse(head, peer->bytes, peer->filled < max ? peer->filled : max, &done, &error) != OK)
        return peer_fail(peer, &error, /* close= */ true);
    if (!done && peer->filled >= max) {
        fail(&error, ERR_HEADERS, "the request line and the headers are larger than %zu bytes", max);
        return peer_fail(peer, &error, /* close= */ true);
    }
    if (!done)
        return STEP_PAUSE;
    peer->used  = head->length;
    peer->close = head->close;
    peer_name_request(peer);
    if (dispatch_head(server, peer->request, &error) != OK)
        return peer_fail(peer, &error, /* close= */ head_has_body(head));
    if (!peer->request->authentic)
        return peer_submit(peer, PEER_ASKING, head_has_body(head));
    peer->known |= peer->request->match.route->scope != SCOPE_NONE;
    return peer_take_body(peer);
}

/* Move what has arrived of the body out of the buffer. */
static ErrorCode read_body(Peer *peer, bool *ret_done, Error *reterr)
{
    Request *request = peer->request;
    char    *bytes   = peer->bytes + peer->used;
    size_t   here    = peer->filled - peer->used;

    if (request->head.chunked) {
        size_t count = 0;

        TRY(chunks_parse(&request->chunks, bytes, here, &request->body, &count, reterr));
        peer_consume(peer, count);
        *ret_done = request->chunks.state == CHUNK_DONE;
        return OK;
    }
    size_t wanted = head_has_body(&request->head) ? (size_t)request->head.content_length - request->body.length : 0;
    size_t count  = here < wanted ? here : wanted;
    if (count > 0) {
        text_append_bytes(&request->body, bytes, count);
        peer_consume(peer, count);
    }
    *ret_done = count == wanted;
    return OK;
}

static Step step_body(Peer *peer)
{
    Request *request = peer->request;
    bool     done    = false;
    Error    error;

    if (read_body(peer, &done, &error) != OK)
        return peer_fail(peer, &error, /* close= */ true);
    /* At its first byte where there should be none: a client without a token makes the server hold no more than one buffer. */
    if (dispatch_body(request, &error) != OK)
        return peer_fail(peer, &error, /* close= */ !done);
    if (!done)
        return STEP_PAUSE;
    if (!request->match.route->is_inline || request->body.length > QUICK_BODY_MAX)
        return peer_submit(peer, PEER_WAITING, /* unread= */ false);
    bool ours = dispatch_run(peer->loop->server, request);
    if (!ours || request->suspend.may_wait) {
        peer_leave(peer, PEER_WAITING); /* if it was resumed by now, it is in our own inbox */
        if (ours)
            loop_post(peer->loop, peer);
        return STEP_PAUSE;
    }
    dispatch_end(peer->loop->server, request);
    return peer_answer(peer);
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
static Step peer_next(Peer *peer)
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

/* sendmsg() reads only, but struct iovec serves recvmsg() too. */
static void *deconst(const char *bytes)
{
    return (void *)(uintptr_t)bytes;
}

static Step step_write(Peer *peer)
{
    size_t       size     = 0;
    const char  *bytes    = response_content(&peer->request->response, &size);
    size_t       body     = peer->request->is_head ? 0 : size;
    size_t       head     = peer->out.length;
    size_t       from     = peer->sent > head ? peer->sent - head : 0; /* in the body */
    struct iovec parts[2] = {
        {peer->out.bytes + (from > 0 ? head : peer->sent), from > 0 ? 0 : head - peer->sent},
        {deconst(bytes ? bytes + from : NULL),             body - from                     },
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = COUNT(parts)};

    ssize_t count = sendmsg(peer->fd, &message, MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return STEP_PAUSE;
    if (count < 0) {
        peer_close(peer);
        return STEP_CLOSED;
    }
    peer->sent += (size_t)count;
    if (peer->sent < head + body)
        return STEP_ON;
    peer->request->delivered = true;
    return peer_next(peer);
}

static Step peer_step(Peer *peer)
{
    switch (peer->state) {
    case PEER_HEAD:
        return step_head(peer);
    case PEER_BODY:
        return step_body(peer);
    case PEER_WRITING:
        return step_write(peer);
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

/* The client sends or hangs up while its request is with an executor, or suspended. One that closes only its sending half may
 * still read, but if its request waits for work (on_closed) it is taken for gone, as other servers do. */
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
    Peer *peer = malloc(sizeof *peer + peer_space(loop->server));

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
    if (peer->request->authentic) {
        peer->known = true;
        peer_uncount(peer);
        loop_move(peer, LIST_MOVING);
        peer_take_body(peer);
    } else {
        peer->close |= head_has_body(&peer->request->head);
        peer_answer(peer);
    }
}

/* on_resume may wait: an executor runs it, and brings the request back once more. From here on it is like any other request
 * with an executor. false: not so, or too many wait there and the response says so. */
static bool peer_hand_over(Peer *peer)
{
    Request *request = peer->request;
    Error    error;

    if (!request->suspend.on_resume || !request->suspend.may_wait || request->resumed)
        return false;
    request->resumed = true;
    atomic_store(&request->watched, false);
    atomic_fetch_sub(&peer->loop->suspended, 1);
    if (executor_submit(peer->loop->server->executor, peer))
        return true;
    metric_add(&http_metrics.shed, 1);
    fail(&error, ERR_BUSY, "too many requests are waiting");
    dispatch_fail(request, &error);
    return false;
}

void peer_resume(Peer *peer)
{
    assert(peer_is_away(peer));
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
    if (peer->state == PEER_ASKING)
        peer_asked(peer);
    else
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

    if (peer->state == PEER_ASKING)
        dispatch_token(peer->loop->server, peer->request);
    else if (peer->request->resumed)
        dispatch_resumed(peer->loop->server, peer->request);
    else if (!dispatch_run(peer->loop->server, peer->request))
        return;
    loop_post(peer->loop, peer);
}
