/*
 * sent.c - see sent.h.
 */
#include "process/sent.h"

#include <string.h>

#include "base/reader.h"
#include "base/writer.h"
#include "process/process.h"

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
