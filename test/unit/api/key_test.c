/*
 * key_test.c - keys from the cradle to the grave, and what the cache may answer by itself.
 *
 * Time is put forward, so the pools have no janitor.
 */
#include "api/key.h"

#include <stdlib.h>
#include <string.h>

#include "base/sync.h"
#include "sql.h"
#include "test/harness/database.h"
#include "test/harness/proxy.h"
#include "test/harness/server.h"
#include "test/harness/shifted_clock.h"
#include "test/harness/test.h"

static Pool *pool_open(const char *url)
{
    Pool *pool  = NULL;
    Error error = {0};

    assert_ok(
        pool_new(&(PoolOptions){.conninfo = url, .size_min = 1, .size_max = 2, .no_janitor = true}, &pool, &error));
    return pool;
}

static Deadline soon(void)
{
    return deadline_in_ms(60000);
}

typedef struct {
    char text[KEY_TOKEN_SIZE];
} Token;

static Token key_make(Pool *pool, const char *name, Scope scopes)
{
    Token   token = {""};
    int64_t id    = 0;
    Error   error = {0};

    assert_ok(
        key_create(pool, soon(), &(KeyNew){.name = name, .scopes = scopes, .ttl_ms = 0}, token.text, &id, &error));
    assert_true(id > 0);
    return token;
}

static void key_drop(Pool *pool, const char *id_or_name)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    KeyName                   key;
    Error                     error = {0};

    assert_ok(key_revoke(pool, soon(), arena, id_or_name, NULL, NULL, &key, &error));
}

/* What the cache answers: the code, and on OK the scopes and the name. */
typedef struct {
    ErrorCode code;
    Scope     scopes;
    char      name[KEY_NAME_SIZE];
} Answer;

/* A lookup, which ends on a thread of the cache. */
typedef struct {
    Token      token;
    TokenCheck check;
    Mutex      mutex;
    Cond       changed;
    bool       done;
} Asked;

static void asked_done(void *context)
{
    Asked                      *asked = context;
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&asked->mutex);

    asked->done = true;
    cond_signal(&asked->changed);
}

static void asked_begin(Asked *asked, const char *token, int deadline_ms, Arena *arena)
{
    *asked = (Asked){
        .check = {.deadline = deadline_in_ms(deadline_ms), .arena = arena, .on_done = asked_done, .context = asked}
    };
    snprintf(asked->token.text, sizeof asked->token.text, "%s", token);
    asked->check.token = asked->token.text;
    mutex_init(&asked->mutex);
    cond_init(&asked->changed);
}

static void asked_end(Asked *asked)
{
    mutex_lock(&asked->mutex);
    while (!asked->done)
        cond_wait(&asked->changed, &asked->mutex, deadline_never());
    mutex_unlock(&asked->mutex);
    cond_done(&asked->changed);
    mutex_done(&asked->mutex);
    assert_null(strstr(asked->check.error.text, "pawl_"));
}

static Answer ask(KeyCache *cache, const char *token, bool try_cache)
{
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    Asked                    *asked  = arena_array(arena, Asked, 1);
    Answer                    answer = {.code = ERR_BUSY};

    asked_begin(asked, token, 2000, arena);
    if (key_cache_get(cache, &asked->check))
        asked->done = true;
    else if (try_cache)
        return answer;
    else
        key_cache_submit(cache, &asked->check);
    asked_end(asked);
    answer = (Answer){.code = asked->check.error.code, .scopes = asked->check.scopes};
    snprintf(answer.name, sizeof answer.name, "%s", asked->check.name);
    return answer;
}

