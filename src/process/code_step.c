/*
 * code_step.c - steps of a function: tried by their policy, recorded attempt by attempt, or in a transaction with their record.
 */
#include <string.h>

#include "base/fault.h"
#include "base/reader.h"
#include "base/writer.h"
#include "pg/tx.h"
#include "process/code_internal.h"
#include "process/judge.h"

#define TX_BYTES_MAX ((size_t)256 << 20)

static CodeStep step_defaults(const CodeStep *given)
{
    CodeStep step = *given;

    step.input      = step.input ? step.input : "null";
    step.timeout_ms = step.timeout_ms ? step.timeout_ms : CODE_CALL_MS;
    return step;
}

static StepRetry step_retry(const CodeStep *step)
{
    StepRetry retry = STEP_RETRY_DEFAULT;

    retry.attempts     = step->attempts ? step->attempts : retry.attempts;
    retry.delay_ms     = step->delay_ms ? step->delay_ms : retry.delay_ms;
    retry.delay_ms_max = step->delay_ms_max ? step->delay_ms_max : retry.delay_ms_max;
    retry.factor       = step->factor > 0 ? step->factor : retry.factor;
    return retry;
}

/* A transaction of the function, with the record of its step. */
typedef struct {
    CodeRun           *code;
    const CodeStep    *step;
    const CodeAttempt *attempt;
    RunRecord         *record;
    CodeEnd            end;
    bool               is_over, is_rolled_back;
    bool               is_begun, is_raised; /* see judge.h */
    bool               is_busy; /* another transaction has the process locked: says nothing about the step */
} TxStep;

static ErrorCode tx_step_body(Tx *tx, void *context, Error *reterr)
{
    TxStep    *step = context;
    RunVerdict verdict;
    ErrorCode  code;

    step->end     = (CodeEnd){0};
    step->is_over = step->is_rolled_back = step->is_busy = step->is_raised = false;
    step->is_begun                                                         = true;
    code            = step->step->tx_body(step->code, tx, step->attempt, step->step->context, &step->end, reterr);
    step->is_raised = code != OK && judge_is_raised(tx, reterr);
    TRY(code);
    step->is_rolled_back = step->end.outcome != OUTCOME_COMPLETE;
    if (step->is_rolled_back)
        return fail(reterr, ERR_CONFLICT, "the step did not complete");
    step->record->result = step->end.result ? step->end.result : "null";
    code                 = run_record_in(step->code->run, tx, step->record, &verdict, reterr);
    step->is_busy        = code == ERR_BUSY;
    TRY(code);
    step->is_over = verdict != RUN_OK;
    return step->is_over ? fail(reterr, ERR_CONFLICT, "the lease is lost") : OK;
}

static JudgeWhen tx_failed_when(const TxStep *step)
{
    if (step->is_raised)
        return JUDGE_RAISED;
    return step->is_begun ? JUDGE_BEGUN : JUDGE_OURS;
}

/* CODE_NEXT: *ret_end says what came of it; *ret_recorded: with its record. */
static CodeFlow tx_step_run(CodeRun *code, const CodeStep *step, const CodeAttempt *attempt, RunRecord record,
                            CodeEnd *ret_end, bool *ret_recorded)
{
    scoped(arena_free) Arena *arena   = arena_new(TX_BYTES_MAX);
    TxStep                    mine    = {.code = code, .step = step, .attempt = attempt, .record = &record};
    TxOptions                 options = {.name = "step", .arena = arena, .keyed = true, .is_foreign = true};
    Error                     error   = {0};
    int64_t                   wait_ms = 0;
    ErrorCode                 result;

    do {
        options.deadline = deadline_in_ms(step->timeout_ms);
        result           = tx_run(code->program->pool, &options, tx_step_body, &mine, &error);
    } while (result != OK && mine.is_busy && !run_must_stop(code->run) && run_busy_wait(&wait_ms));
    if (result == OK) {
        run_record_done(code->run, &record);
        *ret_recorded = true;
    }
    *ret_end = mine.end;
    if (result == OK || mine.is_rolled_back)
        return CODE_NEXT;
    if (mine.is_over)
        return code_over(code);
    if (mine.is_busy || !error.sqlstate[0] || judge(result, tx_failed_when(&mine)) == ABOUT_WORLD)
        return code_broken(code, result, &error);
    *ret_end = (CodeEnd){.outcome = OUTCOME_RETRY,
                         .error   = arena_print(code->job->arena, "%s (SQLSTATE %s)", error.text, error.sqlstate)};
    return CODE_NEXT;
}

