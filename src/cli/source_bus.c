/*
 * source_bus.c - see source.h: commands, batches, retry policies, dead letters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/moment.h"
#include "base/writer.h"
#include "bus/answers.h"
#include "bus/send_fields.h"
#include "bus/waker.h"
#include "cli/decision.h"
#include "cli/remote.h"
#include "cli/source.h"

#define WAIT_S 60 /* the most that a request may wait */

static Deadline deadline(void)
{
    return deadline_in_ms(APP_COMMAND_MS);
}

ErrorCode source_must_be_database(const Call *call, const char *what, Error *reterr)
{
    if (!call->is_remote)
        return OK;
    return fail(reterr, ERR_USAGE, "%s does not work over HTTP: it needs the database, so set PAWL_DATABASE_URL and unset PAWL_URL", what);
}

/* ---- commands ---- */

ErrorCode remote_put(Call *call, const RemoteRequest *request, const char *id, SendItem *item, const char **ret_note,
                     Error *reterr)
{
    RemoteReply reply;
    const char *made, *status;

    TRY(remote_send(call, request, call->arena, &reply, reterr));
    made      = value_text(value_field(reply.body, id), call->arena);
    status    = client_header(&reply.response, "Pawl-Status");
    *ret_note = client_header(&reply.response, "Pawl-Note");
    if (!made)
        return fail(reterr, ERR_USAGE, "PAWL_URL must be that of pawl serve: its answer has no %s", id);
    snprintf(item->id, sizeof item->id, "%s", made);
    snprintf(item->first_id, sizeof item->first_id, "%s", made);
    item->duplicate = value_text(value_field(reply.body, "duplicate"), call->arena);
    item->status    = status ? status : value_text(value_field(reply.body, "status"), call->arena);
    item->is_new    = !reply.is_replayed;
    return OK;
}

static ErrorCode remote_command_send(Call *call, SendItem *item, Error *reterr)
{
    const UniqueRequest unique = {item->unique_key, item->unique_for, item->on_duplicate};
    const SendRequest   given  = {.domain  = item->domain,
                                  .unique  = item->unique_key ? remote_body(call->arena, &unique_table, &unique) : NULL,
                                  .type    = item->type,
                                  .payload = item->payload,
                                  .command_id     = item->command_id,
                                  .reply_to       = item->reply_to,
                                  .correlation_id = item->correlation_id,
                                  .batch_id       = item->batch_id,
                                  .order_key      = item->order_key,
                                  .delay_s        = (double)item->delay_ms / 1000,
                                  .priority       = item->priority,
                                  .priority_given = item->priority != SEND_DEFAULT,
                                  .max_attempts   = item->max_attempts == SEND_DEFAULT ? 0 : item->max_attempts};
    const char         *note;

    TRY(remote_put(call,
                   &(RemoteRequest){CLIENT_POST, "/v1/commands", .body = remote_body(call->arena, &send_table, &given),
                                    .key = call_flag(call, "--key")},
                   "command_id", item, &note, reterr));
    if (note && (isatty(STDERR_FILENO) || strstr(note, "did you mean"))) /* as domain_note() */
        fprintf(stderr, "note: %s\n", note);
    return OK;
}

ErrorCode source_send(Call *call, SendItem *item, Error *reterr)
{
    scoped(waker_free) Waker *waker   = NULL;
    SendItem                 *items[] = {item};

    if (call->is_remote)
        return remote_command_send(call, item, reterr);
    TRY(send_many(call->pool, deadline(), call->arena, items, 1, reterr));
    TRY(error_pass(item->code, &item->error, reterr));
    waker = waker_new(call->pool);
    waker_notify_sent(waker, item);
    return OK;
}

ErrorCode source_command_show(Call *call, Arena *arena, const char *id, const char *domain, const char **ret_json,
                              Error *reterr)
{
    const RemoteParameter query[] = {
        {"domain", domain},
        {NULL,     NULL  }
    };

    if (call->is_remote)
        return remote_json(call, &(RemoteRequest){CLIENT_GET, "/v1/commands/{}", {id}, .query = query}, arena, ret_json,
                           reterr);
    return command_show(call->pool, deadline(), arena, id, domain, ret_json, reterr);
}

