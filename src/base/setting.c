/*
 * setting.c - finds the value of each row in its sources, checks all, then stores all.
 */
#include "base/setting.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ini.h"
#include "base/writer.h"

#define NAME_PREFIX   "PAWL_"
#define NAME_SIZE_MAX 64
#define SECTION       "pawl"
#define EXCERPT_MAX   40
#define UNIT_MISSING  ", which has no unit (ms, s, m, h or d)"

/* What a row was given, and where: "PAWL_POOL_MAX in the environment". */
typedef struct {
    const char *value; /* NULL: nowhere */
    const char *location;
} Given;

typedef struct {
    const char *text;
    int64_t     number; /* INT, DURATION_MS, BOOL, WORDS */
} Value;

typedef struct {
    const SettingTable   *table;
    const SettingSources *sources;
    Arena                *arena;
    const char           *path;    /* of the file */
    const IniEntry      **entries; /* one per row, NULL: not in the file */
    Error                *reterr;
} Load;

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

/* Names: PAWL_POOL_MAX is that or pool_max in the file, and --pool-max on the command line. */

static void name_lower(const char *name, char dash, char *ret_name)
{
    const char *from = strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) == 0 ? name + strlen(NAME_PREFIX) : name;
    size_t      size = strlen(from);

    assert(size < NAME_SIZE_MAX);
    for (size_t i = 0; i <= size; i++) {
        char c      = from[i];
        ret_name[i] = c == '_' ? dash : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
}

static const Setting *row_by_name(const SettingTable *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].name, name) == 0)
            return &table->rows[i];
    return NULL;
}

static const Setting *row_by_key(const SettingTable *table, const char *key)
{
    char name[NAME_SIZE_MAX];

    for (size_t i = 0; i < table->count; i++) {
        name_lower(table->rows[i].name, '_', name);
        if (strcmp(name, key) == 0 || strcmp(table->rows[i].name, key) == 0)
            return &table->rows[i];
    }
    return NULL;
}

static bool row_has_range(const Setting *row)
{
    return row->min != 0 || row->max != 0;
}

/* The user's word in quotes, cut and escaped, so that a message stays one line. */
static void quote_print(const char *word, Text *text)
{
    char   cut[EXCERPT_MAX + sizeof "..."];
    size_t size = strlen(word), kept = text_cut(word, size, EXCERPT_MAX);

    snprintf(cut, sizeof cut, "%.*s%s", (int)kept, word, kept < size ? "..." : "");
    writer_quote(text, cut);
}

static bool is_number(const char *word)
{
    return word[0] && word[strspn(word, "0123456789")] == '\0';
}

static ErrorCode refuse(const Load *load, const Setting *row, const Given *given)
{
    scoped_text Text text = {0};

    text_init(&text, NULL, TEXT_MAX_LINE);
    text_print(&text, "%s must be ", given->location);
    setting_rule_print(row, &text);
    if (row->type == SETTING_TEXT)
        text_append(&text, "text in UTF-8");
    if (!row->secret) {
        text_append(&text, ", got ");
        quote_print(given->value, &text);
    }
    if (row->type == SETTING_DURATION_MS && is_number(given->value))
        text_append(&text, UNIT_MISSING);
    return fail(load->reterr, ERR_USAGE, "%s", text_string(&text));
}

static ErrorCode check(const Load *load, const Setting *row, const Given *given)
{
    if (!row->check || row->check(given->value, load->reterr) == OK)
        return OK;
    error_prefix(load->reterr, "%s", given->location);
    return ERR_USAGE;
}

/* Parsing: false when the word is not right for the row. */

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

static bool value_parse(const Setting *row, const char *word, Arena *arena, Value *ret_value)
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

static void value_store(const Setting *row, const Value *value, char *ret_struct)
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

/* The file. */

static ErrorCode refuse_entry(const Load *load, const IniEntry *entry)
{
    const SettingTable *table  = load->table;
    char(*keys)[NAME_SIZE_MAX] = arena_alloc(load->arena, table->count * sizeof *keys);
    const char     **names     = arena_array(load->arena, const char *, table->count);
    scoped_text Text text      = {0};

    for (size_t i = 0; i < table->count; i++) {
        name_lower(table->rows[i].name, '_', keys[i]);
        names[i] = keys[i];
    }
    text_init(&text, NULL, TEXT_MAX_LINE);
    quote_print(entry->key, &text);
    const char *nearest = text_nearest(entry->key, names, table->count);
    if (nearest)
        return fail(load->reterr, ERR_USAGE, "unknown setting %s in %s line %d, did you mean \"%s\"?",
                    text_string(&text), load->path, entry->line, nearest);
    return fail(load->reterr, ERR_USAGE, "unknown setting %s in %s line %d", text_string(&text), load->path,
                entry->line);
}

static ErrorCode entry_take(const Load *load, const IniEntry *entry)
{
    const Setting *row = row_by_key(load->table, entry->key);

    if (!row)
        return refuse_entry(load, entry);
    const IniEntry **location = &load->entries[row - load->table->rows];
    if (*location)
        return fail(load->reterr, ERR_USAGE, "\"%s\" in %s line %d was already set in line %d", entry->key, load->path,
                    entry->line, (*location)->line);
    *location = entry;
    return OK;
}

