/*
 * action_send.c - steps that send a command of the bus or start a child process: see verb_send.c.
 */
#include "process/interpret_internal.h"

ErrorCode attempt_send(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    const Action *action   = attempt->action;
    bool          is_child = action->kind == STEP_PROCESS, found;
    const char   *payload;
    SendItem      item;

    TRY(verb_outcome(&attempt->verb, ret_result, &found, reterr));
    if (found)
        return OK;
    if (!verb_has_sent(&attempt->verb)) {
        TRY(attempt_render(attempt, action->send.payload, "{}", &payload, reterr));
        item = verb_item(&attempt->verb, is_child, action->send.domain, action->send.type, payload);
        TRY(verb_send(&attempt->verb, attempt->walk->interpreter->pool, &item, ret_result, reterr));
        if (ret_result->state != ATTEMPT_BLOCKED)
            return OK;
    }
    return verb_await(&attempt->verb, action->timeout_ms, ret_result, reterr);
}
