/*
 * wallet.c - see wallet.h.
 */
#include "wallet/wallet.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "pg/query.h"
#include "pg/tx.h"
#include "sql.h"
#include "wallet/post.h"

#define NUMBER_PART_MAX 16383 /* what numeric can hold */
#define NUMBER_FAR      1000000L

DB_SHAPE(wallet, Wallet, WALLET_COLUMNS);

/* ---- names ---- */

/* U+0000 to U+001F, U+007F, and U+0080 to U+009F, which UTF-8 writes as C2 80 to C2 9F. */
static bool has_control(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;

    for (; *byte; byte++)
        if (*byte < 0x20 || *byte == 0x7f || (byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] <= 0x9f))
            return true;
    return false;
}

ErrorCode wallet_check_owner(const char *field, const char *owner, Error *reterr)
{
    size_t length = owner ? strnlen(owner, WALLET_OWNER_MAX + 1) : 0;

    if (length == 0 || length > WALLET_OWNER_MAX)
        return fail(reterr, ERR_INVALID, "%s must be 1 to %d bytes", field, WALLET_OWNER_MAX);
    if (owner[0] == '@')
        return fail(reterr, ERR_INVALID, "%s must not begin with \"@\"", field);
    if (has_control(owner) || !text_is_utf8(owner, length))
        return fail(reterr, ERR_INVALID, "%s must be UTF-8 without control characters", field);
    return OK;
}

ErrorCode wallet_check_owner_seen(const char *field, const char *owner, Error *reterr)
{
    if (owner && strcmp(owner, WALLET_SYSTEM) == 0)
        return OK;
    return wallet_check_owner(field, owner, reterr);
}

static bool asset_is_good(const char *asset)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";
    size_t            length    = strspn(asset, letters);

    return asset[0] >= 'A' && asset[0] <= 'Z' && length <= 32 && asset[length] == '\0';
}

ErrorCode wallet_check_asset(const char *field, const char *asset, Error *reterr)
{
    if (asset && !asset_is_good(asset))
        return fail(reterr, ERR_INVALID,
                    "%s must be 1 to 32 capital letters, digits, \"_\", \".\", \":\" or \"-\", beginning with a "
                    "letter, got \"%.40s\"",
                    field, asset);
    return OK;
}

/* ---- metadata ---- */

/* How many digits a number has before and behind its point, written out as PostgreSQL does. Returns its end. */
static const char *number_measure(const char *text, long *ret_whole, long *ret_part)
{
    static const char digits[] = "0123456789";
    long              exponent = 0;
    char             *end;

    *ret_part  = 0;
    *ret_whole = (long)strspn(text, digits);
    text += *ret_whole;
    if (*text == '.') {
        *ret_part = (long)strspn(text + 1, digits);
        text += 1 + *ret_part;
    }
    if (*text == 'e' || *text == 'E') {
        exponent = strtol(text + 1, &end, 10);
        exponent = exponent > NUMBER_FAR ? NUMBER_FAR : exponent < -NUMBER_FAR ? -NUMBER_FAR : exponent;
        text     = end;
    }
    *ret_whole += exponent;
    *ret_part -= exponent;
    return text;
}

static const char *string_skip(const char *text)
{
    for (text++; *text && *text != '"'; text++)
        if (*text == '\\' && text[1])
            text++;
    return *text ? text + 1 : text;
}

/* A few bytes, "1e100000", may ask for very many: neither PostgreSQL nor a later reader should have to expand it. */
static bool numbers_fit(const char *json)
{
    long total = 0;

    while (*json) {
        long whole, part;

        if (*json == '"') {
            json = string_skip(json);
        } else if (*json >= '0' && *json <= '9') {
            json = number_measure(json, &whole, &part);
            total += (whole > 0 ? whole : 0) + (part > 0 ? part : 0);
            if (total > WALLET_METADATA_MAX || part > NUMBER_PART_MAX)
                return false;
        } else {
            json++;
        }
    }
    return true;
}

ErrorCode wallet_check_metadata(const char *metadata, Error *reterr)
{
    if (!metadata)
        return OK;
    if (strnlen(metadata, WALLET_METADATA_MAX + 1) > WALLET_METADATA_MAX ||
        metadata[strspn(metadata, " \t\r\n")] != '{')
        return fail(reterr, ERR_INVALID, "metadata must be an object of at most %d bytes", WALLET_METADATA_MAX);
    if (!numbers_fit(metadata))
        return fail(
            reterr, ERR_INVALID,
            "metadata must have no number with more than %d digits behind the point, nor more than %d digits in all",
            NUMBER_PART_MAX, WALLET_METADATA_MAX);
    return OK;
}

/* ---- opening ---- */

typedef struct {
    int64_t     floor, created_at, balance_now;
    bool        is_new;
    const char *differs;
} Opened;
#define OPENED_COLUMNS(X, T)      \
    X(T, I64, floor, balance_now) \
    X(T, TIME, created_at)        \
    X(T, BOOL, is_new)            \
    X(T, TEXT, differs)
