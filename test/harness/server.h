/*
 * server.h - a private PostgreSQL for tests that stop, start, kill or freeze one.
 *
 * Its data directory is a copy of the run's template, so it is up in a fraction of a second. It listens on a unix
 * socket and on a free port of 127.0.0.1, the same one over all its starts. As root it runs as the user postgres. What
 * a killed test leaves behind is stopped by cluster.sh. Fails the test when something goes wrong: main thread only.
 */
#ifndef HARNESS_SERVER_H
#define HARNESS_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"

typedef struct TestServer TestServer;

typedef struct {
    const char *settings; /* lines for postgresql.conf: "max_connections = 5\n"; NULL: none */
    const char *hba;      /* lines for pg_hba.conf before the one that trusts everyone; NULL: none */
    bool        unix_url; /* test_server_url() names the unix socket instead of the port */
    bool        stopped;  /* not started yet */
} TestServerOptions;

TestServer *test_server_new(TestServerOptions options);
/* Stopped at once and removed, whatever state it is in. */
void test_server_free(TestServer *server);
SCOPED(TestServer, test_server_free)

/* Both return when it is done. mode: "smart", "fast" or "immediate". */
void test_server_start(TestServer *server);
void test_server_stop(TestServer *server, const char *mode);
/* SIGKILL to the postmaster; returns when it is dead. */
void test_server_kill(TestServer *server);
/* The postmaster, for SIGSTOP and SIGCONT. */
pid_t test_server_pid(const TestServer *server);

/* Superuser's; borrowed until the next call. */
const char *test_server_url(TestServer *server, const char *dbname);
int         test_server_port(const TestServer *server);

#endif
