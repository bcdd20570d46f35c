/*
 * conninfo.h - a database URL or conninfo as libpq reads it, in messages without its secrets.
 *
 * Threads: any; nothing is shared.
 */
#ifndef PG_CONNINFO_H
#define PG_CONNINFO_H

#include <libpq-fe.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

SCOPED(PQconninfoOption, PQconninfoFree)

/* ERR_USAGE says what is wrong with it, and quotes nothing that could be a secret. */
must_check ErrorCode conninfo_parse(const char *conninfo, PQconninfoOption **ret_options, Error *reterr);
/* NULL: not given, or empty. Borrowed from the options. */
const char *conninfo_value(const PQconninfoOption *options, const char *keyword);

/* "host=... dbname=... user=..." without password, from any URL or conninfo; ERR_USAGE says what is wrong with it. */
#define CONNINFO_TEXT_SIZE 512
must_check ErrorCode conninfo_describe(const char *conninfo, char *ret_text, Error *reterr);

/* The n-th item of "a,b,c"; the last one serves all further n, as libpq does for ports. */
void conninfo_item(const char *list, int n, char *ret_item, size_t size);
/* How many items; 1 for NULL. */
int conninfo_count(const char *list);

#endif
