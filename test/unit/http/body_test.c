/*
 * body_test.c - the memory of request bodies: how much all take together, who leaves how much to whom, and that each request gives back
 * what it took, however it ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/metric.h"
#include "http/request_internal.h"
#include "test/harness/test.h"
#include "test/unit/http/fixture.h"
#include "test/unit/http/raw.h"

#define HOST  "Host: localhost\r\n"
#define MIB   ((size_t)1 << 20)
#define BYTES "1048576"
/* With a body of 1 MiB. */
#define HEAD_OF(path, key) \
    "POST " path " HTTP/1.1\r\n" HOST "Authorization: Bearer " key "\r\nContent-Length: " BYTES "\r\n\r\n"
#define CHUNKED_OF(path, key) \
    "POST " path " HTTP/1.1\r\n" HOST "Authorization: Bearer " key "\r\nTransfer-Encoding: chunked\r\n\r\n"
/* Four bodies of 1 MiB, of which one key may have three. */
#define OPTIONS .body_bytes_max = (int)MIB, .bodies_bytes_max = (int)(4 * MIB)

static void bodies_await(int64_t bytes)
{
    for (Deadline d = deadline_in_ms(RAW_WAIT_MS); metric_value(&http_metrics.bodies) != bytes; clock_sleep_ms(1))
        assert_false(deadline_passed(d));
}

static void body_send(Raw *client, size_t size)
{
    char *bytes = malloc(size);

    memset(bytes, 'x', size);
    (void)raw_send_bytes(client, bytes, size); /* the server may refuse the rest */
    free(bytes);
}

static void chunk_send(Raw *client, size_t size)
{
    char line[20];

    snprintf(line, sizeof line, "%zx\r\n", size);
    (void)raw_send(client, line);
    body_send(client, size);
    (void)raw_send(client, "\r\n");
}

/* A client whose body has begun to arrive, or is said to come. */
static Raw *client_begin(const Fixture *f, const char *head)
{
    Raw *client = calloc(1, sizeof *client);

    raw_open(client, f->port);
    raw_send(client, head);
    return client;
}

static void client_end(Raw *client)
{
    raw_done(client);
    free(client);
}

static void assert_refused(Raw *client)
{
    Answer answer = raw_read(client);

    assert_true(answer_is_problem(&answer, 503));
    assert_contains(answer.body, "bodies");
    assert_string_equal(answer_header(&answer, "Connection"), "close");
    assert_true(answer_header(&answer, "Retry-After")[0]);
}

static void assert_taken(Raw *client, const char *body)
{
    Answer answer = raw_read(client);

    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, body);
}

TEST(bodies_of_a_key_leave_a_quarter_of_the_memory_to_others)
{
    scoped_fixture Fixture f = {0};
    Raw                   *held[3], *client;

    fixture_init(&f, (ServerOptions){OPTIONS});
    int64_t shed = metric_value(&http_metrics.bodies_shed);
    for (int i = 0; i < 3; i++)
        held[i] = client_begin(&f, HEAD_OF("/secret-size", "cached"));
    bodies_await(3 * MIB);
    client = client_begin(&f, HEAD_OF("/secret-size", "cached"));
    assert_refused(client);
    client_end(client);
    assert_int_equal(metric_value(&http_metrics.bodies_shed), shed + 1);
    client = client_begin(&f, HEAD_OF("/secret-size", "fresh"));
    body_send(client, MIB);
    assert_taken(client, BYTES);
    client_end(client);
    client = client_begin(&f, "POST /secret-size HTTP/1.1\r\n" HOST
                              "Authorization: Bearer cached\r\nContent-Length: 65536\r\n\r\n");
    body_send(client, 65536); /* a small one is not counted */
    assert_taken(client, "65536");
    client_end(client);
    for (int i = 0; i < 3; i++) { /* those that have a part get the rest of theirs */
        body_send(held[i], MIB);
        assert_taken(held[i], BYTES);
        client_end(held[i]);
    }
    bodies_await(0);
}

