/*
 * game_settings.c - /settings and its buttons: for administrators.
 */
#include <string.h>
#include <strings.h>

#include "rating/game_inner.h"

static PhraseId setting_help(const GroupSetting *setting)
{
    static const struct {
        const char *name;
        PhraseId    help;
    } rows[] = {
        {"system",    PHRASE_SETTING_HELP_SYSTEM   },
        {"k",         PHRASE_SETTING_HELP_K        },
        {"margin",    PHRASE_SETTING_HELP_MARGIN   },
        {"start",     PHRASE_SETTING_HELP_START    },
        {"draws",     PHRASE_SETTING_HELP_DRAWS    },
        {"undo",      PHRASE_SETTING_HELP_UNDO     },
        {"games",     PHRASE_SETTING_HELP_GAMES    },
        {"matches",   PHRASE_SETTING_HELP_MATCHES  },
        {"rankings",  PHRASE_SETTING_HELP_RANKINGS },
        {"language",  PHRASE_SETTING_HELP_LANGUAGE },
        {"timezone",  PHRASE_SETTING_HELP_TIMEZONE },
        {"published", PHRASE_SETTING_HELP_PUBLISHED},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].name, setting->name) == 0)
            return rows[i].help;
    return PHRASE_HELP_SETTINGS;
}

static const char *value_shown(const Turn *turn, const GroupSetting *setting)
{
    const char *value = group_setting_value(&turn->group, setting, turn->tx->arena);

    if (setting->kind == SETTING_TIMEZONE)
        return turn->timezone;
    if (setting->kind == SETTING_TOPIC)
        return value ? turn_topic_text(turn, PHRASE_SETTING_TOPIC, value)
                     : phrase_text(turn->language, PHRASE_SETTING_ANYWHERE);
    return value;
}

static void settings_show(Turn *turn)
{
    Text       text;
    GameReply *reply;

    turn_text(turn, &text);
    PHRASE_ALONE(&text, turn->language, PHRASE_SETTINGS_HEAD);
    for (const GroupSetting *setting = group_settings; setting->name; setting++) {
        text_append_char(&text, '\n');
        PHRASE(&text, turn->language, PHRASE_SETTINGS_LINE, setting->name, value_shown(turn, setting),
               phrase_text(turn->language, setting_help(setting)));
    }
    text_append_char(&text, '\n');
    PHRASE(&text, turn->language, PHRASE_SETTINGS_CHAT, turn_number(turn, turn->group.chat_id));
    reply = turn_answer(turn, text_string(&text));
    for (int i = 0; i < LANGUAGE_COUNT; i++) {
        static const char *const names[LANGUAGE_COUNT] = {"English", "Русский"};

        reply->buttons[reply->buttons_count++] =
            (GameButton){names[i], arena_print(turn->tx->arena, "set:language:%s", language_codes[i]),
                         i == LANGUAGE_COUNT - 1};
    }
}

static const GroupSetting *setting_find(const char *name, size_t length)
{
    for (const GroupSetting *setting = group_settings; setting->name; setting++)
        if (strlen(setting->name) == length && strncasecmp(setting->name, name, length) == 0)
            return setting;
    return NULL;
}

/* *ret_value NULL and false: what a person wrote is no value of the setting. */
static ErrorCode value_read(Turn *turn, const GroupSetting *setting, const char *text, const char **ret_value,
                            bool *ret_good, Error *reterr)
{
    *ret_good = group_setting_parse(setting, text, turn->input->topic, turn->tx->arena, ret_value);
    if (setting->kind != SETTING_TIMEZONE || !*ret_good)
        return OK;
    TRY(group_timezone_find(turn->tx, text, ret_value, reterr));
    *ret_good = *ret_value != NULL;
    return OK;
}

/* Read the group again, so that what follows has the new value and language. */
static ErrorCode setting_set(Turn *turn, const GroupSetting *setting, const char *value, Error *reterr)
{
    TRY(group_set(turn->tx, turn->group.id, setting->column, value, reterr));
    TRY(group_get(turn->tx, turn->input->chat_id, &turn->group, reterr));
    turn->language = language_of(turn->group.language);
    return group_timezone(turn->tx, turn->group.id, &turn->timezone, reterr);
}

static bool admin_refused(Turn *turn)
{
    if (turn->input->admin == ADMIN_YES)
        return false;
    turn_say(turn, turn->input->admin == ADMIN_UNKNOWN ? PHRASE_UNDO_UNSURE : PHRASE_ADMINS_ONLY, NULL);
    return true;
}

/* The values in Russian mean the same. */
static const char *value_word(const char *word)
{
    static const char *const rows[][2] = {
        {"вкл",     "on"      },
        {"выкл",   "off"     },
        {"здесь", "here"    },
        {"везде", "anywhere"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i][0], word) == 0)
            return rows[i][1];
    return word;
}

ErrorCode game_settings(Turn *turn, Error *reterr)
{
    const Ask          *ask = &turn->ask;
    const GroupSetting *setting;
    const char         *value;
    bool                good = false;
    Text                text;

    if (admin_refused(turn))
        return OK;
    TRY(group_timezone(turn->tx, turn->group.id, &turn->timezone, reterr));
    if (ask->count == 0) {
        settings_show(turn);
        return OK;
    }
    setting = setting_find(ask->words[0].text, strlen(ask->words[0].text));
    if (!setting)
        return turn_say(turn, PHRASE_SETTINGS_UNKNOWN, turn_quoted(turn, ask->words[0].text));
    if (ask->count == 2)
        TRY(value_read(turn, setting, value_word(ask->words[1].text), &value, &good, reterr));
    turn_text(turn, &text);
    if (ask->count == 1) {
        PHRASE(&text, turn->language, PHRASE_SETTINGS_LINE, setting->name, value_shown(turn, setting),
               phrase_text(turn->language, setting_help(setting)));
    } else if (ask->count > 2) {
        PHRASE(&text, turn->language, PHRASE_SETTINGS_ONE, setting->name, turn_escaped(turn, ask->words[1].text));
    } else if (!good) {
        PHRASE(&text, turn->language, PHRASE_SETTINGS_VALUE, setting->name, turn_quoted(turn, ask->words[1].text),
               phrase_text(turn->language, setting_help(setting)));
    } else {
        TRY(setting_set(turn, setting, value, reterr));
        PHRASE(&text, turn->language, PHRASE_SETTINGS_SET, setting->name, value_shown(turn, setting));
    }
    turn_reply(turn, GAME_SAY, text_string(&text));
    return OK;
}

ErrorCode game_press_set(Turn *turn, const char *data, Error *reterr)
{
    size_t              length  = strcspn(data, ":");
    const GroupSetting *setting = setting_find(data, length);
    const char         *value;
    bool                good = false;

    if (admin_refused(turn))
        return OK;
    if (setting && data[length] == ':')
        TRY(value_read(turn, setting, data + length + 1, &value, &good, reterr));
    if (!good) {
        turn_reply(turn, GAME_TOAST, NULL);
        return OK;
    }
    TRY(setting_set(turn, setting, value, reterr));
    settings_show(turn);
    return OK;
}
