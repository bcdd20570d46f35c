/*
 * group.c - see group.h.
 */
#include "rating/group.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sql.h"

#define TIMEZONE_MAX 64

DB_SHAPE(group, Group, GROUP_COLUMNS);

Rules group_rules(const Group *group)
{
    return (Rules){group->formula, group->system, group->k_factor, group->margin};
}

ErrorCode group_open(Tx *tx, int64_t chat_id, const char *title, const char *language, Group *ret_group, Error *reterr)
{
    return db_one(tx, sql_rating_group_open, DB_ARGS(db_i64(chat_id), db_text(title), db_text(language)), &group_shape,
                  ret_group, reterr);
}

ErrorCode group_get(Tx *tx, int64_t chat_id, Group *ret_group, Error *reterr)
{
    return db_one(tx, sql_rating_group_get, DB_ARGS(db_i64(chat_id)), &group_shape, ret_group, reterr);
}

ErrorCode group_set(Tx *tx, int64_t group_id, const char *name, const char *value, Error *reterr)
{
    return db_run(tx, sql_rating_group_set, DB_ARGS(db_i64(group_id), db_text(name), db_text(value)), NULL, reterr);
}

ErrorCode group_move(Tx *tx, int64_t from, int64_t to, bool *ret_moved, Error *reterr)
{
    return db_one(tx, sql_rating_group_move, DB_ARGS(db_i64(from), db_i64(to)), &db_bool_shape, ret_moved, reterr);
}

/* ---- the time zone ---- */

ErrorCode group_timezone(Tx *tx, int64_t group_id, const char **ret_name, Error *reterr)
{
    return db_get_text(tx, sql_rating_group_timezone, DB_ARGS(db_i64(group_id)), ret_name, reterr);
}

ErrorCode group_timezone_find(Tx *tx, const char *text, const char **ret_name, Error *reterr)
{
    return db_get_text(tx, sql_rating_timezone_find, DB_ARGS(db_text(text)), ret_name, reterr);
}

typedef struct {
    int64_t at;
} TimeRow;
#define TIME_COLUMNS(X, T) X(T, I64, at)
DB_SHAPE(time, TimeRow, TIME_COLUMNS);

ErrorCode group_times(Tx *tx, int64_t group_id, int64_t *times, int count, Error *reterr)
{
    const TimeRow *list;
    int            found;

    TRY(db_many(tx, sql_rating_group_times, DB_ARGS(db_i64(group_id), db_i64s(tx->arena, times, count)), &time_shape,
                &list, &found, reterr));
    for (int i = 0; i < found && i < count; i++)
        times[i] = list[i].at;
    return OK;
}

/* ---- settings ---- */

/* start: not near the bounds of ratings, where a winner gains no points, because the loser has none. */
const GroupSetting group_settings[] = {
    {"system",    "system",        SETTING_SYSTEM,   0,   0   },
    {"k",         "k_factor",      SETTING_INTEGER,  1,   400 },
    {"margin",    "margin",        SETTING_SWITCH,   0,   0   },
    {"start",     "start_rating",  SETTING_INTEGER,  100, 9000},
    {"draws",     "draws",         SETTING_SWITCH,   0,   0   },
    {"undo",      "undo_hours",    SETTING_INTEGER,  0,   8760},
    {"games",     "min_games",     SETTING_INTEGER,  1,   1000},
    {"matches",   "match_topic",   SETTING_TOPIC,    0,   0   },
    {"rankings",  "ranking_topic", SETTING_TOPIC,    0,   0   },
    {"language",  "language",      SETTING_LANGUAGE, 0,   0   },
    {"timezone",  "timezone",      SETTING_TIMEZONE, 0,   0   },
    {"published", "is_published",  SETTING_SWITCH,   0,   0   },
    {NULL,        NULL,            SETTING_SYSTEM,   0,   0   },
};

const char *group_setting_value(const Group *group, const GroupSetting *setting, Arena *arena)
{
    const struct {
        const char *column, *value;
    } rows[] = {
        {"system", group->system},
        {"k_factor", arena_print(arena, "%d", group->k_factor)},
        {"margin", group->margin ? "on" : "off"},
        {"start_rating", arena_print(arena, "%d", group->start_rating)},
        {"draws", group->draws ? "on" : "off"},
        {"undo_hours", arena_print(arena, "%d", group->undo_hours)},
        {"min_games", arena_print(arena, "%d", group->min_games)},
        {"match_topic", group->match_topic},
        {"ranking_topic", group->ranking_topic},
        {"language", group->language},
        {"is_published", group->is_published ? "on" : "off"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].column, setting->column) == 0)
            return rows[i].value;
    return NULL;
}

static bool word_take(const char *text, const char *const words[][2], size_t count, const char **ret_value)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(text, words[i][0]) == 0) {
            *ret_value = words[i][1];
            return true;
        }
    return false;
}

static bool integer_take(const GroupSetting *setting, const char *text, const char **ret_value)
{
    size_t length = strspn(text, "0123456789");
    long   number;

    if (length == 0 || length > 6 || text[length])
        return false;
    number     = strtol(text, NULL, 10);
    *ret_value = text;
    return number >= setting->min && number <= setting->max;
}

bool group_setting_parse(const GroupSetting *setting, const char *text, int64_t topic, Arena *arena,
                         const char **ret_value)
{
    static const char *const systems[][2] = {
        {"elo",      "elo"    },
        {"glicko2",  "glicko2"},
        {"glicko-2", "glicko2"}
    };
    static const char *const switches[][2] = {
        {"on",       "true" },
        {"off",      "false"},
        {"yes",      "true" },
        {"no",       "false"},
        {"да",     "true" },
        {"нет",   "false"},
        {"вкл",   "true" },
        {"выкл", "false"}
    };
    static const char *const languages[][2] = {
        {"en",             "en"},
        {"ru",             "ru"},
        {"english",        "en"},
        {"russian",        "ru"},
        {"русский", "ru"}
    };

    switch (setting->kind) {
    case SETTING_SYSTEM:
        return word_take(text, systems, COUNT(systems), ret_value);
    case SETTING_SWITCH:
        return word_take(text, switches, COUNT(switches), ret_value);
    case SETTING_LANGUAGE:
        return word_take(text, languages, COUNT(languages), ret_value);
    case SETTING_TIMEZONE:
        *ret_value = text;
        return strlen(text) <= TIMEZONE_MAX;
    case SETTING_INTEGER:
        return integer_take(setting, text, ret_value);
    case SETTING_TOPIC:
        *ret_value = NULL;
        if (strcasecmp(text, "off") == 0 || strcasecmp(text, "anywhere") == 0 || strcmp(text, "везде") == 0)
            return true;
        *ret_value = arena_print(arena, "%lld", (long long)topic);
        return strcasecmp(text, "here") == 0 || strcmp(text, "здесь") == 0;
    }
    return false;
}
