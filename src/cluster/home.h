/*
 * home.h - the directories of the private PostgreSQL: names, owners, modes.
 *
 *     home/pg              as root 0755 and root's own, else 0700; holds what pawl writes:
 *       lock  users  keep  stopped    see cluster.c
 *       pawl.conf            the settings, written at each start; data/postgresql.conf includes it
 *       data.new-XXXXXX      an initdb under way, renamed to data when it is complete
 *       data  log  run       0700, owned by the account that runs the server
 *
 * Invariants
 *   1. As root, pawl creates no file inside a folder that another account can write to, so that account cannot lead it
 *      elsewhere by a link.
 *   2. The socket's folder is 0700 and owned by the account, also below /tmp: "trust" in pg_hba.conf means this folder.
 */
#ifndef CLUSTER_HOME_H
#define CLUSTER_HOME_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "cluster/program.h"

typedef struct {
    Account     account; /* runs the server: ourselves, or as root the user postgres */
    const char *home;
    const char *pg;
    const char *data;
    const char *log;
    const char *run; /* home/pg/run, or a folder below /tmp when that does not fit a socket address */
    bool        run_is_elsewhere;
    const char *conf;
    const char *lock;
    const char *users;
    const char *keep;
    const char *stopped;
    /* One login each; sql_cluster_login creates all but the first. */
    const char *url_admin;   /* the superuser's, for administrators and for sql_cluster_login */
    const char *url;         /* of pawl itself */
    const char *url_app;     /* of applications */
    const char *url_handler; /* of transactions that call functions of applications */
    const char *url_initdb;  /* the database that initdb makes: from there ours is made */
} ClusterHome;

/* The names only; nothing is made. ERR_REFUSED: as root without a user postgres. */
must_check ErrorCode cluster_home_name(const char *path, Arena *arena, ClusterHome *ret_home, Error *reterr);
/* The same after making home and home/pg, so that there is a place for the lock. ERR_DENIED: not ours, or read-only. */
must_check ErrorCode cluster_home_make(const char *path, Arena *arena, ClusterHome *ret_home, Error *reterr);

/* The rest only under the lock. */

/* Before a start: make what is missing, check what is there, remove what interrupted initdbs have left. */
must_check ErrorCode cluster_home_prepare(const ClusterHome *home, Error *reterr);
/* After a stop: a socket's folder below /tmp goes with the server. */
void cluster_home_tidy(const ClusterHome *home);
/* A fresh folder for initdb, owned by the account. */
must_check ErrorCode cluster_home_make_data(const ClusterHome *home, Arena *arena, const char **ret_path,
                                            Error *reterr);
/* Make it the data directory, for good: renamed and synced. */
must_check ErrorCode cluster_home_keep_data(const ClusterHome *home, const char *path, Error *reterr);

#endif
