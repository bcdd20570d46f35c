/*
 * key.c - tokens in, hashes to the database; see key_cache.c for the cache.
 */
#include "api/key.h"

#include <ctype.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "api/key_internal.h"
#include "base/text.h"
#include "pg/tx.h"
#include "sql.h"

#define TOKEN_PREFIX    "pawl_"
#define SECRET_BYTES    32
#define ARENA_BYTES_MAX ((size_t)1 << 20)

DB_SHAPE(key, Key, KEY_COLUMNS);

DB_SHAPE(key_name, KeyName, KEY_NAME_COLUMNS);

/* ---- tokens ---- */

void key_token_new(char *ret_token)
{
    unsigned char secret[SECRET_BYTES];
    const size_t  prefix = sizeof TOKEN_PREFIX - 1;

    if (sodium_init() < 0)
        abort(); /* no source of randomness: nothing here can be trusted */
    randombytes_buf(secret, sizeof secret);
    memcpy(ret_token, TOKEN_PREFIX, prefix);
    sodium_bin2base64(ret_token + prefix, KEY_TOKEN_SIZE - prefix, secret, sizeof secret,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(secret, sizeof secret);
}

bool key_token_is_ours(const char *token)
{
    const size_t prefix = sizeof TOKEN_PREFIX - 1;

    return strlen(token) == KEY_TOKEN_SIZE - 1 && strncmp(token, TOKEN_PREFIX, prefix) == 0;
}

KeyHash key_hash(const char *token)
{
    KeyHash hash;

    crypto_hash_sha256(hash.bytes, (const unsigned char *)token, strlen(token));
    return hash;
}

/* ---- scopes ---- */

ErrorCode key_scopes_parse(const char *words, Scope *ret_scopes, Error *reterr)
{
    unsigned scopes = SCOPE_NONE;

    for (const char *word = words;; word++) {
        size_t   length = strcspn(word, ",");
        unsigned scope  = scope_find(word, length);

        if (!scope)
            return fail(
                reterr, ERR_INVALID,
                "scope must be read, send, work, process, post, mint, wallets, operate, rating or admin, or one of the "
                "groups command, wallet and treasury, got \"%.*s\"",
                length < KEY_NAME_SIZE ? (int)length : KEY_NAME_SIZE, word);
        scopes |= scope;
        word += length;
        if (!*word)
            break;
    }
    *ret_scopes = (Scope)scopes;
    return OK;
}

static int scopes_list(Scope scopes, const char *ret_names[SCOPE_COUNT])
{
    int count = 0;

    for (int i = 0; i < SCOPE_COUNT; i++)
        if (scopes & (1u << i))
            ret_names[count++] = scope_names[i];
    return count;
}

void key_scopes_print(Scope scopes, char *ret_words)
{
    const char *names[SCOPE_COUNT];
    int         count = scopes_list(scopes, names);
    size_t      used  = 0;

    ret_words[0] = '\0';
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(ret_words + used, KEY_SCOPES_SIZE - used, "%s%s", i > 0 ? "," : "", names[i]);
}

/* ---- made, listed, revoked ---- */

static bool name_is_good(const char *name)
{
    size_t length = strlen(name);

    return length < KEY_NAME_SIZE && islower((unsigned char)name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == length;
}

/* The token is lost with the response, so a repeat cannot return it: the key can only be revoked. */
static ErrorCode key_in_doubt(const char *name, Error *reterr)
{
    return fail(
        reterr, ERR_UNKNOWN,
        "key \"%s\" may have been created, and its token is lost: list the keys, revoke it if it is there, create "
        "it again",
        name);
}

/* ERR_CONFLICT: a live key has the name. */
static ErrorCode key_insert(Pool *pool, Deadline deadline, const KeyNew *key, KeyHash hash, int64_t *ret_id,
                            Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_MAX);
    TxOptions                 options = {.name = "key_create", .deadline = deadline, .arena = arena};
    const char               *names[SCOPE_COUNT];
    int                       count = scopes_list(key->scopes, names);
    int64_t                   id;

    ErrorCode code = db_call(pool, &options, sql_api_key_create,
                             DB_ARGS(db_text(key->name), db_bytea(arena, hash.bytes, sizeof hash.bytes),
                                     db_texts(arena, names, count), key->ttl_ms ? db_i64(key->ttl_ms) : db_null(),
                                     db_bound(arena, key->domains), db_bound(arena, key->owners),
                                     db_text(key->operator), db_text(key->reason)),
                             &db_i64_shape, &id, reterr);
    if (code == ERR_UNKNOWN)
        return key_in_doubt(key->name, reterr);
    TRY(code);
    if (id == 0)
        return fail(reterr, ERR_CONFLICT, "key \"%s\" exists already: revoke it or choose another name", key->name);
    *ret_id = id;
    return OK;
}

ErrorCode key_create(Pool *pool, Deadline deadline, const KeyNew *key, char *ret_token, int64_t *ret_id, Error *reterr)
{
    char token[KEY_TOKEN_SIZE];

    if (!name_is_good(key->name))
        return fail(reterr, ERR_INVALID,
                    "key name must be a lower-case letter, then lower-case letters, digits, \"_\", \".\" or \"-\", at "
                    "most %d in all, got \"%.*s\"",
                    KEY_NAME_SIZE - 1, KEY_NAME_SIZE, key->name);
    if (strcmp(key->name, KEY_NAME_ADMIN) == 0)
        return fail(reterr, ERR_INVALID, "key name \"%s\" is reserved for the admin token: choose another", key->name);
    if (key->scopes == SCOPE_NONE || key->ttl_ms < 0)
        return fail(reterr, ERR_INVALID, "a key needs a scope, and a time to live that is not below zero");
    key_token_new(token);
    ErrorCode code = key_insert(pool, deadline, key, key_hash(token), ret_id, reterr);
    if (code == OK)
        memcpy(ret_token, token, sizeof token);
    sodium_memzero(token, sizeof token);
    return code;
}

ErrorCode key_list(Pool *pool, Deadline deadline, Arena *arena, int limit, int64_t before, Key **ret_list,
                   int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "key_list", .deadline = deadline, .arena = arena, .read_only = true};

    return db_call_many(pool, &options, sql_api_key_list, DB_ARGS(db_i32(limit), before ? db_i64(before) : db_null()),
                        &key_shape, ret_list, ret_count, reterr);
}