TEST(key_token_is_long_and_never_the_same)
{
    char one[KEY_TOKEN_SIZE], two[KEY_TOKEN_SIZE];

    key_token_new(one);
    key_token_new(two);
    assert_int_equal(0, strncmp(one, "pawl_", 5));
    assert_int_equal(48, strlen(one));
    assert_int_equal(48, 5 + strspn(one + 5, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"));
    assert_string_not_equal(one, two);
}

TEST(key_scopes_are_parsed_or_refused)
{
    Scope scopes = SCOPE_NONE;
    Error error  = {0};

    assert_ok(key_scopes_parse("read,wallet", &scopes, &error));
    assert_int_equal(SCOPE_READ | SCOPE_POST | SCOPE_WALLETS, scopes);
    assert_ok(key_scopes_parse("command,mint", &scopes, &error));
    assert_int_equal(SCOPE_SEND | SCOPE_WORK | SCOPE_OPERATE | SCOPE_MINT, scopes);
    assert_ok(key_scopes_parse("admin", &scopes, &error));
    assert_int_equal(SCOPE_ADMIN, scopes);
    assert_code(ERR_INVALID, key_scopes_parse("", &scopes, &error));
    assert_code(ERR_INVALID, key_scopes_parse("read,", &scopes, &error));
    assert_code(ERR_INVALID, key_scopes_parse("reader", &scopes, &error));
    assert_contains(
        error.text,
        "scope must be read, send, work, process, post, mint, wallets, operate, rating or admin, or one of the "
        "groups command, wallet and treasury, got \"reader\"");
    assert_int_equal(SCOPE_ADMIN, scopes);
}

TEST(key_is_created_found_listed_and_revoked)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(pool_free) Pool             *pool  = pool_open(database_url(db));
    scoped(arena_free) Arena           *arena = arena_new(ARENA_BYTES_DEFAULT);
    scoped(key_cache_free) KeyCache    *cache = key_cache_new(pool, NULL);
    Token                               token = key_make(pool, "grafana", SCOPE_READ | SCOPE_RATING);
    Answer                              answer;
    Key                                *list;
    KeyName                             name;
    int                                 count;
    Error                               error = {0};

    answer = ask(cache, token.text, false);
    assert_int_equal(OK, answer.code);
    assert_int_equal(SCOPE_READ | SCOPE_RATING, answer.scopes);
    assert_string_equal("grafana", answer.name);

    assert_ok(key_list(pool, soon(), arena, KEY_LIST_MAX, 0, &list, &count, &error));
    assert_int_equal(1, count);
    assert_string_equal("read,rating", list[0].scopes);
    assert_true(list[0].created_at > 0 && list[0].expires_at == 0 && list[0].revoked_at == 0);

    assert_ok(
        key_revoke(pool, soon(), arena, arena_print(arena, "%lld", (long long)list[0].id), NULL, NULL, &name, &error));
    assert_string_equal("grafana", name.name);
    assert_code(ERR_NOT_FOUND, key_revoke(pool, soon(), arena, "grafana", NULL, NULL, &name, &error));
    assert_string_equal("key \"grafana\" not found: give the name or id of a key that is not revoked", error.text);
    assert_ok(key_list(pool, soon(), arena, KEY_LIST_MAX, 0, &list, &count, &error));
    assert_true(list[0].revoked_at > 0);
}

TEST(key_database_holds_no_token)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(pool_free) Pool             *pool  = pool_open(database_url(db));
    scoped(arena_free) Arena           *arena = arena_new(ARENA_BYTES_DEFAULT);
    Token                               token = key_make(pool, "a", SCOPE_READ);
    const char                         *row   = database_get_text(db, "select k::text from pawl.api_key k", arena);

    assert_null(strstr(row, token.text + 5));
    assert_int_equal(1, database_get_i64(db, arena_print(arena,
                                                         "select count(*) from pawl.api_key where hash = sha256('%s')",
                                                         token.text)));
}

TEST(key_name_is_taken_while_it_lives)
{
    scoped(database_free) TestDatabase *db   = database_new();
    scoped(pool_free) Pool             *pool = pool_open(database_url(db));
    Token                               token;
    int64_t                             id    = 0;
    Error                               error = {0};

    (void)key_make(pool, "ci", SCOPE_READ);
    assert_code(ERR_CONFLICT, key_create(pool, soon(), &(KeyNew){.name = "ci", .scopes = SCOPE_READ, .ttl_ms = 0},
                                         token.text, &id, &error));
    assert_contains(error.text, "key \"ci\" exists already");
    key_drop(pool, "ci");
    (void)key_make(pool, "ci", SCOPE_READ);
}

TEST(key_name_is_free_once_its_key_has_expired)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(pool_free) Pool             *pool  = pool_open(database_url(db));
    scoped(key_cache_free) KeyCache    *cache = key_cache_new(pool, NULL);
    Token                               old   = key_make(pool, "ci", SCOPE_READ);

    (void)key_make(pool, "other", SCOPE_READ);
    database_exec(db, "update pawl.api_key set expires_at = pawl.now()");
    Token new = key_make(pool, "ci", SCOPE_READ);
    assert_int_equal(OK, ask(cache, new.text, false).code);
    assert_int_equal(ERR_NO_TOKEN, ask(cache, old.text, false).code);
    assert_int_equal(2, database_get_i64(db, "select count(*) from pawl.api_key where revoked_at is null"));
}

