/*
 * path.c - see path.h.
 */
#include "process/path.h"

#include <string.h>

#define NAME_BYTES_MAX   1000
#define INDEX_DIGITS_MAX 9
#define TEXT_SHOWN_MAX   120 /* bytes of a path in a message */

typedef struct {
    const char *start, *at, *end;
    Arena      *arena;
    Error      *reterr;
    PathSegment segments[PATH_SEGMENTS_MAX];
    int         count;
} Parser;

#define X(id, words, segments) {words, segments},
static const struct {
    const char *words;
    bool        has_segments;
} roots[] = {PATH_ROOTS(X)};
#undef X

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           (unsigned char)c >= 0x80;
}

static Value word_read(Parser *parser)
{
    const char *start = parser->at;

    while (parser->at < parser->end && is_name_char(*parser->at))
        parser->at++;
    return (Value){start, (size_t)(parser->at - start)};
}

static bool word_is(Value word, const char *text)
{
    return word.size == strlen(text) && memcmp(word.bytes, text, word.size) == 0;
}

static bool dot_skip(Parser *parser)
{
    if (parser->at >= parser->end || *parser->at != '.')
        return false;
    parser->at++;
    return true;
}

/* ---- roots ---- */

static ErrorCode root_refuse(Parser *parser, Value word)
{
    parser->at = word.bytes;
    if (word.size == 0)
        return fail(parser->reterr, ERR_INVALID, "expected a path such as state.order.id");
    return fail(parser->reterr, ERR_INVALID,
                "unknown path \"%.*s\": it must begin with state, steps, process, item, index or result",
                (int)text_cut(word.bytes, word.size, 40), word.bytes);
}

static ErrorCode process_read(Parser *parser, Value word, ValuePath *path)
{
    Value field = {"", 0};

    if (dot_skip(parser))
        field = word_read(parser);
    for (PathRoot root = PATH_PROCESS_ID; root <= PATH_PROCESS_DOMAIN; root++)
        if (word_is(field, roots[root].words + strlen("process."))) {
            path->root = root;
            return OK;
        }
    parser->at = word.bytes;
    return fail(parser->reterr, ERR_INVALID, "process has only process.id, process.type and process.domain");
}

static ErrorCode step_read(Parser *parser, Value word, ValuePath *path)
{
    Value name = {"", 0};

    if (dot_skip(parser))
        name = word_read(parser);
    if (name.size == 0) {
        parser->at = word.bytes;
        return fail(parser->reterr, ERR_INVALID, "steps must be followed by the name of a step: steps.reserve.id");
    }
    path->root = PATH_STEP;
    path->step = arena_bytes(parser->arena, name.bytes, name.size);
    return OK;
}

static ErrorCode root_read(Parser *parser, ValuePath *path)
{
    Value word = word_read(parser);

    if (word_is(word, "process"))
        return process_read(parser, word, path);
    if (word_is(word, "steps"))
        return step_read(parser, word, path);
    for (PathRoot root = 0; root < PATH_ROOT_COUNT; root++)
        if (word_is(word, roots[root].words)) {
            path->root = root;
            return OK;
        }
    return root_refuse(parser, word);
}

/* ---- segments ---- */

static int64_t index_read(Value name)
{
    int64_t index = 0;

    if (name.size == 0 || name.size > INDEX_DIGITS_MAX || (name.size > 1 && name.bytes[0] == '0'))
        return -1;
    for (size_t i = 0; i < name.size; i++) {
        if (name.bytes[i] < '0' || name.bytes[i] > '9')
            return -1;
        index = index * 10 + (name.bytes[i] - '0');
    }
    return index;
}

static ErrorCode quoted_read(Parser *parser, Value *ret_name)
{
    const char *quote = parser->at++;
    const char *end   = memchr(parser->at, '"', (size_t)(parser->end - parser->at));

    if (!end || end == parser->at) {
        parser->at = quote;
        return fail(parser->reterr, ERR_INVALID, end ? "the name between the quotes is empty" : "the quote has no end");
    }
    *ret_name  = (Value){parser->at, (size_t)(end - parser->at)};
    parser->at = end + 1;
    return OK;
}

