/*
 * definition_internal.h - what the files of the definition's parser share; nothing else includes it.
 *
 * definition_read.c reads tables of fields and lists of steps, definition_field.c single values, definition_wallet.c operations of the ledger,
 * definition_check.c what only the whole file shows: jumps, reachability, references.
 */
#ifndef PROCESS_DEFINITION_INTERNAL_H
#define PROCESS_DEFINITION_INTERNAL_H

#include "process/definition.h"
#include "process/field.h"
#include "process/source.h"

/* A path in a template or condition, with what it may name. Checked when all steps are known. */
typedef struct Reference Reference;
struct Reference {
    const ValuePath *path;
    const Step      *step;           /* that it is used in; NULL: in the result of the process */
    bool             is_after_round; /* of this repeat */
    Reference       *next;
};

/* Where a jump is written. */
typedef struct Jump Jump;
struct Jump {
    Step       *step;
    const char *then_at, *else_at;
    Jump       *next;
};

typedef struct {
    Source          source;
    Arena          *arena;
    Error          *reterr;
    Definition     *definition;
    Step           *steps[DEFINITION_STEPS_MAX];
    const char     *step_at[DEFINITION_STEPS_MAX]; /* where it begins */
    int             count, allocated;
    Reference      *first_reference, *last_reference;
    Jump           *first_jump, *last_jump;
    const Step     *step;    /* being read; NULL: outside of steps */
    const StepList *list;    /* that it belongs to */
    const char     *located; /* the last step whose line was found, */
    int             line, column;
    bool            has_result;     /* the field being read may name the step's result */
    bool            is_after_round; /* the field being read is evaluated at the end of the step's list */
} Parser;

/* ---- definition_field.c ---- */

/* Read one value into the struct at `row`. */
must_check ErrorCode field_read(Parser *parser, const ProcessField *field, Value value, void *row);
/* The text of a value that is a string; NULL: it is none. In the arena, with a NUL behind. */
const char *string_copy(Parser *parser, Value value);
/* "must be ..., got ..." at the value. */
ErrorCode            field_refuse(Parser *parser, const ProcessField *field, Value value);
must_check ErrorCode template_read(Parser *parser, Value value, bool is_text, const Template **ret_template);
must_check ErrorCode condition_read(Parser *parser, Value value, const Condition **ret_condition);
/* 1 to length_max of [A-Za-z0-9_-], and of `more`, beginning with a letter or digit. */
bool name_is_valid(const char *name, size_t length_max, const char *more);

/* ---- definition_wallet.c ---- */

must_check ErrorCode operation_read(Parser *parser, const ProcessField *field, Value value, WalletAction *ret_action);

/* ---- definition_read.c ---- */

/* Every member of an object into the struct at `row`. */
must_check ErrorCode table_read(Parser *parser, const ProcessTable *table, Value object, void *row);
must_check ErrorCode compensate_read(Parser *parser, const ProcessField *field, Value value, const Action **ret_action);
must_check ErrorCode steps_read(Parser *parser, const ProcessField *field, Value value, StepList *ret_list);
must_check ErrorCode branches_read(Parser *parser, const ProcessField *field, Value value, ParallelAction *ret_action);

/* ---- definition_check.c ---- */

must_check ErrorCode definition_check(Parser *parser);

#endif
