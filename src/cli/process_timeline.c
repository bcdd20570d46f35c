/*
 * process_timeline.c - see timeline.h, for processes.
 *
 * Steps, responses and the audit are three lists, each in order of time; they are printed as one. Events that say what a response or a
 * record says are left to these.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/print.h"
#include "cli/shown.h"
#include "cli/timeline.h"

#define EVENT_INDENT    28 /* behind the time */
#define ASIDE_NAMES_MAX 10

#define STEP_FIELDS(X, R, T)                                         \
    X(T, TEXT, name, verdict, response, error, started_at, ended_at) \
    X(T, JSON, result)                                               \
    X(T, I64, attempt, aside, took_ms)
SHOWN(step, StepLine, STEP_FIELDS);

#define RESPONSE_FIELDS(X, R, T)                      \
    X(T, TEXT, kind, name, key, at, actor, met, step) \
    X(T, JSON, payload)
SHOWN(response, ResponseLine, RESPONSE_FIELDS);

SHOWN(event, EventLine, EVENT_FIELDS);

#define SENT_FIELDS(X, R, T) X(T, TEXT, id, kind, domain, type, status, step)
SHOWN(sent, SentLine, SENT_FIELDS);

/* What a retry from a step has set aside. */
#define RECORD_FIELDS(X, R, T)              \
    X(T, TEXT, name, kind, error, ended_at) \
    X(T, I64, attempt)
SHOWN(record, AsideLine, RECORD_FIELDS);

#define DETAILS_FIELDS(X, R, T) \
    X(T, TEXT, from, key)       \
    R(T, deleted, record)
SHOWN(details, Aside, DETAILS_FIELDS);

#define PROCESS_FIELDS(X, R, T)                                                                            \
    X(T, TEXT, process_id, domain, type, status, step, created_at, ended_at, error, deadline, on_deadline) \
    X(T, TEXT, condition, continues_at, worker, lease_until, worker_note, attempt, lock_note)              \
    X(T, JSON, state, result, waits_for, progress)                                                         \
    X(T, I64, version, life, state_version)                                                                \
    R(T, sent, sent) R(T, steps, step) R(T, responses, response) R(T, audit, event)
SHOWN(process, ProcessDetail, PROCESS_FIELDS);

/* ---- lines of the timeline ---- */

typedef struct {
    Arena           *arena;
    Text            *text; /* of the line */
    const EventLine *from; /* what a retry from a step has set aside; its decision follows */
} Timeline;

static void line_begin(Timeline *timeline, const char *at, const char *what)
{
    text_clear(timeline->text);
    text_print(timeline->text, "  %s  %-17s ", moment_short(timeline->arena, at), what);
}

static void line_end(Timeline *timeline)
{
    while (timeline->text->length && timeline->text->bytes[timeline->text->length - 1] == ' ')
        timeline->text->bytes[--timeline->text->length] = '\0';
    print_wrapped(text_string(timeline->text), EVENT_INDENT);
}

/* A record that was set aside is that of its last attempt; which one, is not kept. */
static void step_print(Timeline *timeline, const StepLine *step)
{
    Text *text = timeline->text;

    line_begin(timeline, step->ended_at, step->error ? "step failed" : "step");
    text_print(text, "%-20s ", step->name);
    if (!step->aside)
        text_print(text, "attempt %" PRId64 ", ", step->attempt);
    if (step->took_ms < 10000)
        text_print(text, "%" PRId64 " ms", step->took_ms);
    else
        text_print(text, "%" PRId64 " s", step->took_ms / 1000);
    if (step->response && strcmp(step->response, step->name) != 0)
        text_print(text, "  took %s", step->response);
    if (step->error || step->result)
        text_print(text, "  %s", step->error ? step->error : step->result);
    line_end(timeline);
}

