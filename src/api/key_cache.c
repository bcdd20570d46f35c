/*
 * key_cache.c - verdicts about tokens, cached for a few seconds; the invariants are in key.h.
 *
 * What is not cached is looked up through one of two combiners: one statement for all tokens that are queued there. Known keys, whose
 * verdict has become old, have one of their own. In that of the others, after a batch with unknown tokens the next one waits a
 * moment: unknown tokens cost at most 50 statements per second.
 *
 * Buckets of a few entries, chosen by the hash, which is as good as random. In a full bucket the least useful
 * entry is evicted: first one about an unknown token, then the oldest. An unknown token evicts no known one, however old: it is what
 * tells a client that comes back after some minutes from one that is not known.
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
#define NOTE_MS         500 /* for the write of when keys were used */
#define ARENA_BYTES_MAX ((size_t)1 << 20)

typedef struct {
    KeyHash hash;
    Mono    asked_at;
    bool    expires;
    Mono    expires_at; /* by the database's clock at the lookup, continued by the monotonic clock */
    Scope   scopes;     /* SCOPE_NONE: the token is unknown */
    bool    used;
    char    name[KEY_NAME_SIZE];
    char   *domains,
        *owners; /* patterns, joined by commas; NULL: not bound. In the cache on the heap, else in an arena */
} Entry;

/* A batch of it is looked up at a time. */
typedef struct {
    KeyCache *cache;
    Combiner *combiner;
    Mono      unknown_at; /* of `unknown`: when the last batch with an unknown token ended; .ns 0: there was none */
} LookupQueue;

struct KeyCache {
    Pool       *pool;
    LookupQueue known, unknown;
    bool        has_admin;
    KeyHash     admin;
    Mutex       mutex; /* guards the rest */
    Entry       buckets[BUCKET_COUNT][BUCKET_SIZE];
};

/* In the arena of its check. */
typedef struct {
    KeyCache   *cache;
    TokenCheck *check;
    Entry       before; /* what was cached */
    Entry       asked;  /* its hash is given, the rest is the verdict */
} Lookup;

#define FOUND_COLUMNS(X, T)                   \
    X(T, I32, ord)                            \
    X(T, I64, id)                             \
    X(T, TEXT, name, scopes, domains, owners) \
    X(T, TIME, left_us)                       \
    X(T, BOOL, is_idle)
DB_ROW(Found, FOUND_COLUMNS);
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

/* The binding is copied into the arena: the entry may be replaced at any moment. */
static bool cache_get(KeyCache *cache, const KeyHash *hash, Arena *arena, Entry *ret_entry)
{
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&cache->mutex);
    const Entry                *bucket = bucket_of(cache, hash);

    for (int i = 0; i < BUCKET_SIZE; i++)
        if (bucket[i].used && hash_is_equal(&bucket[i].hash, hash)) {
            *ret_entry         = bucket[i];
            ret_entry->domains = arena_text(arena, bucket[i].domains);
            ret_entry->owners  = arena_text(arena, bucket[i].owners);
            return true;
        }
    return false;
}

/* The least is evicted first: by class, then by age. */
static int64_t entry_worth(const Entry *entry)
{
    int64_t age_ms = entry_age_ms(entry);
    int class      = !entry->used ? 0 : entry->scopes == SCOPE_NONE ? 1 : 2;

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

static void entry_clear(Entry *entry)
{
    free(entry->domains);
    free(entry->owners);
    *entry = (Entry){0};
}

static void cache_put(KeyCache *cache, const Entry *entry)
{
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&cache->mutex);
    Entry                      *victim = victim_of(bucket_of(cache, &entry->hash), &entry->hash);

    if (entry->scopes != SCOPE_NONE || victim->scopes == SCOPE_NONE || hash_is_equal(&victim->hash, &entry->hash)) {
        entry_clear(victim);
        *victim         = *entry;
        victim->domains = entry->domains ? memory_text(entry->domains) : NULL;
        victim->owners  = entry->owners ? memory_text(entry->owners) : NULL;
    }
}

