/*
 * command_reply.c - reply queues: list them, read replies, acknowledge them.
 */
#include <string.h>

#include "bus/reply_queue.h"
#include "cli/command.h"
#include "cli/print.h"

#define PAGE_QUEUES 100

static const ListColumn queue_columns[] = {
    {"queue",    NULL, CELL_TEXT, offsetof(ReplyQueue, queue)    },
    {">replies", NULL, CELL_I64,  offsetof(ReplyQueue, messages) },
    {"oldest",   NULL, CELL_TIME, offsetof(ReplyQueue, oldest_at)},
    {"creator",  NULL, CELL_TEXT, offsetof(ReplyQueue, creator)  },
};
static const ListShape queue_shape = {queue_columns, COUNT(queue_columns), sizeof(ReplyQueue), "no reply queues",
                                      reply_queue_write};

static const ListColumn reply_columns[] = {
    {">msg_id", NULL, CELL_I64,  offsetof(ReplyMessage, msg_id)     },
    {">read",   NULL, CELL_I32,  offsetof(ReplyMessage, read_count) },
    {"came",    NULL, CELL_TIME, offsetof(ReplyMessage, enqueued_at)},
    {"reply",   NULL, CELL_TEXT, offsetof(ReplyMessage, message)    },
};
static const ListShape reply_shape = {reply_columns, COUNT(reply_columns), sizeof(ReplyMessage), "no replies",
                                      reply_message_write};

ErrorCode command_reply_list(Call *call, Error *reterr)
{
    const char *after = NULL;
    List        list;
    int         left;

    TRY(call_limit(call, 1000, &left, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    list_begin(&list, &queue_shape, call->arena, call->json);
    for (int count = PAGE_QUEUES; left > 0 && count == PAGE_QUEUES; left -= count) {
        ReplyQueue *queues;

        TRY(reply_queue_list(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, after,
                             left < PAGE_QUEUES ? left : PAGE_QUEUES, &queues, &count, reterr));
        list_rows(&list, queues, count);
        after = count > 0 ? queues[count - 1].queue : NULL;
    }
    list_end(&list);
    return OK;
}

ErrorCode command_reply_read(Call *call, Error *reterr)
{
    ReplyMessage *replies;
    int64_t       visible_ms;
    int           limit, count;

    TRY(call_limit(call, REPLY_READ_MAX, &limit, reterr));
    TRY(call_duration(call, "--visible", (int64_t)REPLY_VISIBLE_DEFAULT * 1000, &visible_ms, reterr));
    if (visible_ms < 1000 || visible_ms > (int64_t)REPLY_VISIBLE_MAX * 1000)
        return fail(reterr, ERR_USAGE, "--visible must be from 1s to 1d, got \"%.60s\"", call_flag(call, "--visible"));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(reply_read(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, call->arguments[0], limit,
                   (int)(visible_ms / 1000), &replies, &count, reterr));
    list_print(&reply_shape, call->arena, call->json, replies, count);
    return OK;
}

ErrorCode command_reply_ack(Call *call, Error *reterr)
{
    const char *const *verdicts;
    int64_t            msg_id, read_count;
    int32_t            count32;

    TRY(call_number("MSG_ID", call->arguments[1], 1, INT64_MAX, 0, &msg_id, reterr));
    TRY(call_number("READ_COUNT", call->arguments[2], 1, INT32_MAX, 0, &read_count, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    count32 = (int32_t)read_count;
    TRY(reply_ack(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, call->arguments[0], &msg_id, &count32, 1,
                  &verdicts, reterr));
    if (call->json)
        printf("{\"msg_id\":%lld,\"verdict\":\"%s\"}\n", (long long)msg_id, verdicts[0]);
    else
        printf("%lld %s\n", (long long)msg_id, verdicts[0]);
    if (strcmp(verdicts[0], reply_verdicts[0]) == 0)
        return OK;
    return fail(reterr, strcmp(verdicts[0], "busy") == 0 ? ERR_BUSY : ERR_CONFLICT,
                "reply %lld was not acknowledged: %s", (long long)msg_id,
                strcmp(verdicts[0], "gone") == 0   ? "it was acknowledged before, or deleted"
                : strcmp(verdicts[0], "lost") == 0 ? "it was visible again, and read again"
                                                   : "another transaction has it locked");
}
