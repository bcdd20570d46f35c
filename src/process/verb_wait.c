/*
 * verb_wait.c - steps that wait for responses or for the time; see verb.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "process/verb.h"

#define RESULT_BYTES_MAX ((size_t)4 << 20)

ErrorCode verb_begun(Verb *verb, int attempt, const char *what, const StepRecord **ret_kept, Flow *ret_flow,
                     Error *reterr)
{
    RunRecord begin = verb->record;

    begin.id      = record_as(begin.id, RECORD_BEGIN);
    begin.attempt = attempt;
    begin.result  = what ? what : "null";
    begin.refresh = NULL;
    *ret_flow     = FLOW_NEXT;
    *ret_kept     = run_attempt(verb->run, begin.id, attempt);
    if (*ret_kept)
        return OK;
    TRY(verb_record(verb, &begin, ret_flow, reterr));
    *ret_kept = run_attempt(verb->run, begin.id, attempt);
    return OK;
}

/* ---- responses ---- */

/* Responses of one name by their positions in the order of arrival, from 0. A retry from a step sets aside the records of some waits and leaves
 * others, so the records of waits have the ones that they have taken: "{[0,3),[5,6)}". */
typedef struct {
    const char *const *payloads;
    int64_t            count; /* that have arrived */
    bool              *is_taken;
    int64_t            taken;
} Responses;

static void position_take(Responses *responses, int64_t position)
{
    if (position < 0 || position >= responses->count || responses->is_taken[position])
        return;
    responses->is_taken[position] = true;
    responses->taken++;
}

/* A multirange as PostgreSQL prints it. */
static void ranges_take(Responses *responses, const char *ranges)
{
    for (const char *at = strchr(ranges, '['); at; at = strchr(at, '[')) {
        char   *end;
        int64_t first = strtoll(at + 1, &end, 10), behind = *end ? strtoll(end + 1, &end, 10) : first;

        for (int64_t i = first; i < behind && i < responses->count; i++)
            position_take(responses, i);
        at = end;
    }
}

/* The responses of this name, and which of them waits have taken. */
static void taken_read(Verb *verb, const char *name, Responses *ret_responses)
{
    const StepRecord *const *records;
    int                      count = run_records(verb->run, &records);

    *ret_responses          = (Responses){0};
    ret_responses->count    = run_responses(verb->run, response_signal(name), &ret_responses->payloads);
    ret_responses->is_taken = arena_array(verb->arena, bool, (int)ret_responses->count + 1);
    for (int i = 0; i < count; i++)
        if (records[i]->taken && records[i]->id.aside == 0 && records[i]->response &&
            strcmp(records[i]->response, name) == 0)
            ranges_take(ret_responses, records[i]->taken);
}

/* The first ones that no wait has taken, of which there are as many: one payload, or an array of several. */
static ErrorCode responses_take(Verb *verb, const Responses *responses, int64_t count, RunRecord *record, Error *reterr)
{
    int64_t taken = 0;
    Text    text, ranges;

    text_init(&text, verb->arena, RESULT_BYTES_MAX);
    text_init(&ranges, verb->arena, RESULT_BYTES_MAX);
    for (int64_t i = 0; i < responses->count && taken < count; i++) {
        if (responses->is_taken[i])
            continue;
        if (count > 1)
            text_append(&text, taken ? "," : "[");
        text_append(&text, responses->payloads[i]);
        text_print(&ranges, "%s[%lld,%lld)", taken++ ? "," : "{", (long long)i, (long long)i + 1);
    }
    text_append(&ranges, "}"); /* the server joins neighbours */
    if (count > 1)
        text_append(&text, "]");
    if (text_is_full(&text))
        return fail(reterr, ERR_LIMIT, "the responses have more than %zu bytes together", RESULT_BYTES_MAX);
    record->result = text_string(&text);
    record->taken  = text_string(&ranges);
    return OK;
}

/* ---- the end of a wait ---- */

static ErrorCode timeout_record(Verb *verb, const VerbWait *wait, Flow *ret_flow, Error *reterr)
{
    RunRecord record = verb->record;

    record.end     = END_TIMED_OUT;
    record.patch   = "{}";
    record.version = run_version(verb->run);
    record.refresh = NULL;
    record.result  = wait->continues ? "null" : NULL;
    record.error   = wait->continues ? NULL : "timed out";
    TRY(verb_record(verb, &record, ret_flow, reterr));
    if (*ret_flow == FLOW_NEXT && !wait->continues) {
        verb->error = record.error;
        *ret_flow   = FLOW_FAILED;
    }
    return OK;
}

ErrorCode verb_wait_on(Verb *verb, const VerbWait *wait, const ResponseOf *of, int64_t count, Flow *ret_flow,
                       Error *reterr)
{
    RecordId          id = verb->record.id;
    const StepRecord *begun;
    int64_t           begun_us, due_us = 0;

    TRY(verb_begun(verb, /* attempt= */ 1, /* what= */ NULL, &begun, ret_flow, reterr));
    if (*ret_flow != FLOW_NEXT)
        return OK;
    begun_us = begun->ended_us;
    if (run_attempts(verb->run, id) > 0 && begun_us < run_retried_us(verb->run))
        begun_us = run_retried_us(verb->run); /* it timed out before, and an operator has it tried again */
    if (wait->timeout_ms) {
        due_us = begun_us + wait->timeout_ms * 1000;
        if (run_now_us(verb->run) >= due_us)
            return timeout_record(verb, wait, ret_flow, reterr);
    }
    run_wait(verb->run, id, WAIT_ASYNC, of, count, due_us);
    *ret_flow = FLOW_BLOCKED;
    return OK;
}

/* Responses are taken and recorded as taken before another branch may take any. */
ErrorCode verb_wait(Verb *verb, const VerbWait *wait, Flow *ret_flow, Error *reterr)
{
    scoped(mutex_unlock) Mutex *held   = mutex_hold(run_responses_mutex(verb->run));
    ResponseOf                  of     = response_signal(wait->response);
    RunRecord                   record = verb->record;
    Responses                   responses;

    taken_read(verb, wait->response, &responses);
    if (responses.count < responses.taken + wait->count)
        return verb_wait_on(verb, wait, &of, responses.taken + wait->count, ret_flow, reterr);
    TRY(responses_take(verb, &responses, wait->count, &record, reterr));
    record.response = wait->response;
    return verb_record(verb, &record, ret_flow, reterr);
}

ErrorCode verb_sleep(Verb *verb, int64_t due_us, Flow *ret_flow, Error *reterr)
{
    if (run_now_us(verb->run) >= due_us)
        return verb_succeed(verb, "null", ret_flow, reterr);
    run_wait(verb->run, verb->record.id, WAIT_ASYNC, /* of= */ NULL, 0, due_us);
    *ret_flow = FLOW_BLOCKED;
    return OK;
}
