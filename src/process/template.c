/*
 * template.c - a template is a list of parts: bytes that never change, and paths between them.
 *
 * The bytes of a JSON value between two strings with templates are one part, so a large value with few templates renders by few copies.
 * Strings are decoded before they are parsed, because a quote or a brace may be written as an escape.
 */
#include "process/template.h"

#include <assert.h>
#include <string.h>

#include "base/scan.h"

typedef enum {
    PART_BYTES,  /* as they are */
    PART_VALUE,  /* the value, as JSON */
    PART_STRING, /* the value as text, escaped for the JSON string around it */
    PART_TEXT,   /* the value as text */
} PartKind;

typedef struct Part Part;
struct Part {
    PartKind   kind;
    bool       is_optional;
    Value      bytes;
    ValuePath *path;
    Part      *next;
};

struct Template {
    Value       source;
    const Part *first;
    bool        is_text;
};

typedef struct {
    Arena       *arena;
    Error       *reterr;
    const char **ret_at;
    bool         is_text;
    Part        *first, *last;
    ValuePath   *last_path;
    const char  *pending; /* JSON bytes that are not yet in a part begin here */
} Compiler;

typedef struct {
    Value       text; /* decoded */
    size_t      at;
    ValueCursor cursor;
} String;

/* ---- parts ---- */

static Part *part_add(Compiler *compiler, PartKind kind)
{
    Part *part = arena_array(compiler->arena, Part, 1);

    part->kind = kind;
    if (compiler->last)
        compiler->last->next = part;
    else
        compiler->first = part;
    compiler->last = part;
    return part;
}

static void bytes_add(Compiler *compiler, const char *bytes, size_t size)
{
    if (size > 0)
        part_add(compiler, PART_BYTES)->bytes = (Value){bytes, size};
}

/* Text of a string, as the template's output needs it. */
static void literal_add(Compiler *compiler, Value literal)
{
    Text text;

    if (compiler->is_text || literal.size == 0) {
        bytes_add(compiler, literal.bytes, literal.size);
        return;
    }
    text_init(&text, NULL, TEXT_MAX_BODY);
    value_escape(literal.bytes, literal.size, &text);
    bytes_add(compiler, arena_bytes(compiler->arena, text_string(&text), text.length), text.length);
    text_done(&text);
}

static void path_add(Compiler *compiler, PartKind kind, ValuePath *path, bool is_optional)
{
    Part *part = part_add(compiler, kind);

    part->path        = path;
    part->is_optional = is_optional;
    if (compiler->last_path)
        compiler->last_path->next = path;
    compiler->last_path = path;
}

/* ---- one string ---- */

static ErrorCode refuse(Compiler *compiler, String *string, size_t offset, ErrorCode code)
{
    *compiler->ret_at = value_cursor_move(&string->cursor, offset);
    return code;
}

static const char *find(const String *string, const char *word)
{
    return memmem(string->text.bytes + string->at, string->text.size - string->at, word, strlen(word));
}

static void space_skip(String *string)
{
    while (string->at < string->text.size && string->text.bytes[string->at] == ' ')
        string->at++;
}

static bool skip(String *string, const char *word)
{
    size_t size = strlen(word);

    if (string->text.size - string->at < size || memcmp(string->text.bytes + string->at, word, size) != 0)
        return false;
    string->at += size;
    return true;
}

/* Behind {{: a path, or a text in quotes. Exactly one of the outputs is set. */
typedef struct {
    ValuePath *path;
    bool       is_optional;
    Value      literal;
} Expression;

static ErrorCode literal_read(Compiler *compiler, String *string, Expression *ret_expression)
{
    size_t      quote = string->at++;
    const char *end   = find(string, "\"");

    if (!end)
        return refuse(compiler, string, quote, fail(compiler->reterr, ERR_INVALID, "the quote has no end"));
    ret_expression->literal.bytes = string->text.bytes + string->at;
    ret_expression->literal.size  = (size_t)(end - ret_expression->literal.bytes);
    string->at += ret_expression->literal.size + 1;
    return OK;
}