DB_SHAPE(opened, Opened, OPENED_COLUMNS);

static ErrorCode open_check(const WalletNew *wallet, Error *reterr)
{
    TRY(wallet_check_owner("owner", wallet->owner, reterr));
    TRY(wallet_check_asset("asset", wallet->asset, reterr));
    TRY(wallet_check_metadata(wallet->metadata, reterr));
    if (wallet->floor > 0 || wallet->floor < -WALLET_AMOUNT_MAX)
        return fail(reterr, ERR_INVALID, "floor must be from %lld to 0", (long long)-WALLET_AMOUNT_MAX);
    return OK;
}

/* lock_ms: text, NULL for as long as it takes. */
ErrorCode wallet_open(Pool *pool, Deadline deadline, WalletLock lock, Arena *arena, WalletNew *wallet, Error *reterr)
{
    const char *asset = wallet->asset ? wallet->asset : WALLET_ASSET_DEFAULT;
    TxOptions options = {.name = "wallet_open", .deadline = deadline, .arena = arena, .keyed = true, .lock_once = lock};
    Error     error   = {0};
    Opened    opened;
    ErrorCode code;

    assert(lock != WALLET_LOCK_SKIP);
    TRY(open_check(wallet, reterr));
    code =
        db_call(pool, &options, sql_wallet_open,
                DB_ARGS(db_text(wallet->owner), db_text(asset),
                        wallet->floor || wallet->has_floor ? db_i64(wallet->floor) : db_null(),
                        db_jsonb(wallet->metadata), db_uuid(wallet->txn_id), lock ? db_i32(WALLET_LOCK_MS) : db_null()),
                &opened_shape, &opened, &error);
    if (code == ERR_CONFLICT)
        return fail(reterr, ERR_KEY_REUSED, "txn_id %s was used before for another operation", wallet->txn_id);
    TRY(error_pass(code, &error, reterr));
    if (opened.differs)
        return fail(reterr, ERR_KEY_REUSED, "the wallet of \"%s\" in %s already exists with another %s", wallet->owner,
                    asset, opened.differs);
    wallet->is_new      = opened.is_new;
    wallet->floor       = opened.floor;
    wallet->created_at  = opened.created_at;
    wallet->balance_now = opened.balance_now;
    return OK;
}

/* ---- reading ---- */

static TxOptions reading(const char *name, Deadline deadline, Arena *arena)
{
    return (TxOptions){.name = name, .deadline = deadline, .arena = arena, .read_only = true};
}

ErrorCode wallet_get(Pool *pool, Deadline deadline, Arena *arena, const char *const *owners, const char *const *assets,
                     int count, Wallet **ret_list, int *ret_count, Error *reterr)
{
    TxOptions options = reading("wallet_look", deadline, arena);

    return db_call_many(pool, &options, sql_wallet_get,
                        DB_ARGS(db_texts(arena, owners, count), assets ? db_texts(arena, assets, count) : db_null()),
                        &wallet_shape, ret_list, ret_count, reterr);
}

ErrorCode wallet_list(Pool *pool, Deadline deadline, Arena *arena, const char *owner, Wallet **ret_list, int *ret_count,
                      Error *reterr)
{
    TxOptions options = reading("wallet_look_all", deadline, arena);

    return db_call_many(pool, &options, sql_wallet_list, DB_ARGS(db_text(owner)), &wallet_shape, ret_list, ret_count,
                        reterr);
}

bool wallet_has_floor(const char *owner)
{
    return strcmp(owner, WALLET_SYSTEM) != 0;
}

void wallet_write(Writer *writer, const void *row)
{
    const Wallet *wallet = row;

    writer_object(writer, NULL);
    writer_text(writer, "owner", wallet->owner);
    writer_text(writer, "asset", wallet->asset);
    writer_i64(writer, "balance", wallet->balance);
    writer_i64(writer, "held", wallet->held);
    writer_i64(writer, "available", wallet->available);
    if (wallet_has_floor(wallet->owner))
        writer_i64(writer, "floor", wallet->floor);
    writer_i64(writer, "version", wallet->version);
    writer_bool(writer, "frozen", wallet->frozen);
    writer_raw(writer, "metadata", wallet->metadata);
    writer_time(writer, "created_at", wallet->created_at);
    writer_end(writer);
}

void wallet_past_write(Writer *writer, const void *row)
{
    const WalletPast *past = row;

    writer_object(writer, NULL);
    writer_text(writer, "owner", past->owner);
    writer_text(writer, "asset", past->asset);
    writer_text(writer, "at", past->at);
    writer_i64(writer, "balance", past->balance);
    writer_i64(writer, "held", past->held);
    writer_i64(writer, "available", past->available);
    if (wallet_has_floor(past->owner))
        writer_i64(writer, "floor", past->floor);
    writer_i64(writer, "version", past->version);
    writer_end(writer);
}

