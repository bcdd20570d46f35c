/*
 * raw.c - the tests' own client; sockets on loopback only.
 */
#include "test/unit/http/raw.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

void raw_open(Raw *client, int port)
{
    struct sockaddr_in address = {.sin_family      = AF_INET,
                                  .sin_port        = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    client->filled = 0;
    client->fd     = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (connect(client->fd, (struct sockaddr *)&address, sizeof address) != 0)
        raw_done(client);
}

void raw_done(Raw *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
}

bool raw_send(Raw *client, const char *text)
{
    return raw_send_bytes(client, text, strlen(text));
}

bool raw_send_bytes(Raw *client, const void *bytes, size_t size)
{
    const char *rest = bytes;

    while (size > 0) {
        ssize_t count = send(client->fd, rest, size, MSG_NOSIGNAL);

        if (count <= 0)
            return false;
        rest += count;
        size -= (size_t)count;
    }
    return true;
}

/* false: the end, a reset, or nothing before the deadline. */
static bool receive(Raw *client, Deadline deadline)
{
    struct pollfd wanted = {client->fd, POLLIN, 0};

    if (client->filled == sizeof client->bytes || poll(&wanted, 1, deadline_left_ms(deadline)) != 1)
        return false;
    ssize_t count = recv(client->fd, client->bytes + client->filled, sizeof client->bytes - client->filled, 0);
    if (count <= 0)
        return false;
    client->filled += (size_t)count;
    return true;
}

static Answer read_answer(Raw *client, bool bodiless)
{
    Answer      answer   = {0};
    Deadline    deadline = deadline_in_ms(RAW_WAIT_MS);
    const char *end;

    while (!(end = memmem(client->bytes, client->filled, "\r\n\r\n", 4)))
        if (!receive(client, deadline))
            return answer;
    size_t head = (size_t)(end - client->bytes) + 4;
    if (head >= sizeof answer.head)
        return answer;
    memcpy(answer.head, client->bytes, head);
    size_t body = bodiless ? 0 : (size_t)strtoul(answer_header(&answer, "Content-Length"), NULL, 10);
    while (client->filled < head + body)
        if (!receive(client, deadline))
            return answer;
    memcpy(answer.body, client->bytes + head, body < sizeof answer.body ? body : sizeof answer.body - 1);
    client->filled -= head + body;
    memmove(client->bytes, client->bytes + head + body, client->filled);
    if (strncmp(answer.head, "HTTP/1.1 ", 9) == 0)
        answer.status = (int)strtol(answer.head + 9, NULL, 10);
    return answer;
}

Answer raw_read(Raw *client)
{
    return read_answer(client, /* bodiless= */ false);
}

Answer raw_read_bodiless(Raw *client)
{
    return read_answer(client, /* bodiless= */ true);
}

bool raw_is_closed(Raw *client)
{
    struct pollfd wanted = {client->fd, POLLIN, 0};
    char          byte;

    return client->filled == 0 && poll(&wanted, 1, RAW_WAIT_MS) == 1 && recv(client->fd, &byte, 1, 0) <= 0;
}

Answer raw_ask(int port, const char *text)
{
    scoped_raw Raw client = {0};

    raw_open(&client, port);
    raw_send(&client, text);
    return raw_read(&client);
}

bool answer_is_problem(const Answer *answer, int status)
{
    static const char *const members[] = {"\"type\":\"/problems/", "\"title\":\"", "\"detail\":\"", "\"instance\":\""};
    char                     member[32];

    if (answer->status != status || strcmp(answer_header(answer, "Content-Type"), "application/problem+json") != 0)
        return false;
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (!strstr(answer->body, members[i]))
            return false;
    snprintf(member, sizeof member, "\"status\":%d", status);
    if (!strstr(answer->body, member) || answer->body[strlen(answer->body) - 1] != '}')
        return false;
    if (status == 401 && strcmp(answer_header(answer, "WWW-Authenticate"), "Bearer") != 0)
        return false;
    return (status != 503 && status != 429) || strtol(answer_header(answer, "Retry-After"), NULL, 10) >= 1;
}

const char *answer_header(const Answer *answer, const char *name)
{
    static _Thread_local char value[1024];
    size_t                    length = strlen(name);

    value[0] = '\0';
    for (const char *line = strstr(answer->head, "\r\n"); line && line[2] != '\r'; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, length) != 0 || line[2 + length] != ':')
            continue;
        const char *start = line + 2 + length + 2;
        snprintf(value, sizeof value, "%.*s", (int)strcspn(start, "\r"), start);
        break;
    }
    return value;
}
