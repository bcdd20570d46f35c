/*
 * postmaster.c - started by pg_ctl, which detaches it well; stopped by signals, which need no program.
 */
#include "cluster/postmaster.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/conf.h"

#define POLL_MS      10
#define RETRY_MS     100
#define IMMEDIATE_MS 5000 /* for the stop that has no work left to do */
#define LOG_TAIL_MAX ((size_t)16 << 10)
#define START_LOG    "start.log" /* what the server says before its own log is open */

/* Messages of a server that was started before its predecessor had released its files and memory. */
static const char *const transient[] = {
    "pre-existing shared memory block", /* backends of a killed postmaster are about to notice */
    "already exists",                   /* a lock file: the pg_ctl of a pawl that was killed is about to succeed */
};

/* What fits of a file, from its beginning (SEEK_SET) or up to its end (SEEK_END); "" when it cannot be read. */
static void file_read(const char *path, int whence, char *ret_bytes, size_t size)
{
    int     file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    off_t   end  = file < 0 ? 0 : lseek(file, 0, whence);
    off_t   most = (off_t)size - 1;
    ssize_t got  = file < 0 ? 0 : pread(file, ret_bytes, size - 1, end > most ? end - most : 0);

    ret_bytes[got > 0 ? got : 0] = '\0';
    if (file >= 0)
        close(file);
}

static const char *pid_file(const ClusterHome *home, Arena *arena)
{
    return arena_print(arena, "%s/postmaster.pid", home->data);
}

/* The number in the pid file's first line, -1 when there is no file, 0 when the number is not written yet. */
static pid_t pid_file_read(const ClusterHome *home, Arena *arena)
{
    const char *path = pid_file(home, arena);
    char        text[32];

    if (access(path, F_OK) < 0)
        return -1;
    file_read(path, SEEK_SET, text, sizeof text);
    if (!strchr(text, '\n'))
        return 0;
    return (pid_t)labs(strtol(text, NULL, 10)); /* negative: it runs in single-user mode */
}

/* Called postgres, and neither dead nor a zombie that its parent forgot. */
static bool process_is_postgres(pid_t pid)
{
    char path[64];
    char line[512];

    waitpid(pid, NULL, WNOHANG); /* as process 1 of a container we may be that parent */
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file_read(path, SEEK_SET, line, sizeof line);

    const char *state = strrchr(line, ')');

    return state && strstr(line, "(postgres)") && state[1] == ' ' && !strchr("ZX", state[2]);
}

