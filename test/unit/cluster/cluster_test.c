/*
 * cluster_test.c - the private PostgreSQL, with real servers and real processes.
 *
 * As root the servers run as postgres, otherwise as ourselves. Every home is a fresh folder of the run; whatever still
 * runs in one when the program ends is stopped, and the folder removed. A test that only root can make returns at once
 * for others: what cmocka prints for skip() counts as a failure in TAP.
 */
#include "cluster/cluster.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "test/harness/test.h"
#include "test/unit/pg/await.h"

#define HOMES_MAX 64
#define NOBODY    65534

SCOPED(PGconn, PQfinish)

static char folders[HOMES_MAX][256]; /* what mkdtemp made */
static char homes[HOMES_MAX][900];   /* the same, or a folder deep inside */
static int  home_count;

/* ---------------------------------------------------------------- homes */

static void tree_remove(const char *folder)
{
    pid_t child = fork();

    if (child == 0) {
        execlp("rm", "rm", "-rf", "--", folder, (char *)NULL);
        _exit(127);
    }
    waitpid(child, NULL, 0);
}

static void homes_remove(void)
{
    for (int i = 0; i < home_count; i++) {
        ErrorCode code =
            cluster_stop(&(ClusterOptions){.home = homes[i]}, /* force= */ true, deadline_in_ms(60000), NULL);

        if (code != OK)
            fprintf(stderr, "# a server in %s could not be stopped\n", folders[i]);
        tree_remove(folders[i]);
    }
}

static const char *home_new_inside(const char *rest)
{
    char *folder = folders[home_count];
    char *home   = homes[home_count];

    assert_true(home_count < HOMES_MAX);
    if (home_count++ == 0)
        atexit(homes_remove);
    const char *run = getenv("PAWL_TEST_RUN");
    snprintf(folder, sizeof folders[0], "%s/pawl-cluster-XXXXXX", run ? run : "/tmp");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    snprintf(home, sizeof homes[0], "%s%s", folder, rest);
    return home;
}

static const char *home_new(void)
{
    return home_new_inside("");
}

/* Who runs the servers of this test program. */
static uid_t account_uid(void)
{
    return geteuid() ? geteuid() : getpwnam("postgres")->pw_uid;
}

static const char *path_in(const char *home, const char *rest)
{
    static char paths[4][1024];
    static int  next;
    char       *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", home, rest);
    return path;
}

