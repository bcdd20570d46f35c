/*
 * ini.c - reads the whole file, then cuts it into lines in place.
 */
#include "base/ini.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define BLANKS          " \t\r"
#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* some editors put it there */

static void file_close(FILE **file)
{
    if (*file)
        (void)fclose(*file); /* nothing was written */
}

static ErrorCode file_read(const char *path, Text *text, Error *reterr)
{
    __attribute__((cleanup(file_close))) FILE *file = fopen(path, "re");
    char                                       chunk[4096];
    size_t                                     size;

    if (!file)
        return fail(reterr, errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : ERR_USAGE,
                    "could not open settings file \"%s\": %s", path, strerror(errno));
    while (!text_is_full(text) && (size = fread(chunk, 1, sizeof chunk, file)) > 0)
        text_append_bytes(text, chunk, size);
    if (ferror(file))
        return fail(reterr, ERR_USAGE, "could not read settings file \"%s\": %s", path, strerror(errno));
    if (text_is_full(text))
        return fail(reterr, ERR_USAGE, "settings file \"%s\" is larger than %zu bytes", path, INI_BYTES_MAX);
    if (!text_is_utf8(text_string(text), text->length))
        return fail(reterr, ERR_USAGE, "settings file \"%s\" is not UTF-8 text", path);
    return OK;
}

/* Cut blanks off both ends. */
static char *trim(char *word)
{
    word += strspn(word, BLANKS);
    size_t size = strlen(word);
    while (size > 0 && strchr(BLANKS, word[size - 1]))
        size--;
    word[size] = '\0';
    return word;
}

static char *unquote(char *value)
{
    size_t size = strlen(value);

    if (size < 2 || value[0] != '"' || value[size - 1] != '"')
        return value;
    value[size - 1] = '\0';
    return value + 1;
}

static size_t lines_count(const char *text)
{
    size_t count = 1;

    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* What is being read, and how far. */
typedef struct {
    const char        *path, *main, *word;
    Arena             *arena;
    const IniSection  *section; /* of the lines that follow */
    const IniSection **sections;
    size_t             count;
} Parse;

static ErrorCode section_unknown(const Parse *parse, int line, Error *reterr)
{
    if (parse->word)
        return fail(reterr, ERR_USAGE, "unknown section in %s line %d: it must be [%s] or [%s NAME]", parse->path, line,
                    parse->main, parse->word);
    return fail(reterr, ERR_USAGE, "unknown section in %s line %d: it must be [%s]", parse->path, line, parse->main);
}

/* "[pawl]" or "[worker shop]". */
static ErrorCode section_parse(Parse *parse, char *heading, int line, Error *reterr)
{
    size_t size = strlen(heading), word_size = parse->word ? strlen(parse->word) : 0;

    if (heading[size - 1] != ']')
        return section_unknown(parse, line, reterr);
    heading[size - 1] = '\0';
    heading           = trim(heading + 1);
    if (strcmp(heading, parse->main) == 0) {
        parse->section = NULL;
        return OK;
    }
    if (!word_size || strncmp(heading, parse->word, word_size) != 0 || !strchr(BLANKS, heading[word_size]) ||
        !heading[word_size])
        return section_unknown(parse, line, reterr);
    IniSection *section = arena_alloc(parse->arena, sizeof *section);

    *section = (IniSection){parse->word, trim(heading + word_size), line};
    for (size_t i = 0; i < parse->count; i++)
        if (strcmp(parse->sections[i]->name, section->name) == 0)
            return fail(reterr, ERR_USAGE, "section [%s %s] in %s line %d is already in line %d", parse->word,
                        section->name, parse->path, line, parse->sections[i]->line);
    parse->sections[parse->count++] = parse->section = section;
    return OK;
}

/* ret_entry->key stays NULL on a line without a setting. The line itself is in no message: it may hold a secret. */
static ErrorCode line_parse(Parse *parse, char *line, IniEntry *ret_entry, Error *reterr)
{
    line = trim(line);
    if (line[0] == '\0' || line[0] == '#' || line[0] == ';')
        return OK;
    if (line[0] == '[')
        return section_parse(parse, line, ret_entry->line, reterr);
    char *equals = strchr(line, '=');
    if (!equals)
        return fail(reterr, ERR_USAGE, "%s line %d is not of the form name = value", parse->path, ret_entry->line);
    *equals            = '\0';
    ret_entry->section = parse->section;
    ret_entry->key     = trim(line);
    ret_entry->value   = unquote(trim(equals + 1));
    return OK;
}

ErrorCode ini_read(const char *path, const char *section, const char *word, Arena *arena, Ini *ret_ini, Error *reterr)
{
    Parse  parse = {path, section, word, arena};
    Text   text;
    size_t count  = 0;
    int    number = 0;

    text_init(&text, arena, INI_BYTES_MAX);
    TRY(file_read(path, &text, reterr));
    size_t lines = lines_count(text_string(&text));
    if (!arena_has_space(arena, lines * (sizeof(IniEntry) + sizeof(IniSection) + sizeof(IniSection *))))
        return fail(reterr, ERR_USAGE, "settings file \"%s\" has too many lines", path);
    IniEntry *entries = arena_array(arena, IniEntry, lines);
    parse.sections    = arena_array(arena, const IniSection *, lines);

    char *at = text.bytes;
    if (strncmp(text_string(&text), BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        at += strlen(BYTE_ORDER_MARK);
    for (char *line; (line = strsep(&at, "\n"));) {
        IniEntry entry = {.line = ++number};

        TRY(line_parse(&parse, line, &entry, reterr));
        if (entry.key)
            entries[count++] = entry;
    }
    *ret_ini = (Ini){entries, count, parse.sections, parse.count};
    return OK;
}