TEST(key_create_in_doubt_says_what_can_be_done)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    scoped(pool_free) Pool             *pool  = pool_open(proxy_url(proxy));
    Token                               token = {""};
    int64_t                             id    = 0;
    Error                               error = {0};

    proxy_cut_on(proxy, "key_create", PROXY_CUT_ANSWERED, 1);
    assert_code(ERR_UNKNOWN, key_create(pool, soon(), &(KeyNew){.name = "ci", .scopes = SCOPE_READ, .ttl_ms = 0},
                                        token.text, &id, &error));
    assert_string_equal(
        "key \"ci\" may have been created, and its token is lost: list the keys, revoke it if it is there, "
        "create it again",
        error.text);
    assert_string_equal("", token.text);
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.api_key"));
    key_drop(pool, "ci");
    (void)key_make(pool, "ci", SCOPE_READ);
}

TEST(key_create_refuses_bad_names_scopes_and_times)
{
    static const char *const            names[] = {"",         "7",
                                                   "Big",      "has space",
                                                   "-dash",    "quote'",
                                                   "\xc3\xa4", "a234567890123456789012345678901234567890123456789012345678901234"};
    scoped(database_free) TestDatabase *db      = database_new();
    scoped(pool_free) Pool             *pool    = pool_open(database_url(db));
    Token                               token;
    int64_t                             id    = 0;
    Error                               error = {0};

    for (size_t i = 0; i < COUNT(names); i++)
        assert_code(ERR_INVALID,
                    key_create(pool, soon(), &(KeyNew){.name = names[i], .scopes = SCOPE_READ, .ttl_ms = 0}, token.text,
                               &id, &error));
    assert_code(ERR_INVALID, key_create(pool, soon(), &(KeyNew){.name = "a", .scopes = SCOPE_NONE, .ttl_ms = 0},
                                        token.text, &id, &error));
    assert_code(ERR_INVALID, key_create(pool, soon(), &(KeyNew){.name = "a", .scopes = SCOPE_READ, .ttl_ms = -1},
                                        token.text, &id, &error));
    assert_int_equal(0, database_get_i64(db, "select count(*) from pawl.api_key"));
}

TEST(key_with_a_time_to_live_expires)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(pool_free) Pool             *pool  = pool_open(database_url(db));
    scoped(key_cache_free) KeyCache    *cache = key_cache_new(pool, NULL);
    Token                               token;
    int64_t                             id    = 0;
    Error                               error = {0};

    assert_ok(key_create(pool, soon(), &(KeyNew){.name = "a", .scopes = SCOPE_READ, .ttl_ms = 3600 * 1000}, token.text,
                         &id, &error));
    assert_int_equal(1, database_get_i64(db, "select count(*) from pawl.api_key"
                                             " where expires_at = created_at + interval '1 h'"));
    assert_int_equal(OK, ask(cache, token.text, false).code);
    database_exec(db, "update pawl.api_key set expires_at = pawl.now() - interval '1 s'");
    scoped(key_cache_free) KeyCache *empty = key_cache_new(pool, NULL);
    assert_int_equal(ERR_NO_TOKEN, ask(empty, token.text, false).code);
}

TEST(key_cached_answer_ends_with_the_key)
{
    scoped_shifted_clock int            clock = shifted_clock_install();
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(pool_free) Pool             *pool  = pool_open(database_url(db));
    scoped(key_cache_free) KeyCache    *cache = key_cache_new(pool, NULL);
    Token                               token = key_make(pool, "a", SCOPE_READ);

    database_exec(db, "update pawl.api_key set expires_at = pawl.now() + interval '2 s'");
    assert_int_equal(OK, ask(cache, token.text, false).code);
    shifted_clock_advance_ms(2100);
    assert_int_equal(ERR_NO_TOKEN, ask(cache, token.text, true).code);
}

