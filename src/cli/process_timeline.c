/*
 * process_timeline.c - see process_timeline.h.
 *
 * Steps, responses and the audit are three lists, each in order of time; they are printed as one. Events that say what a response or a
 * record says are left to these.
 */
#include "cli/process_timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/reader.h"

typedef struct {
    const char *name, *result, *error, *started_at, *ended_at;
    int64_t     attempt, took_ms;
} StepLine;

static const Field step_fields[] = {
    {"name",       FIELD_TEXT, offsetof(StepLine, name)      },
    {"attempt",    FIELD_I64,  offsetof(StepLine, attempt)   },
    {"result",     FIELD_JSON, offsetof(StepLine, result)    },
    {"error",      FIELD_TEXT, offsetof(StepLine, error)     },
    {"started_at", FIELD_TEXT, offsetof(StepLine, started_at)},
    {"ended_at",   FIELD_TEXT, offsetof(StepLine, ended_at)  },
    {"took_ms",    FIELD_I64,  offsetof(StepLine, took_ms)   },
};
static const FieldTable step_table = {"step", step_fields, COUNT(step_fields), sizeof(StepLine)};

typedef struct {
    const char *name, *key, *payload, *at, *actor, *met;
} ResponseLine;

static const Field response_fields[] = {
    {"name",    FIELD_TEXT, offsetof(ResponseLine, name)   },
    {"key",     FIELD_TEXT, offsetof(ResponseLine, key)    },
    {"payload", FIELD_JSON, offsetof(ResponseLine, payload)},
    {"at",      FIELD_TEXT, offsetof(ResponseLine, at)     },
    {"actor",   FIELD_TEXT, offsetof(ResponseLine, actor)  },
    {"met",     FIELD_TEXT, offsetof(ResponseLine, met)    },
};
static const FieldTable response_table = {"response", response_fields, COUNT(response_fields), sizeof(ResponseLine)};

typedef struct {
    const char *event, *at, *actor, *details;
    int64_t     attempt;
} EventLine;

static const Field event_fields[] = {
    {"event",   FIELD_TEXT, offsetof(EventLine, event)  },
    {"at",      FIELD_TEXT, offsetof(EventLine, at)     },
    {"attempt", FIELD_I64,  offsetof(EventLine, attempt)},
    {"actor",   FIELD_TEXT, offsetof(EventLine, actor)  },
    {"details", FIELD_JSON, offsetof(EventLine, details)},
};
static const FieldTable event_table = {"event", event_fields, COUNT(event_fields), sizeof(EventLine)};

typedef struct {
    const char *id, *kind, *domain, *type, *status, *step;
} SentLine;

static const Field sent_fields[] = {
    {"id",     FIELD_TEXT, offsetof(SentLine, id)    },
    {"kind",   FIELD_TEXT, offsetof(SentLine, kind)  },
    {"domain", FIELD_TEXT, offsetof(SentLine, domain)},
    {"type",   FIELD_TEXT, offsetof(SentLine, type)  },
    {"status", FIELD_TEXT, offsetof(SentLine, status)},
    {"step",   FIELD_TEXT, offsetof(SentLine, step)  },
};
static const FieldTable sent_table = {"sent", sent_fields, COUNT(sent_fields), sizeof(SentLine)};

typedef struct {
    const char *process_id, *domain, *type, *status, *state, *step, *created_at, *ended_at, *result, *error, *deadline;
    const char *waits_for, *condition, *continues_at, *worker;
    int64_t     version, state_version;
    ReaderArray sent, steps, responses, audit;
} ProcessDetail;

#define TEXT_AT(name)                                    \
    {                                                    \
        #name, FIELD_TEXT, offsetof(ProcessDetail, name) \
    }
#define JSON_AT(name)                                    \
    {                                                    \
        #name, FIELD_JSON, offsetof(ProcessDetail, name) \
    }
static const Field detail_fields[] = {
    TEXT_AT(process_id),
    TEXT_AT(domain),
    TEXT_AT(type),
    {"version", FIELD_I64, offsetof(ProcessDetail, version)},
    TEXT_AT(status),
    JSON_AT(state),
    {"state_version", FIELD_I64, offsetof(ProcessDetail, state_version)},
    TEXT_AT(step),
    TEXT_AT(created_at),
    TEXT_AT(ended_at),
    JSON_AT(result),
    TEXT_AT(error),
    TEXT_AT(deadline),
    JSON_AT(waits_for),
    TEXT_AT(condition),
    TEXT_AT(continues_at),
    TEXT_AT(worker),
    {"sent", FIELD_ROWS, offsetof(ProcessDetail, sent), .rows = &sent_table},
    {"steps", FIELD_ROWS, offsetof(ProcessDetail, steps), .rows = &step_table},
    {"responses", FIELD_ROWS, offsetof(ProcessDetail, responses), .rows = &response_table},
    {"audit", FIELD_ROWS, offsetof(ProcessDetail, audit), .rows = &event_table},
};
static const FieldTable detail_table = {"process", detail_fields, COUNT(detail_fields), sizeof(ProcessDetail)};

