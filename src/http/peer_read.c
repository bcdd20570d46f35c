/*
 * peer_read.c - the request of a connection: its head, then its body, then to the handler. Part of peer.c, which has
 * the invariants.
 */
#include "http/peer_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "http/metric.h"

#define QUICK_BODY_MAX ((size_t)64 << 10) /* reading a larger one would keep the other connections waiting */
#define LARGE_BODY_MIN ((size_t)64 << 10) /* one up to this is not counted: connections are bounded */

void peer_request_begin(Peer *peer)
{
    peer->request       = loop_request(peer->loop);
    peer->request->peer = peer;
}

Fill peer_fill(Peer *peer)
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

/* Bytes behind the head that are done with: what follows moves up, the head stays where it is. */
static void peer_consume(Peer *peer, size_t count)
{
    peer->filled -= count;
    memmove(peer->bytes + peer->used, peer->bytes + peer->used + count, peer->filled - peer->used);
}

bool head_has_body(const Head *head)
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

/* Hand the request to an executor, or refuse it when too many wait already. */
static Step peer_submit(Peer *peer)
{
    Error error;

    peer_leave(peer, PEER_WAITING);
    if (peer_queue(peer, &error) == OK)
        return STEP_PAUSE;
    return peer_fail(peer, &error, /* close= */ false);
}

/* No thread waits for the verdict about its token. */
static Step peer_ask(Peer *peer)
{
    peer_leave(peer, PEER_ASKING);
    atomic_fetch_add(&peer->loop->suspended, 1);
    dispatch_token(peer->loop->server, peer->request);
    return STEP_PAUSE;
}

/* A connection counts for the key that it used last, until it is closed: also while its client waits, idles or has
 * gone. */
static ErrorCode place_take(Peer *peer, Error *reterr)
{
    const char *key = peer->request->check.name;

    if (!key[0] || strcmp(key, peer->key) == 0)
        return OK;
    peer_place_end(peer);
    if (!share_try(peer->loop->server->places, key, 1)) {
        metric_add(&http_metrics.shed, 1);
        return fail(reterr, ERR_BUSY, "this API key has too many connections");
    }
    snprintf(peer->key, sizeof peer->key, "%s", key);
    return OK;
}

void peer_place_end(Peer *peer)
{
    if (peer->key[0])
        share_give(peer->loop->server->places, peer->key, 1);
    peer->key[0] = '\0';
}

/* A large body takes memory until its response is sent, because its handler may have copied it. A request that lacks a
 * part is refused at once: one that waited would keep what it has from others. length: of the body, as far as it is
 * known. */
static ErrorCode body_reserve(Peer *peer, size_t length, Error *reterr)
{
    Request *request = peer->request;

    if (length <= LARGE_BODY_MIN || length <= peer->reserved)
        return OK;
    if (!share_try(peer->loop->server->bodies, request->check.name, (int64_t)(length - peer->reserved))) {
        metric_add(&http_metrics.bodies_shed, 1);
        return fail(reterr, ERR_BUSY, "the bodies of other requests take the memory");
    }
    metric_add(&http_metrics.bodies, (int64_t)(length - peer->reserved));
    peer->reserved = length;
    text_reserve(&request->body, length - request->body.length);
    return OK;
}

void peer_body_end(Peer *peer)
{
    if (peer->reserved == 0)
        return;
    share_give(peer->loop->server->bodies, peer->request->check.name, (int64_t)peer->reserved);
    metric_add(&http_metrics.bodies, -(int64_t)peer->reserved);
    peer->reserved = 0;
}

/* More of a chunked body has come: doubling keeps a long one linear. */
static ErrorCode body_grow(Peer *peer, size_t more, Error *reterr)
{
    const Text *body   = &peer->request->body;
    size_t      length = LARGE_BODY_MIN;

    while (length < body->length + more)
        length *= 2;
    return body_reserve(peer, length < body->length_max ? length : body->length_max, reterr);
}

Step peer_take_body(Peer *peer)
{
    int64_t length = peer->request->head.content_length;
    Error   error;

    if (place_take(peer, &error) != OK)
        return peer_fail(peer, &error, /* close= */ true);
    if (length > 0 && body_reserve(peer, (size_t)length, &error) != OK)
        return peer_fail(peer, &error, /* close= */ true);
    peer_say_continue(peer);
    peer->state = PEER_BODY;
    return STEP_ON;
}

Step peer_step_head(Peer *peer)
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
        return peer_ask(peer);
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

        TRY(body_grow(peer, here, reterr));
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

Step peer_step_body(Peer *peer)
{
    Request *request = peer->request;
    bool     done    = false;
    Error    error;

    if (read_body(peer, &done, &error) != OK)
        return peer_fail(peer, &error, /* close= */ true);
    /* At its first byte where there should be none: a client without a token makes the server hold no more than one
     * buffer. */
    if (dispatch_body(request, &error) != OK)
        return peer_fail(peer, &error, /* close= */ !done);
    if (!done)
        return STEP_PAUSE;
    if (!dispatch_runs_inline(request) || request->body.length > QUICK_BODY_MAX)
        return peer_submit(peer);
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
