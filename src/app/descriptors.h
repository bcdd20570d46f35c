/*
 * descriptors.h - how many file descriptors the process may have, and how many of them clients may use up.
 *
 * A shell's soft limit is often 1024, far below the hard one. Clients must never use up the descriptors that connections to the
 * database need: without those no request can be served.
 */
#ifndef APP_DESCRIPTORS_H
#define APP_DESCRIPTORS_H

/* Raise the soft limit to the hard one, as far as the system lets us. Returns what may be used now. */
int descriptors_raise(void);
/* How many client connections fit into `limit` descriptors, at most `wanted`, when pool_max are kept for the database and some for
 * everything else; at least 1. */
int descriptors_for_clients(int limit, int pool_max, int wanted);

#endif
