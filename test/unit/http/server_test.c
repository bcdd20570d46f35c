/*
 * server_test.c - the server over real sockets: routing, tokens, bodies, framing.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "http/metric.h"
#include "test/harness/test.h"
#include "test/unit/http/fixture.h"
#include "test/unit/http/raw.h"

#define HOST "Host: localhost\r\n"

TEST(server_answers_routes)
{
    scoped_fixture Fixture f = {0};
    static const struct {
        const char *target;
        int         status;
        const char *body;
    } rows[] = {
        {"/live",                                    200, "{\"live\":true}"                  },
        {"/echo/ann",                                200, "name=ann limit=7"                 },
        {"/echo/ann?limit=9",                        200, "name=ann limit=9"                 },
        {"/echo/literal",                            200, "literal"                          },
        {"/echo/%6citeral",                          200, "literal"                          },
        {"/echo/a%2Fb%20c+d",                        200, "name=a/b c+d"                     },
        {"/echo/%C3%A9?li%6Dit=%31",                 200, "name=\xc3\xa9 limit=1"            },
        {"http://localhost/echo/x",                  200, "name=x"                           },
        {"/live?",                                   200, "{\"live\":true}"                  },
        {"/",                                        404, "no such path"                     },
        {"http://localhost",                         404, "no such path"                     },
        {"/echo",                                    404, "no such path"                     },
        {"/echo/",                                   404, "no such path"                     },
        {"/live/",                                   404, "no such path"                     },
        {"//live",                                   404, "no such path"                     },
        {"/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", 404, "no such path"                     },
        {"live",                                     400, "begin with"                       },
        {"*",                                        400, "begin with"                       },
        {"/live#top",                                400, "fragment"                         },
        {"/live?a#top",                              400, "fragment"                         },
        {"/live#top?a",                              400, "fragment"                         },
        {"http://localhost#top",                     400, "fragment"                         },
        {"http://localhost?x=/live",                 404, "no such path"                     },
        {"/echo/%",                                  400, "path has a"                       },
        {"/echo/%4",                                 400, "path has a"                       },
        {"/echo/%zz",                                400, "path has a"                       },
        {"/echo/%00",                                400, "path is not UTF-8"                },
        {"/echo/%c3%28",                             400, "path is not UTF-8"                },
        {"/echo/ann?limit=%",                        400, "query has a"                      },
        {"/echo/ann?limit=%ff",                      400, "query is not UTF-8"               },
        {"/echo/ann?limit=1&limit=1",                400, "\\\"limit\\\" is given twice"     },
        {"/echo/ann?limt=1",                         400, "did you mean \\\"limit\\\"?"      },
        {"/live?x=1",                                400, "unknown query parameter \\\"x\\\""},
        {"/echo/ann?limit=0",                        400, "from 1 to 100"                    },
        {"/echo/ann?limit=101",                      400, "from 1 to 100"                    },
        {"/echo/ann?limit=",                         400, "from 1 to 100"                    },
        {"/echo/ann?limit=+5",                       400, "from 1 to 100"                    },
        {"/echo/ann?limit=5x",                       400, "from 1 to 100"                    },
        {"/echo/ann?limit=99999999999999999999",     400, "from 1 to 100"                    },
        {"/wordless",                                409, "conflicts with the state"         },
    };
    char request[512];

    fixture_init(&f, (ServerOptions){0});
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n" HOST "\r\n", rows[i].target);
        Answer answer = raw_ask(f.port, request);

        if (answer.status != rows[i].status)
            fprintf(stderr, "%s gave %d\n", rows[i].target, answer.status);
        assert_int_equal(answer.status, rows[i].status);
        assert_contains(answer.body, rows[i].body);
        if (rows[i].status >= 400)
            assert_true(answer_is_problem(&answer, rows[i].status));
    }
}

TEST(server_names_the_methods_of_a_path)
{
    scoped_fixture Fixture   f         = {0};
    static const char *const methods[] = {"POST", "PUT", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "BREW"};
    char                     request[128];

    fixture_init(&f, (ServerOptions){0});
    for (size_t i = 0; i < COUNT(methods); i++) {
        snprintf(request, sizeof request, "%s /echo/x HTTP/1.1\r\n" HOST "\r\n", methods[i]);
        Answer answer = raw_ask(f.port, request);

        assert_true(answer_is_problem(&answer, 405));
        assert_string_equal(answer_header(&answer, "Allow"), "GET, HEAD, DELETE");
    }
}

TEST(server_checks_tokens_and_scopes)
{
    scoped_fixture Fixture f = {0};
    static const struct {
        const char *header;
        int         status;
        const char *body;
    } rows[] = {
        {"",                                   401, "Authorization: Bearer TOKEN"},
        {"Authorization: Bearer\r\n",          401, "Authorization: Bearer TOKEN"},
        {"Authorization: Basic Y2FjaGVk\r\n",  401, "Authorization: Bearer TOKEN"},
        {"Authorization: Bearer a b\r\n",      401, "Authorization: Bearer TOKEN"},
        {"Authorization: Bearer wrong\r\n",    401, "no such token"              },
        {"Authorization: Bearer weak\r\n",     403, "must have the scope wallet" },
        {"Authorization: Bearer cached\r\n",   200, "by=cached-key"              },
        {"authorization: bearer cached\r\n",   200, "by=cached-key"              },
        {"Authorization: Bearer fresh\r\n",    200, "by=fresh-key"               },
        {"Authorization: Bearer stranger\r\n", 401, "no such token"              },
    };
    static const char *const paths[] = {"/secret/x", "/secret-at-once/x"};
    char                     request[256];

    fixture_init(&f, (ServerOptions){0});
    for (size_t p = 0; p < COUNT(paths); p++)
        for (size_t i = 0; i < COUNT(rows); i++) {
            snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n" HOST "%s\r\n", paths[p], rows[i].header);
            Answer answer = raw_ask(f.port, request);

            assert_int_equal(answer.status, rows[i].status);
            assert_contains(answer.body, rows[i].body);
            if (rows[i].status >= 400)
                assert_true(answer_is_problem(&answer, rows[i].status));
        }
}

TEST(server_refuses_an_unauthenticated_request_before_reading_the_body)
{
    scoped_fixture Fixture f = {0};

    static const char *const tokens[] = {"", "Authorization: Bearer wrong\r\n", "Authorization: Bearer stranger\r\n"};
    static const char *const frames[] = {"Content-Length: 1000000\r\n", "Transfer-Encoding: chunked\r\n",
                                         "Content-Length: 1000000\r\nExpect: 100-continue\r\n"};
    char                     request[256];

    fixture_init(&f, (ServerOptions){0});
    for (size_t t = 0; t < COUNT(tokens); t++)
        for (size_t i = 0; i < COUNT(frames); i++) {
            snprintf(request, sizeof request, "POST /secret-json HTTP/1.1\r\n" HOST "%s%s\r\n", tokens[t], frames[i]);
            Answer answer = raw_ask(f.port, request);

            assert_true(answer_is_problem(&answer, 401));
            assert_string_equal(answer_header(&answer, "Connection"), "close");
        }
    assert_true(fixture_wait_in_flight(&f, 0));
}

/* The body comes before, while and after the token is looked up. */
TEST(server_reads_the_body_once_the_token_is_known)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};
    enum { SIZE = 1000000 };
    char *body = malloc(SIZE);

    fixture_init(&f, (ServerOptions){0});
    raw_open(&client, f.port);
    memset(body, ' ', SIZE);
    raw_send(&client,
             "POST /secret-json HTTP/1.1\r\n" HOST "Authorization: Bearer fresh\r\nContent-Length: 2\r\n\r\n{}");
    Answer answer = raw_read(&client);
    assert_string_equal(answer.body, "{}");

    raw_send(&client, "POST /secret-json HTTP/1.1\r\n" HOST
                      "Authorization: Bearer fresh\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    answer = raw_read_bodiless(&client);
    assert_int_equal(answer.status, 100);
    raw_send(&client, "[]");
    answer = raw_read(&client);
    assert_string_equal(answer.body, "[]");

    raw_send(&client,
             "POST /secret-size HTTP/1.1\r\n" HOST "Authorization: Bearer fresh\r\nContent-Length: 1000000\r\n\r\n");
    assert_true(raw_send_bytes(&client, body, SIZE));
    answer = raw_read(&client);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "1000000");
    free(body);
}

