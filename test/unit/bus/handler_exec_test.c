/*
 * handler_exec_test.c - real programs: every way to end, to say too much, to hang, and not to begin.
 */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/sync.h"
#include "bus/handler.h"
#include "bus/metric.h"
#include "test/harness/test.h"
#include "test/unit/pg/await.h"

typedef struct {
    Handler       *handler;
    ClaimedCommand command;
    Job            task;
    SettleItem     item;
    pthread_t      thread;
    atomic_bool    done;
    atomic_int     reports;
    int            percent; /* of the last report, when the program has ended */
    char           text[PROGRESS_TEXT_SIZE];
} Trial;

static void trial_report(Job *task, const JobProgress *progress)
{
    Trial *trial = (Trial *)((char *)task - offsetof(Trial, task));

    trial->percent = progress->percent;
    snprintf(trial->text, sizeof trial->text, "%s", progress->text ? progress->text : "");
    atomic_fetch_add(&trial->reports, 1);
}

static void *trial_body(void *context)
{
    Trial *trial = context;

    trial->handler->run(trial->handler, &trial->task, &trial->item);
    atomic_store(&trial->done, true);
    return NULL;
}

/* That the attempt before has reported. */
static const char *last_progress;

/* On a thread, as the worker does: there SIGPIPE is blocked. */
static Trial *trial_start(const char *program, const char *payload)
{
    Trial *trial = calloc(1, sizeof *trial);

    assert_non_null(trial);
    trial->handler      = handler_exec_new(program);
    trial->command      = (ClaimedCommand){.id           = 1,
                                           .command_id   = "0190a000-0000-7000-8000-00000000000a",
                                           .type         = "hello",
                                           .payload      = payload,
                                           .progress     = last_progress,
                                           .attempt      = 2,
                                           .max_attempts = 3};
    trial->task.command = &trial->command;
    trial->task.domain  = "mail";
    trial->task.report  = trial_report;
    trial->task.arena   = arena_new((size_t)64 << 20);
    trial->thread       = thread_start("trial", trial_body, trial);
    return trial;
}

static void trial_stop(Trial *trial)
{
    atomic_store(&trial->task.stopped, true);
    trial->handler->stop(trial->handler, &trial->task);
}

static void trial_free(Trial *trial)
{
    handler_exec_free(trial->handler);
    arena_free(trial->task.arena);
    free(trial);
}
SCOPED(Trial, trial_free)

static Trial *trial_run(const char *program, const char *payload)
{
    Trial *trial = trial_start(program, payload);

    thread_join(trial->thread);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
    return trial;
}

TEST(exec_every_exit_status_has_its_outcome)
{
    static const struct {
        const char *program;
        Outcome     outcome;
        const char *error;
    } rows[] = {
        {"exit 0",                       OUTCOME_COMPLETE, NULL                        },
        {"echo why >&2; exit 1",         OUTCOME_RETRY,    "why"                       },
        {"exit 2",                       OUTCOME_RETRY,    "exited with status 2"      },
        {"echo no money >&2; exit 65",   OUTCOME_REJECT,   "no money"                  },
        {"echo broken >&2; exit 70",     OUTCOME_FAIL,     "broken"                    },
        {"exit 75",                      OUTCOME_RETRY,    "exited with status 75"     },
        {"kill -9 $$",                   OUTCOME_RETRY,    "ended by signal 9 (Killed)"},
        {"/nonexistent/program",         OUTCOME_RETRY,    "not found"                 },
        {"printf 'a\\377b' >&2; exit 1", OUTCOME_RETRY,    "a?b"                       },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped(trial_free) Trial *trial = trial_run(rows[i].program, "{}");

        assert_int_equal(trial->item.outcome, rows[i].outcome);
        if (rows[i].error)
            assert_contains(trial->item.error, rows[i].error);
        else
            assert_null(trial->item.error);
    }
}

TEST(exec_output_is_the_result_if_it_is_json)
{
    scoped(trial_free) Trial *json  = trial_run("echo '{\"ok\": true}'", "{}");
    scoped(trial_free) Trial *words = trial_run("echo done", "{}");
    scoped(trial_free) Trial *none  = trial_run("true", "{}");

    assert_string_equal(json->item.result, "{\"ok\": true}\n");
    assert_int_equal(words->item.outcome, OUTCOME_COMPLETE);
    assert_null(words->item.result);
    assert_null(none->item.result);
}

