/*
 * definition_wallet.c - operations of the ledger in a definition: the fields are those of wallet/operation.h, any of them a template.
 */
#include <stdlib.h>
#include <string.h>

#include "base/scan.h"
#include "process/definition_internal.h"
#include "wallet/operation.h"

/* What a field may hold besides one template that becomes it. In columns, for which clang-format finds no indentation. */
/* clang-format off */
static const struct {
    ValueKind   kind;
    const char *rule;
} shapes[] = {
    [FIELD_TEXT] = {VALUE_STRING, "text"},       [FIELD_UUID] = {VALUE_STRING, "text"},
    [FIELD_I64]  = {VALUE_NUMBER, "an integer"}, [FIELD_ROWS] = {VALUE_ARRAY, "an array"},
    [FIELD_JSON] = {VALUE_OBJECT, "an object"},
};
/* clang-format on */

static ErrorCode kind_read(Parser *parser, Value operation, WalletKind *ret_kind)
{
    Value       value = value_member(operation, "kind", strlen("kind"));
    const char *name  = string_copy(parser, value);

    if (value.size == 0)
        return source_refuse(&parser->source, operation.bytes, parser->reterr, "missing field \"kind\"");
    if (!name)
        return source_refuse(&parser->source, value.bytes, parser->reterr, "must be text, got %s",
                             value_kind_name(value_kind(value)));
    if (wallet_kind_find("kind", name, ret_kind, parser->reterr) != OK) {
        source_prefix(&parser->source, value.bytes, parser->reterr);
        return ERR_INVALID;
    }
    return OK;
}

static bool integer_is_valid(Value value, bool may_be_negative)
{
    char text[24], *end;

    if (value.size >= sizeof text)
        return false;
    memcpy(text, value.bytes, value.size);
    text[value.size] = '\0';
    long long number = strtoll(text, &end, 10);
    return *end == '\0' && (may_be_negative || number > 0);
}

/* A string with a template may become anything. */
static ErrorCode argument_check(Parser *parser, const Field *field, const char *key, Value value)
{
    bool is_template = value_kind(value) == VALUE_STRING && memmem(value.bytes, value.size, "{{", 2);
    bool is_valid    = value_kind(value) == shapes[field->type].kind;

    if (is_valid && field->type == FIELD_I64)
        is_valid = integer_is_valid(value, field->min < 0);
    if (is_template || is_valid)
        return OK;
    Excerpt     name = scan_excerpt(key + 1, scan_value_end(key) - 1);
    const char *rule = field->type == FIELD_I64 && field->min > 0 ? "a positive integer" : shapes[field->type].rule;
    return source_refuse(&parser->source, value.bytes, parser->reterr, "%s must be %s or a template, got %s", name.text,
                         rule, value_kind_name(value_kind(value)));
}

static ErrorCode member_check(Parser *parser, WalletKind kind, const char *key, Value value)
{
    const FieldTable *table = &wallet_operation_tables[kind];
    const char       *name  = string_copy(parser, (Value){key, (size_t)(scan_value_end(key) - key)});

    if (strcmp(name, "kind") == 0)
        return OK;
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->fields[i].name, name) == 0 && strcmp(name, "txn_id") != 0) /* its key is the step's */
            return argument_check(parser, &table->fields[i], key, value);
    return source_refuse(&parser->source, key, parser->reterr, "%s has no field \"%s\"", wallet_kind_names[kind],
                         scan_excerpt(name, name + strlen(name)).text);
}

static ErrorCode required_check(Parser *parser, WalletKind kind, Value operation)
{
    for (size_t i = 0; i < wallet_operation_tables[kind].count; i++) {
        const Field *field = &wallet_operation_tables[kind].fields[i];
        const char  *name  = field->name;

        if (field->required && value_member(operation, name, strlen(name)).size == 0)
            return source_refuse(&parser->source, operation.bytes, parser->reterr, "%s is missing field \"%s\"",
                                 wallet_kind_names[kind], name);
    }
    return OK;
}

ErrorCode operation_read(Parser *parser, const ProcessField *field, Value value, WalletAction *ret_action)
{
    WalletKind kind;

    if (value_kind(value) != VALUE_OBJECT)
        return field_refuse(parser, field, value);
    TRY(kind_read(parser, value, &kind));
    const char *at = value.bytes + 1;
    while (scan_next(&at)) {
        const char *key = at, *argument = scan_member_value(key);

        at = scan_value_end(argument);
        TRY(member_check(parser, kind, key, (Value){argument, (size_t)(at - argument)}));
    }
    TRY(required_check(parser, kind, value));
    ret_action->kind = kind;
    return template_read(parser, value, /* is_text= */ false, &ret_action->operation);
}
