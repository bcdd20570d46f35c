/*
 * handler_exec.c - one program per command; see handler.h for the contract with it.
 *
 * The handler thread feeds, reads and reaps its own child in one poll loop: no other thread ever waits for a child or
 * sends it a signal. stop() only writes to an eventfd. The child is reaped last, so that while we send signals to its group
 * the number cannot belong to another process. The shell often ends before the program that it started, so a stopped run lasts
 * until its group has no process left. SIGPIPE is blocked in handler threads (thread_start), so a program that does not read
 * its input costs nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/memory.h"
#include "base/reader.h"
#include "base/sync.h"
#include "base/text.h"
#include "bus/handler.h"
#include "bus/shell.h"

#define CHUNK_BYTES  65536
#define ENV_MAX      4096
#define EXIT_POLL_MS 20

/* Progress is read this often at most, so a program that writes nothing else costs little: it waits for its pipe. */
#define PROGRESS_READ_MS  50
#define PROGRESS_BYTES    16384
#define PROGRESS_READS    8  /* when the program has ended: more than a pipe has */
#define STREAM_READS      20 /* likewise, if the program made it as large as it may, 1 MiB */
#define PROGRESS_FD       3
#define PROGRESS_VARIABLE "PAWL_PROGRESS_FD=3"

extern char **environ;

typedef struct {
    Handler base;
    Mutex   mutex; /* guards job->run */
    char   *program;
} ExecHandler;

/* The last bytes of a stream. */
typedef struct {
    char   bytes[2 * EXEC_ERROR_MAX];
    size_t size;
} Tail;

typedef enum { END_NORMAL, END_STOPPED, END_TOO_MUCH } EndReason;

typedef struct {
    pid_t       pid;
    int         input, output, errors, progress; /* our ends; -1: closed */
    int         exited;                          /* pidfd; -1: none could be had */
    int         stop;                            /* eventfd */
    bool        stop_seen;                       /* `stop` was written to */
    bool        ended;                           /* the child has; it is not reaped yet */
    bool        killed;                          /* SIGKILL was sent to its group */
    const char *unsent;
    size_t      unsent_size;
    Text        said;
    Tail        complaint;
    EndReason   why;
    Deadline    kill_at;

    Job          *job;
    ProgressLines lines;
    Deadline      read_at; /* progress is read next */
} Run;

static void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- starting ---- */

