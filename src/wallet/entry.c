/*
 * entry.c - see entry.h.
 */
#include "wallet/entry.h"

#include <sodium.h>
#include <string.h>

#include "base/reader.h"
#include "pg/tx.h"
#include "sql.h"
#include "wallet/answers.h"
#include "wallet/post.h"

DB_SHAPE(entry, Entry, ENTRY_COLUMNS);

static TxOptions reading(const char *name, Deadline deadline, Arena *arena)
{
    return (TxOptions){.name = name, .deadline = deadline, .arena = arena, .read_only = true};
}

static ErrorCode filter_check(const EntryFilter *filter, Error *reterr)
{
    TRY(wallet_check_owner_seen("owner", filter->owner, reterr));
    TRY(wallet_check_asset("asset", filter->asset, reterr));
    if (filter->limit < 1 || filter->limit > ENTRIES_MAX)
        return fail(reterr, ERR_INVALID, "limit must be an integer from 1 to %d", ENTRIES_MAX);
    return OK;
}

ErrorCode entry_check_kind(const char *field, const char *kind, Error *reterr)
{
    WalletKind found;

    if (!kind || strcmp(kind, "expire") == 0) /* never requested, but posted by wallet.expire */
        return OK;
    return wallet_kind_find(field, kind, &found, reterr);
}

ErrorCode entry_list(Pool *pool, Deadline deadline, Arena *arena, const EntryFilter *filter, Entry **ret_list,
                     int *ret_count, Error *reterr)
{
    TxOptions options = reading("entry_list", deadline, arena);

    TRY(filter_check(filter, reterr));
    TRY(db_call_many(pool, &options, sql_wallet_entries,
                     DB_ARGS(db_text(filter->owner), db_text(filter->asset ? filter->asset : WALLET_ASSET_DEFAULT),
                             db_i32(filter->limit), filter->seen ? db_i64(filter->seen) : db_null(),
                             db_text(filter->kind), db_text(filter->since), db_text(filter->until)),
                     &entry_shape, ret_list, ret_count, reterr));
    if (*ret_count == 0)
        return wallet_must_exist(pool, deadline, arena, filter->owner, filter->asset, reterr);
    return OK;
}

void entry_write(Writer *writer, const void *entry)
{
    writer_row(writer, &answer_entry, entry);
}

/* sqlstate names the kind of what is missing: see wallet/module.c. */
static ErrorCode show(Pool *pool, const TxOptions *options, const char *sql, DbArgs args, const char *txn_id,
                      const char *sqlstate, const char **ret_json, Error *reterr)
{
    const char *json;

    TRY(db_call(pool, options, sql, args, &db_text_shape, &json, reterr));
    if (!json) {
        fail(reterr, ERR_NOT_FOUND, "there is no such %s: %s", sqlstate[4] == '2' ? "hold" : "transaction", txn_id);
        error_set_sqlstate(reterr, sqlstate);
        return ERR_NOT_FOUND;
    }
    *ret_json = json;
    return OK;
}

ErrorCode transaction_show(Pool *pool, Deadline deadline, Arena *arena, const char *txn_id, const Bound *owners,
                           const char **ret_json, Error *reterr)
{
    TxOptions options = reading("transaction_show", deadline, arena);

    return show(pool, &options, sql_wallet_transaction, DB_ARGS(db_uuid(txn_id), db_bound(arena, owners)), txn_id,
                "QW023", ret_json, reterr);
}

ErrorCode hold_show(Pool *pool, Deadline deadline, Arena *arena, const char *txn_id, const char **ret_json,
                    Error *reterr)
{
    TxOptions options = reading("hold_show", deadline, arena);

    return show(pool, &options, sql_wallet_hold, DB_ARGS(db_uuid(txn_id)), txn_id, "QW022", ret_json, reterr);
}

ErrorCode transaction_entries(Pool *pool, Deadline deadline, Arena *arena, const char *txn_id, const char **ret_json,
                              Error *reterr)
{
    TxOptions options = reading("transaction_entries", deadline, arena);

    return show(pool, &options, sql_wallet_transaction_entries, DB_ARGS(db_uuid(txn_id)), txn_id, "QW023", ret_json,
                reterr);
}

/* ---- cursors ---- */

#define SUM_BYTES      8
#define BYTES_MAX      512 /* an asset, a kind, two moments, a number */
#define BASE64_VARIANT sodium_base64_VARIANT_URLSAFE_NO_PADDING

typedef struct {
    const char *asset, *kind, *since, *until;
    int64_t     number;
} Cursor;

static const Field cursor_fields[] = {
    {"asset", FIELD_TEXT, offsetof(Cursor, asset), .required = true},
    {"kind", FIELD_TEXT, offsetof(Cursor, kind)},
    {"since", FIELD_TEXT, offsetof(Cursor, since)},
    {"until", FIELD_TEXT, offsetof(Cursor, until)},
    {"number", FIELD_I64, offsetof(Cursor, number), .required = true, .min = 1, .max = INT64_MAX},
};
static const FieldTable cursor_table = {"cursor", cursor_fields, COUNT(cursor_fields), sizeof(Cursor)};

