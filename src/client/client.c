/*
 * client.c - see client.h: redirects, and the response as the caller gets it. One hop is in exchange.c.
 */
#include "client/client.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "client/exchange.h"
#include "client/metric.h"

static char *copy(const char *text)
{
    return text ? memory_text(text) : NULL;
}

ErrorCode client_new(const ClientOptions *options, Client **ret_client, Error *reterr)
{
    assert(options->redirects_max <= CLIENT_REDIRECTS_MAX && options->idle_max <= CLIENT_IDLE_MAX);
    TRY(hosts_check(options->allowed_hosts, reterr));
    Client *client                 = memory_new(1, sizeof *client);
    client->options                = *options;
    client->options.allowed_hosts  = copy(options->allowed_hosts);
    client->options.ca_file        = copy(options->ca_file);
    client->options.body_bytes_max = options->body_bytes_max ? options->body_bytes_max : CLIENT_BODY_BYTES;
    handles_init(&client->handles, options->idle_max ? options->idle_max : CLIENT_IDLE);
    *ret_client = client;
    return OK;
}

void client_free(Client *client)
{
    assert(atomic_load(&client->under_way) == 0);
    handles_done(&client->handles);
    free((void *)(uintptr_t)client->options.allowed_hosts);
    free((void *)(uintptr_t)client->options.ca_file);
    free(client);
}

void client_stop(Client *client)
{
    atomic_store(&client->stopping, true);
}

/* ---- the answer ---- */

/* "Name: value" lines become name, NUL, value, NUL, and an empty name at the end. Lines that are no header are left
 * out. */
static char *head_write(const char *lines, char *out)
{
    while (*lines) {
        size_t      end   = strcspn(lines, "\r\n");
        const char *colon = memchr(lines, ':', end);

        if (colon && colon > lines && lines[0] != ' ' && lines[0] != '\t' && strncmp(lines, "HTTP/", 5) != 0) {
            const char *value = colon + 1, *stop = lines + end;

            while (value < stop && (*value == ' ' || *value == '\t'))
                value++;
            while (stop > value && (stop[-1] == ' ' || stop[-1] == '\t'))
                stop--;
            out    = mempcpy(out, lines, (size_t)(colon - lines));
            *out++ = '\0';
            out    = mempcpy(out, value, (size_t)(stop - value));
            *out++ = '\0';
        }
        lines += end;
        lines += strspn(lines, "\r\n");
    }
    *out++ = '\0';
    return out;
}

