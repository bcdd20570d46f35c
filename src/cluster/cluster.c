/*
 * cluster.c - who uses the private PostgreSQL, and so when it starts and stops.
 *
 * Four files in home/pg carry this; the first two are only ever locked (flock), never read, the others exist or do not:
 *   lock     exclusive while a process initialises, starts, stops, joins or leaves
 *   users    shared, held by each user for as long as it uses the server. A process that holds `lock` and gets this one
 *            exclusively knows that there is no other user, because joining takes `lock`.
 *   keep     while the running server shall outlive its users; each ordinary start removes it
 *   stopped  after `pawl db stop`: processes that still use the server do not start it again, as they do when it was
 * stopped in another way; each start removes the file The kernel drops the locks of a process that dies, so the dead do
 * not count. Programs that we run inherit no descriptor (program.h), so a server does not count as its own user.
 */
#include "cluster/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/conf.h"
#include "cluster/home.h"
#include "cluster/postmaster.h"
#include "cluster/program.h"
#include "cluster/server_bin.h"
#include "pg/conn.h"
#include "sql.h"

#define POLL_MS          10
#define PING_MS          50
#define LEAVE_LOCK_MS    15000
#define STOP_MS          10000
#define CONNECT_S        "2" /* libpq's smallest */
#define OUTPUT_MAX       ((size_t)64 << 10)
#define NO_SUCH_DATABASE "3D000"
#define DATABASE_EXISTS  "42P04"
#define UNIQUE_VIOLATION "23505" /* of pg_database, where two create it at the same moment */

struct Cluster {
    Arena      *arena; /* holds the names below */
    ClusterHome home;
    const char *bin_dir;
    int         users; /* the shared lock, -1: not a user */
};

static void fd_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
#define scoped_fd __attribute__((cleanup(fd_close)))

