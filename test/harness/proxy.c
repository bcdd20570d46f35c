/*
 * proxy.c - one thread, one poll() loop, two pipes per connection.
 *
 * Each turn: take the mutex, obey what was asked, list the descriptors, release the mutex, poll, take it again, move
 * bytes. Callers change fields under the mutex and wait for the next turn to begin; so only the thread touches sockets.
 *
 * The client's pipe is held back message by message: bytes become clear when the message they belong to was looked
 * at. A message larger than the buffer is judged by its beginning.
 */
#include "test/harness/proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/harness/conninfo.h"
#include "test/harness/pipe.h"
#include "test/harness/test.h"
#include "test/harness/wire.h"

#define CONNECTIONS_MAX 512
#define SQL_PART_SIZE   200

typedef enum { LINK_OPEN, LINK_SENDING, LINK_DONE } LinkState; /* SENDING: the trigger's request is on its way */

typedef struct {
    int       client, server; /* server -1: never connected */
    Pipe      up, down;       /* to the server, to the client */
    bool      in_session;
    bool      lost; /* met the black hole */
    LinkState state;
    bool      cut_when_sent;
    bool      request_ended; /* all of the trigger's request is clear: nothing after it goes through */
} Link;

typedef struct {
    bool        is_commit;
    char        sql_part[SQL_PART_SIZE];
    ProxyMoment moment;
    int         left; /* -1: no end */
} Trigger;

struct Proxy {
    struct sockaddr_storage upstream;
    socklen_t               upstream_size;
    struct sockaddr_in      address;
    char                    url[CONNINFO_SIZE];
    int                     keeper;   /* bound and never listening: keeps the port while `listener` is closed */
    int                     listener; /* -1: refusing */
    int                     kick;     /* eventfd: look at what was asked */
    pthread_t               thread;

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t  turned;
    uint64_t        turns;
    bool            stop;
    ProxyMode       mode;
    int             delay_ms;
    int             slice_bytes;
    bool            cut_all;
    int             cut_count; /* by the last cut_all */
    Trigger         trigger;
    ProxyCounts     counts;
    Link           *links[CONNECTIONS_MAX];
    int             link_count;
};

static void reset(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1, .l_linger = 0}, sizeof(struct linger));
    close(fd);
}

static void link_close(Proxy *proxy, Link *link, bool is_cut)
{
    if (is_cut)
        reset(link->client);
    else
        close(link->client);
    if (link->server >= 0)
        close(link->server);
    proxy->counts.cuts += is_cut;
    link->state = LINK_DONE;
}

static void links_sweep(Proxy *proxy)
{
    int kept = 0;

    for (int i = 0; i < proxy->link_count; i++) {
        if (proxy->links[i]->state == LINK_DONE)
            free(proxy->links[i]);
        else
            proxy->links[kept++] = proxy->links[i];
    }
    proxy->link_count  = kept;
    proxy->counts.open = kept;
}

