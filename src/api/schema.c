/*
 * schema.c - see schema.h.
 */
#include "api/schema.h"

#include "base/answer_field.h"

/* clang-format off */
static const char *const health_states[] = {"live", "ready", NULL};
static const AnswerField health_fields[] = {TEXT("status", .words = health_states)};
TABLE(health, "Health");

static const char *const update_states[] = {"received", NULL};
static const AnswerField update_fields[] = {TEXT("status", .words = update_states)};
TABLE(update, "Update");

static const AnswerField openapi_fields[] = {
    TEXT("openapi"), JSON("info"), JSON("servers"), JSON("tags"), JSON("security"), JSON("paths"), JSON("components")};
TABLE(openapi, "Description");
/* clang-format on */
