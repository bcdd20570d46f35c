/*
 * sent.c - see sent.h.
 */
#include "process/sent.h"

#include <string.h>

#include "base/reader.h"
#include "base/writer.h"
#include "pg/tx.h"
#include "process/process.h"

#define SEND_MS        10000
#define SEND_BYTES_MAX ((size_t)64 << 20)

static const Field reply_fields[] = {
    {"command_id",     FIELD_UUID, offsetof(SentReply, command_id)    },
    {"domain",         FIELD_TEXT, offsetof(SentReply, domain)        },
    {"type",           FIELD_TEXT, offsetof(SentReply, type)          },
    {"correlation_id", FIELD_TEXT, offsetof(SentReply, correlation_id)},
    {"status",         FIELD_TEXT, offsetof(SentReply, status)        },
    {"result",         FIELD_JSON, offsetof(SentReply, result)        },
    {"error",          FIELD_TEXT, offsetof(SentReply, error)         },
};
static const FieldTable reply_table = {"reply", reply_fields, COUNT(reply_fields), sizeof(SentReply)};

int sent_number(Run *run, RecordId step)
{
    return 1 + run_replies_aside(run, step);
}

/* What pawl.target_read() reads. */
static const char *reply_target(const SentBy *by, Arena *arena)
{
    RecordId step = record_as(by->step, RECORD_STEP);
    Writer   writer;
    Text     text;

    text_init(&text, arena, TEXT_MAX_LINE);
    text_append(&text, "response:");
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    writer_i64(&writer, "process", by->number);
    if (by->life > 1)
        writer_i64(&writer, "life", by->life);
    record_write(&writer, &step);
    writer_end(&writer);
    return text_string(&text);
}

void sent_item(const SentBy *by, bool is_child, const char *domain, const char *type, const char *payload, Arena *arena,
               SendItem *ret_item)
{
    char *id = arena_alloc(arena, UUID_TEXT_SIZE);

    step_command_id(&by->process, &by->step, by->command, id);
    *ret_item = (SendItem){
        .domain            = is_child ? arena_print(arena, PROCESS_DOMAIN_PREFIX "%s", domain) : domain,
        .type              = type,
        .payload           = payload,
        .command_id        = id,
        .priority          = SEND_DEFAULT,
        .max_attempts      = is_child ? PROCESS_ATTEMPTS_MAX : SEND_DEFAULT,
        .reply_to          = reply_target(by, arena),
        .replies_to_module = true,
        .actor             = arena_print(arena, "process %s", by->process.process_id),
    };
}

typedef struct {
    Run       *run;
    SendItem  *item;
    SendStart *start;
    bool       is_over, is_busy;
} Sending;

static ErrorCode sending_body(Tx *tx, void *context, Error *reterr)
{
    Sending   *sending = context;
    RunVerdict verdict;
    ErrorCode  code = run_fence_in(sending->run, tx, &verdict, reterr);

    sending->is_busy = code == ERR_BUSY;
    TRY(code);
    sending->is_over = verdict != RUN_OK;
    if (sending->is_over)
        return fail(reterr, ERR_CONFLICT, "the lease is lost");
    TRY(send_start_in(tx, sending->start, reterr));
    if (!sending->item->busy)
        return OK;
    if (reterr)
        *reterr = sending->item->error;
    return sending->item->code;
}

ErrorCode sent_send(Pool *pool, Run *run, SendItem *item, bool *ret_is_over, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(SEND_BYTES_MAX);
    Sending                   sending = {.run = run, .item = item};
    TxOptions                 options = {.name = "send", .arena = arena, .keyed = true};
    Error                     error   = {0};
    int64_t                   wait_ms = 0;
    ErrorCode                 code;

    *ret_is_over = false;
    do {
        options.deadline = deadline_in_ms(SEND_MS);
        sending.start    = send_start_offer(pool, arena, item);
        code             = tx_run(pool, &options, sending_body, &sending, &error);
        send_start_end(sending.start, code);
    } while (code != OK && sending.is_busy && !run_must_stop(run) && run_busy_wait(&wait_ms));
    *ret_is_over = sending.is_over;
    if (code != OK && !sending.is_over) {
        if (reterr)
            *reterr = error;
        return code;
    }
    if (code == OK) {
        send_count(&item, 1);
        if (item->is_new && !item->is_started)
            run_wake(run, item->domain);
    }
    return OK;
}

bool sent_reply_is_refusal(const SentReply *reply)
{
    return strcmp(reply->status, "FAILED") == 0 || strcmp(reply->status, "COMPENSATED") == 0;
}

ErrorCode sent_reply_find(const char *const *payloads, int count, const char *id, Arena *arena, SentReply *ret_reply,
                          bool *ret_found, Error *reterr)
{
    *ret_found = false;
    for (int i = 0; i < count && !*ret_found; i++) {
        TRY(reader_object(payloads[i], strlen(payloads[i]), &reply_table, arena, ret_reply, reterr));
        *ret_found = ret_reply->command_id && strcmp(ret_reply->command_id, id) == 0;
    }
    return OK;
}

ErrorCode sent_reply_completed(const char *const *payloads, int count, Arena *arena, SentReply *ret_reply,
                               bool *ret_found, Error *reterr)
{
    *ret_found = false;
    for (int i = 0; i < count && !*ret_found; i++) {
        TRY(reader_object(payloads[i], strlen(payloads[i]), &reply_table, arena, ret_reply, reterr));
        *ret_found = ret_reply->status && strcmp(ret_reply->status, "COMPLETED") == 0;
    }
    return OK;
}
