/*
 * limit_test.c - nothing is unbounded: sizes, times, the queue, connections; and the address to listen on.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/metric.h"
#include "test/harness/shifted_clock.h"
#include "test/harness/test.h"
#include "test/unit/http/fixture.h"
#include "test/unit/http/raw.h"

#define HOST "Host: localhost\r\n"

TEST(limit_of_the_body)
{
    scoped_fixture Fixture f = {0};
    static const struct {
        const char *request;
        int         status;
    } rows[] = {
        {"POST /json HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n0123456789",                            201},
        {"POST /json HTTP/1.1\r\n" HOST "Content-Length: 11\r\n\r\n01234567890",                           413},
        {"POST /json HTTP/1.1\r\n" HOST "Content-Length: 11\r\n\r\n",                                      413},
        {"POST /json HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n",                    413},
        {"POST /json HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n",  201},
        {"POST /json HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nb\r\n",                         413},
        {"POST /json HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n6\r\n012345\r\n", 413},
    };

    fixture_init(&f, (ServerOptions){.body_bytes_max = 10});
    for (size_t i = 0; i < COUNT(rows); i++) {
        Answer answer = raw_ask(f.port, rows[i].request);

        assert_int_equal(answer.status, rows[i].status);
        if (rows[i].status == 413)
            assert_true(answer_is_problem(&answer, 413));
    }
}

/* The client keeps sending a body that is not read; it must get the response all the same. */
TEST(limit_of_the_body_is_heard_by_a_client_that_sends_on)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};
    static const char      block[4096];
    char                   byte;

    fixture_init(&f, (ServerOptions){.body_bytes_max = 10});
    raw_open(&client, f.port);
    raw_send(&client, "POST /json HTTP/1.1\r\n" HOST "Content-Length: 4000000\r\n\r\n");
    assert_true(raw_send_bytes(&client, block, sizeof block));
    assert_int_equal(recv(client.fd, &byte, 1, MSG_PEEK), 1); /* the answer is here, and is not looked at yet */
    for (int i = 0; i < 250; i++)
        assert_true(raw_send_bytes(&client, block, sizeof block));
    Answer answer = raw_read(&client);
    assert_true(answer_is_problem(&answer, 413));
}

TEST(limit_of_the_headers)
{
    scoped_fixture Fixture f = {0};
    char                   request[4096];
    size_t                 used;

    fixture_init(&f, (ServerOptions){.header_bytes_max = 1024});
    for (int extra = 0; extra < 2; extra++) { /* exactly 1024 bytes, then one more */
        used = (size_t)snprintf(request, sizeof request, "GET /live HTTP/1.1\r\n" HOST "X: ");
        memset(request + used, 'a', 1024 - 4 - used + (size_t)extra);
        snprintf(request + 1024 - 4 + extra, 5, "\r\n\r\n");
        Answer answer = raw_ask(f.port, request);

        assert_int_equal(answer.status, extra ? 431 : 200);
        assert_true(!extra || answer_is_problem(&answer, 431));
    }
    memset(request, 'a', 3000);
    memcpy(request, "GET /", 5);
    request[3000] = '\0';
    Answer answer = raw_ask(f.port, request);
    assert_true(answer_is_problem(&answer, 431));

    used = (size_t)snprintf(request, sizeof request, "GET /live HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 70; i++)
        used += (size_t)snprintf(request + used, sizeof request - used, "X: %d\r\n", i);
    answer = raw_ask(f.port, request);
    assert_true(answer_is_problem(&answer, 431));
}

/* A byte now and then keeps no connection alive: the whole request has one budget. */
static void drip(int port, const char *start, const char *drop)
{
    scoped_raw Raw client = {0};
    Mono           began  = clock_mono();
    char           byte;

    raw_open(&client, port);
    raw_send(&client, start);
    while (recv(client.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 1 &&
           mono_ms_between(began, clock_mono()) < RAW_WAIT_MS) {
        raw_send(&client, drop);
        clock_sleep_ms(20);
    }
    Answer answer = raw_read(&client);
    assert_true(answer_is_problem(&answer, 408));
    assert_string_equal(answer_header(&answer, "Connection"), "close");
    int64_t took = mono_ms_between(began, clock_mono());
    assert_true(took >= 200 && took < 5000 + test_stalled_ms());
}

TEST(limit_of_the_time_to_send_a_request)
{
    scoped_fixture Fixture f = {0};

    fixture_init(&f, (ServerOptions){.read_ms_max = 200});
    drip(f.port, "G", "E");
    drip(f.port, "GET /live HTTP/1.1\r\n" HOST, "X: y\r\n");
    drip(f.port, "POST /json HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n", "x");
    drip(f.port, "POST /json HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n");
    assert_int_equal(atomic_load(&f.written), 0);
}

TEST(limit_of_idle_connections)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         silent = {0}, kept = {0};

    fixture_init(&f, (ServerOptions){.read_ms_max = 200});
    raw_open(&silent, f.port);
    raw_open(&kept, f.port);
    raw_send(&kept, "GET /live HTTP/1.1\r\n" HOST "\r\n");
    Answer answer = raw_read(&kept);
    assert_int_equal(answer.status, 200);
    assert_true(raw_is_closed(&silent));
    assert_true(raw_is_closed(&kept));
}

TEST(limit_of_the_time_to_take_an_answer)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};

    fixture_init(&f, (ServerOptions){.read_ms_max = 200});
    int64_t before = metric_value(&http_metrics.connections);
    raw_open(&client, f.port);
    setsockopt(client.fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int));
    raw_send(&client, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    assert_true(fixture_wait_in_flight(&f, 1));
    assert_true(fixture_wait_in_flight(&f, 0)); /* given up */
    for (Deadline d = deadline_in_ms(RAW_WAIT_MS); metric_value(&http_metrics.connections) != before;) {
        assert_false(deadline_passed(d));
        clock_sleep_ms(1);
    }
}

