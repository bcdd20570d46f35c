/*
 * command_key.c - API keys.
 */
#include <inttypes.h>

#include "app/key.h"
#include "base/writer.h"
#include "cli/command.h"
#include "cli/print.h"

ErrorCode command_key_create(Call *call, Error *reterr)
{
    scoped(app_close) App *app   = NULL;
    const char            *words = call_flag(call, "--scopes");
    Scope                  scopes;
    int64_t                ttl_ms, id;
    char                   token[KEY_TOKEN_SIZE];

    if (key_scopes_parse(words ? words : "read", &scopes, reterr) != OK)
        return ERR_USAGE;
    TRY(call_duration(call, "--expires", /* fallback_ms= */ 0, &ttl_ms, reterr));
    if (ttl_ms == 0 && call_flag(call, "--expires"))
        return fail(reterr, ERR_USAGE, "--expires is 0: a key that is valid for some time, such as 90d or 12h");
    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    TRY(key_create(app->pool, deadline_in_ms(APP_COMMAND_MS), call->arguments[0], scopes, ttl_ms, token, &id, reterr));
    if (call->json) {
        printf("{\"id\":%" PRId64 ",\"name\":\"%s\",\"token\":\"%s\"}\n", id, call->arguments[0], token);
        return OK;
    }
    fprintf(stderr, "key %" PRId64 " \"%s\"; its token is shown only now:\n", id, call->arguments[0]);
    printf("%s\n", token);
    return OK;
}

static void keys_json(Call *call, const Key *list, int count)
{
    Text   text;
    Writer writer;

    text_init(&text, call->arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_array(&writer, NULL);
    for (int i = 0; i < count; i++) {
        writer_object(&writer, NULL);
        writer_i64(&writer, "id", list[i].id);
        writer_text(&writer, "name", list[i].name);
        writer_text(&writer, "scopes", list[i].scopes);
        writer_time(&writer, "created_at", list[i].created_at);
        writer_time(&writer, "expires_at", list[i].expires_at);
        writer_time(&writer, "revoked_at", list[i].revoked_at);
        writer_end(&writer);
    }
    writer_end(&writer);
    print_json(&text);
}

ErrorCode command_key_list(Call *call, Error *reterr)
{
    static const char *const head[] = {">id", "name", "scopes", "created", "expires", "revoked", NULL};
    scoped(app_close) App   *app    = NULL;
    Key                     *list;
    int                      count;
    Table                    table;

    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    TRY(key_list(app->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, &list, &count, reterr));
    if (call->json) {
        keys_json(call, list, count);
        return OK;
    }
    table_init(&table, call->arena, head);
    for (int i = 0; i < count; i++) {
        table_cell_i64(&table, list[i].id);
        table_cell(&table, list[i].name);
        table_cell(&table, list[i].scopes);
        table_cell_time(&table, list[i].created_at);
        table_cell_time(&table, list[i].expires_at);
        table_cell_time(&table, list[i].revoked_at);
    }
    table_print(&table, "no keys yet: the admin token works without one");
    return OK;
}

ErrorCode command_key_revoke(Call *call, Error *reterr)
{
    scoped(app_close) App *app = NULL;
    KeyName                key;

    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    TRY(key_revoke(app->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, call->arguments[0], &key, reterr));
    if (call->json)
        printf("{\"id\":%" PRId64 ",\"name\":\"%s\",\"revoked\":true}\n", key.id, key.name);
    else
        printf("revoked key %" PRId64 " \"%s\"; it works for 5 s more at most\n", key.id, key.name);
    return OK;
}
