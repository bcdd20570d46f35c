/*
 * fixture.c - see fixture.h.
 */
#include "test/unit/wallet/fixture.h"

#include <stdlib.h>

#include "base/uuid.h"

Deadline soon(void)
{
    return deadline_in_ms(20000);
}

LedgerFixture *ledger_fixture_new(int pool_size)
{
    LedgerFixture *fixture = calloc(1, sizeof *fixture);
    Error          error   = {0};

    assert_non_null(fixture);
    fixture->db    = database_new();
    fixture->arena = arena_new((size_t)256 << 20);
    assert_ok(
        pool_new(&(PoolOptions){.conninfo = database_url(fixture->db), .size_max = pool_size}, &fixture->pool, &error));
    return fixture;
}

void ledger_fixture_free(LedgerFixture *fixture)
{
    pool_free(fixture->pool);
    database_free(fixture->db);
    arena_free(fixture->arena);
    free(fixture);
}

const char *ledger_fixture_key(LedgerFixture *fixture)
{
    char id[UUID_TEXT_SIZE];

    uuid_new(id);
    return arena_text(fixture->arena, id);
}

void ledger_fixture_open(LedgerFixture *fixture, const char *owner, int64_t balance)
{
    WalletNew  wallet = {.owner = owner};
    WalletItem topup  = {.kind = WALLET_TOPUP, .owner = owner, .amount = balance};
    Error      error  = {0};

    assert_ok(wallet_open(fixture->pool, soon(), WALLET_LOCK_WAIT, fixture->arena, &wallet, &error));
    if (balance > 0)
        assert_int_equal(ledger_fixture_post(fixture, &topup), OK);
}

ErrorCode ledger_fixture_post(LedgerFixture *fixture, WalletItem *item)
{
    Error error = {0};

    if (!item->txn_id)
        item->txn_id = ledger_fixture_key(fixture);
    assert_ok(wallet_check(item, &error));
    assert_ok(wallet_post(fixture->pool, soon(), WALLET_LOCK_WAIT, fixture->arena, &item, 1, &error));
    return item->code;
}

WalletItem ledger_fixture_transfer(const char *from, const char *to, int64_t amount)
{
    return (WalletItem){.kind = WALLET_TRANSFER, .owner = from, .other = to, .amount = amount};
}

int64_t ledger_fixture_balance(LedgerFixture *fixture, const char *owner)
{
    Wallet *list;
    int     count;
    Error   error = {0};

    assert_ok(wallet_get(fixture->pool, soon(), fixture->arena, &owner, NULL, 1, &list, &count, &error));
    assert_int_equal(count, 1);
    return list[0].balance;
}

int64_t ledger_fixture_count(LedgerFixture *fixture, const char *table)
{
    return database_get_i64(fixture->db, arena_print(fixture->arena, "select count(*) from wallet.%s", table));
}
