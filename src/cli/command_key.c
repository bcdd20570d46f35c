/*
 * command_key.c - API keys.
 */
#include <inttypes.h>

#include "api/key.h"
#include "base/writer.h"
#include "cli/command.h"
#include "cli/decision.h"
#include "cli/print.h"

/* The token, alone on standard output, and once. */
static void created_print(const Call *call, int64_t id, const char *scopes, int64_t ttl_ms, const char *token)
{
    const char *name = call->arguments[0];
    Text        text;

    text_init(&text, call->arena, TEXT_MAX_LINE);
    if (call->json) {
        text_print(&text, ttl_ms ? "%" PRId64 ".%03d" : "null", ttl_ms / 1000, (int)(ttl_ms % 1000));
        printf("{\"id\":%" PRId64 ",\"name\":\"%s\",\"scopes\":\"%s\",\"expires_in_s\":%s,\"token\":\"%s\"}\n", id,
               name, scopes, text_string(&text), token);
        return;
    }
    if (ttl_ms) {
        text_append(&text, "expires in ");
        setting_duration_print(ttl_ms, &text);
    } else
        text_append(&text, "never expires");
    fprintf(stderr, "key %" PRId64 " \"%s\" (%s) %s; its token is shown only now:\n", id, name, scopes,
            text_string(&text));
    printf("%s\n", token);
}

/* NULL: the flag is not given. */
static const Bound *bound_flag(const Call *call, const char *flag, Bound *ret_bound)
{
    const char *words = call_flag(call, flag);

    if (!words)
        return NULL;
    *ret_bound = bound_split(call->arena, words);
    return ret_bound;
}

ErrorCode command_key_create(Call *call, Error *reterr)
{
    const char *given = call_flag(call, "--scopes"), *words = given ? given : "read";
    Scope       scopes;
    int64_t     ttl_ms, id;
    char        token[KEY_TOKEN_SIZE], names[KEY_SCOPES_SIZE];
    Bound       domains, owners;

    if (key_scopes_parse(words, &scopes, reterr) != OK)
        return ERR_USAGE;
    TRY(call_duration(call, "--expires", /* fallback_ms= */ 0, &ttl_ms, reterr));
    if (ttl_ms == 0 && call_flag(call, "--expires"))
        return fail(reterr, ERR_USAGE, "--expires must be a duration above 0 such as 12h or 90d, got \"%s\"",
                    call_flag(call, "--expires"));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(key_create(call->pool, deadline_in_ms(APP_COMMAND_MS),
                   &(KeyNew){.name    = call->arguments[0],
                             .scopes  = scopes,
                             .ttl_ms  = ttl_ms,
                             .domains = bound_flag(call, "--domains", &domains),
                             .owners  = bound_flag(call, "--owners", &owners),
                             .operator= call_operator(call),
                             .reason = call_flag(call, "--reason")},
                   token, &id, reterr));
    key_scopes_print(scopes, names);
    created_print(call, id, names, ttl_ms, token);
    return OK;
}

static const ListColumn list_columns[] = {
    {">id",     "id",         CELL_I64,  offsetof(Key, id)        },
    {"name",    "name",       CELL_TEXT, offsetof(Key, name)      },
    {"scopes",  "scopes",     CELL_TEXT, offsetof(Key, scopes)    },
    {"domains", "domains",    CELL_TEXT, offsetof(Key, domains)   },
    {"owners",  "owners",     CELL_TEXT, offsetof(Key, owners)    },
    {"created", "created_at", CELL_TIME, offsetof(Key, created_at)},
    {"by",      "created_by", CELL_TEXT, offsetof(Key, created_by)},
    {"used",    "used_at",    CELL_TIME, offsetof(Key, used_at)   },
    {"expires", "expires_at", CELL_TIME, offsetof(Key, expires_at)},
    {"revoked", "revoked_at", CELL_TIME, offsetof(Key, revoked_at)},
};
static const ListShape list_shape = {list_columns, COUNT(list_columns), sizeof(Key),
                                     .none = "no keys yet: the admin token works without one"};

ErrorCode command_key_list(Call *call, Error *reterr)
{
    Key *list;
    int  count;

    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(key_list(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, KEY_LIST_MAX, /* before= */ 0, &list, &count,
                 reterr));
    list_print(&list_shape, call->arena, call->json, list, count);
    return OK;
}

ErrorCode command_key_revoke(Call *call, Error *reterr)
{
    KeyName key;

    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(key_revoke(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, call->arguments[0], call_operator(call),
                   call_flag(call, "--reason"), &key, reterr));
    if (call->json)
        printf("{\"id\":%" PRId64 ",\"name\":\"%s\",\"revoked\":true}\n", key.id, key.name);
    else
        printf("revoked key %" PRId64 " \"%s\"; it works for 5 s more at most\n", key.id, key.name);
    return OK;
}
