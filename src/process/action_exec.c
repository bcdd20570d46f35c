/*
 * action_exec.c - a program, run as `pawl work --exec` runs one: the input on standard input, the exit status decides.
 *
 * PAWL_COMMAND_ID is the step's key, PAWL_TYPE the name of its record. What the program reports is the progress of its process, in this step.
 */
#include <string.h>

#include "base/fault.h"
#include "bus/handler.h"
#include "process/interpret_internal.h"

#define STOP_POLL_MS     50
#define PROGRAM_MS       600000
#define OUTPUT_BYTES_MAX ((size_t)8192) /* of an output that is not JSON: the rest is left out */

/* The program's job. Its progress goes to the job of the process. */
typedef struct {
    Job  job; /* first */
    Job *outer;
} StepJob;

static void step_report(Job *job, const JobProgress *progress)
{
    Job        *outer = ((StepJob *)job)->outer;
    JobProgress mine  = *progress;

    mine.step = job->command->type;
    if (outer->report)
        outer->report(outer, &mine);
}

/* Ends the program when its time is over or the activation must stop. */
typedef struct {
    Handler    *handler;
    Job        *job;
    Run        *run;
    Mono        until;
    int64_t     limit_ms;
    atomic_bool ended, timed_out;
    pthread_t   thread;
} Watch;

static void *watch_body(void *context)
{
    Watch *watch = context;

    while (!atomic_load(&watch->ended)) {
        bool late = FAULT_NAMED("process.exec.late") || !mono_before(clock_mono(), watch->until);

        if (late || run_must_stop(watch->run)) {
            atomic_store(&watch->timed_out, late);
            if (!atomic_exchange(&watch->job->stopped, true))
                watch->handler->stop(watch->handler, watch->job);
            return NULL;
        }
        clock_sleep_ms(STOP_POLL_MS);
    }
    return NULL;
}

static StepEnd outcome_end(Outcome outcome)
{
    static const StepEnd ends[OUTCOME_COUNT] = {[OUTCOME_COMPLETE] = END_DONE,
                                                [OUTCOME_RETRY]    = END_FAILED,
                                                [OUTCOME_FAIL]     = END_FINAL,
                                                [OUTCOME_REJECT]   = END_REFUSED,
                                                [OUTCOME_SNOOZE]   = END_FAILED};

    return ends[outcome];
}

/* What the program has printed, without the line's end, as a JSON string; NULL: nothing. */
static const char *output_quote(const char *output, Arena *arena)
{
    size_t size = output ? strlen(output) : 0;
    char  *kept;
    Text   text;

    while (size > 0 && (output[size - 1] == '\n' || output[size - 1] == '\r'))
        size--;
    if (size == 0)
        return NULL;
    size = text_cut(output, size, OUTPUT_BYTES_MAX);
    kept = arena_bytes(arena, output, size);
    text_clean(kept, size);
    text_init(&text, arena, OUTPUT_BYTES_MAX * 6 + 2); /* a control character is escaped with six */
    text_append(&text, "\"");
    value_escape(kept, size, &text);
    text_append(&text, "\"");
    return text_string(&text);
}

static ErrorCode exec_judge(Attempt *attempt, const Watch *watch, const Job *job, const SettleItem *item,
                            AttemptResult *ret_result, Error *reterr)
{
    if (job->not_begun)
        return fail(reterr, ERR_BUSY, "%s", job->not_begun);
    *ret_result = (AttemptResult){.end = outcome_end(item->outcome), .result = item->result, .error = item->error};
    if (item->outcome == OUTCOME_COMPLETE) {
        if (!item->result)
            ret_result->result = output_quote(job->output, attempt->arena);
        return OK;
    }
    if (item->outcome != OUTCOME_RETRY)
        return OK; /* it has decided, even if it was asked to stop */
    if (atomic_load(&watch->timed_out)) {
        ret_result->error =
            arena_print(attempt->arena, "program ran longer than %lld ms and was stopped%s%s",
                        (long long)watch->limit_ms, item->error ? ": " : "", item->error ? item->error : "");
    } else if (run_must_stop(attempt->walk->run)) {
        ret_result->state = ATTEMPT_STOPPED; /* it did not fail: it was stopped */
    }
    return OK;
}

ErrorCode attempt_exec(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    InputPart      input   = {.name = "input", .template = attempt->action->input, .text = "null"};
    ClaimedCommand command = {.command_id   = attempt->key,
                              .type         = record_text(attempt->arena, &attempt->id),
                              .attempt      = attempt->attempt,
                              .max_attempts = (int32_t)attempt->action->retry.attempts};
    StepJob        step    = {
                  .outer = attempt->walk->job,
                  .job   = {.command  = &command,
                            .domain   = attempt->walk->definition->domain,
                            .arena    = attempt->arena,
                            .deadline = deadline_never(),
                            .report   = step_report}
    };
    SettleItem item = {0};
    Handler   *handler;
    Watch      watch = {.job = &step.job, .run = attempt->walk->run};

    TRY(attempt_input(attempt, &input, 1, ret_result, reterr));
    if (ret_result->state == ATTEMPT_STOPPED)
        return OK;
    watch.limit_ms   = attempt_limit_ms(attempt, PROGRAM_MS); /* without the wait for memory */
    watch.until      = mono_plus_ms(clock_mono(), watch.limit_ms);
    command.payload  = input.text;
    command.progress = progress_of_step(step.outer->command->progress, command.type, attempt->arena);
    handler          = handler_exec_new(attempt->action->exec);
    watch.handler    = handler;
    if (!thread_try_start("watch", watch_body, &watch, &watch.thread)) {
        handler_exec_free(handler);
        return fail(reterr, ERR_BUSY, "no thread can be started to watch the program");
    }
    handler->run(handler, &step.job, &item);
    atomic_store(&watch.ended, true);
    thread_join(watch.thread);
    handler_exec_free(handler);
    if (item.outcome != OUTCOME_COMPLETE)
        job_progress_flush(step.outer);
    return exec_judge(attempt, &watch, &step.job, &item, ret_result, reterr);
}