#define PAST_COLUMNS(X, T) X(T, I64, balance, held, available, floor, version)
DB_SHAPE(past, WalletPast, PAST_COLUMNS);

ErrorCode wallet_get_at(Pool *pool, Deadline deadline, Arena *arena, const char *owner, const char *asset,
                        const char *at, WalletPast *ret_past, Error *reterr)
{
    TxOptions options = reading("wallet_look_at", deadline, arena);
    void     *rows;
    int       count;

    asset = asset ? asset : WALLET_ASSET_DEFAULT;
    TRY(db_call_many(pool, &options, sql_wallet_balance_at, DB_ARGS(db_text(owner), db_text(at), db_text(asset)),
                     &past_shape, &rows, &count, reterr));
    if (count == 0) {
        (void)wallet_missing(owner, asset, reterr);
        error_prefix(reterr, "at %s", at);
        return ERR_NOT_FOUND;
    }
    TRY(db_only(&past_shape, rows, count, ret_past, reterr));
    ret_past->owner = owner;
    ret_past->asset = asset;
    ret_past->at    = at;
    return OK;
}

ErrorCode wallet_must_exist(Pool *pool, Deadline deadline, Arena *arena, const char *owner, const char *asset,
                            Error *reterr)
{
    Wallet *list;
    int     count;

    TRY(wallet_get(pool, deadline, arena, &owner, &asset, 1, &list, &count, reterr));
    return count ? OK : wallet_missing(owner, asset, reterr);
}

ErrorCode wallet_missing(const char *owner, const char *asset, Error *reterr)
{
    fail(reterr, ERR_NOT_FOUND, "there is no wallet of \"%s\" in %s", owner, asset ? asset : WALLET_ASSET_DEFAULT);
    error_set_sqlstate(reterr, "QW021");
    return ERR_NOT_FOUND;
}

/* ---- moments ---- */

void wallet_time_text(int64_t micros, char *ret_text)
{
    wall_text_us((Wall){micros}, ret_text);
}

/* ---- on the clock ---- */

ErrorCode wallet_seal(Pool *pool, Deadline deadline, int limit, int *ret_count, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "wallet_seal", .deadline = deadline, .arena = arena, .keyed = true};
    int64_t                   done;

    /* Done twice it finds nothing left to do, so a lost response is simply asked for again. */
    TRY(db_call(pool, &options, sql_wallet_seal, DB_ARGS(db_i32(limit)), &db_i64_shape, &done, reterr));
    *ret_count = (int)done;
    return OK;
}

/* ---- a new wallet as JSON ---- */

static const Field open_fields[] = {
    {"owner", FIELD_TEXT, offsetof(WalletOpenRequest, owner), .required = true, .min = 1,
     .length_max = WALLET_OWNER_MAX, .names = NAMES_OWNER,
     .help = "any name without control characters that does not begin with \"@\""},
    {"asset", FIELD_TEXT, offsetof(WalletOpenRequest, asset), .min = 1, .length_max = 32, .help = "CREDIT when absent"},
    {"floor", FIELD_I64, offsetof(WalletOpenRequest, floor), .min = -WALLET_AMOUNT_MAX, .max = 0,
     .is_set = offsetof(WalletOpenRequest, has_floor), .help = "how far below zero the wallet may go; 0 when absent"},
    {"metadata", FIELD_JSON, offsetof(WalletOpenRequest, metadata), .help = "an object, kept with the wallet"},
    {"txn_id", FIELD_UUID, offsetof(WalletOpenRequest, txn_id), .help = "not needed: the wallet is its own key"},
};
const FieldTable wallet_open_table = {"wallet", open_fields, COUNT(open_fields), sizeof(WalletOpenRequest)};

WalletNew wallet_open_request_new(const WalletOpenRequest *request)
{
    return (WalletNew){.owner     = request->owner,
                       .asset     = request->asset ? request->asset : WALLET_ASSET_DEFAULT,
                       .metadata  = request->metadata,
                       .txn_id    = request->txn_id,
                       .floor     = request->floor,
                       .has_floor = request->has_floor};
}

/* ---- assets ---- */

typedef struct {
    const char *asset, *domain;
} EmitTo;

static ErrorCode emit_to(Tx *tx, void *context, Error *reterr)
{
    const EmitTo *given = context;

    return db_run(tx, sql_wallet_emit_to, DB_ARGS(db_text(given->asset), db_text(given->domain)), NULL, reterr);
}

ErrorCode asset_emit_to(Pool *pool, Deadline deadline, const char *asset, const char *domain, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions options = {.name = "asset_emit_to", .deadline = deadline, .arena = arena, .keyed = true}; /* idempotent */
    EmitTo    given   = {asset, domain};

    TRY(wallet_check_asset("asset", asset, reterr));
    return tx_run(pool, &options, emit_to, &given, reterr);
}
