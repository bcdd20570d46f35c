/*
 * match_test.c - registering matches: keys, refusals, versions, many at once.
 */
#include "rating/match.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sync.h"
#include "rating/metric.h"
#include "test/unit/rating/fixture.h"

static MatchNew match_of(RatingFixture *fixture, const char *key, int a, int b, int score_a, int score_b)
{
    return (MatchNew){
        .key       = key,
        .player    = {fixture->players[a], fixture->players[b]},
        .score     = {score_a,             score_b            },
        .author_id = fixture->players[a]
    };
}

static MatchDone registered(RatingFixture *fixture, MatchNew match)
{
    MatchDone done;
    Error     error = {0};

    assert_ok(rating_fixture_register(fixture, fixture->arena, &match, &done, &error));
    return done;
}

TEST(match_changes_both_ratings_and_keeps_their_sum)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 3);
    MatchDone                                  done;

    done = registered(fixture, match_of(fixture, "1:1", 0, 1, 3, 1));
    assert_int_equal(MATCH_REGISTERED, done.verdict);
    assert_int_equal(1516, (int)done.after[0]);
    assert_int_equal(1484, (int)done.after[1]);
    done = registered(fixture, match_of(fixture, "1:2", 1, 2, 1, 1));
    assert_int_equal(1485, (int)done.after[0]);
    assert_int_equal(1499, (int)done.after[1]);
    assert_int_equal(2, rating_fixture_count(fixture, "match"));
    assert_int_equal(4, rating_fixture_count(fixture, "history"));
    assert_int_equal(4500, database_get_i64(fixture->db, "select sum(rating)::bigint from rating.member"));
    assert_int_equal(2, database_get_i64(fixture->db, "select games from rating.member m join rating.username u using "
                                                      "(player_id) where u.name = 'p1'"));
    rating_fixture_verify(fixture);
}

TEST(match_with_the_same_key_is_one_match)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 2);
    MatchDone                                  first, again;

    first = registered(fixture, match_of(fixture, "7:42", 0, 1, 3, 1));
    for (int i = 0; i < 4; i++) {
        again = registered(fixture, match_of(fixture, "7:42", 0, 1, 3, 1));
        assert_int_equal(MATCH_REPEATED, again.verdict);
        assert_int_equal(first.id, again.id);
        assert_memory_equal(first.after, again.after, sizeof first.after);
    }
    assert_int_equal(1, rating_fixture_count(fixture, "match"));
    assert_int_equal(1516, (int)rating_fixture_rating(fixture, 0));
}

TEST(match_that_was_registered_within_a_minute_is_asked_back)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 2);
    MatchNew                                   again;

    registered(fixture, match_of(fixture, "1", 0, 1, 3, 1));
    assert_int_equal(MATCH_SAME, registered(fixture, match_of(fixture, "2", 0, 1, 3, 1)).verdict);
    assert_int_equal(MATCH_SAME, registered(fixture, match_of(fixture, "3", 1, 0, 1, 3)).verdict);
    assert_int_equal(MATCH_REGISTERED, registered(fixture, match_of(fixture, "4", 1, 0, 3, 1)).verdict);
    again              = match_of(fixture, "2", 0, 1, 3, 1);
    again.is_confirmed = true;
    assert_int_equal(MATCH_REGISTERED, registered(fixture, again).verdict);
    assert_int_equal(MATCH_REPEATED, registered(fixture, again).verdict);
    database_exec(fixture->db, "update rating.match set played_at = played_at - interval '61 seconds'");
    database_exec(fixture->db, "update rating.history set played_at = played_at - interval '61 seconds'");
    assert_int_equal(MATCH_REGISTERED, registered(fixture, match_of(fixture, "5", 0, 1, 3, 1)).verdict);
    rating_fixture_verify(fixture);
}