static ErrorCode expression_read(Compiler *compiler, String *string, Expression *ret_expression)
{
    const char *start = value_cursor_move(&string->cursor, string->at);
    size_t      used;

    *ret_expression = (Expression){0};
    string->at += strlen("{{");
    space_skip(string);
    if (string->at < string->text.size && string->text.bytes[string->at] == '"')
        TRY(literal_read(compiler, string, ret_expression));
    else {
        ValuePath *path = arena_array(compiler->arena, ValuePath, 1);
        ErrorCode  code = path_parse(string->text.bytes + string->at, string->text.size - string->at, compiler->arena,
                                     path, &used, compiler->reterr);

        if (code != OK)
            return refuse(compiler, string, string->at + used, code);
        path->at = value_cursor_move(&string->cursor, string->at);
        string->at += used;
        ret_expression->path        = path;
        ret_expression->is_optional = skip(string, "?");
    }
    space_skip(string);
    if (skip(string, "}}"))
        return OK;
    if (!find(string, "}}")) {
        *compiler->ret_at = start;
        return fail(compiler->reterr, ERR_INVALID, "\"{{\" is not closed by \"}}\"");
    }
    return refuse(compiler, string, string->at,
                  fail(compiler->reterr, ERR_INVALID, "expected \"}}\" behind the path, found \"%.*s\"",
                       (int)text_cut(string->text.bytes + string->at, string->text.size - string->at, 20),
                       string->text.bytes + string->at));
}

/* Literals and expressions in turn. The quotes around them are the caller's. */
static ErrorCode pieces_read(Compiler *compiler, String *string)
{
    while (string->at < string->text.size) {
        const char *open  = find(string, "{{");
        const char *start = string->text.bytes + string->at;
        Expression  expression;

        if (!open) {
            literal_add(compiler, (Value){start, string->text.size - string->at});
            return OK;
        }
        literal_add(compiler, (Value){start, (size_t)(open - start)});
        string->at += (size_t)(open - start);
        TRY(expression_read(compiler, string, &expression));
        if (expression.path)
            path_add(compiler, compiler->is_text ? PART_TEXT : PART_STRING, expression.path, expression.is_optional);
        else
            literal_add(compiler, expression.literal);
    }
    return OK;
}

static String string_decode(Compiler *compiler, Value raw)
{
    return (String){.text = value_decode(raw, compiler->arena), .cursor = value_cursor(raw)};
}

/* Is the whole string one {{path}}? Then it is read. */
static ErrorCode whole_read(Compiler *compiler, const String *string, bool *ret_is_whole)
{
    String     copy = *string;
    Expression expression;

    *ret_is_whole = false;
    if (string->text.size < 4 || memcmp(string->text.bytes, "{{", 2) != 0)
        return OK;
    TRY(expression_read(compiler, &copy, &expression));
    if (!expression.path || copy.at != copy.text.size)
        return OK;
    path_add(compiler, PART_VALUE, expression.path, expression.is_optional);
    *ret_is_whole = true;
    return OK;
}

/* A string inside a JSON value; the value's bytes before it become a part if it has a template. */
static ErrorCode string_read(Compiler *compiler, const char *raw)
{
    const char *end    = scan_value_end(raw);
    String      string = string_decode(compiler, (Value){raw, (size_t)(end - raw)});
    bool        is_whole;

    if (!find(&string, "{{"))
        return OK;
    bytes_add(compiler, compiler->pending, (size_t)(raw - compiler->pending));
    compiler->pending = end;
    TRY(whole_read(compiler, &string, &is_whole));
    if (is_whole)
        return OK;
    bytes_add(compiler, "\"", 1);
    TRY(pieces_read(compiler, &string));
    bytes_add(compiler, "\"", 1);
    return OK;
}

/* ---- any value ---- */

static ErrorCode value_read(Compiler *compiler, const char *value);

static ErrorCode members_read(Compiler *compiler, const char *object)
{
    const char *at = object + 1;

    while (scan_next(&at)) {
        String key = string_decode(compiler, (Value){at, (size_t)(scan_value_end(at) - at)});

        if (find(&key, "{{")) {
            *compiler->ret_at = at;
            return fail(compiler->reterr, ERR_INVALID, "the name of a member cannot contain a template");
        }
        at = scan_member_value(at);
        TRY(value_read(compiler, at));
        at = scan_value_end(at);
    }
    return OK;
}

static ErrorCode items_read(Compiler *compiler, const char *array)
{
    const char *at = array + 1;

    for (; scan_next(&at); at = scan_value_end(at))
        TRY(value_read(compiler, at));
    return OK;
}

static ErrorCode value_read(Compiler *compiler, const char *value)
{
    if (*value == '"')
        return string_read(compiler, value);
    if (*value == '{')
        return members_read(compiler, value);
    if (*value == '[')
        return items_read(compiler, value);
    return OK;
}

static const Template *template_make(const Compiler *compiler, Value source)
{
    Template *template = arena_array(compiler->arena, Template, 1);

    *template = (Template){source, compiler->first, compiler->is_text};
    return template;
}

