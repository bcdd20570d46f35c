/*
 * key_cache.c - answers about tokens, remembered for a few seconds; the invariants stand in key.h.
 *
 * Buckets of a few entries, chosen by the hash, which is as good as random. In a full bucket the entry that would be
 * missed least makes room: first one that is past its use, then one about an unknown token, then the oldest.
 */
#include <stdlib.h>
#include <string.h>

#include "app/key.h"
#include "app/key_internal.h"
#include "base/sync.h"
#include "pg/tx.h"
#include "sql.h"

#define BUCKET_SIZE     4
#define BUCKET_COUNT    (KEY_CACHE_SIZE / BUCKET_SIZE)
#define FRESH_MS        5000
#define GRACE_MS        60000 /* beyond fresh, while the database cannot be asked */
#define ARENA_BYTES_MAX ((size_t)1 << 20)

typedef struct {
    KeyHash hash;
    Mono    asked_at;
    bool    expires;
    Mono    expires_at; /* by the database's clock when it was asked, carried on by ours that never jumps */
    Scope   scopes;     /* SCOPE_NONE: the token is unknown */
    bool    used;
    char    name[KEY_NAME_SIZE];
} Entry;

struct KeyCache {
    Pool   *pool;
    bool    has_admin;
    KeyHash admin;
    Mutex   mutex; /* guards the buckets */
    Entry   buckets[BUCKET_COUNT][BUCKET_SIZE];
};

/* clang-format off */
#define FOUND_COLUMNS(X, T) \
    X(T, int64_t,      DB_I64,  id) \
    X(T, const char *, DB_TEXT, name) \
    X(T, const char *, DB_TEXT, scopes) \
    X(T, int64_t,      DB_TIME, left_us)
/* clang-format on */
typedef struct {
    FOUND_COLUMNS(DB_FIELD, Found)
} Found;
DB_SHAPE(found, Found, FOUND_COLUMNS);

static bool hash_is_equal(const KeyHash *a, const KeyHash *b)
{
    return sodium_memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static Entry *bucket_of(KeyCache *cache, const KeyHash *hash)
{
    return cache->buckets[(hash->bytes[0] | hash->bytes[1] << 8) % BUCKET_COUNT];
}

static int64_t entry_age_ms(const Entry *entry)
{
    return mono_ms_between(entry->asked_at, clock_mono());
}

static bool cache_get(KeyCache *cache, const KeyHash *hash, Entry *ret_entry)
{
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&cache->mutex);
    const Entry                *bucket = bucket_of(cache, hash);

    for (int i = 0; i < BUCKET_SIZE; i++)
        if (bucket[i].used && hash_is_equal(&bucket[i].hash, hash)) {
            *ret_entry = bucket[i];
            return true;
        }
    return false;
}

/* How much an entry would be missed: its class first, then its youth. */
static int64_t entry_worth(const Entry *entry)
{
    int64_t age_ms = entry_age_ms(entry);
    int class      = !entry->used || age_ms > FRESH_MS + GRACE_MS ? 0 : entry->scopes == SCOPE_NONE ? 1 : 2;

    return class * (int64_t)1000000000 - (age_ms < 999999999 ? age_ms : 999999999);
}

static Entry *victim_of(Entry *bucket, const KeyHash *hash)
{
    Entry *victim = &bucket[0];

    for (int i = 0; i < BUCKET_SIZE; i++) {
        if (bucket[i].used && hash_is_equal(&bucket[i].hash, hash))
            return &bucket[i];
        if (entry_worth(&bucket[i]) < entry_worth(victim))
            victim = &bucket[i];
    }
    return victim;
}

static void cache_put(KeyCache *cache, const Entry *entry)
{
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&cache->mutex);
    Entry                      *victim = victim_of(bucket_of(cache, &entry->hash), &entry->hash);

    /* An unknown token does not push out one that is known and in use. */
    if (entry->scopes != SCOPE_NONE || victim->scopes == SCOPE_NONE || entry_age_ms(victim) > FRESH_MS + GRACE_MS ||
        hash_is_equal(&victim->hash, &entry->hash))
        *victim = *entry;
}

/* Ask the database; an answer of either kind is an entry. */
static ErrorCode entry_ask(KeyCache *cache, const KeyHash *hash, Deadline deadline, Entry *ret_entry, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_MAX);
    TxOptions                 options = {.name = "key_find", .deadline = deadline, .arena = arena, .read_only = true};
    Entry                     entry   = {.hash = *hash, .asked_at = clock_mono(), .used = true};
    void                     *rows;
    int                       count;

    TRY(db_call_many(cache->pool, &options, sql_app_key_find, DB_ARGS(db_bytea(arena, hash->bytes, sizeof hash->bytes)),
                     &found_shape, &rows, &count, reterr));
    if (count > 0) {
        const Found *found = rows;

        TRY(key_scopes_parse(found->scopes, &entry.scopes, reterr));
        entry.expires    = found->left_us != 0;
        entry.expires_at = mono_plus_ms(entry.asked_at, found->left_us / 1000);
        snprintf(entry.name, sizeof entry.name, "%s", found->name);
    }
    *ret_entry = entry;
    return OK;
}

static ErrorCode entry_answer(const Entry *entry, Scope *ret_scopes, char *ret_name, Error *reterr)
{
    if (entry->scopes == SCOPE_NONE || (entry->expires && !mono_before(clock_mono(), entry->expires_at)))
        return fail(reterr, ERR_NO_TOKEN, "token is unknown, revoked or expired");
    *ret_scopes = entry->scopes;
    memcpy(ret_name, entry->name, sizeof entry->name);
    return OK;
}

KeyCache *key_cache_new(Pool *pool, const char *admin_token)
{
    KeyCache *cache = calloc(1, sizeof *cache);

    if (!cache)
        abort();
    cache->pool = pool;
    if (admin_token) {
        cache->has_admin = true;
        cache->admin     = key_hash(admin_token);
    }
    mutex_init(&cache->mutex);
    return cache;
}

void key_cache_free(KeyCache *cache)
{
    mutex_done(&cache->mutex);
    free(cache);
}

ErrorCode key_cache_check(KeyCache *cache, const char *token, bool try_cache, Deadline deadline, Scope *ret_scopes,
                          char *ret_name, Error *reterr)
{
    KeyHash   hash  = key_hash(token);
    Entry     entry = {0}, asked;
    ErrorCode code;

    if (cache->has_admin && hash_is_equal(&cache->admin, &hash)) {
        *ret_scopes = SCOPE_ALL;
        snprintf(ret_name, KEY_NAME_SIZE, "admin");
        return OK;
    }
    if (!key_token_is_ours(token))
        return fail(reterr, ERR_NO_TOKEN, "token is unknown, revoked or expired");
    bool is_cached = cache_get(cache, &hash, &entry);
    if (is_cached && entry_age_ms(&entry) <= FRESH_MS)
        return entry_answer(&entry, ret_scopes, ret_name, reterr);
    if (try_cache)
        return fail(reterr, ERR_BUSY, "token is not in the cache");
    code = entry_ask(cache, &hash, deadline, &asked, reterr);
    if (code == OK) {
        cache_put(cache, &asked);
        return entry_answer(&asked, ret_scopes, ret_name, reterr);
    }
    /* Nobody can say that the key was revoked; an unknown one stays unanswered, not refused. */
    if (is_cached && entry.scopes != SCOPE_NONE && entry_age_ms(&entry) <= FRESH_MS + GRACE_MS)
        return entry_answer(&entry, ret_scopes, ret_name, reterr);
    return code;
}
