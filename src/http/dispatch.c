/*
 * dispatch.c - the steps from a request's bytes to its response.
 *
 * What can be refused by the head alone is refused before the body is read, so an unauthenticated client cannot make
 * the server hold megabytes. A token that the cache does not know is looked up first; the body stays in the socket
 * until then.
 */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/problem.h"
#include "http/metric.h"
#include "http/server_internal.h"

/* The token of "Authorization: Bearer TOKEN"; NULL: there is none that could be one. */
static const char *bearer_token(const Request *request)
{
    static const char scheme[] = "Bearer ";
    static const char marks[]  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/=";
    const char       *value    = head_header(&request->head, "Authorization");

    if (!value || strncasecmp(value, scheme, sizeof scheme - 1) != 0)
        return NULL;
    value += sizeof scheme - 1;
    return *value != '\0' && value[strspn(value, marks)] == '\0' ? value : NULL;
}

static ErrorCode check_scope(const Server *server, const Request *request, Scope granted, Error *reterr)
{
    Scope wanted = request->match.route->scope;
    char  names[SCOPE_TEXT_SIZE];

    if (granted & wanted)
        return OK;
    scope_print(server->options.routes.scope_names, wanted, names);
    return fail(reterr, ERR_DENIED, "the token must have the scope %s", names);
}

static ErrorCode token_accept(const Server *server, Request *request, Error *reterr)
{
    const TokenCheck *check = &request->check;

    TRY(error_pass(check->error.code, &check->error, reterr));
    TRY(check_scope(server, request, check->scopes, reterr));
    request->authentic = true;
    return OK;
}

static void token_asked(void *context)
{
    const Request *request = context;

    loop_post(request->peer->loop, request->peer);
}

/* What the cache does not know is not authentic until it was looked up. */
static ErrorCode authenticate(const Server *server, Request *request, Error *reterr)
{
    const char *token = bearer_token(request);

    if (!token || !server->options.auth)
        return fail(reterr, ERR_NO_TOKEN, "this needs the header \"Authorization: Bearer TOKEN\"");
    request->check = (TokenCheck){.token    = token,
                                  .deadline = request->deadline,
                                  .arena    = request->arena,
                                  .on_done  = token_asked,
                                  .context  = request};
    return server->options.auth(server->options.app, &request->check) ? token_accept(server, request, reterr) : OK;
}

static bool word_is(const char *word, size_t length, const char *wanted)
{
    return strlen(wanted) == length && strncasecmp(word, wanted, length) == 0;
}

/* "application/json", then any number of ";", each with "charset=utf-8" or nothing: RFC 9110, 5.6.6. */
static bool is_json(const char *type)
{
    size_t length = strcspn(type, "; \t");

    if (!word_is(type, length, "application/json"))
        return false;
    for (type += length;; type += length) {
        type += strspn(type, " \t");
        if (*type != ';')
            return *type == '\0';
        type += 1 + strspn(type + 1, " \t");
        length = strcspn(type, "; \t");
        if (length > 0 && !word_is(type, length, "charset=utf-8") && !word_is(type, length, "charset=\"utf-8\""))
            return false;
    }
}

/* The default type of curl -d and others. The body is read as JSON, and refused if it is none. */
static bool is_unsaid(const char *type)
{
    return strcasecmp(type, "application/x-www-form-urlencoded") == 0;
}

static bool route_reads_body(const Route *route)
{
    return route->body || route->body_any;
}

static int body_limit(const Server *server, const Route *route)
{
    int most = server->options.body_bytes_max;

    return route->body_bytes_max > 0 && route->body_bytes_max < most ? route->body_bytes_max : most;
}

static ErrorCode check_frame(Request *request, int body_bytes_max, Error *reterr)
{
    const Head *head = &request->head;
    const char *type = head_header(head, "Content-Type");

    request->body.length_max = (size_t)body_bytes_max; /* of a chunked body */
    if (head->content_length <= 0 && !head->chunked)
        return OK;
    if (head->content_length > body_bytes_max)
        return fail(reterr, ERR_LIMIT, "the body is larger than %d bytes", body_bytes_max);
    if (head->content_length > 0 && !route_reads_body(request->match.route))
        return fail(reterr, ERR_INVALID, "this path takes no body");
    if (type && !is_json(type) && !is_unsaid(type))
        return fail(reterr, ERR_MEDIA, "the content type must be \"application/json\" in UTF-8");
    return OK;
}

static bool is_inline(const Request *request)
{
    const Route *route = request->match.route;

    return route->is_inline || (route->inline_with && request_query(request, route->inline_with));
}

bool dispatch_runs_inline(const Request *request)
{
    return is_inline(request) && !(request->match.route->touch_waits && request->check.bound);
}

