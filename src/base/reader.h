/*
 * reader.h - JSON in, driven by a table of fields, so that a bad field is named by itself.
 *
 *     static const Field fields[] = {
 *         {"owner",  FIELD_TEXT, offsetof(WalletRequest, owner),  .required = true, .length_max = 200},
 *         {"amount", FIELD_I64,  offsetof(WalletRequest, amount), .required = true, .min = 1, .max = AMOUNT_MAX},
 *     };
 *     static const FieldTable table = {"wallet", fields, COUNT(fields), sizeof(WalletRequest)};
 *     TRY(reader_object(body, size, &table, arena, &request, reterr));
 *
 * Refused with ERR_INVALID and the name and path of what is wrong ("items[3].amount must be an integer from 1 to
 * 9007199254740991, got 1.5"): malformed JSON (line and column), bad UTF-8, NUL, duplicate keys, unknown fields,
 * missing fields, wrong types, values out of range. Nesting deeper than READER_DEPTH_MAX is refused as well. A null
 * counts as absent: fine for an optional field, refused for a required one. ERR_LIMIT: the arena is too small for it.
 *
 * Threads: any. Ownership: all texts and arrays are copied into the arena.
 */
#ifndef BASE_READER_H
#define BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define READER_DEPTH_MAX 64

typedef enum {
    FIELD_I64,    /* int64_t; a JSON real is refused */
    FIELD_REAL,   /* double; an integer is fine */
    FIELD_BOOL,   /* bool */
    FIELD_TEXT,   /* const char *, NULL when absent */
    FIELD_UUID,   /* const char *, lower case, NULL when absent */
    FIELD_JSON,   /* const char *: any value, byte for byte as it was sent; NULL when absent */
    FIELD_TEXTS,  /* ReaderArray of const char * */
    FIELD_ROWS,   /* ReaderArray of structs described by rows */
    FIELD_OBJECT, /* const char *: an object described by rows, byte for byte as it was sent; NULL when absent */
} FieldType;

/* What a value names, for clients that may not touch everything. */
typedef enum {
    NAMES_NOTHING,
    NAMES_DOMAIN,    /* of commands or processes */
    NAMES_PROCESSES, /* a domain of processes; that of processes without one when absent */
    NAMES_TARGET,    /* of a reply: a queue, or command:DOMAIN/TYPE */
    NAMES_BATCH,     /* one that exists */
    NAMES_NEW_BATCH, /* one that is made, or was made by the same client */
    NAMES_OWNER,     /* of a wallet */
    NAMES_OWNERS,    /* of wallets: a name, or a prefix and "*" */
} FieldNames;

typedef struct {
    const void *items;
    int         count;
} ReaderArray;

typedef struct FieldTable FieldTable;
typedef struct {
    const char        *name;
    FieldType          type;
    size_t             offset;
    bool               required;
    int64_t            min, max;   /* I64, and REAL in whole units: both 0 is no limit; TEXTS, ROWS: of the count, max 0
                                     is no limit; TEXT: only min, in bytes */
    size_t             length_max; /* TEXT and each of TEXTS, in bytes; 0: READER_TEXT_MAX */
    const char *const *words;      /* TEXT and each of TEXTS: the only values allowed, NULL-terminated */
    const FieldTable  *rows;       /* ROWS: the shape of one item; OBJECT: its shape */
    size_t             is_set;     /* offset of a bool: the field was given; 0: none */
    FieldNames         names;      /* TEXT and UUID: what the value names */
    const char        *help;       /* for OpenAPI */
} Field;
#define READER_TEXT_MAX ((size_t)65536)

struct FieldTable {
    const char  *noun; /* "wallet": the name of the schema in OpenAPI */
    const Field *fields;
    size_t       count;
    size_t       size; /* of the struct */
};

/* Read one object into *ret_struct, which is untouched on failure. Absent fields are zero. */
must_check ErrorCode reader_object(const char *bytes, size_t size, const FieldTable *table, Arena *arena,
                                   void *ret_struct, Error *reterr);
/* Is this one well-formed JSON value, within the limits above? For payloads that are passed on as they are. */
must_check ErrorCode reader_check(const char *bytes, size_t size, Error *reterr);

#endif
