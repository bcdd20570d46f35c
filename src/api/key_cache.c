/*
 * key_cache.c - verdicts about tokens, cached for a few seconds; the invariants are in key.h.
 *
 * What is not cached is looked up through a combiner: one statement for all tokens that are queued. While some of
 * them are unknown, the next lookup waits a moment: unknown tokens cost at most 50 statements per second.
 *
 * Buckets of a few entries, chosen by the hash, which is as good as random. In a full bucket the least useful
 * entry is evicted: first an expired one, then one about an unknown token, then the oldest.
 */
#include <stdlib.h>
#include <string.h>

#include "api/key.h"
#include "api/key_internal.h"
#include "base/memory.h"
#include "base/sync.h"
#include "pg/combiner.h"
#include "pg/tx.h"
#include "sql.h"

#define BUCKET_SIZE     4
#define BUCKET_COUNT    (KEY_CACHE_SIZE / BUCKET_SIZE)
#define FRESH_MS        5000
#define UNKNOWN_MS      20    /* between two lookups while unknown tokens come */
#define GRACE_MS        60000 /* beyond fresh, while the database is unavailable */
#define LOOKUPS_MAX     500
#define ARENA_BYTES_MAX ((size_t)1 << 20)

typedef struct {
    KeyHash hash;
    Mono    asked_at;
    bool    expires;
    Mono    expires_at; /* by the database's clock at the lookup, continued by the monotonic clock */
    Scope   scopes;     /* SCOPE_NONE: the token is unknown */
    bool    used;
    char    name[KEY_NAME_SIZE];
} Entry;

struct KeyCache {
    Pool     *pool;
    Combiner *lookups;
    bool      has_admin;
    KeyHash   admin;
    Mutex     mutex;      /* guards the rest */
    Mono      unknown_at; /* when the last lookup with an unknown token ended */
    Entry     buckets[BUCKET_COUNT][BUCKET_SIZE];
};

/* clang-format off */
#define FOUND_COLUMNS(X, T) \
    X(T, int32_t,      DB_I32,  ord) \
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

/* The least is evicted first: by class, then by age. */
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

    /* An unknown token does not evict one that is known and in use. */
    if (entry->scopes != SCOPE_NONE || victim->scopes == SCOPE_NONE || entry_age_ms(victim) > FRESH_MS + GRACE_MS ||
        hash_is_equal(&victim->hash, &entry->hash))
        *victim = *entry;
}

/* ---- lookups ---- */

/* Bounds the statements that requests with unknown tokens cause. */
static void lookups_pace(KeyCache *cache)
{
    mutex_lock(&cache->mutex);
    int64_t ago_ms = cache->unknown_at.ns ? mono_ms_between(cache->unknown_at, clock_mono()) : UNKNOWN_MS;
    mutex_unlock(&cache->mutex);
    if (ago_ms < UNKNOWN_MS)
        clock_sleep_ms((int)(UNKNOWN_MS - ago_ms));
}

static ErrorCode found_take(Entry *entry, const Found *found, Error *reterr)
{
    TRY(key_scopes_parse(found->scopes, &entry->scopes, reterr));
    entry->expires    = found->left_us != 0;
    entry->expires_at = mono_plus_ms(entry->asked_at, found->left_us / 1000);
    snprintf(entry->name, sizeof entry->name, "%s", found->name);
    return OK;
}

/* Each of the entries has its hash; a verdict of either kind fills the rest. */
static ErrorCode lookups_run(void *context, void **entries, int count, Deadline deadline, Error *reterr)
{
    KeyCache                 *cache = context;
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_MAX);
    TxOptions options  = {.name = "key_find", .deadline = deadline, .arena = arena, .read_only = true, .prompt = true};
    const char **hexes = arena_array(arena, const char *, count);
    void        *rows;
    int          found;

    lookups_pace(cache);
    Mono asked_at = clock_mono();
    for (int i = 0; i < count; i++) {
        char *hex = arena_array(arena, char, 2 * sizeof(KeyHash) + 1);

        hexes[i] = sodium_bin2hex(hex, 2 * sizeof(KeyHash) + 1, ((Entry *)entries[i])->hash.bytes, sizeof(KeyHash));
    }
    TRY(db_call_many(cache->pool, &options, sql_api_key_find, DB_ARGS(db_texts(arena, hexes, count)), &found_shape,
                     &rows, &found, reterr));
    for (int i = 0; i < count; i++) {
        Entry *entry = entries[i];

        *entry = (Entry){.hash = entry->hash, .asked_at = asked_at, .used = true};
    }
    for (int i = 0; i < found; i++)
        TRY(found_take(entries[((const Found *)rows)[i].ord - 1], &((const Found *)rows)[i], reterr));
    mutex_lock(&cache->mutex);
    if (found < count)
        cache->unknown_at = clock_mono();
    mutex_unlock(&cache->mutex);
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
    KeyCache *cache = memory_new(1, sizeof *cache);

    cache->pool    = pool;
    cache->lookups = combiner_new(
        &(CombinerOptions){.run = lookups_run, .context = cache, .slots_max = 1, .batch_max = LOOKUPS_MAX});
    if (admin_token) {
        cache->has_admin = true;
        cache->admin     = key_hash(admin_token);
    }
    mutex_init(&cache->mutex);
    return cache;
}

void key_cache_free(KeyCache *cache)
{
    combiner_free(cache->lookups);
    mutex_done(&cache->mutex);
    free(cache);
}

ErrorCode key_cache_check(KeyCache *cache, const char *token, bool try_cache, Deadline deadline, Scope *ret_scopes,
                          char *ret_name, Error *reterr)
{
    KeyHash   hash  = key_hash(token);
    Entry     entry = {0}, asked = {.hash = hash};
    ErrorCode code;

    if (cache->has_admin && hash_is_equal(&cache->admin, &hash)) {
        *ret_scopes = SCOPE_ALL;
        snprintf(ret_name, KEY_NAME_SIZE, "%s", KEY_NAME_ADMIN);
        return OK;
    }
    if (!key_token_is_ours(token))
        return fail(reterr, ERR_NO_TOKEN, "token is unknown, revoked or expired");
    bool is_cached = cache_get(cache, &hash, &entry);
    if (is_cached && entry_age_ms(&entry) <= FRESH_MS)
        return entry_answer(&entry, ret_scopes, ret_name, reterr);
    if (try_cache)
        return fail(reterr, ERR_BUSY, "token is not in the cache");
    code = combiner_run(cache->lookups, &asked, deadline, reterr);
    if (code == OK) {
        cache_put(cache, &asked);
        return entry_answer(&asked, ret_scopes, ret_name, reterr);
    }
    /* While the database is unavailable a known key stays valid; for an unknown one there is no verdict. */
    if (is_cached && entry.scopes != SCOPE_NONE && entry_age_ms(&entry) <= FRESH_MS + GRACE_MS)
        return entry_answer(&entry, ret_scopes, ret_name, reterr);
    return code;
}
