/*
 * answers.h - the shapes of responses about ratings; see base/answer.h.
 */
#ifndef RATING_ANSWERS_H
#define RATING_ANSWERS_H

#include "base/answer.h"

extern const AnswerTable answer_leaderboard, answer_player_history, answer_matches;

#endif
