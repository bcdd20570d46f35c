/*
 * malformed_test.c - 2,000 generated requests, each broken in one way: all are answered 4xx with a problem document,
 * nothing reaches a handler that writes, and the server is as well afterwards as before.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "test/harness/test.h"
#include "test/unit/http/fixture.h"
#include "test/unit/http/raw.h"

#define HOST   "Host: localhost\r\n"
#define ROUNDS 2000

static uint32_t random_state = 7;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % limit;
}

static void append_noise(Text *text, const char *from, size_t kinds, uint32_t length)
{
    for (; length > 0; length--)
        text_append_char(text, from[random_below((uint32_t)kinds)]);
}

#define PICK(...) ((const char *[]){__VA_ARGS__})[random_below((uint32_t)COUNT(((const char *[]){__VA_ARGS__})))]

static void break_request_line(Text *text)
{
    text_print(text, "%s\r\n" HOST "\r\n",
               PICK("GET /live", "GET  /live HTTP/1.1", "GET /live HTTP/1.1 ", "GET /live HTTP/1.2", "GET /live HTTP/3",
                    "/live HTTP/1.1", "GET /live\tHTTP/1.1", "GET /live HTTP/1.1\n", "GE\x01T /live HTTP/1.1", "",
                    "GET live HTTP/1.1", "GET * HTTP/1.1", "GET /li\x80ve HTTP/1.1", "G\xc3\xa9T /live HTTP/1.1",
                    "GET /live HTTP/1.1\r", "\r\n\r\nGET /live HTTP/1.1", "PRI * HTTP/2.0"));
}

static void break_header(Text *text)
{
    text_print(text, "POST /json HTTP/1.1\r\n%s\r\n\r\n{}",
               PICK("X: y", HOST "X", HOST "X : y", HOST " X: y", HOST ": y", HOST "X: \x01", HOST "X: \xff",
                    HOST "X\x7f: y", HOST "Host: again", "Host: a b", HOST "X: a\r\n folded", HOST "X: a\nY: b",
                    HOST "X: a\rY: b", HOST "Expect: wonders", HOST "Content-Type: a\r\nContent-Type: b",
                    HOST "Content-Length: 2\r\nContent-Type: text/xml", HOST "X{}: y", HOST "\"X\": y"));
}

static void break_length(Text *text)
{
    text_print(text, "POST /json HTTP/1.1\r\n" HOST "%s\r\n\r\n{}",
               PICK("Content-Length: -2", "Content-Length: +2", "Content-Length: 2a", "Content-Length: 2 2",
                    "Content-Length: 2, 2", "Content-Length: 0x2", "Content-Length: 99999999999999999999999",
                    "Content-Length: 1048577", "Content-Length:", "Content-Length: 2\r\nContent-Length: 3",
                    "Content-Length: 2\r\nTransfer-Encoding: chunked", "Transfer-Encoding: identity",
                    "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
                    "Transfer-Encoding:", "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: gzip"));
}

static void break_chunk(Text *text)
{
    text_print(text, "POST /json HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n%s",
               PICK("x\r\n", "\r\n", "-2\r\n{}\r\n", "2\r\n{}}\r\n", "2\n{}\r\n", "2\r\n{}\n0\r\n\r\n", "2 \r\n{}\r\n",
                    "0x2\r\n{}\r\n", "ffffffffffffffffff\r\n", "fffffffffffffff\r\n", "200001\r\n",
                    "0\r\nnonsense\r\n\r\n", "2;\x02\r\n{}\r\n", "2\r\n{}\r\n0\r\n bad: x\r\n\r\n", "0\r\n\n"));
}

static void break_target(Text *text)
{
    text_print(text, "GET %s HTTP/1.1\r\n" HOST "\r\n",
               PICK("/echo/%", "/echo/%g0", "/echo/%0", "/echo/%00", "/echo/%ff", "/echo/%ed%a0%80", "/echo/x?limit=%",
                    "/echo/x?limit=a", "/echo/x?limit=1&limit=2", "/echo/x?offset=1", "/echo/x?limit=%c0%80",
                    "/nowhere", "/live/..", "/../live", "/live#x", "/echo/x?=1", "/live?a", "https://localhost/live"));
}

static void break_method(Text *text)
{
    text_print(text, "%s /json HTTP/1.1\r\n" HOST "\r\n",
               PICK("GET", "PUT", "PATCH", "OPTIONS", "TRACE", "CONNECT", "post", "X"));
}

static void break_token(Text *text)
{
    text_print(text, "POST /secret-json HTTP/1.1\r\n" HOST "%sContent-Length: 2\r\n\r\n{}",
               PICK("", "Authorization: Bearer\r\n", "Authorization: Bearer weak\r\n", "Authorization: Basic x\r\n",
                    "Authorization: Bearer wrong\r\n", "Authorization: Bearer \"cached\"\r\n",
                    "Authorization: cached\r\n"));
}

static void break_size(Text *text)
{
    text_append(text, PICK("GET /", "GET /live HTTP/1.1\r\nHost: ", "GET /live HTTP/1.1\r\nX: ", "", "GET /live?"));
    append_noise(text, "abcxyz0189-._~", 14, 20000 + random_below(5000));
}

static void break_by_noise(Text *text)
{
    static const char bytes[] = "\r\n \t:;,/?#%&=+.GETPOSHabc019\x01\x7f\x80\xc3\xff{}[]\"";

    append_noise(text, bytes, sizeof bytes, 1 + random_below(200)); /* with the NUL */
}

