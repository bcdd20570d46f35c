/*
 * client_test.c - the client against a real server on loopback: slow, huge, cut off, hostile, redirecting.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fault.h"
#include "base/text.h"
#include "client/client.h"
#include "client/metric.h"
#include "test/harness/test.h"
#include "test/unit/client/names.h"
#include "test/unit/client/receiver.h"

#define SOON_MS    60000 /* far beyond what any answer takes */
#define SHORT_MS   2000  /* for what never answers */
#define OK_EMPTY   "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
#define AWAIT_S    30
#define BODY_LIMIT 1000

/* Wait for a fact, within reason. */
#define AWAIT(fact)                                       \
    do {                                                  \
        Deadline until_ = deadline_in_ms(AWAIT_S * 1000); \
        while (!(fact) && !deadline_passed(until_))       \
            clock_sleep_ms(1);                            \
        assert_true(fact);                                \
    } while (0)

typedef struct {
    Client        *client;
    Arena         *arena;
    ClientResponse response;
    Error          error;
} Caller;

static void caller_init(Caller *caller, ClientOptions options)
{
    Error error = {0};

    *caller = (Caller){.arena = arena_new(ARENA_BYTES_DEFAULT)};
    assert_ok(client_new(&options, &caller->client, &error));
}

static void caller_done(Caller *caller)
{
    client_free(caller->client);
    arena_free(caller->arena);
}
#define scoped_caller __attribute__((cleanup(caller_done)))

/* A deadline that was left out is soon. */
static ErrorCode ask(Caller *caller, ClientRequest request)
{
    if (request.deadline.at.ns == 0)
        request.deadline = deadline_in_ms(SOON_MS);
    return client_send(caller->client, &request, caller->arena, &caller->response, &caller->error);
}

static ErrorCode get(Caller *caller, const char *url)
{
    return ask(caller, (ClientRequest){.url = url});
}

#define assert_asked(code, expression) \
    test_assert_code((code), (expression), &caller.error, #expression, __FILE__, __LINE__)

static const char *url_of(Arena *arena, const Receiver *receiver, const char *host, const char *path)
{
    return arena_print(arena, "http://%s:%d%s", host, receiver->port, path);
}

/* ---- one request ---- */

TEST(client_sends_what_it_is_given_and_reads_the_answer)
{
    scoped_receiver Receiver receiver  = {0};
    scoped_caller Caller     caller    = {0};
    ClientHeader             headers[] = {
        {"X-One",   "1" },
        {"X-Empty", ""  },
        {NULL,      NULL}
    };
    const char *text =
        "HTTP/1.1 201 Created\r\nContent-Length: 5\r\ncontent-type:  text/plain \r\nX-Two: a\r\nX-Two: b\r\n\r\nhello";

    receiver_init(&receiver, answer_text, text);
    caller_init(&caller, (ClientOptions){0});
    assert_asked(OK, ask(&caller, (ClientRequest){.method    = CLIENT_POST,
                                                  .url       = url_of(caller.arena, &receiver, "127.0.0.1", "/a/b?c=d"),
                                                  .headers   = headers,
                                                  .body      = "{\"a\":1}",
                                                  .body_size = 7,
                                                  .idempotency_key = "key-1"}));
    assert_int_equal(201, caller.response.status);
    assert_string_equal("hello", caller.response.body);
    assert_int_equal(5, caller.response.body_size);
    assert_false(caller.response.truncated);
    assert_string_equal("127.0.0.1", caller.response.host);
    assert_string_equal("text/plain", client_header(&caller.response, "Content-Type"));
    assert_string_equal("a", client_header(&caller.response, "x-two"));
    assert_null(client_header(&caller.response, "X-Three"));
    assert_asked(OK, client_judge(&caller.response, &caller.error));
    const char *seen = receiver_last(&receiver);
    assert_int_equal(0, strncmp(seen, "POST /a/b?c=d HTTP/1.1\r\n", 24));
    assert_contains(seen, "\r\nX-One: 1\r\n");
    assert_contains(seen, "\r\nX-Empty:\r\n");
    assert_contains(seen, "\r\nContent-Type: application/json\r\n");
    assert_contains(seen, "\r\nIdempotency-Key: \"key-1\"");
    assert_contains(seen, "\r\nUser-Agent: pawl/");
    assert_contains(seen, "\n\n{\"a\":1}");
    assert_null(strstr(seen, "Expect"));
    assert_null(strstr(seen, "Accept-Encoding"));
}

TEST(client_knows_six_methods)
{
    static const struct {
        ClientMethod method;
        const char  *body, *line, *has;
    } rows[] = {
        {CLIENT_GET,    NULL, "GET / HTTP/1.1\r\n",    NULL               },
        {CLIENT_HEAD,   NULL, "HEAD / HTTP/1.1\r\n",   NULL               },
        {CLIENT_POST,   NULL, "POST / HTTP/1.1\r\n",   "Content-Length: 0"},
        {CLIENT_POST,   "x",  "POST / HTTP/1.1\r\n",   "Content-Length: 1"},
        {CLIENT_PUT,    "x",  "PUT / HTTP/1.1\r\n",    "Content-Length: 1"},
        {CLIENT_PATCH,  "x",  "PATCH / HTTP/1.1\r\n",  "Content-Type: a/b"},
        {CLIENT_DELETE, NULL, "DELETE / HTTP/1.1\r\n", NULL               },
    };
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};

    receiver_init(&receiver, answer_text, OK_EMPTY);
    caller_init(&caller, (ClientOptions){0});
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_asked(OK, ask(&caller, (ClientRequest){.method    = rows[i].method,
                                                      .url       = receiver.url,
                                                      .body      = rows[i].body,
                                                      .body_size = rows[i].body ? 1 : 0,
                                                      .type      = "a/b"}));
        assert_int_equal(0, strncmp(receiver_last(&receiver), rows[i].line, strlen(rows[i].line)));
        if (rows[i].has)
            assert_contains(receiver_last(&receiver), rows[i].has);
        else
            assert_null(strstr(receiver_last(&receiver), "Content-"));
    }
}

