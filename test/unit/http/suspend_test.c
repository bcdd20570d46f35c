/*
 * suspend_test.c - suspended requests: no thread waits for them, each is answered once, and none is left behind.
 */
#include <stdlib.h>
#include <string.h>

#include "test/harness/test.h"
#include "test/unit/http/fixture.h"
#include "test/unit/http/raw.h"

#define HOST       "Host: localhost\r\n"
#define RESTING    100
#define REST(size) "POST /rest HTTP/1.1\r\n" HOST "Content-Length: " #size "\r\n\r\n"

/* A client whose request is suspended. */
static void client_rest(Raw *client, Fixture *fixture, const char *request)
{
    raw_open(client, fixture->port);
    raw_send(client, request);
    assert_true(fixture_wait_waiting(fixture, 1));
}

TEST(suspend_a_hundred_hold_no_thread)
{
    scoped_fixture Fixture f       = {0};
    Raw                   *clients = calloc(RESTING, sizeof *clients);

    fixture_init(&f, (ServerOptions){.executor_threads = 1, .queue_max = 1});
    for (int i = 0; i < RESTING; i++) {
        raw_open(&clients[i], f.port);
        raw_send(&clients[i], REST(2) "{}");
    }
    assert_true(fixture_wait_waiting(&f, RESTING));
    assert_true(fixture_wait_in_flight(&f, RESTING));
    assert_int_equal(raw_ask(f.port, "GET /echo/ann HTTP/1.1\r\n" HOST "\r\n").status, 200);
    fixture_open_gate(&f);
    for (int i = 0; i < RESTING; i++) {
        Answer answer = raw_read(&clients[i]);

        assert_int_equal(answer.status, 200);
        assert_string_equal(answer.body, "{\"rested\":2}");
        raw_done(&clients[i]);
    }
    assert_true(fixture_wait_in_flight(&f, 0));
    assert_int_equal(atomic_load(&f.ended), RESTING);
    free(clients);
}

TEST(suspend_may_be_resumed_before_the_handler_returns)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};

    fixture_init(&f, (ServerOptions){0});
    fixture_open_gate(&f);
    raw_open(&client, f.port);
    for (int i = 0; i < 3; i++) { /* the connection is kept */
        raw_send(&client, REST(2) "{}");
        assert_string_equal(raw_read(&client).body, "{\"rested\":2}");
    }
    assert_int_equal(atomic_load(&f.ended), 3);
}

TEST(suspend_on_resume_may_fail)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};

    fixture_init(&f, (ServerOptions){0});
    client_rest(&client, &f, REST(6) "\"fail\"");
    fixture_open_gate(&f);
    Answer answer = raw_read(&client);
    assert_true(answer_is_problem(&answer, 409));
    assert_contains(answer.body, "it had to fail");
}

/* A large body is read by an executor; that one suspends its request as well. */
TEST(suspend_works_from_an_executor)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};
    char                  *body   = malloc(100000);

    fixture_init(&f, (ServerOptions){0});
    memset(body, '1', 100000);
    raw_open(&client, f.port);
    for (int i = 0; i < 2; i++) { /* the gate is closed, then open */
        raw_send(&client, REST(100000));
        raw_send_bytes(&client, body, 100000);
        if (i == 0) {
            assert_true(fixture_wait_waiting(&f, 1));
            fixture_open_gate(&f);
        }
        assert_string_equal(raw_read(&client).body, "{\"rested\":100000}");
    }
    free(body);
}

TEST(suspend_resumes_also_for_a_client_that_has_gone)
{
    scoped_fixture Fixture f = {0};
    Raw                    client;

    fixture_init(&f, (ServerOptions){0});
    client_rest(&client, &f, REST(2) "{}");
    raw_done(&client);
    fixture_open_gate(&f);
    assert_true(fixture_wait_in_flight(&f, 0));
    assert_int_equal(atomic_load(&f.ended), 1);
}

TEST(suspend_keeps_a_drain_waiting)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};

    fixture_init(&f, (ServerOptions){0});
    client_rest(&client, &f, REST(2) "{}");
    assert_false(server_drain(f.server, deadline_in_ms(20)));
    fixture_open_gate(&f);
    Answer answer = raw_read(&client);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer_header(&answer, "Connection"), "close");
    assert_true(server_drain(f.server, deadline_in_ms(RAW_WAIT_MS)));
}

TEST(suspend_on_resume_that_may_wait_holds_up_no_other_connection)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};

    fixture_init(&f, (ServerOptions){.network_threads = 1, .executor_threads = 1});
    raw_open(&client, f.port);
    for (int i = 0; i < 2; i++) { /* the gate is closed, then open */
        raw_send(&client, "POST /rest-wait HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n{}");
        assert_true(fixture_wait_waiting(&f, i + 1));
        assert_int_equal(raw_ask(f.port, "GET /live HTTP/1.1\r\n" HOST "\r\n").status, 200);
        fixture_open_gate(&f);
        assert_string_equal(raw_read(&client).body, "{\"waited\":true}");
    }
    assert_true(fixture_wait_in_flight(&f, 0));
}

#define WATCH "POST /watch HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n{}"

TEST(suspend_reports_a_client_that_disconnected)
{
    scoped_fixture Fixture f = {0};
    Raw                    client;

    fixture_init(&f, (ServerOptions){0});
    client_rest(&client, &f, WATCH);
    raw_done(&client);
    assert_true(fixture_wait_for(&f.gone, 1));
    assert_int_equal(atomic_load(&f.ended), 0);
    fixture_open_gate(&f);
    assert_true(fixture_wait_for(&f.undelivered, 1));
    assert_int_equal(atomic_load(&f.ended), 1);
    assert_int_equal(atomic_load(&f.delivered), 0);
}

/* What it sends ahead hides its end from a server that only waits for bytes. */
TEST(suspend_reports_a_client_that_disconnected_after_pipelining)
{
    scoped_fixture Fixture f = {0};
    Raw                    client;

    fixture_init(&f, (ServerOptions){0});
    client_rest(&client, &f, WATCH);
    raw_send(&client, WATCH);
    raw_done(&client);
    assert_true(fixture_wait_for(&f.gone, 1));
    fixture_open_gate(&f);
    assert_true(fixture_wait_for(&f.undelivered, 1));
}

TEST(suspend_reports_that_the_answer_was_delivered)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};

    fixture_init(&f, (ServerOptions){0});
    client_rest(&client, &f, WATCH);
    fixture_open_gate(&f);
    assert_int_equal(raw_read(&client).status, 200);
    assert_true(fixture_wait_for(&f.delivered, 1));
    assert_int_equal(atomic_load(&f.gone), 0);
    assert_int_equal(atomic_load(&f.undelivered), 0);
}

static void *free_body(void *context)
{
    Fixture *fixture = context;

    server_free(take(fixture->server));
    return NULL;
}

/* The party that will resume a request holds it: the server must not be freed before. */
TEST(suspend_the_server_does_not_end_before_a_request_was_resumed)
{
    scoped_fixture Fixture f    = {0};
    scoped_raw Raw         idle = {0}, client = {0};

    fixture_init(&f, (ServerOptions){.network_threads = 2});
    raw_open(&idle, f.port); /* goes to the first loop, the next one to the second */
    client_rest(&client, &f, REST(2) "{}");
    pthread_t thread = thread_start("test-free", free_body, &f);
    assert_true(raw_is_closed(&idle)); /* the first loop has ended */
    assert_int_equal(atomic_load(&f.ended), 0);
    fixture_open_gate(&f);
    thread_join(thread);
    assert_int_equal(atomic_load(&f.ended), 1);
}
