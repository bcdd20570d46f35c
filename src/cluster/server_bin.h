/*
 * server_bin.h - where the programs of a PostgreSQL server are on this machine.
 */
#ifndef CLUSTER_SERVER_BIN_H
#define CLUSTER_SERVER_BIN_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "cluster/program.h"

#define SERVER_MAJOR_MIN 15

typedef struct {
    const char *directory; /* holds postgres, initdb and pg_ctl */
    int         major;
} ServerBin;

/*
 * The newest server in the PATH and the usual folders of distributions, at least SERVER_MAJOR_MIN; with `directory` the
 * one in there. `major` > 0 asks for exactly that one, because a data directory belongs to one major version.
 * ERR_NOT_FOUND: none that fits, with the package to install.
 */
must_check ErrorCode server_bin_find(const char *directory, int major, Account account, Arena *arena, Deadline deadline,
                                     ServerBin *ret_bin, Error *reterr);

#endif