/* Whatever could end a header early or forge another one is refused before anything is sent. */
TEST(client_refuses_headers_and_keys_that_could_forge_others)
{
    static const ClientHeader bad[] = {
        {"X",         "a\r\nEvil: 1"},
        {"X",         "a\nb"        },
        {"X",         "a\x7f"       },
        {"X",         "a\x01"       },
        {"X\r\nEvil", "a"           },
        {"X:",        "a"           },
        {"X Y",       "a"           },
        {"",          "a"           },
        {"X\xc3\xa9", "a"           },
    };
    static const char *const keys[]   = {"", "a\"b", "a\\b", "a b", "a\r\nb", "\xc3\xa9"};
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};
    char                     key[CLIENT_KEY_BYTES_MAX + 2];

    receiver_init(&receiver, answer_text, OK_EMPTY);
    caller_init(&caller, (ClientOptions){0});
    for (size_t i = 0; i < COUNT(bad); i++) {
        ClientHeader headers[] = {
            bad[i], {NULL, NULL}
        };

        assert_asked(ERR_INVALID, ask(&caller, (ClientRequest){.url = receiver.url, .headers = headers}));
    }
    for (size_t i = 0; i < COUNT(keys); i++)
        assert_asked(ERR_INVALID, ask(&caller, (ClientRequest){.url = receiver.url, .idempotency_key = keys[i]}));
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    assert_asked(ERR_INVALID, ask(&caller, (ClientRequest){.url = receiver.url, .idempotency_key = key}));
    assert_asked(ERR_INVALID, ask(&caller, (ClientRequest){.url = receiver.url, .body = "", .type = "a\r\nb"}));
    assert_int_equal(0, atomic_load(&receiver.connections));
    key[CLIENT_KEY_BYTES_MAX] = '\0';
    assert_asked(OK, ask(&caller, (ClientRequest){.url = receiver.url, .idempotency_key = key}));
}

/* ---- connections ---- */

TEST(client_reuses_its_connection)
{
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};

    receiver_init(&receiver, answer_echo, NULL);
    caller_init(&caller, (ClientOptions){0});
    for (int i = 0; i < 20; i++)
        assert_asked(OK, ask(&caller, (ClientRequest){.method          = CLIENT_POST,
                                                      .url             = receiver.url,
                                                      .body            = "x",
                                                      .body_size       = 1,
                                                      .idempotency_key = "k"}));
    assert_int_equal(20, atomic_load(&receiver.requests));
    assert_int_equal(1, atomic_load(&receiver.connections));
}

#define THREADS  8
#define REQUESTS 25

typedef struct {
    Client     *client;
    const char *url;
    int         number, wrong;
} Hammer;

static void *hammer(void *context)
{
    Hammer                   *hammer = context;
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);

    for (int i = 0; i < REQUESTS; i++) {
        ClientResponse response = {0};
        char           body[32];
        int            size    = snprintf(body, sizeof body, "%d-%d", hammer->number, i);
        ClientRequest  request = {.method    = CLIENT_PUT,
                                  .url       = hammer->url,
                                  .body      = body,
                                  .body_size = (size_t)size,
                                  .deadline  = deadline_in_ms(SOON_MS)};

        hammer->wrong +=
            client_send(hammer->client, &request, arena, &response, NULL) != OK || strcmp(response.body, body) != 0;
    }
    return NULL;
}