/* ---- lookups ---- */

/* Bounds the statements that requests with unknown tokens cause. */
static void queue_pace(const LookupQueue *queue)
{
    int64_t ago_ms = queue->unknown_at.ns ? mono_ms_between(queue->unknown_at, clock_mono()) : UNKNOWN_MS;

    if (ago_ms < UNKNOWN_MS)
        clock_sleep_ms((int)(UNKNOWN_MS - ago_ms));
}

static ErrorCode found_take(Entry *entry, const Found *found, Arena *arena, Error *reterr)
{
    TRY(key_scopes_parse(found->scopes, &entry->scopes, reterr));
    entry->expires    = found->left_us != 0;
    entry->expires_at = mono_plus_ms(entry->asked_at, found->left_us / 1000);
    snprintf(entry->name, sizeof entry->name, "%s", found->name);
    entry->domains = arena_text(arena, found->domains);
    entry->owners  = arena_text(arena, found->owners);
    return OK;
}

static DbArg lookups_hashes(void *const *lookups, int count, Arena *arena)
{
    const char **hexes = arena_array(arena, const char *, count);

    for (int i = 0; i < count; i++) {
        const Lookup *lookup = lookups[i];
        char         *hex    = arena_array(arena, char, 2 * sizeof(KeyHash) + 1);

        hexes[i] = sodium_bin2hex(hex, 2 * sizeof(KeyHash) + 1, lookup->asked.hash.bytes, sizeof(KeyHash));
    }
    return db_texts(arena, hexes, count);
}

/* Writes when keys were used: rarely, see pawl.key_used, and best effort. */
static void found_note(Pool *pool, Arena *arena, const Found *rows, int count)
{
    TxOptions options = {.name = "key_used", .deadline = deadline_in_ms(NOTE_MS), .arena = arena, .keyed = true};
    int64_t  *ids     = arena_array(arena, int64_t, count + 1), written;
    int       idle    = 0;
    Error     error;

    for (int i = 0; i < count; i++)
        if (rows[i].is_idle)
            ids[idle++] = rows[i].id;
    if (idle > 0)
        (void)!db_call(pool, &options, sql_api_key_used, DB_ARGS(db_i64s(arena, ids, idle)), &db_i64_shape, &written,
                       &error);
}

/* A verdict of either kind fills the rest of `asked`. */
static ErrorCode lookups_run(void *context, void **lookups, int count, Deadline deadline, Error *reterr)
{
    LookupQueue              *queue = context;
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_MAX);
    TxOptions options = {.name = "key_find", .deadline = deadline, .arena = arena, .read_only = true, .prompt = true};
    Found    *rows;
    int       found;

    queue_pace(queue);
    Mono asked_at = clock_mono();
    TRY(db_call_many(queue->cache->pool, &options, sql_api_key_find, DB_ARGS(lookups_hashes(lookups, count, arena)),
                     &found_shape, &rows, &found, reterr));
    for (int i = 0; i < count; i++) {
        Entry *entry = &((Lookup *)lookups[i])->asked;

        *entry = (Entry){.hash = entry->hash, .asked_at = asked_at, .used = true};
    }
    for (int i = 0; i < found; i++) {
        const Found *row    = &rows[i];
        Lookup      *lookup = lookups[row->ord - 1];

        TRY(found_take(&lookup->asked, row, lookup->check->arena, reterr));
    }
    found_note(queue->cache->pool, arena, rows, found);
    if (queue == &queue->cache->unknown && found < count)
        queue->unknown_at = clock_mono();
    return OK;
}

static const Binding *entry_binding(const Entry *entry, Arena *arena)
{
    Binding *binding = NULL;

    if (entry->domains && entry->owners) {
        binding  = arena_array(arena, Binding, 1);
        *binding = (Binding){bound_split(arena, entry->domains), bound_split(arena, entry->owners)};
    }
    return binding;
}

