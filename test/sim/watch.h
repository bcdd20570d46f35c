/*
 * watch.h - what must hold at every moment of a run.
 */
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

#include "pg/pool_internal.h"

void watch_begin(const Pool *pool);
void watch_end(void);
/* Before every switch: the pool's own invariants, and the server's count of its connections. */
void watch_look(void);
/* A connection is begun: is the breaker's leave for it good? */
void watch_connect(int fd);

#endif
