/*
 * postpone.h - when activations that cannot go on now are tried again: another transaction has their process locked, or no program or thread
 * can be started.
 *
 * The delay of one process doubles with each try in a row, from POSTPONE_MS_MIN to POSTPONE_MS_MAX. First tries are POSTPONE_SLOT_MS apart, so that a thousand locked processes leave the pod to others.
 *
 * Threads: any. Ownership: embedded; postpone_done() when no activation runs.
 */
#ifndef PROCESS_POSTPONE_H
#define PROCESS_POSTPONE_H

#include <stdint.h>

#include "base/sync.h"

#define POSTPONE_MS_MIN   1000
#define POSTPONE_MS_MAX   10000 /* where many are postponed, from their slot on */
#define POSTPONE_SLOT_MS  40
#define POSTPONE_SLOTS_MS 30000 /* a slot is at most so far away */

/* A process that was postponed lately; another one with the same place takes it over. */
typedef struct {
    int64_t id, delay_ms;
    Mono    due;
} PostponedProcess;

typedef struct {
    Mutex            mutex; /* guards the rest */
    Mono             slot;  /* the latest */
    PostponedProcess list[512];
} Postpone;

void postpone_init(Postpone *postpone);
void postpone_done(Postpone *postpone);
/* Until the process with this number is tried again. */
int64_t postpone_ms(Postpone *postpone, int64_t id, Mono now);

#endif
