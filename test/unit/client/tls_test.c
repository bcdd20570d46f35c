/*
 * tls_test.c - certificates are verified: against a server of openssl(1), whose certificate is made for the test.
 */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/client.h"
#include "test/harness/test.h"
#include "test/unit/client/receiver.h"

#define SOON_MS 60000

typedef struct {
    char  folder[64], cert[96], key[96];
    pid_t pid;
    FILE *said;
    int   port;
} TlsServer;

/* Start a program whose standard output is *ret_said. */
static pid_t program_start(const char *const *words, FILE **ret_said)
{
    posix_spawn_file_actions_t actions;
    int                        ends[2];
    pid_t                      pid = 0;

    assert_int_equal(0, pipe2(ends, O_CLOEXEC));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    assert_int_equal(0, posix_spawnp(&pid, words[0], &actions, NULL, (char *const *)(uintptr_t)words, environ));
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *ret_said = fdopen(ends[0], "r");
    assert_non_null(*ret_said);
    return pid;
}

/* A certificate for loopback.test, signed by itself. */
static void certificate_make(const TlsServer *server)
{
    const char *const words[] = {"openssl",
                                 "req",
                                 "-x509",
                                 "-newkey",
                                 "ec",
                                 "-pkeyopt",
                                 "ec_paramgen_curve:prime256v1",
                                 "-nodes",
                                 "-keyout",
                                 server->key,
                                 "-out",
                                 server->cert,
                                 "-days",
                                 "2",
                                 "-subj",
                                 "/CN=loopback.test",
                                 "-addext",
                                 "subjectAltName=DNS:loopback.test",
                                 NULL};
    FILE             *said;
    int               status;
    pid_t             pid = program_start(words, &said);

    assert_int_equal(pid, waitpid(pid, &status, 0));
    fclose(said);
    assert_int_equal(0, status);
}

static void tls_server_init(TlsServer *server)
{
    const char *const words[] = {"openssl",    "s_server", "-accept",   "127.0.0.1:0", "-cert",
                                 server->cert, "-key",     server->key, "-www",        NULL};
    char              line[256];

    snprintf(server->folder, sizeof server->folder, "/tmp/pawl-tls-XXXXXX");
    assert_non_null(mkdtemp(server->folder));
    snprintf(server->cert, sizeof server->cert, "%s/cert.pem", server->folder);
    snprintf(server->key, sizeof server->key, "%s/key.pem", server->folder);
    certificate_make(server);
    server->pid = program_start(words, &server->said);
    while (server->port == 0 && fgets(line, sizeof line, server->said))
        if (strncmp(line, "ACCEPT 127.0.0.1:", 17) == 0)
            server->port = (int)strtol(line + 17, NULL, 10);
    assert_int_not_equal(0, server->port);
}

static void tls_server_done(TlsServer *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    fclose(server->said);
    unlink(server->cert);
    unlink(server->key);
    rmdir(server->folder);
}
#define scoped_tls_server __attribute__((cleanup(tls_server_done)))

static ErrorCode ask(const char *ca_file, const char *host, int port, ClientResponse *ret_response, Arena *arena,
                     Error *reterr)
{
    scoped(client_free) Client *client = NULL;
    char                        url[128];

    TRY(client_new(&(ClientOptions){.ca_file = ca_file}, &client, reterr));
    snprintf(url, sizeof url, "https://u:s3cret@%s:%d/", host, port);
    return client_send(client, &(ClientRequest){.url = url, .deadline = deadline_in_ms(SOON_MS)}, arena, ret_response,
                       reterr);
}

TEST(tls_certificate_must_be_trusted_and_for_this_name)
{
    scoped_tls_server TlsServer server   = {.pid = 0};
    scoped(arena_free) Arena   *arena    = arena_new(ARENA_BYTES_DEFAULT);
    ClientResponse              response = {0};
    Error                       error    = {0};

    tls_server_init(&server);
    assert_code(ERR_REFUSED, ask(NULL, "loopback.test", server.port, &response, arena, &error));
    assert_contains(error.text, "certificate"); /* not trusted, or the system has none that are */
    assert_code(ERR_REFUSED, ask(server.cert, "other.test", server.port, &response, arena, &error));
    assert_string_equal("the server's certificate is not trusted, or is for another name", error.text);
    assert_code(ERR_REFUSED, ask(server.cert, "127.0.0.1", server.port, &response, arena, &error));
    assert_code(ERR_REFUSED, ask("/nowhere.pem", "loopback.test", server.port, &response, arena, &error));
    assert_string_equal(
        "the file of trusted certificates cannot be read; the system's is in the package ca-certificates", error.text);
    assert_ok(ask(server.cert, "loopback.test", server.port, &response, arena, &error));
    assert_int_equal(200, response.status);
}

TEST(tls_is_not_given_up_for_a_server_without_it)
{
    scoped_receiver Receiver  receiver = {0};
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    ClientResponse            response = {0};
    Error                     error    = {0};

    receiver_init(&receiver, answer_text_close, "");
    receiver_greet(&receiver, "HTTP/1.1 400 this is no TLS\r\n\r\n");
    assert_code(ERR_UNAVAILABLE, ask(NULL, "loopback.test", receiver.port, &response, arena, &error));
    assert_string_equal("the server did not agree on a TLS connection", error.text);
    assert_int_equal(0, atomic_load(&receiver.requests));
}