/* Reads `piece` bytes of a large response in each of the steps. Each takes nearly all of the time that a client has for a
 * response. Returns how many bytes came in all. */
static size_t large_read(int port, size_t piece)
{
    enum { STEPS = 8 };
    scoped_raw Raw client = {0};
    size_t         all = 0, step = 0;
    char          *bytes = malloc(LARGE_BYTES);
    ssize_t        count;

    raw_open(&client, port);
    setsockopt(client.fd, SOL_SOCKET, SO_RCVBUF, &(int){65536}, sizeof(int));
    raw_send(&client, "GET /large HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    for (int i = 0; i < STEPS; i++) {
        for (step = 0; step < piece; step += (size_t)count) {
            count = recv(client.fd, bytes, piece - step, 0);
            if (count <= 0)
                break;
            all += (size_t)count;
        }
        shifted_clock_advance_ms(9500);
        Answer live = raw_ask(port, "GET /live HTTP/1.1\r\n" HOST "\r\n"); /* the network thread sees what time it is */
        assert_int_equal(live.status, 200);
    }
    while ((count = recv(client.fd, bytes, LARGE_BYTES, 0)) > 0)
        all += (size_t)count;
    free(bytes);
    return all;
}

/* More than a minute passes, and 10 s are allowed. */
TEST(limit_of_the_time_to_take_an_answer_begins_anew_while_it_is_taken)
{
    scoped_shifted_clock int clock = shifted_clock_install();
    scoped_fixture Fixture   f     = {0};
    int                      fd    = -1;
    Error                    error = {0};

    assert_ok(server_bind("127.0.0.1:0", &fd, &error));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){65536}, sizeof(int)); /* of the connections: little is on the way */
    fixture_init(&f, (ServerOptions){.network_threads = 1, .bound_fd = fd});
    assert_true(large_read(f.port, LARGE_BYTES / 9) > LARGE_BYTES);
    assert_true(large_read(f.port, 2000) < LARGE_BYTES); /* a trickle does not hold a response for ever */
}

/* The bytes of the whole response. */
static size_t response_read(int port, const char *request)
{
    scoped_raw Raw client = {0};
    size_t         all    = 0;
    static char    bytes[64 << 10];

    raw_open(&client, port);
    raw_send(&client, request);
    for (ssize_t count; (count = recv(client.fd, bytes, sizeof bytes, 0)) > 0;)
        all += (size_t)count;
    return all;
}

