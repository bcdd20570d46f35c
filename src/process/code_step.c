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

    step.input        = step.input ? step.input : "null";
    step.attempts     = step.attempts ? step.attempts : 5;
    step.delay_ms     = step.delay_ms ? step.delay_ms : 1000;
    step.delay_ms_max = step.delay_ms_max ? step.delay_ms_max : 60000;
    step.factor       = step.factor > 0 ? step.factor : 2;
    step.timeout_ms   = step.timeout_ms ? step.timeout_ms : CODE_CALL_MS;
    return step;
}

static int64_t step_delay_us(const CodeStep *step, int failures, int64_t least_ms)
{
    double ms = (double)step->delay_ms;

    for (int i = 1; i < failures && ms < (double)step->delay_ms_max; i++)
        ms *= step->factor;
    if (ms > (double)step->delay_ms_max)
        ms = (double)step->delay_ms_max;
    return (int64_t)((ms > (double)least_ms ? ms : (double)least_ms) * 1000);
}

/* CODE_NEXT: it may be tried now. */
static CodeFlow step_is_due(CodeRun *code, const CodeStep *step, int *ret_failures)
{
    const StepRecord *last = run_failure(code->run, record_of(step->name), ret_failures);
    int64_t           due_us;

    if (!last)
        return code_go_on(code);
    if (step_end_is_final(last->end) || *ret_failures >= step->attempts)
        return code_failed(code, last->end == END_REFUSED, last->error);
    CODE_TRY(code_go_on(code));
    due_us = last->ended_us + step_delay_us(step, *ret_failures, 0);
    if (run_now_us(code->run) >= (due_us > last->retry_us ? due_us : last->retry_us))
        return CODE_NEXT;
    run_wait(code->run, record_of(step->name), WAIT_RETRY, /* of= */ NULL, 0,
             due_us > last->retry_us ? due_us : last->retry_us);
    return code_over(code);
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
static CodeFlow tx_step_run(CodeRun *code, const CodeStep *step, const CodeAttempt *attempt, RunRecord *record,
                            CodeEnd *ret_end, bool *ret_recorded)
{
    scoped(arena_free) Arena *arena   = arena_new(TX_BYTES_MAX);
    TxStep                    mine    = {.code = code, .step = step, .attempt = attempt, .record = record};
    TxOptions                 options = {.name = "step", .arena = arena, .keyed = true, .is_foreign = true};
    Error                     error   = {0};
    int64_t                   wait_ms = 0;
    ErrorCode                 result;

    do {
        options.deadline = deadline_in_ms(step->timeout_ms);
        result           = tx_run(code->program->pool, &options, tx_step_body, &mine, &error);
    } while (result != OK && mine.is_busy && !run_must_stop(code->run) && run_busy_wait(&wait_ms));
    if (result == OK) {
        run_record_done(code->run, record);
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

/* A failure is recorded before anything else is done. */
static CodeFlow failure_write(CodeRun *code, const CodeStep *step, RunRecord *record, const CodeEnd *end, int failures)
{
    static const StepEnd ends[OUTCOME_COUNT] = {
        [OUTCOME_RETRY] = END_FAILED, [OUTCOME_FAIL] = END_FINAL, [OUTCOME_REJECT] = END_REFUSED};
    bool is_final = end->outcome != OUTCOME_RETRY;

    record->result   = NULL;
    record->end      = ends[end->outcome];
    record->error    = end->error ? end->error : "the step gave no reason";
    record->retry_us = end->retry_ms ? run_now_us(code->run) + end->retry_ms * 1000 : 0;
    CODE_TRY(code_record(code, record));
    if (is_final || failures >= step->attempts)
        return code_failed(code, end->outcome == OUTCOME_REJECT, record->error);
    run_wait(code->run, record_of(step->name), WAIT_RETRY, /* of= */ NULL, 0,
             run_now_us(code->run) + step_delay_us(step, failures, end->retry_ms));
    return code_over(code);
}

/* It has run, and its result cannot be recorded. That is recorded, so that no retry runs it again, and the function can undo it. */
static CodeFlow done_fail(CodeRun *code, const CodeStep *step, const char *why)
{
    return code_failed(code, /* is_rejected= */ false,
                       arena_print(code->job->arena, "step %s has run, and its result cannot be recorded: %s",
                                   step->name, why));
}

static CodeFlow done_record(CodeRun *code, const CodeStep *step, const RunRecord *record, const char *why)
{
    RunRecord done = *record;
    Text      text;

    text_init(&text, code->job->arena, TEXT_MAX_LINE);
    writer_quote(&text, why);
    done.id     = record_as(record->id, RECORD_DONE);
    done.result = text_string(&text);
    CODE_TRY(code_record(code, &done));
    return done_fail(code, step, why);
}

static CodeFlow success_record(CodeRun *code, const CodeStep *step, const RunRecord *record)
{
    Error      error = {0};
    RunVerdict verdict;
    ErrorCode  result = run_record(code->run, record, &verdict, &error);

    if (result == ERR_LIMIT || result == ERR_INVALID)
        return done_record(code, step, record, error.text);
    if (result != OK)
        return code_broken(code, result, &error);
    return verdict == RUN_OK ? CODE_NEXT : code_over(code);
}

static CodeFlow step_try(CodeRun *code, const CodeStep *step, const CodeCall *call, int failures)
{
    char        key[UUID_TEXT_SIZE];
    CodeAttempt attempt  = {step->name, key, step->input, failures + 1, step->attempts};
    CodeEnd     end      = {0};
    bool        recorded = false;
    RunRecord   record   = code_call_record_of(call);

    record.started_us = run_now_us(code->run);
    run_step_key(code->run, record.id, key);
    if (FAULT("process.step.before"))
        return code_broken(code, ERR_UNAVAILABLE, &(Error){.code = ERR_UNAVAILABLE});
    if (step->tx_body)
        CODE_TRY(tx_step_run(code, step, &attempt, &record, &end, &recorded));
    else
        step->body(code, &attempt, step->context, &end);
    if (FAULT("process.step.after"))
        return code_broken(code, ERR_UNAVAILABLE, &(Error){.code = ERR_UNAVAILABLE});
    if (recorded)
        return CODE_NEXT;
    if (end.outcome != OUTCOME_COMPLETE)
        return failure_write(code, step, &record, &end, failures + 1);
    record.result = end.result ? end.result : "null";
    return success_record(code, step, &record);
}

/* CODE_NEXT: it has not happened, and what it does can be recorded. */
static CodeFlow step_is_possible(CodeRun *code, const CodeStep *step)
{
    const char *why   = run_result(code->run, record_as(record_of(step->name), RECORD_DONE));
    Error       error = {0};
    Value       text;

    if (why) {
        text = value_decode((Value){why, strlen(why)}, code->job->arena);
        return done_fail(code, step, arena_bytes(code->job->arena, text.bytes, text.size));
    }
    if (run_records_left(code->run) > 0 || strcmp(run_phase(code->run), "forward") != 0)
        return CODE_NEXT;
    return code_broken(code, fail(&error, ERR_LIMIT, RUN_RECORDS_REACHED, RUN_RECORDS_MAX), &error);
}

CodeFlow code_step(CodeRun *code, const CodeStep *given, const char **ret_result)
{
    CodeStep step = step_defaults(given);
    Error    why  = {0};
    CodeCall call;
    int      failures;

    if (!code_call_begin(code, step.name, "step", CODE_INPUT(step.input), &call))
        return CODE_RETURN;
    if (!run_result(code->run, record_of(step.name))) {
        if (reader_check(step.input, strlen(step.input), &why) != OK)
            return code_defect(code, "input of step \"%s\" is no JSON: %s", step.name, why.text);
        CODE_TRY(step_is_possible(code, &step));
        CODE_TRY(step_is_due(code, &step, &failures));
        CODE_TRY(step_try(code, &step, &call, failures));
    }
    if (ret_result)
        *ret_result = run_result(code->run, record_of(step.name));
    return CODE_NEXT;
}
