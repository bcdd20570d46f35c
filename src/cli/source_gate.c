/*
 * source_gate.c - see source.h: pauses and limits of domains.
 */
#include <stdlib.h>

#include "bus/answers.h"
#include "cli/decision.h"
#include "cli/remote.h"
#include "cli/source.h"

static Deadline deadline(void)
{
    return deadline_in_ms(APP_COMMAND_MS);
}

static GateDecision decision_of(const Call *call, const char *domain)
{
    return (GateDecision){.domain = domain, .by = call_operator(call), .reason = call_flag(call, "--reason")};
}

/* ---- pauses ---- */

static ErrorCode remote_pause(Call *call, const char *domain, bool is_pause, const char *type, DomainPause **ret_list,
                              int *ret_count, Error *reterr)
{
    const PauseRequest given = {
        .types = {type ? &type : NULL, type != NULL},
          .reason = call_flag(call, "--reason"), .by = call_operator(call)
    };

    return remote_rows(call,
                       &(RemoteRequest){CLIENT_POST,
                                        is_pause ? "/v1/domains/{}/pause" : "/v1/domains/{}/resume",
                                        {domain},
                                        .body = remote_body(call->arena, &pause_table, &given)},
                       &answer_pause, sizeof(DomainPause), call->arena, (void **)ret_list, ret_count, NULL, reterr);
}

ErrorCode source_domain_pause(Call *call, const char *domain, bool is_pause, const char *type, DomainPause **ret_list,
                              int *ret_count, Error *reterr)
{
    GateDecision decision = decision_of(call, domain);
    const char  *wake     = NULL;

    if (call->is_remote)
        return remote_pause(call, domain, is_pause, type, ret_list, ret_count, reterr);
    TRY((is_pause ? domain_pause : domain_resume)(call->pool, deadline(), call->arena, &decision, type ? &type : NULL,
                                                  type != NULL, &wake, reterr));
    wake_domains(call, wake);
    return domain_pauses(call->pool, deadline(), call->arena, domain, ret_list, ret_count, reterr);
}

/* ---- limits ---- */

static int64_t number_or(Value object, const char *name, int64_t fallback)
{
    Value number = value_field(object, name);

    return number.size ? value_i64(number) : fallback;
}

static ErrorCode remote_limits(Call *call, const RemoteRequest *request, DomainLimit **ret_list, int *ret_count,
                               Error *reterr)
{
    RemoteReply reply;
    Value       items, item;
    const char *at = NULL;

    TRY(remote_send(call, request, call->arena, &reply, reterr));
    items      = value_field(reply.body, "items");
    *ret_list  = arena_array(call->arena, DomainLimit, (int)value_item_count(items) + 1);
    *ret_count = 0;
    while (value_item_next(items, &at, &item)) {
        const char *rate     = value_raw(value_field(item, "rate_per_s"), call->arena);
        int64_t     period_s = number_or(item, "period_s", 1);

        (*ret_list)[(*ret_count)++] =
            (DomainLimit){.type        = value_text(value_field(item, "type"), call->arena),
                          .per_key     = value_true(value_field(item, "per_key")),
                          .running     = number_or(item, "running", 0),
                          .rate        = rate ? (int64_t)(strtod(rate, NULL) * (double)period_s + 0.5) : 0,
                          .period_s    = period_s,
                          .burst       = number_or(item, "burst", 0),
                          .running_now = number_or(item, "running_now", -1)};
    }
    return OK;
}

ErrorCode source_domain_limits(Call *call, const char *domain, DomainLimit **ret_list, int *ret_count, Error *reterr)
{
    if (call->is_remote)
        return remote_limits(call, &(RemoteRequest){CLIENT_GET, "/v1/domains/{}/limits", {domain}}, ret_list, ret_count,
                             reterr);
    return domain_limits(call->pool, deadline(), call->arena, domain, ret_list, ret_count, reterr);
}

ErrorCode source_domain_limit_set(Call *call, const char *domain, const DomainLimit *limit, DomainLimit **ret_list,
                                  int *ret_count, Error *reterr)
{
    const LimitRequest given    = {.type           = limit->type,
                                   .reason         = call_flag(call, "--reason"),
                                   .by             = call_operator(call),
                                   .running        = limit->running,
                                   .burst          = limit->burst,
                                   .rate_per_m     = limit->period_s == 60 ? limit->rate : 0,
                                   .rate_per_s     = (double)limit->rate,
                                   .has_rate_per_s = limit->period_s == 1 && limit->rate,
                                   .per_key        = limit->per_key};
    GateDecision       decision = decision_of(call, domain);
    const char        *wake     = NULL;

    if (call->is_remote)
        return remote_limits(call,
                             &(RemoteRequest){CLIENT_PUT,
                                              "/v1/domains/{}/limits",
                                              {domain},
                                              .body = remote_body(call->arena, &limit_table, &given)},
                             ret_list, ret_count, reterr);
    TRY(domain_limit_set(call->pool, deadline(), call->arena, &decision, limit, &wake, reterr));
    wake_domains(call, wake);
    return source_domain_limits(call, domain, ret_list, ret_count, reterr);
}

ErrorCode source_domain_limit_remove(Call *call, const char *domain, const char *type, DomainLimit **ret_list,
                                     int *ret_count, Error *reterr)
{
    const RemoteParameter query[] = {
        {"type", type},
        {NULL,   NULL}
    };
    GateDecision decision = decision_of(call, domain);
    const char  *wake     = NULL;

    if (call->is_remote)
        return remote_limits(call, &(RemoteRequest){CLIENT_DELETE, "/v1/domains/{}/limits", {domain}, query}, ret_list,
                             ret_count, reterr);
    TRY(domain_limit_remove(call->pool, deadline(), call->arena, &decision, type, &wake, reterr));
    wake_domains(call, wake);
    return source_domain_limits(call, domain, ret_list, ret_count, reterr);
}