TEST(client_serves_many_threads_with_a_connection_each)
{
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};
    Hammer                   hammers[THREADS];
    pthread_t                threads[THREADS];

    receiver_init(&receiver, answer_echo, NULL);
    caller_init(&caller, (ClientOptions){0});
    for (int i = 0; i < THREADS; i++) {
        hammers[i] = (Hammer){caller.client, receiver.url, i, 0};
        threads[i] = thread_start("hammer", hammer, &hammers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        thread_join(threads[i]);
        assert_int_equal(0, hammers[i].wrong);
    }
    assert_int_equal(THREADS * REQUESTS, atomic_load(&receiver.requests));
    assert_in_range(atomic_load(&receiver.connections), 1, THREADS);
}

TEST(client_keeps_a_bounded_number_of_connections)
{
    scoped_receiver Receiver a = {0}, b = {0}, c = {0};
    scoped_caller Caller     caller = {0};
    Receiver                *list[] = {&a, &b, &c};

    caller_init(&caller, (ClientOptions){.idle_max = 2});
    for (size_t i = 0; i < COUNT(list); i++)
        receiver_init(list[i], answer_echo, NULL);
    for (size_t i = 0; i < COUNT(list); i++)
        assert_asked(OK, get(&caller, list[i]->url));
    AWAIT(atomic_load(&a.open) == 0); /* the oldest was evicted for the third */
    assert_int_equal(1, atomic_load(&b.open));
    assert_int_equal(1, atomic_load(&c.open));
    assert_asked(OK, get(&caller, b.url));
    assert_int_equal(1, atomic_load(&b.connections));
}

static bool answer_once(Receiver *receiver, const Received *received)
{
    (void)receiver;
    return received->number == 1 && receiver_write(received, OK_EMPTY, strlen(OK_EMPTY));
}

/* A server that closes a kept connection instead of answering may have acted on the request. */
TEST(client_repeats_only_what_may_be_repeated)
{
    static const struct {
        ClientMethod method;
        const char  *key;
        int          connections;
    } rows[] = {
        {CLIENT_GET,   NULL, 2},
        {CLIENT_PUT,   NULL, 2},
        {CLIENT_POST,  "k",  2},
        {CLIENT_POST,  NULL, 2}, /* takes no kept connection in the first place */
        {CLIENT_PATCH, NULL, 2},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped_receiver Receiver receiver = {0};
        scoped_caller Caller     caller   = {0};
        bool                     safe     = rows[i].method == CLIENT_GET || rows[i].method == CLIENT_PUT || rows[i].key;

        receiver_init(&receiver, answer_once, NULL);
        caller_init(&caller, (ClientOptions){0});
        assert_asked(OK, get(&caller, receiver.url));
        assert_asked(OK, ask(&caller, (ClientRequest){.method          = rows[i].method,
                                                      .url             = receiver.url,
                                                      .idempotency_key = rows[i].key}));
        assert_int_equal(rows[i].connections, atomic_load(&receiver.connections));
        assert_int_equal(safe ? 3 : 2, atomic_load(&receiver.requests));
    }
}

static bool answer_close(Receiver *receiver, const Received *received)
{
    (void)receiver, (void)received;
    return false;
}

TEST(client_sends_once_to_a_server_that_closes_without_an_answer)
{
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};

    receiver_init(&receiver, answer_close, NULL);
    caller_init(&caller, (ClientOptions){0});
    assert_asked(ERR_UNKNOWN, ask(&caller, (ClientRequest){.method = CLIENT_POST, .url = receiver.url}));
    assert_contains(caller.error.text, "the server sent no complete response");
    assert_int_equal(1, atomic_load(&receiver.requests));
}

TEST(client_gives_its_sockets_to_no_child)
{
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};
    int                      found    = 0;

    receiver_init(&receiver, answer_echo, NULL);
    caller_init(&caller, (ClientOptions){0});
    assert_asked(OK, get(&caller, receiver.url));
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t          size = sizeof peer;

        if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0 || ntohs(peer.sin_port) != receiver.port)
            continue;
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        found++;
    }
    assert_int_equal(1, found);
}

/* ---- limits ---- */

static bool answer_endless_body(Receiver *receiver, const Received *received)
{
    static const char chunk[] = "400\r\n"; /* 1,024 bytes */
    char              data[1026];

    (void)receiver;
    memset(data, 'x', sizeof data);
    memcpy(data + 1024, "\r\n", 2);
    const char *head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    if (!receiver_write(received, head, strlen(head)))
        return false;
    while (receiver_write(received, chunk, sizeof chunk - 1) && receiver_write(received, data, sizeof data))
        ;
    return false;
}

