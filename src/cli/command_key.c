/*
 * command_key.c - API keys.
 */
#include <inttypes.h>

#include "api/key.h"
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

static const ListColumn list_columns[] = {
    {">id",     "id",         CELL_I64,  offsetof(Key, id)        },
    {"name",    "name",       CELL_TEXT, offsetof(Key, name)      },
    {"scopes",  "scopes",     CELL_TEXT, offsetof(Key, scopes)    },
    {"created", "created_at", CELL_TIME, offsetof(Key, created_at)},
    {"expires", "expires_at", CELL_TIME, offsetof(Key, expires_at)},
    {"revoked", "revoked_at", CELL_TIME, offsetof(Key, revoked_at)},
};
static const ListShape list_shape = {list_columns, COUNT(list_columns), sizeof(Key),
                                     .none = "no keys yet: the admin token works without one"};

ErrorCode command_key_list(Call *call, Error *reterr)
{
    scoped(app_close) App *app = NULL;
    Key                   *list;
    int                    count;

    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    TRY(key_list(app->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, &list, &count, reterr));
    list_print(&list_shape, call->arena, call->json, list, count);
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