ErrorCode source_command_list(Call *call, Arena *arena, const CommandFilter *filter, Command **ret_list, int *ret_count,
                              int64_t *ret_next, Error *reterr)
{
    const RemoteParameter query[] = {
        {"domain", filter->domain},
        {"status", filter->status},
        {"type", filter->type},
        {"cursor", remote_number(arena, filter->before)},
        {"limit", remote_number(arena, filter->limit)},
        {"since", filter->since},
        {"until", filter->until},
        {"batch_id", filter->batch_id},
        {"key", call_flag(call, "--key")},
        {"correlation_id", filter->correlation_id},
        {"order_key", filter->order_key},
        {NULL, NULL}
    };

    if (call->is_remote)
        return remote_rows(call, &(RemoteRequest){CLIENT_GET, "/v1/commands", .query = query}, &answer_command_line,
                           sizeof(Command), arena, (void **)ret_list, ret_count, ret_next, reterr);
    return command_list(call->pool, deadline(), arena, filter, ret_list, ret_count, ret_next, reterr);
}

/* ---- outcomes ---- */

/* In requests of at most WAIT_S each; every one but the last waits as long. */
static ErrorCode remote_wait(Call *call, bool is_process, const char *id, const char *domain, Deadline until,
                             CommandOutcome *ret_outcome, Error *reterr)
{
    RemoteReply reply;

    do {
        int64_t               left_s  = (deadline_left_ms(until) + 999) / 1000;
        const RemoteParameter query[] = {
            {"domain", domain},
            {"wait_s", remote_number(call->arena, left_s < WAIT_S ? left_s : WAIT_S)},
            {NULL, NULL}
        };

        TRY(remote_send(call,
                        &(RemoteRequest){CLIENT_GET,
                                         is_process ? "/v1/processes/{}" : "/v1/commands/{}",
                                         {id},
                                         query,
                                         .wait_ms = WAIT_S * 1000},
                        call->arena, &reply, reterr));
        *ret_outcome = (CommandOutcome){.status = value_text(value_field(reply.body, "status"), call->arena),
                                        .result = value_raw(value_field(reply.body, "result"), call->arena),
                                        .error  = value_text(value_field(reply.body, "error"), call->arena),
                                        .ended  = value_field(reply.body, "ended_at").size > 0};
    } while (!ret_outcome->ended && !deadline_passed(until));
    return ret_outcome->status
               ? OK
               : fail(reterr, ERR_USAGE, "PAWL_URL must be that of pawl serve: its answer has no status");
}

ErrorCode source_wait(Call *call, const char *noun, const char *prefix, const SendItem *item, int64_t wait_ms,
                      CommandOutcome *ret_outcome, Error *reterr)
{
    scoped(outcome_waits_free) OutcomeWaits *waits = NULL;
    Deadline                                 until = deadline_in_ms(wait_ms);
    OutcomeWait                              wait  = {.command_id = item->first_id,
                                                      .domain     = item->domain,
                                                      .prefix     = *prefix ? prefix : NULL,
                                                      .until      = until};

    if (call->is_remote)
        return remote_wait(call, *prefix, item->first_id, item->domain + strlen(prefix), until, ret_outcome, reterr);
    waits = outcome_waits_new(call->pool);
    return outcome_wait_run(waits, call->arena, noun, &wait, ret_outcome, reterr);
}

/* ---- decisions ---- */

ErrorCode remote_decide(Call *call, const RemoteRequest *request, Decision *ret_made, Error *reterr)
{
    RemoteReply reply;
    const char *at;

    TRY(remote_send(call, request, call->arena, &reply, reterr));
    *ret_made = (Decision){.verdict  = value_text(value_field(reply.body, "status"), call->arena),
                           .decision = value_text(value_field(reply.body, "decision"), call->arena),
                           .operator= value_text(value_field(reply.body, "operator"), call->arena),
                           .is_new = !reply.is_replayed};
    at        = value_text(value_field(reply.body, "decided_at"), call->arena);
    if (!ret_made->verdict || !at || !moment_parse(at, MOMENT_RFC3339, &ret_made->decided_at))
        return fail(reterr, ERR_USAGE, "PAWL_URL must be that of pawl serve: its answer is no decision");
    return OK;
}

