/*
 * loop.c - one network thread: waits for sockets, keeps the time limits, takes connections that others hand over.
 *
 * The first loop accepts for all and deals the connections out in turn, so that the load is even.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/world.h"
#include "http/server_internal.h"

#define EVENTS_MAX      64
#define ACCEPTS_MAX     64  /* per turn, so that open connections are served in between */
#define REFUSED_MAX     128 /* connections over the limit that get a 503; more are closed without one */
#define LINGER_MS       2000
#define ACCEPT_AGAIN_MS 100
#define SPARE_MAX       64 /* requests kept for later; more are freed */

static void loop_watch(Loop *loop, int fd, void *mark)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = mark};

    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        abort();
}

void loop_forget(Loop *loop, int fd)
{
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static bool loop_accepts(const Loop *loop)
{
    return loop == loop->server->loops && loop->server->listen_fd >= 0;
}

static void deal_out(Server *server, int fd)
{
    int   open = atomic_load(&server->open), max = server->options.connections_max;
    Loop *loop = &server->loops[server->loop_next];

    if (open >= max + REFUSED_MAX) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    server->loop_next = (server->loop_next + 1) % server->loop_count;
    loop_post(loop, peer_new(loop, fd, open >= max));
}

/* Out of descriptors: a level-triggered listener would spin, so it is disabled for a moment. */
static void accept_pause(Loop *loop)
{
    if (!loop->accept_failed)
        log_write(LOG_WARN, "http", "cannot accept connections", LOG_STR("reason", strerror(errno)));
    loop->accept_failed = true;
    loop_forget(loop, loop->server->listen_fd);
    loop->accept_again = mono_plus_ms(loop->now, ACCEPT_AGAIN_MS);
}

/* false: no connection is left to accept, or none can be accepted. */
static bool accept_some(Loop *loop)
{
    Server *server = loop->server;

    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(server->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            deal_out(server, fd);
            continue;
        }
        if (errno == ECONNABORTED || errno == EINTR)
            continue;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            accept_pause(loop);
        else
            loop->accept_failed = false; /* all were accepted */
        return false;
    }
    return true;
}

static void accept_resume(Loop *loop)
{
    if (loop->accept_again.ns == 0 || mono_before(loop->now, loop->accept_again))
        return;
    loop->accept_again.ns = 0;
    if (loop_accepts(loop))
        loop_watch(loop, loop->server->listen_fd, loop);
}

/* Connections in the backlog arrived in time and are accepted; then the listener is closed. */
static void accept_last(Loop *loop)
{
    while (accept_some(loop))
        ;
    loop_forget(loop, loop->server->listen_fd);
    close(loop->server->listen_fd);
    loop->server->listen_fd = -1;
}

static void loop_drain(Loop *loop)
{
    if (loop->draining || atomic_load(&loop->server->phase) == SERVER_RUNNING)
        return;
    if (loop_accepts(loop))
        accept_last(loop);
    loop->draining = true;
    for (Peer *peer = TAILQ_FIRST(&loop->lists[LIST_MOVING].peers), *next; peer; peer = next) {
        next = TAILQ_NEXT(peer, link);
        peer_drain(peer);
    }
    atomic_fetch_add(&loop->server->drained, 1);
    server_quiet(loop->server);
}

static void take_inbox(Loop *loop)
{
    PeerQueue taken = TAILQ_HEAD_INITIALIZER(taken);

    mutex_lock(&loop->mutex);
    TAILQ_CONCAT(&taken, &loop->inbox, posted);
    mutex_unlock(&loop->mutex);
    for (Peer *peer; (peer = TAILQ_FIRST(&taken)) != NULL;) {
        TAILQ_REMOVE(&taken, peer, posted);
        if (peer->state == PEER_HEAD)
            peer_begin(peer);
        else
            peer_resume(peer);
    }
}

static void expire(Loop *loop)
{
    for (int i = 0; i < LIST_COUNT; i++) {
        PeerList *list = &loop->lists[i];

        for (Peer *peer; list->ms_max > 0 && (peer = TAILQ_FIRST(&list->peers)) != NULL;) {
            if (mono_before(loop->now, mono_plus_ms(peer->since, list->ms_max)))
                break;
            peer_expire(peer);
        }
    }
}

/* Milliseconds until the next limit; -1: none. */
static int next_timeout(const Loop *loop)
{
    Deadline next = deadline_never();

    for (int i = 0; i < LIST_COUNT; i++) {
        const Peer *first = TAILQ_FIRST(&loop->lists[i].peers);

        if (first && loop->lists[i].ms_max > 0)
            next = deadline_sooner(next, (Deadline){mono_plus_ms(first->since, loop->lists[i].ms_max)});
    }
    if (loop->accept_again.ns != 0)
        next = deadline_sooner(next, (Deadline){loop->accept_again});
    return next.at.ns == deadline_never().at.ns ? -1 : deadline_left_ms(next);
}