TEST(client_bounds_the_body)
{
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};

    receiver_init(&receiver, answer_endless_body, NULL);
    caller_init(&caller, (ClientOptions){.body_bytes_max = BODY_LIMIT});
    assert_asked(ERR_LIMIT, get(&caller, receiver.url));
    assert_string_equal("the response has a body of more than 1000 bytes", caller.error.text);
    assert_asked(OK, ask(&caller, (ClientRequest){.url = receiver.url, .truncate = true}));
    assert_int_equal(200, caller.response.status);
    assert_int_equal(BODY_LIMIT, caller.response.body_size);
    assert_true(caller.response.truncated);
}

TEST(client_takes_a_body_of_exactly_its_limit)
{
    for (int over = 0; over <= 1; over++) {
        scoped_receiver Receiver receiver = {0};
        scoped_caller Caller     caller   = {0};
        char                     text[BODY_LIMIT + 100];
        int used = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BODY_LIMIT + over);

        memset(text + used, 'x', (size_t)(BODY_LIMIT + over));
        text[used + BODY_LIMIT + over] = '\0';
        receiver_init(&receiver, answer_text, text);
        caller_init(&caller, (ClientOptions){.body_bytes_max = BODY_LIMIT});
        assert_asked(over ? ERR_LIMIT : OK, get(&caller, receiver.url));
    }
}

