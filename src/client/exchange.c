/*
 * exchange.c - see exchange.h. Callbacks give libcurl their shapes; each gets the Exchange.
 */
#include "client/exchange.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/fault.h"
#include "client/target.h"

#define SET(option, value)                                                            \
    do {                                                                              \
        if (curl_easy_setopt(exchange->curl, (option), (value)) != CURLE_OK)          \
            abort(); /* the options are ours and exist: only memory can be missing */ \
    } while (0)

typedef struct curl_slist HeaderList;

static void header_list_done(HeaderList **list)
{
    curl_slist_free_all(*list);
}
#define scoped_headers __attribute__((cleanup(header_list_done)))

/* ---- callbacks ---- */

static bool is_status_line(const char *line, size_t size)
{
    return size > 5 && memcmp(line, "HTTP/", 5) == 0;
}

static size_t on_header(char *line, size_t one, size_t size, void *context)
{
    Exchange *exchange = context;

    exchange->head_bytes += one * size;
    if (exchange->head_bytes > CLIENT_HEAD_BYTES_MAX) {
        exchange->head_is_long = true;
        return 0;
    }
    if (exchange->head_done && is_status_line(line, size)) { /* the one before was a 1xx */
        text_clear(&exchange->head);
        exchange->head_done = false;
    }
    if (size <= 2 && (line[0] == '\r' || line[0] == '\n'))
        exchange->head_done = true;
    else if (!exchange->head_done)
        text_append_bytes(&exchange->head, line, size);
    return one * size;
}

static size_t on_body(char *bytes, size_t one, size_t size, void *context)
{
    Exchange *exchange = context;
    size_t    space    = exchange->body.length_max - exchange->body.length;

    assert(one == 1);
    text_append_bytes(&exchange->body, bytes, size < space ? size : space);
    exchange->body_is_long = size > space;
    return exchange->body_is_long ? 0 : size;
}

static int on_progress(void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
    const Exchange *exchange = context;

    (void)down_total, (void)down, (void)up_total, (void)up;
    return atomic_load(&exchange->client->stopping);
}

/* A child that is about to exec must not inherit the socket, so it is made here even where every address is allowed. */
static curl_socket_t on_open(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    Exchange *exchange = context;

    (void)purpose;
    if (exchange->client->options.refuse_private && address_is_private(&address->addr)) {
        exchange->met_private = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* ---- the request ---- */

static bool method_is_idempotent(ClientMethod method)
{
    return method != CLIENT_POST && method != CLIENT_PATCH;
}

static bool is_visible(const char *text)
{
    while (*text > ' ' && *text < 0x7f)
        text++;
    return *text == '\0';
}

static bool header_is_secret(const ClientHeader *header)
{
    return header->secret || strcasecmp(header->name, "Authorization") == 0 || strcasecmp(header->name, "Cookie") == 0;
}

static void headers_append(HeaderList **list, const char *line)
{
    HeaderList *longer = curl_slist_append(*list, line);

    if (!longer)
        abort();
    *list = longer;
}

static ErrorCode headers_add(HeaderList **list, const char *name, const char *value, Error *reterr)
{
    scoped_text Text line = {0};

    if (!*name || !is_visible(name) || strchr(name, ':'))
        return fail(reterr, ERR_INVALID, "the name of a header must be visible ASCII without a colon");
    for (const char *c = value; *c; c++)
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
            return fail(reterr, ERR_INVALID, "header \"%.64s\" must not have control characters", name);
    text_init(&line, NULL, strlen(name) + strlen(value) + 2);
    text_append(&line, name);
    text_append(&line, *value ? ": " : ";"); /* libcurl's way to send an empty one */
    text_append(&line, value);
    headers_append(list, text_string(&line));
    return OK;
}

static ErrorCode headers_add_key(HeaderList **list, const char *key, Error *reterr)
{
    char value[CLIENT_KEY_BYTES_MAX + 3];

    if (!*key || strlen(key) > CLIENT_KEY_BYTES_MAX || !is_visible(key) || strpbrk(key, "\"\\"))
        return fail(reterr, ERR_INVALID,
                    "an idempotency key must be 1 to %d visible ASCII characters without quotes and backslashes",
                    CLIENT_KEY_BYTES_MAX);
    snprintf(value, sizeof value, "\"%s\"", key);
    return headers_add(list, "Idempotency-Key", value, reterr);
}

static ErrorCode headers_make(const Exchange *exchange, HeaderList **list, Error *reterr)
{
    const ClientRequest *request = exchange->request;

    for (const ClientHeader *header = request->headers; header && header->name; header++)
        if (exchange->with_secrets || !header_is_secret(header))
            TRY(headers_add(list, header->name, header->value, reterr));
    if (request->body)
        TRY(headers_add(list, "Content-Type", request->type ? request->type : "application/json", reterr));
    if (request->idempotency_key)
        TRY(headers_add_key(list, request->idempotency_key, reterr));
    headers_append(list, "Expect:"); /* not sent: a server that does not know it would cost a second */
    return OK;
}

static void set_method(Exchange *exchange)
{
    static const char *const names[] = {[CLIENT_GET] = "GET", [CLIENT_HEAD] = "HEAD",   [CLIENT_POST] = "POST",
                                        [CLIENT_PUT] = "PUT", [CLIENT_PATCH] = "PATCH", [CLIENT_DELETE] = "DELETE"};
    const ClientRequest     *request = exchange->request;

    if (request->body) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_size);
        SET(CURLOPT_POSTFIELDS, request->body);
    } else if (request->method == CLIENT_POST || request->method == CLIENT_PUT || request->method == CLIENT_PATCH) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
        SET(CURLOPT_POSTFIELDS, ""); /* Content-Length: 0, which some servers insist on */
    }
    if (request->method == CLIENT_HEAD)
        SET(CURLOPT_NOBODY, 1L);
    SET(CURLOPT_CUSTOMREQUEST, names[request->method]);
}