/* Names begin with a letter, so a number is an id. */
static bool id_parse(const char *text, int64_t *ret_id)
{
    char *end;

    errno   = 0;
    *ret_id = strtoll(text, &end, 10);
    return isdigit((unsigned char)text[0]) && errno == 0 && *end == '\0';
}

ErrorCode key_revoke(Pool *pool, Deadline deadline, Arena *arena, const char *id_or_name, const char *operator,
                     const char * reason, KeyName *ret_key, Error *reterr)
{
    TxOptions options = {.name = "key_revoke", .deadline = deadline, .arena = arena};
    int64_t   id;
    bool      is_id = id_parse(id_or_name, &id);

    ErrorCode code = db_call(pool, &options, sql_api_key_revoke,
                             DB_ARGS(is_id ? db_i64(id) : db_null(), db_text(is_id ? NULL : id_or_name),
                                     db_text(operator), db_text(reason)),
                             &key_name_shape, ret_key, reterr);
    if (code == ERR_NOT_FOUND)
        return fail(reterr, code, "key \"%.*s\" not found: give the name or id of a key that is not revoked",
                    KEY_NAME_SIZE, id_or_name);
    return code;
}

/* ---- scopes ---- */

#define X(scope, name) name,
const char *const scope_names[SCOPE_COUNT + 1] = {SCOPES(X) NULL};
#undef X

#define X(name, scopes) {name, scopes},
static const struct {
    const char *name;
    Scope       scopes;
} scope_groups[] = {SCOPE_GROUPS(X)};
#undef X

static bool word_is(const char *word, const char *name, size_t length)
{
    return strlen(word) == length && memcmp(word, name, length) == 0;
}

unsigned scope_find(const char *name, size_t length)
{
    for (int i = 0; i < SCOPE_COUNT; i++)
        if (word_is(scope_names[i], name, length))
            return 1u << i;
    for (size_t i = 0; i < COUNT(scope_groups); i++)
        if (word_is(scope_groups[i].name, name, length))
            return scope_groups[i].scopes;
    return 0;
}