TEST(exec_program_has_the_command_in_its_environment_and_on_its_input)
{
    scoped(trial_free) Trial *trial =
        trial_run("printf '[\"%s %s %s %s %s\", %s]' $PAWL_COMMAND_ID $PAWL_DOMAIN $PAWL_TYPE $PAWL_ATTEMPT "
                  "$PAWL_MAX_ATTEMPTS \"$(cat)\"",
                  "{\"n\": 1}");

    assert_string_equal(trial->item.result, "[\"0190a000-0000-7000-8000-00000000000a mail hello 2 3\", {\"n\": 1}]");
}

TEST(exec_program_inherits_neither_our_settings_nor_a_way_into_the_database)
{
    static const char *const secret[] = {"PAWL_ADMIN_TOKEN",   "PAWL_DATABASE_URL", "PAWL_LISTEN_DATABASE_URL",
                                         "PAWL_ALERT_WEBHOOK", "DATABASE_URL",      "PGPASSWORD"};

    for (size_t i = 0; i < COUNT(secret); i++)
        setenv(secret[i], "s3cr3t", 1);
    setenv("SHOP_COLOUR", "green", 1);
    scoped(trial_free) Trial *trial =
        trial_run("env | grep -c s3cr3t; env | grep -q PAWL_COMMAND_ID && test $SHOP_COLOUR = green", "1");
    for (size_t i = 0; i < COUNT(secret); i++)
        unsetenv(secret[i]);
    unsetenv("SHOP_COLOUR");
    assert_string_equal(trial->item.result, "0\n");
    assert_int_equal(trial->item.outcome, OUTCOME_COMPLETE);
}

TEST(exec_passes_a_payload_of_a_megabyte_and_takes_no_offence_if_it_is_not_read)
{
    size_t size    = (size_t)1 << 20;
    char  *payload = malloc(size + 3);

    assert_non_null(payload);
    memset(payload, 'x', size + 2);
    payload[0] = payload[size + 1]    = '"';
    payload[size + 2]                 = '\0';
    scoped(trial_free) Trial *counted = trial_run("wc -c", payload);
    scoped(trial_free) Trial *ignored = trial_run("exec <&-; echo 1", payload);
    assert_string_equal(counted->item.result, "1048578\n");
    assert_int_equal(ignored->item.outcome, OUTCOME_COMPLETE);
    assert_string_equal(ignored->item.result, "1\n");
    free(payload);
}

TEST(exec_ends_a_program_that_says_too_much)
{
    scoped(trial_free) Trial *trial = trial_run("exec yes", "{}");

    assert_int_equal(trial->item.outcome, OUTCOME_FAIL);
    assert_contains(trial->item.error, "output larger than 1048576 bytes");
}

TEST(exec_keeps_the_end_of_a_long_error_output)
{
    scoped(trial_free) Trial *trial = trial_run("yes complaint | head -c 100000 >&2; echo the end >&2; exit 1", "{}");

    assert_in_range(strlen(trial->item.error), EXEC_ERROR_MAX - 4, EXEC_ERROR_MAX);
    assert_string_equal(trial->item.error + strlen(trial->item.error) - 7, "the end");
}

static pid_t pid_from(const char *path)
{
    FILE *file = fopen(path, "r");
    int   pid  = 0;

    if (file && fscanf(file, "%d", &pid) != 1)
        pid = 0;
    if (file)
        fclose(file);
    return pid;
}

/* The group, not only the shell: the sleeper is a grandchild that ignores SIGTERM. */
TEST(exec_stop_kills_the_whole_group_even_if_it_ignores_sigterm)
{
    char path[] = "/tmp/pawl-exec-XXXXXX", program[512];
    int  fd     = mkstemp(path);
    Mono start  = clock_mono();

    assert_true(fd >= 0);
    close(fd);
    snprintf(program, sizeof program, "trap '' TERM; (trap '' TERM; exec sleep 1000) & echo $! > %s; wait; wait", path);
    scoped(trial_free) Trial *trial = trial_start(program, "{}");
    pid_t                     pid   = 0;
    await((pid = pid_from(path)) > 0);
    trial_stop(trial);
    thread_join(trial->thread);
    assert_int_equal(trial->item.outcome, OUTCOME_RETRY);
    assert_contains(trial->item.error, "signal 9");
    assert_true(mono_ms_between(start, clock_mono()) >= EXEC_GRACE_MS);
    await(kill(pid, 0) != 0);
    unlink(path);
}

