/*
 * process.c - processes from C: started, signaled, and run as functions whose calls are replayed (process/code.h).
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/problem.h"
#include "base/reader.h"
#include "base/text.h"
#include "base/uuid.h"
#include "lib/library_internal.h"
#include "process/process.h"

#define ATTEMPTS_MAX 1000

/* ---- start and signal ---- */

static ErrorCode start_item(Arena *arena, const PawlStart *start, SendItem *ret_item, Error *reterr)
{
    if (!start)
        return fail(reterr, ERR_INVALID, "start must be given, got NULL");
    TRY(process_start_item(arena, start->type, start->state, start->process_id, start->domain, ret_item, reterr));
    ret_item->actor    = start->actor;
    ret_item->key      = start->key;
    ret_item->delay_ms = start->delay_ms;
    ret_item->priority = library_priority(start->priority);
    return process_start_deadline(arena, start->deadline, start->on_deadline, ret_item, reterr);
}

static PawlStatus start_refuse(ErrorCode code, const Error *why, PawlSent *ret_sent, PawlError *error)
{
    PawlSent sent = {0};

    library_answer(code, why, &sent.error);
    if (ret_sent)
        *ret_sent = sent;
    return library_answer(code, why, error);
}

PawlStatus pawl_process_start(Pawl *pawl, const PawlStart *start, int timeout_ms, PawlSent *ret_sent, PawlError *error)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    SendItem                  item;
    Error                     why  = {0};
    ErrorCode                 code = start_item(arena, start, &item, &why);

    if (code != OK)
        return start_refuse(code, &why, ret_sent, error);
    return library_send(pawl, item, timeout_ms, ret_sent, error);
}

PawlStatus pawl_tx_process_start(PawlTx *tx, const PawlStart *start, PawlSent *ret_sent)
{
    SendItem  item;
    ErrorCode code = start_item(tx->tx->arena, start, &item, tx->why);

    if (code == OK)
        return library_tx_send(tx, &item, 1, ret_sent);
    tx->code = code;
    return start_refuse(code, tx->why, ret_sent, tx->error);
}

/* What is wrong with a start is the verdict of its item. */
static SendItem *start_items(Arena *arena, const PawlStart *starts, int count)
{
    SendItem *items = arena_array(arena, SendItem, count);

    for (int i = 0; i < count; i++) {
        Error     why  = {0};
        ErrorCode code = start_item(arena, &starts[i], &items[i], &why);

        if (code != OK)
            items[i] = (SendItem){.code = code, .error = why};
    }
    return items;
}

PawlStatus pawl_process_start_many(Pawl *pawl, const PawlStart *starts, int count, int timeout_ms, PawlSent *ret_sent,
                                   PawlError *error)
{
    Error                       why    = {0};
    scoped(library_leave) Pawl *inside = library_enter(pawl, timeout_ms, &why);
    scoped(arena_free) Arena   *arena  = arena_new(ARENA_BYTES_DEFAULT * 8);
    ErrorCode                   code   = inside ? library_list_check("starts", starts, count, &why) : why.code;

    if (code != OK)
        return library_list_refuse(code, &why, count, ret_sent, error);
    return library_send_many(pawl, start_items(arena, starts, count), count, library_deadline(timeout_ms), ret_sent,
                             error);
}

PawlStatus pawl_tx_process_start_many(PawlTx *tx, const PawlStart *starts, int count, PawlSent *ret_sent)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT * 8);
    ErrorCode                 code  = library_list_check("starts", starts, count, tx->why);

    if (code != OK)
        return library_list_refuse(tx->code = code, tx->why, count, ret_sent, tx->error);
    return library_tx_send(tx, start_items(arena, starts, count), count, ret_sent);
}

static const char *verdict_constant(const char *verdict)
{
    static const char *const words[] = {"RESUMED", "STORED", "STORED_UNEXPECTED", "REPEATED", "LATE"};

    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(words[i], verdict) == 0)
            return words[i];
    return NULL;
}

