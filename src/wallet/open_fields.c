/*
 * open_fields.c - see open_fields.h.
 */
#include "wallet/open_fields.h"

#include "wallet/post.h"

static const Field open_fields[] = {
    {"owner", FIELD_TEXT, offsetof(WalletOpenRequest, owner), .required = true, .min = 1,
     .length_max = WALLET_OWNER_MAX, .help = "any name without control characters that does not begin with \"@\""},
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