ErrorCode source_command_cancel(Call *call, const char *id, const char *domain, Decision *ret_made, Error *reterr)
{
    const RemoteParameter query[] = {
        {"domain", domain},
        {NULL,     NULL  }
    };
    const DecisionRequest given = {.by = call_operator(call), .reason = call_flag(call, "--reason")};
    Decision             *made;

    if (call->is_remote)
        return remote_decide(call,
                             &(RemoteRequest){CLIENT_POST,
                                              "/v1/commands/{}/cancel",
                                              {id},
                                              query,
                                              remote_body(call->arena, &decision_table, &given)},
                             ret_made, reterr);
    TRY(command_cancel(call->pool, deadline(), /* lock_ms= */ 0, call->arena, (CommandNames){&id, &domain, 1},
                       given.reason, given.by, &made, reterr));
    wake_domains(call, made->wake);
    *ret_made = *made;
    return OK;
}

ErrorCode source_tsq_decide(Call *call, const char *id, const char *domain, const TsqDecision *decision,
                            Decision *ret_made, Error *reterr)
{
    static const char *const paths[] = {
        [TSQ_RETRY] = "/v1/tsq/{}/retry", [TSQ_CANCEL] = "/v1/tsq/{}/cancel", [TSQ_COMPLETE] = "/v1/tsq/{}/complete"};
    const RemoteParameter query[] = {
        {"domain", domain},
        {NULL,     NULL  }
    };
    const DecisionRequest given = {decision->actor, decision->reason, decision->result};
    Decision             *made;

    if (call->is_remote)
        return remote_decide(call,
                             &(RemoteRequest){CLIENT_POST,
                                              paths[decision->action],
                                              {id},
                                              query,
                                              remote_body(call->arena, &decision_table, &given)},
                             ret_made, reterr);
    TRY(tsq_decide(call->pool, deadline(), /* lock_ms= */ 0, call->arena, (CommandNames){&id, &domain, 1}, decision,
                   &made, reterr));
    wake_domains(call, made->wake);
    *ret_made = *made;
    return OK;
}

/* ---- batches ---- */

ErrorCode source_batch_create(Call *call, const BatchNew *batch, const char **ret_id, Error *reterr)
{
    const BatchRequest given = {.batch_id    = batch->batch_id,
                                .name        = batch->name,
                                .on_complete = batch->on_complete,
                                .open        = batch->open};
    RemoteReply        reply;

    if (!call->is_remote)
        return batch_send(call->pool, deadline(), /* lock_ms= */ 0, call->arena, batch, /* items= */ NULL, 0, ret_id,
                          reterr);
    TRY(remote_send(call,
                    &(RemoteRequest){CLIENT_POST, "/v1/commands/batch",
                                     .body = remote_body(call->arena, &batch_table, &given)},
                    call->arena, &reply, reterr));
    *ret_id = value_text(value_field(reply.body, "batch_id"), call->arena);
    return OK;
}

ErrorCode source_batch_seal(Call *call, const char *id, Batch *ret_batch, Error *reterr)
{
    const char *wake;

    if (call->is_remote)
        return remote_row(call, &(RemoteRequest){CLIENT_POST, "/v1/batches/{}/seal", {id}}, &answer_batch, call->arena,
                          ret_batch, reterr);
    TRY(batch_seal(call->pool, deadline(), /* lock_ms= */ 0, call->arena, id, &wake, reterr));
    wake_domains(call, wake);
    return source_batch_progress(call, id, ret_batch, reterr);
}

ErrorCode source_batch_progress(Call *call, const char *id, Batch *ret_batch, Error *reterr)
{
    if (call->is_remote)
        return remote_row(call, &(RemoteRequest){CLIENT_GET, "/v1/batches/{}", {id}}, &answer_batch, call->arena,
                          ret_batch, reterr);
    return batch_progress(call->pool, deadline(), call->arena, id, ret_batch, reterr);
}

ErrorCode source_batch_list(Call *call, Arena *arena, const BatchFilter *filter, BatchLine **ret_list, int *ret_count,
                            int64_t *ret_next, Error *reterr)
{
    const RemoteParameter query[] = {
        {"status", filter->status},
        {"name", filter->name},
        {"since", filter->since},
        {"until", filter->until},
        {"cursor", remote_number(arena, filter->before)},
        {"limit", remote_number(arena, filter->limit)},
        {NULL, NULL}
    };

    if (call->is_remote)
        return remote_rows(call, &(RemoteRequest){CLIENT_GET, "/v1/batches", .query = query}, &answer_batch_line,
                           sizeof(BatchLine), arena, (void **)ret_list, ret_count, ret_next, reterr);
    return batch_list(call->pool, deadline(), arena, filter, ret_list, ret_count, ret_next, reterr);
}

