/*
 * code_wait.c - waits, sleeps, values and patches of a function.
 */
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "base/text.h"
#include "process/code_internal.h"

#define NUMBER_SIZE      sizeof "-9223372036854775808"
#define RESULT_BYTES_MAX ((size_t)4 << 20)

/* ---- waits and time ---- */

CodeFlow code_begun(CodeRun *code, const CodeCall *call, int attempt, int64_t ms, int64_t *ret_due_us)
{
    RecordId          begin = record_as(record_of(call->name), RECORD_BEGIN);
    const StepRecord *kept  = run_attempt(code->run, begin, attempt);

    if (!kept) {
        int64_t   due_us = ms ? run_now_us(code->run) + ms * 1000 : 0;
        RunRecord record = code_call_record_of(call);

        record.id      = begin;
        record.attempt = attempt;
        record.result  = arena_print(code->job->arena, "%lld", (long long)due_us);
        CODE_TRY(code_record(code, &record));
        kept = run_attempt(code->run, begin, attempt);
    }
    *ret_due_us = strtoll(kept->result, NULL, 10);
    return CODE_NEXT;
}

static int64_t *used_find(CodeRun *code, const char *response)
{
    assert(response); /* code_call_begin() refuses a call without a name */
    for (int i = 0; i < code->used_count; i++)
        if (strcmp(code->used[i].name, response) == 0)
            return &code->used[i].count;
    if (code->used_count == CODE_USED_MAX)
        return NULL;
    code->used[code->used_count].name  = arena_text(code->job->arena, response);
    code->used[code->used_count].count = 0;
    return &code->used[code->used_count++].count;
}

/* One payload, or an array of several. */
static const char *payloads_join(CodeRun *code, const char *const *payloads, int count)
{
    Text text;

    if (count == 1)
        return payloads[0];
    text_init(&text, code->job->arena, RESULT_BYTES_MAX);
    for (int i = 0; i < count; i++) {
        text_append(&text, i ? "," : "[");
        text_append(&text, payloads[i]);
    }
    text_append(&text, "]");
    return text_is_full(&text) ? NULL : text_string(&text);
}

/* Written only if no response has come meanwhile: each changes the version of the state. */
static CodeFlow timeout_write(CodeRun *code, const CodeCall *call)
{
    RunRecord record = code_call_record_of(call);

    record.end     = END_TIMED_OUT;
    record.patch   = "{}";
    record.version = run_version(code->run);
    return code_record(code, &record);
}

/* Not there yet: the time decides. */
static CodeFlow responses_await(CodeRun *code, const CodeCall *call, const char *response, int64_t count,
                                int64_t timeout_ms)
{
    ResponseOf of = response_signal(response);
    int64_t    due_us;

    CODE_TRY(code_begun(code, call, /* attempt= */ 1, timeout_ms, &due_us));
    if (due_us && run_now_us(code->run) >= due_us)
        return timeout_write(code, call);
    run_wait(code->run, record_of(call->name), WAIT_ASYNC, &of, count, due_us);
    return code_over(code);
}

CodeFlow code_wait(CodeRun *code, const char *name, const char *response, int count, int64_t timeout_ms,
                   const char **ret_result)
{
    const char *const *payloads;
    const StepRecord  *known;
    CodeCall           call;
    int64_t           *used;
    const char        *result;
    char               number[NUMBER_SIZE];

    *ret_result = NULL;
    response    = response ? response : name;
    count       = count ? count : 1;
    snprintf(number, sizeof number, "%d", count);
    if (!code_call_begin(code, name, "wait", CODE_INPUT(response ? response : "", "#", number), &call))
        return CODE_RETURN;
    used = used_find(code, response);
    if (count < 1 || !used)
        return code_defect(code, "wait \"%s\": count must be at least 1, and at most %d names can be waited for", name,
                           CODE_USED_MAX);
    if (timeout_ms < 0)
        return code_defect(code, "wait \"%s\": timeout must not be negative", name);
    known = run_success(code->run, record_of(name));
    if (known && known->end == END_TIMED_OUT)
        return CODE_NEXT;
    if (!known) {
        CODE_TRY(code_go_on(code));
        if (run_responses(code->run, response_signal(response), &payloads) < *used + count)
            return responses_await(code, &call, response, *used + count, timeout_ms);
        result = payloads_join(code, payloads + *used, count);
        if (!result)
            return code_defect(code, "the responses of wait \"%s\" have more than %zu bytes", name, RESULT_BYTES_MAX);
        CODE_TRY(code_call_record(code, &call, result));
    }
    *used += count;
    *ret_result = run_result(code->run, record_of(name));
    return CODE_NEXT;
}

CodeFlow code_sleep(CodeRun *code, const char *name, int64_t ms)
{
    CodeCall call;
    int64_t  due_us;
    char     length[NUMBER_SIZE];

    snprintf(length, sizeof length, "%lld", (long long)ms);
    if (!code_call_begin(code, name, "sleep", CODE_INPUT(length), &call))
        return CODE_RETURN;
    if (ms < 0)
        return code_defect(code, "sleep \"%s\": its time must not be negative", name);
    if (run_result(code->run, record_of(name)))
        return CODE_NEXT;
    CODE_TRY(code_go_on(code));
    CODE_TRY(code_begun(code, &call, /* attempt= */ 1, ms > 0 ? ms : 1, &due_us));
    if (run_now_us(code->run) >= due_us)
        return code_call_record(code, &call, "null");
    run_wait(code->run, record_of(name), WAIT_ASYNC, /* of= */ NULL, 0, due_us);
    return code_over(code);
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
    RunRecord record;
    Error     why = {0};

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
    record         = code_call_record_of(&call);
    record.patch   = patch;
    record.version = uses_state ? run_version(code->run) : 0;
    return code_record(code, &record);
}