ErrorCode template_compile(Value value, Arena *arena, const Template **ret_template, const char **ret_at, Error *reterr)
{
    Compiler compiler = {.arena = arena, .reterr = reterr, .ret_at = ret_at, .pending = value.bytes};

    assert(value.size > 0);
    TRY(value_read(&compiler, value.bytes));
    bytes_add(&compiler, compiler.pending, (size_t)(value.bytes + value.size - compiler.pending));
    *ret_template = template_make(&compiler, value);
    return OK;
}

ErrorCode template_compile_text(Value value, Arena *arena, const Template **ret_template, const char **ret_at,
                                Error *reterr)
{
    Compiler compiler = {.arena = arena, .reterr = reterr, .ret_at = ret_at, .is_text = true};

    assert(value_kind(value) == VALUE_STRING);
    String string = string_decode(&compiler, value);
    TRY(pieces_read(&compiler, &string));
    *ret_template = template_make(&compiler, value);
    return OK;
}

/* ---- asking ---- */

Value template_source(const Template *template)
{
    return template->source;
}

const ValuePath *template_paths(const Template *template)
{
    for (const Part *part = template->first; part; part = part->next)
        if (part->path)
            return part->path;
    return NULL;
}

const ValuePath *template_only_path(const Template *template)
{
    const Part *part = template->first;

    return part && !part->next && part->kind != PART_STRING ? part->path : NULL;
}

Value template_prefix(const Template *template)
{
    const Part *part = template->first;

    return part && part->kind == PART_BYTES ? part->bytes : (Value){"", 0};
}

/* ---- rendering ---- */

static void text_append_encoded(Text *text, const char *bytes, size_t size)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (size_t i = 0; i < size; i++)
        if (bytes[i] && strchr(plain, bytes[i]))
            text_append_char(text, bytes[i]);
        else
            text_print(text, "%%%02X", (unsigned char)bytes[i]);
}

static void value_render(const Part *part, Value value, Text *text)
{
    bool is_nothing = part->is_optional && value_kind(value) <= VALUE_NULL;

    switch (part->kind) {
    case PART_BYTES:
        break;
    case PART_VALUE:
        if (is_nothing)
            text_append(text, "null");
        else
            text_append_bytes(text, value.bytes, value.size);
        break;
    case PART_STRING:
        if (!is_nothing)
            value_print_escaped(value, text);
        break;
    case PART_TEXT:
        if (!is_nothing)
            value_print(value, text);
        break;
    }
}

/* "." and ".." would leave the segment that they were written for, encoded or not. */
static ErrorCode value_render_encoded(const Part *part, Value value, Text *text, Error *reterr)
{
    scoped_text Text plain = {0};

    text_init(&plain, NULL, text->length_max);
    value_render(part, value, &plain);
    if (plain.length > 0 && strspn(text_string(&plain), ".") == plain.length)
        return fail(reterr, ERR_INVALID, "a value in a URL must not be \".\" or \"..\"");
    text_append_encoded(text, text_string(&plain), plain.length);
    return OK;
}

size_t template_size(const Template *template, Lookup *lookup, void *context)
{
    size_t sum = 0;

    for (const Part *part = template->first; part; part = part->next)
        sum += part->path ? path_find(part->path, lookup, context).size + strlen("null") : part->bytes.size;
    return sum;
}

static ErrorCode part_render(const Part *part, Lookup *lookup, void *context, bool is_encoded, Text *text,
                             Error *reterr)
{
    Value value = {0};

    if (!part->path) {
        text_append_bytes(text, part->bytes.bytes, part->bytes.size);
        return OK;
    }
    if (part->is_optional)
        value = path_find(part->path, lookup, context);
    else
        TRY(path_require(part->path, lookup, context, &value, reterr));
    if (is_encoded)
        return value_render_encoded(part, value, text, reterr);
    value_render(part, value, text);
    return OK;
}

static ErrorCode parts_render(const Template *template, Lookup *lookup, void *context, bool is_url, Text *text,
                              Error *reterr)
{
    size_t    before = text->length;
    ErrorCode code   = OK;

    for (const Part *part = template->first; part && code == OK; part = part->next)
        code = part_render(part, lookup, context, is_url && part != template->first, text, reterr);
    if (code == OK && text_is_full(text))
        code = fail(reterr, ERR_LIMIT, "the rendered value is larger than %zu bytes", text->length_max);
    if (code != OK)
        text_shorten(text, before);
    return code;
}

ErrorCode template_render(const Template *template, Lookup *lookup, void *context, Text *text, Error *reterr)
{
    return parts_render(template, lookup, context, /* is_url= */ false, text, reterr);
}

ErrorCode template_render_url(const Template *template, Lookup *lookup, void *context, Text *text, Error *reterr)
{
    return parts_render(template, lookup, context, /* is_url= */ true, text, reterr);
}