/* Mistake 10 of the bot that this one replaces: 0:0 as a draw, no bounds, no check of the players. */
TEST(match_refuses_what_is_no_match)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 4);
    MatchNew                                   unknown = match_of(fixture, "u", 0, 1, 1, 0);

    database_exec(fixture->db, "update rating.player set is_bot = true where name = 'Player 2'");
    database_exec(fixture->db,
                  "update rating.member m set is_present = false from rating.player p where p.id = m.player_id "
                  "and p.name = 'Player 3'");
    assert_int_equal(MATCH_NO_SCORE, registered(fixture, match_of(fixture, "a", 0, 1, 0, 0)).verdict);
    assert_int_equal(MATCH_SCORES, registered(fixture, match_of(fixture, "b", 0, 1, -1, 0)).verdict);
    assert_int_equal(MATCH_SCORES, registered(fixture, match_of(fixture, "c", 0, 1, 1, 1001)).verdict);
    assert_int_equal(MATCH_ONE_PLAYER, registered(fixture, match_of(fixture, "d", 1, 1, 1, 0)).verdict);
    assert_int_equal(MATCH_BOT, registered(fixture, match_of(fixture, "e", 0, 2, 1, 0)).verdict);
    assert_int_equal(MATCH_LEFT, registered(fixture, match_of(fixture, "f", 3, 0, 1, 0)).verdict);
    unknown.player[1] = 999999;
    assert_int_equal(MATCH_NO_MEMBER, registered(fixture, unknown).verdict);
    assert_int_equal(MATCH_REGISTERED, registered(fixture, match_of(fixture, "g", 0, 1, 2, 2)).verdict);
    rating_fixture_set(fixture, "draws", "false");
    assert_int_equal(MATCH_NO_DRAWS, registered(fixture, match_of(fixture, "h", 0, 1, 1, 1)).verdict);
    assert_int_equal(1, rating_fixture_count(fixture, "match"));
}

TEST(match_ratings_stay_within_their_bounds)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 2);

    rating_fixture_set(fixture, "k_factor", "400");
    rating_fixture_set(fixture, "start_rating", "100");
    for (int i = 0; i < 10; i++)
        rating_fixture_play(fixture, 0, 1, 5, 0);
    assert_int_equal(200, (int)rating_fixture_rating(fixture, 0));
    assert_int_equal(0, (int)rating_fixture_rating(fixture, 1));
    rating_fixture_verify(fixture);
}

TEST(match_uses_the_rules_that_its_group_had)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 4);

    rating_fixture_play(fixture, 0, 1, 3, 0);
    rating_fixture_set(fixture, "margin", "true");
    rating_fixture_play(fixture, 2, 3, 3, 0);
    assert_int_equal(1532, (int)rating_fixture_rating(fixture, 2));
    rating_fixture_set(fixture, "k_factor", "10");
    rating_fixture_set(fixture, "margin", "false");
    rating_fixture_play(fixture, 0, 1, 1, 0);
    rating_fixture_set(fixture, "system", "glicko2");
    rating_fixture_play(fixture, 2, 3, 1, 0);
    rating_fixture_play(fixture, 0, 2, 1, 2);
    rating_fixture_verify(fixture);
    rating_fixture_set(fixture, "system", "elo");
    rating_fixture_play(fixture, 0, 2, 1, 2);
    rating_fixture_verify(fixture);
}

/* ---- time away, formulas ---- */

#define DAY_S 86400

static double deviation_of(RatingFixture *fixture, int player)
{
    return (double)database_get_i64(
               fixture->db,
               arena_print(fixture->arena,
                           "select (deviation * 1000000)::bigint from rating.member where player_id = %lld",
                           (long long)fixture->players[player])) /
           1000000;
}

/* The figures are those of glicko2_test.c and of the formula in ratings.md, not of the program. */
TEST(match_under_glicko2_counts_the_days_since_the_one_before)
{
    static const struct {
        int64_t away_s;
        double  deviation; /* after the second match */
    } rows[] = {
        {0,            247.463272},
        {DAY_S - 1,    247.463272},
        {DAY_S,        247.598888},
        {100 * DAY_S,  260.572059},
        {5000 * DAY_S, 290.318959}, /* as a new player's */
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 3);

        rating_fixture_set(fixture, "system", "glicko2");
        rating_fixture_play_at(fixture, 1000, 0, 1, 2, 2);
        assert_true(fabs(deviation_of(fixture, 0) - 290.318962) < 1e-5);
        rating_fixture_play_at(fixture, 1000 + rows[i].away_s, 0, 1, 2, 2);
        if (fabs(deviation_of(fixture, 0) - rows[i].deviation) > 1e-5)
            fail_msg("row %zu: %.6f is not %.6f", i, deviation_of(fixture, 0), rows[i].deviation);
        rating_fixture_verify(fixture);
    }
}

