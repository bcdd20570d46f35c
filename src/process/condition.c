/*
 * condition.c - a recursive descent over one line of text, and a walk over the nodes it makes.
 */
#include "process/condition.h"

#include <string.h>

#include "base/scan.h"

typedef enum { NODE_OR, NODE_AND, NODE_NOT, NODE_TRUTH, NODE_COMPARE } NodeKind;
typedef enum { COMPARE_EQ, COMPARE_NE, COMPARE_LE, COMPARE_GE, COMPARE_LT, COMPARE_GT } Compare;

/* Longer ones first, so that "<=" is not taken for "<". */
static const char *const compare_words[] = {
    [COMPARE_EQ] = "==", [COMPARE_NE] = "!=", [COMPARE_LE] = "<=",
    [COMPARE_GE] = ">=", [COMPARE_LT] = "<",  [COMPARE_GT] = ">",
};

typedef struct {
    ValuePath *path; /* NULL: a literal */
    Value      literal;
} Operand;

typedef struct Node Node;
struct Node {
    NodeKind    kind;
    Compare     compare;
    const Node *left, *right; /* OR, AND; NOT: left */
    Operand     a, b;         /* COMPARE; TRUTH: a */
};

struct Condition {
    const Node *root;
    ValuePath  *paths;
    const char *text;
};

typedef struct {
    const char *start, *at, *end;
    const char *wrong; /* where it is, after a refusal */
    Arena      *arena;
    Error      *reterr;
    int         depth;
    ValuePath  *first, *last;
} Parser;

static ErrorCode or_read(Parser *parser, const Node **ret_node);

/* ---- words ---- */

static void space_skip(Parser *parser)
{
    while (parser->at < parser->end && strchr(" \t\r\n", *parser->at) && *parser->at)
        parser->at++;
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("_-.", c) ||
           (unsigned char)c >= 0x80;
}

static size_t word_size(const Parser *parser)
{
    size_t size = 0;

    while (parser->at + size < parser->end && parser->at[size] && is_word_char(parser->at[size]))
        size++;
    return size;
}

static bool next_is_word(const Parser *parser, const char *word)
{
    return word_size(parser) == strlen(word) && memcmp(parser->at, word, strlen(word)) == 0;
}

static bool next_is_sign(const Parser *parser, const char *sign)
{
    return (size_t)(parser->end - parser->at) >= strlen(sign) && memcmp(parser->at, sign, strlen(sign)) == 0;
}

static bool skip_word(Parser *parser, const char *word)
{
    space_skip(parser);
    if (!next_is_word(parser, word))
        return false;
    parser->at += strlen(word);
    return true;
}

static bool skip_sign(Parser *parser, const char *sign)
{
    space_skip(parser);
    if (!next_is_sign(parser, sign))
        return false;
    parser->at += strlen(sign);
    return true;
}

/* What programmers write from habit, and what it is here. */
static const struct {
    const char *sign, *use;
} habits[] = {
    {"&&", "\"and\""                   },
    {"||", "\"or\""                    },
    {"=>", "\">=\""                    },
    {"=<", "\"<=\""                    },
    {"=",  "\"==\""                    },
    {"!",  "\"not\""                   },
    {"'",  "a double quote"            },
    {"{{", "the path without {{ and }}"},
};

static ErrorCode refuse(Parser *parser, const char *expected)
{
    size_t left = (size_t)(parser->end - parser->at), size = word_size(parser);

    parser->wrong = parser->at;
    for (size_t i = 0; i < COUNT(habits); i++)
        if (next_is_sign(parser, habits[i].sign))
            return fail(parser->reterr, ERR_INVALID, "expected %s, found \"%s\": write %s", expected, habits[i].sign,
                        habits[i].use);
    if (left == 0)
        return fail(parser->reterr, ERR_INVALID, "expected %s, found the end", expected);
    size = text_cut(parser->at, size ? size : left, size ? 40 : 4);
    return fail(parser->reterr, ERR_INVALID, "expected %s, found \"%.*s\"", expected, (int)size, parser->at);
}

