/*
 * asset.h - settings of an asset. An asset is created with its first wallet.
 */
#ifndef WALLET_ASSET_H
#define WALLET_ASSET_H

#include "base/clock.h"
#include "base/error.h"
#include "pg/pool.h"

/* From now on each posted transaction of this asset sends a command "wallet.posted" to a domain of the bus, in the same
 * transaction. domain NULL: no longer. ERR_INVALID: a bad asset or domain. */
must_check ErrorCode asset_emit_to(Pool *pool, Deadline deadline, const char *asset, const char *domain, Error *reterr);

#endif
