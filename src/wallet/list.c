/*
 * list.c - see list.h; sql/wallet/list.sql reads.
 */
#include "wallet/list.h"

#include <string.h>

#include "base/word.h"
#include "pg/tx.h"
#include "sql.h"
#include "wallet/answers.h"
#include "wallet/entry.h"

DB_SHAPE(wallet_line, WalletLine, WALLET_LINE_COLUMNS);
DB_SHAPE(hold_line, HoldLine, HOLD_LINE_COLUMNS);
DB_SHAPE(transaction_line, TransactionLine, TRANSACTION_LINE_COLUMNS);

const char *const hold_statuses[]        = {"OPEN", "CAPTURED", "VOIDED", "EXPIRED", NULL};
const char *const transaction_statuses[] = {"posted", "refused", NULL};

/* What is before the "*" is the beginning of a valid owner; "*" alone is all. */
static ErrorCode owner_check(const char *owner, Error *reterr)
{
    size_t length = owner ? strlen(owner) : 0;

    if (!owner || strcmp(owner, "*") == 0 || strcmp(owner, "@*") == 0)
        return OK;
    if (length > 1 && owner[0] == '@' && owner[length - 1] == '*' && strncmp(owner, WALLET_SYSTEM, length - 1) == 0)
        return OK;
    return wallet_check_owner_seen("owner", owner, reterr);
}

static ErrorCode filter_check(const LedgerFilter *filter, const char *const *statuses, Error *reterr)
{
    TRY(owner_check(filter->owner, reterr));
    TRY(wallet_check_asset("asset", filter->asset, reterr));
    TRY(entry_check_kind("kind", filter->kind, reterr));
    return statuses ? word_check("status", filter->status, statuses, reterr) : OK;
}

static TxOptions reading(const char *name, Deadline deadline, Arena *arena)
{
    return (TxOptions){.name = name, .deadline = deadline, .arena = arena, .read_only = true};
}

static DbArg before_arg(const LedgerFilter *filter)
{
    return filter->before ? db_i64(filter->before) : db_null();
}

ErrorCode ledger_wallets(Pool *pool, Deadline deadline, Arena *arena, const LedgerFilter *filter, WalletLine **ret_list,
                         int *ret_count, int64_t *ret_next, Error *reterr)
{
    TxOptions options = reading("wallet_lines", deadline, arena);

    TRY(filter_check(filter, NULL, reterr));
    TRY(db_call_many(pool, &options, sql_wallet_wallet_page,
                     DB_ARGS(db_text(filter->owner), db_text(filter->asset), db_text(filter->since),
                             db_text(filter->until), before_arg(filter), db_i32(filter->limit)),
                     &wallet_line_shape, ret_list, ret_count, reterr));
    *ret_next = db_page_next(*ret_list, sizeof(WalletLine), filter->limit, ret_count);
    return OK;
}

ErrorCode ledger_holds(Pool *pool, Deadline deadline, Arena *arena, const LedgerFilter *filter, HoldLine **ret_list,
                       int *ret_count, int64_t *ret_next, Error *reterr)
{
    TxOptions options = reading("hold_lines", deadline, arena);

    TRY(filter_check(filter, hold_statuses, reterr));
    TRY(db_call_many(pool, &options, sql_wallet_hold_page,
                     DB_ARGS(db_text(filter->owner), db_text(filter->asset), db_text(filter->status),
                             db_text(filter->since), db_text(filter->until), before_arg(filter), db_i32(filter->limit)),
                     &hold_line_shape, ret_list, ret_count, reterr));
    *ret_next = db_page_next(*ret_list, sizeof(HoldLine), filter->limit, ret_count);
    return OK;
}

ErrorCode ledger_transactions(Pool *pool, Deadline deadline, Arena *arena, const LedgerFilter *filter,
                              TransactionLine **ret_list, int *ret_count, int64_t *ret_next, Error *reterr)
{
    TxOptions options = reading("transaction_lines", deadline, arena);

    TRY(filter_check(filter, transaction_statuses, reterr));
    TRY(db_call_many(pool, &options, sql_wallet_transaction_page,
                     DB_ARGS(db_text(filter->owner), db_text(filter->asset), db_text(filter->kind),
                             db_text(filter->status), db_text(filter->since), db_text(filter->until),
                             before_arg(filter), db_i32(filter->limit)),
                     &transaction_line_shape, ret_list, ret_count, reterr));
    *ret_next = db_page_next(*ret_list, sizeof(TransactionLine), filter->limit, ret_count);
    return OK;
}

void wallet_line_write(Writer *writer, const void *row)
{
    const WalletLine *line = row;

    writer_object(writer, NULL);
    writer_text(writer, "owner", line->owner);
    writer_text(writer, "asset", line->asset);
    writer_i64(writer, "balance", line->balance);
    writer_i64(writer, "held", line->held);
    writer_i64(writer, "available", line->available);
    if (wallet_has_floor(line->owner))
        writer_i64(writer, "floor", line->floor);
    writer_i64(writer, "version", line->version);
    writer_bool(writer, "frozen", line->frozen);
    writer_time(writer, "created_at", line->created_at);
    writer_end(writer);
}

void hold_line_write(Writer *writer, const void *line)
{
    writer_row(writer, &answer_hold_line, line);
}

void transaction_line_write(Writer *writer, const void *line)
{
    writer_row(writer, &answer_transaction_line, line);
}