/* Into the check. */
static void entry_answer(const Entry *entry, TokenCheck *check)
{
    if (entry->scopes == SCOPE_NONE || (entry->expires && !mono_before(clock_mono(), entry->expires_at))) {
        fail(&check->error, ERR_NO_TOKEN, "token is unknown, revoked or expired");
        return;
    }
    check->error  = (Error){0};
    check->scopes = entry->scopes;
    check->bound  = entry_binding(entry, check->arena);
    memcpy(check->name, entry->name, sizeof entry->name);
}

static bool entry_is_known(const Entry *entry)
{
    return entry->used && entry->scopes != SCOPE_NONE;
}

static void lookup_done(void *context, const Error *error)
{
    const Lookup *lookup = context;
    TokenCheck   *check  = lookup->check;

    if (error->code == OK) {
        cache_put(lookup->cache, &lookup->asked);
        entry_answer(&lookup->asked, check);
    } else if (entry_is_known(&lookup->before) && entry_age_ms(&lookup->before) <= FRESH_MS + GRACE_MS) {
        /* While the database is unavailable a known key stays valid; for an unknown one there is no verdict. */
        entry_answer(&lookup->before, check);
    } else {
        check->error = *error;
    }
    check->on_done(check->context);
}

static void queue_open(LookupQueue *queue, KeyCache *cache, int queue_max)
{
    queue->cache    = cache;
    queue->combiner = combiner_new(&(CombinerOptions){
        .run = lookups_run, .context = queue, .slots_max = 1, .batch_max = LOOKUPS_MAX, .queue_max = queue_max});
}

KeyCache *key_cache_new(Pool *pool, const char *admin_token)
{
    KeyCache *cache = memory_new(1, sizeof *cache);

    cache->pool = pool;
    queue_open(&cache->known, cache, /* queue_max= */ 0);
    queue_open(&cache->unknown, cache, UNKNOWN_MAX);
    if (admin_token) {
        cache->has_admin = true;
        cache->admin     = key_hash(admin_token);
    }
    mutex_init(&cache->mutex);
    return cache;
}

void key_cache_free(KeyCache *cache)
{
    combiner_free(cache->known.combiner);
    combiner_free(cache->unknown.combiner);
    mutex_done(&cache->mutex);
    for (int i = 0; i < BUCKET_COUNT * BUCKET_SIZE; i++)
        entry_clear(&cache->buckets[i / BUCKET_SIZE][i % BUCKET_SIZE]);
    free(cache);
}

bool key_cache_get(KeyCache *cache, TokenCheck *check)
{
    KeyHash hash  = key_hash(check->token);
    Entry   entry = {0};

    if (cache->has_admin && hash_is_equal(&cache->admin, &hash)) {
        check->scopes = SCOPE_ALL;
        snprintf(check->name, sizeof check->name, "%s", KEY_NAME_ADMIN);
        return true;
    }
    if (!key_token_is_ours(check->token)) {
        fail(&check->error, ERR_NO_TOKEN, "token is unknown, revoked or expired");
        return true;
    }
    if (!cache_get(cache, &hash, check->arena, &entry) || entry_age_ms(&entry) > FRESH_MS)
        return false;
    entry_answer(&entry, check);
    return true;
}

void key_cache_submit(KeyCache *cache, TokenCheck *check)
{
    Lookup *lookup = arena_array(check->arena, Lookup, 1);

    *lookup = (Lookup){.cache = cache, .check = check, .asked = {.hash = key_hash(check->token)}};
    (void)cache_get(cache, &lookup->asked.hash, check->arena, &lookup->before);
    combiner_submit(entry_is_known(&lookup->before) ? cache->known.combiner : cache->unknown.combiner, lookup,
                    check->deadline, lookup_done);
}