static void set_limits(Exchange *exchange)
{
    const ClientRequest *request = exchange->request;

    SET(CURLOPT_TIMEOUT_MS, (long)deadline_left_ms(request->deadline) + 1); /* 0 would mean for ever */
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* else a name server that does not answer would hold us beyond the deadline */
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, exchange);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, exchange);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, exchange);
}

static void set_connection(Exchange *exchange)
{
    const ClientRequest *request = exchange->request;

    SET(CURLOPT_CURLU, exchange->target->url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, ""); /* also none of the environment */
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (exchange->client->options.ca_file)
        SET(CURLOPT_CAINFO, exchange->client->options.ca_file);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_open);
    SET(CURLOPT_OPENSOCKETDATA, exchange);
    SET(CURLOPT_MAXCONNECTS, 1L);
    SET(CURLOPT_USERAGENT, "pawl/" PAWL_VERSION);
    /* libcurl repeats a request whose reused connection turns out to be closed, whatever its method. */
    if (!method_is_idempotent(request->method) && !request->idempotency_key && !request->is_repeatable)
        SET(CURLOPT_FRESH_CONNECT, 1L);
}

/* ---- the answer ---- */

static bool was_sent(const Exchange *exchange)
{
    long bytes = 0;

    return curl_easy_getinfo(exchange->curl, CURLINFO_REQUEST_SIZE, &bytes) == CURLE_OK && bytes > 0;
}

static ErrorCode fail_connect(const Exchange *exchange, Error *reterr)
{
    long errnum = 0;

    if (exchange->met_private)
        return fail(reterr, ERR_DENIED, "the server has a private address, and only public ones are allowed");
    (void)curl_easy_getinfo(exchange->curl, CURLINFO_OS_ERRNO, &errnum);
    return fail(reterr, ERR_UNAVAILABLE, "the server cannot be connected to: %s",
                errnum ? strerror((int)errnum) : curl_easy_strerror(CURLE_COULDNT_CONNECT));
}

/* Our own limits first: libcurl only knows that a callback said no. */
static ErrorCode fail_own(const Exchange *exchange, CURLcode code, Error *reterr)
{
    if (exchange->head_is_long)
        return fail(reterr, ERR_LIMIT, "the response has more than %zu bytes of headers", CLIENT_HEAD_BYTES_MAX);
    if (exchange->body_is_long)
        return fail(reterr, ERR_LIMIT, "the response has a body of more than %zu bytes", exchange->body.length_max);
    if (code == CURLE_ABORTED_BY_CALLBACK)
        return fail(reterr, ERR_STOPPING, "the request was abandoned: the process is shutting down");
    return OK;
}

