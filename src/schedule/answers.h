/*
 * answers.h - the shapes of responses about schedules; see base/answer.h.
 */
#ifndef SCHEDULE_ANSWERS_H
#define SCHEDULE_ANSWERS_H

#include "base/answer.h"

extern const AnswerTable answer_schedule, answer_schedules, answer_schedule_times, answer_schedule_run;

#endif
