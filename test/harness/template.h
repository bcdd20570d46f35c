/*
 * template.h - the database that every test's database is copied from: all migrations applied, nothing else.
 *
 * Made once per cluster and schema, whichever test process comes first; the others wait for it. Its name carries a
 * checksum of the schema, so a cluster that outlives a rebuild never hands out an old one.
 */
#ifndef HARNESS_TEMPLATE_H
#define HARNESS_TEMPLATE_H

#include "base/error.h"

#define TEMPLATE_NAME_SIZE 64

/* url: the superuser's, to any database of the cluster. */
must_check ErrorCode template_ensure(const char *url, char ret_name[static TEMPLATE_NAME_SIZE], Error *reterr);

#endif
