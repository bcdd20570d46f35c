/*
 * code.c - see code.h: the calls of a function matched with records, and how an activation ends.
 */
#include "process/code.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "base/scan.h"
#include "process/code_internal.h"
#include "process/sent.h"

#define DEFECT_SIZE 1024
/* Of the arena of the job, which the function, its steps and their tries share: half of it, so that one call more always fits. What a replay
 * alone takes is far less, so the next activation gets further. */
#define FUNCTION_BYTES_MAX ((size_t)32 << 20)

Job *code_job(CodeRun *code)
{
    return code->job;
}

Arena *code_arena(CodeRun *code)
{
    return code->job->arena;
}

const char *code_input(CodeRun *code)
{
    return run_input(code->run);
}

int code_life(CodeRun *code)
{
    return run_life(code->run);
}

const char *code_state(CodeRun *code)
{
    return run_state(code->run);
}

const char *code_error(CodeRun *code)
{
    return code->error ? code->error : "";
}

/* A function may say its result after each of its steps: the space of one that was replaced is used again. */
void code_result(CodeRun *code, const char *json)
{
    size_t size = json ? strlen(json) + 1 : 0;

    if (size > code->result_space) {
        if (!arena_has_space(code->job->arena, 2 * size)) {
            code_defect(code, "the result of the process has %zu bytes, for which there is no memory left", size - 1);
            return;
        }
        code->result_buffer = arena_alloc(code->job->arena, 2 * size);
        code->result_space  = 2 * size;
    }
    code->result = json ? memcpy(code->result_buffer, json, size) : NULL;
}

void code_reason(CodeRun *code, const char *text)
{
    snprintf(code->reason_buffer, sizeof code->reason_buffer, "%s", text);
    code->reason = code->reason_buffer;
}

/* ---- ends of calls ---- */

CodeFlow code_over(CodeRun *code)
{
    code->is_over = true;
    return CODE_RETURN;
}

CodeFlow code_defect(CodeRun *code, const char *format, ...)
{
    char    text[DEFECT_SIZE];
    va_list values;

    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (!code->is_over)
        code->defect = arena_text(code->job->arena, text);
    return code_over(code);
}

CodeFlow code_broken(CodeRun *code, ErrorCode reason, const Error *error)
{
    code->code    = reason;
    code->failure = *error;
    return code_over(code);
}

CodeFlow code_failed(CodeRun *code, bool is_rejected, const char *error)
{
    code->is_rejected = is_rejected;
    code->error       = error ? error : "failed";
    return CODE_FAILED;
}

/* ---- calls and their records ---- */

static bool name_is_valid(const char *name)
{
    size_t size = name ? strlen(name) : 0;

    return size >= 1 && size <= CODE_NAME_MAX && !strchr("_.-", name[0]) &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == size;
}

/* JSON by its value: a function may pass on a result, which has other spaces and another order of members when it comes from its record. */
static void part_hash(crypto_generichash_state *state, const char *part)
{
    unsigned char hash[VALUE_HASH_BYTES];
    size_t        size = strlen(part);

    if (scan_check(part, size, "input", /* reterr= */ NULL) == OK)
        value_hash(value_trim(part, size), hash);
    else
        crypto_generichash(hash, sizeof hash, (const unsigned char *)part, size, /* key= */ NULL, 0);
    crypto_generichash_update(state, hash, sizeof hash);
}

/* The parts are hashed one after another: joined, the payloads of a replay would be in memory at the same time. */
static void input_hash(const char *const *parts, char *ret_hash)
{
    unsigned char            hash[crypto_generichash_BYTES_MIN];
    crypto_generichash_state state;

    crypto_generichash_init(&state, /* key= */ NULL, 0, sizeof hash);
    for (; *parts; parts++)
        part_hash(&state, *parts);
    crypto_generichash_final(&state, hash, sizeof hash);
    sodium_bin2hex(ret_hash, CODE_HASH_SIZE, hash, (CODE_HASH_SIZE - 1) / 2);
}

