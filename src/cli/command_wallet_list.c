/*
 * command_wallet_list.c - pawl wallet list, holds and transactions.
 */
#include "cli/command.h"
#include "cli/pages.h"
#include "cli/print.h"
#include "cli/source.h"

#define PAGE_ROWS 20000 /* as the SQL functions say */

static const ListColumn wallet_columns[] = {
    {"owner",      NULL, CELL_TEXT, offsetof(WalletLine, owner)     },
    {">balance",   NULL, CELL_I64,  offsetof(WalletLine, balance)   },
    {"asset",      NULL, CELL_TEXT, offsetof(WalletLine, asset)     },
    {">held",      NULL, CELL_I64,  offsetof(WalletLine, held)      },
    {">available", NULL, CELL_I64,  offsetof(WalletLine, available) },
    {">version",   NULL, CELL_I64,  offsetof(WalletLine, version)   },
    {"created",    NULL, CELL_TIME, offsetof(WalletLine, created_at)},
};
static const ListColumn hold_columns[] = {
    {"txn_id",     NULL, CELL_TEXT, offsetof(HoldLine, txn_id)    },
    {"owner",      NULL, CELL_TEXT, offsetof(HoldLine, owner)     },
    {">amount",    NULL, CELL_I64,  offsetof(HoldLine, amount)    },
    {"asset",      NULL, CELL_TEXT, offsetof(HoldLine, asset)     },
    {">remaining", NULL, CELL_I64,  offsetof(HoldLine, remaining) },
    {"status",     NULL, CELL_TEXT, offsetof(HoldLine, status)    },
    {"at",         NULL, CELL_TIME, offsetof(HoldLine, at)        },
    {"expires",    NULL, CELL_TIME, offsetof(HoldLine, expires_at)},
};
static const ListColumn transaction_columns[] = {
    {"txn_id",  NULL, CELL_TEXT, offsetof(TransactionLine, txn_id)},
    {"at",      NULL, CELL_TIME, offsetof(TransactionLine, at)    },
    {"kind",    NULL, CELL_TEXT, offsetof(TransactionLine, kind)  },
    {"status",  NULL, CELL_TEXT, offsetof(TransactionLine, status)},
    {">amount", NULL, CELL_I64,  offsetof(TransactionLine, amount)},
    {"asset",   NULL, CELL_TEXT, offsetof(TransactionLine, asset) },
    {"owner",   NULL, CELL_TEXT, offsetof(TransactionLine, owner) },
    {"other",   NULL, CELL_TEXT, offsetof(TransactionLine, other) },
    {"reason",  NULL, CELL_TEXT, offsetof(TransactionLine, reason)},
};

static ErrorCode wallets_read(Call *call, Arena *arena, const void *filter, int limit, int64_t before, void *ret_rows,
                              int *ret_count, int64_t *ret_next, Error *reterr)
{
    LedgerFilter page = *(const LedgerFilter *)filter;

    page.limit  = limit;
    page.before = before;
    return source_ledger_wallets(call, arena, &page, ret_rows, ret_count, ret_next, reterr);
}

static ErrorCode holds_read(Call *call, Arena *arena, const void *filter, int limit, int64_t before, void *ret_rows,
                            int *ret_count, int64_t *ret_next, Error *reterr)
{
    LedgerFilter page = *(const LedgerFilter *)filter;

    page.limit  = limit;
    page.before = before;
    return source_ledger_holds(call, arena, &page, ret_rows, ret_count, ret_next, reterr);
}

static ErrorCode transactions_read(Call *call, Arena *arena, const void *filter, int limit, int64_t before,
                                   void *ret_rows, int *ret_count, int64_t *ret_next, Error *reterr)
{
    LedgerFilter page = *(const LedgerFilter *)filter;

    page.limit  = limit;
    page.before = before;
    return source_ledger_transactions(call, arena, &page, ret_rows, ret_count, ret_next, reterr);
}

static ErrorCode lines_print(Call *call, PageRead *read, const ListShape *shape, Error *reterr)
{
    LedgerFilter filter = {.owner  = call_flag(call, "--owner"),
                           .asset  = call_flag(call, "--asset"),
                           .kind   = call_flag(call, "--kind"),
                           .status = call_flag(call, "--status")};
    int64_t      since, until;
    int          limit;

    TRY(call_limit(call, PAGES_LIMIT_MAX, &limit, reterr));
    TRY(call_moment(call, "--since", &since, reterr));
    TRY(call_moment(call, "--until", &until, reterr));
    filter.since = moment_text(call->arena, since);
    filter.until = moment_text(call->arena, until);
    TRY(call_open(call, APP_SCHEMA, reterr));
    return list_pages(call, &(Pages){read, &filter, shape, limit, PAGE_ROWS}, reterr);
}

ErrorCode command_wallet_list(Call *call, Error *reterr)
{
    static const ListShape shape = {wallet_columns, COUNT(wallet_columns), sizeof(WalletLine), "no wallets",
                                    wallet_line_write};

    return lines_print(call, wallets_read, &shape, reterr);
}

ErrorCode command_wallet_holds(Call *call, Error *reterr)
{
    static const ListShape shape = {hold_columns, COUNT(hold_columns), sizeof(HoldLine), "no holds", hold_line_write};

    return lines_print(call, holds_read, &shape, reterr);
}

ErrorCode command_wallet_transactions(Call *call, Error *reterr)
{
    static const ListShape shape = {transaction_columns, COUNT(transaction_columns), sizeof(TransactionLine),
                                    "no transactions", transaction_line_write};

    return lines_print(call, transactions_read, &shape, reterr);
}
