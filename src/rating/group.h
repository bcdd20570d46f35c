/*
 * group.h - groups and their settings.
 *
 * A group is known by its chat id, an outside number; all other rows refer to a number of our own, so that a group
 * whose chat id changes keeps its matches and ratings.
 * Threads: any. Ownership: results live in the transaction's arena.
 */
#ifndef RATING_GROUP_H
#define RATING_GROUP_H

#include "base/arena.h"
#include "base/error.h"
#include "pg/query.h"
#include "rating/rules.h"

#define GROUP_COLUMNS(X, T)                                         \
    X(T, I64, id, chat_id)                                          \
    X(T, TEXT, title, language, system, match_topic, ranking_topic) \
    X(T, BOOL, is_active, is_published, margin, draws)              \
    X(T, I32, rules_id, formula, k_factor, start_rating, undo_hours, min_games)
/* Topics are texts of a number; NULL: anywhere. */
DB_ROW(Group, GROUP_COLUMNS);

Rules group_rules(const Group *group);

/* Created on first sight. title and language may be NULL. */
must_check ErrorCode group_open(Tx *tx, int64_t chat_id, const char *title, const char *language, Group *ret_group,
                                Error *reterr);
/* ERR_NOT_FOUND: unknown. */
must_check ErrorCode group_get(Tx *tx, int64_t chat_id, Group *ret_group, Error *reterr);
/* One setting by the name of its column. ERR_INVALID: no such setting, or a value out of its range. */
must_check ErrorCode group_set(Tx *tx, int64_t group_id, const char *name, const char *value, Error *reterr);
/* The chat id has changed. *ret_moved: false if the old one is unknown, or the new one has matches of its own. */
must_check ErrorCode group_move(Tx *tx, int64_t from, int64_t to, bool *ret_moved, Error *reterr);

/* ---- the time zone ---- */

must_check ErrorCode group_timezone(Tx *tx, int64_t group_id, const char **ret_name, Error *reterr);
/* What PostgreSQL calls the zone that a person has named; NULL: it knows none. */
must_check ErrorCode group_timezone_find(Tx *tx, const char *text, const char **ret_name, Error *reterr);
/* Microseconds since 1970 become those of a clock in the group's time zone: formatted as UTC they are local times. */
must_check ErrorCode group_times(Tx *tx, int64_t group_id, int64_t *times, int count, Error *reterr);

/* ---- settings, as people set them ---- */

typedef enum {
    SETTING_SYSTEM,
    SETTING_INTEGER,
    SETTING_SWITCH,
    SETTING_TOPIC,
    SETTING_LANGUAGE,
    SETTING_TIMEZONE, /* its value and what is one are asked of the database */
} GroupSettingKind;
typedef struct {
    const char      *name;   /* in "/settings name value" */
    const char      *column; /* for group_set() */
    GroupSettingKind kind;
    int              min, max; /* INTEGER */
} GroupSetting;
extern const GroupSetting group_settings[]; /* ended by a NULL name */
/* The present value as text; NULL: not set (a topic). */
const char *group_setting_value(const Group *group, const GroupSetting *setting, Arena *arena);
/* What a person wrote, as group_set() takes it. topic: where the person is, for "here". false: it is no value. */
bool group_setting_parse(const GroupSetting *setting, const char *text, int64_t topic, Arena *arena,
                         const char **ret_value);

#endif
