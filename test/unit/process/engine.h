/*
 * engine.h - the engine of processes over records in memory: handler, interpreter and run are the real ones, without a server.
 *
 * The linker puts this file in the place of what reads and writes the database (process_load, process_write, sent_send,
 * lease_release, lease_postpone) and of what steps do (attempt_exec, attempt_http, attempt_sql, attempt_wallet). Branches run one after the other, or one inside an action of
 * another one (engine_beside), and time is the fake clock's, so an activation does the same each time.
 *
 * engine_run() says what one activation did, in order, separated by "; ":
 *
 *     run a                           the action of a step was called; of a compensation: run ~a
 *     a done, a failed: words         its record; with "{patch}" if the state is patched, "takes {[0,1)}" for responses
 *     send process:shop/part          a command or child
 *     ASYNC w for signal go*1 in 60 s suspended: kind, step, what it waits for, when it is due
 *     compensating: words             a phase
 *     complete {...}, fail: words     the end
 *     released, postponed: words      the activation was given back
 *     settled fail: words             the handler gave up
 */
#ifndef TEST_PROCESS_ENGINE_H
#define TEST_PROCESS_ENGINE_H

#include "process/record.h"
#include "process/write.h"
#include "test/harness/test.h"

typedef struct Engine Engine;

/* members: of the definition, in single quotes, without its type and domain. */
Engine *engine_new(const char *members);
void    engine_free(Engine *engine);
SCOPED(Engine, engine_free)

/* What each attempt of this record's action does, separated by ", "; the last one for all further ones: "done", "failed", "final",
 * "refused", or the name of an error code, such as "ERR_UNAVAILABLE". One that was not given: "done". Its result is {"of": "NAME"}. */
void engine_acts(Engine *engine, const char *record, const char *outcomes);
/* Verdicts of the next writes; WRITE_WRITTEN: as the memory says. */
void engine_verdict(Engine *engine, WriteVerdict verdict);
/* While the action of this record runs, once, a thread takes the branches that are left. Without it no thread can be started. */
void engine_beside(Engine *engine, const char *record);
void engine_signal(Engine *engine, const char *name, const char *payload);
/* The same, for this wait only. */
void engine_signal_to(Engine *engine, const char *step, const char *name, const char *payload);
/* The command or child that this step has sent ends. result: JSON or NULL. */
void engine_reply(Engine *engine, const char *step, const char *status, const char *result);
void engine_cancel(Engine *engine);
/* Of its deadline. */
void engine_deadline(Engine *engine, int64_t ms, const char *action);
/* Another activation has patched the state meanwhile. */
void engine_patch(Engine *engine, const char *patch);
void engine_advance_ms(Engine *engine, int64_t ms);
/* Time passes until the process is due. */
void engine_advance(Engine *engine);
/* An operator has it tried again. */
void engine_retry(Engine *engine);

/* One activation. It lives as long as the engine. */
const char *engine_run(Engine *engine);
const char *engine_state(Engine *engine);

#endif
