/*
 * shown.h - documents that the database shows, such as a command with its audit, as structs.
 *
 * A struct and the table that reads it come from one list of their fields, as those of rows do (pg/query.h). R has arrays of other documents:
 *     #define COMMAND_FIELDS(X, R, T) X(T, TEXT, command_id, status) X(T, I64, attempts) R(T, audit, event)
 *     SHOWN(command, CommandDetail, COMMAND_FIELDS);
 */
#ifndef CLI_SHOWN_H
#define CLI_SHOWN_H

#include "base/attr.h"
#include "base/reader.h"
#include "pg/query.h"

#define SHOWN(noun, Type, FIELDS)                                                              \
    typedef struct {                                                                           \
        FIELDS(SHOWN_MEMBERS, SHOWN_ARRAY, Type)                                               \
    } Type;                                                                                    \
    static const Field      noun##_fields[] = {FIELDS(SHOWN_FIELDS, SHOWN_ARRAY_FIELD, Type)}; \
    static const FieldTable noun##_table    = {#noun, noun##_fields, COUNT(noun##_fields), sizeof(Type)}

#define SHOWN_MEMBERS(Type, type, ...) __typeof__(DB_TYPE_##type) __VA_ARGS__;
#define SHOWN_ARRAY(Type, name, noun)  ReaderArray name;

#define SHOWN_FIELD(Type, type, name)       {#name, FIELD_##type, offsetof(Type, name)},
#define SHOWN_FIELDS(...)                   DB_EACH(SHOWN_FIELD, __VA_ARGS__)
#define SHOWN_ARRAY_FIELD(Type, name, noun) {#name, FIELD_ROWS, offsetof(Type, name), .rows = &noun##_table},

/* An event of an audit. */
#define EVENT_FIELDS(X, R, T)    \
    X(T, TEXT, event, at, actor) \
    X(T, JSON, details)          \
    X(T, I64, attempt)

#endif
