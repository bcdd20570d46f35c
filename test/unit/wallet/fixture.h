/*
 * fixture.h - books of one's own: a database, a pool, an arena, and short ways to move money.
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
} Books;

Books *books_new(int pool_size);
void   books_free(Books *books);
SCOPED(Books, books_free)

Deadline soon(void);
/* A key that was never used. */
const char *books_key(Books *books);
/* Open a wallet in CREDIT with this balance. */
void books_open(Books *books, const char *owner, int64_t balance);
/* Fill in the key if there is none, post, and return the verdict. */
ErrorCode  books_post(Books *books, WalletItem *item);
WalletItem books_transfer(const char *from, const char *to, int64_t amount);
int64_t    books_balance(Books *books, const char *owner);
int64_t    books_count(Books *books, const char *table);

#endif
