/*
 * entry.c - see entry.h.
 */
#include "wallet/entry.h"

#include <string.h>

#include "pg/tx.h"
#include "sql.h"
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
    void     *rows;

    TRY(filter_check(filter, reterr));
    TRY(db_call_many(pool, &options, sql_wallet_entries,
                     DB_ARGS(db_text(filter->owner), db_text(filter->asset ? filter->asset : WALLET_ASSET_DEFAULT),
                             db_i32(filter->limit), filter->seen ? db_i64(filter->seen) : db_null(),
                             db_text(filter->kind), db_text(filter->since), db_text(filter->until)),
                     &entry_shape, &rows, ret_count, reterr));
    *ret_list = rows;
    if (*ret_count == 0)
        return wallet_must_exist(pool, deadline, arena, filter->owner, filter->asset, reterr);
    return OK;
}

void entry_write(Writer *writer, const Entry *entry)
{
    writer_object(writer, NULL);
    writer_text(writer, "txn_id", entry->txn_id);
    writer_text(writer, "kind", entry->kind);
    writer_i64(writer, "amount", entry->amount);
    writer_i64(writer, "balance", entry->balance);
    writer_i64(writer, "held", entry->held);
    writer_i64(writer, "version", entry->version);
    writer_text(writer, "other", entry->other);
    writer_raw(writer, "metadata", entry->metadata);
    wallet_time_write(writer, "at", entry->at);
    writer_end(writer);
}

/* sqlstate names the kind of what is missing: see wallet/module.c. */
static ErrorCode show(Pool *pool, const TxOptions *options, const char *sql, const char *txn_id, const char *sqlstate,
                      const char **ret_json, Error *reterr)
{
    const char *json;

    TRY(db_call(pool, options, sql, DB_ARGS(db_uuid(txn_id)), &db_text_shape, &json, reterr));
    if (!json) {
        fail(reterr, ERR_NOT_FOUND, "there is no such %s: %s", sqlstate[4] == '2' ? "hold" : "transaction", txn_id);
        error_set_sqlstate(reterr, sqlstate);
        return ERR_NOT_FOUND;
    }
    *ret_json = json;
    return OK;
}

ErrorCode transaction_show(Pool *pool, Deadline deadline, Arena *arena, const char *txn_id, const char **ret_json,
                           Error *reterr)
{
    TxOptions options = reading("transaction_show", deadline, arena);

    return show(pool, &options, sql_wallet_transaction, txn_id, "QW023", ret_json, reterr);
}

ErrorCode hold_show(Pool *pool, Deadline deadline, Arena *arena, const char *txn_id, const char **ret_json,
                    Error *reterr)
{
    TxOptions options = reading("hold_show", deadline, arena);

    return show(pool, &options, sql_wallet_hold, txn_id, "QW022", ret_json, reterr);
}

ErrorCode transaction_entries(Pool *pool, Deadline deadline, Arena *arena, const char *txn_id, const char **ret_json,
                              Error *reterr)
{
    TxOptions options = reading("transaction_entries", deadline, arena);

    return show(pool, &options, sql_wallet_transaction_entries, txn_id, "QW023", ret_json, reterr);
}
