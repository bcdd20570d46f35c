/*
 * conf.h - the settings of the private PostgreSQL, as one table.
 *
 * They are written to home/pg/pawl.conf at each start, so that a new release can tune them. data/postgresql.conf
 * includes that file; what a person writes below the include line wins.
 */
#ifndef CLUSTER_CONF_H
#define CLUSTER_CONF_H

#include "base/error.h"
#include "cluster/home.h"

must_check ErrorCode cluster_conf_write(const ClusterHome *home, Error *reterr);
/* Let the postgresql.conf of a fresh data directory include the settings. */
must_check ErrorCode cluster_conf_include(const char *data, Error *reterr);

#endif