TEST(server_takes_json_bodies)
{
    scoped_fixture Fixture f = {0};
    static const struct {
        const char *path, *header;
        int         status;
    } rows[] = {
        {"/json",  "",                                                      201},
        {"/json",  "Content-Type: application/json\r\n",                    201},
        {"/json",  "Content-Type: Application/JSON; charset=UTF-8\r\n",     201},
        {"/json",  "Content-Type: application/json;charset=\"utf-8\"\r\n",  201},
        {"/json",  "Content-Type: application/json;\r\n",                   201},
        {"/json",  "Content-Type: application/json ; ;charset=utf-8 ;\r\n", 201},
        {"/json",  "Content-Type: application/json xcharset=utf-8\r\n",     415},
        {"/json",  "Content-Type: application/json charset=utf-8\r\n",      415},
        {"/json",  "Content-Type: application/json; charset=utf-8 x\r\n",   415},
        {"/json",  "Content-Type: application/json; charset=latin1\r\n",    415},
        {"/json",  "Content-Type: application/jsonp\r\n",                   415},
        {"/json",  "Content-Type: text/plain\r\n",                          415},
        {"/json",  "Content-Type: application/x-www-form-urlencoded\r\n",   201},
        {"/json",  "Content-Type:\r\n",                                     415},
        {"/hurry", "",                                                      400},
    };
    char request[256];

    fixture_init(&f, (ServerOptions){0});
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(request, sizeof request, "POST %s HTTP/1.1\r\n" HOST "%sContent-Length: 7\r\n\r\n{\"a\":1}",
                 rows[i].path, rows[i].header);
        Answer answer = raw_ask(f.port, request);

        assert_int_equal(answer.status, rows[i].status);
        if (rows[i].status == 201) {
            assert_string_equal(answer.body, "{\"a\":1}");
            assert_string_equal(answer_header(&answer, "Pawl-Size"), "7");
        }
    }
    assert_int_equal(atomic_load(&f.written), 7);
    Answer empty = raw_ask(f.port, "POST /json HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n");
    assert_int_equal(empty.status, 201);
    assert_string_equal(empty.body, "");
}

