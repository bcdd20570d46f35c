/*
 * workers.h - the workers of a pod that run defined processes: one for each domain that has definitions.
 *
 * process_workers_step() reads the definitions and starts what is missing; it is called periodically, and at once
 * when a notification says that a definition was stored (DEFINITION_CHANNEL). A domain whose list of types has grown keeps its worker, which claims the new types as well. A domain without work costs three threads: those for activations are started when they are needed.
 *
 * Threads: step and free by one thread at a time; stop from any. Ownership: process_workers_free() after process_workers_wait() returned true.
 */
#ifndef PROCESS_WORKERS_H
#define PROCESS_WORKERS_H

#include "client/client.h"
#include "pg/listen.h"
#include "pg/pool.h"

typedef struct ProcessWorkers ProcessWorkers;

typedef struct {
    Pool   *pool;
    Pool   *handler_pool;          /* for functions of applications; see bus/handler.h */
    Client *client;                /* for http steps */
    Listen *listen;                /* wakes the workers; must be freed before them */
    int     concurrency, lease_ms; /* concurrency: of activations of one type; those of others get a third more */
} ProcessWorkersOptions;

ProcessWorkers *process_workers_new(const ProcessWorkersOptions *options);
void            process_workers_free(ProcessWorkers *workers);
SCOPED(ProcessWorkers, process_workers_free)
must_check ErrorCode process_workers_step(ProcessWorkers *workers, Deadline deadline, Error *reterr);
void                 process_workers_stop(ProcessWorkers *workers, Deadline deadline);
/* false: some still run. */
bool process_workers_wait(ProcessWorkers *workers, Deadline deadline);

#endif