/* What is not for programs: our own settings, with the admin's token among them, and ways into the database. */
static bool variable_is_secret(const char *variable)
{
    static const char *const prefixes[] = {"PAWL_", "DATABASE_URL=", "PGPASSWORD=", "PGPASSFILE=", "PGSERVICEFILE="};

    for (size_t i = 0; i < COUNT(prefixes); i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* Ours, without what is secret, and with the command's own. */
static char **environment_make(const Job *job)
{
    static const char *const names[] = {"PAWL_COMMAND_ID=", "PAWL_DOMAIN=",       "PAWL_TYPE=",
                                        "PAWL_ATTEMPT=",    "PAWL_MAX_ATTEMPTS=", "PAWL_PROGRESS="};
    Arena                   *arena   = job->arena;
    const ClaimedCommand    *command = job->command;
    char                   **list    = arena_array(arena, char *, ENV_MAX + COUNT(names) + 2);
    size_t                   count   = 0;

    for (char **old = environ; *old && count < ENV_MAX; old++)
        if (!variable_is_secret(*old))
            list[count++] = *old;
    list[count++] = arena_print(arena, "%s%s", names[0], command->command_id);
    list[count++] = arena_print(arena, "%s%s", names[1], job->domain);
    list[count++] = arena_print(arena, "%s%s", names[2], command->type);
    list[count++] = arena_print(arena, "%s%d", names[3], command->attempt);
    list[count++] = arena_print(arena, "%s%d", names[4], command->max_attempts);
    if (command->progress)
        list[count++] = arena_print(arena, "%s%s", names[5], command->progress);
    list[count++] = arena_text(arena, PROGRESS_VARIABLE);
    return list;
}

/* The child's end of each pipe is closed on the way out; ours does not block. 0, or an errno. */
static int run_start(Run *run, const char *program, char **environment)
{
    int pipes[4][2] = {
        {-1, -1},
        {-1, -1},
        {-1, -1},
        {-1, -1}
    };
    int failed = 0;

    for (int i = 0; i < (int)COUNT(pipes) && !failed; i++)
        failed = pipe2(pipes[i], O_CLOEXEC) ? errno : 0;
    if (!failed)
        failed = shell_spawn(program, environment,
                             (int[]){pipes[0][0], pipes[1][1], pipes[2][1], [PROGRESS_FD] = pipes[3][1]}, COUNT(pipes),
                             &run->pid);
    fd_close(&pipes[0][0]);
    fd_close(&pipes[1][1]);
    fd_close(&pipes[2][1]);
    fd_close(&pipes[3][1]);
    run->input    = pipes[0][1];
    run->output   = pipes[1][0];
    run->errors   = pipes[2][0];
    run->progress = pipes[3][0];
    if (failed)
        return failed;
    fcntl(run->input, F_SETFL, O_NONBLOCK);
    fcntl(run->output, F_SETFL, O_NONBLOCK);
    fcntl(run->errors, F_SETFL, O_NONBLOCK);
    fcntl(run->progress, F_SETFL, O_NONBLOCK);
    run->exited = FAULT("bus.exec.pidfd") ? -1 : pidfd_open(run->pid, 0);
    return 0;
}

/* ---- while it runs ---- */

static void tail_append(Tail *tail, const char *bytes, size_t size)
{
    size_t keep = sizeof tail->bytes / 2;

    if (size > keep) {
        bytes += size - keep;
        size = keep;
    }
    if (tail->size + size > sizeof tail->bytes) {
        memmove(tail->bytes, tail->bytes + tail->size - keep, keep);
        tail->size = keep;
    }
    memcpy(tail->bytes + tail->size, bytes, size);
    tail->size += size;
}

static void run_end(Run *run, EndReason why, int signal, int grace_ms)
{
    if (run->why == END_NORMAL)
        run->why = why;
    kill(-run->pid, signal);
    run->killed |= signal == SIGKILL;
    run->kill_at = deadline_sooner(run->kill_at, deadline_in_ms(grace_ms));
}

static void input_write(Run *run)
{
    ssize_t written = write(run->input, run->unsent, run->unsent_size);

    if (written > 0) {
        run->unsent += written;
        run->unsent_size -= (size_t)written;
    }
    if (run->unsent_size == 0 ||
        (written < 0 && errno != EAGAIN && errno != EINTR)) /* it does not want it all: its right */
        fd_close(&run->input);
}

/* false: nothing there just now, or the end. */
static bool stream_read(Run *run, int *fd)
{
    char    chunk[CHUNK_BYTES];
    ssize_t size = read(*fd, chunk, sizeof chunk);

    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
        fd_close(fd);
    if (size <= 0)
        return false;
    if (fd == &run->errors) {
        tail_append(&run->complaint, chunk, (size_t)size);
        return true;
    }
    text_append_bytes(&run->said, chunk, (size_t)size);
    if (text_is_full(&run->said))
        run_end(run, END_TOO_MUCH, SIGKILL, 0);
    return true;
}

/* What the program has left in the pipe; a process in the background may go on writing. */
static void stream_end(Run *run, int *fd)
{
    for (int i = 0; i < STREAM_READS && *fd >= 0 && stream_read(run, fd); i++)
        ;
}

static void progress_take(void *context, const JobProgress *progress)
{
    Run *run = context;

    if (run->job->report) /* the line was checked */
        run->job->report(run->job, progress);
}

/* false: nothing there just now, or the end. */
static bool progress_read(Run *run)
{
    char    chunk[PROGRESS_BYTES];
    ssize_t size = read(run->progress, chunk, sizeof chunk);

    run->read_at = deadline_in_ms(PROGRESS_READ_MS);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
        fd_close(&run->progress);
    if (size > 0)
        progress_lines_read(&run->lines, chunk, (size_t)size, progress_take, run);
    return size > 0;
}

/* As stream_end(). */
static void progress_end(Run *run)
{
    for (int i = 0; i < PROGRESS_READS && run->progress >= 0 && progress_read(run); i++)
        ;
    progress_lines_end(&run->lines, progress_take, run);
}

/* For a program that there was no file descriptor to watch by. */
static bool run_has_exited(const Run *run)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == run->pid;
}

/* Of a folder of /proc: does it belong to this group, and is it more than an entry that was not reaped yet? */
static bool process_is_of(const char *name, pid_t group)
{
    char  path[64], line[512];
    FILE *file;
    char  state = 'X';
    int   found = 0;

    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    file = fopen(path, "re");
    if (!file)
        return false;
    /* "12 (name) S 1 11": the name may contain blanks and parentheses. */
    const char *rest = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    if (!rest || sscanf(rest, ") %c %*d %d", &state, &found) != 2)
        found = 0;
    (void)fclose(file);
    return found == group && state != 'Z' && state != 'X';
}

/* Not by kill(-group, 0): that also counts what was not reaped, the shell among it. Without /proc: no. */
static bool group_is_alive(pid_t group)
{
    DIR *folder = opendir("/proc");
    bool found  = false;

    for (const struct dirent *entry; folder && !found && (entry = readdir(folder));)
        found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && process_is_of(entry->d_name, group);
    if (folder)
        closedir(folder);
    return found;
}

/* What was not stopped may leave processes behind in the background: they keep the pipes open for as long as they like. */
static bool run_is_over(const Run *run)
{
    return run->ended && (run->why != END_STOPPED || run->killed || !group_is_alive(run->pid));
}

/* How long to wait for an event; -1: for as long as it takes. reads: progress is one. */
static int run_wait_ms(const Run *run, bool reads)
{
    Deadline next  = reads ? run->kill_at : deadline_sooner(run->kill_at, run->read_at);
    int      left  = next.at.ns == INT64_MAX ? -1 : deadline_left_ms(next);
    bool     polls = run->exited < 0 || run->ended; /* the end of a group is no event */

    return polls && (left < 0 || left > EXIT_POLL_MS) ? EXIT_POLL_MS : left;
}

/* Until the program has ended. */
static void run_watch(Run *run)
{
    while (!run_is_over(run)) {
        bool          reads = run->progress < 0 || deadline_passed(run->read_at);
        struct pollfd fds[] = {
            {run->input,                      POLLOUT, 0},
            {run->output,                     POLLIN,  0},
            {run->errors,                     POLLIN,  0},
            {run->ended ? -1 : run->exited,   POLLIN,  0},
            {run->stop_seen ? -1 : run->stop, POLLIN,  0},
            {reads ? run->progress : -1,      POLLIN,  0}
        };

        if (poll(fds, COUNT(fds), run_wait_ms(run, reads)) < 0)
            continue;
        if (fds[0].revents)
            input_write(run);
        if (fds[1].revents)
            stream_read(run, &run->output);
        if (fds[2].revents)
            stream_read(run, &run->errors);
        run->ended |= run->exited < 0 ? run_has_exited(run) : fds[3].revents != 0;
        if (fds[4].revents) {
            run->stop_seen = true;
            run_end(run, END_STOPPED, SIGTERM, EXEC_GRACE_MS);
        }
        if (fds[5].revents)
            progress_read(run);
        if (deadline_passed(run->kill_at)) {
            run_end(run, run->why, SIGKILL, 0);
            run->kill_at = deadline_never();
        }
    }
    stream_end(run, &run->output);
    stream_end(run, &run->errors);
    progress_end(run);
}

/* ---- what it meant ---- */

/* What PostgreSQL's text can hold: the last EXEC_ERROR_MAX bytes, from the beginning of a character on. */
static const char *complaint_text(Arena *arena, const Tail *tail)
{
    size_t size  = tail->size < EXEC_ERROR_MAX ? tail->size : EXEC_ERROR_MAX;
    char  *bytes = arena_bytes(arena, tail->bytes + tail->size - size, size);
    size_t skip  = 0;

    while (tail->size > EXEC_ERROR_MAX && skip < 3 && skip < size && ((unsigned char)bytes[skip] & 0xC0) == 0x80)
        skip++;
    bytes += skip;
    size -= skip;
    text_clean(bytes, size);
    while (size > 0 && (bytes[size - 1] == '\n' || bytes[size - 1] == ' '))
        size--;
    bytes[size] = '\0';
    return size ? bytes : NULL;
}

static const char *status_text(Arena *arena, int status)
{
    if (WIFSIGNALED(status))
        return arena_print(arena, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return arena_print(arena, "exited with status %d", WEXITSTATUS(status));
}

static Outcome status_outcome(int status)
{
    static const struct {
        int     status;
        Outcome outcome;
    } rows[] = {
        {0,  OUTCOME_COMPLETE},
        {65, OUTCOME_REJECT  },
        {70, OUTCOME_FAIL    },
        {79, OUTCOME_SNOOZE  }
    };

    for (size_t i = 0; WIFEXITED(status) && i < COUNT(rows); i++)
        if (rows[i].status == WEXITSTATUS(status))
            return rows[i].outcome;
    return OUTCOME_RETRY;
}

static const Field snooze_fields[] = {
    {"delay_s", FIELD_REAL, 0, .min = SNOOZE_S_MIN, .max = SNOOZE_S_MAX, .required = true},
};
static const FieldTable snooze_table = {"snooze", snooze_fields, COUNT(snooze_fields), sizeof(double)};

/* What the program has printed: for how long, or nothing. Any other output is a defect of the program, which a retry shows. */
static void snooze_judge(const Run *run, Arena *arena, SettleItem *ret_settle)
{
    const char *said   = text_string(&run->said);
    double      delay  = 0;
    Error       reason = {0};

    if (said[strspn(said, " \t\r\n")] == '\0')
        return;
    if (reader_object(said, run->said.length, &snooze_table, arena, &delay, &reason) == OK) {
        ret_settle->delay_ms = (int64_t)(delay * 1000);
        return;
    }
    ret_settle->outcome = OUTCOME_RETRY;
    ret_settle->error =
        arena_print(arena, "exited with status 79, and its output is not {\"delay_s\": N}: %s", reason.text);
}

static void run_judge(const Run *run, int status, Arena *arena, SettleItem *ret_settle)
{
    const char *complaint = complaint_text(arena, &run->complaint);

    if (run->why == END_TOO_MUCH) {
        ret_settle->outcome = OUTCOME_FAIL;
        ret_settle->error   = arena_print(arena, "output larger than %zu bytes", EXEC_OUTPUT_MAX);
        return;
    }
    ret_settle->outcome = status_outcome(status);
    if (ret_settle->outcome == OUTCOME_SNOOZE) {
        ret_settle->error = complaint;
        snooze_judge(run, arena, ret_settle);
    } else if (ret_settle->outcome != OUTCOME_COMPLETE)
        ret_settle->error = complaint ? complaint : status_text(arena, status);
    else if (reader_check(text_string(&run->said), run->said.length, NULL) == OK)
        ret_settle->result = text_string(&run->said);
}

/* ---- the handler ---- */

static void job_publish(ExecHandler *handler, Job *job, Run *run)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&handler->mutex);

    job->run = run;
}