static const char *head_copy(const Text *head, Arena *arena)
{
    char *bytes = arena_alloc(arena, head->length + 2);
    char *end   = head_write(text_string(head), bytes);

    for (char *at = bytes; at < end; at += strlen(at) + 1) {
        for (char *c = at; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                *c = '?';
        text_clean(at, strlen(at));
    }
    return bytes;
}

const char *client_header(const ClientResponse *response, const char *name)
{
    for (const char *at = response->head; *at;) {
        const char *value = at + strlen(at) + 1;

        if (strcasecmp(at, name) == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

static ErrorCode response_make(const Exchange *exchange, int redirects, Arena *arena, ClientResponse *ret_response,
                               Error *reterr)
{
    const char *host = exchange->target->host;

    if (!arena_has_space(arena, exchange->body.length + exchange->head.length + strlen(host) + 128))
        return fail(reterr, ERR_LIMIT, "the response does not fit into what is left of the caller's memory");
    *ret_response          = (ClientResponse){.status    = exchange->status,
                                              .redirects = redirects,
                                              .truncated = exchange->body_is_long,
                                              .host      = arena_text(arena, host),
                                              .body = arena_bytes(arena, text_string(&exchange->body), exchange->body.length),
                                              .body_size = exchange->body.length,
                                              .head      = head_copy(&exchange->head, arena)};
    ret_response->retry_ms = retry_after_ms(client_header(ret_response, "Retry-After"), clock_wall());
    if (exchange->status == 429)
        metric_add(&client_metrics.rate_limited, 1);
    return OK;
}

ErrorCode client_judge(const ClientResponse *response, Error *reterr)
{
    int       status = response->status;
    ErrorCode code   = status == 429 ? ERR_RATE : status >= 500 ? ERR_UNAVAILABLE : ERR_REFUSED;

    if (status >= 200 && status < 300)
        return OK;
    if (code == ERR_RATE)
        (void)fail(reterr, code, "the server asks for fewer requests (status 429)");
    else
        (void)fail(reterr, code, "the server responded with status %d", status);
    error_set_peer(reterr, "%s", response->host);
    if (reterr)
        reterr->retry_ms = response->retry_ms;
    return code;
}

/* ---- redirects ---- */

static bool status_redirects(int status, ClientMethod method)
{
    if (status == 307 || status == 308)
        return true;
    return (method == CLIENT_GET || method == CLIENT_HEAD) && (status == 301 || status == 302 || status == 303);
}

static ErrorCode target_check(const Client *client, const Target *target, Error *reterr)
{
    if (hosts_allow(client->options.allowed_hosts, target))
        return OK;
    return fail(reterr, ERR_DENIED, "\"%.100s\" is not one of the allowed hosts", target->host);
}

/* The target of a redirect; ret_target->url stays NULL when the response is none. */
static ErrorCode redirect_find(const Exchange *exchange, int redirects, Target *ret_target, Error *reterr)
{
    char location[CLIENT_URL_BYTES_MAX + 1];
    int  redirects_max = exchange->client->options.redirects_max;

    if (redirects_max == 0 || !status_redirects(exchange->status, exchange->request->method) ||
        !exchange_header(exchange, "Location", location, sizeof location))
        return OK;
    if (redirects == redirects_max)
        return fail(reterr, ERR_REFUSED, "the server redirects again after %d redirects", redirects);
    return target_redirect(exchange->target, location, ret_target, reterr);
}

/* One request and its response; ret_next->url stays NULL unless it redirects. Errors name the server as their peer. */
static ErrorCode send_hop(Exchange *exchange, int redirects, Target *ret_next, Error *reterr)
{
    const Target *target = exchange->target;
    ErrorCode     code   = target_check(exchange->client, target, reterr);

    if (code == OK)
        code = exchange_run(exchange, reterr);
    if (code == OK)
        code = redirect_find(exchange, redirects, ret_next, reterr);
    if (code != OK)
        error_set_peer(reterr, "%s port %d", target->host, target->port);
    return code;
}

static ErrorCode send_hops(Client *client, const ClientRequest *request, Arena *arena, ClientResponse *ret_response,
                           Error *reterr)
{
    scoped_target Target first = {0}, redirected = {0};

    TRY(target_parse(request->url, &first, reterr));
    for (int redirects = 0;; redirects++) {
        const Target            *target   = redirects ? &redirected : &first;
        scoped_target Target     next     = {0};
        scoped_exchange Exchange exchange = {.client       = client,
                                             .request      = request,
                                             .target       = target,
                                             .with_secrets = target_is_same_origin(target, &first)};

        TRY(send_hop(&exchange, redirects, &next, reterr));
        if (!next.url)
            return response_make(&exchange, redirects, arena, ret_response, reterr);
        target_done(&redirected);
        redirected = next;
        next.url   = NULL;
    }
}

ErrorCode client_check_url(const char *url, Error *reterr)
{
    scoped_target Target target = {0};

    return target_parse(url, &target, reterr);
}

ErrorCode client_send(Client *client, const ClientRequest *request, Arena *arena, ClientResponse *ret_response,
                      Error *reterr)
{
    atomic_fetch_add(&client->under_way, 1);
    ErrorCode code = send_hops(client, request, arena, ret_response, reterr);
    atomic_fetch_sub(&client->under_way, 1);
    return code;
}

/* ---- Retry-After ---- */

#define SECONDS_MAX       (CLIENT_RETRY_AFTER_MS_MAX / 1000)
#define SECOND_DIGITS_MAX 9

static int ms_of(int64_t seconds)
{
    if (seconds <= 0)
        return 0;
    return seconds < SECONDS_MAX ? (int)seconds * 1000 : CLIENT_RETRY_AFTER_MS_MAX;
}

static int ms_of_digits(const char *digits, size_t length)
{
    int64_t seconds = 0;

    if (length > SECOND_DIGITS_MAX)
        return CLIENT_RETRY_AFTER_MS_MAX;
    for (size_t i = 0; i < length; i++)
        seconds = seconds * 10 + (digits[i] - '0');
    return ms_of(seconds);
}

int retry_after_ms(const char *value, Wall now)
{
    if (!value)
        return 0;
    size_t digits = strspn(value, "0123456789");
    if (digits > 0 && value[digits] == '\0')
        return ms_of_digits(value, digits);
    time_t date = curl_getdate(value, NULL);
    return date < 0 ? 0 : ms_of((int64_t)date - now.us / 1000000);
}
