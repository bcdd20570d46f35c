/*
 * decision.c - decisions of operators over HTTP: cancel a command; retry, cancel or complete one of the troubleshooting queue.
 */
#include "api/api.h"
#include "api/domain.h"
#include "base/uuid.h"
#include "base/writer.h"
#include "bus/command.h"

ErrorCode api_decision_answer(Api *api, const char *noun, const char *id, const Decision *decision, Response *response,
                              Error *reterr)
{
    waker_notify_names(api->waker, decision->wake);
    TRY(decision_check(noun, id, decision, reterr));
    if (!decision->is_new)
        api_replayed_set(response);
    decision_write(response_writer(response), noun, id, decision);
    return OK;
}

static ErrorCode decide_read(Request *request, char *ret_id, DecisionRequest *ret_given, Error *reterr)
{
    TRY(api_id_take(request, ret_id, reterr));
    *ret_given = (DecisionRequest){0};
    TRY(api_body_read_if_any(request, &decision_table, ret_given, reterr));
    ret_given->by = api_actor(request, ret_given->by);
    return OK;
}

ErrorCode api_command_cancel(void *context, Request *request, Response *response, Error *reterr)
{
    Api            *api = context;
    DecisionRequest given;
    char            id[UUID_TEXT_SIZE];
    const char     *ids[] = {id}, *domains[] = {request_query(request, "domain")};
    Decision       *made;

    TRY(decide_read(request, id, &given, reterr));
    TRY(domain_check_id(api, request, id, DOMAIN_CANCEL, reterr));
    TRY(command_cancel(api->pool, request_deadline(request), API_LOCK_MS, request_arena(request),
                       (CommandNames){ids, domains, 1}, given.reason, given.by, &made, reterr));
    return api_decision_answer(api, "command", id, made, response, reterr);
}

static ErrorCode tsq_answer(Api *api, Request *request, TsqAction action, Response *response, Error *reterr)
{
    DecisionRequest given;
    char            id[UUID_TEXT_SIZE];
    const char     *ids[] = {id}, *domains[] = {request_query(request, "domain")};
    Decision       *made;

    TRY(decide_read(request, id, &given, reterr));
    TRY(domain_check_id(api, request, id, DOMAIN_CANCEL, reterr));
    TRY(tsq_decide(api->pool, request_deadline(request), API_LOCK_MS, request_arena(request),
                   (CommandNames){ids, domains, 1}, &(TsqDecision){action, given.by, given.reason, given.result}, &made,
                   reterr));
    return api_decision_answer(api, "command", id, made, response, reterr);
}

ErrorCode api_tsq_retry(void *context, Request *request, Response *response, Error *reterr)
{
    return tsq_answer(context, request, TSQ_RETRY, response, reterr);
}

ErrorCode api_tsq_cancel(void *context, Request *request, Response *response, Error *reterr)
{
    return tsq_answer(context, request, TSQ_CANCEL, response, reterr);
}

ErrorCode api_tsq_complete(void *context, Request *request, Response *response, Error *reterr)
{
    return tsq_answer(context, request, TSQ_COMPLETE, response, reterr);
}