/* Unreadable counts as yes: without CAP_SYS_PTRACE root may not read another user's process. */
static bool process_works_in(pid_t pid, const char *directory)
{
    char        path[64];
    struct stat there;
    struct stat here;

    snprintf(path, sizeof path, "/proc/%d/cwd", (int)pid);
    if (stat(path, &there) < 0)
        return errno == EACCES || errno == EPERM;
    return stat(directory, &here) == 0 && there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

static bool process_is_server(pid_t pid, const ClusterHome *home)
{
    return pid > 1 && process_is_postgres(pid) && process_works_in(pid, home->data);
}

PostmasterState postmaster_state(const ClusterHome *home, Arena *arena, pid_t *ret_pid)
{
    pid_t pid = pid_file_read(home, arena);

    if (ret_pid)
        *ret_pid = 0;
    if (pid < 0)
        return POSTMASTER_STOPPED;
    if (!process_is_server(pid, home))
        return POSTMASTER_CRASHED;
    if (ret_pid)
        *ret_pid = pid;
    return POSTMASTER_RUNNING;
}

/* A server creates its pid file and then writes into it: in between its owner is unknown. */
static ErrorCode pid_file_wait(const ClusterHome *home, Arena *arena, Deadline deadline, pid_t *ret_pid, Error *reterr)
{
    pid_t pid;

    while ((pid = pid_file_read(home, arena)) == 0) {
        if (deadline_passed(deadline))
            return fail(reterr, ERR_TIMEOUT,
                        "\"%s\" names no process: a server is starting, or was killed as it began; "
                        "remove the file if no server runs there",
                        pid_file(home, arena));
        clock_sleep_ms(RETRY_MS);
    }
    *ret_pid = pid;
    return OK;
}

/*
 * A pid file that names a living stranger would make PostgreSQL refuse for ever. One that names a dead process is
 * PostgreSQL's own business: it leads to backends that may have survived. Our own server may have turned up meanwhile.
 */
static ErrorCode stale_files_remove(const ClusterHome *home, Arena *arena, Deadline deadline, Error *reterr)
{
    pid_t pid = -1;

    TRY(pid_file_wait(home, arena, deadline, &pid, reterr));
    if (pid < 0 || process_is_server(pid, home) || (pid > 1 && kill(pid, 0) < 0 && errno == ESRCH))
        return OK;
    unlink(pid_file(home, arena));
    unlink(arena_print(arena, "%s/.s.PGSQL.5432.lock", home->run));
    unlink(arena_print(arena, "%s/.s.PGSQL.5432", home->run));
    return OK;
}

static const char *current_logfiles(const ClusterHome *home, Arena *arena)
{
    return arena_print(arena, "%s/current_logfiles", home->data);
}

const char *postmaster_log(const ClusterHome *home, Arena *arena)
{
    char text[PATH_MAX + 32]; /* "stderr ../log/postgresql-Mon.log\n" */

    file_read(current_logfiles(home, arena), SEEK_SET, text, sizeof text);
    text[strcspn(text, "\n")] = '\0';

    const char *name = strrchr(text, '/');

    return arena_print(arena, "%s/%s", home->log, name ? name + 1 : START_LOG);
}

static ErrorCode pg_ctl_start(const ClusterHome *home, const ServerBin *bin, Arena *arena, Deadline deadline,
                              Error *reterr)
{
    /* The log is relative to home/pg, because pg_ctl hands it to a shell, and home may hold characters that a shell
     * obeys. The data directory is in the environment: the server remembers its arguments for pg_ctl restart, which
     * others may call from anywhere, and a relative path among them would be wrong there. */
    const char *const argv[] = {
        arena_print(arena, "%s/pg_ctl", bin->directory),
        "start",
        "-l",
        arena_print(arena, "log/%s", START_LOG),
        "-s",
        "-w",
        "-t",
        arena_print(arena, "%d", deadline_left_ms(deadline) / 1000 + 1),
        NULL,
    };
    const Program    program = {.argv      = argv,
                                .directory = home->pg,
                                .account   = home->account,
                                .variable  = arena_print(arena, "PGDATA=%s", home->data)};
    scoped_text Text output  = {0};

    /* So that what stands in these afterwards was said by this start. */
    unlink(arena_print(arena, "%s/" START_LOG, home->log));
    unlink(current_logfiles(home, arena));
    text_init(&output, NULL, TEXT_MAX_LINE);
    return program_run(&program, deadline, &output, reterr);
}

static bool complaint_is_transient(const char *complaint)
{
    for (size_t i = 0; i < COUNT(transient); i++)
        if (strstr(complaint, transient[i]))
            return true;
    return false;
}

/* What a server that did not start says about it; what pg_ctl said when the server said nothing. */
static const char *start_complaint(const ClusterHome *home, Arena *arena, const Error *from_pg_ctl)
{
    char *tail = arena_alloc(arena, LOG_TAIL_MAX);

    file_read(postmaster_log(home, arena), SEEK_END, tail, LOG_TAIL_MAX);

    /* The file of the day may hold earlier starts. */
    const char *since = tail;

    for (const char *next = tail; (next = strstr(next, "starting PostgreSQL")); next++)
        since = next;

    const char *words = program_complaint(since, arena);

    return *words ? words : arena_text(arena, from_pg_ctl->text);
}

ErrorCode postmaster_start(const ClusterHome *home, const ServerBin *bin, Arena *arena, Deadline deadline,
                           Error *reterr)
{
    TRY(cluster_conf_write(home, reterr));
    while (postmaster_state(home, arena, NULL) != POSTMASTER_RUNNING) {
        Error error = {0};

        TRY(stale_files_remove(home, arena, deadline, reterr));

        ErrorCode code = pg_ctl_start(home, bin, arena, deadline, &error);

        if (code == OK)
            return OK;
        if (code == ERR_DENIED || code == ERR_REFUSED)
            return fail(reterr, code, "%s", error.text);

        const char *complaint = start_complaint(home, arena, &error);

        if (code == ERR_TIMEOUT || deadline_passed(deadline))
            return fail(reterr, ERR_TIMEOUT, "the private PostgreSQL did not start in time: %s", complaint);
        if (!complaint_is_transient(complaint))
            return fail(reterr, ERR_UNAVAILABLE, "the private PostgreSQL does not start: %s", complaint);
        clock_sleep_ms(RETRY_MS);
    }
    return OK;
}

/* false: it still runs at the deadline. */
static bool stop_by(const ClusterHome *home, Arena *arena, pid_t pid, int signal_number, Deadline deadline)
{
    kill(pid, signal_number);
    while (process_is_server(pid, home) && pid_file_read(home, arena) == pid) {
        if (deadline_passed(deadline))
            return false;
        clock_sleep_ms(POLL_MS);
    }
    return true;
}

ErrorCode postmaster_stop(const ClusterHome *home, Arena *arena, Deadline deadline, Error *reterr)
{
    pid_t pid;

    if (postmaster_state(home, arena, &pid) != POSTMASTER_RUNNING)
        return OK;
    if (!stop_by(home, arena, pid, SIGINT, deadline) &&
        !stop_by(home, arena, pid, SIGQUIT, deadline_in_ms(IMMEDIATE_MS)))
        return fail(reterr, ERR_TIMEOUT, "the private PostgreSQL (process %d) does not stop", (int)pid);
    return OK;
}
