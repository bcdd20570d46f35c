/*
 * proxy.h - a bad network between a client and PostgreSQL, on request.
 *
 *     scoped(proxy_free) Proxy *proxy = proxy_new(database_url(db));
 *     proxy_cut_commit(proxy, PROXY_CUT_ANSWERED, 1);
 *     ... use proxy_url(proxy) ...
 *
 * It listens on 127.0.0.1 and speaks to the server by TCP or unix socket. It follows the protocol far enough to see one
 * statement go by, so it can cut the wire exactly around a commit. A cut resets the client's side and closes the
 * server's after what was already forwarded, so the server gets that for certain.
 *
 * Invariants
 *   1. A change has taken effect when the call that asked for it returns.
 *   2. The proxy uses real time and threads, whatever World is installed.
 * Threads: any; one thread of its own does the work.
 */
#ifndef HARNESS_PROXY_H
#define HARNESS_PROXY_H

#include "base/attr.h"

typedef struct Proxy Proxy;

typedef enum {
    PROXY_PASS,
    PROXY_REFUSE,    /* new connections are refused; open ones continue */
    PROXY_STALL,     /* nothing moves, new connections hang; PASS goes on where it stopped */
    PROXY_BLACKHOLE, /* what is sent disappears; a connection that met it never hears from the other side again */
} ProxyMode;

typedef enum {
    PROXY_CUT_BEFORE,   /* the statement never reaches the server */
    PROXY_CUT_SENT,     /* the server gets it; the connection is cut before the response */
    PROXY_CUT_ANSWERED, /* the server has answered; the client never hears it */
} ProxyMoment;

typedef struct {
    int accepted; /* connections */
    int open;
    int cuts; /* connections cut, by a trigger or proxy_cut_now() */
} ProxyCounts;

/* upstream: URL or conninfo of the server. Fails the test when it cannot listen. */
Proxy *proxy_new(const char *upstream);
void   proxy_free(Proxy *proxy);
SCOPED(Proxy, proxy_free)

int proxy_port(const Proxy *proxy);
/* upstream with this proxy's host and port; borrowed from the proxy. */
const char *proxy_url(const Proxy *proxy);

void proxy_set_mode(Proxy *proxy, ProxyMode mode);
/* Each piece is forwarded this much later, in both directions; 0: at once. */
void proxy_set_delay(Proxy *proxy, int delay_ms);
/* Forward at most this many bytes at a time, a millisecond apart; 0: as they come. */
void proxy_set_slice(Proxy *proxy, int slice_bytes);

/* Reset every open connection. Returns how many. */
int proxy_cut_now(Proxy *proxy);
/* Cut the next `count` connections that send "commit" (-1: all). Replaces the trigger set before; 0 disarms. */
void proxy_cut_commit(Proxy *proxy, ProxyMoment moment, int count);
/* The same for a statement whose text contains sql_part, in any case; copied. Simple queries and Parse messages are
 * seen; so a prepared statement is cut when it is prepared. */
void proxy_cut_on(Proxy *proxy, const char *sql_part, ProxyMoment moment, int count);

ProxyCounts proxy_counts(Proxy *proxy);

#endif
