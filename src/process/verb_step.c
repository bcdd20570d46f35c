/*
 * verb_step.c - a step that is tried by its policy, and recorded attempt by attempt; see verb.h.
 *
 *     no record          run it now
 *     n failures         wait until the policy's delay after the last one has passed, then run it again
 *     attempts used up   it has failed for good; so has one whose record says that it was final, or a refusal
 *
 * A failure is recorded before anything else is done, so that a worker that dies does not make an attempt forgotten, and one that dies while
 * the action runs does not make it count.
 */
#include "process/verb.h"

static int64_t delay_us(const StepRetry *policy, int failures, int64_t least_ms)
{
    double ms = (double)policy->delay_ms;

    for (int i = 1; i < failures && ms < (double)policy->delay_ms_max; i++)
        ms *= policy->factor;
    if (ms > (double)policy->delay_ms_max)
        ms = (double)policy->delay_ms_max;
    if (ms < (double)least_ms)
        ms = (double)least_ms;
    return (int64_t)(ms * 1000);
}

static Flow failed(Verb *verb, StepEnd end, const char *error)
{
    verb->error      = error;
    verb->is_refusal = end == END_REFUSED;
    return FLOW_FAILED;
}

bool verb_has_failed(Verb *verb, int *ret_failures)
{
    const StepRecord *last = run_failure(verb->run, verb->record.id, ret_failures);

    if (!last || (*ret_failures < verb->retry.attempts && !step_end_is_final(last->end)))
        return false;
    failed(verb, last->end, last->error);
    return true;
}

Flow verb_due(Verb *verb, int *ret_failures)
{
    const StepRecord *last;
    int64_t           due_us;

    if (verb_has_failed(verb, ret_failures))
        return FLOW_FAILED;
    if (*ret_failures == 0)
        return FLOW_NEXT;
    last   = run_failure(verb->run, verb->record.id, ret_failures);
    due_us = last->ended_us + delay_us(&verb->retry, *ret_failures, 0);
    if (due_us < last->retry_us)
        due_us = last->retry_us;
    if (run_now_us(verb->run) >= due_us)
        return FLOW_NEXT;
    run_wait(verb->run, verb->record.id, WAIT_RETRY, /* of= */ NULL, 0, due_us);
    return FLOW_BLOCKED;
}

/* ---- recording ---- */

ErrorCode verb_record(Verb *verb, RunRecord *record, Flow *ret_flow, Error *reterr)
{
    RunVerdict verdict = RUN_STALE;
    int        tries   = record->refresh ? STALE_TRIES : 1;

    for (int i = 0; i < tries && verdict == RUN_STALE && !(i > 0 && run_must_end(verb->run)); i++) {
        if (record->refresh)
            TRY(record->refresh(record->context, record, reterr));
        TRY(run_record(verb->run, record, &verdict, reterr));
    }
    *ret_flow = verdict == RUN_OVER ? FLOW_STOPPED : FLOW_NEXT;
    if (verdict != RUN_STALE)
        return OK;
    if (record->refresh)
        return fail(reterr, ERR_BUSY, "the state changes faster than step \"%s\" can patch it", record->id.step);
    run_wait_none(verb->run, record->id);
    *ret_flow = FLOW_BLOCKED;
    return OK;
}

ErrorCode verb_succeed(Verb *verb, const char *result, Flow *ret_flow, Error *reterr)
{
    RunRecord record = verb->record;

    record.result = result;
    return verb_record(verb, &record, ret_flow, reterr);
}

ErrorCode verb_fail(Verb *verb, const AttemptResult *result, Flow *ret_flow, Error *reterr)
{
    RunRecord record = verb->record;
    int       failures;

    run_failure(verb->run, record.id, &failures);
    record.end      = result->end;
    record.error    = result->error;
    record.retry_us = result->retry_ms > 0 ? run_now_us(verb->run) + result->retry_ms * 1000 : 0;
    record.refresh  = NULL;
    TRY(verb_record(verb, &record, ret_flow, reterr));
    if (*ret_flow != FLOW_NEXT)
        return OK;
    if (step_end_is_final(result->end) || failures + 1 >= verb->retry.attempts) {
        *ret_flow = failed(verb, result->end, result->error);
        return OK;
    }
    run_wait(verb->run, record.id, WAIT_RETRY, /* of= */ NULL, 0,
             run_now_us(verb->run) + delay_us(&verb->retry, failures + 1, result->retry_ms));
    *ret_flow = FLOW_BLOCKED;
    return OK;
}

ErrorCode verb_happened(Verb *verb, const char *result, const char *why, Flow *ret_flow, Error *reterr)
{
    RunRecord done  = verb->record;
    Error     error = {0};
    ErrorCode code  = OK;

    *ret_flow    = FLOW_NEXT;
    done.id      = record_as(done.id, RECORD_DONE);
    done.result  = result;
    done.refresh = NULL;
    if (!run_result(verb->run, done.id)) {
        code = verb_record(verb, &done, ret_flow, &error);
        if (code == ERR_LIMIT || code == ERR_INVALID) {
            done.result = "null";
            code        = verb_record(verb, &done, ret_flow, &error);
        }
    }
    if (code != OK && reterr)
        *reterr = error;
    if (code == OK && *ret_flow == FLOW_NEXT)
        *ret_flow = failed(verb, END_FINAL, why);
    return code;
}