TEST(client_needs_room_in_the_arena)
{
    scoped_receiver Receiver  receiver = {0};
    scoped_caller Caller      caller   = {0};
    scoped(arena_free) Arena *small    = arena_new(64);
    ClientRequest             request  = {.url = NULL, .deadline = deadline_in_ms(SOON_MS)};

    receiver_init(&receiver, answer_text, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    caller_init(&caller, (ClientOptions){0});
    request.url = receiver.url;
    assert_asked(ERR_LIMIT, client_send(caller.client, &request, small, &caller.response, &caller.error));
}

static bool write_for_ever(const Received *received, const char *bytes)
{
    while (receiver_write(received, bytes, strlen(bytes)))
        ;
    return false;
}

static bool answer_endless_headers(Receiver *receiver, const Received *received)
{
    return answer_text(receiver, received) &&
           write_for_ever(received, "X-Long: 0123456789012345678901234567890123456789\r\n");
}

static bool answer_endless_interim(Receiver *receiver, const Received *received)
{
    (void)receiver;
    return write_for_ever(received, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
}

TEST(client_bounds_headers_interim_answers_and_trailers)
{
    static const struct {
        ReceiverAnswer *answer;
        const char     *text;
    } rows[] = {
        {answer_endless_headers, "HTTP/1.1 200 OK\r\n"                                                 },
        {answer_endless_interim, NULL                                                                  },
        {answer_endless_headers, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped_receiver Receiver receiver = {0};
        scoped_caller Caller     caller   = {0};

        receiver_init(&receiver, rows[i].answer, rows[i].text);
        caller_init(&caller, (ClientOptions){0});
        assert_asked(ERR_LIMIT, get(&caller, receiver.url));
        assert_contains(caller.error.text, "more than 65536 bytes of headers");
    }
}

static bool answer_drip(Receiver *receiver, const Received *received)
{
    (void)receiver;
    if (!receiver_write(received, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", 44))
        return false;
    while (receiver_write(received, "x", 1))
        clock_sleep_ms(5); /* the pace of the server, not a wait for it */
    return false;
}

TEST(client_has_one_deadline_for_all)
{
    static ReceiverAnswer *const answers[] = {answer_never, answer_drip};
    scoped_caller Caller         caller    = {0};

    caller_init(&caller, (ClientOptions){0});
    for (size_t i = 0; i < COUNT(answers); i++) {
        scoped_receiver Receiver receiver = {0};

        receiver_init(&receiver, answers[i], NULL);
        assert_asked(ERR_UNKNOWN,
                     ask(&caller, (ClientRequest){.url = receiver.url, .deadline = deadline_in_ms(SHORT_MS)}));
        assert_string_equal("the server did not respond in time", caller.error.text);
    }
    assert_asked(ERR_TIMEOUT,
                 ask(&caller, (ClientRequest){.url = "http://127.0.0.1:1", .deadline = deadline_in_ms(-1)}));
}

/* libcurl would wait for the resolver's thread however late it is. */
TEST(client_does_not_wait_for_a_name_server_beyond_its_deadline)
{
    scoped_caller Caller caller = {0};

    caller_init(&caller, (ClientOptions){0});
    names_hang();
    assert_asked(ERR_TIMEOUT,
                 ask(&caller, (ClientRequest){.url = "http://hang.test/", .deadline = deadline_in_ms(SHORT_MS)}));
    assert_string_equal("the server was not reached in time", caller.error.text);
    names_release();
}

static void *stop_soon(void *context)
{
    Receiver *receiver = context;

    while (atomic_load(&receiver->requests) == 0)
        clock_sleep_ms(1);
    client_stop((Client *)(uintptr_t)receiver->text);
    return NULL;
}

TEST(client_stop_ends_a_request_that_waits)
{
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};

    caller_init(&caller, (ClientOptions){0});
    receiver_init(&receiver, answer_never, (const char *)caller.client);
    pthread_t thread = thread_start("stop", stop_soon, &receiver);
    assert_asked(ERR_STOPPING, get(&caller, receiver.url));
    thread_join(thread);
    assert_asked(ERR_STOPPING, get(&caller, receiver.url));
    assert_int_equal(1, atomic_load(&receiver.requests));
}

/* ---- answers that are wrong ---- */

TEST(client_tells_what_was_not_answered_from_what_was_not_sent)
{
    static const struct {
        const char *text;
        ErrorCode   code;
        const char *words;
    } rows[] = {
        {"",                                                                ERR_UNKNOWN, "no complete response"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",              ERR_UNKNOWN, "no complete response"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf", ERR_UNKNOWN, "no complete response"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",     ERR_UNKNOWN, "the "                },
        {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",                   ERR_UNKNOWN, "the "                },
        {"not HTTP at all\r\n\r\n",                                         ERR_UNKNOWN, "the "                },
        {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",                             ERR_UNKNOWN, "the "                },
        {"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",                           ERR_UNKNOWN, "the "                },
        {"HTTP/9.9 200 OK\r\n\r\n",                                         ERR_UNKNOWN, "the "                },
        {"SSH-2.0-OpenSSH_9.2\r\n",                                         ERR_UNKNOWN, "the "                },
    };
    scoped_caller Caller caller = {0};
    int                  port;

    caller_init(&caller, (ClientOptions){0});
    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped_receiver Receiver receiver = {0};

        receiver_init(&receiver, answer_text_close, rows[i].text);
        port           = receiver.port;
        ErrorCode code = get(&caller, receiver.url);
        if (code != rows[i].code || !strstr(caller.error.text, rows[i].words))
            fail_msg("row %zu gave %s: %s", i, error_name(code), caller.error.text);
        assert_contains(error_peer(&caller.error), "127.0.0.1");
    }
    assert_asked(ERR_UNAVAILABLE, get(&caller, arena_print(caller.arena, "http://127.0.0.1:%d/", port)));
    assert_contains(caller.error.text, "cannot be connected to: Connection refused");
    assert_asked(ERR_UNAVAILABLE, get(&caller, "http://nowhere.invalid/"));
    assert_string_equal("the host was not found", caller.error.text);
    assert_string_equal("nowhere.invalid port 80", error_peer(&caller.error));
}

TEST(client_reads_hostile_headers_as_harmless_text)
{
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};
    const char *text = "HTTP/1.1 200 \x1b[31mred\r\nX-Control: a\x1b[2J\tb\x7f\r\nX-Bytes: \xff\xfe\r\n: nameless\r\n"
                       "HTTP/1.1 500: x\r\nX-Empty:\r\nX-Spaced:   \t v \t \r\nContent-Length: 2\r\n\r\nok";

    receiver_init(&receiver, answer_text, text);
    caller_init(&caller, (ClientOptions){0});
    assert_asked(OK, get(&caller, receiver.url));
    assert_int_equal(200, caller.response.status);
    assert_string_equal("ok", caller.response.body);
    assert_string_equal("a?[2J?b?", client_header(&caller.response, "X-Control"));
    assert_string_equal("??", client_header(&caller.response, "X-Bytes"));
    assert_string_equal("", client_header(&caller.response, "X-Empty"));
    assert_string_equal("v", client_header(&caller.response, "X-Spaced"));
    assert_null(client_header(&caller.response, ""));
    assert_null(client_header(&caller.response, "HTTP/1.1 500"));
}

TEST(client_ignores_interim_answers_and_trailers)
{
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};

    receiver_init(&receiver, answer_text,
                  "HTTP/1.1 103 Early Hints\r\nX-Hint: 1\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "2\r\nok\r\n0\r\nX-Trailer: 1\r\n\r\n");
    caller_init(&caller, (ClientOptions){0});
    assert_asked(OK, get(&caller, receiver.url));
    assert_string_equal("ok", caller.response.body);
    assert_null(client_header(&caller.response, "X-Hint"));
    assert_null(client_header(&caller.response, "X-Trailer"));
}

TEST(client_judges_statuses_and_says_when_to_try_again)
{
    static const struct {
        const char *text;
        ErrorCode   code;
        int         retry_ms;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\n",                                                 OK,              0                        },
        {"HTTP/1.1 204 No Content\r\n",                                         OK,              0                        },
        {"HTTP/1.1 304 Not Modified\r\n",                                       ERR_REFUSED,     0                        },
        {"HTTP/1.1 302 Found\r\nLocation: /\r\n",                               ERR_REFUSED,     0                        },
        {"HTTP/1.1 404 Not Found\r\n",                                          ERR_REFUSED,     0                        },
        {"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\n",                             ERR_RATE,        7000                     },
        {"HTTP/1.1 429 Slow\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n", ERR_RATE,        CLIENT_RETRY_AFTER_MS_MAX},
        {"HTTP/1.1 503 Down\r\nRetry-After: 3\r\n",                             ERR_UNAVAILABLE, 3000                     },
        {"HTTP/1.1 503 Down\r\nRetry-After: never\r\n",                         ERR_UNAVAILABLE, 0                        },
        {"HTTP/1.1 999 ?\r\n",                                                  ERR_UNAVAILABLE, 0                        },
    };
    scoped_caller Caller caller  = {0};
    int64_t              limited = metric_value(&client_metrics.rate_limited);

    caller_init(&caller, (ClientOptions){0});
    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped_receiver Receiver receiver = {0};
        bool                     bodiless = strstr(rows[i].text, " 204 ") != NULL;

        receiver_init(&receiver, answer_text,
                      arena_print(caller.arena, "%s%s\r\n", rows[i].text, bodiless ? "" : "Content-Length: 0\r\n"));
        assert_asked(OK, get(&caller, receiver.url));
        caller.error.retry_ms = 0;
        assert_asked(rows[i].code, client_judge(&caller.response, &caller.error));
        assert_int_equal(rows[i].retry_ms, caller.error.retry_ms);
        assert_int_equal(rows[i].retry_ms, caller.response.retry_ms);
    }
    assert_int_equal(limited + 2, metric_value(&client_metrics.rate_limited));
}

/* ---- where requests may go ---- */

TEST(client_connects_to_allowed_hosts_only)
{
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};

    receiver_init(&receiver, answer_echo, NULL);
    caller_init(&caller, (ClientOptions){.allowed_hosts = "loopback.test, *.example.org"});
    assert_asked(OK, get(&caller, url_of(caller.arena, &receiver, "loopback.test", "/")));
    assert_asked(ERR_DENIED, get(&caller, url_of(caller.arena, &receiver, "other.test", "/")));
    assert_contains(error_peer(&caller.error), "other.test port ");
    assert_contains(caller.error.text, "\"other.test\" is not one of the allowed hosts");
    assert_asked(ERR_DENIED, get(&caller, url_of(caller.arena, &receiver, "loopback.test@127.0.0.1", "/")));
    assert_int_equal(1, atomic_load(&receiver.requests));
}

TEST(client_refuses_private_addresses_behind_any_name)
{
    static const char *const hosts[]  = {"127.0.0.1", "loopback.test", "metadata.test",     "[::1]",
                                         "0",         "2130706433",    "[::ffff:127.0.0.1]"};
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};

    receiver_init(&receiver, answer_echo, NULL);
    caller_init(&caller, (ClientOptions){.refuse_private = true});
    for (size_t i = 0; i < COUNT(hosts); i++) {
        assert_asked(ERR_DENIED, get(&caller, url_of(caller.arena, &receiver, hosts[i], "/")));
        assert_contains(caller.error.text, " has a private address, and only public ones are allowed");
    }
    assert_int_equal(0, atomic_load(&receiver.connections));
}

TEST(client_uses_no_proxy_of_the_environment)
{
    scoped_receiver Receiver receiver = {0}, proxy = {0};
    scoped_caller Caller     caller  = {0};
    static const char *const names[] = {"http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"};

    receiver_init(&receiver, answer_echo, NULL);
    receiver_init(&proxy, answer_echo, NULL);
    caller_init(&caller, (ClientOptions){0});
    for (size_t i = 0; i < COUNT(names); i++)
        setenv(names[i], proxy.url, 1);
    unsetenv("no_proxy");
    unsetenv("NO_PROXY");
    assert_asked(OK, get(&caller, receiver.url));
    for (size_t i = 0; i < COUNT(names); i++)
        unsetenv(names[i]);
    assert_int_equal(0, atomic_load(&proxy.connections));
    assert_int_equal(1, atomic_load(&receiver.requests));
}

/* ---- redirects ---- */

TEST(client_follows_no_redirect_by_itself)
{
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};

    receiver_init(&receiver, answer_text, "HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n");
    caller_init(&caller, (ClientOptions){0});
    assert_asked(OK, get(&caller, receiver.url));
    assert_int_equal(302, caller.response.status);
    assert_string_equal("/next", client_header(&caller.response, "Location"));
    assert_int_equal(1, atomic_load(&receiver.requests));
}

/* "/" redirects to receiver->text with the status in the path: "/307". Anything else is answered 200. */
static bool answer_redirect(Receiver *receiver, const Received *received)
{
    char        head[512];
    const char *path   = strchr(received->head, '/');
    long        status = strtol(path + 1, NULL, 10);

    if (status == 0)
        return receiver_write(received, OK_EMPTY, strlen(OK_EMPTY));
    int size = snprintf(head, sizeof head, "HTTP/1.1 %ld Go\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", status,
                        receiver->text);
    return receiver_write(received, head, (size_t)size);
}

TEST(client_follows_redirects_as_its_method_allows)
{
    static const struct {
        ClientMethod method;
        const char  *path;
        int          status;
    } rows[] = {
        {CLIENT_GET,  "/301", 200},
        {CLIENT_GET,  "/302", 200},
        {CLIENT_GET,  "/303", 200},
        {CLIENT_GET,  "/307", 200},
        {CLIENT_HEAD, "/308", 200},
        {CLIENT_POST, "/301", 301},
        {CLIENT_POST, "/302", 302},
        {CLIENT_POST, "/303", 303},
        {CLIENT_POST, "/307", 200},
        {CLIENT_PUT,  "/308", 200},
    };
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};

    receiver_init(&receiver, answer_redirect, "/next");
    caller_init(&caller, (ClientOptions){.redirects_max = 1});
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool has_body = rows[i].method == CLIENT_POST || rows[i].method == CLIENT_PUT;

        assert_asked(OK, ask(&caller, (ClientRequest){.method = rows[i].method,
                                                      .url = url_of(caller.arena, &receiver, "127.0.0.1", rows[i].path),
                                                      .body            = has_body ? "body" : NULL,
                                                      .body_size       = has_body ? 4 : 0,
                                                      .idempotency_key = "k"}));
        assert_int_equal(rows[i].status, caller.response.status);
        assert_int_equal(rows[i].status == 200, caller.response.redirects);
        if (rows[i].status == 200)
            assert_contains(receiver_last(&receiver), " /next HTTP/1.1");
        if (has_body)
            assert_contains(receiver_last(&receiver), "\n\nbody");
        assert_contains(receiver_last(&receiver), "Idempotency-Key: \"k\"");
    }
    assert_int_equal(1, atomic_load(&receiver.connections));
}

