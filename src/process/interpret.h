/*
 * interpret.h - runs processes by their definitions: the body of an activation (handler.h) for all types that a file defines.
 *
 * An activation walks the steps from the first one. A step with a successful record is passed; the first without one is run, and its record
 * is written before the next begins. So a walk needs no position: the records are it. A step that cannot end now adds a wait, and the
 * walk goes on in the other branches of a parallel or each; when all are blocked the process is suspended.
 *
 *     FORWARD -> end                      the last step was passed: COMPLETED with the definition's result
 *     FORWARD -> COMPENSATING             a step failed for good, the deadline passed or an operator canceled, and the action is compensate
 *     FORWARD -> troubleshooting, FAILED  the same with another action
 *     COMPENSATING -> COMPENSATED         every compensation has a record
 *     COMPENSATING -> troubleshooting     a compensation failed for good
 *
 * Records: see record.h. A wait, sleep, awaited command or each has one when it began, with what it must remember.
 * Keys: a step's key is a UUID that follows from the process and the step, the same in every attempt. SQL functions, HTTP
 * requests (Idempotency-Key), wallet operations, commands and children are called with it.
 *
 * Threads: any number of activations at the same time; branches that call programs, functions or servers run on threads of their own.
 * Ownership: interpreter_free() when no activation runs.
 */
#ifndef PROCESS_INTERPRET_H
#define PROCESS_INTERPRET_H

#include "client/client.h"
#include "process/handler.h"

typedef struct Interpreter Interpreter;

/* handler_pool: for functions of applications, see bus/handler.h; client: for http steps; all borrowed. */
Interpreter *interpreter_new(Pool *pool, Pool *handler_pool, Client *client);
void         interpreter_free(Interpreter *interpreter);
SCOPED(Interpreter, interpreter_free)

/* context: the Interpreter. */
ProcessBody interpret_body;
ProcessStop interpreter_stop;

#endif