static ErrorCode signal_send(Pawl *pawl, const PawlSignal *given, Deadline deadline, const char **ret_verdict,
                             Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    char                      id[UUID_TEXT_SIZE], key[UUID_TEXT_SIZE];
    ProcessSignal             signal = {.name    = given->name,
                                        .payload = given->payload,
                                        .key     = given->key ? given->key : key,
                                        .actor   = given->actor,
                                        .step    = given->step};
    ProcessSignaled           signaled;

    if (!given->process_id || !uuid_parse(given->process_id, id))
        return fail(reterr, ERR_INVALID, "process_id must be a UUID, got \"%.60s\"",
                    given->process_id ? given->process_id : "");
    uuid_new(key);
    TRY(process_signal(pawl->pool, deadline, /* lock_ms= */ 0, arena, (ProcessName){id, given->domain}, &signal,
                       &signaled, reterr));
    waker_notify_names(pawl->waker, signaled.wake);
    if (ret_verdict)
        *ret_verdict = verdict_constant(signaled.verdict);
    return OK;
}

PawlStatus pawl_process_signal(Pawl *pawl, const PawlSignal *signal, int timeout_ms, const char **ret_verdict,
                               PawlError *error)
{
    Error                       why    = {0};
    scoped(library_leave) Pawl *inside = library_enter(pawl, timeout_ms, &why);
    ErrorCode                   code   = why.code;

    if (ret_verdict)
        *ret_verdict = NULL;
    if (inside && !signal)
        code = fail(&why, ERR_INVALID, "signal must be given, got NULL");
    else if (inside)
        code = signal_send(pawl, signal, library_deadline(timeout_ms), ret_verdict, &why);
    return library_answer(code, &why, error);
}

/* ---- the function and what it knows ---- */

struct PawlRun {
    CodeRun    *code;
    PawlWorker *worker;
};

/* false: see library_check(); no call works any more. */
static bool run_is_ours(const PawlRun *run)
{
    Error why;

    if (library_check(run->worker->pawl, &why) == OK)
        return true;
    code_defect(run->code, "%s", why.text);
    return false;
}

static PawlFlow flow_out(CodeFlow flow)
{
    static const PawlFlow flows[] = {
        [CODE_NEXT] = PAWL_FLOW_NEXT, [CODE_FAILED] = PAWL_FLOW_FAILED, [CODE_RETURN] = PAWL_FLOW_RETURN};

    return flows[flow];
}

CodeFlow process_function(CodeRun *code, void *context)
{
    PawlWorker *worker = context;
    PawlRun     run    = {code, worker};
    Outside     outside;
    PawlFlow    said;

    library_go_out(worker->pawl, &outside);
    said = worker->options.process(&run, worker->options.context);
    library_came_back(&outside);
    switch (said) {
    case PAWL_FLOW_NEXT:
        return CODE_NEXT;
    case PAWL_FLOW_FAILED:
        return CODE_FAILED;
    case PAWL_FLOW_RETURN:
        return CODE_RETURN;
    }
    return code_defect(code, "the function returned %d, which is not a PawlFlow", (int)said);
}

const char *pawl_run_id(const PawlRun *run)
{
    return code_job(run->code)->command->command_id;
}

const char *pawl_run_type(const PawlRun *run)
{
    return code_job(run->code)->command->type;
}

const char *pawl_run_input(const PawlRun *run)
{
    return code_input(run->code);
}

int pawl_run_life(const PawlRun *run)
{
    return code_life(run->code);
}

const char *pawl_run_state(PawlRun *run)
{
    return code_state(run->code);
}

const char *pawl_run_error(PawlRun *run)
{
    return code_error(run->code);
}

/* ---- steps ---- */

/* A step that is being tried, with the caller's body. */
typedef struct {
    PawlRun        *run;
    const PawlStep *step;
    WakeList        wakes;
} Trying;

static Given step_given(const PawlRun *run, const CodeAttempt *attempt)
{
    Given given = given_new(run->worker, code_job(run->code));

    given.job.command_id   = attempt->key;
    given.job.type         = attempt->name;
    given.step             = attempt->name;
    given.job.payload      = attempt->input;
    given.job.attempt      = attempt->attempt;
    given.job.max_attempts = attempt->attempts;
    return given;
}

static CodeEnd step_end(const Given *given, PawlOutcome said)
{
    SettleItem settle = {0};

    given_end(given, said, &settle);
    return (CodeEnd){.outcome  = settle.outcome,
                     .result   = settle.result,
                     .error    = settle.error,
                     .retry_ms = given->job.retry_in_ms > 0 ? given->job.retry_in_ms : 0};
}

