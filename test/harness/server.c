/*
 * server.c - pg_ctl does the work, as the user postgres when we are root.
 */
#include "test/harness/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "test/harness/conninfo.h"
#include "test/harness/database.h"
#include "test/harness/test.h"

#define START_TRIES_MAX 3
#define START_MS_MAX    10000
#define PATH_SIZE       256

extern char **environ;

struct TestServer {
    char folder[PATH_SIZE];     /* data directory and socket folder in one */
    char log[PATH_SIZE + 8];    /* the server's, below folder */
    char output[PATH_SIZE + 8]; /* of pg_ctl and cp */
    char url[CONNINFO_SIZE];
    int  port;
    bool unix_url;
};

/* Run a program as the owner of the server; its words go to a file. Returns its exit status. */
static int run(const TestServer *server, const char *const *command)
{
    const char                *argv[16] = {"runuser", "-u", "postgres", "--"};
    size_t                     count    = geteuid() == 0 ? 4 : 0;
    posix_spawn_file_actions_t files;
    pid_t                      pid;
    int                        status;

    for (; *command; command++)
        argv[count++] = *command;
    argv[count] = NULL;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, server->output, O_WRONLY | O_CREAT | O_APPEND, 0666);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    int spawned = posix_spawnp(&pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (spawned != 0 || waitpid(pid, &status, 0) != pid)
        fail_msg("%s cannot be run", argv[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
#define RUN(server, ...) run((server), (const char *const[]){__VA_ARGS__, NULL})

static const char *pg_ctl(void)
{
    static char path[PATH_SIZE];

    snprintf(path, sizeof path, "%s/pg_ctl", harness_setting("PAWL_TEST_BIN"));
    return path;
}

/* Free at this moment; test_server_new() tries another one if it was taken in between. */
static int port_choose(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          size    = sizeof address;
    int                fd      = socket(AF_INET, SOCK_STREAM, 0);

    assert_return_code(fd, 0);
    assert_return_code(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_return_code(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static void file_write(const TestServer *server, const char *name, const char *mode, const char *text)
{
    char path[PATH_SIZE + 32];

    snprintf(path, sizeof path, "%s/%s", server->folder, name);
    FILE *file = fopen(path, mode);
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        fail_msg("\"%s\" cannot be written", path);
}

static void configure(TestServer *server, const TestServerOptions *options)
{
    char text[PATH_SIZE + 128];

    server->port = port_choose();
    /* What was committed must survive an immediate stop, though not the loss of the machine. */
    snprintf(text, sizeof text,
             "listen_addresses = '127.0.0.1'\nport = %d\nunix_socket_directories = '%s'\nsynchronous_commit = on\n",
             server->port, server->folder);
    file_write(server, "postgresql.conf", "a", text);
    if (options->settings)
        file_write(server, "postgresql.conf", "a", options->settings);
    file_write(server, "pg_hba.conf", "w", options->hba ? options->hba : "");
    file_write(server, "pg_hba.conf", "a",
               "\nlocal all all trust\nhost all all 127.0.0.1/32 trust\n"
               "local replication all trust\nhost replication all 127.0.0.1/32 trust\n");
}

static bool start(const TestServer *server)
{
    return RUN(server, pg_ctl(), "-D", server->folder, "-l", server->log, "-s", "-w", "-t", "60", "start") == 0;
}

static void log_show(const TestServer *server)
{
    char  line[1024];
    FILE *file = fopen(server->log, "r");

    while (file && fgets(line, sizeof line, file))
        fputs(line, stderr);
    if (file)
        fclose(file);
}

TestServer *test_server_new(TestServerOptions options)
{
    static int  count;
    const char *folder = harness_setting("PAWL_TEST_RUN");
    char template[PATH_SIZE];
    TestServer *server = calloc(1, sizeof *server);

    assert_non_null(server);
    /* The postmaster becomes our child when pg_ctl ends: a dead one can be waited for, and leaves no zombie whose
     * number in postmaster.pid would look alive. */
    assert_return_code(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    snprintf(template, sizeof template, "%s/datadir-template", folder);
    snprintf(server->folder, sizeof server->folder, "%s/server-%d-%d", folder, (int)getpid(), ++count);
    snprintf(server->log, sizeof server->log, "%s/log", server->folder);
    snprintf(server->output, sizeof server->output, "%s.out", server->folder);
    server->unix_url = options.unix_url;
    assert_int_equal(0, RUN(server, "cp", "-a", template, server->folder));
    configure(server, &options);
    if (options.stopped)
        return server;
    bool up = start(server);
    for (int tries = 1; !up && tries < START_TRIES_MAX; tries++) {
        configure(server, &options);
        up = start(server);
    }
    if (!up) {
        log_show(server);
        fail_msg("the private server did not start");
    }
    return server;
}

void test_server_free(TestServer *server)
{
    RUN(server, pg_ctl(), "-D", server->folder, "-s", "-w", "-m", "immediate", "stop");
    assert_int_equal(0, RUN(server, "rm", "-rf", server->folder));
    unlink(server->output);
    free(server);
}

/* After a kill the backends need a moment to notice that the postmaster is gone; until then a start is refused. */
void test_server_start(TestServer *server)
{
    for (Deadline deadline = deadline_in_ms(START_MS_MAX); !deadline_passed(deadline);)
        if (start(server))
            return;
    log_show(server);
    fail_msg("the private server did not start again");
}

void test_server_stop(TestServer *server, const char *mode)
{
    if (RUN(server, pg_ctl(), "-D", server->folder, "-s", "-w", "-t", "60", "-m", mode, "stop") != 0)
        fail_msg("the private server did not stop");
}

void test_server_kill(TestServer *server)
{
    pid_t pid = test_server_pid(server);

    assert_return_code(kill(pid, SIGKILL), 0);
    assert_int_equal(pid, waitpid(pid, NULL, 0));
}

pid_t test_server_pid(const TestServer *server)
{
    char path[PATH_SIZE + 32];
    int  pid = 0;

    snprintf(path, sizeof path, "%s/postmaster.pid", server->folder);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%d", &pid) != 1 || fclose(file) != 0)
        fail_msg("\"%s\" cannot be read: is the server running?", path);
    return pid;
}

const char *test_server_url(TestServer *server, const char *dbname)
{
    snprintf(server->url, sizeof server->url, "host=%s port=%d user=postgres dbname=%s",
             server->unix_url ? server->folder : "127.0.0.1", server->port, dbname);
    return server->url;
}

int test_server_port(const TestServer *server)
{
    return server->port;
}