static void unsent_await(int64_t bytes)
{
    for (Deadline d = deadline_in_ms(RAW_WAIT_MS); metric_value(&http_metrics.unsent) != bytes; clock_sleep_ms(1))
        assert_false(deadline_passed(d));
}

#define LARGE_OF(key) "GET /secret-large HTTP/1.1\r\n" HOST "Authorization: Bearer " key "\r\nConnection: close\r\n\r\n"

/* Of 10 MiB, one key leaves a quarter to others. */
TEST(limit_of_responses_that_are_being_sent)
{
    scoped_fixture Fixture f       = {0};
    scoped_raw Raw         slow    = {0};
    scoped_raw Raw         watcher = {0};
    int                    fd      = -1;
    Error                  error   = {0};
    char                  *body    = malloc(LARGE_BYTES);

    assert_ok(server_bind("127.0.0.1:0", &fd, &error));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){65536}, sizeof(int)); /* of the connections: little is on the way */
    fixture_init(&f, (ServerOptions){.bound_fd = fd, .unsent_bytes_max = 10 << 20});
    int64_t shed = metric_value(&http_metrics.unsent_shed);
    raw_open(&slow, f.port);
    setsockopt(slow.fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int));
    raw_send(&slow, LARGE_OF("cached"));
    unsent_await((int64_t)LARGE_BYTES);
    Answer refused = raw_ask(f.port, LARGE_OF("cached"));
    assert_true(answer_is_problem(&refused, 503));
    assert_contains(refused.body, "clients that read slowly");
    assert_int_equal(metric_value(&http_metrics.unsent_shed), shed + 1);
    assert_true(response_read(f.port, LARGE_OF("fresh")) > LARGE_BYTES); /* of another key */
    raw_done(&slow);
    unsent_await(0);
    assert_true(response_read(f.port, LARGE_OF("cached")) > LARGE_BYTES);
    unsent_await(0);

    /* What says what was done is not replaced, unless it is undone. */
    raw_open(&slow, f.port);
    setsockopt(slow.fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int));
    raw_send(&slow, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    unsent_await((int64_t)LARGE_BYTES);
    raw_open(&watcher, f.port);
    raw_send(&watcher, "POST /watch HTTP/1.1\r\n" HOST "Content-Length: 7\r\n\r\n\"large\"");
    assert_true(fixture_wait_waiting(&f, 1));
    fixture_open_gate(&f);
    refused = raw_read(&watcher);
    assert_true(answer_is_problem(&refused, 503));
    assert_int_equal(atomic_load(&f.undelivered), 1);
    raw_done(&watcher);
    raw_open(&watcher, f.port);
    raw_send(&watcher, "POST /json HTTP/1.1\r\n" HOST "Content-Length: 4194304\r\n\r\n");
    memset(body, 'x', LARGE_BYTES);
    assert_true(raw_send_bytes(&watcher, body, LARGE_BYTES));
    assert_int_equal(recv(watcher.fd, body, 12, MSG_WAITALL), 12);
    assert_memory_equal(body, "HTTP/1.1 201", 12);
    free(body);
}

