/*
 * command_dlq.c - dead letters.
 */
#include <inttypes.h>

#include "base/writer.h"
#include "bus/dead_letter.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/source.h"

#define PAGE_LETTERS 20

static ErrorCode letter_id(const Call *call, int64_t *ret_id, Error *reterr)
{
    return call_number("ID", call->arguments[0], 1, INT64_MAX, 0, ret_id, reterr);
}

static const ListColumn list_columns[] = {
    {">id",      NULL, CELL_I64,  offsetof(DeadLetter, id)            },
    {"type",     NULL, CELL_TEXT, offsetof(DeadLetter, operation_type)},
    {"key",      NULL, CELL_TEXT, offsetof(DeadLetter, operation_key) },
    {"status",   NULL, CELL_TEXT, offsetof(DeadLetter, status)        },
    {">retries", NULL, CELL_I32,  offsetof(DeadLetter, retry_count)   },
    {"created",  NULL, CELL_TIME, offsetof(DeadLetter, created_at)    },
    {"error",    NULL, CELL_TEXT, offsetof(DeadLetter, error_message) },
};
static const ListShape list_shape = {list_columns, COUNT(list_columns), sizeof(DeadLetter), "no dead letters",
                                     dead_letter_write};

/* In pages with memory of their own: the data of an operation may be large. */
static ErrorCode pages_print(Call *call, DeadLetterFilter *filter, int left, Error *reterr)
{
    List list;

    list_begin(&list, &list_shape, call->arena, call->json);
    for (int count = PAGE_LETTERS; left > 0 && count == PAGE_LETTERS; left -= count) {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        DeadLetter               *letters;

        filter->limit = left < PAGE_LETTERS ? left : PAGE_LETTERS;
        TRY(source_dead_letter_list(call, arena, filter, &letters, &count, reterr));
        list_rows(&list, letters, count);
        if (count > 0)
            filter->before = letters[count - 1].id;
    }
    list_end(&list);
    return OK;
}

ErrorCode command_dlq_list(Call *call, Error *reterr)
{
    DeadLetterFilter filter = {.status = call_flag(call, "--status"), .type = call_flag(call, "--type"), .limit = 1};
    int              limit;

    TRY(call_limit(call, 1000, &limit, reterr));
    TRY(dead_letter_status_check(filter.status, reterr) == OK ? OK : ERR_USAGE);
    TRY(call_open(call, APP_SCHEMA, reterr));
    return pages_print(call, &filter, limit, reterr);
}

static void letter_print(Call *call, const DeadLetter *letter)
{
    char created[WALL_TEXT_SIZE], retried[WALL_TEXT_SIZE] = "never";

    if (call->json) {
        object_print(dead_letter_write, call->arena, letter);
        return;
    }
    wall_text((Wall){letter->created_at}, created);
    if (letter->last_retry_at)
        wall_text((Wall){letter->last_retry_at}, retried);
    printf("id          %" PRId64 "\ntype        %s\nkey         %s\nstatus      %s\nretries     %d\ncreated     %s\n"
           "last retry  %s\nretried by  %s\nerror code  %s\nerror       %s\ndata        %s\n",
           letter->id, letter->operation_type, letter->operation_key, letter->status, letter->retry_count, created,
           retried, letter->retried_by ? letter->retried_by : "-", letter->error_code, letter->error_message,
           letter->operation_data ? letter->operation_data : "-");
}

ErrorCode command_dlq_show(Call *call, Error *reterr)
{
    DeadLetter letter;
    int64_t    id;

    TRY(letter_id(call, &id, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_dead_letter_find(call, id, &letter, reterr));
    letter_print(call, &letter);
    return OK;
}

ErrorCode command_dlq_retry(Call *call, Error *reterr)
{
    DeadLetter letter;
    int64_t    id;

    TRY(letter_id(call, &id, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_dead_letter_retry(call, id, &letter, reterr));
    letter_print(call, &letter);
    if (!letter.retried_by && !call->json) /* retried_by is null in JSON */
        fprintf(stderr,
                "pawl: dead letter %" PRId64 " is due, but type \"%s\" has no route: it waits until one is set "
                "(select pawl.dead_letter_route(...)) or an application claims it\n",
                id, letter.operation_type);
    return OK;
}

ErrorCode command_dlq_delete(Call *call, Error *reterr)
{
    int64_t id;

    TRY(letter_id(call, &id, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_dead_letter_delete(call, id, reterr));
    if (call->json)
        printf("{\"id\":%" PRId64 ",\"deleted\":true}\n", id);
    else
        printf("deleted %" PRId64 "\n", id);
    return OK;
}
