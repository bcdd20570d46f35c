/*
 * reply.c - reply queues over HTTP: list, read, acknowledge.
 */
#include <string.h>

#include "api/api.h"
#include "api/page.h"
#include "bus/answers.h"
#include "bus/reply_queue.h"

const RouteParameter api_reply_queue_parameters[] = {
    {"limit", "how many at most", PARAMETER_I64, .min = 1, .max = PAGE_LIMIT_MAX, .fallback = PAGE_LIMIT_DEFAULT},
    {"cursor", "next_cursor of the page before"},
    {NULL, NULL},
};

const RouteParameter api_reply_captures[] = {
    {"queue", "the queue that reply_to names"},
    {NULL,    NULL                           },
};

ErrorCode api_reply_queue_list(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api    = context;
    Writer     *writer = response_writer(response);
    ReplyQueue *list;
    int64_t     limit;
    int         count;

    TRY(request_query_i64(request, "limit", 1, PAGE_LIMIT_MAX, PAGE_LIMIT_DEFAULT, &limit, reterr));
    TRY(reply_queue_list(api->pool, request_deadline(request), request_arena(request), request_query(request, "cursor"),
                         (int)limit, &list, &count, reterr));
    writer_object(writer, NULL);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++)
        reply_queue_write(writer, &list[i]);
    writer_end(writer);
    writer_text(writer, "next_cursor", count == limit ? list[count - 1].queue : NULL);
    writer_end(writer);
    return OK;
}

ErrorCode api_reply_read(void *context, Request *request, Response *response, Error *reterr)
{
    Api             *api = context;
    ReplyReadRequest given;
    ReplyMessage    *list;
    int              count;

    TRY(api_key_refuse(request,
                       "each read hides other replies, and those of a lost response are read again after visible_s",
                       reterr));
    TRY(api_body_read_if_any(request, &reply_read_table, &given, reterr));
    TRY(reply_read(api->pool, request_deadline(request), request_arena(request), request_capture(request, "queue"),
                   given.limit ? (int)given.limit : 1, given.visible_s ? (int)given.visible_s : REPLY_VISIBLE_DEFAULT,
                   &list, &count, reterr));
    Writer *writer = response_writer(response);
    writer_object(writer, NULL);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++)
        reply_message_write(writer, &list[i]);
    writer_end(writer);
    writer_end(writer);
    return OK;
}

ErrorCode api_reply_ack(void *context, Request *request, Response *response, Error *reterr)
{
    Api               *api   = context;
    Arena             *arena = request_arena(request);
    ReplyAckRequest    given;
    const char *const *verdicts;

    TRY(api_body_read(request, &reply_ack_table, &given, reterr));
    const ReplyAckRow *rows    = given.items.items;
    int                count   = given.items.count;
    int64_t           *msg_ids = arena_array(arena, int64_t, count);
    int32_t           *counts  = arena_array(arena, int32_t, count);

    for (int i = 0; i < count; i++) {
        msg_ids[i] = rows[i].msg_id;
        counts[i]  = (int32_t)rows[i].read_count;
    }
    TRY(reply_ack(api->pool, request_deadline(request), arena, request_capture(request, "queue"), msg_ids, counts,
                  count, &verdicts, reterr));
    Writer *writer = response_writer(response);
    writer_object(writer, NULL);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++) {
        writer_object(writer, NULL);
        writer_i64(writer, "msg_id", msg_ids[i]);
        writer_bool(writer, "acknowledged", strcmp(verdicts[i], reply_verdicts[0]) == 0);
        writer_text(writer, "verdict", verdicts[i]);
        writer_end(writer);
    }
    writer_end(writer);
    writer_end(writer);
    return OK;
}
