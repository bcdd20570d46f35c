/*
 * wallet_race_test.c - many callers of one ledger share transactions, and each gets its own verdict.
 */
#include <string.h>

#include "base/sync.h"
#include "base/uuid.h"
#include "test/unit/wallet/fixture.h"
#include "wallet/ledger.h"

#define CALLERS 16
#define TURNS   25

typedef struct {
    Ledger     *ledger;
    const char *txn_id; /* that all of them use; NULL: each turn has its own */
    int         number;
    int         posted, refused, replayed, failed;
    int64_t     balance; /* of the last verdict */
} Caller;

static void turn(Caller *caller, int i)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    int                       place = caller->txn_id ? 0 : i + caller->number;
    char                      from[8], to[8], id[UUID_TEXT_SIZE];
    WalletItem                item = {.kind = WALLET_TRANSFER, .owner = from, .other = to, .amount = 7};
    Wallet                    wallet;

    snprintf(from, sizeof from, "w%d", place % 4);
    snprintf(to, sizeof to, "w%d", (place + 1) % 4);
    uuid_new(id);
    item.txn_id = caller->txn_id ? caller->txn_id : id;
    if (!caller->txn_id)
        item.amount = 1 + (i * 7 + caller->number) % 40;
    switch (ledger_post(caller->ledger, soon(), arena, &item, NULL)) {
    case OK:
        caller->posted++;
        caller->replayed += item.replayed;
        caller->balance = item.balance;
        break;
    case ERR_CONFLICT:
        caller->refused++;
        break;
    default:
        caller->failed++;
    }
    if (ledger_get(caller->ledger, soon(), arena, from, NULL, &wallet, NULL) != OK || strcmp(wallet.owner, from) != 0)
        caller->failed++;
}

static void *caller_run(void *context)
{
    for (int i = 0; i < TURNS; i++)
        turn(context, i);
    return NULL;
}

/* Four wallets with 50 each, and all callers at the same time. */
static void race(LedgerFixture *fixture, const char *txn_id, Caller *ret_callers)
{
    scoped(ledger_free) Ledger *ledger = ledger_new(fixture->pool);
    pthread_t                   threads[CALLERS];

    for (int i = 0; i < 4; i++)
        ledger_fixture_open(fixture, arena_print(fixture->arena, "w%d", i), 50);
    for (int i = 0; i < CALLERS; i++) {
        ret_callers[i] = (Caller){.ledger = ledger, .txn_id = txn_id, .number = i};
        threads[i]     = thread_start("caller", caller_run, &ret_callers[i]);
    }
    for (int i = 0; i < CALLERS; i++)
        thread_join(threads[i]);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(ret_callers[i].failed, 0);
        assert_int_equal(ret_callers[i].posted + ret_callers[i].refused, TURNS);
    }
}

TEST(wallet_callers_at_once_neither_make_nor_lose_money)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    Caller                                     callers[CALLERS];
    int                                        posted = 0;

    race(fixture, NULL, callers);
    for (int i = 0; i < CALLERS; i++)
        posted += callers[i].posted;
    assert_int_equal(database_get_i64(fixture->db,
                                      "select count(*) from wallet.txn where kind = 'transfer' and refusal is null"),
                     posted);
    assert_int_equal(database_get_i64(fixture->db,
                                      "select sum(s.balance)::bigint from wallet.state s join wallet.wallet w "
                                      "on w.id = s.id where w.owner like 'w_'"),
                     200);
    assert_int_equal(database_get_i64(fixture->db,
                                      "select count(*) from wallet.state s where s.balance < 0 and floor = 0"),
                     0);
}

TEST(wallet_callers_with_one_key_are_one_operation)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    Caller                                     callers[CALLERS];
    int                                        replayed = 0;

    race(fixture, ledger_fixture_key(fixture), callers);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(callers[i].refused, 0);
        assert_int_equal(callers[i].balance, 43);
        replayed += callers[i].replayed;
    }
    assert_int_equal(replayed, CALLERS * TURNS - 1);
    assert_int_equal(ledger_fixture_balance(fixture, "w1"), 57);
}