TEST(server_decodes_chunked_bodies)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};

    fixture_init(&f, (ServerOptions){0});
    raw_open(&client, f.port);
    for (int i = 0; i < 2; i++) { /* the second one shows that the first ended where it should */
        raw_send(&client, "POST /json HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                          "3\r\n{\"a\r\n4;x=y\r\n\":1}\r\n0\r\nX-Trailer: 1\r\n\r\n");
        Answer answer = raw_read(&client);

        assert_int_equal(answer.status, 201);
        assert_string_equal(answer.body, "{\"a\":1}");
    }
    Answer none = raw_ask(f.port, "DELETE /echo/x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    assert_int_equal(none.status, 200);
    none = raw_ask(f.port, "DELETE /echo/x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n");
    assert_true(answer_is_problem(&none, 400));
}

TEST(server_reads_requests_byte_by_byte)
{
    scoped_fixture Fixture f         = {0};
    scoped_raw Raw         client    = {0};
    static const char      request[] = "POST /json HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                                       "3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n"
                                       "POST /json HTTP/1.1\r\n" HOST "Content-Length: 7\r\n\r\n{\"b\":2}";

    fixture_init(&f, (ServerOptions){0});
    raw_open(&client, f.port);
    for (size_t i = 0; i < sizeof request - 1; i++)
        assert_true(raw_send_bytes(&client, request + i, 1));
    Answer first = raw_read(&client), second = raw_read(&client);
    assert_string_equal(first.body, "{\"a\":1}");
    assert_string_equal(second.body, "{\"b\":2}");
}

TEST(server_answers_pipelined_requests_in_order)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};
    char                   expected[64];
    Text                   requests;

    fixture_init(&f, (ServerOptions){0});
    raw_open(&client, f.port);
    text_init(&requests, NULL, TEXT_MAX_BODY);
    for (int i = 0; i < 200; i++) /* queued, at once, with a body: in turn */
        text_print(&requests,
                   "GET /echo/%d HTTP/1.1\r\n" HOST "\r\nGET /live HTTP/1.1\r\n" HOST "\r\n"
                   "POST /json HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\n%03d",
                   i, i);
    assert_true(raw_send(&client, text_string(&requests)));
    for (int i = 0; i < 200; i++) {
        Answer echo = raw_read(&client), live = raw_read(&client), json = raw_read(&client);

        snprintf(expected, sizeof expected, "name=%d limit=7 by=", i);
        assert_string_equal(echo.body, expected);
        assert_string_equal(live.body, "{\"live\":true}");
        snprintf(expected, sizeof expected, "%03d", i);
        assert_string_equal(json.body, expected);
    }
    text_done(&requests);
}

