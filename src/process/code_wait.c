/*
 * code_wait.c - waits, sleeps, values and patches of a function.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "process/code_internal.h"

#define NUMBER_SIZE    sizeof "-9223372036854775808"
#define WAIT_NAMES_MAX 20 /* as DEFINITION_ANY_MAX */

/* ---- waits and time ---- */

/* For the hash of the input. */
static const char *names_join(CodeRun *code, const VerbWait *wait)
{
    Text text;

    text_init(&text, code->job->arena, TEXT_MAX_LINE);
    for (int i = 0; i < wait->name_count; i++)
        text_print(&text, "%s%s", i ? "|" : "", wait->names[i]);
    return text_string(&text);
}

static const char *wait_defect(const CodeWait *given, const VerbWait *wait)
{
    if (given->any && given->response)
        return "response and any cannot be given both";
    if (wait->is_race && wait->count != 1)
        return "count is for one response name, not for any";
    if (wait->name_count < 1 || wait->name_count > WAIT_NAMES_MAX)
        return "any must have 1 to 20 names";
    if (wait->count < 1)
        return "count must be at least 1";
    return wait->timeout_ms < 0 ? "timeout must not be negative" : NULL;
}

/* As it is recorded: of a race the payload alone. */
static const char *result_payload(CodeRun *code, const VerbWait *wait, const char *result)
{
    Value payload;

    if (!wait->is_race)
        return result;
    payload = value_member((Value){result, strlen(result)}, "payload", strlen("payload"));
    return arena_bytes(code->job->arena, payload.bytes, payload.size);
}

CodeFlow code_wait(CodeRun *code, const CodeWait *given, const char **ret_response, const char **ret_result)
{
    const char *response = given->response ? given->response : given->name;
    VerbWait    wait     = {.names      = given->any ? given->any : &response,
                            .name_count = given->any ? 0 : 1,
                            .is_race    = given->any,
                            .count      = given->count ? given->count : 1,
                            .timeout_ms = given->timeout_ms,
                            .continues  = true};
    Error       error    = {0};
    Flow        flow     = FLOW_STOPPED;
    ErrorCode   ended;
    CodeCall    call;
    Verb        verb;
    const char *defect;
    char        number[NUMBER_SIZE];

    *ret_response = *ret_result = NULL;
    while (given->any && wait.name_count <= WAIT_NAMES_MAX && given->any[wait.name_count])
        wait.name_count++;
    defect = wait_defect(given, &wait);
    snprintf(number, sizeof number, "%lld", (long long)wait.count);
    if (!code_call_begin(code, given->name, "wait", CODE_INPUT(response ? names_join(code, &wait) : "", "#", number),
                         &call))
        return CODE_RETURN;
    if (defect)
        return code_defect(code, "wait \"%s\": %s", given->name, defect);
    if (!run_success(code->run, record_of(given->name))) {
        CODE_TRY(code_go_on(code));
        verb  = code_verb(code, &call);
        ended = verb_wait(&verb, &wait, &flow, &error);
        CODE_TRY(code_obey(code, &verb, ended, flow, &error));
    }
    if (run_success(code->run, record_of(given->name))->end == END_TIMED_OUT)
        return CODE_NEXT;
    *ret_response = run_success(code->run, record_of(given->name))->response;
    *ret_result   = result_payload(code, &wait, run_result(code->run, record_of(given->name)));
    return CODE_NEXT;
}

/* It has no result yet. */
static CodeFlow sleep_run(CodeRun *code, const CodeCall *call, int64_t ms)
{
    Verb              verb  = code_verb(code, call);
    Error             error = {0};
    Flow              flow  = FLOW_STOPPED;
    const StepRecord *begun;
    ErrorCode         ended = verb_begun(&verb, /* attempt= */ 1, /* what= */ NULL, &begun, &flow, &error);

    if (ended == OK && flow == FLOW_NEXT)
        ended = verb_sleep(&verb, begun->ended_us + ms * 1000, &flow, &error);
    return code_obey(code, &verb, ended, flow, &error);
}

CodeFlow code_sleep(CodeRun *code, const char *name, int64_t ms)
{
    CodeCall call;
    char     length[NUMBER_SIZE];

    snprintf(length, sizeof length, "%lld", (long long)ms);
    if (!code_call_begin(code, name, "sleep", CODE_INPUT(length), &call))
        return CODE_RETURN;
    if (ms < 0)
        return code_defect(code, "sleep \"%s\": its time must not be negative", name);
    if (run_result(code->run, record_of(name)))
        return CODE_NEXT;
    CODE_TRY(code_go_on(code));
    return sleep_run(code, &call, ms);
}

/* ---- values, the state ---- */

static CodeFlow value_get(CodeRun *code, const char *name, const char *kind, const char *fresh, const char **ret_value)
{
    CodeCall call;

    if (!code_call_begin(code, name, kind, CODE_INPUT(""), &call))
        return CODE_RETURN;
    if (!run_result(code->run, record_of(name))) {
        CODE_TRY(code_go_on(code));
        CODE_TRY(code_call_record(code, &call, fresh));
    }
    *ret_value = run_result(code->run, record_of(name));
    return CODE_NEXT;
}

CodeFlow code_time(CodeRun *code, const char *name, int64_t *ret_us)
{
    const char *value;

    CODE_TRY(
        value_get(code, name, "time", arena_print(code->job->arena, "%lld", (long long)run_now_us(code->run)), &value));
    *ret_us = strtoll(value, NULL, 10);
    return CODE_NEXT;
}

CodeFlow code_random(CodeRun *code, const char *name, uint64_t *ret_number)
{
    uint64_t    number;
    const char *value;

    randombytes_buf(&number, sizeof number);
    CODE_TRY(
        value_get(code, name, "random", arena_print(code->job->arena, "%llu", (unsigned long long)number), &value));
    *ret_number = strtoull(value, NULL, 10);
    return CODE_NEXT;
}

CodeFlow code_patch(CodeRun *code, const char *name, const char *patch, bool uses_state)
{
    CodeCall  call;
    Verb      verb;
    RunRecord record;
    Error     why  = {0};
    Flow      flow = FLOW_STOPPED;
    ErrorCode ended;

    /* What was computed from the state differs in each replay. */
    if (!code_call_begin(code, name, "patch", CODE_INPUT(uses_state || !patch ? "" : patch), &call))
        return CODE_RETURN;
    if (run_result(code->run, record_of(name)))
        return CODE_NEXT;
    CODE_TRY(code_go_on(code));
    if (!patch || patch[strspn(patch, " \t\r\n")] != '{')
        return code_defect(code, "patch \"%s\" must be a JSON object", name);
    if (reader_check(patch, strlen(patch), &why) != OK || process_json_check("patch", patch, &why) != OK)
        return code_defect(code, "patch \"%s\": %s", name, why.text);
    verb           = code_verb(code, &call);
    record         = verb.record;
    record.patch   = patch;
    record.version = uses_state ? run_version(code->run) : 0;
    ended          = verb_record(&verb, &record, &flow, &why);
    return code_obey(code, &verb, ended, flow, &why);
}