TEST(limit_of_the_queue)
{
    scoped_fixture Fixture f       = {0};
    Raw                   *clients = calloc(4, sizeof *clients);

    fixture_init(&f, (ServerOptions){.executor_threads = 1, .queue_max = 2});
    int64_t shed = metric_value(&http_metrics.shed);
    for (int i = 0; i < 3; i++) { /* one runs, two wait */
        raw_open(&clients[i], f.port);
        raw_send(&clients[i], "POST /wait HTTP/1.1\r\n" HOST "\r\n");
        assert_true(fixture_wait_in_flight(&f, i + 1));
        assert_true(fixture_wait_waiting(&f, 1));
    }
    raw_open(&clients[3], f.port);
    raw_send(&clients[3], "POST /wait HTTP/1.1\r\n" HOST "\r\n");
    Answer refused = raw_read(&clients[3]);
    assert_true(answer_is_problem(&refused, 503));
    Answer unread = raw_ask(f.port, "POST /secret-json HTTP/1.1\r\n" HOST
                                    "Authorization: Bearer much\r\nContent-Length: 1000000\r\n\r\n");
    assert_true(answer_is_problem(&unread, 503));
    assert_string_equal(answer_header(&unread, "Connection"), "close");
    assert_int_equal(metric_value(&http_metrics.shed), shed + 2);
    assert_int_equal(metric_value(&http_metrics.queue), 2);

    Answer live = raw_ask(f.port, "GET /live HTTP/1.1\r\n" HOST "\r\n"); /* what runs at once is not touched */
    assert_int_equal(live.status, 200);
    fixture_open_gate(&f);
    assert_true(fixture_wait_in_flight(&f, 0));
    raw_send(&clients[3], "POST /wait HTTP/1.1\r\n" HOST "\r\n"); /* the connection was kept */
    for (int i = 0; i < 4; i++) {
        Answer answer = raw_read(&clients[i]);

        assert_int_equal(answer.status, 200);
        raw_done(&clients[i]);
    }
    assert_int_equal(metric_value(&http_metrics.queue), 0);
    free(clients);
}

/* A client with an unknown token holds no thread and no place in the queue. */
TEST(limit_of_the_queue_is_not_used_up_by_tokens_that_are_looked_up)
{
    enum { STRANGERS = 20 };
    scoped_fixture Fixture f       = {0};
    Raw                   *clients = calloc(STRANGERS, sizeof *clients);

    fixture_init(&f, (ServerOptions){.executor_threads = 1, .queue_max = 1});
    for (int i = 0; i < STRANGERS; i++) {
        raw_open(&clients[i], f.port);
        raw_send(&clients[i], "GET /secret/x HTTP/1.1\r\n" HOST "Authorization: Bearer late\r\n\r\n");
    }
    assert_true(fixture_wait_for(&f.asking, STRANGERS));
    Answer known = raw_ask(f.port, "GET /secret/x HTTP/1.1\r\n" HOST "Authorization: Bearer cached\r\n\r\n");
    assert_int_equal(known.status, 200);
    fixture_open_gate(&f);
    for (int i = 0; i < STRANGERS; i++) {
        Answer answer = raw_read(&clients[i]);

        assert_true(answer.status == 200 || answer.status == 503); /* one may wait for the executor */
        raw_done(&clients[i]);
    }
    free(clients);
}

TEST(limit_of_the_time_in_the_queue)
{
    scoped_fixture Fixture f     = {0};
    scoped_raw Raw         first = {0}, second = {0};
    Mono                   began;

    fixture_init(&f, (ServerOptions){.executor_threads = 1});
    raw_open(&first, f.port);
    raw_open(&second, f.port);
    raw_send(&first, "POST /wait HTTP/1.1\r\n" HOST "\r\n");
    assert_true(fixture_wait_waiting(&f, 1));
    raw_send(&second, "POST /hurry HTTP/1.1\r\n" HOST "\r\n");
    assert_true(fixture_wait_in_flight(&f, 2));
    began = clock_mono();
    while (mono_ms_between(began, clock_mono()) < 60) /* its deadline is 50 ms after its head was read */
        clock_sleep_ms(5);
    fixture_open_gate(&f);
    Answer answer = raw_read(&second);
    assert_true(answer_is_problem(&answer, 503));
    assert_contains(answer.body, "timed-out");
    assert_int_equal(atomic_load(&f.waiting), 1);
}

#define REQUEST_OF(key) "GET /secret/x HTTP/1.1\r\n" HOST "Authorization: Bearer " key "\r\n\r\n"

TEST(limit_of_connections)
{
    scoped_fixture Fixture f       = {0};
    Raw                   *clients = calloc(3, sizeof *clients);

    fixture_init(&f, (ServerOptions){.connections_max = 2});
    for (int i = 0; i < 2; i++) {
        raw_open(&clients[i], f.port);
        raw_send(&clients[i], i == 0 ? REQUEST_OF("cached") : REQUEST_OF("cached-2"));
        Answer answer = raw_read(&clients[i]);
        assert_int_equal(answer.status, 200);
    }
    raw_open(&clients[2], f.port);
    raw_send(&clients[2], "GET /live HTTP/1.1\r\n" HOST "\r\n");
    Answer refused = raw_read(&clients[2]);
    assert_true(answer_is_problem(&refused, 503));
    assert_true(raw_is_closed(&clients[2]));
    raw_send(&clients[0], "GET /live HTTP/1.1\r\n" HOST "\r\n");
    Answer answer = raw_read(&clients[0]);
    assert_int_equal(answer.status, 200);
    for (int i = 0; i < 3; i++)
        raw_done(&clients[i]);
    free(clients);
}

