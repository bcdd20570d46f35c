/*
 * peer_write.c - the response of a connection. Part of peer.c, which has the invariants.
 */
#include "http/peer_internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/log.h"
#include "http/metric.h"

/* A client's own id, else one that this process never gives twice. */
void peer_name_request(Peer *peer)
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
Step peer_answer(Peer *peer)
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

Step peer_fail(Peer *peer, const Error *error, bool close)
{
    peer->close |= close;
    peer_name_request(peer);
    dispatch_fail(peer->request, error);
    return peer_answer(peer);
}

/* sendmsg() reads only, but struct iovec serves recvmsg() too. */
static void *deconst(const char *bytes)
{
    return (void *)(uintptr_t)bytes;
}

Step peer_step_write(Peer *peer)
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