/* ---- domains ---- */

static int64_t recent_ms(Value recent, const char *name)
{
    Value number = value_field(recent, name);

    return number.size ? value_i64(number) : -1;
}

static const char *recent_text(Value recent, const char *name, Arena *arena)
{
    const char *text = value_raw(value_field(recent, name), arena);

    return text ? text : "-";
}

/* With the numbers behind `recent`, as the statement of domain_list() has them. */
static void domain_read(Value object, Arena *arena, Domain *domain)
{
    Value recent = value_field(object, "recent");

    answer_row_read(&answer_domain_line, object, arena, domain);
    domain->sent_per_s  = recent_text(recent, "sent_per_s", arena);
    domain->ended_per_s = recent_text(recent, "ended_per_s", arena);
    domain->wait_p50_ms = recent_ms(recent, "wait_p50_ms");
    domain->wait_p95_ms = recent_ms(recent, "wait_p95_ms");
    domain->run_p50_ms  = recent_ms(recent, "run_p50_ms");
    domain->run_p95_ms  = recent_ms(recent, "run_p95_ms");
}

static ErrorCode remote_domains(Call *call, const DomainFilter *filter, Domain **ret_list, int *ret_count,
                                Error *reterr)
{
    const RemoteParameter query[] = {
        {"order", filter->order},
        {"cursor", filter->after},
        {"limit", remote_number(call->arena, filter->limit)},
        {NULL, NULL}
    };
    RemoteReply reply;
    Value       items, item;
    const char *at = NULL;

    TRY(remote_send(call, &(RemoteRequest){CLIENT_GET, "/v1/domains", .query = query}, call->arena, &reply, reterr));
    items      = value_field(reply.body, "items");
    *ret_list  = arena_array(call->arena, Domain, (int)value_item_count(items) + 1);
    *ret_count = 0;
    while (value_item_next(items, &at, &item))
        domain_read(item, call->arena, &(*ret_list)[(*ret_count)++]);
    return OK;
}

ErrorCode source_domain_list(Call *call, const DomainFilter *filter, Domain **ret_list, int *ret_count, Error *reterr)
{
    if (call->is_remote)
        return remote_domains(call, filter, ret_list, ret_count, reterr);
    return domain_list(call->pool, deadline(), call->arena, filter, ret_list, ret_count, reterr);
}

ErrorCode source_domain_show(Call *call, const char *name, Domain *ret_domain, Domain *ret_processes, Error *reterr)
{
    RemoteReply reply;
    Value       processes;

    if (!call->is_remote)
        return domain_show(call->pool, deadline(), call->arena, name, ret_domain, ret_processes, reterr);
    TRY(remote_send(call, &(RemoteRequest){CLIENT_GET, "/v1/domains/{}", {name}}, call->arena, &reply, reterr));
    processes      = value_field(reply.body, "processes");
    *ret_domain    = (Domain){0};
    *ret_processes = (Domain){.domain = ""};
    domain_read(reply.body, call->arena, ret_domain);
    if (processes.size)
        domain_read(processes, call->arena, ret_processes);
    return OK;
}

/* ---- retry policies ---- */

/* "10000,60000" of [10,60], and the other way round. */
static const char *delays_ms_text(Arena *arena, Value delays_s)
{
    const char *at = NULL;
    Value       item;
    Text        text;

    text_init(&text, arena, TEXT_MAX_LINE);
    while (value_item_next(delays_s, &at, &item))
        text_print(&text, "%s%.0f", text.length ? "," : "", strtod(value_raw(item, arena), NULL) * 1000);
    return text_string(&text);
}

static const char *delays_s_text(Arena *arena, const int64_t *delays_ms, int count)
{
    Text   text;
    Writer writer;

    text_init(&text, arena, TEXT_MAX_LINE);
    writer_open(&writer, &text);
    writer_array(&writer, NULL);
    for (int i = 0; i < count; i++)
        writer_real(&writer, NULL, (double)delays_ms[i] / 1000);
    writer_end(&writer);
    return text_string(&text);
}

