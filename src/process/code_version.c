/*
 * code_version.c - which way of a changed function a process goes: asked once per change, recorded, and answered from the record.
 *
 * The record of a change is found by its name. The other calls pass it over (code_versions_pass()), so that it takes a number of its own, and a
 * function that does not ask for the change any more has no other history.
 */
#include <stdlib.h>
#include <string.h>

#include "process/code_internal.h"

#define VERSION_KIND "version"

/* An answer of this activation. */
struct CodeVersion {
    CodeVersion *next;
    const char  *change;
    int          version;
};

static bool is_version(const StepRecord *record)
{
    return record && strcmp(record->call_kind, VERSION_KIND) == 0;
}

int code_versions_pass(const CodeRun *code, int number)
{
    while (number < code->marked_count && is_version(code->marked[number]))
        number++;
    return number;
}

static CodeFlow version_answer(CodeRun *code, const char *change, int version, int *ret_version)
{
    CodeVersion *answer = arena_alloc(code->job->arena, sizeof *answer);

    *answer        = (CodeVersion){code->versions, arena_text(code->job->arena, change), version};
    code->versions = answer;
    *ret_version   = version;
    return CODE_NEXT;
}

/* This program is older than the one that recorded the change: the activation is postponed, until a worker that knows it takes it. */
static CodeFlow version_unknown(CodeRun *code, const char *change, long recorded, int newest)
{
    Error error = {0};

    return code_broken(code,
                       fail(&error, ERR_BUSY,
                            "change \"%s\" of the process is version %ld, and this worker knows versions up to %d",
                            change, recorded, newest),
                       &error);
}

static CodeFlow version_recorded(CodeRun *code, const char *change, const StepRecord *known, int newest,
                                 int *ret_version)
{
    long recorded = known->result ? strtol(known->result, NULL, 10) : 0;

    if (!is_version(known))
        return code_defect(code, "the history differs: step \"%s\" was a %s when it was recorded, and is a %s now",
                           change, known->call_kind, VERSION_KIND);
    if (recorded > newest)
        return version_unknown(code, change, recorded, newest);
    return version_answer(code, change, (int)recorded, ret_version);
}

/* A process that has come further, or that is canceled and does nothing new, goes the way that it has gone before the change. */
static CodeFlow version_decide(CodeRun *code, const char *change, int newest, int *ret_version)
{
    CodeCall call;

    code->number = code_versions_pass(code, code->number);
    if (code->number < code->marked_count || code_is_canceled(code))
        return version_answer(code, change, 0, ret_version);
    if (!code_call_begin(code, change, VERSION_KIND, CODE_INPUT(""), &call))
        return CODE_RETURN;
    CODE_TRY(code_go_on(code));
    CODE_TRY(code_call_record(code, &call, arena_print(code->job->arena, "%d", newest)));
    return version_answer(code, change, newest, ret_version);
}

CodeFlow code_version(CodeRun *code, const char *change, int newest, int *ret_version)
{
    const StepRecord *known;

    *ret_version = 0;
    if (code->is_over || !code_name_check(code, change))
        return CODE_RETURN;
    if (newest < 1)
        return code_defect(code, "version \"%s\": newest must be from 1, got %d", change, newest);
    for (const CodeVersion *at = code->versions; at; at = at->next)
        if (strcmp(at->change, change) == 0) {
            *ret_version = at->version;
            return CODE_NEXT;
        }
    known = code_recorded(code, change);
    return known ? version_recorded(code, change, known, newest, ret_version)
                 : version_decide(code, change, newest, ret_version);
}
