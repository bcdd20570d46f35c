/*
 * postmaster.h - one PostgreSQL server process: is it alive, start it, stop it.
 *
 *     no pid file ----------------------- stopped          [postmaster_start]
 *     pid file, its process is ours ----- running          [postmaster_stop]
 *     pid file, no such process --------- crashed          [postmaster_start]: PostgreSQL clears it away
 *     pid file, another program's process - crashed        [postmaster_start]: removed here, PostgreSQL would refuse
 *     pid file, no number in it yet ----- crashed          [postmaster_start]: waited for, a server may be starting
 *
 * A process is ours when it is called postgres and its working directory is the data directory: after a crash or in a
 * fresh container the number in the pid file may belong to anything.
 * Callers hold the cluster's lock while they start or stop. Threads: one at a time.
 */
#ifndef CLUSTER_POSTMASTER_H
#define CLUSTER_POSTMASTER_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "cluster/home.h"
#include "cluster/server_bin.h"

typedef enum { POSTMASTER_STOPPED, POSTMASTER_CRASHED, POSTMASTER_RUNNING } PostmasterState;

/* ret_pid may be NULL; it is 0 unless the server runs. */
PostmasterState postmaster_state(const ClusterHome *home, Arena *arena, pid_t *ret_pid);
/* The settings are written first. ERR_UNAVAILABLE: it does not start, with the reason from its log. ERR_TIMEOUT: not in
 * time, or the pid file names no process until then. */
must_check ErrorCode postmaster_start(const ClusterHome *home, const ServerBin *bin, Arena *arena, Deadline deadline,
                                      Error *reterr);
/* Fast until the deadline, then immediate, which loses nothing but costs a recovery at the next start. */
must_check ErrorCode postmaster_stop(const ClusterHome *home, Arena *arena, Deadline deadline, Error *reterr);
/* The log that the server writes now, or would write first. */
const char *postmaster_log(const ClusterHome *home, Arena *arena);

#endif
