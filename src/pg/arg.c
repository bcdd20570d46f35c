/*
 * arg.c - see arg.h.
 */
#include "pg/arg.h"

#include <endian.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#include "base/uuid.h"
#include "pg/oid.h"

#define ARRAY_BYTES_MAX ((size_t)256 << 20)

/* ---- one value ---- */

DbArg db_i32(int32_t value)
{
    DbArg arg = {.type = OID_INT4};

    snprintf(arg.digits, sizeof arg.digits, "%" PRId32, value);
    return arg;
}

DbArg db_i64(int64_t value)
{
    DbArg arg = {.type = OID_INT8};

    snprintf(arg.digits, sizeof arg.digits, "%" PRId64, value);
    return arg;
}

DbArg db_bool(bool value)
{
    return (DbArg){.type = OID_BOOL, .text = value ? "t" : "f"};
}

static DbArg text_arg(Oid type, const char *value)
{
    return (DbArg){.type = type, .text = value, .null = value == NULL};
}

DbArg db_text(const char *value)
{
    return text_arg(OID_TEXT, value);
}

DbArg db_uuid(const char *value)
{
    return text_arg(OID_UUID, value);
}

DbArg db_jsonb(const char *value)
{
    return text_arg(OID_JSONB, value);
}

DbArg db_null(void)
{
    return (DbArg){.null = true};
}

DbArg db_bytea(Arena *arena, const void *bytes, size_t size)
{
    char *text;

    if (!arena_has_space(arena, size * 2 + 3))
        return (DbArg){.type = OID_BYTEA, .too_large = true};
    text    = arena_alloc(arena, size * 2 + 3);
    text[0] = '\\';
    text[1] = 'x';
    sodium_bin2hex(text + 2, size * 2 + 1, bytes, size);
    return text_arg(OID_BYTEA, text);
}

/* ---- arrays, in PostgreSQL's binary format: it parses them in a fraction of the time of their texts ----
 *
 * Dimensions, whether there are nulls, type of the elements; length and lower bound; then for each element its size, or
 * -1 for null, and its bytes. All numbers are big-endian. An empty array has no dimension. */

#define HEAD_BYTES       20
#define HEAD_BYTES_EMPTY 12
#define JSONB_VERSION    1 /* the first byte of a jsonb; the text follows */

typedef struct {
    Oid array, element;
} ArrayType;

static const ArrayType int4_array = {OID_INT4_ARRAY, OID_INT4}, int8_array = {OID_INT8_ARRAY, OID_INT8},
                       text_array = {OID_TEXT_ARRAY, OID_TEXT}, uuid_array = {OID_UUID_ARRAY, OID_UUID},
                       jsonb_array = {OID_JSONB_ARRAY, OID_JSONB};

/* Values are written at `at`, which moves behind them. */
typedef struct {
    DbArg arg;
    char *at; /* NULL: the arena has no space for it */
} Array;

static void put_bytes(Array *array, const void *bytes, size_t size)
{
    memcpy(array->at, bytes, size);
    array->at += size;
}

static void put_i32(Array *array, int32_t value)
{
    uint32_t big = htobe32((uint32_t)value);

    put_bytes(array, &big, sizeof big);
}

static void put_i64(Array *array, int64_t value)
{
    uint64_t big = htobe64((uint64_t)value);

    put_bytes(array, &big, sizeof big);
}

/* `bytes`: of the elements, with their sizes. */
static Array array_begin(Arena *arena, ArrayType type, int count, bool has_null, size_t bytes)
{
    Array array = {
        .arg = {.type = type.array, .is_binary = true}
    };
    size_t size = (count ? HEAD_BYTES : HEAD_BYTES_EMPTY) + bytes;

    if (size > ARRAY_BYTES_MAX || !arena_has_space(arena, size)) {
        array.arg.too_large = true;
        return array;
    }
    array.arg.text = array.at = arena_alloc(arena, size);
    array.arg.length          = (int)size;
    put_i32(&array, count ? 1 : 0);
    put_i32(&array, has_null);
    put_i32(&array, (int32_t)type.element);
    if (count) {
        put_i32(&array, count);
        put_i32(&array, 1);
    }
    return array;
}