TEST(client_ends_a_loop_of_redirects)
{
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};

    receiver_init(&receiver, answer_redirect, "/302");
    caller_init(&caller, (ClientOptions){.redirects_max = 5});
    assert_asked(ERR_REFUSED, get(&caller, url_of(caller.arena, &receiver, "127.0.0.1", "/302")));
    assert_contains(caller.error.text, "redirects again after 5 redirects");
    assert_int_equal(6, atomic_load(&receiver.requests));
}

TEST(client_follows_redirects_to_allowed_targets_only)
{
    static const struct {
        const char *location;
        ErrorCode   code;
    } rows[] = {
        {"http://other.test/",   ERR_DENIED },
        {"//other.test/",        ERR_DENIED },
        {"file:///etc/passwd",   ERR_REFUSED},
        {"ftp://loopback.test/", ERR_REFUSED},
        {"http://[",             ERR_REFUSED},
    };
    scoped_caller Caller caller = {0};

    caller_init(&caller, (ClientOptions){.redirects_max = 5, .allowed_hosts = "loopback.test"});
    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped_receiver Receiver receiver = {0};

        receiver_init(&receiver, answer_redirect, rows[i].location);
        assert_asked(rows[i].code, get(&caller, url_of(caller.arena, &receiver, "loopback.test", "/302")));
        assert_null(strstr(caller.error.text, "passwd"));
        assert_int_equal(1, atomic_load(&receiver.requests));
    }
}