static void plain_body(CodeRun *code, const CodeAttempt *attempt, void *context, CodeEnd *ret_end)
{
    const Trying *trying = context;
    Given         given  = step_given(trying->run, attempt);
    Outside       outside;
    PawlOutcome   said;

    (void)code;
    library_go_out(trying->run->worker->pawl, &outside);
    said = trying->step->body(&given.job, trying->step->context);
    library_came_back(&outside);
    *ret_end = step_end(&given, said);
    if (ret_end->outcome != OUTCOME_COMPLETE)
        job_progress_flush(given.bus_job);
}

/* As a tx_handler of commands: after a statement that failed in passing, PAWL_JOB_RETRY means to run it again right now. */
static ErrorCode tx_body(CodeRun *code, Tx *tx, const CodeAttempt *attempt, void *context, CodeEnd *ret_end,
                         Error *reterr)
{
    Trying     *trying = context;
    Given       given  = step_given(trying->run, attempt);
    PawlError   error  = {0};
    PawlTx      mine   = {.pawl = trying->run->worker->pawl, .tx = tx, .why = reterr, .error = &error};
    Outside     outside;
    PawlOutcome said;

    library_go_out(mine.pawl, &outside);
    said = trying->step->tx_body(&given.job, &mine, trying->step->context);
    library_came_back(&outside);
    trying->wakes = wake_list_copy(&mine.wakes, code_arena(code)); /* that of the transaction ends before the step */
    if (said == PAWL_JOB_COMPLETE && conn_transaction(tx->conn) != PQTRANS_INTRANS)
        return mine.code != OK ? mine.code : fail(reterr, ERR_INTERNAL, "the step ended its transaction by itself");
    if (said == PAWL_JOB_RETRY && error_verdict(mine.code) != VERDICT_FINAL)
        return mine.code;
    if (!given.error && mine.code != OK)
        given.error = arena_text(code_arena(code), problem_stored(reterr));
    *ret_end = step_end(&given, said);
    return OK;
}

static const char *step_defect(const PawlStep *step)
{
    if (!step->body && !step->tx_body)
        return "it needs a body or a tx_body";
    if (step->body && step->tx_body)
        return "it has a body and a tx_body, and needs one of them";
    if (step->attempts < 0 || step->attempts > ATTEMPTS_MAX)
        return "attempts must be from 1 to 1000, or 0 for the default";
    if (step->delay_ms < 0 || step->delay_ms_max < 0 || step->timeout_ms < 0)
        return "delays and timeout must not be negative";
    return step->factor == 0 || (step->factor >= 1 && step->factor <= 10) ? NULL : "factor must be from 1 to 10";
}

PawlFlow pawl_run_step(PawlRun *run, const PawlStep *step, const char **ret_result)
{
    static const PawlStep none; /* for NULL: it is refused for what it lacks */

    step               = step ? step : &none;
    Trying      trying = {.run = run, .step = step};
    const char *defect = step_defect(step);
    CodeFlow    flow;

    if (ret_result)
        *ret_result = NULL;
    if (!run_is_ours(run))
        return PAWL_FLOW_RETURN;
    if (defect)
        return flow_out(code_defect(run->code, "step \"%.100s\": %s", step->name ? step->name : "", defect));
    flow = code_step(run->code,
                     &(CodeStep){.name         = step->name,
                                 .input        = step->input,
                                 .body         = step->body ? plain_body : NULL,
                                 .tx_body      = step->tx_body ? tx_body : NULL,
                                 .context      = &trying,
                                 .attempts     = step->attempts,
                                 .delay_ms     = step->delay_ms,
                                 .delay_ms_max = step->delay_ms_max,
                                 .factor       = step->factor,
                                 .timeout_ms   = step->timeout_ms},
                     ret_result);
    if (flow == CODE_NEXT)
        waker_notify_list(run->worker->pawl->waker, &trying.wakes);
    return flow_out(flow);
}

/* ---- the other calls ---- */

