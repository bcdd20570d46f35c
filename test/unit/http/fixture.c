/*
 * fixture.c - the test routes. Handlers run on other threads, so they do not assert.
 */
#include "test/unit/http/fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/asset.h"
#include "http/suspend.h"
#include "test/unit/http/raw.h"

static ErrorCode handle_live(void *app, Request *request, Response *response, Error *reterr)
{
    (void)app, (void)request, (void)reterr;
    text_append(&response->body, "{\"live\":true}");
    return OK;
}

static ErrorCode handle_echo(void *app, Request *request, Response *response, Error *reterr)
{
    int64_t limit = 0;

    (void)app;
    TRY(request_query_i64(request, "limit", 1, 100, 7, &limit, reterr));
    text_print(&response->body, "name=%s limit=%" PRId64 " by=%s", request_capture(request, "name"), limit,
               request_principal(request));
    response->type = "text/plain";
    return OK;
}

static ErrorCode handle_literal(void *app, Request *request, Response *response, Error *reterr)
{
    (void)app, (void)request, (void)reterr;
    text_append(&response->body, "literal");
    return OK;
}

static ErrorCode handle_json(void *app, Request *request, Response *response, Error *reterr)
{
    Fixture    *fixture = app;
    size_t      size;
    const char *body = request_body(request, &size);

    (void)reterr;
    atomic_fetch_add(&fixture->written, 1);
    response->status = 201;
    response_header(response, "Pawl-Size", arena_print(request_arena(request), "%zu", size));
    text_append_bytes(&response->body, body, size);
    return OK;
}

static ErrorCode handle_size(void *app, Request *request, Response *response, Error *reterr)
{
    size_t size;

    (void)app, (void)reterr;
    (void)request_body(request, &size);
    text_print(&response->body, "%zu", size);
    return OK;
}

static ErrorCode handle_wait(void *app, Request *request, Response *response, Error *reterr)
{
    Fixture *fixture = app;

    (void)request, (void)reterr;
    atomic_fetch_add(&fixture->waiting, 1);
    mutex_lock(&fixture->mutex);
    while (!fixture->open)
        cond_wait(&fixture->opened, &fixture->mutex, deadline_in_ms(RAW_WAIT_MS));
    mutex_unlock(&fixture->mutex);
    text_append(&response->body, "{\"waited\":true}");
    return OK;
}

static ErrorCode end_rest(void *app, Request *request, Response *response, Error *reterr)
{
    Fixture    *fixture = app;
    size_t      size;
    const char *body = request_body(request, &size);

    atomic_fetch_add(&fixture->ended, 1);
    if (strcmp(body, "\"fail\"") == 0)
        return fail(reterr, ERR_CONFLICT, "it had to fail");
    text_print(&response->body, "{\"%s\":%zu}", (const char *)request_state(request), size);
    return OK;
}

static ErrorCode handle_rest(void *app, Request *request, Response *response, Error *reterr)
{
    Fixture *fixture = app;

    (void)response, (void)reterr;
    request_suspend(request, &(Suspend){.on_resume = end_rest}, arena_text(request_arena(request), "rested"));
    mutex_lock(&fixture->mutex);
    bool open = fixture->open;
    if (!open)
        fixture->resting[fixture->resting_count++] = request;
    mutex_unlock(&fixture->mutex);
    if (open)
        request_resume(request);
    else
        atomic_fetch_add(&fixture->waiting, 1);
    return OK;
}

static ErrorCode handle_rest_wait(void *app, Request *request, Response *response, Error *reterr)
{
    (void)app, (void)response, (void)reterr;
    request_suspend(request, &(Suspend){.on_resume = handle_wait, .may_wait = true}, NULL);
    request_resume(request);
    return OK;
}

static ErrorCode handle_rest_freed(void *app, Request *request, Response *response, Error *reterr)
{
    request_body_free(request);
    return handle_rest(app, request, response, reterr);
}

static void watch_gone(void *state)
{
    atomic_fetch_add(&((Fixture *)state)->gone, 1);
}

static void watch_sent(void *state, bool delivered)
{
    Fixture *fixture = state;

    atomic_fetch_add(delivered ? &fixture->delivered : &fixture->undelivered, 1);
}

static void large_append(Response *response)
{
    char *bytes = malloc(LARGE_BYTES);

    memset(bytes, 'x', LARGE_BYTES);
    text_append_bytes(&response->body, bytes, LARGE_BYTES);
    free(bytes);
}

