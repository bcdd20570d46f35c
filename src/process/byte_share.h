/*
 * byte_share.h - the memory that inputs of steps may take in a pod.
 *
 * Steps run side by side, and each may have an input of some megabytes. So one with a large input waits, before the input is made, until it fits
 * beside the others that run; in the order of their arrival, so that small ones do not overtake a large one forever. One that is alone always fits.
 *
 * Invariant: a step waits only while it holds nothing itself.
 * Threads: any. Ownership: byte_share_done() when no step runs.
 */
#ifndef PROCESS_BYTE_SHARE_H
#define PROCESS_BYTE_SHARE_H

#include <stddef.h>

#include "base/sync.h"
#include "process/run.h"

/* What is smaller is not counted. */
#define BYTE_SHARE_LEAST ((size_t)64 << 10)

typedef struct ByteWait ByteWait;
typedef struct {
    Mutex     mutex; /* guards the rest */
    Cond      changed;
    size_t    used, most;
    ByteWait *first, **end; /* the steps that wait, in order */
} ByteShare;

void byte_share_init(ByteShare *share, size_t most);
void byte_share_done(ByteShare *share);
/* Wait until so many bytes are free. false: the activation must stop. */
must_check bool byte_share_take(ByteShare *share, Run *run, size_t bytes);
/* The same without waiting, for a step that holds some already. */
void byte_share_add(ByteShare *share, size_t bytes);
void byte_share_give(ByteShare *share, size_t bytes);

#endif