TEST(client_keeps_credentials_from_other_origins)
{
    scoped_receiver Receiver other = {0}, receiver = {0};
    scoped_caller Caller     caller    = {0};
    ClientHeader             headers[] = {
        {"authorization", "Bearer s3cret"},
        {"X-Token", "s3cret", .secret = true},
        {"X-Plain", "plain"},
        {NULL, NULL}
    };

    receiver_init(&other, answer_echo, NULL);
    caller_init(&caller, (ClientOptions){.redirects_max = 1});
    receiver_init(&receiver, answer_redirect, url_of(caller.arena, &other, "other.test", "/x"));
    assert_asked(OK, ask(&caller, (ClientRequest){.url = url_of(caller.arena, &receiver, "u:s3cret@127.0.0.1", "/307"),
                                                  .headers = headers}));
    assert_contains(receiver_last(&receiver), "s3cret");
    assert_contains(receiver_last(&other), "X-Plain: plain");
    assert_null(strstr(receiver_last(&other), "s3cret"));
    assert_null(strcasestr(receiver_last(&other), "authorization"));
    /* The same origin gets them again. */
    receiver.text = "/again";
    assert_asked(OK, ask(&caller, (ClientRequest){.url     = url_of(caller.arena, &receiver, "127.0.0.1", "/307"),
                                                  .headers = headers}));
    assert_contains(receiver_last(&receiver), "/again");
    assert_contains(receiver_last(&receiver), "X-Token: s3cret");
}

