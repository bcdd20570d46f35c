/*
 * action_send.c - a command of the bus or a child process: sent with an id that follows from the step, and its outcome awaited.
 *
 * The outcome comes as a reply to the step, written in the transaction that ends the command. What an earlier
 * activation is known to have sent is not sent again; an activation that is not sure simply sends, because the id is the same. An attempt whose
 * time is over has not ended its command, so the next attempt waits for the same one. Only after an operator's retry, which sets replies of failed
 * commands aside, is another sent.
 */
#include <stdio.h>
#include <string.h>

#include "process/interpret_internal.h"
#include "process/key.h"
#include "process/sent.h"

#define CALL_MS 10000

static int command_number(const Attempt *attempt)
{
    return sent_number(attempt->walk->run, attempt->id);
}

static void reply_judge(Attempt *attempt, const SentReply *reply, AttemptResult *ret_result)
{
    if (strcmp(reply->status, "COMPLETED") == 0) {
        *ret_result = (AttemptResult){.end = END_DONE, .result = reply->result, .error = reply->error};
        return;
    }
    *ret_result = (AttemptResult){.end   = sent_reply_is_refusal(reply) ? END_REFUSED : END_FINAL,
                                  .error = arena_print(attempt->arena, "%s: %s", reply->status,
                                                       reply->error ? reply->error : "no reason was given")};
}

static ErrorCode item_fill(Attempt *attempt, SendItem *ret_item, Error *reterr)
{
    const Action *action   = attempt->action;
    bool          is_child = action->kind == STEP_PROCESS;
    SentBy        by       = {run_key_owner(attempt->walk->run), attempt->walk->job->command->id, attempt->id,
                              command_number(attempt)};
    const char   *payload;

    TRY(attempt_render(attempt, is_child ? action->process.state : action->command.payload, "{}", &payload, reterr));
    sent_item(&by, is_child, is_child ? action->process.domain : action->command.domain,
              is_child ? action->process.type : action->command.type, payload, attempt->arena, ret_item);
    return OK;
}

static ErrorCode command_send(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    SendItem  item;
    SendItem *list = &item;

    TRY(item_fill(attempt, &item, reterr));
    TRY(send_many(attempt->walk->interpreter->pool, deadline_in_ms(CALL_MS), attempt->arena, &list, 1, reterr));
    if (item.code == OK) {
        if (item.is_new)
            run_wake(attempt->walk->run, item.domain);
        return OK;
    }
    if (item.busy) {
        if (reterr)
            *reterr = item.error;
        return item.code;
    }
    /* Another payload under the same id: the state has changed since it was sent, and the first one counts. */
    if (item.code == ERR_KEY_REUSED)
        return OK;
    *ret_result = (AttemptResult){.end = END_FINAL, .error = arena_text(attempt->arena, item.error.text)};
    return OK;
}

/* Sent in this attempt's name; blocked until its outcome comes, or the time is over. */
static ErrorCode outcome_await(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    Walk              *walk  = attempt->walk;
    RecordId           begin = record_as(attempt->id, RECORD_BEGIN);
    int                mine  = run_attempts(walk->run, attempt->id) + 1;
    ResponseOf         reply = response_reply(attempt->id);
    const char *const *payloads;
    RunVerdict         verdict = RUN_OK;
    int64_t            due_us  = 0;

    if (attempt->action->timeout_ms && !run_attempt(walk->run, begin, mine))
        TRY(run_record(walk->run, &(RunRecord){.id = begin, .attempt = mine, .result = "null"}, &verdict, reterr));
    if (verdict != RUN_OK) {
        ret_result->state = ATTEMPT_STOPPED;
        return OK;
    }
    if (attempt->action->timeout_ms) {
        due_us = run_attempt(walk->run, begin, mine)->ended_us + attempt->action->timeout_ms * 1000;
        if (run_now_us(walk->run) >= due_us) {
            *ret_result = (AttemptResult){.end = END_FAILED, .error = "no outcome came in time"};
            return OK;
        }
    }
    run_wait(walk->run, attempt->id, WAIT_REPLY, &reply, run_responses(walk->run, reply, &payloads) + 1, due_us);
    ret_result->state = ATTEMPT_BLOCKED;
    return OK;
}

ErrorCode attempt_send(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    KeyOwner           owner = run_key_owner(attempt->walk->run);
    char               id[UUID_TEXT_SIZE];
    SentReply          reply = {0};
    const char *const *payloads;
    int                count = run_responses(attempt->walk->run, response_reply(attempt->id), &payloads);
    bool               found;

    step_command_id(&owner, &attempt->id, command_number(attempt), id);
    TRY(sent_reply_find(payloads, count, id, attempt->arena, &reply, &found, reterr));
    if (found) {
        reply_judge(attempt, &reply, ret_result);
        return OK;
    }
    ret_result->state = ATTEMPT_BLOCKED;
    if (!run_has_sent(attempt->walk->run, id))
        TRY(command_send(attempt, ret_result, reterr));
    if (ret_result->state != ATTEMPT_BLOCKED)
        return OK;
    return outcome_await(attempt, ret_result, reterr);
}
