/*
 * setting.h - settings from a table: defaults < file < environment < flags.
 *
 * A row names the variable (PAWL_POOL_MAX), which is also the key in the file (pool_max, or its full name) and the flag
 * (--pool-max).
 * A wrong value prevents startup, with its name, its location and what would be right:
 *     PAWL_POOL_MAX in /etc/pawl.ini line 3 must be an integer from 1 to 1000, got "ten"
 * `pawl help settings` and docs/reference.md are printed from the same table. Secrets are never printed.
 *
 * The table belongs to app; this file knows only how to read one. Threads: any. Ownership: texts live in the caller's
 * arena.
 */
#ifndef BASE_SETTING_H
#define BASE_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"

typedef enum { SETTING_TEXT, SETTING_INT, SETTING_DURATION_MS, SETTING_BOOL, SETTING_WORD, SETTING_WORDS } SettingType;

/* ERR_USAGE says what is wrong with it and what would be right, without the name and the location of the setting. */
typedef ErrorCode SettingCheck(const char *word, Error *reterr);

typedef struct {
    const char        *name;     /* "PAWL_LISTEN" */
    const char        *name_alt; /* "DATABASE_URL": read when name is unset; NULL: none */
    SettingType        type;     /* TEXT, WORD: const char *; INT, DURATION_MS: int64_t; BOOL: bool;
                                    WORDS: uint64_t, bits in the order of words */
    size_t             offset;
    const char        *fallback; /* the default, as a user would write it; NULL: none */
    int64_t            min, max; /* INT; DURATION_MS in ms; both 0: no limit */
    const char *const *words;    /* WORD: one of these; WORDS: a comma-separated list of these; NULL-terminated */
    SettingCheck      *check;    /* TEXT only: is it right? NULL: any text is */
    bool               secret;   /* TEXT only: in no message, shown as "(set)" */
    bool               reloads;  /* takes effect on SIGHUP */
    const char        *help;
} Setting;

typedef struct {
    const Setting *rows;
    size_t         count;
} SettingTable;

/* A value given by a flag: {"PAWL_LISTEN", "127.0.0.1:9000"}; the list ends with a NULL name. */
typedef struct {
    const char *name;
    const char *value;
} SettingFlag;

/* Settings that the file may hold several times, each under a heading with a name: [worker shop]. */
typedef struct {
    const char         *word;  /* "worker" */
    const SettingTable *table; /* a row's name is its key: "exec" */
    size_t              size;  /* of the struct that the table fills */
} SettingGroup;

typedef struct {
    const char *name;     /* "shop" */
    const char *location; /* "[worker shop] in /etc/pawl.ini line 3", for messages */
    void       *values;
} SettingSection;

typedef struct {
    const char         *file; /* --config: must exist. NULL: the first of files that exists, or none */
    const char *const  *files;
    const char *const  *environment; /* usually environ */
    const SettingFlag  *flags;       /* NULL: none */
    const SettingGroup *group;       /* of named sections in the file; NULL: none are allowed */
} SettingSources;

/* Fill *ret_struct from all sources; texts live in the arena. Untouched on failure. An empty value in the environment
 * or the file counts as unset. Unknown keys in the file are refused with the nearest right one. ERR_USAGE, always. */
must_check ErrorCode setting_load(const SettingTable *table, const SettingSources *sources, Arena *arena,
                                  void *ret_struct, Error *reterr);
/* The named sections of the file, in its order. ERR_USAGE, always. */
must_check ErrorCode setting_load_sections(const SettingSources *sources, Arena *arena, SettingSection **ret_list,
                                           size_t *ret_count, Error *reterr);
/* On the command line: PAWL_POOL_MAX is --pool-max. */
const char *setting_flag(Arena *arena, const Setting *row);
/* The table as people read it: name, default, meaning. */
void setting_describe(const SettingTable *table, Text *text);
/* "10s", "250ms", "5m", "1h", "2d", or 0. A number without a unit is refused. */
must_check ErrorCode setting_duration(const char *word, int64_t *ret_ms, Error *reterr);
void                 setting_duration_print(int64_t ms, Text *text);
/* What would be right, in words: "a whole number from 1 to 1000"; nothing when any text is. */
void setting_rule_print(const Setting *row, Text *text);

#endif
