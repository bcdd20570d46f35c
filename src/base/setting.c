/*
 * setting.c - finds the value of each row in its sources, checks all, then stores all.
 */
#include "base/setting.h"

#include <assert.h>
#include <string.h>

#include "base/ini.h"
#include "base/setting_value.h"

#define NAME_PREFIX   "PAWL_"
#define NAME_SIZE_MAX 64
#define SECTION       "pawl"

/* What a row was given, and where: "PAWL_POOL_MAX in the environment". */
typedef struct {
    const char *value; /* NULL: nowhere */
    const char *location;
} SettingGiven;

typedef struct {
    const SettingTable   *table;
    const SettingSources *sources;
    Arena                *arena;
    const char           *path;    /* of the file */
    const IniEntry      **entries; /* one per row, NULL: not in the file */
    Error                *reterr;
} SettingLoad;

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

const char *setting_flag(Arena *arena, const Setting *row)
{
    char name[NAME_SIZE_MAX];

    name_lower(row->name, '-', name);
    return arena_print(arena, "--%s", name);
}

static ErrorCode refuse(const SettingLoad *load, const Setting *row, const SettingGiven *given)
{
    scoped_text Text text = {0};

    text_init(&text, NULL, TEXT_MAX_LINE);
    setting_value_refuse(row, given->value, &text);
    return fail(load->reterr, ERR_USAGE, "%s %s", given->location, text_string(&text));
}

static ErrorCode check(const SettingLoad *load, const Setting *row, const SettingGiven *given)
{
    if (!row->check || row->check(given->value, load->reterr) == OK)
        return OK;
    error_prefix(load->reterr, "%s", given->location);
    return ERR_USAGE;
}

/* The file. */

static ErrorCode refuse_entry(const SettingLoad *load, const IniEntry *entry)
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
    setting_quote_print(entry->key, &text);
    const char *nearest = text_nearest(entry->key, names, table->count);
    if (nearest)
        return fail(load->reterr, ERR_USAGE, "unknown setting %s in %s line %d, did you mean \"%s\"?",
                    text_string(&text), load->path, entry->line, nearest);
    return fail(load->reterr, ERR_USAGE, "unknown setting %s in %s line %d", text_string(&text), load->path,
                entry->line);
}

static ErrorCode entry_take(const SettingLoad *load, const IniEntry *entry)
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
static ErrorCode file_load(SettingLoad *load, Ini *ret_ini)
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
static ErrorCode entries_take(const SettingLoad *load, const Ini *ini, const IniSection *section)
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

static bool given_by_flag(const SettingLoad *load, const Setting *row, SettingGiven *ret_given)
{
    ret_given->value = NULL;
    for (const SettingFlag *flag = load->sources->flags; flag && flag->name; flag++)
        if (strcmp(flag->name, row->name) == 0)
            ret_given->value = flag->value;
    ret_given->location = setting_flag(load->arena, row);
    return ret_given->value;
}

static bool given_by_environment(const SettingLoad *load, const char *name, SettingGiven *ret_given)
{
    if (!name || !(ret_given->value = environment_find(load->sources->environment, name)))
        return false;
    ret_given->location = arena_print(load->arena, "%s in the environment", name);
    return true;
}

static bool given_by_file(const SettingLoad *load, const Setting *row, SettingGiven *ret_given)
{
    const IniEntry *entry = load->entries[row - load->table->rows];

    if (!entry || !*entry->value) /* empty counts as unset */
        return false;
    ret_given->value    = entry->value;
    ret_given->location = arena_print(load->arena, "%s in %s line %d", row->name, load->path, entry->line);
    return true;
}

static SettingGiven row_given(const SettingLoad *load, const Setting *row)
{
    SettingGiven given;

    if (given_by_flag(load, row, &given) || given_by_environment(load, row->name, &given) ||
        given_by_environment(load, row->name_alt, &given) || given_by_file(load, row, &given))
        return given;
    return (SettingGiven){row->fallback, arena_print(load->arena, "the default of %s", row->name)};
}

static ErrorCode flags_check(const SettingLoad *load)
{
    for (const SettingFlag *flag = load->sources->flags; flag && flag->name; flag++)
        if (!row_by_name(load->table, flag->name))
            return fail(load->reterr, ERR_USAGE, "unknown setting \"%s\"", flag->name);
    return OK;
}

static ErrorCode values_load(const SettingLoad *load, void *ret_struct)
{
    const SettingTable *table  = load->table;
    SettingValue       *values = arena_array(load->arena, SettingValue, table->count);

    for (size_t i = 0; i < table->count; i++) {
        SettingGiven given = row_given(load, &table->rows[i]);

        if (given.value && !setting_value_parse(&table->rows[i], given.value, load->arena, &values[i]))
            return refuse(load, &table->rows[i], &given);
        if (given.value)
            TRY(check(load, &table->rows[i], &given));
    }
    for (size_t i = 0; i < table->count; i++)
        setting_value_store(&table->rows[i], &values[i], ret_struct);
    return OK;
}

ErrorCode setting_load(const SettingTable *table, const SettingSources *sources, Arena *arena, void *ret_struct,
                       Error *reterr)
{
    SettingLoad load = {table, sources, arena, .reterr = reterr};
    Ini         ini;

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
    SettingLoad         load  = {group->table, &none, arena, .reterr = reterr};
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
