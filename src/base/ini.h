/*
 * ini.h - a settings file as a list of "key = value" lines, each with its number, so that a mistake can be shown.
 *
 *     # comments are whole lines that begin with # or ;
 *     [pawl]                                      the main section; keys may stand above it as well
 *     database_url = host=db password=a;b#c       a value goes to the end of its line
 *     greeting = "  two spaces  "                 double quotes around a value are taken off
 *     [worker shop]                               a section with a name, as often as needed
 *
 * Threads: any; nothing is shared. Ownership: entries and their texts live in the arena.
 */
#ifndef BASE_INI_H
#define BASE_INI_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define INI_BYTES_MAX ((size_t)256 << 10)

/* Where a named section begins. */
typedef struct {
    const char *word, *name; /* "worker", "shop" */
    int         line;
} IniSection;

typedef struct {
    const IniSection *section; /* NULL: the main one */
    const char       *key;
    const char       *value;
    int               line;
} IniEntry;

typedef struct {
    const IniEntry          *entries;
    size_t                   count;
    const IniSection *const *sections; /* named ones, in the order of the file, empty ones too */
    size_t                   section_count;
} Ini;

/* section: the main one. word: of sections with a name; NULL: there are none. ERR_NOT_FOUND: no such file. ERR_USAGE:
 * it cannot be read, or a line is not right; the text says which. */
must_check ErrorCode ini_read(const char *path, const char *section, const char *word, Arena *arena, Ini *ret_ini,
                              Error *reterr);

#endif
