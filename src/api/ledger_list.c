/*
 * ledger_list.c - lists of wallets, holds and transactions over HTTP.
 */
#include "api/api.h"
#include "api/page.h"
#include "wallet/list.h"

#define OWNER_PARAMETER                                                                      \
    {                                                                                        \
        "owner", "only this owner, or all whose name begins so: eu/*", .names = NAMES_OWNERS \
    }
#define ASSET_PARAMETER            \
    {                              \
        "asset", "only this asset" \
    }
#define SPAN_PARAMETERS                                  \
    {"since", "not before this moment", PARAMETER_TIME}, \
    {                                                    \
        "until", "not after this moment", PARAMETER_TIME \
    }

const RouteParameter api_wallet_list_parameters[] = {
    OWNER_PARAMETER, ASSET_PARAMETER, SPAN_PARAMETERS, PAGE_PARAMETERS, {NULL, NULL},
};
const RouteParameter api_hold_list_parameters[] = {
    OWNER_PARAMETER, ASSET_PARAMETER, {"status", "only this status", .words = hold_statuses},
    SPAN_PARAMETERS, PAGE_PARAMETERS, {NULL, NULL},
};
const RouteParameter api_transaction_list_parameters[] = {
    {"owner", "only those in which this owner is on either side, or one whose name begins so: eu/*",
     .names = NAMES_OWNERS},
    ASSET_PARAMETER,
    {"kind", "only these: topup, spend, transfer, ..."},
    {"status", "only this status", .words = transaction_statuses},
    SPAN_PARAMETERS,
    PAGE_PARAMETERS,
    {NULL, NULL},
};

static ErrorCode filter_take(Request *request, LedgerFilter *ret_filter, Error *reterr)
{
    *ret_filter = (LedgerFilter){.owner  = request_query(request, "owner"),
                                 .asset  = request_query(request, "asset"),
                                 .kind   = request_query(request, "kind"),
                                 .status = request_query(request, "status")};
    TRY(api_moment_take(request, "since", &ret_filter->since, reterr));
    TRY(api_moment_take(request, "until", &ret_filter->until, reterr));
    return page_take(request, &ret_filter->limit, &ret_filter->before, reterr);
}

ErrorCode api_wallet_list(void *context, Request *request, Response *response, Error *reterr)
{
    const Api   *api = context;
    LedgerFilter filter;
    WalletLine  *list;
    int64_t      next;
    int          count;

    TRY(filter_take(request, &filter, reterr));
    TRY(ledger_wallets(api->pool, request_deadline(request), request_arena(request), &filter, &list, &count, &next,
                       reterr));
    page_write_next(list, count, next, PAGE_ROW(WalletLine, wallet_line_write, id), response);
    return OK;
}

ErrorCode api_hold_list(void *context, Request *request, Response *response, Error *reterr)
{
    const Api   *api = context;
    LedgerFilter filter;
    HoldLine    *list;
    int64_t      next;
    int          count;

    TRY(filter_take(request, &filter, reterr));
    TRY(ledger_holds(api->pool, request_deadline(request), request_arena(request), &filter, &list, &count, &next,
                     reterr));
    page_write_next(list, count, next, PAGE_ROW(HoldLine, hold_line_write, id), response);
    return OK;
}

ErrorCode api_transaction_list(void *context, Request *request, Response *response, Error *reterr)
{
    const Api       *api = context;
    LedgerFilter     filter;
    TransactionLine *list;
    int64_t          next;
    int              count;

    TRY(filter_take(request, &filter, reterr));
    TRY(ledger_transactions(api->pool, request_deadline(request), request_arena(request), &filter, &list, &count, &next,
                            reterr));
    page_write_next(list, count, next, PAGE_ROW(TransactionLine, transaction_line_write, id), response);
    return OK;
}
