/*
 * schedule.c - schedules over HTTP.
 */
#include "schedule/schedule.h"

#include "api/api.h"
#include "api/domain.h"
#include "api/page.h"
#include "base/uuid.h"
#include "schedule/answers.h"

const RouteParameter api_schedule_parameters[] = {
    {"domain", "only this domain"},
    {"type", "only this type"},
    {"status", "only this status", .words = schedule_statuses},
    PAGE_PARAMETERS,
    {NULL, NULL},
};

const RouteParameter api_schedule_next_parameters[] = {
    {"count", "how many times", PARAMETER_I64, .min = 1, .max = SCHEDULE_NEXT_MAX, .fallback = SCHEDULE_NEXT_DEFAULT},
    {NULL, NULL},
};

/* ---- what a decision's body has ---- */

static ErrorCode decision_read(Request *request, const FieldTable *table, ScheduleDecisionRequest *ret_body,
                               ScheduleDecision *ret_decision, Error *reterr)
{
    *ret_body = (ScheduleDecisionRequest){0};
    TRY(api_body_read_if_any(request, table, ret_body, reterr));
    *ret_decision =
        (ScheduleDecision){request_capture(request, "name"), api_actor(request, ret_body->by), ret_body->reason};
    return OK;
}

/* ---- read ---- */

ErrorCode api_schedule_list(void *context, Request *request, Response *response, Error *reterr)
{
    Api           *api    = context;
    ScheduleFilter filter = {.domain = request_query(request, "domain"),
                             .type   = request_query(request, "type"),
                             .status = request_query(request, "status")};
    Schedule      *list;
    int            count;

    TRY(page_take(request, &filter.limit, &filter.before, reterr));
    TRY(schedule_list(api->pool, request_deadline(request), request_arena(request), &filter, &list, &count, reterr));
    page_write(filter.limit, list, count, PAGE_ROW(Schedule, schedule_write, id), response);
    return OK;
}

static ErrorCode schedule_answer(Api *api, Request *request, const char *name, Response *response, Error *reterr)
{
    Schedule schedule;

    TRY(schedule_find(api->pool, request_deadline(request), request_arena(request), name, &schedule, reterr));
    response_row(response, schedule_whole_write, &schedule);
    return OK;
}

ErrorCode api_schedule_show(void *context, Request *request, Response *response, Error *reterr)
{
    return schedule_answer(context, request, request_capture(request, "name"), response, reterr);
}

ErrorCode api_schedule_next(void *context, Request *request, Response *response, Error *reterr)
{
    Api          *api = context;
    ScheduleTime *list;
    int64_t       wanted;
    int           count;

    TRY(request_query_i64(request, "count", 1, SCHEDULE_NEXT_MAX, SCHEDULE_NEXT_DEFAULT, &wanted, reterr));
    TRY(schedule_next(api->pool, request_deadline(request), request_arena(request), request_capture(request, "name"),
                      (int)wanted, &list, &count, reterr));
    schedule_times_write(response_writer(response), list, count);
    return OK;
}

/* ---- decide ---- */

static ErrorCode create(Api *api, Request *request, const char *name, const ScheduleRequest *given, bool replace,
                        Response *response, Error *reterr)
{
    ScheduleDecision decision = {name, api_actor(request, NULL), NULL};
    const char      *done;

    if (!given->process) /* the scope of the route opens processes */
        TRY(domain_check(request, given->domain, DOMAIN_SEND, reterr));
    TRY(schedule_create(api->pool, request_deadline(request), API_LOCK_MS, request_arena(request), given, replace,
                        &decision, &done, reterr));
    return schedule_answer(api, request, name, response, reterr);
}

ErrorCode api_schedule_create(void *context, Request *request, Response *response, Error *reterr)
{
    ScheduleRequest given = {0};

    TRY(api_body_read(request, &schedule_table, &given, reterr));
    TRY(create(context, request, given.name, &given, /* replace= */ false, response, reterr));
    response->status = 201;
    return OK;
}

ErrorCode api_schedule_replace(void *context, Request *request, Response *response, Error *reterr)
{
    ScheduleRequest given = {0};

    TRY(api_body_read(request, &schedule_replace_table, &given, reterr));
    return create(context, request, request_capture(request, "name"), &given, /* replace= */ true, response, reterr);
}

ErrorCode api_schedule_delete(void *context, Request *request, Response *response, Error *reterr)
{
    Api             *api      = context;
    ScheduleDecision decision = {request_capture(request, "name"), api_actor(request, NULL), NULL};
    bool             changed;

    TRY(schedule_delete(api->pool, request_deadline(request), API_LOCK_MS, &decision, &changed, reterr));
    if (!changed)
        return fail(reterr, ERR_NOT_FOUND, "schedule \"%.100s\" not found", decision.name);
    response->status = 204;
    return OK;
}

ErrorCode api_schedule_pause(void *context, Request *request, Response *response, Error *reterr)
{
    Api                    *api = context;
    ScheduleDecisionRequest body;
    ScheduleDecision        decision;
    bool                    changed;

    TRY(decision_read(request, &schedule_decision_table, &body, &decision, reterr));
    TRY(schedule_pause(api->pool, request_deadline(request), API_LOCK_MS, &decision, &changed, reterr));
    return schedule_answer(api, request, decision.name, response, reterr);
}

ErrorCode api_schedule_resume(void *context, Request *request, Response *response, Error *reterr)
{
    Api                    *api = context;
    ScheduleDecisionRequest body;
    ScheduleDecision        decision;
    bool                    changed;

    TRY(decision_read(request, &schedule_decision_table, &body, &decision, reterr));
    TRY(schedule_resume(api->pool, request_deadline(request), API_LOCK_MS, &decision, &changed, reterr));
    return schedule_answer(api, request, decision.name, response, reterr);
}

ErrorCode api_schedule_run(void *context, Request *request, Response *response, Error *reterr)
{
    Api                    *api = context;
    ScheduleDecisionRequest body;
    ScheduleDecision        decision;
    char                    id[UUID_TEXT_SIZE];
    const char             *wake;
    Writer                 *writer;

    TRY(decision_read(request, &schedule_run_table, &body, &decision, reterr));
    if (!body.command_id) {
        uuid_new(id);
        body.command_id = id;
    }
    TRY(schedule_run(api->pool, request_deadline(request), API_LOCK_MS, request_arena(request), body.command_id,
                     &decision, &wake, reterr));
    waker_notify_names(api->waker, wake);
    writer = response_writer(response);
    writer_object(writer, NULL);
    writer_text(writer, "command_id", body.command_id);
    writer_end(writer);
    return OK;
}