TEST(exec_stop_is_gentle_first)
{
    scoped(trial_free) Trial *trial =
        trial_start("trap 'echo bye >&2; exit 75' TERM; echo; while :; do sleep 0.05; done", "{}");
    Mono start = clock_mono();

    clock_sleep_ms(0);
    trial_stop(trial);
    thread_join(trial->thread);
    assert_int_equal(trial->item.outcome, OUTCOME_RETRY);
    assert_true(mono_ms_between(start, clock_mono()) < EXEC_GRACE_MS + test_stalled_ms());
}

static bool file_says(const char *path, const char *text)
{
    FILE *file     = fopen(path, "r");
    char  line[16] = "";
    bool  said     = file && fgets(line, sizeof line, file) && strncmp(line, text, strlen(text)) == 0;

    if (file)
        fclose(file);
    return said;
}

/* Stop a program that needs a while to clean up. The tail is what follows it on the line. */
static Trial *trial_stopped(const char *tail, const char *path)
{
    char  script[] = "/tmp/pawl-script-XXXXXX", line[128];
    FILE *file     = fdopen(mkstemp(script), "w");

    assert_non_null(file);
    fprintf(file, "trap 'sleep 0.3; echo clean > %s; exit 65' TERM; echo ready > %s; while :; do sleep 0.05; done\n",
            path, path);
    fclose(file);
    snprintf(line, sizeof line, "/bin/sh %s%s", script, tail);
    Trial *trial = trial_start(line, "{}");
    await(file_says(path, "ready"));
    trial_stop(trial);
    thread_join(trial->thread);
    unlink(script);
    return trial;
}

/* The shell of `sh -c LINE` ends by SIGTERM immediately, while the program that it started cleans up. */
TEST(exec_stop_waits_for_the_program_and_not_only_for_its_shell)
{
    char path[] = "/tmp/pawl-state-XXXXXX";

    close(mkstemp(path));
    scoped(trial_free) Trial *trial = trial_stopped("; true", path);
    assert_true(file_says(path, "clean"));
    assert_int_equal(trial->item.outcome, OUTCOME_RETRY);
    unlink(path);
}

TEST(exec_of_a_plain_line_takes_the_exit_status_after_sigterm)
{
    char path[] = "/tmp/pawl-state-XXXXXX";

    close(mkstemp(path));
    scoped(trial_free) Trial *trial = trial_stopped("", path);
    assert_true(file_says(path, "clean"));
    assert_int_equal(trial->item.outcome, OUTCOME_REJECT);
    unlink(path);
}

