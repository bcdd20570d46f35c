/*
 * home.c - names, folders and owners.
 */
#include "cluster/home.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/hash.h"

#define SOCKET_NAME    "/.s.PGSQL.5432"
#define SOCKET_DIR_MAX (sizeof((struct sockaddr_un *)0)->sun_path - sizeof SOCKET_NAME)
#define NEW_DATA       "data.new-"

static ErrorCode account_choose(Arena *arena, Account *ret_account, Error *reterr)
{
    struct passwd  entry;
    struct passwd *found = NULL;
    char          *bytes = arena_alloc(arena, 16384);
    bool           root  = geteuid() == 0;
    int            error = root ? getpwnam_r("postgres", &entry, bytes, 16384, &found)
                                : getpwuid_r(geteuid(), &entry, bytes, 16384, &found);

    if (root && !found)
        return fail(reterr, ERR_REFUSED, "user \"postgres\" does not exist%s%s: install the package \"postgresql\"",
                    error ? ": " : "", error ? strerror(error) : "");
    *ret_account = root ? (Account){entry.pw_uid, entry.pw_gid, "postgres"}
                        : (Account){geteuid(), getegid(), found ? entry.pw_name : "?"};
    return OK;
}

/* Short enough for a socket address, and without characters that mean something in a URL or in postgresql.conf. */
static bool path_fits_socket(const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
    size_t            length  = strlen(path);

    return length <= SOCKET_DIR_MAX && strspn(path, plain) == length;
}

/* Absolute, and the same for everyone who means the same folder; one that does not exist yet stays as it is given. */
static const char *path_resolve(const char *path, Arena *arena)
{
    char resolved[PATH_MAX];
    char here[PATH_MAX];

    if (realpath(path, resolved))
        return arena_text(arena, resolved);
    if (path[0] == '/' || !getcwd(here, sizeof here))
        return arena_text(arena, path);
    return arena_print(arena, "%s/%s", here, path);
}

/* Functions of applications may change the defaults of their login. These would lock all others out: a library that
 * does not exist, a role without rights, no time, a session that ends when it is idle or has an error. */
#define HANDLER_OPTIONS                                                                                    \
    "-c%%20local_preload_libraries%%3D%%20-c%%20role%%3Dnone%%20-c%%20idle_session_timeout%%3D0%%20-c%%20" \
    "statement_timeout%%3D0%%20-c%%20exit_on_error%%3Doff"

ErrorCode cluster_home_name(const char *path, Arena *arena, ClusterHome *ret_home, Error *reterr)
{
    const char *home    = path_resolve(path, arena);
    const char *run     = arena_print(arena, "%s/pg/run", home);
    bool        fits    = path_fits_socket(run);
    Account     account = {0};

    TRY(account_choose(arena, &account, reterr));
    if (!fits)
        run = arena_print(arena, "/tmp/pawl-%u-%016" PRIx64, (unsigned)account.uid, hash_text(home));
    *ret_home = (ClusterHome){
        .account          = account,
        .home             = home,
        .pg               = arena_print(arena, "%s/pg", home),
        .data             = arena_print(arena, "%s/pg/data", home),
        .log              = arena_print(arena, "%s/pg/log", home),
        .run              = run,
        .run_is_elsewhere = !fits,
        .conf             = arena_print(arena, "%s/pg/pawl.conf", home),
        .lock             = arena_print(arena, "%s/pg/lock", home),
        .users            = arena_print(arena, "%s/pg/users", home),
        .keep             = arena_print(arena, "%s/pg/keep", home),
        .stopped          = arena_print(arena, "%s/pg/stopped", home),
        .url_admin        = arena_print(arena, "postgresql://pawl@/pawl?host=%s&port=5432", run),
        .url              = arena_print(arena, "postgresql://pawl_owner@/pawl?host=%s&port=5432", run),
        .url_app          = arena_print(arena, "postgresql://app@/pawl?host=%s&port=5432", run),
        .url_handler = arena_print(arena, "postgresql://handler@/pawl?host=%s&port=5432&options=" HANDLER_OPTIONS, run),
        .url_initdb  = arena_print(arena, "postgresql://pawl@/postgres?host=%s&port=5432", run),
    };
    return OK;
}

/* An existing folder must be a real one of this owner; a private one must be closed to everyone else. */
static ErrorCode folder_check(const char *path, mode_t mode, uid_t owner, Error *reterr)
{
    struct stat facts;

    if (lstat(path, &facts) < 0)
        return fail(reterr, ERR_DENIED, "cannot read \"%s\": %s", path, strerror(errno));
    if (!S_ISDIR(facts.st_mode))
        return fail(reterr, ERR_DENIED, "\"%s\" is not a directory", path);
    if (facts.st_uid != owner)
        return fail(reterr, ERR_DENIED, "directory \"%s\" belongs to another user: its owner is uid %u, not %u", path,
                    (unsigned)facts.st_uid, (unsigned)owner);
    if (mode == 0700 && (facts.st_mode & 077))
        return fail(reterr, ERR_DENIED, "directory \"%s\" is open to other users: its mode is %04o, not 0700", path,
                    (unsigned)(facts.st_mode & 07777));
    return OK;
}

