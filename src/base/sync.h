/*
 * sync.h - mutex, condition and thread, by way of the World, so that the same code runs under a simulation.
 *
 * Invariants
 *   1. No lock is held across a round trip to the database.
 *   2. A condition is waited for in a loop, always with a deadline.
 */
#ifndef BASE_SYNC_H
#define BASE_SYNC_H

#include <pthread.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/clock.h"

typedef struct {
    pthread_mutex_t native;
    void           *owner; /* used by the simulation only */
} Mutex;
typedef struct {
    pthread_cond_t native;
    void          *sleepers; /* likewise */
} Cond;

void mutex_init(Mutex *mutex);
void mutex_done(Mutex *mutex);
void mutex_lock(Mutex *mutex);
void mutex_unlock(Mutex *mutex);

/* scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);  unlocks at the end of the block. */
static inline Mutex *mutex_hold(Mutex *mutex)
{
    mutex_lock(mutex);
    return mutex;
}
SCOPED(Mutex, mutex_unlock)

void cond_init(Cond *cond);
void cond_done(Cond *cond);
/* false: the deadline passed. Spurious wake-ups happen, so the caller checks its condition either way. */
bool cond_wait(Cond *cond, Mutex *mutex, Deadline deadline);
void cond_signal(Cond *cond);
void cond_broadcast(Cond *cond);

typedef void *ThreadBody(void *context);
/* Start a named thread with all signals blocked: signals belong to the main thread. When none can be had it prints why
 * and ends the process with exit code 1: for the start of a program. */
pthread_t thread_start(const char *name, ThreadBody *body, void *context);
/* The same for a program that runs already, and for the library. false: none can be had now; errno says why. */
bool thread_try_start(const char *name, ThreadBody *body, void *context, pthread_t *ret_thread);
void thread_join(pthread_t thread);

#endif
