/*
 * verify_test.c - every kind of disagreement is found and named.
 */
#include "rating/verify.h"

#include <string.h>

#include "test/unit/rating/fixture.h"

static RatingReport *verified(RatingFixture *fixture)
{
    RatingReport *report = arena_alloc(fixture->arena, sizeof *report);
    Error         error  = {0};

    assert_ok(rating_verify(fixture->pool, &(RatingVerifyOptions){0}, 60000, fixture->arena, report, &error));
    return report;
}

TEST(verify_names_what_disagrees)
{
    static const struct {
        const char *change, *sentence;
    } rows[] = {
        {"update rating.member set rating = rating + 1 where player_id = (select min(player_id) from rating.member)",
         "a replay gives"                                                                                                                               },
        {"update rating.member set games = games + 1 where player_id = (select min(player_id) from rating.member)",
         "there are 2 matches"                                                                                                                          },
        {"update rating.member set last_match_id = 1 where player_id = (select max(player_id) from rating.member)",
         "its last match is"                                                                                                                            },
        {"update rating.history set rating_after = rating_after + 1 where match_id = (select min(match_id) from "
         "rating.history)",                                                                                    "after it, a replay gives"      },
        {"update rating.history set rating_before = rating_before + 1 where match_id = (select max(match_id) from "
         "rating.history)",                                                                                    "before it, a replay gives"     },
        {"delete from rating.history where (match_id, player_id) in (select min(match_id), max(player_id) from "
         "rating.history)",                                                                                    "has 1 history rows, not 2"     },
        {"update rating.match set score_a = 0, score_b = 5 where id = (select min(id) from rating.match)",
         "its scores say -1"                                                                                                                            },
        {"set session_replication_role = replica; update rating.match set undone_at = now() where id = (select max(id) "
         "from rating.match)",                                                                                 "there are 1 matches"           },
        {"update rating.member set version = version + 1 where player_id = (select min(player_id) from rating.member)",
         "has the version 4, 2 changes give 3"                                                                                                          },
        {"update rating.member set version = 1 where player_id = (select max(player_id) from rating.member)",
         "has the version 1, 2 changes give 3"                                                                                                          },
        {"update rating.member set deviation = 340 where player_id = (select min(player_id) from rating.member)",
         "a replay gives"                                                                                                                               },
        {"update rating.history set is_undone = true where match_id = (select min(match_id) from rating.history)",
         "has 0 history rows, not 2"                                                                                                                    },
        {"update rating.history set outcome = 0 where (match_id, player_id) in (select min(match_id), max(player_id) "
         "from "
         "rating.history)",                                                                                    "not the opposite of each other"},
        {"update rating.history set opponent_id = 99 where (match_id, player_id) in (select min(match_id), "
         "max(player_id) "
         "from rating.history)",                                                                               "has 1 history rows, not 2"     },
        {"update rating.history set deviation_after = 1 where match_id = (select min(match_id) from rating.history)",
         "after it, a replay gives"                                                                                                                     },
        {"update rating.history set match_id = 99 where match_id = (select max(match_id) from rating.history)",
         "has 0 history rows, not 2"                                                                                                                    },
        {"update rating.match set rules_id = 2 where id = (select min(id) from rating.match)",                          "a replay gives"                },
        {"delete from rating.match where id = (select min(id) from rating.match)",                                      "there are 1 matches"           },
        {"update rating.history set played_at = played_at - interval '3 days' where match_id = (select min(match_id) "
         "from "
         "rating.history)",                                                                                    "has 0 history rows, not 2"     },
        {"update rating.member set start_rating = 1400 where player_id = (select min(player_id) from rating.member)",
         "before it, a replay gives 1400"                                                                                                               },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 2);
        RatingReport                              *report;
        bool                                       found = false;

        database_exec(fixture->db, "insert into rating.rules (system, k_factor, margin) values ('elo', 10, false)");
        rating_fixture_play(fixture, 0, 1, 2, 1);
        rating_fixture_play(fixture, 0, 1, 3, 1);
        report = verified(fixture);
        assert_int_equal(0, report->findings.count);
        assert_int_equal(1, report->groups);
        assert_int_equal(2, report->matches);
        database_exec(fixture->db, rows[i].change);
        report = verified(fixture);
        for (int j = 0; j < report->findings.count; j++)
            found |= strstr(report->findings.rows[j].sentence, rows[i].sentence) != NULL;
        if (!found)
            fail_msg("row %zu: %s", i,
                     report->findings.count ? report->findings.rows[0].sentence : "nothing was found");
    }
}

TEST(verify_of_a_newer_formula_is_refused)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 2);
    RatingReport                              *report  = arena_alloc(fixture->arena, sizeof *report);
    Error                                      error   = {0};

    rating_fixture_play(fixture, 0, 1, 1, 0);
    database_exec(fixture->db, "update rating.rules set formula = 2");
    assert_code(ERR_CONFLICT,
                rating_verify(fixture->pool, &(RatingVerifyOptions){0}, 60000, fixture->arena, report, &error));
    assert_contains(error.text, "formula 2");
}

TEST(verify_of_an_unknown_group_is_refused)
{
    scoped(rating_fixture_free) RatingFixture *fixture = rating_fixture_new(1, 2);
    RatingReport                              *report  = arena_alloc(fixture->arena, sizeof *report);
    Error                                      error   = {0};

    assert_code(ERR_NOT_FOUND, rating_verify(fixture->pool, &(RatingVerifyOptions){.chat_id = 5}, 60000, fixture->arena,
                                             report, &error));
}
