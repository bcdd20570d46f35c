/*
 * step_body.c - see step_body.h.
 */
#include "bench/step_body.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "process/handler.h"

static const char *const step_names[STEPS - 1] = {"first", "second"};

/* ---- bodies ---- */

static ErrorCode steps_run(Run *run, BodyVerdict *ret_verdict, Error *reterr)
{
    static const RunRecord last    = {.id = {.step = "third"}, .result = "null"};
    RunVerdict             verdict = RUN_OK;

    for (int i = 0; i < STEPS - 1 && verdict == RUN_OK; i++)
        if (!run_result(run, record_of(step_names[i])))
            TRY(run_record(run, &(RunRecord){.id = record_of(step_names[i]), .result = "null"}, &verdict, reterr));
    *ret_verdict = verdict == RUN_OK ? (BodyVerdict){.end = BODY_ENDS, .outcome = OUTCOME_COMPLETE, .last = &last}
                                     : (BodyVerdict){.end = BODY_STOPS};
    return OK;
}

static ErrorCode steps_body(Run *run, Job *job, const LoadedProcess *loaded, void *context, BodyVerdict *ret_verdict,
                            Error *reterr)
{
    (void)job;
    (void)loaded;
    (void)context;
    return steps_run(run, ret_verdict, reterr);
}

static ErrorCode resume_body(Run *run, Job *job, const LoadedProcess *loaded, void *context, BodyVerdict *ret_verdict,
                             Error *reterr)
{
    StepHandler       *handler = context;
    ResponseOf         go      = response_signal(RESUME_RESPONSE);
    const char *const *payloads;

    (void)job;
    (void)loaded;
    if (run_responses(run, go, &payloads) == 0) {
        run_wait(run, record_of("wait"), WAIT_ASYNC, &go, 1, /* due_us= */ 0);
        ret_verdict->end = BODY_WAITS;
        return OK;
    }
    mutex_lock(&handler->mutex);
    histogram_add(&handler->resumed, mono_us_between((Mono){strtoll(payloads[0], NULL, 10)}, clock_mono()));
    mutex_unlock(&handler->mutex);
    return steps_run(run, ret_verdict, reterr);
}

/* ---- the handler around them ---- */

static int step_prepare(Handler *base, const ClaimedCommand *list, int count, Arena *arena, void **ret_list)
{
    Handler *inner = ((StepHandler *)base)->inner;

    return inner->prepare(inner, list, count, arena, ret_list);
}

static void step_run(Handler *base, Job *job, SettleItem *ret_settle)
{
    StepHandler *handler = (StepHandler *)base;
    int          client;

    handler->inner->run(handler->inner, job, ret_settle);
    scoped(mutex_unlock) Mutex *held = mutex_hold(&handler->mutex);
    handler->ended++;
    if (!handler->clients || sscanf(job->command->payload, "{\"client\": %d}", &client) != 1)
        return;
    handler->clients[client].is_ended = true;
    cond_signal(&handler->clients[client].changed);
}

void step_handler_init(StepHandler *handler, Pool *pool, bool waits, int clients)
{
    memset(handler, 0, sizeof *handler);
    handler->base         = (Handler){.run = step_run, .prepare = step_prepare};
    handler->inner        = process_handler_new(pool, waits ? resume_body : steps_body, handler);
    handler->base.source  = handler->inner->source;
    handler->base.unpack  = handler->inner->unpack;
    handler->clients      = clients ? memory_new((size_t)clients, sizeof *handler->clients) : NULL;
    handler->client_count = clients;
    mutex_init(&handler->mutex);
    for (int i = 0; i < clients; i++)
        cond_init(&handler->clients[i].changed);
}

void step_handler_done(StepHandler *handler)
{
    process_handler_free(handler->inner);
    for (int i = 0; i < handler->client_count; i++)
        cond_done(&handler->clients[i].changed);
    mutex_done(&handler->mutex);
    free(handler->clients);
}

bool step_handler_wait(StepHandler *handler, int client, Deadline deadline)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&handler->mutex);
    struct ClientEnd           *end  = &handler->clients[client];
    bool                        is_ended;

    while (!end->is_ended && !deadline_passed(deadline))
        cond_wait(&end->changed, &handler->mutex, deadline);
    is_ended      = end->is_ended;
    end->is_ended = false;
    return is_ended;
}