static void run_close(Run *run)
{
    fd_close(&run->input);
    fd_close(&run->output);
    fd_close(&run->errors);
    fd_close(&run->progress);
    fd_close(&run->exited);
    fd_close(&run->stop);
}

static void exec_run(Handler *base, Job *job, SettleItem *ret_settle)
{
    ExecHandler *handler = (ExecHandler *)base;
    Run         *run     = arena_alloc(job->arena, sizeof *run);
    int          status  = 0, failed;

    *run = (Run){
        .input = -1, .output = -1, .errors = -1, .progress = -1, .exited = -1, .kill_at = deadline_never(), .job = job};
    text_init(&run->said, job->arena, EXEC_OUTPUT_MAX);
    run->stop        = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    run->unsent      = job->command->payload;
    run->unsent_size = strlen(run->unsent);
    failed           = run->stop < 0 ? errno : run_start(run, handler->program, environment_make(job));
    if (failed) {
        job->not_begun = arena_print(job->arena, "program cannot be started: %s", strerror(failed));
        run_close(run);
        return;
    }
    shell_began(run->pid);
    job_publish(handler, job, run);
    if (job_is_stopped(job)) /* before stop() could see the run */
        run_end(run, END_STOPPED, SIGTERM, EXEC_GRACE_MS);
    run_watch(run);
    job_publish(handler, job, NULL);
    if (run->why !=
        END_NORMAL) /* nothing of it is left behind; its number is still its own, because it was not reaped */
        kill(-run->pid, SIGKILL);
    shell_ended(run->pid);
    while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
        ;
    run_judge(run, status, job->arena, ret_settle);
    if (ret_settle->outcome == OUTCOME_COMPLETE && !ret_settle->result)
        job->output = text_string(&run->said);
    run_close(run);
}

static void exec_stop(Handler *base, Job *job)
{
    ExecHandler                *handler = (ExecHandler *)base;
    scoped(mutex_unlock) Mutex *held    = mutex_hold(&handler->mutex);
    Run                        *run     = job->run;
    int64_t                     one     = 1;

    if (run && write(run->stop, &one, sizeof one) != sizeof one)
        return; /* full: it was written to already */
}

ErrorCode handler_exec_check(const char *program, Error *reterr)
{
    return shell_check(program, reterr);
}

Handler *handler_exec_new(const char *program)
{
    ExecHandler *handler = memory_new(1, sizeof *handler);

    handler->base    = (Handler){.run = exec_run, .stop = exec_stop};
    handler->program = shell_line(program);
    mutex_init(&handler->mutex);
    return &handler->base;
}

void handler_exec_free(Handler *base)
{
    ExecHandler *handler = (ExecHandler *)base;

    mutex_done(&handler->mutex);
    free(handler->program);
    free(handler);
}