/* Does this call differ from the one that is recorded with its number? */
static bool call_differs(CodeRun *code, const CodeCall *call, int number)
{
    const StepRecord *known = number < code->marked_count ? code->marked[number] : NULL;

    if (!known)
        return false;
    if (strcmp(call->name, known->id.step) != 0)
        code_defect(code, "the history differs: call %d was step \"%s\" when it was recorded, and is \"%s\" now",
                    number + 1, known->id.step, call->name);
    else if (strcmp(known->call_kind, call->kind) != 0)
        code_defect(code, "the history differs: step \"%s\" was a %s when it was recorded, and is a %s now", call->name,
                    known->call_kind, call->kind);
    else if (known->input_hash && strcmp(known->input_hash, call->hash) != 0)
        code_defect(code, "the history differs: step \"%s\" was recorded with another input", call->name);
    else
        return false;
    return true;
}

static int named_compare(const void *left, const void *right)
{
    const StepRecord *a = *(const StepRecord *const *)left, *b = *(const StepRecord *const *)right;
    int               order = strcmp(a->id.step, b->id.step);

    return order ? order : (a->call > b->call) - (a->call < b->call);
}

/* The index of the first recorded call whose name is not below this one. */
static int named_position(const CodeRun *code, const char *name)
{
    int low = 0, high = code->named_count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (strcmp(name, code->named[middle]->id.step) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const StepRecord *code_recorded(const CodeRun *code, const char *name)
{
    int at = named_position(code, name);

    return at < code->named_count && strcmp(code->named[at]->id.step, name) == 0 ? code->named[at] : NULL;
}

/* A name that was recorded under another number is called in another order. */
static bool call_is_elsewhere(CodeRun *code, const CodeCall *call, int number)
{
    for (int i = named_position(code, call->name);
         i < code->named_count && strcmp(code->named[i]->id.step, call->name) == 0; i++) {
        if (code->named[i]->call == number)
            continue;
        code_defect(code, "the history differs: step \"%s\" was call %d when it was recorded, and is call %d now",
                    call->name, (int)code->named[i]->call + 1, number + 1);
        return true;
    }
    return false;
}

static size_t name_bucket(const char *name)
{
    uint32_t hash = 2166136261U; /* FNV-1a */

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619U;
    return hash % CODE_BUCKETS;
}

/* A name that this activation has called before: its record would be taken for that of this call. Otherwise it is noted. */
static bool call_is_repeated(CodeRun *code, const char *name, int number)
{
    CodeCalled **bucket = &code->called[name_bucket(name)], *mine;

    for (const CodeCalled *at = *bucket; at; at = at->next)
        if (strcmp(at->name, name) == 0) {
            code_defect(code, "step \"%s\" is call %d and call %d: each call of a process must have a name of its own",
                        name, at->number + 1, number + 1);
            return true;
        }
    mine    = arena_alloc(code->job->arena, sizeof *mine);
    *mine   = (CodeCalled){.next = *bucket, .name = arena_text(code->job->arena, name), .number = number};
    *bucket = mine;
    return false;
}

bool code_name_check(CodeRun *code, const char *name)
{
    if (name_is_valid(name))
        return true;
    code_defect(code,
                "name of a call must be 1 to %d letters, digits, \"_\", \".\" or \"-\", beginning with a letter or "
                "digit, got \"%.80s\"",
                CODE_NAME_MAX, name ? name : "");
    return false;
}

bool code_call_begin(CodeRun *code, const char *name, const char *kind, const char *const *input, CodeCall *ret_call)
{
    int number = code_versions_pass(code, code->number);

    if (code->is_over || !code_name_check(code, name) || call_is_repeated(code, name, number))
        return false;
    code->number = number + 1;
    *ret_call    = (CodeCall){.name = name, .kind = kind, .number = number};
    input_hash(input, ret_call->hash);
    return !call_differs(code, ret_call, number) && !call_is_elsewhere(code, ret_call, number);
}

/* The activation uses too much memory: it is released, and the next one continues behind the last record. */
static bool code_must_end(CodeRun *code)
{
    return run_must_end(code->run) || arena_used(code->job->arena) > FUNCTION_BYTES_MAX;
}

bool code_is_canceled(CodeRun *code)
{
    return !code->is_compensating && (run_is_canceled(code->run) || strcmp(run_phase(code->run), "forward") != 0);
}

CodeFlow code_go_on(CodeRun *code)
{
    if (code_must_end(code))
        return code_over(code);
    if (code_is_canceled(code))
        return code_failed(code, /* is_rejected= */ true, run_cancel_text(code->run));
    return CODE_NEXT;
}

Verb code_verb(CodeRun *code, const CodeCall *call)
{
    return (Verb){
        .run    = code->run,
        .arena  = code->job->arena,
        .record = {.id         = record_of(call->name),
                   .call       = call->number,
                   .call_kind  = call->kind,
                   .input_hash = call->hash},
        .retry  = {.attempts = 1},
    };
}

CodeFlow code_flow(CodeRun *code, const Verb *verb, Flow flow)
{
    if (flow == FLOW_FAILED)
        return code_failed(code, verb->is_refusal, verb->error);
    return flow == FLOW_NEXT ? CODE_NEXT : code_over(code);
}

CodeFlow code_obey(CodeRun *code, const Verb *verb, ErrorCode result, Flow flow, const Error *error)
{
    return result == OK ? code_flow(code, verb, flow) : code_broken(code, result, error);
}

CodeFlow code_call_record(CodeRun *code, const CodeCall *call, const char *result)
{
    Verb      verb  = code_verb(code, call);
    Error     error = {0};
    Flow      flow  = FLOW_STOPPED;
    ErrorCode ended = verb_succeed(&verb, result, &flow, &error);

    return code_obey(code, &verb, ended, flow, &error);
}

/* ---- compensation ---- */

static CodeFlow phase_set(CodeRun *code, const char *phase)
{
    Error      error = {0};
    RunVerdict verdict;
    ErrorCode  result = run_phase_set(code->run, phase, /* reason= */ NULL, /* failed= */ NULL, &verdict, &error);

    if (result != OK)
        return code_broken(code, result, &error);
    return verdict == RUN_OK ? CODE_NEXT : code_over(code);
}

/* The function is called again when they have ended: what has completed all the same is recorded then, and the function knows what to undo. */
static CodeFlow open_wait(CodeRun *code)
{
    for (const struct OpenSend *at = code->open; at; at = at->next)
        verb_reply_wait(code->run, record_of(at->name), /* due_us= */ 0);
    return code->open ? code_over(code) : CODE_NEXT;
}

CodeFlow code_compensating(CodeRun *code)
{
    if (code->is_over)
        return CODE_RETURN;
    if (strcmp(run_phase(code->run), "forward") == 0) {
        CODE_TRY(phase_set(code, "compensating"));
        run_wait_none(code->run, record_of("")); /* the function is called again with what has come meanwhile */
        return code_over(code);
    }
    CODE_TRY(open_wait(code));
    code->is_compensating = true;
    return CODE_NEXT;
}

/* ---- the end of a life ---- */

static void history_end_check(CodeRun *code, const char *what)
{
    for (int i = code->number; i < code->marked_count; i++)
        if (code->marked[i] && code_versions_pass(code, i) == i) {
            code_defect(code, "the history differs: the function %s before step \"%s\", which is recorded", what,
                        code->marked[i]->id.step);
            return;
        }
}

CodeFlow code_continue(CodeRun *code, const char *state)
{
    Error why = {0};

    if (code->is_over)
        return CODE_RETURN;
    if (code->is_compensating)
        return code_defect(code, "a process that is being compensated cannot continue as new");
    if (code_is_canceled(code))
        return code_failed(code, /* is_rejected= */ true, run_cancel_text(code->run));
    if (state && (reader_check(state, strlen(state), &why) != OK || process_json_check("state", state, &why) != OK))
        return code_defect(code, "the state that the process continues with: %s", why.text);
    if (state && state[strspn(state, " \t\r\n")] != '{')
        return code_defect(code, "the state that the process continues with must be a JSON object");
    if (state && !arena_has_space(code->job->arena, strlen(state) + 1))
        return code_defect(code, "there is no memory left for the state that the process continues with");
    history_end_check(code, "continued as new");
    code->continues  = true;
    code->next_state = arena_text(code->job->arena, state);
    return code_over(code);
}

/* ---- one activation ---- */

static void marks_fill(CodeRun *code)
{
    StepRecord *const *records;
    int                count = run_history(code->run, &records), most = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < count; i++) {
            int64_t number = records[i]->id.aside ? -1 : records[i]->call;

            if (number < 0 || number > INT64_C(10) * RUN_RECORDS_MAX)
                continue;
            most = number + 1 > most ? (int)number + 1 : most;
            if (pass == 1 && !code->marked[number])
                code->marked[number] = records[i];
        }
        if (pass == 0)
            code->marked = arena_array(code->job->arena, const StepRecord *, most + 1);
    }
    code->marked_count = most;
    code->named        = arena_array(code->job->arena, const StepRecord *, most + 1);
    for (int i = 0; i < most; i++)
        if (code->marked[i])
            code->named[code->named_count++] = code->marked[i];
    qsort(code->named, (size_t)code->named_count, sizeof *code->named, named_compare);
}

