/*
 * code_send.c - commands and children of a function: sent once per attempt under the lease, and their outcomes.
 */
#include <string.h>

#include "pg/tx.h"
#include "process/code_internal.h"
#include "process/key.h"
#include "process/sent.h"

typedef struct {
    CodeRun  *code;
    SendItem *item;
    bool      is_over, is_busy;
} Sending;

/* Under the lease: a worker that has lost it sends nothing. */
static ErrorCode sending_body(Tx *tx, void *context, Error *reterr)
{
    Sending   *sending = context;
    RunVerdict verdict;
    ErrorCode  code = run_fence_in(sending->code->run, tx, &verdict, reterr);

    sending->is_busy = code == ERR_BUSY;
    TRY(code);
    sending->is_over = verdict != RUN_OK;
    if (sending->is_over)
        return fail(reterr, ERR_CONFLICT, "the lease is lost");
    TRY(send_in(tx, &sending->item, 1, reterr));
    if (sending->item->code != OK && sending->item->code != ERR_KEY_REUSED) {
        *reterr = sending->item->error;
        return sending->item->code;
    }
    return OK;
}

static CodeFlow item_send(CodeRun *code, SendItem *item)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    Sending                   sending = {.code = code, .item = item};
    TxOptions                 options = {.name = "send", .arena = arena, .keyed = true};
    Error                     error   = {0};
    int64_t                   wait_ms = 0;
    ErrorCode                 result;

    do {
        options.deadline = deadline_in_ms(CODE_CALL_MS);
        result           = tx_run(code->program->pool, &options, sending_body, &sending, &error);
    } while (result != OK && sending.is_busy && !run_must_stop(code->run) && run_busy_wait(&wait_ms));
    if (result == OK) {
        run_wake(code->run, item->domain);
        return CODE_NEXT;
    }
    return sending.is_over ? code_over(code) : code_broken(code, result, &error);
}

static CodeFlow outcome_fail(CodeRun *code, const CodeCall *call, bool is_reject, const char *error)
{
    RunRecord record = code_call_record_of(call);

    record.end   = is_reject ? END_REFUSED : END_FINAL;
    record.error = error;
    CODE_TRY(code_record(code, &record));
    return code_failed(code, is_reject, error);
}

static CodeFlow reply_record(CodeRun *code, const CodeCall *call, const SentReply *reply)
{
    if (strcmp(reply->status, "COMPLETED") == 0)
        return code_call_record(code, call, reply->result ? reply->result : "null");
    return outcome_fail(code, call, sent_reply_is_refusal(reply),
                        arena_print(code->job->arena, "%s: %s", reply->status,
                                    reply->error ? reply->error : "no reason was given"));
}

/* The outcome of the command that this attempt sends, or has sent. */
static CodeFlow outcome_get(CodeRun *code, const CodeCall *call, SendItem *item, int64_t timeout_ms)
{
    ResponseOf         of = response_reply(record_of(call->name));
    const char *const *payloads;
    int                count = run_responses(code->run, of, &payloads);
    SentReply          reply = {0};
    Error              error = {0};
    ErrorCode          result;
    int64_t            due_us;
    bool               found;

    result = sent_reply_find(payloads, count, item->command_id, code->job->arena, &reply, &found, &error);
    if (result != OK)
        return code_broken(code, result, &error);
    if (found) /* also if the process is to be canceled: the function must know what has happened */
        return reply_record(code, call, &reply);
    CODE_TRY(code_go_on(code));
    if (!run_has_sent(code->run, item->command_id))
        CODE_TRY(item_send(code, item));
    CODE_TRY(code_begun(code, call, run_attempts(code->run, of.of) + 1, timeout_ms, &due_us));
    if (due_us && run_now_us(code->run) >= due_us)
        return outcome_fail(code, call, /* is_reject= */ false, "no outcome came in time");
    run_wait(code->run, of.of, WAIT_REPLY, &of, count + 1, due_us);
    return code_over(code);
}

static CodeFlow send_prepare(CodeRun *code, const char *name, bool is_child, const char *domain, const char *type,
                             const char *payload, SendItem *ret_item)
{
    SentBy by  = {run_key_owner(code->run), code->job->command->id, record_of(name),
                  sent_number(code->run, record_of(name))};
    Error  why = {0};

    sent_item(&by, is_child, domain, type, payload, code->job->arena, ret_item);
    if (send_check(ret_item, &why) != OK)
        return code_defect(code, "step \"%s\": %s", name, why.text);
    return CODE_NEXT;
}

/* A call that has failed, by a timeout or because the process is to be compensated, and whose command has not ended. */
static CodeFlow open_note(CodeRun *code, const char *name, CodeFlow flow)
{
    const RecordId *open;
    int             count = flow == CODE_FAILED && !code->is_compensating ? run_open(code->run, &open) : 0;

    for (int i = 0; i < count; i++)
        if (strcmp(open[i].step, name) == 0) {
            struct OpenSend *noted = arena_alloc(code->job->arena, sizeof *noted);

            *noted     = (struct OpenSend){code->open, arena_text(code->job->arena, name)};
            code->open = noted;
        }
    return flow;
}

static CodeFlow send_await(CodeRun *code, const CodeCall *call, SendItem *item, int64_t timeout_ms)
{
    return open_note(code, call->name, outcome_get(code, call, item, timeout_ms));
}

CodeFlow code_send(CodeRun *code, const char *name, bool is_child, const char *domain, const char *type,
                   const char *payload, int64_t timeout_ms, const char **ret_result)
{
    CodeCall call;
    SendItem item;
    int      failures;

    domain  = domain ? domain : "";
    type    = type ? type : "";
    payload = payload ? payload : "{}";
    if (!code_call_begin(code, name, is_child ? "process" : "command", CODE_INPUT(domain, "/", type, "/", payload),
                         &call))
        return CODE_RETURN;
    if (timeout_ms < 0)
        return code_defect(code, "step \"%s\": timeout must not be negative", name);
    if (!run_result(code->run, record_of(name))) {
        const StepRecord *failure = run_failure(code->run, record_of(name), &failures);

        if (failure)
            return open_note(code, name, code_failed(code, failure->end == END_REFUSED, failure->error));
        CODE_TRY(send_prepare(code, name, is_child, domain, type, payload, &item));
        CODE_TRY(send_await(code, &call, &item, timeout_ms));
    }
    if (ret_result)
        *ret_result = run_result(code->run, record_of(name));
    return CODE_NEXT;
}