/* The database's clock decides: a pod whose own is an hour ahead or behind neither refuses nor honours too long. */
TEST(key_expiry_does_not_follow_the_clock_of_the_pod)
{
    scoped_shifted_clock int            clock = shifted_clock_install();
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(pool_free) Pool             *pool  = pool_open(database_url(db));
    scoped(key_cache_free) KeyCache    *cache = key_cache_new(pool, NULL);
    Token                               token = key_make(pool, "shop", SCOPE_READ);

    database_exec(db, "update pawl.api_key set expires_at = pawl.now() + interval '30 min'");
    shifted_clock_set_wall_ms(3600000);
    assert_int_equal(OK, ask(cache, token.text, false).code);
    assert_int_equal(OK, ask(cache, token.text, true).code); /* from memory */
    shifted_clock_set_wall_ms(-3600000);
    shifted_clock_advance_ms(10000); /* asked again */
    database_exec(db, "update pawl.api_key set expires_at = pawl.now() + interval '2 s'");
    assert_int_equal(OK, ask(cache, token.text, false).code);
    shifted_clock_advance_ms(2100);
    assert_int_equal(ERR_NO_TOKEN, ask(cache, token.text, false).code);
}

TEST(key_cache_remembers_for_five_seconds)
{
    scoped_shifted_clock int            clock   = shifted_clock_install();
    scoped(database_free) TestDatabase *db      = database_new();
    scoped(pool_free) Pool             *pool    = pool_open(database_url(db));
    scoped(key_cache_free) KeyCache    *cache   = key_cache_new(pool, NULL);
    Token                               token   = key_make(pool, "a", SCOPE_READ);
    Token                               unknown = {""};

    key_token_new(unknown.text);
    assert_int_equal(ERR_BUSY, ask(cache, token.text, true).code);
    assert_int_equal(OK, ask(cache, token.text, false).code);
    assert_int_equal(OK, ask(cache, token.text, true).code);
    assert_int_equal(ERR_BUSY, ask(cache, unknown.text, true).code);
    assert_int_equal(ERR_NO_TOKEN, ask(cache, unknown.text, false).code);
    assert_int_equal(ERR_NO_TOKEN, ask(cache, unknown.text, true).code);
    key_drop(pool, "a");
    shifted_clock_advance_ms(2500);
    assert_int_equal(OK, ask(cache, token.text, false).code);
    shifted_clock_advance_ms(2600);
    assert_int_equal(ERR_BUSY, ask(cache, token.text, true).code);
    assert_int_equal(ERR_NO_TOKEN, ask(cache, token.text, false).code);
}

static void strangers_begin(KeyCache *cache, Asked *list, int count, Arena *arena)
{
    Token unknown;

    for (int i = 0; i < count; i++) {
        key_token_new(unknown.text);
        asked_begin(&list[i], unknown.text, 3600000, arena);
        assert_false(key_cache_get(cache, &list[i].check));
        key_cache_submit(cache, &list[i].check);
    }
}

/* Returns how many were refused without a lookup. */
static int strangers_end(Asked *list, int count)
{
    int refused = 0;

    for (int i = 0; i < count; i++) {
        asked_end(&list[i]);
        assert_true(list[i].check.error.code == ERR_NO_TOKEN || list[i].check.error.code == ERR_BUSY);
        refused += list[i].check.error.code == ERR_BUSY;
    }
    return refused;
}

/* A lookup of an unknown token waits until advisory lock 1 is free. */
#define GATE                                                                                                    \
    "alter function pawl.key_find(bytea) rename to key_find_all;"                                               \
    "create function pawl.key_find(p_hash bytea)"                                                               \
    " returns table (id bigint, name text, scopes text, expires_at bigint, domains text, owners text, is_idle " \
    "boolean)"                                                                                                  \
    " language plpgsql as $$ begin return query select * from pawl.key_find_all(p_hash);"                       \
    " if not found then perform pg_advisory_xact_lock(1); end if; end $$;"                                      \
    "select pg_advisory_lock(1)"

