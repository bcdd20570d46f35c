/*
 * undo_test.c - undo: permission, keys, order, and ratings that are those of a replay. The model here shares no code with the program.
 */
#include "rating/undo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sync.h"
#include "rating/glicko2.h"
#include "test/unit/rating/fixture.h"

static UndoDone undone(RatingFixture *fixture, UndoAsk ask)
{
    UndoDone done;
    Error    error = {0};

    assert_ok(rating_fixture_undo(fixture, fixture->arena, &ask, &done, &error));
    return done;
}

/* ratings.md: undo by subtracting the change would give 1514, 1517, 1469. */
TEST(undo_gives_what_a_replay_of_the_rest_gives)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 3);
    int64_t                                    first   = rating_fixture_play(fixture, 0, 1, 1, 0);
    UndoDone                                   done;

    rating_fixture_play(fixture, 1, 2, 1, 0);
    rating_fixture_play(fixture, 0, 2, 1, 0);
    assert_int_equal(1530, (int)rating_fixture_rating(fixture, 0));
    assert_int_equal(1501, (int)rating_fixture_rating(fixture, 1));
    done = undone(fixture, (UndoAsk){.key = "u", .match_id = first, .player_id = fixture->players[0]});
    assert_int_equal(UNDO_DONE, done.verdict);
    assert_int_equal(2, done.replayed);
    assert_int_equal(2, done.changes_all); /* 1469 stays 1469 */
    assert_int_equal(1530, (int)done.changes[0].before);
    assert_int_equal(1515, (int)rating_fixture_rating(fixture, 0));
    assert_int_equal(1516, (int)rating_fixture_rating(fixture, 1));
    assert_int_equal(1469, (int)rating_fixture_rating(fixture, 2));
    rating_fixture_verify(fixture);
}

/* Mistake 6: after one undo the "last match" was the undone one, so that a second undo always failed. */
TEST(undo_again_takes_the_match_before)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 2);
    int64_t                                    ids[3];
    char                                       key[] = "k0";

    for (int i = 0; i < 3; i++)
        ids[i] = rating_fixture_play(fixture, 0, 1, 1, 0);
    for (int i = 2; i >= 0; i--, key[1]++) {
        UndoDone done = undone(fixture, (UndoAsk){.key = key, .player_id = fixture->players[1]});

        assert_int_equal(UNDO_DONE, done.verdict);
        assert_int_equal(ids[i], done.match.id);
        rating_fixture_verify(fixture);
    }
    assert_int_equal(UNDO_NOTHING, undone(fixture, (UndoAsk){.key = "x", .player_id = fixture->players[1]}).verdict);
    assert_int_equal(1500, (int)rating_fixture_rating(fixture, 0));
    assert_int_equal(0, rating_fixture_count(fixture, "member where games > 0 or last_match_id is not null"));
}

TEST(undo_with_the_same_key_takes_one_match)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 2);
    UndoAsk                                    ask     = {.key = "9:1", .player_id = fixture->players[0]};
    int64_t                                    last;

    rating_fixture_play(fixture, 0, 1, 1, 0);
    last = rating_fixture_play(fixture, 0, 1, 1, 0);
    assert_int_equal(UNDO_DONE, undone(fixture, ask).verdict);
    for (int i = 0; i < 3; i++) {
        UndoDone again = undone(fixture, ask);

        assert_int_equal(UNDO_REPEATED, again.verdict);
        assert_int_equal(last, again.match.id);
    }
    assert_int_equal(1, rating_fixture_count(fixture, "match where undone_at is null"));
    /* Another key on the same match, as a second press of its button: refused. */
    assert_int_equal(
        UNDO_ALREADY,
        undone(fixture, (UndoAsk){.key = "9:2", .match_id = last, .player_id = fixture->players[0]}).verdict);
    assert_int_equal(1, rating_fixture_count(fixture, "match where undone_at is null"));
}