static CodeFlow failure_write(CodeRun *code, Verb *verb, const CodeEnd *end)
{
    static const StepEnd ends[OUTCOME_COUNT] = {[OUTCOME_RETRY]  = END_FAILED,
                                                [OUTCOME_FAIL]   = END_FINAL,
                                                [OUTCOME_REJECT] = END_REFUSED,
                                                [OUTCOME_SNOOZE] = END_FAILED};
    AttemptResult        result              = {.end      = ends[end->outcome],
                                                .error    = end->error ? end->error : "the step gave no reason",
                                                .retry_ms = end->retry_ms};
    Error                error               = {0};
    Flow                 flow                = FLOW_STOPPED;
    ErrorCode            ended               = verb_fail(verb, &result, &flow, &error);

    return code_obey(code, verb, ended, flow, &error);
}

static const char *happened_text(CodeRun *code, const char *name, const char *why)
{
    return arena_print(code->job->arena, "step %s has run, and its result cannot be recorded: %s", name, why);
}

/* It has run, and its result cannot be recorded: the reason is, so that no retry runs it again, and the function can undo it. */
static CodeFlow happened_write(CodeRun *code, Verb *verb, const char *why)
{
    Error     error = {0};
    Flow      flow  = FLOW_STOPPED;
    ErrorCode ended;
    Text      text;

    text_init(&text, code->job->arena, TEXT_MAX_LINE);
    writer_quote(&text, why);
    ended = verb_happened(verb, text_string(&text), happened_text(code, verb->record.id.step, why), &flow, &error);
    return code_obey(code, verb, ended, flow, &error);
}

static CodeFlow success_write(CodeRun *code, Verb *verb, const char *result)
{
    Error     error = {0};
    Flow      flow  = FLOW_STOPPED;
    ErrorCode ended = verb_succeed(verb, result, &flow, &error);

    if (ended == ERR_LIMIT || ended == ERR_INVALID)
        return happened_write(code, verb, error.text);
    return code_obey(code, verb, ended, flow, &error);
}

static CodeFlow step_try(CodeRun *code, const CodeStep *step, Verb *verb, int failures)
{
    char        key[UUID_TEXT_SIZE];
    CodeAttempt attempt  = {step->name, key, step->input, failures + 1, (int)verb->retry.attempts};
    CodeEnd     end      = {0};
    bool        recorded = false;

    verb->record.started_us = run_now_us(code->run);
    run_step_key(code->run, verb->record.id, key);
    if (FAULT("process.step.before"))
        return code_broken(code, ERR_UNAVAILABLE, &(Error){.code = ERR_UNAVAILABLE});
    if (step->tx_body)
        CODE_TRY(tx_step_run(code, step, &attempt, verb->record, &end, &recorded));
    else
        step->body(code, &attempt, step->context, &end);
    if (FAULT("process.step.after"))
        return code_broken(code, ERR_UNAVAILABLE, &(Error){.code = ERR_UNAVAILABLE});
    if (recorded)
        return CODE_NEXT;
    if (end.outcome != OUTCOME_COMPLETE)
        return failure_write(code, verb, &end);
    return success_write(code, verb, end.result ? end.result : "null");
}

/* CODE_NEXT: it has not happened, and what it does can be recorded. */
static CodeFlow step_is_possible(CodeRun *code, const CodeStep *step)
{
    const char *why   = run_result(code->run, record_as(record_of(step->name), RECORD_DONE));
    Error       error = {0};
    Value       text;

    if (why) {
        text = value_decode((Value){why, strlen(why)}, code->job->arena);
        return code_failed(code, /* is_rejected= */ false,
                           happened_text(code, step->name, arena_bytes(code->job->arena, text.bytes, text.size)));
    }
    if (run_records_left(code->run) > 0 || strcmp(run_phase(code->run), "forward") != 0)
        return CODE_NEXT;
    return code_broken(code, fail(&error, ERR_LIMIT, RUN_RECORDS_REACHED, RUN_RECORDS_MAX), &error);
}

/* CODE_NEXT: it may be tried now. One that has failed stays so, also if the process is canceled. */
static CodeFlow step_is_due(CodeRun *code, Verb *verb, int *ret_failures)
{
    if (!verb_has_failed(verb, ret_failures))
        CODE_TRY(code_go_on(code));
    return code_flow(code, verb, verb_due(verb, ret_failures));
}

CodeFlow code_step(CodeRun *code, const CodeStep *given, const char **ret_result)
{
    CodeStep step = step_defaults(given);
    Error    why  = {0};
    CodeCall call;
    Verb     verb;
    int      failures;

    if (!code_call_begin(code, step.name, "step", CODE_INPUT(step.input), &call))
        return CODE_RETURN;
    if (!run_result(code->run, record_of(step.name))) {
        if (reader_check(step.input, strlen(step.input), &why) != OK)
            return code_defect(code, "input of step \"%s\" is no JSON: %s", step.name, why.text);
        verb       = code_verb(code, &call);
        verb.retry = step_retry(&step);
        CODE_TRY(step_is_possible(code, &step));
        CODE_TRY(step_is_due(code, &verb, &failures));
        CODE_TRY(step_try(code, &step, &verb, failures));
    }
    if (ret_result)
        *ret_result = run_result(code->run, record_of(step.name));
    return CODE_NEXT;
}