/* ---- operands ---- */

static ErrorCode string_read(Parser *parser, Value *ret_value)
{
    const char *quote = parser->at, *at = quote + 1, *wrong;

    for (; at < parser->end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    if (at >= parser->end) {
        parser->wrong = quote;
        return fail(parser->reterr, ERR_INVALID, "the quote has no end");
    }
    Value string = {quote, (size_t)(at + 1 - quote)};
    if (scan_check_at(string.bytes, string.size, &wrong, parser->reterr) != OK) {
        parser->wrong = wrong;
        return fail(parser->reterr, ERR_INVALID, "not a valid string: escapes are those of JSON");
    }
    *ret_value = string;
    parser->at = at + 1;
    return OK;
}

static ErrorCode number_read(Parser *parser, Value *ret_value)
{
    const char *wrong;
    size_t      size = 0;

    while (parser->at + size < parser->end && parser->at[size] && strchr("0123456789+-.eE", parser->at[size]))
        size++;
    if (scan_check_at(parser->at, size, &wrong, parser->reterr) != OK) {
        parser->wrong = parser->at;
        return fail(parser->reterr, ERR_INVALID, "\"%.*s\" is not a number as JSON writes it",
                    (int)(size < 40 ? size : 40), parser->at);
    }
    *ret_value = (Value){parser->at, size};
    parser->at += size;
    return OK;
}

static ErrorCode path_read(Parser *parser, ValuePath **ret_path)
{
    ValuePath *path = arena_array(parser->arena, ValuePath, 1);
    size_t     used;

    if (path_parse(parser->at, (size_t)(parser->end - parser->at), parser->arena, path, &used, parser->reterr) != OK) {
        parser->wrong = parser->at + used;
        return ERR_INVALID;
    }
    path->at = parser->at;
    parser->at += used;
    if (parser->last)
        parser->last->next = path;
    else
        parser->first = path;
    parser->last = path;
    *ret_path    = path;
    return OK;
}

static ErrorCode operand_read(Parser *parser, Operand *ret_operand)
{
    static const char *const literals[] = {"true", "false", "null"};

    space_skip(parser);
    for (size_t i = 0; i < COUNT(literals); i++)
        if (skip_word(parser, literals[i])) {
            ret_operand->literal = (Value){literals[i], strlen(literals[i])};
            return OK;
        }
    if (parser->at < parser->end && *parser->at == '"')
        return string_read(parser, &ret_operand->literal);
    if (parser->at < parser->end && (*parser->at == '-' || (*parser->at >= '0' && *parser->at <= '9')))
        return number_read(parser, &ret_operand->literal);
    if (word_size(parser) == 0 || next_is_word(parser, "and") || next_is_word(parser, "or") ||
        next_is_word(parser, "not"))
        return refuse(parser, "a path or a value");
    return path_read(parser, &ret_operand->path);
}

/* ---- nodes ---- */

static Node *node_new(Parser *parser, NodeKind kind, const Node *left, const Node *right)
{
    Node *node = arena_array(parser->arena, Node, 1);

    *node = (Node){.kind = kind, .left = left, .right = right};
    return node;
}

static bool compare_skip(Parser *parser, Compare *ret_compare)
{
    for (Compare compare = 0; compare < COUNT(compare_words); compare++)
        if (skip_sign(parser, compare_words[compare])) {
            *ret_compare = compare;
            return true;
        }
    return false;
}

static ErrorCode test_read(Parser *parser, const Node **ret_node)
{
    Node       *node = node_new(parser, NODE_TRUTH, NULL, NULL);
    const char *start;

    space_skip(parser);
    start = parser->at;
    TRY(operand_read(parser, &node->a));
    if (compare_skip(parser, &node->compare)) {
        node->kind = NODE_COMPARE;
        TRY(operand_read(parser, &node->b));
    } else if (!node->a.path && value_kind(node->a.literal) != VALUE_TRUE &&
               value_kind(node->a.literal) != VALUE_FALSE) {
        parser->wrong = start;
        return fail(parser->reterr, ERR_INVALID, "%s alone is not a condition: compare it with something",
                    value_kind_name(value_kind(node->a.literal)));
    }
    *ret_node = node;
    return OK;
}

static ErrorCode group_read(Parser *parser, const Node **ret_node)
{
    TRY(or_read(parser, ret_node));
    if (!skip_sign(parser, ")"))
        return refuse(parser, "\"and\", \"or\" or \")\"");
    return OK;
}

static ErrorCode not_read(Parser *parser, const Node **ret_node)
{
    const Node *inner;

    space_skip(parser);
    if (parser->depth == CONDITION_DEPTH_MAX) {
        parser->wrong = parser->at;
        return fail(parser->reterr, ERR_INVALID, "nested deeper than %d levels", CONDITION_DEPTH_MAX);
    }
    parser->depth++;
    if (skip_word(parser, "not")) {
        TRY(not_read(parser, &inner));
        *ret_node = node_new(parser, NODE_NOT, inner, NULL);
    } else if (skip_sign(parser, "("))
        TRY(group_read(parser, ret_node));
    else
        TRY(test_read(parser, ret_node));
    parser->depth--;
    return OK;
}

static ErrorCode and_read(Parser *parser, const Node **ret_node)
{
    const Node *right;

    TRY(not_read(parser, ret_node));
    while (skip_word(parser, "and")) {
        TRY(not_read(parser, &right));
        *ret_node = node_new(parser, NODE_AND, *ret_node, right);
    }
    return OK;
}

static ErrorCode or_read(Parser *parser, const Node **ret_node)
{
    const Node *right;

    TRY(and_read(parser, ret_node));
    while (skip_word(parser, "or")) {
        TRY(and_read(parser, &right));
        *ret_node = node_new(parser, NODE_OR, *ret_node, right);
    }
    return OK;
}

static ErrorCode whole_read(Parser *parser, const Node **ret_root)
{
    if (parser->end - parser->start > CONDITION_BYTES_MAX) {
        parser->wrong = parser->start;
        return fail(parser->reterr, ERR_INVALID, "a condition may have at most %d bytes", CONDITION_BYTES_MAX);
    }
    TRY(or_read(parser, ret_root));
    space_skip(parser);
    return parser->at == parser->end ? OK : refuse(parser, "\"and\", \"or\" or the end");
}

/* From positions in the decoded text to those in the string. */
static void paths_locate(const Parser *parser, ValueCursor *cursor)
{
    for (ValuePath *path = parser->first; path; path = path->next)
        path->at = value_cursor_move(cursor, (size_t)(path->at - parser->start));
}

ErrorCode condition_compile(Value string, Arena *arena, const Condition **ret_condition, const char **ret_at,
                            Error *reterr)
{
    Value       text   = value_decode(string, arena);
    ValueCursor cursor = value_cursor(string);
    Parser      parser = {.start  = text.bytes,
                          .at     = text.bytes,
                          .end    = text.bytes + text.size,
                          .wrong  = text.bytes,
                          .arena  = arena,
                          .reterr = reterr};
    const Node *root;

    if (whole_read(&parser, &root) != OK) {
        *ret_at = value_cursor_move(&cursor, (size_t)(parser.wrong - text.bytes));
        return ERR_INVALID;
    }
    paths_locate(&parser, &cursor);
    Condition *condition = arena_array(arena, Condition, 1);
    *condition           = (Condition){root, parser.first, arena_bytes(arena, text.bytes, text.size)};
    *ret_condition       = condition;
    return OK;
}

const ValuePath *condition_paths(const Condition *condition)
{
    return condition->paths;
}

const char *condition_text(const Condition *condition)
{
    return condition->text;
}

/* ---- evaluating ---- */

typedef struct {
    Lookup *lookup;
    void   *context;
    Error  *reterr;
} Evaluation;

static ErrorCode node_evaluate(const Evaluation *evaluation, const Node *node, bool *ret_is_true);

/* A missing value is null. */
static Value operand_value(const Evaluation *evaluation, const Operand *operand)
{
    Value value = operand->path ? path_find(operand->path, evaluation->lookup, evaluation->context) : operand->literal;

    return value.size ? value : (Value){"null", strlen("null")};
}

static void operand_print(const Operand *operand, Value value, Text *text)
{
    if (operand->path)
        text_print(text, "%s (%s)", operand->path->text, value_kind_name(value_kind(value)));
    else
        text_append_bytes(text, value.bytes, value.size);
}

static ErrorCode compare_refuse(const Evaluation *evaluation, const Node *node, Value a, Value b)
{
    scoped_text Text left = {0}, right = {0};

    text_init(&left, NULL, TEXT_MAX_LINE);
    text_init(&right, NULL, TEXT_MAX_LINE);
    operand_print(&node->a, a, &left);
    operand_print(&node->b, b, &right);
    return fail(evaluation->reterr, ERR_INVALID, "cannot compare %.*s %s %.*s",
                (int)text_cut(text_string(&left), left.length, 150), text_string(&left), compare_words[node->compare],
                (int)text_cut(text_string(&right), right.length, 150), text_string(&right));
}

static bool order_matches(Compare compare, int order)
{
    switch (compare) {
    case COMPARE_EQ:
        return order == 0;
    case COMPARE_NE:
        return order != 0;
    case COMPARE_LE:
        return order <= 0;
    case COMPARE_GE:
        return order >= 0;
    case COMPARE_LT:
        return order < 0;
    case COMPARE_GT:
        return order > 0;
    }
    return false;
}

static ErrorCode compare_evaluate(const Evaluation *evaluation, const Node *node, bool *ret_is_true)
{
    Value     a = operand_value(evaluation, &node->a), b = operand_value(evaluation, &node->b);
    ValueKind a_kind = value_kind(a), b_kind = value_kind(b);
    bool      is_equality = node->compare == COMPARE_EQ || node->compare == COMPARE_NE;

    if (a_kind == VALUE_NUMBER && b_kind == VALUE_NUMBER)
        *ret_is_true = order_matches(node->compare, value_compare_numbers(a, b));
    else if (a_kind == VALUE_STRING && b_kind == VALUE_STRING)
        *ret_is_true = order_matches(node->compare, value_compare_strings(a, b));
    else if (a_kind == VALUE_NULL || b_kind == VALUE_NULL)
        *ret_is_true = is_equality && order_matches(node->compare, a_kind != b_kind);
    else if (!is_equality || (a_kind == b_kind && (a_kind == VALUE_ARRAY || a_kind == VALUE_OBJECT)))
        return compare_refuse(evaluation, node, a, b);
    else
        *ret_is_true = order_matches(node->compare, a_kind != b_kind);
    return OK;
}

static ErrorCode both_evaluate(const Evaluation *evaluation, const Node *node, bool *ret_is_true)
{
    bool is_true;

    TRY(node_evaluate(evaluation, node->left, &is_true));
    if (is_true == (node->kind == NODE_AND))
        TRY(node_evaluate(evaluation, node->right, &is_true));
    *ret_is_true = is_true;
    return OK;
}

static ErrorCode node_evaluate(const Evaluation *evaluation, const Node *node, bool *ret_is_true)
{
    switch (node->kind) {
    case NODE_OR:
    case NODE_AND:
        return both_evaluate(evaluation, node, ret_is_true);
    case NODE_NOT:
        TRY(node_evaluate(evaluation, node->left, ret_is_true));
        *ret_is_true = !*ret_is_true;
        return OK;
    case NODE_TRUTH:
        *ret_is_true = value_kind(operand_value(evaluation, &node->a)) > VALUE_FALSE;
        return OK;
    case NODE_COMPARE:
        return compare_evaluate(evaluation, node, ret_is_true);
    }
    return fail(evaluation->reterr, ERR_INTERNAL, "a condition has an unknown node");
}

ErrorCode condition_evaluate(const Condition *condition, Lookup *lookup, void *context, bool *ret_is_true,
                             Error *reterr)
{
    Evaluation evaluation = {lookup, context, reterr};

    return node_evaluate(&evaluation, condition->root, ret_is_true);
}
