/*
 * attempt_input.c - what programs and requests are given: the same in every attempt, because a key that is sent again stands for the same input.
 *
 * The parts that take a value from the state are recorded before the first attempt acts, each with a hash of its template:
 *
 *     RECORD_INPUT  {"after": 0, "url": {"of": "HASH", "is": "https://..."}, "header:X-Tenant": {...}}
 *
 * The other parts cannot change but by a move to another version of the definition, and are rendered each time. A recorded part is rendered anew, and
 * recorded again,
 *   - if its template is another one, since a move;
 *   - if an operator has the step tried again after a failure that was final: the other side has said no, and the state may have been
 *     corrected. "after" is the number of attempts that were recorded before the input was.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/writer.h"
#include "process/interpret_internal.h"

#define INPUT_BYTES_MAX ((size_t)32 << 10) /* of what is recorded, as JSON */
#define HASH_BYTES      16

typedef struct {
    char text[HASH_BYTES * 2 + 1];
} TemplateHash;

bool template_takes_state(const Template *template)
{
    if (!template)
        return false;
    for (const ValuePath *path = template_paths(template); path; path = path->next)
        if (path->root == PATH_STATE)
            return true;
    return false;
}

bool action_keeps_input(const Action *action)
{
    if (!step_kinds[action->kind].asks)
        return false;
    if (action->kind != STEP_HTTP)
        return template_takes_state(action->input);
    for (int i = 0; i < action->http.header_count; i++)
        if (template_takes_state(action->http.headers[i].value))
            return true;
    return template_takes_state(action->http.url) || template_takes_state(action->http.body);
}

static TemplateHash template_hash(const Template *template)
{
    Value         source = template_source(template);
    unsigned char bytes[HASH_BYTES];
    TemplateHash  hash;

    crypto_generichash(bytes, sizeof bytes, (const unsigned char *)source.bytes, source.size, NULL, 0);
    sodium_bin2hex(hash.text, sizeof hash.text, bytes, sizeof bytes);
    return hash;
}

/* ---- what is recorded ---- */

static Value member(Value object, const char *name)
{
    return value_member(object, name, strlen(name));
}

/* Missing: none is recorded, or it is to be rendered anew. An attempt that follows a final failure is an operator's decision. */
static Value kept_find(const Attempt *attempt)
{
    Run              *run    = attempt->walk->run;
    const StepRecord *record = run_last(run, record_as(attempt->id, RECORD_INPUT));
    const StepRecord *before = run_last(run, attempt->id);
    Value             kept = record && record->result ? value_trim(record->result, strlen(record->result)) : (Value){0};
    Value             after = kept.size ? member(kept, "after") : (Value){0};

    if (after.size == 0)
        return (Value){0};
    if (before && before->error && step_end_is_final(before->end) &&
        strtol(after.bytes, NULL, 10) < run_attempts(run, attempt->id))
        return (Value){0};
    return kept;
}

static bool part_take(Attempt *attempt, Value kept, InputPart *part)
{
    Value        object = kept.size ? member(kept, part->name) : (Value){0}, hash, text;
    TemplateHash wanted;

    if (object.size == 0)
        return false;
    hash = member(object, "of");
    text = member(object, "is");
    if (value_kind(hash) != VALUE_STRING || value_kind(text) != VALUE_STRING)
        return false;
    hash   = value_decode(hash, attempt->arena);
    wanted = template_hash(part->template);
    if (hash.size != sizeof wanted.text - 1 || memcmp(wanted.text, hash.bytes, hash.size) != 0)
        return false;
    text       = value_decode(text, attempt->arena);
    part->text = arena_bytes(attempt->arena, text.bytes, text.size);
    return true;
}

static void parts_print(const Attempt *attempt, const InputPart *parts, int count, Text *text)
{
    Writer writer;

    writer_open(&writer, text);
    writer_object(&writer, NULL);
    writer_i64(&writer, "after", run_attempts(attempt->walk->run, attempt->id));
    for (int i = 0; i < count; i++) {
        if (!template_takes_state(parts[i].template))
            continue;
        writer_object(&writer, parts[i].name);
        writer_text(&writer, "of", template_hash(parts[i].template).text);
        writer_text(&writer, "is", parts[i].text);
        writer_end(&writer);
    }
    writer_end(&writer);
}

/* Before the action acts. One that is too large is not recorded. */
static ErrorCode parts_record(Attempt *attempt, const InputPart *parts, int count, AttemptResult *ret_result,
                              Error *reterr)
{
    Error      error = {0};
    RunVerdict verdict;
    Flow       flow;
    Text       json;
    ErrorCode  code;

    text_init(&json, attempt->arena, INPUT_BYTES_MAX);
    parts_print(attempt, parts, count, &json);
    if (text_is_full(&json))
        return OK;
    code = step_record(attempt->walk, record_as(attempt->id, RECORD_INPUT), text_string(&json), /* patch= */ NULL, 0,
                       &verdict, &flow, &error);
    if (code == ERR_LIMIT || code == ERR_INVALID)
        return OK;
    if (code == OK && flow != FLOW_NEXT)
        ret_result->state = ATTEMPT_STOPPED;
    if (code == OK && FAULT("process.input.after"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.input.after");
    if (code != OK && reterr)
        *reterr = error;
    return code;
}

ErrorCode attempt_input(Attempt *attempt, InputPart *parts, int count, AttemptResult *ret_result, Error *reterr)
{
    bool  is_kept = action_keeps_input(attempt->action), is_new = false;
    Value kept = is_kept ? kept_find(attempt) : (Value){0};

    for (int i = 0; i < count; i++) {
        bool is_recorded = template_takes_state(parts[i].template);

        parts[i].is_taken = is_recorded && part_take(attempt, kept, &parts[i]);
        is_new |= is_recorded && !parts[i].is_taken;
    }
    TRY(attempt_render_parts(attempt, parts, count, reterr));
    return is_new ? parts_record(attempt, parts, count, ret_result, reterr) : OK;
}