/* Only the last condition can see that a rating changed after the versions were read and before it is written. */
TEST(undo_writes_no_rating_that_changed_meanwhile)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 3);
    int64_t                                    match   = rating_fixture_play(fixture, 0, 1, 1, 0);
    char                                       sql[600];
    static const struct {
        int         stale; /* which version is an old one */
        const char *sqlstate;
    } rows[] = {
        {0, "RT001"},
        {1, "RT001"},
        {2, "done" }
    };

    database_exec(fixture->db, "create table seen (sqlstate text)");
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(
            sql, sizeof sql,
            "do $$ begin perform rating.undo_begin(%lld, %lld); "
            "perform rating.undo_end(%lld, 'k', %lld, null, 0, '{}', array[%lld, %lld], array[%d, %d], array[1500, "
            "1500], "
            "array[350, 350], array[0.06, 0.06]); raise exception 'done'; "
            "exception when others then insert into seen values (case sqlstate when 'P0001' then sqlerrm else sqlstate "
            "end); end $$",
            (long long)fixture->group.id, (long long)match, (long long)fixture->group.id, (long long)match,
            (long long)fixture->players[0], (long long)fixture->players[1], rows[i].stale == 0 ? 1 : 2,
            rows[i].stale == 1 ? 1 : 2);
        database_exec(fixture->db, "truncate seen");
        database_exec(fixture->db, sql);
        assert_string_equal(rows[i].sqlstate,
                            database_get_text(fixture->db, "select sqlstate from seen", fixture->arena));
    }
}

/* The clock is the database's, and stands still here. */
TEST(undo_is_in_time_until_the_last_second)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 2);
    UndoAsk                                    ask     = {.key = "a", .player_id = fixture->players[0]};

    database_exec(fixture->db, "create or replace function pawl.now() returns timestamptz language sql stable as "
                               "$$ select '2026-11-18 12:00:00+00'::timestamptz $$");
    rating_fixture_play(fixture, 0, 1, 1, 0);
    database_exec(fixture->db, "update rating.match set played_at = pawl.now() - interval '24 hours 1 second'");
    assert_int_equal(UNDO_TOO_LATE, undone(fixture, ask).verdict);
    database_exec(fixture->db, "update rating.match set played_at = pawl.now() - interval '24 hours'");
    assert_int_equal(UNDO_DONE, undone(fixture, ask).verdict);
}

TEST(undo_is_for_players_within_a_day_and_for_admins)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 3);

    rating_fixture_play(fixture, 0, 1, 1, 0);
    assert_int_equal(UNDO_NOT_YOURS, undone(fixture, (UndoAsk){.key = "a", .player_id = fixture->players[2]}).verdict);
    assert_int_equal(UNDO_NOT_YOURS, undone(fixture, (UndoAsk){.key = "a", .player_id = 0}).verdict);
    assert_true(
        undone(fixture, (UndoAsk){.key = "a", .player_id = fixture->players[2], .admin = ADMIN_UNKNOWN}).is_unsure);
    database_exec(fixture->db, "update rating.match set played_at = now() - interval '24 hours 1 minute'");
    assert_int_equal(UNDO_TOO_LATE, undone(fixture, (UndoAsk){.key = "a", .player_id = fixture->players[0]}).verdict);
    rating_fixture_set(fixture, "undo_hours", "48");
    assert_int_equal(UNDO_DONE, undone(fixture, (UndoAsk){.key = "a", .player_id = fixture->players[0]}).verdict);
    rating_fixture_play(fixture, 0, 1, 1, 0);
    database_exec(fixture->db, "update rating.match set played_at = now() - interval '400 days'");
    assert_int_equal(
        UNDO_DONE,
        undone(fixture, (UndoAsk){.key = "b", .player_id = fixture->players[2], .admin = ADMIN_YES}).verdict);
    rating_fixture_play(fixture, 0, 1, 1, 0);
    assert_int_equal(UNDO_DONE, undone(fixture, (UndoAsk){.key = "c", .player_id = 0, .admin = ADMIN_YES}).verdict);
    rating_fixture_set(fixture, "undo_hours", "0");
    rating_fixture_play(fixture, 0, 1, 1, 0);
    database_exec(fixture->db,
                  "update rating.match set played_at = now() - interval '5 seconds' where undone_at is null");
    assert_int_equal(UNDO_TOO_LATE, undone(fixture, (UndoAsk){.key = "d", .player_id = fixture->players[0]}).verdict);
}