static int fd_take(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

/* A descriptor that holds the lock; closing it releases the lock. ERR_TIMEOUT: others held it until the deadline.
 * ERR_DENIED: there is no lock to be had, on a network file system say. */
static ErrorCode lock_take(const char *path, int operation, Deadline deadline, int *ret_fd, Error *reterr)
{
    scoped_fd int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return fail(reterr, ERR_DENIED, "cannot open \"%s\": %s", path, strerror(errno));
    while (flock(fd, operation | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return fail(reterr, ERR_DENIED, "cannot lock \"%s\": %s", path, strerror(errno));
        if (deadline_passed(deadline))
            return fail(reterr, ERR_TIMEOUT,
                        "another process is starting or stopping the private PostgreSQL (lock \"%s\")", path);
        clock_sleep_ms(POLL_MS);
    }
    *ret_fd = fd_take(&fd);
    return OK;
}

/* The major version that made the data directory, 0: there is none yet. */
static ErrorCode data_major(const ClusterHome *home, Arena *arena, int *ret_major, Error *reterr)
{
    const char *path       = arena_print(arena, "%s/PG_VERSION", home->data);
    char        digits[16] = "";
    struct stat facts;

    if (lstat(home->data, &facts) < 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return fail(reterr, ERR_DENIED, "cannot read \"%s\": %s", home->data, strerror(errno));
        *ret_major = 0;
        return OK;
    }
    if (facts.st_uid != home->account.uid)
        return fail(reterr, ERR_DENIED, "data directory \"%s\" belongs to another user: its owner is uid %u, not %u",
                    home->data, (unsigned)facts.st_uid, (unsigned)home->account.uid);

    scoped_fd int file  = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    long          major = file >= 0 && read(file, digits, sizeof digits - 1) > 0 ? strtol(digits, NULL, 10) : 0;

    if (major <= 0 || major > 1000)
        return fail(reterr, ERR_REFUSED, "\"%s\" is not a PostgreSQL data directory: move it away", home->data);
    *ret_major = (int)major;
    return OK;
}

static ErrorCode bin_find(const Cluster *cluster, int major, Arena *arena, Deadline deadline, ServerBin *ret_bin,
                          Error *reterr)
{
    const ClusterHome *home = &cluster->home;
    ErrorCode          code = server_bin_find(cluster->bin_dir, major, home->account, arena, deadline, ret_bin, reterr);

    if (code != ERR_NOT_FOUND || !major)
        return code;
    error_prefix(reterr, "data directory \"%s\" was made by PostgreSQL %d", home->data, major);
    if (reterr)
        reterr->code = ERR_REFUSED;
    return ERR_REFUSED;
}

/* Made under another name and then renamed: an interrupted one is never taken for a data directory. */
static ErrorCode data_make(const ClusterHome *home, const ServerBin *bin, Arena *arena, Deadline deadline,
                           Error *reterr)
{
    const char *path = NULL;

    TRY(cluster_home_make_data(home, arena, &path, reterr));

    const char *const argv[] = {
        arena_print(arena, "%s/initdb", bin->directory),
        "-D",
        strrchr(path, '/') + 1,
        "--username=pawl",
        "--encoding=UTF8",
        "--locale=C",
        "--data-checksums",
        "--auth=trust",
        "--no-instructions",
        NULL,
    };
    const Program    program = {.argv = argv, .directory = home->pg, .account = home->account};
    scoped_text Text output  = {0};

    text_init(&output, NULL, OUTPUT_MAX);
    TRY(program_run(&program, deadline, &output, reterr));
    TRY(cluster_conf_include(path, reterr));
    return cluster_home_keep_data(home, path, reterr);
}

static ErrorCode server_start(const Cluster *cluster, Arena *arena, Deadline deadline, Error *reterr)
{
    ServerBin bin   = {0};
    int       major = 0;

    TRY(cluster_home_prepare(&cluster->home, reterr));
    TRY(data_major(&cluster->home, arena, &major, reterr));
    TRY(bin_find(cluster, major, arena, deadline, &bin, reterr));
    if (!major)
        TRY(data_make(&cluster->home, &bin, arena, deadline, reterr));
    return postmaster_start(&cluster->home, &bin, arena, deadline, reterr);
}

/* Also after pg_ctl: a process that was killed may have started this server a moment ago. */
static ErrorCode server_wait(const Cluster *cluster, Arena *arena, Deadline deadline, Error *reterr)
{
    const char *const names[]  = {"dbname", "connect_timeout", NULL};
    const char *const values[] = {cluster->home.url, CONNECT_S, NULL};

    while (PQpingParams(names, values, /* expand_dbname= */ 1) != PQPING_OK) {
        if (postmaster_state(&cluster->home, arena, NULL) != POSTMASTER_RUNNING)
            return fail(reterr, ERR_UNAVAILABLE, "the private PostgreSQL ended while it was starting; see \"%s\"",
                        postmaster_log(&cluster->home, arena));
        if (deadline_passed(deadline))
            return fail(reterr, ERR_TIMEOUT, "the private PostgreSQL does not accept connections yet; see \"%s\"",
                        postmaster_log(&cluster->home, arena));
        clock_sleep_ms(PING_MS);
    }
    return OK;
}

/* initdb makes no database of our name. */
static ErrorCode database_make(const Cluster *cluster, Deadline deadline, Error *reterr)
{
    scoped(conn_close) Conn  *conn   = NULL;
    scoped(PQclear) PGresult *result = NULL;
    Error                     error  = {0};
    ErrorCode                 code;

    TRY(conn_open(cluster->home.url_initdb, "pawl", deadline, &conn, reterr));
    code = conn_query(conn, sql_cluster_database, CONN_NO_PARAMS, deadline, &result, &error);
    /* Another process, or a statement of ours that was given up at its deadline, has made it. */
    if (code != OK && (strcmp(error.sqlstate, DATABASE_EXISTS) == 0 || strcmp(error.sqlstate, UNIQUE_VIOLATION) == 0))
        return OK;
    return error_pass(code, &error, reterr);
}

/* The database and its logins. Checked each time: a crash may have come between initdb and the statements. Nothing else
 * in pawl connects as the superuser. */
static ErrorCode database_ensure(const Cluster *cluster, Deadline deadline, Error *reterr)
{
    scoped(conn_close) Conn  *conn   = NULL;
    scoped(PQclear) PGresult *result = NULL;
    Error                     error  = {0};
    ErrorCode                 code   = conn_open(cluster->home.url_admin, "pawl", deadline, &conn, &error);

    if (code != OK && strcmp(error.sqlstate, NO_SUCH_DATABASE) == 0) {
        code = database_make(cluster, deadline, &error);
        if (code == OK)
            code = conn_open(cluster->home.url_admin, "pawl", deadline, &conn, &error);
    }
    if (code == OK)
        code = conn_query(conn, sql_cluster_login, CONN_NO_PARAMS, deadline, &result, &error);
    if (code == OK)
        return OK;
    return fail(reterr, code == ERR_TIMEOUT ? ERR_TIMEOUT : ERR_UNAVAILABLE, "cannot use the private PostgreSQL: %s",
                error.text);
}

/* A server that we meet may be on its way out, killed a moment ago; then it is started like any other. */
static ErrorCode server_ensure(const Cluster *cluster, Deadline deadline, bool *ret_started, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    ErrorCode                 code;

    *ret_started = false;
    do {
        if (postmaster_state(&cluster->home, arena, NULL) != POSTMASTER_RUNNING) {
            TRY(server_start(cluster, arena, deadline, reterr));
            *ret_started = true;
        }
        code = server_wait(cluster, arena, deadline, reterr);
    } while (code == ERR_UNAVAILABLE && !*ret_started);
    TRY(code);
    return database_ensure(cluster, deadline, reterr);
}

static ErrorCode server_stop(const ClusterHome *home, Arena *arena, Deadline deadline, Error *reterr)
{
    if (postmaster_state(home, arena, NULL) != POSTMASTER_RUNNING)
        return OK;
    TRY(postmaster_stop(home, arena, deadline, reterr));
    cluster_home_tidy(home);
    return OK;
}

static ErrorCode mark_make(const char *path, Error *reterr)
{
    scoped_fd int file = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    return file >= 0 ? OK : fail(reterr, ERR_DENIED, "cannot write \"%s\": %s", path, strerror(errno));
}

/* Whether it outlives its users is decided when it starts, or later by a `pawl db start`. */
static ErrorCode keep_decide(const ClusterHome *home, bool keep, bool started, Error *reterr)
{
    if (!keep) {
        if (started)
            unlink(home->keep);
        return OK;
    }

    return mark_make(home->keep, reterr);
}

static ErrorCode cluster_join(Cluster *cluster, bool keep, Deadline deadline, Error *reterr)
{
    scoped_fd int lock    = -1;
    bool          started = false;

    TRY(lock_take(cluster->home.lock, LOCK_EX, deadline, &lock, reterr));
    TRY(lock_take(cluster->home.users, LOCK_SH, deadline, &cluster->users, reterr));
    unlink(cluster->home.stopped);
    TRY(server_ensure(cluster, deadline, &started, reterr));
    return keep_decide(&cluster->home, keep, started, reterr);
}

static Cluster *cluster_new(const char *bin_dir)
{
    Arena   *arena   = arena_new(ARENA_BYTES_DEFAULT);
    Cluster *cluster = arena_alloc(arena, sizeof *cluster);

    *cluster = (Cluster){.arena = arena, .bin_dir = arena_text(arena, bin_dir), .users = -1};
    return cluster;
}

ErrorCode cluster_open(const ClusterOptions *options, Deadline deadline, Cluster **ret_cluster, Error *reterr)
{
    scoped(cluster_close) Cluster *cluster = cluster_new(options->bin_dir);

    TRY(cluster_home_make(options->home, cluster->arena, &cluster->home, reterr));

    ErrorCode code = cluster_join(cluster, options->keep, deadline, reterr);

    if (code == ERR_TIMEOUT && cluster->users >= 0) {
        /* A recovery that takes longer than we may wait would begin anew if we stopped it now. */
        close(cluster->users);
        cluster->users = -1;
    }
    TRY(code);
    *ret_cluster = take(cluster);
    return OK;
}

bool cluster_stops(const Cluster *cluster)
{
    return cluster->users >= 0 && flock(cluster->users, LOCK_EX | LOCK_NB) == 0 && access(cluster->home.keep, F_OK) < 0;
}

/* Without a way to report: a server that does not stop is met by the next start. */
static void cluster_leave(const Cluster *cluster)
{
    const ClusterHome        *home  = &cluster->home;
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    scoped_fd int             lock  = -1;

    /* Not in time: another process is joining, and will be the last user. */
    if (lock_take(home->lock, LOCK_EX, deadline_in_ms(LEAVE_LOCK_MS), &lock, NULL) != OK)
        return;
    if (cluster_stops(cluster))
        (void)server_stop(home, arena, deadline_in_ms(STOP_MS), NULL);
}

void cluster_close(Cluster *cluster)
{
    if (!cluster)
        return;
    if (cluster->users >= 0) {
        cluster_leave(cluster);
        close(cluster->users);
    }
    arena_free(cluster->arena);
}

const char *cluster_url(const Cluster *cluster)
{
    return cluster->home.url;
}

const char *cluster_url_app(const Cluster *cluster)
{
    return cluster->home.url_app;
}

const char *cluster_url_handler(const Cluster *cluster)
{
    return cluster->home.url_handler;
}

bool cluster_is_down(const Cluster *cluster)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    return postmaster_state(&cluster->home, arena, NULL) != POSTMASTER_RUNNING;
}

ErrorCode cluster_revive(Cluster *cluster, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    scoped_fd int             lock    = -1;
    bool                      started = false;

    TRY(lock_take(cluster->home.lock, LOCK_EX, deadline, &lock, reterr));
    if (access(cluster->home.stopped, F_OK) == 0)
        return fail(reterr, ERR_STOPPING, "the private PostgreSQL was stopped by pawl db stop");
    return server_ensure(cluster, deadline, &started, reterr);
}

ErrorCode cluster_stop(const ClusterOptions *options, bool force, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    scoped_fd int             lock  = -1;
    ClusterHome               home  = {0};

    TRY(cluster_home_name(options->home, arena, &home, reterr));
    if (access(home.data, F_OK) < 0 && errno == ENOENT)
        return OK;
    TRY(lock_take(home.lock, LOCK_EX, deadline, &lock, reterr));

    scoped_fd int users = open(home.users, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (users < 0)
        return fail(reterr, ERR_DENIED, "cannot open \"%s\": %s", home.users, strerror(errno));
    if (flock(users, LOCK_EX | LOCK_NB) < 0 && !force)
        return fail(reterr, ERR_CONFLICT, "the private PostgreSQL is in use by other processes of pawl");
    unlink(home.keep);
    TRY(mark_make(home.stopped, reterr));
    return server_stop(&home, arena, deadline, reterr);
}

ErrorCode cluster_status(const ClusterOptions *options, Arena *arena, ClusterStatus *ret_status, Error *reterr)
{
    ClusterHome home  = {0};
    int         major = 0;
    pid_t       pid   = 0;

    TRY(cluster_home_name(options->home, arena, &home, reterr));
    TRY(data_major(&home, arena, &major, reterr));

    bool running = major && postmaster_state(&home, arena, &pid) == POSTMASTER_RUNNING;

    *ret_status = (ClusterStatus){
        .initialised = major > 0,
        .running     = running,
        .pid         = pid,
        .url         = home.url,
        .url_admin   = home.url_admin,
        .url_app     = home.url_app,
        .url_handler = home.url_handler,
        .version     = major ? arena_print(arena, "%d", major) : NULL,
        .data_dir    = home.data,
        .log_file    = postmaster_log(&home, arena),
    };
    return OK;
}