static void sum_make(const char *list, const char *owner, const char *json, size_t size, unsigned char *ret_sum)
{
    crypto_generichash_state state;
    unsigned char            hash[crypto_generichash_BYTES];

    crypto_generichash_init(&state, NULL, 0, sizeof hash);
    crypto_generichash_update(&state, (const unsigned char *)list, strlen(list) + 1);
    crypto_generichash_update(&state, (const unsigned char *)owner, strlen(owner) + 1);
    crypto_generichash_update(&state, (const unsigned char *)json, size);
    crypto_generichash_final(&state, hash, sizeof hash);
    memcpy(ret_sum, hash, SUM_BYTES);
}

static const char *asset_of(const EntryFilter *filter)
{
    return filter->asset ? filter->asset : WALLET_ASSET_DEFAULT;
}

static void filter_write(Writer *writer, const EntryFilter *filter, int64_t number)
{
    writer_object(writer, NULL);
    writer_text(writer, "asset", asset_of(filter));
    if (filter->kind)
        writer_text(writer, "kind", filter->kind);
    if (filter->since)
        writer_text(writer, "since", filter->since);
    if (filter->until)
        writer_text(writer, "until", filter->until);
    writer_i64(writer, "number", number);
    writer_end(writer);
}

const char *cursor_text(Arena *arena, const char *list, const EntryFilter *filter, int64_t number)
{
    unsigned char bytes[SUM_BYTES + BYTES_MAX];
    size_t        size = sodium_base64_ENCODED_LEN(sizeof bytes, BASE64_VARIANT);
    char         *text = arena_array(arena, char, size);
    Text          json;
    Writer        writer;

    text_init(&json, arena, BYTES_MAX);
    writer_open(&writer, &json);
    filter_write(&writer, filter, number);
    sum_make(list, filter->owner, json.bytes, json.length, bytes);
    memcpy(bytes + SUM_BYTES, json.bytes, json.length);
    return sodium_bin2base64(text, size, bytes, SUM_BYTES + json.length, BASE64_VARIANT);
}

static ErrorCode cursor_read(Arena *arena, const char *list, const char *owner, const char *text, Cursor *ret_cursor,
                             Error *reterr)
{
    unsigned char bytes[SUM_BYTES + BYTES_MAX], sum[SUM_BYTES];
    const char   *json = (const char *)bytes + SUM_BYTES;
    size_t        size;

    if (sodium_base642bin(bytes, sizeof bytes, text, strlen(text), NULL, &size, NULL, BASE64_VARIANT) == 0 &&
        size > SUM_BYTES) {
        sum_make(list, owner, json, size - SUM_BYTES, sum);
        if (memcmp(sum, bytes, SUM_BYTES) == 0 &&
            reader_object(json, size - SUM_BYTES, &cursor_table, arena, ret_cursor, reterr) == OK)
            return OK;
    }
    return fail(reterr, ERR_INVALID, "cursor must be the next_cursor of a page of this wallet's %s", list);
}

/* What is given beside the cursor must be what it carries. */
static ErrorCode same_take(const char *parameter, const char *carried, const char **given, Error *reterr)
{
    if (*given && (!carried || strcmp(*given, carried) != 0))
        return fail(reterr, ERR_INVALID, "%s must be that of the cursor, or be left out", parameter);
    *given = carried;
    return OK;
}

ErrorCode cursor_take(Arena *arena, const char *list, const char *cursor, EntryFilter *filter, Error *reterr)
{
    Cursor carried;

    if (!cursor)
        return OK;
    TRY(cursor_read(arena, list, filter->owner, cursor, &carried, reterr));
    TRY(same_take("asset", carried.asset, &filter->asset, reterr));
    TRY(same_take("kind", carried.kind, &filter->kind, reterr));
    TRY(same_take("since", carried.since, &filter->since, reterr));
    TRY(same_take("until", carried.until, &filter->until, reterr));
    filter->seen = carried.number;
    return OK;
}

/* ---- statements ---- */

ErrorCode statement_page(Pool *pool, Deadline deadline, Arena *arena, const EntryFilter *filter, Entry **ret_list,
                         int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "statement_page", .deadline = deadline, .arena = arena, .read_only = true};

    TRY(db_call_many(pool, &options, sql_wallet_statement,
                     DB_ARGS(db_text(filter->owner), db_text(filter->asset ? filter->asset : WALLET_ASSET_DEFAULT),
                             db_text(filter->since), db_text(filter->until),
                             filter->seen ? db_i64(filter->seen) : db_null(), db_i32(filter->limit)),
                     &entry_shape, ret_list, ret_count, reterr));
    if (*ret_count == 0)
        return wallet_must_exist(pool, deadline, arena, filter->owner, filter->asset, reterr);
    return OK;
}

/* RFC 4180: in quotes, with quotes doubled. */
static void csv_quote(Text *text, const char *value)
{
    if (!value || !strpbrk(value, ",\"\r\n")) {
        text_append(text, value ? value : "");
        return;
    }
    text_append_char(text, '"');
    for (const char *c = value; *c; c++) {
        if (*c == '"')
            text_append_char(text, '"');
        text_append_char(text, *c);
    }
    text_append_char(text, '"');
}

void entry_csv_write(Text *text, const Entry *entry)
{
    char at[WALLET_TIME_SIZE];

    wallet_time_text(entry->at, at);
    text_print(text, "%s,%s,%s,%lld,%lld,%lld,%lld,", at, entry->txn_id, entry->kind, (long long)entry->amount,
               (long long)entry->balance, (long long)entry->held, (long long)entry->version);
    csv_quote(text, entry->other);
    text_append_char(text, ',');
    csv_quote(text, entry->metadata);
}