DbArg db_i32s(Arena *arena, const int32_t *values, int count)
{
    Array array = array_begin(arena, int4_array, count, false, (sizeof(int32_t) + sizeof *values) * (size_t)count);

    for (int i = 0; array.at && i < count; i++) {
        put_i32(&array, sizeof *values);
        put_i32(&array, values[i]);
    }
    return array.arg;
}

DbArg db_i64s(Arena *arena, const int64_t *values, int count)
{
    Array array = array_begin(arena, int8_array, count, false, (sizeof(int32_t) + sizeof *values) * (size_t)count);

    for (int i = 0; array.at && i < count; i++) {
        put_i32(&array, sizeof *values);
        put_i64(&array, values[i]);
    }
    return array.arg;
}

/* prefix: before the bytes of each text. */
static DbArg texts_arg(Arena *arena, ArrayType type, const char *prefix, const char *const *values, int count)
{
    size_t prefix_size = strlen(prefix), bytes = 0;
    bool   has_null = false;
    Array  array;

    for (int i = 0; i < count; i++) {
        bytes += sizeof(int32_t) + (values[i] ? prefix_size + strlen(values[i]) : 0);
        has_null |= values[i] == NULL;
    }
    array = array_begin(arena, type, count, has_null, bytes);
    for (int i = 0; array.at && i < count; i++) {
        size_t size = values[i] ? strlen(values[i]) : 0;

        if (!values[i]) {
            put_i32(&array, -1);
            continue;
        }
        put_i32(&array, (int32_t)(prefix_size + size));
        put_bytes(&array, prefix, prefix_size);
        put_bytes(&array, values[i], size);
    }
    return array.arg;
}

DbArg db_texts(Arena *arena, const char *const *values, int count)
{
    return texts_arg(arena, text_array, "", values, count);
}

DbArg db_jsonbs(Arena *arena, const char *const *values, int count)
{
    static const char version[] = {JSONB_VERSION, '\0'};

    return texts_arg(arena, jsonb_array, version, values, count);
}

DbArg db_uuids(Arena *arena, const char *const *values, int count)
{
    size_t bytes    = 0;
    bool   has_null = false;
    Array  array;

    for (int i = 0; i < count; i++) {
        bytes += sizeof(int32_t) + (values[i] ? UUID_BYTES : 0);
        has_null |= values[i] == NULL;
    }
    array = array_begin(arena, uuid_array, count, has_null, bytes);
    for (int i = 0; array.at && i < count; i++) {
        unsigned char uuid[UUID_BYTES];

        if (!values[i]) {
            put_i32(&array, -1);
            continue;
        }
        if (!uuid_bytes(values[i], uuid))
            return (DbArg){.type = uuid_array.array, .bad_uuid = values[i]};
        put_i32(&array, UUID_BYTES);
        put_bytes(&array, uuid, UUID_BYTES);
    }
    return array.arg;
}

/* NULL: all are. */
static const char *const *texts_of(Arena *arena, const void *items, int count, size_t offset)
{
    const char *const *list  = items;
    const char       **texts = arena_array(arena, const char *, count);
    bool               any   = false;

    for (int i = 0; i < count; i++) {
        memcpy(&texts[i], list[i] + offset, sizeof texts[i]);
        any |= texts[i] != NULL;
    }
    return any ? texts : NULL;
}

DbArg db_bound(Arena *arena, const Bound *bound)
{
    return bound ? db_texts(arena, bound->patterns, bound->count) : db_null();
}

DbArg db_texts_at(Arena *arena, const void *items, int count, size_t offset)
{
    const char *const *texts = texts_of(arena, items, count, offset);

    return texts ? db_texts(arena, texts, count) : db_null();
}

DbArg db_uuids_at(Arena *arena, const void *items, int count, size_t offset)
{
    const char *const *texts = texts_of(arena, items, count, offset);

    return texts ? db_uuids(arena, texts, count) : db_null();
}
