/*
 * part.h - the parts of a pod: one row each, so that a new part is a row and its functions.
 *
 * Parts start in the order of the table, once the database is reached. At the end all of them are asked to stop, then waited for, then freed,
 * each in the reverse order. A start that fails ends in the same way.
 * Threads: the main thread.
 */
#ifndef APP_PART_H
#define APP_PART_H

#include "app/daemon.h"

/* Those of this pod's roles. */
must_check ErrorCode parts_start(Daemon *daemon, Error *reterr);
/* Take on no more work; work in flight gets until the deadline. Does not wait for it. */
void parts_stop(Daemon *daemon, Deadline drained);
/* Until the deadline, and with_grace for as long as a part needs to end what outlasted it. false: some work is left. */
must_check bool parts_wait(Daemon *daemon, Deadline drained, bool with_grace);
/* Stops what was not stopped. */
void parts_free(Daemon *daemon);

#endif
