/*
 * fixture.c - see fixture.h.
 */
#include "test/unit/rating/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "rating/player.h"
#include "rating/verify.h"

Deadline soon(void)
{
    return deadline_in_ms(60000);
}

static ErrorCode members_body(Tx *tx, void *context, Error *reterr)
{
    RatingFixture *fixture = context;
    PlayerSeen     seen[FIXTURE_PLAYERS];

    TRY(group_open(tx, FIXTURE_CHAT, "chess", "en", &fixture->group, reterr));
    for (int i = 0; i < fixture->count; i++)
        seen[i] = (PlayerSeen){.user_id  = FIXTURE_USER(i),
                               .name     = arena_print(tx->arena, "Player %d", i),
                               .username = arena_print(tx->arena, "p%d", i),
                               .sight    = PLAYER_PRESENT};
    return players_seen(tx, fixture->group.id, 1700000000, seen, fixture->count, fixture->players, reterr);
}

RatingFixture *rating_fixture_new(int pool_size, int players)
{
    RatingFixture *fixture = calloc(1, sizeof *fixture);
    Error          error   = {0};
    TxOptions      options = {.name = "fixture", .deadline = soon(), .keyed = true};

    assert_non_null(fixture);
    assert_in_range(players, 1, FIXTURE_PLAYERS);
    fixture->db    = database_new();
    fixture->arena = arena_new((size_t)256 << 20);
    fixture->count = players;
    assert_ok(
        pool_new(&(PoolOptions){.conninfo = database_url(fixture->db), .size_max = pool_size}, &fixture->pool, &error));
    options.arena = fixture->arena;
    assert_ok(tx_run(fixture->pool, &options, members_body, fixture, &error));
    return fixture;
}

void rating_fixture_free(RatingFixture *fixture)
{
    pool_free(fixture->pool);
    database_free(fixture->db);
    arena_free(fixture->arena);
    free(fixture);
}

typedef struct {
    RatingFixture  *fixture;
    const MatchNew *match;
    const UndoAsk  *ask;
    MatchDone       match_done;
    UndoDone        undo_done;
} Call;

static ErrorCode register_body(Tx *tx, void *context, Error *reterr)
{
    Call     *call = context;
    Group     group;
    MatchTry  match = {.group = &group, .match = call->match};
    MatchTry *list  = &match;

    TRY(group_get(tx, FIXTURE_CHAT, &group, reterr));
    TRY(matches_register(tx, &list, 1, reterr));
    call->match_done = match.done;
    return OK;
}

static ErrorCode undo_body(Tx *tx, void *context, Error *reterr)
{
    Call *call = context;
    Group group;

    TRY(group_get(tx, FIXTURE_CHAT, &group, reterr));
    return undo_run(tx, &group, call->ask, &call->undo_done, reterr);
}

ErrorCode rating_fixture_register(RatingFixture *fixture, Arena *arena, const MatchNew *match, MatchDone *ret_done,
                                  Error *reterr)
{
    Call      call    = {.fixture = fixture, .match = match};
    TxOptions options = {.name = "match_register", .deadline = soon(), .arena = arena, .keyed = true};

    TRY(tx_run(fixture->pool, &options, register_body, &call, reterr));
    *ret_done = call.match_done;
    return OK;
}

ErrorCode rating_fixture_undo(RatingFixture *fixture, Arena *arena, const UndoAsk *ask, UndoDone *ret_done,
                              Error *reterr)
{
    Call      call    = {.fixture = fixture, .ask = ask};
    TxOptions options = {.name = "match_undo", .deadline = soon(), .arena = arena, .keyed = true};

    TRY(tx_run(fixture->pool, &options, undo_body, &call, reterr));
    *ret_done = call.undo_done;
    return OK;
}

int64_t rating_fixture_play_at(RatingFixture *fixture, int64_t date_s, int a, int b, int score_a, int score_b)
{
    static int number;
    MatchNew   match = {
          .key          = arena_print(fixture->arena, "play:%d", ++number),
          .player       = {fixture->players[a], fixture->players[b]},
          .score        = {score_a,             score_b            },
          .author_id    = fixture->players[a],
          .date_s       = date_s,
          .is_confirmed = true
    };
    MatchDone done;
    Error     error = {0};

    assert_ok(rating_fixture_register(fixture, fixture->arena, &match, &done, &error));
    assert_int_equal(MATCH_REGISTERED, done.verdict);
    return done.id;
}

int64_t rating_fixture_play(RatingFixture *fixture, int a, int b, int score_a, int score_b)
{
    return rating_fixture_play_at(fixture, 0, a, b, score_a, score_b);
}

double rating_fixture_rating(RatingFixture *fixture, int player)
{
    return (double)database_get_i64(
               fixture->db, arena_print(fixture->arena,
                                        "select (rating * 1000000)::bigint from rating.member where player_id = %lld",
                                        (long long)fixture->players[player])) /
           1000000;
}

typedef struct {
    RatingFixture *fixture;
    const char    *name, *value;
} Set;

static ErrorCode set_body(Tx *tx, void *context, Error *reterr)
{
    Set *set = context;

    TRY(group_set(tx, set->fixture->group.id, set->name, set->value, reterr));
    return group_get(tx, FIXTURE_CHAT, &set->fixture->group, reterr);
}

void rating_fixture_set(RatingFixture *fixture, const char *name, const char *value)
{
    Set       set     = {fixture, name, value};
    Error     error   = {0};
    TxOptions options = {.name = "set", .deadline = soon(), .arena = fixture->arena, .keyed = true};

    assert_ok(tx_run(fixture->pool, &options, set_body, &set, &error));
}

void rating_fixture_verify(RatingFixture *fixture)
{
    RatingReport *report = arena_alloc(fixture->arena, sizeof *report);
    Error         error  = {0};

    assert_ok(rating_verify(fixture->pool, &(RatingVerifyOptions){0}, 60000, fixture->arena, report, &error));
    if (report->findings.count > 0)
        fail_msg("%s: %s", report->findings.rows[0].which, report->findings.rows[0].sentence);
}

int64_t rating_fixture_count(RatingFixture *fixture, const char *from)
{
    return database_get_i64(fixture->db, arena_print(fixture->arena, "select count(*) from rating.%s", from));
}
