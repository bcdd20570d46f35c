/*
 * code_send.c - commands and children of a function: sent under the lease, and their outcomes (verb_send.c).
 */
#include <string.h>

#include "process/code_internal.h"

/* A call that has failed, by a timeout or because the process is to be compensated, and whose command has not ended. */
static CodeFlow open_note(CodeRun *code, const char *name, CodeFlow flow)
{
    const RecordId *open;
    int             count = flow == CODE_FAILED && !code->is_compensating ? run_open(code->run, &open) : 0;

    for (int i = 0; i < count; i++)
        if (strcmp(open[i].step, name) == 0) {
            struct OpenSend *noted = arena_alloc(code->job->arena, sizeof *noted);

            *noted     = (struct OpenSend){code->open, arena_text(code->job->arena, name)};
            code->open = noted;
        }
    return flow;
}

/* What came of the command. One that has completed and whose result cannot be recorded is a failure of the activation. */
static CodeFlow outcome_record(CodeRun *code, Verb *verb, const AttemptResult *result)
{
    Error     error = {0};
    Flow      flow  = FLOW_STOPPED;
    ErrorCode ended = OK;

    if (result->state == ATTEMPT_ENDED && result->end == END_DONE)
        ended = verb_succeed(verb, result->result ? result->result : "null", &flow, &error);
    else if (result->state == ATTEMPT_ENDED)
        ended = verb_fail(verb, result, &flow, &error);
    return code_obey(code, verb, ended, flow, &error);
}

/* The outcome also if the process is to be canceled: the function must know what has happened. */
static CodeFlow send_await(CodeRun *code, Verb *verb, SendItem *item, int64_t timeout_ms)
{
    AttemptResult result = {0};
    Error         error  = {0};
    bool          found;
    ErrorCode     ended = verb_outcome(verb, &result, &found, &error);

    if (ended == OK && !found) {
        CODE_TRY(code_go_on(code));
        result.state = ATTEMPT_BLOCKED;
        if (!verb_has_sent(verb))
            ended = verb_send(verb, code->program->pool, item, &result, &error);
        if (ended == OK && result.state == ATTEMPT_BLOCKED)
            ended = verb_await(verb, timeout_ms, &result, &error);
    }
    if (ended != OK)
        return code_broken(code, ended, &error);
    return outcome_record(code, verb, &result);
}

static CodeFlow call_run(CodeRun *code, Verb *verb, SendItem *item, int64_t timeout_ms)
{
    Error why = {0};
    int   failures;

    if (verb_has_failed(verb, &failures))
        return code_failed(code, verb->is_refusal, verb->error);
    if (send_check(item, &why) != OK)
        return code_defect(code, "step \"%s\": %s", verb->record.id.step, why.text);
    return send_await(code, verb, item, timeout_ms);
}

CodeFlow code_send(CodeRun *code, const char *name, bool is_child, const char *domain, const char *type,
                   const char *payload, int64_t timeout_ms, const char **ret_result)
{
    CodeCall call;
    SendItem item;
    Verb     verb;

    domain  = domain ? domain : "";
    type    = type ? type : "";
    payload = payload ? payload : "{}";
    if (!code_call_begin(code, name, is_child ? "process" : "command", CODE_INPUT(domain, "/", type, "/", payload),
                         &call))
        return CODE_RETURN;
    if (timeout_ms < 0)
        return code_defect(code, "step \"%s\": timeout must not be negative", name);
    if (!run_result(code->run, record_of(name))) {
        verb = code_verb(code, &call);
        item = verb_item(&verb, is_child, domain, type, payload);
        CODE_TRY(open_note(code, name, call_run(code, &verb, &item, timeout_ms)));
    }
    if (ret_result)
        *ret_result = run_result(code->run, record_of(name));
    return CODE_NEXT;
}