ErrorCode dispatch_head(Server *server, Request *request, Error *reterr)
{
    const ServerOptions *options = &server->options;

    request->began    = clock_mono();
    request->deadline = (Deadline){mono_plus_ms(request->began, options->deadline_ms)};
    TRY(request_read_target(request, reterr));
    TRY(route_find(&options->routes, request->method, &request->path, &request->match, reterr));
    const Route *route = request->match.route;
    if (route->deadline_ms > 0 && (!route->inline_with || is_inline(request)))
        request->deadline.at = mono_plus_ms(request->began, route->deadline_ms);
    request->authentic = route->scope == SCOPE_NONE;
    if (!request->authentic)
        TRY(authenticate(server, request, reterr));
    if (route->on_head)
        TRY(route->on_head(options->app, request, reterr));
    TRY(request_check_query(request, reterr));
    return check_frame(request, body_limit(server, route), reterr);
}

ErrorCode dispatch_body(const Request *request, Error *reterr)
{
    if (request->body.length > 0 && !route_reads_body(request->match.route))
        return fail(reterr, ERR_INVALID, "this path takes no body");
    return OK;
}

static ErrorCode check_deadline(const Request *request, Error *reterr)
{
    if (deadline_passed(request->deadline))
        return fail(reterr, ERR_TIMEOUT, "the request waited for its turn until its deadline");
    return OK;
}

static ErrorCode check_size(const Request *request, Error *reterr)
{
    if (text_is_full(&request->response.body))
        return fail(reterr, ERR_INTERNAL, "the answer of \"%s\" is larger than %zu bytes", request->match.route->path,
                    request->response.body.length_max);
    return OK;
}

static ErrorCode run_handler(Server *server, Request *request, Error *reterr)
{
    RouteHandler *handler =
        request->check.bound && server->options.bound ? server->options.bound : request->match.route->handler;

    assert(request->authentic);
    TRY(check_deadline(request, reterr));
    TRY(handler(server->options.app, request, &request->response, reterr));
    return request->suspend.on_resume ? OK : check_size(request, reterr);
}

static ErrorCode dispatch_run_end(Server *server, Request *request, Error *reterr)
{
    TRY(request->suspend.on_resume(server->options.app, request, &request->response, reterr));
    return check_size(request, reterr);
}

/* Run what may fail; the response is filled if it does. */
static void dispatch(Server *server, Request *request, ErrorCode (*run)(Server *, Request *, Error *))
{
    Error error = {0};

    log_set_request_of(request->id, request->check.name);
    request->mark  = arena_mark(request->arena);
    ErrorCode code = run(server, request, &error);
    if (code != OK && error.code != code)
        fail(&error, code, "%s", error_text(code)); /* it gave no words */
    if (code != OK)
        dispatch_fail(request, &error);
    log_set_request(NULL);
}

void dispatch_token(Server *server, Request *request)
{
    server->options.auth_submit(server->options.app, &request->check);
}

ErrorCode dispatch_asked(const Server *server, Request *request, Error *reterr)
{
    if (request->check.error.code == ERR_BUSY)
        metric_add(&http_metrics.shed, 1);
    return token_accept(server, request, reterr);
}

bool dispatch_run(Server *server, Request *request)
{
    atomic_store(&request->holders, 1);
    dispatch(server, request, run_handler);
    return request_let_go(request);
}

void dispatch_end(Server *server, Request *request)
{
    if (!request->suspend.on_resume || request->resumed)
        return;
    atomic_store(&request->watched, false);
    dispatch(server, request, dispatch_run_end);
    atomic_fetch_sub(&request->peer->loop->suspended, 1);
}

void dispatch_resumed(Server *server, Request *request)
{
    dispatch(server, request, dispatch_run_end);
}

/* Details that the response does not have. An outage fails thousands of requests in the same way, so at most one line a
 * second is written. */
static void confidential_log(const Request *request, const Error *error)
{
    static _Atomic int64_t last_s, skipped;
    int64_t                now_s = clock_mono().ns / 1000000000, last = atomic_load(&last_s);

    if (error->code != ERR_INTERNAL && (last == now_s || !atomic_compare_exchange_strong(&last_s, &last, now_s))) {
        atomic_fetch_add(&skipped, 1);
        return;
    }
    log_set_request_of(request->id, request->check.name);
    if (error->code == ERR_INTERNAL)
        log_error(LOG_ERROR, "http", "a request failed", error);
    else
        log_write(LOG_WARN, "http", "a request failed",
                  LOG_STR("path", request->match.route ? request->match.route->path : ""),
                  LOG_STR("error", error->text), LOG_STR("code", error_name(error->code)),
                  LOG_STR("sqlstate", error->sqlstate), LOG_INT("not_logged", atomic_exchange(&skipped, 0)));
    log_set_request(NULL);
}

void dispatch_fail(Request *request, const Error *error)
{
    if (problem_is_confidential(error))
        confidential_log(request, error);
    response_problem(&request->response, error, request->id);
    if (error->code == ERR_METHOD) {
        char *allow = arena_alloc(request->arena, ROUTE_ALLOW_SIZE);

        route_allow(request->match.methods, allow);
        response_header(&request->response, "Allow", allow);
    }
}