TEST(undo_raises_the_version_of_every_rating_it_computes)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 6);
    int64_t                                    first   = rating_fixture_play(fixture, 0, 1, 1, 0), before;

    rating_fixture_play(fixture, 4, 5, 1, 0); /* not touched */
    rating_fixture_play(fixture, 1, 2, 1, 0);
    rating_fixture_play(fixture, 2, 3, 1, 0);
    before = database_get_i64(fixture->db, "select sum(version)::bigint from rating.member");
    assert_int_equal(3, undone(fixture, (UndoAsk){.key = "u", .match_id = first, .admin = ADMIN_YES}).changes_all);
    /* Of the four that were computed again one is the same. */
    assert_int_equal(before + 4, database_get_i64(fixture->db, "select sum(version)::bigint from rating.member"));
    assert_int_equal(2, rating_fixture_count(fixture, "member where version = 2 and games = 1"));
    rating_fixture_verify(fixture);
}

TEST(undo_of_a_match_with_too_many_after_it_is_refused)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 2);
    int64_t                                    first   = rating_fixture_play(fixture, 0, 1, 1, 0);

    database_exec(fixture->db,
                  "insert into rating.match (group_id, key, player_a, player_b, score_a, score_b, rules_id, played_at) "
                  "select group_id, 'n' || i, player_a, player_b, 1, 0, 1, now() from rating.match, "
                  "generate_series(1, 50001) i");
    assert_int_equal(UNDO_TOO_OLD,
                     undone(fixture, (UndoAsk){.key = "u", .match_id = first, .admin = ADMIN_YES}).verdict);
    assert_int_equal(0, rating_fixture_count(fixture, "match where undone_at is not null"));
}

/* ---- against a model ---- */

#define MODEL_PLAYERS 8
#define MODEL_MATCHES 400

typedef struct {
    int     a, b, score_a, score_b;
    int64_t id, day;
    bool    gone;
} ModelMatch;

/* Everything from the first match on, by the textbook. */
static void model_replay(const ModelMatch *list, int count, double *ret_ratings, int *ret_games)
{
    for (int i = 0; i < MODEL_PLAYERS; i++)
        ret_ratings[i] = 1500, ret_games[i] = 0;
    for (int i = 0; i < count; i++) {
        const ModelMatch *m = &list[i];
        double            s = m->score_a > m->score_b ? 1 : m->score_a == m->score_b ? 0.5 : 0, change;

        if (m->gone)
            continue;
        change = round(32 * (s - 1 / (1 + pow(10, (ret_ratings[m->b] - ret_ratings[m->a]) / 400))));
        ret_ratings[m->a] += change;
        ret_ratings[m->b] -= change;
        ret_games[m->a]++;
        ret_games[m->b]++;
    }
}

static void model_compare(RatingFixture *fixture, const ModelMatch *list, int count)
{
    double ratings[MODEL_PLAYERS];
    int    games[MODEL_PLAYERS];

    model_replay(list, count, ratings, games);
    for (int i = 0; i < MODEL_PLAYERS; i++) {
        assert_int_equal(games[i],
                         database_get_i64(fixture->db,
                                          arena_print(fixture->arena,
                                                      "select games from rating.member where player_id = %lld",
                                                      (long long)fixture->players[i])));
        if (games[i])
            assert_int_equal((int)ratings[i], (int)rating_fixture_rating(fixture, i));
    }
}

