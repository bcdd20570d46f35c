/*
 * conninfo.h - the same server, seen through another database, host or port.
 */
#ifndef HARNESS_CONNINFO_H
#define HARNESS_CONNINFO_H

#define CONNINFO_SIZE 1024

/* Write url (or conninfo) into ret_conninfo with some keywords replaced: "dbname", "x", "port", "5433", NULL. Fails the
 * test when url is malformed. */
void conninfo_change(const char *url, char ret_conninfo[static CONNINFO_SIZE], ...) __attribute__((sentinel));
/* The value of one keyword, "" when it has none. */
void conninfo_get(const char *url, const char *keyword, char ret_value[static CONNINFO_SIZE]);

#endif
