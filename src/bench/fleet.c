/*
 * fleet.c - see fleet.h.
 */
#include "bench/fleet.h"

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
    pid_t pids[FLEET_MAX]; /* 0: ended */
    int   count;
    int   words; /* what they say on standard error, in memory */
} Fleet;

/* This process's environment with another database in it. */
static char **environment_make(Arena *arena, const Place *place)
{
    char *const own[] = {arena_print(arena, "PAWL_DATABASE_URL=%s", place->url),
                         arena_print(arena, "PAWL_LISTEN_DATABASE_URL=%s", place->listen_url),
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

static void fleet_tell(const Fleet *fleet, int signal)
{
    for (int i = 0; i < fleet->count; i++)
        if (fleet->pids[i])
            kill(fleet->pids[i], signal);
}

static ErrorCode fleet_start(Fleet *fleet, Arena *arena, const Place *place, int processes, Error *reterr)
{
    char **environment = environment_make(arena, place);

    assert(processes <= FLEET_MAX);
    fleet->words = memfd_create("bench", MFD_CLOEXEC);
    if (fleet->words < 0)
        return fail(reterr, ERR_INTERNAL, "no memory for the words of worker processes: %s", strerror(errno));
    while (fleet->count < processes) {
        int failure = process_start(environment, fleet->words, &fleet->pids[fleet->count]);

        if (failure)
            return fail(reterr, ERR_INTERNAL, "cannot start a worker process: %s", strerror(failure));
        fleet->count++;
    }
    return OK;
}

/* How one of them ended, in its own words. */
static ErrorCode process_judge(const Fleet *fleet, int status, Error *reterr)
{
    char    words[256];
    ssize_t size;

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return OK;
    size                        = pread(fleet->words, words, sizeof words - 1, 0);
    words[size > 0 ? size : 0]  = '\0';
    words[strcspn(words, "\n")] = '\0';
    return fail(reterr, ERR_INTERNAL, "a worker process ended with status %d: %s", status, words);
}

/* Until all have ended; the first that failed ends the others. */
static ErrorCode fleet_wait(Fleet *fleet, const Bench *bench, ErrorCode code, Error *reterr)
{
    bool told = false;

    for (int left = fleet->count; left > 0;) {
        for (int i = 0; i < fleet->count; i++) {
            int status;

            if (!fleet->pids[i] || waitpid(fleet->pids[i], &status, WNOHANG) != fleet->pids[i])
                continue;
            fleet->pids[i] = 0;
            left--;
            if (code == OK)
                code = process_judge(fleet, status, reterr);
        }
        if (code == OK)
            code = bench_continue(bench, reterr);
        if (code != OK && !told) {
            fleet_tell(fleet, SIGTERM);
            told = true;
        }
        if (left > 0)
            clock_sleep_ms(LOOK_MS);
    }
    return code;
}

ErrorCode fleet_run(Bench *bench, const Place *place, int processes, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Fleet                     fleet = {.words = -1};
    ErrorCode                 code  = fleet_start(&fleet, arena, place, processes, reterr);

    code = fleet_wait(&fleet, bench, code, reterr);
    if (fleet.words >= 0)
        close(fleet.words);
    return code;
}