/* The same under Glicko-2: one match after the other, the deviation grown by the days since the player's match before. */
static void model_compare_glicko2(RatingFixture *fixture, const ModelMatch *list, int count)
{
    Glicko2 players[MODEL_PLAYERS];
    int64_t last[MODEL_PLAYERS] = {0};

    for (int i = 0; i < MODEL_PLAYERS; i++)
        players[i] = (Glicko2){1500, 350, 0.06};
    for (int i = 0; i < count; i++) {
        const ModelMatch *m        = &list[i];
        double            score    = m->score_a > m->score_b ? 1 : m->score_a == m->score_b ? 0.5 : 0;
        int               sides[2] = {m->a, m->b};
        Glicko2           now[2];

        if (m->gone)
            continue;
        for (int k = 0; k < 2; k++) {
            double days = last[sides[k]] && m->day > last[sides[k]] ? (double)(m->day - last[sides[k]]) : 0;

            now[k]           = players[sides[k]];
            now[k].deviation = fmin(hypot(now[k].deviation, sqrt(days) * now[k].volatility * 173.7178), 350);
            last[sides[k]]   = m->day;
        }
        for (int k = 0; k < 2; k++) {
            Glicko2Game game  = {now[1 - k].rating, now[1 - k].deviation, k ? 1 - score : score};
            Glicko2     after = glicko2_update(now[k], &game, 1, 0.5);

            after.deviation   = fmin(after.deviation, 350);
            players[sides[k]] = after;
        }
    }
    for (int i = 0; i < MODEL_PLAYERS; i++)
        if (last[i])
            assert_true(fabs(players[i].rating - rating_fixture_rating(fixture, i)) < 1e-5);
}

static void model_run(unsigned seed, const char *system)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, MODEL_PLAYERS);
    ModelMatch                                *list    = arena_array(fixture->arena, ModelMatch, MODEL_MATCHES);
    int                                        count   = 0;

    srandom(seed);
    rating_fixture_set(fixture, "system", system);
    for (int step = 0; step < MODEL_MATCHES / 4; step++) {
        if (count && random() % 4 == 0) {
            int at = (int)(random() % count);

            if (random() % 2) /* the last one */
                for (at = count - 1; at > 0 && list[at].gone; at--)
                    ;
            if (!list[at].gone) {
                UndoDone done = undone(fixture, (UndoAsk){.key      = arena_print(fixture->arena, "u%d", step),
                                                          .match_id = list[at].id,
                                                          .admin    = ADMIN_YES});

                assert_int_equal(UNDO_DONE, done.verdict);
                list[at].gone = true;
            }
        } else {
            ModelMatch *m = &list[count++];

            m->a       = (int)(random() % MODEL_PLAYERS);
            m->b       = (m->a + 1 + (int)(random() % (MODEL_PLAYERS - 1))) % MODEL_PLAYERS;
            m->score_a = (int)(random() % 4);
            m->score_b = m->score_a ? (int)(random() % 4) : 1;
            m->day     = 1 + step * 20 + random() % 60; /* not always after the match before */
            m->id      = rating_fixture_play_at(fixture, m->day * 86400, m->a, m->b, m->score_a, m->score_b);
        }
        if (step % 5 == 0) {
            rating_fixture_verify(fixture);
            (strcmp(system, RULES_ELO) == 0 ? model_compare : model_compare_glicko2)(fixture, list, count);
        }
    }
    rating_fixture_verify(fixture);
    (strcmp(system, RULES_ELO) == 0 ? model_compare : model_compare_glicko2)(fixture, list, count);
}

TEST(undo_random_matches_and_undos_equal_the_model)
{
    for (unsigned seed = 1; seed <= 4; seed++)
        model_run(seed, RULES_ELO);
}

TEST(undo_random_matches_and_undos_under_glicko2_equal_the_model)
{
    for (unsigned seed = 5; seed <= 7; seed++)
        model_run(seed, RULES_GLICKO2);
}

