/*
 * program.c - fork, become the account, exec, wait.
 *
 * The output goes to a memory file and not to a pipe: no thread has to read it while the program runs, and a daemon
 * that kept it open would not keep us waiting.
 */
#include "cluster/program.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* How a child that could not exec reports the reason. */
enum { EXIT_NO_ENTRY = 124, EXIT_NO_ACCOUNT = 125, EXIT_NO_PROGRAM = 127 };

#define POLL_MS 5

#define PATH_VARIABLE "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

static bool account_enter(Account account)
{
    if (geteuid() != 0 || account.uid == 0)
        return true;
    return setgroups(1, &account.gid) == 0 && setgid(account.gid) == 0 && setuid(account.uid) == 0;
}

static void signals_reset(void)
{
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL); /* the few that cannot be set refuse, which is fine */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void child_exec(const Program *program, int output)
{
    int empty = open("/dev/null", O_RDONLY);

    setsid();
    umask(077);
    signals_reset();
    if (empty < 0 || dup2(empty, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 || close_range(3, ~0U, 0) < 0)
        _exit(EXIT_NO_PROGRAM);
    if (!account_enter(program->account))
        _exit(EXIT_NO_ACCOUNT);
    /* After the change of account, which would clear it: without this process the result is of no use. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (chdir(program->directory) < 0)
        _exit(EXIT_NO_ENTRY);
    const char *const variables[] = {PATH_VARIABLE, "LC_ALL=C", program->variable, NULL};
    /* execve() takes strings that it does not change; the casts only follow its old prototype. */
    execve(program->argv[0], (char *const *)(uintptr_t)program->argv, (char *const *)(uintptr_t)variables);
    _exit(EXIT_NO_PROGRAM);
}

/* false: the deadline passed and the child was killed with its group. */
static bool child_wait(pid_t pid, Deadline deadline, int *ret_status)
{
    for (;;) {
        pid_t ended = waitpid(pid, ret_status, WNOHANG);

        if (ended == pid)
            return true;
        if (ended < 0 && errno != EINTR) {
            *ret_status = -1;
            return true;
        }
        if (deadline_passed(deadline))
            break;
        clock_sleep_ms(POLL_MS);
    }
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL); /* in case it had no time to open its session */
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    return false;
}

/* The end of it, as much as fits. */
static void output_read(int output, Text *ret_text)
{
    char    bytes[4096];
    off_t   size = lseek(output, 0, SEEK_END);
    off_t   most = (off_t)ret_text->length_max;
    off_t   at   = size > most ? size - most : 0;
    ssize_t got;

    while ((got = pread(output, bytes, sizeof bytes, at)) > 0) {
        text_append_bytes(ret_text, bytes, (size_t)got);
        at += got;
    }
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* As the mode of the directory says: the account has no other groups and no capabilities. */
static bool account_may_enter(Account account, const char *directory)
{
    struct stat found;

    if (stat(directory, &found) != 0)
        return true;
    if (found.st_uid == account.uid)
        return found.st_mode & S_IXUSR;
    return found.st_mode & (found.st_gid == account.gid ? S_IXGRP : S_IXOTH);
}

/* The first directory on the way to the program's that its account may not enter. */
static const char *directory_barred(const Program *program, Arena *arena)
{
    for (const char *slash = program->directory; (slash = strchr(slash + 1, '/'));) {
        const char *parent = arena_bytes(arena, program->directory, (size_t)(slash - program->directory));

        if (!account_may_enter(program->account, parent))
            return parent;
    }
    return program->directory;
}

static ErrorCode status_judge(const Program *program, int status, const Text *output, Error *reterr)
{
    const char               *name  = name_of(program->argv[0]);
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    if (WIFEXITED(status))
        switch (WEXITSTATUS(status)) {
        case 0:
            return OK;
        case EXIT_NO_ENTRY:
            return fail(reterr, ERR_DENIED, "user \"%s\" may not enter the directory \"%s\"", program->account.name,
                        directory_barred(program, arena));
        case EXIT_NO_ACCOUNT:
            return fail(reterr, ERR_DENIED, "cannot become user \"%s\"", program->account.name);
        case EXIT_NO_PROGRAM:
            return fail(reterr, ERR_REFUSED, "cannot run \"%s\"", program->argv[0]);
        }
    if (WIFSIGNALED(status))
        return fail(reterr, ERR_UNAVAILABLE, "%s was killed by signal %d", name, WTERMSIG(status));
    return fail(reterr, ERR_UNAVAILABLE, "%s failed: %s", name, program_complaint(text_string(output), arena));
}

ErrorCode program_run(const Program *program, Deadline deadline, Text *ret_output, Error *reterr)
{
    int output = memfd_create("output", MFD_CLOEXEC);
    int status = -1;

    assert(program->argv[0][0] == '/');
    if (output < 0)
        return fail(reterr, ERR_INTERNAL, "cannot make a memory file: %s", strerror(errno));

    pid_t pid = fork();

    if (pid == 0)
        child_exec(program, output);
    if (pid < 0) {
        close(output);
        return fail(reterr, ERR_INTERNAL, "cannot start a process: %s", strerror(errno));
    }

    bool in_time = child_wait(pid, deadline, &status);

    output_read(output, ret_output);
    close(output);
    if (!in_time)
        return fail(reterr, ERR_TIMEOUT, "%s did not end in time", name_of(program->argv[0]));
    return status_judge(program, status, ret_output, reterr);
}

/* Where the message of a line begins, NULL when it has no severity. */
static const char *line_message(const char *line)
{
    static const char *const severities[] = {"PANIC:", "FATAL:", "error:"};

    for (size_t i = 0; i < COUNT(severities); i++) {
        const char *found = strstr(line, severities[i]);

        if (found) {
            found += strlen(severities[i]);
            return found + strspn(found, " ");
        }
    }
    return NULL;
}

const char *program_complaint(const char *output, Arena *arena)
{
    char       *rest = arena_text(arena, output);
    const char *last = "";

    for (char *line; (line = strsep(&rest, "\n"));) {
        const char *message = line_message(line);

        if (message)
            return message;
        if (*line)
            last = line;
    }
    return last;
}
