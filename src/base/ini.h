/*
 * ini.h - a settings file as a list of "key = value" lines, each with its number, so that a mistake can be shown.
 *
 *     # comments are whole lines that begin with # or ;
 *     [pawl]                                      the one section; keys may stand above it as well
 *     database_url = host=db password=a;b#c       a value goes to the end of its line
 *     greeting = "  two spaces  "                 double quotes around a value are taken off
 *
 * Ownership: entries and their texts live in the arena.
 */
#ifndef BASE_INI_H
#define BASE_INI_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define INI_BYTES_MAX ((size_t)256 << 10)

typedef struct {
    const char *key;
    const char *value;
    int         line;
} IniEntry;

typedef struct {
    const IniEntry *entries;
    size_t          count;
} Ini;

/* ERR_NOT_FOUND: no such file. ERR_USAGE: it cannot be read, or a line is not right; the text says which. */
must_check ErrorCode ini_read(const char *path, const char *section, Arena *arena, Ini *ret_ini, Error *reterr);

#endif
