/*
 * condition.h - conditions such as: state.total > 100 and not (state.vip or state.country == "DE")
 *
 *     or         = and ("or" and)*
 *     and        = not ("and" not)*
 *     not        = "not" not | "(" or ")" | test
 *     test       = path | "true" | "false" | operand ("==" | "!=" | "<" | "<=" | ">" | ">=") operand
 *     operand    = path | number | string in double quotes | "true" | "false" | "null"
 *
 * Meaning
 *   - A path alone is true if its value is there and neither null nor false. A missing value is null.
 *   - Numbers compare as numbers, exactly, whatever their length; strings by bytes.
 *   - == and !=: values of different kinds differ. Two arrays or two objects cannot be compared: an error.
 *   - < <= > >= with a null is false, so that a condition may name what is not there yet. Other kinds than two numbers or
 *     two strings are an error.
 *   - The right side of "and" and "or" is not evaluated if the left side decides.
 *
 * Threads: a compiled condition is immutable. Ownership: it lives in the arena and borrows the bytes it was compiled from.
 */
#ifndef PROCESS_CONDITION_H
#define PROCESS_CONDITION_H

#include "base/arena.h"
#include "base/error.h"
#include "process/path.h"

#define CONDITION_BYTES_MAX 4096
#define CONDITION_DEPTH_MAX 32 /* parentheses and "not" inside each other */

typedef struct Condition Condition;

/* A JSON string. ERR_INVALID: *ret_at is where in its bytes it is wrong. */
must_check ErrorCode condition_compile(Value string, Arena *arena, const Condition **ret_condition, const char **ret_at,
                                       Error *reterr);
/* The paths in it, in order, linked by next; NULL: none. */
const ValuePath *condition_paths(const Condition *condition);
/* As it was written. */
const char *condition_text(const Condition *condition);

/* ERR_INVALID: two values that cannot be compared, named by their paths and kinds. */
must_check ErrorCode condition_evaluate(const Condition *condition, Lookup *lookup, void *context, bool *ret_is_true,
                                        Error *reterr);

#endif
