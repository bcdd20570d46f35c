/*
 * statement.c - see statement.h.
 */
#include "wallet/statement.h"

#include <string.h>

#include "pg/tx.h"
#include "sql.h"

DB_SHAPE(entry, Entry, ENTRY_COLUMNS);

ErrorCode statement_page(Pool *pool, Deadline deadline, Arena *arena, const EntryFilter *filter, Entry **ret_list,
                         int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "statement_page", .deadline = deadline, .arena = arena, .read_only = true};
    void     *rows;

    TRY(db_call_many(pool, &options, sql_wallet_statement,
                     DB_ARGS(db_text(filter->owner), db_text(filter->asset ? filter->asset : WALLET_ASSET_DEFAULT),
                             db_text(filter->since), db_text(filter->until),
                             filter->seen ? db_i64(filter->seen) : db_null(), db_i32(filter->limit)),
                     &entry_shape, &rows, ret_count, reterr));
    *ret_list = rows;
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
