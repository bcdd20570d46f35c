/*
 * fixture.h - fixture of one's own: a database, a pool, an arena, and short ways to move money.
 */
#ifndef UNIT_WALLET_FIXTURE_H
#define UNIT_WALLET_FIXTURE_H

#include "test/harness/database.h"
#include "test/harness/test.h"
#include "wallet/post.h"

typedef struct {
    TestDatabase *db;
    Pool         *pool;
    Arena        *arena;
} LedgerFixture;

LedgerFixture *ledger_fixture_new(int pool_size);
void           ledger_fixture_free(LedgerFixture *fixture);
SCOPED(LedgerFixture, ledger_fixture_free)

Deadline soon(void);
/* A key that was never used. */
const char *ledger_fixture_key(LedgerFixture *fixture);
/* Open a wallet in CREDIT with this balance. */
void ledger_fixture_open(LedgerFixture *fixture, const char *owner, int64_t balance);
/* Fill in the key if there is none, post, and return the verdict. */
ErrorCode  ledger_fixture_post(LedgerFixture *fixture, WalletItem *item);
WalletItem ledger_fixture_transfer(const char *from, const char *to, int64_t amount);
int64_t    ledger_fixture_balance(LedgerFixture *fixture, const char *owner);
int64_t    ledger_fixture_count(LedgerFixture *fixture, const char *table);

#endif
