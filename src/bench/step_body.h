/*
 * step_body.h - processes of three steps that do nothing, and a process that waits for one response: what `pawl bench processes` runs.
 *
 * The steps are code, as a program that uses libpawl has them: each record is committed before the next step begins, and that of the last
 * one with the end.
 * Threads: handler threads of a worker. Ownership: step_handler_free() after worker_run() returned.
 */
#ifndef BENCH_STEP_BODY_H
#define BENCH_STEP_BODY_H

#include "base/sync.h"
#include "bench/histogram.h"
#include "bus/worker.h"
#include "pg/pool.h"

#define STEP_DOMAIN     "process:bench"
#define STEPS           3
#define STEP_STATE      "{\"to\": \"ann\", \"amount\": 100}"
#define RESUME_RESPONSE "go"

typedef struct {
    Handler  base;
    Handler *inner; /* runs activations */
    Mutex    mutex; /* guards the rest */
    int64_t  ended; /* activations */
    struct ClientEnd {
        Cond changed;
        bool is_ended;
    }        *clients; /* closed loop: by the number of the client, which is the state's "client" */
    int       client_count;
    Histogram resumed; /* from before the response was sent until the process ran */
} StepHandler;

/* waits: each process waits for a response that carries the sender's clock before its steps. clients 0: no client waits for single ends. */
void step_handler_init(StepHandler *handler, Pool *pool, bool waits, int clients);
void step_handler_done(StepHandler *handler);
/* Wait until the process of this client has ended. False: the deadline has passed. */
bool step_handler_wait(StepHandler *handler, int client, Deadline deadline);

#endif
