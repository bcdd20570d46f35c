/*
 * worker_process.c - see worker_process.h.
 */
#include "bench/worker_process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_MS 5

typedef struct {
    pid_t pids[WORKER_PROCESSES_MAX]; /* 0: ended */
    int   count;
    int   words; /* what they say on standard error, in memory */
} WorkerProcesses;

/* This process's environment with another database in it. */
static char **environment_make(Arena *arena, const BenchDatabase *database)
{
    char *const own[] = {arena_print(arena, "PAWL_DATABASE_URL=%s", database->url),
                         arena_print(arena, "PAWL_LISTEN_DATABASE_URL=%s", database->listen_url),
                         arena_text(arena, "PAWL_LOG=error"), arena_text(arena, "PAWL_LOG_FORMAT=text")};
    size_t      given = 0, used;
    char      **list;

    while (environ[given])
        given++;
    list = arena_array(arena, char *, given + COUNT(own) + 1);
    for (used = 0; used < COUNT(own); used++)
        list[used] = own[used];
    for (size_t i = 0; i < given; i++) {
        bool ours = false;

        for (size_t n = 0; n < COUNT(own); n++)
            ours |= strncmp(environ[i], own[n], strcspn(own[n], "=") + 1) == 0;
        if (!ours)
            list[used++] = environ[i];
    }
    return list;
}

/* Nothing on standard input and output, errors into memory, no signal blocked. */
static int process_start(char *const *environment, int words, pid_t *ret_pid)
{
    char *const                argv[] = {(char[]){"pawl"},   (char[]){"work"},    (char[]){BENCH_DOMAIN},
                                         (char[]){"--noop"}, (char[]){"--drain"}, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t          attributes;
    sigset_t                   none, defaults;
    int                        failure;

    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, words, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setpgroup(&attributes, 0); /* Ctrl-C is for us; we tell them */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    failure = posix_spawn(ret_pid, "/proc/self/exe", &actions, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}

static void worker_processes_signal(const WorkerProcesses *processes_started, int signal)
{
    for (int i = 0; i < processes_started->count; i++)
        if (processes_started->pids[i])
            kill(processes_started->pids[i], signal);
}

static ErrorCode worker_processes_start(WorkerProcesses *processes_started, Arena *arena, const BenchDatabase *database,
                                        int processes, Error *reterr)
{
    char **environment = environment_make(arena, database);

    assert(processes <= WORKER_PROCESSES_MAX);
    processes_started->words = memfd_create("bench", MFD_CLOEXEC);
    if (processes_started->words < 0)
        return fail(reterr, ERR_INTERNAL, "no memory for the words of worker processes: %s", strerror(errno));
    while (processes_started->count < processes) {
        int failure =
            process_start(environment, processes_started->words, &processes_started->pids[processes_started->count]);

        if (failure)
            return fail(reterr, ERR_INTERNAL, "cannot start a worker process: %s", strerror(failure));
        processes_started->count++;
    }
    return OK;
}

/* How one of them ended, in its own words. */
static ErrorCode process_judge(const WorkerProcesses *processes_started, int status, Error *reterr)
{
    char    words[256];
    ssize_t size;

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return OK;
    size                        = pread(processes_started->words, words, sizeof words - 1, 0);
    words[size > 0 ? size : 0]  = '\0';
    words[strcspn(words, "\n")] = '\0';
    return fail(reterr, ERR_INTERNAL, "a worker process ended with status %d: %s", status, words);
}

/* Until all have ended; the first that failed ends the others. */
static ErrorCode worker_processes_wait(WorkerProcesses *processes_started, const Bench *bench, ErrorCode code,
                                       Error *reterr)
{
    bool signaled = false;

    for (int left = processes_started->count; left > 0;) {
        for (int i = 0; i < processes_started->count; i++) {
            int status;

            if (!processes_started->pids[i] ||
                waitpid(processes_started->pids[i], &status, WNOHANG) != processes_started->pids[i])
                continue;
            processes_started->pids[i] = 0;
            left--;
            if (code == OK)
                code = process_judge(processes_started, status, reterr);
        }
        if (code == OK)
            code = bench_continue(bench, reterr);
        if (code != OK && !signaled) {
            worker_processes_signal(processes_started, SIGTERM);
            signaled = true;
        }
        if (left > 0)
            clock_sleep_ms(LOOK_MS);
    }
    return code;
}

ErrorCode worker_processes_run(Bench *bench, const BenchDatabase *database, int processes, Error *reterr)
{
    scoped(arena_free) Arena *arena             = arena_new(ARENA_BYTES_DEFAULT);
    WorkerProcesses           processes_started = {.words = -1};
    ErrorCode                 code = worker_processes_start(&processes_started, arena, database, processes, reterr);

    code = worker_processes_wait(&processes_started, bench, code, reterr);
    if (processes_started.words >= 0)
        close(processes_started.words);
    return code;
}