static int upstream_connect(const Proxy *proxy)
{
    int fd = socket(proxy->upstream.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&proxy->upstream, proxy->upstream_size) != 0) {
        close(fd);
        return -1;
    }
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void link_accept(Proxy *proxy)
{
    int client = accept4(proxy->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (client < 0)
        return;
    proxy->counts.accepted++;
    int  server = proxy->mode == PROXY_BLACKHOLE ? -1 : upstream_connect(proxy);
    bool lost   = proxy->mode == PROXY_BLACKHOLE;
    if ((server < 0 && !lost) || proxy->link_count == CONNECTIONS_MAX) {
        reset(client);
        if (server >= 0)
            close(server);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (server >= 0 && proxy->upstream.ss_family == AF_INET)
        setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    Link *link = calloc(1, sizeof *link);
    if (!link)
        abort();
    link->client          = client;
    link->server          = server;
    link->lost            = lost;
    link->up.from         = client;
    link->up.to           = server;
    link->up.is_inspected = true;
    link->down.from       = server;
    link->down.to         = client;

    proxy->links[proxy->link_count++] = link;
    proxy->counts.open                = proxy->link_count;
}

static bool trigger_matches(const Trigger *trigger, const char *bytes, size_t size)
{
    size_t      length;
    const char *sql = trigger->left != 0 ? wire_sql(bytes, size, &length) : NULL;

    if (!sql)
        return false;
    return trigger->is_commit ? wire_is_commit(sql, length) : wire_contains(sql, length, trigger->sql_part);
}

/* Look at each whole message the client has sent. false: the wire was cut before one of them. */
static bool link_inspect(Proxy *proxy, Link *link)
{
    Pipe       *up = &link->up;
    WireMessage message;

    while (!link->request_ended && up->clear < up->used &&
           wire_head(up->bytes + up->clear, up->used - up->clear, link->in_session, &message)) {
        const char *start = up->bytes + up->clear;
        size_t      here  = up->used - up->clear;
        bool        whole = here >= message.size;

        if (!whole && (up->clear > 0 || up->used < PIPE_BYTES))
            break; /* the buffer has space for more of it */
        if (link->state == LINK_OPEN && trigger_matches(&proxy->trigger, start, whole ? message.size : here)) {
            proxy->trigger.left -= proxy->trigger.left > 0;
            if (proxy->trigger.moment == PROXY_CUT_BEFORE) {
                link_close(proxy, link, true);
                return false;
            }
            link->state         = LINK_SENDING;
            link->cut_when_sent = proxy->trigger.moment == PROXY_CUT_SENT;
        }
        link->in_session |= message.session;
        up->coming = whole ? 0 : message.size - here;
        up->clear += whole ? message.size : here;
        /* The server answers after a Query or a Sync. */
        link->request_ended = link->state == LINK_SENDING && (message.type == 'Q' || message.type == 'S');
    }
    return true;
}

/* The trigger's request is on its way: cut when it is sent, or swallow answers until the server is ready again. */
static void link_finish(Proxy *proxy, Link *link)
{
    Pipe       *down     = &link->down;
    bool        sent     = link->request_ended && link->up.clear == 0 && link->up.coming == 0;
    bool        answered = down->ended;
    WireMessage message;

    while (!answered && wire_head(down->bytes, down->used, true, &message) && down->used >= message.size) {
        answered = message.type == 'Z';
        pipe_drop(down, message.size);
    }
    down->clear = 0;
    if (answered || (sent && link->cut_when_sent))
        link_close(proxy, link, true);
}

/* Bytes that came, then bytes that go; link may be LINK_DONE afterwards. */
static void link_move(Proxy *proxy, Link *link, short client_events, short server_events)
{
    const short readable = POLLIN | POLLHUP | POLLERR;
    bool        good     = true;

    if (client_events & readable)
        good = pipe_read(&link->up, proxy->delay_ms);
    if (good && server_events & readable)
        good = pipe_read(&link->down, proxy->delay_ms);
    if (good && !link_inspect(proxy, link))
        return;
    if (good && pipe_is_due(&link->up))
        good = pipe_write(&link->up, proxy->slice_bytes);
    if (good && link->state == LINK_SENDING) {
        link_finish(proxy, link);
        return;
    }
    if (good && pipe_is_due(&link->down))
        good = pipe_write(&link->down, proxy->slice_bytes);
    pipe_pass_end(&link->up);
    pipe_pass_end(&link->down);
    if (!good || (link->up.closed && link->down.closed))
        link_close(proxy, link, false);
}

/* Read and forget; the sender never notices. */
static void link_swallow(Proxy *proxy, Link *link, short client_events, short server_events)
{
    char bytes[4096];

    if (client_events && read(link->client, bytes, sizeof bytes) == 0) {
        link_close(proxy, link, false);
        return;
    }
    if (server_events && read(link->server, bytes, sizeof bytes) == 0) {
        close(link->server); /* the client does not learn of it */
        link->server = -1;
    }
}

static int listener_open(struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    /* Two sockets may be bound to one port if both say so and neither listens yet. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (fd < 0 || bind(fd, (struct sockaddr *)address, sizeof *address) != 0) {
        perror("proxy cannot bind");
        abort();
    }
    return fd;
}

/* Obey what was asked since the last turn. */
static void proxy_obey(Proxy *proxy)
{
    if (proxy->mode == PROXY_REFUSE && proxy->listener >= 0) {
        close(proxy->listener);
        proxy->listener = -1;
    } else if (proxy->mode != PROXY_REFUSE && proxy->listener < 0) {
        proxy->listener = listener_open(&proxy->address);
        if (listen(proxy->listener, CONNECTIONS_MAX) != 0)
            abort();
    }
    if (proxy->cut_all)
        proxy->cut_count = proxy->link_count;
    for (int i = 0; i < proxy->link_count; i++) {
        proxy->links[i]->lost |= proxy->mode == PROXY_BLACKHOLE;
        if (proxy->cut_all)
            link_close(proxy, proxy->links[i], true);
    }
    proxy->cut_all = false;
    links_sweep(proxy);
}

static short events_of(const Pipe *in, const Pipe *out)
{
    short events = 0;

    if (in->used < PIPE_BYTES && !in->ended)
        events |= POLLIN;
    if (pipe_is_due(out))
        events |= POLLOUT;
    return events;
}

/* The descriptors to poll: kick, listener, then client and server of each link. Returns how long to sleep at most. */
static int proxy_list(const Proxy *proxy, struct pollfd *polled)
{
    int64_t now     = pipe_now_ms();
    int64_t wait_ms = -1;

    polled[0] = (struct pollfd){proxy->kick, POLLIN, 0};
    polled[1] = (struct pollfd){proxy->listener, POLLIN, 0};
    for (int i = 0; i < proxy->link_count; i++) {
        const Link   *link   = proxy->links[i];
        struct pollfd client = {link->client, events_of(&link->up, &link->down), 0};
        struct pollfd server = {link->server, events_of(&link->down, &link->up), 0};

        if (link->lost)
            client.events = server.events = POLLIN;
        else if (proxy->mode == PROXY_STALL)
            client.fd = server.fd = -1;
        /* A side that has said all would report its hang-up for ever. */
        if (!client.events)
            client.fd = -1;
        if (!server.events)
            server.fd = -1;
        polled[2 + 2 * i] = client;
        polled[3 + 2 * i] = server;
        for (int k = 0; k < 2 && !link->lost && proxy->mode != PROXY_STALL; k++) {
            const Pipe *pipe = k ? &link->down : &link->up;

            if (pipe->clear && pipe->due_ms > now && (wait_ms < 0 || pipe->due_ms - now < wait_ms))
                wait_ms = pipe->due_ms - now;
        }
    }
    return (int)wait_ms;
}

static void proxy_move(Proxy *proxy, const struct pollfd *polled)
{
    int count = proxy->link_count; /* new ones have not been polled */

    if (polled[1].revents)
        link_accept(proxy);
    for (int i = 0; i < count; i++) {
        Link *link   = proxy->links[i];
        short client = polled[2 + 2 * i].revents;
        short server = polled[3 + 2 * i].revents;

        if (link->lost)
            link_swallow(proxy, link, client, server);
        else if (proxy->mode != PROXY_STALL)
            link_move(proxy, link, client, server);
    }
    links_sweep(proxy);
}

static void *proxy_run(void *context)
{
    Proxy         *proxy  = context;
    struct pollfd *polled = calloc(2 + 2 * CONNECTIONS_MAX, sizeof *polled);

    if (!polled)
        abort();
    pthread_mutex_lock(&proxy->mutex);
    while (!proxy->stop) {
        proxy_obey(proxy);
        int    wait_ms = proxy_list(proxy, polled);
        nfds_t count   = 2 + 2 * (nfds_t)proxy->link_count;
        proxy->turns++;
        pthread_cond_broadcast(&proxy->turned);
        pthread_mutex_unlock(&proxy->mutex);

        poll(polled, count, wait_ms);
        if (polled[0].revents && read(proxy->kick, &(uint64_t){0}, sizeof(uint64_t)) < 0)
            abort();

        pthread_mutex_lock(&proxy->mutex);
        proxy_move(proxy, polled);
    }
    pthread_mutex_unlock(&proxy->mutex);
    free(polled);
    return NULL;
}

static void upstream_parse(Proxy *proxy, const char *url)
{
    char host[CONNINFO_SIZE], port[CONNINFO_SIZE];

    conninfo_get(url, "host", host);
    conninfo_get(url, "port", port);
    if (host[0] == '/') {
        struct sockaddr_un *address = (struct sockaddr_un *)&proxy->upstream;
        int                 length =
            snprintf(address->sun_path, sizeof address->sun_path, "%s/.s.PGSQL.%s", host, port[0] ? port : "5432");

        assert_true(length > 0 && (size_t)length < sizeof address->sun_path);
        address->sun_family  = AF_UNIX;
        proxy->upstream_size = sizeof *address;
    } else {
        struct sockaddr_in *address = (struct sockaddr_in *)&proxy->upstream;

        address->sin_family = AF_INET;
        address->sin_port   = htons((uint16_t)strtoul(port[0] ? port : "5432", NULL, 10));
        if (inet_pton(AF_INET, !host[0] || !strcmp(host, "localhost") ? "127.0.0.1" : host, &address->sin_addr) != 1)
            fail_msg("\"%s\" is neither a socket folder nor an IPv4 address", host);
        proxy->upstream_size = sizeof *address;
    }
}

Proxy *proxy_new(const char *upstream)
{
    Proxy    *proxy = calloc(1, sizeof *proxy);
    socklen_t size  = sizeof proxy->address;
    sigset_t  all, before;
    char      port[16];

    assert_non_null(proxy);
    upstream_parse(proxy, upstream);
    proxy->address  = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    proxy->keeper   = listener_open(&proxy->address);
    proxy->listener = -1;
    proxy->kick     = eventfd(0, EFD_CLOEXEC);
    assert_return_code(getsockname(proxy->keeper, (struct sockaddr *)&proxy->address, &size), 0);
    snprintf(port, sizeof port, "%d", proxy_port(proxy));
    conninfo_change(upstream, proxy->url, "host", "127.0.0.1", "port", port, NULL);
    pthread_mutex_init(&proxy->mutex, NULL);
    pthread_cond_init(&proxy->turned, NULL);

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    assert_int_equal(0, pthread_create(&proxy->thread, NULL, proxy_run, proxy));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    proxy_set_mode(proxy, PROXY_PASS);
    return proxy;
}

static void kick(Proxy *proxy)
{
    if (write(proxy->kick, &(uint64_t){1}, sizeof(uint64_t)) < 0)
        abort();
}

/* With the mutex held: wait until the thread has begun the turn that sees the change. */
static void turn_await(Proxy *proxy)
{
    uint64_t before = proxy->turns;

    kick(proxy);
    while (proxy->turns == before)
        pthread_cond_wait(&proxy->turned, &proxy->mutex);
}

void proxy_free(Proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->stop = true;
    kick(proxy);
    pthread_mutex_unlock(&proxy->mutex);
    pthread_join(proxy->thread, NULL);
    for (int i = 0; i < proxy->link_count; i++)
        link_close(proxy, proxy->links[i], false);
    links_sweep(proxy);
    if (proxy->listener >= 0)
        close(proxy->listener);
    close(proxy->keeper);
    close(proxy->kick);
    pthread_cond_destroy(&proxy->turned);
    pthread_mutex_destroy(&proxy->mutex);
    free(proxy);
}

int proxy_port(const Proxy *proxy)
{
    return ntohs(proxy->address.sin_port);
}

const char *proxy_url(const Proxy *proxy)
{
    return proxy->url;
}

void proxy_set_mode(Proxy *proxy, ProxyMode mode)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->mode = mode;
    turn_await(proxy);
    pthread_mutex_unlock(&proxy->mutex);
}

void proxy_set_delay(Proxy *proxy, int delay_ms)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->delay_ms = delay_ms;
    turn_await(proxy);
    pthread_mutex_unlock(&proxy->mutex);
}

void proxy_set_slice(Proxy *proxy, int slice_bytes)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->slice_bytes = slice_bytes;
    turn_await(proxy);
    pthread_mutex_unlock(&proxy->mutex);
}

int proxy_cut_now(Proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->cut_all = true;
    turn_await(proxy);
    int count = proxy->cut_count;
    pthread_mutex_unlock(&proxy->mutex);
    return count;
}

static void trigger_set(Proxy *proxy, const Trigger *trigger)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->trigger = *trigger;
    turn_await(proxy);
    pthread_mutex_unlock(&proxy->mutex);
}

void proxy_cut_commit(Proxy *proxy, ProxyMoment moment, int count)
{
    trigger_set(proxy, &(Trigger){.is_commit = true, .moment = moment, .left = count});
}

void proxy_cut_on(Proxy *proxy, const char *sql_part, ProxyMoment moment, int count)
{
    Trigger trigger = {.moment = moment, .left = count};

    snprintf(trigger.sql_part, sizeof trigger.sql_part, "%s", sql_part);
    trigger_set(proxy, &trigger);
}

ProxyCounts proxy_counts(Proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    ProxyCounts counts = proxy->counts;
    pthread_mutex_unlock(&proxy->mutex);
    return counts;
}