/* The oldest first, whether it is silent or drips; a client with a token keeps its place. */
TEST(limit_of_connections_is_kept_at_the_expense_of_unauthenticated_clients)
{
    scoped_fixture Fixture f     = {0};
    scoped_raw Raw         known = {0}, silent = {0}, dripping = {0}, one = {0}, two = {0}, last = {0};

    fixture_init(&f, (ServerOptions){.connections_max = 3, .network_threads = 1});
    raw_open(&known, f.port);
    raw_send(&known, "GET /secret/x HTTP/1.1\r\n" HOST "Authorization: Bearer fresh\r\n\r\n");
    assert_int_equal(raw_read(&known).status, 200);
    raw_open(&silent, f.port);
    raw_open(&dripping, f.port);
    raw_send(&dripping, "GET /live HT");
    raw_open(&one, f.port);
    raw_send(&one, "GET /secret/x HTTP/1.1\r\n" HOST "Authorization: Bearer cached\r\n\r\n");
    assert_int_equal(raw_read(&one).status, 200);
    assert_true(raw_is_closed(&silent));
    raw_open(&two, f.port);
    raw_send(&two, REQUEST_OF("cached-2"));
    assert_int_equal(raw_read(&two).status, 200);
    assert_true(raw_is_closed(&dripping));
    raw_open(&last, f.port); /* no stranger is left */
    raw_send(&last, "GET /live HTTP/1.1\r\n" HOST "\r\n");
    Answer refused = raw_read(&last);
    assert_true(answer_is_problem(&refused, 503));
    raw_send(&known, "GET /live HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(raw_read(&known).status, 200);
}

static int status_of(Raw *client, const char *request)
{
    raw_send(client, request);
    return raw_read(client).status;
}

/* Six of eight, also while they idle. A connection that is closed, or used by another key, is given back. */
TEST(limit_of_connections_of_one_key_leaves_some_to_others)
{
    scoped_fixture Fixture f       = {0};
    Raw                   *clients = calloc(6, sizeof *clients);
    scoped_raw Raw         seventh = {0}, eighth = {0}, other = {0};

    fixture_init(&f, (ServerOptions){.connections_max = 8});
    for (int i = 0; i < 6; i++) {
        raw_open(&clients[i], f.port);
        assert_int_equal(status_of(&clients[i], REQUEST_OF("cached")), 200);
        assert_int_equal(status_of(&clients[i], REQUEST_OF("cached")), 200);
    }
    raw_open(&seventh, f.port);
    assert_int_equal(status_of(&seventh, REQUEST_OF("cached")), 503);
    assert_true(raw_is_closed(&seventh));
    raw_open(&other, f.port);
    assert_int_equal(status_of(&other, REQUEST_OF("cached-2")), 200);
    assert_int_equal(status_of(&clients[0], REQUEST_OF("cached-2")), 200);
    raw_open(&eighth, f.port);
    assert_int_equal(status_of(&eighth, REQUEST_OF("cached")), 503); /* it leaves a quarter of what is left */
    raw_done(&clients[1]);
    raw_done(&clients[2]);
    for (int status = 0; status != 200;) { /* until the server has noticed */
        scoped_raw Raw again = {0};

        raw_open(&again, f.port);
        status = status_of(&again, REQUEST_OF("cached"));
        assert_true(status == 200 || status == 503);
    }
    for (int i = 0; i < 6; i++)
        if (i != 1 && i != 2)
            raw_done(&clients[i]);
    free(clients);
}

/* 8 MiB in chunks used to be held for anyone, and refused at their end. */
TEST(limit_of_a_body_where_none_is_read_is_its_first_byte)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};

    fixture_init(&f, (ServerOptions){0});
    raw_open(&client, f.port);
    raw_send(&client, "GET /live HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n800000\r\nx");
    Answer answer = raw_read(&client); /* without the other 8388607 bytes */
    assert_true(answer_is_problem(&answer, 400));
    assert_contains(answer.body, "no body");
    assert_string_equal(answer_header(&answer, "Connection"), "close");
    assert_true(raw_is_closed(&client));
}

