/*
 * client.h - HTTP requests to other servers: webhooks, and whatever else the program calls.
 * docs/adr/0016-http-client.md has the reasons for the defaults.
 *
 *     client_send(client, &(ClientRequest){.method = CLIENT_POST, .url = url, .body = json, .body_size = size,
 *                                          .idempotency_key = key, .deadline = deadline}, arena, &response, reterr)
 *
 * Invariants
 *   1. One deadline bounds a request: name resolution, connecting, TLS, redirects and the response together.
 *   2. A response is bounded: CLIENT_HEAD_BYTES_MAX of headers, body_bytes_max of body. Nothing is decompressed.
 *   3. A request without an idempotency key that is repeatable neither by its method nor by its flag (POST, PATCH) is
 * sent at most once. Any other may be sent a second time when the server has closed a reused connection.
 *   4. Only http and https. Redirects are followed up to redirects_max, never from https to http; each is checked as
 * the first URL is. Requests other than GET and HEAD follow 307 and 308 only. Another origin gets no credentials:
 * neither those of the URL nor headers that are secret.
 *   5. allowed_hosts is compared with what is connected to. refuse_private is checked on each address when its socket
 * is opened, so a name that resolves to another address later does not get around it.
 *   6. TLS certificates and names are verified. Proxies of the environment, .netrc, cookies, HSTS and Alt-Svc are not
 * used.
 *   7. No error names more of a URL than its host: userinfo, path and query may hold tokens.
 * Threads: every function may be called from any thread; a request blocks its caller. Idle connections are kept by
 * handles that one request uses at a time, at most idle_max of them. Ownership: client_free() closes the connections;
 * no request may be under way then. A response lives in the caller's arena.
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/clock.h"
#include "base/error.h"

#define CLIENT_HEAD_BYTES_MAX     ((size_t)64 << 10) /* all header lines of all answers to one request, trailers too */
#define CLIENT_BODY_BYTES         ((size_t)1 << 20)  /* unless body_bytes_max says otherwise */
#define CLIENT_URL_BYTES_MAX      8192
#define CLIENT_KEY_BYTES_MAX      255
#define CLIENT_IDLE               8
#define CLIENT_IDLE_MAX           64
#define CLIENT_REDIRECTS_MAX      10
#define CLIENT_RETRY_AFTER_MS_MAX 86400000 /* a longer Retry-After is cut to a day */

typedef struct Client Client;

/* Zero is the default in the comment. */
typedef struct {
    const char
        *allowed_hosts; /* every host; else a list: "hooks.example.com, *.example.org, 192.0.2.7:8443, [2001:db8::1]" */
    bool refuse_private; /* loopback, private, link-local and other addresses that are not public are connected to */
    int  redirects_max;  /* none is followed: a 3xx is an answer like any other */
    size_t      body_bytes_max; /* CLIENT_BODY_BYTES */
    int         idle_max;       /* CLIENT_IDLE connections are kept for reuse */
    const char *ca_file;        /* the system's certificates; else a PEM file that is trusted instead */
} ClientOptions;

typedef enum { CLIENT_GET, CLIENT_HEAD, CLIENT_POST, CLIENT_PUT, CLIENT_PATCH, CLIENT_DELETE } ClientMethod;

typedef struct {
    const char *name, *value;
    bool        secret; /* not sent to another origin; Authorization and Cookie always are */
} ClientHeader;

typedef struct {
    ClientMethod        method;
    const char         *url;     /* "https://host/path"; userinfo becomes Basic authentication */
    const ClientHeader *headers; /* ended by a NULL name; NULL: none */
    const char         *body;    /* NULL: none */
    size_t              body_size;
    const char         *type;    /* of the body; NULL: application/json */
    const char *idempotency_key; /* 1 to CLIENT_KEY_BYTES_MAX visible ASCII characters but " and \; NULL: none */
    bool        is_repeatable;   /* twice is as good as once, without a key; GET and its like always are */
    Deadline    deadline;
    bool        truncate; /* a body over the limit is cut off there instead of being ERR_LIMIT */
} ClientRequest;

typedef struct {
    int         status;
    int         retry_ms;  /* Retry-After, in seconds or as a date; 0: none, malformed or past */
    int         redirects; /* that were followed */
    bool        truncated;
    const char *host; /* that answered */
    const char *body; /* a NUL is put behind */
    size_t      body_size;
    const char *head; /* for client_header() */
} ClientResponse;

/* ERR_USAGE: allowed_hosts is malformed. */
must_check ErrorCode client_new(const ClientOptions *options, Client **ret_client, Error *reterr);
void                 client_free(Client *client);
SCOPED(Client, client_free)
/* Requests under way, and later ones, end with ERR_STOPPING within about a second. */
void client_stop(Client *client);

/* Could a request be sent to it? ERR_INVALID: no. Hosts that are not allowed are not looked at. */
must_check ErrorCode client_check_url(const char *url, Error *reterr);
/*
 * OK: the server answered, with whatever status. Nothing was sent: ERR_INVALID (malformed URL, header or key),
 * ERR_DENIED (host or address not allowed, redirect from https to http), ERR_UNAVAILABLE (not found, not connected),
 * ERR_REFUSED (certificate not trusted), ERR_TIMEOUT. ERR_UNKNOWN: it was sent, at least in part, but no whole answer
 * came in time: the server may have acted on it, and an idempotency key makes a repeat safe. ERR_LIMIT: the response is
 * too large, or the arena is full. ERR_REFUSED: too many redirects. ERR_STOPPING.
 */
must_check ErrorCode client_send(Client *client, const ClientRequest *request, Arena *arena,
                                 ClientResponse *ret_response, Error *reterr);
/* The first one of this name, any case. UTF-8, without control characters. NULL: absent. */
const char *client_header(const ClientResponse *response, const char *name);
/* OK: 2xx. ERR_RATE: 429. ERR_UNAVAILABLE: 5xx. ERR_REFUSED: any other. reterr->retry_ms is that of the response. */
must_check ErrorCode client_judge(const ClientResponse *response, Error *reterr);

/* ---- Retry-After ---- */

/* RFC 9110, 10.2.3: milliseconds from now, at most CLIENT_RETRY_AFTER_MS_MAX. 0: NULL, malformed or past. */
int retry_after_ms(const char *value, Wall now);

#endif