TEST(bodies_in_chunks_take_memory_as_they_grow)
{
    scoped_fixture Fixture f = {0};
    Raw                   *held[3], *client;

    fixture_init(&f, (ServerOptions){OPTIONS});
    client = client_begin(&f, CHUNKED_OF("/secret-size", "cached"));
    chunk_send(client, 65536 - 1024);
    (void)raw_send(client, "0\r\n\r\n");
    assert_taken(client, "64512");
    assert_int_equal(metric_value(&http_metrics.bodies), 0);
    for (int i = 0; i < 3; i++) {
        held[i] = client_begin(&f, CHUNKED_OF("/secret-size", "cached"));
        for (int k = 0; k < 10; k++)
            chunk_send(held[i], MIB / 10);
        bodies_await((int64_t)(MIB * (size_t)(i + 1)));
    }
    (void)raw_send(client, CHUNKED_OF("/secret-size", "cached"));
    chunk_send(client, MIB / 2);
    assert_refused(client);
    client_end(client);
    bodies_await(3 * MIB);
    client = client_begin(&f, CHUNKED_OF("/secret-size", "fresh"));
    chunk_send(client, 500000);
    (void)raw_send(client, "0\r\n\r\n");
    assert_taken(client, "500000");
    client_end(client);
    for (int i = 0; i < 3; i++) {
        (void)raw_send(held[i], "0\r\n\r\n");
        assert_taken(held[i], "1048570");
        client_end(held[i]);
    }
    bodies_await(0);
}

/* A suspended request has its body until its response is sent. */
TEST(bodies_of_suspended_requests_count)
{
    scoped_fixture Fixture f = {0};
    Raw                   *held[3], *client;

    fixture_init(&f, (ServerOptions){OPTIONS});
    for (int i = 0; i < 3; i++) {
        held[i] = client_begin(&f, HEAD_OF("/secret-rest", "cached"));
        body_send(held[i], MIB);
        assert_true(fixture_wait_waiting(&f, i + 1));
    }
    assert_int_equal(metric_value(&http_metrics.bodies), 3 * MIB);
    client = client_begin(&f, HEAD_OF("/secret-rest", "cached"));
    assert_refused(client);
    client_end(client);
    client_end(held[0]); /* it has gone, but nobody can say so to what it waits for */
    fixture_open_gate(&f);
    for (int i = 1; i < 3; i++) {
        assert_taken(held[i], "{\"rested\":" BYTES "}");
        client_end(held[i]);
    }
    bodies_await(0);
}

/* What the handler has made of the body may be as large as the body was. */
TEST(bodies_that_were_freed_count_until_the_response)
{
    scoped_fixture Fixture f = {0};
    Raw                   *client;

    fixture_init(&f, (ServerOptions){OPTIONS});
    client = client_begin(&f, HEAD_OF("/secret-rest-freed", "cached"));
    body_send(client, MIB);
    assert_true(fixture_wait_waiting(&f, 1));
    assert_int_equal(metric_value(&http_metrics.bodies), MIB);
    mutex_lock(&f.mutex);
    assert_int_equal(f.resting[0]->body.capacity, 0);
    mutex_unlock(&f.mutex);
    fixture_open_gate(&f);
    assert_taken(client, "{\"rested\":0}");
    bodies_await(0);
    client_end(client);
}

/* Each row is a request that ends in its own way. */
TEST(bodies_are_given_back_however_a_request_ends)
{
    scoped_fixture Fixture f = {0};
    static const struct {
        const char *head, *more;
        size_t      size; /* of what is sent of the body, before `more` */
        int         status;
        bool        chunked;
    } rows[] = {
        {HEAD_OF("/secret-size", "cached"), "", MIB, 200, false},
        {HEAD_OF("/secret-size", "fresh"), "", MIB, 200, false},
        {HEAD_OF("/secret-json", "cached"), "", MIB - 1, 408, false},
        {HEAD_OF("/secret-json", "cached"), "", 0, 408, false},
        {HEAD_OF("/secret-json", "stranger"), "", 0, 401, false},
        {HEAD_OF("/secret-json", "weak"), "", 0, 403, false},
        {HEAD_OF("/secret/x", "cached"), "", 0, 405, false},
        {"POST /secret-json HTTP/1.1\r\n" HOST "Authorization: Bearer cached\r\nContent-Length: 1048577\r\n\r\n", "", 0,
         413, false},
        {"POST /secret-json HTTP/1.1\r\n" HOST
         "Authorization: Bearer cached\r\nContent-Type: a/b\r\nContent-Length: " BYTES "\r\n\r\n",
         "", 0, 415, false},
        {CHUNKED_OF("/secret-size", "cached"), "0\r\n\r\n", MIB, 200, true},
        {CHUNKED_OF("/secret-json", "cached"), "zz\r\n", MIB - 1, 400, true},
        {CHUNKED_OF("/secret-json", "cached"), "2\r\n", MIB - 1, 413, true},
        {CHUNKED_OF("/secret-json", "cached"), "1\r\n", MIB - 1, 408, true},
    };

    fixture_init(&f, (ServerOptions){OPTIONS, .read_ms_max = 300});
    for (size_t i = 0; i < COUNT(rows); i++) {
        Raw *client = client_begin(&f, rows[i].head);

        if (rows[i].chunked)
            chunk_send(client, rows[i].size);
        else
            body_send(client, rows[i].size);
        (void)raw_send(client, rows[i].more);
        Answer answer = raw_read(client);
        assert_int_equal(answer.status, rows[i].status);
        bodies_await(0);
        client_end(client);
    }
}