/* A route may be open to everyone and still decide by the head: nothing of the body is awaited. */
TEST(limit_of_a_body_that_the_head_refuses_is_no_byte)
{
    scoped_fixture Fixture f = {0};

    fixture_init(&f, (ServerOptions){0});
    Answer answer = raw_ask(f.port, "POST /word HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    assert_true(answer_is_problem(&answer, 401));
    assert_string_equal(answer_header(&answer, "Connection"), "close");
    answer = raw_ask(f.port, "POST /word HTTP/1.1\r\n" HOST "Content-Length: 9\r\nExpect: 100-continue\r\n\r\n");
    assert_true(answer_is_problem(&answer, 401));
    assert_int_equal(atomic_load(&f.written), 0);
}

TEST(limit_of_the_body_of_a_route)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};

    fixture_init(&f, (ServerOptions){0});
    Answer answer = raw_ask(f.port, "POST /word HTTP/1.1\r\n" HOST "X-Word: swordfish\r\nContent-Length: 11\r\n\r\n");
    assert_true(answer_is_problem(&answer, 413));
    assert_contains(answer.body, "larger than 10 bytes");
    answer = raw_ask(f.port, "POST /word HTTP/1.1\r\n" HOST
                             "X-Word: swordfish\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n[1,2,3\r\n5\r\n");
    assert_true(answer_is_problem(&answer, 413));
    raw_open(&client, f.port);
    raw_send(&client, "POST /word HTTP/1.1\r\n" HOST "X-Word: swordfish\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "a\r\n[123456789\r\n0\r\n\r\n");
    answer = raw_read(&client);
    assert_int_equal(answer.status, 201);
    /* The connection's next request has the limit of its own route. */
    raw_send(&client, "POST /json HTTP/1.1\r\n" HOST "Content-Length: 12\r\n\r\n[1234567890]");
    answer = raw_read(&client);
    assert_int_equal(answer.status, 201);
    assert_int_equal(atomic_load(&f.written), 2);
}

TEST(listen_refuses_bad_addresses_with_a_sentence)
{
    static const struct {
        const char *listen;
        const char *words;
    } rows[] = {
        {"127.0.0.1",       "must be host:port"                },
        {"127.0.0.1:",      "must be host:port"                },
        {"127.0.0.1:x",     "must be host:port"                },
        {"127.0.0.1:65536", "must be host:port"                },
        {"127.0.0.1:-1",    "must be host:port"                },
        {"",                "must be host:port"                },
        {"::1:8080",        "in brackets"                      },
        {"300.0.0.1:80",    "cannot listen on \"300.0.0.1:80\""},
        {"192.0.2.1:0",     "cannot listen on \"192.0.2.1:0\"" },
    };
    Server *server = NULL;
    Error   error;

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_code(ERR_USAGE, server_new(&(ServerOptions){.listen = rows[i].listen}, &server, &error));
        assert_contains(error.text, rows[i].words);
    }
    assert_null(server);
}

TEST(listen_takes_names_and_reports_an_address_in_use)
{
    scoped(server_free) Server *first = NULL, *all = NULL;
    Server                     *second = NULL;
    Error                       error;
    char                        address[64];

    assert_ok(server_new(&(ServerOptions){.listen = "localhost:0"}, &first, &error));
    assert_ok(server_new(&(ServerOptions){.listen = ":0"}, &all, &error));
    Answer answer = raw_ask(server_port(all), "GET / HTTP/1.1\r\n" HOST "\r\n");
    assert_true(answer_is_problem(&answer, 404));
    snprintf(address, sizeof address, "localhost:%d", server_port(first));
    assert_code(ERR_CONFLICT, server_new(&(ServerOptions){.listen = address}, &second, &error));
    assert_contains(error.text, address);
}
