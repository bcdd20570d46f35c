/*
 * command_dlq.c - dead letters.
 */
#include <inttypes.h>

#include "app/letter.h"
#include "base/writer.h"
#include "cli/command.h"
#include "cli/print.h"
#include "pg/dead_letter.h"

static ErrorCode letter_id(const Call *call, int64_t *ret_id, Error *reterr)
{
    return call_number("ID", call->arguments[0], 1, INT64_MAX, 0, ret_id, reterr);
}

static void letters_json(Call *call, const DeadLetter *list, int count, bool alone)
{
    Text   text;
    Writer writer;

    text_init(&text, call->arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    if (!alone)
        writer_array(&writer, NULL);
    for (int i = 0; i < count; i++)
        letter_write(&writer, &list[i]);
    if (!alone)
        writer_end(&writer);
    print_json(&text);
}

static void letters_table(Call *call, const DeadLetter *list, int count)
{
    static const char *const head[] = {">id", "type", "key", "status", ">retries", "created", "error", NULL};
    Table                    table;

    table_init(&table, call->arena, head);
    for (int i = 0; i < count; i++) {
        table_cell_i64(&table, list[i].id);
        table_cell(&table, list[i].operation_type);
        table_cell(&table, list[i].operation_key);
        table_cell(&table, list[i].status);
        table_cell_i64(&table, list[i].retry_count);
        table_cell_time(&table, list[i].created_at);
        table_cell(&table, list[i].error_message);
    }
    table_print(&table, "no dead letters");
}

ErrorCode command_dlq_list(Call *call, Error *reterr)
{
    scoped(app_close) App *app    = NULL;
    DeadLetterFilter       filter = {.status = call_flag(call, "--status"), .type = call_flag(call, "--type")};
    DeadLetter            *list;
    int                    count;
    int64_t                limit;
    ErrorCode              code;

    TRY(call_number("--limit", call_flag(call, "--limit"), 1, 1000, 100, &limit, reterr));
    filter.limit = (int)limit;
    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    code = dead_letter_list(app->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, &filter, &list, &count, reterr);
    if (code == ERR_INVALID) /* what it can find invalid came from a flag */
        return ERR_USAGE;
    TRY(code);
    if (call->json)
        letters_json(call, list, count, /* alone= */ false);
    else
        letters_table(call, list, count);
    return OK;
}

static void letter_print(Call *call, const DeadLetter *letter)
{
    char created[WALL_TEXT_SIZE], retried[WALL_TEXT_SIZE] = "never";

    if (call->json) {
        letters_json(call, letter, 1, /* alone= */ true);
        return;
    }
    wall_text((Wall){letter->created_at}, created);
    if (letter->last_retry_at)
        wall_text((Wall){letter->last_retry_at}, retried);
    printf("id          %" PRId64 "\ntype        %s\nkey         %s\nstatus      %s\nretries     %d\ncreated     %s\n"
           "last retry  %s\nerror code  %s\nerror       %s\ndata        %s\n",
           letter->id, letter->operation_type, letter->operation_key, letter->status, letter->retry_count, created,
           retried, letter->error_code, letter->error_message, letter->operation_data);
}

ErrorCode command_dlq_show(Call *call, Error *reterr)
{
    scoped(app_close) App *app = NULL;
    DeadLetter             letter;
    int64_t                id;

    TRY(letter_id(call, &id, reterr));
    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    TRY(dead_letter_find(app->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, id, &letter, reterr));
    letter_print(call, &letter);
    return OK;
}

ErrorCode command_dlq_retry(Call *call, Error *reterr)
{
    scoped(app_close) App *app = NULL;
    DeadLetter             letter;
    int64_t                id;

    TRY(letter_id(call, &id, reterr));
    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    TRY(dead_letter_retry(app->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, id, &letter, reterr));
    letter_print(call, &letter);
    return OK;
}

ErrorCode command_dlq_delete(Call *call, Error *reterr)
{
    scoped(app_close) App *app = NULL;
    int64_t                id;

    TRY(letter_id(call, &id, reterr));
    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    TRY(dead_letter_delete(app->pool, deadline_in_ms(APP_COMMAND_MS), id, reterr));
    if (call->json)
        printf("{\"id\":%" PRId64 ",\"deleted\":true}\n", id);
    else
        printf("deleted %" PRId64 "\n", id);
    return OK;
}