TEST(bodies_of_clients_that_vanish_are_given_back)
{
    scoped_fixture Fixture f = {0};
    Raw                   *client;

    fixture_init(&f, (ServerOptions){OPTIONS, .executor_threads = 1, .queue_max = 1});
    client = client_begin(&f, HEAD_OF("/secret-json", "cached"));
    body_send(client, 1000);
    bodies_await(MIB);
    client_end(client);
    bodies_await(0);
    client = client_begin(&f, CHUNKED_OF("/secret-json", "cached"));
    chunk_send(client, MIB / 2);
    for (Deadline d = deadline_in_ms(RAW_WAIT_MS); metric_value(&http_metrics.bodies) == 0; clock_sleep_ms(1))
        assert_false(deadline_passed(d));
    client_end(client);
    bodies_await(0);
    /* It sends no more, and may still read. */
    client = client_begin(&f, HEAD_OF("/secret-json", "cached"));
    bodies_await(MIB);
    shutdown(client->fd, SHUT_WR);
    Answer answer = raw_read(client);
    assert_true(answer_is_problem(&answer, 400));
    bodies_await(0);
    client_end(client);
}

/* The queue is full: the body has come and is refused. */
TEST(bodies_of_requests_that_find_no_place_are_given_back)
{
    scoped_fixture Fixture f = {0};
    Raw                   *running, *waiting, *client;

    fixture_init(&f, (ServerOptions){OPTIONS, .executor_threads = 1, .queue_max = 1});
    running = client_begin(&f, "POST /wait HTTP/1.1\r\n" HOST "\r\n");
    assert_true(fixture_wait_waiting(&f, 1));
    waiting = client_begin(&f, HEAD_OF("/secret-size", "cached"));
    body_send(waiting, MIB);
    assert_true(fixture_wait_in_flight(&f, 2));
    client = client_begin(&f, HEAD_OF("/secret-size", "cached"));
    body_send(client, MIB);
    Answer answer = raw_read(client);
    assert_true(answer_is_problem(&answer, 503));
    bodies_await(MIB);
    fixture_open_gate(&f);
    assert_taken(waiting, BYTES);
    bodies_await(0);
    client_end(running);
    client_end(waiting);
    client_end(client);
}

TEST(bodies_of_pipelined_requests_are_counted_one_by_one)
{
    scoped_fixture Fixture f = {0};
    Raw                   *client;

    fixture_init(&f, (ServerOptions){OPTIONS});
    client = client_begin(&f, HEAD_OF("/secret-rest", "cached"));
    body_send(client, MIB);
    raw_send(client, HEAD_OF("/secret-size", "cached"));
    assert_true(fixture_wait_waiting(&f, 1));
    assert_int_equal(metric_value(&http_metrics.bodies), MIB);
    fixture_open_gate(&f);
    assert_taken(client, "{\"rested\":" BYTES "}");
    body_send(client, MIB);
    assert_taken(client, BYTES);
    bodies_await(0);
    client_end(client);
}

TEST(bodies_that_arrive_while_the_server_ends_are_given_back)
{
    Fixture f = {0};
    Raw    *client, *resting;

    fixture_init(&f, (ServerOptions){OPTIONS});
    client  = client_begin(&f, HEAD_OF("/secret-json", "cached"));
    resting = client_begin(&f, HEAD_OF("/secret-rest", "cached"));
    body_send(resting, MIB);
    assert_true(fixture_wait_waiting(&f, 1));
    bodies_await(2 * MIB);
    fixture_done(&f);
    assert_int_equal(metric_value(&http_metrics.bodies), 0);
    client_end(client);
    client_end(resting);
}
