/*
 * remote.c - see remote.h.
 */
#include "cli/remote.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/problem.h"
#include "base/writer.h"

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~", c));
}

static void escape(Text *text, const char *bytes)
{
    for (; *bytes; bytes++)
        if (is_unreserved(*bytes))
            text_append_char(text, *bytes);
        else
            text_print(text, "%%%02X", (unsigned char)*bytes);
}

static const char *url_make(const RemoteRequest *request, const char *base, Arena *arena)
{
    const char *const *name    = request->names;
    const char        *between = "?";
    size_t             length  = strlen(base);
    Text               url;

    text_init(&url, arena, CLIENT_URL_BYTES_MAX);
    text_append_bytes(&url, base, length > 0 && base[length - 1] == '/' ? length - 1 : length);
    for (const char *at = request->path; *at; at++)
        if (at[0] == '{' && at[1] == '}') {
            escape(&url, *name++);
            at++;
        } else {
            text_append_char(&url, *at);
        }
    for (const RemoteParameter *row = request->query; row && row->name; row++) {
        if (!row->value)
            continue;
        text_print(&url, "%s%s=", between, row->name);
        escape(&url, row->value);
        between = "&";
    }
    return text_is_full(&url) ? NULL : text_string(&url);
}

/* The error that the module of the daemon has given. */
static ErrorCode problem_read(const ClientResponse *response, Value body, Arena *arena, Error *reterr)
{
    const char *type   = value_text(value_field(body, "type"), arena),
               *detail = value_text(value_field(body, "detail"), arena);
    Problem problem;

    if (!type || strncmp(type, "/problems/", strlen("/problems/")) != 0 ||
        !problem_find(type + strlen("/problems/"), &problem))
        return fail(reterr, ERR_USAGE,
                    "PAWL_URL must be that of pawl serve: %s answered %d without a problem document of it",
                    response->host, response->status);
    fail(reterr, problem.code, "%s", detail ? detail : problem.meaning);
    error_set_sqlstate(reterr, problem.sqlstate);
    if (reterr)
        reterr->retry_ms = response->retry_ms;
    return problem.code;
}

static ErrorCode response_read(const ClientResponse *response, Arena *arena, RemoteReply *ret_reply, Error *reterr)
{
    bool        is_json  = scan_check(response->body, response->body_size, "response", NULL) == OK;
    Value       body     = is_json ? value_trim(response->body, response->body_size) : (Value){0};
    const char *replayed = client_header(response, "Idempotency-Replayed");

    *ret_reply = (RemoteReply){body, *response, replayed && strcmp(replayed, "true") == 0};
    return response->status >= 200 && response->status <= 299 ? OK : problem_read(response, body, arena, reterr);
}

static ErrorCode request_send(Client *client, const Call *call, const RemoteRequest *request, const char *url,
                              Arena *arena, ClientResponse *ret_response, Error *reterr)
{
    const char        *token     = call->app->settings.token;
    const ClientHeader headers[] = {
        {"Authorization", arena_print(arena, "Bearer %s", token ? token : ""), .secret = true},
        {NULL, NULL}
    };
    ErrorCode code;

    code = client_send(client,
                       &(ClientRequest){.method          = request->method,
                                        .url             = url,
                                        .headers         = token ? headers : NULL,
                                        .body            = request->body,
                                        .body_size       = request->body ? strlen(request->body) : 0,
                                        .idempotency_key = request->key,
                                        .deadline        = deadline_in_ms(APP_COMMAND_MS + request->wait_ms)},
                       arena, ret_response, reterr);
    if (code == ERR_UNAVAILABLE)
        error_prefix(reterr, "cannot reach the daemon at %s",
                     strchr(call->app->settings.url, '@') ? "PAWL_URL" : call->app->settings.url); /* no password */
    return code;
}

ErrorCode remote_send(Call *call, const RemoteRequest *request, Arena *arena, RemoteReply *ret_reply, Error *reterr)
{
    scoped(client_free) Client *client   = NULL;
    ClientResponse              response = {0};
    const char                 *url;

    assert(call->app->settings.url);
    url = url_make(request, call->app->settings.url, arena);
    if (!url)
        return fail(reterr, ERR_LIMIT, "the request is longer than %d bytes", CLIENT_URL_BYTES_MAX);
    TRY(client_new(&(ClientOptions){.body_bytes_max = REMOTE_BODY_BYTES_MAX}, &client, reterr));
    TRY(request_send(client, call, request, url, arena, &response, reterr));
    return response_read(&response, arena, ret_reply, reterr);
}

ErrorCode remote_json(Call *call, const RemoteRequest *request, Arena *arena, const char **ret_json, Error *reterr)
{
    RemoteReply reply;

    TRY(remote_send(call, request, arena, &reply, reterr));
    *ret_json = value_raw(reply.body, arena);
    return OK;
}

ErrorCode remote_row(Call *call, const RemoteRequest *request, const AnswerTable *table, Arena *arena, void *row,
                     Error *reterr)
{
    RemoteReply reply;

    TRY(remote_send(call, request, arena, &reply, reterr));
    answer_row_read(table, reply.body, arena, row);
    return OK;
}

ErrorCode remote_rows(Call *call, const RemoteRequest *request, const AnswerTable *table, size_t row_size, Arena *arena,
                      void **ret_rows, int *ret_count, int64_t *ret_next, Error *reterr)
{
    RemoteReply reply;

    TRY(remote_send(call, request, arena, &reply, reterr));
    *ret_count = answer_rows_read(table, value_field(reply.body, "items"), row_size, arena, ret_rows);
    if (ret_next)
        *ret_next = value_i64(value_field(reply.body, "next_cursor"));
    return OK;
}

const char *remote_body(Arena *arena, const FieldTable *table, const void *request)
{
    Text   text;
    Writer writer;

    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_request(&writer, table, request);
    return text_string(&text);
}

const char *remote_number(Arena *arena, int64_t value)
{
    return value ? arena_print(arena, "%" PRId64, value) : NULL;
}