static void response_print(Timeline *timeline, const ResponseLine *response)
{
    Text *text = timeline->text;

    line_begin(timeline, response->at, "response");
    text_print(text, "%-20s key %s", response->name, response->key);
    if (response->step)
        text_print(text, "  for %s", response->step);
    if (response->actor)
        text_print(text, "  by %s", response->actor);
    if (response->met)
        text_print(text, "  met %s", response->met);
    text_print(text, "  %s", response->payload ? response->payload : "null");
    line_end(timeline);
}

static bool is_named_before(const AsideLine *records, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(records[i].name, records[index].name) == 0)
            return true;
    return false;
}

/* "from mail: 8 records set aside (mail, tools)": the event that a retry from a step has besides that of the decision. */
static void aside_print(Timeline *timeline, const EventLine *event)
{
    Text            *text = timeline->text;
    Aside            aside;
    const AsideLine *records;
    int              named = 0;

    if (reader_object(event->details, strlen(event->details), &details_table, timeline->arena, &aside, NULL) != OK) {
        text_append(text, event->details);
        return;
    }
    records = aside.deleted.items;
    text_print(text, "from %s: %d record%s set aside", aside.from, aside.deleted.count,
               aside.deleted.count == 1 ? "" : "s");
    for (int i = 0; i < aside.deleted.count && named <= ASIDE_NAMES_MAX; i++) {
        if (is_named_before(records, i))
            continue;
        if (named++ == ASIDE_NAMES_MAX)
            text_append(text, ", ...");
        else
            text_print(text, "%s%s", named == 1 ? " (" : ", ", records[i].name);
    }
    text_append(text, named ? ")" : "");
}

/* A retry from a step is two events in one transaction. */
static bool is_aside(const EventLine *event)
{
    return strcmp(event->event, "OPERATOR_RETRY") == 0 && event->details && strstr(event->details, "\"deleted\": [");
}

static void event_print(Timeline *timeline, const EventLine *event)
{
    Text *text = timeline->text;

    if (is_aside(event)) {
        timeline->from = event;
        return;
    }
    line_begin(timeline, event->at, event->event);
    if (event->actor)
        text_print(text, "by %s  ", event->actor);
    if (timeline->from && strcmp(event->event, "OPERATOR_RETRY") == 0) {
        aside_print(timeline, timeline->from);
        text_append(text, "  ");
        timeline->from = NULL;
    }
    text_append(text, event->details ? event->details : "");
    line_end(timeline);
}

static bool is_printed_elsewhere(const EventLine *event)
{
    return strcmp(event->event, "RESPONSE") == 0 || strcmp(event->event, "REPLY") == 0 ||
           strcmp(event->event, "COMPENSATION") == 0;
}

/* Requests of operators are responses too; their events say the same. */
static bool is_request(const ResponseLine *response)
{
    return strcmp(response->kind, "signal") != 0 && strcmp(response->kind, "reply") != 0;
}

/* Times have one length, so their texts are in order of time. */
static bool is_before(const char *at, const char *other)
{
    return at && (!other || strcmp(at, other) <= 0);
}

/* Of the same moment, a response comes before what it caused. */
static bool event_is_before(const EventLine *event, const char *response_at)
{
    bool is_cause = strcmp(event->event, "SENT") == 0 || strcmp(event->event, "RECEIVED") == 0;

    return is_before(event->at, response_at) && (is_cause || !response_at || strcmp(event->at, response_at) != 0);
}

/* Branches of a parallel end in any order. Both are of one array, in which those of the same moment are in order. */
static int step_compare(const void *a, const void *b)
{
    const StepLine *const *left = a, *const *right = b;
    int order = strcmp((*left)->ended_at ? (*left)->ended_at : "", (*right)->ended_at ? (*right)->ended_at : "");

    return order ? order : (*left > *right) - (*left < *right);
}

static const StepLine **steps_by_time(const ProcessDetail *detail, Arena *arena)
{
    const StepLine  *items = detail->steps.items;
    const StepLine **steps = arena_array(arena, const StepLine *, detail->steps.count + 1);

    for (int i = 0; i < detail->steps.count; i++)
        steps[i] = &items[i];
    qsort(steps, (size_t)detail->steps.count, sizeof *steps, step_compare);
    return steps;
}