/* Also a client that comes back after ten minutes: a flood has not pushed it out of the cache, and it waits for no stranger. */
TEST(key_cache_looks_known_keys_up_beside_a_flood_of_unknown_ones)
{
    enum { FLOOD = 500, STRANGERS = UNKNOWN_MAX + FLOOD + 1 };
    scoped_shifted_clock int            clock     = shifted_clock_install();
    scoped(database_free) TestDatabase *db        = database_new();
    scoped(pool_free) Pool             *pool      = pool_open(database_url(db));
    scoped(key_cache_free) KeyCache    *cache     = key_cache_new(pool, NULL);
    scoped(arena_free) Arena           *arena     = arena_new(ARENA_BYTES_DEFAULT);
    Asked                              *strangers = arena_array(arena, Asked, STRANGERS);
    Token                               token     = key_make(pool, "a", SCOPE_READ);
    Answer                              answer;

    assert_int_equal(OK, ask(cache, token.text, false).code);
    for (int i = 0; i < 2 * KEY_CACHE_SIZE; i += FLOOD) {
        strangers_begin(cache, strangers, FLOOD, arena);
        assert_int_equal(0, strangers_end(strangers, FLOOD));
    }
    database_exec(db, GATE);
    database_exec(db, "update pawl.api_key set scopes = '{post}'"); /* what only a lookup finds out */
    strangers_begin(cache, strangers, STRANGERS, arena);
    shifted_clock_advance_ms(600000);
    assert_int_equal(ERR_BUSY, ask(cache, token.text, true).code);
    answer = ask(cache, token.text, false);
    assert_int_equal(OK, answer.code);
    assert_int_equal(SCOPE_POST, answer.scopes);
    database_exec(db, "select pg_advisory_unlock(1)");
    assert_true(strangers_end(strangers, STRANGERS) > 0);
}

/* Strangers may ask as often as they like. */
TEST(key_cache_asks_about_unknown_tokens_every_20_ms_at_most)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(pool_free) Pool             *pool  = pool_open(database_url(db));
    scoped(key_cache_free) KeyCache    *cache = key_cache_new(pool, NULL);
    Token                               unknown;
    Mono                                start = clock_mono();

    for (int i = 0; i < 51; i++) {
        key_token_new(unknown.text);
        assert_int_equal(ERR_NO_TOKEN, ask(cache, unknown.text, false).code);
    }
    assert_true(mono_ms_between(start, clock_mono()) >= 1000);
}

TEST(key_admin_token_needs_no_database)
{
    scoped(pool_free) Pool          *pool  = pool_open("host=/nonexistent dbname=nothing");
    scoped(key_cache_free) KeyCache *cache = key_cache_new(pool, "a secret of the operator's own");
    Answer                           answer;
    Token                            unknown;

    answer = ask(cache, "a secret of the operator's own", true);
    assert_int_equal(OK, answer.code);
    assert_int_equal(SCOPE_ALL, answer.scopes);
    assert_string_equal("admin", answer.name);
    assert_int_equal(ERR_NO_TOKEN, ask(cache, "another", true).code);
    assert_int_equal(ERR_NO_TOKEN, ask(cache, "", false).code);
    key_token_new(unknown.text);
    assert_int_equal(ERR_UNAVAILABLE, ask(cache, unknown.text, false).code);
}

TEST(key_known_before_an_outage_is_honoured_for_a_minute)
{
    scoped_shifted_clock int             clock  = shifted_clock_install();
    scoped(test_server_free) TestServer *server = test_server_new((TestServerOptions){.unix_url = true});
    scoped(pool_free) Pool              *pool   = pool_open(test_server_url(server, "postgres"));
    scoped(key_cache_free) KeyCache     *cache  = key_cache_new(pool, NULL);
    Token                                token, unknown;
    int                                  applied;
    Error                                error = {0};

    assert_ok(migrate_run(pool, &schema_embedded, soon(), &applied, &error));
    token = key_make(pool, "a", SCOPE_READ);
    key_token_new(unknown.text);
    assert_int_equal(OK, ask(cache, token.text, false).code);
    assert_int_equal(ERR_NO_TOKEN, ask(cache, unknown.text, false).code);
    test_server_stop(server, "immediate");
    shifted_clock_advance_ms(10000);
    assert_int_equal(OK, ask(cache, token.text, false).code);
    assert_int_equal(ERR_UNAVAILABLE, ask(cache, unknown.text, false).code);
    shifted_clock_advance_ms(60000);
    assert_int_equal(ERR_UNAVAILABLE, ask(cache, token.text, false).code);
}

TEST(key_scopes_are_those_of_the_table)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(arena_free) Arena           *arena = arena_new(ARENA_BYTES_DEFAULT);
    const char                         *check =
        database_get_text(db,
                          "select pg_get_constraintdef(oid) from pg_constraint where conname = 'api_key_scopes_check'",
                          arena);
    char *expected = arena_text(arena, "ARRAY[");

    for (int i = 0; i < SCOPE_COUNT; i++)
        expected = arena_print(arena, "%s%s'%s'::text", expected, i ? ", " : "", scope_names[i]);
    assert_contains(check, arena_print(arena, "%s]", expected));
}
