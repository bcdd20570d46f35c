/*
 * verb_wait.c - steps that wait for responses or for the time; see verb.h.
 */
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
 * others, so the records of waits have the ones that they have taken. */
typedef struct {
    const char                   *name;
    const ProcessResponse *const *list;
    int                           count; /* that have arrived */
    bool                         *is_taken;
    int64_t                       taken, open; /* of those that this wait may take */
    int                           first;       /* open one */
    const RecordId               *step;
} Responses;

static void record_taken_read(Responses *responses, const StepRecord *record)
{
    const char *at = record->taken;
    int64_t     first, behind;

    if (!at || record->id.aside || !record->response || strcmp(record->response, responses->name) != 0)
        return;
    while (taken_next(&at, &first, &behind))
        for (int64_t i = first < 0 ? 0 : first; i < behind && i < responses->count; i++)
            responses->is_taken[i] = true;
}

static bool response_is_for(const ProcessResponse *response, const RecordId *step)
{
    return !response->to.step || record_is_step(&response->to, step);
}

/* The responses of this name, and which of them waits have taken. */
static Responses arrivals_read(Verb *verb, const char *name)
{
    const StepRecord *const *records;
    int                      count     = run_records(verb->run, &records);
    Responses                responses = {.name = name, .step = &verb->record.id};

    responses.count    = run_arrivals(verb->run, response_signal(name), &responses.list);
    responses.is_taken = arena_array(verb->arena, bool, responses.count + 1);
    for (int i = 0; i < count; i++)
        record_taken_read(&responses, records[i]);
    for (int i = responses.count - 1; i >= 0; i--) {
        if (!response_is_for(responses.list[i], &verb->record.id))
            continue;
        responses.taken += responses.is_taken[i];
        responses.open += !responses.is_taken[i];
        responses.first = responses.is_taken[i] ? responses.first : i;
    }
    return responses;
}

/* The one of which an open response has come first; NULL: there is none. */
static const Responses *race_decide(const Responses *list, int count)
{
    const Responses *won = NULL;

    for (int i = 0; i < count; i++)
        if (list[i].open > 0 && (!won || list[i].list[list[i].first] < won->list[won->first]))
            won = &list[i];
    return won;
}

static void payload_print(const Responses *responses, int at, Text *text)
{
    const char *payload = responses->list[at]->payload;

    text_append(text, payload ? payload : "null");
}

static void result_print(const VerbWait *wait, const Responses *responses, Text *text, Text *ranges)
{
    int64_t taken = 0;

    if (wait->is_race)
        text_print(text, "{\"response\": \"%s\", \"payload\": ", responses->name);
    for (int i = responses->first; taken < wait->count; i++) {
        if (responses->is_taken[i] || !response_is_for(responses->list[i], responses->step))
            continue;
        if (wait->count > 1)
            text_append(text, taken ? "," : "[");
        payload_print(responses, i, text);
        taken_add(ranges, i);
        taken++;
    }
    text_append(text, wait->count > 1 ? "]" : wait->is_race ? "}" : "");
}

/* The first ones that are open, of which there are as many. */
static ErrorCode responses_take(Verb *verb, const VerbWait *wait, const Responses *responses, RunRecord *record,
                                Error *reterr)
{
    Text text, ranges;

    text_init(&text, verb->arena, RESULT_BYTES_MAX);
    text_init(&ranges, verb->arena, RESULT_BYTES_MAX);
    result_print(wait, responses, &text, &ranges);
    if (text_is_full(&text))
        return fail(reterr, ERR_LIMIT, "the responses have more than %zu bytes together", RESULT_BYTES_MAX);
    record->response = responses->name;
    record->result   = text_string(&text);
    record->taken    = taken_end(&ranges);
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

ErrorCode verb_wait_on(Verb *verb, const VerbWait *wait, const Wait *list, int count, Flow *ret_flow, Error *reterr)
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
    for (int i = 0; i < count; i++)
        run_wait(verb->run, id, WAIT_ASYNC, &list[i].of, list[i].count, due_us);
    *ret_flow = FLOW_BLOCKED;
    return OK;
}

/* Responses are taken and recorded as taken before another branch may take any. */
ErrorCode verb_wait(Verb *verb, const VerbWait *wait, Flow *ret_flow, Error *reterr)
{
    scoped(mutex_unlock) Mutex *held   = mutex_hold(run_responses_mutex(verb->run));
    Responses                  *list   = arena_array(verb->arena, Responses, wait->name_count);
    Wait                       *waits  = arena_array(verb->arena, Wait, wait->name_count);
    RunRecord                   record = verb->record;
    const Responses            *won;

    for (int i = 0; i < wait->name_count; i++) {
        list[i]  = arrivals_read(verb, wait->names[i]);
        waits[i] = (Wait){.of = response_signal(wait->names[i]), .count = list[i].taken + wait->count};
    }
    won = race_decide(list, wait->name_count);
    if (!won || won->open < wait->count)
        return verb_wait_on(verb, wait, waits, wait->name_count, ret_flow, reterr);
    TRY(responses_take(verb, wait, won, &record, reterr));
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
