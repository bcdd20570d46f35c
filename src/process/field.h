/*
 * field.h - the fields of a definition file: which object takes which, of what type, within which limits.
 *
 * One row per field. Reading, refusals and the reference are made from these tables; a field that is not here does not exist.
 *
 * Invariant: in the table of steps, a row that selects a kind has its bit only; every kind has exactly one such row.
 * Threads: constants.
 */
#ifndef PROCESS_FIELD_H
#define PROCESS_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "process/definition.h"

typedef enum {
    TYPE_NAME,       /* const char *: of a step, a response */
    TYPE_NAMES,      /* NameList: two or more, each once */
    TYPE_DOMAIN,     /* const char * */
    TYPE_TYPE,       /* const char *: of a process, a command */
    TYPE_LINE,       /* const char *: a text without templates */
    TYPE_FUNCTION,   /* const char *: schema.function */
    TYPE_TARGET,     /* const char *: a later step of the same list, or "end" */
    TYPE_METHOD,     /* const char *: one of words */
    TYPE_WORD,       /* int: the index in words */
    TYPE_CONTINUE,   /* bool: the second of words */
    TYPE_INTEGER,    /* int64_t */
    TYPE_REAL,       /* double */
    TYPE_DURATION,   /* int64_t, in ms */
    TYPE_CONDITION,  /* const Condition * */
    TYPE_JSON,       /* const Template *: any value with templates */
    TYPE_PATCH,      /* const Template *: an object with templates */
    TYPE_TEXT,       /* const Template *: a text with templates */
    TYPE_URL,        /* const Template *: a text with templates, http or https */
    TYPE_LIST,       /* const Template *: a text that is one template */
    TYPE_HEADERS,    /* in HttpAction */
    TYPE_OPERATION,  /* WalletAction */
    TYPE_SLEEP,      /* SleepAction: a duration, or an object */
    TYPE_OBJECT,     /* a struct: an object described by table */
    TYPE_COMPENSATE, /* const Action * */
    TYPE_STEPS,      /* StepList */
    TYPE_BRANCHES,   /* ParallelAction */
} ProcessFieldType;

typedef unsigned KindSet; /* a bit per StepKind */

typedef struct ProcessTable ProcessTable;
typedef struct {
    const char         *name;
    ProcessFieldType    type;
    size_t              offset;
    KindSet             kinds;         /* of steps that take it; 0: not in the table of steps */
    bool                selects;       /* it makes the step one of its kind */
    bool                in_compensate; /* a compensation takes it as well */
    bool                required;
    bool                has_result;     /* its templates may name the step's own result */
    bool                is_after_round; /* it is evaluated at the end of the step's list */
    int64_t             min, max;       /* INTEGER, REAL, DURATION in ms; DOMAIN: only max, its length */
    const char *const  *words;
    const ProcessTable *table; /* OBJECT */
    const char         *help;
} ProcessField;

struct ProcessTable {
    const char         *noun; /* "step": the object that it describes */
    const ProcessField *fields;
    size_t              count;
};

extern const ProcessTable        definition_table, step_table, sleep_table;
extern const ProcessTable *const process_tables[]; /* all of them, ended by NULL */

/* Do steps of all kinds take it? */
bool field_is_common(const ProcessField *field);
/* "exec, sql, http": the names of the kinds in the set. */
void kinds_print(KindSet kinds, Text *text);
/* "a duration from 1ms to 3650d": what is right for the field. */
void field_rule_print(const ProcessField *field, Text *text);

#endif
