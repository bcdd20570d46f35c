/*
 * server_bin.c - collect candidate folders, ask each server for its version, keep the newest that fits.
 */
#include "cluster/server_bin.h"

#include <glob.h>
#include <unistd.h>

static const char *const programs[] = {"postgres", "initdb", "pg_ctl"};

static const char *const folders[] = {
    "/usr/lib/postgresql/*/bin", /* Debian, Ubuntu */
    "/usr/pgsql-*/bin",          /* packages of postgresql.org for RPM systems */
    "/usr/libexec/postgresql*",  /* Alpine */
    "/usr/lib/postgresql*/bin",  /* SUSE */
    "/usr/local/pgsql/bin",      /* built from source */
};

typedef struct {
    Account   account;
    Arena    *arena;
    Deadline  deadline;
    int       major; /* asked for, 0: any */
    int       newest;
    ServerBin best;
} Search;

static bool folder_is_complete(const char *folder, Arena *arena)
{
    for (size_t i = 0; i < COUNT(programs); i++)
        if (access(arena_print(arena, "%s/%s", folder, programs[i]), X_OK) < 0)
            return false;
    return true;
}

/* 15 from "postgres (PostgreSQL) 15.8 (Debian 15.8-0+deb12u1)"; 0 when it does not answer like that. */
static int folder_major(const Search *search, const char *folder)
{
    const char *const argv[]  = {arena_print(search->arena, "%s/postgres", folder), "--version", NULL};
    const Program     program = {.argv = argv, .directory = "/", .account = search->account};
    scoped_text Text  output  = {0};

    text_init(&output, NULL, TEXT_MAX_LINE);
    if (program_run(&program, search->deadline, &output, NULL) != OK)
        return 0;

    const char *number = strstr(text_string(&output), "(PostgreSQL) ");

    return number ? (int)strtol(number + strlen("(PostgreSQL) "), NULL, 10) : 0;
}

static void folder_consider(Search *search, const char *folder)
{
    if (folder[0] != '/' || !folder_is_complete(folder, search->arena))
        return;

    int major = folder_major(search, folder);

    if (major > search->newest)
        search->newest = major;
    if (search->major ? major != search->major : major < SERVER_MAJOR_MIN)
        return;
    if (major > search->best.major)
        search->best = (ServerBin){.directory = arena_text(search->arena, folder), .major = major};
}

static void path_consider(Search *search)
{
    const char *path = getenv("PATH");
    char       *rest = arena_text(search->arena, path ? path : "");

    for (char *folder; (folder = strsep(&rest, ":"));)
        folder_consider(search, folder);
}

static void folders_consider(Search *search)
{
    for (size_t i = 0; i < COUNT(folders); i++) {
        glob_t found = {0};

        if (glob(folders[i], 0, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc; k++)
                folder_consider(search, found.gl_pathv[k]);
        globfree(&found);
    }
}

static ErrorCode search_report(const Search *search, const char *directory, Error *reterr)
{
    int wanted = search->major ? search->major : SERVER_MAJOR_MIN;

    if (deadline_passed(search->deadline))
        return fail(reterr, ERR_TIMEOUT, "no time left to find a PostgreSQL server");
    if (search->newest)
        return fail(reterr, ERR_NOT_FOUND,
                    "the newest PostgreSQL server found is version %d, but version %d%s is needed: "
                    "install the package \"postgresql-%d\"",
                    search->newest, wanted, search->major ? "" : " or newer", wanted);
    return fail(reterr, ERR_NOT_FOUND, "no PostgreSQL server found in \"%s\": install the package \"postgresql-%d\"%s",
                directory ? directory : "PATH or /usr/lib/postgresql", wanted, search->major ? "" : " or newer");
}

ErrorCode server_bin_find(const char *directory, int major, Account account, Arena *arena, Deadline deadline,
                          ServerBin *ret_bin, Error *reterr)
{
    Search search = {.account = account, .arena = arena, .deadline = deadline, .major = major};

    if (directory) {
        folder_consider(&search, directory);
    } else {
        path_consider(&search);
        folders_consider(&search);
    }
    if (!search.best.major)
        return search_report(&search, directory, reterr);
    *ret_bin = search.best;
    return OK;
}