static BodyVerdict compensated_end(CodeRun *code, const char *reason)
{
    if (phase_set(code, "compensated") != CODE_NEXT)
        return (BodyVerdict){.end = BODY_STOPS};
    return (BodyVerdict){.end = BODY_ENDS, .outcome = OUTCOME_REJECT, .error = reason};
}

static const char *failure_reason(const CodeRun *code)
{
    if (code->error)
        return code->error;
    return code->reason ? code->reason : "the function gave no reason";
}

static BodyVerdict function_end(CodeRun *code, CodeFlow flow)
{
    if (!code->is_over && flow != CODE_RETURN)
        history_end_check(code, "ended");
    if (!code->is_over && flow == CODE_RETURN)
        code_defect(code, "the function said that it must return, although no call did");
    if (code->defect)
        return (BodyVerdict){.end = BODY_ENDS, .outcome = OUTCOME_FAIL, .error = code->defect};
    if (code->continues)
        return (BodyVerdict){.end = BODY_CONTINUES, .result = code->next_state};
    if (code->is_over)
        return (BodyVerdict){.end = run_has_waits(code->run) && code->code == OK ? BODY_WAITS : BODY_STOPS};
    if (flow == CODE_NEXT && code->is_compensating)
        return compensated_end(code, code->reason ? code->reason : code->error ? code->error : "compensated");
    if (flow == CODE_NEXT)
        return (BodyVerdict){.end = BODY_ENDS, .outcome = OUTCOME_COMPLETE, .result = code->result};
    if (code->is_compensating ||
        strcmp(run_phase(code->run), "compensating") == 0) /* what is not undone needs an operator */
        return (BodyVerdict){.end = BODY_ENDS, .outcome = OUTCOME_FAIL, .error = failure_reason(code)};
    if (run_is_canceled(code->run))
        return compensated_end(code, code->error);
    return (BodyVerdict){.end     = BODY_ENDS,
                         .outcome = code->is_rejected ? OUTCOME_REJECT : OUTCOME_FAIL,
                         .error   = failure_reason(code)};
}

ErrorCode code_body(Run *run, Job *job, const LoadedProcess *loaded, void *context, BodyVerdict *ret_verdict,
                    Error *reterr)
{
    CodeRun *code = arena_alloc(job->arena, sizeof *code);

    if (loaded->definition_id) {
        job->not_begun = "a type of this worker has a definition, so pods run it";
        *ret_verdict   = (BodyVerdict){.end = BODY_STOPS};
        return OK;
    }
    *code = (CodeRun){.program = context, .run = run, .job = job};
    marks_fill(code);
    *ret_verdict = function_end(code, code->program->function(code, code->program->context));
    if (code->code != OK && reterr)
        *reterr = code->failure;
    return code->code;
}
