/*
 * code_wait.c - waits, sleeps, values and patches of a function.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "process/code_internal.h"

#define NUMBER_SIZE sizeof "-9223372036854775808"

/* ---- waits and time ---- */

CodeFlow code_wait(CodeRun *code, const char *name, const char *response, int count, int64_t timeout_ms,
                   const char **ret_result)
{
    VerbWait  wait  = {.response   = response ? response : name,
                       .count      = count ? count : 1,
                       .timeout_ms = timeout_ms,
                       .continues  = true};
    Error     error = {0};
    Flow      flow  = FLOW_STOPPED;
    ErrorCode ended;
    CodeCall  call;
    Verb      verb;
    char      number[NUMBER_SIZE];

    *ret_result = NULL;
    snprintf(number, sizeof number, "%lld", (long long)wait.count);
    if (!code_call_begin(code, name, "wait", CODE_INPUT(wait.response ? wait.response : "", "#", number), &call))
        return CODE_RETURN;
    if (wait.count < 1)
        return code_defect(code, "wait \"%s\": count must be at least 1", name);
    if (timeout_ms < 0)
        return code_defect(code, "wait \"%s\": timeout must not be negative", name);
    if (!run_success(code->run, record_of(name))) {
        CODE_TRY(code_go_on(code));
        verb  = code_verb(code, &call);
        ended = verb_wait(&verb, &wait, &flow, &error);
        CODE_TRY(code_obey(code, &verb, ended, flow, &error));
    }
    if (run_success(code->run, record_of(name))->end != END_TIMED_OUT)
        *ret_result = run_result(code->run, record_of(name));
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
