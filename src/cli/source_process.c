/*
 * source_process.c - see source.h: processes.
 */
#include <stdio.h>

#include "cli/decision.h"
#include "cli/remote.h"
#include "cli/source.h"
#include "process/answers.h"
#include "process/process_fields.h"

#define MS_PER_S 1000

static Deadline deadline(void)
{
    return deadline_in_ms(APP_COMMAND_MS);
}

static ErrorCode remote_start(Call *call, SendItem *item, Error *reterr)
{
    const ProcessStartRequest given = {.type           = item->type,
                                       .state          = item->payload,
                                       .process_id     = item->command_id,
                                       .domain         = call_flag(call, "--domain"),
                                       .deadline       = call_flag(call, "--deadline"),
                                       .on_deadline    = call_flag(call, "--on-deadline"),
                                       .delay_s        = (double)item->delay_ms / MS_PER_S,
                                       .priority       = item->priority,
                                       .priority_given = item->priority != SEND_DEFAULT};
    const char               *note;

    TRY(remote_put(call,
                   &(RemoteRequest){CLIENT_POST, "/v1/processes",
                                    .body = remote_body(call->arena, &process_start_table, &given),
                                    .key  = call_flag(call, "--key")},
                   "process_id", item, &note, reterr));
    if (note)
        fprintf(stderr, "note: %s\n", note);
    return OK;
}

ErrorCode source_process_start(Call *call, SendItem *item, Error *reterr)
{
    return call->is_remote ? remote_start(call, item, reterr) : source_send(call, item, reterr);
}

ErrorCode source_process_show(Call *call, Arena *arena, ProcessName name, const char **ret_json, Error *reterr)
{
    const RemoteParameter query[] = {
        {"domain", name.domain},
        {NULL,     NULL       }
    };

    if (call->is_remote)
        return remote_json(call, &(RemoteRequest){CLIENT_GET, "/v1/processes/{}", {name.id}, query}, arena, ret_json,
                           reterr);
    return process_show(call->pool, deadline(), arena, name, ret_json, reterr);
}

ErrorCode source_process_list(Call *call, Arena *arena, const ProcessFilter *filter, Process **ret_list, int *ret_count,
                              int64_t *ret_next, Error *reterr)
{
    const RemoteParameter query[] = {
        {"domain", filter->domain},
        {"type", filter->type},
        {"status", filter->status},
        {"step", filter->step},
        {"text", filter->text},
        {"older_s", remote_number(arena, filter->older_ms / MS_PER_S)},
        {"cursor", remote_number(arena, filter->before)},
        {"limit", remote_number(arena, filter->limit)},
        {NULL, NULL}
    };

    if (call->is_remote)
        return remote_rows(call, &(RemoteRequest){CLIENT_GET, "/v1/processes", .query = query}, &answer_process_line,
                           sizeof(Process), arena, (void **)ret_list, ret_count, ret_next, reterr);
    return process_list(call->pool, deadline(), arena, filter, ret_list, ret_count, ret_next, reterr);
}

ErrorCode source_process_decide(Call *call, ProcessName name, const ProcessDecision *decision, Decision *ret_made,
                                Error *reterr)
{
    static const struct {
        const char       *path;
        const FieldTable *table;
    } routes[] = {
        [PROCESS_RETRY]      = {"/v1/processes/{}/retry",    &process_retry_table   },
        [PROCESS_CANCEL]     = {"/v1/processes/{}/cancel",   &process_cancel_table  },
        [PROCESS_COMPENSATE] = {"/v1/processes/{}/cancel",   &process_cancel_table  },
        [PROCESS_COMPLETE]   = {"/v1/processes/{}/complete", &process_complete_table},
    };
    const RemoteParameter query[] = {
        {"domain", name.domain},
        {NULL,     NULL       }
    };
    const ProcessDecisionRequest given = {decision->actor, decision->reason, decision->from, decision->result,
                                          decision->action == PROCESS_COMPENSATE};
    Decision                    *made;

    if (call->is_remote)
        return remote_decide(call,
                             &(RemoteRequest){CLIENT_POST,
                                              routes[decision->action].path,
                                              {name.id},
                                              query,
                                              remote_body(call->arena, routes[decision->action].table, &given)},
                             ret_made, reterr);
    TRY(process_decide(call->pool, deadline(), /* lock_ms= */ 0, call->arena, (CommandNames){&name.id, &name.domain, 1},
                       decision, &made, reterr));
    wake_domains(call, made->wake);
    *ret_made = *made;
    return OK;
}

/* What the daemon says about an unexpected name is the name that was meant, if one is near. */
static ErrorCode remote_signal(Call *call, ProcessName name, const ProcessSignal *signal, ProcessSignaled *ret_signaled,
                               Error *reterr)
{
    const RemoteParameter query[] = {
        {"domain", name.domain },
        {"step",   signal->step},
        {NULL,     NULL        }
    };
    RemoteReply reply;
    const char *verdict;

    TRY(remote_send(call,
                    &(RemoteRequest){
                        CLIENT_POST,
                        "/v1/processes/{}/signals/{}",
                        {name.id, signal->name},
                        query,
                        signal->payload ? signal->payload : "{}",
                        signal->key
    },
                    call->arena, &reply, reterr));
    verdict       = client_header(&reply.response, "Pawl-Status");
    *ret_signaled = (ProcessSignaled){.verdict  = verdict ? verdict : "STORED",
                                      .first    = value_text(value_field(reply.body, "status"), call->arena),
                                      .expected = value_text(value_field(reply.body, "did_you_mean"), call->arena)};
    return OK;
}

ErrorCode source_process_signal(Call *call, ProcessName name, const ProcessSignal *signal,
                                ProcessSignaled *ret_signaled, Error *reterr)
{
    if (call->is_remote)
        return remote_signal(call, name, signal, ret_signaled, reterr);
    TRY(process_signal(call->pool, deadline(), /* lock_ms= */ 0, call->arena, name, signal, ret_signaled, reterr));
    wake_domains(call, ret_signaled->wake);
    return OK;
}