/* Names of days and months must not follow the locale, so strftime() cannot be used. */
static void loop_update_time(Loop *loop)
{
    static const char days[7][4]    = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t            now_s         = (time_t)(clock_wall().us / 1000000);
    struct tm         utc;

    loop->now = clock_mono();
    if (now_s == loop->date_s)
        return;
    loop->date_s = now_s;
    gmtime_r(&now_s, &utc);
    snprintf(loop->date, sizeof loop->date, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[utc.tm_wday], utc.tm_mday,
             months[utc.tm_mon], (utc.tm_year + 1900) % 10000, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

static void wake_clear(Loop *loop)
{
    uint64_t count;

    if (read(loop->wake_fd, &count, sizeof count) < 0 && errno != EAGAIN)
        abort();
}

static void loop_handle(Loop *loop, const struct epoll_event *event)
{
    if (event->data.ptr == &loop->wake_fd) {
        wake_clear(loop);
    } else if (event->data.ptr == loop) {
        if (loop_accepts(loop))
            accept_some(loop);
    } else {
        peer_event(event->data.ptr, event->events);
    }
}

static void *loop_body(void *context)
{
    Loop              *loop = context;
    struct epoll_event events[EVENTS_MAX];

    while (atomic_load(&loop->server->phase) != SERVER_STOPPING) {
        int count = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, next_timeout(loop));

        loop_update_time(loop);
        for (int i = 0; i < count; i++)
            loop_handle(loop, &events[i]);
        take_inbox(loop);
        loop_drain(loop);
        expire(loop);
        accept_resume(loop);
    }
    return NULL;
}

void loop_start(Loop *loop, Server *server)
{
    static const int limits[LIST_COUNT] = {[LIST_LINGERING] = LINGER_MS};

    loop->server   = server;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd  = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll_fd < 0 || loop->wake_fd < 0)
        abort();
    for (int i = 0; i < LIST_COUNT; i++) {
        TAILQ_INIT(&loop->lists[i].peers);
        loop->lists[i].ms_max = limits[i];
    }
    loop->lists[LIST_MOVING].ms_max = server->options.read_ms_max;
    loop->id_next                   = 1;
    /* Version 8, a scheme of one's own: 58 random bits for each start of a loop, then a count. */
    snprintf(loop->id_head, sizeof loop->id_head, "%08x-%04x-8%03x-8%03x-", world_random(), world_random() & 0xffff,
             world_random() & 0xfff, world_random() & 0xfff);
    mutex_init(&loop->mutex);
    TAILQ_INIT(&loop->inbox);
    loop_update_time(loop);
    loop_watch(loop, loop->wake_fd, &loop->wake_fd);
    if (loop_accepts(loop))
        loop_watch(loop, server->listen_fd, loop);
    loop->thread = thread_start("http-network", loop_body, loop);
}

void loop_wake(Loop *loop)
{
    if (write(loop->wake_fd, &(uint64_t){1}, sizeof(uint64_t)) < 0 && errno != EAGAIN)
        abort();
}

void loop_post(Loop *loop, Peer *peer)
{
    mutex_lock(&loop->mutex);
    if (TAILQ_EMPTY(&loop->inbox))
        loop_wake(loop); /* under the mutex: the thread that takes the last suspended one may free the loop */
    TAILQ_INSERT_TAIL(&loop->inbox, peer, posted);
    mutex_unlock(&loop->mutex);
}

void loop_move(Peer *peer, PeerListName list)
{
    PeerList *lists = peer->loop->lists;

    peer->since = peer->loop->now;
    if (peer->list == list && !TAILQ_NEXT(peer, link))
        return;
    TAILQ_REMOVE(&lists[peer->list].peers, peer, link);
    TAILQ_INSERT_TAIL(&lists[list].peers, peer, link);
    peer->list = list;
}

bool loop_evict(Loop *loop, const Peer *but)
{
    Peer *peer;

    TAILQ_FOREACH (peer, &loop->lists[LIST_MOVING].peers, link)
        if (peer != but && peer->state == PEER_HEAD && !peer->known) {
            peer_close(peer);
            return true;
        }
    return false;
}

Request *loop_request(Loop *loop)
{
    Request *request = loop->spare;

    if (!request)
        return request_new((size_t)loop->server->options.body_bytes_max);
    loop->spare = request->next;
    loop->spare_count--;
    return request;
}

void loop_request_end(Loop *loop, Request *request)
{
    if (loop->spare_count == SPARE_MAX) {
        request_free(request);
        return;
    }
    request_begin(request);
    request->next = loop->spare;
    loop->spare   = request;
    loop->spare_count++;
}

/* The party that is to resume a request still holds it. */
static void await_suspended(Loop *loop)
{
    struct pollfd woken = {.fd = loop->wake_fd, .events = POLLIN};

    for (take_inbox(loop); atomic_load(&loop->suspended) > 0; take_inbox(loop)) {
        poll(&woken, 1, -1);
        wake_clear(loop);
    }
}

void loop_end(Loop *loop)
{
    thread_join(loop->thread);
    await_suspended(loop);
    for (int i = 0; i < LIST_COUNT; i++)
        for (Peer *peer; (peer = TAILQ_FIRST(&loop->lists[i].peers)) != NULL;)
            peer_close(peer);
    for (Request *request; (request = loop->spare) != NULL;) {
        loop->spare = request->next;
        request_free(request);
    }
    close(loop->wake_fd);
    close(loop->epoll_fd);
    mutex_done(&loop->mutex);
}