/* Dates are those of messages, ids are in the order in which ratings were computed. */
TEST(match_that_was_sent_before_the_last_one_counts_no_days)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 2);

    rating_fixture_set(fixture, "system", "glicko2");
    rating_fixture_play_at(fixture, 50 * DAY_S, 0, 1, 2, 2);
    rating_fixture_play_at(fixture, 10 * DAY_S, 0, 1, 2, 2);
    assert_true(fabs(deviation_of(fixture, 0) - 247.463272) < 1e-5);
    rating_fixture_verify(fixture);
}

TEST(match_of_a_newer_formula_is_refused)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 2);
    MatchNew                                   match   = match_of(fixture, "new", 0, 1, 3, 1);
    MatchDone                                  done;
    Error                                      error = {0};

    rating_fixture_play(fixture, 0, 1, 1, 0);
    database_exec(fixture->db,
                  "insert into rating.rules (formula, system, k_factor, margin) values (2, 'elo', 32, false)");
    database_exec(fixture->db, "update rating.groups set rules_id = (select max(id) from rating.rules)");
    assert_code(ERR_CONFLICT, rating_fixture_register(fixture, fixture->arena, &match, &done, &error));
    assert_contains(error.text, "formula 2");
    assert_int_equal(1, rating_fixture_count(fixture, "match"));
    /* A setting keeps the formula of its group. */
    rating_fixture_set(fixture, "k_factor", "20");
    assert_int_equal(1, rating_fixture_count(fixture, "groups g join rating.rules r on r.id = g.rules_id where "
                                                      "r.formula = 2 and r.k_factor = 20"));
}

/* A rating that changes between the read and the write: the transaction is rolled back and begins again. */
typedef struct {
    RatingFixture  *fixture;
    const MatchNew *match;
    MatchDone       done;
    int             tries, disturb;
} Disturbed;

static ErrorCode disturbed_body(Tx *tx, void *context, Error *reterr)
{
    Disturbed *call = context;
    Group      group;
    MatchTry   match = {.group = &group, .match = call->match};
    MatchTry  *list  = &match;

    call->tries++;
    TRY(group_get(tx, FIXTURE_CHAT, &group, reterr));
    if (call->tries <= call->disturb) {
        /* What another transaction does between our read and our write, seen by a write that has the old version. */
        TRY(db_run(tx, "savepoint here", DB_NONE, NULL, reterr));
        TRY(db_run(tx,
                   "create or replace function rating.disturb() returns trigger language plpgsql as $$ begin return "
                   "null; end $$",
                   DB_NONE, NULL, reterr));
        TRY(db_run(
            tx, "create trigger disturb before update on rating.member for each row execute function rating.disturb()",
            DB_NONE, NULL, reterr));
    }
    TRY(matches_register(tx, &list, 1, reterr));
    call->done = match.done;
    return OK;
}

TEST(match_version_conflict_is_run_again_and_counted)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 2);
    MatchNew                                   match   = match_of(fixture, "1", 0, 1, 1, 0);
    Disturbed                                  call    = {.fixture = fixture, .match = &match, .disturb = 2};
    Error                                      error   = {0};
    int64_t                                    before  = metric_value(&rating_metrics.conflicts);
    TxOptions options = {.name = "match_register", .deadline = soon(), .arena = fixture->arena, .keyed = true};

    assert_ok(tx_run(fixture->pool, &options, disturbed_body, &call, &error));
    assert_int_equal(3, call.tries);
    assert_int_equal(before + 2, metric_value(&rating_metrics.conflicts));
    assert_int_equal(1, rating_fixture_count(fixture, "match"));
    /* After the third retry it is over, with words. */
    call.tries = 0, call.disturb = 10;
    match.key = "2", match.is_confirmed = true;
    assert_code(ERR_BUSY, tx_run(fixture->pool, &options, disturbed_body, &call, &error));
    assert_int_equal(4, call.tries);
    assert_string_equal(MATCH_CONFLICT, error.sqlstate);
    assert_int_equal(1, rating_fixture_count(fixture, "match"));
    rating_fixture_verify(fixture);
}