/* The match before is gone, so the player was away for longer. */
TEST(undo_under_glicko2_gives_the_next_match_the_days_that_it_would_have_had)
{
    int64_t                                    days[]  = {10, 200, 300};
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 3), *never = rating_fixture_new(1, 3);
    int64_t                                    second = 0;

    rating_fixture_set(fixture, "system", "glicko2");
    rating_fixture_set(never, "system", "glicko2");
    for (int i = 0; i < 3; i++) {
        int64_t id = rating_fixture_play_at(fixture, days[i] * 86400, 0, 1 + i % 2, 2, 1);

        if (i == 1)
            second = id;
        else
            rating_fixture_play_at(never, days[i] * 86400, 0, 1 + i % 2, 2, 1);
    }
    undone(fixture, (UndoAsk){.key = "u", .match_id = second, .admin = ADMIN_YES});
    for (int i = 0; i < 2; i++)
        assert_true(fabs(rating_fixture_rating(fixture, i) - rating_fixture_rating(never, i)) < 1e-6);
    rating_fixture_verify(fixture);
}

/* ---- at the same time ---- */

typedef struct {
    RatingFixture *fixture;
    int            number;
    int            done, repeated, already, busy, failed;
    char           first[512];
} Undoer;

/* Even threads undo with the same key, odd ones register. */
static void *undo_and_play(void *context)
{
    Undoer                   *self  = context;
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    for (int i = 0; i < 25; i++) {
        UndoDone  done;
        MatchDone played;
        Error     error = {0};
        ErrorCode code;

        if (self->number % 2 == 0) {
            UndoAsk ask = {.key = arena_print(arena, "undo:%d", i), .admin = ADMIN_YES};

            code = rating_fixture_undo(self->fixture, arena, &ask, &done, &error);
            self->done += code == OK && done.verdict == UNDO_DONE;
            self->repeated += code == OK && done.verdict == UNDO_REPEATED;
        } else {
            MatchNew match = {
                .key          = arena_print(arena, "m%d:%d", self->number, i),
                .player       = {self->fixture->players[i % 3], self->fixture->players[i % 3 + 1]},
                .score        = {i % 3,                         1                                },
                .is_confirmed = true
            };

            code = rating_fixture_register(self->fixture, arena, &match, &played, &error);
            self->done += code == OK && played.verdict == MATCH_REGISTERED;
        }
        self->busy += code == ERR_BUSY && strcmp(error.sqlstate, MATCH_CONFLICT) == 0;
        if (code != OK && !(code == ERR_BUSY && strcmp(error.sqlstate, MATCH_CONFLICT) == 0) && !self->failed++)
            memcpy(self->first, error.text, sizeof self->first);
        arena_reset(arena);
    }
    return NULL;
}

TEST(undo_and_matches_at_once_equal_a_replay)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(4, 4);
    Undoer                                     list[4] = {{0}};
    pthread_t                                  running[4];
    int                                        undos, matches = 0;

    for (int i = 0; i < 40; i++)
        rating_fixture_play(fixture, i % 4, (i + 1) % 4, 1 + i % 2, 1);
    for (int i = 0; i < 4; i++) {
        list[i]    = (Undoer){.fixture = fixture, .number = i};
        running[i] = thread_start("undo", undo_and_play, &list[i]);
    }
    for (int i = 0; i < 4; i++)
        thread_join(running[i]);
    for (int i = 0; i < 4; i++) {
        if (list[i].failed)
            fail_msg("%s", list[i].first);
        matches += i % 2 ? list[i].done : 0;
    }
    undos = list[0].done + list[2].done;
    assert_true(undos > 0 && undos <= 25);
    assert_int_equal(undos, rating_fixture_count(fixture, "undo"));
    assert_int_equal(undos, rating_fixture_count(fixture, "match where undone_at is not null"));
    assert_int_equal(40 + matches, rating_fixture_count(fixture, "match"));
    rating_fixture_verify(fixture);
}
