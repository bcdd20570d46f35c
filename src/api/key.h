/*
 * key.h - API keys: who may call the HTTP interface, and with which scopes.
 *
 * A token is "pawl_" and 43 characters for 32 random bytes. It is shown once, when it is made; the database keeps its
 * SHA-256. That is enough for a secret of 256 random bits: there is nothing to guess.
 *
 * Invariants
 *   1. Neither the database nor the cache holds a token, and no message contains one.
 *   2. The admin token needs no database; it is compared by hash, in constant time.
 *   3. The cache is bounded: KEY_CACHE_SIZE verdicts, kept for 5 s. So a revoked key works for 5 s more at most. A flood
 *      of unknown tokens never evicts a verdict about a known one, and costs 50 statements a second at most.
 *   4. No thread waits for a lookup. Keys that the cache knows are looked up again beside all others, so they wait for no unknown
 *      token; of those at most UNKNOWN_MAX wait, and more are refused (ERR_BUSY).
 *   5. A key may be bound to domains and owners. The binding is part of the verdict, in the arena of the check (TokenCheck.bound).
 *   6. While the database is unavailable, a key that it knew at most 65 s ago stays valid, so an outage denies no client
 *      access. A key is never valid beyond its own expiry, which the database's clock decides.
 * Threads: any. Ownership: key_cache_free() frees.
 */
#ifndef API_KEY_H
#define API_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/answer.h"
#include "base/arena.h"
#include "base/bound.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/writer.h"
#include "http/token.h"
#include "pg/pool.h"
#include "pg/query.h"

#define KEY_TOKEN_SIZE 49 /* with the NUL */
#define KEY_NAME_SIZE  TOKEN_NAME_SIZE
#define KEY_NAME_ADMIN "admin" /* of the admin's token; no key has it */
#define KEY_CACHE_SIZE 1024
#define UNKNOWN_MAX    1000
#define KEY_LIST_MAX   1000

/* scopes: "read,post". domains, owners: "a,b*", NULL: not bound. expires_at 0: never. used_at 0: never. revoked_at 0: it is live. */
#define KEY_COLUMNS(X, T)                                 \
    X(T, I64, id)                                         \
    X(T, TEXT, name, scopes, domains, owners, created_by) \
    X(T, TIME, created_at, used_at, expires_at, revoked_at)
DB_ROW(Key, KEY_COLUMNS);

/* What a key is bound to. In TokenCheck.bound; NULL there: the key is not bound. */
typedef struct {
    Bound domains, owners;
} Binding;

#define KEY_NAME_COLUMNS(X, T) \
    X(T, I64, id)              \
    X(T, TEXT, name)
DB_ROW(KeyName, KEY_NAME_COLUMNS);

/* A new token, also for the admin's. ret_token holds KEY_TOKEN_SIZE bytes. */
void key_token_new(char *ret_token);
#define KEY_SCOPES_SIZE 80
/* "read,wallet" to bits. ERR_INVALID: a word that is no scope, or none at all. */
must_check ErrorCode key_scopes_parse(const char *words, Scope *ret_scopes, Error *reterr);
/* Bits to "read,post,wallets", in at least KEY_SCOPES_SIZE bytes. */
void key_scopes_print(Scope scopes, char *ret_words);

typedef struct {
    const char  *name;
    Scope        scopes;
    int64_t      ttl_ms;            /* 0: never expires */
    const Bound *domains, *owners;  /* both NULL: not bound; one of them NULL: bound to nothing of that kind */
    const char *operator, * reason; /* NULL: the session's user; none */
} KeyNew;

/* ERR_INVALID: the name is not a lower-case letter followed by letters, digits, "_", "." or "-", 63 in all; a pattern that no name can have; a bound
 * key with the scope admin or rating. ERR_CONFLICT: a live key has the name. ret_token holds KEY_TOKEN_SIZE bytes. */
must_check ErrorCode key_create(Pool *pool, Deadline deadline, const KeyNew *key, char *ret_token, int64_t *ret_id,
                                Error *reterr);
/* Newest first, revoked ones too, at most `limit`. before: ids below this, 0: from the newest. */
must_check ErrorCode key_list(Pool *pool, Deadline deadline, Arena *arena, int limit, int64_t before, Key **ret_list,
                              int *ret_count, Error *reterr);
/* By id or by name. ERR_NOT_FOUND: no live key is meant. */
must_check ErrorCode key_revoke(Pool *pool, Deadline deadline, Arena *arena, const char *id_or_name,
                                const char *operator, const char * reason, KeyName *ret_key, Error *reterr);
RowWrite             key_write; /* of a Key */

extern const AnswerTable answer_key, answer_keys, answer_key_created;

typedef struct KeyCache KeyCache;

/* admin_token NULL: there is none. */
KeyCache *key_cache_new(Pool *pool, const char *admin_token);
void      key_cache_free(KeyCache *cache);
SCOPED(KeyCache, key_cache_free)
/* As ServerAuth and ServerAuthSubmit. Besides their codes those of a query. */
bool key_cache_get(KeyCache *cache, TokenCheck *check);
void key_cache_submit(KeyCache *cache, TokenCheck *check);

/* ---- scopes: what a token may do. The HTTP server knows a scope as a bit only ---- */

#define SCOPES(X)               \
    X(SCOPE_READ, "read")       \
    X(SCOPE_SEND, "send")       \
    X(SCOPE_WORK, "work")       \
    X(SCOPE_PROCESS, "process") \
    X(SCOPE_POST, "post")       \
    X(SCOPE_MINT, "mint")       \
    X(SCOPE_WALLETS, "wallets") \
    X(SCOPE_OPERATE, "operate") \
    X(SCOPE_RATING, "rating")   \
    X(SCOPE_ADMIN, "admin")
/* Names of several scopes. A key has the scopes, not the name. */
#define SCOPE_GROUPS(X)                                   \
    X("command", SCOPE_SEND | SCOPE_WORK | SCOPE_OPERATE) \
    X("wallet", SCOPE_POST | SCOPE_WALLETS)               \
    X("treasury", SCOPE_MINT | SCOPE_WALLETS)
#define X(scope, name) scope##_BIT,
enum { SCOPES(X) SCOPE_COUNT };
#undef X
#define X(scope, name) scope = 1u << scope##_BIT,
enum { SCOPES(X) SCOPE_ALL = (1u << SCOPE_COUNT) - 1 };
#undef X
extern const char *const scope_names[SCOPE_COUNT + 1]; /* NULL-terminated, in the order of the bits */
/* The bit of the scope with this name, or the bits of a group; 0: there is none. */
unsigned scope_find(const char *name, size_t length);

#endif