/* libcurl's own messages may repeat what a server said, so its codes are put into words here. */
static ErrorCode exchange_fail(const Exchange *exchange, CURLcode code, Error *reterr)
{
    bool sent = was_sent(exchange);

    TRY(fail_own(exchange, code, reterr));
    switch ((int)code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return fail(reterr, ERR_UNAVAILABLE, "the host was not found");
    case CURLE_COULDNT_CONNECT:
        return fail_connect(exchange, reterr);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
        return fail(reterr, ERR_REFUSED, "the server's certificate is not trusted, or is for another name");
    case CURLE_SSL_CACERT_BADFILE:
        return fail(reterr, ERR_REFUSED,
                    "the file of trusted certificates cannot be read; the system's is in the package ca-certificates");
    case CURLE_SSL_CONNECT_ERROR:
        return fail(reterr, ERR_UNAVAILABLE, "the server did not agree on a TLS connection");
    case CURLE_OPERATION_TIMEDOUT:
        return sent ? fail(reterr, ERR_UNKNOWN, "the server did not respond in time")
                    : fail(reterr, ERR_TIMEOUT, "the server was not reached in time");
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
        return fail(reterr, sent ? ERR_UNKNOWN : ERR_UNAVAILABLE, "the server sent no complete response");
    default:
        return fail(reterr, sent ? ERR_UNKNOWN : ERR_UNAVAILABLE, "the request failed: %s", curl_easy_strerror(code));
    }
}

static ErrorCode exchange_perform(Exchange *exchange, Error *reterr)
{
    long     status = 0;
    CURLcode code;

    if (FAULT("client.send"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at client.send");
    code                = curl_easy_perform(exchange->curl);
    bool cut_on_purpose = code == CURLE_WRITE_ERROR && exchange->body_is_long && exchange->request->truncate;
    if (code != CURLE_OK && !cut_on_purpose)
        return exchange_fail(exchange, code, reterr);
    if (FAULT("client.answer"))
        return fail(reterr, ERR_UNKNOWN, "fault at client.answer");
    (void)curl_easy_getinfo(exchange->curl, CURLINFO_RESPONSE_CODE, &status);
    exchange->status = (int)status;
    return OK;
}

ErrorCode exchange_run(Exchange *exchange, Error *reterr)
{
    Client                    *client  = exchange->client;
    scoped_headers HeaderList *headers = NULL;

    text_init(&exchange->head, NULL, CLIENT_HEAD_BYTES_MAX);
    text_init(&exchange->body, NULL, client->options.body_bytes_max);
    TRY(headers_make(exchange, &headers, reterr));
    if (atomic_load(&client->stopping))
        return fail(reterr, ERR_STOPPING, "no request is sent any more: the process is shutting down");
    if (deadline_passed(exchange->request->deadline))
        return fail(reterr, ERR_TIMEOUT, "the server was not reached in time");
    exchange->curl = handle_take(&client->handles, exchange->target);
    set_connection(exchange);
    set_limits(exchange);
    set_method(exchange);
    SET(CURLOPT_HTTPHEADER, headers);
    ErrorCode code = exchange_perform(exchange, reterr);
    handle_give(&client->handles, take(exchange->curl), exchange->target);
    return code;
}

void exchange_done(Exchange *exchange)
{
    text_done(&exchange->head);
    text_done(&exchange->body);
}

bool exchange_header(const Exchange *exchange, const char *name, char *ret_value, size_t size)
{
    size_t length = strlen(name);

    for (const char *line = text_string(&exchange->head); *line;) {
        size_t end = strcspn(line, "\r\n");

        if (end > length && strncasecmp(line, name, length) == 0 && line[length] == ':') {
            const char *value = line + length + 1 + strspn(line + length + 1, " \t");

            size_t bytes = (size_t)(line + end - value);
            if (value > line + end || bytes >= size)
                return false;
            memcpy(ret_value, value, bytes);
            ret_value[bytes] = '\0';
            return true;
        }
        line += end;
        line += strspn(line, "\r\n");
    }
    return false;
}