TEST(server_keeps_and_closes_connections)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};

    fixture_init(&f, (ServerOptions){0});
    raw_open(&client, f.port);
    raw_send(&client, "GET /live HTTP/1.1\r\n" HOST "\r\n");
    Answer answer = raw_read(&client);
    assert_string_equal(answer_header(&answer, "Connection"), "");
    raw_send(&client, "GET /nowhere HTTP/1.1\r\n" HOST "\r\n");
    answer = raw_read(&client);
    assert_true(answer_is_problem(&answer, 404));
    assert_string_equal(answer_header(&answer, "Connection"), "");
    raw_send(&client, "GET /live HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    answer = raw_read(&client);
    assert_string_equal(answer_header(&answer, "Connection"), "close");
    assert_true(raw_is_closed(&client));

    raw_done(&client);
    raw_open(&client, f.port);
    raw_send(&client, "GET /live HTTP/1.0\r\n\r\n");
    answer = raw_read(&client);
    assert_int_equal(answer.status, 200);
    assert_true(raw_is_closed(&client));
}

TEST(server_answers_head_without_a_body)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};

    fixture_init(&f, (ServerOptions){0});
    raw_open(&client, f.port);
    raw_send(&client, "HEAD /live HTTP/1.1\r\n" HOST "\r\nHEAD /nowhere HTTP/1.1\r\n" HOST
                      "\r\nGET /live HTTP/1.1\r\n" HOST "\r\n");
    Answer head = raw_read_bodiless(&client), missing = raw_read_bodiless(&client), get = raw_read(&client);
    assert_int_equal(head.status, 200);
    assert_string_equal(answer_header(&head, "Content-Length"), "13");
    assert_int_equal(missing.status, 404);
    assert_string_equal(get.body, "{\"live\":true}");
}

TEST(server_says_continue_once_the_head_is_good)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};

    fixture_init(&f, (ServerOptions){.body_bytes_max = 100});
    raw_open(&client, f.port);
    raw_send(&client, "POST /json HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    Answer go_on = raw_read_bodiless(&client);
    assert_int_equal(go_on.status, 100);
    raw_send(&client, "{}");
    Answer answer = raw_read(&client);
    assert_string_equal(answer.body, "{}");

    raw_send(&client, "POST /json HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 101\r\n\r\n");
    answer = raw_read(&client);
    assert_true(answer_is_problem(&answer, 413));
}

TEST(server_keeps_internal_details_to_itself)
{
    scoped_fixture Fixture f = {0};

    fixture_init(&f, (ServerOptions){0});
    Answer answer = raw_ask(f.port, "GET /internal HTTP/1.1\r\n" HOST "\r\n");
    assert_true(answer_is_problem(&answer, 500));
    assert_null(strstr(answer.body, "swordfish"));
    assert_null(strstr(answer.body, "half"));
}

TEST(server_logs_internal_errors_with_the_request_id)
{
    int  ends[2];
    char line[2048] = "";

    assert_int_equal(pipe(ends), 0);
    log_open(LOG_INFO, LOG_TEXT, ends[1]);
    {
        scoped_fixture Fixture f = {0};

        fixture_init(&f, (ServerOptions){0});
        raw_ask(f.port, "GET /internal HTTP/1.1\r\n" HOST "X-Request-Id: find-me\r\n\r\n");
    }
    log_open(LOG_OFF, LOG_TEXT, STDERR_FILENO);
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    close(ends[0]);
    close(ends[1]);
    assert_contains(line, "swordfish");
    assert_contains(line, "find-me");
}

TEST(server_reads_nothing_behind_an_ambiguous_request)
{
    scoped_fixture Fixture   f        = {0};
    static const char *const frames[] = {
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "Content-Length: 0\r\nContent-Length: 44\r\n\r\n",
        "Content-Length: 0\r\n Content-Length: 44\r\n\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0;\n\r\n\r\n",
    };
    char request[512];

    fixture_init(&f, (ServerOptions){0});
    for (size_t i = 0; i < COUNT(frames); i++) {
        scoped_raw Raw client = {0};

        snprintf(request, sizeof request, "POST /json HTTP/1.1\r\n" HOST "%sGET /live HTTP/1.1\r\n" HOST "\r\n",
                 frames[i]);
        raw_open(&client, f.port);
        raw_send(&client, request);
        Answer answer = raw_read(&client);

        assert_true(answer_is_problem(&answer, 400));
        assert_true(raw_is_closed(&client)); /* and not a word about /live */
    }
    assert_int_equal(atomic_load(&f.written), 0);
}