static ErrorCode end_watch(void *app, Request *request, Response *response, Error *reterr)
{
    Fixture *fixture = app;
    size_t   size;

    (void)reterr;
    atomic_fetch_add(&fixture->ended, 1);
    text_append(&response->body, "{}");
    if (strcmp(request_body(request, &size), "\"large\"") == 0)
        large_append(response);
    return OK;
}

static ErrorCode handle_watch(void *app, Request *request, Response *response, Error *reterr)
{
    Fixture *fixture = app;

    (void)response, (void)reterr;
    request_suspend(request, &(Suspend){.on_resume = end_watch, .on_closed = watch_gone, .on_sent = watch_sent},
                    fixture);
    mutex_lock(&fixture->mutex);
    fixture->resting[fixture->resting_count++] = request;
    mutex_unlock(&fixture->mutex);
    atomic_fetch_add(&fixture->waiting, 1);
    return OK;
}

static ErrorCode handle_internal(void *app, Request *request, Response *response, Error *reterr)
{
    (void)app, (void)request;
    text_append(&response->body, "half an answer");
    return fail(reterr, ERR_INTERNAL, "the word is swordfish");
}

static ErrorCode handle_wordless(void *app, Request *request, Response *response, Error *reterr)
{
    (void)app, (void)request, (void)response, (void)reterr;
    return ERR_CONFLICT;
}

static ErrorCode handle_large(void *app, Request *request, Response *response, Error *reterr)
{
    (void)app, (void)request, (void)reterr;
    large_append(response);
    return OK;
}

static ErrorCode handle_id(void *app, Request *request, Response *response, Error *reterr)
{
    (void)app, (void)reterr;
    text_append(&response->body, request_id(request));
    return OK;
}

static char  large_bytes[LARGE_BYTES];
static Asset asset_rows[] = {
    {"app.js",
     "text/javascript", "public, max-age=60",
     {ASSET_PLAIN, sizeof ASSET_PLAIN - 1},
     {ASSET_GZIP, sizeof ASSET_GZIP - 1}},
    {"a.css", "text/css", NULL, {"p{}", 3}},
    {"large.bin", "application/octet-stream", NULL, {large_bytes, sizeof large_bytes}},
    {"empty", "text/plain", NULL, {"", 0}},
};
static AssetTable assets = {asset_rows, COUNT(asset_rows)};

static ErrorCode handle_assets(void *app, Request *request, Response *response, Error *reterr)
{
    (void)app;
    return assets_answer(&assets, request_capture(request, "path"), request, response, reterr);
}

static ErrorCode check_word(void *app, Request *request, Error *reterr)
{
    const char *word = request_header(request, "X-Word");

    (void)app;
    return word && strcmp(word, "swordfish") == 0 ? OK : fail(reterr, ERR_NO_TOKEN, "the word is missing");
}

static const RouteParameter echo_parameters[] = {
    {"limit", "how many"},
    {0}
};
enum { SCOPE_READ = 1, SCOPE_WALLET = 2 };
static const char *const scope_names[] = {"read", "wallet", "admin", NULL};

static const Route routes[] = {
    {HTTP_GET, "/live", handle_live, .is_inline = true},
    {HTTP_GET, "/id", handle_id, .is_inline = true},
    {HTTP_GET, "/echo/{name}", handle_echo, .parameters = echo_parameters},
    {HTTP_GET, "/echo/literal", handle_literal},
    {HTTP_DELETE, "/echo/{name}", handle_live},
    {HTTP_POST, "/json", handle_json, .body_any = true},
    {HTTP_POST, "/word", handle_json, .body_any = true, .body_bytes_max = 10, .on_head = check_word},
    {HTTP_POST, "/wait", handle_wait, .body_any = true},
    {HTTP_POST, "/rest", handle_rest, .is_inline = true, .body_any = true},
    {HTTP_POST, "/rest-wait", handle_rest_wait, .is_inline = true, .body_any = true},
    {HTTP_POST, "/watch", handle_watch, .is_inline = true, .body_any = true},
    {HTTP_POST, "/hurry", handle_wait, .deadline_ms = 50},
    {HTTP_GET, "/secret/{name}", handle_echo, SCOPE_WALLET, .parameters = echo_parameters},
    {HTTP_GET, "/secret-at-once/{name}", handle_echo, SCOPE_WALLET, .is_inline = true},
    {HTTP_POST, "/secret-json", handle_json, SCOPE_WALLET, .body_any = true},
    {HTTP_POST, "/secret-rest", handle_rest, SCOPE_WALLET, .is_inline = true, .body_any = true},
    {HTTP_POST, "/secret-rest-freed", handle_rest_freed, SCOPE_WALLET, .is_inline = true, .body_any = true},
    {HTTP_POST, "/secret-size", handle_size, SCOPE_WALLET, .body_any = true},
    {HTTP_GET, "/internal", handle_internal},
    {HTTP_GET, "/wordless", handle_wordless},
    {HTTP_GET, "/large", handle_large},
    {HTTP_GET, "/secret-large", handle_large, SCOPE_WALLET},
    {HTTP_GET, "/assets/{path}", handle_assets, .is_inline = true},
};

