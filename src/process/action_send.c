/*
 * action_send.c - a command of the bus or a child process: sent with an id that follows from the step, and its outcome awaited.
 *
 * The outcome comes as a response "$reply." and the name of the record, written in the transaction that ends the command. Sending again sends nothing: the
 * id is the same, so an activation that is not sure simply sends. Each attempt has an id of its own.
 */
#include <stdio.h>
#include <string.h>

#include "base/reader.h"
#include "bus/send.h"
#include "process/interpret_internal.h"

#define CALL_MS 10000

typedef struct {
    const char *command_id, *status, *result, *error;
    const char *domain, *type, *correlation_id; /* known */
} Reply;

static const Field reply_fields[] = {
    {"command_id",     FIELD_UUID, offsetof(Reply, command_id)    },
    {"domain",         FIELD_TEXT, offsetof(Reply, domain)        },
    {"type",           FIELD_TEXT, offsetof(Reply, type)          },
    {"correlation_id", FIELD_TEXT, offsetof(Reply, correlation_id)},
    {"status",         FIELD_TEXT, offsetof(Reply, status)        },
    {"result",         FIELD_JSON, offsetof(Reply, result)        },
    {"error",          FIELD_TEXT, offsetof(Reply, error)         },
};
static const FieldTable reply_table = {"reply", reply_fields, COUNT(reply_fields), sizeof(Reply)};

/* Only the end of a command writes responses of this name: pawl.signal refuses it. */
static const char *reply_name(const Attempt *attempt)
{
    return arena_print(attempt->arena, "$reply.%s", attempt->record);
}

/* The outcome of the command with this id; false: it has not come. */
static ErrorCode reply_find(Attempt *attempt, const char *id, Reply *ret_reply, bool *ret_found, Error *reterr)
{
    const char *const *payloads;
    int                count = run_responses(attempt->walk->run, reply_name(attempt), &payloads);

    *ret_found = false;
    for (int i = 0; i < count && !*ret_found; i++) {
        TRY(reader_object(payloads[i], strlen(payloads[i]), &reply_table, attempt->arena, ret_reply, reterr));
        *ret_found = ret_reply->command_id && strcmp(ret_reply->command_id, id) == 0;
    }
    return OK;
}

static void reply_judge(Attempt *attempt, const Reply *reply, AttemptResult *ret_result)
{
    if (strcmp(reply->status, "COMPLETED") == 0) {
        *ret_result = (AttemptResult){.end = ATTEMPT_DONE, .result = reply->result};
        return;
    }
    *ret_result = (AttemptResult){.end   = strcmp(reply->status, "FAILED") == 0 ? ATTEMPT_REFUSED : ATTEMPT_FAIL,
                                  .error = arena_print(attempt->arena, "%s: %s", reply->status,
                                                       reply->error ? reply->error : "no reason was given")};
}

static ErrorCode item_fill(Attempt *attempt, const char *id, SendItem *ret_item, Error *reterr)
{
    const Action *action   = attempt->action;
    bool          is_child = action->kind == STEP_PROCESS;

    *ret_item = (SendItem){.command_id = id, .priority = SEND_DEFAULT, .max_attempts = is_child ? 10 : SEND_DEFAULT};
    ret_item->domain =
        is_child ? arena_print(attempt->arena, "process:%s", action->process.domain) : action->command.domain;
    ret_item->type     = is_child ? action->process.type : action->command.type;
    ret_item->actor    = arena_print(attempt->arena, "process %s", attempt->walk->job->command->command_id);
    ret_item->is_step  = true;
    ret_item->reply_to = arena_print(attempt->arena, "response:%lld/%s", (long long)attempt->walk->job->command->id,
                                     reply_name(attempt));
    return attempt_render(attempt, is_child ? action->process.state : action->command.payload, "{}", &ret_item->payload,
                          reterr);
}

static ErrorCode command_send(Attempt *attempt, const char *id, AttemptResult *ret_result, Error *reterr)
{
    SendItem  item;
    SendItem *list = &item;

    TRY(item_fill(attempt, id, &item, reterr));
    TRY(send_many(attempt->walk->interpreter->pool, deadline_in_ms(CALL_MS), attempt->arena, &list, 1, reterr));
    if (item.code == OK)
        return OK;
    if (item.busy) {
        if (reterr)
            *reterr = item.error;
        return item.code;
    }
    /* Another payload under the same id: the state has changed since it was sent, and the first one counts. */
    if (item.code == ERR_KEY_REUSED)
        return OK;
    *ret_result = (AttemptResult){.end = ATTEMPT_FAIL, .error = arena_text(attempt->arena, item.error.text)};
    return OK;
}

/* Sent in this attempt's name; blocked until its outcome comes, or the time is over. */
static ErrorCode outcome_await(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    Walk              *walk  = attempt->walk;
    RecordName         begun = {0};
    const char *const *payloads;
    RunVerdict         verdict;
    Flow               flow;
    int64_t            due_us = 0;

    snprintf(begun.text, sizeof begun.text, "%s:begun%d", attempt->record, attempt->attempt);
    if (attempt->action->timeout_ms && !run_result(walk->run, begun.text)) {
        TRY(step_record(walk, begun.text, "null", /* patch= */ NULL, 0, &verdict, &flow, reterr));
        if (flow != FLOW_NEXT) {
            ret_result->end = ATTEMPT_STOPPED;
            return OK;
        }
    }
    if (attempt->action->timeout_ms) {
        due_us = run_ended_us(walk->run, begun.text) + attempt->action->timeout_ms * 1000;
        if (run_now_us(walk->run) >= due_us) {
            *ret_result = (AttemptResult){.end = ATTEMPT_RETRY, .error = "no outcome came in time"};
            return OK;
        }
    }
    run_wait(walk->run, attempt->record, WAIT_REPLY, reply_name(attempt),
             run_responses(walk->run, reply_name(attempt), &payloads) + 1, due_us);
    ret_result->end = ATTEMPT_BLOCKED;
    return OK;
}

ErrorCode attempt_send(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    char  id[UUID_TEXT_SIZE];
    Reply reply = {0};
    bool  found;

    record_key(attempt->walk, arena_print(attempt->arena, "%s#%d", attempt->record, attempt->attempt), id);
    TRY(reply_find(attempt, id, &reply, &found, reterr));
    if (found) {
        reply_judge(attempt, &reply, ret_result);
        return OK;
    }
    ret_result->end = ATTEMPT_BLOCKED;
    TRY(command_send(attempt, id, ret_result, reterr));
    if (ret_result->end != ATTEMPT_BLOCKED)
        return OK;
    return outcome_await(attempt, ret_result, reterr);
}
