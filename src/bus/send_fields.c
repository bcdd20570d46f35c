/*
 * send_fields.c - see send_fields.h.
 */
#include "bus/send_fields.h"

#include <string.h>

#include "base/problem.h"

#define AT(field) offsetof(SendRequest, field)

/* clang-format off */
#define DOMAIN_AND_TYPE                                                                             \
    {"domain", FIELD_TEXT, AT(domain), .required = true, .length_max = SEND_DOMAIN_MAX, .names = NAMES_DOMAIN, \
     .help = "domain whose workers handle it: 1 to 63 letters, digits, _ . : -"},                   \
    {"type", FIELD_TEXT, AT(type), .required = true, .length_max = SEND_TYPE_MAX,                   \
     .help = "what is to be done: 1 to 100 letters, digits, _ . : -"}

static const Field unique_fields[] = {
    {"key", FIELD_TEXT, offsetof(UniqueRequest, key), .required = true, .min = 1, .length_max = SEND_UNIQUE_KEY_MAX,
     .help = "one of the domain and type: while another command has it, this one is a duplicate and is not sent"},
    {"scope", FIELD_TEXT, offsetof(UniqueRequest, scope), .length_max = 40,
     .help = "how long a command has its key. queued: until it begins. active: until it has ended or is in troubleshooting. "
             "A duration from 1s to 365d, such as 1h: from the send on. active when absent"},
    {"on_duplicate", FIELD_TEXT, offsetof(UniqueRequest, on_duplicate), .words = duplicate_actions,
     .help = "what a duplicate does, if the other command has not begun. keep: nothing. replace: give it this payload. move: "
             "let it become due after this delay_s, or now. keep when absent"},
};
const FieldTable        unique_table = {"unique", unique_fields, COUNT(unique_fields), sizeof(UniqueRequest)};

static const Field send_fields[] = {
    DOMAIN_AND_TYPE,
    {"payload", FIELD_JSON, AT(payload), .help = "any JSON for the handler; {} when absent"},
    {"command_id", FIELD_UUID, AT(command_id), .help = "idempotency key: sending twice with the same id sends one command"},
    {"delay_s", FIELD_REAL, AT(delay_s), .min = 0, .max = SEND_DELAY_S_MAX, .help = "not before"},
    {"priority", FIELD_I64, AT(priority), .min = 0, .max = SEND_PRIORITY_MAX, .is_set = AT(priority_given),
     .help = "9 is first; 4 when absent"},
    {"max_attempts", FIELD_I64, AT(max_attempts), .min = 1, .max = SEND_ATTEMPTS_MAX, .help = "3 when absent"},
    {"reply_to", FIELD_TEXT, AT(reply_to), .length_max = SEND_REPLY_TO_MAX, .names = NAMES_TARGET,
     .help = "target of the outcome: a queue (1 to 47 letters, digits, _ . and single -), or command:DOMAIN/TYPE"},
    {"correlation_id", FIELD_TEXT, AT(correlation_id), .length_max = SEND_CORRELATION_MAX},
    {"batch_id", FIELD_UUID, AT(batch_id), .names = NAMES_BATCH},
    {"order_key", FIELD_TEXT, AT(order_key), .length_max = SEND_ORDER_KEY_MAX,
     .help = "commands of the domain with the same key run one at a time, in the order of sending"},
    {"key", FIELD_TEXT, AT(key), .min = 1, .length_max = SEND_KEY_MAX,
     .help = "the same as command_id, with any text, such as order-17: it becomes the id, and counts in all domains"},
    {"unique", FIELD_OBJECT, AT(unique), .rows = &unique_table, .help = "at most one command of the domain and type has this key"},
};
const FieldTable send_table = {"command", send_fields, COUNT(send_fields), sizeof(SendRequest)};

static const Field on_complete_fields[] = {
    DOMAIN_AND_TYPE,
    {"payload", FIELD_JSON, AT(payload), .help = "any JSON for the handler; the command's correlation_id is the batch_id"},
};
static const FieldTable on_complete_table = {"on_complete", on_complete_fields, COUNT(on_complete_fields), sizeof(SendRequest)};

static const Field batch_fields[] = {
    {"batch_id", FIELD_UUID, offsetof(BatchRequest, batch_id), .names = NAMES_NEW_BATCH, .help = "idempotency key: sending twice with the same id creates one batch"},
    {"name", FIELD_TEXT, offsetof(BatchRequest, name), .length_max = 200},
    {"on_complete", FIELD_OBJECT, offsetof(BatchRequest, on_complete), .rows = &on_complete_table,
     .help = "a command that is sent once, when the batch is sealed and all of its commands have ended"},
    {"open", FIELD_BOOL, offsetof(BatchRequest, open), .help = "more commands will be added; seal it then"},
    {"items", FIELD_ROWS, offsetof(BatchRequest, items), .min = 0, .max = SEND_ITEMS_MAX, .rows = &send_table,
     .help = "at least one unless \"open\" is true"},
};
const FieldTable batch_table = {"batch", batch_fields, COUNT(batch_fields), sizeof(BatchRequest)};
/* clang-format on */

static ErrorCode unique_read(const char *json, Arena *arena, SendItem *item, Error *reterr)
{
    UniqueRequest unique = {0};

    if (!json)
        return OK;
    TRY(reader_object(json, strlen(json), &unique_table, arena, &unique, reterr));
    TRY(send_check_unique_for("unique.scope", unique.scope, reterr));
    item->unique_key   = unique.key;
    item->unique_for   = unique.scope;
    item->on_duplicate = unique.on_duplicate;
    return OK;
}

ErrorCode send_request_item(const SendRequest *request, const char *actor, Arena *arena, SendItem *ret_item,
                            Error *reterr)
{
    *ret_item = (SendItem){.domain         = request->domain,
                           .type           = request->type,
                           .payload        = request->payload,
                           .command_id     = request->command_id,
                           .delay_ms       = (int64_t)(request->delay_s * 1000),
                           .priority       = request->priority_given ? (int)request->priority : SEND_DEFAULT,
                           .max_attempts   = request->max_attempts ? (int)request->max_attempts : SEND_DEFAULT,
                           .reply_to       = request->reply_to,
                           .correlation_id = request->correlation_id,
                           .batch_id       = request->batch_id,
                           .order_key      = request->order_key,
                           .actor          = actor};
    return unique_read(request->unique, arena, ret_item, reterr);
}

ErrorCode on_complete_read(const char *field, const char *json, Arena *arena, SendRequest *ret_request, Error *reterr)
{
    SendItem item;

    *ret_request = (SendRequest){0};
    if (reader_object(json, strlen(json), &on_complete_table, arena, ret_request, reterr) == OK &&
        send_request_item(ret_request, /* actor= */ NULL, arena, &item, reterr) == OK &&
        send_check(&item, reterr) == OK)
        return OK;
    error_prefix(reterr, "%s", field);
    return reterr->code;
}

void sent_write(Writer *writer, const char *id, const SendItem *item)
{
    writer_object(writer, NULL);
    writer_text(writer, id, item->code == OK ? item->first_id : item->id);
    if (item->code == OK)
        writer_text(writer, "status", "PENDING");
    if (item->code == OK && item->duplicate)
        writer_text(writer, "duplicate", item->duplicate);
    if (item->code != OK)
        writer_text(writer, "error", problem_detail(&item->error));
    writer_end(writer);
}
