/*
 * module.c - what module wallet contributes; see base/module.h.
 */
#include "base/module.h"

#include "wallet/metric.h"

WalletMetrics wallet_metrics = {WALLET_METRICS(METRIC_INIT)};

static const MetricTable metric_table  = METRIC_TABLE(NULL, wallet_metrics);
static const Module      wallet_module = {"wallet", {&metric_table}, NULL};
MODULE_JOIN(wallet_module)
