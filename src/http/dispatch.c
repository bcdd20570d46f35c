/*
 * dispatch.c - the steps from a request's bytes to its response.
 *
 * What can be refused by the head alone is refused before the body is read, so an unauthenticated client cannot make the server hold
 * megabytes. A token that the cache does not know is checked on an executor; the body stays in the socket until then.
 */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/problem.h"
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

/* try_cache: on a network thread, which must not wait; what the cache does not know is asked again on an executor, and
 * is not authentic until then. */
static ErrorCode authenticate(const Server *server, Request *request, bool try_cache, Error *reterr)
{
    const char *token   = bearer_token(request);
    Scope       granted = SCOPE_NONE;

    if (!token || !server->options.auth)
        return fail(reterr, ERR_NO_TOKEN, "this needs the header \"Authorization: Bearer TOKEN\"");
    ErrorCode code = server->options.auth(server->options.app, token, try_cache, request->deadline, &granted,
                                          request->principal, reterr);
    if (try_cache && code == ERR_BUSY)
        return OK;
    TRY(code);
    TRY(check_scope(server, request, granted, reterr));
    request->scopes    = granted;
    request->authentic = true;
    return OK;
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

static ErrorCode check_frame(const Server *server, const Request *request, Error *reterr)
{
    const Head *head = &request->head;
    const char *type = head_header(head, "Content-Type");

    if (head->content_length <= 0 && !head->chunked)
        return OK;
    if (head->content_length > server->options.body_bytes_max)
        return fail(reterr, ERR_LIMIT, "the body is larger than %d bytes", server->options.body_bytes_max);
    if (head->content_length > 0 && !route_reads_body(request->match.route))
        return fail(reterr, ERR_INVALID, "this path takes no body");
    if (type && !is_json(type) && !is_unsaid(type))
        return fail(reterr, ERR_MEDIA, "the content type must be \"application/json\" in UTF-8");
    return OK;
}

ErrorCode dispatch_head(Server *server, Request *request, Error *reterr)
{
    const ServerOptions *options = &server->options;

    request->began    = clock_mono();
    request->deadline = (Deadline){mono_plus_ms(request->began, options->deadline_ms)};
    TRY(request_read_target(request, reterr));
    TRY(route_find(&options->routes, request->method, &request->path, &request->match, reterr));
    const Route *route = request->match.route;
    if (route->deadline_ms > 0)
        request->deadline.at = mono_plus_ms(request->began, route->deadline_ms);
    request->authentic = route->scope == SCOPE_NONE;
    if (!request->authentic)
        TRY(authenticate(server, request, /* try_cache= */ true, reterr));
    TRY(request_check_query(request, reterr));
    return check_frame(server, request, reterr);
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

static ErrorCode run_token(Server *server, Request *request, Error *reterr)
{
    TRY(check_deadline(request, reterr));
    return authenticate(server, request, /* try_cache= */ false, reterr);
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
    assert(request->authentic);
    TRY(check_deadline(request, reterr));
    TRY(request->match.route->handler(server->options.app, request, &request->response, reterr));
    return request->suspend.on_resume ? OK : check_size(request, reterr);
}

static ErrorCode run_end(Server *server, Request *request, Error *reterr)
{
    TRY(request->suspend.on_resume(server->options.app, request, &request->response, reterr));
    return check_size(request, reterr);
}

/* Run what may fail; the response is filled if it does. */
static void dispatch(Server *server, Request *request, ErrorCode (*run)(Server *, Request *, Error *))
{
    Error error = {0};

    log_set_request(request->id);
    ErrorCode code = run(server, request, &error);
    if (code != OK && error.code != code)
        fail(&error, code, "%s", error_text(code)); /* it gave no words */
    if (code != OK)
        dispatch_fail(request, &error);
    log_set_request(NULL);
}

void dispatch_token(Server *server, Request *request)
{
    dispatch(server, request, run_token);
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
    dispatch(server, request, run_end);
    atomic_fetch_sub(&request->peer->loop->suspended, 1);
}

void dispatch_resumed(Server *server, Request *request)
{
    dispatch(server, request, run_end);
}

/* Details that the response does not have. An outage fails thousands of requests in the same way, so at most one line a second is written. */
static void confidential_log(const Request *request, const Error *error)
{
    static _Atomic int64_t last_s, skipped;
    int64_t                now_s = clock_mono().ns / 1000000000, last = atomic_load(&last_s);

    if (error->code != ERR_INTERNAL && (last == now_s || !atomic_compare_exchange_strong(&last_s, &last, now_s))) {
        atomic_fetch_add(&skipped, 1);
        return;
    }
    log_set_request(request->id);
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