/* ---- at the same time ---- */

typedef struct {
    RatingFixture *fixture;
    int            number, count;
    const char    *key; /* of all; NULL: each its own */
    int            registered, repeated, busy, failed;
    char           first[512];
} Player2;

static void *play_many(void *context)
{
    Player2                  *self  = context;
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    for (int i = 0; i < self->count; i++) {
        /* Odd threads say B-A, unless all repeat one match. */
        int      a     = self->key ? 0 : self->number % 2;
        MatchNew match = {
            .key          = self->key ? self->key : arena_print(arena, "t%d:%d", self->number, i),
            .player       = {self->fixture->players[a], self->fixture->players[1 - a]},
            .score        = {i % 3,                     1                            },
            .is_confirmed = true
        };
        MatchDone done;
        Error     error = {0};
        ErrorCode code  = rating_fixture_register(self->fixture, arena, &match, &done, &error);

        self->registered += code == OK && done.verdict == MATCH_REGISTERED;
        self->repeated += code == OK && done.verdict == MATCH_REPEATED;
        self->busy += code == ERR_BUSY && strcmp(error.sqlstate, MATCH_CONFLICT) == 0;
        if (code != OK && !(code == ERR_BUSY && strcmp(error.sqlstate, MATCH_CONFLICT) == 0) && !self->failed++)
            memcpy(self->first, error.text, sizeof self->first);
        arena_reset(arena);
    }
    return NULL;
}

static void play_at_once(RatingFixture *fixture, Player2 *list, int threads, int count, const char *key)
{
    pthread_t running[16];

    for (int i = 0; i < threads; i++) {
        list[i]    = (Player2){.fixture = fixture, .number = i, .count = count, .key = key};
        running[i] = thread_start("play", play_many, &list[i]);
    }
    for (int i = 0; i < threads; i++)
        thread_join(running[i]);
}

/* PAWL_TEST_MATCHES=5000 for the full size. Mistake 8: rows locked in the order of the command deadlock between A-B and B-A. */
TEST(match_a_b_and_b_a_at_once_never_deadlock)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(4, 2);
    Player2                                    list[4];
    const char                                *size = getenv("PAWL_TEST_MATCHES");
    int count = (int)strtol(size ? size : "200", NULL, 10) / 4, sum = 0, busy = 0;

    play_at_once(fixture, list, 4, count, NULL);
    for (int i = 0; i < 4; i++) {
        if (list[i].failed)
            fail_msg("%s", list[i].first);
        sum += list[i].registered;
        busy += list[i].busy;
    }
    assert_int_equal(count * 4, sum + busy);
    assert_int_equal(sum, rating_fixture_count(fixture, "match"));
    assert_true(sum > 0);
    assert_int_equal(0, database_get_i64(fixture->db,
                                         "select deadlocks from pg_stat_database where datname = current_database()"));
    rating_fixture_verify(fixture);
}

TEST(match_with_the_same_key_five_times_at_once_is_one_match)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(5, 2);
    Player2                                    list[5];

    for (int round = 0; round < 10; round++) {
        int first = 0, again = 0;

        play_at_once(fixture, list, 5, 1, arena_print(fixture->arena, "round:%d", round));
        for (int i = 0; i < 5; i++) {
            if (list[i].failed)
                fail_msg("%s", list[i].first);
            first += list[i].registered;
            again += list[i].repeated;
        }
        assert_int_equal(1, first);
        assert_int_equal(4, again);
    }
    assert_int_equal(10, rating_fixture_count(fixture, "match"));
    rating_fixture_verify(fixture);
}