/* ---- secrets, faults ---- */

TEST(client_names_no_more_than_the_host_and_the_host_only_to_the_log)
{
    static const struct {
        const char     *host;
        ReceiverAnswer *answer;
        const char     *text;
    } rows[] = {
        {"u:s3cret@127.0.0.1",    answer_close,        NULL                                                     },
        {"u:s3cret@127.0.0.1",    answer_never,        NULL                                                     },
        {"u:s3cret@127.0.0.1",    answer_text_close,   "what is s3cret\r\n"                                     },
        {"u:s3cret@127.0.0.1",    answer_text_close,   "HTTP/1.1 302 s3cret\r\nLocation: ftp://x/s3cret\r\n\r\n"},
        {"u:s3cret@127.0.0.1",    answer_text_close,   "HTTP/1.1 500 s3cret\r\nContent-Length: 6\r\n\r\ns3cret" },
        {"u:s3cret@127.0.0.1",    answer_endless_body, NULL                                                     },
        {"u:s3cret@none.invalid", answer_close,        NULL                                                     },
        {"u:s3cret@127.0.0.2",    answer_close,        NULL                                                     },
        {"u:s3cret@[bad",         answer_close,        NULL                                                     },
    };
    scoped_caller Caller caller = {0};

    caller_init(&caller, (ClientOptions){.redirects_max = 3, .body_bytes_max = BODY_LIMIT});
    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped_receiver Receiver receiver = {0};
        ErrorCode                code;

        receiver_init(&receiver, rows[i].answer, rows[i].text);
        code = ask(&caller,
                   (ClientRequest){.url = url_of(caller.arena, &receiver, rows[i].host, "/bot-s3cret?token=s3cret"),
                                   .deadline = deadline_in_ms(rows[i].answer == answer_never ? SHORT_MS : SOON_MS)});
        if (code == OK)
            code = client_judge(&caller.response, &caller.error);
        assert_int_not_equal(OK, code);
        if (strstr(caller.error.text, "s3cret") || strstr(error_peer(&caller.error), "s3cret"))
            fail_msg("row %zu: %s, %s", i, caller.error.text, error_peer(&caller.error));
        if (strstr(caller.error.text, "127.0.0") || strstr(caller.error.text, "invalid:"))
            fail_msg("row %zu names the host: %s", i, caller.error.text);
        if (code != ERR_INVALID)
            assert_contains(error_peer(&caller.error), strchr(rows[i].host, '@') + 1);
    }
}

#ifdef PAWL_FAULTS
TEST(client_faults_before_and_after_the_request)
{
    scoped_receiver Receiver receiver = {0};
    scoped_caller Caller     caller   = {0};

    receiver_init(&receiver, answer_echo, NULL);
    caller_init(&caller, (ClientOptions){0});
    fault_arm("client.send", 1);
    assert_asked(ERR_UNAVAILABLE, get(&caller, receiver.url));
    assert_int_equal(0, atomic_load(&receiver.requests));
    fault_arm("client.answer", 1);
    assert_asked(ERR_UNKNOWN, get(&caller, receiver.url));
    assert_int_equal(1, atomic_load(&receiver.requests));
    /* The next one finds the connection as the failed one left it. */
    assert_asked(OK, get(&caller, receiver.url));
    assert_int_equal(1, atomic_load(&receiver.connections));
}
#endif
