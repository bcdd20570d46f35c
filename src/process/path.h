/*
 * path.h - paths to values: state.order.id, steps.reserve.items.0, process.id, item, index, result.
 *
 *     path    = root segment*            state, item, index, result, steps.NAME, process.id, process.type, process.domain
 *     segment = "." name                 letters, digits, "_", "-" and characters beyond ASCII
 *             | "." "\"" any "\""        any other name: state."first name"
 *
 * A segment of digits is an index in an array and a name in an object.
 *
 * A root is a document that the engine has; path_find() asks for it by a callback and walks the rest. So the same compiled path serves a
 * run of the process, a test and the diagram.
 *
 * Threads: a parsed path is immutable. Ownership: paths live in the arena.
 */
#ifndef PROCESS_PATH_H
#define PROCESS_PATH_H

#include "base/arena.h"
#include "base/error.h"
#include "base/value.h"

#define PATH_SEGMENTS_MAX 64

/* clang-format off */
/*    root                 words             may have segments */
#define PATH_ROOTS(X)                                      \
    X(PATH_STATE,          "state",          true)         \
    X(PATH_STEP,           "steps",          true)         \
    X(PATH_PROCESS_ID,     "process.id",     false)        \
    X(PATH_PROCESS_TYPE,   "process.type",   false)        \
    X(PATH_PROCESS_DOMAIN, "process.domain", false)        \
    X(PATH_ITEM,           "item",           true)         \
    X(PATH_INDEX,          "index",          false)        \
    X(PATH_RESULT,         "result",         true)
/* clang-format on */
#define X(id, words, segments) id,
typedef enum { PATH_ROOTS(X) PATH_ROOT_COUNT } PathRoot;
#undef X

typedef struct {
    const char *name;
    size_t      size;
    int64_t     index; /* -1: it cannot be one */
} PathSegment;

typedef struct ValuePath ValuePath;
struct ValuePath {
    PathRoot           root;
    const char        *step; /* PATH_STEP: its name; else NULL */
    const PathSegment *segments;
    int                count;
    const char        *text; /* as it was written, without white space: for messages */
    const char        *at;   /* where it stands in the bytes that were compiled */
    ValuePath         *next; /* of the same template or condition; NULL: the last */
};

/* The document of a root: the state, the result of path->step, the item, ...; size 0: there is none. */
typedef Value Lookup(void *context, const ValuePath *path);

/* Parse the path at the start of the bytes. *ret_used: how many bytes it takes; after a refusal, where it is wrong.
 * ERR_INVALID: no such root, or not a path. `at` and `next` are left to the caller. */
must_check ErrorCode path_parse(const char *bytes, size_t size, Arena *arena, ValuePath *ret_path, size_t *ret_used,
                                Error *reterr);
/* The value; size 0: it is missing. */
Value path_find(const ValuePath *path, Lookup *lookup, void *context);
/* ERR_INVALID: it is missing, and the text names the first part of the path that is. */
must_check ErrorCode path_require(const ValuePath *path, Lookup *lookup, void *context, Value *ret_value,
                                  Error *reterr);

#endif
