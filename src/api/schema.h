/*
 * schema.h - the shapes of all responses: those of the modules, and the ones that belong to the API itself.
 */
#ifndef API_SCHEMA_H
#define API_SCHEMA_H

#include "bus/answers.h"
#include "ops/answers.h"
#include "process/answers.h"
#include "rating/answers.h"
#include "wallet/answers.h"

extern const AnswerTable answer_health, answer_update, answer_openapi;

#endif
