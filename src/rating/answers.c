/*
 * answers.c - see answers.h.
 */
#include "rating/answers.h"

#include "base/answer_field.h"

/* clang-format off */
static const AnswerField board_row_fields[] = {
    I64("place"), I64("user"), TEXT("name"), TEXT("username", .nullable = true), I64("rating"),
    I64("deviation", .help = "of Glicko-2; null under Elo", .nullable = true),
    I64("games"), I64("change_week", .help = "compared with the rating before the last 7 days")};
static TABLE(board_row, "Place");
static const AnswerField leaderboard_fields[] = {
    I64("chat"), ROWS("items", board_row), I64("total", .help = "players who have a place")};
TABLE(leaderboard, "Leaderboard");
static const char *const match_outcomes[] = {"won", "drawn", "lost", NULL};
static const AnswerField player_match_fields[] = {
    I64("match"), TIME("played_at"), I64("opponent"), TEXT("opponent_name"), I64("score"), I64("opponent_score"),
    TEXT("outcome", .words = match_outcomes), I64("rating_before"), I64("rating")};
static TABLE(player_match, "PlayerMatch");
static const AnswerField player_history_fields[] = {ROWS("items", player_match), NEXT_CURSOR};
TABLE(player_history, "PlayerHistory");
static const AnswerField side_fields[] = {I64("user"), TEXT("name"), I64("score"), I64("rating_before"), I64("rating")};
static TABLE(side, "MatchSide");
static const AnswerField match_fields[] = {
    I64("id"), TIME("played_at"), {"a", ANSWER_OBJECT, .table = &answer_side},
    {"b", ANSWER_OBJECT, .table = &answer_side},
    BOOL("undone")};
static TABLE(match, "Match");
static const AnswerField matches_fields[] = {ROWS("items", match), NEXT_CURSOR};
TABLE(matches, "Matches");
/* clang-format on */
