/*
 * settings_change.c - see settings_change.h.
 */
#include "app/settings_change.h"

#include <string.h>

#include "base/log.h"
#include "base/text.h"

static bool setting_is_same(const Setting *row, const Settings *a, const Settings *b)
{
    const char *left = (const char *)a + row->offset, *right = (const char *)b + row->offset;

    if (row->type == SETTING_BOOL)
        return *(const bool *)left == *(const bool *)right;
    if (row->type != SETTING_TEXT && row->type != SETTING_WORD)
        return memcmp(left, right, sizeof(int64_t)) == 0;
    left  = *(const char *const *)left;
    right = *(const char *const *)right;
    return left && right ? strcmp(left, right) == 0 : left == right;
}

/* NULL: there is no such section. */
static const void *worker_find(const Settings *settings, const char *name)
{
    for (size_t i = 0; i < settings->workers_count; i++)
        if (strcmp(settings->workers_list[i].name, name) == 0)
            return settings->workers_list[i].values;
    return NULL;
}

static bool worker_is_same(const void *left, const void *right)
{
    const SettingTable *table = settings_workers.table;

    for (size_t i = 0; left && right && i < table->count; i++)
        if (!setting_is_same(&table->rows[i], left, right))
            return false;
    return left && right;
}

static void name_add(Text *names, const char *before, const char *name, const char *after)
{
    text_print(names, "%s%s%s%s", names->length ? ", " : "", before, name, after);
}

/* Name the sections of these settings that the others lack or, unless only_missing, have with other values. */
static void workers_compare(const Settings *these, const Settings *others, bool only_missing, Text *names)
{
    for (size_t i = 0; i < these->workers_count; i++) {
        const SettingSection *section = &these->workers_list[i];
        const void           *other   = worker_find(others, section->name);

        if (only_missing ? !other : !worker_is_same(section->values, other))
            name_add(names, "[worker ", section->name, "]");
    }
}

void settings_explain_restart(const Settings *started, const Settings *now)
{
    scoped_text Text names = {0};

    text_init(&names, NULL, TEXT_MAX_LINE);
    for (size_t i = 0; i < settings_table.count; i++)
        if (!settings_table.rows[i].reloads && !setting_is_same(&settings_table.rows[i], started, now))
            name_add(&names, "", settings_table.rows[i].name, "");
    workers_compare(now, started, /* only_missing= */ false, &names); /* changed and new ones */
    workers_compare(started, now, /* only_missing= */ true, &names);  /* removed ones */
    if (names.length)
        log_write(LOG_WARN, "daemon", "changed settings take effect at the next start",
                  LOG_STR("settings", text_string(&names)));
}
