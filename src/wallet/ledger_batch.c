/*
 * ledger_batch.c - batches of operations: each is a transaction of its own, and waits for locked wallets without a thread.
 *
 * After a try whose lock was not granted the wallets that are locked are looked up, so that one batch at a time waits for a wallet: the
 * others on it are deferred until the next round.
 */
#include "wallet/ledger_internal.h"

#include "sql.h"

static bool batch_is_locked(const LedgerMany *batch, Mono since)
{
    for (int i = 0; i < batch->count; i++)
        if (locked_has(&batch->ledger->locked, batch->items[i], since))
            return true;
    return false;
}

static ErrorCode batch_defer(Error *reterr)
{
    ErrorCode code = fail(reterr, ERR_BUSY, "nothing was done: another transaction keeps a wallet locked");

    error_set_sqlstate(reterr, "55P03");
    return code;
}

/* What cannot be looked up is not known as locked: then each batch finds out by itself. */
static void batch_look(const LedgerMany *batch)
{
    const char **owners;
    int          count;
    Error        error;

    if (wallet_locked(batch->ledger->pool, batch->call.deadline, batch->arena, batch->items, batch->count, &owners,
                      &count, &error) != OK)
        return;
    for (int i = 0; i < count; i++)
        locked_add(&batch->ledger->locked, owners[i]);
}

static ErrorCode batch_run(LockCall *call, Error *reterr)
{
    LedgerMany *batch = call->context;
    ArenaMark   mark  = arena_mark(batch->arena);

    if (batch_is_locked(batch, call->queued_at))
        return batch_defer(reterr);
    ErrorCode code = wallet_post_many(batch->ledger->pool, call->deadline, WALLET_LOCK_MS, batch->arena, batch->items,
                                      batch->count, batch->atomic, &batch->refused, reterr);
    if (code == OK || !error_is_lock(reterr))
        return code;
    arena_rewind(batch->arena, mark);
    batch_look(batch);
    arena_rewind(batch->arena, mark);
    return batch_defer(reterr);
}

static void batch_done(void *context)
{
    LedgerMany *batch = context;

    batch->on_done(batch->context);
}

void ledger_submit_many(Ledger *ledger, Deadline deadline, LedgerMany *batch)
{
    batch->ledger  = ledger;
    batch->refused = -1;
    batch->call    = (LockCall){.run = batch_run, .deadline = deadline, .on_done = batch_done, .context = batch};
    batch->call.is_deferred = batch_is_locked(batch, mono_plus_ms(clock_mono(), -LOCKED_MS));
    lock_calls_submit(ledger->batches, &batch->call);
}
