/*
 * action_http.c - a request to another server, with the step's key as its idempotency key.
 *
 *     2xx                       done; the body is the result if it is JSON
 *     408, 425, 429, 5xx        tried again, not sooner than Retry-After says
 *     any other status          failed for good
 *     not connected, no answer  tried again; with the key a server can tell that it acted already
 */
#include <string.h>

#include "base/reader.h"
#include "process/interpret_internal.h"

#define REQUEST_MS 30000
#define HOSTS_HINT "; PAWL_STEP_HOSTS lists the hosts that http steps may call"
#define EXCERPT    200 /* bytes of a body that are kept with an error */

static const struct {
    const char  *name;
    ClientMethod method;
} methods[] = {
    {"GET",    CLIENT_GET   },
    {"HEAD",   CLIENT_HEAD  },
    {"POST",   CLIENT_POST  },
    {"PUT",    CLIENT_PUT   },
    {"PATCH",  CLIENT_PATCH },
    {"DELETE", CLIENT_DELETE},
};

static ClientMethod method_find(const char *name)
{
    for (size_t i = 0; i < COUNT(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return methods[i].method;
    return CLIENT_POST;
}

/* The parts of a request: its URL, its body, then the values of its headers. */
enum { INPUT_URL, INPUT_BODY, INPUT_HEADERS };

static ErrorCode input_get(Attempt *attempt, const HttpAction *http, ClientRequest *request, AttemptResult *ret_result,
                           Error *reterr)
{
    int           count   = INPUT_HEADERS + http->header_count;
    InputPart    *parts   = arena_array(attempt->arena, InputPart, count);
    ClientHeader *headers = arena_array(attempt->arena, ClientHeader, http->header_count + 1);

    parts[INPUT_URL]  = (InputPart){.name = "url", .template = http->url, .is_url = true};
    parts[INPUT_BODY] = (InputPart){.name = "body", .template = http->body};
    for (int i = 0; i < http->header_count; i++)
        parts[INPUT_HEADERS + i] = (InputPart){.name = arena_print(attempt->arena, "header:%s", http->headers[i].name),
                                               .template = http->headers[i].value,
                                               .text     = ""};
    TRY(attempt_input(attempt, parts, count, ret_result, reterr));
    for (int i = 0; i < http->header_count; i++)
        headers[i] =
            (ClientHeader){.name = http->headers[i].name, .value = parts[INPUT_HEADERS + i].text, .secret = true};
    request->url       = parts[INPUT_URL].text;
    request->body      = parts[INPUT_BODY].text;
    request->body_size = request->body ? strlen(request->body) : 0;
    request->headers   = headers;
    return OK;
}

static bool status_may_pass(int status)
{
    return status == 408 || status == 425 || status == 429 || status >= 500;
}

static void response_judge(Attempt *attempt, const ClientResponse *response, AttemptResult *ret_result)
{
    if (response->status >= 200 && response->status < 300) {
        bool is_json = response->body_size > 0 && reader_check(response->body, response->body_size, NULL) == OK;

        *ret_result = (AttemptResult){.end = END_DONE, .result = is_json ? response->body : NULL};
        return;
    }
    size_t size = text_cut(response->body, response->body_size, EXCERPT);
    char  *body = arena_bytes(attempt->arena, response->body, size);

    text_clean(body, size);
    char after[40] = "";

    if (response->retry_ms > 0)
        snprintf(after, sizeof after, ", Retry-After %lld s", (long long)(response->retry_ms + 999) / 1000);
    *ret_result =
        (AttemptResult){.end      = status_may_pass(response->status) ? END_FAILED : END_FINAL,
                        .retry_ms = response->retry_ms,
                        .error    = arena_print(attempt->arena, "%s answered with status %d%s%s%s", response->host,
                                                response->status, after, size ? ": " : "", body)};
}

/* What the server, its name or its certificate did, against what is wrong with the request. */
static bool failure_may_pass(ErrorCode code)
{
    return code == ERR_UNAVAILABLE || code == ERR_TIMEOUT || code == ERR_UNKNOWN || code == ERR_BUSY;
}

ErrorCode attempt_http(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    const HttpAction *http    = &attempt->action->http;
    ClientRequest     request = {.method = method_find(http->method), .idempotency_key = attempt->key};
    ClientResponse    response;
    Error             error = {0};
    ErrorCode         code;

    TRY(input_get(attempt, http, &request, ret_result, reterr));
    if (ret_result->state == ATTEMPT_STOPPED)
        return OK;
    request.deadline = deadline_in_ms(attempt_limit_ms(attempt, REQUEST_MS));
    code             = client_send(attempt->walk->interpreter->client, &request, attempt->arena, &response, &error);
    if (code == OK) {
        response_judge(attempt, &response, ret_result);
        return OK;
    }
    if (code == ERR_STOPPING) {
        ret_result->state = ATTEMPT_STOPPED;
        return OK;
    }
    *ret_result = (AttemptResult){.end   = failure_may_pass(code) ? END_FAILED : END_FINAL,
                                  .error = code == ERR_DENIED ? arena_print(attempt->arena, "%s" HOSTS_HINT, error.text)
                                                              : arena_text(attempt->arena, error.text)};
    return OK;
}
