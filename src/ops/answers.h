/*
 * answers.h - the shapes of responses about alerts; see base/answer.h.
 */
#ifndef OPS_ANSWERS_H
#define OPS_ANSWERS_H

#include "base/answer.h"

extern const AnswerTable answer_alerts;

#endif
