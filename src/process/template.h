/*
 * template.h - JSON values and texts with {{paths}} in their strings: compiled once, rendered often.
 *
 *     {"order": "{{state.order}}", "note": "order {{state.order.id}} of {{process.id}}"}
 *
 *   - A string that is exactly {{path}} becomes the value at the path, byte for byte: a number keeps all its digits.
 *   - Elsewhere in a string the value is inserted as text: strings without quotes, everything else as JSON.
 *   - {{path?}} may be missing: then it is null, and in a text nothing. A null is nothing in such a text, too.
 *   - {{"any text"}} is that text: a literal {{ is written {{"{{"}}. A }} outside of a template is text.
 *   - Names of members are no templates; one that contains {{ is refused.
 *
 * Invariants
 *   1. What a JSON template renders is well-formed JSON if the lookup's values are; inserted values cannot leave their string.
 *   2. A render either appends the whole value or fails: what it appended before it failed is taken back.
 * Threads: a compiled template is immutable; any number of threads may render it.
 * Ownership: templates live in the arena and borrow the bytes they were compiled from.
 */
#ifndef PROCESS_TEMPLATE_H
#define PROCESS_TEMPLATE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "base/value.h"
#include "process/path.h"

typedef struct Template Template;

/* Any JSON value; renders JSON. ERR_INVALID: *ret_at is where in its bytes it is wrong. */
must_check ErrorCode template_compile(Value value, Arena *arena, const Template **ret_template, const char **ret_at,
                                      Error *reterr);
/* A JSON string; renders plain text, for URLs and headers. */
must_check ErrorCode template_compile_text(Value string, Arena *arena, const Template **ret_template,
                                           const char **ret_at, Error *reterr);

/* What it was compiled from. */
Value template_source(const Template *template);
/* The paths in it, in order, linked by next; NULL: none, so it renders the same every time. */
const ValuePath *template_paths(const Template *template);
/* The path, if the template is exactly one {{path}}; else NULL. */
const ValuePath *template_only_path(const Template *template);
/* The bytes before its first path or escaped literal, as they will be rendered. */
Value template_prefix(const Template *template);

/* How many bytes a rendering takes at most, as far as its paths are there. */
size_t template_size(const Template *template, Lookup *lookup, void *context);
/* Append to text. ERR_INVALID names the path that is missing. ERR_LIMIT: the text is full. */
must_check ErrorCode template_render(const Template *template, Lookup *lookup, void *context, Text *text,
                                     Error *reterr);
/* The same for the text of a URL: a value is percent-encoded, so that it stays the segment, host or query value that it was written for. One
 * at the beginning is the URL's own beginning, and is inserted as it is. */
must_check ErrorCode template_render_url(const Template *template, Lookup *lookup, void *context, Text *text,
                                         Error *reterr);

#endif
