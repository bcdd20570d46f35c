/*
 * verb_send.c - a command of the bus or a child process: sent with an id that follows from the step, and its outcome awaited; see verb.h.
 *
 * The outcome comes as a reply to the step, written in the transaction that ends the command.
 */
#include <string.h>

#include "process/sent.h"
#include "process/verb.h"

static void reply_judge(Verb *verb, const SentReply *reply, AttemptResult *ret_result)
{
    if (strcmp(reply->status, "COMPLETED") == 0) {
        *ret_result = (AttemptResult){.end = END_DONE, .result = reply->result, .error = reply->error};
        return;
    }
    *ret_result = (AttemptResult){.end   = sent_reply_is_refusal(reply) ? END_REFUSED : END_FINAL,
                                  .error = arena_print(verb->arena, "%s: %s", reply->status,
                                                       reply->error ? reply->error : "no reason was given")};
}

static void command_id(Verb *verb, char *ret_id)
{
    KeyOwner owner = run_key_owner(verb->run);

    step_command_id(&owner, &verb->record.id, sent_number(verb->run, verb->record.id), ret_id);
}

ErrorCode verb_outcome(Verb *verb, AttemptResult *ret_result, bool *ret_found, Error *reterr)
{
    char               id[UUID_TEXT_SIZE];
    SentReply          reply = {0};
    const char *const *payloads;
    int                count = run_responses(verb->run, response_reply(verb->record.id), &payloads);

    command_id(verb, id);
    TRY(sent_reply_find(payloads, count, id, verb->arena, &reply, ret_found, reterr));
    if (*ret_found)
        reply_judge(verb, &reply, ret_result);
    return OK;
}

bool verb_has_sent(Verb *verb)
{
    char id[UUID_TEXT_SIZE];

    command_id(verb, id);
    return run_has_sent(verb->run, id);
}

SendItem verb_item(Verb *verb, bool is_child, const char *domain, const char *type, const char *payload)
{
    SentBy   by = {run_key_owner(verb->run), run_number(verb->run), run_life(verb->run), verb->record.id,
                   sent_number(verb->run, verb->record.id)};
    SendItem item;

    sent_item(&by, is_child, domain, type, payload, verb->arena, &item);
    return item;
}

ErrorCode verb_send(Verb *verb, Pool *pool, SendItem *item, AttemptResult *ret_result, Error *reterr)
{
    bool is_over;

    *ret_result = (AttemptResult){.state = ATTEMPT_BLOCKED};
    TRY(sent_send(pool, verb->run, item, &is_over, reterr));
    if (is_over)
        ret_result->state = ATTEMPT_STOPPED;
    else if (item->code != OK &&
             item->code != ERR_KEY_REUSED) /* another payload under the same id: the first one counts */
        *ret_result = (AttemptResult){.end = END_FINAL, .error = arena_text(verb->arena, item->error.text)};
    return OK;
}

ErrorCode verb_await(Verb *verb, int64_t timeout_ms, AttemptResult *ret_result, Error *reterr)
{
    const StepRecord *begun;
    int64_t           due_us = 0;
    Flow              flow   = FLOW_NEXT;

    ret_result->state = ATTEMPT_BLOCKED;
    if (timeout_ms || verb->record.call_kind) /* of code: its record says that the function has come to this call */
        TRY(verb_begun(verb, run_attempts(verb->run, verb->record.id) + 1, /* what= */ NULL, &begun, &flow, reterr));
    if (flow != FLOW_NEXT) {
        ret_result->state = ATTEMPT_STOPPED;
        return OK;
    }
    if (timeout_ms) {
        due_us = begun->ended_us + timeout_ms * 1000;
        if (run_now_us(verb->run) >= due_us) {
            *ret_result = (AttemptResult){.end = END_FAILED, .error = "no outcome came in time"};
            return OK;
        }
    }
    verb_reply_wait(verb->run, verb->record.id, due_us);
    return OK;
}

void verb_reply_wait(Run *run, RecordId step, int64_t due_us)
{
    ResponseOf         of = response_reply(step);
    const char *const *payloads;

    run_wait(run, step, WAIT_REPLY, &of, run_responses(run, of, &payloads) + 1, due_us);
}