ErrorCode source_policy_list(Call *call, const char *domain, RetryPolicy **ret_list, int *ret_count, Error *reterr)
{
    RemoteReply reply;
    Value       items, item;
    const char *at = NULL;

    if (!call->is_remote)
        return retry_policy_list(call->pool, deadline(), call->arena, domain, ret_list, ret_count, reterr);
    TRY(remote_send(call, &(RemoteRequest){CLIENT_GET, "/v1/domains/{}/retry-policy", {domain}}, call->arena, &reply,
                    reterr));
    items      = value_field(reply.body, "items");
    *ret_list  = arena_array(call->arena, RetryPolicy, (int)value_item_count(items) + 1);
    *ret_count = 0;
    while (value_item_next(items, &at, &item))
        (*ret_list)[(*ret_count)++] =
            (RetryPolicy){.type       = value_text(value_field(item, "type"), call->arena),
                          .delays_ms  = delays_ms_text(call->arena, value_field(item, "delays_s")),
                          .order_key  = value_text(value_field(item, "order_key"), call->arena),
                          .is_default = value_true(value_field(item, "is_default"))};
    return OK;
}

ErrorCode source_policy_set(Call *call, const char *domain, const char *type, const int64_t *delays_ms, int count,
                            const char *order_key, Error *reterr)
{
    const RemoteParameter query[] = {
        {"type", type},
        {NULL,   NULL}
    };
    const PolicyRequest given      = {type, count ? delays_s_text(call->arena, delays_ms, count) : NULL, order_key};
    bool                is_reset   = count == 0 && !order_key;
    const RemoteRequest requests[] = {
        {CLIENT_PUT, "/v1/domains/{}/retry-policy", {domain}, .body = remote_body(call->arena, &policy_table, &given)},
        {CLIENT_DELETE, "/v1/domains/{}/retry-policy", {domain}, .query = query}
    };
    RemoteReply reply;

    if (call->is_remote)
        return remote_send(call, &requests[is_reset], call->arena, &reply, reterr);
    return retry_policy_set(call->pool, deadline(), /* lock_ms= */ 0, domain, type, delays_ms, count, order_key,
                            reterr);
}

/* ---- dead letters ---- */

ErrorCode source_dead_letter_list(Call *call, Arena *arena, const DeadLetterFilter *filter, DeadLetter **ret_list,
                                  int *ret_count, Error *reterr)
{
    const RemoteParameter query[] = {
        {"status", filter->status},
        {"type", filter->type},
        {"cursor", remote_number(arena, filter->before)},
        {"limit", remote_number(arena, filter->limit)},
        {NULL, NULL}
    };

    if (call->is_remote)
        return remote_rows(call, &(RemoteRequest){CLIENT_GET, "/v1/dead-letters", .query = query}, &answer_letter,
                           sizeof(DeadLetter), arena, (void **)ret_list, ret_count, NULL, reterr);
    return dead_letter_list(call->pool, deadline(), arena, filter, ret_list, ret_count, reterr);
}

ErrorCode source_dead_letter_find(Call *call, int64_t id, DeadLetter *ret_letter, Error *reterr)
{
    if (call->is_remote)
        return remote_row(call, &(RemoteRequest){CLIENT_GET, "/v1/dead-letters/{}", {remote_number(call->arena, id)}},
                          &answer_letter, call->arena, ret_letter, reterr);
    return dead_letter_find(call->pool, deadline(), call->arena, id, ret_letter, reterr);
}

ErrorCode source_dead_letter_retry(Call *call, int64_t id, DeadLetter *ret_letter, Error *reterr)
{
    if (call->is_remote)
        return remote_row(call,
                          &(RemoteRequest){CLIENT_POST, "/v1/dead-letters/{}/retry", {remote_number(call->arena, id)}},
                          &answer_letter, call->arena, ret_letter, reterr);
    return dead_letter_retry(call->pool, deadline(), /* lock_ms= */ 0, call->arena, id, ret_letter, reterr);
}

ErrorCode source_dead_letter_delete(Call *call, int64_t id, Error *reterr)
{
    RemoteReply reply;

    if (call->is_remote)
        return remote_send(call,
                           &(RemoteRequest){CLIENT_DELETE, "/v1/dead-letters/{}", {remote_number(call->arena, id)}},
                           call->arena, &reply, reterr);
    return dead_letter_delete(call->pool, deadline(), /* lock_ms= */ 0, id, reterr);
}
