/*
 * shell.c - see shell.h.
 */
#include "bus/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"

#define WORD_MAX        2048
#define WORD_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+-"

extern char **environ;

#define GROUPS_MAX 4096 /* more than handlers run at a time; one that finds no place is not killed */

/* Without a lock, because a signal handler reads it. 0: free. */
static _Atomic pid_t groups[GROUPS_MAX];

void shell_began(pid_t pid)
{
    for (int i = 0; i < GROUPS_MAX; i++) {
        pid_t none = 0;

        if (atomic_compare_exchange_strong(&groups[i], &none, pid))
            return;
    }
}

void shell_ended(pid_t pid)
{
    for (int i = 0; i < GROUPS_MAX; i++) {
        pid_t own = pid;

        if (atomic_compare_exchange_strong(&groups[i], &own, 0))
            return;
    }
}

void shell_kill_all(void)
{
    for (int i = 0; i < GROUPS_MAX; i++) {
        pid_t pid = atomic_load(&groups[i]);

        if (pid > 0)
            kill(-pid, SIGKILL);
    }
}

int shell_spawn(const char *program, char **environment, const int *fds, int count, pid_t *ret_pid)
{
    char *const                arguments[] = {(char[]){"sh"}, (char[]){"-c"}, strdup(program), NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t          attributes;
    sigset_t                   none, all;
    int                        failed;

    if (!arguments[2])
        abort();
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawn_file_actions_init(&files);
    for (int i = 0; i < count; i++)
        posix_spawn_file_actions_adddup2(&files, fds[i], i);
    posix_spawn_file_actions_addclosefrom_np(&files, count);
    failed = FAULT_NAMED("bus.exec.spawn")
                 ? EAGAIN
                 : posix_spawn(ret_pid, "/bin/sh", &files, &attributes, arguments, environment);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    free(arguments[2]);
    return failed;
}

/* The word that names the program: behind blanks and assignments. 0: only a shell can resolve it. */
static size_t program_word(const char *program, const char **ret_word)
{
    for (;;) {
        program += strspn(program, " \t");
        size_t size = strspn(program, WORD_CHARACTERS);

        if (program[size] == '=') {
            size += 1 + strspn(program + size + 1, WORD_CHARACTERS ":,@%");
            if (program[size] != ' ')
                return 0;
            program += size;
            continue;
        }
        *ret_word = program;
        return program[size] == '\0' || strchr(" \t;&|<>", program[size]) ? size : 0;
    }
}

/* Does the shell know it: in its path, a builtin, a reserved word? */
static bool shell_knows(const char *word)
{
    char  text[2 * WORD_MAX];
    int   null = open("/dev/null", O_RDWR | O_CLOEXEC), status = 0;
    pid_t pid;

    snprintf(text, sizeof text, "command -v -- %s", word);
    if (null < 0 || shell_spawn(text, environ, (int[]){null, null, null}, 3, &pid) != 0)
        abort();
    close(null);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

ErrorCode shell_check(const char *program, Error *reterr)
{
    const char *start;
    char        word[WORD_MAX];
    struct stat file;
    size_t      size = program_word(program, &start);

    if (size == 0 || size >= sizeof word)
        return OK;
    memcpy(word, start, size);
    word[size] = '\0';
    if (!strchr(word, '/'))
        return shell_knows(word) ? OK : fail(reterr, ERR_USAGE, "program \"%s\" was not found in PATH", word);
    if (stat(word, &file) < 0)
        return fail(reterr, ERR_USAGE, "program \"%s\" cannot be run: %s", word, strerror(errno));
    if (!S_ISREG(file.st_mode) || access(word, X_OK) < 0)
        return fail(reterr, ERR_USAGE, "program \"%s\" cannot be run: it is not an executable file", word);
    return OK;
}

/* A path and plain arguments: then the shell can become the program. */
static bool line_is_plain(const char *line)
{
    const char *word;
    size_t      size = program_word(line, &word);

    return size > 0 && word == line && memchr(word, '/', size) && line[strspn(line, WORD_CHARACTERS " ")] == '\0';
}

char *shell_line(const char *program)
{
    char *line = NULL;

    if (asprintf(&line, line_is_plain(program) ? "exec %s" : "%s", program) < 0)
        abort();
    return line;
}
