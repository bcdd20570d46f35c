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

Books *books_new(int pool_size)
{
    Books *books = calloc(1, sizeof *books);
    Error  error = {0};

    assert_non_null(books);
    books->db    = database_new();
    books->arena = arena_new((size_t)256 << 20);
    assert_ok(
        pool_new(&(PoolOptions){.conninfo = database_url(books->db), .size_max = pool_size}, &books->pool, &error));
    return books;
}

void books_free(Books *books)
{
    pool_free(books->pool);
    database_free(books->db);
    arena_free(books->arena);
    free(books);
}

const char *books_key(Books *books)
{
    char id[UUID_TEXT_SIZE];

    uuid_new(id);
    return arena_text(books->arena, id);
}

void books_open(Books *books, const char *owner, int64_t balance)
{
    WalletNew  wallet = {.owner = owner};
    WalletItem topup  = {.kind = WALLET_TOPUP, .owner = owner, .amount = balance};
    Error      error  = {0};

    assert_ok(wallet_open(books->pool, soon(), books->arena, &wallet, &error));
    if (balance > 0)
        assert_int_equal(books_post(books, &topup), OK);
}

ErrorCode books_post(Books *books, WalletItem *item)
{
    Error error = {0};

    if (!item->txn_id)
        item->txn_id = books_key(books);
    assert_ok(wallet_check(item, &error));
    assert_ok(wallet_post(books->pool, soon(), books->arena, &item, 1, &error));
    return item->code;
}

WalletItem books_transfer(const char *from, const char *to, int64_t amount)
{
    return (WalletItem){.kind = WALLET_TRANSFER, .owner = from, .other = to, .amount = amount};
}

int64_t books_balance(Books *books, const char *owner)
{
    Wallet *list;
    int     count;
    Error   error = {0};

    assert_ok(wallet_look(books->pool, soon(), books->arena, &owner, NULL, 1, &list, &count, &error));
    assert_int_equal(count, 1);
    return list[0].balance;
}

int64_t books_count(Books *books, const char *table)
{
    return database_get_i64(books->db, arena_print(books->arena, "select count(*) from wallet.%s", table));
}
