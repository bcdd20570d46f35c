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

/* ret_entry->key stays NULL on a line that says nothing. The line itself is in no message: it may hold a secret. */
static ErrorCode line_parse(const char *path, const char *section, char *line, IniEntry *ret_entry, Error *reterr)
{
    line = trim(line);
    if (line[0] == '\0' || line[0] == '#' || line[0] == ';')
        return OK;
    if (line[0] == '[') {
        size_t size = strlen(section);

        if (strncmp(line + 1, section, size) == 0 && strcmp(line + 1 + size, "]") == 0)
            return OK;
        return fail(reterr, ERR_USAGE, "unknown section in %s line %d: only [%s] is known", path, ret_entry->line,
                    section);
    }
    char *equals = strchr(line, '=');
    if (!equals)
        return fail(reterr, ERR_USAGE, "%s line %d is not of the form name = value", path, ret_entry->line);
    *equals          = '\0';
    ret_entry->key   = trim(line);
    ret_entry->value = unquote(trim(equals + 1));
    return OK;
}

ErrorCode ini_read(const char *path, const char *section, Arena *arena, Ini *ret_ini, Error *reterr)
{
    Text   text;
    size_t count  = 0;
    int    number = 0;

    text_init(&text, arena, INI_BYTES_MAX);
    TRY(file_read(path, &text, reterr));
    size_t entries_max = lines_count(text_string(&text));
    if (!arena_has_room(arena, entries_max * sizeof(IniEntry)))
        return fail(reterr, ERR_USAGE, "settings file \"%s\" has too many lines", path);
    IniEntry *entries = arena_array(arena, IniEntry, entries_max);

    char *at = text.bytes;
    if (strncmp(text_string(&text), BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        at += strlen(BYTE_ORDER_MARK);
    for (char *line; (line = strsep(&at, "\n"));) {
        IniEntry entry = {.line = ++number};

        TRY(line_parse(path, section, line, &entry, reterr));
        if (entry.key)
            entries[count++] = entry;
    }
    *ret_ini = (Ini){entries, count};
    return OK;
}
