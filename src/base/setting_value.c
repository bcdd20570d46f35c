/*
 * setting_value.c - see setting_value.h; and the durations and rules of setting.h.
 */
#include "base/setting_value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/writer.h"

#define EXCERPT_MAX  40
#define UNIT_MISSING ", which has no unit (ms, s, m, h or d)"
#define UNIT_UNKNOWN ", whose unit is none of ms, s, m, h and d"

static const struct {
    const char *name;
    int64_t     ms;
} units[] = {
    {"d",  86400000},
    {"h",  3600000 },
    {"m",  60000   },
    {"s",  1000    },
    {"ms", 1       }
};

static const struct {
    const char *name;
    bool        value;
} switches[] = {
    {"on",    true },
    {"true",  true },
    {"yes",   true },
    {"1",     true },
    {"off",   false},
    {"false", false},
    {"no",    false},
    {"0",     false},
};

static bool row_has_range(const Setting *row)
{
    return row->min != 0 || row->max != 0;
}

static bool number_parse(const char *word, int64_t *ret_number)
{
    char *end;

    if (*word != '-' && (*word < '0' || *word > '9')) /* strtoll would take spaces and plus signs */
        return false;
    errno       = 0;
    *ret_number = strtoll(word, &end, 10);
    return errno == 0 && end != word && *end == '\0';
}

static bool duration_parse(const char *word, int64_t *ret_ms)
{
    char *unit;

    if (*word < '0' || *word > '9')
        return false;
    errno         = 0;
    int64_t count = strtoll(word, &unit, 10);
    if (errno)
        return false;
    if (count == 0 && !*unit) { /* nothing is nothing in every unit */
        *ret_ms = 0;
        return true;
    }
    for (size_t i = 0; i < COUNT(units); i++)
        if (strcmp(unit, units[i].name) == 0)
            return !__builtin_mul_overflow(count, units[i].ms, ret_ms);
    return false;
}

static bool switch_parse(const char *word, int64_t *ret_number)
{
    for (size_t i = 0; i < COUNT(switches); i++)
        if (strcmp(word, switches[i].name) == 0) {
            *ret_number = switches[i].value;
            return true;
        }
    return false;
}

/* The index of the word, -1: it is none of them. */
static int word_find(const char *const *words, const char *word, size_t size)
{
    for (int i = 0; words[i]; i++)
        if (strlen(words[i]) == size && memcmp(words[i], word, size) == 0)
            return i;
    return -1;
}

static bool words_parse(const char *const *words, const char *list, int64_t *ret_bits)
{
    uint64_t bits = 0;

    for (;;) {
        list += strspn(list, " ");
        size_t size = strcspn(list, ","), trimmed = size;
        while (trimmed > 0 && list[trimmed - 1] == ' ')
            trimmed--;
        int index = word_find(words, list, trimmed);
        if (index < 0)
            return false;
        bits |= UINT64_C(1) << index;
        if (list[size] == '\0')
            break;
        list += size + 1;
    }
    *ret_bits = (int64_t)bits;
    return true;
}

static bool in_range(const Setting *row, int64_t number)
{
    return !row_has_range(row) || (number >= row->min && number <= row->max);
}

bool setting_value_parse(const Setting *row, const char *word, Arena *arena, SettingValue *ret_value)
{
    int index;

    switch (row->type) {
    case SETTING_TEXT:
        ret_value->text = arena_text(arena, word);
        return text_is_utf8(word, strlen(word));
    case SETTING_INT:
        return number_parse(word, &ret_value->number) && in_range(row, ret_value->number);
    case SETTING_DURATION_MS:
        return duration_parse(word, &ret_value->number) && in_range(row, ret_value->number);
    case SETTING_BOOL:
        return switch_parse(word, &ret_value->number);
    case SETTING_WORD:
        index = word_find(row->words, word, strlen(word));
        if (index >= 0)
            ret_value->text = row->words[index];
        return index >= 0;
    case SETTING_WORDS:
        return words_parse(row->words, word, &ret_value->number);
    }
    return false;
}

