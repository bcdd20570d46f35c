/*
 * cluster.h - a private PostgreSQL under PAWL_HOME, so that the first run needs nothing.
 *
 *     home/pg/data    initdb with checksums, UTF-8, C locale; home/pg/run the unix socket; home/pg/log
 *
 * Invariants
 *   1. Unix socket only: no TCP port is opened. Only the owner of home (as root: the user postgres) may enter.
 *   2. Several pawl processes share it: start and stop are serialised by a lock on home/pg/lock. Each process that uses
 *      the server holds a shared lock on home/pg/users; the last one to leave stops it, unless it was started by
 *      `pawl db start`, which leaves it running until `pawl db stop`.
 *   3. kill -9 of pawl or of the server leaves nothing that prevents the next start: stale pid and socket files are
 * recognised, and the kernel drops the locks of dead processes. One case is left to the operator: a pid file without a
 * number, of a server that died between creating and writing it; it cannot be distinguished from that of a live server.
 *   4. Durable: fsync and synchronous_commit are on. A data directory is complete or does not exist.
 * Threads: a Cluster belongs to one thread at a time; several in one process count as several users.
 *
 * Errors, one sentence each: ERR_REFUSED: the data directory is of another major version, or none. ERR_NOT_FOUND: no
 * server programs, naming the package. ERR_DENIED: home cannot be written or locked, or a folder in it belongs to
 * another user. ERR_UNAVAILABLE: initdb or the server failed, with their message. ERR_TIMEOUT: the deadline passed; a
 * server that is still recovering keeps running, so that the next try finds it further on.
 */
#ifndef CLUSTER_CLUSTER_H
#define CLUSTER_CLUSTER_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"

typedef struct Cluster Cluster;

typedef struct {
    const char *home;    /* borrowed until the call returns */
    const char *bin_dir; /* NULL: the newest in PATH and the folders of distributions; see server_bin.h */
    bool        keep;    /* `pawl db start`: stays after the last user has left */
} ClusterOptions;

typedef struct {
    bool        initialised;
    bool        running;
    int         pid;         /* 0 when it does not run */
    const char *url;         /* "postgresql://...", of pawl itself */
    const char *url_admin;   /* of the superuser */
    const char *url_app;     /* of the login app, which is for applications: not a superuser, owns nothing of pawl's */
    const char *url_handler; /* as cluster_url_handler() */
    const char *version;     /* major version of the data directory, NULL when there is none */
    const char *data_dir;
    const char *log_file;
} ClusterStatus;

/* Initialise if need be, start if need be, wait until it accepts connections, count this process as a user. */
must_check ErrorCode cluster_open(const ClusterOptions *options, Deadline deadline, Cluster **ret_cluster,
                                  Error *reterr);
/* Leave; the last user stops the server (fast mode, after 10 s immediate), unless it is kept. */
/* Will cluster_close() stop the server? For a message right before it. */
bool cluster_stops(const Cluster *cluster);
void cluster_close(Cluster *cluster);
SCOPED(Cluster, cluster_close)
const char *cluster_url(const Cluster *cluster);         /* for pawl itself: owns its schemas, is no superuser */
const char *cluster_url_app(const Cluster *cluster);     /* of the login app: for applications */
const char *cluster_url_handler(const Cluster *cluster); /* for transactions that call functions of applications */
/* Does no server run? Asks the files only. */
bool cluster_is_down(const Cluster *cluster);
/* Start it again after a crash, or when other hands stopped it. ERR_STOPPING: pawl db stop did, and it stays so. */
must_check ErrorCode cluster_revive(Cluster *cluster, Deadline deadline, Error *reterr);

/* By hand. Stopping a server that others use is refused with ERR_CONFLICT unless force. */
must_check ErrorCode cluster_stop(const ClusterOptions *options, bool force, Deadline deadline, Error *reterr);
must_check ErrorCode cluster_status(const ClusterOptions *options, Arena *arena, ClusterStatus *ret_status,
                                    Error *reterr);

#endif