static ErrorCode segment_read(Parser *parser, PathSegment *ret_segment)
{
    const char *dot = parser->at - 1;
    Value       name;

    if (parser->at < parser->end && *parser->at == '"')
        TRY(quoted_read(parser, &name));
    else
        name = word_read(parser);
    if (name.size == 0 || name.size > NAME_BYTES_MAX) {
        parser->at = dot;
        return fail(parser->reterr, ERR_INVALID, "\".\" must be followed by a name of 1 to %d bytes or an index",
                    NAME_BYTES_MAX);
    }
    *ret_segment = (PathSegment){name.bytes, name.size, index_read(name)};
    return OK;
}

static ErrorCode segments_read(Parser *parser, PathRoot root)
{
    while (dot_skip(parser)) {
        if (parser->count == PATH_SEGMENTS_MAX)
            return fail(parser->reterr, ERR_INVALID, "a path may have at most %d segments", PATH_SEGMENTS_MAX);
        TRY(segment_read(parser, &parser->segments[parser->count++]));
    }
    if (parser->count == 0 || roots[root].has_segments)
        return OK;
    parser->at = parser->start + strlen(roots[root].words);
    return fail(parser->reterr, ERR_INVALID, "%s is a single value: nothing can follow it", roots[root].words);
}

/* Into the arena, with names that live as long as the path. */
static void segments_store(const Parser *parser, ValuePath *path)
{
    PathSegment *segments = arena_array(parser->arena, PathSegment, parser->count);

    for (int i = 0; i < parser->count; i++) {
        segments[i]      = parser->segments[i];
        segments[i].name = path->text + (segments[i].name - parser->start);
    }
    path->segments = segments;
    path->count    = parser->count;
}

ErrorCode path_parse(const char *bytes, size_t size, Arena *arena, ValuePath *ret_path, size_t *ret_used, Error *reterr)
{
    Parser    parser = {.start = bytes, .at = bytes, .end = bytes + size, .arena = arena, .reterr = reterr};
    ValuePath path   = {.at = bytes};
    ErrorCode code   = root_read(&parser, &path);

    if (code == OK)
        code = segments_read(&parser, path.root);
    *ret_used = (size_t)(parser.at - bytes);
    if (code != OK)
        return code;
    path.text = arena_bytes(arena, bytes, *ret_used);
    if (parser.count > 0)
        segments_store(&parser, &path);
    *ret_path = path;
    return OK;
}

/* ---- finding ---- */

static Value segment_find(Value value, const PathSegment *segment)
{
    if (value_kind(value) != VALUE_ARRAY)
        return value_member(value, segment->name, segment->size);
    if (segment->index < 0)
        return (Value){0};
    return value_item(value, segment->index);
}

/* *ret_found: how many segments were there, -1: not even the root. */
static Value walk(const ValuePath *path, Lookup *lookup, void *context, int *ret_found)
{
    Value value = lookup(context, path);

    *ret_found = -1;
    for (int i = 0; value.size > 0 && i < path->count; i++) {
        *ret_found = i;
        value      = segment_find(value, &path->segments[i]);
    }
    return value;
}

Value path_find(const ValuePath *path, Lookup *lookup, void *context)
{
    int found;

    return walk(path, lookup, context, &found);
}

/* The path up to its segment with this index, which is not part of it. */
static Value path_before(const ValuePath *path, int index)
{
    const char *end = path->segments[index].name - 1;

    return (Value){path->text, (size_t)(end - path->text) - (*end == '"')};
}

ErrorCode path_require(const ValuePath *path, Lookup *lookup, void *context, Value *ret_value, Error *reterr)
{
    int   found, cut = (int)text_cut(path->text, strlen(path->text), TEXT_SHOWN_MAX);
    Value value = walk(path, lookup, context, &found);

    if (value.size > 0) {
        *ret_value = value;
        return OK;
    }
    if (found < 0 && path->root == PATH_STEP)
        return fail(reterr, ERR_INVALID, "{{%.*s}} is missing: step \"%s\" has no result", cut, path->text, path->step);
    if (found < 0)
        return fail(reterr, ERR_INVALID, "{{%.*s}} is missing: there is no %s", cut, path->text,
                    roots[path->root].words);
    const PathSegment *segment = &path->segments[found];
    Value              before  = path_before(path, found);
    return fail(reterr, ERR_INVALID, "{{%.*s}} is missing: %.*s has no \"%.*s\"", cut, path->text,
                (int)text_cut(before.bytes, before.size, TEXT_SHOWN_MAX), before.bytes,
                (int)text_cut(segment->name, segment->size, TEXT_SHOWN_MAX), segment->name);
}