static void break_by_ending(Text *text)
{
    static const char whole[] = "POST /json HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n{\"a\":1234";

    text_append_bytes(text, whole, 1 + random_below(sizeof whole - 1));
}

static void (*const ways[])(Text *text) = {
    break_request_line, break_header, break_length, break_chunk,    break_target,
    break_method,       break_token,  break_size,   break_by_noise, break_by_ending,
};

/* Send at once, in slices, or byte by byte. The server may answer and close before all is sent: that is fine. */
static void send_sliced(Raw *client, const Text *text)
{
    size_t slice = random_below(3) == 0 && text->length < 500 ? 1 + random_below(20) : text->length;

    for (size_t from = 0; from < text->length; from += slice) {
        size_t size = text->length - from < slice ? text->length - from : slice;

        if (!raw_send_bytes(client, text->bytes + from, size))
            break;
    }
    shutdown(client->fd, SHUT_WR); /* nothing more will come: an unfinished request is malformed too */
}

TEST(malformed_requests_are_answered_with_problems)
{
    scoped_fixture Fixture f             = {0};
    int                    statuses[600] = {0};

    fixture_init(&f, (ServerOptions){.body_bytes_max = 1 << 20});
    for (int round = 0; round < ROUNDS; round++) {
        scoped_text Text text   = {0};
        scoped_raw Raw   client = {0};
        char             shown[81];

        text_init(&text, NULL, TEXT_MAX_BODY);
        ways[(size_t)round % COUNT(ways)](&text);
        raw_open(&client, f.port);
        assert_true(client.fd >= 0);
        send_sliced(&client, &text);
        Answer answer = raw_read(&client);
        snprintf(shown, sizeof shown, "%s", text_string(&text));
        if (answer.status < 400 || answer.status > 499 || !answer_is_problem(&answer, answer.status)) {
            fprintf(stderr, "round %d gave %d \"%s\" for \"%s\"\n", round, answer.status, answer.body, shown);
            _fail(__FILE__, __LINE__);
        }
        statuses[answer.status]++;
    }
    static const int expected[] = {400, 401, 403, 404, 405, 413, 415, 431}; /* the generator reaches all of them */
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_true(statuses[expected[i]] > 0);
    assert_int_equal(atomic_load(&f.written), 0);
    Answer live = raw_ask(f.port, "GET /live HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(live.status, 200);
    assert_true(fixture_wait_in_flight(&f, 0));
}