/* The named file must exist; of the usual ones the first that exists is taken, and then it must be readable. */
static ErrorCode file_load(Load *load, Ini *ret_ini)
{
    const SettingGroup *group   = load->sources->group;
    const char *const   named[] = {load->sources->file, NULL};
    const char *const  *paths   = load->sources->file ? named : load->sources->files;

    *ret_ini = (Ini){0};
    for (; paths && *paths; paths++) {
        load->path     = *paths;
        ErrorCode code = ini_read(*paths, SECTION, group ? group->word : NULL, load->arena, ret_ini, load->reterr);

        if (code != ERR_NOT_FOUND)
            return code;
        if (load->sources->file)
            return fail(load->reterr, ERR_USAGE, "settings file \"%s\" does not exist", *paths);
    }
    return OK;
}

/* The entries of one section; NULL: of the main one. */
static ErrorCode entries_take(const Load *load, const Ini *ini, const IniSection *section)
{
    for (size_t i = 0; i < ini->count; i++)
        if (ini->entries[i].section == section)
            TRY(entry_take(load, &ini->entries[i]));
    return OK;
}

/* The sources of one row, strongest first. */

static const char *environment_find(const char *const *environment, const char *name)
{
    size_t size = strlen(name);

    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, size) == 0 && (*environment)[size] == '=')
            return (*environment)[size + 1] ? *environment + size + 1 : NULL; /* empty counts as unset */
    return NULL;
}

static bool given_by_flag(const Load *load, const Setting *row, Given *ret_given)
{
    char name[NAME_SIZE_MAX];

    ret_given->value = NULL;
    for (const SettingFlag *flag = load->sources->flags; flag && flag->name; flag++)
        if (strcmp(flag->name, row->name) == 0)
            ret_given->value = flag->value;
    name_lower(row->name, '-', name);
    ret_given->location = arena_print(load->arena, "--%s", name);
    return ret_given->value;
}

static bool given_by_environment(const Load *load, const char *name, Given *ret_given)
{
    if (!name || !(ret_given->value = environment_find(load->sources->environment, name)))
        return false;
    ret_given->location = arena_print(load->arena, "%s in the environment", name);
    return true;
}

static bool given_by_file(const Load *load, const Setting *row, Given *ret_given)
{
    const IniEntry *entry = load->entries[row - load->table->rows];

    if (!entry || !*entry->value) /* empty counts as unset */
        return false;
    ret_given->value    = entry->value;
    ret_given->location = arena_print(load->arena, "%s in %s line %d", row->name, load->path, entry->line);
    return true;
}

static Given row_given(const Load *load, const Setting *row)
{
    Given given;

    if (given_by_flag(load, row, &given) || given_by_environment(load, row->name, &given) ||
        given_by_environment(load, row->name_alt, &given) || given_by_file(load, row, &given))
        return given;
    return (Given){row->fallback, arena_print(load->arena, "the default of %s", row->name)};
}

static ErrorCode flags_check(const Load *load)
{
    for (const SettingFlag *flag = load->sources->flags; flag && flag->name; flag++)
        if (!row_by_name(load->table, flag->name))
            return fail(load->reterr, ERR_USAGE, "unknown setting \"%s\"", flag->name);
    return OK;
}

static ErrorCode values_load(const Load *load, void *ret_struct)
{
    const SettingTable *table  = load->table;
    Value              *values = arena_array(load->arena, Value, table->count);

    for (size_t i = 0; i < table->count; i++) {
        Given given = row_given(load, &table->rows[i]);

        if (given.value && !value_parse(&table->rows[i], given.value, load->arena, &values[i]))
            return refuse(load, &table->rows[i], &given);
        if (given.value)
            TRY(check(load, &table->rows[i], &given));
    }
    for (size_t i = 0; i < table->count; i++)
        value_store(&table->rows[i], &values[i], ret_struct);
    return OK;
}

ErrorCode setting_load(const SettingTable *table, const SettingSources *sources, Arena *arena, void *ret_struct,
                       Error *reterr)
{
    Load load = {table, sources, arena, .reterr = reterr};
    Ini  ini;

    load.entries = arena_array(arena, const IniEntry *, table->count);
    TRY(flags_check(&load));
    TRY(file_load(&load, &ini));
    TRY(entries_take(&load, &ini, /* section= */ NULL));
    return values_load(&load, ret_struct);
}

ErrorCode setting_load_sections(const SettingSources *sources, Arena *arena, SettingSection **ret_list,
                                size_t *ret_count, Error *reterr)
{
    const SettingGroup *group = sources->group;
    SettingSources      none  = {.file = sources->file, .files = sources->files, .group = group};
    Load                load  = {group->table, &none, arena, .reterr = reterr};
    Ini                 ini;

    TRY(file_load(&load, &ini));
    SettingSection *list = arena_array(arena, SettingSection, ini.section_count ? ini.section_count : 1);
    for (size_t i = 0; i < ini.section_count; i++) {
        const IniSection *section = ini.sections[i];

        load.entries = arena_array(arena, const IniEntry *, group->table->count);
        TRY(entries_take(&load, &ini, section));
        list[i].name = section->name;
        list[i].location =
            arena_print(arena, "[%s %s] in %s line %d", section->word, section->name, load.path, section->line);
        list[i].values = arena_alloc(arena, group->size);
        TRY(values_load(&load, list[i].values));
    }
    *ret_list  = list;
    *ret_count = ini.section_count;
    return OK;
}

ErrorCode setting_duration(const char *word, int64_t *ret_ms, Error *reterr)
{
    int64_t ms;

    if (!duration_parse(word, &ms)) {
        scoped_text Text text = {0};

        text_init(&text, NULL, TEXT_MAX_LINE);
        quote_print(word, &text);
        return fail(reterr, ERR_INVALID, "must be a duration such as 250ms, 10s, 5m, 1h or 2d, got %s%s",
                    text_string(&text), is_number(word) ? UNIT_MISSING : "");
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