/* "cached" is in the cache, "fresh" only in the database, where "stranger" is unknown; "weak" lacks the scope. The lookup of
 * "late" waits for the gate, and that of "much" is refused. */
static bool token_is(const TokenCheck *check, const char *name)
{
    return strcmp(check->token, name) == 0;
}

static void token_answer(TokenCheck *check)
{
    if (token_is(check, "much")) {
        fail(&check->error, ERR_BUSY, "too many are asked about");
    } else if (strncmp(check->token, "cached", 6) != 0 && !token_is(check, "fresh") && !token_is(check, "weak") &&
               !token_is(check, "late")) {
        fail(&check->error, ERR_NO_TOKEN, "no such token");
    } else {
        check->scopes = token_is(check, "weak") ? SCOPE_READ : SCOPE_WALLET;
        snprintf(check->name, sizeof check->name, "%s-key", check->token);
    }
}

static bool token_get(void *app, TokenCheck *check)
{
    (void)app;
    if (token_is(check, "fresh") || token_is(check, "stranger") || token_is(check, "late") || token_is(check, "much"))
        return false;
    token_answer(check);
    return true;
}

static void token_submit(void *app, TokenCheck *check)
{
    Fixture *fixture = app;
    bool     waits   = false;

    token_answer(check);
    mutex_lock(&fixture->mutex);
    if (token_is(check, "late") && !fixture->open) {
        fixture->asked[fixture->asked_count++] = check;
        atomic_fetch_add(&fixture->asking, 1);
        waits = true;
    }
    mutex_unlock(&fixture->mutex);
    if (!waits)
        check->on_done(check->context);
}

void fixture_init(Fixture *fixture, ServerOptions options)
{
    Error error = {0};

    *fixture = (Fixture){0};
    assets_prepare(&assets);
    mutex_init(&fixture->mutex);
    cond_init(&fixture->opened);
    options.listen      = "127.0.0.1:0";
    options.routes      = (RouteTable){routes, COUNT(routes), scope_names};
    options.app         = fixture;
    options.auth        = token_get;
    options.auth_submit = token_submit;
    if (server_new(&options, &fixture->server, &error) != OK) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    fixture->port = server_port(fixture->server);
}

void fixture_open_gate(Fixture *fixture)
{
    mutex_lock(&fixture->mutex);
    fixture->open = true;
    cond_broadcast(&fixture->opened);
    for (; fixture->resting_count > 0; fixture->resting_count--)
        request_resume(fixture->resting[fixture->resting_count - 1]);
    for (; fixture->asked_count > 0; fixture->asked_count--)
        fixture->asked[fixture->asked_count - 1]->on_done(fixture->asked[fixture->asked_count - 1]->context);
    mutex_unlock(&fixture->mutex);
}

void fixture_done(Fixture *fixture)
{
    fixture_open_gate(fixture);
    if (fixture->server)
        server_free(fixture->server);
    cond_done(&fixture->opened);
    mutex_done(&fixture->mutex);
}

bool fixture_wait_for(atomic_int *value, int wanted)
{
    for (Deadline deadline = deadline_in_ms(RAW_WAIT_MS); !deadline_passed(deadline); clock_sleep_ms(1))
        if (atomic_load(value) == wanted)
            return true;
    return false;
}

bool fixture_wait_waiting(Fixture *fixture, int wanted)
{
    return fixture_wait_for(&fixture->waiting, wanted);
}

bool fixture_wait_in_flight(Fixture *fixture, int wanted)
{
    for (Deadline deadline = deadline_in_ms(RAW_WAIT_MS); !deadline_passed(deadline); clock_sleep_ms(1))
        if (server_in_flight(fixture->server) == wanted)
            return true;
    return false;
}