static void file_put(const char *path, const char *mode, const char *text)
{
    FILE *file = fopen(path, mode);

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static bool file_has(const char *path, const char *part)
{
    char   text[8192] = "";
    FILE  *file       = fopen(path, "r");
    size_t got        = file ? fread(text, 1, sizeof text - 1, file) : 0;

    if (file)
        fclose(file);
    return got && strstr(text, part);
}

/* A data directory as far as pawl looks at it before it starts a server. */
static void fake_data(const char *home, const char *version)
{
    assert_int_equal(mkdir(path_in(home, "pg"), geteuid() ? 0700 : 0755), 0);
    assert_int_equal(mkdir(path_in(home, "pg/data"), 0700), 0);
    assert_int_equal(chown(path_in(home, "pg/data"), account_uid(), (gid_t)-1), 0);
    file_put(path_in(home, "pg/data/PG_VERSION"), "w", version);
}

/* ---------------------------------------------------------------- servers */

static Cluster *open_ok(const char *home)
{
    Cluster *cluster = NULL;
    Error    error   = {0};

    assert_ok(cluster_open(&(ClusterOptions){.home = home}, deadline_in_ms(30000), &cluster, &error));
    return cluster;
}

/* A copy of a home whose server was made and stopped: for tests of what comes after initdb, which takes seconds. */
static const char *home_copied_inside(const char *rest)
{
    static const char *original;
    const char        *home;

    if (!original) {
        original = home_new();
        cluster_close(open_ok(original));
    }
    home = home_new_inside(rest);

    pid_t child  = fork();
    int   status = 0;

    if (child == 0) {
        execlp("sh", "sh", "-c", "mkdir -p \"$1\" && cp -a \"$0/pg\" \"$1/pg\"", original, home, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return home;
}

static const char *home_copied(void)
{
    return home_copied_inside("");
}

static ErrorCode open_fails(const ClusterOptions *options, Error *ret_error)
{
    Cluster  *cluster = NULL;
    ErrorCode code    = cluster_open(options, deadline_in_ms(30000), &cluster, ret_error);

    assert_null(cluster);
    return code;
}

/* 0: it does not run. */
static int server_pid(const char *home)
{
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    ClusterStatus             status = {0};
    Error                     error  = {0};

    assert_ok(cluster_status(&(ClusterOptions){.home = home}, arena, &status, &error));
    assert_int_equal(status.running, status.pid > 0);
    return status.pid;
}

/* The first value of a query as text, "" for none; the caller reads it before the next call. */
static const char *ask(const char *url, const char *sql)
{
    static char              answer[256];
    scoped(PQfinish) PGconn *conn   = PQconnectdb(url);
    PGresult                *result = PQexec(conn, sql);

    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
        fprintf(stderr, "# %s: %s\n", sql, PQerrorMessage(conn));
    snprintf(answer, sizeof answer, "%s", PQntuples(result) ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    return answer;
}

static void wait_for_death(pid_t pid)
{
    Deadline deadline = deadline_in_ms(60000);

    while (kill(pid, 0) == 0 && !deadline_passed(deadline))
        clock_sleep_ms(5);
    assert_int_equal(kill(pid, 0), -1);
}

static void wait_for_text(const char *path, const char *part)
{
    Deadline deadline = deadline_in_ms(60000);

    while (!file_has(path, part) && !deadline_passed(deadline))
        clock_sleep_ms(5);
    assert_true(file_has(path, part));
}

/* ---------------------------------------------------------------- users: processes that open a cluster and hold it */

typedef struct {
    pid_t pid;
    int   order;  /* a byte here: leave */
    int   answer; /* one line comes back: the url, or "! " and the error */
} User;

static _Noreturn void user_live(const ClusterOptions *options, int order, int answer)
{
    Cluster  *cluster = NULL;
    Error     error   = {0};
    ErrorCode code    = cluster_open(options, deadline_in_ms(30000), &cluster, &error);
    char      byte;

    dprintf(answer, "%s%s\n", code == OK ? "" : "! ", code == OK ? cluster_url(cluster) : error.text);
    if (read(order, &byte, 1) < 0)
        _exit(2);
    cluster_close(cluster);
    _exit(code == OK ? 0 : 1);
}

static User user_start(const char *home, uid_t uid)
{
    int  order[2];
    int  answer[2];
    User user;

    assert_int_equal(pipe(order), 0);
    assert_int_equal(pipe(answer), 0);
    user = (User){.pid = fork(), .order = order[1], .answer = answer[0]};
    assert_true(user.pid >= 0);
    if (user.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nobody behind */
        if (uid && (setgid(uid) < 0 || setuid(uid) < 0))
            _exit(3);
        user_live(&(ClusterOptions){.home = home}, order[0], answer[1]);
    }
    close(order[0]);
    close(answer[1]);
    return user;
}

static const char *user_answer(const User *user)
{
    static char line[1024];
    size_t      length = 0;

    while (length < sizeof line - 1 && read(user->answer, line + length, 1) == 1 && line[length] != '\n')
        length++;
    line[length] = '\0';
    return line;
}

static int user_end(User *user, int signal_number)
{
    int status = 0;

    if (signal_number)
        kill(user->pid, signal_number);
    else
        assert_int_equal(write(user->order, "x", 1), 1);
    assert_int_equal(waitpid(user->pid, &status, 0), user->pid);
    close(user->order);
    close(user->answer);
    return status;
}

/* ---------------------------------------------------------------- the life of a server */

static const char *ask_admin(const char *home, const char *sql)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    ClusterStatus             status;
    Error                     error = {0};

    assert_ok(cluster_status(&(ClusterOptions){.home = home}, arena, &status, &error));
    return ask(status.url_admin, sql);
}

TEST(cluster_login_of_pawl_is_no_superuser)
{
    const char *home    = home_new();
    Cluster    *cluster = open_ok(home);

    assert_string_equal(ask(cluster_url(cluster), "select current_user"), "pawl_owner");
    assert_string_equal(ask(cluster_url(cluster),
                            "select rolsuper or rolcreaterole from pg_roles where rolname = current_user"),
                        "f");
    assert_string_equal(ask(cluster_url(cluster), "select pg_has_role('pg_execute_server_program', 'member')"), "f");
    cluster_close(cluster);
}

/* A schema that is called like a login comes first in the default search_path of that login. */
TEST(cluster_logins_of_pawl_use_no_operator_that_others_made)
{
    static const char        trap[] = "create schema %1$s;"
                                      "create function %1$s.trap (a oid, b regrole) returns boolean language plpgsql as "
                                      "$$ begin raise exception 'code of app runs as %%', current_user; end $$;"
                                      "create operator %1$s.= (leftarg = oid, rightarg = regrole, function = %1$s.trap);"
                                      "create operator %1$s.<> (leftarg = oid, rightarg = regrole, function = %1$s.trap)";
    static const char *const compare =
        "select count(*) from pg_namespace where nspowner = 'app'::regrole and nspname = 'app'";
    const char *home    = home_new();
    Cluster    *cluster = open_ok(home);
    char        sql[1024];

    snprintf(sql, sizeof sql, trap, "pawl_owner");
    ask(cluster_url_app(cluster), sql);
    snprintf(sql, sizeof sql, trap, "pawl"); /* the superuser's; pawl_owner owns it once the database is migrated */
    ask(cluster_url_app(cluster), sql);
    cluster_close(cluster);
    cluster = open_ok(home);
    assert_string_equal(ask(cluster_url(cluster), compare), "1");
    assert_string_equal(ask_admin(home, compare), "1");
    cluster_close(cluster);
}

/* So that what an application opens leaves connections to pawl. */
TEST(cluster_logins_of_applications_have_a_connection_limit)
{
    static const char *const limits  = "select string_agg(rolname || ' ' || rolconnlimit, ', ' order by rolname) "
                                       "from pg_roles where rolcanlogin and rolname <> 'pawl'";
    const char              *home    = home_new();
    Cluster                 *cluster = open_ok(home);

    assert_string_equal(ask(cluster_url(cluster), limits), "app 80, handler 80, pawl_owner -1");
    ask_admin(home, "alter role app connection limit 120");
    cluster_close(cluster);
    cluster = open_ok(home);
    assert_string_equal(ask(cluster_url(cluster), limits), "app 120, handler 80, pawl_owner -1");
    cluster_close(cluster);
}

/* Code of applications runs as this login, which may always change its own settings. */
TEST(cluster_settings_of_the_login_of_handlers_are_reset)
{
    static const char *const left =
        "select (select count(*) from pg_db_role_setting where setrole = 'handler'::regrole) + "
        "(select count(rolpassword) from pg_authid where rolname = 'handler')";
    const char *home    = home_new();
    Cluster    *cluster = open_ok(home);

    ask(cluster_url_handler(cluster), "alter role handler set default_transaction_read_only = on");
    ask(cluster_url_handler(cluster), "begin read write; alter role handler in database pawl set search_path = app; "
                                      "alter role handler password 'x'; commit");
    assert_string_equal(ask_admin(home, left), "3");
    cluster_close(cluster);
    cluster = open_ok(home);
    assert_string_equal(ask_admin(home, left), "0");
    cluster_close(cluster);
}

/* They would lock out every other function of applications. */
TEST(cluster_settings_of_the_login_of_handlers_lock_no_other_out)
{
    const char *home    = home_new();
    Cluster    *cluster = open_ok(home);
    const char *url     = cluster_url_handler(cluster);

    ask(url, "alter role handler set idle_session_timeout = 1");
    ask(url, "alter role handler set statement_timeout = 1");
    ask(url, "alter role handler set exit_on_error = on");
    ask(url, "alter role handler set local_preload_libraries = 'none'");
    ask(url, "alter role handler set role = 'pawl_handler'");
    assert_string_equal(
        ask(url, "select current_user || ' ' || string_agg(setting, ',' order by name) from pg_settings where name in "
                 "('exit_on_error', 'idle_session_timeout', 'local_preload_libraries', 'statement_timeout')"),
        "handler off,0,,0");
    cluster_close(cluster);
}

/* A function of an application could end all others, and what ends it when its time is over. */
TEST(cluster_login_of_handlers_signals_no_processes_and_pawl_ends_its_sessions)
{
    static const char *const rights =
        "select has_function_privilege(current_user, 'pg_terminate_backend(integer, bigint)', 'execute') "
        "or has_function_privilege(current_user, 'pg_cancel_backend(integer)', 'execute')";
    const char *home    = home_new();
    Cluster    *cluster = open_ok(home);

    assert_string_equal(ask(cluster_url_handler(cluster), rights), "f");
    assert_string_equal(ask(cluster_url(cluster), rights), "t");
    assert_string_equal(ask(cluster_url_app(cluster), rights), "t");
    assert_string_equal(ask(cluster_url(cluster), "select pg_has_role('handler', 'usage')"), "t");
    assert_string_equal(ask(cluster_url_handler(cluster), "select pg_has_role('pawl_owner', 'member')"), "f");
    cluster_close(cluster);
}

/* Which a role may always do to itself. */
TEST(cluster_start_mends_what_the_login_of_handlers_has_dropped)
{
    static const char *const granted = "select has_schema_privilege('handler', 'later', 'usage')";
    const char              *home    = home_new();
    Cluster                 *cluster = open_ok(home);

    ask(cluster_url_handler(cluster), "drop owned by handler");
    cluster_close(cluster);
    cluster = open_ok(home);
    ask(cluster_url_app(cluster), "create schema later");
    assert_string_equal(ask(cluster_url_app(cluster), granted), "t");
    cluster_close(cluster);
}

TEST(cluster_first_start_makes_a_durable_private_server)
{
    static const struct {
        const char *sql, *answer;
    } facts[] = {
        {"show listen_addresses",                                         ""    },
        {"show data_checksums",                                           "on"  },
        {"show fsync",                                                    "on"  },
        {"show synchronous_commit",                                       "on"  },
        {"show server_encoding",                                          "UTF8"},
        {"show max_connections",                                          "200" },
        {"select current_database()",                                     "pawl"},
        {"show jit",                                                      "off" },
        {"select count(*) from pg_file_settings where error is not null", "0"   },
    };
    const char *home    = home_new();
    Cluster    *cluster = open_ok(home);

    for (size_t i = 0; i < COUNT(facts); i++)
        assert_string_equal(ask_admin(home, facts[i].sql), facts[i].answer);
    assert_contains(cluster_url(cluster), home);

    pid_t pid = server_pid(home);

    assert_true(pid > 0);
    assert_int_not_equal(getsid(pid), getsid(0)); /* a Ctrl-C for us does not reach it */
    cluster_close(cluster);
    assert_int_equal(server_pid(home), 0);
    wait_for_death(pid);
}

TEST(cluster_folders_are_closed_to_others)
{
    static const char *const       private_folders[] = {"pg/data", "pg/log", "pg/run"};
    const char                    *home              = home_new();
    scoped(cluster_close) Cluster *cluster           = open_ok(home);
    struct stat                    facts;

    for (size_t i = 0; i < COUNT(private_folders); i++) {
        assert_int_equal(stat(path_in(home, private_folders[i]), &facts), 0);
        assert_int_equal(facts.st_mode & 07777, 0700);
        assert_int_equal(facts.st_uid, account_uid());
    }
    assert_int_equal(stat(path_in(home, "pg"), &facts), 0);
    assert_int_equal(facts.st_mode & 07777, geteuid() ? 0700 : 0755);
    assert_int_equal(facts.st_uid, geteuid());
}

TEST(cluster_status_says_what_is_there)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    const char               *home    = home_new();
    const ClusterOptions      options = {.home = home};
    ClusterStatus             status  = {0};
    Error                     error   = {0};

    assert_ok(cluster_status(&options, arena, &status, &error));
    assert_false(status.initialised);
    assert_false(status.running);
    assert_null(status.version);

    Cluster *cluster = open_ok(home);

    assert_ok(cluster_status(&options, arena, &status, &error));
    assert_true(status.initialised);
    assert_true(status.running);
    assert_string_equal(status.url, cluster_url(cluster));
    assert_string_equal(status.data_dir, path_in(home, "pg/data"));
    assert_true(strtol(status.version, NULL, 10) >= 15);
    assert_true(file_has(status.log_file, "starting PostgreSQL"));
    cluster_close(cluster);
    assert_ok(cluster_status(&options, arena, &status, &error));
    assert_true(status.initialised);
    assert_false(status.running);
}

TEST(cluster_is_shared_and_the_last_user_stops_it)
{
    const char *home   = home_copied();
    User        first  = user_start(home, 0);
    User        second = user_start(home, 0);

    assert_contains(user_answer(&first), "postgresql://");
    assert_contains(user_answer(&second), "postgresql://");

    int pid = server_pid(home);

    assert_true(pid > 0);
    assert_int_equal(user_end(&first, 0), 0);
    assert_int_equal(server_pid(home), pid);
    assert_int_equal(user_end(&second, 0), 0);
    assert_int_equal(server_pid(home), 0);
}

TEST(cluster_eight_processes_open_a_fresh_home_at_once)
{
    enum { USERS = 8 };
    const char *home = home_new();
    User        users[USERS];
    char        identity[64];

    for (int i = 0; i < USERS; i++)
        users[i] = user_start(home, 0);
    for (int i = 0; i < USERS; i++) {
        const char *answer = user_answer(&users[i]);
        const char *system = ask(answer, "select system_identifier from pg_control_system()");

        assert_contains(answer, "postgresql://");
        if (i == 0)
            snprintf(identity, sizeof identity, "%s", system);
        assert_true(strlen(system) > 10);
        assert_string_equal(system, identity);
    }
    for (int i = 0; i < USERS; i++) {
        assert_true(server_pid(home) > 0);
        assert_int_equal(user_end(&users[i], 0), 0);
    }
    assert_int_equal(server_pid(home), 0);
}

TEST(cluster_kept_server_outlives_its_users_until_it_is_stopped)
{
    const char          *home    = home_copied();
    const ClusterOptions kept    = {.home = home, .keep = true};
    Cluster             *cluster = NULL;
    Error                error   = {0};

    assert_ok(cluster_open(&kept, deadline_in_ms(30000), &cluster, &error));
    cluster_close(cluster);

    int pid = server_pid(home);

    assert_true(pid > 0);
    cluster_close(open_ok(home));
    assert_int_equal(server_pid(home), pid);
    assert_ok(cluster_stop(&kept, /* force= */ false, deadline_in_ms(60000), &error));
    assert_int_equal(server_pid(home), 0);
    assert_ok(cluster_stop(&kept, /* force= */ false, deadline_in_ms(60000), &error)); /* twice is fine */
    cluster_close(open_ok(home)); /* the wish went with that server */
    assert_int_equal(server_pid(home), 0);
}

TEST(cluster_a_crash_of_a_kept_server_ends_keep)
{
    const char *home    = home_copied();
    Cluster    *cluster = NULL;
    Error       error   = {0};

    assert_ok(cluster_open(&(ClusterOptions){.home = home, .keep = true}, deadline_in_ms(30000), &cluster, &error));
    cluster_close(cluster);
    assert_int_equal(kill(server_pid(home), SIGKILL), 0);
    cluster_close(open_ok(home));
    assert_int_equal(server_pid(home), 0);
}

TEST(cluster_stop_is_refused_while_others_use_it)
{
    const char          *home    = home_copied();
    const ClusterOptions options = {.home = home};
    Error                error   = {0};
    Cluster             *cluster = open_ok(home);

    assert_code(ERR_CONFLICT, cluster_stop(&options, /* force= */ false, deadline_in_ms(60000), &error));
    assert_contains(error.text, "in use");
    assert_true(server_pid(home) > 0);
    assert_ok(cluster_stop(&options, /* force= */ true, deadline_in_ms(60000), &error));
    assert_int_equal(server_pid(home), 0);
    assert_code(ERR_STOPPING, cluster_revive(cluster, deadline_in_ms(60000), &error));
    assert_int_equal(server_pid(home), 0);
    cluster_close(cluster);
}

/* pg_ctl, a service manager, a colleague: whatever is not pawl db stop. */
TEST(cluster_stopped_from_outside_is_started_again)
{
    const char *home    = home_copied();
    Cluster    *cluster = open_ok(home);
    Error       error   = {0};
    int         pid     = server_pid(home);

    assert_false(cluster_is_down(cluster));
    assert_int_equal(kill(pid, SIGINT), 0); /* a clean stop */
    await(cluster_is_down(cluster));
    assert_ok(cluster_revive(cluster, deadline_in_ms(30000), &error));
    assert_false(cluster_is_down(cluster));
    assert_int_not_equal(server_pid(home), pid);
    cluster_close(cluster);
}

/* PostgreSQL writes down how it was started, for pg_ctl restart: nothing in there may depend on a working directory. */
TEST(cluster_can_be_restarted_by_pg_ctl)
{
    const char *home    = home_copied();
    Cluster    *cluster = open_ok(home);
    char        command[1024];
    int         pid = server_pid(home);

    snprintf(command, sizeof command,
             "cd / && runuser -u postgres -- %s/pg_ctl -D %s/pg/data -w -s restart >/dev/null 2>&1",
             getenv("PAWL_TEST_BIN"), home);
    if (geteuid() != 0)
        snprintf(command, sizeof command, "cd / && %s/pg_ctl -D %s/pg/data -w -s restart >/dev/null 2>&1",
                 getenv("PAWL_TEST_BIN"), home);
    assert_int_equal(0, system(command));
    assert_int_not_equal(server_pid(home), pid);
    assert_string_equal(ask(cluster_url(cluster), "select 42"), "42");
    cluster_close(cluster);
    assert_int_equal(server_pid(home), 0);
}

/* ---------------------------------------------------------------- deaths */

TEST(cluster_survives_kill_9_of_its_user)
{
    const char *home = home_copied();
    User        user = user_start(home, 0);

    assert_contains(user_answer(&user), "postgresql://");

    int pid = server_pid(home);

    user_end(&user, SIGKILL);
    assert_int_equal(server_pid(home), pid);
    cluster_close(open_ok(home));
    assert_int_equal(server_pid(home), 0);
}

TEST(cluster_survives_kill_9_of_the_server)
{
    const char *home    = home_copied();
    Cluster    *cluster = open_ok(home);
    Error       error   = {0};

    ask(cluster_url(cluster), "create table public.proof as select 42 as value");

    int pid = server_pid(home);

    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_ok(cluster_revive(cluster, deadline_in_ms(30000), &error)); /* while we use it */
    assert_int_not_equal(server_pid(home), pid);
    assert_string_equal(ask(cluster_url(cluster), "select value from public.proof"), "42");
    assert_int_equal(kill(server_pid(home), SIGKILL), 0);
    cluster_close(cluster);

    cluster = open_ok(home); /* and after */
    assert_string_equal(ask(cluster_url(cluster), "select value from public.proof"), "42");
    cluster_close(cluster);
    assert_int_equal(server_pid(home), 0);
}

TEST(cluster_waits_for_backends_that_survived_their_server)
{
    const char *home    = home_copied();
    Cluster    *cluster = open_ok(home);
    PGconn     *conn    = PQconnectdb(cluster_url(cluster));
    pid_t       backend = PQbackendPID(conn);

    assert_true(backend > 0);
    assert_int_equal(kill(backend, SIGSTOP), 0); /* it cannot notice that its server dies */
    assert_int_equal(kill(server_pid(home), SIGKILL), 0);

    User user = user_start(home, 0);

    wait_for_text(path_in(home, "pg/log/start.log"), "pre-existing shared memory block");
    assert_int_equal(kill(backend, SIGCONT), 0);
    assert_contains(user_answer(&user), "postgresql://");
    PQfinish(conn);
    assert_int_equal(user_end(&user, 0), 0);
    assert_true(server_pid(home) > 0); /* we are still there */
    cluster_close(cluster);
    assert_int_equal(server_pid(home), 0);
}

TEST(cluster_tells_a_stale_pid_file_from_another_process)
{
    const char *home     = home_copied();
    pid_t       stranger = fork();
    char        text[64];

    if (stranger == 0) {
        if (geteuid() == 0 && setuid(account_uid()) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    cluster_close(open_ok(home));
    snprintf(text, sizeof text, "%d\n%s\n", (int)stranger, path_in(home, "pg/data"));
    file_put(path_in(home, "pg/data/postmaster.pid"), "w", text);
    file_put(path_in(home, "pg/run/.s.PGSQL.5432.lock"), "w", text);
    assert_int_equal(server_pid(home), 0);
    cluster_close(open_ok(home));
    assert_int_equal(kill(stranger, 0), 0); /* and nobody shot at it */
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
}

/* A number that was a process's a moment ago, as the first line of a pid file. */
static void pid_file_put_dead(const char *home)
{
    pid_t child = fork();
    char  text[64];

    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    snprintf(text, sizeof text, "%d\n", (int)child);
    file_put(path_in(home, "pg/data/postmaster.pid"), "w", text);
}

/* What a server leaves for a moment between creating its pid file and writing into it. */
TEST(cluster_waits_for_the_number_in_an_empty_pid_file)
{
    const char *home    = home_copied();
    Cluster    *cluster = NULL;
    Error       error   = {0};

    cluster_close(open_ok(home));
    file_put(path_in(home, "pg/data/postmaster.pid"), "w", "");
    assert_code(ERR_TIMEOUT, cluster_open(&(ClusterOptions){.home = home}, deadline_in_ms(2000), &cluster, &error));
    assert_null(cluster);
    assert_contains(error.text, "postmaster.pid\" names no process");
    assert_int_equal(access(path_in(home, "pg/data/postmaster.pid"), F_OK), 0);

    User user = user_start(home, 0);

    pid_file_put_dead(home);
    assert_contains(user_answer(&user), "postgresql://");
    assert_int_equal(user_end(&user, 0), 0);
    assert_int_equal(server_pid(home), 0);
}

static bool initdb_is_under_way(const char *home)
{
    DIR *list  = opendir(path_in(home, "pg"));
    bool found = false;

    if (!list)
        return false;
    for (struct dirent *entry; (entry = readdir(list));)
        if (strncmp(entry->d_name, "data.new-", 9) == 0) {
            char version[300];

            snprintf(version, sizeof version, "pg/%s/PG_VERSION", entry->d_name);
            found = access(path_in(home, version), F_OK) == 0;
        }
    closedir(list);
    return found;
}

TEST(cluster_never_uses_an_interrupted_initdb)
{
    const char *home     = home_new();
    User        user     = user_start(home, 0);
    Deadline    deadline = deadline_in_ms(60000);

    while (!initdb_is_under_way(home) && !deadline_passed(deadline))
        clock_sleep_ms(1);
    assert_true(initdb_is_under_way(home));
    user_end(&user, SIGKILL);
    assert_int_equal(access(path_in(home, "pg/data"), F_OK), -1);

    scoped(cluster_close) Cluster *cluster = open_ok(home);

    assert_string_equal(ask(cluster_url(cluster), "select count(*) from pg_database where datname = 'pawl'"), "1");
    cluster_close(take(cluster));
    cluster_close(open_ok(home)); /* whatever the orphan still wrote is swept by the next start */
    assert_false(initdb_is_under_way(home));
}

TEST(cluster_deadline_is_kept)
{
    const char *home    = home_new();
    Cluster    *cluster = NULL;
    Error       error   = {0};
    Mono        begin   = clock_mono();

    assert_code(ERR_TIMEOUT, cluster_open(&(ClusterOptions){.home = home}, deadline_in_ms(150), &cluster, &error));
    assert_true(mono_ms_between(begin, clock_mono()) < 5000 + test_stalled_ms()); /* initdb is ended and swept away */
    assert_null(cluster);
    cluster_close(open_ok(home));
    assert_int_equal(server_pid(home), 0);
}

/* A server that accepts connections and then does not go on: making a database waits for the lock. */
TEST(cluster_deadline_is_kept_by_a_server_that_hangs)
{
    const char *home    = home_copied();
    Cluster    *cluster = open_ok(home);
    Cluster    *second  = NULL;
    Error       error   = {0};
    char        url[256];

    snprintf(url, sizeof url, "host=%s port=5432 user=pawl dbname=postgres", path_in(home, "pg/run"));
    ask(url, "drop database pawl");
    {
        scoped(PQfinish) PGconn *locker = PQconnectdb(url);

        PQclear(PQexec(locker, "begin; lock table pg_database in share mode"));
        assert_int_equal(PQtransactionStatus(locker), PQTRANS_INTRANS);

        Mono begin = clock_mono();

        assert_code(ERR_TIMEOUT, cluster_open(&(ClusterOptions){.home = home}, deadline_in_ms(1000), &second, &error));
        assert_in_range(mono_ms_between(begin, clock_mono()), 0, 5000 + test_stalled_ms());
        assert_contains(error.text, "cannot use the private PostgreSQL");
        assert_null(second);
    }
    cluster_close(open_ok(home));
    assert_string_equal(ask(cluster_url(cluster), "select current_database()"), "pawl");
    cluster_close(cluster);
}

/* ---------------------------------------------------------------- refusals */

/* Instead of the C library's, so that a test can have what a network file system without a lock service answers. */
static int flock_error;

int flock(int fd, int operation)
{
    if (!flock_error)
        return (int)syscall(SYS_flock, fd, operation);
    errno = flock_error;
    return -1;
}

TEST(cluster_says_that_there_are_no_locks)
{
    const char *home  = home_new();
    Error       error = {0};

    flock_error    = ENOLCK;
    ErrorCode code = open_fails(&(ClusterOptions){.home = home}, &error);
    flock_error    = 0;
    assert_code(ERR_DENIED, code);
    assert_contains(error.text, "cannot lock");
    assert_contains(error.text, strerror(ENOLCK));
}

TEST(cluster_refuses_another_major_version)
{
    const char *home  = home_new();
    Error       error = {0};

    fake_data(home, "14\n");
    assert_code(ERR_REFUSED, open_fails(&(ClusterOptions){.home = home}, &error));
    assert_contains(error.text, path_in(home, "pg/data"));
    assert_contains(error.text, "was made by PostgreSQL 14");
    assert_contains(error.text, "install the package \"postgresql-14\"");
}

TEST(cluster_refuses_what_is_no_data_directory)
{
    const char *home  = home_new();
    Error       error = {0};

    fake_data(home, "hello\n");
    assert_code(ERR_REFUSED, open_fails(&(ClusterOptions){.home = home}, &error));
    assert_contains(error.text, "is not a PostgreSQL data directory");
}

TEST(cluster_names_the_package_when_there_is_no_server)
{
    const char *home  = home_new();
    const char *empty = home_new();
    Error       error = {0};

    assert_code(ERR_NOT_FOUND, open_fails(&(ClusterOptions){.home = home, .bin_dir = empty}, &error));
    assert_contains(error.text, empty);
    assert_contains(error.text, "install the package \"postgresql-15\" or newer");
}

TEST(cluster_refuses_a_home_that_cannot_be_written)
{
    Error error = {0};

    assert_code(ERR_DENIED, open_fails(&(ClusterOptions){.home = "/proc/pawl"}, &error));
    assert_contains(error.text, "cannot create the directory \"/proc/pawl\"");
}

TEST(cluster_refuses_a_home_that_the_server_may_not_enter)
{
    const char *home  = home_new();
    Error       error = {0};

    if (geteuid() != 0)
        return;
    assert_int_equal(chmod(home, 0700), 0);
    assert_code(ERR_DENIED, open_fails(&(ClusterOptions){.home = home}, &error));
    assert_contains(error.text, "user \"postgres\" may not enter");
}

TEST(cluster_says_why_a_server_does_not_start)
{
    const char *home  = home_copied();
    Error       error = {0};

    cluster_close(open_ok(home));
    file_put(path_in(home, "pg/data/postgresql.conf"), "a", "max_connections = many\n");
    assert_code(ERR_UNAVAILABLE, open_fails(&(ClusterOptions){.home = home}, &error));
    assert_contains(error.text, "does not start: configuration file");
    assert_int_equal(server_pid(home), 0);
}

/* As a person would meet it: in a small file system of its own, which only root can make. */
TEST(cluster_says_that_the_disk_is_full)
{
    const char *home   = home_new();
    int         status = 0;
    pid_t       child;

    if (geteuid() != 0)
        return;
    child = fork();
    if (child == 0) {
        Error    error   = {0};
        Cluster *cluster = NULL;

        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", home, "tmpfs", 0, "size=20m,mode=0755") < 0)
            _exit(77);
        if (cluster_open(&(ClusterOptions){.home = home}, deadline_in_ms(30000), &cluster, &error) != ERR_UNAVAILABLE)
            _exit(1);
        fprintf(stderr, "# %s\n", error.text);
        _exit(strstr(error.text, "No space left on device") ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        return;
    assert_int_equal(status, 0);
}

/* ---------------------------------------------------------------- odd homes */

/* Too long for a socket, and with everything that a shell, a URL or postgresql.conf could stumble over. */
#define ODD_HOME "/it's a \"long\" $(way) home/0123456789012345678901234567890123456789012345678901234567890123456789"

/* The folder of the socket, out of the url. */
static const char *socket_folder(const char *home)
{
    static char               folder[256];
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    ClusterStatus             status = {0};
    Error                     error  = {0};

    assert_ok(cluster_status(&(ClusterOptions){.home = home}, arena, &status, &error));
    snprintf(folder, sizeof folder, "%s", strstr(status.url, "host=") + strlen("host="));
    folder[strcspn(folder, "&")] = '\0';
    return folder;
}

TEST(cluster_long_and_odd_home_has_its_socket_below_tmp)
{
    const char *home    = home_new_inside(ODD_HOME);
    Cluster    *cluster = open_ok(home);
    struct stat facts;

    assert_contains(cluster_url(cluster), "host=/tmp/pawl-");
    assert_string_equal(ask(cluster_url(cluster), "select 1"), "1");
    assert_int_equal(lstat(socket_folder(home), &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0700);
    assert_int_equal(facts.st_uid, account_uid());
    cluster_close(cluster);
    assert_int_equal(server_pid(home), 0);
    assert_int_equal(lstat(socket_folder(home), &facts), -1);
}

/* The pid file names the data directory too: the number must be found however long that is. */
TEST(cluster_in_a_very_long_home_is_seen_running)
{
    char rest[601] = "";

    memset(rest, 'd', sizeof rest - 1);
    for (size_t i = 0; i < sizeof rest - 1; i += 100)
        rest[i] = '/';

    const char *home    = home_copied_inside(rest);
    Cluster    *cluster = open_ok(home);
    int         pid     = server_pid(home);

    assert_true(pid > 0);
    cluster_close(open_ok(home));
    assert_int_equal(server_pid(home), pid);
    cluster_close(cluster);
    assert_int_equal(server_pid(home), 0);
    wait_for_death(pid);
}

TEST(cluster_refuses_a_socket_folder_that_another_user_prepared)
{
    const char *home  = home_copied_inside(ODD_HOME);
    Error       error = {0};

    cluster_close(open_ok(home)); /* now home exists, and so the folder's name is final */
    assert_int_equal(mkdir(socket_folder(home), 0700), 0);
    assert_int_equal(chown(socket_folder(home), account_uid(), (gid_t)-1), 0);
    assert_int_equal(chmod(socket_folder(home), 0777), 0);
    assert_code(ERR_DENIED, open_fails(&(ClusterOptions){.home = home}, &error));
    assert_contains(error.text, "is open to other users");
    assert_int_equal(rmdir(socket_folder(home)), 0);
    assert_int_equal(symlink("/tmp", socket_folder(home)), 0);
    assert_code(ERR_DENIED, open_fails(&(ClusterOptions){.home = home}, &error));
    assert_contains(error.text, "is not a directory");
    assert_int_equal(unlink(socket_folder(home)), 0);
}

TEST(cluster_of_an_ordinary_user_needs_no_account_postgres)
{
    const char *home = home_new();

    if (geteuid() != 0)
        return; /* then every other test is this one */
    assert_int_equal(chown(home, NOBODY, NOBODY), 0);

    User        user   = user_start(home, NOBODY);
    const char *answer = user_answer(&user);
    struct stat facts;

    assert_contains(answer, "postgresql://");
    assert_string_equal(ask(answer, "show data_checksums"), "on"); /* root passes the folder's mode */
    assert_int_equal(stat(path_in(home, "pg/data"), &facts), 0);
    assert_int_equal(facts.st_uid, NOBODY);
    assert_int_equal(user_end(&user, 0), 0);
    assert_int_equal(access(path_in(home, "pg/data/postmaster.pid"), F_OK), -1);
    assert_int_equal(access(path_in(home, "pg/data/PG_VERSION"), F_OK), 0);
}