static int fds_count(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int  count  = 0;

    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

TEST(exec_leaves_no_file_open_here_and_none_to_the_program)
{
    int                       before = fds_count();
    scoped(trial_free) Trial *trial  = trial_run("ls /proc/self/fd | wc -l", "{}");

    assert_string_equal(trial->item.result, "5\n"); /* 0, 1, 2, that of progress and the folder */
    assert_int_equal(fds_count(), before);
}

TEST(exec_that_cannot_be_started_was_not_begun)
{
    struct rlimit was, now;

    getrlimit(RLIMIT_NOFILE, &was);
    now          = was;
    now.rlim_cur = (rlim_t)fds_count() - 1; /* one more can be opened, not six */
    setrlimit(RLIMIT_NOFILE, &now);
    scoped(trial_free) Trial *trial = trial_run("true", "{}");
    setrlimit(RLIMIT_NOFILE, &was);
    assert_contains(trial->task.not_begun, "program cannot be started: Too many open files");
}

TEST(exec_runs_also_without_a_descriptor_to_watch_it_by)
{
    fault_arm("bus.exec.pidfd", 1);
    scoped(trial_free) Trial *trial = trial_run("echo 7", "{}");

    assert_true(fault_was_hit());
    fault_arm_nth(0);
    assert_null(trial->task.not_begun);
    assert_int_equal(trial->item.outcome, OUTCOME_COMPLETE);
    assert_string_equal(trial->item.result, "7\n");
}

/* ---- progress ---- */

static Trial *trial_run_again(const char *program, const char *progress)
{
    last_progress = progress;
    return trial_run(program, "{}");
}

TEST(exec_program_reports_progress_to_its_descriptor)
{
    scoped(trial_free) Trial *trial = trial_run(
        "echo 'pawl: {\"percent\": 10}' >&$PAWL_PROGRESS_FD; echo no >&2;"
        "printf 'pawl: {\"percent\": 90, \"text\": \"gl\\303\\274ck\"}\\npawl: {\"text\": \"end\"}' >&3; exit 1",
        "{}");

    assert_int_equal(trial->reports, 3);
    assert_int_equal(trial->percent, PROGRESS_NONE);
    assert_string_equal(trial->text, "end");
    assert_string_equal(trial->item.error, "no");
}

TEST(exec_program_is_given_the_progress_of_the_attempt_before)
{
    scoped(trial_free) Trial *none  = trial_run("echo \"\\\"${PAWL_PROGRESS-none}\\\"\"", "{}");
    scoped(trial_free) Trial *given = trial_run_again("echo \"$PAWL_PROGRESS\"", "{\"percent\": 40}");

    last_progress = NULL;
    assert_string_equal(none->item.result, "\"none\"\n");
    assert_string_equal(given->item.result, "{\"percent\": 40}\n");
}

TEST(exec_lines_that_are_no_progress_are_counted_and_ignored)
{
    static const char *const lines[] = {
        "half way",
        "{\"percent\": 1}",
        "pawl: 50",
        "pawl: {}",
        "pawl: {\"percent\": 101}",
        "pawl: {\"percent\": -1}",
        "pawl: {\"percent\": 1.5}",
        "pawl: {\"percent\": \"1\"}",
        "pawl: {\"text\": \"\"}",
        "pawl: {\"percent\": 1, \"more\": 2}",
        "pawl: {\"text\": \"\377\"}",
    };
    int64_t before = metric_value(&bus_metrics.progress_ignored);

    for (size_t i = 0; i < COUNT(lines); i++) {
        Arena                    *arena   = arena_new(65536);
        scoped(trial_free) Trial *trial   = trial_run(arena_print(arena, "echo '%s' >&3", lines[i]), "{}");
        int                       reports = trial->reports;

        arena_free(arena);
        if (reports != 0)
            fail_msg("taken: %s", lines[i]);
        assert_int_equal(trial->item.outcome, OUTCOME_COMPLETE);
    }
    assert_int_equal(metric_value(&bus_metrics.progress_ignored) - before, COUNT(lines));
}

TEST(exec_text_of_progress_has_200_characters_at_most)
{
    scoped(trial_free) Trial *most =
        trial_run("t=$(printf '\303\244%.0s' $(seq 200)); echo \"pawl: {\\\"text\\\": \\\"$t\\\"}\" >&3", "{}");
    scoped(trial_free) Trial *more =
        trial_run("t=$(printf '\303\244%.0s' $(seq 201)); echo \"pawl: {\\\"text\\\": \\\"$t\\\"}\" >&3", "{}");

    assert_int_equal(most->reports, 1);
    assert_int_equal(strlen(most->text), 400);
    assert_int_equal(more->reports, 0);
}

TEST(exec_program_that_floods_its_progress_is_read_slowly_and_to_its_end)
{
    static const char line[] = "pawl: {\"percent\": 7}\n";
    Mono              began  = clock_mono();
    Trial            *trial  = trial_start("exec yes 'pawl: {\"percent\": 7}' >&3", "{}");
    int64_t           most;

    await(atomic_load(&trial->reports) > 2000);
    trial_stop(trial);
    thread_join(trial->thread);
    most = (mono_ms_between(began, clock_mono()) / 50 + 10) * 16384 / (int64_t)strlen(line);
    if (trial->reports > most)
        fail_msg("%d reports were read, at most %d expected", trial->reports, (int)most);
    trial_free(trial);
}

TEST(exec_process_in_the_background_that_floods_does_not_hold_up_the_end)
{
    scoped(trial_free) Trial *flood      = trial_run("yes 'pawl: {\"percent\": 7}' >&3 & echo 1", "{}");
    scoped(trial_free) Trial *complaints = trial_run("for n in 1 2 3 4; do yes complaint >&2 & done; echo 1", "{}");
    scoped(trial_free) Trial *long_line =
        trial_run("head -c 100000 /dev/zero | tr '\\0' x >&3; echo >&3; echo 'pawl: {\"percent\": 5}' >&3", "{}");

    assert_int_equal(flood->item.outcome, OUTCOME_COMPLETE);
    assert_int_equal(complaints->item.outcome, OUTCOME_COMPLETE);
    assert_int_equal(long_line->reports, 1);
    assert_int_equal(long_line->percent, 5);
}