static void events_print(Timeline *timeline, const ProcessDetail *detail)
{
    const StepLine    **steps     = steps_by_time(detail, timeline->arena);
    const ResponseLine *responses = detail->responses.items;
    const EventLine    *events    = detail->audit.items;
    int                 step = 0, response = 0, event = 0;

    for (;;) {
        const char *step_at = step < detail->steps.count ? steps[step]->ended_at : NULL;

        while (response < detail->responses.count && is_request(&responses[response]))
            response++;
        const char *response_at = response < detail->responses.count ? responses[response].at : NULL;

        while (event < detail->audit.count && is_printed_elsewhere(&events[event]))
            event++;
        const char *event_at = event < detail->audit.count ? events[event].at : NULL;

        if (is_before(event_at, step_at) && event_is_before(&events[event], response_at))
            event_print(timeline, &events[event++]);
        else if (is_before(response_at, step_at))
            response_print(timeline, &responses[response++]);
        else if (step_at)
            step_print(timeline, steps[step++]);
        else
            return;
    }
}

/* ---- the head ---- */

/* The commands and children themselves, instead of the names of the responses that their outcomes will be. */
static void waits_print(const ProcessDetail *detail, Arena *arena)
{
    const SentLine *sent      = detail->sent.items;
    bool            is_reply  = detail->waits_for && strcmp(detail->status, "WAITING_FOR_REPLY") == 0;
    bool            is_single = is_reply && !strchr(detail->waits_for, ',');

    for (int i = 0; is_reply && i < detail->sent.count; i++)
        print_line("waits for", arena_print(arena, "%s %s (%s / %s, %s), step %s", sent[i].kind, sent[i].id,
                                            sent[i].domain, sent[i].type, sent[i].status, sent[i].step));
    if (!is_single || detail->sent.count == 0)
        print_line("waits for", detail->condition ? detail->condition : detail->waits_for);
    print_line("waits for", detail->attempt);
    if (detail->lock_note)
        print_line("waits for", arena_print(arena, "%s (next try %s)", detail->lock_note,
                                            moment_short(arena, detail->continues_at)));
    if (detail->worker_note)
        print_line("waits for", arena_print(arena, "a worker: %s", detail->worker_note));
}

static ErrorCode head_print(const ProcessDetail *detail, Arena *arena, Error *reterr)
{
    const char *version = detail->version ? arena_print(arena, ", version %" PRId64, detail->version) : "";
    const char *life    = detail->life > 1 ? arena_print(arena, ", life %" PRId64, detail->life) : "";

    print_line("process", detail->process_id);
    print_line("what", arena_print(arena, "%s / %s%s%s", detail->domain, detail->type, version, life));
    print_line("status", detail->status);
    print_line("step", detail->step);
    waits_print(detail, arena);
    if (!detail->lock_note)
        print_line("until", moment_short(arena, detail->continues_at));
    print_line("worker", detail->worker);
    print_line("leased until", moment_short(arena, detail->lease_until));
    TRY(progress_print(detail->progress, arena, reterr));
    print_line("started", moment_short(arena, detail->created_at));
    print_line("deadline", detail->deadline ? arena_print(arena, "%s, then %s", moment_short(arena, detail->deadline),
                                                          detail->on_deadline)
                                            : NULL);
    print_line("ended", moment_short(arena, detail->ended_at));
    print_line("state", detail->state);
    print_line("result", detail->result);
    print_line("error", detail->error);
    return OK;
}

ErrorCode process_timeline_print(const char *json, Arena *arena, Error *reterr)
{
    scoped_text Text text     = {0};
    Timeline         timeline = {.arena = arena, .text = &text};
    ProcessDetail    detail;

    TRY(reader_object(json, strlen(json), &process_table, arena, &detail, reterr));
    text_init(&text, NULL, TEXT_MAX_BODY);
    TRY(head_print(&detail, arena, reterr));
    printf("\n");
    events_print(&timeline, &detail);
    return OK;
}