void setting_value_store(const Setting *row, const SettingValue *value, char *ret_struct)
{
    switch (row->type) {
    case SETTING_TEXT:
    case SETTING_WORD:
        *(const char **)(ret_struct + row->offset) = value->text;
        break;
    case SETTING_INT:
    case SETTING_DURATION_MS:
        *(int64_t *)(ret_struct + row->offset) = value->number;
        break;
    case SETTING_BOOL:
        *(bool *)(ret_struct + row->offset) = value->number != 0;
        break;
    case SETTING_WORDS:
        *(uint64_t *)(ret_struct + row->offset) = (uint64_t)value->number;
        break;
    }
}

static bool is_number(const char *word)
{
    return word[0] && word[strspn(word, "0123456789")] == '\0';
}

/* A number and something that no unit is called. */
static bool has_unknown_unit(const char *word)
{
    const char *unit = word + strspn(word, "0123456789");

    if (unit == word || !*unit)
        return false;
    for (size_t i = 0; i < COUNT(units); i++)
        if (strcmp(unit, units[i].name) == 0)
            return false;
    return true;
}

void setting_quote_print(const char *word, Text *text)
{
    char   cut[EXCERPT_MAX + sizeof "..."];
    size_t size = strlen(word), kept = text_cut(word, size, EXCERPT_MAX);

    snprintf(cut, sizeof cut, "%.*s%s", (int)kept, word, kept < size ? "..." : "");
    writer_quote(text, cut);
}

void setting_value_refuse(const Setting *row, const char *word, Text *text)
{
    text_append(text, "must be ");
    setting_rule_print(row, text);
    if (row->type == SETTING_TEXT)
        text_append(text, "text in UTF-8");
    if (!row->secret) {
        text_append(text, ", got ");
        setting_quote_print(word, text);
    }
    if (row->type == SETTING_DURATION_MS && is_number(word))
        text_append(text, UNIT_MISSING);
}

ErrorCode setting_duration(const char *word, int64_t *ret_ms, Error *reterr)
{
    int64_t ms;

    if (!duration_parse(word, &ms)) {
        scoped_text Text text = {0};

        text_init(&text, NULL, TEXT_MAX_LINE);
        setting_quote_print(word, &text);
        return fail(reterr, ERR_INVALID, "must be a duration such as 250ms, 10s, 5m, 1h or 2d, got %s%s",
                    text_string(&text),
                    is_number(word)          ? UNIT_MISSING
                    : has_unknown_unit(word) ? UNIT_UNKNOWN
                                             : "");
    }
    *ret_ms = ms;
    return OK;
}

void setting_duration_print(int64_t ms, Text *text)
{
    for (size_t i = 0; i < COUNT(units); i++)
        if (ms % units[i].ms == 0 && (ms != 0 || units[i].ms == 1000)) {
            text_print(text, "%lld%s", (long long)(ms / units[i].ms), units[i].name);
            return;
        }
}

static void words_print(const char *const *words, Text *text)
{
    for (size_t i = 0; words[i]; i++)
        text_print(text, "%s%s", i ? ", " : "", words[i]);
}

void setting_rule_print(const Setting *row, Text *text)
{
    switch (row->type) {
    case SETTING_TEXT:
        break;
    case SETTING_INT:
        text_append(text, "an integer");
        if (row_has_range(row))
            text_print(text, " from %lld to %lld", (long long)row->min, (long long)row->max);
        break;
    case SETTING_DURATION_MS:
        text_append(text, "a duration");
        if (row_has_range(row)) {
            text_append(text, " from ");
            setting_duration_print(row->min, text);
            text_append(text, " to ");
            setting_duration_print(row->max, text);
        } else
            text_append(text, " such as 250ms, 10s or 5m");
        break;
    case SETTING_BOOL:
        text_append(text, "on or off");
        break;
    case SETTING_WORD:
        text_append(text, "one of ");
        words_print(row->words, text);
        break;
    case SETTING_WORDS:
        text_append(text, "some of ");
        words_print(row->words, text);
        text_append(text, ", comma-separated");
        break;
    }
}
