/*
 * sample.h - how long commands wait and run, measured on a sample of what this process claims.
 *
 * A claim tells neither when a command was sent nor when it will end, and asking would cost each claim. So a process remembers the numbers of at most
 * SAMPLE_MAX commands per domain and minute, each with the same probability, and asks once a minute when they were sent, claimed and ended
 * (pawl.command_times). Those that still run are asked about again. What comes back goes into the histograms of their domain.
 * Threads: any.
 */
#ifndef BUS_SAMPLE_H
#define BUS_SAMPLE_H

#include "bus/claim.h"

#define SAMPLE_MAX 100

/* These were claimed now. Commands that were delayed or requeued are left out: when they were queued is not known. */
void sample_claimed(const char *domain, const ClaimedCommand *list, int count);
/* Ask about the sample. A failure loses it. */
must_check ErrorCode sample_measure(Pool *pool, Deadline deadline, Error *reterr);

#endif
