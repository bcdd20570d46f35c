/*
 * drain_test.c - the end: what is under way is answered, what hangs is given up in time.
 */
#include <stdlib.h>
#include <string.h>

#include "test/harness/test.h"
#include "test/unit/http/fixture.h"
#include "test/unit/http/raw.h"

#define HOST    "Host: localhost\r\n"
#define RUNNING 100

typedef struct {
    Server  *server;
    Deadline deadline;
    bool     drained;
} Drain;

static void *drain_body(void *context)
{
    Drain *drain = context;

    drain->drained = server_drain(drain->server, drain->deadline);
    return NULL;
}

/* true once the port refuses connections. */
static bool wait_refused(int port)
{
    for (Deadline deadline = deadline_in_ms(RAW_WAIT_MS); !deadline_passed(deadline); clock_sleep_ms(1)) {
        scoped_raw Raw client = {0};

        raw_open(&client, port);
        if (client.fd < 0)
            return true;
    }
    return false;
}

TEST(drain_answers_a_hundred_running_requests)
{
    scoped_fixture Fixture f       = {0};
    Raw                   *clients = calloc(RUNNING, sizeof *clients);
    scoped_raw Raw         idle = {0}, half = {0};

    fixture_init(&f, (ServerOptions){0});
    Drain drain = {f.server, deadline_in_ms(RAW_WAIT_MS)};
    for (int i = 0; i < RUNNING; i++) {
        raw_open(&clients[i], f.port);
        assert_true(raw_send(&clients[i], "POST /wait HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n{}"));
    }
    assert_true(fixture_wait_in_flight(&f, RUNNING));
    raw_open(&idle, f.port);
    raw_open(&half, f.port);
    raw_send(&half, "GET /live HTTP/1.1\r\n" HOST "\r\nGET /li");
    Answer first = raw_read(&half);
    assert_int_equal(first.status, 200);

    pthread_t thread = thread_start("test-drain", drain_body, &drain);
    assert_true(raw_is_closed(&idle));
    assert_true(wait_refused(f.port));
    assert_int_equal(server_in_flight(f.server), RUNNING);
    raw_send(&half, "ve HTTP/1.1\r\n" HOST "\r\n"); /* had begun before the drain */
    Answer second = raw_read(&half);
    assert_int_equal(second.status, 200);
    fixture_open_gate(&f);
    for (int i = 0; i < RUNNING; i++) {
        Answer answer = raw_read(&clients[i]);

        assert_int_equal(answer.status, 200);
        assert_string_equal(answer_header(&answer, "Connection"), "close");
        assert_true(raw_is_closed(&clients[i]));
        raw_done(&clients[i]);
    }
    thread_join(thread);
    assert_true(drain.drained);
    assert_int_equal(server_in_flight(f.server), 0);
    free(clients);
}

TEST(drain_gives_up_at_its_deadline)
{
    scoped_fixture Fixture f       = {0};
    scoped_raw Raw         hanging = {0};

    fixture_init(&f, (ServerOptions){0});
    raw_open(&hanging, f.port);
    raw_send(&hanging, "POST /wait HTTP/1.1\r\n" HOST "\r\n");
    assert_true(fixture_wait_waiting(&f, 1));
    Mono began = clock_mono();
    assert_false(server_drain(f.server, deadline_in_ms(100)));
    int64_t took = mono_ms_between(began, clock_mono());
    assert_true(took >= 99 && took < 5000 + test_stalled_ms());
    assert_int_equal(server_in_flight(f.server), 1);
}

TEST(drain_of_an_idle_server_is_immediate)
{
    scoped_fixture Fixture f = {0};

    fixture_init(&f, (ServerOptions){0});
    assert_true(server_drain(f.server, deadline_in_ms(RAW_WAIT_MS)));
    assert_true(server_drain(f.server, deadline_in_ms(RAW_WAIT_MS))); /* twice does no harm */
}

typedef struct {
    int        port;
    atomic_int answered, cut;
} Flood;

/* Ask on a kept connection until it closes: an answer is whole or there is none. */
static void *flood_body(void *context)
{
    Flood *flood = context;

    for (;;) {
        scoped_raw Raw client = {0};

        raw_open(&client, flood->port);
        if (client.fd < 0)
            return NULL;
        for (;;) {
            if (!raw_send(&client, "GET /echo/x HTTP/1.1\r\n" HOST "\r\n"))
                break;
            Answer answer = raw_read(&client);
            if (answer.status == 0)
                break;
            atomic_fetch_add(answer.status == 200 ? &flood->answered : &flood->cut, 1);
        }
    }
}

TEST(drain_under_load_cuts_no_answer)
{
    scoped_fixture Fixture f = {0};
    pthread_t              threads[8];

    fixture_init(&f, (ServerOptions){0});
    Flood flood = {.port = f.port};
    for (size_t i = 0; i < COUNT(threads); i++)
        threads[i] = thread_start("test-flood", flood_body, &flood);
    for (Deadline d = deadline_in_ms(RAW_WAIT_MS); atomic_load(&flood.answered) < 200;) {
        assert_false(deadline_passed(d));
        clock_sleep_ms(1);
    }
    assert_true(server_drain(f.server, deadline_in_ms(RAW_WAIT_MS)));
    for (size_t i = 0; i < COUNT(threads); i++)
        thread_join(threads[i]);
    assert_int_equal(atomic_load(&flood.cut), 0);
}

/* Requests come until the very end: what the executor no longer takes is refused, and nothing is touched after it is
 * freed. Many short lives, because the moment in question is short. */
TEST(end_without_a_drain_under_load)
{
    for (int life = 0; life < 30; life++) {
        Fixture   f;
        pthread_t threads[8];

        fixture_init(&f, (ServerOptions){.executor_threads = 2});
        Flood flood = {.port = f.port};
        for (size_t i = 0; i < COUNT(threads); i++)
            threads[i] = thread_start("test-flood", flood_body, &flood);
        for (Deadline d = deadline_in_ms(RAW_WAIT_MS); atomic_load(&flood.answered) < 20; clock_sleep_ms(1))
            assert_false(deadline_passed(d));
        fixture_done(&f);
        for (size_t i = 0; i < COUNT(threads); i++)
            thread_join(threads[i]);
    }
}