PawlFlow pawl_run_wait(PawlRun *run, const PawlWait *wait, const char **ret_result)
{
    static const PawlWait none;
    const char           *result = NULL, *response = NULL;
    PawlFlow              flow = PAWL_FLOW_RETURN;

    wait = wait ? wait : &none;
    if (run_is_ours(run))
        flow = flow_out(code_wait(run->code,
                                  &(CodeWait){.name       = wait->name,
                                              .response   = wait->response,
                                              .any        = wait->any,
                                              .count      = wait->count,
                                              .timeout_ms = wait->timeout_ms},
                                  &response, &result));
    if (ret_result)
        *ret_result = result;
    if (wait->ret_response)
        *wait->ret_response = response;
    return flow;
}

PawlFlow pawl_run_sleep(PawlRun *run, const char *name, long long ms)
{
    if (!run_is_ours(run))
        return PAWL_FLOW_RETURN;
    return flow_out(code_sleep(run->code, name, ms));
}

static PawlFlow call_run(PawlRun *run, const PawlCall *call, bool is_child, const char **ret_result)
{
    static const PawlCall none;
    const char           *domain;

    call   = call ? call : &none;
    domain = !call->domain && is_child ? PROCESS_DOMAIN_DEFAULT : call->domain;
    if (ret_result)
        *ret_result = NULL;
    if (!run_is_ours(run))
        return PAWL_FLOW_RETURN;
    return flow_out(
        code_send(run->code, call->name, is_child, domain, call->type, call->payload, call->timeout_ms, ret_result));
}

PawlFlow pawl_run_command(PawlRun *run, const PawlCall *call, const char **ret_result)
{
    return call_run(run, call, /* is_child= */ false, ret_result);
}

PawlFlow pawl_run_child(PawlRun *run, const PawlCall *call, const char **ret_result)
{
    return call_run(run, call, /* is_child= */ true, ret_result);
}

PawlFlow pawl_run_time(PawlRun *run, const char *name, long long *ret_ms)
{
    int64_t  us   = 0;
    PawlFlow flow = PAWL_FLOW_RETURN;

    if (run_is_ours(run))
        flow = flow_out(code_time(run->code, name, &us));
    if (ret_ms)
        *ret_ms = us / 1000;
    return flow;
}

PawlFlow pawl_run_random(PawlRun *run, const char *name, unsigned long long *ret_number)
{
    uint64_t number = 0;
    PawlFlow flow   = PAWL_FLOW_RETURN;

    if (run_is_ours(run))
        flow = flow_out(code_random(run->code, name, &number));
    if (ret_number)
        *ret_number = number;
    return flow;
}

PawlFlow pawl_run_version(PawlRun *run, const char *change, int newest, int *ret_version)
{
    int      version = 0;
    PawlFlow flow    = PAWL_FLOW_RETURN;

    if (run_is_ours(run))
        flow = flow_out(code_version(run->code, change, newest, &version));
    if (ret_version)
        *ret_version = version;
    return flow;
}

PawlFlow pawl_run_patch(PawlRun *run, const char *name, const char *patch, bool uses_state)
{
    if (!run_is_ours(run))
        return PAWL_FLOW_RETURN;
    return flow_out(code_patch(run->code, name, patch, uses_state));
}

PawlFlow pawl_run_continue(PawlRun *run, const char *state)
{
    if (!run_is_ours(run))
        return PAWL_FLOW_RETURN;
    return flow_out(code_continue(run->code, state));
}

PawlFlow pawl_run_compensating(PawlRun *run)
{
    if (!run_is_ours(run))
        return PAWL_FLOW_RETURN;
    return flow_out(code_compensating(run->code));
}

void pawl_run_result(PawlRun *run, const char *json)
{
    Error why = {0};

    if (!json)
        code_result(run->code, NULL);
    else if (reader_check(json, strlen(json), &why) != OK)
        code_defect(run->code, "the result of the process is no JSON: %s", why.text);
    else if (process_json_check("the result of the process", json, &why) != OK)
        code_defect(run->code, "%s", why.text);
    else
        code_result(run->code, json);
}

void pawl_run_reason(PawlRun *run, const char *format, ...)
{
    char    text[CODE_REASON_SIZE];
    va_list values;

    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    for (size_t i = 0; !text_is_utf8(text, strlen(text)) && text[i]; i++)
        if ((unsigned char)text[i] >= 0x80)
            text[i] = '?'; /* PostgreSQL would not keep it */
    code_reason(run->code, text);
}
