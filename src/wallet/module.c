/*
 * module.c - what module wallet contributes; see base/module.h.
 */
#include "base/module.h"

#include "wallet/metric.h"

WalletMetrics wallet_metrics = {WALLET_METRICS(METRIC_INIT)};

static const MetricTable metric_table = METRIC_TABLE(NULL, wallet_metrics);
static const MetricStat  stats[]      = {
    {"transfers", &metric_table, offsetof(WalletMetrics, posted) / sizeof(Metric)},
    {0},
};
/* clang-format off */
static const SqlState states[] = {
    {"QW001", ERR_INVALID},
    {"QW002", ERR_CONFLICT, .type = "not-posted",
     .meaning = "An item of an atomic batch was refused, so none was posted.",
     .action = "Correct or remove the item that the detail names and send the batch with new keys."},
    {"QW009", ERR_DENIED}, /* the ledger is append-only */
    {"QW011", ERR_CONFLICT, .type = "insufficient-funds",
     .meaning = "The wallet has less available than the operation takes.",
     .action = "A repeat with the same key gets the same refusal; use a new key when there is money."},
    {"QW012", ERR_CONFLICT, .type = "balance-limit",
     .meaning = "The wallet's balance would exceed 9007199254740991.",
     .action = "Use several wallets."},
    {"QW013", ERR_CONFLICT, .type = "wallet-frozen",
     .meaning = "The wallet is frozen.",
     .action = "Unfreeze it, then use a new key."},
    {"QW014", ERR_CONFLICT, .type = "hold-ended",
     .meaning = "The hold was voided, captured in full, or has expired.",
     .action = "Place a new hold."},
    {"QW015", ERR_CONFLICT, .type = "over-captured",
     .meaning = "The capture is larger than what is left of the hold.",
     .action = "Capture at most what is left."},
    {"QW016", ERR_CONFLICT, .type = "over-refunded",
     .meaning = "The refund is larger than what is left of the transaction.",
     .action = "Refund at most what is left."},
    {"QW017", ERR_CONFLICT, .type = "not-refundable",
     .meaning = "A transaction of this kind cannot be refunded.",
     .action = "Post a transaction in the opposite direction."},
    {"QW018", ERR_INVALID, .type = "asset-mismatch",
     .meaning = "The operation refers to a transaction or hold in another asset.",
     .action = "Leave out the asset, or give that of the transaction or hold."},
    {"QW019", ERR_INVALID, .type = "same-wallet",
     .meaning = "Both sides of the operation are one wallet.",
     .action = "Give two different wallets."},
    {"QW021", ERR_NOT_FOUND, .type = "wallet-unknown",
     .meaning = "There is no wallet of this owner in this asset.",
     .action = "Open it with POST /v1/wallets."},
    {"QW022", ERR_NOT_FOUND, .type = "hold-unknown",
     .meaning = "No hold has this id.",
     .action = "Check the id."},
    {"QW023", ERR_NOT_FOUND, .type = "transaction-unknown",
     .meaning = "No transaction has this id.",
     .action = "Check the id."},
    {0}
};
/* clang-format on */

static const Module wallet_module = {.name = "wallet", .metrics = {&metric_table}, .stats = stats, .states = states};
MODULE_JOIN(wallet_module)