TEST(server_echoes_sane_request_ids)
{
    scoped_fixture Fixture f = {0};
    static const struct {
        const char *id;
        bool        taken;
    } rows[] = {
        {"abc-DEF_1.2",                                                       true },
        {"0123456789012345678901234567890123456789012345678901234567890123",  true },
        {"01234567890123456789012345678901234567890123456789012345678901234", false},
        {"",                                                                  false},
        {"a b",                                                               false},
        {"a\"b",                                                              false},
        {"\xc3\xa9",                                                          false},
    };
    char request[256], last[128] = "";

    fixture_init(&f, (ServerOptions){0});
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(request, sizeof request, "GET /id HTTP/1.1\r\n" HOST "X-Request-Id: %s\r\n\r\n", rows[i].id);
        Answer answer = raw_ask(f.port, request);

        assert_int_equal(answer.status, 200);
        assert_string_equal(answer.body, answer_header(&answer, "X-Request-Id"));
        assert_int_equal(strcmp(answer.body, rows[i].id) == 0, rows[i].taken);
        assert_true(strlen(answer.body) > 0 && strcmp(answer.body, last) != 0);
        snprintf(last, sizeof last, "%.*s", (int)sizeof last - 1, answer.body);
    }
}

TEST(server_answers_a_client_that_stopped_sending)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};

    fixture_init(&f, (ServerOptions){0});
    raw_open(&client, f.port);
    raw_send(&client, "GET /echo/x HTTP/1.1\r\n" HOST "\r\n");
    shutdown(client.fd, SHUT_WR);
    Answer answer = raw_read(&client);
    assert_int_equal(answer.status, 200);
    assert_true(raw_is_closed(&client));

    raw_done(&client);
    raw_open(&client, f.port);
    raw_send(&client, "GET /echo/x HTTP/1.1\r\nHos");
    shutdown(client.fd, SHUT_WR);
    answer = raw_read(&client);
    assert_true(answer_is_problem(&answer, 400));
    assert_contains(answer.body, "ended early");
}

TEST(server_survives_clients_that_hang_up_while_waiting)
{
    scoped_fixture Fixture f = {0};

    fixture_init(&f, (ServerOptions){.executor_threads = 4});
    for (int i = 0; i < 4; i++) {
        scoped_raw Raw client = {0};
        struct linger  reset  = {1, 0};

        raw_open(&client, f.port);
        raw_send(&client, "POST /wait HTTP/1.1\r\n" HOST "\r\n");
        assert_true(fixture_wait_waiting(&f, i + 1));
        if (i % 2) /* half of them with a reset */
            setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    Answer live = raw_ask(f.port, "GET /live HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(live.status, 200);
    fixture_open_gate(&f);
    assert_true(fixture_wait_in_flight(&f, 0));
}

/* A child between fork and exec keeps every socket open: closing ours alone does not take it out of epoll, and what
 * epoll reports then is a connection that is freed. The sanitizer sees it. */
TEST(server_forgets_a_connection_that_a_child_still_holds)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};
    int                    gate[2], status = -1;

    fixture_init(&f, (ServerOptions){0});
    assert_int_equal(pipe(gate), 0);
    raw_open(&client, f.port);
    raw_send(&client, "GET /live HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(raw_read(&client).status, 200); /* so the server has taken the connection */
    pid_t child = fork();
    if (child == 0) {
        close(gate[1]);
        _exit(read(gate[0], &status, 1) == 0 ? 0 : 1);
    }
    shutdown(client.fd, SHUT_RDWR); /* the child holds this end as well: a close would not be heard */
    for (int i = 0; i < 20; i++)
        assert_int_equal(raw_ask(f.port, "GET /live HTTP/1.1\r\n" HOST "\r\n").status, 200);
    close(gate[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(gate[0]);
}

TEST(server_sends_answers_larger_than_any_buffer)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};
    static char            bytes[1 << 16];
    size_t                 total = 0;
    ssize_t                count;

    fixture_init(&f, (ServerOptions){0});
    raw_open(&client, f.port);
    raw_send(&client, "GET /large HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    while ((count = recv(client.fd, bytes, sizeof bytes, 0)) > 0)
        total += (size_t)count;
    assert_true(total > LARGE_BYTES && total < LARGE_BYTES + 1000);
}

TEST(server_counts_what_it_answers)
{
    scoped_fixture Fixture f = {0};

    fixture_init(&f, (ServerOptions){0});
    int64_t good = metric_value(&http_metrics.status_2xx), bad = metric_value(&http_metrics.status_4xx);
    raw_ask(f.port, "GET /live HTTP/1.1\r\n" HOST "\r\n");
    raw_ask(f.port, "GET /nowhere HTTP/1.1\r\n" HOST "\r\n");
    raw_ask(f.port, "nonsense\r\n");
    assert_int_equal(metric_value(&http_metrics.status_2xx), good + 1);
    assert_int_equal(metric_value(&http_metrics.status_4xx), bad + 2);
}