static ErrorCode folder_make(const char *path, mode_t mode, Account owner, Error *reterr)
{
    if (mkdir(path, mode) < 0) {
        if (errno != EEXIST)
            return fail(reterr, ERR_DENIED, "cannot create the directory \"%s\": %s", path, strerror(errno));
        return folder_check(path, mode, owner.uid, reterr);
    }
    /* Whatever the umask is: as root the server's account has to pass through. */
    if (chmod(path, mode) < 0 || (owner.uid != geteuid() && lchown(path, owner.uid, owner.gid) < 0))
        return fail(reterr, ERR_DENIED, "cannot prepare the directory \"%s\": %s", path, strerror(errno));
    return OK;
}

/* Home may be anyone's folder, /srv/data say, as long as we may write there. Parents are made too. */
static ErrorCode home_make(const char *home, mode_t mode, Error *reterr)
{
    char path[PATH_MAX];

    if ((size_t)snprintf(path, sizeof path, "%s", home) >= sizeof path)
        return fail(reterr, ERR_DENIED, "the path of the home directory is longer than %d bytes", PATH_MAX);
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        if (mkdir(path, slash ? 0755 : mode) == 0) {
            if (!slash && chmod(path, mode) < 0)
                return fail(reterr, ERR_DENIED, "cannot prepare the directory \"%s\": %s", path, strerror(errno));
        } else if (errno != EEXIST) {
            return fail(reterr, ERR_DENIED, "cannot create the directory \"%s\": %s", path, strerror(errno));
        }
        if (!slash)
            return OK;
        *slash = '/';
    }
}

ErrorCode cluster_home_make(const char *path, Arena *arena, ClusterHome *ret_home, Error *reterr)
{
    Account     self = {geteuid(), getegid(), NULL};
    mode_t      mode = self.uid == 0 ? 0755 : 0700;
    ClusterHome home = {0};

    /* Before the names: only an existing folder has a resolved path, and the socket's name depends on it. */
    TRY(home_make(path_resolve(path, arena), mode, reterr));
    TRY(cluster_home_name(path, arena, &home, reterr));
    TRY(folder_make(home.pg, mode, self, reterr));
    *ret_home = home;
    return OK;
}

/* Remove a folder below `parent` and what is in it, never following a link. What resists is left for the next time. */
static void tree_remove(int parent, const char *name)
{
    int  folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list   = folder < 0 ? NULL : fdopendir(folder);

    if (!list) {
        if (folder >= 0)
            close(folder);
        return;
    }
    for (struct dirent *entry; (entry = readdir(list));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(folder, entry->d_name, 0) < 0 && errno == EISDIR)
            tree_remove(folder, entry->d_name);
    }
    closedir(list);
    unlinkat(parent, name, AT_REMOVEDIR);
}

static void leftovers_remove(const ClusterHome *home)
{
    DIR *list = opendir(home->pg);

    if (!list)
        return;
    for (struct dirent *entry; (entry = readdir(list));)
        if (strncmp(entry->d_name, NEW_DATA, strlen(NEW_DATA)) == 0)
            tree_remove(dirfd(list), entry->d_name);
    closedir(list);
}

ErrorCode cluster_home_prepare(const ClusterHome *home, Error *reterr)
{
    leftovers_remove(home);
    TRY(folder_make(home->log, 0700, home->account, reterr));
    return folder_make(home->run, 0700, home->account, reterr);
}

void cluster_home_tidy(const ClusterHome *home)
{
    if (home->run_is_elsewhere)
        rmdir(home->run);
}

/*
 * Each attempt has a name of its own: the initdb of a pawl that was killed may still be writing, and must not write
 * into ours.
 */
ErrorCode cluster_home_make_data(const ClusterHome *home, Arena *arena, const char **ret_path, Error *reterr)
{
    char *path = arena_print(arena, "%s/" NEW_DATA "XXXXXX", home->pg);

    if (!mkdtemp(path))
        return fail(reterr, ERR_DENIED, "cannot create a directory in \"%s\": %s", home->pg, strerror(errno));
    if (home->account.uid != geteuid() && lchown(path, home->account.uid, home->account.gid) < 0)
        return fail(reterr, ERR_DENIED, "cannot give \"%s\" to user \"%s\": %s", path, home->account.name,
                    strerror(errno));
    *ret_path = path;
    return OK;
}

ErrorCode cluster_home_keep_data(const ClusterHome *home, const char *path, Error *reterr)
{
    int  folder = open(home->pg, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool kept   = folder >= 0 && rename(path, home->data) == 0 && fsync(folder) == 0;
    int  error  = errno;

    if (folder >= 0)
        close(folder);
    return kept ? OK
                : fail(reterr, ERR_DENIED, "cannot rename \"%s\" to \"%s\": %s", path, home->data, strerror(error));
}
