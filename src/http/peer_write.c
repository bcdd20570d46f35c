/*
 * peer_write.c - the response of a connection. Part of peer.c, which has the invariants.
 */
#include "http/peer_internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/log.h"
#include "http/metric.h"

#define TAKEN_PER_S 4096               /* bytes: a client that is slower is cut off */
#define LARGE_BYTES ((size_t)64 << 10) /* a smaller body is not counted: connections are bounded */

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

/* Of the request's route; NULL: none was found. */
static RouteMetrics *metrics_of_route(const Request *request)
{
    static const char *const methods[HTTP_METHOD_COUNT] = {
        [HTTP_GET] = "GET", [HTTP_POST] = "POST", [HTTP_PUT] = "PUT", [HTTP_DELETE] = "DELETE"};

    const Server            *server = request->peer->loop->server;
    const Route             *route  = request->match.route;
    _Atomic(RouteMetrics *) *slot;
    RouteMetrics            *metrics;
    char                     name[200];

    if (!route)
        return NULL;
    slot    = &server->route_metrics[route - server->options.routes.rows];
    metrics = atomic_load_explicit(slot, memory_order_acquire);
    if (metrics)
        return metrics;
    snprintf(name, sizeof name, "%s %s", methods[route->method], route->path);
    metrics = metric_series(&route_metric_table, name);
    atomic_store_explicit(slot, metrics, memory_order_release);
    return metrics;
}

static void count_route(const Request *request, int status, int64_t us)
{
    RouteMetrics *metrics = metrics_of_route(request);

    if (!metrics)
        return;
    metric_add(status < 300   ? &metrics->status_2xx
               : status < 400 ? &metrics->status_3xx
               : status < 500 ? &metrics->status_4xx
                              : &metrics->status_5xx,
               1);
    metric_observe_us(&metrics->seconds, us);
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
    count_route(request, status, us);
    log_write(LOG_DEBUG, "http", "request answered", LOG_STR("id", request->id), LOG_STR("key", request->check.name),
              LOG_STR("method", request->head.method), LOG_STR("path", request->head.target), LOG_INT("status", status),
              LOG_INT("us", us));
}

/* A large body takes memory until the client has read it. false: clients are slow to read others. */
static bool unsent_begin(Peer *peer)
{
    const Request *request = peer->request;
    size_t         size;

    (void)response_content(&request->response, &size);
    if (size < LARGE_BYTES || request->is_head || request->response.is_shared)
        return true;
    if (!share_try(peer->loop->server->unsent, request->check.name, (int64_t)size))
        return false;
    peer->unsent = size;
    metric_add(&http_metrics.unsent, (int64_t)size);
    return true;
}

void peer_unsent_end(Peer *peer)
{
    if (peer->unsent == 0)
        return;
    share_give(peer->loop->server->unsent, peer->request->check.name, (int64_t)peer->unsent);
    metric_add(&http_metrics.unsent, -(int64_t)peer->unsent);
    peer->unsent = 0;
}

/* May another response take the place of this one? It may if the client can ask again, or if on_sent takes back what
 * was done. */
static bool may_replace(const Request *request)
{
    return request->method == HTTP_GET || request->suspend.on_sent;
}

static void unsent_refuse(Peer *peer)
{
    Error error;

    metric_add(&http_metrics.unsent_shed, 1);
    request_sent(peer->request);
    fail(&error, ERR_BUSY, "large responses wait for clients that read slowly: read them, then try again");
    dispatch_fail(peer->request, &error);
}

/* The response is filled: from here on it is being written. */
Step peer_answer(Peer *peer)
{
    Server *server = peer->loop->server;

    if (!unsent_begin(peer) && may_replace(peer->request))
        unsent_refuse(peer);
    if (atomic_load_explicit(&server->phase, memory_order_relaxed) != SERVER_RUNNING)
        peer->close = true;
    count_answer(peer->request);
    text_clear(&peer->out);
    response_write_head(&peer->request->response, &(ResponseFrame){peer->loop->date, peer->request->id, peer->close},
                        &peer->out);
    arena_rewind(peer->request->arena, peer->request->mark);
    peer->sent = peer->taken = 0;
    peer->state              = PEER_WRITING;
    loop_move(peer, LIST_MOVING);
    return STEP_ON;
}

/* What the socket has accepted says little: its buffer may hold megabytes. What the client has acknowledged counts. */
bool peer_takes(Peer *peer)
{
    size_t least  = (size_t)peer->loop->server->options.read_ms_max * TAKEN_PER_S / 1000;
    int    queued = 0;

    if (ioctl(peer->fd, SIOCOUTQ, &queued) != 0 || peer->sent < peer->taken + least + (size_t)queued)
        return false;
    peer->taken = peer->sent - (size_t)queued;
    return true;
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
