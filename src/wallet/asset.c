/*
 * asset.c - see asset.h.
 */
#include "wallet/asset.h"

#include "pg/tx.h"
#include "sql.h"
#include "wallet/wallet.h"

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
    /* Said twice it is the same. */
    TxOptions options = {.name = "asset_emit_to", .deadline = deadline, .arena = arena, .keyed = true};
    EmitTo    given   = {asset, domain};

    TRY(wallet_check_asset("asset", asset, reterr));
    return tx_run(pool, &options, emit_to, &given, reterr);
}
