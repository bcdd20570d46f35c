/*
 * response.c - responses as bytes, and errors as problem documents.
 */
#include "http/response.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/problem.h"
#include "base/writer.h"

#define PROBLEM_TYPE_SIZE 128

static const struct {
    int         status;
    const char *reason;
} reasons[] = {
    {200, "OK"                             },
    {201, "Created"                        },
    {202, "Accepted"                       },
    {204, "No Content"                     },
    {304, "Not Modified"                   },
    {400, "Bad Request"                    },
    {401, "Unauthorized"                   },
    {403, "Forbidden"                      },
    {404, "Not Found"                      },
    {405, "Method Not Allowed"             },
    {408, "Request Timeout"                },
    {409, "Conflict"                       },
    {413, "Content Too Large"              },
    {415, "Unsupported Media Type"         },
    {422, "Unprocessable Content"          },
    {429, "Too Many Requests"              },
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"          },
    {503, "Service Unavailable"            },
};

/* A reason phrase may be empty: RFC 9112, 4. */
static const char *reason_of(int status)
{
    for (size_t i = 0; i < COUNT(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "";
}

/* printf() would cost more than the rest of a small response. */
static void append_number(Text *text, size_t number)
{
    char  digits[24];
    char *first = digits + sizeof digits;

    do
        *--first = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    text_append_bytes(text, first, (size_t)(digits + sizeof digits - first));
}

static void append_header(Text *text, const char *name, const char *value)
{
    text_append(text, name);
    text_append_bytes(text, ": ", 2);
    text_append(text, value);
    text_append_bytes(text, "\r\n", 2);
}

void response_init(Response *response, Arena *arena)
{
    response_reset(response);
    text_init(&response->body, arena, TEXT_MAX_BODY);
}

void response_reset(Response *response)
{
    response->status       = 200;
    response->type         = "application/json";
    response->header_count = 0;
    response->header_bytes = 0;
    response->borrowed     = NULL;
    response->is_shared    = false;
}

void response_header(Response *response, const char *name, const char *value)
{
    response->header_bytes += strlen(name) + strlen(value);
    assert(response->header_count < RESPONSE_HEADERS_MAX && response->header_bytes <= RESPONSE_HEADERS_BYTES_MAX);
    assert(!strpbrk(name, "\r\n") && !strpbrk(value, "\r\n"));
    response->headers[response->header_count].name    = name;
    response->headers[response->header_count++].value = value;
}

Writer *response_writer(Response *response)
{
    writer_open(&response->writer, &response->body);
    return &response->writer;
}

void response_row(Response *response, RowWrite *write, const void *row)
{
    write(response_writer(response), row);
}

void response_borrow(Response *response, const char *bytes, size_t size)
{
    assert(bytes);
    response->borrowed      = bytes;
    response->borrowed_size = size;
}

/* RFC 9110, 15.3.5 and 15.4.5. */
static bool status_has_content(int status)
{
    return status != 204 && status != 304;
}

const char *response_content(const Response *response, size_t *ret_size)
{
    if (!status_has_content(response->status)) {
        *ret_size = 0;
        return NULL;
    }
    *ret_size = response->borrowed ? response->borrowed_size : response->body.length;
    return response->borrowed ? response->borrowed : response->body.bytes;
}

/* In whole seconds. Unless the error has a time: 1 s for a full queue, which empties quickly, and 5 s for an
 * unavailable database. */
static int retry_after_s(const Error *error)
{
    if (error->retry_ms > 0)
        return error->retry_ms / 1000 + (error->retry_ms % 1000 > 0);
    return error_verdict(error->code) == VERDICT_RETRY || error->code == ERR_RATE ? 1 : 5;
}

void response_problem(Response *response, const Error *error, const char *instance)
{
    int  status = error_http(error->code);
    char type[PROBLEM_TYPE_SIZE];

    snprintf(type, sizeof type, "/problems/%s", error_type(error));
    text_done(&response->body);
    response_reset(response);
    response->status = status;
    response->type   = "application/problem+json";
    Writer *writer   = response_writer(response);
    writer_object(writer, NULL);
    writer_text(writer, "type", type);
    writer_text(writer, "title", error_text(error->code));
    writer_i64(writer, "status", status);
    writer_text(writer, "detail", problem_detail(error));
    writer_text(writer, "instance", instance);
    writer_end(writer);
    if (status == 503 || status == 429) {
        snprintf(response->retry_after, sizeof response->retry_after, "%d", retry_after_s(error));
        response_header(response, "Retry-After", response->retry_after);
    }
    if (status == 401)
        response_header(response, "WWW-Authenticate", "Bearer");
}

void response_write_head(const Response *response, const ResponseFrame *frame, Text *head)
{
    size_t size;

    (void)response_content(response, &size);
    text_append(head, "HTTP/1.1 ");
    append_number(head, (size_t)response->status);
    text_append_char(head, ' ');
    text_append(head, reason_of(response->status));
    text_append_bytes(head, "\r\n", 2);
    append_header(head, "Date", frame->date);
    if (status_has_content(response->status)) {
        append_header(head, "Content-Type", response->type);
        text_append(head, "Content-Length: ");
        append_number(head, size);
        text_append_bytes(head, "\r\n", 2);
    }
    append_header(head, "X-Request-Id", frame->request_id);
    for (int i = 0; i < response->header_count; i++)
        append_header(head, response->headers[i].name, response->headers[i].value);
    if (frame->close)
        append_header(head, "Connection", "close");
    text_append_bytes(head, "\r\n", 2);
}