static void line(const char *name, const char *value)
{
    if (value)
        printf("%-12s %s\n", name, value);
}

/* "2026-11-15T08:51:01.180288Z" as day and milliseconds. */
static void time_print(const char *at, const char *what)
{
    printf("  %.10s %.12sZ  %-17s", at, at + 11, what);
}

static void took_print(int64_t ms)
{
    if (ms < 10000)
        printf("%" PRId64 " ms", ms);
    else
        printf("%" PRId64 " s", ms / 1000);
}

static void step_print(const StepLine *step)
{
    time_print(step->ended_at, step->error ? "step failed" : "step");
    printf(" %-20s attempt %" PRId64 ", ", step->name, step->attempt);
    took_print(step->took_ms);
    if (step->error)
        printf("  %s", step->error);
    else if (step->result)
        printf("  %s", step->result);
    printf("\n");
}

static void response_print(const ResponseLine *response)
{
    time_print(response->at, "response");
    printf(" %-20s key %s", response->name, response->key);
    if (response->actor)
        printf("  by %s", response->actor);
    if (response->met)
        printf("  met %s", response->met);
    printf("  %s\n", response->payload ? response->payload : "null");
}

static void event_print(const EventLine *event)
{
    time_print(event->at, event->event);
    if (event->actor)
        printf(" by %s", event->actor);
    if (event->details)
        printf("%s%s", event->actor ? "  " : " ", event->details);
    printf("\n");
}

static bool is_printed_elsewhere(const EventLine *event)
{
    return strcmp(event->event, "RESPONSE") == 0 || strcmp(event->event, "REPLY") == 0 ||
           strcmp(event->event, "COMPENSATION") == 0;
}

/* Requests of operators are responses too; their events say the same. */
static bool is_request(const ResponseLine *response)
{
    return strcmp(response->name, "$cancel") == 0 || strcmp(response->name, "$move") == 0;
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

static void events_print(const ProcessDetail *detail)
{
    const StepLine     *steps     = detail->steps.items;
    const ResponseLine *responses = detail->responses.items;
    const EventLine    *events    = detail->audit.items;
    int                 step = 0, response = 0, event = 0;

    for (;;) {
        const char *step_at = step < detail->steps.count ? steps[step].ended_at : NULL;

        while (response < detail->responses.count && is_request(&responses[response]))
            response++;
        const char *response_at = response < detail->responses.count ? responses[response].at : NULL;

        while (event < detail->audit.count && is_printed_elsewhere(&events[event]))
            event++;
        const char *event_at = event < detail->audit.count ? events[event].at : NULL;

        if (is_before(event_at, step_at) && event_is_before(&events[event], response_at))
            event_print(&events[event++]);
        else if (is_before(response_at, step_at))
            response_print(&responses[response++]);
        else if (step_at)
            step_print(&steps[step++]);
        else
            return;
    }
}

/* The commands and children themselves, instead of the names of the responses that their outcomes will be. */
static void waits_print(const ProcessDetail *detail)
{
    const SentLine *sent      = detail->sent.items;
    bool            is_reply  = detail->waits_for && strncmp(detail->waits_for, "{\"$reply.", 9) == 0;
    bool            is_single = is_reply && !strchr(detail->waits_for, ',');

    for (int i = 0; is_reply && i < detail->sent.count; i++)
        printf("%-12s %s %s (%s / %s, %s), step %s\n", "waits for", sent[i].kind, sent[i].id, sent[i].domain,
               sent[i].type, sent[i].status, sent[i].step);
    if (!is_single || detail->sent.count == 0)
        line("waits for", detail->condition ? detail->condition : detail->waits_for);
}

ErrorCode process_timeline_print(const char *json, Arena *arena, Error *reterr)
{
    ProcessDetail detail;

    TRY(reader_object(json, strlen(json), &detail_table, arena, &detail, reterr));
    line("process", detail.process_id);
    printf("%-12s %s / %s", "what", detail.domain, detail.type);
    if (detail.version)
        printf(", version %" PRId64, detail.version);
    printf("\n%-12s %s\n", "status", detail.status);
    line("step", detail.step);
    waits_print(&detail);
    line("until", detail.continues_at);
    line("worker", detail.worker);
    line("started", detail.created_at);
    line("deadline", detail.deadline);
    line("ended", detail.ended_at);
    line("state", detail.state);
    line("result", detail.result);
    line("error", detail.error);
    printf("\n");
    events_print(&detail);
    return OK;
}
