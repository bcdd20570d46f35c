/*
 * keys.c - API keys over HTTP: made, listed and revoked by keys with the scope admin, which is never bound.
 *
 * A token is shown once, so a POST has no repeat: the name of the key is unique, and a second POST with it is refused.
 */
#include "api/key.h"

#include <string.h>

#include "api/api.h"
#include "api/page.h"
#include "base/answer_field.h"
#include "base/writer.h"

#define EXPIRES_S_MAX 3153600000 /* 100 years */
#define WORDS_HELP    ": an array of texts, or one text with commas"

/* clang-format off */
static const AnswerField key_fields[] = {
    I64("id", AT(Key, id)), TEXT("name", AT(Key, name)), TEXT("scopes", AT(Key, scopes), .help = "with commas"),
    TEXT("domains", AT(Key, domains), .nullable = true, .help = "the domains and prefixes that it is bound to, with commas; null: it is not bound"),
    TEXT("owners", AT(Key, owners), .nullable = true, .help = "the same of owners of wallets"),
    TIME("created_at", AT(Key, created_at)), TEXT("created_by", AT(Key, created_by), .help = "the operator"),
    TIME("used_at", AT(Key, used_at), .nullable = true, .help = "its last use, some minutes late"),
    TIME("expires_at", AT(Key, expires_at), .nullable = true), TIME("revoked_at", AT(Key, revoked_at), .nullable = true)};
TABLE(key, "Key");
static const AnswerField keys_fields[] = {ROWS("items", key), NEXT_CURSOR};
TABLE(keys, "Keys");
static const AnswerField key_created_fields[] = {
    I64("id"), TEXT("name"), TEXT("scopes"), TEXT("token", .help = "shown once, in this response")};
TABLE(key_created, "KeyCreated");

typedef struct {
    const char *name, *scopes, *domains, *owners, *by, *reason;
    double      expires_in_s;
} KeyRequest;
static const Field create_fields[] = {
    {"name", FIELD_TEXT, offsetof(KeyRequest, name), .required = true, .min = 1, .length_max = KEY_NAME_SIZE - 1,
     .help = "a lower-case letter, then lower-case letters, digits, _ . -"},
    {"scopes", FIELD_JSON, offsetof(KeyRequest, scopes), .required = true,
     .help = "read, send, work, process, post, mint, wallets, operate, rating, admin" WORDS_HELP},
    {"domains", FIELD_JSON, offsetof(KeyRequest, domains), .help = "it touches only these domains: names, or prefixes with *" WORDS_HELP},
    {"owners", FIELD_JSON, offsetof(KeyRequest, owners), .help = "it touches only wallets of these owners: names, or prefixes with *" WORDS_HELP},
    {"expires_in_s", FIELD_REAL, offsetof(KeyRequest, expires_in_s), .min = 0, .max = EXPIRES_S_MAX, .help = "never when absent"},
    DECISION_FIELDS(KeyRequest),
};
const FieldTable key_create_table = {"key", create_fields, COUNT(create_fields), sizeof(KeyRequest)};
/* clang-format on */

const RouteParameter api_key_parameters[] = {
    PAGE_PARAMETERS,
    {NULL, NULL},
};

typedef struct {
    ReaderArray list;
    const char *text;
} Words;
static const Field list_fields[] = {
    {"words", FIELD_TEXTS, offsetof(Words, list), .required = true, .max = BOUND_PATTERNS_MAX, .length_max = 256},
};
static const Field text_fields[] = {
    {"words", FIELD_TEXT, offsetof(Words, text), .required = true, .length_max = BOUND_PATTERNS_MAX * 256},
};
static const FieldTable list_table = {"words", list_fields, COUNT(list_fields), sizeof(Words)};
static const FieldTable text_table = {"words", text_fields, COUNT(text_fields), sizeof(Words)};

/* ["a", "b"], or "a,b". */
static ErrorCode words_read(Request *request, const char *field, const char *json, Bound *ret_words, Error *reterr)
{
    Arena      *arena  = request_arena(request);
    const char *object = arena_print(arena, "{\"words\":%s}", json);
    Words       words  = {0};

    if (reader_object(object, strlen(object), *json == '"' ? &text_table : &list_table, arena, &words, &(Error){0}) !=
        OK)
        return fail(reterr, ERR_INVALID, "%s must be an array of at most %d texts, or one text with commas", field,
                    BOUND_PATTERNS_MAX);
    *ret_words = words.text ? bound_split(arena, words.text) : (Bound){words.list.items, words.list.count};
    for (int i = 0; i < ret_words->count; i++)
        if (strchr(ret_words->patterns[i], ','))
            return fail(reterr, ERR_INVALID, "%s[%d] must not contain a comma", field, i);
    return OK;
}

/* *ret_bound NULL: it is not given. */
static ErrorCode bound_read(Request *request, const char *field, const char *json, const Bound **ret_bound,
                            Error *reterr)
{
    Bound *bound = arena_array(request_arena(request), Bound, 1);

    *ret_bound = json ? bound : NULL;
    return json ? words_read(request, field, json, bound, reterr) : OK;
}

void key_write(Writer *writer, const void *key)
{
    writer_row(writer, &answer_key, key);
}

ErrorCode api_key_list(void *context, Request *request, Response *response, Error *reterr)
{
    Api    *api = context;
    Key    *list;
    int64_t before;
    int     limit, count;

    TRY(page_take(request, &limit, &before, reterr));
    TRY(key_list(api->pool, request_deadline(request), request_arena(request), limit, before, &list, &count, reterr));
    page_write(limit, list, count, PAGE_ROW(Key, key_write, id), response);
    return OK;
}

ErrorCode api_key_create(void *context, Request *request, Response *response, Error *reterr)
{
    Api       *api = context;
    KeyRequest given;
    KeyNew     key;
    Bound      words;
    char      *token = arena_array(request_arena(request), char, KEY_TOKEN_SIZE);
    char       scopes[KEY_SCOPES_SIZE];
    int64_t    id;

    TRY(api_key_refuse(request, "the token is shown once; the name of the key is unique", reterr));
    TRY(api_body_read(request, &key_create_table, &given, reterr));
    key = (KeyNew){.name   = given.name,
                   .ttl_ms = (int64_t)(given.expires_in_s * 1000),
                   .operator= api_actor(request, given.by),
                   .reason = given.reason};
    TRY(words_read(request, "scopes", given.scopes, &words, reterr));
    TRY(key_scopes_parse(bound_join(request_arena(request), &words), &key.scopes, reterr));
    TRY(bound_read(request, "domains", given.domains, &key.domains, reterr));
    TRY(bound_read(request, "owners", given.owners, &key.owners, reterr));
    TRY(key_create(api->pool, request_deadline(request), &key, token, &id, reterr));
    key_scopes_print(key.scopes, scopes);
    response->status = 201;
    Writer *writer   = response_writer(response);
    writer_object(writer, NULL);
    writer_i64(writer, "id", id);
    writer_text(writer, "name", given.name);
    writer_text(writer, "scopes", scopes);
    writer_text(writer, "token", token);
    writer_end(writer);
    return OK;
}

ErrorCode api_key_revoke(void *context, Request *request, Response *response, Error *reterr)
{
    Api    *api = context;
    KeyName key;

    TRY(key_revoke(api->pool, request_deadline(request), request_arena(request), request_capture(request, "name"),
                   api_actor(request, NULL), /* reason= */ NULL, &key, reterr));
    response->status = 204;
    return OK;
}
